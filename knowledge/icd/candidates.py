"""Which wordings of a code system resemble a name: TF-IDF of words and character n-grams, in batches.

Ours. Every name becomes canonical words first; n-grams are taken inside words, so that a batch's vectors
are built from a per-word cache and compared with all wordings by one sparse matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

_GRAMS = (3, 4)
_WORD_WEIGHT = 1.6
_MAX_SHARE = 0.03
_MIN_COUNT = 2


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
        units: per wording its units of text: canonical words, or one canonical string of CJK text.
        cjk: whether units are CJK strings.
    """

    def __init__(self, units: Sequence[Sequence[str]], *, cjk: bool) -> None:
        self._grams = cjk_grams if cjk else word_grams
        self._cjk = cjk
        vocabulary: dict[str, int] = {}
        by_unit: dict[str, Ints] = {}
        pieces: list[Ints] = []
        for row in units:
            parts = []
            for unit in row:
                ids = by_unit.get(unit)
                if ids is None:
                    grams = self._grams(unit)
                    ids = np.fromiter(
                        (vocabulary.setdefault(gram, len(vocabulary)) for gram in grams), np.int32, len(grams)
                    )
                    by_unit[unit] = ids
                parts.append(ids)
            pieces.append(np.concatenate(parts) if parts else np.zeros(0, np.int32))
        self._vocabulary = vocabulary
        self._by_unit = by_unit
        counts = _counts(pieces, len(vocabulary))
        df = np.bincount(counts.indices, minlength=len(vocabulary))
        idf = np.log((1 + len(pieces)) / (1 + df)).astype(np.float32) + np.float32(0.2)
        if not cjk:
            is_word = np.fromiter((gram[0] == " " for gram in vocabulary), bool, len(vocabulary))
            idf[is_word] *= np.float32(_WORD_WEIGHT)
        self._idf = idf
        self.vectors = _weighted(counts, idf)
        limit = max(50, int(_MAX_SHARE * len(pieces)))
        kept = sparse.diags_array((df <= limit).astype(np.float32), format="csr")
        self._search = (self.vectors @ kept).T.tocsr()
        self._search.eliminate_zeros()

    def encode(self, units: Sequence[Sequence[str]]) -> sparse.csr_array:
        """Normalised vectors of names, ``[names, vocabulary]``; unknown n-grams count for the norm alone."""
        pieces = []
        unknown = np.zeros(len(units), np.float32)
        heaviest = float(self._idf.max(initial=1.0))
        for at, row in enumerate(units):
            parts = []
            for unit in row:
                ids = self._by_unit.get(unit)
                if ids is None:
                    grams = self._grams(unit)
                    found = [self._vocabulary.get(gram, -1) for gram in grams]
                    ids = np.array([i for i in found if i >= 0], np.int32)
                    unknown[at] += (len(grams) - len(ids)) * heaviest**2
                parts.append(ids)
            pieces.append(np.concatenate(parts) if parts else np.zeros(0, np.int32))
        return _weighted(_counts(pieces, len(self._vocabulary)), self._idf, unknown)

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
