"""Everything that an index teaches about its own records, in one call. Source: ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import IndexStoreError
from ..language.views import split_views
from ..records.schema import VIEWS, View
from .calibration import ConfidenceCalibration
from .labels import LabelMode
from .learned import CaseTable, LabelScorer, Patient
from .priors import DiagnosisPrior
from .ranking import RankingMix, select_records
from .ranking_fit import Belief, LeftOut, fit_calibration, fit_mix
from .ridge import RidgeOptions
from .source import CaseSource, Payload, WritableCaseSource
from .weights import ViewWeights
from .weights_fit import WeightExample, fit_view_weights

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

SIDECAR = "learned"
MOST_ASKED = 800
"""Records that are asked as queries to fit weights, mix and calibration."""
ROWS_PER_PROPOSAL = 3
_FEWEST_RECORDS = 2


@dataclass
class LearnedModels:
    """What was learned from an index, or the defaults where nothing could be.

    Attributes:
        version: of the index it was learned from.
        mode: label equality.
        label_of_written: number of each diagnosis as the index writes it; -1 for none.
        keys: label keys.
        names: of the labels, commonest wording.
        codes: of the labels, commonest code that the records give.
        department_names: canonical.
        prior: P(diagnosis | department).
        weights: of views and channels.
        mix: of records and learned scores.
        calibration: None where there are too few records.
        scorer: None where there is at most one record.
        report: what was found, for people.
    """

    version: str
    mode: LabelMode
    label_of_written: Ints
    keys: list[str]
    names: list[str]
    codes: list[str | None]
    department_names: list[str]
    prior: DiagnosisPrior
    weights: ViewWeights
    mix: RankingMix
    calibration: ConfidenceCalibration | None
    scorer: LabelScorer | None
    report: dict[str, Any]

    def department_number(self, department: str | None) -> int:
        """Of a canonical name; -1 where no record has it."""
        return self.department_names.index(department) if department in self.department_names else -1

    def department_evidence(self, department: str | None, without: int = -1) -> npt.NDArray[np.float64]:
        """``[labels]`` log P(label | department) / P(label); one record with label ``without`` left out."""
        return department_evidence(self.prior, self.department_number(department), without)

    def as_paper(self, table: ViewWeights | None = None) -> LearnedModels:
        """The same corpus ranked as MAP-RAG does it.

        Weights of the table, the frequency prior, a vote of the ten best records with their plain scores;
        nothing learned.
        """
        mix = RankingMix(prior=0.2, power=1.0, neighbours=10, proposals=0)
        weights = table or ViewWeights.shipped()
        return replace(self, weights=weights, mix=mix, calibration=None, scorer=None)

    def to_files(self) -> dict[str, bytes | npt.NDArray[Any]]:
        """Files of a sidecar."""
        meta = {
            "version": self.version,
            "mode": self.mode.value,
            "keys": self.keys,
            "names": self.names,
            "codes": self.codes,
            "departments": self.department_names,
            "weights": self.weights.to_json(),
            "mix": self.mix.to_json(),
            "calibration": self.calibration.to_json() if self.calibration else None,
            "report": self.report,
        }
        files: dict[str, bytes | npt.NDArray[Any]] = {
            "models.json": json.dumps(meta, ensure_ascii=False).encode(),
            "label_of_written": self.label_of_written,
            "prior.counts": self.prior.counts.astype(np.float32),
            "prior.totals": self.prior.totals.astype(np.float32),
        }
        if self.scorer is not None:
            files |= self.scorer.to_files()
        return {name if isinstance(c, bytes) else f"{name}.npy": c for name, c in files.items()}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a sidecar.

        Raises:
            IndexStoreError: a file is missing or damaged.
        """
        try:
            meta = json.loads((folder / "models.json").read_text(encoding="utf-8"))

            def array(name: str) -> npt.NDArray[Any]:
                return np.asarray(np.load(folder / f"{name}.npy", allow_pickle=False))

            prior = DiagnosisPrior(
                array("prior.counts").astype(np.float64), array("prior.totals").astype(np.float64)
            )
            calibration = meta["calibration"]
            return cls(
                version=meta["version"],
                mode=LabelMode(meta["mode"]),
                label_of_written=array("label_of_written"),
                keys=meta["keys"],
                names=meta["names"],
                codes=meta["codes"],
                department_names=meta["departments"],
                prior=prior,
                weights=ViewWeights.from_json(meta["weights"]),
                mix=RankingMix.from_json(meta["mix"]),
                calibration=ConfidenceCalibration.from_json(calibration) if calibration else None,
                scorer=LabelScorer.load(folder) if (folder / "scorer.json").is_file() else None,
                report=meta["report"],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexStoreError(
                f"{folder}: what was learned is missing or damaged ({error}); run `wardround fit`"
            ) from error


def department_evidence(prior: DiagnosisPrior, department: int, without: int = -1) -> npt.NDArray[np.float64]:
    """``[labels]`` log P(label | department) / P(label), within ±3; zeros for an unknown department."""
    ratio = np.log(prior.soft(department, without) / prior.overall(without))
    return np.asarray(np.clip(ratio, -3, 3))


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
            self.scorer, left_out = LabelScorer.fit(self.table, options=options, sample=rows, seed=seed, **limits)
        self.asked = self._ask(rows, left_out, candidates, tick) if self.scorer is not None else []

    def _ask(
        self, rows: npt.NDArray[np.integer], left_out: Floats, candidates: int, tick: Callable[[int], None] | None
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
            fused = (one.channels.reshape(len(one.rows), -1) @ row.ravel()).astype(np.float32)
            labels = self.table.labels[one.rows]
            best = np.argsort(-one.scores, kind="stable")[: mix.proposals] if learned else np.zeros(0, np.int64)
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
        elif not frequency:
            mix = mix.but(prior=0.0)
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
            calibration=calibration if cases else None,
            scorer=self.scorer if learned else None,
            report=report,
        )


    def calibrated(self, models: LearnedModels, *, frequency: bool) -> LearnedModels:
        """The same models with a calibration of their own.

        Args:
            models: without a scorer.
            frequency: whether they re-rank by the frequency prior.
        """
        cases = self.left_out(models.weights, models.mix, learned=False)
        kind = Belief.FREQUENCY if frequency else Belief.NONE
        calibration, _ = fit_calibration(cases, models.mix, kind)
        return replace(models, calibration=calibration if cases else None)


def label_rows(labels: Ints, count: int) -> Callable[[int], npt.NDArray[np.int64]]:
    """Up to three rows of each label, for bringing evidence in."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count + 1))

    def rows(label: int) -> npt.NDArray[np.int64]:
        return np.asarray(order[starts[label] : min(starts[label] + ROWS_PER_PROPOSAL, starts[label + 1])], np.int64)

    return rows


def learn(
    index: CaseSource,
    *,
    table: ViewWeights | None = None,
    mode: LabelMode | str = LabelMode.AUTO,
    candidates: int = 100,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> LearnedModels:
    """Learn scorer, view weights, mix and calibration from an index's own records.

    About 5 s for a thousand records and bounded for any number: beyond 3,000 the scorer works in fewer
    dimensions, and at most 800 records are asked as queries.

    Args:
        index: an open case index.
        table: of view weights to begin with.
        mode: label equality.
        candidates: that each channel proposes.
        seed: of what is drawn.
        tick: progress in records.
    """
    lessons = Lessons(index, mode=mode, candidates=candidates, seed=seed, tick=tick)
    return lessons.models(table)


def store(index: WritableCaseSource, models: LearnedModels) -> None:
    """Keep what was learned with the index."""
    index.write_sidecar(SIDECAR, models.to_files())


def stored(index: WritableCaseSource) -> LearnedModels | None:
    """What was learned from the index's present records; None where nothing was, or they changed since."""
    folder = index.sidecar(SIDECAR)
    if not (folder / "models.json").is_file():
        return None
    models = LearnedModels.load(folder)
    return models if models.version == index.version else None


def unlearned(
    index: CaseSource, *, table: ViewWeights | None = None, mode: LabelMode | str = LabelMode.AUTO
) -> LearnedModels:
    """Models without anything learned: the table's weights, frequencies, no scorer and no calibration."""
    cases = CaseTable(index, mode, read_texts=False)
    return LearnedModels(
        version=index.version,
        mode=cases.space.mode,
        label_of_written=cases.label_of_written,
        keys=cases.space.keys,
        names=cases.space.names,
        codes=cases.codes(),
        department_names=cases.department_names,
        prior=DiagnosisPrior.of(
            cases.labels, cases.departments, len(cases.space), len(cases.department_names)
        ),
        weights=table or ViewWeights.shipped(),
        mix=RankingMix(),
        calibration=None,
        scorer=None,
        report={"records": len(index), "labels": len(cases.space)},
    )
