"""One generation of a case index, opened."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import IndexStoreError
from ...language.tokenizers import Tokenizer
from ...records.schema import VIEWS, View
from ..generation import Generation
from . import dense
from .dense import AnnOptions, DenseChannel
from .encoded import EncodedQuery
from .sparse import Postings, SparseChannel
from .tables import Columns, Names
from .update import ranks_of, read_whitening
from .whitening import Whitening

_REMEMBERED = 16
_REBUILD = "rebuild it with `wardround cases build`"


class Recent:
    """The last few encoded queries by key; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[bytes, EncodedQuery] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> EncodedQuery | None:
        """What is held under a key."""
        with self._lock:
            return self._held.get(key)

    def put(self, key: bytes, encoded: EncodedQuery) -> None:
        """Hold a query, and let the oldest go."""
        with self._lock:
            self._held[key] = encoded
            while len(self._held) > self._most:
                self._held.popitem(last=False)


@dataclass(frozen=True)
class State:
    """Everything a search needs; never changes, so several threads may read it.

    Attributes:
        generation: whose files these are.
        columns: one entry per record.
        names: strings behind the columns.
        vocabulary: term to id.
        payloads: memory-mapped segments.
        transforms: of vectors, by view.
        dense: channels by view.
        sparse: channels by view.
        encoded: the last few queries.
    """

    generation: Generation
    columns: Columns
    names: Names
    vocabulary: dict[str, int]
    payloads: list[npt.NDArray[np.uint8]]
    transforms: list[Whitening]
    dense: list[DenseChannel]
    sparse: list[SparseChannel]
    encoded: Recent = field(default_factory=lambda: Recent(_REMEMBERED))

    def encode(
        self,
        raw: npt.NDArray[np.float32],
        words: tuple[tuple[str, ...], ...],
        present: npt.NDArray[np.bool_],
    ) -> EncodedQuery:
        """Vectors ``[4, d]`` and words of four views as this state compares them."""
        vectors = np.zeros_like(raw)
        terms, weights = [], np.zeros(len(VIEWS))
        for i, found in enumerate(words):
            if present[i]:
                vectors[i] = self.transforms[i].apply(raw[i : i + 1])[0]
            numbers = [self.vocabulary.get(word, -1) for word in found]
            terms.append(np.array([number for number in numbers if number >= 0], np.int32))
            unknown = Counter(word for word, number in zip(found, numbers, strict=True) if number < 0)
            weights[i] = self.sparse[i].own_weight(terms[i], list(unknown.values()))
        return EncodedQuery(vectors, tuple(terms), weights, present, raw, words, self.generation.name)

    @property
    def meta(self) -> dict[str, Any]:
        """What the index wrote about itself."""
        return self.generation.meta

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row of each record id."""
        return {record: row for row, record in enumerate(self.columns.ids)}

    @classmethod
    def load(cls, generation: Generation, tokenizer: Tokenizer, options: AnnOptions) -> State:
        """Open a generation's files.

        Raises:
            IndexStoreError: damaged.
        """
        try:
            columns = Columns.read(generation)
            vocabulary = {term: i for i, term in enumerate(generation.json("vocabulary.json"))}
            ranks = ranks_of(columns)
            segments = range(generation.meta["payload_segments"])
            return cls(
                generation,
                columns,
                Names.from_json(generation.json("names.json")),
                vocabulary,
                [generation.raw(f"payload.{i}.bin", np.uint8) for i in segments],
                [read_whitening(generation, view) for view in VIEWS],
                [_dense(generation, view, ranks, options) for view in VIEWS],
                [
                    SparseChannel(_postings(generation, view), vocabulary, columns.ids, tokenizer)
                    for view in VIEWS
                ],
            )
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise IndexStoreError(
                f"{generation.root}: its files do not fit together ({type(error).__name__}: {error}); "
                f"{_REBUILD}"
            ) from error


def _dense(
    generation: Generation, view: View, ranks: npt.NDArray[np.uint64], options: AnnOptions
) -> DenseChannel:
    path = generation.path(f"{view}/vectors.faiss")
    index = dense.read(path)
    slots = np.asarray(generation.array(f"{view}/slots.npy"))
    fits = index.d == generation.meta["dimension"] and slots.max(initial=-1) < index.ntotal
    if not fits or not dense.sound(index):
        raise IndexStoreError(f"{path}: does not fit the manifest; {_REBUILD}")
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = options.search_breadth
    return DenseChannel(index, slots, ranks, float(generation.meta["views"][view]["floor"]))


def _postings(generation: Generation, view: View) -> Postings:
    meta = generation.meta["views"][view]
    return Postings(
        generation.array(f"{view}/post_pointers.npy"),
        generation.array(f"{view}/post_rows.npy"),
        generation.array(f"{view}/post_weights.npy"),
        int(meta["records"]),
        float(meta["mean_length"]),
    )
