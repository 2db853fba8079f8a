"""``evaluate icd10``: keys, arithmetic, bad lines, baselines."""

import json

import pytest
from wardround.errors import InputError
from wardround.evaluation.icd10 import auto_share, coding_lines, evaluate_icd10
from wardround.knowledge.icd import IcdCascade, load_code_system

LIST = """code,title,alias
J45,Asthma,
J45.9,"Asthma, unspecified",
J18.9,"Pneumonia, unspecified organism",lung infection
K35,Acute appendicitis,
K36,Other appendicitis,chronic appendicitis
E05,Hyperthyroidism,
E03,Hypothyroidism,
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(LIST, encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path):
    rows = [
        {"text": "asthma", "code": "j45"},
        {"text": "lung infection", "code": ["J18.9", "J12"]},
        {"text": "asthma", "code": "J45.9"},
        {"text": "hyperthyroidism", "code": "E03"},
        {"text": "K35", "code": "K35"},
        {"text": "zxqj", "code": "K35"},
    ]
    lines = [json.dumps(row) for row in rows]
    lines[2:2] = ["not json", "", '{"text": "", "code": "J45"}', '{"text": "x"}', '{"text": "x", "code": []}']
    path = tmp_path / "gold.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return path


def test_the_report_has_its_keys_and_counts_right(small, gold):
    report = evaluate_icd10(gold, small)
    assert report["n"] == 6
    assert report["exact"] == pytest.approx(3 / 6, abs=1e-4)
    assert report["category"] == pytest.approx(4 / 6, abs=1e-4)
    assert report["unmapped"] == pytest.approx(1 / 6, abs=1e-4)
    assert report["by_stage"]["code"] == {"n": 1, "exact": 1.0, "category": 1.0}
    assert report["by_stage"]["exact"] == {"n": 3, "exact": 0.3333, "category": 0.6667}
    assert report["by_stage"]["alias"] == {"n": 1, "exact": 1.0, "category": 1.0}
    assert report["skipped"] == 4
    assert report["names_per_second"] > 0
    assert {"tfidf_char_3gram", "rapidfuzz_token_sort_ratio"} == set(report["baselines"])


def test_the_same_input_gives_the_same_report_but_for_time(small, gold):
    def report():
        found = evaluate_icd10(gold, small, seed=3)
        found.pop("names_per_second")
        for figures in found["baselines"].values():
            figures.pop("names_per_second")
        return found

    assert report() == report()


def test_predictions_and_table_are_written(small, gold, tmp_path):
    evaluate_icd10(gold, small, out=tmp_path / "out")
    lines = (tmp_path / "out" / "icd10_predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 6
    assert json.loads(lines[1])["gold"] == ["J18.9", "J12"]
    assert "| wardround | 6 |" in (tmp_path / "out" / "icd10.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{}\n", b"\x00\xff\xfe"])
def test_a_gold_file_without_a_usable_line_is_an_input_error(small, tmp_path, content):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.jsonl"):
        evaluate_icd10(path, small)


def test_the_share_coded_alone_stops_where_precision_falls():
    assert auto_share([0.9, 0.8, 0.7, 0.1], [True, True, True, False], list("abcd")) == 0.75
    assert auto_share([0.9, 0.8], [False, True], list("ab")) == 0.0
    assert auto_share([0.5] * 4, [True] * 4, list("abcd")) == 1.0


def test_a_coding_line_has_the_contracts_keys(small):
    cascade = IcdCascade(load_code_system(small))
    (line,) = coding_lines(["lung infection"], cascade, top_k=2)
    assert {"text", "stage", "code", "title", "score", "margin", "candidates"} <= set(line)
    assert line["stage"] == "alias"
    assert line["candidates"][0]["code"] == "J18.9"
    assert json.loads(json.dumps(line)) is not None
