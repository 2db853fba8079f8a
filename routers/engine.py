"""The one query engine: understands the question through its selector, then lets one engine answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.schema import QueryType
from llama_index.core.tools import QueryEngineTool

from ..query import ClinicalAnswer, ClinicalQuery, RouteTaken


class ClinicalRouterQueryEngine(RouterQueryEngine):
    """LlamaIndex's router over our engines, given a fresh :class:`ClinicalQuery` for every call.

    A plain string, a foreign ``QueryBundle`` and a reused ``ClinicalQuery`` are all wrapped anew, so that
    nothing a previous call (or a caller) wrote into the router's own fields is trusted.

    Args:
        selector: chooses the engine and fills in the query.
        query_engine_tools: the engines, by tool name.
        llm: only so that LlamaIndex does not look for an OpenAI key; no call of ours goes through it.
    """

    def __init__(
        self,
        selector: BaseSelector,
        query_engine_tools: Sequence[QueryEngineTool],
        *,
        llm: LLM | None = None,
    ) -> None:
        super().__init__(selector, query_engine_tools, llm=llm or MockLLM())

    def query(self, str_or_query_bundle: QueryType) -> ClinicalAnswer:
        """Answer one question.

        Args:
            str_or_query_bundle: a text, or a ``ClinicalQuery`` with what the caller knows.

        Raises:
            WardroundError: the index or a model is not as it should be.
        """
        query, started = ClinicalQuery.of(str_or_query_bundle), time.perf_counter()
        return _complete(super().query(query), query, started)

    async def aquery(self, str_or_query_bundle: QueryType) -> ClinicalAnswer:
        """:meth:`query` without blocking the event loop."""
        query, started = ClinicalQuery.of(str_or_query_bundle), time.perf_counter()
        return _complete(await super().aquery(query), query, started)


def _complete(answer: RESPONSE_TYPE, query: ClinicalQuery, started: float) -> ClinicalAnswer:
    """Write the selector's reason and all timings into the answer."""
    if not isinstance(answer, ClinicalAnswer):
        raise TypeError(f"an engine answered with {type(answer).__name__}, not with a ClinicalAnswer")
    reason = (answer.metadata or {})["selector_result"].reason
    timings = query.timings_ms | answer.details.timings_ms
    timings["total"] = (time.perf_counter() - started) * 1000
    route = RouteTaken(engine=answer.details.route.engine, why=reason)
    return answer.with_details(route=route, timings_ms=timings)
