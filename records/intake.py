"""From files to records that may enter an index: read, counted, scrubbed, and reported on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..settings import PrivacySettings, RecordsSettings
from .deidentify import scrubber_for
from .progress import progress
from .readers import read_records
from .rejects import RejectLog
from .schema import OutpatientRecord

Source = str | Path | Sequence[str | Path] | Iterable[OutpatientRecord]
"""A file or folder, several of them, or records."""

Records = Iterator[OutpatientRecord]
Report = dict[str, Any]


@contextmanager
def reading(
    source: Source,
    settings: RecordsSettings,
    *,
    format: str | None = None,  # noqa: A002
    rejects: Path | None = None,
) -> Iterator[tuple[Records, Report]]:
    """Open a source for one pass.

    Args:
        source: of records.
        settings: of readers.
        format: of files; sniffed where None.
        rejects: where bad rows are listed, one JSON line each.

    Yields:
        The records, and a report that is complete when the block ends: ``rejected``, ``rejects_file``,
        ``reasons``, ``cut_fields`` and ``cleaned_fields``.

    Raises:
        InputError: while reading: nothing usable, or more bad rows than ``records.max_reject_share``.
    """
    report: Report = {}
    with RejectLog(rejects) as log, progress("Reading") as tick:

        def records() -> Records:
            for part in [source] if isinstance(source, str | Path) else source:
                if isinstance(part, OutpatientRecord):
                    yield part
                    tick(1)
                    continue
                for record in read_records(part, settings=settings, rejects=log, format=format):
                    yield record
                    tick(1)

        yield records(), report
    report |= {
        "rejected": log.rejected,
        "rejects_file": str(rejects) if rejects and log.first else None,
        "reasons": dict(log.reasons),
        "cut_fields": log.cut_fields,
        "cleaned_fields": log.cleaned_fields,
    }


@contextmanager
def admitting(
    source: Source,
    settings: RecordsSettings,
    privacy: PrivacySettings,
    *,
    format: str | None = None,  # noqa: A002
    rejects: Path | None = None,
) -> Iterator[tuple[Records, Report]]:
    """As :func:`reading`, for records that other patients' cases will show as evidence.

    The report also says what scrubbing removed.

    Raises:
        PrivacyError: the records are neither declared de-identified nor to be scrubbed.
    """
    scrubber = scrubber_for(privacy)
    with reading(source, settings, format=format, rejects=rejects) as (records, report):
        yield (scrubber.scrub(one)[0] for one in records) if scrubber else records, report
    if scrubber:
        report["scrubbed"] = scrubber.report.model_dump()
