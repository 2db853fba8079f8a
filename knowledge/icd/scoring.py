"""Scores of the stages: how often each was right on held-out names (``stages.toml``)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from .lexicon import read_toml
from .lookup import Found


class StageScores(BaseModel):
    """Probabilities that go with a stage, and the cut-offs of similar names.

    Attributes:
        exact: of an equal title or inclusion term, by closeness.
        inclusion: of an equal inclusion term in canonical words.
        choice: of an equal title in canonical words with several codes of one category to choose from.
        alias: of an equal alias, by closeness.
        hint: of an equal alias by agreement, by closeness.
        note: of an equal cross-reference or likely alias, by closeness.
        local: of a hospital's own alias.
        neighbour: times the similarity of the record that lends its diagnosis.
        contradiction: what is left of a candidate that takes the opposite side.
        lone_unknown: what is left of the candidates of a short single word that no wording has.
        lone_letters: how short such a word is.
        agreement: how strongly candidates of the same category help each other (an exponent).
        similar_raw: knots of the raw confidence of a similar name: its category's share of all candidates'
            probability times the sum of that category's probabilities.
        similar: what it is worth at these knots.
        min_score: similar names below this are no match.
        min_margin: nor are those with a smaller lead over another category.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exact: tuple[float, ...]
    inclusion: float = Field(ge=0, le=1)
    choice: float = Field(ge=0, le=1)
    alias: tuple[float, ...]
    hint: tuple[float, ...]
    note: tuple[float, ...]
    local: float = Field(ge=0, le=1)
    neighbour: float = Field(ge=0, le=1)
    contradiction: float = Field(ge=0, le=1)
    lone_unknown: float = Field(ge=0, le=1)
    lone_letters: int = Field(ge=0)
    agreement: float = Field(ge=0)
    similar_raw: tuple[float, ...]
    similar: tuple[float, ...]
    min_score: float = Field(ge=0, le=1)
    min_margin: float = Field(ge=0, le=1)

    def of(self, found: Found) -> float:
        """Score of an equal wording."""
        if found.source == "exact" and found.closeness == 1:
            if not found.title:
                return self.inclusion
            if len(found.rows) > 1:
                return self.choice
        tables = {"exact": self.exact, "alias": self.alias, "hint": self.hint, "note": self.note}
        by_closeness = tables[found.source]
        return by_closeness[min(found.closeness, len(by_closeness) - 1)]

    def of_similar(self, raw: float) -> float:
        """Score of a similar name, from its raw confidence."""
        return float(np.interp(raw, self.similar_raw, self.similar))


@lru_cache(maxsize=1)
def stage_scores() -> StageScores:
    """The shipped scores."""
    return StageScores.model_validate(read_toml("stages.toml"))
