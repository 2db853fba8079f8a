"""One view's dense channel: an inner-product FAISS index over distinct texts, behind ``FaissVectorStore``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import faiss as typed_faiss
import numpy as np
import numpy.typing as npt
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.vector_stores.faiss import FaissVectorStore

from ...errors import IndexStoreError

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]
Rows = npt.NDArray[np.int64]

faiss: Any = typed_faiss  # its stubs lack half of what is used here
CHUNK = 8192


@dataclass(frozen=True)
class AnnOptions:
    """How vectors are searched.

    Attributes:
        flat_limit: up to so many distinct texts, every vector is compared.
        links: of the HNSW graph, a node.
        build_breadth: candidates considered while the graph is built.
        search_breadth: candidates considered while it is searched.
        threads: for building; with one the graph is the same each time.
    """

    flat_limit: int = 20_000
    links: int = 32
    build_breadth: int = 100
    search_breadth: int = 384
    threads: int = 1


def new_index(dimension: int, *, graph: bool, options: AnnOptions) -> Any:
    """An empty FAISS index of half-precision vectors: flat, or an HNSW graph over them."""
    half = faiss.ScalarQuantizer.QT_fp16
    if not graph:
        index = faiss.IndexScalarQuantizer(dimension, half, faiss.METRIC_INNER_PRODUCT)
    else:
        index = faiss.IndexHNSWSQ(dimension, half, options.links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = options.build_breadth
        index.hnsw.efSearch = options.search_breadth
    index.is_trained = True  # half precision has nothing to learn
    return index


def fill(index: Any, chunks: Iterator[Floats], options: AnnOptions) -> None:
    """Add vectors chunk by chunk."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(options.threads)
    try:
        for chunk in chunks:
            index.add(np.ascontiguousarray(chunk, np.float32))
    finally:
        faiss.omp_set_num_threads(before)


def write(index: Any, path: Path) -> None:
    """Write a FAISS index."""
    faiss.write_index(index, str(path))


def read(path: Path, *, writable: bool = False) -> Any:
    """Read a FAISS index, memory-mapped unless it is to be changed.

    Raises:
        IndexStoreError: damaged.
    """
    try:
        index = faiss.read_index(str(path), 0 if writable else faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise IndexStoreError(
            f"{path}: not a readable FAISS index; rebuild it with `wardround cases build`"
        ) from error
    return index


def codes_of(index: Any) -> Halves:
    """The stored vectors ``[n, d]``, not copied; valid as long as the index lives."""
    storage = faiss.downcast_index(index.storage) if hasattr(index, "hnsw") else index
    size = int(storage.codes.size())
    if size == 0:
        return np.zeros((0, index.d), np.float16)
    flat = faiss.rev_swig_ptr(storage.codes.data(), size)
    return np.asarray(flat.view(np.float16).reshape(-1, index.d))


def sound(index: Any) -> bool:
    """Whether every link of an HNSW graph points at a vector that exists."""
    if not hasattr(index, "hnsw"):
        return True
    links = index.hnsw.neighbors
    if links.size() == 0:
        return bool(index.ntotal == 0)
    values = faiss.rev_swig_ptr(links.data(), int(links.size()))
    return bool(
        values.min() >= -1 and values.max() < index.ntotal and 0 <= index.hnsw.entry_point < index.ntotal
    )


class _LiveOnly:
    """A FAISS index some of whose vectors belong to no record any more; those are never found."""

    def __init__(self, index: Any, live: npt.NDArray[np.bool_]) -> None:
        self._index = index
        self._bits = np.packbits(live, bitorder="little")
        self._selector = faiss.IDSelectorBitmap(len(live), faiss.swig_ptr(self._bits))
        if hasattr(index, "hnsw"):
            self._parameters = faiss.SearchParametersHNSW(
                sel=self._selector, efSearch=index.hnsw.efSearch, bounded_queue=True
            )
        else:
            self._parameters = faiss.SearchParameters(sel=self._selector)
        self.ntotal = index.ntotal
        self.d = index.d

    def search(self, queries: Floats, count: int) -> tuple[Floats, Rows]:
        """As ``faiss.Index.search``."""
        distances, slots = self._index.search(queries, count, params=self._parameters)
        return distances, slots


class DenseChannel:
    """Search and exact scores of one view.

    A slot is a distinct text; many records may share it.

    Args:
        index: FAISS index over slots.
        slots: ``[records]`` int32, -1 where a record lacks the view.
        ranks: ``[records]`` uint64, order of records within a slot; independent of the order of arrival.
        floor: mean cosine of two records, which counts as 0.
    """

    def __init__(
        self, index: Any, slots: npt.NDArray[np.int32], ranks: npt.NDArray[np.uint64], floor: float
    ) -> None:
        self.index = index
        self.slots = slots
        self.floor = floor
        self.vectors = codes_of(index)
        filled = np.flatnonzero(slots >= 0)
        self._rows = filled[np.lexsort((ranks[filled], slots[filled]))]
        per_slot = np.bincount(slots[filled], minlength=index.ntotal)
        self._starts = np.concatenate([[0], np.cumsum(per_slot)])
        self._shared = bool(per_slot.max(initial=1) > 1)
        live = per_slot > 0
        self.dead = int(index.ntotal - live.sum())
        self.store = FaissVectorStore(faiss_index=_LiveOnly(index, live) if self.dead else index)

    def nearest(self, query: Floats, count: int, excluded: Rows) -> Rows:
        """Rows of the ``count`` records nearest to a unit vector ``[d]``; fewer where there are fewer."""
        wanted = min(count + len(excluded), self.index.ntotal - self.dead)
        if wanted <= 0:
            return np.zeros(0, np.int64)
        found = self.store.query(
            VectorStoreQuery(query_embedding=cast("list[float]", query), similarity_top_k=wanted)
        )
        slots = np.array(found.ids or [], np.int64)
        if self._shared:
            parts = [self._rows[self._starts[s] : self._starts[s + 1]] for s in slots]
            rows = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        else:
            rows = self._rows[self._starts[slots]]
        if len(excluded):
            rows = rows[~np.isin(rows, excluded)]
        return rows[:count]

    def matrix(self) -> Halves:
        """``[records, d]``; a zero row where a record lacks the view."""
        out = np.zeros((len(self.slots), self.index.d), np.float16)
        filled = self.slots >= 0
        out[filled] = self.vectors[self.slots[filled]]
        return out

    def scores(self, query: Floats, rows: Rows) -> Floats:
        """``(cos - a) / (1 - a)`` of the given records, clipped to 0..1; 0 where one lacks the view."""
        slots = self.slots[rows]
        filled = slots >= 0
        cosines = np.zeros(len(rows), np.float32)
        cosines[filled] = self.vectors[slots[filled]].astype(np.float32) @ query
        scaled = np.clip((cosines - self.floor) / (1 - self.floor), 0, 1)
        scaled[~filled] = 0
        return np.asarray(scaled, np.float32)


def mean_cosine(index: Any, slots: npt.NDArray[np.int32]) -> float:
    """Mean cosine of two different records of a view, over all pairs; at least 0, at most .95.

    Exact, because the sum over pairs of unit vectors is the squared length of their sum.
    """
    vectors = codes_of(index)
    times = np.bincount(slots[slots >= 0], minlength=len(vectors)).astype(np.float64)
    total = np.zeros(index.d)
    squares = 0.0
    records = 0.0
    for start in range(0, len(vectors), CHUNK):
        part = vectors[start : start + CHUNK].astype(np.float64)
        weight = times[start : start + CHUNK]
        lengths = (part * part).sum(axis=1)
        total += weight @ part
        squares += float(weight @ lengths)
        records += float(weight[lengths > 0].sum())
    if records < 2:
        return 0.0
    return float(np.clip((total @ total - squares) / (records * (records - 1)), 0.0, 0.95))
