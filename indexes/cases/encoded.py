"""A query as the index compares it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class EncodedQuery:
    """Vectors and words of a query's four views, in the order of ``VIEWS``.

    Attributes:
        vectors: ``[4, d]`` float32 unit rows after the index's whitening; zero where a view is absent.
        terms: four arrays of known term ids, repeated as often as the query uses them.
        own_weights: ``[4]`` float64, ``bm25(q, q)`` in each view.
        present: ``[4]`` bool, the views that the query has.
        raw: ``[4, d]`` vectors as the embedder gave them.
        words: of each view, known or not.
        generation: of the index that the rest was computed for.
    """

    vectors: npt.NDArray[np.float32]
    terms: tuple[npt.NDArray[np.int32], ...]
    own_weights: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    raw: npt.NDArray[np.float32]
    words: tuple[tuple[str, ...], ...]
    generation: str
