"""The one selector: understands a case once, and names the engine that is to answer it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import QueryBundle
from llama_index.core.tools.types import ToolMetadata

from ..errors import SettingsError
from ..query import ClinicalQuery, Confidence, Lane, Task
from ..retrievers.case_ranker import CaseRanker
from ..retrievers.case_ranking import CaseRanking
from ..settings import ConfidenceSettings
from .confidence import lane_of


class ClinicalSelector(BaseSelector):
    """Routes a case by how sure its similar records are (MAP-RAG's three routes).

    The selector retrieves and re-ranks once, writes evidence and confidence into the query, and chooses by
    the names of the engines' tools: ``vote``, ``standard`` or ``deep``. A case that no record
    resembles, measured by how records resemble each other, gets no evidence, and the vote refuses it.

    Args:
        ranker: from a case to ranked records.
        confidence: where the routes part.
        postprocessors: applied to the evidence, such as the ICD-10 mapper.

    Example:
        >>> selector = ClinicalSelector(ranker=CaseRanker(index))          # doctest: +SKIP
        >>> selector.select(["vote", "standard", "deep"], query).reason    # doctest: +SKIP
        'calibrated confidence 0.91 is above 0.85: the records vote'
    """

    def __init__(
        self,
        *,
        ranker: CaseRanker,
        confidence: ConfidenceSettings | None = None,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> None:
        self._ranker = ranker
        self._confidence = confidence or ConfidenceSettings()
        self._postprocessors = list(postprocessors)

    @classmethod
    def from_defaults(cls, ranker: CaseRanker) -> ClinicalSelector:
        """With the shipped cuts and no postprocessor."""
        return cls(ranker=ranker)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """There are none."""

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        asked = query if isinstance(query, ClinicalQuery) else ClinicalQuery.of(query)
        started = time.perf_counter()
        ranking = self._ranker.rank(asked)
        nodes = self._ranker.nodes(ranking)
        for postprocessor in self._postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=asked)
        lane, reason = self._route(ranking)
        asked.task = Task.DIAGNOSE
        asked.confidence = ranking.confidence if lane else None
        asked.evidence = {Task.DIAGNOSE: nodes if lane else []}
        asked.timings_ms = dict(ranking.timings_ms)
        asked.timings_ms["understand"] = (time.perf_counter() - started) * 1000
        place = _place(choices, lane or Lane.VOTE)  # the vote refuses what has no evidence
        return SelectorResult(selections=[SingleSelection(index=place, reason=reason)])

    def _route(self, ranking: CaseRanking) -> tuple[Lane | None, str]:
        """The lane and why; no lane where no record is evidence for this case."""
        best = float(ranking.fused.max(initial=0.0))
        least = ranking.models.least_similar
        if best <= 0:
            return None, "no record shares a word or a meaning with this"
        if best < least:
            return (
                None,
                f"no record resembles this: the best scores {best:.3f}, below {least:.3f}",
            )
        lane = lane_of(ranking.confidence, self._confidence)
        return lane, _reason(ranking.confidence, self._confidence, lane)

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return await asyncio.to_thread(self._select, choices, query)


def _place(choices: Sequence[ToolMetadata], lane: Lane) -> int:
    """Of the engine for a lane among the choices, by tool name or, for plain strings, description."""
    for place, choice in enumerate(choices):
        if lane.value in (choice.name, choice.description):
            return place
    names = ", ".join(str(choice.name or choice.description) for choice in choices)
    raise SettingsError(f"no engine is named {lane.value!r}; the router was given {names or 'none'}")


def _reason(sure: Confidence, cuts: ConfidenceSettings, lane: Lane) -> str:
    scaled = sure.calibrated and cuts.scale != "raw"
    value = f"{'calibrated' if scaled else 'raw'} confidence {sure.value if scaled else sure.raw:.2f}"
    if lane is Lane.VOTE:
        return f"{value} is above {cuts.vote_above:g}: the records vote"
    if lane is Lane.DEEP:
        return f"{value} is at most {cuts.deep_below:g}: step-by-step reasoning"
    return f"{value} lies between {cuts.deep_below:g} and {cuts.vote_above:g}: the standard prompt"
