"""The one door through which every format's rows become records."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ...errors import InputError
from ...settings import RecordsSettings
from ..rejects import RejectLog
from ..schema import OutpatientRecord, View
from .values import age_of, date_of, name_of, sex_of

_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_VIEW_NAMES = frozenset(View)
_FIELDS = frozenset(OutpatientRecord.model_fields)
_READ: dict[str, Callable[[object], object]] = {
    "age": age_of,
    "sex": sex_of,
    "date": date_of,
    "department": name_of,
    "language": name_of,
    "patient_id": name_of,
}

NO_EVIDENCE = "no evidence text besides the diagnosis"
REPORT_PARTS = 500
"""Readers report the good parts of records in lots of this size."""
DUPLICATE = "the id is used by an earlier row"

Payload = dict[str, object]


class Row(NamedTuple):
    """What a format's reader found at one place.

    Attributes:
        payload: fields as in EVALUATION.md's records, unchecked; None where they cannot be had.
        line: where it begins, from 1.
        fault: why there is no payload.
        id: of the record, for the log, where there is no payload.
        file: where it differs from the path that was asked for.
        by_nature: there is nothing wrong, it is just no record.
        part: what is wrong is a row that belongs to a record without being one.
        good_parts: so many such rows were good since the last report; the row is nothing else.
    """

    payload: Payload | None
    line: int | None = None
    fault: str | None = None
    id: str | None = None
    file: Path | None = None
    by_nature: bool = False
    part: bool = False
    good_parts: int = 0


class Door:
    """Cleans, validates and admits rows; whatever it refuses goes to the log.

    Args:
        settings: limits.
        rejects: the log.
        has_evidence: tells a record with evidence from one whose text is only its diagnosis.
    """

    def __init__(
        self,
        settings: RecordsSettings,
        rejects: RejectLog,
        has_evidence: Callable[[OutpatientRecord], bool],
    ) -> None:
        self._settings = settings
        self._rejects = rejects
        self._has_evidence = has_evidence
        self._seen: set[str] = set()

    def admit_all(self, path: Path, rows: Iterable[Row]) -> Iterator[OutpatientRecord]:
        """Records of a source, one at a time.

        Raises:
            InputError: too many rows are bad, or none could be read.
        """
        before = self._rejects.accepted
        for row in rows:
            record = self.admit(path, row)
            if record is not None:
                yield record
        self._rejects.check(self._settings.max_reject_share)
        if self._rejects.accepted == before:
            first = self._rejects.first
            why = f"; first problem: {first.reason}" if first else ""
            msg = f"{path}: holds no record that can be used{why}"
            raise InputError(msg)

    def admit(self, path: Path, row: Row) -> OutpatientRecord | None:
        """One row's record, or None where it was refused and logged."""
        file = row.file or path
        if row.payload is None:
            self._note(file, row)
            self._rejects.check_early(self._settings.max_reject_share)
            return None
        try:
            record, fault = self._validate(row.payload)
        except RecursionError:
            record, fault = None, "nested too deeply"
        if record is not None:
            fault = self._refusal(record)
        if record is None or fault is not None:
            given = row.payload.get("id")
            record_id = str(given) if isinstance(given, (str, int)) and not isinstance(given, bool) else None
            self._rejects.reject(file, fault or "cannot be read", line=row.line, record_id=record_id)
            self._rejects.check_early(self._settings.max_reject_share)
            return None
        self._seen.add(record.id)
        self._rejects.accept()
        return record

    def _note(self, file: Path, row: Row) -> None:
        fault = row.fault or ""
        if row.good_parts or row.fault is None:
            self._rejects.accept_parts(row.good_parts)
        elif row.by_nature:
            self._rejects.skip(file, fault, line=row.line, record_id=row.id)
        else:
            self._rejects.reject(file, fault, line=row.line, record_id=row.id, part=row.part)

    def _refusal(self, record: OutpatientRecord) -> str | None:
        if record.id in self._seen:
            return DUPLICATE
        return None if self._has_evidence(record) else NO_EVIDENCE

    def _validate(self, payload: Payload) -> tuple[OutpatientRecord | None, str | None]:
        fields = self._normalise(payload)
        date = fields.get("date")
        if date is not None and not isinstance(date, dt.date):
            return None, "date: not a date that can be read; use ISO, for example 2024-01-31"
        if isinstance(fields.get("age"), bool) or isinstance(fields.get("id"), bool):
            return None, "age and id must not be true or false"
        try:
            return OutpatientRecord.model_validate(fields), None
        except ValidationError as error:
            return None, explain(error)

    def _normalise(self, payload: Payload) -> Payload:
        clean = self._clean
        fields: Payload = {}
        for key, value in payload.items():
            if key not in _FIELDS or value is None:
                continue
            if isinstance(value, str):
                fields[key] = clean(value)
            elif isinstance(value, list):
                fields[key] = self._list(key, value)
            elif key == "views" and isinstance(value, dict):
                fields[key] = self._views(value)
            else:
                fields[key] = value
        for key, read in _READ.items():
            if key in fields:
                fields[key] = read(fields[key])
        return fields

    def _views(self, views: dict[object, object]) -> dict[object, object]:
        known = {name: text for name, text in views.items() if name in _VIEW_NAMES and text is not None}
        return {name: self._clean(text) if isinstance(text, str) else text for name, text in known.items()}

    def _list(self, key: str, values: list[object]) -> list[object]:
        if key == "diagnoses":
            return [self._diagnosis(item) for item in values]
        return [self._clean(item) if isinstance(item, str) else item for item in values]

    def _diagnosis(self, item: object) -> object:
        if isinstance(item, str):
            return {"name": self._clean(item)}
        if not isinstance(item, dict):
            return item
        name, code = item.get("name"), item.get("code")
        if isinstance(code, str):
            code = self._clean(code).strip() or None
        elif isinstance(code, int) and not isinstance(code, bool):
            code = str(code)
        return {"name": self._clean(name) if isinstance(name, str) else name, "code": code}

    def _clean(self, text: str) -> str:
        limit = self._settings.max_field_chars
        if len(text) > limit:
            text = text[:limit]
            self._rejects.cut_fields += 1
        if _UNWANTED.search(text):
            text = _UNWANTED.sub("", _SURROGATE.sub("\ufffd", text))
            self._rejects.cleaned_fields += 1
        return text


def explain(error: ValidationError) -> str:
    """The first faults of a validation as field and message, without the values."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    parts = []
    for fault in faults[:3]:
        where = ".".join(str(part) for part in fault["loc"])
        message = fault["msg"].removeprefix("Value error, ")
        parts.append(f"{where}: {message}" if where else message)
    more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
    return "; ".join(parts) + more
