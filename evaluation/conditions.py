"""What is compared: baselines, the paper's method, ours, and ours with one part taken away.

A condition is prepared on a fold's records and then asks its queries. New kinds register themselves with
:func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..knowledge.learned_models import LearnedModels
from ..knowledge.lessons import Lessons
from ..records.schema import VIEWS, View
from ..retrievers.case_ranker import CaseRanker, Prior, RankingPlan
from .baselines import FLAT, baseline, flat, general_views, scores_alone
from .rounds import Answerer, Condition, Floats, Fold, Prediction, Question

CONDITIONS: dict[str, Condition] = {}
"""By name, in the order of the report."""

SAME_AS_OURS = ("no_routing",)
"""Without a language model every lane ranks alike: taking them away changes nothing by construction."""


def register(name: str) -> Callable[[Condition], Condition]:
    """Add a condition under a name."""

    def add(condition: Condition) -> Condition:
        CONDITIONS[name] = condition
        return condition

    return add


register("bm25")(baseline(flat(0.0, 1.0), best_record=True))
register("dense")(baseline(flat(1.0, 0.0), best_record=True))
register("flat_hybrid")(baseline(flat(0.5, 0.5), best_record=True))
register("vote")(baseline(flat(0.5, 0.5)))
register("supervised")(baseline(scores_alone, FLAT.but(learned=12.0, vote=0.0, department=0.0)))
register("multi_view")(baseline(general_views))


def _ranked(
    make: Callable[[Fold], LearnedModels],
    plan: RankingPlan,
    lessons_of: Callable[[Fold], Lessons] = lambda fold: fold.lessons,
) -> Condition:
    """A condition that goes through the ranker that ships.

    Args:
        make: what it has learned.
        plan: which parts take part.
        lessons_of: from which lessons it learned.
    """

    def prepare(fold: Fold) -> Answerer:
        models, lessons = make(fold), lessons_of(fold)
        ranker = CaseRanker(fold.index, models=models, plan=plan, seed=fold.seed, diagnoses=50)
        asked = {fold.index.ids[one.row]: one for one in lessons.asked}

        def known(question: Question) -> tuple[Floats | None, int]:
            """Learned scores where they need not be computed, and the label of a query that is left out."""
            if question.own_label < 0 or question.id not in asked:
                return (question.learned if lessons is fold.lessons and models.scorer else None), -1
            one = asked[question.id]
            label = int(lessons.table.labels[one.row])
            scores = one.scores
            if lessons.counts[label] == 1:
                scores = np.where(np.arange(len(scores)) == label, np.float32(-1), scores)
            return (scores if models.scorer else None), label

        def answer(question: Question) -> Prediction:
            scores, own_label = known(question)
            ranking = ranker.rank_encoded(
                question.encoded,
                text=question.text,
                patient=question.patient,
                headed=question.headed,
                query_id=question.id,
                found=question.found,
                scores=scores,
                own_label=own_label,
            )
            names = tuple((one.name, one.code) for one in ranking.diagnoses)
            return Prediction(names, ranking.signs, ranking.confidence.value, ranking.raw.raw)

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
    lessons_of: Callable[[Fold], Lessons] = lambda fold: fold.lessons,
) -> Callable[[Fold], LearnedModels]:  # fmt: skip
    def make(fold: Fold) -> LearnedModels:
        return fold.models(
            name,
            lambda: lessons_of(fold).models(
                fold.table, views=views, learned=learned, fit_weights=fit_weights, retrieval=retrieval,
                frequency=frequency,
            ),
        )  # fmt: skip

    return make


_GLOBAL = (View.GLOBAL,)

register("map_rag")(_ranked(_paper, RankingPlan(prior=Prior.FREQUENCY, learned=False)))
register("ours")(_ranked(lambda fold: fold.ours(), RankingPlan()))
register("no_multi_view")(
    _ranked(
        _variant("no_multi_view", views=_GLOBAL, lessons_of=Fold.whole),
        RankingPlan(views=_GLOBAL),
        Fold.whole,
    )
)
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
    return fold.models("no_icd", lambda: fold.by_name().models(fold.table))


register("no_icd")(_ranked(_by_name, RankingPlan(), Fold.by_name))
register("no_retrieval")(_ranked(_variant("no_retrieval", retrieval=False), RankingPlan(retrieval=False)))
