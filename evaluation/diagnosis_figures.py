"""What an evaluation of diagnoses collects, and the figures it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..knowledge.ranking import FEATURES
from ..query import Lane
from ..routers.confidence import lane_of_value
from ..settings import Settings
from .llm_conditions import LlmOutcome
from .metrics import (
    MISSED,
    auroc,
    coverage_at,
    expected_calibration_error,
    mean_reciprocal_rank,
    top_k,
)
from .rounds import Prediction
from .statistics import bootstrap_interval, mcnemar

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LISTED = 5


@dataclass
class Scored:
    """Every condition's answer to every query.

    Attributes:
        ids: of the queries.
        departments: as written.
        labels: ``[n]`` true label numbers.
        answerable: ``[n]`` whether the label occurs among the records searched.
        asked: ``[n]`` whether any round asked the query.
        ranks: by condition, ``[n]`` place of the true label.
        confidence: by condition, ``[n]`` calibrated.
        raw: by condition, ``[n]``.
        ms: by condition, ``[n]``.
        signs: by condition, features of each query's confidence.
        listed: by condition, the first few names.
        tokens: by condition that asks a language model, mean tokens a query.
        degraded: by such a condition, queries that it failed.
    """

    ids: list[str]
    departments: list[str | None]
    labels: Longs
    answerable: Bools
    asked: Bools
    ranks: dict[str, Longs]
    confidence: dict[str, Doubles]
    raw: dict[str, Doubles]
    ms: dict[str, Doubles]
    signs: dict[str, list[Doubles]]
    listed: dict[str, list[tuple[tuple[str, str | None], ...]]]
    tokens: dict[str, dict[str, float]] = field(default_factory=dict)
    degraded: dict[str, int] = field(default_factory=dict)

    @classmethod
    def empty(
        cls, ids: list[str], departments: list[str | None], labels: Longs, names: Sequence[str]
    ) -> Scored:
        """Nothing asked yet."""
        n = len(ids)
        return cls(
            ids,
            departments,
            labels,
            np.zeros(n, bool),
            np.zeros(n, bool),
            {name: np.full(n, MISSED, np.int64) for name in names},
            {name: np.zeros(n) for name in names},
            {name: np.zeros(n) for name in names},
            {name: np.zeros(n) for name in names},
            {name: [np.zeros(len(FEATURES)) for _ in range(n)] for name in names},
            {name: [() for _ in range(n)] for name in names},
        )

    def put(self, name: str, place: int, prediction: Prediction, rank: int, ms: float) -> None:
        """One condition's answer to one query."""
        self.asked[place] = True
        self.ranks[name][place] = rank
        self.confidence[name][place] = prediction.confidence
        self.raw[name][place] = prediction.raw
        self.ms[name][place] = ms
        self.signs[name][place] = prediction.signs
        self.listed[name][place] = prediction.ranked[:_LISTED]

    def copy(self, name: str, source: str, place: int) -> None:
        """A condition that answers as another one does by construction."""
        for table in (self.ranks, self.confidence, self.raw, self.ms):
            table[name][place] = table[source][place]
        self.signs[name][place] = self.signs[source][place]
        self.listed[name][place] = self.listed[source][place]

    def put_llm(
        self, places: Sequence[int], outcomes: Mapping[str, Sequence[LlmOutcome]], ranks: Mapping[str, Longs]
    ) -> None:
        """Answers of conditions that ask a language model."""
        n = len(self.ids)
        for name, found in outcomes.items():
            if name not in self.ranks:
                self.ranks[name] = np.full(n, MISSED, np.int64)
                self.ms[name] = np.zeros(n)
                self.listed[name] = [() for _ in range(n)]
                self.tokens[name] = {"prompt": 0.0, "output": 0.0}
                self.degraded[name] = 0
            for place, outcome, rank in zip(places, found, ranks[name], strict=True):
                self.asked[place] = True
                self.ranks[name][place] = int(rank)
                self.ms[name][place] = outcome.ms
                self.listed[name][place] = tuple((one, None) for one in outcome.ranking)
                self.tokens[name]["prompt"] += outcome.tokens.prompt / n
                self.tokens[name]["output"] += outcome.tokens.output / n
                self.degraded[name] += outcome.degraded is not None

    def finish(self, n: int) -> None:
        """Every query was asked by some round, or had nothing to be searched in."""
        if len(self.ids) != n:
            msg = f"{len(self.ids)} queries were scored of {n}"
            raise ValueError(msg)


def report_of(scored: Scored, *, labels: int, twins: int, seed: int, settings: Settings) -> dict[str, Any]:
    """The JSON object of docs/evaluation.md.

    Args:
        scored: answers.
        labels: how many distinct labels the records have.
        twins: cases with a near-identical partner.
        seed: of the bootstrap.
        settings: where the routes part.
    """
    can = scored.answerable
    return {
        "n": len(scored.ids),
        "answerable": float(can.mean()) if len(can) else 0.0,
        "labels": labels,
        "twins": twins,
        "conditions": {name: _figures(name, scored, seed) for name in scored.ranks},
        "mcnemar": _tests(scored),
        "routes": _routes(scored, settings),
    }


def _figures(name: str, scored: Scored, seed: int) -> dict[str, Any]:
    ranks, can = scored.ranks[name], scored.answerable
    own = ranks[can]
    out: dict[str, Any] = {
        "top1": top_k(own, 1),
        "top3": top_k(own, 3),
        "mrr": mean_reciprocal_rank(own),
        "top1_ci": list(bootstrap_interval(own < 1, seed=seed)),
        "top3_ci": list(bootstrap_interval(own < 3, seed=seed)),
        "top1_all": top_k(ranks, 1),
        "top3_all": top_k(ranks, 3),
        "ms_per_query": float(scored.ms[name].mean()) if len(ranks) else 0.0,
        "auroc": None,
        "ece": None,
        "coverage_at_90": None,
        "by_department": _by_department(ranks, scored),
    }
    if name in scored.confidence:
        confidence, right = scored.confidence[name], ranks == 0
        out["auroc"] = auroc(confidence, right)
        out["ece"] = expected_calibration_error(confidence, right)
        out["coverage_at_90"] = coverage_at(0.9, confidence, right)
        out["auroc_raw"] = auroc(scored.raw[name], right)
        out["ece_raw"] = expected_calibration_error(scored.raw[name], right)
    if name in scored.tokens:
        out["tokens"] = scored.tokens[name]
        out["degraded"] = scored.degraded[name]
    return out


def _by_department(ranks: Longs, scored: Scored) -> dict[str, dict[str, float | int]]:
    names = sorted({name for name in scored.departments if name})
    out: dict[str, dict[str, float | int]] = {}
    for name in names:
        here = np.array([department == name for department in scored.departments])
        own = ranks[here & scored.answerable]
        out[name] = {
            "n": int(here.sum()),
            "answerable": len(own),
            "top1": top_k(own, 1),
            "top3": top_k(own, 3),
        }
    return out


def _tests(scored: Scored) -> dict[str, dict[str, float]]:
    if "ours" not in scored.ranks:
        return {}
    can = scored.answerable
    ours = scored.ranks["ours"][can]
    return {
        f"ours_vs_{name}": {
            "top1_p": mcnemar(ours < 1, ranks[can] < 1),
            "top3_p": mcnemar(ours < 3, ranks[can] < 3),
        }
        for name, ranks in scored.ranks.items()
        if name != "ours"
    }


def _routes(scored: Scored, settings: Settings) -> dict[str, dict[str, dict[str, float | int]]]:
    if "ours" not in scored.confidence:
        return {}
    ranks = scored.ranks["ours"]
    out: dict[str, dict[str, dict[str, float | int]]] = {}
    for scale, values in (("raw", scored.raw["ours"]), ("calibrated", scored.confidence["ours"])):
        lanes = np.array([lane_of_value(float(value), settings.confidence) for value in values])
        out[scale] = {}
        for lane in Lane:
            own = ranks[lanes == lane]
            out[scale][lane.value] = {"n": len(own), "top1": top_k(own, 1), "top3": top_k(own, 3)}
    return out
