"""A supervised scorer of diagnoses, learned from the index's own records. Source: ours.

MAP-RAG has no such part. Where labels repeat, a ridge regression of labels on the same features that
retrieval compares is worth as much as retrieval itself, so it serves as the learned part of the prior.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import IndexStoreError
from ..records.schema import VIEWS
from .case_table import SEX_NUMBERS, CaseTable, Patient
from .features import WHOLE, CaseFeatures, CharSpace, Floats, Ints, WordSpace, unit_rows
from .linear import SAMPLE, LinearRidge
from .ridge import DualRidge, Likeness, RidgeOptions, label_likeness
from .source import Encoded

__all__ = ["EXACT_LIMIT", "CaseTable", "LabelScorer", "Patient", "WordShare"]

EXACT_LIMIT = 5_000
"""Up to so many labelled records, the kernel is solved exactly."""
_BATCH = 4096


@dataclass(frozen=True)
class WordShare:
    """A word of the case and what it adds to a label's score."""

    word: str
    share: float


class LabelScorer:
    """Scores every label of an index for a case.

    Example:
        >>> scorer, left_out = LabelScorer.fit(CaseTable(index))            # doctest: +SKIP
        >>> scores = scorer.score(scorer.features(encoded, text, patient))  # doctest: +SKIP

    Attributes:
        keys: label keys; a label's number is its place here.
        department_names: canonical names that the records have.
        words: weights of query words.
        chars: character n-grams; without columns where the corpus is large.
        ridge: the regression.
    """

    def __init__(
        self,
        keys: Sequence[str],
        department_names: Sequence[str],
        words: WordSpace,
        chars: CharSpace,
        ridge: DualRidge | LinearRidge,
    ) -> None:
        self.keys = list(keys)
        self.department_names = list(department_names)
        self.words = words
        self.chars = chars
        self.ridge = ridge
        self._department = {name: i for i, name in enumerate(self.department_names)}

    @classmethod
    def fit(
        cls,
        table: CaseTable,
        *,
        options: RidgeOptions | None = None,
        sample: npt.NDArray[np.integer] | None = None,
        exact_limit: int = EXACT_LIMIT,
        seed: int = 0,
    ) -> tuple[Self, Floats]:
        """Learn from an index.

        Args:
            table: of the index.
            options: chosen by leaving records out where None.
            sample: rows whose left-out scores are wanted; all labelled rows where None.
            exact_limit: more labelled records than this are solved in fewer dimensions.
            seed: of what is drawn.

        Returns:
            The scorer, and ``[len(sample), labels]`` what the sampled records would score, each left out.
        """
        rows = np.flatnonzero(table.labels >= 0)
        sample = rows if sample is None else np.asarray(sample)
        if len(rows) <= exact_limit:
            return cls._fit_exact(table, rows, sample, options, seed)
        return cls._fit_large(table, rows, sample, options or RidgeOptions(), seed)

    @classmethod
    def _fit_exact(
        cls,
        table: CaseTable,
        rows: npt.NDArray[np.integer],
        sample: npt.NDArray[np.integer],
        options: RidgeOptions | None,
        seed: int,
    ) -> tuple[Self, Floats]:
        index = table.index
        matrices = [index.sparse_matrix(view) for view in VIEWS]
        words = WordSpace.of(lambda view: matrices[view], len(index))
        texts = [index.payload(int(row)).text for row in rows]
        chars = CharSpace.of(texts)
        dense = np.stack([np.asarray(index.dense_matrix(v)[rows], np.float32) for v in VIEWS], axis=1)
        cases = CaseFeatures(
            tuple(unit_rows(matrix[rows]) for matrix in matrices),
            chars.matrix(texts),
            dense,
            table.departments[rows],
            table.ages[rows],
            table.sexes[rows],
        )
        labels = table.labels[rows]
        from .ridge_choice import choose_options  # noqa: PLC0415  # the two know each other

        likeness = Likeness(cases, cases, views=_has_views(cases)) if len(cases) else None
        if options is None:
            options = choose_options(cases, labels, table.space.names, likeness, seed)
        targets = _targets(labels, label_likeness(table.space.names, options.smoothing))
        ridge, left_out = DualRidge.fit(cases, targets, options, likeness)
        scorer = cls(table.space.keys, table.department_names, words, chars, ridge)
        place = {int(row): i for i, row in enumerate(rows)}
        return scorer, left_out[[place[int(row)] for row in sample]]

    @classmethod
    def _fit_large(
        cls,
        table: CaseTable,
        rows: npt.NDArray[np.integer],
        sample: npt.NDArray[np.integer],
        options: RidgeOptions,
        seed: int,
    ) -> tuple[Self, Floats]:
        index = table.index
        whole = index.sparse_matrix(VIEWS[WHOLE])
        empty = sp.csr_matrix(whole.shape, dtype=np.float32)
        words = WordSpace.of(lambda view: whole if view == WHOLE else empty, len(index))
        vectors = index.dense_matrix(VIEWS[WHOLE])
        nothing = sp.csr_matrix((len(index), 0), dtype=np.float32)

        def features(some: npt.NDArray[np.integer]) -> CaseFeatures:
            dense = np.zeros((len(some), len(VIEWS), vectors.shape[1]), np.float32)
            dense[:, WHOLE] = vectors[some]
            blank = sp.csr_matrix((len(some), whole.shape[1]), dtype=np.float32)
            by_view = tuple(unit_rows(whole[some]) if v == WHOLE else blank for v in range(len(VIEWS)))
            return CaseFeatures(
                by_view,
                nothing[: len(some)],
                dense,
                table.departments[some],
                table.ages[some],
                table.sexes[some],
            )

        def batches() -> Iterator[tuple[CaseFeatures, Ints]]:
            for start in range(0, len(rows), _BATCH):
                some = rows[start : start + _BATCH]
                yield features(some), table.labels[some]

        drawn = np.sort(np.random.default_rng(seed).choice(rows, min(SAMPLE, len(rows)), replace=False))
        alike = label_likeness(table.space.names, options.smoothing)
        ridge = LinearRidge.fit(
            unit_rows(whole[drawn]),
            batches,
            labels=len(table.space),
            departments=len(table.department_names),
            likeness=alike,
            options=options,
            judge=(features(sample), table.labels[sample]) if len(sample) else None,
            seed=seed,
        )
        chars = CharSpace(np.zeros(0, np.int32), np.zeros(0, np.float32))
        scorer = cls(table.space.keys, table.department_names, words, chars, ridge)
        left_out = [
            ridge.left_out(features(part), _targets(table.labels[part], alike))
            for part in np.array_split(sample, max(1, len(sample) // 512))
        ]
        return scorer, np.concatenate(left_out)

    def features(self, encoded: Encoded, text: str, patient: Patient) -> CaseFeatures:
        """Features of one query.

        Args:
            encoded: by the index.
            text: the whole of it, without a diagnosis.
            patient: who it is about.
        """
        whole = encoded.present[WHOLE]
        best = WHOLE if whole or not encoded.present.any() else int(np.flatnonzero(encoded.present)[0])
        views = [WHOLE if v == WHOLE else v for v in range(len(VIEWS))]
        rows = [self.words.row(v, encoded.terms[best if v == WHOLE else v]) for v in views]
        dense = np.array(encoded.vectors, np.float32)[None]
        dense[0, WHOLE] = encoded.vectors[best]
        return CaseFeatures(
            tuple(rows),
            self.chars.matrix([text]),
            dense,
            np.array([self._department.get(patient.department or "", -1)], np.int32),
            np.array([patient.age], np.float32),
            np.array([SEX_NUMBERS.get(patient.sex or "", 0)], np.int32),
        )

    def score(self, case: CaseFeatures) -> Floats:
        """``[labels]`` score of one case: about 1 for a label it surely has, about 0 for others."""
        return np.asarray(self.ridge.scores(case)[0])

    def explain(
        self, case: CaseFeatures, label: int, vocabulary: Mapping[str, int], top: int = 8
    ) -> list[WordShare]:
        """The case's words that add most to a label's score, best first.

        Args:
            case: features of one query.
            label: its number.
            vocabulary: of the index, term to id.
            top: how many.
        """
        terms, shares = self.ridge.word_shares(case, label)
        order = np.argsort(-shares, kind="stable")[:top]
        wanted = {int(terms[i]): float(shares[i]) for i in order if shares[i] > 0}
        found = {number: word for word, number in vocabulary.items() if number in wanted}
        return [WordShare(found[number], share) for number, share in wanted.items() if number in found]

    def to_files(self) -> dict[str, bytes | npt.NDArray[Any]]:
        """Files of a sidecar; never pickles."""
        exact = isinstance(self.ridge, DualRidge)
        meta = {
            "kind": "exact" if exact else "linear",
            "keys": self.keys,
            "departments": self.department_names,
            "options": self.ridge.options.to_json(),
            "scale": self.ridge.scale if isinstance(self.ridge, DualRidge) else 1.0,
        }
        arrays = {f"ridge.{name}": array for name, array in self.ridge.to_arrays().items()}
        return {
            "scorer.json": json.dumps(meta, ensure_ascii=False).encode(),
            "words.idf": self.words.idf,
            "chars.ids": self.chars.ids,
            "chars.idf": self.chars.idf,
            **arrays,
        }

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a sidecar.

        Raises:
            IndexStoreError: a file is missing or damaged.
        """
        try:
            meta = json.loads((folder / "scorer.json").read_text(encoding="utf-8"))
            arrays = {
                path.name.removesuffix(".npy"): np.load(path, mmap_mode="r", allow_pickle=False)
                for path in sorted(folder.glob("*.npy"))
            }
            options = RidgeOptions(**meta["options"])
            parts = {k.removeprefix("ridge."): v for k, v in arrays.items() if k.startswith("ridge.")}
            ridge: DualRidge | LinearRidge
            if meta["kind"] == "exact":
                ridge = DualRidge.from_arrays(parts, options, meta["scale"])
            else:
                ridge = LinearRidge.from_arrays(parts, options)
            chars = CharSpace(np.asarray(arrays["chars.ids"]), np.asarray(arrays["chars.idf"]))
            return cls(meta["keys"], meta["departments"], WordSpace(arrays["words.idf"]), chars, ridge)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexStoreError(
                f"{folder}: the learned scorer is missing or damaged ({error}); run `wardround fit`"
            ) from error


def _targets(labels: Ints, alike: sp.csr_matrix) -> sp.csr_matrix:
    n = len(labels)
    hot = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), labels)), shape=(n, alike.shape[0]))
    return (hot @ alike).tocsr()


def _has_views(cases: CaseFeatures) -> bool:
    return any(matrix.nnz for view, matrix in enumerate(cases.words) if view != WHOLE)
