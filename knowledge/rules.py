"""Department rules: what patient and measured values say of a diagnosis. Source: MAP-RAG for the idea."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from ..language.resources import RuleFile, load_rules
from .departments import normalise_department
from .labels import normalise_code

SHIPPED = Path(__file__).parent / "data" / "rules.toml"


class _Meant(RuleFile):
    """Which diagnoses a rule is about.

    Attributes:
        codes: prefixes, or ranges of categories such as ``"N70-N77"``.
        names: parts of names, for diagnoses without a code.
    """

    codes: list[str] = Field(min_length=1)
    names: list[str] = Field(default_factory=list)
    effect: float = Field(ge=-10, le=10)
    reason: str = Field(min_length=1)

    @cached_property
    def _spans(self) -> list[tuple[str, str]]:
        ends = [tuple(code.replace(".", "").upper().split("-")) for code in self.codes]
        return [(end[0], end[-1]) for end in ends]

    @cached_property
    def _parts(self) -> list[str]:
        return [part.casefold() for part in self.names]

    def means(self, name: str, code: str | None) -> bool:
        """Whether a diagnosis is one of the rule's."""
        plain = normalise_code(code)
        if plain:
            return any(low <= plain[: len(low)] and plain[: len(high)] <= high for low, high in self._spans)
        folded = unicodedata.normalize("NFKC", name).casefold()
        return any(part in folded for part in self._parts)


class PatientRule(_Meant):
    """A diagnosis that only some patients can have.

    Attributes:
        sex: who alone can have it.
        youngest: years.
        oldest: years.
    """

    id: str
    sex: Literal["F", "M"] | None = None
    youngest: float | None = Field(default=None, ge=0)
    oldest: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.sex is None and self.youngest is None and self.oldest is None:
            msg = "needs sex, youngest or oldest"
            raise ValueError(msg)
        return self

    def broken_by(self, age: float, sex: str | None) -> bool:
        """Whether a patient cannot have it; what is unknown breaks nothing."""
        wrong_sex = self.sex is not None and sex is not None and sex != self.sex
        known = not math.isnan(age)
        young = known and self.youngest is not None and age < self.youngest
        old = known and self.oldest is not None and age > self.oldest
        return wrong_sex or young or old


class FindingRule(_Meant):
    """A measured value that speaks for diagnoses.

    Attributes:
        departments: canonical names; any where empty.
        pattern: regular expression with a group ``value``, on width- and case-folded text.
        above: holds for values over this.
        below: holds for values under this.
        unit: for the reader.
    """

    id: str
    departments: list[str] = Field(default_factory=list)
    pattern: str
    above: float | None = None
    below: float | None = None
    unit: str = ""

    @field_validator("pattern")
    @classmethod
    def _has_value(cls, pattern: str) -> str:
        if "value" not in re.compile(pattern).groupindex:
            msg = "needs a group (?P<value>…)"
            raise ValueError(msg)
        return pattern

    @model_validator(mode="after")
    def _has_threshold(self) -> Self:
        if (self.above is None) == (self.below is None):
            msg = "needs either above or below"
            raise ValueError(msg)
        return self

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def holds(self, folded: str) -> bool:
        """Whether any value in the text passes the threshold."""
        for match in self._compiled.finditer(folded):
            value = float(match["value"])
            if (self.above is not None and value > self.above) or (
                self.below is not None and value < self.below
            ):
                return True
        return False


class LateralityRule(RuleFile):
    """A diagnosis that names the side that the case does not."""

    effect: float = Field(le=0, ge=-10)
    reason: str
    left: list[str] = Field(min_length=1)
    right: list[str] = Field(min_length=1)

    @cached_property
    def _sides(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        return re.compile("|".join(self.left)), re.compile("|".join(self.right))

    def side(self, folded: str) -> str | None:
        """``"left"`` or ``"right"`` where a text names only one of them."""
        left, right = (bool(side.search(folded)) for side in self._sides)
        if left == right:
            return None
        return "left" if left else "right"


class RuleTable(RuleFile):
    """Schema of ``rules.toml``."""

    patient: list[PatientRule] = Field(default_factory=list)
    finding: list[FindingRule] = Field(default_factory=list)
    laterality: LateralityRule | None = None


@dataclass(frozen=True)
class RuleEffect:
    """What a rule says about one diagnosis.

    Attributes:
        rule: its id.
        effect: added to the log-odds.
        reason: for the reader.
    """

    rule: str
    effect: float
    reason: str


@dataclass(frozen=True)
class ActiveRules:
    """The rules that a case triggers, to be asked about many diagnoses."""

    rules: Sequence[PatientRule | FindingRule]
    laterality: LateralityRule | None = None
    side: str | None = None
    _known: dict[tuple[str, str | None], tuple[RuleEffect, ...]] = field(default_factory=dict)

    def effects(self, name: str, code: str | None = None) -> tuple[RuleEffect, ...]:
        """Effects on one diagnosis; empty for most."""
        key = (name, code)
        if key not in self._known:
            found = [RuleEffect(r.id, r.effect, r.reason) for r in self.rules if r.means(name, code)]
            if self.laterality is not None and self.side is not None:
                named = self.laterality.side(_fold(name))
                if named is not None and named != self.side:
                    found.append(RuleEffect("laterality", self.laterality.effect, self.laterality.reason))
            self._known[key] = tuple(found)
        return self._known[key]

    def total(self, name: str, code: str | None = None) -> float:
        """Sum of the effects on one diagnosis."""
        return sum(effect.effect for effect in self.effects(name, code))


class DepartmentRules:
    """A rule table, ready to be asked about cases.

    Args:
        table: as read from TOML.
    """

    def __init__(self, table: RuleTable) -> None:
        self.table = table

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read a table; the shipped one where ``path`` is None.

        Raises:
            InputError: missing, no TOML, or against the schema; names file and key.
        """
        return cls(load_rules(Path(path) if path is not None else SHIPPED, RuleTable))

    def active(
        self, text: str, *, department: str | None = None, age: float = math.nan, sex: str | None = None
    ) -> ActiveRules:
        """Rules that a case triggers.

        Args:
            text: of the case, without its diagnosis.
            department: as the caller names it.
            age: years, NaN where unknown.
            sex: ``"F"``, ``"M"`` or None.
        """
        folded = _fold(text)
        clinic = normalise_department(department)
        rules: list[PatientRule | FindingRule] = [
            rule for rule in self.table.patient if rule.broken_by(age, sex)
        ]
        rules += [
            rule
            for rule in self.table.finding
            if (not rule.departments or clinic is None or clinic in rule.departments) and rule.holds(folded)
        ]
        side = self.table.laterality.side(folded) if self.table.laterality else None
        return ActiveRules(rules, self.table.laterality, side)


@lru_cache(maxsize=1)
def shipped_rules() -> DepartmentRules:
    """The shipped rules."""
    return DepartmentRules.load()


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
