"""What a search of the case index gives back: arrays, before anything is materialised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Channel(IntEnum):
    """The two ways a view is compared."""

    DENSE = 0
    SPARSE = 1


@dataclass(frozen=True)
class ChannelScores:
    """All channel scores of every candidate of one query, each on an absolute 0..1 scale.

    Attributes:
        rows: candidates' row numbers in the index, ``[n]`` int64, unique, unordered.
        scores: ``[n, 4, 2]`` float32: candidate x view (order of ``VIEWS``) x ``Channel``. A view that the
            record or the query lacks scores 0.
        present: ``[4]`` bool: the views that the query has.
    """

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    present: npt.NDArray[np.bool_]
