"""A record asked as a case: what evaluation, calibration and tests do with labelled records."""

from __future__ import annotations

from ..query import ClinicalQuery
from .schema import OutpatientRecord


def query_of(record: OutpatientRecord) -> ClinicalQuery:
    """The case a record describes, without its diagnosis; the record is never its own evidence."""
    views = {view.value: text for view, text in record.views.items()} if record.views else None
    return ClinicalQuery(
        record.text or "\n".join((views or {}).values()),
        department=record.department,
        age=record.age,
        sex=record.sex,
        views=views,
        language=record.language,
        record_ids=frozenset({record.id}),
    )
