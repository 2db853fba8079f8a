"""Which format a path is in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from ...errors import InputError
from .encodings import detect_encoding
from .lines import head_of

Format = Literal["jsonl", "csv", "xlsx", "fhir", "mimic"]
FORMATS: tuple[Format, ...] = get_args(Format)

_HEAD_BYTES = 65_536
_BY_SUFFIX: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xls": "xlsx",
}


def format_of(path: Path) -> Format:
    """Tell the format from the name and the first bytes.

    Raises:
        InputError: there is no such path, it is empty, or nothing known is found in it.
    """
    if not path.exists():
        msg = f"{path}: there is no such file or folder"
        raise InputError(msg)
    if path.is_dir():
        return _format_of_folder(path)
    if not path.is_file():
        msg = (
            f"{path}: is a pipe or a device, and records are read more than once; write them to a file first"
        )
        raise InputError(msg)
    head = head_of(path, _HEAD_BYTES)
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "xlsx"
    by_suffix = _BY_SUFFIX.get(suffix_of(path))
    if by_suffix is not None:
        return by_suffix
    return _format_of_json(path, head)


def suffix_of(path: Path) -> str:
    """The last suffix in lower case, ``.gz`` taken off."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def files_of_folder(path: Path, *names: str) -> Iterator[Path]:
    """Files below a folder whose names match any of the patterns, in order of their paths."""
    found = {file for name in names for file in path.rglob(name) if file.is_file()}
    yield from sorted(found)


def _format_of_folder(path: Path) -> Format:
    if any(files_of_folder(path, "discharge.csv", "discharge.csv.gz")):
        return "mimic"
    if any(files_of_folder(path, "*.ndjson", "*.ndjson.gz", "*.json", "*.json.gz")):
        return "fhir"
    msg = (
        f"{path}: the folder holds neither a FHIR export (*.ndjson, or bundles as *.json) nor MIMIC-IV "
        "(discharge.csv with diagnoses_icd.csv and admissions.csv); give a file, or such a folder"
    )
    raise InputError(msg)


def _format_of_json(path: Path, head: bytes) -> Format:
    text = head.decode(detect_encoding(head).name, "replace").lstrip("\ufeff \t\r\n")
    if not text.startswith(("{", "[")):
        if suffix_of(path) in (".jsonl", ".json", ".ndjson"):
            return "jsonl"
        return "csv"
    if '"resourceType"' in text and _is_resource(text):
        return "fhir"
    if text.startswith("["):
        msg = f"{path}: is a JSON array; write one record a line (JSON lines) instead"
        raise InputError(msg)
    return "jsonl"


def _is_resource(text: str) -> bool:
    """Whether the first JSON object is a FHIR resource, not a record that happens to mention one."""
    try:
        first, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        compact = "".join(text.split())
        return '"resourceType":"' in compact and '"diagnoses":' not in compact.split("\n", 1)[0]
    return isinstance(first, dict) and "resourceType" in first
