"""The vote answers from the records alone, and says so."""

import asyncio

import pytest
from cases import CASE, GLAUCOMA, FixedRetriever, eye_nodes, eye_query, node
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import QueryBundle
from wardround.agents import VoteEngine
from wardround.agents.evidence import evidence_of
from wardround.agents.tally import tally
from wardround.errors import InputError
from wardround.query import ClinicalAnswer, Task


def test_the_nearest_records_diagnosis_leads_with_its_code_and_records():
    details = VoteEngine().query(eye_query()).details
    leader = details.diagnoses[0]
    assert (leader.name, leader.code) == GLAUCOMA
    assert leader.evidence == ["g1", "g2"]
    assert details.task is Task.DIAGNOSE
    assert details.route.engine == "vote"
    assert not details.refused


def test_shares_sum_to_one_and_fall():
    shares = [one.share for one in VoteEngine().query(eye_query()).details.diagnoses]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert shares == sorted(shares, reverse=True)


def test_it_says_that_no_language_model_wrote_it():
    answer = VoteEngine().query(eye_query())
    assert answer.details.model == "extractive"
    assert answer.details.tokens.output == 0
    assert "no language model wrote it" in answer.response


def test_it_quotes_the_sentence_nearest_to_the_case():
    details = VoteEngine().query(eye_query()).details
    first = details.citations[0]
    assert (first.id, first.kind) == ("g1", "record")
    assert first.quote == "IOP 48 mmHg."
    assert first.quote in details.answer
    assert "2023-04-05" in first.where


@pytest.mark.parametrize(
    ("language", "words"), [("zh", "并非由语言模型撰写"), ("ja", "言語モデルが書いたものではありません")]
)
def test_the_answer_speaks_the_language_of_the_case(language, words):
    assert words in VoteEngine().query(eye_query(language=language)).response


@pytest.mark.parametrize(
    ("text", "words"), [("右眼胀痛半天，视物模糊", "相似"), ("右眼の痛みと充血があります", "記録")]
)
def test_the_language_is_detected_where_nobody_says_it(text, words):
    assert words in VoteEngine().query(eye_query(text=text, language=None)).response


def test_no_record_at_all_is_said_plainly_and_refused():
    details = VoteEngine().query(eye_query(nodes=[])).details
    assert details.refused
    assert details.diagnoses == []
    assert "No similar record" in details.answer


def test_a_plain_string_is_retrieved_for_and_reranked():
    retriever = FixedRetriever()
    engine = VoteEngine(
        retriever=retriever, node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.7)]
    )
    details = engine.query(CASE).details
    assert [one.name for one in details.diagnoses] == [GLAUCOMA[0]]
    assert retriever.asked[0].query_str == CASE
    assert details.timings_ms["retrieve"] >= 0


def test_evidence_that_the_router_found_is_not_retrieved_again():
    retriever = FixedRetriever([])
    assert VoteEngine(retriever=retriever).query(eye_query()).details.diagnoses
    assert retriever.asked == []


def test_without_evidence_and_retriever_the_error_says_what_to_give():
    with pytest.raises(InputError, match="retriever"):
        VoteEngine().query(QueryBundle(CASE))


async def test_the_async_answer_is_the_same():
    engine = VoteEngine(retriever=FixedRetriever())
    answers = await asyncio.gather(*(engine.aquery(CASE) for _ in range(5)))
    plain = engine.query(CASE)
    assert all(answer.response == plain.response for answer in answers)


def test_the_answer_replays_from_its_json():
    answer = VoteEngine(index_version=lambda: "v7").query(eye_query())
    assert ClinicalAnswer.from_json(answer.to_json()).details == answer.details
    assert answer.details.index_version == "v7"


def test_records_of_one_label_vote_together_under_the_best_ones_name():
    nodes = [
        node("a", "x", "Primary open angle glaucoma", 0.5, "H40.11"),
        node("b", "x", "Uveitis", 0.55, "H20.9"),
        node("c", "x", "POAG", 0.5, "H40.1"),
    ]
    leader = VoteEngine(vote_power=1).query(eye_query(nodes=nodes)).details.diagnoses[0]
    assert (leader.name, leader.evidence) == ("Primary open angle glaucoma", ["a", "c"])


def test_within_a_category_the_diagnosis_with_most_of_the_vote_gives_its_name_and_code():
    nodes = [
        node("a", "x", "Primary open-angle glaucoma", 0.60, "H40.11"),
        node("b", "x", "Acute angle-closure glaucoma", 0.58, "H40.21"),
        node("c", "x", "AACG", 0.57, "H40.21"),
    ]
    leader = VoteEngine(vote_power=4).query(eye_query(nodes=nodes)).details.diagnoses[0]
    assert (leader.name, leader.code) == ("Acute angle-closure glaucoma", "H40.21")
    assert leader.evidence == ["b", "c", "a"]


scored = st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 1)), min_size=1, max_size=12)


@given(scored, st.floats(0, 8), st.integers(0, 5))
def test_any_vote_is_a_distribution_and_does_not_depend_on_equal_order(rows, power, seed):
    nodes = [node(f"r{i}", "text", name, score) for i, (name, score) in enumerate(rows)]
    ranked = tally(evidence_of(nodes), power=power, seed=seed)
    again = tally(evidence_of(nodes), power=power, seed=seed)
    assert ranked == again
    assert sum(one.share for one in ranked) == pytest.approx(1)
    assert {one.name for one in ranked} == {name for name, _ in rows}


def test_ties_are_broken_by_the_seed_not_by_position():
    nodes = [node(f"r{i}", "t", f"name {i}", 0.5) for i in range(6)]
    leaders = {tally(evidence_of(nodes), seed=seed)[0].name for seed in range(12)}
    assert len(leaders) > 1
    assert eye_nodes()[0].node_id == "g1"


def test_shares_that_the_retriever_learned_stand_and_are_not_called_a_vote():
    nodes = eye_nodes()
    for one, share in zip(nodes, (0.2, 0.2, 0.5, 0.1), strict=True):
        one.node.metadata["label_share"] = share
    details = VoteEngine().query(eye_query(nodes=nodes)).details
    leader = details.diagnoses[0]
    assert (leader.name, leader.share) == ("Anterior uveitis", 0.5)
    assert "learned from all records" in details.answer
    assert "of the vote" not in details.answer


def test_a_code_that_the_mapper_found_is_used_where_the_record_has_none():
    nodes = [node("a", "Red eye.", "Uveitis", 0.5)]
    nodes[0].node.metadata["icd10"] = {
        "code": "H20.9",
        "title": "Unspecified iridocyclitis",
        "stage": "alias",
    }
    (only,) = VoteEngine().query(eye_query(nodes=nodes)).details.diagnoses
    assert (only.code, only.title) == ("H20.9", "Unspecified iridocyclitis")
