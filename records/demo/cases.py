"""The shipped records, and cases to ask about them."""

from __future__ import annotations

import hashlib
import tomllib
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import InputError
from ..schema import OutpatientRecord
from .generator import generate_records
from .knowledge import Language
from .loading import DATA

RECORDS_FILE = DATA / "records.jsonl"
RECORDS_SHIPPED = 1400


class CaseKind(StrEnum):
    """What a demo case is there to show."""

    CLEAR = "clear"
    AMBIGUOUS = "ambiguous"
    UNLIKE = "unlike"


class DemoCase(BaseModel):
    """A case that is not among the records.

    Attributes:
        title: what a person would call it; it does not give the diagnosis away.
        query: the case as it is asked.
        department: clinic.
        age: years.
        sex: ``"F"`` or ``"M"``.
        language: of the query.
        kind: ``clear``: many records are like it; ``ambiguous``: two diagnoses compete; ``unlike``: no record
            is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1)
    query: str = Field(min_length=1)
    department: str
    age: float = Field(ge=0, le=130)
    sex: str
    language: Language
    kind: CaseKind


def demo_cases() -> list[DemoCase]:
    """The cases of ``wardround demo``: each kind in each language, English first.

    Raises:
        InputError: the shipped file is damaged.
    """
    path = DATA / "cases.toml"
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["case"]
        return [DemoCase.model_validate(row) for row in rows]
    except (OSError, KeyError, tomllib.TOMLDecodeError, ValidationError) as error:
        msg = f"{path}: {error}"
        raise InputError(msg) from error


def demo_version() -> str:
    """Names the content of the shipped records."""
    return hashlib.sha256(RECORDS_FILE.read_bytes()).hexdigest()[:12]


def demo_records() -> list[OutpatientRecord]:
    """The records that ship with wardround: synthetic, made by :func:`generate_records` with its own seed.

    Raises:
        InputError: the shipped file is damaged.
    """
    try:
        lines = RECORDS_FILE.read_text("utf-8").splitlines()
        return [OutpatientRecord.model_validate_json(line) for line in lines]
    except (OSError, ValidationError) as error:
        msg = f"{RECORDS_FILE}: {error}"
        raise InputError(msg) from error


def shipped_lines() -> list[str]:
    """The lines that :data:`RECORDS_FILE` must hold."""
    return [r.model_dump_json(exclude_none=True) for r in generate_records(RECORDS_SHIPPED)]
