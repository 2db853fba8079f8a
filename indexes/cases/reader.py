"""Reading a case index: encode a query, search, show records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ...language.detect import detect_language
from ...language.tokenizers import Tokenizer
from ...models.base import TextEmbedder
from ...records.schema import VIEWS, View
from .dense import DenseChannel
from .encoded import EncodedQuery
from .ingest import Parts
from .payload import CasePayload, StringColumn
from .scores import Channel, ChannelScores
from .sparse import SparseChannel, top
from .state import State

Rows = npt.NDArray[np.int64]


class CaseReader:
    """One unchanging state of a case index; safe to use from several threads.

    Args:
        state: opened files.
        parts: embedder and tokeniser.
        threads: of FAISS, one question at a time.
    """

    def __init__(self, state: State, parts: Parts, threads: int) -> None:
        self._state = state
        self._parts = parts
        self._threads = threads

    def encode_query(
        self,
        views: Mapping[View, str] | Mapping[str, str],
        language: str | None = None,
        *,
        vectors: Mapping[View, npt.NDArray[np.float32]] | None = None,
    ) -> EncodedQuery:
        """Turn a query's views into vectors and terms.

        A query is a case and is compared with cases, so it is embedded as a passage. The last few are
        remembered, so that a retriever and a re-ranker embed a case once.

        Args:
            views: text by view; unknown names are an error, blank texts are absent views.
            language: detected from the text where None.
            vectors: ``[d]`` by view as the embedder gives them, where they are known already.

        Raises:
            IndexStoreError: there is no embedder and ``vectors`` are missing.
            ModelError: the embedder cannot be loaded.
        """
        state = self._state
        texts = {
            view: views_text.strip() for view, views_text in _by_view(views).items() if views_text.strip()
        }
        if language is None and texts:
            language = detect_language(texts.get(View.GLOBAL) or max(texts.values(), key=len))
        key = _key_of(texts, language)
        remembered = state.encoded.get(key) if vectors is None else None
        if remembered is not None:
            return remembered
        given = self._embed(texts) if vectors is None else vectors
        raw = np.zeros((len(VIEWS), state.meta["dimension"]), np.float32)
        words: list[tuple[str, ...]] = [()] * len(VIEWS)
        there = [view for view in VIEWS if view in texts]
        cut = self._parts.tokenizer.tokenize_many([texts[v] for v in there], [language] * len(there))
        for view, found in zip(there, cut, strict=True):
            raw[VIEWS.index(view)] = given[view]
            words[VIEWS.index(view)] = tuple(found)
        encoded = state.encode(raw, tuple(words), np.array([view in texts for view in VIEWS]))
        if vectors is None:
            state.encoded.put(key, encoded)
        return encoded

    def _embed(self, texts: Mapping[View, str]) -> dict[View, npt.NDArray[np.float32]]:
        embedder = self._parts.required()
        distinct = list(dict.fromkeys(texts.values()))
        matrix = embedder.encode(distinct, "passage")
        return {view: matrix[distinct.index(text)] for view, text in texts.items()}

    def renewed(self, encoded: EncodedQuery) -> EncodedQuery:
        """A query that another state encoded, as this one compares it; its own ones as they are."""
        if encoded.generation == self.generation:
            return encoded
        return self._state.encode(encoded.raw, encoded.words, encoded.present)

    def search(
        self,
        encoded: EncodedQuery,
        *,
        candidates: int = 100,
        exclude: frozenset[str] = frozenset(),
        extra_rows: Sequence[int] | Rows | None = None,
    ) -> ChannelScores:
        """Score the union of each channel's best records in all eight channels.

        Args:
            encoded: the query; one that was encoded before the index changed is brought up to date.
            candidates: how many records each channel proposes.
            exclude: ids of records that are no evidence; others move up.
            extra_rows: rows to score as well.
        """
        state = self._state
        encoded = self.renewed(encoded)
        faiss.omp_set_num_threads(self._threads)
        found = (state.rows.get(record) for record in exclude)
        excluded = np.array([row for row in found if row is not None], np.int64)
        pools = [] if extra_rows is None else [np.setdiff1d(np.asarray(extra_rows, np.int64), excluded)]
        overlaps: dict[int, npt.NDArray[np.float32]] = {}
        views = np.flatnonzero(encoded.present).tolist()
        for i in views:
            if np.any(encoded.vectors[i]):
                pools.append(state.dense[i].nearest(encoded.vectors[i], candidates, excluded))
            if len(encoded.terms[i]) and encoded.own_weights[i] > 0:
                overlaps[i] = state.sparse[i].scores(encoded.terms[i])
                overlaps[i][excluded] = 0
                pools.append(top(overlaps[i], candidates))
        rows = np.unique(np.concatenate(pools)) if pools else np.zeros(0, np.int64)
        scores = np.zeros((len(rows), len(VIEWS), len(Channel)), np.float32)
        for i in views:
            scores[:, i, Channel.DENSE] = state.dense[i].scores(encoded.vectors[i], rows)
            if i in overlaps:
                scores[:, i, Channel.SPARSE] = np.minimum(overlaps[i][rows] / encoded.own_weights[i], 1)
        return ChannelScores(rows.astype(np.int64, copy=False), scores, encoded.present)

    # -- what it holds -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._state.columns.ids)

    @property
    def version(self) -> str:
        """Depends on the records and on what turned them into numbers, not on how they came in."""
        return str(self._state.meta["version"])

    @property
    def generation(self) -> str:
        """Name of this state on disk; every change gives another."""
        return self._state.generation.name

    def sidecar(self, name: str) -> Path:
        """Folder of a sidecar; it does not exist where none was written."""
        return self._state.generation.folder / "sidecar" / name

    @property
    def path(self) -> Path:
        """Folder of the index."""
        return self._state.generation.root

    @property
    def embedder_identity(self) -> str:
        """Of the embedder that the index was built with."""
        return str(self._state.meta["embedder"])

    @property
    def embedder(self) -> TextEmbedder:
        """The embedder it was opened with.

        Raises:
            IndexStoreError: it was opened without one.
        """
        return self._parts.required()

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into terms."""
        return self._parts.tokenizer

    @property
    def ids(self) -> StringColumn:
        """Record ids by row."""
        return self._state.columns.ids

    def row_of(self, record_id: str) -> int | None:
        """Row of a record, None where the index does not hold it."""
        return self._state.rows.get(record_id)

    @property
    def labels(self) -> npt.NDArray[np.int32]:
        """``[n]`` main diagnosis: number into :attr:`label_names`; -1 for none."""
        return self._state.columns.labels

    @property
    def label_names(self) -> list[str]:
        """Distinct main diagnoses as written; two may differ only in their code."""
        return [name for name, _ in self._state.names.labels]

    @property
    def label_codes(self) -> list[str | None]:
        """Code of each of :attr:`label_names`, where its source gave one."""
        return [code for _, code in self._state.names.labels]

    @property
    def departments(self) -> npt.NDArray[np.int32]:
        """``[n]`` number into :attr:`department_names`; -1 for none."""
        return self._state.columns.departments

    @property
    def department_names(self) -> list[str]:
        """Distinct departments as written."""
        return list(self._state.names.departments)

    @property
    def ages(self) -> npt.NDArray[np.float32]:
        """``[n]`` years, NaN where unknown."""
        return self._state.columns.ages

    @property
    def sexes(self) -> npt.NDArray[np.int32]:
        """``[n]`` number into :attr:`sex_names`; -1 for none."""
        return self._state.columns.sexes

    @property
    def sex_names(self) -> list[str]:
        """Distinct sexes as written."""
        return list(self._state.names.sexes)

    def payload(self, row: int) -> CasePayload:
        """What one record says.

        Raises:
            IndexStoreError: the index is damaged.
        """
        segment, start, size = self._state.columns.places[row].tolist()
        return CasePayload.from_bytes(self._state.payloads[segment][start : start + size].tobytes())

    def payloads(self, rows: Iterable[int]) -> list[CasePayload]:
        """What some records say, in that order."""
        return [self.payload(int(row)) for row in rows]

    def dense_matrix(self, view: View) -> npt.NDArray[np.float16]:
        """``[n, d]`` whitened unit vectors of a view; a zero row where a record lacks it."""
        channel = self._state.dense[VIEWS.index(view)]
        return channel.matrix()

    def dense_channel(self, view: View) -> DenseChannel:
        """A view's dense channel; its ``store`` is a LlamaIndex vector store over slots."""
        return self._state.dense[VIEWS.index(view)]

    def sparse_channel(self, view: View) -> SparseChannel:
        """A view's sparse channel, a LlamaIndex retriever of record ids."""
        return self._state.sparse[VIEWS.index(view)]

    def dense_floor(self, view: View) -> float:
        """Mean cosine of two records in a view, the cosine that scores 0."""
        return self._state.dense[VIEWS.index(view)].floor

    def sparse_matrix(self, view: View) -> sp.csr_matrix:
        """``[n, vocabulary]`` BM25 weights of a view."""
        postings = self._state.sparse[VIEWS.index(view)].postings
        shape = (len(self), len(self._state.vocabulary))
        return sp.csc_matrix((postings.weights, postings.rows, postings.pointers), shape=shape).tocsr()

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """Term ids, the columns of :meth:`sparse_matrix`."""
        return self._state.vocabulary


def _by_view(views: Mapping[View, str] | Mapping[str, str]) -> dict[View, str]:
    return {View(name): text for name, text in views.items()}


def _key_of(texts: Mapping[View, str], language: str | None) -> bytes:
    content = "\x1f".join([language or "", *(f"{view}\x1e{text}" for view, text in texts.items())])
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
