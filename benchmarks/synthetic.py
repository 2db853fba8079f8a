"""Made-up cases with the shape of real ones: Zipfian words, clustered vectors, repeated complaints.

Words follow a Zipf-Mandelbrot law, as clinical text does once stop words are gone. Every case belongs to
one of a few hundred conditions, which favour some words of their own; the whole is the three other views
together.
The vector of a text is the weighted mean of its words' vectors, and those lie near a subspace of few
dimensions with some noise in all of them: averaged word vectors have a low intrinsic dimension, and uniformly
random ones, on which every approximate search fails, would be no model of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..models.base import Kind, Matrix, TextEmbedder
from ..records.schema import Diagnosis, OutpatientRecord, View

_CONSONANTS = "bcdfghjklmnpqrstvwz"
_VOWELS = "aeiou"
_LENGTHS = {View.CHIEF_COMPLAINT: 7.0, View.HISTORY: 60.0, View.EXAMINATION: 45.0}
_DEPARTMENTS = ("general practice", "internal medicine", "ophthalmology", "surgery", "paediatrics")
_BATCH = 2048
_TOPIC_STRENGTH = 0.3


class SyntheticCases:
    """A reproducible source of cases.

    Args:
        seed: of everything.
        vocabulary: how many words there are.
        conditions: how many diagnoses.
        latent: dimensions of the subspace near which word vectors lie.
    """

    def __init__(
        self, seed: int = 0, *, vocabulary: int = 60_000, conditions: int = 400, latent: int = 64
    ) -> None:
        self.seed = seed
        self._latent = latent
        rng = np.random.default_rng(seed)
        self.words = _words(vocabulary)
        self._share = _zipf(vocabulary, 10.0)
        self._common = np.cumsum(self._share)
        self._conditions = _zipf(conditions, 20.0)
        self._topics = rng.integers(vocabulary // 300, vocabulary // 2, (conditions, 60))
        self._topic_share = _zipf(60, 3.0)
        self._own = np.cumsum(self._topic_share)
        self._complaints = [
            " ".join(self.words[i] for i in rng.choice(row, 3, p=self._topic_share)) for row in self._topics
        ]

    def records(self, count: int, *, start: int = 0) -> Iterator[OutpatientRecord]:
        """Cases ``start`` to ``start + count``; a case is the same whatever the range."""
        for first in range(start - start % _BATCH, start + count, _BATCH):
            rng = np.random.default_rng((self.seed, first))
            for number, record in enumerate(self._batch(rng, first), first):
                if start <= number < start + count:
                    yield record

    def _batch(self, rng: np.random.Generator, first: int) -> Iterator[OutpatientRecord]:
        conditions = rng.choice(len(self._conditions), _BATCH, p=self._conditions)
        for i, condition in enumerate(conditions.tolist()):
            views = {view: self._text(rng, condition, length) for view, length in _LENGTHS.items()}
            if rng.random() < 0.3:
                views[View.CHIEF_COMPLAINT] = self._complaints[condition]
            views[View.GLOBAL] = "\n".join(views.values())
            yield OutpatientRecord.model_construct(
                id=f"case-{first + i:07d}",
                department=_DEPARTMENTS[condition % len(_DEPARTMENTS)],
                age=float(rng.integers(0, 95)),
                sex="FM"[int(rng.integers(2))],
                language="en",
                views=views,
                diagnoses=[Diagnosis(name=f"condition {condition}", code=f"X{condition % 100:02d}")],
                date=None,
                text=None,
                patient_id=None,
                choices=None,
            )

    def _text(self, rng: np.random.Generator, condition: int, mean: float) -> str:
        length = max(2, int(rng.lognormal(np.log(mean), 0.4)))
        own = rng.random(length) < 0.3
        ids = _draw(rng, self._common, length)
        ids[own] = self._topics[condition][_draw(rng, self._own, int(own.sum()))]
        return " ".join([self.words[i] for i in ids.tolist()])

    def word_vectors(self, dimension: int) -> npt.NDArray[np.float32]:
        """``[vocabulary, dimension]``; words of one condition point the same way, rare words weigh more."""
        rng = np.random.default_rng((self.seed, 1))
        centres = rng.normal(size=(len(self._topics), self._latent))
        latent = rng.normal(size=(len(self.words), self._latent))
        for centre, topic in zip(centres, self._topics, strict=True):
            latent[topic] = latent[topic] + _TOPIC_STRENGTH * centre
        frame = np.linalg.qr(rng.normal(size=(max(dimension, self._latent), self._latent)))[0][:dimension]
        noise = rng.normal(size=(len(self.words), dimension)) * (0.3 * np.sqrt(self._latent / dimension))
        weight = np.log(1 / self._share)
        return np.asarray((latent @ frame.T + noise) * weight[:, None], np.float32)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""
        return {word: i for i, word in enumerate(self.words)}


class SyntheticEmbedder(TextEmbedder):
    """Mean of word vectors; counts the seconds it takes, so that benchmarks can leave them out."""

    model_name: str = "synthetic"
    _cases: SyntheticCases
    _vectors: npt.NDArray[np.float32]
    seconds: float = 0.0

    def __init__(self, cases: SyntheticCases, dimension: int) -> None:
        super().__init__()
        self._cases = cases
        self._vectors = cases.word_vectors(dimension)

    @property
    def identity(self) -> str:
        """Seed and dimension."""
        return f"synthetic/{self._cases.seed}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Mean of the texts' word vectors, as unit rows."""
        del kind
        begin = time.perf_counter()
        number = self._cases.word_ids
        ids = [[number[word] for word in text.split()] for text in texts]
        ends = np.cumsum([0, *map(len, ids)])
        flat = np.array([i for row in ids for i in row], np.int32)
        shape = (len(texts), len(self._vectors))
        counts = sp.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=shape)
        out = np.asarray(counts @ self._vectors, np.float32)
        out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
        self.seconds += time.perf_counter() - begin
        return out


def intrinsic_dimension(vectors: npt.NDArray[np.float32]) -> float:
    """TwoNN estimate, from the ratio of the distances to the two nearest of ``[n, d]`` unit rows."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    two = np.partition(cosines, -2, axis=1)[:, -2:]
    distances = np.sqrt(np.maximum(2 - 2 * two, 1e-12))
    ratio = np.log(distances[:, 0] / distances[:, 1])
    return float(len(ratio) / ratio[ratio > 0].sum())


def _draw(rng: np.random.Generator, cumulative: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    return np.minimum(np.searchsorted(cumulative, rng.random(count)), len(cumulative) - 1)


def _zipf(count: int, shift: float) -> npt.NDArray[np.float64]:
    share = 1 / (np.arange(1, count + 1) + shift)
    return np.asarray(share / share.sum())


def _words(count: int) -> list[str]:
    syllables = [c + v for c in _CONSONANTS for v in _VOWELS]
    base = len(syllables)
    words = []
    for number in range(count):
        rest, word = number, ""
        while not word or rest:
            rest, digit = divmod(rest, base)
            word += syllables[digit]
        words.append(word + "x" if len(word) < 4 else word)
    return words
