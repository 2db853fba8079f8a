"""Ranking without luck: ties are broken by a hash, not by the order of arrival."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt


def tie_key(seed: int, query: str, record_id: str) -> bytes:
    """What orders two records of the same score: a hash of seed, query and record id."""
    content = f"{seed}\x00{query}\x00{record_id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=8).digest()


def best(scores: npt.NDArray[np.float32], count: int, key: Callable[[int], bytes]) -> npt.NDArray[np.int64]:
    """Positions of the ``count`` highest scores, best first.

    Args:
        scores: ``[n]``.
        count: how many.
        key: of a position; orders equal scores, and is only asked for those.
    """
    if len(scores) == 0 or count <= 0:
        return np.zeros(0, np.int64)
    floor = (
        np.partition(scores, len(scores) - count)[len(scores) - count]
        if count < len(scores)
        else scores.min()
    )
    places = np.flatnonzero(scores >= floor)
    places = places[np.argsort(-scores[places], kind="stable")]
    sorted_scores = scores[places]
    starts = np.flatnonzero(np.concatenate([[True], sorted_scores[1:] != sorted_scores[:-1]]))
    ends = np.concatenate([starts[1:], [len(places)]])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start > 1:
            places[start:end] = sorted(places[start:end].tolist(), key=key)
    return places[:count]
