"""Whether two names have anything in common that says what the disease is (ours).

A judge that only compares candidates finds a best one in any list, also where none fits. So a similar name
must share a word that says what it is about, or a close spelling of one, before its likelihood counts.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz

from .canonical import Tokens
from .lexicon import word_classes

_SHORTEST_SLIP = 5
_SHORTEST_PART = 7
_CLOSE = 85.0
_COMMON_START = 0.75
_SHARED_CHARACTERS = 0.6


@lru_cache(maxsize=50_000)
def content_words(units: Tokens) -> frozenset[str]:
    """Canonical words that say what a disease is: no numbers, nor words of degree, time or kind of name."""
    classes = word_classes()
    dull = classes.generic | classes.vague | classes.light | classes.stop
    return frozenset(word for word in units if word not in dull and not word[0].isdigit())


@lru_cache(maxsize=50_000)
def _content_text(text: str) -> str:
    for word in word_classes().cjk_generic:
        text = text.replace(word, " ")
    return "".join(" " if char.isdigit() else char for char in text)


@lru_cache(maxsize=200_000)
def is_close(one: str, other: str) -> bool:
    """Whether two words are spellings, forms or compounds of each other."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _SHORTEST_SLIP:
        return False
    if len(shorter) >= _SHORTEST_PART and longer.endswith(shorter):
        return True
    if shorter[0] != longer[0]:
        return False
    start = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    if start >= max(_SHORTEST_SLIP, _COMMON_START * len(shorter)):
        return True
    return fuzz.ratio(shorter, longer, score_cutoff=_CLOSE) > 0


def is_grounded(name: Tokens, wording: Tokens, *, cjk: bool) -> bool:
    """Whether two names share a word that says what the disease is, in spelling if not to the letter.

    Of Chinese and Japanese names: two neighbouring characters, or most characters of the shorter one.
    """
    if cjk:
        return _share_characters("".join(name), "".join(wording))
    ours, theirs = content_words(name), content_words(wording)
    if ours & theirs:
        return True
    return any(is_close(one, other) for one in ours for other in theirs)


def _share_characters(name: str, wording: str) -> bool:
    ours, theirs = _content_text(name), _content_text(wording)
    pairs = (ours[at : at + 2] for at in range(len(ours) - 1))
    if any(pair in theirs for pair in pairs if " " not in pair):
        return True
    one, other = set(ours) - {" "}, set(theirs) - {" "}
    smaller = min(len(one), len(other))
    return smaller > 0 and len(one & other) >= _SHARED_CHARACTERS * max(len(one), len(other))
