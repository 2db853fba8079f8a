"""Clutter around a diagnosis taken off, what it says kept as qualifiers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .lexicon import denoising

_MAX_CHARS = 400
_MAX_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class CleanText:
    """A diagnosis without clutter.

    Attributes:
        text: what is left; the trimmed original where nothing would be.
        qualifiers: ``suspected``, ``history``, ``left``, ``right``, ``bilateral``, as found, sorted.
    """

    text: str
    qualifiers: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def _patterns() -> tuple[list[re.Pattern[str]], list[tuple[str, re.Pattern[str]]]]:
    rules = denoising()
    removals = [re.compile(pattern, re.IGNORECASE) for pattern in rules.remove]
    kept = [(rule.name, re.compile(rule.pattern, re.IGNORECASE)) for rule in rules.qualifiers]
    return removals, kept


def denoise(text: str) -> CleanText:
    """Take numbering, question marks, codes, hedges and side marks off a diagnosis.

    Idempotent: the text of the result is not changed by a second pass. Text beyond 400 characters is
    cut. An empty result falls back to the trimmed original.
    """
    removals, kept = _patterns()
    start = " ".join(text.replace("\0", " ").split())[:_MAX_CHARS].strip()
    now, found = start, set()
    for _ in range(_MAX_ROUNDS):
        before = now
        for pattern in removals:
            now = pattern.sub(" ", now)
        for name, pattern in kept:
            now, hits = pattern.subn(" ", now)
            if hits:
                found.add(name)
        now = " ".join(now.split()).strip(" ,，、;；:：-–—")
        if now == before:
            break
    else:
        return CleanText(start, ())
    return CleanText(now, tuple(sorted(found))) if now else CleanText(start, ())
