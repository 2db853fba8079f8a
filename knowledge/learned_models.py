"""What an index has learned, kept beside it. Source: ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import IndexStoreError
from .calibration import ConfidenceCalibration
from .labels import LabelMode
from .learned import CaseTable, LabelScorer
from .priors import DiagnosisPrior
from .ranking import FEATURES, RankingMix
from .source import CaseSource, WritableCaseSource
from .weights import ViewWeights

Ints = npt.NDArray[np.int32]

SIDECAR = "learned"
FORMAT = 1
ROWS_PER_LABEL = 3


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
        least_similar: retrieval score below which a case resembles no record: six tenths of what 99 of 100 of
            the index's own records find, themselves left out; at most .15. 0 where there are too few records.
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
    least_similar: float = 0.0

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
        mix = RankingMix(frequency=self.mix.frequency, power=1.0, neighbours=10, proposals=0)
        weights = table or ViewWeights.shipped()
        return replace(self, weights=weights, mix=mix, calibration=None, scorer=None, least_similar=0.0)

    def to_files(self) -> dict[str, bytes | npt.NDArray[Any]]:
        """Files of a sidecar."""
        meta = {
            "format": FORMAT,
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
            "least_similar": self.least_similar,
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
            _check_format(meta)
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
                least_similar=meta["least_similar"],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexStoreError(
                f"{folder}: what was learned is missing, damaged or outdated ({error}); run `wardround fit`"
            ) from error


def _check_format(meta: dict[str, Any]) -> None:
    calibration = meta["calibration"]
    if meta["format"] != FORMAT or (calibration and tuple(calibration["features"]) != FEATURES):
        raise ValueError("written by another version of wardround")


def department_evidence(prior: DiagnosisPrior, department: int, without: int = -1) -> npt.NDArray[np.float64]:
    """``[labels]`` log P(label | department) / P(label), within ±3; zeros for an unknown department."""
    ratio = np.log(prior.soft(department, without) / prior.overall(without))
    return np.asarray(np.clip(ratio, -3, 3))


def label_rows(labels: Ints, count: int) -> Callable[[int], npt.NDArray[np.int64]]:
    """Up to three rows of each label, for bringing evidence in."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count + 1))

    def rows(label: int) -> npt.NDArray[np.int64]:
        return np.asarray(
            order[starts[label] : min(starts[label] + ROWS_PER_LABEL, starts[label + 1])], np.int64
        )

    return rows


def store(index: WritableCaseSource, models: LearnedModels) -> None:
    """Keep what was learned with the index."""
    index.write_sidecar(SIDECAR, models.to_files())


def stored(index: CaseSource) -> LearnedModels | None:
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
