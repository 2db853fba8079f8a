"""CSV, TSV and similar text tables."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from ...settings import RecordsSettings
from .columns import HEADER_SEARCH_ROWS, find_columns, no_columns
from .door import Row
from .lines import Line, read_lines

MAX_FIELD_CHARS = 16 * 1024 * 1024
"""An unclosed quotation mark swallows the rest of a file; a field stops at this length instead."""

_DELIMITERS = ",\t;|"


class CsvRow:
    """One row of a CSV file.

    Attributes:
        cells: its texts.
        line: where it begins, from 1.
        fault: why it must not be used, or None.
    """

    __slots__ = ("cells", "fault", "line")

    def __init__(self, cells: list[str], line: int, fault: str | None = None) -> None:
        self.cells = cells
        self.line = line
        self.fault = fault


def read_csv_rows(path: Path, encoding: str | None = None, delimiter: str | None = None) -> Iterator[CsvRow]:
    """Rows of a plain or gzipped CSV file, quotation marks and line breaks in cells undone.

    Args:
        path: of the file.
        encoding: detected where None.
        delimiter: comma, tab, semicolon or bar, whichever the heading uses most, where None.

    Raises:
        InputError: the file is empty, cannot be read, or is plainly not in the declared encoding.
    """
    csv.field_size_limit(MAX_FIELD_CHARS)
    source = _CsvSource(path, encoding)
    first = source.first()
    if first is None:
        return
    delimiter = delimiter or max(_DELIMITERS, key=first.count)
    reader = csv.reader(source, delimiter=delimiter)
    held: CsvRow | None = None
    held_raw: list[str] = []
    while True:
        start = reader.line_num + 1
        source.begin_row()
        try:
            row = CsvRow(next(reader), start)
        except StopIteration:
            break
        except csv.Error as error:
            row = CsvRow([], start, f"not valid CSV: {error}")
        row.fault = source.fault or row.fault
        if held is not None:
            yield held
        held, held_raw = row, source.raw
    if held is not None:
        if held.fault is None and _is_cut_off(held_raw, delimiter):
            held.fault = "the last row is cut off inside quotation marks"
        yield held
    if source.end is not None:
        yield CsvRow([], source.end.number, source.end.fault)


class _CsvSource:
    """Feeds lines to :mod:`csv` and remembers those of the row at hand."""

    def __init__(self, path: Path, encoding: str | None) -> None:
        self._lines = read_lines(path, encoding)
        self._first: str | None = None
        self.raw: list[str] = []
        self.fault: str | None = None
        self.end: Line | None = None

    def first(self) -> str | None:
        self._first = next(self, None)
        return self._first

    def begin_row(self) -> None:
        self.raw = []
        self.fault = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        if self._first is not None:
            text, self._first = self._first, None
        else:
            line = next(self._lines)
            if line.fault is not None and not line.text:
                self.end = line
                return next(self)
            self.fault = self.fault or line.fault
            text = line.text.replace("\x00", "").replace("\r\n", "\n")
        self.raw.append(text)
        return text


def _is_cut_off(raw: list[str], delimiter: str) -> bool:
    try:
        list(csv.reader(raw, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return str(error) == "unexpected end of data"
    return False


def read_table(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    """Rows of a CSV file whose columns are found by ``records.columns`` and by known headings.

    Raises:
        InputError: the file is empty or cannot be read, or has no column for id or text.
        SettingsError: ``records.columns`` names a field that records don't have.
    """
    rows = read_csv_rows(path, settings.encoding)
    head = list(itertools.islice(rows, HEADER_SEARCH_ROWS))
    found = find_columns([row.cells for row in head], settings.columns, path)
    if found is None:
        raise no_columns([row.cells for row in head], path)
    place, columns = found
    width = len(head[place].cells)
    for row in itertools.chain(head[place + 1 :], rows):
        if row.fault is not None:
            yield Row(None, row.line, row.fault)
        elif len(row.cells) > width and any(cell.strip() for cell in row.cells[width:]):
            yield Row(None, row.line, f"has {len(row.cells)} cells where the heading has {width}")
        elif (made := columns.row(row.cells, row.line)) is not None:
            yield made
