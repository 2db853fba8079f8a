"""What is compared: baselines, the paper's method, ours, and ours with one part taken away.

A condition is prepared on a fold's records and then asks its queries. New kinds register themselves with
:func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..indexes.cases import CaseIndex, ChannelScores, EncodedQuery
from ..knowledge.calibration import ConfidenceCalibration
from ..knowledge.labels import LabelMode
from ..knowledge.learned import LabelScorer, Patient
from ..knowledge.learned_models import LearnedModels
from ..knowledge.lessons import Asked, Lessons
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
from ..retrievers.case_ranker import CaseRanker, Prior, RankingPlan
from ..retrievers.ordering import tie_key

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

FLAT = RankingMix(prior=0.0, power=4.0, neighbours=30, proposals=0)
TEXT_ONLY = RidgeOptions(department=0.0, age=0.0, smoothing=0.0, power=1.0, ridge=1.0)
_WHOLE = VIEWS.index(View.GLOBAL)


@dataclass(frozen=True)
class Question:
    """A query as every condition sees it.

    Attributes:
        id: names it in ties.
        text: the whole of it, without a diagnosis.
        patient: who it is about.
        headed: whether its views come from headings or fields.
        encoded: by the fold's index.
        found: candidates, with every channel's score; never the query itself.
        learned: ``[labels]`` of ours; left out where the query is in the index.
        supervised: ``[labels]`` of the text-only baseline; likewise.
        own_label: number of its label where it is in the index and left out, else -1.
    """

    id: str
    text: str
    patient: Patient
    headed: bool
    encoded: EncodedQuery
    found: ChannelScores
    learned: Floats
    supervised: Floats
    own_label: int = -1


@dataclass
class Fold:
    """Records to search, with what every condition may share.

    Attributes:
        index: of the records.
        lessons: its records asked as queries.
        supervised: the text-only baseline, and its left-out scores of the records asked.
        table: of view weights.
        seed: of ties.
        named: the same lessons with diagnoses told apart by name alone; made when asked for.
    """

    index: CaseIndex
    lessons: Lessons
    supervised: tuple[LabelScorer | None, Floats]
    table: ViewWeights
    seed: int
    named: Callable[[], Lessons]
    _models: dict[str, LearnedModels] = field(default_factory=dict)

    def models(self, name: str, make: Callable[[], LearnedModels]) -> LearnedModels:
        """Models under a name, fitted once."""
        if name not in self._models:
            self._models[name] = make()
        return self._models[name]

    def ours(self) -> LearnedModels:
        """What ships."""
        return self.models("ours", lambda: self.lessons.models(self.table))


@dataclass(frozen=True)
class Prediction:
    """What a condition says about one query.

    Attributes:
        ranked: diagnoses as name and code, best first.
        signs: features of confidence.
        confidence: calibrated on the fold's records.
        raw: MAP-RAG's raw confidence.
    """

    ranked: tuple[tuple[str, str | None], ...]
    signs: npt.NDArray[np.float64]
    confidence: float
    raw: float


Answerer = Callable[[Question], Prediction]


class Condition(Protocol):
    """Prepares on a fold and gives what answers its queries."""

    def __call__(self, fold: Fold) -> Answerer: ...


CONDITIONS: dict[str, Condition] = {}
"""By name, in the order of the report."""

SAME_AS_OURS = ("no_routing",)
"""Without a language model every lane ranks alike, so that taking the lanes away changes nothing by construction."""


def register(name: str) -> Callable[[Condition], Condition]:
    """Add a condition under a name."""

    def add(condition: Condition) -> Condition:
        CONDITIONS[name] = condition
        return condition

    return add


Ranker = Callable[[ChannelScores | Asked, Floats], tuple[Floats, LabelBelief, RankingMix]]
"""From candidates and supervised scores to the candidates' scores, beliefs and mix."""


def _baseline(rank: Callable[[Floats, npt.NDArray[np.bool_], Floats, Question | Asked], tuple[Floats, LabelBelief]],
              mix: RankingMix, *, best_record: bool = False) -> Condition:  # fmt: skip
    """A condition over channel scores alone, with its confidence calibrated on the fold's left-out records."""

    def prepare(fold: Fold) -> Answerer:
        lessons = fold.lessons
        names, codes = lessons.table.space.names, lessons.table.codes()
        keys = lessons.table.space.keys
        row_labels = lessons.table.labels

        def one(
            rows: npt.NDArray[np.int64], channels: Floats, present: npt.NDArray[np.bool_], scores: Floats,
            who: Question | Asked, name: str,
        ) -> tuple[RankedLabels, npt.NDArray[np.float64], float]:  # fmt: skip
            fused, belief = rank(channels, present, scores, who)
            labels = row_labels[rows]

            def tie(label: int) -> bytes:
                return tie_key(fold.seed, name, keys[label])

            if best_record:
                ranked = _by_best_record(fused, labels, len(keys), tie)
            else:
                ranked = rank_labels(fused, fused, labels, belief, mix, tie=tie)
            values, raw = signs(ranked, fused, labels, channels, belief)
            return ranked, values, raw.raw

        seen, right = [], []
        for place, asked in enumerate(lessons.asked):
            scores = fold.supervised[1][place] if len(fold.supervised[1]) else np.zeros(len(keys), np.float32)
            label = int(row_labels[asked.row])
            if lessons.counts[label] == 1:
                scores = scores.copy()
                scores[label] = -1.0
            ranked, values, _ = one(
                asked.rows, asked.channels, asked.present, scores, asked, fold.index.ids[asked.row]
            )
            seen.append(values)
            right.append(bool(len(ranked.order)) and int(ranked.order[0]) == label)
        calibration = ConfidenceCalibration.fit(
            FEATURES, np.stack(seen) if seen else np.zeros((0, len(FEATURES))), np.array(right, bool)
        )

        def answer(question: Question) -> Prediction:
            found = question.found
            ranked, values, raw = one(
                found.rows, found.scores, question.encoded.present, question.supervised, question, question.id
            )
            return Prediction(
                tuple((names[i], codes[i]) for i in ranked.order.tolist()),
                values,
                float(calibration.apply(values)[0]),
                raw,
            )

        return answer

    return prepare


def _by_best_record(fused: Floats, labels: Ints, count: int, tie: Callable[[int], bytes]) -> RankedLabels:
    best = np.full(count, -1.0)
    known = labels >= 0
    np.maximum.at(best, labels[known], fused[known].astype(np.float64))
    found = np.flatnonzero(best > 0).astype(np.int32)
    order = np.array(sorted(found.tolist(), key=lambda i: (-best[i], tie(i))), np.int32)
    total = max(float(best[order].sum()), 1e-12)
    shares = np.clip(best, 0, None) / total
    return RankedLabels(order, shares[order], shares)


def _flat(dense: float, sparse: float) -> Callable[..., tuple[Floats, LabelBelief]]:
    def rank(
        channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: object
    ) -> tuple[Floats, LabelBelief]:
        del present, who
        return channels[:, _WHOLE] @ np.array([dense, sparse], np.float32), no_belief(len(scores))

    return rank


def _general_views(
    channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: Question | Asked
) -> tuple[Floats, LabelBelief]:
    row = ViewWeights.shipped().general_only().row(None, present, headed=who.headed)
    return np.asarray(channels.reshape(len(channels), -1) @ row.ravel(), np.float32), no_belief(len(scores))


def _scores_alone(
    channels: Floats, present: npt.NDArray[np.bool_], scores: Floats, who: object
) -> tuple[Floats, LabelBelief]:
    del present, who
    nothing = np.zeros(len(channels), np.float32)
    chance = softmax(scores.astype(np.float64) * 12)
    return nothing, LabelBelief(scores, np.zeros(len(scores)), None, chance)


register("bm25")(_baseline(_flat(0.0, 1.0), FLAT, best_record=True))
register("dense")(_baseline(_flat(1.0, 0.0), FLAT, best_record=True))
register("flat_hybrid")(_baseline(_flat(0.5, 0.5), FLAT, best_record=True))
register("vote")(_baseline(_flat(0.5, 0.5), FLAT))
register("supervised")(_baseline(_scores_alone, FLAT.but(learned=12.0, vote=0.0, department=0.0)))
register("multi_view")(_baseline(_general_views, FLAT))


def _ranked(
    make: Callable[[Fold], LearnedModels], plan: RankingPlan, *, calibrated: bool = True
) -> Condition:
    """A condition that goes through the ranker that ships."""

    def prepare(fold: Fold) -> Answerer:
        models = make(fold)
        ranker = CaseRanker(fold.index, models=models, plan=plan, seed=fold.seed, diagnoses=50)
        same_labels = models.keys == fold.lessons.table.space.keys

        def answer(question: Question) -> Prediction:
            ranking = ranker.rank_encoded(
                question.encoded,
                text=question.text,
                patient=question.patient,
                headed=question.headed,
                query_id=question.id,
                found=question.found,
                scores=question.learned if same_labels and models.scorer is not None else None,
                own_label=question.own_label if same_labels else -1,
            )
            value = ranking.confidence.value if calibrated else ranking.raw.raw
            return Prediction(
                tuple((one.name, one.code) for one in ranking.diagnoses),
                ranking.signs,
                value,
                ranking.raw.raw,
            )

        return answer

    return prepare


def _paper(fold: Fold) -> LearnedModels:
    def make() -> LearnedModels:
        base = fold.ours().as_paper(fold.table)
        plan = RankingPlan(prior=Prior.FREQUENCY, learned=False)
        return fold.lessons.calibrated(base, frequency=plan.prior is Prior.FREQUENCY)

    return fold.models("map_rag", make)


def _variant(
    name: str, *, views: Sequence[View] = VIEWS, learned: bool = True, fit_weights: bool = True,
    retrieval: bool = True, frequency: bool = False,
) -> Callable[[Fold], LearnedModels]:  # fmt: skip
    def make(fold: Fold) -> LearnedModels:
        return fold.models(
            name,
            lambda: fold.lessons.models(
                fold.table, views=views, learned=learned, fit_weights=fit_weights, retrieval=retrieval,
                frequency=frequency,
            ),
        )  # fmt: skip

    return make


_GLOBAL = (View.GLOBAL,)

register("map_rag")(_ranked(_paper, RankingPlan(prior=Prior.FREQUENCY, learned=False)))
register("ours")(_ranked(lambda fold: fold.ours(), RankingPlan()))
register("no_multi_view")(_ranked(_variant("no_multi_view", views=_GLOBAL), RankingPlan(views=_GLOBAL)))
register("no_adaptive_weights")(_ranked(_variant("no_adaptive_weights", fit_weights=False), RankingPlan()))
register("no_rerank")(
    _ranked(_variant("no_rerank", learned=False), RankingPlan(prior=Prior.NONE, learned=False, rules=False))
)
register("no_prior")(
    _ranked(
        _variant("no_prior", learned=False, frequency=True),
        RankingPlan(prior=Prior.FREQUENCY, learned=False),
    )
)
register("no_routing")(CONDITIONS["ours"])


def _by_name(fold: Fold) -> LearnedModels:
    return fold.models("no_icd", lambda: fold.named().models(fold.table))


register("no_icd")(_ranked(_by_name, RankingPlan()))
register("no_retrieval")(_ranked(_variant("no_retrieval", retrieval=False), RankingPlan(retrieval=False)))

NAME_ONLY = LabelMode.NAME
