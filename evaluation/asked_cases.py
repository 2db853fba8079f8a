"""Labelled records made ready to be searched and asked."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..knowledge.case_table import Patient
from ..knowledge.labels import LabelMode, LabelSpace
from ..knowledge.lessons import headed
from ..models.base import TextEmbedder
from ..models.cache import EmbeddingCache
from ..records.readers import read_records
from ..records.rejects import RejectLog
from ..records.schema import OutpatientRecord, View
from ..records.views import views_of
from ..settings import Settings
from .folds import find_twins

Floats = npt.NDArray[np.float32]

_log = logging.getLogger(__name__)
_MOST_REPORTED = 20


@dataclass
class AskedCase:
    """A labelled record as it is searched for and asked.

    Attributes:
        record: as read.
        views: without its diagnosis.
        text: the whole.
        label: number of its main diagnosis.
        headed: whether its views come from headings or fields.
        patient: who it is about.
        vectors: of the views, as the embedder gives them.
    """

    record: OutpatientRecord
    views: dict[View, str]
    text: str
    label: int
    headed: bool
    patient: Patient
    vectors: dict[View, Floats] = field(default_factory=dict)


def read_labelled(
    source: str | Path | Sequence[OutpatientRecord], settings: Settings, rejects: Path
) -> tuple[list[OutpatientRecord], int]:
    """Records with a diagnosis and with something besides it.

    Args:
        source: a file, or records.
        settings: of reading; no share of bad rows stops an evaluation.
        rejects: JSON lines of rows that cannot be used; each is also logged with file, line and reason.

    Returns:
        The records, and how many rows could not be used.

    Raises:
        InputError: there is no such record.
    """
    rejected = 0
    if isinstance(source, str | Path):
        lenient = settings.records.model_copy(update={"max_reject_share": 1.0})
        with RejectLog(rejects) as log:
            found = list(read_records(source, settings=lenient, rejects=log))
        rejected = log.rejected
        if rejected:
            _report(rejects)
    else:
        found = list(source)
    labelled = [record for record in found if record.diagnoses and views_of(record)]
    if not labelled:
        where = source if isinstance(source, str | Path) else "records"
        raise InputError(f"{where}: no record with a diagnosis and a text; give labelled records")
    return labelled, rejected


def _report(rejects: Path) -> None:
    for line in rejects.read_text(encoding="utf-8").splitlines()[:_MOST_REPORTED]:
        row = json.loads(line)
        _log.warning("%s line %s: %s", row["file"], row["line"], row["reason"])


def prepare(
    records: list[OutpatientRecord], queries: list[OutpatientRecord] | None, label: str, drop_twins: bool
) -> tuple[LabelSpace, list[AskedCase], list[AskedCase], int]:
    """Number labels, split views and find twins.

    Args:
        records: to search.
        queries: to ask; None where the records ask.
        label: label equality.
        drop_twins: leave near-identical cases out.

    Returns:
        Labels, cases to search, cases to ask, and how many have a twin.
    """
    mains = [(r.diagnoses[0].name, r.diagnoses[0].code) for r in [*records, *(queries or [])]]
    space = LabelSpace.of(mains, LabelMode(label))
    cases_a = [_case(record, space) for record in records]
    cases_b = cases_a if queries is None else [_case(record, space) for record in queries]
    twins = find_twins([c.text for c in cases_a], None if queries is None else [c.text for c in cases_b])
    if drop_twins:
        kept = [case for i, case in enumerate(cases_a) if i not in twins.records]
        if queries is not None:
            cases_b = [case for i, case in enumerate(cases_b) if i not in twins.queries]
        cases_a = kept
        cases_b = kept if queries is None else cases_b
        if not cases_a or not cases_b:
            raise InputError("nothing is left without twins")
    return space, cases_a, cases_b, twins.count


def _case(record: OutpatientRecord, space: LabelSpace) -> AskedCase:
    views = views_of(record)
    whole = views.get(View.GLOBAL) or "\n".join(views.values())
    main = record.diagnoses[0]
    from_headings = record.views is not None or headed(_Seen(views, whole, record.language or ""))
    patient = Patient.of(whole, record.department, record.age, record.sex)
    return AskedCase(record, views, whole, space.number(main.name, main.code), from_headings, patient)


@dataclass(frozen=True)
class _Seen:
    views: dict[View, str]
    text: str
    language: str
    department: str | None = None
    age: float | None = None
    sex: str | None = None
    diagnoses: tuple[Any, ...] = ()


def embed_cases(cases: Sequence[AskedCase], embedder: TextEmbedder, cache: EmbeddingCache) -> None:
    """Embed each distinct text once."""
    texts = list(dict.fromkeys(text.strip() for case in cases for text in case.views.values()))
    matrix = np.asarray(cache.encode(embedder, texts), np.float32)
    place = {text: i for i, text in enumerate(texts)}
    for case in cases:
        case.vectors = {view: matrix[place[text.strip()]] for view, text in case.views.items()}
