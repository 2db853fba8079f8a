"""``Vllm`` of llama-index-llms-vllm in process, in an interpreter of its own, with a tiny random Qwen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.server

SCRIPT = """
import json, sys
from llama_index.core.llms import ChatMessage
from cases import eye_query
from wardround.agents import StandardEngine
from wardround.models import Deadline, LlmError, llm_from_settings
from wardround.settings import LlmSettings

if __name__ == "__main__":
    settings = LlmSettings(path=sys.argv[1], max_tokens=900, deadline_s=240, temperature=1)
    llm = llm_from_settings(settings)
    number = {"type": "integer", "minimum": 1, "maximum": 9}
    schema = {"title": "t", "type": "object", "properties": {"n": number}, "required": ["n"]}
    ask = [ChatMessage(role="user", content="How many?")]
    value, tokens = llm.complete_json(ask, schema)
    details = StandardEngine(llm=llm, records=2).query(eye_query()).details
    text = llm.as_llama_index().complete("chest", max_tokens=4).text
    chat = llm.as_llama_index().chat(ask, max_tokens=4).message.content
    try:
        llm.complete_json(ask, schema, deadline=Deadline.after(0))
        late = None
    except LlmError as error:
        late = error.reason
    out = {"value": value, "tokens": tokens.model_dump(), "text": text, "chat": chat, "late": late,
           "details": details.model_dump(mode="json")}
    llm.close()
    print("RESULT" + json.dumps(out))
"""


@pytest.fixture(scope="module")
def result(tiny_qwen, tmp_path_factory):
    script = tmp_path_factory.mktemp("in-process") / "ask.py"
    script.write_text(SCRIPT, encoding="utf-8")
    support = str(Path(__file__).parents[1] / "support")
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([support, os.environ.get("PYTHONPATH", "")]),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    if openmp.exists():
        env["LD_PRELOAD"] = str(openmp)
    done = subprocess.run(
        [sys.executable, str(script), str(tiny_qwen)],
        env=env,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if "RESULT" in line]
    assert lines, done.stdout[-1500:] + done.stderr[-3000:]
    return json.loads(lines[-1].split("RESULT", 1)[1])


def test_the_answer_keeps_to_the_schema_and_is_counted(result):
    assert set(result["value"]) == {"n"}
    assert 1 <= result["value"]["n"] <= 9
    assert result["tokens"]["prompt"] > 0
    assert result["tokens"]["output"] > 0


def test_an_engine_answers_through_it(result):
    details = result["details"]
    assert details["diagnoses"]
    cited = {record for one in details["diagnoses"] for record in one["evidence"]}
    assert cited <= {"g1", "g2", "u1", "k1"}
    assert details["degraded"] is None or details["model"] == "extractive"


def test_llama_indexs_own_calls_work(result):
    assert isinstance(result["text"], str)
    assert isinstance(result["chat"], str)


def test_a_passed_deadline_is_reported(result):
    assert result["late"].startswith("timeout")
