"""When two diagnoses count as the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.knowledge.labels import (
    LabelMode,
    LabelSpace,
    category_of,
    label_of,
    name_rules,
    normalise_code,
    normalise_name,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Atopic Dermatitis", "atopic dermatitis "),
        ("Hirschsprung's disease", "Hirschsprung’s disease"),
        ("Attention-deficit/hyperactivity disorder", "Attention deficit hyperactivity disorder"),
        ("Chronic obstructive pulmonary disease (COPD)", "chronic obstructive pulmonary disease"),
        ("Iron deficiency anaemia", "Iron-deficiency anemia"),
        ("Oesophageal varices", "Esophageal varices"),
        ("Gallstones", "Gallstone"),
        ("Sjögren syndrome", "Sjogren's syndrome"),
        ("２型糖尿病", "2型糖尿病"),
        ("糖尿病　２型", "糖尿病2型"),
        ("左侧膝关节炎", "左膝关节炎"),
    ],
)
def test_the_same_diagnosis_written_differently_is_one_label(one, other):
    assert normalise_name(one) == normalise_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Diabetes mellitus (type 1)", "Diabetes mellitus (type 2)"),
        ("Hyperthyroidism", "Hypothyroidism"),
        ("左膝関節痛", "右膝関節痛"),
        ("Scabies", "Scab"),
        ("Diabetes insipidus", "Diabetes mellitus"),
        ("1型糖尿病", "2型糖尿病"),
    ],
)
def test_different_diagnoses_stay_apart(one, other):
    assert normalise_name(one) != normalise_name(other)


@given(st.text(min_size=1, max_size=40))
def test_a_name_normalises_to_something_unless_it_is_blank(name):
    assert normalise_name(name) or not name.strip()


def test_codes_are_compared_by_category_and_need_to_be_icd_10():
    assert category_of("h40.211") == "H40"
    assert category_of("H40211") == "H40"
    assert category_of("U07.1") == "U07"
    assert category_of("12345") is None
    assert category_of("") is None
    assert normalise_code(" e11.9 ") == "E119"


def test_auto_compares_categories_where_both_have_codes_and_names_where_neither_has():
    assert label_of("Primary open-angle glaucoma", "H40.11") == label_of("Acute glaucoma", "H40.2")
    assert label_of("Glaucoma", None) == label_of("glaucoma", None)
    assert label_of("Glaucoma", "H40.1", LabelMode.NAME) == "glaucoma"
    assert label_of("Glaucoma", "H40.11", LabelMode.CODE) != label_of("Glaucoma", "H40.2", LabelMode.CODE)


def test_an_uncoded_record_takes_the_label_that_its_name_has_elsewhere():
    space = LabelSpace.of([("Gout", "M10.9"), ("gout", None), ("Gouty arthritis", "M10.0"), ("Asthma", None)])
    assert len(space) == 2
    assert space.number("Gout", None) == space.number("Gouty arthritis", "M10.0")
    assert space.number("Asthma") != space.number("Gout")
    assert space.number("Never seen") == -1


def test_labels_do_not_depend_on_the_order_of_the_records():
    given_names = [("B", None), ("a", "J45.0"), ("A", "J45.9"), ("b", None)]
    assert LabelSpace.of(given_names).keys == LabelSpace.of(given_names[::-1]).keys
    assert LabelSpace.of(given_names).names == LabelSpace.of(given_names[::-1]).names


def test_the_shipped_rules_fold_no_word_into_nothing():
    assert all(left and right for left, right in name_rules().spelling)
