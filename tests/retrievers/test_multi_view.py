"""What the retriever hands on: similar cases, best first, each with its reasons."""

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, QueryBundle
from plain_cases import PlainEmbedder, case, parts
from wardround.errors import IndexStoreError, InputError
from wardround.indexes.cases import CaseIndex
from wardround.knowledge.weights import ViewWeights
from wardround.query import ClinicalQuery
from wardround.records.schema import VIEWS, Diagnosis, OutpatientRecord, View
from wardround.retrievers.multi_view import MultiViewHybridRetriever
from wardround.retrievers.ordering import best, tie_key


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return CaseIndex.build(map(case, range(80)), tmp_path_factory.mktemp("retriever") / "cases", **parts())


def asked(number, **known):
    views = {view.value: text for view, text in case(number).views.items()}
    return ClinicalQuery.of(views["global"], views=views, language="en", **known)


def test_the_record_itself_comes_first_with_a_score_of_one(index):
    nodes = MultiViewHybridRetriever(index, top_k=5).retrieve(asked(12))
    assert nodes[0].node.node_id == "r12"
    assert nodes[0].score == pytest.approx(1, abs=2e-3)
    assert [n.score for n in nodes] == sorted((n.score for n in nodes), reverse=True)
    assert len(nodes) == 5


def test_a_node_says_who_the_record_is_about_and_what_brought_it_in(index):
    node = MultiViewHybridRetriever(index, top_k=3).retrieve(asked(12, department="eye"))[1]
    known = node.metadata
    payload = index.payload(index.row_of(node.node.node_id))
    assert known["record_id"] == payload.id
    assert known["diagnosis"] == payload.diagnoses[0].name
    assert known["code"] == payload.diagnoses[0].code
    assert known["label"] == payload.diagnoses[0].code
    assert known["diagnoses"] == [{"name": payload.diagnoses[0].name, "code": payload.diagnoses[0].code}]
    assert (known["department"], known["age"], known["sex"]) == (payload.department, payload.age, payload.sex)
    assert node.node.text == payload.views[View.GLOBAL]
    parts_of_score = [
        known["weights"][view][channel] * known["channel_scores"][view][channel]
        for view in VIEWS
        for channel in ("dense", "sparse")
    ]
    assert sum(parts_of_score) == pytest.approx(known["fused"], abs=1e-4)
    assert known["fused"] == pytest.approx(node.score)


def test_scores_and_ids_stay_out_of_what_models_read(index):
    node = MultiViewHybridRetriever(index, top_k=1).retrieve(asked(12))[0].node
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        shown = node.get_content(metadata_mode=mode)
        assert "channel_scores" not in shown
        assert "weights" not in shown
        assert "r12" not in shown
    assert "disease 5" in node.get_content(metadata_mode=MetadataMode.LLM)


def test_records_that_the_caller_rules_out_are_no_evidence(index):
    query = asked(12, record_ids=frozenset({"r12", "r13"}))
    ids = [n.node.node_id for n in MultiViewHybridRetriever(index, top_k=80, candidates=80).retrieve(query)]
    assert "r12" not in ids
    assert "r13" not in ids
    assert len(ids) == 78


def test_a_plain_string_and_a_foreign_bundle_are_answered_alike(index):
    retriever = MultiViewHybridRetriever(index, top_k=5)
    text = case(12).views[View.GLOBAL]
    bundle = QueryBundle(text)
    assert isinstance(retriever, BaseRetriever)
    assert [n.node.node_id for n in retriever.retrieve(text)] == [
        n.node.node_id for n in retriever.retrieve(bundle)
    ]
    assert bundle.embedding is None, "another retriever would take our vector for its own"


def test_weights_of_the_department_decide(index):
    only_history = np.zeros((4, 2), np.float32)
    only_history[VIEWS.index(View.HISTORY)] = 0.5
    only_global = np.zeros((4, 2), np.float32)
    only_global[VIEWS.index(View.GLOBAL)] = 0.5
    weights = ViewWeights(only_global, {"ophthalmology": only_history})
    retriever = MultiViewHybridRetriever(index, weights=weights, top_k=1)
    first = next(n for n in range(80) if View.HISTORY in case(n).views)
    views = {"history": case(first).views[View.HISTORY], "global": case(79).views[View.GLOBAL]}
    here = retriever.retrieve(ClinicalQuery("x", views=views, department="ophthalmology"))
    elsewhere = retriever.retrieve(ClinicalQuery("x", views=views))
    assert here[0].node.node_id == f"r{first}"
    assert elsewhere[0].node.node_id == "r79"


def test_a_diagnosis_in_the_question_is_no_part_of_the_search(index):
    retriever = MultiViewHybridRetriever(index, top_k=5)
    plain = "Chief complaint: w1 w2 w3\nHistory: w4 w5 w6 for three days\n"
    labelled = plain + "Diagnosis: w7 w8 w9"
    assert [(n.node.node_id, n.score) for n in retriever.retrieve(labelled)] == [
        (n.node.node_id, n.score) for n in retriever.retrieve(plain)
    ]


def test_a_view_that_does_not_exist_is_named(index):
    with pytest.raises(InputError, match=r"'prognosis'.*chief_complaint"):
        MultiViewHybridRetriever(index).retrieve(ClinicalQuery("x", views={"prognosis": "good"}))


def test_a_question_without_words_finds_nothing(index):
    assert MultiViewHybridRetriever(index).retrieve(ClinicalQuery("x", views={"global": " "})) == []


def test_an_embedder_of_another_name_is_refused(index):
    with pytest.raises(IndexStoreError, match="plain/24"):
        MultiViewHybridRetriever(index, embedder=PlainEmbedder(name="other"))


def test_an_embedder_may_be_given_to_an_index_without_one(index):
    bare = CaseIndex.open(index.path, **parts(embedder=None))
    nodes = MultiViewHybridRetriever(bare, embedder=PlainEmbedder(), top_k=3).retrieve(asked(12))
    assert nodes[0].node.node_id == "r12"


async def test_async_retrieval_does_not_block_the_loop(index):
    threads = set()

    class Watching(PlainEmbedder):
        def encode(self, texts, kind="passage"):
            threads.add(threading.get_ident())
            return super().encode(texts, kind)

    watched = CaseIndex.open(index.path, **parts(embedder=Watching()))
    retriever = MultiViewHybridRetriever(watched, top_k=3)
    several = await asyncio.gather(*(retriever.aretrieve(asked(n)) for n in (12, 13, 14)))
    assert [nodes[0].node.node_id for nodes in several] == ["r12", "r13", "r14"]
    assert threading.get_ident() not in threads


def test_equal_scores_are_ordered_by_seed_query_and_id_alone(tmp_path):
    twins = [
        OutpatientRecord(
            id=f"t{i}", language="en", views={View.GLOBAL: "same words"}, diagnoses=[Diagnosis(name="d")]
        )
        for i in range(9)
    ]
    there = CaseIndex.build(twins, tmp_path / "a", **parts())
    back = CaseIndex.build(reversed(twins), tmp_path / "b", **parts())

    def order(index, seed, text="same words"):
        query = ClinicalQuery(text, views={"global": "same words"})
        return [n.node.node_id for n in MultiViewHybridRetriever(index, seed=seed).retrieve(query)]

    assert order(there, 0) == order(back, 0) == order(there, 0)
    assert len({tuple(order(there, seed)) for seed in range(6)}) > 1
    assert order(there, 0) != order(there, 0, "other question") or order(there, 1) != order(there, 0)


@settings(max_examples=80)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(0, 45))
def test_the_best_are_the_first_of_a_full_sort(scores, count):
    def key(place):
        return tie_key(0, "q", f"r{place}")

    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], key(i)))[:count]
    assert best(np.array(scores, np.float32), count, key).tolist() == expected
