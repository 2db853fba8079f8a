"""How frequent a diagnosis is in a department. Source: MAP-RAG for the idea; smoothing and scale are ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

SMOOTHING = 1.0
DEPARTMENT_COUNT = 10.0


def log_scaled(probabilities: npt.NDArray[np.floating], floor: float) -> Floats:
    """Probabilities on a 0..1 scale: 1 for certainty, 0 at ``floor`` and below, straight in the logarithm."""
    floor = min(max(floor, 1e-9), 0.5)
    clipped = np.clip(np.asarray(probabilities, np.float64), floor, 1.0)
    return np.asarray(1.0 - np.log(clipped) / np.log(floor))


@dataclass(frozen=True)
class DiagnosisPrior:
    """Laplace-smoothed P(diagnosis | department) of a corpus.

    Attributes:
        counts: ``[departments, labels]`` records.
        totals: ``[labels]`` records in any department or none.
    """

    counts: Floats
    totals: Floats

    @classmethod
    def of(cls, labels: Ints, departments: Ints, label_count: int, department_count: int) -> DiagnosisPrior:
        """Count records.

        Args:
            labels: ``[n]``, -1 for none.
            departments: ``[n]``, -1 for none.
            label_count: number of labels.
            department_count: number of departments.
        """
        known = labels >= 0
        totals = np.bincount(labels[known], minlength=label_count).astype(np.float64)
        counts = np.zeros((department_count, label_count))
        both = known & (departments >= 0)
        np.add.at(counts, (departments[both], labels[both]), 1.0)
        return cls(counts, totals)

    def overall(self, without: int = -1) -> Floats:
        """``[labels]`` P(diagnosis); one record with label ``without`` left out."""
        totals = self.totals.copy()
        if without >= 0:
            totals[without] -= 1
        return np.asarray((totals + SMOOTHING) / (totals.sum() + SMOOTHING * len(totals)))

    def given(self, department: int, without: int = -1) -> Floats:
        """``[labels]`` P(diagnosis | department), Laplace-smoothed; overall for no department."""
        if not 0 <= department < len(self.counts):
            return self.overall(without)
        counts = self.counts[department].copy()
        if without >= 0:
            counts[without] = max(counts[without] - 1, 0)
        return np.asarray((counts + SMOOTHING) / (counts.sum() + SMOOTHING * len(counts)))

    def soft(self, department: int, without: int = -1) -> Floats:
        """``[labels]`` P(diagnosis | department), pulled toward P(diagnosis) where records are few."""
        base = self.overall(without)
        if not 0 <= department < len(self.counts):
            return base
        counts = self.counts[department].copy()
        if without >= 0:
            counts[without] = max(counts[without] - 1, 0)
        return np.asarray((counts + DEPARTMENT_COUNT * base) / (counts.sum() + DEPARTMENT_COUNT))

    def scaled(self, department: int, without: int = -1) -> Floats:
        """``[labels]`` log of :meth:`given` in 0..1: 1 for the most frequent diagnosis, 0 for none seen."""
        if not len(self.totals):
            return np.zeros(0)
        logs = np.log(self.given(department, without))
        low = np.log(SMOOTHING / (self._size(department) + SMOOTHING * len(self.totals)))
        span = logs.max() - low
        return np.asarray(np.clip((logs - low) / span, 0, 1)) if span > 1e-12 else np.zeros(len(logs))

    def _size(self, department: int) -> float:
        known = 0 <= department < len(self.counts)
        return float(self.counts[department].sum() if known else self.totals.sum())
