"""Scores of the stages: how often each was right on held-out names (``stages.toml``)."""

from __future__ import annotations

from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from .lexicon import read_toml
from .lookup import Found


class StageScores(BaseModel):
    """Probabilities that go with a stage, and the cut-offs of similar names.

    Attributes:
        exact: of an equal title or inclusion term, by closeness.
        alias: of an equal alias or cross-reference, by closeness.
        relaxed: of a wording that is equal without subtype, inheritance, onset or grade, by step.
        local: of a hospital's own alias.
        neighbour: times the similarity of the record that lends its diagnosis.
        contradiction: what is left of a candidate that takes the opposite side.
        min_score: similar names below this are no match.
        min_margin: nor are those with a smaller lead over another category.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exact: tuple[float, float, float]
    alias: tuple[float, float, float]
    relaxed: tuple[float, ...]
    local: float = Field(ge=0, le=1)
    neighbour: float = Field(ge=0, le=1)
    contradiction: float = Field(ge=0, le=1)
    min_score: float = Field(ge=0, le=1)
    min_margin: float = Field(ge=0, le=1)

    def of(self, found: Found) -> float:
        """Score of an equal wording."""
        if found.closeness >= len(self.exact):
            return self.relaxed[found.closeness - len(self.exact)]
        return (self.exact if found.stage == "exact" else self.alias)[found.closeness]


@lru_cache(maxsize=1)
def stage_scores() -> StageScores:
    """The shipped scores."""
    return StageScores.model_validate(read_toml("stages.toml"))
