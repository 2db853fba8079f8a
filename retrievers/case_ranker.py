"""The one way from a case to ranked diagnoses; app, engines and evaluation all go through it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import NodeWithScore, QueryBundle

from ..indexes.cases import CaseIndex, CaseReader, ChannelScores, EncodedQuery
from ..knowledge.calibration import RawConfidence
from ..knowledge.learned import Patient, WordShare
from ..knowledge.learned_models import LearnedModels
from ..knowledge.ranking import (
    LabelBelief,
    RankedLabels,
    frequency_belief,
    learned_belief,
    no_belief,
    rank_labels,
    rerank,
    select_records,
    signs,
)
from ..knowledge.rules import ActiveRules, DepartmentRules, shipped_rules
from ..query import ClinicalQuery, Confidence
from ..records.schema import VIEWS, View
from .case_ranking import CaseRanking, Floats, Ints, PreparedCase, Prior, RankedCase, RankingPlan, nodes_of
from .multi_view import query_views
from .ordering import tie_key
from .ranking_basis import RankingBases, RankingBasis

__all__ = ["CaseRanker", "CaseRanking", "PreparedCase", "Prior", "RankedCase", "RankingPlan"]


class CaseRanker:
    """Ranks diagnoses for a case from a case index and what was learned from it.

    Each question reads one state of the index from beginning to end. When the index has changed, the next
    question reads the new state: with what that state keeps of learning, or without a learned scorer.

    Args:
        index: an open case index.
        models: what was learned, as long as the index keeps its records; what the index keeps, or the
            defaults, where None.
        rules: of departments; the shipped ones where None.
        candidates: records that each channel proposes.
        plan: which parts take part.
        seed: of the order of equal scores.
        diagnoses: how many are listed with their evidence.
    """

    def __init__(
        self,
        index: CaseIndex,
        *,
        models: LearnedModels | None = None,
        rules: DepartmentRules | None = None,
        candidates: int = 100,
        plan: RankingPlan | None = None,
        seed: int = 0,
        diagnoses: int = 10,
    ) -> None:
        self.index = index
        self.rules = rules or shipped_rules()
        self.candidates = candidates
        self.plan = plan or RankingPlan()
        self.seed = seed
        self._listed = diagnoses
        self._bases = RankingBases(index.snapshot(), models)

    @property
    def models(self) -> LearnedModels:
        """What ranks at present."""
        return self._bases.of(self.index.snapshot()).models

    @classmethod
    def from_defaults(cls, index: CaseIndex, **options: Any) -> Self:
        """Over an opened index, with what it learned."""
        return cls(index, **options)

    def rank(self, query: str | QueryBundle, *, vectors: Mapping[View, Floats] | None = None) -> CaseRanking:
        """Rank diagnoses for a case.

        Args:
            query: the case; a :class:`ClinicalQuery` also says department, age, sex, views and which records
                are left out.
            vectors: ``[d]`` by view as the embedder gives them, where they are known already.

        Raises:
            InputError: a view that does not exist.
            ModelError: the embedder cannot be loaded.
        """
        started = time.perf_counter()
        case = self.prepare(query if isinstance(query, ClinicalQuery) else ClinicalQuery.of(query), vectors)
        encoded_at = time.perf_counter()
        ranking = self.rank_encoded(
            case.encoded,
            text=case.text,
            patient=case.patient,
            headed=case.headed,
            query_id=case.query_id,
            exclude=case.exclude,
            cases=case.cases,
        )
        ranking.timings_ms["encode"] = (encoded_at - started) * 1000
        ranking.timings_ms["rank"] = (time.perf_counter() - encoded_at) * 1000
        return ranking

    def prepare(self, query: ClinicalQuery, vectors: Mapping[View, Floats] | None = None) -> PreparedCase:
        """Read a case: its views, who it is about, its vectors and words.

        Raises:
            InputError: a view that does not exist.
            ModelError: the embedder cannot be loaded.
        """
        views, headed = query_views(query)
        whole = views.get(View.GLOBAL) or "\n".join(views.values())
        patient = Patient.of(whole, query.department, query.age, query.sex)
        cases = self.index.snapshot()
        encoded = cases.encode_query(views, query.language, vectors=vectors)
        return PreparedCase(query.query_str, whole, patient, headed, encoded, query.record_ids, cases)

    def belief(self, case: PreparedCase) -> LabelBelief:
        """What is believed of every label before any record is looked at."""
        models = self.basis(case).models
        return self._belief(models, case.encoded, case.text, case.patient, plan=self.plan)

    def basis(self, case: PreparedCase) -> RankingBasis:
        """Models and labels of the index state that a case is compared with."""
        return self._bases.of(case.cases)

    def active_rules(self, case: PreparedCase) -> ActiveRules:
        """The rules that a case triggers; none where the plan has no rules."""
        return self._active(case.text, case.patient, self.plan)

    def rank_encoded(
        self,
        encoded: EncodedQuery,
        *,
        text: str,
        patient: Patient,
        headed: bool = True,
        query_id: str = "",
        exclude: frozenset[str] = frozenset(),
        scores: Floats | None = None,
        plan: RankingPlan | None = None,
        found: ChannelScores | None = None,
        own_label: int = -1,
        cases: CaseReader | None = None,
    ) -> CaseRanking:
        """Rank diagnoses for a case that is encoded already.

        Args:
            encoded: by :meth:`CaseReader.encode_query`.
            text: the whole of it, without a diagnosis.
            patient: who it is about.
            headed: whether its views come from headings or fields.
            query_id: names it in ties.
            exclude: ids of records that are no evidence.
            scores: ``[labels]`` of the learned scorer, where they are known already.
            plan: which parts take part, instead of the ranker's.
            found: candidates of a search that was made already.
            own_label: number of the label of a case that is itself in the index and left out; its frequencies
                are then taken without it.
            cases: state of the index to search; the present one where None.
        """
        plan = plan or self.plan
        cases = cases or self.index.snapshot()
        basis = self._bases.of(cases)
        models, mix = basis.models, basis.models.mix
        encoded = cases.renewed(encoded)
        belief = self._belief(models, encoded, text, patient, scores=scores, plan=plan, own_label=own_label)
        mix = mix.under(belief)
        proposals = np.zeros(0, np.int32)
        if belief.chance is not None:
            proposals = np.argsort(-belief.chance, kind="stable")[: mix.proposals].astype(np.int32)
        used = np.array([view in plan.views for view in VIEWS])
        if found is None:
            found = cases.search(
                encoded, candidates=self.candidates, exclude=exclude, extra_rows=basis.rows_of(proposals)
            )
        weights = models.weights.row(patient.department, encoded.present & used, headed=headed)
        fused = np.asarray(found.scores.reshape(len(found.rows), 8) @ weights.ravel(), np.float32)
        kept = select_records(fused, basis.labels[found.rows], proposals, mix)
        rows, fused, channels = found.rows[kept], fused[kept], found.scores[kept] * used[None, :, None]
        labels = basis.labels[rows]
        active = self._active(text, patient, plan)
        after, priors = rerank(fused, labels, belief.prior, _effects(models, active, labels), mix)
        order = self._order(cases, rows, after, query_id)
        rows, labels, channels = rows[order], labels[order], channels[order]
        fused, after, priors = fused[order], after[order], priors[order]
        ranked = rank_labels(
            after if plan.retrieval else np.zeros(0, np.float32),
            fused if plan.retrieval else np.zeros(0, np.float32),
            labels if plan.retrieval else np.zeros(0, np.int32),
            belief if plan.learned else no_belief(len(models.keys)),
            mix,
            tie=lambda label: tie_key(self.seed, query_id, models.keys[label]),
            effects=(lambda label: _effect(models, active, label)) if plan.rules else None,
        )
        values, raw = signs(ranked, after, fused, labels=labels, channels=channels, belief=belief)
        return CaseRanking(
            cases=cases,
            models=models,
            rows=rows,
            fused=fused,
            scores=after,
            priors=priors,
            channels=channels,
            weights=weights,
            labels=labels,
            ranked=ranked,
            diagnoses=self._diagnoses(cases, models, ranked, rows, labels),
            raw=raw,
            confidence=_confidence(models, values, raw),
            signs=values,
            belief=belief,
            rules=active,
        )

    def explain(
        self, encoded: EncodedQuery, text: str, patient: Patient, label: str, top: int = 8
    ) -> list[WordShare]:
        """The case's words that speak most for a label by the learned scorer; empty without one."""
        cases = self.index.snapshot()
        models = self._bases.of(cases).models
        scorer = models.scorer
        if scorer is None or label not in models.keys:
            return []
        features = scorer.features(cases.renewed(encoded), text, patient)
        return scorer.explain(features, models.keys.index(label), cases.vocabulary, top)

    def nodes(self, ranking: CaseRanking) -> list[NodeWithScore]:
        """The records as LlamaIndex nodes, best first, with what brought each in and its diagnosis' share."""
        return nodes_of(ranking)

    def _belief(
        self,
        models: LearnedModels,
        encoded: EncodedQuery,
        text: str,
        patient: Patient,
        *,
        scores: Floats | None = None,
        plan: RankingPlan,
        own_label: int = -1,
    ) -> LabelBelief:
        wanted = plan.learned or plan.prior is Prior.LEARNED
        if models.scorer is not None and wanted:
            if scores is None:
                scores = models.scorer.score(models.scorer.features(encoded, text, patient))
            return learned_belief(
                scores, models.department_evidence(patient.department, own_label), models.mix
            )
        if plan.prior is Prior.NONE or not models.keys:
            return no_belief(len(models.keys))
        return frequency_belief(models.prior.scaled(models.department_number(patient.department), own_label))

    def _active(self, text: str, patient: Patient, plan: RankingPlan) -> ActiveRules:
        if not plan.rules:
            return ActiveRules(())
        return self.rules.active(text, department=patient.department, age=patient.age, sex=patient.sex)

    def _order(
        self, cases: CaseReader, rows: npt.NDArray[np.int64], scores: Floats, query_id: str
    ) -> npt.NDArray[np.int64]:
        keys = [
            (-float(s), tie_key(self.seed, query_id, cases.ids[int(r)]))
            for s, r in zip(scores, rows, strict=True)
        ]
        return np.array(sorted(range(len(rows)), key=keys.__getitem__), np.int64)

    def _diagnoses(
        self,
        cases: CaseReader,
        models: LearnedModels,
        ranked: RankedLabels,
        rows: npt.NDArray[np.int64],
        labels: Ints,
    ) -> list[RankedCase]:
        out = []
        for label, share in zip(ranked.order[: self._listed].tolist(), ranked.shares, strict=False):
            own = rows[labels == label][:5].tolist()
            out.append(
                RankedCase(
                    models.keys[label],
                    models.names[label],
                    models.codes[label],
                    float(share),
                    float(ranked.votes[label]),
                    tuple(cases.ids[row] for row in own),
                )
            )
        return out


def _effect(models: LearnedModels, active: ActiveRules, label: int) -> float:
    return active.total(models.names[label], models.codes[label])


def _effects(models: LearnedModels, active: ActiveRules, labels: Ints) -> npt.NDArray[np.float64] | None:
    if not active.rules and active.side is None:
        return None
    return np.array([_effect(models, active, label) if label >= 0 else 0.0 for label in labels.tolist()])


def _confidence(models: LearnedModels, values: npt.NDArray[np.float64], raw: RawConfidence) -> Confidence:
    calibration = models.calibration
    if calibration is None:
        return Confidence(raw.raw, raw.raw, raw.top, raw.consensus, raw.margin)
    value = float(calibration.apply(values)[0])
    return Confidence(value, raw.raw, raw.top, raw.consensus, raw.margin, calibrated=True)
