"""A code list that a hospital or a country gives as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tomllib
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
    aliases = [
        i for i, cell in enumerate(folded) if i not in (code, title) and cell.startswith(form.alias)
    ]
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
    text = decode_list(raw, path).replace("\0", "")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    codes: list[str] = []
    titles: list[str] = []
    terms: list[Term] = []
    rejected: list[RejectedRow] = []
    row_by_key: dict[str, int] = {}
    columns: tuple[int, int, list[int]] | None = None
    first = True
    while True:
        try:
            cells = next(lines)
        except StopIteration:
            break
        except csv.Error as error:
            rejected.append(RejectedRow(lines.line_num, f"not CSV: {error}"))
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if first:
            first, columns = False, _columns(cells)
            if columns is not None:
                continue
        at_code, at_title, at_alias = columns or (0, 1, list(range(2, len(cells))))
        reason = _fault(cells, at_code, at_title)
        if reason:
            rejected.append(RejectedRow(lines.line_num, reason))
            continue
        code, title = cells[at_code].strip(), " ".join(cells[at_title].split())
        row = row_by_key.setdefault(code_key(code), len(codes))
        if row == len(codes):
            codes.append(code)
            titles.append(title)
        elif title != titles[row]:
            terms.append(Term(title, row, TermKind.INCLUSION))
        for column in at_alias:
            if column < len(cells):
                names = (name.strip() for name in _INNER.split(cells[column][:_MAX_CELL]))
                terms.extend(Term(name, row, TermKind.ALIAS) for name in names if name)
    if not codes:
        msg = f"{path}: no usable row; a code list has rows code,title[,alias...]"
        raise InputError(msg)
    version = hashlib.sha256(raw).hexdigest()[:16]
    return CodeSystem(
        path.stem, version, language_of(titles), codes, titles, parents_by_prefix(codes), terms, {}, rejected
    )


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
