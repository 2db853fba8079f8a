"""The table of section headings: what each heading of a clinical record stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from pydantic import Field

from .resources import DATA, RuleFile, load_rules

Kind = Literal["chief_complaint", "history", "examination", "diagnosis", "plan", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LANGUAGES = ("en", "zh", "ja")

WORD = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]+|[^\W_\u3041-\u30ff\u3400-\u9fff]+(?:['’][A-Za-z]+)?|[&/]")
NOTHING_BEHIND = re.compile(r"[ \t]{0,80}(?:\n|\Z)")
HAN_OR_KANA = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")


class HeadingsByKind(RuleFile):
    """Headings as written, by what they head."""

    chief_complaint: list[str] = Field(min_length=1)
    history: list[str] = Field(min_length=1)
    examination: list[str] = Field(min_length=1)
    diagnosis: list[str] = Field(min_length=1)
    plan: list[str] = Field(min_length=1)
    other: list[str] = Field(min_length=1)


class HeadingRules(RuleFile):
    """What the plain list cannot say.

    Attributes:
        minor: headings that, inside a diagnosis or plan, stay part of it.
        weak: diagnosis headings that count only as a heading of their own.
        not_diagnosis_after: words after which a weak heading is a finding ("gait assessment").
        modifiers: words in front of a diagnosis heading that belong to it.
        without_colon: abbreviations and headings that open a line with a space alone behind them.
        opening_words: and so do diagnosis headings with this last word.
        function_words: but not with one of these behind them ("Diagnosis of gout was made").
    """

    minor: list[str]
    weak: list[str]
    not_diagnosis_after: list[str]
    modifiers: list[str]
    without_colon: list[str]
    opening_words: list[str]
    function_words: list[str]


class SectionRules(RuleFile):
    """Schema of ``sections.<language>.toml``."""

    headings: HeadingsByKind
    rules: HeadingRules


@dataclass(frozen=True, slots=True)
class Heading:
    """One row of the table: what it heads, and how it behaves (see :class:`HeadingRules`)."""

    kind: Kind
    minor: bool
    weak: bool
    without_colon: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A heading in its place; offsets are into the whole text.

    Attributes:
        start: of the heading with the marks in front of it.
        name_start: of its words.
        name_end: one past its words.
        end: one past colon or bracket; here its section's text begins.
        line: offset of its line.
        line_start: nothing but marks stands in front of it on the line.
        alone: nothing stands behind it on the line.
        capitals: written in capitals alone.
        boxed: in brackets, or behind a Markdown or ■ sign.
        bullet: a list item.
    """

    heading: Heading
    start: int
    name_start: int
    name_end: int
    end: int
    line: int
    line_start: bool
    alone: bool
    capitals: bool
    boxed: bool
    bullet: bool

    @property
    def form(self) -> tuple[bool, ...]:
        """How prominently it is written."""
        return self.boxed, self.alone, self.capitals, self.bullet, self.line_start


@dataclass(frozen=True, slots=True)
class HeadingTable:
    """All languages' headings together, since a Chinese or Japanese record may well say "CC" or "Dx".

    Attributes:
        latin: words joined by single blanks, lower case -> heading.
        squashed: the same without blanks, for "ChiefComplaint" and "D I A G N O S I S".
        cjk: without blanks -> heading.
        last_words: last word of any Latin heading: a quick no.
        diagnosis_ends: last words (Latin) or whole headings of diagnoses.
        run_in: a diagnosis inside a line without a colon ("; Dx migraine"); group 1 is its heading.
        max_words: of a Latin heading.
        max_chars: of a Chinese or Japanese heading.
    """

    latin: dict[str, Heading]
    squashed: dict[str, Heading]
    cjk: dict[str, Heading]
    last_words: frozenset[str]
    diagnosis_ends: tuple[str, ...]
    run_in: re.Pattern[str]
    max_words: int
    max_chars: int
    modifiers: frozenset[str]
    not_diagnosis_after: frozenset[str]
    opening_words: frozenset[str]
    function_words: frozenset[str]


def key_of(words: list[str]) -> str:
    """Words of a heading as the table knows them."""
    return " ".join("&" if word.lower() == "and" else word.lower() for word in words)


def rules_of(language: str) -> SectionRules:
    """The shipped heading file of one language.

    Raises:
        InputError: the file is missing or breaks its schema.
    """
    return load_rules(DATA / f"sections.{language}.toml", SectionRules)


@lru_cache(maxsize=1)
def heading_table() -> HeadingTable:
    """The table of all languages; the diagnosis wins where two files disagree."""
    latin: dict[str, Heading] = {}
    cjk: dict[str, Heading] = {}
    files = [rules_of(language) for language in LANGUAGES]
    for file in files:
        _add(file, latin, cjk)
    rules = [file.rules for file in files]
    latin_only = {key: heading for key, heading in latin.items() if " " in key or len(key) > 5}
    return HeadingTable(
        latin=latin,
        squashed={key.replace(" ", ""): heading for key, heading in latin_only.items()},
        cjk=cjk,
        last_words=frozenset(key.rpartition(" ")[2] for key in latin),
        diagnosis_ends=tuple(
            sorted(
                {key.rpartition(" ")[2] for key, h in (latin | cjk).items() if h.kind == "diagnosis"} - {"x"}
            )
        ),
        run_in=_run_in(latin | cjk),
        max_words=max(key.count(" ") + 1 for key in latin),
        max_chars=max(map(len, cjk)),
        modifiers=frozenset(word for rule in rules for word in rule.modifiers),
        not_diagnosis_after=frozenset(word for rule in rules for word in rule.not_diagnosis_after),
        opening_words=frozenset(word for rule in rules for word in rule.opening_words),
        function_words=frozenset(word for rule in rules for word in rule.function_words),
    )


def _run_in(table: dict[str, Heading]) -> re.Pattern[str]:
    names = [key for key, h in table.items() if h.kind == "diagnosis" and h.without_colon and key.isalpha()]
    longest_first = "|".join(sorted(names, key=lambda name: (-len(name), name)))
    return re.compile(rf"[.;!?,。；，、][ \t]{{0,4}}({longest_first})[ \t]+(?=\w)", re.IGNORECASE)


def _add(rules: SectionRules, latin: dict[str, Heading], cjk: dict[str, Heading]) -> None:
    minor, weak, bare = (
        set(names) for names in (rules.rules.minor, rules.rules.weak, rules.rules.without_colon)
    )
    for kind in KINDS:
        names: list[str] = getattr(rules.headings, kind)
        for name in names:
            heading = Heading(kind, name in minor, name in weak, name in bare)
            words = WORD.findall(name)
            table, key = (cjk, "".join(words).lower()) if HAN_OR_KANA.search(name) else (latin, key_of(words))
            known = table.get(key)
            if known is None or (kind == "diagnosis" and known.kind != "diagnosis"):
                table[key] = heading
