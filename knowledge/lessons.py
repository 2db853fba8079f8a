"""Labelled records asked as queries, themselves left out: what all fitting learns from. Source: ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.views import split_views
from ..records.schema import VIEWS, View
from .calibration import FEWEST_EXAMPLES
from .labels import LabelMode
from .learned import CaseTable, LabelScorer, Patient
from .learned_models import LearnedModels, department_evidence, label_rows
from .priors import DiagnosisPrior
from .ranking import RankingMix, select_records
from .ranking_fit import Belief, LeftOut, fit_calibration, fit_frequency, fit_mix
from .ridge import DualRidge, RidgeOptions
from .source import CaseSource, Payload
from .weights import ViewWeights
from .weights_fit import WeightExample, fit_view_weights

Floats = npt.NDArray[np.float32]

MOST_ASKED = 800
"""Records that are asked as queries to fit weights, mix and calibration."""
_FEWEST_RECORDS = 2
_FEWEST_FOR_SIMILARITY = 100
_UNLIKE, _UNLIKE_AT_MOST = 0.6, 0.15
"""A case that finds this share of what nearly every record finds counts as one like them: it may be short.

Where records are near-identical, that would ask too much, hence the cap."""


def headed(payload: Payload) -> bool:
    """Whether a record's views come from headings or fields, and not from the cues of its sentences."""
    split = split_views(payload.text, payload.language)
    if split.headed:
        return True
    parts = {view: text for view, text in payload.views.items() if view is not View.GLOBAL}
    return any(split.views.get(view.value) != text for view, text in parts.items())


@dataclass(frozen=True)
class Asked:
    """A labelled record asked as a query, itself left out of the search.

    Attributes:
        row: of the record.
        rows: ``[n]`` of its candidates.
        channels: ``[n, 4, 2]``.
        present: ``[4]``.
        patient: who it is about.
        headed: whether its views come from headings or fields.
        scores: ``[labels]`` learned without it.
    """

    row: int
    rows: npt.NDArray[np.int64]
    channels: Floats
    present: npt.NDArray[np.bool_]
    patient: Patient
    headed: bool
    scores: Floats


class Lessons:
    """Labelled records asked as queries, from which every variant of the ranking can be fitted.

    Args:
        index: an open case index.
        mode: label equality.
        options: of the scorer; chosen by leaving records out where None.
        exact_limit: see :meth:`LabelScorer.fit`.
        most_asked: how many records are asked.
        candidates: that each channel proposes.
        seed: of what is drawn.
        tick: called with the number of records asked since its last call.
    """

    def __init__(
        self,
        index: CaseSource,
        *,
        mode: LabelMode | str = LabelMode.AUTO,
        options: RidgeOptions | None = None,
        exact_limit: int | None = None,
        most_asked: int = MOST_ASKED,
        candidates: int = 100,
        seed: int = 0,
        tick: Callable[[int], None] | None = None,
    ) -> None:
        self.index = index
        self.table = CaseTable(index, mode)
        self.counts = np.bincount(self.table.labels[self.table.labels >= 0], minlength=len(self.table.space))
        self.prior = DiagnosisPrior.of(
            self.table.labels, self.table.departments, len(self.table.space), len(self.table.department_names)
        )
        rows = np.flatnonzero(self.table.labels >= 0)
        if len(rows) > most_asked:
            rows = np.sort(np.random.default_rng(seed).choice(rows, most_asked, replace=False))
        self.scorer: LabelScorer | None = None
        left_out = np.zeros((len(rows), len(self.table.space)), np.float32)
        if len(rows) >= _FEWEST_RECORDS:
            limits = {} if exact_limit is None else {"exact_limit": exact_limit}
            self.scorer, left_out = LabelScorer.fit(
                self.table, options=options, sample=rows, seed=seed, **limits
            )
        self.asked = self._ask(rows, left_out, candidates, tick) if self.scorer is not None else []

    def _ask(
        self,
        rows: npt.NDArray[np.integer],
        left_out: Floats,
        candidates: int,
        tick: Callable[[int], None] | None,
    ) -> list[Asked]:
        index, table = self.index, self.table
        vectors = [np.asarray(index.dense_matrix(view)[rows], np.float32) for view in VIEWS]
        proposals_of = label_rows(table.labels, len(table.space))
        asked = []
        for place, row in enumerate(rows.tolist()):
            payload = index.payload(row)
            blank = {view: np.zeros(vectors[0].shape[1], np.float32) for view in payload.views}
            encoded = index.encode_query(payload.views, payload.language, vectors=blank)
            encoded = replace(encoded, vectors=np.stack([view[place] for view in vectors]))
            best = np.argsort(-left_out[place], kind="stable")[: RankingMix().proposals]
            extra = np.concatenate([*(proposals_of(int(label)) for label in best), np.zeros(0, np.int64)])
            found = index.search(
                encoded, candidates=candidates, exclude=frozenset([index.ids[row]]), extra_rows=extra
            )
            number = int(table.departments[row])
            patient = Patient(
                table.department_names[number] if number >= 0 else None,
                float(table.ages[row]),
                {1: "F", 2: "M"}.get(int(table.sexes[row])),
            )
            asked.append(
                Asked(row, found.rows, found.scores, found.present, patient, headed(payload), left_out[place])
            )
            if tick is not None:
                tick(1)
        return asked

    def whole_only(self) -> Lessons:
        """The same lessons with a scorer that reads the whole text alone; these where ours does so."""
        if self.scorer is None or not isinstance(self.scorer.ridge, DualRidge):
            return self
        options = self.scorer.ridge.options
        if not options.views or not self.asked:
            return self
        other = copy(self)
        rows = np.array([one.row for one in self.asked])
        other.scorer, left_out = LabelScorer.fit(self.table, options=options.but(views=0.0), sample=rows)
        other.asked = [replace(one, scores=scores) for one, scores in zip(self.asked, left_out, strict=True)]
        return other

    def examples(self) -> list[WeightExample]:
        """For fitting view weights: records whose label another candidate has."""
        out = []
        for one in self.asked:
            agrees = self.table.labels[one.rows] == self.table.labels[one.row]
            if agrees.any() and len(agrees) > 1:
                out.append(WeightExample(one.channels, agrees, one.present, one.patient.department))
        return out

    def left_out(
        self, weights: ViewWeights, mix: RankingMix, *, views: Sequence[View] = VIEWS, learned: bool = True
    ) -> list[LeftOut]:
        """The records as rankings under given weights.

        Args:
            weights: of views and channels.
            mix: for how many records are kept.
            views: that may be compared.
            learned: whether the learned scorer proposes labels.
        """
        used = np.array([view in views for view in VIEWS])
        out = []
        for one in self.asked:
            label = int(self.table.labels[one.row])
            row = weights.row(one.patient.department, one.present & used, headed=one.headed)
            fused = (one.channels.reshape(len(one.rows), 8) @ row.ravel()).astype(np.float32)
            labels = self.table.labels[one.rows]
            best = (
                np.argsort(-one.scores, kind="stable")[: mix.proposals] if learned else np.zeros(0, np.int64)
            )
            kept = select_records(fused, labels, best.astype(np.int32), mix)
            known = self.counts > 0
            if self.counts[label] == 1:
                known = known.copy()
                known[label] = False
            evidence = department_evidence(self.prior, self._department(one.patient), label)
            out.append(
                LeftOut(
                    label,
                    fused[kept],
                    labels[kept],
                    one.channels[kept] * used[None, :, None],
                    one.scores,
                    evidence,
                    self.prior.scaled(self._department(one.patient), label),
                    known,
                )
            )
        return out

    def _department(self, patient: Patient) -> int:
        names = self.table.department_names
        return names.index(patient.department) if patient.department in names else -1

    def models(
        self,
        table: ViewWeights | None = None,
        *,
        fit_weights: bool = True,
        views: Sequence[View] = VIEWS,
        learned: bool = True,
        retrieval: bool = True,
        frequency: bool = False,
    ) -> LearnedModels:
        """Fit weights, mix and calibration.

        Args:
            table: of view weights to begin with; the shipped one where None.
            fit_weights: learn view weights; else the table's general row serves.
            views: that may be compared.
            learned: use the learned scorer.
            retrieval: compare records at all.
            frequency: without the learned scorer, re-rank by the frequency prior.
        """
        start = table or ViewWeights.shipped()
        weights = start.general_only()
        if fit_weights:
            weights = fit_view_weights(self.examples(), weights, data_hash=self.index.version)
        mix = RankingMix()
        cases = self.left_out(weights, mix, views=views, learned=learned)
        if learned:
            mix = fit_mix(cases if retrieval else [case.alone() for case in cases], mix)
        if frequency:
            mix = fit_frequency(cases, mix)
        kind = Belief.LEARNED if learned else Belief.FREQUENCY if frequency else Belief.NONE
        calibration, right = fit_calibration(cases, mix, kind, retrieval=retrieval)
        answerable = np.array([case.answerable for case in cases], bool)
        report: dict[str, Any] = {
            "records": len(self.index),
            "labels": len(self.table.space),
            "asked": len(cases),
            "answerable": int(answerable.sum()),
            "top1_left_out": float(right[answerable].mean()) if answerable.any() else None,
            "weights": dict(weights.report),
            "mix": mix.to_json(),
            "scorer": self.scorer.ridge.options.to_json() if self.scorer else None,
        }
        return LearnedModels(
            version=self.index.version,
            mode=self.table.space.mode,
            label_of_written=self.table.label_of_written,
            keys=self.table.space.keys,
            names=self.table.space.names,
            codes=self.table.codes(),
            department_names=self.table.department_names,
            prior=self.prior,
            weights=weights,
            mix=mix,
            calibration=calibration if len(cases) >= FEWEST_EXAMPLES else None,
            scorer=self.scorer if learned else None,
            report=report,
            least_similar=_least_similar(cases),
        )

    def calibrated(self, models: LearnedModels, *, frequency: bool) -> LearnedModels:
        """The same models with a calibration, and where it counts a λ, of their own.

        Args:
            models: without a scorer.
            frequency: whether they re-rank by the frequency prior.
        """
        cases = self.left_out(models.weights, models.mix, learned=False)
        mix = fit_frequency(cases, models.mix) if frequency else models.mix
        kind = Belief.FREQUENCY if frequency else Belief.NONE
        calibration, _ = fit_calibration(cases, mix, kind)
        return replace(models, mix=mix, calibration=calibration if cases else None)


def _least_similar(cases: Sequence[LeftOut]) -> float:
    best = [float(case.fused.max(initial=0.0)) for case in cases]
    if len(best) < _FEWEST_FOR_SIMILARITY:
        return 0.0
    return min(float(_UNLIKE * np.percentile(best, 1)), _UNLIKE_AT_MOST)
