"""A writer that is killed at any moment leaves the old content or the new, and a loadable index."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from plain_cases import case, parts
from wardround.errors import IndexStoreError
from wardround.indexes.cases import CaseIndex
from wardround.indexes.store import GenerationStore
from wardround.records.schema import View

SUPPORT = Path(__file__).parents[1] / "support"
KILLS = 30


def content(index):
    return {p.id: p.views[View.GLOBAL] for p in index.payloads(range(len(index)))}


def said(numbers, edition=0):
    return {f"r{n}": case(n, edition=edition).views[View.GLOBAL] for n in numbers}


@pytest.fixture
def writer(tmp_path):
    path = tmp_path / "cases"
    environment = os.environ | {"PYTHONPATH": str(SUPPORT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, SUPPORT / "killed_writer.py", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "ready\n"

    def run(operation, numbers, delay):
        process.stdin.write(f"{operation} {','.join(map(str, numbers))} {delay}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    yield path, run
    process.stdin.close()
    process.wait(30)


def test_thirty_kills_leave_an_index_with_the_old_or_the_new_content(writer):
    path, run = writer
    lucky = random.Random(7)
    duration = float(run("build", range(40), 60))
    now = said(range(40))
    killed = 0
    for _ in range(KILLS):
        operation = lucky.choice(["build", "add", "delete"])
        numbers = sorted(lucky.sample(range(60), 12))
        after = {
            "build": said(numbers),
            "add": now | said(numbers, edition=1),
            "delete": {i: text for i, text in now.items() if i not in said(numbers)},
        }[operation]
        killed += run(operation, numbers, lucky.uniform(0, 1.1) * duration) == "killed"
        index = CaseIndex.open(path, verify=True, **parts())
        found = content(index)
        assert found in (now, after), f"{operation} left neither the old nor the new records"
        now = found
    assert killed >= KILLS / 3, "the kills came too late to mean anything"


def test_a_writer_after_a_killed_one_removes_what_that_one_left(writer):
    path, run = writer
    duration = float(run("build", range(40), 60))
    for share in (0.3, 0.5, 0.7, 0.9):
        run("build", range(40), share * duration)
    CaseIndex.open(path, **parts()).delete(["r1"])
    assert sum(p.name.startswith("tmp-") for p in path.iterdir()) == 0
    assert sum(p.name.startswith("gen-") for p in path.iterdir()) == 1


def test_readers_see_whole_states_while_a_writer_works(tmp_path):
    path = tmp_path / "cases"
    CaseIndex.build(map(case, range(30)), path, **parts()).write_sidecar("learned", {"a.json": b"{}"})
    first = CaseIndex.open(path, **parts())
    query = first.encode_query(case(5).views, "en")
    before = first.search(query, candidates=50)
    states = [said(range(30 + i)) for i in range(9)]

    def write():
        index = CaseIndex.open(path, **parts())
        for i in range(8):
            index.add([case(30 + i)])

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while thread.is_alive() or seen < 3:
        index = CaseIndex.open(path, **parts())
        assert content(index) in states
        assert "r5" in [index.ids[int(row)] for row in index.search(index.encode_query(case(5).views)).rows]
        seen += 1
    thread.join()
    again = first.search(query, candidates=50)
    assert np.array_equal(again.rows, before.rows)
    assert np.array_equal(again.scores, before.scores)
    assert content(first) == states[0]
    assert (first.sidecar("learned") / "a.json").read_bytes() == b"{}"
    assert first.reload()
    assert content(first) == states[8]


def test_an_open_index_sees_what_another_instance_deleted_by_the_next_question(tmp_path, monkeypatch):
    path = tmp_path / "cases"
    CaseIndex.build(map(case, range(6)), path, **parts())
    reader, writer = (CaseIndex.open(path, **parts()) for _ in range(2))
    assert not reader.refresh_if_changed()
    writer.delete(["r2"])
    assert not writer.refresh_if_changed()
    assert reader.refresh_if_changed()
    assert content(reader) == said([0, 1, 3, 4, 5])
    monkeypatch.setattr(GenerationStore, "open", None)  # an unchanged index is not opened again
    assert not reader.refresh_if_changed()


def test_an_open_index_whose_folder_is_gone_says_so(tmp_path):
    path = tmp_path / "cases"
    index = CaseIndex.build(map(case, range(3)), path, **parts())
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(IndexStoreError, match="no index here"):
        index.refresh_if_changed()


def test_a_second_writer_is_told_to_wait(tmp_path):
    path = tmp_path / "cases"
    CaseIndex.build(map(case, range(5)), path, **parts())

    def slowly():
        with pytest.raises(IndexStoreError, match="another process is writing"):
            CaseIndex.open(path, **parts()).delete(["r1"])
        yield case(9)

    CaseIndex.open(path, **parts()).add(slowly())
    assert len(CaseIndex.open(path, **parts())) == 6


def test_an_interrupted_build_leaves_the_old_index_and_nothing_else(tmp_path):
    path = tmp_path / "cases"
    CaseIndex.build(map(case, range(5)), path, **parts())

    def broken():
        yield case(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CaseIndex.build(broken(), path, **parts())
    assert content(CaseIndex.open(path, **parts())) == said(range(5))
    assert not [p for p in path.iterdir() if p.name.startswith("tmp-")]
