"""What comes in: outpatient records, checked once at the door."""

from __future__ import annotations

import datetime as dt
import math
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator


class View(StrEnum):
    """The four ways a record is read (MAP-RAG); ``GLOBAL`` is the whole without the diagnosis."""

    CHIEF_COMPLAINT = "chief_complaint"
    HISTORY = "history"
    EXAMINATION = "examination"
    GLOBAL = "global"


VIEWS: tuple[View, ...] = tuple(View)


def _finite_age(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Diagnosis(BaseModel):
    """A diagnosis as written, with the code the source gave it."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    name: str = Field(min_length=1)
    code: str | None = None

    @field_validator("name")
    @classmethod
    def _can_be_seen(cls, name: str) -> str:
        if not any(char.isprintable() and not char.isspace() for char in name):
            msg = "holds no character that can be seen"
            raise ValueError(msg)
        return name


class OutpatientRecord(BaseModel):
    """One visit. Either ``text`` or ``views`` is given; the first diagnosis is the main one.

    Attributes:
        id: unique in its source; up to 500 characters.
        department: clinic as the source names it.
        date: of the visit.
        age: years, 0..130.
        sex: ``"F"``, ``"M"`` or another code.
        language: ``"en"``, ``"zh"`` or ``"ja"``; detected from the text where None or not served.
        text: the whole record.
        views: the record already split.
        diagnoses: main one first; empty for a query.
        choices: candidate diagnoses of a multiple-choice query.
        patient_id: of the source; used for de-identification and for duplicates, never shown.
        identifiers: names, numbers and addresses that the source gives in fields; scrubbing removes them
            from the text. Never stored.
    """

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    id: Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int) else v)] = Field(
        min_length=1, max_length=500
    )
    department: str | None = None
    date: dt.date | None = None
    age: Annotated[float | None, BeforeValidator(_finite_age)] = Field(default=None, ge=0, le=130)
    sex: str | None = None
    language: str | None = None
    text: str | None = None
    views: dict[View, str] | None = None
    diagnoses: list[Diagnosis] = Field(default_factory=list)
    choices: list[str] | None = None
    patient_id: str | None = None
    identifiers: list[str] = Field(default_factory=list, exclude=True)

    @model_validator(mode="after")
    def _has_content(self) -> OutpatientRecord:
        if not (self.text and self.text.strip()) and not any(v.strip() for v in (self.views or {}).values()):
            msg = "a record needs text or views, and both are empty"
            raise ValueError(msg)
        return self
