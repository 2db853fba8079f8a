"""One round of an evaluation: the records searched, a query, and what a condition says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..indexes.cases import CaseIndex, ChannelScores, EncodedQuery
from ..knowledge.case_table import Patient
from ..knowledge.learned import LabelScorer
from ..knowledge.learned_models import LearnedModels
from ..knowledge.lessons import Lessons
from ..knowledge.weights import ViewWeights

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Question:
    """A query as every condition sees it.

    Attributes:
        id: names it in ties.
        text: the whole of it, without a diagnosis.
        patient: who it is about.
        headed: whether its views come from headings or fields.
        encoded: by the fold's index.
        found: candidates, with every channel's score; never the query itself.
        learned: ``[labels]`` of ours; left out where the query is in the index.
        supervised: ``[labels]`` of the text-only baseline; likewise.
        own_label: number of its label where it is in the index and left out, else -1.
    """

    id: str
    text: str
    patient: Patient
    headed: bool
    encoded: EncodedQuery
    found: ChannelScores
    learned: Floats
    supervised: Floats
    own_label: int = -1


@dataclass
class Fold:
    """Records to search, with what every condition may share.

    Attributes:
        index: of the records.
        lessons: its records asked as queries.
        supervised: the text-only baseline, and its left-out scores of the records asked.
        table: of view weights.
        seed: of ties.
        named: the same lessons with diagnoses told apart by name alone; made when asked for.
    """

    index: CaseIndex
    lessons: Lessons
    supervised: tuple[LabelScorer | None, Floats]
    table: ViewWeights
    seed: int
    named: Callable[[], Lessons]
    _whole: Lessons | None = None
    _named: Lessons | None = None
    _models: dict[str, LearnedModels] = field(default_factory=dict)

    def models(self, name: str, make: Callable[[], LearnedModels]) -> LearnedModels:
        """Models under a name, fitted once."""
        if name not in self._models:
            self._models[name] = make()
        return self._models[name]

    def whole(self) -> Lessons:
        """The same lessons with a scorer that reads the whole text alone."""
        if self._whole is None:
            self._whole = self.lessons.whole_only()
        return self._whole

    def by_name(self) -> Lessons:
        """Lessons in which diagnoses are told apart by name alone."""
        if self._named is None:
            self._named = self.named()
        return self._named

    def ours(self) -> LearnedModels:
        """What ships."""
        return self.models("ours", lambda: self.lessons.models(self.table))


@dataclass(frozen=True)
class Prediction:
    """What a condition says about one query.

    Attributes:
        ranked: diagnoses as name and code, best first.
        signs: features of confidence.
        confidence: calibrated on the fold's records.
        raw: MAP-RAG's raw confidence.
    """

    ranked: tuple[tuple[str, str | None], ...]
    signs: npt.NDArray[np.float64]
    confidence: float
    raw: float


Answerer = Callable[[Question], Prediction]


class Condition(Protocol):
    """Prepares on a fold and gives what answers its queries."""

    def __call__(self, fold: Fold) -> Answerer:
        """Prepare."""
        ...
