"""The verbs that measure and learn: their JSON, their files, and the same figures from the same input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wardround.main import main

RECORDS = Path(__file__).resolve().parents[1] / "examples" / "records.jsonl"
CONDITION_KEYS = {
    "top1", "top3", "mrr", "top1_ci", "top3_ci", "top1_all", "top3_all", "ms_per_query", "auroc", "ece",
    "coverage_at_90", "by_department",
}  # fmt: skip

Asked = Callable[..., Any]


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    def run(*arguments: object) -> Any:
        code = main([*map(str, arguments), "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert printed.out.count("\n") == 1, "JSON stands alone on stdout"
        return json.loads(printed.out)

    return run


@pytest.fixture
def names(tmp_path: Path) -> Path:
    rows = [
        {"text": "gout", "code": "M10"},
        {"text": "heart attack", "code": ["I21.9", "I22"], "extra": 1},
        {"text": "Type 2 diabetes mellitus without complications", "code": "e119"},
        {"text": "qqq zzz", "code": "A00"},
    ]
    file = tmp_path / "names.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    return file


def without_times(report: Any) -> Any:
    if isinstance(report, dict):
        return {key: without_times(item) for key, item in report.items() if not key.startswith("ms_per")}
    return report


def test_diagnosis_reports_every_condition_with_the_documented_keys(asked: Asked, tmp_path: Path) -> None:
    command = ("evaluate", "diagnosis", "--records", RECORDS, "--cv", 2, "--seed", 3)
    conditions = ("--conditions", "bm25,flat_hybrid,supervised,map_rag,ours")
    report = asked(*command, *conditions, "--out", tmp_path / "out")
    assert {"n", "answerable", "labels", "twins", "conditions", "mcnemar", "routes"} <= set(report)
    assert (report["n"], report["labels"]) == (12, 6)
    assert list(report["conditions"]) == ["bm25", "flat_hybrid", "supervised", "map_rag", "ours"]
    for figures in report["conditions"].values():
        assert set(figures) >= CONDITION_KEYS
    for rival in ("flat_hybrid", "supervised", "map_rag"):
        assert set(report["mcnemar"][f"ours_vs_{rival}"]) == {"top1_p", "top3_p"}
    for scale in ("raw", "calibrated"):
        assert set(report["routes"][scale]) == {"vote", "standard", "deep"}
    endings = {path.suffix for path in (tmp_path / "out").rglob("*")}
    assert {".jsonl", ".md"} <= endings
    assert endings & {".png", ".svg"}
    assert without_times(asked(*command, *conditions)) == without_times(report)


def test_diagnosis_asks_a_file_of_queries(asked: Asked) -> None:
    report = asked(
        "evaluate", "diagnosis", "--records", RECORDS, "--queries", RECORDS, "--conditions", "bm25"
    )
    assert report["answerable"] == 1.0
    assert report["conditions"]["bm25"]["top3"] > 0.7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--records", "/no/such.jsonl", "--cv", "2"), "/no/such.jsonl"),
        (("--records", RECORDS, "--cv", "zero"), "zero"),
        (("--records", RECORDS, "--cv", "2", "--conditions", "guessing"), "guessing"),
        (("--records", "/no/such.jsonl", "--cv", "2", "--out", RECORDS), "results cannot be written there"),
    ],
)
def test_diagnosis_refuses_what_cannot_be_measured(
    capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], words: str
) -> None:
    assert main(["evaluate", "diagnosis", *map(str, arguments)]) == 4
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err


def test_icd10_reports_the_documented_keys_and_skips_a_bad_line_aloud(
    asked: Asked, names: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = asked("evaluate", "icd10", names, "--system", "icd10cm")
    assert set(report) >= {
        "n", "exact", "category", "unmapped", "by_stage", "auto_share_at_95", "names_per_second",
    }  # fmt: skip
    assert (report["n"], report["unmapped"]) == (4, 0.25)
    assert report["category"] == 0.75
    assert sum(stage["n"] for stage in report["by_stage"].values()) == 3
    for figures in report["by_stage"].values():
        assert set(figures) >= {"n", "exact", "category"}


def test_icd10_prints_one_object_a_line_in_the_order_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["icd10", "gout", "asthma", "qqq zzz", "--top", "2", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == ["gout", "asthma", "qqq zzz"]
    for row in rows:
        assert set(row) >= {"text", "stage", "code", "title", "score", "margin", "candidates"}
        assert len(row["candidates"]) <= 2
        for candidate in row["candidates"]:
            assert set(candidate) >= {"code", "title", "score"}
    assert [row["stage"] for row in rows] == ["exact", "exact", "unmapped"]
    assert [row["code"] for row in rows] == ["M10", "J45", None]


def test_icd10_reads_a_list_a_line_and_a_code_list_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "codes.csv").write_text("code,title\nX1,胃炎\nX2,肺炎\n", encoding="utf-8")
    (tmp_path / "names.txt").write_text("肺炎\n\n胃炎\n", encoding="utf-8")
    command = ["icd10", "--file", str(tmp_path / "names.txt"), "--system", str(tmp_path / "codes.csv")]
    assert main([*command, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["code"] for row in rows] == ["X2", "X1"]
    assert main(command) == 0
    assert "肺炎" in capsys.readouterr().out


def test_an_unknown_code_system_is_a_settings_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["icd10", "gout", "--system", "icd12"]) == 3
    assert "icd12" in capsys.readouterr().err


def test_fit_and_calibrate_report_what_they_learned_and_the_index_keeps_it(
    tmp_path: Path, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "cases"
    assert main(["cases", "build", str(RECORDS), "--index", str(index), "--deidentified"]) == 0
    capsys.readouterr()
    assert asked("fit", "--index", index)["records"] == 12
    assert asked("fit", "--index", index, "--records", RECORDS)
    many = tmp_path / "many.jsonl"
    rows = [json.loads(line) for line in RECORDS.read_text("utf-8").splitlines()] * 4
    many.write_text("\n".join(json.dumps(row | {"id": f"again-{i}"}) for i, row in enumerate(rows)))
    assert asked("calibrate", "--index", index, "--records", many)["examples"] == 48
    assert asked("cases", "info", "--index", index)["sidecars"] == ["learned"]
    answer = asked("diagnose", "Painful red eye, IOP 50 mmHg.", "--index", index)
    assert answer["confidence"]["value"] != answer["confidence"]["raw"]
