"""One name for a department, in three languages and misspelt."""

import pytest
from wardround.knowledge.departments import known_departments, normalise_department


@pytest.mark.parametrize(
    "written",
    [
        "Ophthalmology",
        "ophthalmolgy",
        "Dept. of Ophthalmology",
        "眼科",
        "眼科门诊",
        "Eye clinic",
        "OPHTHALMOLOGY ",
    ],
)
def test_every_way_of_writing_ophthalmology_is_ophthalmology(written):
    assert normalise_department(written) == "ophthalmology"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("全科", "general_practice"),
        ("総合診療科", "general_practice"),
        ("GP", "general_practice"),
        ("内科", "internal_medicine"),
        ("整形外科", "orthopaedics"),
        ("Obstetrics and Gynecology", "gynaecology"),
        ("pediatrics", "paediatrics"),
    ],
)
def test_names_in_three_languages_meet(written, canonical):
    assert normalise_department(written) == canonical
    assert canonical in known_departments()


def test_one_chinese_character_makes_another_department():
    assert normalise_department("神经内科") == "neurology"
    assert normalise_department("肾内科") == "nephrology"


def test_an_unknown_department_keeps_its_own_name_and_none_stays_none():
    assert normalise_department("Space medicine") == "space medicine"
    assert normalise_department(None) is None
    assert normalise_department("  ") is None


def test_neurology_is_not_taken_for_urology():
    assert normalise_department("Neurology") != normalise_department("Urology")
