"""Half-whitening: averaged embedders put most of their variance into few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

FIT_ROWS = 20_000
FEWEST_ROWS = 50
_CHUNK = 8192


@dataclass(frozen=True)
class Whitening:
    """A linear map that evens out the directions of a set of vectors.

    Attributes:
        mean: ``[d]``, subtracted first; None for the identity.
        matrix: ``[d, d]`` symmetric, applied after; None for the identity.
    """

    mean: Floats | None = None
    matrix: Floats | None = None

    @classmethod
    def fit(cls, vectors: npt.NDArray[Any], exponent: float) -> Whitening:
        """Fit to vectors ``[n, d]`` in any order; zero rows are left out.

        The covariance is shrunk toward a multiple of the identity by ``d / (d + n)``, so few vectors change
        little, and fewer than 50 nothing at all. Source: ours.

        Args:
            vectors: unit rows.
            exponent: 0 leaves vectors as they are, 1 whitens fully.
        """
        rows = np.asarray(vectors, np.float32)
        rows = rows[np.any(rows, axis=1)]
        count, dimension = rows.shape
        if exponent == 0 or count < FEWEST_ROWS:
            return cls()
        mean = rows.mean(axis=0, dtype=np.float64)
        centred = rows - mean.astype(np.float32)
        covariance = np.asarray(centred.T @ centred, np.float64) / count
        share = dimension / (dimension + count)
        level = float(np.trace(covariance)) / dimension
        if level <= 0:
            return cls()
        shrunk = (1 - share) * covariance + share * level * np.eye(dimension)
        values, directions = np.linalg.eigh(shrunk / level)
        scale = np.maximum(values, 1e-6) ** (-exponent / 2)
        matrix = (directions * scale) @ directions.T
        return cls(mean.astype(np.float32), matrix.astype(np.float32))

    def apply(self, vectors: npt.NDArray[Any]) -> Floats:
        """Map ``[n, d]`` to unit rows; a zero row stays zero."""
        rows: Floats = np.array(vectors, np.float32)
        filled = np.any(rows, axis=1)
        if self.mean is not None and self.matrix is not None:
            rows = np.asarray((rows - self.mean) @ self.matrix, np.float32)
        norms = np.linalg.norm(rows, axis=1)
        filled &= norms > 1e-12
        rows /= np.where(filled, norms, 1.0)[:, None]
        rows[~filled] = 0
        return rows
