"""The rejects log."""

import json

import pytest
from wardround.errors import InputError
from wardround.records import RejectLog


def test_counts_and_shares_are_kept_for_rows_and_for_parts_of_rows():
    log = RejectLog()
    assert (log.share, log.parts_share) == (0, 0)
    log.accept(3)
    log.reject("a.csv", "bad", line=7)
    log.accept_parts(9)
    log.reject("b.csv", "worse", part=True)
    log.skip("a.csv", "no note")
    assert (log.rows, log.share, log.parts_share, log.skipped) == (4, 0.25, 0.1, 1)
    assert log.reasons == {"bad": 1, "worse": 1, "no note": 1}


def test_no_file_is_made_where_nothing_is_refused(tmp_path):
    with RejectLog(tmp_path / "rejects.jsonl") as log:
        log.accept()
    assert not (tmp_path / "rejects.jsonl").exists()


def test_the_file_is_complete_at_every_moment(tmp_path):
    log = RejectLog(tmp_path / "deep" / "rejects.jsonl")
    log.reject("a.csv", "bad", line=7, record_id="v1")
    [line] = (tmp_path / "deep" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(line) == {"file": "a.csv", "line": 7, "id": "v1", "reason": "bad"}
    log.close()


def test_a_rejects_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    log = RejectLog(tmp_path)
    with pytest.raises(InputError, match="the rejects file cannot be written"):
        log.reject("a.csv", "bad")


def test_the_limit_is_a_share_of_rows_and_names_the_commonest_reason(tmp_path):
    log = RejectLog(tmp_path / "r.jsonl")
    log.accept(97)
    for line, reason in [(3, "odd"), (5, "even"), (7, "even")]:
        log.reject("a.csv", reason, line=line)
    log.check(0.03)
    with pytest.raises(
        InputError, match=r"3 of 100 rows \(3\.0%\).*2\.9%.*\(2×\): even\. First one, line 3: odd.*r\.jsonl"
    ):
        log.check(0.029)
    log.check_early(0.0)
    log.close()


def test_a_thousand_rows_are_enough_to_stop_early():
    log = RejectLog()
    log.accept(950)
    for _ in range(51):
        log.reject("a.csv", "bad")
    with pytest.raises(InputError):
        log.check_early(0.05)
