"""Excel workbooks (.xlsx, .xlsm)."""

from __future__ import annotations

import itertools
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError, WardroundError
from ...settings import RecordsSettings
from .columns import HEADER_SEARCH_ROWS, Cell, find_columns, no_columns
from .door import Row

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

MAX_UNPACKED_BYTES = 4 * 1024**3
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"


def read_excel(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    """Rows of the first sheet that has columns for id and text; values, not formulas.

    Raises:
        InputError: it is empty, damaged, encrypted, in the old ``.xls`` format, or has no such sheet.
        SettingsError: ``records.columns`` names a field that records don't have.
    """
    _check_archive(path)
    try:
        yield from _rows(path, settings)
    except WardroundError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged workbook fails anywhere inside openpyxl
        yield Row(
            None, None, f"the workbook is damaged here ({type(error).__name__}); rows before it were read"
        )


def _check_archive(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if not magic:
            msg = f"{path}: the file is empty"
            raise InputError(msg)
        if magic == _OLE_MAGIC:
            msg = f"{path}: is an old .xls or has a password; save it as .xlsx without one, or as CSV"
            raise InputError(msg)
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
        raise InputError(msg) from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, UnicodeError) as error:
        msg = f"{path}: is not an Excel workbook, or is damaged; save it again as .xlsx, or as CSV"
        raise InputError(msg) from error
    if size > MAX_UNPACKED_BYTES:
        msg = f"{path}: unpacks to {size / 1024**3:.1f} GiB, more than Excel can hold; export it as CSV"
        raise InputError(msg)


def _rows(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    from openpyxl import load_workbook  # noqa: PLC0415 - a third of a second, needed for workbooks only

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(path, read_only=True, data_only=True)
    try:
        first_head: list[Sequence[Cell]] = []
        for sheet in _sheets(book):
            head = list(itertools.islice(sheet, HEADER_SEARCH_ROWS))
            found = find_columns([cells for _, cells in head], settings.columns, path)
            if found is None:
                first_head = first_head or [cells for _, cells in head]
                continue
            place, columns = found
            for number, cells in itertools.chain(head[place + 1 :], sheet):
                if (made := columns.row(cells, number)) is not None:
                    yield made
            return
        raise no_columns(first_head, path)
    finally:
        book.close()


def _sheets(book: Workbook) -> Iterator[Iterator[tuple[int, Sequence[Cell]]]]:
    for sheet in book.worksheets:
        sheet.reset_dimensions()
        rows = enumerate(sheet.iter_rows(values_only=True), start=1)
        yield ((number, [_cell(value) for value in values]) for number, values in rows)


def _cell(value: object) -> Cell:
    return value if isinstance(value, Cell) else str(value)
