"""One view's sparse channel: BM25 over our own terms, behind LlamaIndex's retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.retrievers.bm25 import BM25Retriever

from ...language.tokenizers import Tokenizer

K1 = 1.5
B = 0.75

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TermCounts:
    """How often each record uses each term, record by record (CSR).

    Attributes:
        pointers: ``[n + 1]`` int64.
        terms: int32 term ids, ascending within a record.
        counts: uint16.
    """

    pointers: npt.NDArray[np.int64]
    terms: Ints
    counts: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, lengths: npt.NDArray[np.int64], terms: Ints) -> TermCounts:
        """Count runs of term ids; ``lengths`` says how many belong to each record."""
        pointers = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=pointers[1:])
        width = int(terms.max(initial=-1)) + 1
        matrix = sp.csr_matrix(
            (np.ones(len(terms), np.int32), terms, pointers), shape=(len(lengths), width), copy=False
        )
        matrix.sum_duplicates()
        counts = np.minimum(matrix.data, np.iinfo(np.uint16).max).astype(np.uint16)
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), counts)

    def take(self, rows: npt.NDArray[np.int64]) -> TermCounts:
        """The counts of some records."""
        width = int(self.terms.max(initial=-1)) + 1
        shape = (len(self.pointers) - 1, width)
        part = sp.csr_matrix((self.counts, self.terms, self.pointers), shape=shape, copy=False)[rows]
        return TermCounts(part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data)

    def then(self, other: TermCounts) -> TermCounts:
        """These records followed by others."""
        return TermCounts(
            np.concatenate([self.pointers, other.pointers[1:] + self.pointers[-1]]),
            np.concatenate([self.terms, other.terms]),
            np.concatenate([self.counts, other.counts]),
        )

    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of words of each record, ``[n]``."""
        sums = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        return np.asarray(sums[self.pointers[1:]] - sums[self.pointers[:-1]], np.int64)


@dataclass(frozen=True)
class Postings:
    """BM25 weights term by term (CSC), as bm25s keeps them.

    Attributes:
        pointers: ``[vocabulary + 1]``.
        rows: int32 record numbers.
        weights: float32.
        documents: how many records have the view.
        mean_length: in words.
    """

    pointers: npt.NDArray[np.int64]
    rows: Ints
    weights: Floats
    documents: int
    mean_length: float


def inverse_frequency(holders: npt.NDArray[Any], documents: int) -> npt.NDArray[np.float64]:
    """Lucene's idf of terms that so many of the documents hold."""
    return np.log1p((documents - holders + 0.5) / (holders + 0.5))


def weigh(counts: TermCounts, vocabulary: int) -> Postings:
    """Lucene BM25 weights (k1 1.5, b .75), equal to those of ``bm25s.BM25().index``.

    A record without the view is no document: it changes neither idf nor mean length.
    """
    lengths = counts.lengths()
    documents = int((lengths > 0).sum())
    mean = float(lengths.sum() / documents) if documents else 0.0
    holders = np.bincount(counts.terms, minlength=vocabulary)
    idf = inverse_frequency(holders, documents).astype(np.float32)
    norm = (K1 * ((1 - B) + B * lengths / (mean or 1.0))).astype(np.float32)
    each = np.repeat(norm, np.diff(counts.pointers))
    weights = counts.counts / (each + counts.counts)
    weights *= idf[counts.terms]
    shape = (len(lengths), vocabulary)
    matrix = sp.csr_matrix((weights.astype(np.float32), counts.terms, counts.pointers), shape=shape).tocsc()
    return Postings(matrix.indptr, matrix.indices.astype(np.int32, copy=False), matrix.data, documents, mean)


class EagerBm25(bm25s.BM25):  # type: ignore[misc]
    """``bm25s.BM25`` over given postings that adds each distinct query term once.

    Its scores equal those of the parent, which walks over every occurrence.
    """

    def __init__(self, postings: Postings, vocabulary: Mapping[str, int], records: int) -> None:
        super().__init__(k1=K1, b=B, method="lucene")
        self.scores = {
            "data": postings.weights,
            "indices": postings.rows,
            "indptr": postings.pointers,
            "num_docs": records,
        }
        self.vocab_dict = vocabulary
        self.nonoccurrence_array = None

    @staticmethod
    def _compute_relevance_from_scores(  # noqa: PLR0917  # the parent's signature
        data: Floats,
        indptr: npt.NDArray[Any],
        indices: Ints,
        num_docs: int,
        query_tokens_ids: npt.NDArray[Any],
        dtype: np.dtype[Any],
    ) -> Floats:
        ids, times = np.unique(query_tokens_ids, return_counts=True)
        by_term = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, num_docs), copy=False)
        return np.asarray(by_term[ids].T @ times.astype(dtype), dtype)


class SparseChannel(BM25Retriever):
    """A ``BM25Retriever`` over postings of our own terms.

    ``retrieve`` gives nodes whose id is the record id and whose text is empty, best first, never with a
    score of zero; the index itself works on :meth:`scores`.
    """

    def __init__(
        self,
        postings: Postings,
        vocabulary: Mapping[str, int],
        ids: Sequence[str],
        tokenizer: Tokenizer,
        similarity_top_k: int = 10,
    ) -> None:
        self.postings = postings
        self._ids = ids
        self._words = tokenizer
        bm25 = EagerBm25(postings, vocabulary, len(ids))
        super().__init__(existing_bm25=bm25, similarity_top_k=max(1, min(similarity_top_k, len(ids) or 1)))

    def scores(self, terms: Ints) -> Floats:
        """BM25 of every record, ``[n]``, for a query's term ids (repeated as often as it uses them)."""
        return np.asarray(self.bm25.get_scores_from_ids(terms), np.float32)

    def own_weight(self, terms: Ints, unknown: Sequence[int]) -> float:
        """``bm25(q, q)``: what the query would score against its own copy.

        Args:
            terms: ids of known terms, repeated as often as the query uses them.
            unknown: how often the query uses each term that no record holds; such a term weighs what a
                term of a single record weighs, since the query's copy would be that record.
        """
        length = len(terms) + sum(unknown)
        if not length or not self.postings.documents:
            return 0.0
        ids, times = np.unique(terms, return_counts=True)
        pointers = self.postings.pointers
        holders = np.maximum(pointers[ids + 1] - pointers[ids], 1)
        holders = np.concatenate([holders, np.ones(len(unknown), holders.dtype)])
        often = np.concatenate([times, np.asarray(unknown, times.dtype)]).astype(np.float64)
        norm = K1 * ((1 - B) + B * length / (self.postings.mean_length or 1.0))
        weights = inverse_frequency(holders, self.postings.documents) * often / (norm + often)
        return float((often * weights).sum())

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        known = self.bm25.vocab_dict
        words = self._words.tokenize(query_bundle.query_str)
        terms = np.array([known[word] for word in words if word in known], np.int32)
        scores = self.scores(terms)
        rows = top(scores, self.similarity_top_k)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        return [NodeWithScore(node=TextNode(id_=self._ids[row]), score=float(scores[row])) for row in rows]


def top(scores: Floats, count: int) -> npt.NDArray[np.int64]:
    """Rows of the ``count`` highest scores above zero, unordered.

    The ``count``-th largest maximum over blocks bounds the ``count``-th largest score from below, so only
    the few rows above it need be partitioned.
    """
    if count <= 0:
        return np.zeros(0, np.int64)
    block = 32
    whole = len(scores) // block * block
    floor: Any = 0.0
    if whole // block > 2 * count:
        peaks = scores[:whole].reshape(-1, block).max(axis=1)
        floor = np.partition(peaks, len(peaks) - count)[len(peaks) - count]
    rows = np.flatnonzero(scores >= floor) if floor > 0 else np.flatnonzero(scores > 0)
    if len(rows) <= count:
        return rows
    return rows[np.argpartition(scores[rows], len(rows) - count)[len(rows) - count :]]
