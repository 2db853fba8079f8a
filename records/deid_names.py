"""Names and numbers that the record gives in fields, found again in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .dates import parse_date, to_ascii_width
from .deid_tables import Kind, deid_tables

MIN_ID_CHARS = 5

_CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff々ヶ]")
_SEPARATORS = re.compile(r"[\s,、·・]+")


class Span(NamedTuple):
    """A place in a text and what to write there."""

    start: int
    end: int
    kind: Kind
    replacement: str


def known_spans(text: str, known: Iterable[str]) -> Iterator[Span]:
    """Places of what the record itself names: ids by their characters, names also by their parts.

    A number needs five characters to be looked for, so that none of a few digits takes a clinical value
    along; a part of a name is looked for as a capitalised word, so that "brown sputum" keeps its colour.

    Args:
        text: with full-width characters made half-width.
        known: names, numbers and addresses.
    """
    placeholders = deid_tables().placeholders
    folded = text.lower()
    if len(folded) != len(text):
        folded = text
    for raw in dict.fromkeys(known):
        item = to_ascii_width(raw).strip()
        has_digit = any(char.isdecimal() for char in item)
        if has_digit or "@" in item:
            if sum(char.isalnum() for char in item) >= MIN_ID_CHARS and parse_date(item) is None:
                yield from _occurrences(folded, item.lower(), "id", placeholders["id"])
        else:
            for start, end in _name_places(text, folded, item):
                yield Span(start, end, "name", placeholders["name"])


def _occurrences(text: str, wanted: str, kind: Kind, replacement: str) -> Iterator[Span]:
    for start in _positions(text, wanted):
        if _stands_alone(text, start, start + len(wanted)):
            yield Span(start, start + len(wanted), kind, replacement)


def _positions(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted) if wanted else -1
    while start >= 0:
        yield start
        start = text.find(wanted, start + len(wanted))


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (_joins(before, text[start]) or _joins(after, text[end - 1]))


def _joins(outside: str, inside: str) -> bool:
    return bool(outside) and outside.isalnum() and inside.isalnum() and not _CJK.match(outside + inside)


def _name_places(text: str, folded: str, name: str) -> Iterator[tuple[int, int]]:
    parts = [part for part in _SEPARATORS.split(name) if part]
    if _CJK.search(name):
        yield from _cjk_places(text, parts)
        return
    if len(name) > 2:
        for start in _positions(folded, name.lower()):
            if _stands_alone(text, start, start + len(name)):
                yield start, start + len(name)
    for part in parts:
        word = part.strip(".-'")
        if len(word) < 3 or word.lower() in deid_tables().not_a_name:
            continue
        for form in {word if word[0].isupper() else word.capitalize(), word.capitalize(), word.upper()}:
            for start in _positions(text, form):
                if _stands_alone(text, start, start + len(form)):
                    yield start, start + len(form)


def _cjk_places(text: str, parts: list[str]) -> Iterator[tuple[int, int]]:
    whole = "".join(parts)
    wholes = {whole, " ".join(parts)} if len(whole) > 1 else set()
    for form in sorted(
        wholes | {part for part in parts if len(parts) > 1 and len(part) > 1}, key=len, reverse=True
    ):
        for start in _positions(text, form):
            yield start, start + len(form)
    family = [parts[0]] if len(parts) > 1 else [whole[:length] for length in (3, 2, 1) if len(whole) > length]
    for form in family:
        for honorific in deid_tables().honorifics:
            for start in _positions(text, form + honorific):
                yield start, start + len(form)
