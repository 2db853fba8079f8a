"""``wardround evaluate diagnosis|icd10``: the figures of the docs, from anybody's gold."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .console import print_report
from .options import AsJson, Config, served, settings_with

app = typer.Typer(
    help="Measure on your own gold; formats are in docs/evaluation.md.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Label(StrEnum):
    """When two diagnoses count as equal."""

    NAME = "name"
    CATEGORY = "category"
    CODE = "code"
    AUTO = "auto"


Seed = Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write predictions, tables and plots here.")
]


@app.command("diagnosis")
def diagnosis(
    *,
    records: Annotated[Path, typer.Option("--records", metavar="FILE", help="Labelled records to search.")],
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Labelled cases to ask; or --cv.")
    ] = None,
    cv: Annotated[
        str | None, typer.Option("--cv", metavar="K|loo", help="Cross-validate on --records instead.")
    ] = None,
    label: Annotated[Label, typer.Option("--label", help="When two diagnoses are equal.")] = Label.AUTO,
    conditions: Annotated[
        str | None,
        typer.Option("--conditions", metavar="NAME,...", help="Only these; all without a model if left out."),
    ] = None,
    drop_twins: Annotated[bool, typer.Option("--drop-twins", help="Leave out near-identical texts.")] = False,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="URL", help="OpenAI-protocol server for the conditions that need one."),
    ] = None,
    seed: Seed = 0,
    out_dir: Out = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Top-1, top-3, calibration, baselines and ablations."""
    settings = settings_with(config, llm={"base_url": llm})
    if (queries is None) == (cv is None):
        raise typer.BadParameter("give either --queries FILE or --cv K (or --cv loo)")
    names = None if conditions is None else [name.strip() for name in conditions.split(",") if name.strip()]
    if names == []:
        raise typer.BadParameter("names no condition; leave it out for all", param_hint="--conditions")
    from ..evaluation.diagnosis import evaluate_diagnosis
    from ..records.progress import progress

    with progress("Asking") as tick:
        report = evaluate_diagnosis(
            records,
            queries=queries,
            cv=cv,
            label=label.value,
            conditions=names,
            drop_twins=drop_twins,
            seed=seed,
            out=out_dir,
            settings=settings,
            tick=tick,
        )
    print_report("Diagnosis", report, as_json=as_json)


@app.command("icd10")
def icd10(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help='Lines of {"text", "code"}.')],
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME|CSV", help="icd10cm, icd10 (WHO) or a CSV code,title[,alias...]."
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="en|zh|ja", help="Of the names.")
    ] = None,
    seed: Seed = 0,
    out_dir: Out = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """How often names are coded right, and how fast."""
    served(language)
    settings = settings_with(config, icd10={"system": system})
    from ..evaluation.icd10 import evaluate_icd10
    from ..evaluation.report import ready_folder

    if out_dir is not None:
        ready_folder(out_dir)
    report = evaluate_icd10(file, settings=settings.icd10, language=language, seed=seed, out=out_dir)
    print_report("ICD-10", report, as_json=as_json)
