"""Baselines: what one channel, a plain vote or a plain classifier would say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..knowledge.calibration import ConfidenceCalibration
from ..knowledge.lessons import Asked
from ..knowledge.ranking import (
    FEATURES,
    LabelBelief,
    RankedLabels,
    RankingMix,
    no_belief,
    rank_labels,
    signs,
    softmax,
)
from ..knowledge.ridge import RidgeOptions
from ..knowledge.weights import ViewWeights
from ..records.schema import VIEWS, View
from ..retrievers.ordering import tie_key
from .rounds import Answerer, Condition, Floats, Fold, Prediction, Question

Ints = npt.NDArray[np.int32]

FLAT = RankingMix(prior=0.0, power=4.0, neighbours=30, proposals=0)
TEXT_ONLY = RidgeOptions(views=0.0, department=0.0, age=0.0, smoothing=0.0, power=1.0, ridge=0.4)
_WHOLE = VIEWS.index(View.GLOBAL)

Rank = Callable[[Floats, npt.NDArray[np.bool_], Floats, Question | Asked], tuple[Floats, LabelBelief]]
"""From channel scores ``[n, 4, 2]``, present views and supervised scores to records' scores and a belief."""


def baseline(rank: Rank, mix: RankingMix = FLAT, *, best_record: bool = False) -> Condition:
    """A condition over channel scores, with its confidence calibrated on the fold's left-out records.

    Args:
        rank: scores records.
        mix: of vote and scores.
        best_record: rank labels by their best record instead of by vote.
    """

    def prepare(fold: Fold) -> Answerer:
        lessons = fold.lessons
        names, codes = lessons.table.space.names, lessons.table.codes()
        keys = lessons.table.space.keys
        row_labels = lessons.table.labels

        def one(
            who: Question | Asked, name: str, scores: Floats
        ) -> tuple[RankedLabels, npt.NDArray[np.float64], float]:
            rows, channels, present = _seen(who)
            fused, belief = rank(channels, present, scores, who)
            labels = row_labels[rows]

            def tie(label: int) -> bytes:
                return tie_key(fold.seed, name, keys[label])

            if best_record:
                ranked = _by_best_record(fused, labels, len(keys), tie)
            else:
                ranked = rank_labels(fused, fused, labels, belief, mix, tie=tie)
            values, raw = signs(ranked, fused, fused, labels=labels, channels=channels, belief=belief)
            return ranked, values, raw.raw

        seen, right = [], []
        for place, asked in enumerate(lessons.asked):
            scores = fold.supervised[1][place] if len(fold.supervised[1]) else np.zeros(len(keys), np.float32)
            label = int(row_labels[asked.row])
            if lessons.counts[label] == 1:
                scores = scores.copy()
                scores[label] = -1.0
            ranked, values, _ = one(asked, fold.index.ids[asked.row], scores)
            seen.append(values)
            right.append(bool(len(ranked.order)) and int(ranked.order[0]) == label)
        calibration = ConfidenceCalibration.fit(
            FEATURES, np.stack(seen) if seen else np.zeros((0, len(FEATURES))), np.array(right, bool)
        )

        def answer(question: Question) -> Prediction:
            ranked, values, raw = one(question, question.id, question.supervised)
            return Prediction(
                tuple((names[i], codes[i]) for i in ranked.order.tolist()),
                values,
                float(calibration.apply(values)[0]),
                raw,
            )

        return answer

    return prepare


def _seen(who: Question | Asked) -> tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.bool_]]:
    if isinstance(who, Question):
        return who.found.rows, who.found.scores, who.encoded.present
    return who.rows, who.channels, who.present


def _by_best_record(fused: Floats, labels: Ints, count: int, tie: Callable[[int], bytes]) -> RankedLabels:
    best = np.full(count, -1.0)
    known = labels >= 0
    np.maximum.at(best, labels[known], fused[known].astype(np.float64))
    found = np.flatnonzero(best > 0).astype(np.int32)
    order = np.array(sorted(found.tolist(), key=lambda i: (-best[i], tie(i))), np.int32)
    total = max(float(best[order].sum()), 1e-12)
    shares = np.clip(best, 0, None) / total
    return RankedLabels(order, shares[order], shares)


def flat(dense: float, sparse: float) -> Rank:
    """The whole text alone, its two channels weighted."""

    def rank(
        channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: object
    ) -> tuple[Floats, LabelBelief]:
        del present, who
        return channels[:, _WHOLE] @ np.array([dense, sparse], np.float32), no_belief(len(scores))

    return rank


def general_views(
    channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: Question | Asked
) -> tuple[Floats, LabelBelief]:
    """The four views with the general row of the shipped table."""
    row = ViewWeights.shipped().general_only().row(None, present, headed=who.headed)
    return np.asarray(channels.reshape(len(channels), 8) @ row.ravel(), np.float32), no_belief(len(scores))


def scores_alone(
    channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: object
) -> tuple[Floats, LabelBelief]:
    """No record counts: labels rank by the text-only classifier."""
    del present, who
    nothing = np.zeros(len(channels), np.float32)
    chance = softmax(scores.astype(np.float64) * 12)
    return nothing, LabelBelief(scores, np.zeros(len(scores)), None, chance)
