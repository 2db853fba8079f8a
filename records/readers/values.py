"""Coded fields: sex, age and date as sources write them."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..dates import parse_date, to_ascii_width

_AGE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*(.{0,12})", re.ASCII)


_DIGITS = {char: i for i, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_WRITTEN = re.compile("[〇零一二两三四五六七八九十百]{1,6}")


class _AgeUnit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    per_year: float = Field(gt=0)
    words: list[str]


class _ValueWords(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sex: dict[str, list[str]]
    age_unit: list[_AgeUnit]


class ValueTables(NamedTuple):
    """Look-ups made of ``data/values.toml``."""

    sex: dict[str, str | None]
    per_year: dict[str, float]


@cache
def value_tables() -> ValueTables:
    """The shipped words, checked against their schema."""
    text = resources.files(__package__).joinpath("data/values.toml").read_text(encoding="utf-8")
    words = _ValueWords.model_validate(tomllib.loads(text))
    sex = {w: None if code == "unknown" else code for code, many in words.sex.items() for w in many}
    return ValueTables(sex, {w: unit.per_year for unit in words.age_unit for w in unit.words})


def sex_of(value: object) -> object:
    """``F`` or ``M`` for the words known, None for "unknown", anything else as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return value
    return value_tables().sex.get(to_ascii_width(value).strip().lower(), value.strip())


def age_of(value: object) -> object:
    """Years for a text such as ``45``, ``45岁``, ``四十五岁`` or ``6 months``; anything else as it is."""
    if not isinstance(value, str):
        return value
    text = to_ascii_width(value).strip().lower()
    if not text:
        return None
    if (written := _WRITTEN.match(text)) is not None:
        text = f"{_number_of(written[0])}{text[written.end() :]}"
    match = _AGE.fullmatch(text)
    per_year = value_tables().per_year.get(match[2].strip(" .-")) if match else None
    return round(float(match[1]) / per_year, 2) if match and per_year else value


def _number_of(written: str) -> int:
    """``六十五`` or ``六五`` as 65."""
    if not set(written) & {"十", "百"}:
        return int("".join(str(_DIGITS[char]) for char in written))
    total, digit = 0, 0
    for char in written:
        if char in _DIGITS:
            digit = _DIGITS[char]
        else:
            total, digit = total + (digit or 1) * (10 if char == "十" else 100), 0
    return total + digit


def date_of(value: object) -> object:
    """A date for everything that :func:`parse_date` reads; anything else as it is, None where empty."""
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, int) and not isinstance(value, bool) and 19_000_101 <= value <= 22_991_231:
        value = str(value)
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    return parse_date(value) or value


def name_of(value: object) -> object:
    """A name or number as text, None where it is blank; anything else as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if isinstance(value, str) and not value.strip() else value
