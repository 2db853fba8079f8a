"""Re-ranking nodes by clinical prior and department rules."""

import pytest
from learnable_cases import learnable_case, learnable_index
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, QueryBundle
from wardround.knowledge.learning import learn, store, unlearned
from wardround.postprocessors.clinical_prior import ClinicalPriorReranker
from wardround.query import ClinicalQuery
from wardround.retrievers.case_ranker import CaseRanker, Prior, RankingPlan
from wardround.retrievers.multi_view import MultiViewHybridRetriever


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    index = learnable_index(tmp_path_factory.mktemp("reranking") / "cases", 96)
    store(index, learn(index))
    return index


def asked(number=500, **known):
    record = learnable_case(number)
    return ClinicalQuery.of(record.text, department=record.department, **known)


def found(index, query, top_k=20):
    weights = CaseRanker(index).models.weights
    return MultiViewHybridRetriever(index, weights=weights, top_k=top_k).retrieve(query)


def test_it_is_a_llama_index_postprocessor_and_accepts_a_plain_query(index):
    reranker = ClinicalPriorReranker.from_defaults(index)
    assert isinstance(reranker, BaseNodePostprocessor)
    nodes = reranker.postprocess_nodes(found(index, asked()), QueryBundle(asked().query_str))
    assert len(nodes) == 20
    assert reranker.postprocess_nodes([], QueryBundle("x")) == []


def test_every_score_is_the_formula_over_its_parts(index):
    reranker = ClinicalPriorReranker.from_defaults(index, weight=0.3)
    for node in reranker.postprocess_nodes(found(index, asked()), asked()):
        parts = node.metadata["score_parts"]
        assert parts["prior_weight"] == 0.3
        assert node.score == pytest.approx(0.7 * parts["fused"] + 0.3 * parts["prior"], abs=1e-5)
        assert 0 <= node.metadata["prior"] <= 1


def test_nodes_come_back_best_first_with_shares_by_label(index):
    nodes = ClinicalPriorReranker.from_defaults(index).postprocess_nodes(found(index, asked()), asked())
    assert [n.score for n in nodes] == sorted((n.score for n in nodes), reverse=True)
    shares = {n.metadata["label"]: n.metadata["label_share"] for n in nodes}
    assert sum(shares.values()) <= 1 + 1e-6
    assert max(shares, key=shares.get) == learnable_case(500).diagnoses[0].name


def test_a_weight_of_zero_leaves_the_order_of_retrieval(index):
    before = [n.node.node_id for n in found(index, asked())]
    reranker = ClinicalPriorReranker.from_defaults(index, weight=0.0)
    assert [n.node.node_id for n in reranker.postprocess_nodes(found(index, asked()), asked())] == before


def test_the_papers_prior_prefers_what_the_department_sees_often(index):
    reranker = ClinicalPriorReranker.from_defaults(index, prior="frequency", weight=1.0)
    query = ClinicalQuery.of(learnable_case(500).text, department="ophthalmology")
    nodes = reranker.postprocess_nodes(found(index, query), query)
    assert nodes[0].metadata["diagnosis"] in {"glaucoma", "cataract"}
    assert nodes[0].metadata["prior"] > nodes[-1].metadata["prior"]


def test_a_rule_is_named_with_its_reason_and_moves_the_record(index):
    query = ClinicalQuery.of(asked().query_str + " IOP 45 mmHg.", department="ophthalmology")
    nodes = ClinicalPriorReranker.from_defaults(index, prior="none").postprocess_nodes(
        found(index, query), query
    )
    ruled = next(n for n in nodes if n.metadata["diagnosis"] == "glaucoma")
    assert ruled.metadata["rules"][0]["rule"] == "intraocular-pressure"
    assert ruled.score > ruled.metadata["fused"]


def test_what_only_explains_is_not_shown_to_a_language_model(index):
    node = ClinicalPriorReranker.from_defaults(index).postprocess_nodes(found(index, asked()), asked())[0]
    shown = node.node.get_content(metadata_mode=MetadataMode.LLM)
    for key in ("prior", "rules", "score_parts", "label_share"):
        assert f"{key}:" not in shown


def test_it_scores_a_record_as_the_ranker_does(index):
    ranker = CaseRanker(index)
    ranking = ranker.rank(asked())
    by_ranker = {n.node.node_id: n.score for n in ranker.nodes(ranking)}
    nodes = ClinicalPriorReranker(ranker=ranker).postprocess_nodes(found(index, asked()), asked())
    for node in nodes:
        assert node.score == pytest.approx(by_ranker[node.node.node_id], abs=1e-5)


def test_every_leading_diagnosis_of_the_ranker_has_its_records(index):
    ranking = CaseRanker(index).rank(asked())
    for diagnosis in ranking.diagnoses[:5]:
        assert diagnosis.evidence
    assert [d.share for d in ranking.diagnoses] == sorted((d.share for d in ranking.diagnoses), reverse=True)


def test_the_ranker_never_uses_a_record_that_is_left_out(index):
    ranking = CaseRanker(index).rank(asked(3, record_ids=frozenset({"c3"})))
    assert "c3" not in {index.ids[row] for row in ranking.rows.tolist()}


def test_without_anything_learned_the_ranker_falls_back_on_frequencies(index):
    models = unlearned(index)
    ranking = CaseRanker(index, models=models, plan=RankingPlan()).rank(asked())
    assert ranking.belief.scores is None
    assert ranking.diagnoses
    bare = CaseRanker(index, models=models, plan=RankingPlan(prior=Prior.NONE, learned=False)).rank(asked())
    assert bare.scores == pytest.approx(bare.fused)
