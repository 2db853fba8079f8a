"""A code system in memory: codes, titles, terms and their tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

_PLAIN = re.compile(r"\bwithout complications?\b|\buncomplicated\b|不伴有?并发症|合併症なし", re.IGNORECASE)
_DENIED = re.compile(r"\bwithout\b|\bnot\b|\bunspecified\b|不伴|なし", re.IGNORECASE)
_DROPPED = re.compile(r"[\s.\-‐-―]+")
_UNSPECIFIED = re.compile(
    r"\bunspecified\b|\bnos\b|not specified|未特指|未指明|未明确|未说明|詳細不明|部位不明", re.IGNORECASE
)


def code_key(code: str) -> str:
    """A code for comparison: upper case, without dots, dashes and blanks."""
    return _DROPPED.sub("", code).upper()


def category_of(code: str) -> str:
    """First three characters of a code: its ICD-10 category."""
    return code_key(code)[:3]


class TermKind(IntEnum):
    """Where a term of a code comes from, most authoritative first.

    ``HINT`` is an alias whose code other names of the same thing agree on; ``NOTE`` a cross-reference
    ("Excludes1: acute bronchitis (J20.-)") or an alias whose code is only the most likely one.
    """

    TITLE = 0
    INCLUSION = 1
    ALIAS = 2
    HINT = 3
    NOTE = 4


@dataclass(frozen=True, slots=True)
class Term:
    """One wording of one code.

    Attributes:
        text: as the source writes it.
        row: of the code in its system.
        kind: where it comes from.
        source: entry of another vocabulary that it was taken from, e.g. a MeSH descriptor; else empty.
    """

    text: str
    row: int
    kind: TermKind
    source: str = ""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row of a code list that could not be used.

    Attributes:
        line: number in the file, from 1.
        reason: what was wrong.
    """

    line: int
    reason: str


@dataclass(frozen=True)
class CodeSystem:
    """Codes with titles, further terms and parents. Rows are positions in ``codes``.

    Attributes:
        name: ``"icd10cm"``, ``"icd10"`` or the file's stem.
        version: edition, or a hash of the file.
        language: ``"en"``, ``"zh"`` or ``"ja"``: of the titles.
        codes: as the source writes them.
        titles: one per code.
        parents: row of the next broader code, -1 at the top.
        terms: further wordings: inclusion terms, notes, aliases of the list itself.
        extended: codes with a seventh character -> (row of the code they extend, their title).
        rejected: rows of the source that were skipped.
    """

    name: str
    version: str
    language: str
    codes: Sequence[str]
    titles: Sequence[str]
    parents: Sequence[int]
    terms: Sequence[Term] = ()
    extended: dict[str, tuple[int, str]] = field(default_factory=dict)
    rejected: Sequence[RejectedRow] = ()

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row by :func:`code_key`."""
        return {code_key(code): row for row, code in reversed(list(enumerate(self.codes)))}

    @cached_property
    def children(self) -> list[list[int]]:
        """Rows of the next narrower codes, by row."""
        below: list[list[int]] = [[] for _ in self.codes]
        for row, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(row)
        return below

    def row_of(self, code: str) -> int | None:
        """Row of a code, dots and case ignored; None where the system lacks it."""
        return self.rows.get(code_key(code))

    def title_of(self, code: str) -> str | None:
        """Title of a code, dots and case ignored; None where the system lacks it."""
        key = code_key(code)
        if key in self.rows:
            return self.titles[self.rows[key]]
        return self.extended[key][1] if key in self.extended else None

    def is_leaf(self, row: int) -> bool:
        """Whether nothing narrower exists."""
        return not self.children[row]

    def unspecified_leaf(self, row: int) -> int:
        """The leaf that says no more than this code does, else the code's own row.

        Follows the children whose title says "unspecified", and an only child.
        """
        while below := self.children[row]:
            vague = [
                at for at in below if _UNSPECIFIED.search(self.titles[at]) or _PLAIN.search(self.titles[at])
            ]
            if not vague and len(below) > 1:
                return row
            row = max(vague or below, key=self._vagueness)
        return row

    def _vagueness(self, row: int) -> tuple[bool, int, bool, int]:
        """Orders siblings: without complications first, then what denies most, then codes that end in 9."""
        title = self.titles[row]
        denied = len(_DENIED.findall(title))
        return bool(_PLAIN.search(title)), denied, self.codes[row].endswith("9"), -len(title)

    def says_unspecified(self, row: int) -> bool:
        """Whether the title itself says that nothing more is known."""
        return bool(_UNSPECIFIED.search(self.titles[row]))


def parents_by_prefix(codes: Iterable[str]) -> list[int]:
    """Parent rows of a flat list: the longest proper prefix of a code that is itself a code."""
    keys = [code_key(code) for code in codes]
    row_by_key = {key: row for row, key in reversed(list(enumerate(keys)))}
    parents = []
    for row, key in enumerate(keys):
        cuts = (row_by_key.get(key[:end], -1) for end in range(len(key) - 1, 2, -1))
        parent = next((cut for cut in cuts if cut >= 0 and cut != row), -1)
        parents.append(parent)
    return parents
