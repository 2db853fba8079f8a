"""All wordings of a code system, canonical and vectorised: what names are compared with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .candidates import GramIndex
from .canonical import Tokens, cjk_text, english_tokens, fold, is_cjk, loose_key, strict_key
from .opposites import Pole, PoleTable, cjk_poles, english_poles, one_hot
from .system import CodeSystem, Term, TermKind
from .terms import variants

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_OTHER = re.compile(r"^other\b|\bother (?:and|specified)\b|^其他|^その他|^他の?", re.IGNORECASE)
_VAGUE = re.compile(r"\bunspecified\b|\bnos\b|\bnot specified\b|未特指|未指明|詳細不明", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Name:
    """A name in canonical form.

    Attributes:
        literal: folded text.
        units: canonical words, or one canonical string of CJK text.
        strict: key of equal names.
        loose: key of nearly equal names, empty where too little is left.
        poles: sides of oppositions that it takes.
        numbers: numbers in it.
        vague: whether it says "unspecified" itself.
        other: whether it says "other" itself.
    """

    literal: str
    units: Tokens
    strict: str
    loose: str
    poles: frozenset[Pole]
    numbers: frozenset[str]
    vague: bool
    other: bool

    @classmethod
    def of(cls, text: str, language: str) -> Name:
        """Canonical form of a text; ``language`` is that of the code system."""
        literal = " ".join(fold(text).split())
        vague, other = bool(_VAGUE.search(literal)), bool(_OTHER.search(literal))
        if language in ("zh", "ja") or is_cjk(literal):
            canonical = cjk_text(text, language)
            numbers = frozenset(_NUMBER.findall(canonical))
            poles = frozenset(cjk_poles(canonical, language))
            units = (canonical,) if canonical else ()
            return cls(literal, units, canonical, "", poles, numbers, vague, other)
        tokens = english_tokens(text)
        numbers = frozenset(token for token in tokens if token[0].isdigit())
        poles = frozenset(english_poles(tokens))
        return cls(literal, tokens, strict_key(tokens), loose_key(tokens), poles, numbers, vague, other)


class Wordings:
    """Every distinct wording of a system with its code, keys and vectors.

    Args:
        system: the codes.
        extra: aliases beyond the system's own terms.
    """

    def __init__(self, system: CodeSystem, extra: Iterable[Term] = ()) -> None:
        self.system = system
        self.cjk = system.language in ("zh", "ja")
        own = (Term(title, row, TermKind.TITLE) for row, title in enumerate(system.titles))
        names: list[Name] = []
        rows: list[int] = []
        kinds: list[int] = []
        sources: list[str] = []
        best: dict[tuple[Tokens, int, bool, bool], int] = {}
        self.literal: dict[str, list[int]] = defaultdict(list)
        self.strict: dict[str, list[int]] = defaultdict(list)
        self.loose: dict[str, list[int]] = defaultdict(list)
        for term in (*own, *system.terms, *extra):
            for text in variants(term.text):
                name = Name.of(text, system.language)
                if not name.units:
                    continue
                identity = (name.units, term.row, name.vague, name.other)
                at = best.setdefault(identity, len(names))
                if at == len(names):
                    names.append(name)
                    rows.append(term.row)
                    kinds.append(int(term.kind))
                    sources.append(term.source)
                if at not in self.literal[name.literal]:
                    self.literal[name.literal].append(at)
        for at, name in enumerate(names):
            if name.strict:
                self.strict[name.strict].append(at)
            if name.loose:
                self.loose[name.loose].append(at)
        self.names: Sequence[Name] = names
        self.rows: npt.NDArray[np.int32] = np.array(rows, np.int32)
        self.sources: Sequence[str] = sources
        self.kinds: npt.NDArray[np.int8] = np.array(kinds, np.int8)

    @cached_property
    def grams(self) -> GramIndex:
        """N-gram vectors of all wordings."""
        return GramIndex([name.units for name in self.names], cjk=self.cjk)

    @cached_property
    def poles(self) -> PoleTable:
        """Oppositions of all wordings."""
        return PoleTable([set(name.poles) for name in self.names])

    @cached_property
    def _number_ids(self) -> dict[str, int]:
        found = sorted({number for name in self.names for number in name.numbers})
        return {number: at for at, number in enumerate(found)}

    def encode_numbers(self, names: Sequence[Name]) -> sparse.csr_array:
        """0/1 matrix of names by number."""
        ids = self._number_ids
        return one_hot([sorted(ids[n] for n in name.numbers if n in ids) for name in names], len(ids))

    @cached_property
    def numbers(self) -> sparse.csr_array:
        """Numbers of all wordings."""
        return self.encode_numbers(self.names)

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        ids: dict[str, int] = {}
        for name in self.names:
            for word in self.words_of(name):
                ids.setdefault(word, len(ids))
        return ids

    @cached_property
    def _word_weights(self) -> tuple[npt.NDArray[np.float32], float]:
        df = np.zeros(len(self._word_ids) + 1, np.float32)
        for name in self.names:
            for word in set(self.words_of(name)):
                df[self._word_ids[word]] += 1
        weights = np.log((1 + len(self.names)) / (1 + df)).astype(np.float32) + np.float32(0.1)
        return weights, float(weights[-1])

    def knows_word(self, word: str) -> bool:
        """Whether any wording has this canonical word."""
        return word in self._word_ids

    def words_of(self, name: Name) -> Sequence[str]:
        """What counts as a word: canonical words, or pairs of CJK characters."""
        if not self.cjk:
            return name.units
        text = "".join(name.units)
        return [text[i : i + 2] for i in range(len(text) - 1)] or list(text)

    def encode_words(self, names: Sequence[Name]) -> tuple[sparse.csr_array, npt.NDArray[np.float32]]:
        """Root-of-weight matrix of names by word, and each name's whole weight, unknown words included.

        A product of two rows is the weight of the words that both have.
        """
        ids, (weights, heaviest) = self._word_ids, self._word_weights
        columns, totals = [], np.zeros(len(names), np.float32)
        for at, name in enumerate(names):
            words = sorted(set(self.words_of(name)))
            known = [ids[word] for word in words if word in ids]
            totals[at] = weights[known].sum() + heaviest * (len(words) - len(known))
            columns.append(known)
        matrix = one_hot(columns, len(ids))
        matrix.data = np.sqrt(weights[matrix.indices])
        return matrix, totals

    @cached_property
    def words(self) -> tuple[sparse.csr_array, npt.NDArray[np.float32]]:
        """Words of all wordings."""
        return self.encode_words(self.names)
