"""Telling a record with evidence from one that only states its diagnosis."""

import pytest
from wardround.records import OutpatientRecord, demo_records, views_of
from wardround.records.readers.evidence import has_evidence


@pytest.mark.parametrize(
    ("text", "diagnosis"),
    [
        ("Essential hypertension", "Essential hypertension"),
        ("Diagnosis: Essential hypertension (I10).", "Essential hypertension"),
        ("Assessment:\nEssential hypertension, uncontrolled on two drugs for many years", "Hypertension"),
        ("诊断：高血压病", "高血压病"),
        ("初步诊断：右眼白内障", "白内障"),
        ("診断：肺炎", "肺炎"),
    ],
)
def test_a_text_that_only_states_the_diagnosis_is_no_evidence(text, diagnosis):
    assert not has_evidence(OutpatientRecord(id="x", text=text, diagnoses=[{"name": diagnosis}]))


@pytest.mark.parametrize(
    ("text", "diagnosis"),
    [
        ("Cough for three days. Diagnosis: bronchitis", "Bronchitis"),
        ("Diagnosis: bronchitis\nHPI: cough for three days", "Bronchitis"),
        ("主诉：咳嗽3天\n诊断：支气管炎", "支气管炎"),
        ("主訴：咳\n診断：気管支炎", "気管支炎"),
    ],
)
def test_a_text_that_says_more_is_evidence(text, diagnosis):
    assert has_evidence(OutpatientRecord(id="x", text=text, diagnoses=[{"name": diagnosis}]))


def test_the_short_cut_says_what_splitting_says():
    for record in demo_records()[:200]:
        assert has_evidence(record) == bool(views_of(record))
