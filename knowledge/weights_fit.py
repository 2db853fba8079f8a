"""Learning view weights from labelled records. Source: ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from .weights import ViewWeights

Floats = npt.NDArray[np.float32]

FEWEST_CASES = 25
"""Answerable records a department needs before a row of its own is tried."""
POWER = 4.0
GENERAL_STRENGTH = 30.0
DEPARTMENT_STRENGTH = 150.0
LEAST_GAIN = 0.01
_FLOOR = 1e-4


@dataclass(frozen=True)
class WeightExample:
    """One labelled record asked as a query, itself left out.

    Attributes:
        scores: ``[k, 4, 2]`` channel scores of its candidates.
        agrees: ``[k]`` bool, candidates with its label; at least one.
        present: ``[4]`` bool.
        department: canonical name, or None.
    """

    scores: Floats
    agrees: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]
    department: str | None


def fit_view_weights(
    examples: Sequence[WeightExample], start: ViewWeights, *, data_hash: str | None = None
) -> ViewWeights:
    """Learn weights under which the vote of a record's neighbours finds its own label.

    Maximises the log of the label's share of a vote with power 4, over records left out, with a penalty on
    the distance to the row it starts from: the general row is pulled to the table's, a department's row
    hard to the fitted general one. A department's row is kept only when it does better on the half of its
    cases it was not fitted on, both ways; else the report says why it has none.

    Args:
        examples: records whose label occurs among their candidates; fewer than 25 leave the table as it is.
        start: table to begin with.
        data_hash: of the index.
    """
    if len(examples) < FEWEST_CASES:
        why = f"{len(examples)} answerable records; at least {FEWEST_CASES} are needed, so the table stays"
        return ViewWeights(start.general, start.departments, start.source, data_hash, None, {"general": why})
    batch = _Batch.of(examples)
    before = batch.mean_likelihood(start.general)
    general = batch.fit(start.general, GENERAL_STRENGTH)
    after = _held_out(examples, start.general, GENERAL_STRENGTH)
    report = {"general": f"log-likelihood {before:.3f} with the table, {after:.3f} fitted (held out)"}
    if after <= before:
        general, after = start.general, before
        report["general"] += "; the table stays"
    rows: dict[str, Floats] = {}
    names = sorted({e.department for e in examples if e.department})
    for name in names:
        own = [e for e in examples if e.department == name]
        row, why = _department(own, general)
        report[name] = why
        if row is not None:
            rows[name] = row
    return ViewWeights(general, rows, "fit", data_hash, after, report)


def _department(own: Sequence[WeightExample], general: Floats) -> tuple[Floats | None, str]:
    if len(own) < FEWEST_CASES:
        return None, f"{len(own)} cases are too few to differ ({FEWEST_CASES} are needed)"
    base = _Batch.of(own).mean_likelihood(general)
    held_out = _held_out(own, general, DEPARTMENT_STRENGTH)
    gain = held_out - base
    if gain < LEAST_GAIN:
        return None, f"{len(own)} cases show no difference (held-out gain {gain:+.3f})"
    return _Batch.of(own).fit(general, DEPARTMENT_STRENGTH), f"{len(own)} cases, held-out gain {gain:+.3f}"


def _held_out(examples: Sequence[WeightExample], start: Floats, strength: float) -> float:
    halves = (examples[0::2], examples[1::2])
    total = 0.0
    for fitted, judged in (halves, halves[::-1]):
        row = _Batch.of(fitted).fit(start, strength / 2)
        total += _Batch.of(judged).mean_likelihood(row) * len(judged)
    return total / len(examples)


@dataclass(frozen=True)
class _Batch:
    """Examples as flat arrays: candidates one after the other; ``starts`` says where each begins."""

    scores: npt.NDArray[np.float64]  # [candidates, 8]
    agrees: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    present: npt.NDArray[np.float64]  # [examples, 8]
    owner: npt.NDArray[np.int64]

    @classmethod
    def of(cls, examples: Sequence[WeightExample]) -> _Batch:
        sizes = np.array([len(e.agrees) for e in examples])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        return cls(
            np.concatenate([e.scores.reshape(len(e.agrees), 8) for e in examples]).astype(np.float64),
            np.concatenate([e.agrees for e in examples]).astype(np.float64),
            starts,
            np.stack([np.repeat(e.present, 2) for e in examples]).astype(np.float64),
            np.repeat(np.arange(len(examples)), sizes),
        )

    def likelihood(
        self, weights: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Log share of the own label, per example, and its gradient by the eight weights."""
        masked = self.present * weights
        norm = np.maximum(masked.sum(axis=1), 1e-9)
        raw = self.scores @ weights
        fused = np.maximum(raw / norm[self.owner], _FLOOR)
        votes = fused**POWER
        whole = np.add.reduceat(votes, self.starts)
        own = np.add.reduceat(votes * self.agrees, self.starts) + 1e-12
        # Scaling by the norm cancels in the shares, so only the raw score's slope counts.
        slope = POWER * votes / fused / norm[self.owner]
        weight = slope * (self.agrees / own[self.owner] - 1 / whole[self.owner])
        gradient = weight @ self.scores
        return np.log(own) - np.log(whole), gradient

    def mean_likelihood(self, weights: Floats) -> float:
        """Of one row of weights."""
        return float(self.likelihood(weights.astype(np.float64).ravel())[0].mean())

    def fit(self, start: Floats, strength: float) -> Floats:
        """Best row near ``start``; weights are a softmax, so they stay above 0 and sum to 1."""
        base = np.log(np.maximum(start.astype(np.float64).ravel(), 0.005))

        def loss(logits: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            weights = np.exp(logits - logits.max())
            weights /= weights.sum()
            values, gradient = self.likelihood(weights)
            shift = logits - base
            inner = weights * (gradient - weights @ gradient)
            return float(-values.sum() + strength * (shift @ shift) / 2), -inner + strength * shift

        found = minimize(loss, base, jac=True, method="L-BFGS-B", options={"maxiter": 60})
        weights = np.exp(found.x - found.x.max())
        return np.asarray((weights / weights.sum()).reshape(start.shape), np.float32)
