"""Telling English, Chinese and Japanese apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.language.detect import detect_language, served_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("K+ 5.9, no fever", "en"),
        ("β-blocker, 38.5°C, “stable”", "en"),
        ("Paciente con cefalea y náuseas", "en"),
        ("Patient 李 reports headache and nausea since Monday", "en"),
        ("右眼视物模糊伴眼痛3天", "zh"),
        ("头痛", "zh"),
        ("患者IOP OD 24mmHg OS 18mmHg", "zh"),
        ("高血壓病史十年", "zh"),
        ("右眼の視力低下", "ja"),
        ("高血圧", "ja"),
        ("検査所見", "ja"),
        ("糖尿病性網膜症、両眼", "ja"),
        ("主訴：頭痛", "ja"),
        ("ﾋﾟﾛﾘ菌陽性", "ja"),
        ("CTで右肺に浸潤影", "ja"),
    ],
)
def test_script_and_characters_tell_the_language(text, language):
    assert detect_language(text) == language


def test_a_stray_kana_does_not_make_chinese_japanese():
    assert (
        detect_language("患者服用の保健品后出现皮疹，伴瘙痒，无发热，否认药物过敏史，既往体健。" * 2) == "zh"
    )


def test_a_given_served_language_wins_and_another_is_detected():
    assert served_language("zh", "plain words") == "zh"
    assert served_language("es", "頭が痛い") == "ja"
    assert served_language(None, "头痛") == "zh"


@given(st.text(max_size=300))
def test_any_text_gets_a_served_language(text):
    assert detect_language(text) in {"en", "zh", "ja"}
