"""The examples run as they stand, and the docs' code is made of names that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_something(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_is_an_example_for_own_data_and_one_for_embedding() -> None:
    assert {example.stem for example in EXAMPLES} >= {"own_records", "in_another_app"}


def test_the_docs_python_blocks_are_valid_and_import_what_exists() -> None:
    import importlib

    blocks = 0
    for page in PAGES:
        for code in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
            compile(code, str(page), "exec", flags=__import__("ast").PyCF_ALLOW_TOP_LEVEL_AWAIT)
            blocks += 1
            for module, names in re.findall(
                r"^from (wardround[\w.]*) import ([\w, ]+)", code, flags=re.MULTILINE
            ):
                for name in names.split(","):
                    assert hasattr(importlib.import_module(module), name.strip()), (
                        f"{page.name}: {module}.{name}"
                    )
    assert blocks > 3


def test_every_verb_and_option_in_the_docs_exists() -> None:
    import typer
    from wardround.main import app

    root = typer.main.get_command(app)
    checked = 0
    for page in PAGES:
        text = page.read_text("utf-8").replace("\\\n", " ")
        for block in re.findall(r"```\n(.*?)```", text, flags=re.DOTALL):
            for call in re.findall(
                r"^(?:[^#\n]*\| )?(?:\.venv/bin/)?wardround ([a-z].*)$", block, flags=re.MULTILINE
            ):
                for part in call.split("; "):
                    _check(root, part.removeprefix("wardround "), page)
                    checked += 1
    assert checked > 10


def _check(root: object, call: str, page: Path) -> None:
    words = re.sub(r'"[^"]*"', "TEXT", call.split("#", maxsplit=1)[0]).split()
    command = root
    while words and (inner := getattr(command, "commands", {}).get(words[0])) is not None:
        command, words = inner, words[1:]
    assert not getattr(command, "commands", None), f"{page.name}: wardround {call}"
    known = {name for parameter in command.params for name in getattr(parameter, "opts", [])}
    unknown = {word for word in words if word.startswith("--")} - known
    assert not unknown, f"{page.name}: wardround {call}: {unknown}"
