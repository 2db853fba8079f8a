"""The data files of coding, loaded and checked once."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

from pydantic import BaseModel, ConfigDict, Field

from ...errors import InputError


def data_file(name: str) -> Traversable:
    """A file of ``knowledge/data/icd``."""
    return resources.files("wardround.knowledge").joinpath("data", "icd", name)


def read_table(name: str) -> Iterator[dict[str, str]]:
    """Rows of a shipped CSV (or ``.csv.gz``) by its headings; lines that start with ``#`` are comments.

    Raises:
        InputError: a row with more or fewer cells than headings.
    """
    raw = data_file(name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8")
    lines = (line for line in io.StringIO(text, newline="") if not line.startswith("#"))
    for number, row in enumerate(csv.DictReader(lines, strict=True), start=2):
        if None in row or None in row.values():
            msg = f"{name}: row {number} has not one cell per heading"
            raise InputError(msg)
        yield {key: value.strip() for key, value in row.items()}


def read_toml(name: str) -> dict[str, object]:
    """A shipped TOML file."""
    return tomllib.loads(data_file(name).read_text(encoding="utf-8"))


class WordClasses(BaseModel):
    """Classes of English words (``words.toml``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stop: frozenset[str]
    vague: frozenset[str]
    light: frozenset[str]
    generic: frozenset[str]
    ambiguous: frozenset[str]
    edge: dict[str, str]
    cjk_light: str
    cjk_generic: tuple[str, ...]
    cjk_relax: tuple[str, ...]
    numbered: frozenset[str]
    relax: tuple[frozenset[str], ...]
    roman: dict[str, str]
    roman_after: dict[str, str]
    greek: dict[str, str]


class Opposites(BaseModel):
    """Words that never stand for each other (``opposites.toml``).

    Attributes:
        words: groups of two or more poles; a pole is a list of canonical words.
        prefixes: groups of word beginnings, e.g. hyper/hypo.
        zh: groups of poles, each a list of strings of Chinese text.
        ja: the same of Japanese text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: tuple[tuple[tuple[str, ...], ...], ...]
    prefixes: tuple[tuple[str, ...], ...]
    zh: tuple[tuple[tuple[str, ...], ...], ...]
    ja: tuple[tuple[tuple[str, ...], ...], ...]


class Qualifier(BaseModel):
    """A pattern that is taken out of a diagnosis and kept as a qualifier.

    Attributes:
        name: of the qualifier.
        pattern: what says it.
        past: whether the diagnosis is then over, so that its own code would be wrong.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    pattern: str
    past: bool = False


class Denoising(BaseModel):
    """Patterns of clutter around a diagnosis (``denoise.toml``), applied until nothing changes.

    Attributes:
        remove: patterns that say nothing.
        qualifiers: patterns that are kept.
        absent: patterns of texts that deny a diagnosis.
        nothing: texts, folded, that name no diagnosis.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    remove: tuple[str, ...]
    qualifiers: tuple[Qualifier, ...]
    absent: tuple[str, ...]
    nothing: frozenset[str]


@lru_cache(maxsize=1)
def word_classes() -> WordClasses:
    """The shipped classes of words."""
    return WordClasses.model_validate(read_toml("words.toml"))


@lru_cache(maxsize=1)
def opposites() -> Opposites:
    """The shipped opposites."""
    return Opposites.model_validate(read_toml("opposites.toml"))


@lru_cache(maxsize=1)
def denoising() -> Denoising:
    """The shipped patterns of clutter."""
    return Denoising.model_validate(read_toml("denoise.toml"))


@lru_cache(maxsize=1)
def spelling() -> list[tuple[re.Pattern[str], str]]:
    """Substitutions inside one word that make British, American and old spellings equal."""
    return [(re.compile(row["pattern"]), row["replacement"]) for row in read_table("spelling.csv")]


@lru_cache(maxsize=1)
def lexicon_hash() -> str:
    """Hash of every data file, for cache keys."""
    digest = hashlib.sha256()
    for entry in sorted(data_file(".").iterdir(), key=lambda item: item.name):
        if entry.is_file():
            digest.update(entry.name.encode())
            digest.update(entry.read_bytes())
    return digest.hexdigest()[:20]
