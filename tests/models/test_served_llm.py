"""A served language model answers in checked JSON before its deadline, or says why it did not."""

import asyncio
import socket
import threading
import time

import pytest
from llama_index.core.llms import ChatMessage
from misbehaving import (
    MisbehavingServer,
    breaks_in_stream,
    cuts_off,
    drips,
    ends_early,
    hangs,
    not_the_protocol,
    redirects,
    says,
    status,
    wait_until,
)
from wardround.errors import ModelError
from wardround.models import llm_from_settings
from wardround.models.deadline import Deadline
from wardround.models.failure import LlmError, LlmFault
from wardround.models.llm import ServedLlm
from wardround.settings import LlmSettings

ASK = [ChatMessage(role="user", content="What is it?")]
SCHEMA = {"title": "d", "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def only_x(value):
    if not isinstance(value, dict) or not isinstance(value.get("x"), int):
        raise ValueError("x is missing")  # noqa: TRY004
    return value["x"]


def ask(server, **kwargs):
    return ServedLlm(server.url, deadline_s=20).complete_json(ASK, SCHEMA, check=only_x, **kwargs)


def test_a_good_answer_is_parsed_and_its_tokens_are_counted():
    with MisbehavingServer(says({"x": 3})) as server:
        value, tokens = ask(server)
    assert value == 3
    assert (tokens.prompt, tokens.output) == (100, 20)


def test_the_request_asks_for_enforced_schema_and_streamed_usage():
    with MisbehavingServer(says({"x": 3})) as server:
        ask(server, max_tokens=77)
        (body,) = server.script.seen
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["stream"]
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 77
    assert body["model"] == "tiny-qwen"


def test_a_raw_control_character_inside_a_string_is_accepted():
    with MisbehavingServer(says('{"x": 3, "why": "a\tb"}')) as server:
        assert ask(server).value == 3


def test_json_in_a_code_fence_is_accepted():
    with MisbehavingServer(says('```json\n{"x": 3}\n```')) as server:
        assert ask(server).value == 3


@pytest.mark.parametrize("bad", ["{", "", "[]", '{"y": 1}', '{"x": "three"}', "NaN", "[" * 100_000])
def test_an_invalid_answer_is_repaired_once_with_the_complaint_shown(bad):
    with MisbehavingServer(says(bad[:2000]), says({"x": 4})) as server:
        value, tokens = ask(server)
        assert server.asked == 2
        repair = server.script.seen[1]["messages"]
    assert value == 4
    assert tokens.output == 40
    assert [message["role"] for message in repair] == ["user", "assistant", "user"]
    assert "cannot be used" in repair[-1]["content"]


def test_an_answer_that_stays_invalid_is_given_up_after_one_repair():
    with MisbehavingServer(says("no json")) as server:
        with pytest.raises(LlmError, match="invalid json") as caught:
            ask(server)
        assert server.asked == 2
    assert caught.value.fault is LlmFault.INVALID
    assert caught.value.tokens.output == 40


def test_an_answer_that_hits_its_token_limit_is_cut_off():
    with MisbehavingServer(says('{"x": 3}', finish="length")) as server, pytest.raises(LlmError) as caught:
        ask(server)
    assert caught.value.fault is LlmFault.CUT_OFF


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (status(500), LlmFault.HTTP),
        (status(503), LlmFault.HTTP),
        (status(400), LlmFault.HTTP),
        (status(401), LlmFault.HTTP),
        (status(429), LlmFault.HTTP),
        (cuts_off('{"x": '), LlmFault.CUT_OFF),
        (ends_early('{"x": 3}'), LlmFault.CUT_OFF),
        (breaks_in_stream, LlmFault.HTTP),
        (not_the_protocol, LlmFault.HTTP),
    ],
)
def test_each_way_to_fail_has_its_name_and_is_not_retried(reply, fault):
    with MisbehavingServer(reply) as server:
        with pytest.raises(LlmError) as caught:
            ask(server)
        assert server.asked == 1
    assert caught.value.fault is fault
    assert isinstance(caught.value, ModelError)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_an_error_and_nothing_reaches_the_other_address(code):
    with MisbehavingServer(says({"x": 3})) as elsewhere:
        with MisbehavingServer(redirects(elsewhere.url, code)) as server, pytest.raises(LlmError) as caught:
            ask(server)
        assert elsewhere.script.asked_for == []
    assert caught.value.fault is LlmFault.HTTP
    assert str(code) in caught.value.reason


def test_a_redirect_of_the_list_of_models_is_not_followed_either():
    with MisbehavingServer(says({"x": 3})) as elsewhere:
        with (
            MisbehavingServer(says({"x": 4}), models_at=elsewhere.url) as server,
            pytest.raises(LlmError, match="307"),
        ):
            ask(server)
        assert elsewhere.script.asked_for == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_sees_nothing(monkeypatch, variable):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with MisbehavingServer(says({"x": 3})) as proxy, MisbehavingServer(says({"x": 4})) as server:
        monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
        llm = ServedLlm(server.url, api_key="sesame", deadline_s=20)
        assert llm.complete_json(ASK, SCHEMA, check=only_x).value == 4
        assert proxy.script.asked_for == []


def test_the_status_is_in_the_reason():
    with MisbehavingServer(status(500)) as server, pytest.raises(LlmError, match=r"http error: .*500"):
        ask(server)


@pytest.mark.parametrize("reply", [hangs, drips])
def test_a_server_that_does_not_finish_is_left_at_the_deadline(reply):
    with MisbehavingServer(reply) as server, pytest.raises(LlmError) as caught:
        ask(server, deadline=Deadline.after(0.4))
    assert caught.value.fault is LlmFault.TIMEOUT


def test_the_deadline_holds_for_all_tries_together():
    def slow_and_bad(server, body):
        time.sleep(0.4)
        says("no json")(server, body)

    with MisbehavingServer(slow_and_bad) as server:
        llm = ServedLlm(server.url)
        llm.probe()
        with pytest.raises(LlmError) as caught:
            llm.complete_json(ASK, SCHEMA, check=only_x, deadline=Deadline.after(0.6))
    assert caught.value.fault is LlmFault.TIMEOUT
    assert caught.value.tokens.output == 20


def test_nobody_at_the_address_is_refused():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(LlmError) as caught:
        ServedLlm(f"http://127.0.0.1:{port}/v1").complete_json(ASK, SCHEMA)
    assert caught.value.fault is LlmFault.REFUSED


@pytest.mark.parametrize("address", ["not a url", "ftp://127.0.0.1/v1", "http://"])
def test_an_address_that_is_none_is_a_fault_not_a_crash(address):
    with pytest.raises(LlmError):
        ServedLlm(address, deadline_s=5).complete_json(ASK, SCHEMA)


def test_the_model_and_its_limit_are_asked_from_the_server():
    with MisbehavingServer(says({"x": 1}), models=["qwen-a"], max_model_len=1024) as server:
        llm = ServedLlm(server.url, context_window=4096)
        llm.probe()
        assert llm.model == "qwen-a"
        assert llm.context_window == 1024


def test_a_model_that_the_server_does_not_have_is_said_with_what_it_has():
    with MisbehavingServer(says({"x": 1}), models=["qwen-a"]) as server:
        llm = ServedLlm(server.url, model="qwen-b")
        with pytest.raises(LlmError, match=r"no model 'qwen-b'; it has qwen-a"):
            llm.probe()


def test_many_loops_and_threads_share_one_model():
    with MisbehavingServer(says({"x": 5})) as server:
        llm = ServedLlm(server.url, deadline_s=30)

        async def several():
            calls = (llm.acomplete_json(ASK, SCHEMA, check=only_x) for _ in range(10))
            return [reply.value for reply in await asyncio.gather(*calls)]

        found = []
        threads = [threading.Thread(target=lambda: found.extend(asyncio.run(several()))) for _ in range(2)]
        for thread in threads:
            thread.start()
        found += [llm.complete_json(ASK, SCHEMA, check=only_x).value for _ in range(3)]
        for thread in threads:
            thread.join()
    assert found == [5] * 23


async def test_waiting_does_not_block_the_event_loop():
    with MisbehavingServer(hangs) as server:
        llm = ServedLlm(server.url)
        waiting = asyncio.create_task(llm.acomplete_json(ASK, SCHEMA, deadline=Deadline.after(5)))
        ticks = 0
        while not server.asked:
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks > 0
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_cancelled_question_hangs_up():
    hung_up = threading.Event()

    def until_hung_up(server, body):
        server.start_stream()
        try:
            while not server.stopping.wait(0.02):
                server.send_piece("x")
        except OSError:
            hung_up.set()

    with MisbehavingServer(until_hung_up) as server:
        task = asyncio.create_task(ServedLlm(server.url).acomplete_json(ASK, SCHEMA))
        await asyncio.to_thread(wait_until, lambda: bool(server.asked))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, hung_up.is_set)


def test_without_an_address_there_is_no_model():
    assert llm_from_settings(LlmSettings()) is None


def test_settings_reach_the_model():
    with MisbehavingServer(says({"x": 1})) as server:
        llm = llm_from_settings(LlmSettings(base_url=server.url, max_tokens=99, temperature=0.5, api_key="k"))
        llm.complete_json(ASK, SCHEMA)
        (body,) = server.script.seen
    assert (body["max_tokens"], body["temperature"]) == (99, 0.5)


def test_the_name_stays_known_after_a_failure_and_a_new_model_is_found_after_a_restart():
    with MisbehavingServer(status(404), says({"x": 1}), models=["qwen-a"]) as server:
        llm = ServedLlm(server.url)
        with pytest.raises(LlmError):
            llm.complete_json(ASK, SCHEMA)
        assert llm.model == "qwen-a"
        server.script.models = ["qwen-b"]
        llm.complete_json(ASK, SCHEMA)
        assert llm.model == "qwen-b"
