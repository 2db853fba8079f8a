"""Looks up which heading a run of words ends with."""

from __future__ import annotations

import re
from itertools import pairwise

from .headings import HAN_OR_KANA, Heading, HeadingTable, key_of

_BOUNDARY = re.compile(r"[.;!?,。；！？，、)\]:|>•■●]|\s{2,}|\t")
_MAX_SPACED = 6
_MIN_SPELT = 4


class HeadingLookup:
    """Answers for words of one shadow text, given as matches of ``WORD`` in it."""

    def __init__(self, shadow: str, table: HeadingTable) -> None:
        self.shadow = shadow
        self.table = table

    def suffix(self, words: list[re.Match[str]]) -> tuple[int, Heading | None]:
        """The longest heading that ends with the last word: index of its first word, and what it is."""
        if not words:
            return 0, None
        last = words[-1][0]
        if HAN_OR_KANA.match(last):
            return self._cjk_suffix(words)
        if len(last) == 1:
            spelt = self._spelt(words)
            if spelt[1] is not None:
                return spelt
        if last.lower() in self.table.last_words:
            for first in range(max(0, len(words) - self.table.max_words), len(words)):
                heading = self.table.latin.get(key_of([w[0] for w in words[first:]]))
                if heading is not None:
                    before = words[first - 1][0].lower() if first else ""
                    if heading.weak and before in self.table.not_diagnosis_after:
                        return 0, None
                    return first, heading
        if last.lower().endswith("hx"):  # GynHx, SocHx
            return len(words) - 1, self.table.latin.get("hx")
        return len(words) - 1, self.table.squashed.get(last.lower())

    def _spelt(self, words: list[re.Match[str]]) -> tuple[int, Heading | None]:
        first = len(words)
        while first > 0 and len(words[first - 1][0]) == 1 and words[first - 1][0].isalpha():
            first -= 1
        if len(words) - first < _MIN_SPELT:
            return 0, None
        return first, self.table.squashed.get("".join(w[0] for w in words[first:]).lower())

    def _cjk_suffix(self, words: list[re.Match[str]]) -> tuple[int, Heading | None]:
        cjk = self.table.cjk
        for first in range(max(0, len(words) - _MAX_SPACED), len(words) - 1):
            pieces = words[first:]
            joined = all(not self.shadow[a.end() : b.start()].strip() for a, b in pairwise(pieces))
            heading = cjk.get("".join(w[0] for w in pieces).lower()) if joined else None
            if heading is not None:
                return first, heading
        last = words[-1][0]
        for length in range(min(len(last), self.table.max_chars), 0, -1):
            heading = cjk.get(last[-length:])
            if heading is not None and (length == len(last) or not heading.weak):
                return len(words) - 1, heading
        return 0, None

    def first_modifier(self, words: list[re.Match[str]], first: int) -> int:
        """Moves left over words that belong to the heading: "Final Clinical Diagnosis", "Travel History"."""
        while first > 0 and not self.parted(words[first - 1].end(), words[first].start()):
            word = words[first - 1][0]
            if word.lower() not in self.table.modifiers or word.isdigit():
                break
            first -= 1
        return first

    def all_modify(self, words: list[re.Match[str]], heading: Heading) -> bool:
        """Whether words in front of a heading leave it what it is."""
        if heading.kind == "diagnosis":
            return all(w[0].lower() in self.table.modifiers or w[0] in {"&", "/"} for w in words)
        return not words

    def parted(self, left: int, right: int) -> bool:
        """Whether a sentence, clause or item ends between two offsets."""
        return _BOUNDARY.search(self.shadow, left, right) is not None
