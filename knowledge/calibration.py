"""Turning signs of a good answer into the chance that it is right. Ours; the raw parts are MAP-RAG's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TOP_WEIGHT, CONSENSUS_WEIGHT, MARGIN_WEIGHT = 0.40, 0.35, 0.25
FEWEST_EXAMPLES = 40
FOR_ISOTONIC = 1_000
_PENALTY = 5.0
_PRIOR_COUNT = 2.0


@dataclass(frozen=True)
class RawConfidence:
    """The three parts and their weighted sum, each in 0..1.

    Attributes:
        raw: ``.40 top + .35 consensus + .25 margin``.
        top: score of the best record.
        consensus: share of the three best records' score that agrees with the leader.
        margin: relative lead over the best record with another diagnosis; 1 where there is none.
    """

    raw: float
    top: float
    consensus: float
    margin: float


def raw_confidence(
    scores: Sequence[float] | Floats, labels: Sequence[Any] | npt.NDArray[Any]
) -> RawConfidence:
    """MAP-RAG's confidence of ranked records; the formula is ours, since the paper prints none.

    Args:
        scores: of the records after re-ranking, at least 0.
        labels: what must be equal for two records to agree; in the order of ``scores``.
    """
    values = np.clip(np.asarray(scores, np.float64), 0, 1)
    if not len(values) or values.max() <= 0:
        return RawConfidence(0.0, 0.0, 0.0, 0.0)
    order = np.argsort(-values, kind="stable")
    leader = labels[int(order[0])]
    top = float(values[order[0]])
    three = order[:3]
    agreeing = sum(float(values[i]) for i in three if labels[int(i)] == leader)
    consensus = agreeing / float(values[three].sum())
    rival = next((float(values[i]) for i in order if labels[int(i)] != leader), 0.0)
    margin = (top - rival) / top
    raw = TOP_WEIGHT * top + CONSENSUS_WEIGHT * consensus + MARGIN_WEIGHT * margin
    return RawConfidence(float(raw), top, float(consensus), float(margin))


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Chance that the leader is right, from features of a ranking.

    A logistic fit on standardised features, pulled to 0; with very few examples it is the base rate alone.
    Where there are a thousand examples or more, an isotonic step after it may follow.

    Attributes:
        features: names, in order.
        centre: ``[f]`` mean of each feature.
        scale: ``[f]`` standard deviation.
        weights: ``[f]``.
        bias: of the logit.
        steps: ``[2, m]`` isotonic step: logistic probability to observed frequency; None without one.
        examples: how many it was fitted on.
        base_rate: share of them in which the leader was right.
    """

    features: tuple[str, ...]
    centre: Floats
    scale: Floats
    weights: Floats
    bias: float
    steps: Floats | None = None
    examples: int = 0
    base_rate: float = 0.0

    @classmethod
    def fit(cls, features: Sequence[str], values: Floats, right: Bools, *, isotonic: bool = False) -> Self:
        """Fit on examples whose answers did not know their own label.

        Args:
            features: names of the columns.
            values: ``[n, f]``, finite.
            right: ``[n]`` whether the leader was right.
            isotonic: add the step, from 1,000 examples on.
        """
        n = len(right)
        width = len(features)
        rate = float((right.sum() + _PRIOR_COUNT * 0.5) / (n + _PRIOR_COUNT))
        centre = values.mean(axis=0) if n else np.zeros(width)
        scale = values.std(axis=0) if n else np.ones(width)
        scale = np.where(scale > 1e-6, scale, 1.0)
        bias = float(np.log(rate / (1 - rate)))
        few = n < FEWEST_EXAMPLES or right.all() or not right.any()
        if few:
            return cls(tuple(features), centre, scale, np.zeros(width), bias, None, n, rate)
        standard = (values - centre) / scale
        signs = np.where(right, 1.0, -1.0)

        def loss(x: Floats) -> tuple[float, Floats]:
            logits = standard @ x[:-1] + x[-1]
            agreed = signs * logits
            value = np.logaddexp(0, -agreed).sum() + _PENALTY * (x[:-1] @ x[:-1]) / 2
            slope = -signs * _sigmoid(-agreed)
            return float(value), np.append(standard.T @ slope + _PENALTY * x[:-1], slope.sum())

        x = minimize(loss, np.append(np.zeros(width), bias), jac=True, method="L-BFGS-B").x
        steps = None
        if isotonic and n >= FOR_ISOTONIC:
            steps = _isotonic(_sigmoid(standard @ x[:-1] + x[-1]), right)
        return cls(tuple(features), centre, scale, x[:-1], float(x[-1]), steps, n, rate)

    def apply(self, values: Floats) -> Floats:
        """``[n]`` probabilities of ``[n, f]`` features."""
        clipped = np.clip((np.atleast_2d(values) - self.centre) / self.scale, -4, 4)
        chance = _sigmoid(clipped @ self.weights + self.bias)
        if self.steps is None:
            return chance
        return np.asarray(np.interp(chance, self.steps[0], self.steps[1]))

    def to_json(self) -> dict[str, Any]:
        """For a sidecar."""
        return {
            "features": list(self.features),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "weights": self.weights.tolist(),
            "bias": self.bias,
            "steps": None if self.steps is None else self.steps.tolist(),
            "examples": self.examples,
            "base_rate": self.base_rate,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""
        return cls(
            tuple(data["features"]),
            np.asarray(data["centre"], np.float64),
            np.asarray(data["scale"], np.float64),
            np.asarray(data["weights"], np.float64),
            float(data["bias"]),
            None if data["steps"] is None else np.asarray(data["steps"], np.float64),
            int(data["examples"]),
            float(data["base_rate"]),
        )


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(x, -40, 40))))


def _isotonic(chance: Floats, right: Bools) -> Floats:
    order = np.argsort(chance, kind="stable")
    blocks: list[list[float]] = []  # mean, size, sum of chances
    for value, hit in zip(chance[order], right[order], strict=True):
        blocks.append([float(hit), 1.0, float(value)])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, size, total = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * size) / (last[1] + size)
            last[1] += size
            last[2] += total
    return np.array([[total / size for _, size, total in blocks], [mean for mean, _, _ in blocks]])
