"""Re-rank by clinical prior and department rules: ``s' = (1 - λ) s + λ prior``. MAP-RAG; formula ours."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ConfigDict, Field

from ..indexes.cases import CaseIndex
from ..knowledge.labels import LabelSpace
from ..knowledge.ranking import rank_labels, rerank
from ..query import ClinicalQuery
from ..retrievers.case_ranker import CaseRanker, Prior, RankingPlan
from ..retrievers.case_ranking import hide_from_models
from ..retrievers.ordering import tie_key


class ClinicalPriorReranker(BaseNodePostprocessor):
    """Moves records whose diagnosis fits department, patient and findings up, and impossible ones down.

    The prior is the learned one where the index has learned, else the paper's smoothed, log-scaled frequency
    of the diagnosis in the department; both through the same functions that :class:`CaseRanker` ranks with.
    Each node is told why: metadata ``prior``, ``rules``, ``score_parts``, ``label`` and ``label_share``.

    Example:
        >>> reranker = ClinicalPriorReranker.from_defaults(index)                       # doctest: +SKIP
        >>> nodes = reranker.postprocess_nodes(retriever.retrieve(query), query)        # doctest: +SKIP

    Attributes:
        ranker: whose models, rules and plan are used.
        weight: λ instead of the learned one, 0..1.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    ranker: CaseRanker = Field(exclude=True)
    weight: float | None = Field(default=None, ge=0, le=1)

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex names it."""
        return "ClinicalPriorReranker"

    @classmethod
    def from_defaults(
        cls, index: CaseIndex, *, prior: Prior | str = Prior.LEARNED, weight: float | None = None
    ) -> Self:
        """Over an opened index.

        Args:
            index: whose records are re-ranked.
            prior: ``learned``, ``frequency`` (the paper's) or ``none`` (rules alone).
            weight: λ; the learned one where None.
        """
        kind = Prior(prior)
        plan = RankingPlan(prior=kind, learned=kind is Prior.LEARNED)
        return cls(ranker=CaseRanker(index, plan=plan), weight=weight)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return nodes
        query = query_bundle or QueryBundle("")
        ranker = self.ranker
        asked = ranker.prepare(query if isinstance(query, ClinicalQuery) else ClinicalQuery.of(query))
        basis, belief = ranker.basis(asked), ranker.belief(asked)
        models = basis.models
        mix = models.mix.under(belief) if self.weight is None else models.mix.but(prior=self.weight)
        labels = np.array([_label(basis.space, node) for node in nodes], np.int32)
        fused = np.array([float(node.score or 0.0) for node in nodes], np.float32)
        active = ranker.active_rules(asked)
        effects = [
            active.effects(str(node.metadata.get("diagnosis") or ""), node.metadata.get("code"))
            for node in nodes
        ]
        totals: npt.NDArray[np.float64] = np.array([sum(e.effect for e in found) for found in effects])
        scores, priors = rerank(fused, labels, belief.prior, totals, mix)
        ranked = rank_labels(
            scores,
            fused,
            labels,
            belief,
            mix,
            tie=lambda label: tie_key(ranker.seed, asked.query_id, models.keys[label]),
            effects=lambda label: active.total(models.names[label], models.codes[label]),
        )
        share = dict(zip(ranked.order.tolist(), ranked.shares.tolist(), strict=True))
        for place, node in enumerate(nodes):
            label = int(labels[place])
            node.node.metadata |= {
                "label": models.keys[label] if label >= 0 else None,
                "prior": float(priors[place]) if belief.prior is not None else None,
                "rules": [{"rule": e.rule, "effect": e.effect, "reason": e.reason} for e in effects[place]],
                "label_share": float(share.get(label, 0.0)),
                "score_parts": {
                    "fused": float(fused[place]),
                    "prior": float(priors[place]),
                    "prior_weight": mix.prior if belief.prior is not None else 0.0,
                },
            }
            hide_from_models(node)
            node.score = float(scores[place])
        order = sorted(
            range(len(nodes)),
            key=lambda i: (-float(scores[i]), tie_key(ranker.seed, asked.query_id, nodes[i].node.node_id)),
        )
        return [nodes[i] for i in order]


def _label(space: LabelSpace, node: NodeWithScore) -> int:
    name = node.metadata.get("diagnosis")
    return space.number(str(name), node.metadata.get("code")) if name else -1
