"""Clutter around a diagnosis taken off, what it says kept as qualifiers."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from .canonical import fold
from .lexicon import Qualifier, denoising

_MAX_CHARS = 400
_MAX_ROUNDS = 12
_INVISIBLE = ("Cf", "Cs", "Co", "Cn")
_EDGES = " .,;:!?。，、；：！？-–—_"
_CODE = r"[A-Z][0-9][0-9A-Z](?:\.?[0-9A-Z]{1,4})?\.?-?"
_CODES = re.compile(rf"{_CODE}(?:\s*(?:[,;/|+&~、，；\s\-‐-―]|\bto\b|\band\b)\s*{_CODE})+", re.IGNORECASE)
_NO_CODE = re.compile(r"[A-Z][0-9][0-9A-Z]\.[0-9A-Z]{1,4}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CleanText:
    """A diagnosis without clutter.

    Attributes:
        text: what is left; the trimmed original where nothing would be.
        qualifiers: ``suspected``, ``history``, ``family``, ``left``, ``right``, ``bilateral``, as found,
            sorted.
        past: whether a qualifier says that the diagnosis is over or another's.
    """

    text: str
    qualifiers: tuple[str, ...] = ()
    past: bool = False


def tidy(text: str) -> str:
    """Compatibility forms folded, invisible and direction marks dropped, control characters blank."""
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFKC", text)
        kinds = ((char, unicodedata.category(char)) for char in text)
        text = "".join(" " if kind == "Cc" else char for char, kind in kinds if kind not in _INVISIBLE)
    return " ".join(text.split())


def names_nothing(text: str) -> bool:
    """Whether a tidy text denies a diagnosis, says that there is none, or is no name at all.

    No name is several codes, a code with a point that stands alone, and one letter however often.
    """
    bare = fold(text).strip(_EDGES)
    if len(set(bare)) <= 1 and bare.isascii():
        return True
    if bare in denoising().nothing or _CODES.fullmatch(text) or _NO_CODE.fullmatch(text):
        return True
    return any(pattern.search(bare) for pattern in _absent())


@lru_cache(maxsize=1)
def _absent() -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in denoising().absent]


@lru_cache(maxsize=1)
def _patterns() -> tuple[list[re.Pattern[str]], list[tuple[Qualifier, re.Pattern[str]]]]:
    rules = denoising()
    removals = [re.compile(pattern, re.IGNORECASE) for pattern in rules.remove]
    kept = [(rule, re.compile(rule.pattern, re.IGNORECASE)) for rule in rules.qualifiers]
    return removals, kept


def denoise(text: str) -> CleanText:
    """Take numbering, question marks, codes, hedges and side marks off a diagnosis.

    Idempotent: the text of the result is not changed by a second pass. Text beyond 400 characters is
    cut. An empty result falls back to the trimmed original.
    """
    removals, kept = _patterns()
    start = " ".join(text.replace("\0", " ").split())[:_MAX_CHARS].strip()
    now = start
    found: set[str] = set()
    past = False
    for _ in range(_MAX_ROUNDS):
        before = now
        for pattern in removals:
            now = pattern.sub(" ", now)
        for rule, pattern in kept:
            now, hits = pattern.subn(" ", now)
            if hits:
                found.add(rule.name)
                past |= rule.past
        now = " ".join(now.split()).strip(" ,，、;；:：-–—")
        if now == before:
            break
    else:
        return CleanText(start, ())
    return CleanText(now, tuple(sorted(found)), past) if now else CleanText(start, ())
