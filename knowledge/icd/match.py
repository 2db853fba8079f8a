"""What coding a text gives: the code, the stage that found it, and what else was considered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """Which step of the cascade gave the code."""

    CODE = "code"
    EXACT = "exact"
    ALIAS = "alias"
    FUZZY = "fuzzy"
    NEIGHBOUR = "neighbour"
    UNMAPPED = "unmapped"


@dataclass(frozen=True, slots=True)
class IcdCandidate:
    """A code that was considered; ``score`` falls from the match's own by how much less likely it is."""

    code: str
    title: str
    score: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The standard diagnosis of a similar record.

    Attributes:
        name: of the diagnosis.
        code: that the record carries, if any.
        score: similarity of the record, 0..1.
    """

    name: str
    code: str | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class IcdMatch:
    """How a text was coded.

    Attributes:
        text: as given.
        stage: the step that gave the code.
        code: None where unmapped.
        title: of the code.
        score: estimated probability that the code's category is right, 0..1; of the best rejected candidate
            where unmapped.
        margin: lead over the best candidate of another category.
        candidates: best first, at most ``top_k``; present for unmapped texts too.
        qualifiers: what clutter said: suspected, history, family, left, right, bilateral.
        leaf: the "unspecified" leaf below a code that is not itself a leaf, else the code.
    """

    text: str
    stage: Stage
    code: str | None
    title: str | None
    score: float
    margin: float
    candidates: tuple[IcdCandidate, ...] = ()
    qualifiers: tuple[str, ...] = ()
    leaf: str | None = None
