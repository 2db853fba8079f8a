"""One name for a department, however and in whatever language it is written. Source: ours."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from pathlib import Path

from pydantic import Field
from rapidfuzz import fuzz, process

from ..language.resources import RuleFile, load_rules

_FILE = Path(__file__).parent / "data" / "departments.toml"
_CLOSE_ENOUGH = 88.0
_SHORTEST_FUZZY = 6


class DepartmentNames(RuleFile):
    """Schema of ``departments.toml``: canonical name -> other names."""

    departments: dict[str, list[str]] = Field(min_length=1)


@lru_cache(maxsize=1)
def _aliases() -> dict[str, str]:
    known = load_rules(_FILE, DepartmentNames).departments
    table: dict[str, str] = {}
    for canonical, names in known.items():
        for name in [canonical, *names]:
            table[_fold(name)] = canonical
    return table


def known_departments() -> frozenset[str]:
    """Canonical names of ``departments.toml``."""
    return frozenset(_aliases().values())


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold().replace("&", " and ").replace("_", " ")
    kept = "".join(c if c.isalnum() else " " for c in plain)
    words = [
        word
        for word in kept.split()
        if word not in {"department", "dept", "of", "clinic", "the", "outpatient"}
    ]
    return " ".join(words).removesuffix("门诊").removesuffix("外来")


@lru_cache(maxsize=4096)
def normalise_department(name: str | None) -> str | None:
    """Canonical name of a department; one that is not known keeps its own folded name; None for none.

    A misspelt Latin name is matched by rapidfuzz, a Chinese or Japanese one only exactly: one character makes
    another department there.
    """
    if name is None or not name.strip():
        return None
    folded = _fold(name)
    table = _aliases()
    if folded in table:
        return table[folded]
    if len(folded) >= _SHORTEST_FUZZY and folded.isascii():
        latin = [alias for alias in table if alias.isascii() and len(alias) >= _SHORTEST_FUZZY]
        found = process.extractOne(folded, latin, scorer=fuzz.ratio, score_cutoff=_CLOSE_ENOUGH)
        if found is not None:
            return table[found[0]]
    return folded or None
