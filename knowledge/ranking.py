"""From scored records to ranked diagnoses. Source: MAP-RAG for re-rank and vote, ours for the learned mix.

Pure functions over arrays: retrieval, nodes and evaluation all rank through these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .calibration import RawConfidence, raw_confidence
from .priors import log_scaled

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

FEATURES = ("chance", "learned", "record", "vote", "agreement")
"""Signs of a good answer, in the order of :func:`signs`: logit of the leader's share, its learned score, the
similarity of its best record, its share of the vote, and the share of channels whose first record agrees.
More signs than these fitted the records they were chosen on and no others."""


@dataclass(frozen=True)
class RankingMix:
    """How records, learned scores and the department are weighed against each other.

    Attributes:
        prior: share of the learned prior in a record's score (lambda).
        frequency: lambda where the prior is the frequency of diagnoses alone.
        power: on a record's score in the vote.
        neighbours: how many records vote.
        proposals: so many labels that the learned prior puts first bring their best record in.
        sharpness: logit per unit of learned score, where the learned scores stand alone.
        learned: logit per unit of learned score, beside the vote.
        vote: logit per unit of vote share.
        department: logit per unit of log P(label | department) / P(label).
    """

    prior: float = 0.2
    frequency: float = 0.05
    power: float = 4.0
    neighbours: int = 30
    proposals: int = 10
    sharpness: float = 12.0
    learned: float = 12.0
    vote: float = 2.0
    department: float = 0.2

    def to_json(self) -> dict[str, float]:
        """For a sidecar."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""
        return cls(**data)

    def under(self, belief: LabelBelief) -> RankingMix:
        """The same with the lambda that belongs to the kind of prior."""
        return self.but(prior=self.frequency) if belief.scores is None else self

    def but(self, **changes: Any) -> RankingMix:
        """The same with changes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class LabelBelief:
    """What is believed of every label before any record is looked at.

    Attributes:
        scores: ``[labels]`` of the learned scorer; None without one.
        department: ``[labels]`` log P(label | department) / P(label); zeros where unknown.
        prior: ``[labels]`` on a 0..1 scale, what re-ranking adds to a record of that label; None without one.
        chance: ``[labels]`` that the learned scores alone give; None without them.
    """

    scores: Floats | None
    department: Doubles
    prior: Doubles | None
    chance: Doubles | None


def learned_belief(scores: Floats, department: Doubles, mix: RankingMix) -> LabelBelief:
    """Belief from learned scores; the prior is the log of their chance, 0 at a tenth of an even share."""
    chance = softmax(mix.sharpness * scores.astype(np.float64) + mix.department * department)
    return LabelBelief(scores, department, log_scaled(chance, 0.1 / max(len(scores), 2)), chance)


def frequency_belief(prior: Doubles) -> LabelBelief:
    """MAP-RAG's: the smoothed, log-scaled frequency of a diagnosis in the department, and nothing learned."""
    return LabelBelief(None, np.zeros(len(prior)), prior, None)


def no_belief(labels: int) -> LabelBelief:
    """Nothing known beforehand."""
    return LabelBelief(None, np.zeros(labels), None, None)


def softmax(logits: Doubles) -> Doubles:
    """Chances that sum to 1."""
    if not len(logits):
        return np.zeros(0)
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def rerank(
    fused: Floats, labels: Ints, prior: Doubles | None, effects: Doubles | None, mix: RankingMix
) -> tuple[Floats, Floats]:
    """``s' = (1 - λ) s + λ prior``, times the rules' odds.

    A rule's effect is in log-odds of the diagnosis; it scales a record so that the record's vote changes by
    just these odds.

    Args:
        fused: ``[k]`` retrieval scores, 0..1.
        labels: ``[k]`` label of each record, -1 for none.
        prior: ``[labels]`` 0..1, or None for no prior.
        effects: ``[k]`` sum of rule effects on each record's diagnosis, or None.
        mix: λ and the power of the vote.

    Returns:
        ``[k]`` re-ranked scores and ``[k]`` the prior each record got.
    """
    own = np.zeros(len(fused))
    scores = fused.astype(np.float64)
    if prior is not None and mix.prior > 0:
        own = np.where(labels >= 0, prior[labels], 0.0)
        scores = (1 - mix.prior) * scores + mix.prior * own
    if effects is not None:
        scores = scores * np.exp(effects / max(mix.power, 1.0))
    return np.clip(scores, 0, 1).astype(np.float32), own.astype(np.float32)


def select_records(fused: Floats, labels: Ints, proposals: Ints, mix: RankingMix) -> npt.NDArray[np.int64]:
    """Places of the records that are re-ranked: the best by score, and the best one of each proposed label.

    Args:
        fused: ``[n]`` scores of all candidates.
        labels: ``[n]`` their labels.
        proposals: label numbers that are to have evidence if any candidate has them.
        mix: how many records are kept.
    """
    order = np.argsort(-fused, kind="stable")
    kept = order[: mix.neighbours]
    missing = np.setdiff1d(proposals, labels[kept])
    rest = order[mix.neighbours :]
    extra = [rest[labels[rest] == label][:1] for label in missing.tolist()]
    return np.concatenate([kept, *extra]).astype(np.int64)


def vote_shares(scores: Floats, labels: Ints, count: int, mix: RankingMix) -> Doubles:
    """``[labels]`` each label's share of ``Σ score^power`` over the best records."""
    known = labels >= 0
    scores, labels = scores[known], labels[known]
    if len(scores) > mix.neighbours:
        keep = np.argsort(-scores, kind="stable")[: mix.neighbours]
        scores, labels = scores[keep], labels[keep]
    votes = np.asarray(np.bincount(labels, scores.astype(np.float64) ** mix.power, count), np.float64)
    total = votes.sum()
    return np.asarray(votes / total) if total > 0 else votes


@dataclass(frozen=True)
class RankedLabels:
    """Labels in order.

    Attributes:
        order: ``[m]`` label numbers, best first.
        shares: ``[m]`` chance of each by the mix, or share of the vote where nothing is learned.
        votes: ``[labels]`` vote shares.
    """

    order: Ints
    shares: Doubles
    votes: Doubles


def rank_labels(
    scores: Floats,
    fused: Floats,
    labels: Ints,
    belief: LabelBelief,
    mix: RankingMix,
    *,
    tie: Callable[[int], bytes],
    effects: Callable[[int], float] | None = None,
    limit: int = 50,
) -> RankedLabels:
    """Rank labels by the vote of records and by what is believed of each label.

    Args:
        scores: ``[k]`` re-ranked records; they vote where nothing is learned.
        fused: ``[k]`` the same records' similarity; it votes beside the learned scores.
        labels: ``[k]`` their labels, -1 for none.
        belief: about labels.
        mix: how both are weighed.
        tie: of a label number; orders labels of the same score.
        effects: rule effect on a label, added to its logit; only asked for labels that could come first.
        limit: how many labels are ranked beyond those that records have.
    """
    count = len(belief.department)
    votes = vote_shares(scores if belief.scores is None else fused, labels, count, mix)
    if belief.scores is None:
        found = np.flatnonzero(votes > 0).astype(np.int32)
        order = np.array(sorted(found.tolist(), key=lambda i: (-votes[i], tie(i))), np.int32)
        return RankedLabels(order, votes[order], votes)
    logits = (
        mix.learned * belief.scores.astype(np.float64) + mix.vote * votes + mix.department * belief.department
    )
    kept = np.argpartition(-logits, limit - 1)[:limit] if count > limit else np.arange(count)
    kept = np.union1d(kept, np.flatnonzero(votes > 0)).astype(np.int32)
    if effects is not None:
        logits = logits.copy()
        logits[kept] += np.array([effects(i) for i in kept.tolist()])
    chance = softmax(logits)
    order = np.array(sorted(kept.tolist(), key=lambda i: (-logits[i], tie(i))), np.int32)
    return RankedLabels(order, chance[order], votes)


def signs(
    ranked: RankedLabels,
    scores: Floats,
    fused: Floats,
    *,
    labels: Ints,
    channels: Floats,
    belief: LabelBelief,
) -> tuple[Doubles, RawConfidence]:
    """Features that tell a good ranking from a bad one, and MAP-RAG's raw confidence.

    Args:
        ranked: labels.
        scores: ``[k]`` re-ranked records.
        fused: ``[k]`` their similarity.
        labels: ``[k]`` their labels.
        channels: ``[k, 4, 2]`` channel scores.
        belief: about labels.

    Returns:
        ``[features]`` in the order of :data:`FEATURES`, finite.
    """
    raw = raw_confidence(scores.astype(np.float64), labels)
    if not len(ranked.order):
        return np.zeros(len(FEATURES)), raw
    leader = int(ranked.order[0])
    own = labels == leader
    flat = channels.reshape(len(labels), 8)
    speaking = [i for i in range(flat.shape[1]) if len(flat) and flat[:, i].max() > 0]
    firsts = [bool(own[int(flat[:, i].argmax())]) for i in speaking]
    learned = float(belief.scores[leader]) if belief.scores is not None else 0.0
    best = float(fused[own].max(initial=0.0))
    agreement = float(np.mean(firsts)) if firsts else 0.0
    return np.array(
        [_logit(float(ranked.shares[0])), learned, best, float(ranked.votes[leader]), agreement]
    ), raw


def _logit(chance: float) -> float:
    clipped = min(max(chance, 1e-6), 1 - 1e-6)
    return float(np.log(clipped / (1 - clipped)))
