"""Chat messages for the reasoning engines: the case, the records as fenced data, within the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.llms import ChatMessage

from ..query import ClinicalQuery
from .evidence import Evidence, neutral
from .tally import Candidate
from .tokens import cut_to_tokens, message_tokens
from .wording import Wording

_CASE_SHARE = 0.5  # of the budget at most, where there are records to show
_SHORTEST_RECORD = 80  # characters; less of a record says nothing


@dataclass(frozen=True)
class Prompt:
    """Messages and the evidence that found room in them.

    Attributes:
        messages: system and user.
        shown: records in the prompt, ``R1`` first; only these may be cited.
    """

    messages: list[ChatMessage]
    shown: list[Evidence]


def case_text(query: ClinicalQuery) -> str:
    """The case as the model reads it: its views where the caller gave them, else its text."""
    views = {view: text for view, text in (query.views or {}).items() if text.strip()}
    whole = views.get("global")
    return whole or ("\n".join(views.values()) or query.query_str)


def diagnosis_prompt(
    query: ClinicalQuery,
    evidence: Sequence[Evidence],
    candidates: Sequence[Candidate],
    *,
    words: Wording,
    task: str,
    budget: int,
) -> Prompt:
    """Build the prompt for one case.

    The case is cut to half of the budget where that is too small; records are shown best first, all cut to
    the same length, and those that no longer fit are left out.

    Args:
        query: with age, sex and department as far as known.
        evidence: numbered records.
        candidates: the records' vote; shown as shares, empty to leave it out.
        words: in the query's language.
        task: the instruction.
        budget: tokens for all messages.
    """
    prompt = words.prompt
    fixed = message_tokens(prompt.system, task) + 60
    room = max(64, budget - fixed)
    case = _fenced_case(query, words, int(room * _CASE_SHARE) if evidence else room)
    vote = _vote_line(candidates, words)
    room -= message_tokens(case, vote)
    shown, blocks = _fit(evidence, room)
    records = [prompt.records, *blocks] if shown else [prompt.no_records]
    user = "\n\n".join(part for part in (task, "\n".join(records), vote if shown else "", case) if part)
    messages = [ChatMessage(role="system", content=prompt.system), ChatMessage(role="user", content=user)]
    return Prompt(messages, shown)


def _fenced_case(query: ClinicalQuery, words: Wording, limit: int) -> str:
    prompt = words.prompt
    age = f"{query.age:g}" if query.age is not None else None
    told = ((prompt.age, age), (prompt.sex, query.sex), (prompt.department, query.department))
    known = [template.format(value=neutral(value)) for template, value in told if value]
    head = prompt.case.format(known=words.answer.list_joiner.join(known)) if known else prompt.case_plain
    return f"{head}\n<case>\n{cut_to_tokens(neutral(case_text(query)).strip(), limit)}\n</case>"


def _vote_line(candidates: Sequence[Candidate], words: Wording) -> str:
    if not candidates:
        return ""
    shares = (f"{neutral(one.name)} {one.share:.0%}" for one in candidates[:5])
    return words.prompt.vote.format(shares=words.answer.list_joiner.join(shares))


def _fit(evidence: Sequence[Evidence], room: int) -> tuple[list[Evidence], list[str]]:
    """As many records as fit at a readable length, longest common length first."""
    for limit in (1600, 800, 400, 200):
        blocks = [one.fenced(limit) for one in evidence]
        if sum(message_tokens(block) for block in blocks) <= room:
            return list(evidence), blocks
    shown, blocks, used = [], [], 0
    for one in evidence:
        block = one.fenced(max(_SHORTEST_RECORD, 200))
        used += message_tokens(block)
        if used > room:
            break
        shown.append(one)
        blocks.append(block)
    return shown, blocks
