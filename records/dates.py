"""Calendar dates as hospitals in English, Chinese and Japanese write them in a field."""

from __future__ import annotations

import datetime as dt
import re

ERA_START = {"明治": 1868, "大正": 1912, "昭和": 1926, "平成": 1989, "令和": 2019}
"""First year of each Japanese era; year n of an era is ``start + n - 1``."""
ERA_LETTERS = {"M": "明治", "T": "大正", "S": "昭和", "H": "平成", "R": "令和"}

_WIDE = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_TIME = r"(?:[T\s]\s*\d{1,2}[:時时]\d.*)?"
_YMD = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*[日号]?\s*" + _TIME, re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T?\d{4,6})?", re.ASCII)
_ERA = re.compile(
    r"(明治|大正|昭和|平成|令和|[MTSHR])\s*(\d{1,2}|元)\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?\s*"
    + _TIME,
    re.ASCII,
)
_DMY = re.compile(r"(\d{1,2})\s*([/.-])\s*(\d{1,2})\s*\2\s*(\d{4})\s*" + _TIME, re.ASCII)


def to_ascii_width(text: str) -> str:
    """Full-width ASCII as ASCII, character by character, so that positions stay."""
    return text.translate(_WIDE)


def make_date(year: int, month: int, day: int) -> dt.date | None:
    """The date, or None where the calendar has no such day."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def era_year(era: str, year: str) -> int:
    """Western year of a Japanese era year; ``元`` is the first."""
    number = 1 if year == "元" else int(year)
    return ERA_START[ERA_LETTERS.get(era, era)] + number - 1


def parse_date(text: str, *, day_first: bool = False) -> dt.date | None:
    """Read a field that holds one date, with or without a time.

    Args:
        text: for example ``2024-01-31``, ``2024/1/31 08:30``, ``20240131``, ``2024年1月31日``,
            ``令和6年1月31日``, ``R6.1.31``, ``01/31/2024``.
        day_first: how to read ``03/04/2024``; where only one reading is a date, that one is taken.

    Returns:
        The date, or None where it is none of these.
    """
    text = to_ascii_width(text).strip()
    if match := _YMD.fullmatch(text) or _COMPACT.fullmatch(text):
        return make_date(*(int(part) for part in match.groups()))
    if match := _ERA.fullmatch(text):
        era, year, month, day = match.groups()
        return make_date(era_year(era, year), int(month), int(day))
    if match := _DMY.fullmatch(text):
        first, second, year_number = int(match[1]), int(match[3]), int(match[4])
        pairs = [(second, first), (first, second)] if day_first else [(first, second), (second, first)]
        return next((date for m, d in pairs if (date := make_date(year_number, m, d))), None)
    return None
