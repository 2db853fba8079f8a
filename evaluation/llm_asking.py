"""What a condition with a language model shows and asks about a case."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from llama_index.core.llms import ChatMessage
from pydantic import BaseModel, ConfigDict

from ..agents.evidence import neutral
from ..agents.tokens import cut_to_tokens, message_tokens
from ..records.schema import OutpatientRecord, View
from ..records.views import views_of

_ANSWER_TOKENS = 120
_REASONED_TOKENS = 160


@dataclass(frozen=True)
class LlmCondition:
    """How one condition asks.

    Attributes:
        ranker: the condition without a language model whose ranking of records it is shown; None for none.
        records: how many of them at most.
        reasoned: whether it is asked to reason before it answers.
        routed: whether a confident vote answers without the model, and an unsure one is asked to reason.
        vote: whether the records' vote is shown.
        prompt_tokens: budget of the whole prompt.
    """

    ranker: str | None = None
    records: int = 0
    reasoned: bool = False
    routed: bool = False
    vote: bool = False
    prompt_tokens: int = 600


LLM_CONDITIONS: Mapping[str, LlmCondition] = {
    "direct": LlmCondition(),
    "cot": LlmCondition(reasoned=True),
    "naive_rag": LlmCondition("dense", records=3),
    "long_context": LlmCondition("dense", records=10, prompt_tokens=1_200),
    "hybrid_rag": LlmCondition("flat_hybrid", records=3),
    "map_rag_llm": LlmCondition("map_rag", records=3, routed=True),
    "ours_llm": LlmCondition("ours", records=3, routed=True, vote=True),
}


@dataclass(frozen=True)
class Neighbour:
    """A record as a condition ranks it.

    Attributes:
        record_id: id.
        text: without its diagnosis.
        diagnosis: main one.
    """

    record_id: str
    text: str
    diagnosis: str


@dataclass(frozen=True)
class LlmCase:
    """One query of the experiment.

    Attributes:
        id: of the query.
        text: of the case, without its diagnosis.
        language: of the prompt.
        choices: candidate diagnoses; None to ask for names.
        neighbours: records as the condition's ranker ranks them, best first.
        lane: ``vote``, ``standard`` or ``deep``, where the condition routes.
        vote: diagnosis and share as the ranker's vote has them, best first.
    """

    id: str
    text: str
    language: str = "en"
    choices: tuple[str, ...] | None = None
    neighbours: tuple[Neighbour, ...] = ()
    lane: str | None = None
    vote: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, record: OutpatientRecord, **shown: Any) -> LlmCase:
        """The case of a query record.

        Args:
            record: neither its diagnoses nor a diagnosis section of its text is read.
            **shown: ``neighbours``, ``lane`` and ``vote`` of the condition.
        """
        views = views_of(record)
        text = views.get(View.GLOBAL) or "\n".join(views.values())
        choices = tuple(record.choices) if record.choices else None
        return cls(record.id, text, record.language or "en", choices, **shown)


class LlmWords(BaseModel):
    """What is asked, in one language."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1)

    system: str
    choose: str
    choose_reasoned: str
    name: str
    name_reasoned: str
    records: str
    vote: str
    choices: str


@lru_cache(maxsize=3)
def llm_words(language: str) -> LlmWords:
    """The texts of a language; English for one that is not served."""
    known = language if language in {"en", "zh", "ja"} else "en"
    raw = files(__package__).joinpath("data", f"llm_{known}.toml").read_text(encoding="utf-8")
    return LlmWords.model_validate(tomllib.loads(raw))


@dataclass(frozen=True)
class Ask:
    """One request, ready to be sent.

    Attributes:
        messages: system and user.
        schema: of the answer.
        max_tokens: of the answer.
        choices: in the order asked; None where names are asked for.
        lane: ``standard`` or ``deep``.
    """

    messages: list[ChatMessage]
    schema: dict[str, Any]
    max_tokens: int
    choices: tuple[str, ...] | None
    lane: str

    @property
    def hash(self) -> str:
        """Of everything that is sent; names the outcome in the log."""
        said = [[str(one.role.value), one.content] for one in self.messages]
        raw = json.dumps([said, self.schema, self.max_tokens], ensure_ascii=False)
        return hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()[:16]


def ask_of(name: str, case: LlmCase, *, seed: int = 0) -> Ask:
    """Build what a condition asks about a case.

    Choices are put in an order that depends on (seed, case id, choice) alone, so that a place in the file
    says nothing.

    Raises:
        KeyError: no such condition.
    """
    condition = LLM_CONDITIONS[name]
    words = llm_words(case.language)
    reasoned = condition.reasoned or (condition.routed and case.lane == "deep")
    choices = _shuffled(case, seed) if case.choices else None
    if choices:
        task = words.choose_reasoned if reasoned else words.choose
        listed = "\n".join(f"- {neutral(one)}" for one in choices)
        task = f"{words.choices}\n{listed}\n\n{task}"
    else:
        task = words.name_reasoned if reasoned else words.name
    room = condition.prompt_tokens - message_tokens(words.system, task)
    text = cut_to_tokens(" ".join(neutral(case.text).split()), max(100, int(room * 0.6)))
    body = f"<case>\n{text}\n</case>"
    shown = _records(case.neighbours[: condition.records], room - message_tokens(body), words)
    if condition.vote and case.vote:
        shares = ", ".join(f"{neutral(one)} {share:.0%}" for one, share in case.vote[:3])
        shown = f"{shown}\n{words.vote.format(shares=shares)}"
    user = "\n\n".join(part for part in (shown, body, task) if part)
    messages = [ChatMessage(role="system", content=words.system), ChatMessage(role="user", content=user)]
    limit = _REASONED_TOKENS if reasoned else _ANSWER_TOKENS
    lane = case.lane if condition.routed and case.lane else ("deep" if reasoned else "standard")
    return Ask(messages, _schema(choices, reasoned=reasoned, language=case.language), limit, choices, lane)


def _shuffled(case: LlmCase, seed: int) -> tuple[str, ...]:
    def place(choice: str) -> str:
        return hashlib.sha256(f"{seed}\x1f{case.id}\x1f{choice}".encode("utf-8", "replace")).hexdigest()

    return tuple(sorted(set(case.choices or ()), key=place))


def _records(neighbours: Sequence[Neighbour], room: int, words: LlmWords) -> str:
    if not neighbours:
        return ""
    each = max(40, room // len(neighbours) - 30)
    blocks = [words.records]
    for one in neighbours:
        text = cut_to_tokens(" ".join(neutral(one.text).split()), each)
        diagnosis = neutral(one.diagnosis).replace('"', "'")
        blocks.append(f'<record diagnosis="{diagnosis}">\n{text}\n</record>')
    return "\n".join(blocks)


def _schema(choices: Sequence[str] | None, *, reasoned: bool, language: str) -> dict[str, Any]:
    wide = language in {"zh", "ja"}
    one: dict[str, Any] = {"type": "string", "maxLength": 25 if wide else 70}
    if choices:
        one = {"type": "string", "enum": [neutral(choice) for choice in choices]}
    properties: dict[str, Any] = {"first": one, "second": one, "third": one}
    if reasoned:
        properties = {"reasoning": {"type": "string", "maxLength": 80 if wide else 220}} | properties
    return {
        "title": "ranking",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def ranking_of(value: object, choices: Sequence[str] | None) -> tuple[str, ...]:
    """The ranked diagnoses in a reply; a choice named twice counts once, unnamed ones follow unranked.

    Raises:
        ValueError: no usable answer in it.
    """
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  # refused content, not a programming error
    said = [str(value.get(key, "")).strip() for key in ("first", "second", "third")]
    if choices:
        by_name = {neutral(choice).casefold(): choice for choice in choices}
        said = [by_name[one.casefold()] for one in said if one.casefold() in by_name]
    ranking = tuple(dict.fromkeys(one for one in said if one))
    if not ranking:
        raise ValueError("first, second and third are empty or not among the choices")
    return ranking
