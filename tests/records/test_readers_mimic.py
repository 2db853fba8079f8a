"""MIMIC-IV: the folder as PhysioNet lays it out, with invented content."""

import csv
import gzip
import io

import pytest
from wardround.errors import InputError
from wardround.records import RejectLog, read_records
from wardround.settings import RecordsSettings

LENIENT = RecordsSettings(max_reject_share=1.0)
NOTE = (
    " \nName:  ___\nService: MEDICINE\n\nChief Complaint:\ncough, fever\n\nDischarge Diagnosis:\nPneumonia\n"
)
TABLES = {
    "note/discharge": [
        ["note_id", "subject_id", "hadm_id", "note_type", "note_seq", "charttime", "storetime", "text"],
        ["11-DS-1", "11", "201", "DS", "1", "2150-03-04 00:00:00", "", NOTE],
        ["12-DS-1", "12", "202", "DS", "1", "2131-01-01 00:00:00", "", NOTE.replace("MEDICINE", "SURGERY")],
    ],
    "hosp/admissions": [
        ["subject_id", "hadm_id", "admittime", "dischtime", "admission_type"],
        ["11", "201", "2150-03-01 10:00:00", "2150-03-04 10:00:00", "EW EMER."],
        ["12", "202", "2130-12-29 10:00:00", "2131-01-01 10:00:00", "EW EMER."],
    ],
    "hosp/diagnoses_icd": [
        ["subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"],
        ["11", "201", "2", "I10", "10"],
        ["11", "201", "1", "J189", "10"],
        ["12", "202", "1", "V4581", "9"],
        ["12", "202", "2", "4019", "9"],
    ],
    "hosp/patients": [
        ["subject_id", "gender", "anchor_age", "anchor_year", "anchor_year_group", "dod"],
        ["11", "F", "60", "2148", "2008 - 2010", ""],
        ["12", "M", "50", "2130", "2008 - 2010", ""],
    ],
    "hosp/d_icd_diagnoses": [
        ["icd_code", "icd_version", "long_title"],
        ["J189", "10", "Pneumonia, unspecified organism"],
        ["I10", "10", "Essential (primary) hypertension"],
        ["4019", "9", "Unspecified essential hypertension"],
    ],
    "hosp/services": [
        ["subject_id", "hadm_id", "transfertime", "prev_service", "curr_service"],
        ["12", "202", "2130-12-31 10:00:00", "MED", "CSURG"],
        ["12", "202", "2130-12-29 10:00:00", "", "MED"],
    ],
}


def write(folder, tables, pack=True):
    for name, rows in tables.items():
        buffer = io.StringIO()
        csv.writer(buffer).writerows(rows)
        path = folder / f"{name}.csv{'.gz' if pack else ''}"
        path.parent.mkdir(exist_ok=True, parents=True)
        data = buffer.getvalue().encode()
        path.write_bytes(gzip.compress(data) if pack else data)
    return folder


def read(path, settings=LENIENT):
    log = RejectLog()
    return list(read_records(path, settings=settings, rejects=log)), log


@pytest.mark.parametrize("pack", [False, True])
def test_notes_are_joined_with_admission_patient_diagnoses_and_service(tmp_path, pack):
    [first, second], log = read(write(tmp_path, TABLES, pack))
    assert first.model_dump(mode="json") == {
        "id": "11-DS-1",
        "patient_id": "11",
        "department": "MEDICINE",
        "date": "2150-03-01",
        "age": 62.0,
        "sex": "F",
        "language": None,
        "text": NOTE.strip(),
        "views": None,
        "diagnoses": [
            {"name": "Pneumonia, unspecified organism", "code": "J18.9"},
            {"name": "Essential (primary) hypertension", "code": "I10"},
        ],
        "choices": None,
    }
    assert (second.department, second.age, second.sex) == ("CSURG", 50, "M")
    assert (log.rejected, log.parts_rejected, log.parts_accepted) == (0, 0, 13)


def test_an_icd9_code_is_never_passed_off_as_an_icd10_code(tmp_path):
    second = read(write(tmp_path, TABLES))[0][1]
    assert [(item.name, item.code) for item in second.diagnoses] == [
        ("ICD-9 V4581", None),
        ("Unspecified essential hypertension", None),
    ]


def test_the_optional_tables_may_be_missing(tmp_path):
    needed = {"note/discharge", "hosp/admissions", "hosp/diagnoses_icd"}
    first, second = read(write(tmp_path, {name: TABLES[name] for name in needed}))[0]
    assert (first.age, first.sex, second.department) == (None, None, "SURGERY")
    assert [(item.name, item.code) for item in first.diagnoses] == [("J18.9", "J18.9"), ("I10", "I10")]


@pytest.mark.parametrize("gone", ["hosp/admissions", "hosp/diagnoses_icd"])
def test_a_missing_needed_table_is_an_error_that_names_it(tmp_path, gone):
    with pytest.raises(InputError, match=rf"{gone.split('/')[1]}\.csv or .* is missing"):
        read(write(tmp_path, {name: rows for name, rows in TABLES.items() if name != gone}))


def test_a_table_with_other_columns_is_an_error_that_names_them(tmp_path):
    tables = TABLES | {"hosp/admissions": [["subject_id", "stay_id"], ["11", "1"]]}
    with pytest.raises(InputError, match=r"admissions\.csv\.gz: has no column hadm_id, admittime"):
        read(write(tmp_path, tables))


def test_a_file_given_as_mimic_is_an_error(tmp_path):
    path = write(tmp_path, TABLES, pack=False) / "note" / "discharge.csv"
    with pytest.raises(InputError, match="read from a folder"):
        list(read_records(path, settings=LENIENT, rejects=RejectLog(), format="mimic"))


def test_bad_rows_of_any_table_are_refused_with_file_and_line(tmp_path):
    notes = [*TABLES["note/discharge"], ["13-DS-1", "13", "", "DS", "1", "", "", "x"]]
    notes += [["14-DS-1", "14", "999", "DS", "1", "", "", "x"], ["15-DS-1", "15"]]
    codes = [
        *TABLES["hosp/diagnoses_icd"],
        ["11", "201", "first", "J189", "10"],
        ["11", "201", "3", "J189", "11"],
    ]
    log = RejectLog(tmp_path / "rejects.jsonl")
    folder = write(tmp_path / "mimic", TABLES | {"note/discharge": notes, "hosp/diagnoses_icd": codes})
    records = list(read_records(folder, settings=LENIENT, rejects=log))
    assert [record.id for record in records] == ["11-DS-1", "12-DS-1"]
    assert (log.rejected, log.parts_rejected) == (3, 2)
    assert log.reasons == {
        "hadm_id, seq_num, icd_code or icd_version is not what MIMIC-IV has there": 2,
        "the note has no hadm_id": 1,
        "its hadm_id is not in admissions": 1,
        "has 2 cells where the heading has 8": 1,
    }


def test_a_truncated_note_table_keeps_its_beginning(tmp_path):
    notes = TABLES["note/discharge"][:1] + [
        [f"11-DS-{n}", "11", "201", "DS", str(n), "", "", f"cough {n * 7919 % 1000} " * 20]
        for n in range(3000)
    ]
    folder = write(tmp_path, TABLES | {"note/discharge": notes})
    path = folder / "note" / "discharge.csv.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    records, log = read(folder)
    assert 500 < len(records) < 2500
    assert any("ends early or is damaged" in reason for reason in log.reasons)
