"""JSON lines: every outcome that docs/records.md promises."""

import gzip
import json

import pytest
from wardround.errors import InputError, SettingsError
from wardround.records import RejectLog, read_records
from wardround.settings import RecordsSettings

LENIENT = RecordsSettings(max_reject_share=1.0)


def row(number, **more):
    return {
        "id": f"r{number}",
        "text": f"Cough for {number} days.",
        "diagnoses": [{"name": "Bronchitis"}],
        **more,
    }


def write(path, rows, end="\n"):
    text = "\n".join(r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in rows) + end
    path.write_text(text, encoding="utf-8")
    return path


def read(path, settings=LENIENT, **more):
    log = RejectLog()
    return list(read_records(path, settings=settings, rejects=log, **more)), log


def test_a_record_keeps_every_field_of_the_format(tmp_path):
    given = row(
        1,
        department="General practice",
        date="2024-01-31",
        age=45,
        sex="F",
        language="en",
        views={"chief_complaint": "cough", "nonsense": "x"},
        choices=["a", "b"],
        unknown_key=[1],
        diagnoses=[{"name": "Bronchitis", "code": "J40"}, {"name": "Asthma"}],
    )
    [record], _ = read(write(tmp_path / "a.jsonl", [given]))
    assert record.model_dump(mode="json") | {"views": None} == {
        "id": "r1",
        "department": "General practice",
        "date": "2024-01-31",
        "age": 45.0,
        "sex": "F",
        "language": "en",
        "text": "Cough for 1 days.",
        "views": None,
        "diagnoses": [{"name": "Bronchitis", "code": "J40"}, {"name": "Asthma", "code": None}],
        "choices": ["a", "b"],
        "patient_id": None,
    }
    assert record.views == {"chief_complaint": "cough"}


def test_a_gzipped_file_reads_as_the_plain_one(tmp_path):
    plain = write(tmp_path / "a.jsonl", [row(1), row(2)])
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed)[0] == read(plain)[0]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{not json}", "not valid JSON: Expecting property name"),
        ('"text"', "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": "x", "text": "cough", "age": ' + "9" * 5000 + "}", "too many digits"),
        ('{"id": "x", "text": "cough", "age": ' + "9" * 400 + "}", "age"),
        ('{"id": "x", "text": "cough", "age": -3}', "age: "),
        ('{"id": "x", "text": "cough", "age": true}', "true or false"),
        ('{"id": "x", "text": ["cough"]}', "text: "),
        ('{"id": "x", "views": "cough"}', "views: "),
        ('{"id": "x", "text": "cough", "diagnoses": "flu"}', "diagnoses: "),
        ('{"id": "x", "text": "cough", "diagnoses": [7]}', "diagnoses.0"),
        ('{"id": "x", "text": "cough", "date": "the other day"}', "date: "),
        ('{"id": "x", "text": "cough", "date": "12345"}', "date: "),
        ('{"id": "x", "text": "cough", "choices": {"a": 1}}', "choices: "),
        ('{"text": "cough"}', "id: "),
        ('{"id": "", "text": "cough"}', "id: "),
        ('{"id": "x", "text": "  "}', "both are empty"),
        ('{"id": "x"}', "both are empty"),
        ('{"id": "r1", "text": "the same id"}', "used by an earlier row"),
        (
            '{"id": "x", "text": "Flu.", "diagnoses": [{"name": "flu"}]}',
            "no evidence text besides the diagnosis",
        ),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_the_next_one_is_read(tmp_path, bad, reason):
    records, log = read(write(tmp_path / "a.jsonl", [row(1), bad, row(3)]))
    assert [record.id for record in records] == ["r1", "r3"]
    assert (log.first.line, log.rejected) == (2, 1)
    assert reason in log.first.reason


def test_the_rejects_file_names_file_line_id_and_reason_but_holds_no_patient_text(tmp_path):
    secret = "Zebediah"
    bad = [
        {"id": "a", "text": [secret]},
        {"id": "b", "text": "x", "date": secret},
        {"id": "c", "text": "x", "views": {secret: 1}, "age": secret},
        {"id": "d", "text": secret, "diagnoses": [{"name": secret}]},
        '{"id": "e", "text": "' + secret,
    ]
    path = write(tmp_path / "a.jsonl", [row(1), *bad])
    with RejectLog(tmp_path / "out" / "rejects.jsonl") as log:
        list(read_records(path, settings=LENIENT, rejects=log))
    written = (tmp_path / "out" / "rejects.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    assert [(line["line"], line["id"]) for line in lines] == [
        (2, "a"),
        (3, "b"),
        (4, "c"),
        (5, "d"),
        (6, None),
    ]
    assert all(line["file"] == str(path) and line["reason"] for line in lines)
    assert secret not in written


def test_a_last_line_that_was_cut_off_is_said_to_be(tmp_path):
    path = write(tmp_path / "a.jsonl", [row(1), row(2)], end="")
    whole = path.read_bytes()
    for cut in range(len(whole) - 5, len(whole) - 60, -7):
        path.write_bytes(whole[:cut])
        records, log = read(path)
        assert [record.id for record in records] == ["r1"]
        assert log.reasons == {"the last line is cut off": 1}


def test_rows_before_the_break_of_a_gzip_stream_are_kept(tmp_path):
    plain = write(tmp_path / "a.jsonl", [row(n, text=f"Cough {n * 7919 % 1000}") for n in range(3000)])
    packed = gzip.compress(plain.read_bytes())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    records, log = read(path)
    assert 500 < len(records) < 2500
    assert [record.id for record in records] == [f"r{n}" for n in range(len(records))]
    assert log.rejected == 1
    assert "ends early or is damaged" in log.first.reason
    assert log.first.line == len(records) + 1


@pytest.mark.parametrize(
    "content", [b"", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf", b"\n \n", b"\x00\x00"]
)
def test_a_file_without_content_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "nothing.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"nothing\.jsonl"):
        read(path)


def test_a_missing_file_and_an_unknown_format_are_errors(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "gone.jsonl")
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "gone.jsonl", format="jsonl")
    with pytest.raises(InputError, match="formats are jsonl, csv, xlsx, fhir, mimic"):
        read(write(tmp_path / "a.jsonl", [row(1)]), format="pdf")


def test_a_file_of_which_nothing_can_be_used_is_an_error_even_where_all_may_be_bad(tmp_path):
    with pytest.raises(InputError, match="holds no record that can be used; first problem: not valid JSON"):
        read(write(tmp_path / "a.jsonl", ["{", "}"]))


def test_control_characters_are_removed_and_counted(tmp_path):
    line = json.dumps(row(1, text="fe\x00ver\x07\u200b\ud83d\ttwo\nlines\ufeff"))
    [record], log = read(write(tmp_path / "a.jsonl", [line]))
    assert record.text == "fever\u200b\ufffd\ttwo\nlines"
    assert log.cleaned_fields == 1


def test_nul_bytes_between_lines_do_no_harm(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(row(1)).encode() + b"\n\x00\n" + json.dumps(row(2)).encode() + b"\n")
    records, log = read(path)
    assert [record.id for record in records] == ["r1", "r2"]
    assert log.rejected == 1


def test_a_gigantic_field_is_cut_and_counted(tmp_path):
    settings = RecordsSettings(max_field_chars=1000)
    [record], log = read(write(tmp_path / "a.jsonl", [row(1, text="x" * 5_000_000)]), settings)
    assert len(record.text) == 1000
    assert log.cut_fields == 1


def test_nan_and_infinite_ages_are_no_ages(tmp_path):
    rows = ['{"id": "a", "text": "cough", "age": NaN}', '{"id": "b", "text": "cough", "age": 1e999}']
    records, _ = read(write(tmp_path / "a.jsonl", rows))
    assert [record.age for record in records] == [None, None]


@pytest.mark.parametrize(
    ("given", "age"),
    [
        ("45", 45),
        ("４５歳", 45),
        ("45岁", 45),
        ("6 months", 0.5),
        ("6个月", 0.5),
        ("3ヶ月", 0.25),
        ("45 years old", 45),
    ],
)
def test_ages_in_words_are_read_in_years(tmp_path, given, age):
    [record], _ = read(write(tmp_path / "a.jsonl", [row(1, age=given)]))
    assert record.age == age


@pytest.mark.parametrize(
    ("given", "sex"), [("女", "F"), ("Male", "M"), (2, "F"), ("男性", "M"), ("unknown", None), ("X", "X")]
)
def test_words_for_sex_become_codes(tmp_path, given, sex):
    [record], _ = read(write(tmp_path / "a.jsonl", [row(1, sex=given)]))
    assert record.sex == sex


@pytest.mark.parametrize(
    "given",
    ["2024-01-31", "2024/1/31", "20240131", 20240131, "2024-01-31T08:30:00Z", "2024年1月31日",
     "令和6年1月31日", "R6.1.31", "01/31/2024", "31/01/2024", "２０２４．０１．３１"],
)  # fmt: skip
def test_dates_are_read_as_hospitals_write_them(tmp_path, given):
    [record], _ = read(write(tmp_path / "a.jsonl", [row(1, date=given)]))
    assert record.date.isoformat() == "2024-01-31"


def test_plain_strings_are_taken_as_diagnoses(tmp_path):
    [record], _ = read(write(tmp_path / "a.jsonl", [row(1, diagnoses=["Flu", "Asthma"])]))
    assert [item.name for item in record.diagnoses] == ["Flu", "Asthma"]


ZH = row(
    1, text="发热、咳嗽3天，伴咽痛。体温38.5℃，血压120/80mmHg。", diagnoses=[{"name": "急性上呼吸道感染"}]
)
JA = row(1, text="3日前から発熱と咳が続いている。体温38.5℃。", diagnoses=[{"name": "急性上気道炎"}])


@pytest.mark.parametrize(
    ("given", "encoding"),
    [
        *(
            (ZH, name)
            for name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030")
        ),
        *((JA, name) for name in ("utf-8", "utf-8-sig", "utf-16", "shift_jis", "euc_jp")),
        (row(1, text="Fever 38.5°C, café-au-lait spots"), "cp1252"),
    ],
)
def test_the_encoding_is_detected(tmp_path, given, encoding):
    path = tmp_path / "a.jsonl"
    second = json.dumps(given | {"id": "r2"}, ensure_ascii=False)
    path.write_bytes((json.dumps(given, ensure_ascii=False) + "\r\n" + second + "\r\n").encode(encoding))
    records, log = read(path)
    assert [(record.id, record.text) for record in records] == [("r1", given["text"]), ("r2", given["text"])]
    assert log.rejected == 0


@pytest.mark.parametrize(
    ("actual", "declared"), [("utf-8", "gb18030"), ("gb18030", "utf-8"), ("utf-16", "utf-8")]
)
def test_a_wrongly_declared_encoding_is_an_error_that_names_both(tmp_path, actual, declared):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        "".join(json.dumps(ZH | {"id": n}, ensure_ascii=False) + "\n" for n in range(9)).encode(actual)
    )
    with pytest.raises(InputError, match=rf"a\.jsonl.*records\.encoding = '{declared}'.*{actual}"):
        read(path, RecordsSettings(encoding=declared))


@pytest.mark.parametrize("name", ["no-such", "base64", "rot13", "x\x00y"])
def test_an_encoding_that_does_not_exist_is_an_error_of_the_settings(tmp_path, name):
    with pytest.raises(SettingsError, match=r"records\.encoding"):
        read(write(tmp_path / "a.jsonl", [row(1)]), RecordsSettings(encoding=name))


def test_a_damaged_byte_costs_its_line_only(tmp_path):
    path = write(tmp_path / "a.jsonl", [ZH | {"id": f"r{n}"} for n in range(9)])
    lines = path.read_bytes().split(b"\n")
    lines[4] = lines[4][:50] + b"\xff" + lines[4][51:]
    path.write_bytes(b"\n".join(lines))
    records, log = read(path)
    assert len(records) == 8
    assert (log.first.line, log.first.reason) == (5, "the line is not valid utf-8 at byte 51")


def test_reading_stops_at_the_end_where_too_much_was_bad(tmp_path):
    path = write(tmp_path / "a.jsonl", [row(1), row(2), "{"])
    seen = []
    with pytest.raises(InputError, match=r"1 of 3 rows \(33\.3%\).*First one, line 3: not valid JSON"):
        seen.extend(read_records(path, settings=RecordsSettings(), rejects=RejectLog()))
    assert len(seen) == 2
    assert len(read(path, RecordsSettings(max_reject_share=0.34))[0]) == 2


def test_reading_stops_early_in_a_long_file_that_is_wrong(tmp_path):
    path = write(tmp_path / "a.jsonl", [row(n) if n % 2 else "{" for n in range(5000)])
    log = RejectLog()
    with pytest.raises(InputError, match="of 1001 rows"):
        list(read_records(path, settings=RecordsSettings(), rejects=log))
    assert log.rows == 1001


def test_records_arrive_while_the_file_is_being_read(tmp_path):
    path = write(tmp_path / "a.jsonl", [row(n) for n in range(2000)])
    records = read_records(path, settings=LENIENT, rejects=(log := RejectLog()))
    next(records)
    assert log.rows == 1
