"""How far a figure can be trusted: intervals and paired tests."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


def bootstrap_interval(
    hits: Bools, *, seed: int = 0, resamples: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of a share.

    Resampling ``n`` hits with replacement draws a binomial count, so that is what is drawn.
    """
    n = len(hits)
    if n == 0:
        return 0.0, 0.0
    draws = np.random.default_rng(seed).binomial(n, float(hits.mean()), resamples) / n
    tail = (1 - level) / 2 * 100
    low, high = np.percentile(draws, [tail, 100 - tail])
    return float(low), float(high)


def mcnemar(first: Bools, second: Bools) -> float:
    """Exact two-sided p-value of McNemar's test on paired hits; 1 where they never differ."""
    only_first = int(np.sum(first & ~second))
    only_second = int(np.sum(~first & second))
    n = only_first + only_second
    if n == 0:
        return 1.0
    fewer = min(only_first, only_second)
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(fewer + 1)]
    tail = sum(math.exp(value - n * math.log(2)) for value in logs)
    return float(min(1.0, 2 * tail))
