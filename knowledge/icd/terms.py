"""Wordings of a code system: its own, those of other open vocabularies, and a hospital's."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, SettingsError
from .csv_list import decode_list
from .lexicon import read_table, word_classes
from .system import CodeSystem, RejectedRow, Term, TermKind, code_key

_SQUARE = re.compile(r"\s*\[[^\]]*\]")
_ROUND = re.compile(r"\s*[(（][^)）]*[)）]")
_EXCEPT = re.compile(r",?\s+(?:except|excluding)\b.*$", re.IGNORECASE)
_INSIDE_SQUARE = re.compile(r"\[([^\]]{4,})\]")
LIKELY = "~"
"""Mark in the source of an alias whose code is only the most likely one."""

_VOTED = "MESH"

_SHIPPED = ("aliases.csv", "aliases_mesh.csv.gz", "aliases_icd9.csv.gz")


def variants(text: str) -> Iterator[str]:
    """The wordings that one title stands for: with and without what is in brackets and what is excepted."""
    yield text
    if _EXCEPT.search(text):
        yield _EXCEPT.sub("", text)
    if "[" in text:
        yield _SQUARE.sub("", text)
        for inner in _INSIDE_SQUARE.findall(text):
            if " " in inner.strip():
                yield inner
    if "(" in text or "（" in text:
        yield _ROUND.sub("", _SQUARE.sub("", text))


@dataclass(frozen=True)
class UserAliases:
    """A hospital's own names, and the rows that could not be used."""

    terms: tuple[Term, ...]
    rejected: tuple[RejectedRow, ...]


def shipped_aliases(system: CodeSystem) -> Iterator[Term]:
    """Names of the shipped alias tables whose code the system has.

    An ICD-10-CM code that the system lacks stands for its nearest broader code, as long as that is
    within the same category. Code lists of other languages get none: theirs are rewritten by words.
    """
    if system.language != "en":
        return
    for name in _SHIPPED:
        for row in read_table(name):
            at = _nearest(system, row["code"])
            if at is not None and not _is_ambiguous(row["alias"]):
                source = row.get("source", "")
                yield Term(
                    row["alias"],
                    at,
                    TermKind.HINT if LIKELY in source or source.startswith("MESH") else TermKind.ALIAS,
                    source,
                )


def _is_ambiguous(alias: str) -> bool:
    return any(text.strip().casefold() in word_classes().ambiguous for text in variants(alias))


def _kind_of(source: str) -> TermKind:
    """How far the code of a shipped alias can be trusted."""
    if LIKELY in source:
        return TermKind.NOTE
    return TermKind.HINT if source.startswith(_VOTED) else TermKind.ALIAS


def _nearest(system: CodeSystem, code: str) -> int | None:
    key = code_key(code)
    for end in range(len(key), 2, -1):
        if (row := system.rows.get(key[:end])) is not None:
            return row
    return None


def read_user_aliases(path: Path, system: CodeSystem) -> UserAliases:
    """Read a CSV ``alias,code`` with or without headings; rows with unknown codes are rejected.

    Raises:
        SettingsError: no such file.
        InputError: unknown encoding.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); icd10.aliases needs a CSV alias,code"
        raise SettingsError(msg) from error
    text = decode_list(raw, path).replace("\0", "")
    terms: list[Term] = []
    rejected: list[RejectedRow] = []
    lines = csv.reader(text.splitlines())
    try:
        for number, cells in enumerate(lines, start=1):
            if not any(cell.strip() for cell in cells):
                continue
            alias, code = (cells[0].strip(), cells[1].strip()) if len(cells) > 1 else ("", "")
            if number == 1 and code.casefold() == "code":
                continue
            row = system.row_of(code) if code else None
            if not alias or not code:
                rejected.append(RejectedRow(number, "alias or code is empty"))
            elif row is None:
                rejected.append(RejectedRow(number, f"{system.name} has no code {code}"))
            else:
                terms.append(Term(alias, row, TermKind.ALIAS))
    except csv.Error as error:
        msg = f"{path}: not CSV: {error}"
        raise InputError(msg) from error
    return UserAliases(tuple(terms), tuple(rejected))
