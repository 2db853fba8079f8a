"""Figures of merit for ranked diagnoses and for confidence. All shares are 0..1."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

MISSED = 1_000_000
"""Rank of a label that was not proposed at all."""


def tie_key(seed: int, query_id: str, label: str) -> bytes:
    """Orders what scores the same: fixed by seed, query and label, and by nothing else."""
    return hashlib.blake2b(
        f"{seed}\x1f{query_id}\x1f{label}".encode("utf-8", "replace"), digest_size=8
    ).digest()


def rank_of(true_label: int, ranked: Sequence[int] | npt.NDArray[np.int32] | Ints) -> int:
    """Place of the true label, 0 for the first; :data:`MISSED` where it is not there."""
    places = np.flatnonzero(np.asarray(ranked) == true_label)
    return int(places[0]) if len(places) and true_label >= 0 else MISSED


def top_k(ranks: Ints, k: int) -> float:
    """Share of ranks below ``k``; 0 of nothing."""
    return float(np.mean(ranks < k)) if len(ranks) else 0.0


def mean_reciprocal_rank(ranks: Ints) -> float:
    """Mean of 1/(rank + 1), with 0 for what was missed."""
    return float(np.mean(np.where(ranks < MISSED, 1.0 / (ranks + 1.0), 0.0))) if len(ranks) else 0.0


def equal_mass_bins(values: Floats, bins: int = 10) -> list[Ints]:
    """Indices in ascending order of value, cut into bins of equal size; empty bins are left out."""
    order = np.argsort(values, kind="stable").astype(np.int64)
    return [part for part in np.array_split(order, bins) if len(part)]


def expected_calibration_error(confidence: Floats, right: Bools, bins: int = 10) -> float:
    """Mean distance between confidence and accuracy over equal-mass bins."""
    if not len(confidence):
        return 0.0
    gaps = [
        abs(float(confidence[part].mean()) - float(right[part].mean())) * len(part)
        for part in equal_mass_bins(confidence, bins)
    ]
    return float(sum(gaps) / len(confidence))


def auroc(confidence: Floats, right: Bools) -> float | None:
    """Chance that a right answer is more confident than a wrong one, ties half; None with one class only."""
    positives = int(right.sum())
    negatives = len(right) - positives
    if positives == 0 or negatives == 0:
        return None
    _, inverse, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    mean_rank = upper - (counts - 1) / 2.0
    total = float(mean_rank[inverse][right].sum())
    return float((total - positives * (positives + 1) / 2) / (positives * negatives))


def accuracy_coverage(confidence: Floats, right: Bools) -> tuple[Floats, Floats]:
    """Coverage and accuracy when the most confident 1, 2, … n are answered; ties are answered together."""
    if not len(confidence):
        return np.zeros(0), np.zeros(0)
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True))
    answered = ends + 1.0
    return answered / len(order), np.cumsum(right[order])[ends] / answered


def coverage_at(precision: float, confidence: Floats, right: Bools) -> float:
    """Largest share that can be answered with at least this precision, 0 where no cut reaches it."""
    coverage, accuracy = accuracy_coverage(confidence, right)
    good = accuracy >= precision
    return float(coverage[good].max()) if good.any() else 0.0
