"""FHIR R4: bundles and bulk exports as hospitals' servers write them."""

import base64
import gzip
import json

import pytest
from wardround.errors import InputError
from wardround.records import RejectLog, read_records
from wardround.records.readers.fhir_text import fhir_tables, html_text
from wardround.settings import RecordsSettings

LENIENT = RecordsSettings(max_reject_share=1.0)
ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
LOINC = "http://loinc.org"
XHTML = '<div xmlns="http://www.w3.org/1999/xhtml">{}</div>'


def patient(key="p1", **more):
    return {
        "resourceType": "Patient",
        "id": key,
        "gender": "female",
        "birthDate": "1979-06-15",
        "name": [{"family": "Testperson", "given": ["Anna", "Maria"]}],
        "telecom": [{"system": "phone", "value": "555-123-4567"}],
        "identifier": [{"system": "urn:mrn", "value": "MRN0012345"}],
        "address": [{"line": ["12 Long Street"], "city": "Sampletown"}],
        **more,
    }


def encounter(key="e1", who="Patient/p1", **more):
    return {
        "resourceType": "Encounter",
        "id": key,
        "status": "finished",
        "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": "AMB"},
        "subject": {"reference": who},
        "serviceType": {"text": "Ophthalmology"},
        "period": {"start": "2024-01-31T08:30:00+01:00", "end": "2024-01-31T09:00:00+01:00"},
        "participant": [{"individual": {"reference": "Practitioner/d1", "display": "Dr. Vera Doctor"}}],
        **more,
    }


def condition(key, name, code=None, at="Encounter/e1", system=ICD10, **more):
    coding = [{"system": SNOMED, "code": "38341003", "display": name}]
    if code:
        coding.append({"system": system, "code": code})
    return {
        "resourceType": "Condition",
        "id": key,
        "subject": {"reference": "Patient/p1"},
        **({"encounter": {"reference": at}} if at else {}),
        "code": {"coding": coding, "text": name},
        **more,
    }


def document(key, text, at="Encounter/e1", kind="text/plain; charset=utf-8", encoding="utf-8", **more):
    return {
        "resourceType": "DocumentReference",
        "id": key,
        "status": "current",
        "subject": {"reference": "Patient/p1"},
        "context": {"encounter": [{"reference": at}]},
        "content": [
            {"attachment": {"contentType": kind, "data": base64.b64encode(text.encode(encoding)).decode()}}
        ],
        **more,
    }


def section(title, text, code=None, **more):
    return {
        **({"title": title} if title else {}),
        **({"code": {"coding": [{"system": LOINC, "code": code}]}} if code else {}),
        "text": {"status": "generated", "div": XHTML.format(text)},
        **more,
    }


def composition(key, sections, at="Encounter/e1"):
    return {
        "resourceType": "Composition",
        "id": key,
        "status": "final",
        "type": {"text": "Outpatient note"},
        "encounter": {"reference": at},
        "date": "2024-01-31",
        "author": [{"display": "Dr. Vera Doctor"}],
        "title": "Note",
        "section": sections,
    }


DOCTOR = {"resourceType": "Practitioner", "id": "d1", "name": [{"text": "Vera Doctor", "family": "Doctor"}]}
VISIT = [
    patient(),
    DOCTOR,
    encounter(diagnosis=[{"condition": {"reference": "Condition/c2"}, "rank": 1}]),
    condition("c1", "Hypertension", "I10"),
    condition("c2", "Primary open-angle glaucoma", "H40.11"),
    document("n1", "Blurred vision for a month.\nIOP 24 mmHg."),
]


def bundle(resources, kind="collection", url="https://example.org/fhir/{}/{}"):
    entries = [{"fullUrl": url.format(r["resourceType"], r.get("id")), "resource": r} for r in resources]
    return {"resourceType": "Bundle", "type": kind, "entry": entries}


def write_bundle(path, resources, **more):
    path.write_text(json.dumps(bundle(resources, **more), indent=1), encoding="utf-8")
    return path


def write_export(folder, resources, pack=False):
    folder.mkdir(exist_ok=True)
    kinds = {r["resourceType"] for r in resources}
    for kind in kinds:
        data = "".join(json.dumps(r) + "\n" for r in resources if r["resourceType"] == kind).encode()
        (folder / f"{kind}.ndjson{'.gz' if pack else ''}").write_bytes(gzip.compress(data) if pack else data)
    return folder


def read(path, settings=LENIENT):
    log = RejectLog()
    return list(read_records(path, settings=settings, rejects=log)), log


def check_visit(record):
    assert record.model_dump(mode="json") == {
        "id": "e1",
        "patient_id": "p1",
        "department": "Ophthalmology",
        "date": "2024-01-31",
        "age": 44.0,
        "sex": "F",
        "language": None,
        "text": "Blurred vision for a month.\nIOP 24 mmHg.",
        "views": None,
        "diagnoses": [
            {"name": "Primary open-angle glaucoma", "code": "H40.11"},
            {"name": "Hypertension", "code": "I10"},
        ],
        "choices": None,
    }


def test_a_bundle_is_joined_to_one_record_a_visit(tmp_path):
    [record], log = read(write_bundle(tmp_path / "b.json", VISIT))
    check_visit(record)
    assert {"Testperson", "Anna Maria Testperson", "555-123-4567", "MRN0012345", "12 Long Street"} <= set(
        record.identifiers
    )
    assert "Vera Doctor" in record.identifiers
    assert (log.rejected, log.parts_rejected, log.skipped) == (0, 0, 0)


@pytest.mark.parametrize("pack", [False, True])
def test_a_bulk_export_folder_is_joined_across_its_files(tmp_path, pack):
    [record], _ = read(write_export(tmp_path / "export", VISIT, pack))
    check_visit(record)


def test_one_ndjson_file_may_hold_every_kind_in_any_order(tmp_path):
    path = tmp_path / "all.ndjson"
    path.write_text("".join(json.dumps(r) + "\n" for r in reversed(VISIT)), encoding="utf-8")
    [record], _ = read(path)
    check_visit(record)


def test_a_folder_of_bundles_is_read_bundle_by_bundle(tmp_path):
    for number in range(3):
        text = json.dumps(bundle(VISIT)).replace('"e1"', f'"e{number}"').replace("/e1", f"/e{number}")
        (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"resourceType": "Bundle", "entry": [', encoding="utf-8")
    records, log = read(tmp_path)
    assert [record.id for record in records] == ["e0", "e1", "e2"]
    assert log.first.file.endswith("broken.json")


def test_references_by_uuid_find_their_targets(tmp_path):
    resources = json.loads(json.dumps(VISIT))
    uuids = {"Patient/p1": "urn:uuid:aaaa", "Encounter/e1": "urn:uuid:bbbb", "Condition/c2": "urn:uuid:cccc"}
    text = json.dumps(bundle(resources))
    for plain, uuid in uuids.items():
        text = text.replace(f'"https://example.org/fhir/{plain}"', f'"{uuid}"').replace(
            f'"{plain}"', f'"{uuid}"'
        )
    (tmp_path / "b.json").write_text(text, encoding="utf-8")
    [record], _ = read(tmp_path / "b.json")
    check_visit(record)


def test_a_patient_and_a_practitioner_may_share_an_id(tmp_path):
    doctor = {"resourceType": "Practitioner", "id": "p1", "gender": "male", "birthDate": "1950-01-01"}
    [record], _ = read(write_bundle(tmp_path / "b.json", [*VISIT, doctor]))
    check_visit(record)


def test_sections_come_under_their_titles_and_the_diagnosis_section_does_not_come_at_all(tmp_path):
    sections = [
        section("Chief complaint", "<p>Blurred <b>vision</b></p>"),
        section(None, "<p>For a month</p>", "10164-2"),
        section(
            "Findings", "<table><tr><td>IOP</td><td>24 mmHg</td></tr><tr><td>VA</td><td>0.5</td></tr></table>"
        ),
        section("What it is", "<p>Glaucoma</p>", "29548-5"),
        {"title": "Plan", "section": [section("Drops", "Timolol &lt; 0.5%<script>x()</script>")]},
    ]
    [record], _ = read(
        write_bundle(tmp_path / "b.json", [*VISIT[:5], composition("k1", sections)], kind="document")
    )
    assert record.text == (
        "Chief complaint:\nBlurred vision\nHistory of Present Illness:\nFor a month\n"
        "Findings:\nIOP 24 mmHg\nVA 0.5\nPlan:\nDrops:\nTimolol < 0.5%"
    )


def test_several_notes_of_a_visit_become_one_text(tmp_path):
    [record], _ = read(write_bundle(tmp_path / "b.json", [*VISIT, document("n2", "Second note.")]))
    assert record.text.endswith("IOP 24 mmHg.\n\nSecond note.")


def test_html_attachments_and_other_encodings_are_read(tmp_path):
    html = document("n1", "<html><body><p>視力低下</p><p>眼圧 24</p></body></html>", kind="text/html")
    [record], _ = read(write_bundle(tmp_path / "b.json", [*VISIT[:5], html]))
    assert record.text == "視力低下\n眼圧 24"
    sjis = document(
        "n1", "右目のかすみを訴えて来院", kind="text/plain;charset=Shift_JIS", encoding="shift_jis"
    )
    [record], _ = read(write_bundle(tmp_path / "b.json", [*VISIT[:5], sjis]))
    assert record.text == "右目のかすみを訴えて来院"


@pytest.mark.parametrize(
    ("broken", "kept", "reason"),
    [
        (patient(birthDate="long ago"), {"age": None}, "not a valid Patient: birthDate"),
        (encounter("e2", status=None), {}, "not a valid Encounter: status"),
        (condition("c1", "Hypertension", "I10", nonsense=1), {}, "not a valid Condition: nonsense"),
        (document("n2", "x", kind="application/pdf"), {}, "the attachment is application/pdf, not text"),
        (document("n2", "x", at="Encounter/gone"), {}, "its visit (encounter) is missing or was refused"),
        (document("n2", "x") | {"context": {}}, {}, "names no visit"),
        (document("n2", "x") | {"content": [{"attachment": {"url": "Binary/1"}}]}, {}, "is not inline"),
        (document("n2", " "), {}, "holds no text"),
        (document("n2", "x", kind="text/plain; charset=no-such"), {}, "not in the encoding that it declares"),
        (
            composition("k1", [section("Dx", "Glaucoma", "29548-5")]),
            {},
            "no narrative text besides the diagnosis",
        ),
    ],
)
def test_a_bad_resource_is_refused_with_its_reason_and_the_visit_is_kept(tmp_path, broken, kept, reason):
    same = (broken["resourceType"], broken["id"])
    resources = [r for r in VISIT if (r["resourceType"], r["id"]) != same]
    [record], log = read(write_bundle(tmp_path / "b.json", [*resources, broken]))
    assert record.id == "e1"
    assert all(getattr(record, field) == value for field, value in kept.items())
    assert reason in next(iter(log.reasons))
    assert log.rejected + log.parts_rejected == 1


def test_refuted_conditions_and_withdrawn_notes_are_left_out(tmp_path):
    refuted = condition(
        "c3", "Glaucoma suspect", "H40.0", verificationStatus={"coding": [{"code": "refuted"}]}
    )
    withdrawn = document("n2", "Wrong patient.", status="entered-in-error")
    [record], log = read(write_bundle(tmp_path / "b.json", [*VISIT, refuted, withdrawn]))
    check_visit(record)
    assert log.rejected == 0


def test_only_icd10_codes_are_taken_over_as_codes(tmp_path):
    other = condition("c1", "Hypertension", "38341003", system=SNOMED)
    who = condition("c2", "Glaucoma", "H40.1", system="urn:oid:2.16.840.1.113883.6.3")
    [record], _ = read(write_bundle(tmp_path / "b.json", [*VISIT[:3], other, who, VISIT[-1]]))
    assert [(item.name, item.code) for item in record.diagnoses] == [
        ("Glaucoma", "H40.1"),
        ("Hypertension", None),
    ]


def test_a_visit_without_a_note_is_passed_over_and_does_not_count_as_bad(tmp_path):
    [record], log = read(write_bundle(tmp_path / "b.json", [*VISIT, encounter("e2")]), RecordsSettings())
    assert record.id == "e1"
    assert log.reasons == {"the visit has no note": 1}
    assert (log.skipped, log.share) == (1, 0)


@pytest.mark.parametrize(
    ("born", "age"), [("1979", 45), ("1979-02", 44), ("1979-01-31", 45), ("1979-02-01", 44)]
)
def test_age_is_of_the_day_of_the_visit(tmp_path, born, age):
    [record], _ = read(write_bundle(tmp_path / "b.json", [patient(birthDate=born), *VISIT[1:]]))
    assert record.age == age


def test_too_many_bad_parts_stop_the_reading(tmp_path):
    bad = [condition(f"x{n}", "x", nonsense=1) for n in range(3)]
    with pytest.raises(InputError, match=r"3 of \d+ rows.*not a valid Condition"):
        read(write_bundle(tmp_path / "b.json", [*VISIT, *bad]), RecordsSettings())


def test_a_truncated_bundle_is_an_error_that_names_it(tmp_path):
    path = write_bundle(tmp_path / "b.json", VISIT)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"b\.json: holds no record.*not valid JSON"):
        read(path)


def test_a_last_ndjson_line_cut_off_costs_that_line_only(tmp_path):
    folder = write_export(
        tmp_path / "x", [*VISIT, encounter("e2"), document("n2", "Cough.", at="Encounter/e2")]
    )
    notes = folder / "DocumentReference.ndjson"
    notes.write_bytes(notes.read_bytes()[:-30])
    [record], log = read(folder)
    check_visit(record)
    assert (log.first.line, log.first.reason) == (2, "the last line is cut off")


def test_a_folder_without_anything_known_is_an_error(tmp_path):
    with pytest.raises(InputError, match="neither a FHIR export"):
        read(tmp_path)


def test_html_that_is_not_html_does_no_harm():
    assert html_text("a < b & c > d") == "a < b & c > d"
    assert html_text("<![") in (None, "", "<![")
    assert html_text("<div>" * 3000 + "deep") in (None, "deep")


def test_the_shipped_tables_load():
    tables = fhir_tables()
    assert ICD10 in tables.icd10_systems
    assert not tables.label_sections & tables.section_titles.keys()
