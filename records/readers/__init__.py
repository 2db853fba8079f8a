"""Streaming readers, one module a format, and the one door that all their rows go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import InputError
from ...settings import RecordsSettings
from ..rejects import RejectLog
from ..schema import OutpatientRecord
from .door import Door, Row
from .evidence import has_evidence
from .excel import read_excel
from .fhir import read_fhir
from .jsonl import read_jsonl
from .mimic import read_mimic
from .sniff import FORMATS, Format, format_of
from .table import read_table

__all__ = ["FORMATS", "Format", "format_of", "read_records"]

_READERS: dict[str, Callable[[Path, RecordsSettings], Iterator[Row]]] = {
    "jsonl": read_jsonl,
    "csv": read_table,
    "xlsx": read_excel,
    "fhir": read_fhir,
    "mimic": read_mimic,
}


def read_records(
    path: str | Path,
    *,
    settings: RecordsSettings,
    rejects: RejectLog,
    format: str | None = None,  # noqa: A002 - the word a user would use
) -> Iterator[OutpatientRecord]:
    """Read records one at a time, whatever they are kept in.

    A bad row is logged with file, line and reason and passed over; docs/records.md has every outcome.

    Args:
        path: a file, plain or gzipped, or a folder (FHIR bulk export, MIMIC-IV).
        settings: column mapping, encoding and limits.
        rejects: takes what cannot be used.
        format: ``jsonl``, ``csv``, ``xlsx``, ``fhir`` or ``mimic``; told from name and content where None.

    Yields:
        Valid records with unique ids and with text besides their diagnosis.

    Raises:
        InputError: the file is missing, empty or damaged as a whole, holds no usable record, or the share
            of bad rows is above ``settings.max_reject_share`` (looked at from 1,000 rows on, and at the end).
        SettingsError: ``records.columns`` or ``records.encoding`` is impossible.
    """
    path = Path(path)
    if format is not None and format not in FORMATS:
        msg = f"{path}: format {format!r} is not known; formats are {', '.join(FORMATS)}"
        raise InputError(msg)
    door = Door(settings, rejects, has_evidence)
    if format is not None and not path.is_file() and not path.is_dir():
        format_of(path)
    yield from door.admit_all(path, _READERS[format or format_of(path)](path, settings))
