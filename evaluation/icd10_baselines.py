"""What a user would otherwise pick to code names: character TF-IDF and rapidfuzz, off the shelf."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz, process
from sklearn.feature_extraction.text import TfidfVectorizer

from ..knowledge.icd import CodeSystem
from ..knowledge.icd.system import TermKind
from .metrics import tie_key

_BATCH = 256
_SAMPLE = 300


def plain_wordings(system: CodeSystem) -> tuple[list[str], list[int]]:
    """Titles, inclusion terms and the list's own aliases in lower case, with rows; nothing of ours."""
    texts = [title.lower() for title in system.titles]
    rows = list(range(len(system)))
    for term in system.terms:
        if term.kind is not TermKind.NOTE:
            texts.append(term.text.lower())
            rows.append(term.row)
    return texts, rows


def tfidf_coder(
    texts: Sequence[str], rows: Sequence[int], *, cjk: bool
) -> Callable[[Sequence[str]], list[int]]:
    """Nearest wording by cosine of character 3-grams (1- to 3-grams for CJK)."""
    spans = (1, 3) if cjk else (3, 3)
    vectorizer = TfidfVectorizer(analyzer="char" if cjk else "char_wb", ngram_range=spans, sublinear_tf=True)
    matrix = vectorizer.fit_transform(texts).T.tocsr()

    def code(names: Sequence[str]) -> list[int]:
        out: list[int] = []
        for start in range(0, len(names), _BATCH):
            batch = vectorizer.transform([name.lower() for name in names[start : start + _BATCH]])
            best = np.asarray((batch @ matrix).argmax(axis=1)).ravel()
            out += [rows[int(at)] for at in best]
        return out

    return code


def rapidfuzz_coder(texts: Sequence[str], rows: Sequence[int]) -> Callable[[Sequence[str]], list[int]]:
    """Best wording by ``rapidfuzz.fuzz.token_sort_ratio``, the best of its scorers on names of diseases."""

    def code(names: Sequence[str]) -> list[int]:
        out = []
        for name in names:
            found = process.extractOne(name.lower(), texts, scorer=fuzz.token_sort_ratio)
            out.append(rows[found[2]])
        return out

    return code


@dataclass(frozen=True)
class BaselineRun:
    """Codes by one baseline.

    Attributes:
        rows: positions of the names that were coded.
        codes: one per position.
        seconds: it took, index building apart.
    """

    rows: tuple[int, ...]
    codes: tuple[str, ...]
    seconds: float


def run_baselines(
    system: CodeSystem, names: Sequence[str], *, seed: int = 0, sample: int = _SAMPLE
) -> dict[str, BaselineRun]:
    """Code names as a user without wardround would.

    rapidfuzz passes over all wordings for every name, so it codes a random ``sample`` of them.
    """
    texts, rows = plain_wordings(system)
    few = sorted(range(len(names)), key=lambda i: tie_key(seed, names[i], str(i)))[:sample]
    coders = {
        "tfidf_char_3gram": (
            tfidf_coder(texts, rows, cjk=system.language in ("zh", "ja")),
            range(len(names)),
        ),
        "rapidfuzz_token_sort_ratio": (rapidfuzz_coder(texts, rows), sorted(few)),
    }
    out = {}
    for key, (code, asked) in coders.items():
        started = time.perf_counter()
        found = code([names[i] for i in asked])
        seconds = time.perf_counter() - started
        out[key] = BaselineRun(tuple(asked), tuple(system.codes[row] for row in found), seconds)
    return out
