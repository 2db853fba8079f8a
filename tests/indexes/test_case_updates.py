"""Whatever happened before, an index answers as one built from what it now holds."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_cases import PlainEmbedder, case, parts, score_table
from wardround.errors import InputError
from wardround.indexes.cases import AnnOptions, CaseIndex
from wardround.records.schema import VIEWS, View

QUERIES = [case(3).views, case(70, words=90).views, {View.CHIEF_COMPLAINT: "w1 w2 unheardof"}]

operations = st.lists(
    st.tuples(
        st.sampled_from(["replace", "delete"]),
        st.lists(st.integers(0, 25), min_size=1, max_size=8, unique=True),
        st.integers(0, 2),
    ),
    max_size=4,
)


def apply(index, held, operation, numbers, edition):
    if operation == "replace":
        index.replace([case(n, edition=edition) for n in numbers])
        return held | dict.fromkeys(numbers, edition)
    index.delete([f"r{n}" for n in numbers])
    return {n: e for n, e in held.items() if n not in numbers}


def assert_same_answers(index, fresh, tolerance):
    assert sorted(index.ids) == sorted(fresh.ids)
    assert index.version == fresh.version
    for views in QUERIES:
        found, expected = score_table(index, views), score_table(fresh, views)
        assert found.keys() == expected.keys()
        for record, scores in expected.items():
            assert np.allclose(found[record], scores, atol=tolerance), record


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operations, st.integers(0, 60))
def test_any_sequence_of_changes_equals_a_fresh_build_of_the_final_content(changes, size):
    with tempfile.TemporaryDirectory() as folder:
        index = CaseIndex.build(map(case, range(size)), Path(folder) / "a", **parts())
        held = dict.fromkeys(range(size), 0)
        for operation, numbers, edition in changes:
            held = apply(index, held, operation, numbers, edition)
        final = [case(n, edition=e) for n, e in held.items()]
        fresh = CaseIndex.build(reversed(final), Path(folder) / "b", **parts())
        assert_same_answers(index, fresh, 2e-3)
        assert_same_answers(CaseIndex.open(index.path, verify=True, **parts()), fresh, 2e-3)


@pytest.fixture
def graph(tmp_path):
    options = AnnOptions(flat_limit=50)
    return CaseIndex.build(map(case, range(400)), tmp_path / "graph", options=options, **parts())


def test_a_large_index_grows_and_shrinks_without_touching_the_rest(graph, tmp_path):
    assert graph.info()["views"]["global"]["search"] == "hnsw"
    graph.replace([case(n) for n in range(400, 420)] + [case(n, edition=1) for n in range(5)])
    graph.delete([f"r{n}" for n in range(100, 120)])
    held = {n: int(n < 5) for n in range(420) if not 100 <= n < 120}
    final = [case(n, edition=e) for n, e in held.items()]
    fresh = CaseIndex.build(final, tmp_path / "b", whitening=0.5, **parts())
    found, expected = (score_table(index, case(3).views, candidates=500) for index in (graph, fresh))
    assert found.keys() == expected.keys()
    sparse = [np.abs(found[i][:, 1] - expected[i][:, 1]).max() for i in expected]
    dense = [np.abs(found[i][:, 0] - expected[i][:, 0]).max() for i in expected]
    assert max(sparse) < 1e-5
    assert max(dense) < 0.1, "the whitening of 400 records stands until a fifth of them changed"


def test_a_large_index_finds_neither_deleted_nor_old_text(graph):
    gone = case(7)
    graph.delete(["r7"])
    graph.replace([case(8, edition=1)])
    for record in (gone, case(8)):
        found = score_table(graph, record.views, candidates=30)
        assert "r7" not in found
        assert len(found) >= 30
    index = CaseIndex.open(graph.path, verify=True, **parts())
    best = max(score_table(index, case(8, edition=1).views).items(), key=lambda item: item[1].sum())
    assert best[0] == "r8"


def test_a_large_index_that_changed_by_more_than_a_fifth_is_made_anew(graph, tmp_path):
    graph.delete([f"r{n}" for n in range(200)])
    options = AnnOptions(flat_limit=50)
    final = map(case, range(200, 400))
    fresh = CaseIndex.build(final, tmp_path / "b", options=options, **parts())
    assert_same_answers(graph, fresh, 2e-3)


def test_untouched_records_are_not_embedded_again(tmp_path):
    CaseIndex.build(map(case, range(30)), tmp_path / "a", **parts())
    embedder = PlainEmbedder()
    index = CaseIndex.open(tmp_path / "a", **parts(embedder=embedder))
    index.delete(["r3"])
    index.replace([case(4), case(5)])
    assert embedder.asked == []
    index.add([case(99)])
    assert sorted(embedder.asked) == sorted(case(99).views.values())


def test_identical_texts_are_embedded_once_whatever_their_view(tmp_path):
    records = [case(n) for n in range(20)]
    for record in records:
        record.views[View.CHIEF_COMPLAINT] = "fever for three days"
        record.views[View.HISTORY] = record.views[View.GLOBAL]
    embedder = PlainEmbedder()
    index = CaseIndex.build(records, tmp_path / "a", **parts(embedder=embedder))
    assert len(embedder.asked) == len(set(embedder.asked))
    found = index.search(index.encode_query({View.CHIEF_COMPLAINT: "fever for three days"}), candidates=20)
    assert len(found.rows) == 20
    assert found.scores[:, VIEWS.index(View.CHIEF_COMPLAINT)] == pytest.approx(1, abs=1e-3)


def test_adding_a_known_id_is_refused_and_adds_nothing(tmp_path):
    index = CaseIndex.build(map(case, range(5)), tmp_path / "a", **parts())
    with pytest.raises(InputError, match=r"'r3'.*replace"):
        index.add([case(9), case(3)])
    assert len(CaseIndex.open(index.path, **parts())) == 5


def test_reports_say_what_came_of_each_record(tmp_path):
    silent = case(50).model_copy(update={"views": dict.fromkeys(VIEWS, " ")})
    records = [case(1), case(2), silent, case(1, edition=1)]
    index = CaseIndex.build(records, tmp_path / "a", **parts())
    assert index.report.added == index.report.records == 2
    assert index.report.duplicates == ["r1"]
    assert index.report.without_text == ["r50"]
    row = index.row_of("r1")
    assert index.payload(row).views == case(1, edition=1).views
    report = index.replace([case(2, edition=1), case(3)])
    assert (report.added, report.replaced, report.records) == (1, 1, 3)
    report = index.delete(["r2", "nobody"])
    assert (report.deleted, report.unknown, report.records) == (1, ["nobody"], 2)


def test_an_index_may_become_empty_and_be_filled_again(tmp_path):
    index = CaseIndex.build(map(case, range(3)), tmp_path / "a", **parts())
    index.delete(["r0", "r1", "r2"])
    assert len(index) == 0
    assert len(index.search(index.encode_query(case(1).views)).rows) == 0
    index.add([case(1)])
    assert score_table(index, case(1).views)["r1"].max() == pytest.approx(1, abs=1e-3)


def test_sidecars_survive_changes_and_are_replaced_as_a_whole(tmp_path):
    index = CaseIndex.build(map(case, range(5)), tmp_path / "a", **parts())
    index.write_sidecar("scorer", {"a.npy": np.arange(3), "note.json": b"{}"})
    index.write_sidecar("other", {"x": b"1"})
    index.delete(["r1"])
    assert np.load(index.sidecar("scorer") / "a.npy").tolist() == [0, 1, 2]
    index.write_sidecar("scorer", {"b.npy": np.arange(2)})
    assert [p.name for p in index.sidecar("scorer").iterdir()] == ["b.npy"]
    assert (CaseIndex.open(index.path, verify=True, **parts()).sidecar("other") / "x").read_bytes() == b"1"


def test_the_version_depends_on_content_alone(tmp_path):
    index = CaseIndex.build(map(case, range(6)), tmp_path / "a", **parts())
    version = index.version
    index.write_sidecar("x", {"y": b""})
    assert index.version == version
    index.replace([case(2, edition=1)])
    assert index.version != version
    index.replace([case(2)])
    assert index.version == version


def test_a_hundred_changes_leave_few_files_and_no_deleted_text(tmp_path, monkeypatch):
    monkeypatch.setattr("wardround.indexes.cases.compact.MOST_SEGMENTS", 4)
    index = CaseIndex.build(map(case, range(3)), tmp_path / "a", **parts())
    for number in range(3, 15):
        index.add([case(number)])
        index.delete([f"r{number - 3}"])
    assert sorted(index.ids) == ["r12", "r13", "r14"]
    assert [index.payload(row).views for row in range(3)] == [case(int(i[1:])).views for i in index.ids]
    generation = next(p for p in index.path.iterdir() if p.name.startswith("gen-"))
    assert len(list(generation.glob("payload.*"))) <= 5
    assert len(list((generation / "texts").glob("vectors.*"))) == 1
    fresh = CaseIndex.build(map(case, (12, 13, 14)), tmp_path / "b", **parts())
    assert_same_answers(index, fresh, 2e-3)


def test_deleted_and_replaced_text_leaves_the_disk_at_once(tmp_path):
    secret = case(3).model_copy(update={"views": {View.GLOBAL: "w1 featherstonehaugh w2"}})
    index = CaseIndex.build([case(1), secret, case(2)], tmp_path / "a", **parts())
    assert any(b"featherstonehaugh" in p.read_bytes() for p in index.path.rglob("*") if p.is_file())
    index.replace([case(3)])
    assert not any(b"featherstonehaugh" in p.read_bytes() for p in index.path.rglob("*") if p.is_file())
    assert "featherstonehaugh" not in index.vocabulary
