"""FHIR R4: bundles (.json) and newline-delimited exports (.ndjson), joined to one record a visit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from ...settings import RecordsSettings
from . import fhir_resources as fhir
from .door import REPORT_PARTS, Payload, Row
from .encodings import detect_encoding
from .fhir_text import Json, composition_text, document_text, items, string
from .jsonl import parse_json
from .lines import open_binary, read_lines
from .sniff import files_of_folder, suffix_of

MAX_BUNDLE_BYTES = 1024**3

_KIND = re.compile(r'"resourceType"\s*:\s*"(\w+)"')
_WANTED = fhir.KINDS | {"Bundle"}


class _Found(NamedTuple):
    """A resource, or why there is none."""

    resource: Json | None
    file: Path
    line: int | None = None
    url: str | None = None
    fault: str | None = None


def read_fhir(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    """One row for each Encounter with notes, from Patient, Encounter, Condition and its notes.

    A bundle is joined within itself, all ``.ndjson`` files of a folder among one another; notes are read one
    at a time and only those of a visit whose notes are not all there yet are held. Every resource that is
    used is validated first; an invalid one is refused and the rest goes on.

    Args:
        path: a file, or a folder of ``.ndjson`` files or of bundles.
        settings: the encoding is taken from here.

    Raises:
        InputError: the path is empty or cannot be read.
    """
    if not path.is_dir():
        yield from _join(path, partial(_resources, path, settings.encoding))
        return
    exports = list(files_of_folder(path, "*.ndjson", "*.ndjson.gz"))
    if exports:
        yield from _join(path, lambda: (f for file in exports for f in _safely(file, settings.encoding)))
        return
    for file in files_of_folder(path, "*.json", "*.json.gz"):
        yield from _join(file, list(_safely(file, settings.encoding)).__iter__)


def _safely(file: Path, encoding: str | None) -> Iterator[_Found]:
    try:
        yield from _resources(file, encoding)
    except InputError as error:
        yield _Found(None, file, fault=str(error).removeprefix(f"{file}: "))


def _resources(file: Path, encoding: str | None) -> Iterator[_Found]:
    if suffix_of(file) != ".ndjson":
        whole, fault = _whole(file, encoding)
        if fault is None:
            yield from _unpack(whole, file, None)
            return
        if not fault.startswith("not valid JSON: Extra data"):
            yield _Found(None, file, fault=fault)
            return
    for line in read_lines(file, encoding):
        if line.fault is not None:
            yield _Found(None, file, line.number, fault=line.fault)
        elif not line.text.isspace() and not _WANTED.isdisjoint(_KIND.findall(line.text) or _WANTED):
            value, fault = parse_json(line.text)
            if fault is not None:
                yield _Found(None, file, line.number, fault=fault)
            else:
                yield from _unpack(value, file, line.number)


def _whole(file: Path, encoding: str | None) -> tuple[object, str | None]:
    try:
        with open_binary(file) as stream:
            raw = stream.read(MAX_BUNDLE_BYTES + 1)
    except (EOFError, OSError, ValueError):
        return None, "the compressed file ends early or is damaged"
    if len(raw) > MAX_BUNDLE_BYTES:
        return None, "the bundle is larger than 1 GiB; export it as NDJSON"
    found = detect_encoding(raw[:65_536])
    try:
        text = raw[found.bom_bytes :].decode(found.name if found.bom_bytes else encoding or found.name)
    except (UnicodeError, LookupError, ValueError):
        return None, f"the file is not valid {encoding or found.name}"
    return parse_json(text + "\n")


def _unpack(value: object, file: Path, line: int | None) -> Iterator[_Found]:
    kind = string(value, "resourceType")
    if not isinstance(value, dict) or kind is None:
        yield _Found(None, file, line, fault="is not a FHIR resource")
    elif kind == "Bundle":
        for entry in items(value, "entry"):
            resource = entry.get("resource")
            if isinstance(resource, dict) and string(resource, "resourceType") in fhir.KINDS:
                yield _Found(resource, file, line, string(entry, "fullUrl"))
    elif kind in fhir.KINDS:
        yield _Found(value, file, line)


class _Tables:
    """Everything but the notes, and how many notes each visit has."""

    def __init__(self) -> None:
        self.patients: dict[str, fhir.Person] = {}
        self.staff: dict[str, fhir.Person] = {}
        self.encounters: dict[str, fhir.Encounter] = {}
        self.conditions: dict[str, fhir.Condition] = {}
        self.of_encounter: dict[str, list[str]] = {}
        self.notes: Counter[str] = Counter()
        self.same: dict[str, str] = {}

    def key(self, key: str | None) -> str | None:
        """A reference's target under its own id, where a bundle's address differs from it."""
        return None if key is None else self.same.get(key, key)

    def take(self, found: _Found) -> Row | None:
        """File a resource; a row to refuse where it is invalid."""
        resource = found.resource
        if resource is None:
            return Row(None, found.line, found.fault, file=found.file)
        kind = string(resource, "resourceType") or ""
        own = string(resource, "id") or (fhir.url_key(found.url) if found.url else None)
        if found.url and own and (other := fhir.url_key(found.url)) != own:
            self.same[other] = own
        if kind in fhir.NOTE_TYPES:
            if (key := fhir.encounter_key(resource)) is not None:
                self.notes[key] += 1
            return None
        fault = fhir.fault_of(resource) or (None if own else f"the {kind} has no id")
        if fault is not None or own is None:
            return Row(None, found.line, fault, f"{kind}/{own or '?'}", found.file, part=True)
        self._file(kind, own, resource)
        return None

    def _file(self, kind: str, own: str, resource: Json) -> None:
        if kind == "Patient":
            self.patients[own] = fhir.person(resource)
        elif kind == "Practitioner":
            self.staff[own] = fhir.person(resource)
        elif kind == "Encounter":
            self.encounters[own] = fhir.encounter(resource)
        elif (condition := fhir.condition(resource)) is not None:
            self.conditions[own] = condition
            if condition.encounter is not None:
                self.of_encounter.setdefault(condition.encounter, []).append(own)

    def settle(self) -> None:
        """Bring keys that came by address under the resources' own ids."""
        if not self.same:
            return
        notes, conditions = self.notes, self.of_encounter
        self.notes, self.of_encounter = Counter(), {}
        for key, count in notes.items():
            self.notes[self.same.get(key, key)] += count
        for key, ids in conditions.items():
            self.of_encounter.setdefault(self.same.get(key, key), []).extend(ids)

    def payload(self, key: str, texts: list[str]) -> Payload:
        """The record of a visit."""
        visit = self.encounters[key]
        patient_key = self.key(visit.patient)
        patient = self.patients.get(patient_key or "")
        ordered = [self.key(item) or item for item in visit.conditions]
        named = dict.fromkeys([*ordered, *self.of_encounter.get(key, [])])
        diagnoses = [self.conditions[item] for item in named if item in self.conditions]
        identifiers = list(patient.identifiers) if patient else []
        for part in visit.staff:
            member = self.staff.get(self.key(part) or part)
            identifiers += member.identifiers if member else [] if self._is_key(part) else [part]
        return {
            "id": key,
            "patient_id": patient_key,
            "department": visit.department,
            "date": visit.date,
            "age": fhir.age_at(patient.born, visit.date) if patient else None,
            "sex": patient.sex if patient else None,
            "text": "\n\n".join(texts),
            "diagnoses": [{"name": item.name, "code": item.code} for item in dict.fromkeys(diagnoses)],
            "identifiers": identifiers,
        }

    @staticmethod
    def _is_key(part: str) -> bool:
        return " " not in part and any(char.isdigit() for char in part)


def _join(path: Path, source: Callable[[], Iterator[_Found]]) -> Iterator[Row]:
    tables = _Tables()
    good = 0
    for found in source():
        refused = tables.take(found)
        good += refused is None
        if refused is not None:
            yield refused
        elif good % REPORT_PARTS == 0:
            yield Row(None, good_parts=REPORT_PARTS)
    yield Row(None, good_parts=good % REPORT_PARTS)
    tables.settle()
    yield from _visits(tables, source)
    for key in tables.encounters:
        if key not in tables.notes:
            yield Row(None, None, "the visit has no note", f"Encounter/{key}", path, by_nature=True)


def _visits(tables: _Tables, source: Callable[[], Iterator[_Found]]) -> Iterator[Row]:
    left = Counter(tables.notes)
    texts: dict[str, list[str]] = {}
    for found in source():
        resource = found.resource
        if resource is None or string(resource, "resourceType") not in fhir.NOTE_TYPES:
            continue
        key, text, fault = _note(resource, tables)
        if fault is not None:
            note_id = f"{string(resource, 'resourceType')}/{string(resource, 'id') or '?'}"
            yield Row(None, found.line, fault, note_id, found.file)
        elif text is not None and key is not None:
            texts.setdefault(key, []).append(text)
        if key is None:
            continue
        left[key] -= 1
        if left[key] == 0 and key in texts:
            yield Row(tables.payload(key, texts.pop(key)), found.line, file=found.file)


def _note(resource: Json, tables: _Tables) -> tuple[str | None, str | None, str | None]:
    """Visit, text and fault of a note; neither text nor fault for one that was withdrawn."""
    key = tables.key(fhir.encounter_key(resource))
    if string(resource, "status") == "entered-in-error":
        return key, None, None
    if (fault := fhir.fault_of(resource)) is not None:
        return key, None, fault
    if key is None:
        return None, None, "the document names no visit (encounter)"
    if key not in tables.encounters:
        return key, None, "its visit (encounter) is missing or was refused"
    is_composition = string(resource, "resourceType") == "Composition"
    text, fault = composition_text(resource) if is_composition else document_text(resource)
    return key, text or None, fault
