"""The words that engines say and ask with, one data file per language."""

from __future__ import annotations

import string
import tomllib
from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, model_validator

LANGUAGES = ("en", "zh", "ja")


class _Texts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1)


class AnswerWords(_Texts):
    """Templates of the answer; the fields in braces are those of the English file."""

    leader: str
    leader_mixed: str
    line: str
    llm_line: str
    unsupported_line: str
    reason: str
    for_: str
    against: str
    problem: str
    evidence: str
    quote: str
    code: str
    none: str
    extractive: str
    written: str
    absent: str
    degraded: str
    list_joiner: str
    phrase_joiner: str

    @model_validator(mode="before")
    @classmethod
    def _for_is_a_keyword(cls, data: dict[str, str]) -> dict[str, str]:
        return {("for_" if key == "for" else key): value for key, value in data.items()}


class PromptWords(_Texts):
    """What is said to a language model."""

    system: str
    standard: str
    deep: str
    repair: str
    case: str
    case_plain: str
    age: str
    sex: str
    department: str
    records: str
    no_records: str
    vote: str


class RefusalWords(_Texts):
    """Why an answer of the model is refused; shown to it in the repair."""

    bad_citation: str
    empty: str


class Wording(_Texts):
    """All texts of one language."""

    answer: AnswerWords
    prompt: PromptWords
    refusal: RefusalWords


@lru_cache(maxsize=len(LANGUAGES))
def _load(language: str) -> Wording:
    raw = files(__package__).joinpath("data", f"{language}.toml").read_text(encoding="utf-8")
    return Wording.model_validate(tomllib.loads(raw))


def wording_of(language: str | None) -> Wording:
    """The texts of a language; English for one that is not served."""
    return _load(language if language in LANGUAGES else "en")


def placeholders(template: str) -> frozenset[str]:
    """Names in braces in a template."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)
