"""Opposite words: hyper/hypo, acute/chronic, left/right, with/without never stand for each other (ours)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import numpy as np
from scipy import sparse

from .lexicon import opposites

Pole = tuple[str, int]
_SHORTEST_STEM = 4
_ENDING = re.compile(r"(?<=[a-z]{4})(?:isms?|ias?|ics?|ical|ions?|ives?|tics?|al|y|ous|os[ei]s|ory|ed|e|s)$")


@lru_cache(maxsize=1)
def _word_poles() -> dict[str, tuple[Pole, ...]]:
    poles: dict[str, list[Pole]] = {}
    for group, sides in enumerate(opposites().words):
        for side, words in enumerate(sides):
            for word in words:
                poles.setdefault(word, []).append((f"w{group}", side))
    return {word: tuple(found) for word, found in poles.items()}


@lru_cache(maxsize=200_000)
def _poles_of_word(word: str) -> tuple[Pole, ...]:
    found = list(_word_poles().get(word, ()))
    for group, prefixes in enumerate(opposites().prefixes):
        for side, prefix in enumerate(prefixes):
            if word.startswith(prefix) and len(word) >= len(prefix) + _SHORTEST_STEM:
                found.append((f"p{group}:{_ENDING.sub('', word[len(prefix) :])}", side))
    return tuple(found)


def english_poles(tokens: Iterable[str]) -> set[Pole]:
    """Which sides of which oppositions canonical words take."""
    return {pole for token in tokens for pole in _poles_of_word(token)}


@lru_cache(maxsize=2)
def _cjk_pattern(language: str) -> tuple[re.Pattern[str], dict[str, tuple[Pole, ...]]]:
    groups = opposites().ja if language == "ja" else opposites().zh
    poles: dict[str, list[Pole]] = {}
    for group, sides in enumerate(groups):
        for side, strings in enumerate(sides):
            for string in strings:
                poles.setdefault(string, []).append((f"c{group}", side))
    longest_first = sorted(poles, key=lambda s: (-len(s), s))
    return re.compile("|".join(map(re.escape, longest_first))), {s: tuple(p) for s, p in poles.items()}


def cjk_poles(text: str, language: str) -> set[Pole]:
    """Which sides of which oppositions a canonical Chinese or Japanese string takes."""
    pattern, poles = _cjk_pattern(language)
    return {pole for found in pattern.findall(text) for pole in poles[found]}


def contradicts(one: AbstractSet[Pole], other: AbstractSet[Pole]) -> bool:
    """Whether two names take opposite sides of an opposition without sharing one."""
    axes = {axis for axis, _ in one} & {axis for axis, _ in other}
    return any(not ({s for a, s in one if a == axis} & {s for a, s in other if a == axis}) for axis in axes)


class PoleTable:
    """Sides taken by many names, as sparse matrices, for counting contradictions of pairs.

    Args:
        rows: sides of each wording.
    """

    def __init__(self, rows: Sequence[AbstractSet[Pole]]) -> None:
        self._axis: dict[str, int] = {}
        self._pole: dict[Pole, int] = {}
        for row in rows:
            for axis, side in row:
                self._axis.setdefault(axis, len(self._axis))
                self._pole.setdefault((axis, side), len(self._pole))
        self.axes, self.poles = self.encode(rows)

    def encode(self, rows: Sequence[AbstractSet[Pole]]) -> tuple[sparse.csr_array, sparse.csr_array]:
        """0/1 matrices of names by axis and by side; sides that no wording takes are left out."""
        axes = [sorted({self._axis[axis] for axis, _ in row if axis in self._axis}) for row in rows]
        poles = [sorted(self._pole[pole] for pole in row if pole in self._pole) for row in rows]
        return one_hot(axes, len(self._axis)), one_hot(poles, len(self._pole))


def one_hot(rows: Sequence[Sequence[int]], width: int) -> sparse.csr_array:
    """Sparse 0/1 matrix of rows given as column numbers."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.array([column for row in rows for column in row], np.int32)
    return sparse.csr_array(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), max(1, width))
    )
