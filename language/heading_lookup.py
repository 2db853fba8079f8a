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
            first, heading = self._spelt(words)
            if heading is not None:
                return first, heading
        if last.lower() in self.table.last_words:
            first, heading = self._latin_suffix(words)
            if heading is not None:
                return (0, None) if self._is_finding(heading, words, first) else (first, heading)
        key = "hx" if last.lower().endswith("hx") else last.lower()  # GynHx, SocHx
        return len(words) - 1, self.table.latin.get(key) if key == "hx" else self.table.squashed.get(key)

    def _latin_suffix(self, words: list[re.Match[str]]) -> tuple[int, Heading | None]:
        for first in range(max(0, len(words) - self.table.max_words), len(words)):
            heading = self.table.latin.get(key_of([word[0] for word in words[first:]]))
            if heading is not None:
                return first, heading
        return 0, None

    def _is_finding(self, heading: Heading, words: list[re.Match[str]], first: int) -> bool:
        """As in "Gait assessment", but not "no pain. Assessment"."""
        if not heading.weak or first == 0 or self.parted(words[first - 1].end(), words[first].start()):
            return False
        return words[first - 1][0].lower() in self.table.not_diagnosis_after

    def _spelt(self, words: list[re.Match[str]]) -> tuple[int, Heading | None]:
        first = len(words)
        while first > 0 and len(words[first - 1][0]) == 1 and words[first - 1][0].isalpha():
            first -= 1
        joined = "".join(word[0] for word in words[first:]).lower()
        if len(joined) < _MIN_SPELT:
            return first, self.table.latin.get(joined) if len(joined) > 1 else None
        return first, self.table.squashed.get(joined)

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
        """Moves left over words that belong to the heading: "Final Clinical Diagnosis", "FH/SH"."""
        while first > 0 and not self.parted(words[first - 1].end(), words[first].start()):
            word = words[first - 1][0]
            if word in {"/", "&"} and first > 1:  # FH/SH
                first -= 2
            elif word.lower() in self.table.modifiers and not word.isdigit():
                first -= 1
            else:
                break
        return first

    def all_modify(self, words: list[re.Match[str]], heading: Heading) -> bool:
        """Whether words in front of a heading leave it what it is."""
        if heading.kind == "diagnosis":
            return all(w[0].lower() in self.table.modifiers or w[0] in {"&", "/"} for w in words)
        return not words

    def parted(self, left: int, right: int) -> bool:
        """Whether a sentence, clause or item ends between two offsets."""
        return _BOUNDARY.search(self.shadow, left, right) is not None
