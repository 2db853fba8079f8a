"""Code systems out of packages and out of anybody's CSV."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.errors import InputError, SettingsError
from wardround.knowledge.icd import load_code_system
from wardround.knowledge.icd.csv_list import read_csv_list
from wardround.knowledge.icd.system import category_of


def test_icd10cm_has_titles_terms_parents_and_seventh_characters():
    system = load_code_system("icd10cm")
    assert system.title_of("e11.9") == "Type 2 diabetes mellitus without complications"
    assert system.title_of("S72001A").endswith("initial encounter for closed fracture")
    row = system.row_of("A00.1")
    assert system.codes[system.parents[row]] == "A00"
    assert system.is_leaf(row)
    assert any(term.row == row and term.text == "Cholera eltor" for term in system.terms)
    assert category_of("e11.9") == "E11"


def test_the_second_load_equals_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("WARDROUND_CACHE", str(tmp_path))
    load_code_system.cache_clear()
    first = load_code_system("icd10cm")
    load_code_system.cache_clear()
    second = load_code_system("icd10cm")
    load_code_system.cache_clear()
    assert first is not second
    assert first == second


def test_a_damaged_cache_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("WARDROUND_CACHE", str(tmp_path))
    load_code_system.cache_clear()
    first = load_code_system("icd10")
    for stored in tmp_path.rglob("*.npz"):
        stored.write_bytes(stored.read_bytes()[:1000])
    load_code_system.cache_clear()
    assert load_code_system("icd10") == first
    load_code_system.cache_clear()


def test_who_icd10_is_another_system():
    system = load_code_system("icd10")
    assert system.title_of("I84.9") is None or system.name == "icd10"
    assert system.title_of("A00.0") == "Cholera due to Vibrio cholerae 01, biovar cholerae"


@pytest.mark.parametrize(
    ("code", "leaf"),
    [
        ("E11", "E11.9"),
        ("A00", "A00.9"),
        ("G43", "G43.909"),
        ("E05", "E05.90"),
        ("S72", "S72.90"),
        ("I10", "I10"),
    ],
)
def test_the_unspecified_leaf_says_no_more_than_its_parent(code, leaf):
    system = load_code_system("icd10cm")
    assert system.codes[system.unspecified_leaf(system.row_of(code))] == leaf


def test_neither_a_name_nor_a_file_is_an_error():
    with pytest.raises(SettingsError, match="icd11"):
        load_code_system("icd11")


ZH = "编码,疾病名称,别名\nI10.x00,原发性高血压,高血压病；高血压\nE11.900,2型糖尿病,\nJ18.900,肺炎,肺部感染\n"
JA = """コード,病名
I10,本態性高血圧（症）
E11.9,２型糖尿病、合併症を伴わないもの
J18.9,肺炎，詳細不明のウイルスによらないもの
"""


@pytest.mark.parametrize(
    ("text", "encoding", "language"),
    [(ZH, "utf-8", "zh"), (ZH, "utf-8-sig", "zh"), (ZH, "gb18030", "zh"), (ZH, "utf-16", "zh"),
     (JA, "utf-8", "ja"), (JA, "cp932", "ja")],
)  # fmt: skip
def test_a_code_list_is_read_in_each_encoding(tmp_path, text, encoding, language):
    path = tmp_path / "list.csv"
    path.write_bytes(text.encode(encoding))
    system = read_csv_list(path)
    assert system.language == language
    assert len(system) == 3
    assert "高血" in system.titles[0]


def test_headings_are_found_by_name_in_any_order_and_may_be_missing(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("Description;ICD Code\nAsthma;J45\n", encoding="utf-8")
    assert (read_csv_list(path).codes, read_csv_list(path).titles) == (["J45"], ["Asthma"])
    path.write_text("J45,Asthma,BA|wheezing disease\nJ45.9,Asthma unspecified\n", encoding="utf-8")
    system = read_csv_list(path)
    assert system.parents == [-1, 0]
    assert [term.text for term in system.terms] == ["BA", "wheezing disease"]


def test_bad_rows_are_skipped_with_line_and_reason(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("code,title\nJ45,Asthma\n,No code\nJ46,\nonly\n!!,x\nJ45,Asthma too\n", encoding="utf-8")
    system = read_csv_list(path)
    assert [row.line for row in system.rejected] == [3, 4, 5, 6]
    assert all(row.reason for row in system.rejected)
    assert [term.text for term in system.terms] == ["Asthma too"]


def test_a_list_without_one_usable_row_is_an_input_error(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("code,title\n", encoding="utf-8")
    with pytest.raises(InputError, match="no usable row"):
        read_csv_list(path)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_list_or_an_input_error(tmp_path_factory, noise):
    path = tmp_path_factory.mktemp("noise") / "list.csv"
    path.write_bytes(b"code,title\nJ45,Asthma\n" + noise)
    with contextlib.suppress(InputError):
        assert len(read_csv_list(path)) >= 1
