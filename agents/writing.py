"""The answer a person reads, in the language of the case."""

from __future__ import annotations

from collections.abc import Sequence

from ..models.failure import LlmFault
from ..query import Citation, RankedDiagnosis
from .reply import Proposal
from .tally import Candidate
from .wording import AnswerWords

_IDS = 5  # records named behind a diagnosis
_QUOTES = 3


def _code(code: str | None, words: AnswerWords) -> str:
    return words.code.format(code=code) if code else ""


def _ids(ids: Sequence[str], words: AnswerWords) -> str:
    return words.list_joiner.join(ids[:_IDS]) + (" …" if len(ids) > _IDS else "")


def _quotes(citations: Sequence[Citation], words: AnswerWords) -> list[str]:
    quoted = [one for one in citations if one.quote][:_QUOTES]
    lines = [
        words.quote.format(id=one.id, where=one.where or one.title or "", quote=one.quote) for one in quoted
    ]
    return [words.evidence, *lines] if lines else []


def _instead_of_a_model(reason: str, words: AnswerWords) -> str:
    return words.absent if reason.startswith(LlmFault.ABSENT) else words.degraded.format(reason=reason)


def vote_text(
    candidates: Sequence[Candidate],
    citations: Sequence[Citation],
    *,
    records: int,
    mixed: bool,
    words: AnswerWords,
    degraded: str | None = None,
) -> str:
    """The extractive answer: shares, codes, record ids and quotes; it says that no model wrote it.

    Args:
        candidates: to list, best first; empty where nothing was found.
        citations: to quote.
        records: how many were weighed.
        mixed: whether the shares hold more than the records' vote.
        words: of the language.
        degraded: why a language model did not answer instead.
    """
    lines = [_instead_of_a_model(degraded, words)] if degraded else []
    if not candidates:
        return "\n".join([*lines, words.none])
    best = candidates[0]
    lines.append(
        (words.leader_mixed if mixed else words.leader).format(
            name=best.name, code=_code(best.code, words), share=f"{best.share:.0%}", records=records
        )
    )
    for rank, one in enumerate(candidates, 1):
        ids = _ids([record.record_id for record in one.evidence], words)
        code = _code(one.code, words)
        lines.append(
            words.line.format(rank=rank, name=one.name, code=code, share=f"{one.share:.0%}", ids=ids)
        )
    return "\n".join([*lines, *_quotes(citations, words), words.extractive])


def proposal_text(
    proposal: Proposal,
    diagnoses: Sequence[RankedDiagnosis],
    citations: Sequence[Citation],
    *,
    model: str,
    words: AnswerWords,
) -> str:
    """The model's checked proposal with the reasoning that survived the checks; it names the model.

    Args:
        proposal: what was checked.
        diagnoses: the same diagnoses, coded.
        citations: to quote.
        model: who wrote it.
        words: of the language.
    """
    lines = [words.problem.format(problem=proposal.problem)] if proposal.problem else []
    weighed = {one.name.casefold(): one for one in proposal.differential}
    for rank, (one, coded) in enumerate(zip(proposal.diagnoses, diagnoses, strict=True), 1):
        template = words.llm_line if coded.evidence else words.unsupported_line
        code = _code(coded.code, words)
        lines.append(template.format(rank=rank, name=one.name, code=code, ids=_ids(coded.evidence, words)))
        if one.reason:
            lines.append(words.reason.format(reason=one.reason))
        thought = weighed.get(one.name.casefold())
        if thought and thought.for_:
            lines.append(words.for_.format(items=words.phrase_joiner.join(thought.for_)))
        if thought and thought.against:
            lines.append(words.against.format(items=words.phrase_joiner.join(thought.against)))
    return "\n".join([*lines, *_quotes(citations, words), words.written.format(model=model)])
