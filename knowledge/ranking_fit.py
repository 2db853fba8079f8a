"""Learning mix and calibration from records that are asked as queries, themselves left out. Source: ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from .calibration import ConfidenceCalibration
from .ranking import (
    FEATURES,
    LabelBelief,
    RankingMix,
    frequency_belief,
    learned_belief,
    no_belief,
    rank_labels,
    rerank,
    signs,
    vote_shares,
)

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

FEWEST_ANSWERABLE = 30
PRIOR_SHARES = (0.0, 0.1, 0.2, 0.35)
FREQUENCY_SHARES = (0.01, 0.03, 0.06, 0.12, 0.2)
POWERS = (4.0, 8.0)
MOST_CHOICES = 100
LEAST_GAIN = 0.002
_STRENGTH = 2.0
_STEP = np.array([15.0, 4.0, 0.3])
"""How far a weight may move from its default before the penalty is felt: learned, vote, department."""


class Belief(StrEnum):
    """What a ranking believes of labels before it looks at records."""

    LEARNED = "learned"
    FREQUENCY = "frequency"
    NONE = "none"


@dataclass(frozen=True)
class LeftOut:
    """One record asked as a query, itself left out.

    Attributes:
        label: its own.
        fused: ``[k]`` scores of the records found.
        labels: ``[k]`` their labels.
        channels: ``[k, 4, 2]``.
        scores: ``[labels]`` learned, without this record.
        department: ``[labels]`` log P(label | department) / P(label), without this record.
        frequency: ``[labels]`` the frequency prior on a 0..1 scale, without this record.
        known: ``[labels]`` bool: labels that other records have.
    """

    label: int
    fused: Floats
    labels: Ints
    channels: Floats
    scores: Floats
    department: Doubles
    frequency: Doubles
    known: npt.NDArray[np.bool_]

    @property
    def answerable(self) -> bool:
        """Whether another record has its label."""
        return bool(self.known[self.label])

    def alone(self) -> LeftOut:
        """The same without any record found."""
        return replace(self, fused=self.fused[:0], labels=self.labels[:0], channels=self.channels[:0])

    def belief(self, mix: RankingMix, kind: Belief = Belief.LEARNED) -> LabelBelief:
        """With labels that no other record has put out of reach."""
        if kind is not Belief.LEARNED:
            return (
                frequency_belief(self.frequency) if kind is Belief.FREQUENCY else no_belief(len(self.known))
            )
        scores = np.where(self.known, self.scores, np.float32(-1.0)).astype(np.float32)
        return learned_belief(scores, self.department, mix)


def fit_mix(cases: Sequence[LeftOut], start: RankingMix) -> RankingMix:
    """Weights under which left-out records' labels come first.

    The weights of learned score, vote and department are those of a conditional logit over labels, at least
    0 and pulled to the defaults. Beside the learned scores the records vote by similarity alone, so that one
    thing does not count twice; λ is the one with which the vote of re-ranked records ranks best.

    Args:
        cases: left-out records; fewer than 30 answerable ones leave the defaults.
        start: defaults.
    """
    asked = [case for case in cases if case.answerable]
    if len(asked) < FEWEST_ANSWERABLE:
        return start
    choices = _Choices.of(asked)
    alone = choices.fit(np.zeros(choices.scores.shape), start)
    mix = start.but(sharpness=float(alone[0]), department=float(alone[2]))
    plain = {power: choices.votes(asked, mix.but(prior=0.0, power=power)) for power in POWERS}
    power = max(POWERS, key=lambda p: (choices.reciprocal_rank(plain[p]), -p))
    weights = choices.fit(plain[power], start)
    share, reached = 0.0, -np.inf
    for tried in PRIOR_SHARES:
        value = choices.reciprocal_rank(choices.votes(asked, mix.but(prior=tried, power=power)))
        if value > reached + LEAST_GAIN:
            share, reached = tried, value
    return mix.but(
        prior=share,
        power=power,
        learned=float(weights[0]),
        vote=float(weights[1]),
        department=float(weights[2]),
    )


def fit_frequency(cases: Sequence[LeftOut], mix: RankingMix) -> RankingMix:
    """The λ of the frequency prior with which re-ranked records rank best, at least .01.

    Args:
        cases: left-out records; fewer than 30 answerable ones leave the default.
        mix: how records vote.
    """
    asked = [case for case in cases if case.answerable]
    if len(asked) < FEWEST_ANSWERABLE:
        return mix
    choices = _Choices.of(asked)
    share, reached = mix.frequency, -np.inf
    for tried in FREQUENCY_SHARES:
        votes = choices.votes(asked, mix.but(frequency=tried), Belief.FREQUENCY)
        value = choices.reciprocal_rank(votes)
        if value > reached + LEAST_GAIN:
            share, reached = tried, value
    return mix.but(frequency=share)


@dataclass(frozen=True)
class _Choices:
    """The labels among which each left-out record's own has to be chosen, as arrays ``[cases, choices]``."""

    picks: Ints
    scores: Doubles
    department: Doubles
    possible: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, cases: Sequence[LeftOut]) -> _Choices:
        """The labels with the best scores, those of the records found, and the own one, which comes first."""
        chosen = []
        for case in cases:
            scores = np.where(case.known, case.scores, -np.inf)
            best = np.argsort(-scores, kind="stable")[:MOST_CHOICES]
            near = np.unique(case.labels[np.argsort(-case.fused, kind="stable")[:MOST_CHOICES]])
            others = np.union1d(best, near[near >= 0])
            chosen.append(np.concatenate([[case.label], others[(others != case.label) & case.known[others]]]))
        width = max(len(pick) for pick in chosen)
        picks = np.stack([np.pad(pick, (0, width - len(pick)), mode="edge") for pick in chosen]).astype(
            np.int32
        )
        possible = np.stack([np.arange(width) < len(pick) for pick in chosen])
        rows = np.arange(len(cases))[:, None]
        return cls(
            picks,
            np.stack([case.scores for case in cases])[rows, picks].astype(np.float64),
            np.stack([case.department for case in cases])[rows, picks].astype(np.float64),
            possible,
        )

    def votes(self, cases: Sequence[LeftOut], mix: RankingMix, kind: Belief = Belief.LEARNED) -> Doubles:
        """Vote shares of the choices under a mix."""
        rows = []
        for case, pick in zip(cases, self.picks, strict=True):
            belief = case.belief(mix, kind)
            scores, _ = rerank(case.fused, case.labels, belief.prior, None, mix.under(belief))
            rows.append(vote_shares(scores, case.labels, len(case.known), mix)[pick])
        return np.stack(rows)

    def reciprocal_rank(self, votes: Doubles) -> float:
        """Mean reciprocal rank of the own label by the vote alone; ties count half."""
        others = np.where(self.possible[:, 1:], votes[:, 1:], -1.0)
        own = votes[:, :1]
        ahead = (others > own).sum(axis=1) + (others == own).sum(axis=1) / 2
        return float(np.mean(1.0 / (1.0 + ahead)))

    def fit(self, votes: Doubles, start: RankingMix) -> Doubles:
        """``[3]`` weights of learned score, vote and department."""
        base = np.array([start.learned, start.vote, start.department])
        parts = (self.scores, votes, self.department)

        def loss(weights: Doubles) -> tuple[float, Doubles]:
            logits = weights[0] * self.scores + weights[1] * votes + weights[2] * self.department
            logits = np.where(self.possible, logits, -np.inf)
            logits -= logits.max(axis=1, keepdims=True)
            chance = np.exp(logits)
            whole = chance.sum(axis=1, keepdims=True)
            chance /= whole
            own = logits[:, 0] - np.log(whole[:, 0])
            slope = np.array([float((chance * part).sum() - part[:, 0].sum()) for part in parts])
            pull = (weights - base) / _STEP
            return float(-own.sum() + _STRENGTH * (pull @ pull)), slope + 2 * _STRENGTH * pull / _STEP

        bounds = [(0, None)] * len(base)
        found = minimize(loss, base, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
        return np.asarray(found.x)


def fit_calibration(
    cases: Sequence[LeftOut], mix: RankingMix, kind: Belief = Belief.LEARNED, *, retrieval: bool = True
) -> tuple[ConfidenceCalibration, npt.NDArray[np.bool_]]:
    """Fit confidence on left-out records, answerable or not: a leader that cannot be right is wrong.

    Args:
        cases: left-out records.
        mix: as it will rank.
        kind: of belief it will rank with.
        retrieval: whether records take part in the ranking of labels.

    Returns:
        The calibration, and ``[n]`` which leaders were right.
    """
    rows = []
    right = []
    for case in cases:
        belief = case.belief(mix, kind)
        scores, _ = rerank(case.fused, case.labels, belief.prior, None, mix.under(belief))
        seen = case if retrieval else case.alone()
        ranked = rank_labels(
            scores[: len(seen.fused)],
            seen.fused,
            seen.labels,
            belief,
            mix,
            tie=lambda i: i.to_bytes(4, "big"),
        )
        rows.append(
            signs(ranked, scores, case.fused, labels=case.labels, channels=case.channels, belief=belief)[0]
        )
        right.append(bool(len(ranked.order)) and int(ranked.order[0]) == case.label)
    values = np.stack(rows) if rows else np.zeros((0, len(FEATURES)))
    hits = np.array(right, bool)
    return ConfidenceCalibration.fit(FEATURES, values, hits), hits
