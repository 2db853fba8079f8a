"""Ridge regression of labels on case features: exact with a kernel where records are few. Source: ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from .features import WHOLE, CaseFeatures, CharSpace, Floats, Ints

_FEW_ROWS = 64
_PRECISE_LIMIT = 2_000
_AGE_WIDTH = 0.5
_LEAST_LIKENESS = 0.15


@dataclass(frozen=True)
class RidgeOptions:
    """What counts how much in the likeness of two cases.

    Attributes:
        chars: characters, beside words, which count 1.
        dense: vectors of the whole.
        views: words and vectors of the other three views.
        department: how much likeness rises in the same department.
        age: how much it rises at the same age, and what age alone is worth.
        sex: how much it rises for the same sex.
        power: on likeness; above 1 near cases count more.
        ridge: penalty.
        smoothing: how much a record also speaks for labels with a similar name.
    """

    chars: float = 1.0
    dense: float = 0.6
    views: float = 0.3
    department: float = 0.35
    age: float = 0.2
    sex: float = 0.0
    power: float = 1.0
    ridge: float = 0.2
    smoothing: float = 0.3

    def to_json(self) -> dict[str, float]:
        """For a sidecar."""
        return asdict(self)

    def but(self, **changes: float) -> RidgeOptions:
        """The same with changes."""
        return replace(self, **changes)


def label_likeness(names: list[str], smoothing: float) -> sp.csr_matrix:
    """``[labels, labels]``: 1 on the diagonal, up to ``smoothing`` where two names are written alike."""
    if smoothing <= 0 or len(names) < 2:
        return sp.identity(len(names), np.float32, format="csr")
    grams = CharSpace.of(names, fewest=1, most_share=1.0).matrix(names)
    alike = (grams @ grams.T).tocoo()
    far = (alike.row != alike.col) & (alike.data >= _LEAST_LIKENESS)
    off = sp.csr_matrix((alike.data[far] * smoothing, (alike.row[far], alike.col[far])), shape=alike.shape)
    return (off + sp.identity(len(names), np.float32, format="csr")).astype(np.float32).tocsr()


def left_out_rank(scores: Floats, labels: Ints, counts: npt.NDArray[np.integer]) -> float:
    """Mean reciprocal rank of the own label over records whose label another record has too."""
    answerable = counts[labels] > 1
    known = np.where(counts[None] > 0, scores, -np.inf)[answerable]
    own = known[np.arange(len(known)), labels[answerable]]
    ranks = (known > own[:, None]).sum(axis=1)
    return float(np.mean(1.0 / (1 + ranks))) if len(ranks) else 0.0


def dot(left: sp.csr_matrix, right: sp.csr_matrix) -> Floats:
    """``left @ right.T`` as a dense array; for few rows on the left without transposing the right."""
    if left.shape[0] <= _FEW_ROWS:
        return np.asarray((right @ left.T.toarray()).T, np.float32)
    return np.asarray((left @ right.T).toarray(), np.float32)


def penalised_inverse(matrix: Floats, ridge: float) -> Floats:
    """Inverse of a symmetric matrix with ``ridge`` added to its diagonal; a large one in single precision.

    Many near-identical cases make a curved kernel indefinite; then more is added, until it can be inverted.
    """
    precise = len(matrix) <= _PRECISE_LIMIT
    kind: Any = np.float64 if precise else np.float32
    added = ridge
    while True:
        square = np.array(matrix, kind)
        square[np.diag_indices_from(square)] += added
        try:
            lower = scipy.linalg.cholesky(square, lower=True, overwrite_a=True, check_finite=False)
            break
        except scipy.linalg.LinAlgError:
            added = 2 * added + 1e-3
    invert = scipy.linalg.lapack.dpotri if precise else scipy.linalg.lapack.spotri
    inverse, _ = invert(lower, lower=1, overwrite_c=1)
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    return np.asarray(inverse, np.float32)


class Likeness:
    """Parts of the kernel between two sets of cases, kept apart so that options can be tried cheaply."""

    def __init__(self, left: CaseFeatures, right: CaseFeatures, *, views: bool) -> None:
        self.words = dot(left.words[WHOLE], right.words[WHOLE])
        self.chars = dot(left.chars, right.chars)
        self.dense = left.dense[:, WHOLE] @ right.dense[:, WHOLE].T
        self.views: Floats | None = None
        if views:
            self.views = np.zeros_like(self.words)
            for view in range(len(left.words)):
                if view != WHOLE:
                    self.views += dot(left.words[view], right.words[view])
                    self.views += 0.6 * (left.dense[:, view] @ right.dense[:, view].T)
        known = (left.departments[:, None] >= 0) & (right.departments[None] >= 0)
        self.department = known & (left.departments[:, None] == right.departments[None])
        gap = np.log1p(np.nan_to_num(left.ages, nan=-0.9))[:, None] - np.log1p(
            np.nan_to_num(right.ages, nan=-0.9)
        )
        both = ~np.isnan(left.ages)[:, None] & ~np.isnan(right.ages)[None]
        self.age = np.where(both, np.exp(-((gap / _AGE_WIDTH) ** 2) / 2), 0).astype(np.float32)
        self.sex = (left.sexes[:, None] > 0) & (left.sexes[:, None] == right.sexes[None])

    def text(self, options: RidgeOptions) -> Floats:
        """Likeness of what is written."""
        total = self.words + options.chars * self.chars + options.dense * self.dense
        if self.views is not None and options.views:
            total = total + options.views * self.views
        return np.asarray(total, np.float32)

    def patient(self, options: RidgeOptions) -> Floats:
        """What the same department, age and sex make of it, as a factor."""
        factor = 1 + options.department * self.department + options.age * self.age + options.sex * self.sex
        return np.asarray(factor, np.float32)

    def kernel(self, options: RidgeOptions, scale: float) -> Floats:
        """The kernel, ``scale`` being the mean likeness of a case with itself."""
        raw = self.text(options) * self.patient(options) + 1.5 * options.age * self.age
        return np.asarray(np.maximum(raw / scale, 0) ** options.power, np.float32)

    def self_scale(self, options: RidgeOptions) -> float:
        """Mean likeness of a case with itself; for a set compared with itself."""
        raw = self.text(options) * self.patient(options) + 1.5 * options.age * self.age
        return float(max(np.diag(raw).mean(), 1e-6))


@dataclass
class DualRidge:
    """Exact kernel ridge regression over all training cases.

    Attributes:
        options: of the kernel.
        scale: mean likeness of a training case with itself.
        cases: training features.
        weights: ``[n, labels]`` float32.
    """

    options: RidgeOptions
    scale: float
    cases: CaseFeatures
    weights: Floats

    @classmethod
    def fit(
        cls,
        cases: CaseFeatures,
        targets: sp.csr_matrix,
        options: RidgeOptions,
        likeness: Likeness | None = None,
    ) -> tuple[Self, Floats]:
        """Fit; also what each training case would score if it had been left out, ``[n, labels]``.

        Args:
            cases: training features.
            targets: ``[n, labels]``.
            options: of the kernel.
            likeness: of the cases with themselves, where it is known already.
        """
        parts = likeness or Likeness(cases, cases, views=options.views > 0)
        scale = parts.self_scale(options)
        inverse = penalised_inverse(parts.kernel(options, scale), options.ridge)
        weights = np.asarray((targets.T @ inverse).T, np.float32)  # the inverse is symmetric
        left_out = targets.toarray() - weights / np.diag(inverse).astype(np.float32)[:, None]
        return cls(options, scale, cases, weights), np.asarray(left_out, np.float32)

    def _likeness(self, cases: CaseFeatures) -> Likeness:
        return Likeness(cases, self.cases, views=self.options.views > 0)

    def scores(self, cases: CaseFeatures) -> Floats:
        """``[m, labels]``."""
        return self._likeness(cases).kernel(self.options, self.scale) @ self.weights

    def word_shares(self, case: CaseFeatures, label: int) -> tuple[Ints, Floats]:
        """Term ids of one case's words and what each adds to a label's score, to first order."""
        parts = self._likeness(case)
        kernel = parts.kernel(self.options, self.scale)[0]
        slope = self.options.power * np.maximum(kernel, 1e-9) ** (1 - 1 / self.options.power) / self.scale
        pull = self.weights[:, label] * slope * parts.patient(self.options)[0]
        row = case.words[WHOLE]
        return row.indices.astype(np.int32), np.asarray(
            row.data * (self.cases.words[WHOLE].T @ pull)[row.indices]
        )

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """For a sidecar."""
        cases = self.cases
        out: dict[str, npt.NDArray[Any]] = {
            "weights": self.weights,
            "departments": cases.departments,
            "ages": cases.ages,
            "sexes": cases.sexes,
        }
        matrices = {f"words{view}": matrix for view, matrix in enumerate(cases.words)} | {
            "chars": cases.chars
        }
        for name, matrix in matrices.items():
            if name not in {f"words{WHOLE}", "chars"} and not self.options.views:
                continue
            out |= {f"{name}.data": matrix.data, f"{name}.columns": matrix.indices.astype(np.int32)}
            out |= {f"{name}.rows": matrix.indptr, f"{name}.width": np.array([matrix.shape[1]])}
        dense = cases.dense if self.options.views else cases.dense[:, WHOLE : WHOLE + 1]
        return out | {"dense": dense.astype(np.float16)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], options: RidgeOptions, scale: float) -> Self:
        """Inverse of :meth:`to_arrays`."""
        n = len(arrays["departments"])

        def matrix(name: str) -> sp.csr_matrix:
            if f"{name}.data" not in arrays:
                return sp.csr_matrix((n, int(arrays[f"words{WHOLE}.width"][0])), dtype=np.float32)
            parts = (arrays[f"{name}.data"], arrays[f"{name}.columns"], arrays[f"{name}.rows"])
            return sp.csr_matrix(parts, shape=(n, int(arrays[f"{name}.width"][0])))

        stored = np.asarray(arrays["dense"], np.float32)
        dense = stored
        if stored.shape[1] == 1:
            dense = np.zeros((n, 4, stored.shape[2]), np.float32)
            dense[:, WHOLE] = stored[:, 0]
        cases = CaseFeatures(
            tuple(matrix(f"words{view}") for view in range(4)),
            matrix("chars"),
            dense,
            np.asarray(arrays["departments"]),
            np.asarray(arrays["ages"]),
            np.asarray(arrays["sexes"]),
        )
        return cls(options, scale, cases, np.asarray(arrays["weights"]))
