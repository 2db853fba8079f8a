"""How much each view and channel counts, by department. Source: MAP-RAG; the figures are ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ..errors import SettingsError
from ..language.resources import RuleFile, load_rules
from ..records.schema import VIEWS, View
from .departments import normalise_department

Floats = npt.NDArray[np.float32]

SHIPPED = Path(__file__).parent / "data" / "weights.toml"
GLOBAL_SHARE = 0.5
"""Least weight on the whole text where the text has no headings: its views are guesses then."""


class ChannelWeights(RuleFile):
    """One view's two channels."""

    dense: float = Field(default=0.0, ge=0)
    sparse: float = Field(default=0.0, ge=0)


class WeightRow(RuleFile):
    """One department's eight weights; only their ratios matter."""

    chief_complaint: ChannelWeights = ChannelWeights()
    history: ChannelWeights = ChannelWeights()
    examination: ChannelWeights = ChannelWeights()
    global_: ChannelWeights = Field(default=ChannelWeights(), alias="global")

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if self.matrix().sum() <= 0:
            msg = "at least one weight must be above 0"
            raise ValueError(msg)
        return self

    def matrix(self) -> Floats:
        """``[4, 2]`` float32 in the order of ``VIEWS``."""
        rows = [getattr(self, "global_" if view is View.GLOBAL else view.value) for view in VIEWS]
        return np.array([[row.dense, row.sparse] for row in rows], np.float32)


class WeightTable(RuleFile):
    """Schema of ``weights.toml``."""

    general: WeightRow
    departments: dict[str, WeightRow] = Field(default_factory=dict)


@dataclass(frozen=True)
class ViewWeights:
    """View weights of a general row and of departments.

    Attributes:
        general: ``[4, 2]`` float32, view x channel, summing to 1.
        departments: the same by canonical department name.
        source: where they come from: a file, or ``"fit"``.
        data_hash: version of the index they were fitted on; None for a table.
        score: mean log-likelihood per case that a fit reached on records left out; None for a table.
        report: what a fit says about each department.
    """

    general: Floats
    departments: Mapping[str, Floats] = field(default_factory=dict)
    source: str = "table"
    data_hash: str | None = None
    score: float | None = None
    report: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read a table; the shipped one where ``path`` is None.

        Raises:
            SettingsError: two rows mean the same department.
            InputError: missing, no TOML, or against the schema; names file and key.
        """
        where = Path(path) if path is not None else SHIPPED
        table = load_rules(where, WeightTable)
        rows: dict[str, Floats] = {}
        for name, row in table.departments.items():
            canonical = normalise_department(name)
            if canonical is None or canonical in rows:
                raise SettingsError(
                    f"{where}: departments.{name}: names no department, or one twice; remove it"
                )
            rows[canonical] = _unit(row.matrix())
        return cls(_unit(table.general.matrix()), rows, source=where.name)

    @classmethod
    @lru_cache(maxsize=1)
    def shipped(cls) -> ViewWeights:
        """The shipped table."""
        return cls.load()

    def general_only(self) -> ViewWeights:
        """The same without departments."""
        return ViewWeights(self.general, {}, self.source, self.data_hash, self.score)

    def row(self, department: str | None, present: npt.NDArray[np.bool_], *, headed: bool = True) -> Floats:
        """Weights for one query.

        Args:
            department: as the caller names it; one without a row of its own takes the general one.
            present: ``[4]``, the views that the query has; the others get 0.
            headed: whether the views come from headings or fields; where they were guessed from sentences,
                the whole keeps at least half of the weight.

        Returns:
            ``[4, 2]`` float32, at least 0, summing to 1; all 0 for a query without any view.
        """
        canonical = normalise_department(department)
        chosen = self.departments.get(canonical, self.general) if canonical else self.general
        weights = np.where(np.asarray(present)[:, None], chosen, 0).astype(np.float64)
        if weights.sum() <= 0:
            weights = np.repeat(np.asarray(present, np.float64)[:, None], 2, axis=1)
        whole = VIEWS.index(View.GLOBAL)
        if not headed and present[whole]:
            weights = _at_least_half(weights, whole)
        total = weights.sum()
        return np.asarray(weights / total if total > 0 else weights, np.float32)

    def to_json(self) -> dict[str, Any]:
        """For a sidecar."""
        return {
            "general": self.general.tolist(),
            "departments": {name: row.tolist() for name, row in self.departments.items()},
            "source": self.source,
            "data_hash": self.data_hash,
            "score": self.score,
            "report": dict(self.report),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""
        return cls(
            np.asarray(data["general"], np.float32),
            {name: np.asarray(row, np.float32) for name, row in data["departments"].items()},
            data["source"],
            data["data_hash"],
            data["score"],
            data["report"],
        )


def _unit(matrix: Floats) -> Floats:
    return np.asarray(matrix / matrix.sum(), np.float32)


def _at_least_half(weights: npt.NDArray[np.float64], whole: int) -> npt.NDArray[np.float64]:
    inside = float(weights[whole].sum())
    others = float(weights.sum()) - inside
    if inside >= others or others <= 0:
        return weights
    if inside <= 0:
        out = np.array(weights * (1 - GLOBAL_SHARE) / others)
        out[whole] = GLOBAL_SHARE / 2
        return out
    out = np.array(weights * (1 - GLOBAL_SHARE) / others)
    out[whole] = weights[whole] * GLOBAL_SHARE / inside
    return out
