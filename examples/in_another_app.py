"""Use wardround inside a LlamaIndex application that has engines and post-processors of its own.

Run: python examples/in_another_app.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llama_index.core import QueryBundle
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import CustomQueryEngine, RouterQueryEngine
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from wardround import ClinicalQuery, MultiViewHybridRetriever, Wardround


class OpeningHours(CustomQueryEngine):
    """An engine that the application had before."""

    def custom_query(self, query_str: str) -> str:
        """Answer."""
        return f"The clinic opens at eight. (You asked: {query_str})"


class ByWord(BaseSelector):
    """The application's own selector: questions about opening hours go left, cases go right."""

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        del prompts

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        wanted = 0 if "open" in query.query_str else 1
        return SelectorResult(selections=[SingleSelection(index=wanted, reason=choices[wanted].name or "")])

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


def main() -> None:
    app = Wardround.demo()

    hours = QueryEngineTool.from_defaults(OpeningHours(), name="hours", description="opening hours")
    cases = QueryEngineTool.from_defaults(app.as_query_engine(), name="cases", description="similar cases")
    engine = RouterQueryEngine(selector=ByWord(), query_engine_tools=[hours, cases], llm=MockLLM())
    print(engine.query("When do you open?"))
    print(engine.query("Cough with fever and rusty sputum for three days."))

    case = ClinicalQuery("Painful red eye, IOP 50 mmHg.", department="ophthalmology", age=67)
    answer = asyncio.run(app.as_query_engine().aquery(case))
    print(answer.details.route, answer.details.confidence)

    retriever = MultiViewHybridRetriever.from_defaults(app.cases, top_k=20)
    nodes = retriever.retrieve(case)
    for node in SimilarityPostprocessor(similarity_cutoff=0.2).postprocess_nodes(nodes)[:3]:
        print(node.node_id, f"{node.score:.2f}", node.metadata["diagnosis"])


if __name__ == "__main__":
    main()
