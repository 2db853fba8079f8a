"""Damaged input of every format: records, rejects or one of our errors, never another exception."""

import csv
import gzip
import io
import json
import random

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wardround.errors import WardroundError
from wardround.records import OutpatientRecord, RejectLog, read_records
from wardround.settings import RecordsSettings

LENIENT = RecordsSettings(max_reject_share=1.0)
NOISE_PER_FORMAT = 200

ROWS = [
    {
        "id": f"r{n}",
        "department": "General practice",
        "date": "2024-01-31",
        "age": 40 + n,
        "sex": "F",
        "text": f"Chief complaint: cough for {n} days.\nExam: T 38.{n}, 咽部充血。\nAssessment: bronchitis",
        "views": {"history": "発熱と咳が続いている"},
        "diagnoses": [{"name": "Bronchitis", "code": "J40"}],
    }
    for n in range(6)
]
TABLE = [
    ["Visit ID", "主诉", "History", "Exam", "Diagnosis", "ICD-10", "Age", "Date"],
    *(
        [
            f"v{n}",
            "咳嗽, 发热",
            f'{n} "days"',
            "BP\n120/80",
            "Flu; Asthma",
            "J11;J45",
            40 + n,
            "2024-01-31",
        ]
        for n in range(6)
    ),
]
FHIR = [
    {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1979-06-15"},
    {
        "resourceType": "Encounter",
        "id": "e1",
        "status": "finished",
        "class": {"code": "AMB"},
        "subject": {"reference": "Patient/p1"},
        "period": {"start": "2024-01-31T08:30:00Z"},
        "diagnosis": [{"condition": {"reference": "Condition/c1"}, "rank": 1}],
    },
    {
        "resourceType": "Condition",
        "id": "c1",
        "subject": {"reference": "Patient/p1"},
        "encounter": {"reference": "Encounter/e1"},
        "code": {
            "coding": [{"system": "http://hl7.org/fhir/sid/icd-10", "code": "J40"}],
            "text": "Bronchitis",
        },
    },
    {
        "resourceType": "Composition",
        "id": "k1",
        "status": "final",
        "type": {"text": "Note"},
        "encounter": {"reference": "Encounter/e1"},
        "date": "2024-01-31",
        "author": [{"display": "Someone"}],
        "title": "Note",
        "section": [
            {
                "title": "Complaint",
                "text": {
                    "status": "generated",
                    "div": "<div><p>Cough</p><table><tr><td>T</td></tr></table></div>",
                },
            }
        ],
    },
    {
        "resourceType": "DocumentReference",
        "id": "d1",
        "status": "current",
        "context": {"encounter": [{"reference": "Encounter/e1"}]},
        "content": [
            {"attachment": {"contentType": "text/html", "data": "PHA+Q291Z2ggZm9yIHRocmVlIGRheXM8L3A+"}}
        ],
    },
]
MIMIC = {
    "discharge": "note_id,subject_id,hadm_id,text\n"
    + "".join(f'n{n},1,{n},"Service: MED\ncough {n}"\n' for n in range(6)),
    "admissions": "hadm_id,admittime\n" + "".join(f"{n},2150-01-0{n + 1} 10:00:00\n" for n in range(6)),
    "diagnoses_icd": "hadm_id,seq_num,icd_code,icd_version\n" + "".join(f"{n},1,J40,10\n" for n in range(6)),
    "patients": "subject_id,gender,anchor_age,anchor_year\n1,F,60,2150\n",
}  # fmt: skip


def json_lines(rows, encoding="utf-8"):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(encoding)


def csv_bytes(encoding="utf-8"):
    buffer = io.StringIO()
    csv.writer(buffer).writerows(TABLE)
    return buffer.getvalue().encode(encoding)


def xlsx_bytes():
    book = openpyxl.Workbook()
    for row in TABLE:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def bundle(resources=FHIR):
    return json.dumps(
        {"resourceType": "Bundle", "type": "collection", "entry": [{"resource": r} for r in resources]}
    )


ONE_FILE = {
    "a.jsonl": json_lines(ROWS),
    "gb.jsonl": json_lines(
        [row | {"views": {"history": "发热、咳嗽三天，伴咽痛。"}} for row in ROWS], "gb18030"
    ),
    "wide.jsonl": json_lines(ROWS, "utf-16"),
    "a.jsonl.gz": gzip.compress(json_lines(ROWS)),
    "a.csv": csv_bytes(),
    "a.csv.gz": gzip.compress(csv_bytes("gb18030")),
    "a.xlsx": xlsx_bytes(),
    "a.json": bundle().encode(),
    "a.ndjson": json_lines(FHIR),
}


def damage(data, chance):
    """Bytes with some changed, removed, doubled, moved or cut off."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(7)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 40)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(1, 200)]
        elif kind == 3:
            data[at:at] = chance.choice(
                [b"\x00", b'"', b"\n", b"{", b"[", b"]", b",", b"\xff", b"\xef\xbb\xbf", b"\\"]
            )
        elif kind == 4:
            data[at:at] = chance.choice(
                [b"NaN", b"1e999", b"9" * 5000, b"[" * 3000, b"null", b"\\ud83d", b"-"]
            )
        elif kind == 5:
            del data[at:]
        else:
            data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def survives(path, **more):
    log, message = RejectLog(), ""
    try:
        for record in read_records(path, settings=LENIENT, rejects=log, **more):
            assert isinstance(record, OutpatientRecord)
            record.model_dump_json().encode("utf-8")
    except WardroundError as error:
        message = str(error)
    assert not message or str(path) in message
    return log


@pytest.mark.parametrize("name", sorted(ONE_FILE))
def test_the_undamaged_file_reads_whole(tmp_path, name):
    (tmp_path / name).write_bytes(ONE_FILE[name])
    log = survives(tmp_path / name)
    assert log.accepted >= 1
    assert log.rejected + log.parts_rejected == 0


@pytest.mark.parametrize("name", sorted(ONE_FILE))
def test_byte_noise_gives_records_rejects_or_our_errors(tmp_path, name):
    chance = random.Random(f"noise {name}")
    for _ in range(NOISE_PER_FORMAT):
        (tmp_path / name).write_bytes(damage(ONE_FILE[name], chance))
        survives(tmp_path / name)


def test_byte_noise_in_a_bulk_export_gives_records_rejects_or_our_errors(tmp_path):
    chance = random.Random("noise export")
    for _ in range(NOISE_PER_FORMAT):
        for resource in FHIR:
            data = json_lines([resource])
            damaged = damage(data, chance) if chance.random() < 0.4 else data
            (tmp_path / f"{resource['resourceType']}.ndjson").write_bytes(damaged)
        survives(tmp_path)


def test_byte_noise_in_mimic_tables_gives_records_rejects_or_our_errors(tmp_path):
    chance = random.Random("noise mimic")
    for _ in range(NOISE_PER_FORMAT):
        for name, text in MIMIC.items():
            data = damage(text.encode(), chance) if chance.random() < 0.4 else text.encode()
            (tmp_path / f"{name}.csv").write_bytes(data)
        survives(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["2024-01-31", "F"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
quiet = settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def swapped(value, place, new):
    """The value with one of its parts, counted in order, replaced."""
    count = iter(range(10_000))

    def walk(part):
        if next(count) == place:
            return new
        if isinstance(part, dict):
            return {key: walk(item) for key, item in part.items()}
        return [walk(item) for item in part] if isinstance(part, list) else part

    return walk(value)


@given(
    field=st.sampled_from(sorted([*ROWS[0], "choices", "identifiers", "language", "patient_id"])),
    value=json_values,
)
@quiet
def test_any_json_value_in_any_field_of_a_record_is_survived(tmp_path, field, value):
    path = tmp_path / "a.jsonl"
    path.write_bytes((json.dumps(ROWS[0] | {field: value}) + "\n").encode())
    log = survives(path)
    assert log.rows == 1


@given(place=st.integers(0, 60), value=json_values)
@quiet
def test_any_json_value_in_any_place_of_a_bundle_is_survived(tmp_path, place, value):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(swapped(json.loads(bundle()), place, value)), encoding="utf-8")
    survives(path, format="fhir")


cells = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats() | st.text(max_size=20)


@given(rows=st.lists(st.lists(cells, max_size=9), max_size=4))
@quiet
def test_any_cells_below_the_headings_are_survived(tmp_path, rows):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([*TABLE[:2], *rows])
    (tmp_path / "a.csv").write_bytes(buffer.getvalue().encode("utf-8", "surrogatepass"))
    survives(tmp_path / "a.csv")
