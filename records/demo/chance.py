"""Draws that are the same on every Python: only ``random.Random.random`` is promised to stay."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

T = TypeVar("T")


class Chance:
    """A seeded source of draws.

    Args:
        seed: two of the same seed draw the same.
    """

    __slots__ = ("uniform",)

    def __init__(self, seed: int) -> None:
        self.uniform = random.Random(seed).random  # noqa: S311  # not for secrets

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self.uniform() < probability

    def below(self, n: int) -> int:
        """A whole number in 0..n-1."""
        return int(self.uniform() * n)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, each as likely as the next."""
        return items[int(self.uniform() * len(items))] if len(items) > 1 else items[0]

    def triangular(self, low: float, mode: float, high: float) -> float:
        """A number between low and high, most often near mode."""
        if high <= low:
            return low
        u = self.uniform()
        cut = (mode - low) / (high - low)
        if u < cut:
            return float(low + (u * (high - low) * (mode - low)) ** 0.5)
        return float(high - ((1 - u) * (high - low) * (high - mode)) ** 0.5)

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """A new list in another order."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = int(self.uniform() * (i + 1))
            out[i], out[j] = out[j], out[i]
        return out


class Wheel(Generic[T]):
    """Items with weights, to draw from many times."""

    __slots__ = ("_cumulative", "_items", "_total")

    def __init__(self, weighted: Iterable[tuple[T, float]]) -> None:
        pairs = [(item, weight) for item, weight in weighted if weight > 0]
        self._items = [item for item, _ in pairs]
        self._cumulative = list(accumulate(weight for _, weight in pairs))
        self._total = self._cumulative[-1]

    def draw(self, chance: Chance) -> T:
        """One item, as likely as its share of the weights."""
        at = bisect_right(self._cumulative, chance.uniform() * self._total)
        return self._items[min(at, len(self._items) - 1)]
