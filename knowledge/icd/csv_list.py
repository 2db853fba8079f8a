"""A code list that a hospital or a country gives as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ...errors import InputError
from .system import CodeSystem, RejectedRow, Term, TermKind, code_key, parents_by_prefix

_CODE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9.\-+*†‡_/:×]{0,39}$")
_HAS_DIGIT = re.compile(r"\d")
_KANA = re.compile(r"[぀-ヿ]")
_HAN = re.compile(r"[㐀-鿿]")
_INNER = re.compile(r"\s*[;；|]\s*")
_MAX_CELL = 2_000


class ListFormat(BaseModel):
    """What headings and letters tell about a code list (``data/icd/code_lists.toml``).

    Attributes:
        encodings: tried in this order; the one whose text holds most of ``letters`` wins.
        letters: frequent letters of medical text, by encoding.
        code: headings of the column of codes, folded.
        title: of the titles.
        alias: beginnings of headings of further names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    encodings: tuple[str, ...]
    letters: dict[str, str]
    code: frozenset[str]
    title: frozenset[str]
    alias: tuple[str, ...]


@lru_cache(maxsize=1)
def list_format() -> ListFormat:
    """The shipped description of code lists."""
    source = resources.files("wardround.knowledge").joinpath("data/icd/code_lists.toml")
    return ListFormat(**tomllib.loads(source.read_text(encoding="utf-8")))


def decode_list(raw: bytes, path: Path) -> str:
    """Text of a code list in UTF-8, UTF-16, GB 18030 or Shift JIS.

    Raises:
        InputError: none of the encodings fits.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    form = list_format()
    best, best_score = None, -1.0
    for encoding in form.encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        letters = set(form.letters[encoding])
        score = sum(char in letters for char in text) / max(1, len(text))
        if score > best_score:
            best, best_score = text, score
    if best is None:
        msg = f"{path}: neither UTF-8, UTF-16, GB 18030 nor Shift JIS; save the code list as UTF-8"
        raise InputError(msg)
    return best


def _delimiter(text: str) -> str:
    head = text[:20_000].splitlines()[:50]
    counts = {mark: sum(mark in line for line in head) for mark in (",", "\t", ";")}
    return max(counts, key=lambda mark: counts[mark])


def _fold(cell: str) -> str:
    return re.sub(r"[\s_\-‐]+", "", cell).casefold()


def _columns(first: list[str]) -> tuple[int, int, list[int]] | None:
    """Columns of code, title and aliases by the heading row; None where there is no heading."""
    form = list_format()
    folded = [_fold(cell) for cell in first]
    code = next((i for i, cell in enumerate(folded) if cell in form.code), None)
    title = next((i for i, cell in enumerate(folded) if cell in form.title), None)
    if code is None or title is None:
        looks_like_data = bool(first) and _CODE.match(first[0].strip()) and _HAS_DIGIT.search(first[0])
        return None if looks_like_data else (0, 1, list(range(2, len(first))))
    aliases = [i for i, cell in enumerate(folded) if i not in (code, title) and cell.startswith(form.alias)]
    return code, title, aliases


def language_of(titles: list[str]) -> str:
    """``"ja"`` where kana are common, ``"zh"`` where only Han characters are, else ``"en"``."""
    sample = titles[:: max(1, len(titles) // 2000)]
    han = sum(bool(_HAN.search(title)) for title in sample)
    kana = sum(bool(_KANA.search(title)) for title in sample)
    if kana >= 0.1 * max(1, len(sample)):
        return "ja"
    return "zh" if han >= 0.3 * max(1, len(sample)) else "en"


def read_csv_list(path: Path) -> CodeSystem:
    """Read ``code,title[,alias...]``; bad rows are skipped and listed in ``rejected``.

    A code that comes again adds its title as a further name. A cell may hold several names
    separated by ``;`` or ``|``.

    Raises:
        InputError: unreadable, of unknown encoding, or without one usable row.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); give an existing CSV"
        raise InputError(msg) from error
    reader = _ListReader()
    for line, cells in _rows(decode_list(raw, path).replace("\0", ""), reader.rejected):
        reader.take(line, cells)
    if not reader.codes:
        msg = f"{path}: no usable row; a code list has rows code,title[,alias...]"
        raise InputError(msg)
    version = hashlib.sha256(raw).hexdigest()[:16]
    parents = parents_by_prefix(reader.codes)
    language = language_of(reader.titles)
    return CodeSystem(
        path.stem, version, language, reader.codes, reader.titles, parents, reader.terms, {}, reader.rejected
    )


def _rows(text: str, rejected: list[RejectedRow]) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that is CSV and not blank."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    while True:
        try:
            cells = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            rejected.append(RejectedRow(lines.line_num, f"not CSV: {error}"))
            continue
        if any(cell.strip() for cell in cells):
            yield lines.line_num, cells


class _ListReader:
    """Takes rows of a code list in; the first one may be headings."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.titles: list[str] = []
        self.terms: list[Term] = []
        self.rejected: list[RejectedRow] = []
        self._row_by_key: dict[str, int] = {}
        self._columns: tuple[int, int, list[int]] | None = None
        self._first = True

    def take(self, line: int, cells: list[str]) -> None:
        """Take one row in, or reject it."""
        if self._first:
            self._first, self._columns = False, _columns(cells)
            if self._columns is not None:
                return
        at_code, at_title, at_alias = self._columns or (0, 1, list(range(2, len(cells))))
        if reason := _fault(cells, at_code, at_title):
            self.rejected.append(RejectedRow(line, reason))
            return
        code, title = cells[at_code].strip(), " ".join(cells[at_title].split())
        row = self._row_by_key.setdefault(code_key(code), len(self.codes))
        if row == len(self.codes):
            self.codes.append(code)
            self.titles.append(title)
        elif title != self.titles[row]:
            self.terms.append(Term(title, row, TermKind.INCLUSION))
        for column in at_alias:
            names = _INNER.split(cells[column][:_MAX_CELL]) if column < len(cells) else []
            self.terms.extend(Term(name.strip(), row, TermKind.ALIAS) for name in names if name.strip())


def _fault(cells: list[str], at_code: int, at_title: int) -> str | None:
    if len(cells) <= max(at_code, at_title):
        return f"only {len(cells)} cells, needs code and title"
    code, title = cells[at_code].strip(), cells[at_title].strip()
    if not code or not title:
        return "code or title is empty"
    if not _CODE.match(code):
        return f"{code[:40]!r} does not look like a code"
    if len(title) > _MAX_CELL:
        return f"title of {len(title)} characters"
    return None
