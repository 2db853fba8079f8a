"""CSV and Excel: columns, dialects and damage."""

import csv
import datetime as dt
import gzip
import io
import tomllib
import zipfile

import openpyxl
import pytest
from wardround.errors import InputError, SettingsError
from wardround.records import RejectLog, read_records
from wardround.records.readers import columns
from wardround.settings import RecordsSettings

LENIENT = RecordsSettings(max_reject_share=1.0)
EN = [
    "Visit ID",
    "Chief Complaint",
    "HPI",
    "PMH",
    "Physical Exam",
    "Diagnosis",
    "ICD-10",
    "Age",
    "Sex",
    "Visit Date",
]
ONE = [
    "v1",
    "cough",
    "three days",
    "asthma",
    "BP 120/80",
    "Bronchitis; Asthma",
    "J40;J45.9",
    "45",
    "F",
    "2024-01-31",
]


def read(path, settings=LENIENT, **more):
    log = RejectLog()
    return list(read_records(path, settings=settings, rejects=log, **more)), log


def write_csv(path, rows, delimiter=",", encoding="utf-8"):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    path.write_bytes(buffer.getvalue().encode(encoding))
    return path


def write_xlsx(path, rows, sheet="Sheet1", before=()):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, content in [*before, (sheet, rows)]:
        page = book.create_sheet(title)
        for row in content:
            page.append(row)
    book.save(path)
    return path


WRITERS = pytest.mark.parametrize(("name", "write"), [("t.csv", write_csv), ("t.xlsx", write_xlsx)])


@WRITERS
def test_known_headings_become_fields_without_any_setting(tmp_path, name, write):
    [record], _ = read(write(tmp_path / name, [EN, ONE]))
    assert record.id == "v1"
    assert record.views == {
        "chief_complaint": "cough",
        "history": "three days\nasthma",
        "examination": "BP 120/80",
    }
    assert [(item.name, item.code) for item in record.diagnoses] == [
        ("Bronchitis", "J40"),
        ("Asthma", "J45.9"),
    ]
    assert (record.age, record.sex, record.date) == (45, "F", dt.date(2024, 1, 31))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_chinese_headings_are_known(tmp_path, encoding):
    rows = [
        ["就诊号", "科室", "性别", "年龄", "主诉", "现病史", "体格检查", "主要诊断", "主要诊断编码", "姓名"],
        [
            "1001",
            "眼科",
            "女",
            "45岁",
            "右眼视物模糊1月",
            "无外伤史",
            "眼压 24 mmHg",
            "白内障｜青光眼",
            "H26.9｜H40.9",
            "张三",
        ],
    ]
    [record], _ = read(write_csv(tmp_path / "t.csv", rows, encoding=encoding))
    assert (record.id, record.department, record.sex, record.age) == ("1001", "眼科", "F", 45)
    assert record.views["history"] == "无外伤史"
    assert [(item.name, item.code) for item in record.diagnoses] == [("白内障", "H26.9"), ("青光眼", "H40.9")]
    assert record.identifiers == ["张三"]


@pytest.mark.parametrize("encoding", ["utf-8", "shift_jis", "euc_jp"])
def test_japanese_headings_are_known(tmp_path, encoding):
    rows = [
        ["受診番号", "診療科", "性別", "年齢", "主訴", "現病歴", "身体所見", "病名", "受診日"],
        [
            "7",
            "内科",
            "男性",
            "６２歳",
            "発熱と咳",
            "３日前から続いている",
            "体温38.5度、血圧120/80",
            "肺炎",
            "令和6年1月31日",
        ],
    ]
    [record], _ = read(write_csv(tmp_path / "t.csv", rows, encoding=encoding))
    assert (record.id, record.department, record.sex, record.age) == ("7", "内科", "M", 62)
    assert record.date == dt.date(2024, 1, 31)
    assert [item.name for item in record.diagnoses] == ["肺炎"]


@WRITERS
def test_settings_name_columns_and_win_over_known_headings(tmp_path, name, write):
    rows = [
        ["Nr", "Note", "Text", "Main Dx", "Doctor", "Nurse"],
        ["1", "skip", "cough", "Flu", "Dr Who", "N. Gale"],
    ]
    settings = RecordsSettings(
        columns={"id": "nr", "text": "Text", "diagnosis": "main dx", "identifiers": "Doctor|Nurse"}
    )
    [record], _ = read(write(tmp_path / name, rows), settings)
    assert (record.id, record.text, record.diagnoses[0].name) == ("1", "cough", "Flu")
    assert record.identifiers == ["Dr Who", "N. Gale"]


@WRITERS
def test_a_title_above_the_table_is_passed_over(tmp_path, name, write):
    records, _ = read(write(tmp_path / name, [["Export of 2024"], [], EN, ONE]))
    assert [record.id for record in records] == ["v1"]


@WRITERS
def test_numbered_columns_of_one_kind_are_taken_together(tmp_path, name, write):
    rows = [["id", "text", "diagnosis 1", "diagnosis 2", "diagnosis 3"], ["1", "cough", "Flu", "", "Asthma"]]
    [record], _ = read(write(tmp_path / name, rows))
    assert [item.name for item in record.diagnoses] == ["Flu", "Asthma"]


@WRITERS
def test_a_column_that_the_settings_name_but_the_file_lacks_is_an_error(tmp_path, name, write):
    settings = RecordsSettings(columns={"department": "Ward"})
    with pytest.raises(InputError, match=rf"{name}.*department = 'Ward'.*'Visit ID'"):
        read(write(tmp_path / name, [EN, ONE]), settings)


@WRITERS
def test_a_field_that_does_not_exist_is_an_error_of_the_settings(tmp_path, name, write):
    with pytest.raises(SettingsError, match=r"records\.columns: colour is no field"):
        read(write(tmp_path / name, [EN, ONE]), RecordsSettings(columns={"colour": "x"}))


@WRITERS
def test_a_table_without_known_columns_is_an_error_that_shows_how_to_name_them(tmp_path, name, write):
    with pytest.raises(InputError, match=rf"{name}.*'Foo', 'Bar'.*\[records\.columns\]"):
        read(write(tmp_path / name, [["Foo", "Bar"], ["1", "2"]]))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    one = [cell.replace(delimiter, "/") for cell in ONE]
    records, _ = read(write_csv(tmp_path / "t.csv", [EN, one, ["v2", *one[1:]]], delimiter=delimiter))
    assert [record.id for record in records] == ["v1", "v2"]


def test_line_breaks_and_quotation_marks_in_cells_are_kept_and_lines_are_counted_right(tmp_path):
    rows = [["id", "text"], ["1", 'said "no"\nand left'], ["", "no id"], ["3", "cough"]]
    records, log = read(write_csv(tmp_path / "t.csv", rows))
    assert [record.text for record in records] == ['said "no"\nand left', "cough"]
    assert log.first.line == 4


def test_a_height_in_inches_does_not_open_a_quotation(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n1,height 5'10\" today\n2,cough", encoding="utf-8")
    records, log = read(tmp_path / "t.csv")
    assert [record.text for record in records] == ["height 5'10\" today", "cough"]
    assert log.rejected == 0


def test_a_row_with_more_cells_than_headings_is_refused_and_a_short_one_read(tmp_path):
    (tmp_path / "t.csv").write_text(
        "id,text,age\n1,fever, cough,45\n2,cough\n3,cough,4,,\n", encoding="utf-8"
    )
    records, log = read(tmp_path / "t.csv")
    assert [record.id for record in records] == ["2", "3"]
    assert (log.first.line, log.first.reason) == (2, "has 4 cells where the heading has 3")


def test_a_last_row_cut_off_inside_quotation_marks_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text('id,text\n1,cough\n2,"fever and', encoding="utf-8")
    records, log = read(tmp_path / "t.csv")
    assert [record.id for record in records] == ["1"]
    assert (log.first.line, log.first.reason) == (3, "the last row is cut off inside quotation marks")


def test_nul_bytes_and_a_gigantic_cell_are_survived(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(
        b"id,text\n1,co\x00ugh\n2," + b"x" * 20_000_000 + b"\n3," + b"y" * 300_000 + b"\n4,fever\n"
    )
    records, log = read(path)
    assert [(record.id, len(record.text)) for record in records] == [("1", 5), ("3", 200_000), ("4", 5)]
    assert log.cut_fields == 1
    assert log.first.line == 3
    assert "field larger than field limit" in log.first.reason


def test_a_packed_table_reads_and_a_broken_one_keeps_its_beginning(tmp_path):
    rows = [["id", "text"], *([str(n), f"cough {n * 7919 % 1000}"] for n in range(4000))]
    whole = gzip.compress(write_csv(tmp_path / "t.csv", rows).read_bytes())
    (tmp_path / "t.csv.gz").write_bytes(whole)
    assert len(read(tmp_path / "t.csv.gz")[0]) == 4000
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    records, log = read(tmp_path / "t.csv.gz")
    assert 500 < len(records) < 3500
    assert "ends early or is damaged" in log.first.reason


def test_numbers_and_dates_of_a_workbook_are_read_as_what_they_mean(tmp_path):
    rows = [
        ["id", "text", "age", "date", "sex"],
        [12, "cough", 45.0, dt.datetime.fromisoformat("2024-01-31T08:30"), 2],
        [13.0, 38.5],
    ]
    records, _ = read(write_xlsx(tmp_path / "t.xlsx", rows))
    assert [(r.id, r.text, r.age, r.date, r.sex) for r in records] == [
        ("12", "cough", 45, dt.date(2024, 1, 31), "F"),
        ("13", "38.5", None, None, None),
    ]


def test_the_first_sheet_with_records_is_read(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", [EN, ONE], before=[("About", [["Exported by"]]), ("Empty", [])])
    assert [record.id for record in read(path)[0]] == ["v1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\xd0\xcf\x11\xe0" + b"x" * 600, r"old \.xls"),
        (b"PK\x03\x04 broken", "not an Excel workbook"),
        (b"id,text\n1,cough\n", "not an Excel workbook"),
    ],
)
def test_what_is_no_workbook_is_an_error_that_says_what_to_do(tmp_path, content, message):
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.xlsx")


def test_an_archive_that_is_no_workbook_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InputError, match="the workbook is damaged"):
        read(tmp_path / "t.xlsx")


def test_every_shipped_heading_belongs_to_one_field_only():
    text = (
        columns.resources.files("wardround.records.readers").joinpath("data/headings.toml").read_text("utf-8")
    )
    table = tomllib.loads(text)
    squeezed = [columns.squeeze(heading) for headings in table.values() for heading in headings]
    assert len(squeezed) == len(set(squeezed))
    assert set(columns.fields()) == set(table)
