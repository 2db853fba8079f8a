"""Records to search and queries to ask, split so that no query is ever searched for with itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..records.schema import OutpatientRecord
from .twins import twin_pairs


@dataclass(frozen=True)
class Split:
    """One round: what is searched and who asks.

    Attributes:
        records: to search.
        queries: places in the list of all queries.
        left_out: each query is among the records and has to be left out.
    """

    records: list[OutpatientRecord]
    queries: list[int]
    left_out: bool = False


def folds_of(text: str | int | None) -> int | None:
    """Number of folds; 0 for leave-one-out, None for no cross-validation.

    Raises:
        InputError: neither a number of at least 2 nor ``loo``.
    """
    if text is None:
        return None
    if str(text).casefold() == "loo":
        return 0
    if str(text).isdigit() and int(text) >= 2:
        return int(text)
    raise InputError(f"--cv {text}: give a number of folds of at least 2, or loo")


def splits(
    records: Sequence[OutpatientRecord], queries: Sequence[OutpatientRecord], folds: int | None, seed: int
) -> Iterator[Split]:
    """Rounds of an evaluation.

    Args:
        records: labelled.
        queries: the same list where ``folds`` is given.
        folds: as :func:`folds_of` gives it.
        seed: decides with each record's id which fold it falls into.
    """
    if folds is None:
        yield Split(list(records), list(range(len(queries))))
        return
    if folds == 0:
        yield Split(list(records), list(range(len(queries))), left_out=True)
        return
    order = sorted(range(len(records)), key=lambda i: _place(seed, records[i].id))
    for part in np.array_split(np.array(order, int), min(folds, len(records))):
        asked = set(part.tolist())
        kept = [record for i, record in enumerate(records) if i not in asked]
        if kept and asked:
            yield Split(kept, sorted(asked))


def _place(seed: int, record_id: str) -> str:
    return hashlib.sha256(f"{seed}\x1f{record_id}".encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Twins:
    """Near-identical cases among records and queries.

    Attributes:
        count: cases that have a twin.
        records: places of records to drop: later ones of a group, and every one that is a query's twin.
        queries: places of queries to drop: later ones of a group.
    """

    count: int
    records: frozenset[int]
    queries: frozenset[int]


def find_twins(records: Sequence[str], queries: Sequence[str] | None) -> Twins:
    """Twins within the records, within the queries, and across.

    Args:
        records: texts.
        queries: texts; None where the queries are the records.
    """
    texts = [*records, *(queries or ())]
    pairs = twin_pairs(texts)
    n = len(records)
    return Twins(
        len({case for pair in pairs for case in pair}),
        frozenset(b for a, b in pairs if b < n) | frozenset(a for a, b in pairs if a < n <= b),
        frozenset(b - n for a, b in pairs if a >= n),
    )
