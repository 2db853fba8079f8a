"""Department rules: who cannot have it, what a value speaks for, which side."""

import math

import pytest
from wardround.errors import InputError
from wardround.knowledge.demographics import demographics_of
from wardround.knowledge.rules import DepartmentRules, shipped_rules

GLAUCOMA = ("Primary open-angle glaucoma", "H40.11")


@pytest.mark.parametrize(
    "text",
    ["IOP OD 42 mmHg", "Intraocular pressure was 28", "眼压：右42mmHg", "右眼圧 35 mmHg", "眼压 ３６ mmHg"],
)
def test_a_high_eye_pressure_supports_glaucoma_in_any_language(text):
    active = shipped_rules().active(text, department="眼科")
    assert active.total(*GLAUCOMA) > 0
    assert active.total("Conjunctivitis", "H10.9") == 0


def test_a_normal_eye_pressure_supports_nothing():
    assert shipped_rules().active("IOP 15 mmHg both eyes", department="眼科").total(*GLAUCOMA) == 0


def test_a_rule_of_the_eye_clinic_is_silent_in_cardiology():
    assert shipped_rules().active("IOP 42 mmHg", department="Cardiology").total(*GLAUCOMA) == 0


@pytest.mark.parametrize(
    ("diagnosis", "sex", "age"),
    [
        (("Benign prostatic hyperplasia", "N40.1"), "F", 60.0),
        (("Ovarian cyst", None), "M", 30.0),
        (("子宫肌瘤", None), "M", 30.0),
        (("前立腺肥大症", "N40"), "F", 70.0),
        (("Pre-eclampsia", "O14.9"), "F", 75.0),
        (("Age-related cataract", "H25.9"), "F", 9.0),
    ],
)
def test_what_a_patient_cannot_have_is_all_but_excluded(diagnosis, sex, age):
    active = shipped_rules().active("", age=age, sex=sex)
    assert active.total(*diagnosis) <= -3
    assert active.effects(*diagnosis)[0].reason


def test_what_is_not_known_of_a_patient_excludes_nothing():
    assert shipped_rules().active("", age=math.nan, sex=None).total("Ovarian cyst", "N83.2") == 0


def test_a_diagnosis_of_the_other_side_loses():
    active = shipped_rules().active("Pain in the right knee for two days")
    assert active.total("Left knee osteoarthritis") < 0
    assert active.total("Right knee osteoarthritis") == 0
    assert shipped_rules().active("右膝和左膝疼痛").total("左膝骨关节炎") == 0


def test_each_effect_says_its_rule_and_reason():
    effect = shipped_rules().active("HbA1c 9.1 %").effects("Type 2 diabetes mellitus", "E11.9")[0]
    assert effect.rule == "hba1c"
    assert "6.5" in effect.reason


def test_a_rule_without_a_threshold_is_refused(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(
        "[[finding]]\nid='x'\npattern='(?P<value>1)'\ncodes=['A']\neffect=1.0\nreason='r'\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="above or below"):
        DepartmentRules.load(path)


@pytest.mark.parametrize(
    ("text", "age", "sex"),
    [
        ("A 22-year-old man presents with cough", 22, "M"),
        ("6-month-old girl with fever", 0.5, "F"),
        ("患者，女，45岁，头痛三天", 45, "F"),
        ("72歳男性。胸痛を主訴に来院", 72, "M"),
        ("67 yo F with dyspnea", 67, None),
    ],
)
def test_age_and_sex_are_read_from_the_text_where_fields_are_silent(text, age, sex):
    found_age, found_sex = demographics_of(text)
    assert found_age == pytest.approx(age, abs=0.05)
    if sex:
        assert found_sex == sex


def test_fields_win_over_the_text():
    assert demographics_of("A 22-year-old man", age=50, sex="女") == (50, "F")
