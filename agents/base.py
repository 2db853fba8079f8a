"""What every diagnosis engine shares: finding its evidence, and the shell of its answer."""

from __future__ import annotations

import asyncio
import hashlib
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from ..errors import InputError
from ..language.detect import detect_language
from ..query import (
    AnswerDetails,
    Citation,
    ClinicalAnswer,
    ClinicalQuery,
    ConfidenceReport,
    RankedDiagnosis,
    RouteTaken,
    Task,
    TokenUse,
)
from .evidence import Evidence, evidence_of
from .overlap import terms
from .prompts import case_text
from .tally import Candidate, is_mixed, tally
from .wording import Wording, wording_of
from .writing import vote_text


class Code(Protocol):
    """A code of a code system; what a coder gives back."""

    code: str | None
    title: str | None


Coder = Callable[[str], Code]


@dataclass
class Gathered:
    """One question with everything an engine needs to answer it.

    Attributes:
        query: the question.
        nodes: retrieved and re-ranked.
        evidence: the same, numbered.
        candidates: the records' vote.
        words: of the question's language.
        wide: that language has about one token a character.
        started: ``time.perf_counter()`` when the engine was asked.
    """

    query: ClinicalQuery
    nodes: list[NodeWithScore]
    evidence: list[Evidence]
    candidates: list[Candidate]
    words: Wording
    wide: bool
    started: float


class DiagnosisEngine(BaseQueryEngine):
    """Base of the three engines that answer "what does this case have?".

    A question that carries its evidence is answered from it; any other (a plain string, a foreign
    ``QueryBundle``) is retrieved for.

    Args:
        retriever: used where the question carries no evidence.
        node_postprocessors: applied to what ``retriever`` finds, in order.
        coder: gives an ICD code to a diagnosis that a language model worded itself.
        index_version: of the case index, or a function that says it; for the answer.
        vote_power: exponent on a record's score in the vote.
        diagnoses: how many the vote lists.
        seed: breaks ties.
        callback_manager: LlamaIndex's.
    """

    name: ClassVar[str]

    def __init__(
        self,
        *,
        retriever: BaseRetriever | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        coder: Coder | None = None,
        index_version: str | Callable[[], str | None] | None = None,
        vote_power: float = 4.0,
        diagnoses: int = 5,
        seed: int = 0,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._retriever = retriever
        self._postprocessors = list(node_postprocessors)
        self._coder = coder
        self._index_version = index_version
        self._vote_power = vote_power
        self._diagnoses = diagnoses
        self._seed = seed

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Evidence of the question, retrieved if it carries none.

        Raises:
            InputError: it carries none and the engine has no retriever.
        """
        return self._gather(query_bundle).nodes

    def _query(self, query_bundle: QueryBundle) -> ClinicalAnswer:
        return self._answer(self._gather(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> ClinicalAnswer:
        return await self._aanswer(await asyncio.to_thread(self._gather, query_bundle))

    @abstractmethod
    def _answer(self, gathered: Gathered) -> ClinicalAnswer:
        """Answer from what was gathered."""

    async def _aanswer(self, gathered: Gathered) -> ClinicalAnswer:
        return await asyncio.to_thread(self._answer, gathered)

    def _gather(self, query_bundle: QueryBundle) -> Gathered:
        started = time.perf_counter()
        query = query_bundle if isinstance(query_bundle, ClinicalQuery) else ClinicalQuery.of(query_bundle)
        nodes = query.evidence.get(Task.DIAGNOSE)
        if nodes is None:
            nodes = self._retrieve_alone(query)
            query.timings_ms["retrieve"] = (time.perf_counter() - started) * 1000
        evidence = evidence_of(nodes)
        query_id = hashlib.sha256(query.query_str.encode("utf-8", "replace")).hexdigest()
        language = query.language or detect_language(case_text(query))
        candidates = tally(
            evidence, power=self._vote_power, seed=self._seed, query_id=query_id, language=language
        )
        return Gathered(
            query=query,
            nodes=nodes,
            evidence=evidence,
            candidates=candidates,
            words=wording_of(language),
            wide=language in {"zh", "ja"},
            started=started,
        )

    def _retrieve_alone(self, query: ClinicalQuery) -> list[NodeWithScore]:
        if self._retriever is None:
            msg = (
                f"the {self.name} engine was asked without evidence and has no retriever; "
                "give it retriever=…, or ask through the router"
            )
            raise InputError(msg)
        nodes = self._retriever.retrieve(query)
        for postprocessor in self._postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query)
        return list(nodes)

    def _vote(
        self, gathered: Gathered, *, degraded: str | None = None, tokens: TokenUse | None = None
    ) -> ClinicalAnswer:
        """The extractive answer, also what stands in for a language model that gave none."""
        listed = gathered.candidates[: self._diagnoses]
        about = terms(case_text(gathered.query))
        citations = [one.evidence[0].citation(about) for one in listed]
        text = vote_text(
            listed,
            citations,
            records=len(gathered.evidence),
            mixed=is_mixed(gathered.evidence),
            words=gathered.words.answer,
            degraded=degraded,
        )
        diagnoses = [
            RankedDiagnosis(
                name=one.name,
                code=one.code,
                title=one.title,
                share=round(one.share, 6),
                evidence=[record.record_id for record in one.evidence],
            )
            for one in listed
        ]
        return self._respond(
            gathered,
            text=text,
            diagnoses=diagnoses,
            citations=citations,
            model="extractive",
            tokens=tokens or TokenUse(),
            degraded=degraded,
        )

    def _respond(
        self,
        gathered: Gathered,
        *,
        text: str,
        diagnoses: list[RankedDiagnosis],
        citations: list[Citation],
        model: str,
        tokens: TokenUse,
        degraded: str | None = None,
    ) -> ClinicalAnswer:
        query = gathered.query
        sure = query.confidence
        version = self._index_version() if callable(self._index_version) else self._index_version
        timings = query.timings_ms | {"answer": (time.perf_counter() - gathered.started) * 1000}
        details = AnswerDetails(
            answer=text,
            task=Task.DIAGNOSE,
            route=RouteTaken(engine=self.name, why="asked directly"),
            confidence=ConfidenceReport(
                value=sure.value, raw=sure.raw, top=sure.top, consensus=sure.consensus, margin=sure.margin
            )
            if sure
            else None,
            diagnoses=diagnoses,
            citations=citations,
            refused=not diagnoses,
            degraded=degraded,
            model=model,
            tokens=tokens,
            timings_ms=timings,
            index_version=version,
        )
        return ClinicalAnswer.from_details(details, gathered.nodes)
