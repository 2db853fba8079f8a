"""What the label scorer sees of a case: words, characters, vectors, department, age and sex. Source: ours."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..records.schema import VIEWS, View

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

WHOLE = VIEWS.index(View.GLOBAL)
LATIN_SIZES = (3, 4, 5)
CJK_SIZES = (1, 2, 3)
CHAR_BITS = 22
SATURATION = 1.5
_LONGEST_TEXT = 20_000
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@lru_cache(maxsize=8192)
def character_grams(text: str) -> tuple[Ints, Floats]:
    """Hashed character n-grams of a text, ascending, and how often each occurs.

    Latin letters give 3- to 5-grams that stay inside a word and its blanks, Chinese and Japanese characters
    give 1- to 3-grams.
    """
    folded = " ".join(unicodedata.normalize("NFKC", text[:_LONGEST_TEXT]).casefold().split())
    codes = np.frombuffer(f" {folded} ".encode("utf-32-le", "replace"), np.uint32)
    space = codes == 32
    cjk = ((codes >= 0x3041) & (codes <= 0x30FF)) | ((codes >= 0x3400) & (codes <= 0x9FFF))
    mixed = codes.astype(np.uint64) + np.uint64(1)
    found: list[npt.NDArray[np.int64]] = []
    for size in sorted({*LATIN_SIZES, *CJK_SIZES}):
        count = len(codes) - size + 1
        if count <= 0:
            break
        spaces = _windows(space, size)
        han = _windows(cjk, size)
        keep = np.zeros(count, bool)
        if size in LATIN_SIZES:
            inner = spaces - space[:count] - space[size - 1 :]
            keep |= (han == 0) & (inner == 0) & (spaces < size - 1)
        if size in CJK_SIZES:
            keep |= han == size
        hashed = np.full(count, size, np.uint64)
        for offset in range(size):
            hashed = (hashed ^ mixed[offset : offset + count]) * _MULTIPLIER
            hashed ^= hashed >> np.uint64(29)
        found.append((hashed[keep] >> np.uint64(64 - CHAR_BITS)).astype(np.int64))
    if not found:
        return np.zeros(0, np.int32), np.zeros(0, np.float32)
    ids, counts = np.unique(np.concatenate(found), return_counts=True)
    return ids.astype(np.int32), counts.astype(np.float32)


def _windows(flags: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.int64]:
    sums = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(sums[size:] - sums[:-size])


def unit_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Rows scaled to length 1; an empty row stays empty."""
    out = sp.csr_matrix(matrix, dtype=np.float32, copy=True)
    lengths = np.sqrt(np.asarray(out.multiply(out).sum(axis=1)).ravel())
    out.data /= np.repeat(np.maximum(lengths, 1e-9), np.diff(out.indptr)).astype(np.float32)
    return out


@dataclass(frozen=True)
class CharSpace:
    """Columns of the character n-grams that training texts share.

    Attributes:
        ids: ``[c]`` hashed n-grams, ascending.
        idf: ``[c]``.
    """

    ids: Ints
    idf: Floats

    @classmethod
    def of(cls, texts: Sequence[str], *, fewest: int = 2, most_share: float = 0.6) -> CharSpace:
        """N-grams that at least ``fewest`` texts and at most ``most_share`` of them hold."""
        grams = [character_grams(text)[0] for text in texts]
        ids, holders = np.unique(np.concatenate([*grams, np.zeros(0, np.int32)]), return_counts=True)
        keep = (holders >= fewest) & (holders <= max(most_share * len(texts), fewest))
        idf = np.log((1 + len(texts)) / (1 + holders[keep])) + 1
        return cls(ids[keep].astype(np.int32), idf.astype(np.float32))

    def matrix(self, texts: Sequence[str]) -> sp.csr_matrix:
        """``[n, c]`` unit rows of ``(1 + ln tf) · idf``."""
        pointers = [0]
        columns: list[npt.NDArray[np.int64]] = []
        values: list[Floats] = []
        for text in texts:
            ids, counts = character_grams(text)
            place = np.searchsorted(self.ids, ids)
            place[place == len(self.ids)] = 0
            known = (self.ids[place] == ids) if len(self.ids) else np.zeros(len(ids), bool)
            columns.append(place[known])
            values.append((1 + np.log(counts[known])) * self.idf[place[known]])
            pointers.append(pointers[-1] + int(known.sum()))
        data = np.concatenate(values) if values else np.zeros(0, np.float32)
        where = np.concatenate(columns) if columns else np.zeros(0, np.int64)
        return unit_rows(sp.csr_matrix((data, where, pointers), shape=(len(texts), len(self.ids))))


@dataclass(frozen=True)
class CaseFeatures:
    """Features of ``n`` cases.

    Attributes:
        words: for each view ``[n, vocabulary]`` unit rows of BM25 weights.
        chars: ``[n, c]`` unit rows; no columns where characters are not used.
        dense: ``[n, 4, d]`` float32 unit vectors, zero where a view is absent.
        departments: ``[n]`` numbers, -1 for none.
        ages: ``[n]`` years, NaN where unknown.
        sexes: ``[n]`` 1 for F, 2 for M, 0 for unknown.
    """

    words: tuple[sp.csr_matrix, ...]
    chars: sp.csr_matrix
    dense: Floats
    departments: Ints
    ages: Floats
    sexes: Ints

    def __len__(self) -> int:
        return len(self.departments)

    def take(self, rows: npt.NDArray[np.integer]) -> CaseFeatures:
        """Some of the cases."""
        return CaseFeatures(
            tuple(matrix[rows] for matrix in self.words),
            self.chars[rows],
            self.dense[rows],
            self.departments[rows],
            self.ages[rows],
            self.sexes[rows],
        )


@dataclass(frozen=True)
class WordSpace:
    """Weights of a query's words, as the index weighs its records'.

    Attributes:
        idf: ``[4, vocabulary]``.
    """

    idf: Floats

    @classmethod
    def of(cls, weights: Callable[[int], sp.csr_matrix], records: int) -> WordSpace:
        """From each view's BM25 matrix ``[records, vocabulary]``."""
        rows = []
        for view in range(len(VIEWS)):
            matrix = weights(view)
            holders = np.bincount(matrix.indices, minlength=matrix.shape[1])
            documents = int((np.diff(matrix.indptr) > 0).sum()) or records
            rows.append(np.log1p((documents - holders + 0.5) / (holders + 0.5)).astype(np.float32))
        return cls(np.stack(rows))

    def row(self, view: int, terms: Ints) -> sp.csr_matrix:
        """``[1, vocabulary]`` unit row of a query's term ids, repeated as often as the query uses them."""
        ids, counts = np.unique(terms, return_counts=True)
        values = self.idf[view][ids] * counts / (counts + SATURATION)
        pointers = [0, len(ids)]
        return unit_rows(sp.csr_matrix((values, ids, pointers), shape=(1, self.idf.shape[1])))
