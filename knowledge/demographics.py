"""Age and sex of a case, from its fields or else from its text. Source: ours."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..language.resources import RuleFile, load_rules

_FILE = Path(__file__).parent / "data" / "demographics.toml"
_OLDEST = 130.0

_FEMALE = frozenset({"f", "female", "w", "woman", "女", "女性", "女婴", "girl", "2"})
_MALE = frozenset({"m", "male", "man", "男", "男性", "男婴", "boy", "1"})


class AgePattern(RuleFile):
    """A pattern with a group ``value``, and how many years one unit of it is."""

    pattern: str
    years: float = Field(gt=0)


class SexPattern(RuleFile):
    """A pattern that says a sex."""

    pattern: str
    sex: Literal["F", "M"]


class DemographicPatterns(RuleFile):
    """Schema of ``demographics.toml``."""

    within: int = Field(ge=1)
    age: list[AgePattern]
    sex: list[SexPattern]


@lru_cache(maxsize=1)
def _patterns() -> tuple[int, list[tuple[re.Pattern[str], float]], list[tuple[re.Pattern[str], str]]]:
    rules = load_rules(_FILE, DemographicPatterns)
    ages = [(re.compile(rule.pattern), rule.years) for rule in rules.age]
    sexes = [(re.compile(rule.pattern), str(rule.sex)) for rule in rules.sex]
    return rules.within, ages, sexes


def normalise_sex(sex: str | None) -> str | None:
    """``"F"``, ``"M"`` or None for any other or no code."""
    plain = unicodedata.normalize("NFKC", sex or "").strip().casefold()
    if plain in _FEMALE:
        return "F"
    return "M" if plain in _MALE else None


def demographics_of(text: str, age: float | None = None, sex: str | None = None) -> tuple[float, str | None]:
    """Years (NaN where unknown) and sex (``"F"``, ``"M"``, None) of a case.

    Args:
        text: of the case; read only for what the fields leave open.
        age: from the fields.
        sex: from the fields.
    """
    known_age = math.nan if age is None or math.isnan(age) else float(age)
    known_sex = normalise_sex(sex)
    if not math.isnan(known_age) and known_sex:
        return known_age, known_sex
    within, ages, sexes = _patterns()
    start = unicodedata.normalize("NFKC", text[: 2 * within])[:within].casefold()
    if math.isnan(known_age):
        for pattern, years in ages:
            match = pattern.search(start)
            if match and float(match["value"]) * years <= _OLDEST:
                known_age = float(match["value"]) * years
                break
    if known_sex is None:
        found = [(match.start(), said) for pattern, said in sexes if (match := pattern.search(start))]
        known_sex = min(found)[1] if found else None
    return known_age, known_sex
