"""``wardround cases build|add|delete|info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .console import one_line, print_report
from .options import AsJson, Config, Format, Index, settings_with

if TYPE_CHECKING:
    from ..app import Wardround
    from ..indexes.cases import CaseIndex

app = typer.Typer(
    help="Build, change and describe the index of past cases.", no_args_is_help=True, rich_markup_mode=None
)

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Records: JSONL, CSV, Excel, FHIR or MIMIC-IV.")
]
Deidentified = Annotated[
    bool | None, typer.Option("--deidentified", help="Declare that the records are de-identified already.")
]
Scrub = Annotated[
    bool | None,
    typer.Option("--scrub", help="Remove what patterns and the record's own fields find. No guarantee."),
]


@app.command("build")
def build(
    *,
    files: Files,
    index: Index = None,
    deidentified: Deidentified = None,
    scrub: Scrub = None,
    record_format: Format = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Build an index from records.

    An index that is there already is replaced when the new one is complete. An interrupted
    build leaves the old index; started again, it reuses the vectors it had computed.
    """
    library = _library(index, config, deidentified=deidentified, scrub=scrub)
    print_report("Built", library.build_cases(files, format=record_format), as_json=as_json)


@app.command("add")
def add(
    *,
    files: Files,
    index: Index = None,
    deidentified: Deidentified = None,
    scrub: Scrub = None,
    replace: Annotated[bool, typer.Option("--replace", help="Exchange records whose id is known.")] = False,
    record_format: Format = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Add records; an id that is known is an error, or with --replace gives way."""
    library = _library(index, config, deidentified=deidentified, scrub=scrub)
    print_report("Added", library.add_cases(files, format=record_format, replace=replace), as_json=as_json)


@app.command("delete")
def delete(
    *,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Record ids.")],
    index: Index = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Delete records by id, text and all."""
    cases = _open(index, config)
    report = cases.delete(ids)
    if not report.deleted:
        raise InputError(
            f"{cases.path}: holds none of the ids {', '.join(map(one_line, ids[:10]))}; nothing was deleted"
        )
    print_report("Deleted", report, as_json=as_json)


@app.command("info")
def info(*, index: Index = None, config: Config = None, as_json: AsJson = False) -> None:
    """Say what an index holds and was built with."""
    print_report("Case index", _open(index, config).info(), as_json=as_json)


def _open(index: Path | None, config: Path | None) -> CaseIndex:
    """The index without its embedder, which describing and deleting do not need."""
    settings = settings_with(config, cases={"index": index})
    from ..indexes.cases import CaseIndex

    return CaseIndex.open(settings.cases.index)


def _library(index: Path | None, config: Path | None, **privacy: bool | None) -> Wardround:
    settings = settings_with(config, cases={"index": index}, privacy=privacy)
    from ..app import Wardround

    return Wardround.from_settings(settings)
