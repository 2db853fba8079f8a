"""``wardround icd10``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import emit_json, out, read_text
from .options import AsJson, Config, settings_with

_MAX_CHARS = 50_000_000


def icd10(
    *,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Diagnoses as written.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="One diagnosis a line.")] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME|CSV", help="icd10cm, icd10 (WHO) or a CSV code,title[,alias...]."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="K", min=1, max=50, help="How many candidates to list.")
    ] = 5,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Code diagnoses and say how each code was found.

    Stages: code, exact, alias, fuzzy, neighbour; unmapped where nothing fits well enough.
    --json prints one object a line.
    """
    settings = settings_with(config, icd10={"system": system})
    names = _names(texts, file, settings.records.encoding)
    from ..postprocessors.icd10 import Icd10Mapper

    matches = Icd10Mapper.from_defaults(settings.icd10).map_many(names, top_k=top)
    if as_json:
        for match in matches:
            emit_json(match)
        return
    from . import render

    render.codes(matches, out())


def _names(texts: list[str] | None, file: Path | None, encoding: str | None) -> list[str]:
    if texts and file is None and texts != ["-"]:
        return [read_text(text, None, what="the diagnosis", limit=_MAX_CHARS) for text in texts]
    given = texts[0] if texts else None
    content = read_text(given, file, what="the list of diagnoses", limit=_MAX_CHARS, encoding=encoding)
    return [line.strip() for line in content.splitlines() if line.strip()]
