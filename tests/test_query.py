"""The question that travels and the answer it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import ValidationError
from wardround.query import AnswerDetails, ClinicalAnswer, ClinicalQuery, Confidence, RouteTaken, Task

share = st.floats(0, 1)
words = st.text(max_size=30)
maybe = st.none() | words

diagnoses = st.fixed_dictionaries(
    {
        "name": words,
        "code": maybe,
        "title": maybe,
        "share": st.none() | share,
        "evidence": st.lists(words, max_size=3),
    }
)
citations = st.fixed_dictionaries(
    {
        "id": words,
        "kind": st.sampled_from(["record", "note", "page"]),
        "title": maybe,
        "where": maybe,
        "quote": maybe,
    }
)
answers = st.fixed_dictionaries(
    {
        "answer": words,
        "task": st.sampled_from([task.value for task in Task]),
        "route": st.fixed_dictionaries({"engine": words, "why": words}),
        "confidence": st.none()
        | st.fixed_dictionaries(dict.fromkeys(("value", "raw", "top", "consensus", "margin"), share)),
        "diagnoses": st.none() | st.lists(diagnoses, max_size=3),
        "verdict": maybe,
        "facts": st.none() | st.lists(st.dictionaries(words, words, max_size=2), max_size=2),
        "citations": st.lists(citations, max_size=3),
        "refused": st.booleans(),
        "degraded": maybe,
        "model": words,
        "tokens": st.fixed_dictionaries({"prompt": st.integers(0, 10_000), "output": st.integers(0, 10_000)}),
        "timings_ms": st.dictionaries(words, st.floats(0, 1e6), max_size=3),
        "index_version": maybe,
    }
)


@given(answers)
def test_an_answer_is_replayed_from_its_json(data: dict[str, Any]) -> None:
    through_text = json.loads(json.dumps(ClinicalAnswer.from_json(data).to_json()))
    replayed = ClinicalAnswer.from_json(through_text)
    assert replayed.to_json() == data
    assert replayed.response == data["answer"]


def _answer(**changes: Any) -> ClinicalAnswer:
    details = AnswerDetails(
        answer="Acute glaucoma",
        task=Task.DIAGNOSE,
        route=RouteTaken(engine="vote", why="sure"),
        model="extractive",
    )
    node = NodeWithScore(node=TextNode(text="case", id_="r1"), score=0.5)
    answer = ClinicalAnswer.from_details(details, [node])
    return answer.with_details(**changes) if changes else answer


def test_an_answer_is_a_llama_index_response_that_reads_as_its_text() -> None:
    answer = _answer()
    assert isinstance(answer, Response)
    assert str(answer) == "Acute glaucoma"
    assert answer.get_formatted_sources()


def test_changed_details_change_the_response_and_keep_the_sources() -> None:
    answer = _answer(answer="Uveitis", degraded="no model")
    assert str(answer) == "Uveitis"
    assert answer.details.degraded == "no model"
    assert [node.node_id for node in answer.source_nodes] == ["r1"]


def test_what_llama_index_writes_into_metadata_survives_a_change_of_details() -> None:
    answer = _answer()
    assert answer.metadata is not None
    answer.metadata["selector_result"] = "chosen"
    changed = answer.with_details(refused=True)
    assert changed.metadata is not None
    assert changed.metadata["selector_result"] == "chosen"


def test_an_answer_with_a_missing_or_unknown_key_is_refused() -> None:
    good = _answer().to_json()
    with pytest.raises(ValidationError, match="route"):
        ClinicalAnswer.from_json({key: value for key, value in good.items() if key != "route"})
    with pytest.raises(ValidationError, match="surprise"):
        ClinicalAnswer.from_json(good | {"surprise": 1})
    with pytest.raises(ValidationError):
        _answer(task="cooking")


def test_a_query_takes_its_text_first_as_a_query_bundle_does() -> None:
    query = ClinicalQuery("red eye", department="ophthalmology")
    assert isinstance(query, QueryBundle)
    assert (query.query_str, query.department) == ("red eye", "ophthalmology")


def test_a_wrapped_query_keeps_what_its_caller_knew_and_forgets_what_a_router_wrote() -> None:
    used = ClinicalQuery("red eye", department="ophthalmology", age=60, record_ids=frozenset({"r1"}))
    used.task = Task.DIAGNOSE
    used.confidence = Confidence(0.9, 0.9, 0.9, 1.0, 0.5)
    used.evidence[Task.DIAGNOSE] = [NodeWithScore(node=TextNode(text="planted"), score=1.0)]
    used.timings_ms["search"] = 3.0
    fresh = ClinicalQuery.of(used, age=61)
    assert (fresh.department, fresh.age, fresh.record_ids) == ("ophthalmology", 61, {"r1"})
    assert (fresh.task, fresh.confidence, fresh.evidence, fresh.timings_ms) == (None, None, {}, {})
    assert used.evidence, "the caller's own object is left alone"


def test_a_string_and_a_foreign_bundle_are_wrapped_alike() -> None:
    assert ClinicalQuery.of("red eye") == ClinicalQuery.of(QueryBundle("red eye"))


def test_ids_to_leave_out_may_be_any_collection() -> None:
    assert ClinicalQuery.of("x", record_ids=["a", "b"]).record_ids == {"a", "b"}


@pytest.mark.parametrize("field", ["task", "evidence", "confidence", "departement"])
def test_a_caller_cannot_set_a_routers_field_or_one_that_does_not_exist(field: str) -> None:
    with pytest.raises(TypeError, match=f"unknown query field.*{field}.*department"):
        ClinicalQuery.of("x", **{field: None})
