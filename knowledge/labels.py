"""When two diagnoses count as the same.

Codes count only where the source gave them, never codes that were assigned afterwards. Source: ours.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from ..language.resources import RuleFile, load_rules

Ints = npt.NDArray[np.int32]

_NAMES = Path(__file__).parent / "data" / "names.toml"
_ICD_CODE = re.compile(r"[A-Z][0-9][0-9A-Z](?:\.?[0-9A-Z]{1,4})?[*+†]?")
_BRACKETED = re.compile(r"\s*[(\[{]([^()\[\]{}]*)[)\]}]\s*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SPACED_CJK = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u9fff])\s+(?=[\w])|(?<=\w)\s+(?=[\u3040-\u30ff\u3400-\u9fff])"
)
_APOSTROPHE = re.compile(r"['’`´‘]s?\b")
_NOT_WORD = re.compile(r"[^\w+]+|_+")


class LabelMode(StrEnum):
    """What makes two diagnoses equal; ``AUTO`` is the category where codes are given, else the name."""

    AUTO = "auto"
    NAME = "name"
    CATEGORY = "category"
    CODE = "code"


class NameRules(RuleFile):
    """Schema of ``names.toml``."""

    spelling: list[tuple[str, str]] = Field(min_length=1)
    not_plural: list[str]
    filler: list[str]
    cjk: list[tuple[str, str]]


@lru_cache(maxsize=1)
def name_rules() -> NameRules:
    """The shipped rules."""
    return load_rules(_NAMES, NameRules)


@lru_cache(maxsize=65_536)
def normalise_name(name: str) -> str:
    """A diagnosis name without case, width, accents, punctuation, plurals and British spelling.

    A bracket that only abbreviates the name before it, ``Chronic obstructive pulmonary disease (COPD)``, is
    dropped; any other stays, because ``(type 1)`` and ``(type 2)`` are two diseases.
    """
    rules = name_rules()
    plain = unicodedata.normalize("NFKC", name)
    plain = _BRACKETED.sub(lambda match: " " if _abbreviates(match, plain) else f" {match.group(1)} ", plain)
    plain = unicodedata.normalize("NFKD", plain.casefold())
    plain = unicodedata.normalize("NFC", "".join(c for c in plain if not "\u0300" <= c <= "\u036f"))
    plain = _NOT_WORD.sub(" ", _APOSTROPHE.sub("", plain)).strip()
    if _CJK.search(plain):
        plain = _SPACED_CJK.sub("", plain)
        for written, canonical in rules.cjk:
            plain = plain.replace(written, canonical)
        return plain
    for british, american in rules.spelling:
        plain = plain.replace(british, american)
    words = " ".join(_singular(word, rules) for word in plain.split())
    for filler in rules.filler:
        words = words.removesuffix(f" {filler}").removeprefix(f"{filler} ")
    return words or plain or name.casefold().strip()


def _abbreviates(match: re.Match[str], whole: str) -> bool:
    inside = match.group(1).strip()
    before = [word for word in re.split(r"[\s\-/]+", whole[: match.start()]) if word]
    if not inside or not before or not re.fullmatch(r"[A-Za-z0-9\-/ ]{2,8}", inside):
        return False
    letters = inside.replace("-", "").replace("/", "").replace(" ", "")
    initials = "".join(word[0] for word in before).casefold()
    return letters.casefold() in initials or (letters.isupper() and letters[0].casefold() in initials)


def _singular(word: str, rules: NameRules) -> str:
    if len(word) < 4 or word in rules.not_plural or word.endswith(("ss", "us", "is", "itis")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word.removesuffix("s")


def normalise_code(code: str | None) -> str | None:
    """Upper case without dot, dagger and blanks; None for an empty code."""
    if code is None:
        return None
    plain = unicodedata.normalize("NFKC", code).upper().replace(".", "").strip(" *+†")
    return plain or None


def category_of(code: str | None) -> str | None:
    """First three characters of an ICD-10 code; None for anything that is not one."""
    if code is None or not _ICD_CODE.fullmatch(unicodedata.normalize("NFKC", code).upper().strip()):
        return None
    plain = normalise_code(code)
    return plain[:3] if plain else None


class LabelSpace:
    """Labels of a set of diagnoses, numbered.

    Two coded diagnoses are equal when their categories (or codes) are; two uncoded ones when their names
    are. A diagnosis without a code takes the label most often given to its name, so that one uncoded record
    among coded ones is not a disease of its own.

    Attributes:
        mode: what makes two diagnoses equal.
        keys: label keys, sorted; a label's number is its place here.
        names: of each label, the commonest wording.
    """

    def __init__(
        self, mode: LabelMode, coded_name: dict[str, str], keys: Sequence[str], names: Sequence[str]
    ) -> None:
        self.mode = mode
        self._coded_name = coded_name
        self.keys = list(keys)
        self.names = list(names)
        self._number = {key: number for number, key in enumerate(self.keys)}

    @classmethod
    def of(cls, diagnoses: Iterable[tuple[str, str | None]], mode: LabelMode | str = LabelMode.AUTO) -> Self:
        """Number the labels of diagnoses, given as name and the source's code."""
        mode = LabelMode(mode)
        given = list(diagnoses)
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for name, code in given:
            key = _code_key(code, mode)
            if key is not None:
                votes[normalise_name(name)][key] += 1
        coded = {name: min(c, key=lambda k: (-c[k], k)) for name, c in votes.items()}
        space = cls(mode, coded, [], [])
        wordings: dict[str, Counter[str]] = defaultdict(Counter)
        for name, code in given:
            wordings[space.key(name, code)][name] += 1
        keys = sorted(wordings)
        names = [min(wordings[k], key=lambda n: (-wordings[k][n], n)) for k in keys]
        return cls(mode, coded, keys, names)

    def key(self, name: str, code: str | None = None) -> str:
        """Label key of one diagnosis; equal keys mean the same diagnosis."""
        coded = _code_key(code, self.mode)
        if coded is not None:
            return coded
        plain = normalise_name(name)
        return self._coded_name.get(plain, plain)

    def number(self, name: str, code: str | None = None) -> int:
        """Number of one diagnosis' label, -1 for a label that the space does not hold."""
        return self._number.get(self.key(name, code), -1)

    def numbers(self, diagnoses: Iterable[tuple[str, str | None]]) -> Ints:
        """``[n]`` int32 of :meth:`number`."""
        return np.array([self.number(name, code) for name, code in diagnoses], np.int32)

    def __len__(self) -> int:
        return len(self.keys)


def _code_key(code: str | None, mode: LabelMode) -> str | None:
    if mode is LabelMode.NAME:
        return None
    return normalise_code(code) if mode is LabelMode.CODE else category_of(code)


def label_of(name: str, code: str | None = None, mode: LabelMode | str = LabelMode.AUTO) -> str:
    """Label key of a diagnosis by itself, without others to borrow a code from."""
    return _code_key(code, LabelMode(mode)) or normalise_name(name)
