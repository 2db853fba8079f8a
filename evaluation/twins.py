"""Near-identical cases, which inflate every figure. Source: ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..knowledge.features import character_grams

THRESHOLD = 0.55
_HASHES = 90
_BANDS = 30
_CROWDED = 50


def twin_pairs(texts: Sequence[str], *, threshold: float = THRESHOLD, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of texts whose character n-grams overlap by at least ``threshold`` (Jaccard), lower number first.

    Candidates come from MinHash bands (three rows a band, so that a pair at the threshold is missed once in
    two hundred), and each is then compared exactly.
    """
    grams = [character_grams(text)[0] for text in texts]
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, 2**31, _HASHES).astype(np.uint32) * np.uint32(2) + np.uint32(1)
    shifts = rng.integers(0, 2**31, _HASHES).astype(np.uint32)
    buckets: dict[bytes, list[int]] = {}
    for number, ids in enumerate(grams):
        if not len(ids):
            continue
        mixed = ids.astype(np.uint32) * np.uint32(0x9E3779B1)
        mixed ^= mixed >> np.uint32(15)
        lowest = (factors[:, None] * mixed + shifts[:, None]).min(axis=1).reshape(_BANDS, -1)
        for band in range(_BANDS):
            buckets.setdefault(bytes([band]) + lowest[band].tobytes(), []).append(number)
    candidates: set[tuple[int, int]] = set()
    for members in buckets.values():
        firsts = members if len(members) <= _CROWDED else members[:1]
        candidates |= {(first, second) for i, first in enumerate(firsts) for second in members[i + 1 :]}
    return sorted(pair for pair in candidates if _overlap(grams[pair[0]], grams[pair[1]]) >= threshold)


def _overlap(first: npt.NDArray[np.int32], second: npt.NDArray[np.int32]) -> float:
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)
