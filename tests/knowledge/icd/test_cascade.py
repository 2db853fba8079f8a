"""The coding cascade on ICD-10-CM: what it finds, by which stage, and what it never confuses."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.knowledge.icd import IcdCascade, Neighbour, Stage, load_code_system


@functools.cache
def cascade():
    return IcdCascade(load_code_system("icd10cm"))


@pytest.mark.parametrize(
    ("text", "code", "stage"),
    [
        ("E11.9", "E11.9", Stage.CODE),
        ("e119", "E11.9", Stage.CODE),
        ("s72001a", "S72.001A", Stage.CODE),
        ("Acute bronchitis", "J20", Stage.EXACT),
        ("ORTHOSTATIC  HYPOTENSION", "I95.1", Stage.EXACT),
        ("acute bronchitides", "J20", Stage.FUZZY),
        ("heart attack", "I21.9", Stage.ALIAS),
        ("T2DM", "E11", Stage.ALIAS),
        ("GERD", "K21.9", Stage.ALIAS),
        ("Hodgkin's disease", "C81.9", Stage.ALIAS),
        ("hypoparathyroidsm", "E20.9", Stage.FUZZY),
    ],
)
def test_each_stage_finds_its_kind_of_text(text, code, stage):
    match = cascade().map(text)
    assert (match.code, match.stage) == (code, stage)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("haemophilia", "hemophilia"),
        ("oesophageal varices", "esophageal varices"),
        ("tumour of the pituitary gland", "pituitary gland tumor"),
        ("renal cell carcinoma", "carcinoma, renal cell"),
        ("Wilson's disease", "Wilson disease"),
        ("cancer of the urinary bladder", "malignant neoplasm of bladder"),
        ("diabetes mellitus type II", "type 2 diabetes"),
        ("von Recklinghausen's disease", "von Recklinghausen disease"),
        ("stones in the gallbladder", "gallbladder stone"),
    ],
)
def test_spelling_word_order_and_word_form_do_not_matter(one, other):
    assert cascade().map(one).code == cascade().map(other).code is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hyperthyroidism", "hypothyroidism"),
        ("subclinical hyperthyroidism", "subclinical hypothyroidism"),
        ("hypertension", "hypotension"),
        ("hyperkalaemia", "hypokalaemia"),
        ("hyperglycaemic episode", "hypoglycaemic episode"),
        ("acute bronchitis", "chronic bronchitis"),
        ("benign neoplasm of stomach", "malignant neoplasm of stomach"),
        ("primary hyperparathyroidism", "secondary hyperparathyroidism"),
        ("type 1 diabetes mellitus", "type 2 diabetes mellitus"),
        ("acquired hypothyroidism", "congenital hypothyroidism"),
        ("fracture of left clavicle", "fracture of right clavicle"),
        ("systolic heart failure", "diastolic heart failure"),
    ],
)
def test_opposites_are_never_coded_alike(one, other):
    first, second = cascade().map(one), cascade().map(other)
    assert first.code is not None
    assert first.code != second.code


@pytest.mark.parametrize(
    "text", ["hyperthyroidsm", "hyperthyroidisms", "hyper-thyroidism", "hyperthyroidic state"]
)
def test_no_slip_turns_hyper_into_hypo(text):
    match = cascade().map(text, top_k=10)
    assert match.code is None or not match.code.startswith(("E00", "E01", "E02", "E03"))


def test_clutter_becomes_qualifiers():
    match = cascade().map("1. R/O acute appendicitis ?")
    assert match.code == "K35"
    assert match.qualifiers == ("suspected",)
    assert cascade().map("(2) pneumonia (left)").qualifiers == ("left",)
    assert cascade().map("s/p cholecystitis").qualifiers == ("history",)


def test_a_code_that_is_no_leaf_names_its_unspecified_leaf():
    match = cascade().map("type 2 diabetes")
    assert (match.code, match.leaf) == ("E11", "E11.9")
    billing = IcdCascade(cascade().system, prefer_leaf=True, wordings=cascade().wordings)
    assert billing.map("type 2 diabetes").code == "E11.9"
    assert billing.map("cholera").code == "A00.9"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("dfnb97", "H90.3"),
        ("autosomal recessive nonsyndromic deafness 97", "H90.3"),
        ("hereditary spastic paraplegia 92", "G11.4"),
        ("osteogenesis imperfecta type XVII", "Q78.0"),
        ("cataract 51", "Q12.0"),
        ("iddm31", "E10"),
    ],
)
def test_a_numbered_subtype_is_coded_as_its_hereditary_series(text, code):
    assert cascade().map(text).code == code


@pytest.mark.parametrize("text", ["", "   ", "?", "\x00", "qwrtz", "zxqj", "…", "😀"])
def test_what_means_nothing_is_plainly_unmapped(text):
    match = cascade().map(text)
    assert (match.stage, match.code, match.title) == (Stage.UNMAPPED, None, None)


def test_neighbours_are_asked_last_and_only_where_they_do_not_contradict():
    near = [Neighbour("hypothyroidism", "E03.9", 0.9), Neighbour("thyroid storm", None, 0.8)]
    assert cascade().map("zxqj", near).stage is Stage.NEIGHBOUR
    assert cascade().map("zxqj", near).code == "E03.9"
    assert cascade().map("asthma", near).stage is not Stage.NEIGHBOUR
    strict = IcdCascade(cascade().system, min_score=1.0, wordings=cascade().wordings)
    assert strict.map("hyperthyroidic zxqj", [Neighbour("hypothyroidic zxqj", "E03.9", 0.9)]).code is None


def test_cut_offs_turn_doubtful_matches_into_unmapped_ones_with_candidates():
    strict = IcdCascade(cascade().system, min_score=0.999, wordings=cascade().wordings)
    match = strict.map("hypoparathyroidsm")
    assert match.stage is Stage.UNMAPPED
    assert match.candidates[0].code == "E20.9"


def test_candidates_are_distinct_ordered_and_led_by_the_match():
    for text in ("heart attack", "painful swallowing", "chronic obstructive lung trouble", "E11.9"):
        match = cascade().map(text, top_k=10)
        scores = [candidate.score for candidate in match.candidates]
        codes = [candidate.code for candidate in match.candidates]
        assert scores == sorted(scores, reverse=True)
        assert len(set(codes)) == len(codes)
        assert match.code is None or codes[0] == match.code


def test_many_texts_give_what_each_gives_alone():
    texts = ["heart attack", "hypoparathyroidsm", "zxqj", "E11.9", "renal carcinoma metastatic to bone", ""]
    together = cascade().map_many(texts * 3)
    assert together == [cascade().map(text) for text in texts] * 3


def test_local_aliases_win_over_everything_else(tmp_path):
    path = tmp_path / "local.csv"
    path.write_text("alias,code\nheart attack,I21.4\nSpezi,K35.80\nnonsense,Z99999\n,I10\n", encoding="utf-8")
    local = IcdCascade(cascade().system, aliases=path)
    assert local.map("heart attack").code == "I21.4"
    assert local.map("spezi").stage is Stage.ALIAS
    assert [row.line for row in local.rejected_aliases] == [4, 5]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_no_text_raises(text):
    match = cascade().map(text)
    assert match.text == text
    assert 0.0 <= match.score <= 1.0
    assert (match.code is None) == (match.stage is Stage.UNMAPPED)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_no_byte_noise_raises(noise):
    cascade().map_many([noise.decode("latin-1"), noise.decode("utf-8", "surrogateescape")])


def test_the_same_text_gives_the_same_match_in_a_fresh_cascade():
    texts = ["hypoparathyroidsm", "renal carcinoma metastatic to bone", "painful swallowing"]
    fresh = IcdCascade(cascade().system)
    assert fresh.map_many(texts) == cascade().map_many(texts)
