"""The engines against a real vLLM server with a tiny random Qwen: protocol and structure, not medicine."""

import asyncio
import json
import urllib.request

import pytest
from cases import CASE, FixedRetriever, eye_query
from llama_index.core.llms import ChatMessage
from wardround.agents import DeepEngine, StandardEngine
from wardround.evaluation.llm_conditions import LLM_CONDITIONS, LlmCase, LlmRunner, Neighbour
from wardround.models import Deadline, LlmError, LlmFault
from wardround.models.llm import ServedLlm

pytestmark = pytest.mark.server
SCHEMA = {
    "title": "triage",
    "type": "object",
    "properties": {
        "level": {"type": "integer", "minimum": 1, "maximum": 5},
        "why": {"type": "string", "maxLength": 12},
        "cites": {"type": "array", "items": {"enum": ["R1", "R2"]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["level", "why", "cites"],
    "additionalProperties": False,
}
ASK = [ChatMessage(role="user", content="How urgent is chest pain?")]


@pytest.fixture
def llm(vllm_server):
    return ServedLlm(vllm_server.url, max_tokens=1200, deadline_s=240, temperature=1.0)


def test_the_name_and_the_limit_come_from_the_server(llm, vllm_server):
    llm.probe()
    assert llm.model == vllm_server.model
    assert llm.context_window == 4096


def test_the_schema_is_enforced_on_random_weights_and_usage_is_streamed(llm):
    for _ in range(3):
        value, tokens = llm.complete_json(ASK, SCHEMA)
        assert list(value) == ["level", "why", "cites"]
        assert 1 <= value["level"] <= 5
        assert len(value["why"]) <= 12
        assert set(value["cites"]) <= {"R1", "R2"}
        assert tokens.prompt > 5
        assert tokens.output > 5


@pytest.mark.parametrize("engine", [StandardEngine, DeepEngine])
def test_an_engine_answers_with_retrieved_records_only(llm, vllm_server, engine):
    details = engine(llm=llm, records=2).query(eye_query()).details
    assert details.diagnoses
    assert {record for one in details.diagnoses for record in one.evidence} <= {"g1", "g2", "u1", "k1"}
    assert details.tokens.prompt > 0
    assert details.tokens.output > 0
    if details.degraded is None:
        assert details.model == vllm_server.model
    else:
        assert details.model == "extractive"
        assert details.degraded.startswith(("invalid json", "cut off"))


@pytest.mark.parametrize(
    ("language", "text"), [("zh", "右眼胀痛，眼压升高"), ("ja", "右眼の痛みと眼圧の上昇")]
)
def test_other_languages_go_through(llm, language, text):
    details = StandardEngine(llm=llm, records=1).query(eye_query(text=text, language=language)).details
    assert details.diagnoses


async def test_ten_questions_at_once_are_all_answered_and_the_loop_stays_free(llm):
    engine = StandardEngine(llm=llm, records=1, retriever=FixedRetriever())
    questions = [asyncio.create_task(engine.aquery(f"{CASE} {number}")) for number in range(10)]
    ticks = 0
    while not all(question.done() for question in questions):
        await asyncio.sleep(0.02)
        ticks += 1
    answers = [question.result().details for question in questions]
    assert all(details.diagnoses for details in answers)
    assert all(details.tokens.output > 0 for details in answers)
    assert ticks > 5


def test_a_deadline_in_mid_answer_gives_the_vote_and_frees_the_server(llm, vllm_server):
    long = {
        "title": "l",
        "type": "object",
        "properties": {"x": {"type": "string", "minLength": 3000}},
        "required": ["x"],
    }
    with pytest.raises(LlmError) as caught:
        llm.complete_json(ASK, long, deadline=Deadline.after(0.5), max_tokens=3500)
    assert caught.value.fault is LlmFault.TIMEOUT
    details = StandardEngine(llm=ServedLlm(vllm_server.url, deadline_s=0.01)).query(eye_query()).details
    assert details.degraded.startswith("timeout")
    assert details.diagnoses
    value, _ = llm.complete_json(ASK, SCHEMA)
    assert value["cites"]


def test_an_answer_longer_than_allowed_is_cut_off(llm):
    long = {
        "title": "l",
        "type": "object",
        "properties": {"x": {"type": "string", "minLength": 900}},
        "required": ["x"],
    }
    with pytest.raises(LlmError) as caught:
        llm.complete_json(ASK, long, max_tokens=20)
    assert caught.value.fault is LlmFault.CUT_OFF
    assert caught.value.tokens.output == 40


def test_a_prompt_beyond_the_context_is_an_http_error(llm):
    flood = [ChatMessage(role="user", content="chest pain " * 6000)]
    with pytest.raises(LlmError, match="400"):
        llm.complete_json(flood, SCHEMA)


def test_a_model_that_is_not_served_is_named(vllm_server):
    other = ServedLlm(vllm_server.url, model="qwen-72b")
    with pytest.raises(LlmError, match=vllm_server.model):
        other.probe()


@pytest.mark.parametrize("name", LLM_CONDITIONS)
def test_each_condition_of_the_experiment_runs(llm, name, tmp_path):
    near = (Neighbour("r1", "Chest pain for three days.", "Angina"),)
    cases = [
        LlmCase(f"q{i}", "Chest pain.", choices=("Angina", "Pleurisy"), neighbours=near, lane="standard")
        for i in range(2)
    ]
    outcomes = LlmRunner(llm, log=tmp_path / "log.jsonl").run(name, cases)
    for one in outcomes:
        assert one.degraded is None or one.degraded.startswith("cut off")
        assert set(one.ranking) <= {"Angina", "Pleurisy"}
        assert one.tokens.output > 0


def test_the_plain_llama_index_model_chats(llm, vllm_server):
    llm.probe()
    plain = llm.as_llama_index()
    assert plain.chat(ASK, max_tokens=4).message.content is not None
    assert plain.metadata.is_chat_model


def test_the_server_counts_what_it_did(vllm_server):
    metrics = (
        urllib.request.urlopen(vllm_server.url.removesuffix("/v1") + "/metrics", timeout=10).read().decode()
    )
    assert "vllm:generation_tokens_total" in metrics
    models = json.load(urllib.request.urlopen(vllm_server.url + "/models", timeout=10))
    assert [one["id"] for one in models["data"]] == [vllm_server.model]
