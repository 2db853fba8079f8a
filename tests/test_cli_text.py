"""What the command line reads and prints is other people's text: it steers no terminal and breaks no JSON."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode
from rich.console import Console
from wardround.commands import render
from wardround.commands.console import emit_json, one_line, plain, read_text, to_plain_data
from wardround.query import (
    AnswerDetails,
    Citation,
    ClinicalAnswer,
    ConfidenceReport,
    RankedDiagnosis,
    RouteTaken,
    Task,
    TokenUse,
)

HOSTILE = (
    "\x1b[31m[red]Gout[/red]\x07 \x9b2J :smile: \u202egnorw [/] "
    "[link=x]y[/link] \x1b]0;title\x07\r\nend \ud800"
)
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile_answer(text: str = HOSTILE, *, records: int = 3) -> ClinicalAnswer:
    text = text.encode("utf-8", "replace").decode()
    details = AnswerDetails(
        answer=f"Most alike: {text}",
        task=Task.DIAGNOSE,
        route=RouteTaken(engine="vote", why=text),
        confidence=ConfidenceReport(value=0.91, raw=0.88, top=0.8, consensus=1.0, margin=0.93),
        diagnoses=[
            RankedDiagnosis(
                name=text, code="M10.9", title="Gout, unspecified", share=0.62, evidence=["r0", "r1"]
            ),
            RankedDiagnosis(name="Cellulitis", share=None),
        ],
        citations=[Citation(id="r0", kind="record", quote=text * 5)],
        degraded=text,
        model=text,
        tokens=TokenUse(prompt=10, output=5),
        timings_ms={"total": 123.4},
    )
    scores = {"chief_complaint": {"dense": 0.71, "sparse": 0.4}, "global": {"dense": None, "sparse": 0.2}}
    data = {
        "department": text, "age": 61.0, "sex": "M", "date": "2024-01-02", "diagnosis": text, "code": "M10.9",
        "channel_scores": scores, "prior": 0.3, "rules": [{"rule": "r", "effect": 0.7, "reason": text}],
    }  # fmt: skip
    nodes = [
        NodeWithScore(
            node=TextNode(id_=f"r{i}", text=text, metadata={"record_id": f"r{i}"} | data), score=0.7
        )
        for i in range(records)
    ]
    return ClinicalAnswer.from_details(details, nodes)


def rendered(answer: ClinicalAnswer, *, width: int = 80, **console: object) -> str:
    stream = io.StringIO()
    target = Console(file=stream, width=width, highlight=False, markup=False, emoji=False, **console)  # type: ignore[arg-type]
    render.answer(answer, target, evidence=5)
    return stream.getvalue()


def test_an_answer_shows_diagnoses_evidence_confidence_and_route() -> None:
    shown = " ".join(rendered(hostile_answer("Gout")).split())
    for words in (
        "62%", "M10.9", "Gout, unspecified", "record r0", "61 y", "Complaint 71/40", "Whole -/20",
        "score 0.70",
        "Confidence 0.91 (raw 0.88: best record 0.80, agreement of the best three 1.00, lead 0.93)",
        "Route vote: Gout", "Degraded: Gout", "10 + 5 tokens", "123 ms", "not a validated device",
    ):  # fmt: skip
        assert words in shown


def test_hostile_text_reaches_the_terminal_as_plain_words() -> None:
    shown = rendered(hostile_answer())
    assert not STEERING.search(shown)
    assert "[red]Gout[/red]" in shown
    assert ":smile:" in shown


@given(st.text(max_size=60))
def test_no_text_breaks_the_rendering_or_gets_a_control_character_through(text: str) -> None:
    assert not STEERING.search(rendered(hostile_answer(text, records=1)))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    from rich.cells import cell_len

    answer = hostile_answer("Acute angle-closure glaucoma 急性闭角型青光眼")
    assert max(cell_len(line) for line in rendered(answer, width=width).splitlines()) <= width


def test_a_pipe_gets_no_colour_and_a_terminal_does() -> None:
    assert "\x1b[" not in rendered(hostile_answer("Gout"))
    assert "\x1b[" in rendered(
        hostile_answer("Gout"), force_terminal=True, color_system="standard", no_color=False
    )


def test_a_dumb_terminal_gets_ascii_lines_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = rendered(hostile_answer("Gout").with_details(citations=[]), force_terminal=True)
    assert "\x1b" not in shown
    assert shown.isascii() or not set(shown) & set("─━│┃═")


def test_an_answer_without_evidence_or_confidence_is_shown_as_well() -> None:
    bare = ClinicalAnswer.from_details(
        AnswerDetails(
            answer="Nothing alike.", task=Task.DIAGNOSE, route=RouteTaken(engine="vote", why="-"), model="m"
        )
    )
    assert "Nothing alike." in rendered(bare)


def test_a_report_shows_single_values_lists_and_tables() -> None:
    stream = io.StringIO()
    report = {
        "records": 12_345,
        "ok": True,
        "none": None,
        "ci": [0.1, 0.25],
        "conditions": {"bm25": {"top1": 0.5, "ms_per_query": 1234.5}, "[red]": {"top1": 1.0}},
    }
    render.report("Result", report, Console(file=stream, width=80, markup=False))
    shown = " ".join(stream.getvalue().split())
    for words in (
        "records 12,345",
        "ok yes",
        "none -",
        "ci 0.1–0.25",
        "top1 ms per query",
        "bm25 0.5 1,234",
        "[red] 1 -",
    ):
        assert words in shown


def test_json_is_one_line_without_control_characters_and_gives_the_text_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = HOSTILE + "主诉\x85\u2028"
    emit_json({"text": text, "nan": float("nan")})
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert printed.endswith("\n")
    assert not STEERING.search(printed[:-1].replace("\u202e", ""))
    assert json.loads(printed) == {"text": text, "nan": None}
    assert "主诉" in printed


@given(st.text())
def test_any_text_survives_json(text: str) -> None:
    stream = io.StringIO()
    import contextlib

    with contextlib.redirect_stdout(stream):
        emit_json(text)
    assert json.loads(stream.getvalue()) == text


def test_reports_of_every_kind_become_plain_data() -> None:
    from dataclasses import dataclass

    class Colour(StrEnum):
        RED = "red"

    @dataclass
    class Report:
        when: dt.date
        where: Path
        what: Colour

    assert to_plain_data(Report(dt.date(2024, 1, 2), Path("a/b"), Colour.RED)) == {
        "when": "2024-01-02", "where": "a/b", "what": "red",
    }  # fmt: skip
    assert to_plain_data({1: np.float32(0.5), Colour.RED: np.arange(2)}) == {"1": 0.5, "red": [0, 1]}
    assert to_plain_data((np.int64(3), {"b", "a"}, float("inf"), hostile_answer("x").details.tokens)) == [
        3, ["a", "b"], None, {"prompt": 10, "output": 5},
    ]  # fmt: skip


def test_plain_text_keeps_tabs_and_newlines_and_one_line_does_not() -> None:
    assert plain("a\tb\r\nc\rd\x1b[0m") == "a\tb\nc\nd[0m"
    assert one_line(" a\tb\n c ") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "主诉：咳嗽"),
        ("utf-8-sig", "主诉：咳嗽"),
        ("utf-16", "主诉：咳嗽"),
        ("gb18030", "主诉：咳嗽三天，伴有发热和头痛，无胸闷气短。"),
        ("cp932", "主訴：三日前からの咳と発熱があり、息苦しさはない。"),
    ],
)
def test_a_file_is_read_in_the_encoding_it_is_in(tmp_path: Path, encoding: str, text: str) -> None:
    file = tmp_path / "case.txt"
    file.write_bytes(text.encode(encoding))
    assert read_text(None, file, what="the case", limit=1000) == text


def test_an_argument_that_is_no_valid_utf8_is_read_with_marks_in_place_of_the_bad_bytes() -> None:
    assert read_text("cou\udcffgh", None, what="the case", limit=1000).startswith("cou\ufffd")
