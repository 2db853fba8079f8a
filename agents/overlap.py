"""Whether two short texts speak of the same things: shared terms, in any of the three languages."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib.resources import files

_WORD = re.compile(r"[a-z0-9]+(?:[.+/%-][a-z0-9]+)*[+%]?|[぀-ヿ㐀-鿿豈-﫿々]+")
_CJK = re.compile(r"[぀-ヿ㐀-鿿豈-﫿々]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    return frozenset(files(__package__).joinpath("data", "function_words.txt").read_text("utf-8").split())


def terms(text: str) -> frozenset[str]:
    """Lower-case words, and pairs of characters where a script has no spaces."""
    found: set[str] = set()
    skipped = _function_words()
    for run in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if not _CJK.match(run):
            if run not in skipped:
                found.add(run)
        elif len(run) == 1:
            found.add(run)
        else:
            found.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(found)


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """How much of ``part`` is in ``whole``, 0..1; 0 where ``part`` is empty."""
    return len(part & whole) / len(part) if part else 0.0


def best_sentence(text: str, about: frozenset[str], limit: int = 200) -> str:
    """The sentence of ``text`` that shares most terms with ``about``, the first of equals.

    Args:
        text: of a record.
        about: terms of the case.
        limit: characters; a longer sentence is cut with an ellipsis.
    """
    sentences = [" ".join(piece.split()) for piece in _SENTENCE.split(text)]
    sentences = [piece for piece in sentences if piece]
    if not sentences:
        return ""
    best = max(sentences, key=lambda piece: len(terms(piece[: 4 * limit]) & about))
    return best if len(best) <= limit else best[: limit - 1].rstrip() + "…"
