"""Everything that an index teaches about its own records, in one call. Source: ours."""

from __future__ import annotations

from collections.abc import Callable

from .labels import LabelMode
from .learned_models import LearnedModels, store, stored, unlearned
from .lessons import Lessons
from .source import CaseSource
from .weights import ViewWeights

__all__ = ["LearnedModels", "Lessons", "learn", "store", "stored", "unlearned"]


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

    About 5 s for a thousand records and bounded for any number: beyond 5,000 the scorer works in fewer
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
