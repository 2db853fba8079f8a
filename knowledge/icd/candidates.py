"""Which wordings of a code system resemble a name: TF-IDF of words and character n-grams, in batches.

Ours. Every name becomes canonical words first; n-grams are taken inside words, so that a batch's vectors
are built from a per-word cache and compared with all wordings by one sparse matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .disk_cache import pack_texts, unpack_texts

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

_GRAMS = (3, 4)
_WORD_WEIGHT = 1.6
_MAX_SHARE = 0.03
_CACHED_WORDS = 100_000


def word_grams(word: str, sizes: tuple[int, ...] = _GRAMS) -> list[str]:
    """Character n-grams of a word with its edges, and the word itself (marked by a leading blank)."""
    padded = f"<{word}>"
    grams = [padded[i : i + n] for n in sizes for i in range(len(padded) - n + 1)]
    return [*grams, f" {word}"]


def cjk_grams(text: str) -> list[str]:
    """Characters, pairs and triples of a Chinese or Japanese name."""
    return [text[i : i + n] for n in (1, 2, 3) for i in range(len(text) - n + 1)]


@dataclass(frozen=True)
class Hits:
    """The nearest wordings of a batch of names.

    Attributes:
        query: ``[n]`` which name, ascending.
        term: ``[n]`` which wording.
        cosine: ``[n]`` similarity 0..1, descending within a name.
    """

    query: Ints
    term: Ints
    cosine: Floats


class GramIndex:
    """TF-IDF vectors of wordings, searched by cosine.

    Args:
        vocabulary: n-gram -> column.
        idf: weight per column.
        vectors: ``[wordings, columns]``, normalised rows.
        cjk: whether wordings are CJK strings.
    """

    STORED: ClassVar[tuple[str, ...]] = ("grams", "idf", "gram_data", "gram_columns", "gram_starts")

    def __init__(
        self, vocabulary: dict[str, int], idf: Floats, vectors: sparse.csr_array, *, cjk: bool
    ) -> None:
        self._grams = cjk_grams if cjk else word_grams
        self._vocabulary, self._idf = vocabulary, idf
        self._by_unit: dict[str, tuple[Ints, int]] = {}
        self.vectors = vectors
        df = np.bincount(vectors.indices, minlength=vectors.shape[1])
        limit = max(50, int(_MAX_SHARE * vectors.shape[0]))
        rare = df[vectors.indices] <= limit
        kept = np.concatenate([[0], np.cumsum(rare)])[vectors.indptr]
        frequent_out = sparse.csr_array(
            (vectors.data[rare], vectors.indices[rare], kept), shape=vectors.shape
        )
        self._search = frequent_out.T.tocsr()

    @classmethod
    def build(cls, units: Sequence[Sequence[str]], *, cjk: bool) -> Self:
        """Index wordings, each given as canonical words or one canonical CJK string."""
        grams_of = cjk_grams if cjk else word_grams
        vocabulary: dict[str, int] = {}
        by_unit: dict[str, Ints] = {}
        pieces: list[Ints] = []
        for row in units:
            parts = []
            for unit in row:
                ids = by_unit.get(unit)
                if ids is None:
                    grams = grams_of(unit)
                    columns = (vocabulary.setdefault(gram, len(vocabulary)) for gram in grams)
                    ids = by_unit[unit] = np.fromiter(columns, np.int32, len(grams))
                parts.append(ids)
            pieces.append(np.concatenate(parts) if parts else np.zeros(0, np.int32))
        counts = _counts(pieces, len(vocabulary))
        df = np.bincount(counts.indices, minlength=len(vocabulary))
        idf = np.log((1 + len(pieces)) / (1 + df)).astype(np.float32) + np.float32(0.2)
        if not cjk:
            is_word = np.fromiter((gram[0] == " " for gram in vocabulary), bool, len(vocabulary))
            idf[is_word] *= np.float32(_WORD_WEIGHT)
        vectors = _weighted(counts, idf)
        vectors.data = vectors.data.astype(np.float16).astype(np.float32)
        return cls(vocabulary, idf, vectors, cjk=cjk)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What :meth:`from_arrays` makes the same index of."""
        return {
            "grams": pack_texts(self._vocabulary),
            "idf": self._idf,
            "gram_data": self.vectors.data.astype(np.float16),
            "gram_columns": self.vectors.indices.astype(np.int32),
            "gram_starts": self.vectors.indptr.astype(np.int64),
        }

    @classmethod
    def from_arrays(cls, stored: Mapping[str, npt.NDArray[Any]], *, cjk: bool) -> Self:
        """The index that :meth:`arrays` came from."""
        vocabulary = {gram: at for at, gram in enumerate(unpack_texts(stored["grams"]))}
        shape = (len(stored["gram_starts"]) - 1, len(vocabulary))
        parts = (stored["gram_data"].astype(np.float32), stored["gram_columns"], stored["gram_starts"])
        return cls(vocabulary, stored["idf"], sparse.csr_array(parts, shape=shape), cjk=cjk)

    def encode(self, units: Sequence[Sequence[str]]) -> sparse.csr_array:
        """Normalised vectors of names, ``[names, vocabulary]``; unknown n-grams count for the norm alone."""
        pieces = []
        unknown = np.zeros(len(units), np.float32)
        heaviest = float(self._idf.max(initial=1.0)) ** 2
        for at, row in enumerate(units):
            parts = []
            for unit in row:
                ids, missing = self._columns(unit)
                unknown[at] += missing * heaviest
                parts.append(ids)
            pieces.append(np.concatenate(parts) if parts else np.zeros(0, np.int32))
        return _weighted(_counts(pieces, len(self._vocabulary)), self._idf, unknown)

    def _columns(self, unit: str) -> tuple[Ints, int]:
        """Columns of the n-grams of a word, and how many n-grams no wording has."""
        known = self._by_unit.get(unit)
        if known is None:
            grams = self._grams(unit)
            columns = [at for gram in grams if (at := self._vocabulary.get(gram)) is not None]
            known = np.array(columns, np.int32), len(grams) - len(columns)
            if len(self._by_unit) < _CACHED_WORDS:
                self._by_unit[unit] = known
        return known

    def nearest(self, vectors: sparse.csr_array, k: int) -> Hits:
        """The ``k`` nearest wordings of each name.

        Very frequent n-grams do not take part in the search; the similarity given back counts them.
        """
        product = (vectors @ self._search).tocsr()
        queries, terms = [], []
        for at in range(vectors.shape[0]):
            start, end = product.indptr[at], product.indptr[at + 1]
            data, cols = product.data[start:end], product.indices[start:end]
            if len(data) > k:
                cut = np.partition(data, len(data) - k)[len(data) - k]
                keep = data >= cut
                data, cols = data[keep], cols[keep]
                order = np.lexsort((cols, -data))[:k]
                cols = cols[order]
            queries.append(np.full(len(cols), at, np.int32))
            terms.append(cols.astype(np.int32))
        query = np.concatenate(queries) if queries else np.zeros(0, np.int32)
        term = np.concatenate(terms) if terms else np.zeros(0, np.int32)
        cosine = row_products(vectors, self.vectors, query, term)
        order = np.lexsort((term, -cosine, query))
        return Hits(query[order], term[order], cosine[order])


def row_products(a: sparse.csr_array, b: sparse.csr_array, rows_a: Ints, rows_b: Ints) -> Floats:
    """Dot products of chosen rows: ``a[rows_a[i]] . b[rows_b[i]]``."""
    if not len(rows_a):
        return np.zeros(0, np.float32)
    product = a[rows_a].multiply(b[rows_b])
    return np.asarray(product.sum(axis=1), np.float32).ravel()


def _counts(pieces: list[Ints], width: int) -> sparse.csr_array:
    lengths = np.fromiter((len(piece) for piece in pieces), np.int64, len(pieces))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate(pieces) if pieces else np.zeros(0, np.int32)
    matrix = sparse.csr_array(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(len(pieces), max(1, width))
    )
    matrix.sum_duplicates()
    return matrix


def _weighted(counts: sparse.csr_array, idf: Floats, unknown: Floats | None = None) -> sparse.csr_array:
    matrix = counts.copy()
    matrix.data = np.sqrt(matrix.data) * idf[matrix.indices]
    square = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    if unknown is not None:
        square = square + unknown
    norms = np.sqrt(np.maximum(square, 1e-12))
    matrix.data = (matrix.data / np.repeat(norms, np.diff(matrix.indptr))).astype(np.float32)
    return matrix
