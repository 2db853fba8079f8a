"""What is compared: baselines, the paper's method, ours, and ours with one part taken away.

A condition is prepared on a fold's records and then asks its queries. New kinds register themselves with
:func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..knowledge.learned_models import LearnedModels
from ..records.schema import VIEWS, View
from ..retrievers.case_ranker import CaseRanker, Prior, RankingPlan
from .baselines import FLAT, baseline, flat, general_views, scores_alone
from .rounds import Answerer, Condition, Fold, Prediction, Question

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
