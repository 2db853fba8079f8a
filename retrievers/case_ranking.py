"""What ranking a case gives: records in order, diagnoses in order, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import NodeWithScore

from ..indexes.cases import CaseReader, EncodedQuery
from ..knowledge.calibration import RawConfidence
from ..knowledge.case_table import Patient
from ..knowledge.learned_models import LearnedModels
from ..knowledge.ranking import LabelBelief, RankedLabels
from ..knowledge.rules import ActiveRules
from ..query import Confidence
from ..records.schema import VIEWS, View
from .multi_view import case_node

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


class Prior(StrEnum):
    """What re-ranking adds to a record's score."""

    LEARNED = "learned"
    FREQUENCY = "frequency"
    NONE = "none"


@dataclass(frozen=True)
class RankingPlan:
    """Which parts take part; the default is all of them, the rest are ablations and baselines.

    Attributes:
        views: that are compared.
        prior: of the re-rank.
        rules: apply department rules.
        learned: mix the learned scorer into the ranking of labels.
        retrieval: compare records at all.
    """

    views: tuple[View, ...] = VIEWS
    prior: Prior = Prior.LEARNED
    rules: bool = True
    learned: bool = True
    retrieval: bool = True


@dataclass(frozen=True)
class RankedCase:
    """One label of a ranking.

    Attributes:
        label: key; equal keys mean the same diagnosis.
        name: commonest wording.
        code: commonest code that the records give, if any.
        share: chance by the mix, or share of the vote where nothing is learned.
        vote: share of the records' vote.
        evidence: ids of its records, best first; never empty where the index has a record to show.
    """

    label: str
    name: str
    code: str | None
    share: float
    vote: float
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class CaseRanking:
    """A case's similar records and ranked diagnoses.

    Attributes:
        cases: state of the index that was searched.
        models: what ranked.
        rows: ``[k]`` of the records, best first.
        fused: ``[k]`` retrieval scores.
        scores: ``[k]`` after re-ranking.
        priors: ``[k]`` prior that each record got.
        channels: ``[k, 4, 2]``.
        weights: ``[4, 2]``.
        labels: ``[k]`` label numbers, -1 for none.
        ranked: labels in order, as numbers.
        diagnoses: the same for people, at most ten.
        raw: MAP-RAG's confidence.
        confidence: that the leading diagnosis is right; calibrated where a calibration exists.
        signs: features that the calibration reads.
        belief: about every label.
        rules: that the case triggered.
        timings_ms: by stage.
    """

    cases: CaseReader
    models: LearnedModels
    rows: npt.NDArray[np.int64]
    fused: Floats
    scores: Floats
    priors: Floats
    channels: Floats
    weights: Floats
    labels: Ints
    ranked: RankedLabels
    diagnoses: list[RankedCase]
    raw: RawConfidence
    confidence: Confidence
    signs: npt.NDArray[np.float64]
    belief: LabelBelief
    rules: ActiveRules
    timings_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedCase:
    """A case, read once.

    Attributes:
        query_id: names it in ties.
        text: the whole of it, without a diagnosis.
        patient: who it is about.
        headed: whether its views come from headings or fields.
        encoded: vectors and words.
        exclude: ids of records that are no evidence.
        cases: state of the index that it is compared with.
    """

    query_id: str
    text: str
    patient: Patient
    headed: bool
    encoded: EncodedQuery
    exclude: frozenset[str]
    cases: CaseReader


_EXPLAINING = ("label", "prior", "rules", "label_share", "vote_share", "score_parts")


def hide_from_models(node: NodeWithScore) -> None:
    """Keep what only explains a ranking out of prompts and embeddings."""
    for hidden in (node.node.excluded_llm_metadata_keys, node.node.excluded_embed_metadata_keys):
        hidden.extend(key for key in _EXPLAINING if key not in hidden)


def nodes_of(ranking: CaseRanking) -> list[NodeWithScore]:
    """The records as LlamaIndex nodes, best first, each with what brought it in and its diagnosis' share."""
    models = ranking.models
    share = {
        int(label): float(s) for label, s in zip(ranking.ranked.order, ranking.ranked.shares, strict=True)
    }
    out = []
    for place, row in enumerate(ranking.rows.tolist()):
        node = case_node(
            ranking.cases,
            row,
            score=float(ranking.fused[place]),
            channels=ranking.channels[place],
            weights=ranking.weights,
        )
        label = int(ranking.labels[place])
        if label >= 0:
            effects = ranking.rules.effects(models.names[label], models.codes[label])
            node.node.metadata |= {
                "label": models.keys[label],
                "prior": float(ranking.priors[place]),
                "rules": [{"rule": e.rule, "effect": e.effect, "reason": e.reason} for e in effects],
                "label_share": share.get(label, 0.0),
                "vote_share": float(ranking.ranked.votes[label]),
                "score_parts": {
                    "fused": float(ranking.fused[place]),
                    "prior": float(ranking.priors[place]),
                    "prior_weight": models.mix.under(ranking.belief).prior
                    if ranking.belief.prior is not None
                    else 0.0,
                },
            }
        else:
            node.node.metadata |= {"label": None, "prior": None, "rules": [], "label_share": 0.0}
        hide_from_models(node)
        node.score = float(ranking.scores[place])
        out.append(node)
    return out
