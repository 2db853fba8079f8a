"""How likely a candidate wording is the right one: a small network over readable features (ours).

The weights are learned from the code systems themselves: an inclusion term, a cross-reference or an alias
is held out and must find its code again among the other wordings (``scripts/train_icd_judge.py``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict
from rapidfuzz import fuzz, process

from .candidates import Hits, row_products
from .canonical import Tokens
from .lexicon import data_file
from .system import TermKind, code_key
from .wordings import Name, Wordings

Floats = npt.NDArray[np.float32]

FEATURES: tuple[str, ...] = (
    "cosine", "lead", "covered_query", "covered_term", "ratio", "token_set", "contradictions",
    "added_sides", "missing_sides", "number_shared", "number_conflict", "number_query_only",
    "number_term_only", "is_title", "is_inclusion", "is_note", "is_leaf", "is_vague", "is_other",
    "is_perinatal", "is_injury", "is_external", "is_contact", "is_sign", "is_neoplasm",
    "vote_category", "vote_code", "more_words", "same_strict", "same_loose", "unknown_share",
    "query_words", "last_word",
)  # fmt: skip
_CHAPTERS = {
    "is_perinatal": "OP",
    "is_injury": "ST",
    "is_external": "VWXY",
    "is_contact": "Z",
    "is_sign": "R",
}
_VOTE_POWER = 6


class JudgeWeights(BaseModel):
    """The network (``judge.json``): standardised features -> tanh layer -> logit.

    Attributes:
        features: names in order; must be those that the code computes.
        mean, scale: of the features.
        hidden: ``[features][units]``.
        hidden_bias: ``[units]``.
        out: ``[units]``.
        out_bias: scalar.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: tuple[str, ...]
    mean: list[float]
    scale: list[float]
    hidden: list[list[float]]
    hidden_bias: list[float]
    out: list[float]
    out_bias: float


@dataclass(frozen=True)
class Judge:
    """The network as arrays."""

    mean: Floats
    scale: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    @classmethod
    def of(cls, weights: JudgeWeights) -> Judge:
        """Arrays of checked weights.

        Raises:
            ValueError: weights for other features.
        """
        if weights.features != FEATURES:
            msg = "judge.json was trained for other features; run scripts/train_icd_judge.py"
            raise ValueError(msg)
        arrays = (weights.mean, weights.scale, weights.hidden, weights.hidden_bias, weights.out)
        mean, scale, hidden, hidden_bias, out = (np.array(a, np.float32) for a in arrays)
        return cls(mean, scale, hidden, hidden_bias, out, weights.out_bias)

    def __call__(self, features: Floats) -> Floats:
        """Probability per pair, from ``[pairs, features]``."""
        if not len(features):
            return np.zeros(0, np.float32)
        z = (features - self.mean) / self.scale
        logit = np.tanh(z @ self.hidden + self.hidden_bias) @ self.out + self.out_bias
        probability: Floats = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return probability


@lru_cache(maxsize=1)
def shipped_judge() -> Judge:
    """The judge that ships."""
    raw = json.loads(data_file("judge.json").read_text(encoding="utf-8"))
    return Judge.of(JudgeWeights.model_validate(raw))


class PairFeatures:
    """Computes the features of pairs of names and wordings."""

    def __init__(self, wordings: Wordings) -> None:
        self._wordings = wordings
        system = wordings.system
        self._joined = [_sorted_text(units, wordings) for units in wordings.units]
        self._sizes = np.array([len(wordings.words_of(units)) for units in wordings.units], np.float32)
        rows = wordings.rows
        chapter = np.array([code_key(code)[:1] for code in system.codes])[rows]
        static: dict[str, npt.NDArray[np.bool_]] = {
            "is_title": wordings.kinds == TermKind.TITLE,
            "is_inclusion": wordings.kinds == TermKind.INCLUSION,
            "is_note": wordings.kinds == TermKind.NOTE,
            "is_leaf": np.array([system.is_leaf(row) for row in range(len(system))], bool)[rows],
            "is_vague": wordings.vague,
            "is_other": wordings.other,
            "is_neoplasm": (chapter == "C") | (chapter == "D"),
        }
        for feature, letters in _CHAPTERS.items():
            static[feature] = np.isin(chapter, list(letters))
        self._static = static
        categories = [code_key(code)[:3] for code in system.codes]
        ids = {category: at for at, category in enumerate(dict.fromkeys(categories))}
        self.category_ids = np.array([ids[category] for category in categories], np.int32)

    def __call__(self, names: Sequence[Name], hits: Hits) -> Floats:
        """Features ``[pairs, len(FEATURES)]`` in the order of ``hits``."""
        w = self._wordings
        query, term = hits.query, hits.term
        out = np.zeros((len(query), len(FEATURES)), np.float32)
        if not len(query):
            return out
        column = {name: out[:, at] for at, name in enumerate(FEATURES)}
        column["cosine"][:] = hits.cosine
        best = np.zeros(len(names), np.float32)
        np.maximum.at(best, query, hits.cosine)
        column["lead"][:] = hits.cosine - best[query]
        self._words(names, query, term, column)
        self._sides(names, query, term, column)
        for feature, values in self._static.items():
            column[feature][:] = values[term]
        self._votes(hits, len(names), column)
        own_strict, own_loose = w.strict_of, w.loose_of
        pairs = list(zip(query.tolist(), term.tolist(), strict=True))
        column["same_strict"][:] = [own_strict[t] == names[q].strict for q, t in pairs]
        column["same_loose"][:] = [bool(own_loose[t]) and own_loose[t] == names[q].loose for q, t in pairs]
        return out

    def _words(self, names: Sequence[Name], query: npt.NDArray[np.int32], term: npt.NDArray[np.int32],
               column: dict[str, Floats]) -> None:  # fmt: skip
        w = self._wordings
        vectors, totals = w.encode_words([name.units for name in names])
        term_vectors, term_totals = w.words
        shared = row_products(vectors, term_vectors, query, term)
        column["covered_query"][:] = shared / np.maximum(totals[query], 1e-6)
        column["covered_term"][:] = shared / np.maximum(term_totals[term], 1e-6)
        known = np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel()
        column["unknown_share"][:] = (1 - known / np.maximum(totals, 1e-6))[query]
        joined = [_sorted_text(name.units, w) for name in names]
        left = [joined[q] for q in query]
        right = [self._joined[t] for t in term]
        column["ratio"][:] = process.cpdist(left, right, scorer=fuzz.ratio, workers=1) / 100
        column["token_set"][:] = process.cpdist(left, right, scorer=fuzz.token_set_ratio, workers=1) / 100
        sizes = np.array([len(w.words_of(name.units)) for name in names], np.float32)
        both = np.maximum(sizes[query] + self._sizes[term], 1)
        column["more_words"][:] = (self._sizes[term] - sizes[query]) / both
        column["query_words"][:] = np.minimum(sizes[query], 8) / 8
        last = [name.units[-1] if name.units and not w.cjk else "" for name in names]
        units = w.units
        column["last_word"][:] = [
            last[q] in units[t] for q, t in zip(query.tolist(), term.tolist(), strict=True)
        ]

    def _sides(self, names: Sequence[Name], query: npt.NDArray[np.int32], term: npt.NDArray[np.int32],
               column: dict[str, Floats]) -> None:  # fmt: skip
        w = self._wordings
        axes, poles = w.poles.encode([name.poles for name in names])
        both = row_products(axes, w.poles.axes, query, term)
        agreed = row_products(poles, w.poles.poles, query, term)
        size_query = np.asarray(axes.sum(axis=1)).ravel()[query]
        size_term = np.asarray(w.poles.axes.sum(axis=1)).ravel()[term]
        column["contradictions"][:] = np.maximum(both - agreed, 0)
        column["added_sides"][:] = np.minimum(size_term - both, 3)
        column["missing_sides"][:] = np.minimum(size_query - both, 3)
        numbers = w.encode_numbers(name.numbers for name in names)
        shared = row_products(numbers, w.numbers, query, term) > 0
        has_query = np.array([bool(name.numbers) for name in names])[query]
        has_term = np.diff(w.numbers.indptr)[term] > 0
        column["number_shared"][:] = shared
        column["number_conflict"][:] = has_query & has_term & ~shared
        column["number_query_only"][:] = has_query & ~has_term
        column["number_term_only"][:] = has_term & ~has_query

    def _votes(self, hits: Hits, n: int, column: dict[str, Floats]) -> None:
        rows = self._wordings.rows[hits.term]
        weight = np.power(hits.cosine.astype(np.float64), _VOTE_POWER)
        whole = np.maximum(np.bincount(hits.query, weight, n), 1e-9)[hits.query]
        for feature, ids in (("vote_category", self.category_ids[rows]), ("vote_code", rows)):
            key = hits.query.astype(np.int64) * (int(ids.max()) + 1) + ids
            _, inverse = np.unique(key, return_inverse=True)
            column[feature][:] = np.bincount(inverse, weight)[inverse] / whole


def _sorted_text(units: Tokens, wordings: Wordings) -> str:
    return "".join(units) if wordings.cjk else " ".join(sorted(set(units)))
