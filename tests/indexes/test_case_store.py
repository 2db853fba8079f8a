"""What an index refuses to open, and how it says so."""

import contextlib
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_cases import PlainEmbedder, PlainTokenizer, case, parts
from wardround.errors import IndexStoreError, WardroundError
from wardround.indexes.cases import CaseIndex


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "cases"
    CaseIndex.build(map(case, range(30)), path, **parts()).write_sidecar("learned", {"a.json": b"{}"})
    return path


@pytest.fixture
def copied(built, tmp_path):
    return shutil.copytree(built, tmp_path / "copy")


def files_of(path):
    generation = path / json.loads((path / "manifest.json").read_text())["generation"]
    return sorted(p for p in generation.rglob("*") if p.is_file() and p.name != "lease")


def test_a_folder_without_an_index_says_how_to_build_one(tmp_path):
    with pytest.raises(IndexStoreError, match="cases build"):
        CaseIndex.open(tmp_path / "nothing", **parts())


def test_another_embedder_is_refused_by_name(built):
    other = PlainEmbedder(name="other")
    with pytest.raises(IndexStoreError, match=r"built with embedder plain/24, but other/24 is set"):
        CaseIndex.open(built, **parts(embedder=other))


def test_another_tokeniser_is_refused_by_name(built):
    other = PlainTokenizer()
    other.identity = "plain/2"
    with pytest.raises(IndexStoreError, match=r"built with tokenizer plain/1, but plain/2 is set"):
        CaseIndex.open(built, **parts(tokenizer=other))


def test_another_format_is_refused(copied, monkeypatch):
    monkeypatch.setattr("wardround.indexes.cases.index.FORMAT", 99)
    with pytest.raises(IndexStoreError, match="rebuild"):
        CaseIndex.open(copied, **parts())


def test_a_folder_that_holds_something_else_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.docx").write_text("years of work")
    with pytest.raises(IndexStoreError, match=r"thesis\.docx"):
        CaseIndex.build(map(case, range(3)), tmp_path, **parts())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.docx"]


def test_every_missing_truncated_or_altered_file_is_noticed_and_named(copied):
    for path in files_of(copied):
        content = path.read_bytes()
        damages = [content + b"x", content[: len(content) // 2], None]
        if content:
            middle = len(content) // 2
            damages.append(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
        for damage in damages:
            if damage == content:
                continue
            path.unlink()
            if damage is not None:
                path.write_bytes(damage)
            with pytest.raises(IndexStoreError, match=path.name):
                CaseIndex.open(copied, **parts())
            path.write_bytes(content)
    assert len(CaseIndex.open(copied, **parts())) == 30


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_noise_in_the_manifest_gives_a_traceback(built, tmp_path, data):
    manifest = (built / "manifest.json").read_bytes()
    at = data.draw(st.integers(0, len(manifest) - 1))
    noise = data.draw(st.binary(min_size=0, max_size=6))
    broken = manifest[:at] + noise + manifest[at + len(noise) :]
    folder = tmp_path / "noisy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for entry in built.iterdir():
        if entry.is_dir():
            (folder / entry.name).symlink_to(entry)
    (folder / "manifest.json").write_bytes(broken)
    with contextlib.suppress(WardroundError):
        assert len(CaseIndex.open(folder, **parts())) == 30


def test_a_damaged_manifest_never_costs_the_data_it_may_name(copied):
    kept = {path: path.read_bytes() for path in files_of(copied)}
    whole = (copied / "manifest.json").read_bytes()
    (copied / "manifest.json").write_text("{}")
    with pytest.raises(IndexStoreError):
        CaseIndex.open(copied, **parts()).delete(["r1"])
    with pytest.raises(ZeroDivisionError):
        CaseIndex.build((1 // 0 for _ in range(1)), copied, **parts())
    assert {path: path.read_bytes() for path in kept} == kept
    (copied / "manifest.json").write_bytes(whole)
    assert len(CaseIndex.open(copied, **parts())) == 30


def test_an_index_opened_without_an_embedder_shows_records_and_names_the_one_it_needs(built):
    index = CaseIndex.open(built, **parts(embedder=None))
    assert index.payload(0).id == "r0"
    with pytest.raises(IndexStoreError, match="embedder"):
        index.encode_query(case(1).views)


def test_information_counts_what_is_there(built):
    info = CaseIndex.open(built, **parts()).info()
    assert info["records"] == 30
    assert info["labels"] == 7
    assert info["views"]["global"] == info["views"]["global"] | {"records": 30, "search": "exact"}
    assert info["embedder"] == "plain/24"
    assert info["sidecars"] == ["learned"]
    json.dumps(info)
