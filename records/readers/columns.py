"""Which column of a table is which field of a record."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from pydantic import TypeAdapter

from ...errors import InputError, SettingsError
from ..schema import View
from .door import Payload, Row

HEADER_SEARCH_ROWS = 10
"""A title above the table is common in exported sheets, so the heading is sought in so many rows."""

Cell = str | int | float | bool | dt.datetime | dt.date | dt.time | dt.timedelta | None

_SQUEEZE = re.compile(r"[\s_\-.()\[\]{}/:#]+")
_SEVERAL = re.compile("[;；|｜\n]+")
_CONTENT = frozenset({"text", *View})
_LISTS = frozenset({"diagnosis", "code", "choices", "identifiers"})
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "#value!", "#ref!", "#null!", "#name?"})
_ALIASES = {"diagnoses": "diagnosis", "diagnosis": "diagnosis", "codes": "code", "code": "code"}


@cache
def known_headings() -> Mapping[str, tuple[str, int]]:
    """Squeezed heading -> (field, place in the field's list), from ``data/headings.toml``."""
    text = resources.files(__package__).joinpath("data/headings.toml").read_text(encoding="utf-8")
    table = TypeAdapter(dict[str, list[str]]).validate_python(tomllib.loads(text))
    return {
        squeeze(heading): (field, place)
        for field, headings in table.items()
        for place, heading in enumerate(headings)
    }


@cache
def fields() -> tuple[str, ...]:
    """Every field a column can be given to."""
    return tuple(dict.fromkeys(field for field, _ in known_headings().values()))


def squeeze(heading: str) -> str:
    """A heading without case, width, spacing and punctuation."""
    return _SQUEEZE.sub("", unicodedata.normalize("NFKC", heading).casefold())


class Columns:
    """Turns rows of cells into record payloads.

    Args:
        places: field -> column numbers, in the order in which they are joined.
        headings: of all columns.
    """

    def __init__(self, places: Mapping[str, Sequence[int]], headings: Sequence[str]) -> None:
        self._places = places
        self._headings = headings

    def row(self, cells: Sequence[Cell], line: int) -> Row | None:
        """One row, or None where every cell is empty."""
        values = [_tidy(cell) for cell in cells]
        if all(value is None for value in values):
            return None
        payload: Payload = {}
        views: dict[str, str] = {}
        for field, places in self._places.items():
            found = [
                (place, values[place])
                for place in places
                if place < len(values) and values[place] is not None
            ]
            if not found:
                continue
            if field in _LISTS:
                payload[field] = [part for _, value in found for part in _parts(value)]
            elif field in _CONTENT:
                text = "\n".join(_text(value) for _, value in found)
                if field == "text":
                    payload["text"] = text
                else:
                    views[field] = text
            elif field in ("id", "patient_id", "department", "sex", "language"):
                payload[field] = _text(found[0][1])
            else:
                payload[field] = found[0][1]
        if views:
            payload["views"] = views
        return Row(_with_diagnoses(payload), line)


def find_columns(
    head: Sequence[Sequence[Cell]], mapping: Mapping[str, str], path: Path
) -> tuple[int, Columns] | None:
    """Find the row of headings among the first rows.

    Args:
        head: the first rows of the table.
        mapping: ``records.columns``: field -> heading, or several headings joined by ``|``.
        path: of the file, for messages.

    Returns:
        Its place in ``head`` and the columns, or None where no row has both an id and a text.

    Raises:
        SettingsError: ``mapping`` names a field that records don't have.
    """
    for field in mapping:
        if _ALIASES.get(field, field) not in fields():
            msg = f"records.columns: {field} is no field of a record; fields are {', '.join(fields())}"
            raise SettingsError(msg)
    for place, cells in enumerate(head[:HEADER_SEARCH_ROWS]):
        headings = ["" if cell is None else str(cell).strip() for cell in cells]
        places = _places(headings, mapping)
        if "id" in places and places.keys() & _CONTENT:
            if missing := _unmatched(headings, mapping):
                msg = f"{path}: records.columns names {missing}, but the columns are {_list(headings)}"
                raise InputError(msg)
            return place, Columns(places, headings)
    return None


def no_columns(head: Sequence[Sequence[Cell]], path: Path) -> InputError:
    """The error for a table in which id and text were not found."""
    first = next(
        (cells for cells in head if any(cell is not None and str(cell).strip() for cell in cells)), []
    )
    headings = ["" if cell is None else str(cell).strip() for cell in first]
    return InputError(
        f"{path}: columns for the record's id and for its text are needed and were not both found; the first "
        f"row is {_list(headings)}. Name them in the settings, for example "
        '[records.columns] id = "Visit", text = "Note"'
    )


def _places(headings: Sequence[str], mapping: Mapping[str, str]) -> dict[str, list[int]]:
    squeezed = [squeeze(heading) for heading in headings]
    places: dict[str, list[int]] = {}
    taken: set[int] = set()
    for key, wanted in mapping.items():
        for name in _wanted(wanted, squeezed):
            if name in squeezed:
                places.setdefault(_ALIASES.get(key, key), []).append(squeezed.index(name))
                taken.add(squeezed.index(name))
    mapped = set(places)
    ranked: dict[str, list[tuple[int, int]]] = {}
    for column, name in enumerate(squeezed):
        numbered = name.rstrip("0123456789")
        known = known_headings().get(name) or (known_headings().get(numbered) if numbered else None)
        if known and column not in taken and known[0] not in mapped:
            ranked.setdefault(known[0], []).append((known[1], column))
    for field, found in ranked.items():
        places[field] = [column for _, column in sorted(found)]
    return places


def _wanted(wanted: str, squeezed: Sequence[str]) -> list[str]:
    return [squeeze(wanted)] if squeeze(wanted) in squeezed else [squeeze(part) for part in wanted.split("|")]


def _unmatched(headings: Sequence[str], mapping: Mapping[str, str]) -> str:
    squeezed = [squeeze(heading) for heading in headings]
    return ", ".join(
        f"{key} = {wanted!r}"
        for key, wanted in mapping.items()
        if not all(name in squeezed for name in _wanted(wanted, squeezed))
    )


def _list(headings: Sequence[str]) -> str:
    shown = [heading[:40] for heading in headings[:30] if heading]
    return ", ".join(repr(heading) for heading in shown) or "empty"


def _tidy(cell: Cell) -> Cell:
    if isinstance(cell, str):
        stripped = cell.strip()
        return None if stripped.casefold() in _MISSING else stripped
    return cell


def _text(value: Cell) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _parts(value: Cell) -> list[str]:
    return [part.strip() for part in _SEVERAL.split(_text(value))]


def _with_diagnoses(payload: Payload) -> Payload:
    names, codes = payload.pop("diagnosis", []), payload.pop("code", [])
    if isinstance(names, list) and isinstance(codes, list):
        length = max(len(names), len(codes))
        pairs = zip(names + [""] * (length - len(names)), codes + [""] * (length - len(codes)), strict=True)
        payload["diagnoses"] = [
            {"name": name or code, "code": code or None} for name, code in pairs if name or code
        ]
    for key in ("choices", "identifiers"):
        values = payload.get(key)
        if isinstance(values, list):
            payload[key] = [value for value in values if value]
    return payload
