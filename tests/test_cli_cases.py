"""An index through the command line: built, asked, changed, interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wardround.main import main
from wardround.query import ClinicalAnswer
from wardround.records import generate_records

RECORDS = Path(__file__).resolve().parents[1] / "examples" / "records.jsonl"
CASE = "Painful red eye since last night, rings around lamps. IOP 50 mmHg, cornea hazy."
ANSWER_KEYS = {
    "answer", "task", "route", "confidence", "diagnoses", "verdict", "facts", "citations", "refused",
    "degraded", "model", "tokens", "timings_ms", "index_version",
}  # fmt: skip

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def asked(call: Call) -> Callable[..., Any]:
    def run(*arguments: object) -> Any:
        code, out, err = call(*arguments, "--json")
        assert code == 0, err
        assert out.count("\n") == 1, "JSON stands alone on stdout"
        return json.loads(out)

    return run


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("cli") / "cases"
    assert main(["cases", "build", str(RECORDS), "--index", str(index), "--deidentified"]) == 0
    return index


@pytest.fixture
def fresh(tmp_path: Path, call: Call) -> Path:
    index = tmp_path / "cases"
    assert call("cases", "build", RECORDS, "--index", index, "--deidentified")[0] == 0
    return index


def test_an_answer_has_the_documented_keys_and_can_be_replayed(
    built: Path, asked: Callable[..., Any]
) -> None:
    answer = asked(
        "diagnose", CASE, "--index", built, "--department", "ophthalmology", "--age", 67, "--sex", "F"
    )
    assert set(answer) == ANSWER_KEYS
    assert answer["diagnoses"][0]["name"] == "Acute angle-closure glaucoma"
    assert answer["diagnoses"][0]["code"].startswith("H40.2")
    assert set(answer["diagnoses"][0]["evidence"]) <= {f"e{i:02}" for i in range(1, 7)}
    assert {citation["kind"] for citation in answer["citations"]} == {"record"}
    assert answer["model"] == "extractive"
    assert ClinicalAnswer.from_json(answer).to_json() == answer


def test_the_same_question_gives_the_same_answer_but_for_its_timings(
    built: Path, asked: Callable[..., Any]
) -> None:
    first, second = (asked("diagnose", CASE, "--index", built) for _ in range(2))
    del first["timings_ms"], second["timings_ms"]
    assert first == second


def test_a_person_sees_diagnoses_evidence_scores_and_the_route(built: Path, call: Call) -> None:
    code, out, _ = call("diagnose", CASE, "--index", built, "--evidence", 2)
    assert code == 0
    for words in (
        "Acute angle-closure glaucoma",
        "%",
        "H40.2",
        "record e0",
        "Complaint",
        "Exam",
        "Confidence",
        "Route",
    ):
        assert words in out
    assert out.count("record e0") + out.count("record c0") == 2
    assert max(map(len, out.splitlines())) <= 80


def test_a_case_may_come_from_a_file_or_a_pipe(
    built: Path, asked: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "case.txt"
    file.write_text(CASE)
    done = subprocess.run(
        [sys.executable, "-m", "wardround.main", "diagnose", "--index", str(built), "--json"],
        input=CASE.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    by_file, by_pipe = asked("diagnose", "--file", file, "--index", built), json.loads(done.stdout)
    assert (
        by_file["diagnoses"] == by_pipe["diagnoses"] == asked("diagnose", CASE, "--index", built)["diagnoses"]
    )


@pytest.mark.parametrize(
    "text", ["Diagnosis: Acute glaucoma", "诊断：青光眼", "?!", "1234", "-" * 5_000, "😀" * 100]
)
def test_a_text_that_says_nothing_about_the_case_gets_an_error_or_a_marked_answer(
    built: Path, call: Call, text: str
) -> None:
    code, out, err = call("diagnose", "--index", built, "--json", "--", text)
    if code == 4:
        assert out == ""
        assert err.startswith("wardround: ")
        assert err.count("\n") == 1
    else:
        assert code == 0, err
        answer = json.loads(out)
        assert answer["refused"] or answer["confidence"]["value"] < 0.9


def test_info_says_what_the_index_holds(built: Path, call: Call, asked: Callable[..., Any]) -> None:
    info = asked("cases", "info", "--index", built)
    assert info["records"] == 12
    assert info["departments"] == 2
    assert "12" in call("cases", "info", "--index", built)[1]


def test_records_are_added_replaced_and_deleted_by_id(
    fresh: Path, call: Call, asked: Callable[..., Any], tmp_path: Path
) -> None:
    more = tmp_path / "more.jsonl"
    record = {
        "id": "e07",
        "text": "Curtain over the left eye.",
        "diagnoses": [{"name": "Retinal detachment"}],
    }
    more.write_text(json.dumps(record) + "\n")
    add = ("cases", "add", more, "--index", fresh, "--deidentified")
    assert asked(*add)["added"] == 1
    again = asked(*add)
    assert (again["added"], again["replaced"]) == (0, 1)
    assert asked("cases", "info", "--index", fresh)["records"] == 13
    assert asked("cases", "delete", "e07", "e01", "nobody", "--index", fresh)["unknown"] == ["nobody"]
    assert asked("cases", "info", "--index", fresh)["records"] == 11
    code, out, err = call("cases", "delete", "e07", "--index", fresh)
    assert (code, out) == (4, "")
    assert "e07" in err


def test_a_bad_line_is_counted_and_told_with_its_number(tmp_path: Path, call: Call) -> None:
    records = tmp_path / "r.jsonl"
    good = [record.model_dump_json() + "\n" for record in generate_records(30, seed=1)]
    records.write_text("".join([*good[:20], "{broken\n", *good[20:]]), encoding="utf-8")
    build = ("cases", "build", records, "--index", tmp_path / "cases", "--deidentified")
    code, out, err = call(*build, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert (report["records"], report["rejected"]) == (30, 1)
    assert f"1 row was skipped; see {report['rejects_file']}" in err
    [told] = Path(report["rejects_file"]).read_text("utf-8").splitlines()
    assert json.loads(told)["line"] == 21


def test_a_file_of_bad_lines_builds_nothing(tmp_path: Path, call: Call) -> None:
    records = tmp_path / "r.jsonl"
    records.write_text("{broken\n" * 5)
    code, out, err = call("cases", "build", records, "--index", tmp_path / "cases", "--deidentified")
    assert (code, out) == (4, "")
    assert "max_reject_share" in err
    assert not list(tmp_path.glob("cases/manifest*"))


def test_scrubbing_is_the_other_way_to_build(tmp_path: Path, call: Call) -> None:
    records = tmp_path / "r.jsonl"
    text = "Chief complaint: cough. Call 555-123-4567 or jane@example.org."
    records.write_text(json.dumps({"id": "1", "text": text, "diagnoses": [{"name": "Bronchitis"}]}) + "\n")
    code, _, err = call("cases", "build", records, "--index", tmp_path / "cases", "--scrub")
    assert code == 0, err
    code, out, _ = call("diagnose", "cough", "--index", tmp_path / "cases", "--json")
    assert code == 0
    assert "555-123-4567" not in out
    assert "jane@" not in out


def test_text_in_records_cannot_steer_the_terminal(tmp_path: Path, call: Call) -> None:
    records = tmp_path / "r.jsonl"
    hostile = "\x1b[2J[red]cough[/red] \x9b31m\x07"
    record = {"id": "a\x1b[1m", "department": hostile, "text": f"{hostile} since Monday, no fever."}
    records.write_text(json.dumps(record | {"diagnoses": [{"name": hostile}]}) + "\n")
    code, _, err = call("cases", "build", records, "--index", tmp_path / "cases", "--deidentified")
    assert code == 0, err
    for extra in ((), ("--json",)):
        code, out, err = call("diagnose", hostile, "--index", tmp_path / "cases", *extra)
        assert code == 0, err
        assert not {"\x1b", "\x9b", "\x07"} & set(out + err)
        assert "[red]cough[/red]" in out


def test_an_interrupted_build_leaves_the_old_index_and_exit_code_130(fresh: Path, tmp_path: Path) -> None:
    from wardround.indexes.cases import CaseIndex

    before = CaseIndex.open(fresh).version
    many = tmp_path / "many.jsonl"
    with many.open("w", encoding="utf-8") as file:
        file.writelines(record.model_dump_json() + "\n" for record in generate_records(3_000, seed=5))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "wardround.main",
            "cases",
            "build",
            str(many),
            "--index",
            str(fresh),
            "--deidentified",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"WARDROUND_CACHE": str(tmp_path / "cache")},
    )
    names = set(fresh.iterdir())
    deadline = time.monotonic() + 120
    while set(fresh.iterdir()) == names and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert out == b""
    assert err.decode() == "wardround: interrupted; what was there before is unchanged\n"
    assert CaseIndex.open(fresh, verify=True).version == before


def test_the_root_of_the_disk_is_no_place_for_an_index(call: Call) -> None:
    code, _, err = call("cases", "build", RECORDS, "--index", "/", "--deidentified")
    assert code == 3
    assert "cases.index" in err
