"""Runs the conditions with a language model over queries and sums up what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..knowledge.labels import normalise_name
from ..models.ports import JsonLlm
from ..records.schema import OutpatientRecord
from .llm_asking import LLM_CONDITIONS, LlmCase
from .llm_conditions import LlmOutcome, LlmRunner, tokens_of
from .llm_rankers import LlmRankers
from .metrics import MISSED, mean_reciprocal_rank, top_k
from .statistics import bootstrap_interval, mcnemar

_HEADS = (
    "condition", "top-1", "95% CI", "top-3", "top-1 answerable",
    "prompt tokens", "output tokens", "s/query", "degraded",
)  # fmt: skip
Right = Callable[[OutpatientRecord, str], bool]


def same_name(left: str, right: str) -> bool:
    """Whether two names are the same diagnosis, by their normalised wording."""
    return normalise_name(left) == normalise_name(right)


def named_right(record: OutpatientRecord, name: str) -> bool:
    """Whether a name is the query's main diagnosis, by its normalised wording."""
    return bool(record.diagnoses) and same_name(record.diagnoses[0].name, name)


@dataclass(frozen=True)
class LlmRun:
    """What came of all conditions.

    Attributes:
        outcomes: by condition, in the order of the queries.
        ranks: by condition, place of the right diagnosis, 0 for the first; a very large number for a miss.
        figures: by condition, with the keys of a diagnosis evaluation.
        mcnemar: p-values of ``ours_llm`` against each other condition, top-1.
    """

    outcomes: Mapping[str, list[LlmOutcome]]
    ranks: Mapping[str, np.ndarray[tuple[int], np.dtype[np.int64]]]
    figures: Mapping[str, dict[str, Any]]
    mcnemar: Mapping[str, float]


def run_llm_conditions(
    names: Sequence[str],
    queries: Sequence[OutpatientRecord],
    rankers: LlmRankers | None,
    llm: JsonLlm,
    *,
    answerable: Sequence[bool] | None = None,
    right: Right = named_right,
    log: Path | None = None,
    seed: int = 0,
    at_once: int = 4,
    tick: Callable[[int], None] | None = None,
) -> LlmRun:
    """Ask a language model about queries under each condition.

    Args:
        names: of conditions.
        queries: with their gold diagnoses, which no prompt sees, and ``choices`` where they have them.
        rankers: over the records that are no queries; None where no condition needs one.
        llm: the model.
        answerable: whether each query's label occurs among the records; all where None.
        right: whether a name is a query's diagnosis.
        log: JSONL of outcomes; a run that stops goes on where it was.
        seed: of choices and ties.
        at_once: requests in flight.
        tick: called with 1 after each query of each condition.

    Raises:
        KeyError: no such condition.
        ValueError: a condition needs rankers and there are none.
    """
    runner = LlmRunner(llm, log=log, same=same_name, at_once=at_once, seed=seed)
    kept = np.ones(len(queries), bool) if answerable is None else np.asarray(answerable, bool)
    outcomes, ranks, figures = {}, {}, {}
    for name in names:
        cases = [_case(name, record, rankers) for record in queries]
        outcomes[name] = runner.run(name, cases, progress=tick)
        ranks[name] = np.array(
            [_rank(one.ranking, record, right) for one, record in zip(outcomes[name], queries, strict=True)],
            np.int64,
        )
        figures[name] = _figures(ranks[name], kept, outcomes[name], seed)
    mine = ranks.get("ours_llm")
    against = {
        f"ours_llm_vs_{name}": mcnemar(mine < 1, other < 1)
        for name, other in ranks.items()
        if mine is not None and name != "ours_llm"
    }
    return LlmRun(outcomes, ranks, figures, against)


def _case(name: str, record: OutpatientRecord, rankers: LlmRankers | None) -> LlmCase:
    case, ranker = LlmCase.of(record), LLM_CONDITIONS[name].ranker
    if ranker is None:
        return case
    if rankers is None:
        raise ValueError(f"condition {name!r} needs records to retrieve from")
    shown = rankers.shown(ranker, record, case)
    return replace(case, neighbours=shown.neighbours, lane=shown.lane, vote=shown.vote)


def _rank(ranking: Sequence[str], record: OutpatientRecord, right: Right) -> int:
    return next((place for place, name in enumerate(ranking) if right(record, name)), MISSED)


def _figures(
    ranks: np.ndarray[tuple[int], np.dtype[np.int64]],
    answerable: np.ndarray[tuple[int], np.dtype[np.bool_]],
    outcomes: Sequence[LlmOutcome],
    seed: int,
) -> dict[str, Any]:
    asked = [one.ms for one in outcomes if one.lane != "vote"]
    tokens = tokens_of(outcomes)
    n = max(1, len(outcomes))
    own = ranks[answerable]
    return {
        "top1": top_k(own, 1),
        "top3": top_k(own, 3),
        "mrr": mean_reciprocal_rank(own),
        "top1_ci": list(bootstrap_interval(own < 1, seed=seed)),
        "top3_ci": list(bootstrap_interval(own < 3, seed=seed)),
        "top1_all": top_k(ranks, 1),
        "top3_all": top_k(ranks, 3),
        "ms_per_query": float(sum(asked) / n),
        "tokens": {"prompt": tokens.prompt / n, "output": tokens.output / n},
        "degraded": sum(one.degraded is not None for one in outcomes),
        "lanes": {lane: _lane(lane, ranks, outcomes) for lane in sorted({one.lane for one in outcomes})},
    }


def _lane(
    lane: str, ranks: np.ndarray[tuple[int], np.dtype[np.int64]], outcomes: Sequence[LlmOutcome]
) -> dict[str, Any]:
    mine = np.array([one.lane == lane for one in outcomes])
    tokens = tokens_of([one for one in outcomes if one.lane == lane])
    n = int(mine.sum())
    return {
        "n": n,
        "top1": top_k(ranks[mine], 1),
        "top3": top_k(ranks[mine], 3),
        "output_tokens": tokens.output / n,
    }


def as_table(run: LlmRun) -> str:
    """The figures as a Markdown table."""
    rows = [list(_HEADS), ["---"] * len(_HEADS)]
    for name, one in run.figures.items():
        low, high = bootstrap_interval(run.ranks[name] < 1)
        shares = [f"{one[key]:.3f}" for key in ("top1_all", "top3_all", "top1")]
        shares.insert(1, f"{low:.2f}–{high:.2f}")
        costs = [f"{one['tokens']['prompt']:.0f}", f"{one['tokens']['output']:.0f}"]
        rows.append([name, *shares, *costs, f"{one['ms_per_query'] / 1000:.1f}", str(one["degraded"])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
