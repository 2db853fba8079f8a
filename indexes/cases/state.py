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
from ..generation import MANIFEST, Generation
from . import dense
from .dense import AnnOptions, DenseChannel
from .encoded import EncodedQuery
from .sparse import Postings, SparseChannel
from .tables import KEY_BYTES, Columns, Names
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
            check_meta(generation)
            columns = Columns.read(generation)
            vocabulary = {term: i for i, term in enumerate(generation.json("vocabulary.json"))}
            ranks = ranks_of(columns)
            segments = range(generation.meta["payload_segments"])
            names = Names.from_json(generation.json("names.json"))
            payloads = [generation.raw(f"payload.{i}.bin", np.uint8) for i in segments]
            _check_columns(columns, names, payloads, generation.meta["records"])
            return cls(
                generation,
                columns,
                names,
                vocabulary,
                payloads,
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


_META: dict[str, type | tuple[type, ...]] = {
    "records": int, "dimension": int, "embedder": str, "tokenizer": str, "whitening": (int, float),
    "text_segments": int, "texts": int, "payload_segments": int, "vocabulary": int, "labels": int,
    "views": dict, "version": str,
}  # fmt: skip
_VIEW_META: dict[str, type | tuple[type, ...]] = {
    "records": int, "mean_length": (int, float), "texts": int, "graph": bool, "changed": int, "slots": int,
    "fitted": int, "floor": (int, float), "whitened": bool,
}  # fmt: skip


def check_meta(generation: Generation) -> None:
    """Refuse a description that lacks something or has something of another type.

    Raises:
        IndexStoreError: naming what.
    """
    meta = generation.meta
    wrong = _wrong(meta, _META)
    for view in VIEWS if wrong is None else ():
        of_view = meta["views"].get(view.value)
        found = _wrong(of_view, _VIEW_META) if isinstance(of_view, dict) else "its description"
        wrong = wrong or (found and f"{found} of {view.value}")
    if wrong:
        raise IndexStoreError(f"{generation.root}: {MANIFEST} does not say {wrong} as it should; {_REBUILD}")


def _wrong(meta: dict[str, Any], types: dict[str, type | tuple[type, ...]]) -> str | None:
    for key, kind in types.items():
        value: Any = meta.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            return key
        if isinstance(value, int | float) and not 0 <= value < 2**63:
            return key
    return None


def _check_columns(
    columns: Columns, names: Names, payloads: list[npt.NDArray[np.uint8]], records: int
) -> None:
    """Refuse columns of another length, and numbers that point at nothing."""
    block, ends = columns.ids.arrays
    bounds = np.concatenate([[0], ends, [len(block)]])
    if len(ends) != records or (np.diff(bounds) < 0).any():
        raise ValueError("the record ids are not those of the records")
    for name in ("departments", "labels", "sexes", "languages"):
        column, known = getattr(columns, name), len(getattr(names, name))
        if column.shape != (records,) or column.dtype.kind != "i":
            raise ValueError(f"the {name} are not those of {records} records")
        if column.min(initial=-1) < -1 or column.max(initial=-1) >= known:
            raise ValueError(f"the {name} name something that is not there")
    if columns.ages.shape != (records,) or columns.ages.dtype.kind != "f":
        raise ValueError(f"the ages are not those of {records} records")
    if columns.digests.shape != (records, KEY_BYTES) or columns.places.shape != (records, 3):
        raise ValueError(f"the payloads are not those of {records} records")
    segment, start, size = np.asarray(columns.places).T
    if not records:
        return
    if segment.min() < 0 or segment.max() >= len(payloads) or start.min() < 0 or size.min() < 0:
        raise ValueError("a payload lies nowhere")
    ends_at = np.array([len(payload) for payload in payloads])[segment]
    if (start > ends_at).any() or (size > ends_at - start).any():
        raise ValueError("a payload goes beyond its file")


def _dense(
    generation: Generation, view: View, ranks: npt.NDArray[np.uint64], options: AnnOptions
) -> DenseChannel:
    path = generation.path(f"{view}/vectors.faiss")
    index = dense.read(path)
    slots = np.asarray(generation.array(f"{view}/slots.npy"))
    fits = index.d == generation.meta["dimension"] and slots.max(initial=-1) < index.ntotal
    fits = fits and slots.shape == ranks.shape and slots.min(initial=-1) >= -1
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
