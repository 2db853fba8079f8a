"""A small English stemmer for retrieval: it need not give words, only the same string for kindred ones."""

from __future__ import annotations

import re

_VOWEL = re.compile("[aeiouy]")
_ENDINGS = (
    "ization", "ation", "tion", "ment", "ness", "ous", "ive", "ent", "ant", "ic", "al", "iti", "ur", "or",
    "er", "at", "ion",
)  # fmt: skip
_MIN_STEM = 4


def light_stem(word: str) -> str:
    """Strip plural, tense and one derivational ending from a lower-case word.

    Words with digits or signs, and words that would become shorter than four letters by losing a derivational
    ending, keep it. Source: ours; the measurement is with ``EnglishTokenizer``.

    Example:
        >>> light_stem("ulcers"), light_stem("ulcerated"), light_stem("k+")
        ('ulcer', 'ulcer', 'k+')
    """
    if not word.isalpha():
        return word
    word = _inflection(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word


def _inflection(word: str) -> str:
    word = _plural(word)
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= 3 and _VOWEL.search(stem):
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
            break
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _plural(word: str) -> str:
    if len(word) <= 3 or word[-1] != "s" or word[-2] in "suiy":
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "hes", "zes")):
        return word[:-2]
    return word[:-1]
