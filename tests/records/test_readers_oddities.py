"""Odd but real things that files hold: what is read all the same, and what is refused and why."""

import json
import os

import pytest
from wardround.errors import InputError, SettingsError
from wardround.records import RejectLog, read_records
from wardround.records.readers.encodings import declared_encoding
from wardround.records.readers.values import age_of
from wardround.settings import RecordsSettings

GOOD = {"id": "1", "text": "cough and fever for three days", "diagnoses": [{"name": "Bronchitis"}]}


def read(path, **how):
    with RejectLog() as log:
        found = list(read_records(path, settings=RecordsSettings(max_reject_share=1), rejects=log, **how))
    return found, log


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"diagnoses": [{"name": "\u200b\u200d"}]}, "diagnoses.0.name: holds no character that can be seen"),
        ({"id": "x" * 501}, "id: String should have at most 500 characters"),
    ],
)
def test_a_name_nobody_can_see_and_an_endless_id_are_refused(tmp_path, bad, reason):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"id": "2"} | bad) + "\n")
    found, log = read(path)
    assert [record.id for record in found] == ["1"]
    assert list(log.reasons) == [reason]


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("六十岁", 60),
        ("六十", 60),
        ("十五歳", 15),
        ("一百零二岁", 102),
        ("两岁", 2),
        ("六个月", 0.5),
        ("六五", 65),
    ],
)
def test_ages_written_in_chinese_numerals_are_read(text, years):
    assert age_of(text) == years


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_table_whose_lines_end_in_carriage_returns_alone_is_read(tmp_path, encoding):
    path = tmp_path / "r.csv"
    rows = ["id,text,diagnosis", "1,咳嗽发热三天伴咽痛,支气管炎", "2,头痛呕吐两天伴畏光,偏头痛"]
    path.write_bytes("\r".join([*rows, ""]).encode(encoding))
    found, log = read(path)
    assert [record.diagnoses[0].name for record in found] == ["支气管炎", "偏头痛"]
    assert log.rejected == 0


@pytest.mark.parametrize("how", [{}, {"format": "jsonl"}])
def test_a_pipe_is_refused_with_what_to_do(tmp_path, how):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match="write them to a file first"):
        read(path, **how)


@pytest.mark.parametrize(
    "name", ["idna", "punycode", "unicode_escape", "raw-unicode-escape", "base64", "rot13"]
)
def test_what_python_calls_an_encoding_and_no_file_is_in_is_refused(name):
    with pytest.raises(SettingsError, match=r"records\.encoding"):
        declared_encoding(name, b"abc")
