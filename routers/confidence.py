"""How sure the retrieval is, and which lane that means. Source: MAP-RAG; formula and calibration are ours."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from ..knowledge.calibration import raw_confidence
from ..knowledge.labels import label_of
from ..query import Confidence, Lane
from ..settings import ConfidenceSettings


def confidence_of(nodes: Sequence[NodeWithScore]) -> Confidence:
    """MAP-RAG's raw confidence of re-ranked nodes: ``.40 top + .35 consensus + .25 margin``.

    Two records agree when they have the same label: what re-ranking wrote into ``label``, else the ICD-10
    category of their source's code, else the normalised name. Calibrated confidence needs the whole ranking
    and comes from :class:`~wardround.retrievers.case_ranker.CaseRanker`.

    Args:
        nodes: retrieved records with their scores; nodes without a diagnosis agree with none.
    """
    scores = [max(0.0, float(node.score or 0.0)) for node in nodes]
    raw = raw_confidence(scores, [_label(node, place) for place, node in enumerate(nodes)])
    return Confidence(raw.raw, raw.raw, raw.top, raw.consensus, raw.margin)


def _label(node: NodeWithScore, place: int) -> str:
    known = node.metadata
    if isinstance(known.get("label"), str) and known["label"]:
        return str(known["label"])
    name = str(known.get("diagnosis") or "")
    return label_of(name, known.get("code")) if name else f"\x00{place}"


def lane_of_value(value: float, settings: ConfidenceSettings) -> Lane:
    """The lane of a confidence: a vote above ``vote_above``, step by step up to ``deep_below``."""
    if value > settings.vote_above:
        return Lane.VOTE
    return Lane.DEEP if value <= settings.deep_below else Lane.STANDARD


def lane_of(confidence: Confidence, settings: ConfidenceSettings) -> Lane:
    """The lane of a question, by raw or calibrated confidence as the settings say.

    ``auto`` takes the calibrated value where a calibration exists; ``calibrated`` falls back to the raw
    value, which is all there is without one.
    """
    return lane_of_value(confidence.raw if settings.scale == "raw" else confidence.value, settings)
