"""Sorts sentences without heading into views by the words in them, and finds those that state a diagnosis."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import Field

from .detect import Language
from .resources import DATA, RuleFile, load_rules
from .sentences import sentence_spans

CueView = Literal["chief_complaint", "history", "examination"]

_SURE_FINDING = 2
_ONLY_WHO = 15
"""A first sentence this short ("34歳女性。") only says who; the next one brings the complaint."""
_NUMBER = re.compile(r"\d")
_CLAUSE_END = re.compile(r"[,;:，；、：]| and | but ")
_BESIDE = (30, 20)
"""Characters before and after cue and name in which a word of the past or of the family counts."""


class CueRules(RuleFile):
    """Schema of ``cues.<language>.toml``: words and phrases that point to a view."""

    examination: list[str] = Field(min_length=1)
    history: list[str] = Field(min_length=1)
    complaint: list[str] = Field(min_length=1)
    diagnosing: list[str] = Field(min_length=1)
    told: list[str] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class _Cues:
    examination: re.Pattern[str]
    history: re.Pattern[str]
    complaint: re.Pattern[str]


def cue_rules(language: Language) -> CueRules:
    """The shipped cues of one language.

    Raises:
        InputError: the file is missing or breaks its schema.
    """
    return load_rules(DATA / f"cues.{language}.toml", CueRules)


def states_diagnosis(sentence: str, name: re.Pattern[str]) -> bool:
    """Whether a sentence says that this patient has what ``name`` matches. Source: ours.

    Args:
        sentence: in lower case, white space collapsed.
        name: of the diagnosis.

    Example:
        >>> [
        ...     states_diagnosis(sentence, re.compile("migraine"))
        ...     for sentence in ("findings consistent with migraine.", "history of migraine.")
        ... ]
        [True, False]
    """
    diagnosing, told = _diagnosing()
    names = [match.span() for match in name.finditer(sentence)]
    for cue in diagnosing.finditer(sentence) if names else ():
        for start, end in names:
            first, last = min(start, cue.start()), max(end, cue.end())
            before = _CLAUSE_END.split(sentence[max(0, first - _BESIDE[0]) : first])[-1]
            after = _CLAUSE_END.split(sentence[last : last + _BESIDE[1]])[0]
            if told.search(before + sentence[first:last] + after) is None:
                return True
    return False


@lru_cache(maxsize=1)
def _diagnosing() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Cues and counter-cues of all languages: a Chinese record may state its diagnosis in English."""
    languages: tuple[Language, ...] = ("en", "zh", "ja")
    rules = {language: cue_rules(language) for language in languages}
    cues = "|".join(_any_of(rule.diagnosing, language).pattern for language, rule in rules.items())
    told = "|".join(_any_of(rule.told, language).pattern for language, rule in rules.items())
    return re.compile(cues), re.compile(told)


@lru_cache(maxsize=8)
def _cues(language: Language) -> _Cues:
    rules = cue_rules(language)
    return _Cues(*(_any_of(words, language) for words in (rules.examination, rules.history, rules.complaint)))


def _any_of(words: list[str], language: Language) -> re.Pattern[str]:
    longest_first = sorted({re.escape(word.lower()) for word in words}, key=lambda w: (-len(w), w))
    alternatives = "|".join(longest_first)
    if language == "en":
        return re.compile(rf"(?<![a-z0-9])(?:{alternatives})(?![a-z])")
    return re.compile(alternatives)


def sort_sentences(
    text: str, start: int, end: int, language: Language, *, first_is_complaint: bool = True
) -> list[tuple[CueView, int, int]]:
    """Give each sentence of ``text[start:end]`` a view. Source: MAP-RAG's views, the cues are ours.

    The first sentence (the first two where it only says who comes) is the chief complaint unless it is
    plainly a finding. The others go where more of their cues point; one without cues stays with the one
    before it, at first with history.

    Measured on the 668 sections of MTS-Dialog under a history or examination heading, read without it: .95 of
    history and .75 of examination (24 only) land there.
    """
    cues = _cues(language)
    sorted_spans: list[tuple[CueView, int, int]] = []
    view: CueView = "history"
    opening = first_is_complaint
    for first, last in sentence_spans(text[start:end]):
        sentence = text[start + first : start + last].lower()
        if opening and not _is_finding(cues, sentence):
            sorted_spans.append(("chief_complaint", start + first, start + last))
            opening = last - first <= _ONLY_WHO and cues.complaint.search(sentence) is not None
            continue
        opening = False
        findings, told = len(cues.examination.findall(sentence)), len(cues.history.findall(sentence))
        if findings != told:
            view = "examination" if findings > told else "history"
        sorted_spans.append((view, start + first, start + last))
    return sorted_spans


def _is_finding(cues: _Cues, sentence: str) -> bool:
    findings = len(cues.examination.findall(sentence))
    return (
        findings >= _SURE_FINDING
        and findings > len(cues.history.findall(sentence))
        and cues.complaint.search(sentence) is None
        and _NUMBER.search(sentence) is not None
    )
