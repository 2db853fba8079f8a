"""Options that several verbs share, and the settings they amount to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..settings import Settings

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings file (TOML); WARDROUND_* variables win over it."),
]
Index = Annotated[Path | None, typer.Option("--index", metavar="DIR", help="Folder of the case index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Records = Annotated[
    Path | None,
    typer.Option(
        "--records", metavar="FILE", help="Labelled records to learn from; the index's own if left out."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="jsonl, csv, xlsx, fhir or mimic; recognised by itself if left out."
    ),
]


LANGUAGES = ("en", "zh", "ja")


def served(language: str | None) -> None:
    """Refuse a ``--language`` that is none of those served.

    Raises:
        BadParameter: it is another one.
    """
    if language is not None and language not in LANGUAGES:
        raise typer.BadParameter(
            f"{language!r} is not one of {', '.join(LANGUAGES)}", param_hint="--language"
        )


def settings_with(config: Path | None, **sections: dict[str, Any]) -> Settings:
    """The settings of file and environment with what the command line says on top.

    Args:
        config: the settings file.
        **sections: section -> {key: value}; a value of None changes nothing.

    Raises:
        SettingsError: as :meth:`Settings.load`.
    """
    from ..settings import Settings

    settings = Settings.load(config)
    for name, values in sections.items():
        given = {key: value for key, value in values.items() if value is not None}
        if given:
            settings = settings.changed(name, **given)
    return settings
