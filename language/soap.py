"""SOAP notes: the letters S, O, A and P as headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .headings import NOTHING_BEHIND, Found, Heading

_SOAP = re.compile(
    r"(?:^|(?<=[\s.;。；!?,、]))[\[(■●◆#*]{0,3}([SOAP])(?:[)\]*]{0,3}[ \t]*[:)]|[)\]*]{1,3}|[ \t]*$)",
    re.MULTILINE,
)
_MAX_INDENT = 40
_SOAP_KINDS = {
    "S": Heading("history", minor=False, weak=False, without_colon=False),
    "O": Heading("examination", minor=False, weak=False, without_colon=False),
    "A": Heading("diagnosis", minor=False, weak=False, without_colon=False),
    "P": Heading("plan", minor=False, weak=False, without_colon=False),
}  # fmt: skip


def find_soap(shadow: str) -> list[Found]:
    """SOAP letters as headings, where S and O, O and A, or S and A stand in this order."""
    letters = list(_SOAP.finditer(shadow))
    first: dict[str, int] = {}
    for letter in letters:
        first.setdefault(letter[1], letter.start())
    at = [first[letter] for letter in "SOA" if letter in first]
    if len(at) < 2 or at != sorted(at):
        return []
    return list(_placed(shadow, letters))


def _placed(shadow: str, letters: list[re.Match[str]]) -> Iterator[Found]:
    line = 0
    position = 0
    for letter in letters:
        line = max(line, shadow.rfind("\n", position, letter.start(1)) + 1)
        position = letter.start(1)
        before = shadow[line : letter.start()] if letter.start() - line <= _MAX_INDENT else "x"
        yield Found(
            heading=_SOAP_KINDS[letter[1]],
            start=letter.start(),
            name_start=letter.start(1),
            name_end=letter.end(1),
            end=letter.end(),
            line=line,
            line_start=not before.strip(),
            alone=NOTHING_BEHIND.match(shadow, letter.end()) is not None,
            capitals=True,
            boxed=False,
            bullet=False,
        )
