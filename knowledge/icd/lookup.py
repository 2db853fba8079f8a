"""Equal names: which code a name has word for word, up to spelling, word order and word form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .canonical import loose_key, relaxed, strict_key
from .opposites import contradicts
from .system import CodeSystem, TermKind, category_of
from .wordings import Name, Wordings

_AUTHORITY = {
    TermKind.TITLE: 0,
    TermKind.INCLUSION: 0,
    TermKind.ALIAS: 1,
    TermKind.HINT: 2,
    TermKind.NOTE: 3,
}
_SOURCES = ("exact", "alias", "hint", "note")


@dataclass(frozen=True, slots=True)
class Found:
    """Codes of an equal wording, best first.

    Attributes:
        rows: of the codes; several where the wording is not unique.
        source: ``"exact"`` for titles and inclusion terms, ``"alias"`` for alias tables, ``"hint"`` for
            aliases by agreement, ``"note"`` for cross-references and likely aliases.
        closeness: 0 letter for letter, 1 canonical words, 2 without kind-of-name words, 3 and more: relaxed.
        unique: whether one code (or a code and what lies below it) carries the wording.
        title: whether the wording is a title.
    """

    rows: tuple[int, ...]
    source: str
    closeness: int
    unique: bool
    title: bool = False

    @property
    def stage(self) -> str:
        """What may be called an exact or an alias match; everything less certain is a similar name.

        An exact match is a title or inclusion term letter for letter, or a title of one code in canonical
        words. An alias match is an entry of an alias table, subtype and mode of inheritance aside.
        """
        if self.source == "alias":
            return "alias"
        sure = self.closeness == 0 or (self.closeness == 1 and self.title and len(self.rows) == 1)
        return "exact" if self.source == "exact" and sure else "fuzzy"


def find_equal(name: Name, wordings: Wordings) -> Found | None:
    """The best equal wording of a name.

    Titles and inclusion terms come before aliases and cross-references, except before an alias of this
    project or the user letter for letter that has no title of its category beside it; among each, letters
    before canonical words before words without the kind of name.
    """
    tables = ((wordings.literal, name.literal), (wordings.strict, name.strict), (wordings.loose, name.loose))
    levels = [(at, table.get(key, []) if key else []) for at, (table, key) in enumerate(tables)]
    own = [(0, _own_aliases(levels[0][1], levels[1][1], wordings))]
    for wanted, chosen in (
        ("exact", levels[:1]),
        ("alias", own),
        *((source, levels) for source in _SOURCES),
    ):
        for closeness, entries in chosen:
            if entries:
                found = _best(name, wordings, entries, closeness)
                if found.source == wanted and found.unique:
                    return found
    return None


def _own_aliases(literal: Sequence[int], strict: Sequence[int], wordings: Wordings) -> list[int]:
    """Hand-written aliases among equal letters, unless an equal title has their category."""

    def category(entry: int) -> str:
        return category_of(wordings.system.codes[wordings.rows[entry]])

    own = [at for at in literal if wordings.kinds[at] == TermKind.ALIAS and not wordings.sources[at]]
    titled = {category(at) for at in strict if wordings.kinds[at] == TermKind.TITLE} if own else ()
    return [at for at in own if category(at) not in titled]


def find_relaxed(name: Name, wordings: Wordings) -> Found | None:
    """The equal wording of a name without its subtype, mode of inheritance, onset or grade (ours).

    A number in a name of a disease counts the members of a hereditary series, so the shorter name is looked
    for as a hereditary disease first: "cataract 18" is a hereditary cataract, not a senile one. Not where
    the longer name contradicts the wording.
    """
    if wordings.cjk:
        return None
    for step, tokens in enumerate(relaxed(name.units)):
        key = strict_key(tokens)
        entries = wordings.strict.get(key) or wordings.loose.get(loose_key(tokens) or "-", [])
        if not entries:
            continue
        found = _best(name, wordings, entries, 3 + min(step // 3, 2))
        if found.unique and not any(contradicts(name.poles, wordings.poles_of(e)) for e in entries):
            return found
    return None


def _best(name: Name, wordings: Wordings, entries: Sequence[int], closeness: int) -> Found:
    def order(entry: int) -> tuple[bool, int, bool]:
        kind = TermKind(int(wordings.kinds[entry]))
        return (
            bool(wordings.other[entry]) != name.other,
            _AUTHORITY[kind],
            name.vague and not wordings.vague[entry],
        )

    ranked = sorted(entries, key=lambda entry: (*order(entry), entry))
    first = order(ranked[0])
    leaders = list(dict.fromkeys(int(wordings.rows[e]) for e in ranked if order(e) == first))
    rest = list(dict.fromkeys(int(wordings.rows[e]) for e in ranked))
    top = _broadest(leaders, wordings.system)
    rows = tuple(dict.fromkeys([top if top is not None else leaders[0], *leaders, *rest]))
    is_title = wordings.kinds[ranked[0]] == TermKind.TITLE
    return Found(rows, _SOURCES[first[1]], closeness, top is not None, bool(is_title))


def _broadest(rows: Sequence[int], system: CodeSystem) -> int | None:
    """The row that all others lie below, if there is one."""
    for row in rows:
        if all(other == row or is_below(other, row, system) for other in rows):
            return row
    return None


def is_below(row: int, ancestor: int, system: CodeSystem) -> bool:
    """Whether a code is narrower than another."""
    while row >= 0:
        row = system.parents[row]
        if row == ancestor:
            return True
    return False
