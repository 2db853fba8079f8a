"""One question, one state of the index: whatever changes meanwhile, votes and records belong together."""

import threading

import pytest
from learnable_cases import learnable_case, learnable_index
from llama_index.core.schema import MetadataMode
from plain_cases import PlainEmbedder
from wardround.indexes.cases import CaseIndex
from wardround.knowledge.learning import learn, store
from wardround.postprocessors.clinical_prior import ClinicalPriorReranker
from wardround.query import ClinicalQuery
from wardround.records.schema import OutpatientRecord
from wardround.retrievers.case_ranker import CaseRanker, RankingPlan
from wardround.retrievers.multi_view import MultiViewHybridRetriever

ASKED = ClinicalQuery.of(learnable_case(500).text, department="ophthalmology")


def disease_of(record_id):
    return learnable_case(int(record_id[1:])).diagnoses[0].name


def learned(index):
    store(index, learn(index))
    return index


def assert_consistent(ranker, ranking):
    nodes = ranker.nodes(ranking)
    assert nodes
    for node in nodes:
        assert node.metadata["label"] == node.metadata["diagnosis"] == disease_of(node.node.node_id)
    for one in ranking.diagnoses:
        assert {disease_of(record) for record in one.evidence} <= {one.name}


def test_questions_asked_while_records_come_and_go_count_no_vote_for_another_diagnosis(tmp_path):
    index = learned(learnable_index(tmp_path / "cases", 48))
    ranker = CaseRanker(index)
    reranker, retriever = ClinicalPriorReranker(ranker=ranker), MultiViewHybridRetriever(index)
    wrong, asked, done = [], [], threading.Event()

    def ask():
        while not done.is_set():
            try:
                assert_consistent(ranker, ranker.rank(ASKED))
                for node in reranker.postprocess_nodes(retriever.retrieve(ASKED), ASKED):
                    assert node.metadata["diagnosis"] == disease_of(node.node.node_id)
                asked.append(1)
            except Exception as error:  # noqa: BLE001  # whatever it is, it must not happen
                wrong.append(repr(error))
                return

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(3):
        index.delete([f"c{i}", f"c{i + 10}"])
        index.add([learnable_case(100 + 3 * i), learnable_case(101 + 3 * i)])  # as many as were deleted
    learned(index)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert asked


def test_a_ranker_forgets_deleted_records_at_once_and_what_was_learned_from_them(tmp_path):
    index = learned(learnable_index(tmp_path / "cases", 48))
    ranker = CaseRanker(index)
    assert ranker.models.scorer is not None
    gone = {node.node.node_id for node in ranker.nodes(ranker.rank(ASKED))}
    index.delete(gone)
    index.add([learnable_case(200 + i) for i in range(len(gone))])
    ranking = ranker.rank(ASKED)
    assert_consistent(ranker, ranking)
    assert not gone & {node.node.node_id for node in ranker.nodes(ranking)}
    assert ranking.models.scorer is None
    learned(index)
    assert ranker.rank(ASKED).models.scorer is not None


def test_a_ranker_keeps_no_deleted_text_on_disk(tmp_path):
    index = learned(learnable_index(tmp_path / "cases", 48))
    ranker = CaseRanker(index)
    ranker.rank(ASKED)
    text = index.payload(index.row_of("c3")).text.encode()
    index.delete(["c3"])
    held = [p for p in index.path.rglob("*") if p.is_file() and text in p.read_bytes()]
    assert ranker.index is index
    assert held == []


def test_a_ranking_shows_its_own_records_after_the_index_changed(tmp_path):
    index = learned(learnable_index(tmp_path / "cases", 48))
    ranker = CaseRanker(index)
    ranking = ranker.rank(ASKED)
    index.delete([f"c{i}" for i in range(40)])
    assert_consistent(ranker, ranking)


@pytest.mark.parametrize("emptied", [False, True])
def test_an_index_without_a_labelled_record_gives_evidence_without_diagnoses(tmp_path, emptied):
    records = [OutpatientRecord(id=f"u{i}", text=f"Itchy scaly plaque {i}.") for i in range(3)]
    index = CaseIndex.build(records, tmp_path / "cases", embedder=PlainEmbedder())
    if emptied:
        index.delete([record.id for record in records])
    for index_learned in (False, True):
        for plan in (RankingPlan(), RankingPlan(prior="frequency", learned=False), RankingPlan(prior="none")):
            ranker = CaseRanker(index, plan=plan)
            ranking = ranker.rank("itchy plaque")
            assert ranking.diagnoses == []
            nodes = ranker.nodes(ranking)
            assert len(nodes) == (0 if emptied else 3)
            again = ClinicalPriorReranker(ranker=ranker).postprocess_nodes(
                nodes, ClinicalQuery.of("itchy plaque")
            )
            assert [n.get_content(MetadataMode.NONE) for n in again].count("") == 0
        if not index_learned:
            learned(index)
