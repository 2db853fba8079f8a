"""``wardround cases build|add|delete|info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .console import note, one_line, print_report
from .options import AsJson, Config, Format, Index, settings_with

if TYPE_CHECKING:
    from ..app import Wardround

_ALWAYS = ("records", "rejected", "index")  # the rest is shown where there is something to tell

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
    _print("Built", library.build_cases(files, format=record_format), as_json=as_json)


@app.command("add")
def add(
    *,
    files: Files,
    index: Index = None,
    deidentified: Deidentified = None,
    scrub: Scrub = None,
    record_format: Format = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Add records; one whose id is known replaces the old one."""
    library = _library(index, config, deidentified=deidentified, scrub=scrub)
    _print("Added", library.add_cases(files, format=record_format), as_json=as_json)


@app.command("delete")
def delete(
    *,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Record ids.")],
    index: Index = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Delete records by id, text and all."""
    library = _library(index, config)
    if all(library.cases.row_of(record_id) is None for record_id in ids):
        shown = ", ".join(map(one_line, ids[:10]))
        raise InputError(f"{library.cases.path}: has no record {shown}; nothing was deleted")
    print_report("Deleted", library.delete_cases(ids), as_json=as_json)


@app.command("info")
def info(*, index: Index = None, config: Config = None, as_json: AsJson = False) -> None:
    """Say what an index holds and was built with."""
    settings = settings_with(config, cases={"index": index})
    from ..indexes.cases import CaseIndex

    # Without its embedder: an index of a model that is not at hand can be described as well.
    print_report("Case index", CaseIndex.open(settings.cases.index).info(), as_json=as_json)


def _library(index: Path | None, config: Path | None, **privacy: bool | None) -> Wardround:
    settings = settings_with(config, cases={"index": index}, privacy=privacy)
    from ..app import Wardround

    return Wardround.from_settings(settings)


def _print(title: str, report: dict[str, Any], *, as_json: bool) -> None:
    if rejected := report["rejected"]:
        rows = "1 row was" if rejected == 1 else f"{rejected:,} rows were"
        note(f"{rows} skipped; see {report['rejects_file']}")
    if not as_json:
        learned = report.pop("learned", {})
        report = {key: value for key, value in report.items() if value or key in _ALWAYS}
        if (share := learned.get("top1_left_out")) is not None:
            report["right_when_left_out"] = share
    print_report(title, report, as_json=as_json)
