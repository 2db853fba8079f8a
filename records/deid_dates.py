"""Dates in running text, found and moved with their way of writing kept."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from .dates import ERA_LETTERS, era_year, make_date
from .deid_tables import alternation, deid_tables

_CHINESE = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0}
_ERA_BEGINS = (
    ("令和", dt.date(2019, 5, 1)),
    ("平成", dt.date(1989, 1, 8)),
    ("昭和", dt.date(1926, 12, 25)),
    ("大正", dt.date(1912, 7, 30)),
    ("明治", dt.date(1868, 1, 25)),
)
_MID_MONTH = 15


class DateContext(NamedTuple):
    """What reading and moving dates depends on.

    Attributes:
        shift: days to add.
        year: for dates that are written without one.
        day_first: how ``03/04/2024`` is read.
    """

    shift: dt.timedelta
    year: int
    day_first: bool


class DateSpan(NamedTuple):
    """A date in a text and what to write instead."""

    start: int
    end: int
    replacement: str


class _MonthNames(BaseModel):
    model_config = ConfigDict(extra="forbid")
    months: list[list[str]] = Field(min_length=12, max_length=12)


_Match = re.Match[str]
_Rewrite = Callable[[_Match, DateContext], str | None]


@cache
def month_names() -> tuple[tuple[str, ...], ...]:
    """The forms of each month's name, long and short first, from ``data/deid_dates.toml``."""
    text = resources.files(__package__).joinpath("data/deid_dates.toml").read_text(encoding="utf-8")
    return tuple(tuple(names) for names in _MonthNames.model_validate(tomllib.loads(text)).months)


def date_spans(text: str, context: DateContext) -> Iterator[DateSpan]:
    """Every date in a text whose full-width characters were made half-width; spans may overlap."""
    for regex, rewrite in _rules():
        for match in regex.finditer(text):
            replacement = rewrite(match, context)
            if replacement is not None:
                yield DateSpan(match.start(), match.end(), replacement)


def is_day_first(text: str) -> bool:
    """Whether some date of a text can only be day before month, and none the other way round."""
    pairs = [(int(m["a"]), int(m["b"])) for m in _NUMERIC.finditer(text)]
    return any(a > 12 >= b for a, b in pairs) and not any(b > 12 >= a for a, b in pairs)


def move(date: dt.date | None, shift: dt.timedelta) -> dt.date | None:
    """The date moved, or None where the calendar ends."""
    try:
        return None if date is None else date + shift
    except OverflowError:
        return None


_CJK_YMD = " ?年 ?(?P<m>[0-9]{1,2}) ?月 ?(?P<d>[0-9]{1,2})"
_YEAR = "(?P<y>(?:1[89]|2[0-2])[0-9]{2})"
_ERA_YEAR = "(?P<era>明治|大正|昭和|平成|令和) ?(?P<y>[0-9]{1,2}|元)"
_ERA_LETTER_YMD = r"(?<![A-Za-z0-9])(?P<era>[MTSHR])(?P<y>[0-9]{1,2})(?P<s>[./-])(?P<m>[0-9]{1,2})(?P=s)"
_ERA_LETTER_YMD += r"(?P<d>[0-9]{1,2})(?![0-9])"
_CHINESE_YMD = (
    "(?P<y>[〇零一二三四五六七八九]{4})年(?P<m>[一二三四五六七八九十]{1,2})月"
    "(?P<d>[一二三四五六七八九十]{1,3})(?P<e>[日号號]?)"
)
_NUMERIC = re.compile(
    r"(?<![0-9./-])(?P<a>[0-9]{1,2})(?P<s>[-/.])(?P<b>[0-9]{1,2})(?P=s)(?P<y>(?:1[89]|2[0-2])[0-9]{2})(?![0-9])"
)


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Rewrite], ...]:
    names = alternation([name for forms in month_names() for name in forms])
    any_case = f"(?i:(?P<n>{names}))"
    upper = alternation([name.upper() for forms in month_names() for name in forms])
    as_name = f"(?P<n>{names}|{upper})"
    no_unit = rf"(?![0-9]|[./-][0-9]|[ \t]{{0,2}}(?i:{deid_tables().units})(?![A-Za-z]))"
    day = r"(?<![0-9./-])\b(?P<d>[0-9]{1,2})(?P<o>st|nd|rd|th)?"
    plain_day = "(?P<d>[0-9]{1,2})(?P<o>st|nd|rd|th)?"
    rules: list[tuple[str, _Rewrite]] = [
        (
            rf"(?<![0-9.]){_YEAR}(?P<s>[-/.])(?P<m>[0-9]{{1,2}})(?P=s)(?P<d>[0-9]{{1,2}})(?![0-9])",
            _year_first,
        ),
        (_NUMERIC.pattern, _numeric),
        (
            rf"(?<![0-9./-])(?P<a>[0-9]{{1,2}})(?P<s>/)(?P<b>[0-9]{{1,2}})/(?P<y>[0-9]{{2}})(?!/){no_unit}",
            _numeric,
        ),
        (
            rf"(?<![0-9./-])(?P<a>[0-9]{{2}})(?P<s>-)(?P<b>[0-9]{{2}})-(?P<y>[0-9]{{2}})(?!-){no_unit}",
            _numeric,
        ),
        (rf"(?<![0-9.])(?P<y>(?:19|20)[0-9]{{2}})(?P<m>[01][0-9])(?P<d>[0-3][0-9]){no_unit}", _compact),
        (rf"(?<![0-9]){_YEAR}{_CJK_YMD}(?P<e> ?[日号號]?)(?![0-9])", _cjk),
        (rf"{_ERA_YEAR}{_CJK_YMD}(?P<e> ?日?)(?![0-9])", _era),
        (_ERA_LETTER_YMD, _era_letter),
        (_CHINESE_YMD, _chinese),
        (r"(?<![0-9年./-])(?P<m>[0-9]{1,2}) ?月 ?(?P<d>[0-9]{1,2})(?P<e> ?[日号號])", _cjk),
        (rf"(?<![0-9]){_YEAR} ?年 ?(?P<m>[0-9]{{1,2}}) ?月(?! ?[0-9])", _cjk_month),
        (rf"{day}(?P<g>[ -]{{1,2}}(?:of )?){any_case}(?P<h>\.?,?[ -]{{1,2}}){_YEAR}(?![0-9])", _day_name),
        (rf"{day}(?P<g>-){any_case}(?P<h>-)(?P<y>[0-9]{{2}})(?![0-9])", _day_name),
        (rf"\b{any_case}(?P<g>\.? {{1,2}}){plain_day}(?P<h>,? {{1,2}}|,){_YEAR}(?![0-9])", _name_day),
        (rf"\b{as_name}(?P<g>\.? {{1,2}}){plain_day}\b(?!,? [0-9]{{4}}){no_unit}", _name_day),
        (rf"{day}(?P<g> (?:of )?){as_name}\b(?!,? [0-9]{{4}})", _day_name),
        (rf"\b{as_name}(?P<g>\.?,? ){_YEAR}{no_unit}", _name_year),
    ]
    return tuple((re.compile(pattern), rewrite) for pattern, rewrite in rules)


def _pads(*parts: str) -> bool:
    return any(part.startswith("0") for part in parts) or all(len(part) == 2 for part in parts)


def _number(value: int, pad: bool) -> str:
    return f"{value:02d}" if pad else str(value)


def _full_year(text: str) -> int:
    if len(text) == 4:
        return int(text)
    return 2000 + int(text) if int(text) < 69 else 1900 + int(text)


def _written_year(date: dt.date, like: str) -> str:
    return f"{date.year:04d}" if len(like) == 4 else f"{date.year % 100:02d}"


def _year_first(match: _Match, context: DateContext) -> str | None:
    date = move(make_date(int(match["y"]), int(match["m"]), int(match["d"])), context.shift)
    if date is None:
        return None
    pad, mark = _pads(match["m"], match["d"]), match["s"]
    return f"{date.year:04d}{mark}{_number(date.month, pad)}{mark}{_number(date.day, pad)}"


def _numeric(match: _Match, context: DateContext) -> str | None:
    a, b, year = int(match["a"]), int(match["b"]), _full_year(match["y"])
    day_first = context.day_first if a <= 12 and b <= 12 else a > 12
    date = move(make_date(year, b, a) if day_first else make_date(year, a, b), context.shift)
    if date is None:
        return None
    pad, mark = _pads(match["a"], match["b"]), match["s"]
    pair = (date.day, date.month) if day_first else (date.month, date.day)
    return f"{_number(pair[0], pad)}{mark}{_number(pair[1], pad)}{mark}{_written_year(date, match['y'])}"


def _compact(match: _Match, context: DateContext) -> str | None:
    date = move(make_date(int(match["y"]), int(match["m"]), int(match["d"])), context.shift)
    return None if date is None else f"{date.year:04d}{date.month:02d}{date.day:02d}"


def _cjk(match: _Match, context: DateContext) -> str | None:
    year = match.groupdict().get("y")
    date = move(make_date(int(year or context.year), int(match["m"]), int(match["d"])), context.shift)
    if date is None:
        return None
    pad = _pads(match["m"], match["d"]) and "0" in (match["m"][0], match["d"][0])
    head = f"{date.year}年" if year else ""
    return f"{head}{_number(date.month, pad)}月{_number(date.day, pad)}{match['e']}"


def _cjk_month(match: _Match, context: DateContext) -> str | None:
    date = move(make_date(int(match["y"]), int(match["m"]), _MID_MONTH), context.shift)
    return None if date is None else f"{date.year}年{date.month}月"


def _era_of(date: dt.date) -> tuple[str, int]:
    name, begin = next((era for era in _ERA_BEGINS if date >= era[1]), _ERA_BEGINS[-1])
    return name, date.year - begin.year + 1


def _era(match: _Match, context: DateContext) -> str | None:
    year = era_year(match["era"], match["y"])
    date = move(make_date(year, int(match["m"]), int(match["d"])), context.shift)
    if date is None:
        return None
    name, number = _era_of(date)
    return f"{name}{'元' if number == 1 else number}年{date.month}月{date.day}{match['e']}"


def _era_letter(match: _Match, context: DateContext) -> str | None:
    year = era_year(match["era"], match["y"])
    date = move(make_date(year, int(match["m"]), int(match["d"])), context.shift)
    if date is None:
        return None
    name, number = _era_of(date)
    letter = next(letter for letter, era in ERA_LETTERS.items() if era == name)
    return f"{letter}{number}{match['s']}{date.month}{match['s']}{date.day}"


def _from_chinese(text: str) -> int:
    tens, mark, ones = text.rpartition("十")
    if not mark:
        return _CHINESE.get(text, 0)
    return 10 * (_CHINESE.get(tens, 0) if tens else 1) + (_CHINESE.get(ones, 0) if ones else 0)


def _chinese(match: _Match, context: DateContext) -> str | None:
    year = int("".join(str(_CHINESE[char]) for char in match["y"]))
    date = move(make_date(year, _from_chinese(match["m"]), _from_chinese(match["d"])), context.shift)
    return None if date is None else f"{date.year}年{date.month}月{date.day}{match['e']}"


def _month_of(name: str) -> int:
    wanted = name.casefold()
    return next(
        n for n, forms in enumerate(month_names(), start=1) if wanted in [form.casefold() for form in forms]
    )


def _named(month: int, like: str) -> str:
    long, short = month_names()[month - 1][:2]
    name = long if len(like) > 4 or like.casefold() in ("june", "july") else short
    return name.upper() if like.isupper() else name.lower() if like.islower() else name


def _ordinal(day: int, like: str | None) -> str:
    if not like:
        return str(day)
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _parts(match: _Match, context: DateContext) -> tuple[str, str, str] | None:
    written = match.groupdict().get("y")
    year = _full_year(written) if written else context.year
    date = move(make_date(year, _month_of(match["n"]), int(match["d"])), context.shift)
    if date is None:
        return None
    tail = match["h"] + _written_year(date, written) if written else ""
    return _ordinal(date.day, match["o"]), _named(date.month, match["n"]), tail


def _day_name(match: _Match, context: DateContext) -> str | None:
    if "y" not in match.re.groupindex and match["n"] == "May" and not match["o"]:
        return None
    parts = _parts(match, context)
    return None if parts is None else f"{parts[0]}{match['g']}{parts[1]}{parts[2]}"


def _name_day(match: _Match, context: DateContext) -> str | None:
    parts = _parts(match, context)
    return None if parts is None else f"{parts[1]}{match['g']}{parts[0]}{parts[2]}"


def _name_year(match: _Match, context: DateContext) -> str | None:
    date = move(make_date(int(match["y"]), _month_of(match["n"]), _MID_MONTH), context.shift)
    return None if date is None else f"{_named(date.month, match['n'])}{match['g']}{date.year}"
