"""What an index refuses to open, and how it says so."""

import contextlib
import hashlib
import io
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_cases import PlainEmbedder, PlainTokenizer, case, parts
from wardround.errors import IndexStoreError, WardroundError
from wardround.indexes.cases import CaseIndex
from wardround.indexes.store import _checksum


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


def rewritten(path, change):
    """A manifest that someone changed and gave a checksum that fits."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    del manifest["checksum"]
    change(manifest)
    manifest["checksum"] = _checksum(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def change_array(path, name, change):
    """A column that someone changed, with size and checksum that fit."""
    generation = json.loads((path / "manifest.json").read_bytes())["generation"]
    array = np.load(path / generation / name)
    file = io.BytesIO()
    np.save(file, change(array))
    (path / generation / name).unlink()
    (path / generation / name).write_bytes(file.getvalue())
    entry = [len(file.getvalue()), hashlib.sha256(file.getvalue()).hexdigest()]
    rewritten(path, lambda manifest: manifest["files"].update({name: entry}))


def put(at, place, value):
    """A copy of an array with one value changed."""
    changed = at.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    "name", ["..", "/etc", "gen-../x", "gen-1/..", "gen-", "gen-xyz", "gen-1\0", "gen-1\n", 7, None]
)
def test_a_manifest_that_names_another_folder_as_its_generation_is_refused(copied, name):
    rewritten(copied, lambda manifest: manifest.update(generation=name))
    with pytest.raises(IndexStoreError, match="names no generation"):
        CaseIndex.open(copied, **parts())


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a\0b", "", "a\\..\\b", "c:x"])
def test_a_manifest_that_lists_files_outside_its_generation_is_refused(copied, name):
    rewritten(copied, lambda manifest: manifest["files"].update({name: [0, ""]}))
    with pytest.raises(IndexStoreError, match="no file of a generation"):
        CaseIndex.open(copied, **parts())


@pytest.mark.parametrize("junk", [None, 7, -1, "x", [], {}, [1], [-1, ""], [True, ""], {"a": {}}])
def test_whatever_stands_in_a_manifest_is_read_or_refused_and_never_a_traceback(built, tmp_path, junk):
    meta = json.loads((built / "manifest.json").read_bytes())["meta"]
    places = [(key,) for key in ("kind", "format", "generation", "meta", "files")]
    places += [("meta", key) for key in meta] + [("meta", "views", view) for view in meta["views"]]
    places += [("meta", "views", "global", key) for key in meta["views"]["global"]]
    places += [("files", "names.json")]
    for number, (*parents, key) in enumerate(places):
        for drop in (False, True):
            path = shutil.copytree(built, tmp_path / f"{number}{drop}", symlinks=True, copy_function=os.link)

            def change(manifest, parents=parents, key=key, drop=drop):
                for parent in parents:
                    manifest = manifest[parent]
                if drop:
                    del manifest[key]
                else:
                    manifest[key] = junk

            whole = (path / "manifest.json").read_bytes()
            (path / "manifest.json").unlink()
            (path / "manifest.json").write_bytes(whole)
            rewritten(path, change)
            with contextlib.suppress(IndexStoreError):
                CaseIndex.open(path, **parts()).info()


def test_a_manifest_nested_too_deeply_is_refused(copied):
    (copied / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(IndexStoreError, match="unreadable"):
        CaseIndex.open(copied, **parts())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("columns/labels.npy", lambda a: a[:-1]),
        ("columns/labels.npy", lambda a: put(a, 0, 99)),
        ("columns/labels.npy", lambda a: put(a, 0, -2)),
        ("columns/labels.npy", lambda a: a.astype(float)),
        ("columns/departments.npy", lambda a: put(a, 3, 2)),
        ("columns/sexes.npy", lambda a: np.append(a, a[:1])),
        ("columns/ages.npy", lambda a: a[1:]),
        ("columns/id_ends.npy", lambda a: a[1:]),
        ("columns/id_ends.npy", lambda a: put(a, -1, 10**6)),
        ("columns/places.npy", lambda a: put(a, (0, 0), 1)),
        ("columns/places.npy", lambda a: put(a, (0, 1), 2**62)),
        ("columns/places.npy", lambda a: put(a, (2, 2), -1)),
        ("columns/places.npy", lambda a: put(a, (2, 2), 2**62)),
        ("columns/digests.npy", lambda a: a[:, :8]),
        ("global/slots.npy", lambda a: a[1:]),
        ("global/slots.npy", lambda a: put(a, 0, -5)),
    ],
)
def test_columns_that_do_not_fit_the_records_are_refused(copied, name, change):
    change_array(copied, name, change)
    with pytest.raises(IndexStoreError, match=r"fit"):
        CaseIndex.open(copied, **parts())


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
