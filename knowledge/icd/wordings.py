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
from .canonical import Tokens, cjk_loose, cjk_text, english_tokens, fold, is_cjk, loose_key, strict_key
from .disk_cache import load_arrays, pack_texts, store_arrays, unpack_texts
from .opposites import Pole, PoleTable, cjk_poles, english_poles, one_hot
from .system import CodeSystem, Term, TermKind
from .terms import variants

_UNIT = "\x1f"
_STORED = (
    "units", "strict", "loose", "sources", "literal", "literal_at", "rows", "kinds", "vague", "other",
)  # fmt: skip
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
            return cls(literal, units, canonical, cjk_loose(canonical), poles, numbers, vague, other)
        tokens = english_tokens(text)
        numbers = frozenset(token for token in tokens if token[0].isdigit())
        poles = frozenset(english_poles(tokens))
        return cls(literal, tokens, strict_key(tokens), loose_key(tokens), poles, numbers, vague, other)


class Wordings:
    """Every distinct wording of a system with its code, keys and vectors, by column.

    Built once and kept on disk for the next run where ``cache`` says under which key.

    Args:
        system: the codes.
        extra: aliases beyond the system's own terms; not read where the cache has the table.
        cache: key of the stored table; nothing is stored where None.
    """

    def __init__(self, system: CodeSystem, extra: Iterable[Term] = (), *, cache: str | None = None) -> None:
        self.system = system
        self.cjk = system.language in ("zh", "ja")
        self.units: list[Tokens] = []
        self.strict_of: list[str] = []
        self.loose_of: list[str] = []
        self.sources: list[str] = []
        self.rows: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.kinds: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self.vague: npt.NDArray[np.bool_] = np.zeros(0, bool)
        self.other: npt.NDArray[np.bool_] = np.zeros(0, bool)
        self.literal: dict[str, list[int]] = defaultdict(list)
        self.strict: dict[str, list[int]] = defaultdict(list)
        self.loose: dict[str, list[int]] = defaultdict(list)
        self._grams: GramIndex | None = None
        if cache is None or not self._load(cache):
            pairs = self._build(extra)
            if cache is not None:
                self._store(cache, pairs)
        for at, (strict, loose) in enumerate(zip(self.strict_of, self.loose_of, strict=True)):
            if strict:
                self.strict[strict].append(at)
            if loose:
                self.loose[loose].append(at)

    def __len__(self) -> int:
        return len(self.units)

    def _build(self, extra: Iterable[Term]) -> list[tuple[str, int]]:
        system = self.system
        own = (Term(title, row, TermKind.TITLE) for row, title in enumerate(system.titles))
        rows: list[int] = []
        kinds: list[int] = []
        vague: list[bool] = []
        other: list[bool] = []
        best: dict[tuple[Tokens, int, bool, bool], int] = {}
        pairs: dict[tuple[str, int], None] = {}
        for term in (*own, *system.terms, *extra):
            for text in variants(term.text):
                name = Name.of(text, system.language)
                if not name.units:
                    continue
                at = best.setdefault((name.units, term.row, name.vague, name.other), len(rows))
                if at == len(rows):
                    self.units.append(name.units)
                    self.strict_of.append(name.strict)
                    self.loose_of.append(name.loose)
                    self.sources.append(term.source)
                    rows.append(term.row)
                    kinds.append(int(term.kind))
                    vague.append(name.vague)
                    other.append(name.other)
                elif int(term.kind) < kinds[at] and not term.source:
                    kinds[at], self.sources[at] = int(term.kind), term.source
                pairs[name.literal, at] = None
        self.rows, self.kinds = np.array(rows, np.int32), np.array(kinds, np.int8)
        self.vague, self.other = np.array(vague, bool), np.array(other, bool)
        for literal, at in pairs:
            self.literal[literal].append(at)
        return list(pairs)

    def _store(self, cache: str, pairs: list[tuple[str, int]]) -> None:
        store_arrays(
            cache,
            {
                "units": pack_texts(_UNIT.join(units) for units in self.units),
                "strict": pack_texts(self.strict_of),
                "loose": pack_texts(self.loose_of),
                "sources": pack_texts(self.sources),
                "literal": pack_texts(literal for literal, _ in pairs),
                "literal_at": np.array([at for _, at in pairs], np.int32),
                "rows": self.rows,
                "kinds": self.kinds,
                "vague": self.vague,
                "other": self.other,
                **self.grams.arrays(),
            },
        )

    def _load(self, cache: str) -> bool:
        stored = load_arrays(cache, (*_STORED, *GramIndex.STORED))
        if stored is None:
            return False
        self.units = [tuple(text.split(_UNIT)) for text in unpack_texts(stored["units"])]
        self.strict_of, self.loose_of = unpack_texts(stored["strict"]), unpack_texts(stored["loose"])
        self.sources = unpack_texts(stored["sources"])
        self.rows, self.kinds = stored["rows"], stored["kinds"]
        self.vague, self.other = stored["vague"], stored["other"]
        for literal, at in zip(unpack_texts(stored["literal"]), stored["literal_at"].tolist(), strict=True):
            self.literal[literal].append(at)
        self._grams = GramIndex.from_arrays(stored, cjk=self.cjk)
        return True

    def poles_of(self, at: int) -> frozenset[Pole]:
        """Sides of oppositions that a wording takes."""
        units = self.units[at]
        if self.cjk:
            return frozenset(cjk_poles("".join(units), self.system.language))
        return frozenset(english_poles(units))

    def _numbers_of(self, at: int) -> set[str]:
        units = self.units[at]
        return set(_NUMBER.findall(units[0])) if self.cjk else {u for u in units if u[0].isdigit()}

    @property
    def grams(self) -> GramIndex:
        """N-gram vectors of all wordings."""
        if self._grams is None:
            self._grams = GramIndex.build(self.units, cjk=self.cjk)
        return self._grams

    @cached_property
    def poles(self) -> PoleTable:
        """Oppositions of all wordings."""
        return PoleTable([self.poles_of(at) for at in range(len(self))])

    @cached_property
    def _number_ids(self) -> dict[str, int]:
        found = sorted({number for at in range(len(self)) for number in self._numbers_of(at)})
        return {number: at for at, number in enumerate(found)}

    def encode_numbers(self, numbers: Iterable[Iterable[str]]) -> sparse.csr_array:
        """0/1 matrix of sets of numbers; numbers that no wording has are left out."""
        ids = self._number_ids
        return one_hot([sorted(ids[n] for n in one if n in ids) for one in numbers], len(ids))

    @cached_property
    def numbers(self) -> sparse.csr_array:
        """Numbers of all wordings."""
        return self.encode_numbers(self._numbers_of(at) for at in range(len(self)))

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        ids: dict[str, int] = {}
        for units in self.units:
            for word in self.words_of(units):
                ids.setdefault(word, len(ids))
        return ids

    @cached_property
    def _word_weights(self) -> tuple[npt.NDArray[np.float32], float]:
        ids = self._word_ids
        each = [ids[word] for units in self.units for word in set(self.words_of(units))]
        df = np.bincount(np.array(each, np.int64), minlength=len(ids) + 1).astype(np.float32)
        weights = np.log((1 + len(self)) / (1 + df)).astype(np.float32) + np.float32(0.1)
        return weights, float(weights[-1])

    def knows_word(self, word: str) -> bool:
        """Whether any wording has this canonical word."""
        return word in self._word_ids

    def words_of(self, units: Tokens) -> Sequence[str]:
        """What counts as a word: canonical words, or pairs of CJK characters."""
        if not self.cjk:
            return units
        text = "".join(units)
        return [text[i : i + 2] for i in range(len(text) - 1)] or list(text)

    def encode_words(self, names: Sequence[Tokens]) -> tuple[sparse.csr_array, npt.NDArray[np.float32]]:
        """Root-of-weight matrix of names by word, and each name's whole weight, unknown words included.

        A product of two rows is the weight of the words that both have.
        """
        ids, (weights, heaviest) = self._word_ids, self._word_weights
        columns, unknown = [], np.zeros(len(names), np.float32)
        for at, units in enumerate(names):
            words = sorted(set(self.words_of(units)))
            known = [ids[word] for word in words if word in ids]
            unknown[at] = len(words) - len(known)
            columns.append(known)
        matrix = one_hot(columns, len(ids))
        known_weight = matrix @ weights[: matrix.shape[1]]
        matrix.data = np.sqrt(weights[matrix.indices])
        return matrix, (known_weight + heaviest * unknown).astype(np.float32)

    @cached_property
    def words(self) -> tuple[sparse.csr_array, npt.NDArray[np.float32]]:
        """Words of all wordings."""
        return self.encode_words(self.units)
