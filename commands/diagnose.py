"""``wardround diagnose`` and ``wardround demo``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import emit_json, note, out, plain, read_text
from .options import AsJson, Config, Index, served, settings_with

if TYPE_CHECKING:
    from ..query import ClinicalAnswer

Evidence = Annotated[
    int, typer.Option("--evidence", metavar="N", min=0, help="How many similar records to show.")
]

_MAX_WORD_CHARS = 200


def diagnose(
    *,
    text: Annotated[
        str | None, typer.Argument(help="The case; with --file or a pipe it is left out.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the case from a text file.")
    ] = None,
    department: Annotated[str | None, typer.Option(metavar="NAME", help="Clinic or specialty.")] = None,
    age: Annotated[float | None, typer.Option(metavar="YEARS", min=0, max=130)] = None,
    sex: Annotated[str | None, typer.Option(metavar="F|M", help="Or another code.")] = None,
    language: Annotated[
        str | None, typer.Option(metavar="en|zh|ja", help="Of the case; recognised by itself if left out.")
    ] = None,
    evidence: Evidence = 5,
    index: Index = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Rank the diagnoses that similar past records support.

    The case comes as an argument, from --file, or through a pipe. Headings such as
    "Chief complaint:" help and aren't needed.
    """
    served(language)
    for option, word in (("--department", department), ("--sex", sex)):
        if word is not None and len(word) > _MAX_WORD_CHARS:
            raise typer.BadParameter(f"is longer than {_MAX_WORD_CHARS} characters", param_hint=option)
    settings = settings_with(config, cases={"index": index})
    case = read_text(
        text,
        file,
        what="the case",
        limit=settings.records.max_field_chars,
        encoding=settings.records.encoding,
    )
    from ..app import Wardround

    known = {"department": department, "age": age, "sex": sex, "language": language}
    given: dict[str, Any] = {key: value for key, value in known.items() if value is not None}
    answer = Wardround.from_settings(settings).query(case, **given)
    show(answer, evidence=evidence, as_json=as_json)


class SampleKind(StrEnum):
    """What a sample case is there to show."""

    CLEAR = "clear"
    AMBIGUOUS = "ambiguous"
    UNLIKE = "unlike"


def demo(
    *,
    language: Annotated[str, typer.Option(metavar="en|zh|ja", help="Which sample case.")] = "en",
    kind: Annotated[
        SampleKind,
        typer.Option(
            "--case", help="One that many records are like, one between diagnoses, or one like none."
        ),
    ] = SampleKind.CLEAR,
    evidence: Evidence = 3,
    as_json: AsJson = False,
) -> None:
    """Diagnose a sample case from shipped synthetic records.

    Needs no settings, no index of yours and no network.
    """
    served(language)
    from ..app import Wardround
    from ..records.demo import demo_cases

    case = next(one for one in demo_cases() if one.language == language and one.kind == kind.value)
    note("Using the shipped synthetic records; the first run builds their index ...")
    app = Wardround.demo()
    answer = app.query(case.query, language=language, department=case.department, age=case.age, sex=case.sex)
    if not as_json:
        out().print(plain(case.query).strip() + "\n", style="dim")
    show(answer, evidence=evidence, as_json=as_json)


def show(answer: ClinicalAnswer, *, evidence: int, as_json: bool) -> None:
    """Print an answer as JSON or for a person."""
    if as_json:
        emit_json(answer.to_json())
        return
    from . import render

    render.answer(answer, out(), evidence=evidence)
