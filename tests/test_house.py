"""The house itself: what is listed is there, what is there is listed, and nobody imports upward."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import wardround
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NOT_PACKAGES = {
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
LOCKS = ["build", "base", "dev"]


def _folders() -> list[Path]:
    """Every folder of the package, top first."""
    found = [ROOT]
    for folder in found:
        for child in sorted(folder.iterdir()):
            name = child.name
            skipped = name.startswith((".", "__")) or name.endswith(".egg-info") or name in NOT_PACKAGES
            if child.is_dir() and not skipped and name != "data":
                found.append(child)
    return found


def _dotted(folder: Path) -> str:
    return ".".join(["wardround", *folder.relative_to(ROOT).parts])


def test_the_wheel_lists_exactly_the_packages_of_the_tree() -> None:
    in_tree = {_dotted(folder) for folder in _folders() if (folder / "__init__.py").exists()}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == in_tree


def test_every_folder_with_code_is_a_package() -> None:
    bare = [
        folder for folder in _folders() if any(folder.glob("*.py")) and not (folder / "__init__.py").exists()
    ]
    assert bare == []


def test_whatever_is_not_code_lies_in_a_data_folder_and_so_ships() -> None:
    assert PROJECT["tool"]["setuptools"]["package-data"] == {"*": ["data/**", "py.typed"]}
    stray = [
        str(path.relative_to(ROOT))
        for folder in _folders()[1:]
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in {".py", ".pyc"} and not path.name.startswith(".")
    ]
    assert stray == []


def test_data_folders_hold_no_code() -> None:
    assert [path for folder in _folders() for path in folder.glob("data/**/*.py")] == []


def test_every_part_of_the_package_has_a_floor() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = contract["importlinter:contract:floors"]["layers"]
    floors = {name.strip("() ") for line in layers.split() for name in line.split(":") if name.strip("() ")}
    parts = {path.stem for path in ROOT.glob("*.py") if path.stem != "__init__"}
    parts |= {folder.name for folder in _folders()[1:] if folder.parent == ROOT}
    assert floors == parts - {"benchmarks"}
    assert floors == set(
        _lines(contract["importlinter:contract:nothing-imports-benchmarks"]["source_modules"])
    )


def _lines(modules: str) -> list[str]:
    return [module.removeprefix("wardround.") for module in modules.split()]


def test_nobody_imports_upward() -> None:
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_hashes_and_no_address(name: str) -> None:
    lock = (ROOT / "requirements" / f"{name}.lock").read_text("utf-8")
    assert "://" not in lock
    assert "--index" not in lock
    entries = [line for line in lock.splitlines() if line and not line.startswith(" ")]
    assert entries
    assert all(line.endswith("\\") for line in entries), "an entry without a hash"


@pytest.mark.parametrize(("name", "extras"), [("base", ()), ("dev", ("dev",))])
def test_a_lock_holds_a_version_that_each_requirement_allows(name: str, extras: tuple[str, ...]) -> None:
    locked: dict[str, list[Version]] = {}
    for line in (ROOT / "requirements" / f"{name}.lock").read_text("utf-8").splitlines():
        if line and not line.startswith(" "):
            entry = Requirement(line.rstrip(" \\"))
            [pin] = entry.specifier
            locked.setdefault(canonicalize_name(entry.name), []).append(Version(pin.version))
    wanted = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        wanted += PROJECT["project"]["optional-dependencies"][extra]
    for text in wanted:
        requirement = Requirement(text)
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{text} is not in {name}.lock; run 'make lock'"
        assert all(requirement.specifier.contains(version) for version in versions), text


def test_the_base_lock_is_part_of_the_dev_lock() -> None:
    entries = {
        name: {
            line
            for line in (ROOT / "requirements" / f"{name}.lock").read_text("utf-8").splitlines()
            if "==" in line
        }
        for name in LOCKS
    }
    assert entries["build"] <= entries["base"] <= entries["dev"]


def test_the_base_install_has_no_torch() -> None:
    lock = (ROOT / "requirements" / "base.lock").read_text("utf-8")
    assert not [
        line for line in lock.splitlines() if line.startswith(("torch", "nvidia", "tensorflow", "vllm"))
    ]


def test_bare_make_lists_every_verb() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    [phony] = [line for line in text.splitlines() if line.startswith(".PHONY:")]
    done = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} == set(phony.split()[1:])


def test_version_and_changelog_and_citation_agree() -> None:
    version = PROJECT["project"]["version"]
    assert wardround.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    for name in wardround.__all__:
        assert getattr(wardround, name) is not None
    assert set(wardround.__all__) <= set(dir(wardround))
    with pytest.raises(AttributeError, match="no attribute 'Wardroud'"):
        _ = wardround.Wardroud


def test_every_linked_page_of_the_docs_exists() -> None:
    import re

    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_every_page_of_the_docs_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    unreached = [
        page.relative_to(ROOT / "docs").as_posix()
        for page in (ROOT / "docs").rglob("*.md")
        if page.name != "index.md" and page.parent.name != "decisions" and page.name not in index
    ]
    assert unreached == []


def test_every_setting_is_documented_with_its_default() -> None:
    from wardround.settings import Settings

    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    top, *rest = page.split("\n**`[")
    sections = {"": top} | {part.split("]`**")[0]: part for part in rest}
    for name, info in Settings.model_fields.items():
        fields = getattr(info.annotation, "model_fields", None)
        for key, field in (fields or {name: info}).items():
            rows = [
                line
                for line in sections[name if fields else ""].splitlines()
                if line.startswith(f"| `{key}` |")
            ]
            assert len(rows) == 1, f"{name}.{key}"
            told = rows[0].split("|")[2].strip()
            if told.startswith("`"):
                default = field.get_default(call_default_factory=True)
                literal = tomllib.loads(f"x = {told.strip('`')}")["x"] if "/" not in told else told.strip("`")
                assert literal == (str(default) if isinstance(default, Path) else default), f"{name}.{key}"
    assert set(sections) - {""} <= set(Settings.model_fields)
