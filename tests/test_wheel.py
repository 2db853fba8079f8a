"""The wheel: everything that belongs in it is, and the demo runs from it where the source is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOT_SHIPPED = {
    "tests",
    "docs",
    "examples",
    "requirements",
    "scripts",
    "build",
    "dist",
    "out",
    "wardround-data",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, so that building leaves nothing in the real one."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        dirty = {
            name
            for name in names
            if name.startswith(".") or name == "__pycache__" or name.endswith(".egg-info")
        }
        return dirty | (NOT_SHIPPED & set(names) if Path(folder) == ROOT else set())

    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "tree", ignore=left_out))


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    script = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(source.parent)],
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return source.parent / done.stdout.splitlines()[-1]


def test_the_wheel_holds_all_code_and_data_and_nothing_else(source: Path, wheel: Path) -> None:
    in_tree = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    in_tree = {path for path in in_tree if not path.startswith("build/") and "wardround.egg-info" not in path}
    in_tree -= {"pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile"}
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert shipped == {f"wardround/{path}" for path in in_tree}


def test_the_demo_runs_from_the_wheel_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("WARDROUND_", "PYTHON"))
    }
    environment |= {"VENV": str(tmp_path / "venv"), "INSTALL": str(wheel), "PYTHON": sys.executable}
    environment |= {"UV_LINK_MODE": "hardlink", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    # uv's own cache stays shared, so that packages are linked and not fetched again.
    environment.setdefault(
        "UV_CACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "uv")
    )
    subprocess.run(["bash", str(ROOT / "requirements" / "setup.sh"), "base"], env=environment, check=True)
    done = subprocess.run(
        [str(tmp_path / "venv" / "bin" / "wardround"), "demo", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["task"] == "diagnose"
    assert answer["diagnoses"][0]["code"]
    assert answer["diagnoses"][0]["evidence"]
    assert answer["citations"]
    assert answer["degraded"] is None
