"""What a ranker looks rows and labels up in: always of the one index state that a question reads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import numpy.typing as npt

from ..indexes.cases import CaseReader
from ..knowledge.labels import LabelSpace
from ..knowledge.learned_models import LearnedModels, label_rows, stored, unlearned

Ints = npt.NDArray[np.int32]
Written = list[tuple[str, str | None]]

_KEPT = 2


@dataclass(frozen=True)
class RankingBasis:
    """Models and labels of one state of an index. It holds none of the index's files.

    Attributes:
        models: what was learned from that state.
        written: distinct main diagnoses and codes of the index.
        labels: ``[n]`` label number of each record; -1 for none.
    """

    models: LearnedModels
    written: Written
    labels: Ints

    @classmethod
    def of(cls, cases: CaseReader, models: LearnedModels) -> RankingBasis:
        """Number the records' labels as the models do."""
        number = np.append(models.label_of_written, np.int32(-1)).astype(np.int32)
        return cls(models, _written(cases), number[np.asarray(cases.labels)])

    def rows_of(self, labels: Ints) -> npt.NDArray[np.int64]:
        """Up to three rows of each label, so that it can have evidence."""
        return np.concatenate([*(self._rows(int(label)) for label in labels), np.zeros(0, np.int64)])

    @cached_property
    def _rows(self) -> Callable[[int], npt.NDArray[np.int64]]:
        return label_rows(self.labels, len(self.models.keys))

    @cached_property
    def space(self) -> LabelSpace:
        """From a diagnosis as written to its label number."""
        numbered = zip(self.written, self.models.label_of_written.tolist(), strict=True)
        return LabelSpace.of((pair for pair, number in numbered if number >= 0), self.models.mode)


class RankingBases:
    """The basis of each state that questions read, made when the first of them does.

    Args:
        cases: the present state.
        models: what serves the records that it was learned from; what a state keeps, or else what needs no
            learning, where None and for other records.
    """

    def __init__(self, cases: CaseReader, models: LearnedModels | None) -> None:
        self._given = models
        self._written = _written(cases)
        self._kept: OrderedDict[str, RankingBasis] = OrderedDict()
        self._lock = Lock()

    def of(self, cases: CaseReader) -> RankingBasis:
        """The basis of a state."""
        with self._lock:
            basis = self._kept.get(cases.generation)
            if basis is None:
                basis = self._kept[cases.generation] = RankingBasis.of(cases, self._models(cases))
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return basis

    def _models(self, cases: CaseReader) -> LearnedModels:
        given = self._given
        if given is None:
            return stored(cases) or unlearned(cases)
        if cases.version == given.version and _written(cases) == self._written:
            return given
        return stored(cases) or unlearned(cases, table=given.weights, mode=given.mode)


def _written(cases: CaseReader) -> Written:
    return list(zip(cases.label_names, cases.label_codes, strict=True))
