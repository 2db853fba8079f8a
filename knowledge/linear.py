"""Ridge regression of labels in a few hundred dimensions, for corpora too large for a kernel. Ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .features import WHOLE, CaseFeatures, Floats, Ints
from .ridge import RidgeOptions, left_out_rank, penalised_inverse

DIMENSIONS = 768
SAMPLE = 8_000
_AGE_CENTRES = np.array([0.5, 3, 8, 15, 25, 38, 52, 66, 82], np.float32)
_FEW_ROWS = 64
_POWER_ROUNDS = 2
_RIDGE_SCALES = (6.0, 20.0, 2.0)

Batches = Callable[[], Iterator[tuple[CaseFeatures, Ints]]]
"""Goes over the training cases from the start, in batches with their labels."""


def word_directions(words: sp.csr_matrix, dimensions: int, seed: int) -> Floats:
    """``[vocabulary, dimensions]`` leading right singular vectors of unit word rows, by random projection."""
    width = min(dimensions, *words.shape)
    rng = np.random.default_rng(seed)
    basis = words @ rng.standard_normal((words.shape[1], min(width + 16, *words.shape))).astype(np.float32)
    for _ in range(_POWER_ROUNDS):
        basis, _ = np.linalg.qr(basis)
        basis, _ = np.linalg.qr(words.T @ basis)
        basis = words @ basis
    basis, _ = np.linalg.qr(basis)
    _, _, directions = np.linalg.svd(np.asarray((words.T @ basis).T), full_matrices=False)
    return np.ascontiguousarray(directions[:width].T, np.float32)


@dataclass
class LinearRidge:
    """Ridge regression on words in leading directions, vectors, department, age and sex.

    Attributes:
        options: of the likeness, the same as the kernel's as far as they apply.
        directions: ``[vocabulary, k]``.
        departments: how many there are.
        weights: ``[features, labels]`` float32.
        inverse: ``[features, features]`` of the penalised covariance, to leave cases out; None once loaded.
    """

    options: RidgeOptions
    directions: Floats
    departments: int
    weights: Floats
    inverse: Floats | None = None

    @classmethod
    def fit(
        cls,
        sample: sp.csr_matrix,
        batches: Batches,
        *,
        labels: int,
        departments: int,
        likeness: sp.csr_matrix,
        options: RidgeOptions,
        judge: tuple[CaseFeatures, Ints] | None = None,
        seed: int = 0,
    ) -> Self:
        """Fit over two passes of nothing but batches, so memory does not grow with the corpus.

        Args:
            sample: ``[m, vocabulary]`` word rows to find the directions in.
            batches: the training cases.
            labels: how many there are.
            departments: how many there are.
            likeness: ``[labels, labels]``.
            options: of the likeness.
            judge: some of the training cases and their labels; left out, they choose the penalty.
            seed: of the random projection.
        """
        model = cls(
            options, word_directions(sample, DIMENSIONS, seed), departments, np.zeros((0, 0), np.float32)
        )
        size = model.width(next(iter(batches()))[0])
        covariance = np.zeros((size, size), np.float32)
        towards = np.zeros((size, labels), np.float32)
        for cases, numbers in batches():
            rows = model.rows(cases)
            covariance += rows.T @ rows
            hot = sp.csr_matrix((np.ones(len(numbers), np.float32), (np.arange(len(numbers)), numbers)),
                                shape=(len(numbers), labels))  # fmt: skip
            towards += (hot.T @ rows).T
        towards = np.asarray((likeness.T @ towards.T).T, np.float32)
        best = -1.0
        weights = inverse = model.weights
        for scale in _RIDGE_SCALES if judge is not None else _RIDGE_SCALES[:1]:
            model.inverse = penalised_inverse(covariance, scale * options.ridge)
            model.weights = model.inverse @ towards
            reached = 0.0
            if judge is not None:
                cases, numbers = judge
                counts = np.bincount(numbers, minlength=labels)
                hot = sp.identity(labels, np.float32, format="csr")[numbers] @ likeness
                reached = left_out_rank(model.left_out(cases, hot), numbers, np.maximum(counts, 1))
            if reached > best:
                best, weights, inverse = reached, model.weights, model.inverse
        model.weights, model.inverse = weights, inverse
        return model

    def width(self, cases: CaseFeatures) -> int:
        """Number of features."""
        return int(self.rows(cases.take(np.zeros(1, np.int64))).shape[1])

    def rows(self, cases: CaseFeatures) -> Floats:
        """``[n, features]``."""
        n = len(cases)
        words = self._directed(cases.words[WHOLE])
        clinic = np.zeros((n, self.departments), np.float32)
        known = cases.departments >= 0
        clinic[known, cases.departments[known]] = np.sqrt(self.options.department)
        gap = np.log1p(cases.ages)[:, None] - np.log1p(_AGE_CENTRES)[None]
        age = np.where(np.isnan(gap), 0, np.exp(-((gap / 0.35) ** 2) / 2)) * np.sqrt(self.options.age)
        sex = np.stack([cases.sexes == 1, cases.sexes == 2], axis=1) * np.sqrt(self.options.age / 2)
        dense = np.sqrt(self.options.dense) * cases.dense[:, WHOLE]
        one = np.full((n, 1), 0.3)
        return np.concatenate([1.4 * words, dense, clinic, age, sex, one], axis=1).astype(np.float32)

    def _directed(self, words: sp.csr_matrix) -> Floats:
        """``[n, k]``; for a few cases only the directions of their own words are read."""
        if words.shape[0] > _FEW_ROWS:
            return np.asarray(words @ np.asarray(self.directions, np.float32), np.float32)
        used, place = np.unique(words.indices, return_inverse=True)
        narrow = sp.csr_matrix((words.data, place, words.indptr), shape=(words.shape[0], len(used)))
        return np.asarray(narrow @ np.asarray(self.directions[used], np.float32), np.float32)

    def scores(self, cases: CaseFeatures) -> Floats:
        """``[m, labels]``."""
        return self.rows(cases) @ self.weights

    def left_out(self, cases: CaseFeatures, targets: sp.csr_matrix) -> Floats:
        """What training cases would score if each had been left out, ``[m, labels]``."""
        if self.inverse is None:
            return self.scores(cases)
        rows = self.rows(cases)
        leverage = np.minimum(np.einsum("ij,ij->i", rows @ self.inverse, rows), 0.99)[:, None]
        return np.asarray((rows @ self.weights - leverage * targets.toarray()) / (1 - leverage), np.float32)

    def word_shares(self, case: CaseFeatures, label: int) -> tuple[Ints, Floats]:
        """Term ids of one case's words and what each adds to a label's score."""
        row = case.words[WHOLE]
        pull = self.directions[row.indices] @ self.weights[: self.directions.shape[1], label]
        return row.indices.astype(np.int32), np.asarray(1.4 * row.data * pull)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """For a sidecar."""
        return {
            "directions": self.directions.astype(np.float16),
            "weights": self.weights,
            "department_count": np.array([self.departments]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], options: RidgeOptions) -> Self:
        """Inverse of :meth:`to_arrays`."""
        return cls(
            options,
            np.asarray(arrays["directions"]),
            int(arrays["department_count"][0]),
            np.asarray(arrays["weights"]),
        )
