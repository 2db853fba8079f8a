"""MIMIC-IV: discharge notes joined with admissions and coded diagnoses."""

from __future__ import annotations

import datetime as dt
import re
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from ...settings import RecordsSettings
from .door import REPORT_PARTS, Payload, Row
from .sniff import files_of_folder
from .table import read_csv_rows

_SERVICE = re.compile(r"^\s*Service:[ \t]*(\S[^\n]{0,60})", re.MULTILINE | re.IGNORECASE)
_SERVICE_WITHIN = 2_000
_CODE_BITS = 24
_NEEDED = {
    "discharge": ("note_id", "subject_id", "hadm_id", "text"),
    "diagnoses_icd": ("hadm_id", "seq_num", "icd_code", "icd_version"),
    "admissions": ("hadm_id", "admittime"),
    "patients": ("subject_id", "gender", "anchor_age", "anchor_year"),
    "d_icd_diagnoses": ("icd_code", "icd_version", "long_title"),
    "services": ("hadm_id", "transfertime", "curr_service"),
}
_Load = Callable[[tuple[str, ...]], str | None]
_OPTIONAL = frozenset({"patients", "d_icd_diagnoses", "services"})


class _Patient(NamedTuple):
    sex: str
    anchor_age: int
    anchor_year: int


class _Cells(NamedTuple):
    line: int
    values: tuple[str, ...]
    fault: str | None


def read_mimic(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    """One row for each discharge note, in the order of ``discharge.csv``; only one note is held at a time.

    The record's id is the note's; its department is the service that discharged the patient, by
    ``services.csv`` where that is there, else as the note's head says. ICD-10 codes are taken over with their
    dot; an ICD-9 code would be mistaken for an ICD-10 one, so of ICD-9 diagnoses only the title is.

    Args:
        path: a folder that holds at any depth, plain or gzipped, ``discharge.csv``, ``diagnoses_icd.csv``
            and ``admissions.csv``; ``patients.csv`` (age, sex), ``d_icd_diagnoses.csv`` (titles) and
            ``services.csv`` are used where they are there.
        settings: the encoding is taken from here.

    Raises:
        InputError: one of the three tables is missing, empty, or lacks a column.
    """
    files = {name: _find(path, name) for name in _NEEDED}
    encoding = settings.encoding or "utf-8"
    tables = _Tables()
    for name, load in tables.loaders().items():
        file = files[name]
        if file is not None:
            yield from _load(file, _cells(file, name, encoding), load)
    notes = files["discharge"]
    if notes is None:
        return
    for cells in _cells(notes, "discharge", encoding):
        note_id, subject, hadm, text = cells.values or ("", "", "", "")
        if cells.fault is not None:
            yield Row(None, cells.line, cells.fault, note_id, notes)
        elif not hadm.strip().isdecimal():
            yield Row(None, cells.line, "the note has no hadm_id", note_id, notes)
        elif int(hadm) not in tables.admitted:
            yield Row(None, cells.line, "its hadm_id is not in admissions", note_id, notes)
        else:
            yield Row(tables.payload(note_id, subject, int(hadm), text), cells.line, file=notes)


def _load(file: Path, rows: Iterator[_Cells], load: _Load) -> Iterator[Row]:
    good = 0
    for cells in rows:
        fault = cells.fault or load(cells.values)
        if fault is not None:
            yield Row(None, cells.line, fault, file=file, part=True)
            continue
        good += 1
        if good == REPORT_PARTS:
            yield Row(None, good_parts=good)
            good = 0
    yield Row(None, good_parts=good)


def _find(folder: Path, name: str) -> Path | None:
    if not folder.is_dir():
        msg = f"{folder}: MIMIC-IV is read from a folder; give the one above hosp/ and note/"
        raise InputError(msg)
    found = next(files_of_folder(folder, f"{name}.csv", f"{name}.csv.gz"), None)
    if found is None and name not in _OPTIONAL:
        msg = f"{folder}: {name}.csv or {name}.csv.gz is missing; MIMIC-IV is read from it"
        raise InputError(msg)
    return found


def _cells(file: Path, name: str, encoding: str) -> Iterator[_Cells]:
    rows = read_csv_rows(file, encoding, ",")
    heading = next(rows, None)
    headings = [cell.strip() for cell in heading.cells] if heading else []
    needed = _NEEDED[name]
    if missing := [column for column in needed if column not in headings]:
        msg = f"{file}: has no column {', '.join(missing)}; is it MIMIC-IV's {name}?"
        raise InputError(msg)
    places = [headings.index(column) for column in needed]
    last = max(places)
    for row in rows:
        if row.fault is not None or len(row.cells) <= last:
            fault = row.fault or f"has {len(row.cells)} cells where the heading has {len(headings)}"
            yield _Cells(row.line, (), fault)
        else:
            yield _Cells(row.line, tuple(row.cells[place] for place in places), None)


class _Tables:
    """The coded tables, packed: MIMIC-IV has six million diagnoses."""

    def __init__(self) -> None:
        self.admitted: dict[int, dt.date | None] = {}
        self._patients: dict[str, _Patient] = {}
        self._titles: dict[tuple[str, str], str] = {}
        self._codes: dict[tuple[str, str], int] = {}
        self._code_list: list[tuple[str, str]] = []
        self._diagnoses: dict[int, array[int]] = {}
        self._services: dict[int, tuple[str, str]] = {}

    def loaders(self) -> dict[str, _Load]:
        """Table -> what takes one of its rows and says what is wrong with it."""
        return {
            "admissions": self._admission,
            "patients": self._patient,
            "d_icd_diagnoses": self._title,
            "diagnoses_icd": self._diagnosis,
            "services": self._service,
        }

    def payload(self, note_id: str, subject: str, hadm: int, text: str) -> Payload:
        """The record of a note."""
        date = self.admitted[hadm]
        patient = self._patients.get(subject.strip())
        service = self._services.get(hadm)
        in_note = None if service else _SERVICE.search(text[:_SERVICE_WITHIN])
        return {
            "id": note_id.strip() or str(hadm),
            "patient_id": subject.strip() or None,
            "department": service[1] if service else in_note[1].strip() if in_note else None,
            "date": date,
            "age": patient.anchor_age + date.year - patient.anchor_year if patient and date else None,
            "sex": patient.sex if patient else None,
            "text": text,
            "diagnoses": self._named(hadm),
        }

    def _named(self, hadm: int) -> list[dict[str, str | None]]:
        named: list[dict[str, str | None]] = []
        for packed in sorted(self._diagnoses.get(hadm, ())):
            code, version = self._code_list[packed & ((1 << _CODE_BITS) - 1)]
            dotted = f"{code[:3]}.{code[3:]}" if len(code) > 3 else code
            title = self._titles.get((code, version))
            if version == "10":
                named.append({"name": title or dotted, "code": dotted})
            else:
                named.append({"name": title or f"ICD-9 {code}", "code": None})
        return named

    def _admission(self, values: tuple[str, ...]) -> str | None:
        hadm, time = values
        if not hadm.isdecimal():
            return "hadm_id is not a number"
        try:
            self.admitted[int(hadm)] = dt.date.fromisoformat(time[:10])
        except ValueError:
            self.admitted[int(hadm)] = None
        return None

    def _patient(self, values: tuple[str, ...]) -> str | None:
        subject, gender, age, year = values
        if not (age.isdecimal() and year.isdecimal()):
            return "anchor_age or anchor_year is not a number"
        self._patients[subject.strip()] = _Patient(gender, int(age[:6]), int(year[:6]))
        return None

    def _title(self, values: tuple[str, ...]) -> str | None:
        code, version, title = values
        if title.strip():
            self._titles[code.strip(), version.strip()] = title.strip()
        return None

    def _diagnosis(self, values: tuple[str, ...]) -> str | None:
        hadm, place, code, version = (value.strip() for value in values)
        if not (hadm.isdecimal() and place.isdecimal() and code and version in ("9", "10")):
            return "hadm_id, seq_num, icd_code or icd_version is not what MIMIC-IV has there"
        number = self._codes.setdefault((code, version), len(self._codes))
        if number == len(self._code_list):
            self._code_list.append((code, version))
        packed = min(int(place[:4]), 255) << _CODE_BITS | number
        self._diagnoses.setdefault(int(hadm), array("Q")).append(packed)
        return None

    def _service(self, values: tuple[str, ...]) -> str | None:
        hadm, time, service = (value.strip() for value in values)
        if not hadm.isdecimal():
            return "hadm_id is not a number"
        if service and time >= self._services.get(int(hadm), ("", ""))[0]:
            self._services[int(hadm)] = (time, service)
        return None
