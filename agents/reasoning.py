"""What the two lanes with a language model share: prompt, checked reply, and the vote where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..models.deadline import Deadline
from ..models.failure import LlmError, LlmFault
from ..query import Citation, ClinicalAnswer, RankedDiagnosis, TokenUse
from .base import DiagnosisEngine, Gathered
from .evidence import Evidence
from .overlap import terms
from .prompts import Prompt, case_text, diagnosis_prompt
from .reply import Proposal, Proposed, ReplyCheck, reply_schema
from .wording import PromptWords
from .writing import proposal_text

if TYPE_CHECKING:
    from ..models.ports import JsonLlm

_MARGIN_TOKENS = 250  # chat template, and what a repair adds


@dataclass(frozen=True)
class _Ask:
    prompt: Prompt
    schema: dict[str, Any]
    check: ReplyCheck


class ReasoningEngine(DiagnosisEngine):
    """A diagnosis engine that asks a language model; the vote answers whenever the model does not.

    Args:
        llm: None counts as one that is absent.
        records: how many records the prompt shows at most.
        show_vote: whether the prompt tells the records' vote.
        **parts: as for :class:`DiagnosisEngine`.
    """

    deep: ClassVar[bool]

    def __init__(
        self, *, llm: JsonLlm | None, records: int = 8, show_vote: bool = True, **parts: Any
    ) -> None:
        super().__init__(**parts)
        self._llm = llm
        self._records = records
        self._show_vote = show_vote

    def _answer(self, gathered: Gathered) -> ClinicalAnswer:
        try:
            llm, deadline = self._ready(gathered)
            llm.probe(deadline)
            ask = self._ask(gathered, llm)
            proposal, tokens = llm.complete_json(
                ask.prompt.messages,
                ask.schema,
                deadline=deadline,
                check=ask.check,
                repair=gathered.words.prompt.repair,
            )
        except LlmError as error:
            return self._vote(gathered, degraded=error.reason, tokens=error.tokens)
        return self._propose(gathered, proposal, tokens, llm.model)

    async def _aanswer(self, gathered: Gathered) -> ClinicalAnswer:
        try:
            llm, deadline = self._ready(gathered)
            await llm.aprobe(deadline)
            ask = await asyncio.to_thread(self._ask, gathered, llm)
            proposal, tokens = await llm.acomplete_json(
                ask.prompt.messages,
                ask.schema,
                deadline=deadline,
                check=ask.check,
                repair=gathered.words.prompt.repair,
            )
        except LlmError as error:
            return await asyncio.to_thread(self._vote, gathered, degraded=error.reason, tokens=error.tokens)
        return await asyncio.to_thread(self._propose, gathered, proposal, tokens, llm.model)

    def _ready(self, gathered: Gathered) -> tuple[JsonLlm, Deadline]:
        if self._llm is None:
            raise LlmError(LlmFault.ABSENT, "no language model is set; set llm.base_url")
        used = (
            max(gathered.query.timings_ms.values(), default=0.0) / 1000
        )  # the longest stage holds the others
        allowed = self._llm.deadline_s
        deadline = Deadline(Deadline.after(max(0.0, allowed - used)).at, allowed)
        return self._llm, deadline

    def _ask(self, gathered: Gathered, llm: JsonLlm) -> _Ask:
        prompt = diagnosis_prompt(
            gathered.query,
            gathered.evidence[: self._records],
            gathered.candidates if self._show_vote else (),
            words=gathered.words,
            task=self._task(gathered.words.prompt),
            budget=llm.context_window - llm.max_tokens - _MARGIN_TOKENS,
        )
        check = ReplyCheck(
            case=case_text(gathered.query),
            shown=prompt.shown,
            words=gathered.words.refusal,
            uncited=self.deep or not prompt.shown,
        )
        return _Ask(prompt, reply_schema(prompt.shown, deep=self.deep, wide=gathered.wide), check)

    def _task(self, words: PromptWords) -> str:
        return words.deep if self.deep else words.standard

    def _propose(
        self, gathered: Gathered, proposal: Proposal, tokens: TokenUse, model: str
    ) -> ClinicalAnswer:
        whole = sum(1 / rank for rank in range(1, len(proposal.diagnoses) + 1))
        diagnoses = []
        for rank, one in enumerate(proposal.diagnoses, 1):
            code, title = self._code(one)
            diagnoses.append(
                RankedDiagnosis(
                    name=one.name,
                    code=code,
                    title=title,
                    share=round(1 / rank / whole, 6),
                    evidence=[record.record_id for record in one.evidence],
                )
            )
        citations = _cite(proposal.diagnoses, case_text(gathered.query))
        text = proposal_text(proposal, diagnoses, citations, model=model, words=gathered.words.answer)
        return self._respond(
            gathered, text=text, diagnoses=diagnoses, citations=citations, model=model, tokens=tokens
        )

    def _code(self, one: Proposed) -> tuple[str | None, str | None]:
        """The code of a cited record with the same name, else what the coder finds."""
        key = one.name.casefold()
        for record in one.evidence:
            if record.code and record.diagnosis.casefold() == key:
                return record.code, record.title
        if self._coder is None:
            return None, None
        found = self._coder(one.name)
        return found.code, found.title


def _cite(diagnoses: Sequence[Proposed], case: str) -> list[Citation]:
    about = terms(case)
    cited: dict[str, Evidence] = {}
    for one in diagnoses:
        cited |= {record.record_id: record for record in one.evidence}
    return [record.citation(about) for record in cited.values()]
