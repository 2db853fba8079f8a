"""A cheap deterministic embedder and tokeniser, and made-up records in four views, for index tests."""

from __future__ import annotations

import hashlib
import re

import numpy as np
from wardround.models.base import TextEmbedder
from wardround.records.schema import VIEWS, Diagnosis, OutpatientRecord, View

DIMENSION = 24


def word_vector(word):
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
    return np.random.default_rng(seed).normal(size=DIMENSION)


class PlainEmbedder(TextEmbedder):
    """Sum of word vectors; remembers which texts it was asked for and fails after ``fail_after`` of them."""

    name: str = "plain"
    asked: list[str] = []  # noqa: RUF012  # pydantic copies it
    fail_after: int | None = None

    @property
    def identity(self):
        return f"{self.name}/{DIMENSION}"

    @property
    def dimension(self):
        return DIMENSION

    def encode(self, texts, kind="passage"):
        if self.fail_after is not None and len(self.asked) + len(texts) > self.fail_after:
            raise KeyboardInterrupt
        self.asked.extend(texts)
        out = np.zeros((len(texts), DIMENSION), np.float32)
        for i, text in enumerate(texts):
            for word in text.split():
                out[i] += word_vector(word)
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


class PlainTokenizer:
    identity = "plain/1"

    def tokenize(self, text, language=None):
        return re.findall(r"[^\W_]+", text.lower())

    def tokenize_many(self, texts, languages=None):
        return [self.tokenize(text) for text in texts]


def given_views(record):
    return {view: text for view, text in record.views.items() if text.strip()}


def parts(**more):
    return {"embedder": PlainEmbedder(), "tokenizer": PlainTokenizer(), "views_of": given_views} | more


def case(number, *, words=60, edition=0):
    """The same record each time; another ``edition`` of a number says something else."""
    rng = np.random.default_rng((number, edition))
    views = {
        view: " ".join(f"w{i}" for i in rng.integers(0, words, 9)) for view in VIEWS if rng.random() > 0.25
    }
    views[View.GLOBAL] = " ".join(f"w{i}" for i in rng.integers(0, words, 18))
    return OutpatientRecord(
        id=f"r{number}",
        department=("eye", "skin", None)[number % 3],
        age=number % 90,
        sex="FM"[number % 2],
        language="en",
        views=views,
        diagnoses=[Diagnosis(name=f"disease {number % 7}", code=f"A{number % 7:02d}")],
    )


def score_table(index, views, *, candidates=10_000):
    """Channel scores of every record by id."""
    found = index.search(index.encode_query(views, "en"), candidates=candidates)
    return {index.ids[int(row)]: scores for row, scores in zip(found.rows, found.scores, strict=True)}
