"""FHIR R4 resources: validated by fhir.resources, and what a record needs of each."""

from __future__ import annotations

import datetime as dt
import sys
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from ..dates import make_date
from .fhir_text import Json, concept_text, dig, fhir_tables, items, string

NOTE_TYPES = frozenset({"Composition", "DocumentReference"})
KINDS = NOTE_TYPES | {"Patient", "Practitioner", "Encounter", "Condition"}

_GENDERS = {"female": "F", "male": "M", "other": "other"}
_OWN_WORDS = "Value for the field"


class _Model(Protocol):
    def model_validate(self, value: Json) -> object: ...


class Person(NamedTuple):
    """A Patient or Practitioner.

    Attributes:
        born: year, month, day; 0 where the source leaves it out.
        sex: ``F``, ``M`` or another code.
        identifiers: names, numbers, addresses.
    """

    born: tuple[int, int, int] | None
    sex: str | None
    identifiers: tuple[str, ...]


class Encounter(NamedTuple):
    """A visit.

    Attributes:
        patient: reference key.
        date: on which it began.
        department: clinic, if it says.
        conditions: reference keys, main one first.
        staff: reference keys and names of who took part.
    """

    patient: str | None
    date: dt.date | None
    department: str | None
    conditions: tuple[str, ...]
    staff: tuple[str, ...]


class Condition(NamedTuple):
    """A diagnosis.

    Attributes:
        name: words, else the code.
        code: ICD-10 only.
        encounter: reference key.
    """

    name: str
    code: str | None
    encounter: str | None


@cache
def _model(kind: str) -> _Model:
    module = import_module(f"fhir.resources.R4B.{kind.lower()}")
    model: _Model = getattr(module, kind)
    return model


def fault_of(resource: Json) -> str | None:
    """What FHIR R4 has against a resource, without its values; None where it is valid."""
    kind = string(resource, "resourceType") or ""
    try:
        _model(kind).model_validate(resource)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        said = [
            f"{'.'.join(_place(part) for part in f['loc'])}: {_words(f['type'], f['msg'])}"
            for f in faults[:3]
        ]
        return f"not a valid {kind}: " + "; ".join(said)
    except RecursionError:
        return f"not a valid {kind}: nested too deeply"
    except (ValueError, TypeError, AssertionError, AttributeError, KeyError) as error:
        return f"not a valid {kind}: {type(error).__name__}"
    return None


def _place(part: str | int) -> str:
    text = str(part)
    return text if len(text) <= 40 and text.replace("_", "").isalnum() else "?"


def _words(kind: str, message: str) -> str:
    message = message.removeprefix("Value error, ")
    own = kind not in ("value_error", "assertion_error") or message.startswith(_OWN_WORDS)
    return message if own else "is not valid"


def reference_key(reference: object) -> str | None:
    """What identifies a reference's target within an export: the id after type, URL or ``urn:uuid:``."""
    text = string(reference, "reference")
    if text is None or "?" in text:
        return None
    return url_key(text)


def url_key(url: str) -> str:
    """The id at the end of an address."""
    url = url.split("/_history/", 1)[0]
    return url.rsplit("/", 1)[-1].removeprefix("urn:uuid:").removeprefix("urn:oid:").removeprefix("#")


def encounter_key(note: Json) -> str | None:
    """The encounter of a Composition or DocumentReference."""
    if string(note, "resourceType") == "Composition":
        return reference_key(note.get("encounter"))
    return next((key for item in items(note, "context", "encounter") if (key := reference_key(item))), None)


def person(resource: Json) -> Person:
    """What a record needs of a Patient or Practitioner."""
    found: list[str] = []
    for name in [*items(resource, "name"), *(c["name"] for c in items(resource, "contact") if "name" in c)]:
        family, text = string(name, "family"), string(name, "text")
        given = _strings(dig(name, "given"))
        if family and given:
            found += [f"{' '.join(given)} {family}", f"{family} {' '.join(given)}", family + "".join(given)]
        found += [part for part in (text, family, *given) if part]
    found += [value for item in items(resource, "telecom") if (value := string(item, "value"))]
    found += [value for item in items(resource, "identifier") if (value := string(item, "value"))]
    for address in items(resource, "address"):
        found += [part for part in (string(address, "text"), *_strings(dig(address, "line"))) if part]
    sex = string(resource, "gender")
    return Person(
        _partial_date(string(resource, "birthDate")), _GENDERS.get(sex or ""), tuple(dict.fromkeys(found))
    )


def encounter(resource: Json) -> Encounter:
    """What a record needs of an Encounter."""
    ranked: list[tuple[int, str]] = []
    for place, item in enumerate(items(resource, "diagnosis")):
        key = reference_key(item.get("condition"))
        rank = item.get("rank")
        if key is not None:
            ranked.append((rank if isinstance(rank, int) else 1_000 + place, key))
    staff: list[str] = []
    for item in items(resource, "participant"):
        key, name = reference_key(item.get("individual")), string(item, "individual", "display")
        staff += [part for part in (key, name) if part]
    department = (
        concept_text(resource.get("serviceType"))
        or next(
            (name for item in items(resource, "location") if (name := string(item, "location", "display"))),
            None,
        )
        or string(resource, "serviceProvider", "display")
    )
    born = _partial_date(string(resource, "period", "start"))
    return Encounter(
        patient=reference_key(resource.get("subject")),
        date=make_date(*born) if born and all(born) else None,
        department=sys.intern(department) if department else None,
        conditions=tuple(key for _, key in sorted(ranked)),
        staff=tuple(staff),
    )


def condition(resource: Json) -> Condition | None:
    """What a record needs of a Condition; None for one that is refuted, an error or says nothing."""
    tables = fhir_tables()
    states = {string(coding, "code") for coding in items(resource, "verificationStatus", "coding")}
    if states & tables.not_a_diagnosis:
        return None
    codings = list(items(resource, "code", "coding"))
    code = next(
        (
            code
            for c in codings
            if string(c, "system") in tables.icd10_systems and (code := string(c, "code"))
        ),
        None,
    )
    name = concept_text(resource.get("code")) or code
    if name is None:
        return None
    return Condition(
        sys.intern(name), sys.intern(code) if code else None, reference_key(resource.get("encounter"))
    )


def age_at(born: tuple[int, int, int] | None, date: dt.date | None) -> int | None:
    """Whole years; by the year alone where day or month of birth is not known."""
    if born is None or date is None:
        return None
    year, month, day = born
    age = date.year - year - (1 if month and (date.month, date.day) < (month, day or 1) else 0)
    return age if 0 <= age <= 130 else None


def _strings(value: object) -> list[str]:
    return (
        [item.strip() for item in value if isinstance(item, str) and item.strip()]
        if isinstance(value, list)
        else []
    )


def _partial_date(text: str | None) -> tuple[int, int, int] | None:
    parts = (text or "")[:10].split("-")
    if not (1 <= len(parts) <= 3 and all(part.isascii() and part.isdigit() for part in parts)):
        return None
    year, month, day = (*(int(part) for part in parts), 0, 0)[:3]
    return year, month, day
