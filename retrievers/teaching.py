"""What labelled records outside an index teach about ranking in it. Source: ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..indexes.cases import CaseIndex
from ..knowledge.calibration import FEWEST_EXAMPLES, ConfidenceCalibration
from ..knowledge.learned import CaseTable
from ..knowledge.learning import LearnedModels, learn
from ..knowledge.ranking import FEATURES
from ..knowledge.weights import ViewWeights
from ..records.asking import query_of
from ..records.progress import Tick
from ..records.schema import OutpatientRecord
from .case_ranker import CaseRanker


def calibration_from(
    ranker: CaseRanker, records: Iterable[OutpatientRecord], tick: Tick
) -> ConfidenceCalibration | None:
    """How sure a ranker may be, by asking it labelled records; a record is never its own evidence.

    Args:
        ranker: as it will answer.
        records: those without a diagnosis are passed over.
        tick: called with the number of records asked since its last call.

    Returns:
        None where fewer than 40 records have a diagnosis.
    """
    space = CaseTable(ranker.index.snapshot(), ranker.models.mode, read_texts=False).space
    signs, right = [], []
    for record in records:
        if not record.diagnoses:
            continue
        ranking = ranker.rank(query_of(record))
        main = record.diagnoses[0]
        leader = ranking.diagnoses[0].label if ranking.diagnoses else None
        signs.append(ranking.signs)
        right.append(leader == space.key(main.name, main.code))
        tick(1)
    if len(signs) < FEWEST_EXAMPLES:
        return None
    return ConfidenceCalibration.fit(FEATURES, np.stack(signs), np.array(right, bool))


def models_from(
    records: Iterable[OutpatientRecord], table: ViewWeights, tick: Tick, **build: Any
) -> LearnedModels:
    """What records teach about view weights, mix and calibration, from a passing index of their own.

    Args:
        records: labelled ones.
        table: of view weights to begin with.
        tick: progress in records.
        **build: as for :meth:`CaseIndex.build`.
    """
    with tempfile.TemporaryDirectory() as folder:
        index = CaseIndex.build(records, Path(folder) / "cases", **build)
        return learn(index, table=table, tick=tick)
