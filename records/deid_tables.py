"""The patterns of de-identification, compiled from ``data/deid.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, field_validator

Kind = Literal["name", "id", "national_id", "phone", "email", "url", "address", "date", "age"]

_LIST = re.compile(r"<<(\w+)>>")


class _Pattern(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    regex: str
    check: Literal["phone", "phone9", "my_number"] | None = None


class _AgePattern(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    regex: str

    @field_validator("regex")
    @classmethod
    def _has_number(cls, value: str) -> str:
        if "(?P<n>" not in value:
            msg = "an age pattern needs a group named n"
            raise ValueError(msg)
        return value


class _Tables(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    placeholders: dict[Kind, str]
    words: dict[str, list[str]]
    pattern: list[_Pattern]
    age: list[_AgePattern]


class Pattern(NamedTuple):
    """One thing to look for.

    Attributes:
        kind: what it is.
        regex: compiled; a group named ``x`` is the part to replace.
        check: a further condition on the digits.
    """

    kind: Kind
    regex: re.Pattern[str]
    check: str | None


class DeidTables(NamedTuple):
    """Everything in ``data/deid.toml``, ready to use.

    Attributes:
        placeholders: what stands in the text afterwards, by kind.
        patterns: in order of precedence.
        ages: each with a group named ``n``.
        units: words after which a number is no part of a date, as one alternation.
        not_a_name: parts of a name field that are left in the text.
        honorifics: words that follow a family name.
    """

    placeholders: dict[Kind, str]
    patterns: tuple[Pattern, ...]
    ages: tuple[re.Pattern[str], ...]
    units: str
    not_a_name: frozenset[str]
    honorifics: tuple[str, ...]


@cache
def deid_tables() -> DeidTables:
    """The shipped tables, checked against their schema."""
    text = resources.files(__package__).joinpath("data/deid.toml").read_text(encoding="utf-8")
    tables = _Tables.model_validate(tomllib.loads(text))

    def expand(regex: str) -> str:
        return _LIST.sub(lambda m: alternation(tables.words[m[1]]), regex)

    return DeidTables(
        placeholders=tables.placeholders,
        patterns=tuple(Pattern(p.kind, re.compile(expand(p.regex)), p.check) for p in tables.pattern),
        ages=tuple(re.compile(p.regex) for p in tables.age),
        units=alternation(tables.words["unit"]),
        not_a_name=frozenset(tables.words["not_a_name"]),
        honorifics=tuple(tables.words["honorific"]),
    )


def alternation(words: list[str]) -> str:
    """A group that matches any of the words, longest first."""
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + ")"


def passes(check: str | None, found: str) -> bool:
    """Whether the digits of a match are what its kind demands."""
    if check is None:
        return True
    digits = [int(char) for char in found if char.isdecimal()]
    if check == "my_number":
        weights = (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
        rest = sum(digit * weight for digit, weight in zip(digits, weights, strict=False)) % 11
        return len(digits) == 12 and digits[-1] == (0 if rest <= 1 else 11 - rest)
    return (9 if check == "phone9" else 7) <= len(digits) <= 15
