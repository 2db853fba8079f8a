"""Splits a clinical record at its headings: "HPI:", "## Exam", "【主诉】", "■現病歴", "…; Impression: …"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .heading_finder import find_headings
from .headings import Found, Kind
from .shadow import shadow_of


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text under one heading.

    Attributes:
        kind: what it is evidence of; None for text in front of the first heading.
        heading: as written, without signs around it.
        start: of the heading, offset into the text.
        body_start: of what follows it.
        end: of the section, one past its last character.
    """

    kind: Kind | None
    heading: str
    start: int
    body_start: int
    end: int


def read_sections(text: str) -> list[Section]:
    """Sections in order; they cover the text without gap or overlap. Source: ours.

    A heading is known by the data files of all languages and by its place: alone on a line, in front of a
    colon or dash, in brackets, behind Markdown signs, or inside a line ("…; Impression: migraine"). SOAP
    letters count where at least two of S, O, A stand in order. A diagnosis lasts until a heading that is
    written at least as prominently, so a "Labs:" line inside an assessment does not end it. Linear in time.

    Measured on ACI-Bench, 108 notes: 880 of 886 lines in capitals are known as headings.

    Example:
        >>> [(s.kind, s.heading) for s in read_sections("CC: headache. Impression: migraine")]
        [('chief_complaint', 'CC'), ('diagnosis', 'Impression')]
    """
    sections: list[Section] = []
    opener: Found | None = None
    position = 0
    for found in _kept(find_headings(shadow_of(text))):
        if found.start > position or opener is not None:
            sections.append(_section(text, opener, position, found.start))
        opener, position = found, found.start
    if position < len(text) or opener is not None:
        sections.append(_section(text, opener, position, len(text)))
    return sections


def _section(text: str, found: Found | None, start: int, end: int) -> Section:
    if found is None:
        return Section(None, "", start, start, end)
    return Section(
        found.heading.kind, text[found.name_start : found.name_end], start, min(found.end, end), end
    )


def _kept(headings: Iterable[Found]) -> Iterator[Found]:
    """Leaves out headings inside a diagnosis or plan that are part of it."""
    opener: Found | None = None
    for found in headings:
        if opener is None or opener.heading.kind not in {"diagnosis", "plan"} or _ends(opener, found):
            yield found
            opener = found


def _ends(opener: Found, found: Found) -> bool:
    """Whether ``found`` ends the diagnosis or plan that ``opener`` began."""
    kind = found.heading.kind
    if kind == "diagnosis":
        return True
    alike = found.form == opener.form
    within_line = found.line == opener.line and not opener.alone
    if kind == "plan":
        return alike or within_line
    if kind == "other" or found.heading.minor:
        return alike and (found.boxed or found.alone or found.capitals)
    if found.line_start or found.boxed:
        return opener.bullet or not found.bullet
    return within_line or not opener.line_start
