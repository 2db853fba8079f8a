"""Conditions over a real index: each ranker shows what it is named for, and figures come out right."""

import pytest
from misbehaving import MisbehavingServer, says, status
from wardround.evaluation.llm_asking import LlmCase
from wardround.evaluation.llm_conditions import LLM_CONDITIONS
from wardround.evaluation.llm_rankers import LlmRankers
from wardround.evaluation.llm_report import as_table, run_llm_conditions
from wardround.indexes.cases import CaseIndex
from wardround.models import UseEmbedder
from wardround.models.llm import ServedLlm
from wardround.records.schema import OutpatientRecord
from wardround.retrievers.case_ranker import CaseRanker
from wardround.settings import ConfidenceSettings

TOPICS = {
    "Gout": "Sudden pain and redness of the big toe after beer and meat, uric acid {n} mg/dL.",
    "Migraine": "One-sided throbbing headache with nausea and light aversion for {n} hours.",
    "Asthma": "Wheeze and cough at night, peak flow {n} L/min, better after salbutamol.",
}


def record(name, number, **more):
    return OutpatientRecord(
        id=f"{name}-{number}", text=TOPICS[name].format(n=number + 5), diagnoses=[{"name": name}], **more
    )


@pytest.fixture(scope="module")
def rankers(tmp_path_factory):
    records = [record(name, number) for name in TOPICS for number in range(6)]
    index = CaseIndex.build(
        records, tmp_path_factory.mktemp("index") / "cases", embedder=UseEmbedder(threads=1)
    )
    return LlmRankers(
        index, CaseRanker(index), confidence=ConfidenceSettings(vote_above=0.99, deep_below=0.0)
    )


QUERIES = [record(name, 90, choices=list(TOPICS)) for name in TOPICS]


@pytest.mark.parametrize("ranker", ["dense", "flat_hybrid", "map_rag", "ours"])
def test_every_ranker_shows_similar_records_first(rankers, ranker):
    for query in QUERIES:
        shown = rankers.shown(ranker, query, LlmCase.of(query))
        assert shown.neighbours[0].diagnosis == query.diagnoses[0].name
        assert query.diagnoses[0].name not in shown.neighbours[0].text
        assert (shown.lane is None) == (ranker in {"dense", "flat_hybrid"})


def test_a_query_is_never_its_own_evidence(rankers):
    query = record("Gout", 3)
    for ranker in ("dense", "flat_hybrid", "map_rag", "ours"):
        shown = rankers.shown(ranker, query, LlmCase.of(query))
        assert query.id not in [one.record_id for one in shown.neighbours]


def test_all_conditions_run_and_are_counted(rankers, tmp_path):
    with MisbehavingServer(says({"first": "Gout", "second": "Asthma", "third": "Migraine"})) as server:
        llm = ServedLlm(server.url, deadline_s=30)
        run = run_llm_conditions(list(LLM_CONDITIONS), QUERIES, rankers, llm, log=tmp_path / "log.jsonl")
        asked = server.asked
        again = run_llm_conditions(list(LLM_CONDITIONS), QUERIES, rankers, llm, log=tmp_path / "log.jsonl")
        assert server.asked == asked
    direct = run.figures["direct"]
    assert direct["top1_all"] == pytest.approx(1 / 3)
    assert direct["top3_all"] == 1
    assert direct["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert direct["tokens"]["output"] == 20
    assert direct["degraded"] == 0
    assert set(run.mcnemar) == {f"ours_llm_vs_{name}" for name in LLM_CONDITIONS if name != "ours_llm"}
    assert again.figures["cot"]["top1_all"] == run.figures["cot"]["top1_all"]
    assert all(name in as_table(run) for name in LLM_CONDITIONS)


def test_figures_over_answerable_queries_leave_the_others_out():
    with MisbehavingServer(says({"first": "Gout", "second": "Asthma", "third": "Migraine"})) as server:
        llm = ServedLlm(server.url, deadline_s=30)
        run = run_llm_conditions(["direct"], QUERIES, None, llm, answerable=[True, False, False])
    assert run.figures["direct"]["top1"] == 1
    assert run.figures["direct"]["top1_all"] == pytest.approx(1 / 3)


def test_a_dead_model_leaves_the_votes_figures_marked_degraded(rankers):
    with MisbehavingServer(status(500)) as server:
        run = run_llm_conditions(["ours_llm"], QUERIES, rankers, ServedLlm(server.url, deadline_s=30))
    assert run.figures["ours_llm"]["degraded"] == 3
    assert run.figures["ours_llm"]["top1_all"] == 1


def test_a_condition_that_retrieves_needs_records():
    with pytest.raises(ValueError, match="records to retrieve from"):
        run_llm_conditions(["naive_rag"], QUERIES, None, ServedLlm("http://127.0.0.1:1/v1"))
