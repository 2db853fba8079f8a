"""What the sparse channel sees of a clinical text."""

import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.language import segmenters
from wardround.language.stemming import light_stem
from wardround.language.tokenizers import (
    ChineseTokenizer,
    ClinicalTokenizer,
    EnglishTokenizer,
    JapaneseTokenizer,
    stop_words,
)

ENGLISH = EnglishTokenizer()
CLINICAL = ClinicalTokenizer()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("K+ was 5.9 today", ["k+", "5.9"]),
        ("T4 low, pO2 60", ["t4", "po2", "60"]),
        ("BP 120/80 mmHg", ["120/80", "mmhg"]),
        ("a β-blocker and an x-ray", ["β-blocker", "x-ray"]),
        ("38.5°C or 38.5℃", ["38.5°c", "38.5°c"]),
        ("IOP 28, SpO2 90%, edema 2+", ["iop", "spo2", "90%", "2+"]),
        ("no fever, not tender, without rash", ["no", "not", "without"]),
    ],
)
def test_clinical_tokens_are_kept_whole(text, kept):
    terms = ENGLISH.tokenize(text)
    assert [term for term in terms if term in kept] == kept


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("３８．５℃", "38.5°C"),
        ("type Ⅱ", "type 2"),
        ("type II diabetes", "type 2 diabetes"),
        ("Ulcers", "ulcer"),
        ("Crohn's disease", "Crohn disease"),
        ("non-tender", "non tender"),
        ("µg", "μg"),
        ("5mg", "5 mg"),
    ],
)
def test_spellings_of_the_same_thing_give_the_same_terms(one, other):
    assert ENGLISH.tokenize(one) == ENGLISH.tokenize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hyperthyroidism", "hypothyroidism"),
        ("K+", "K"),
        ("T3", "T4"),
        ("IV fluids", "4 fluids"),
        ("5.9", "59"),
    ],
)
def test_things_that_differ_give_different_terms(one, other):
    assert ENGLISH.tokenize(one) != ENGLISH.tokenize(other)


def test_stop_words_are_left_out_and_no_negation_is_one():
    assert ENGLISH.tokenize("the patient is in the ward") == ENGLISH.tokenize("patient ward")
    words = stop_words()
    assert not {"no", "not", "without", "denies", "never", "nor"} & set(words.en)
    assert not {"无", "未", "不", "没有", "否认", "非"} & set(words.zh)
    assert not {"無い", "ない", "なし", "ず"} & set(words.ja)


def test_stemming_joins_kindred_words_and_leaves_short_and_mixed_ones():
    assert light_stem("ulcerated") == light_stem("ulcers") == light_stem("ulceration")
    assert [light_stem(word) for word in ("gas", "pus", "k+", "t4", "ache")] == [
        "gas",
        "pus",
        "k+",
        "t4",
        "ache",
    ]


def test_chinese_is_cut_into_words_with_its_negations_and_measurements():
    terms = ChineseTokenizer().tokenize(
        "患者３天前出现右眼视物模糊伴眼压升高，无发热，否认高血压，K+ 5.9mmol/L"
    )
    for term in ("3", "右眼", "视物模糊", "眼压", "无", "发热", "否认", "高血压", "血压", "k+", "5.9"):
        assert term in terms
    assert "，" not in terms


def test_a_chinese_word_is_cut_alike_wherever_it_stands():
    tokenizer = ChineseTokenizer()
    alone = tokenizer.tokenize("凹陷性水肿")
    assert tokenizer.tokenize("双下肢轻度凹陷性水肿伴麻木")[-len(alone) - 2 : -2] == alone


def test_japanese_gives_dictionary_forms_and_one_negation():
    tokenizer = JapaneseTokenizer()
    assert tokenizer.tokenize("痛みが強かった") == tokenizer.tokenize("強い痛み")[::-1]
    for text in ("発熱なし", "発熱はない", "発熱を認めず", "発熱は認めない", "発熱無し"):
        assert tokenizer.tokenize(text)[-1] == "無い", text
    assert tokenizer.tokenize("ﾋﾟﾛﾘ菌") == tokenizer.tokenize("ピロリ菌")


def test_each_text_is_read_by_the_tokenizer_of_its_language():
    texts = ["no fever", "右眼视物模糊", "右眼の視力低下", "fièvre élevée"]
    expected = [
        EnglishTokenizer().tokenize(texts[0]),
        ChineseTokenizer().tokenize(texts[1]),
        JapaneseTokenizer().tokenize(texts[2]),
        EnglishTokenizer().tokenize(texts[3]),
    ]
    assert CLINICAL.tokenize_many(texts) == expected
    assert CLINICAL.tokenize_many(texts, ["en", "zh", "ja", "fr"]) == expected
    assert [CLINICAL.tokenize(text) for text in texts] == expected


def test_as_many_languages_as_texts_are_needed():
    with pytest.raises(ValueError, match="shorter"):
        CLINICAL.tokenize_many(["头痛", "发热"], ["zh"])


def test_identity_names_every_part_and_changes_with_its_rules(monkeypatch, tmp_path):
    for part in ("en-", "zh-", "ja-", *segmenters.segmenter_versions().values()):
        assert part in CLINICAL.identity
    assert ClinicalTokenizer().identity == CLINICAL.identity
    longer = tmp_path / "lexicon.zh.txt"
    longer.write_text(segmenters.ZH_LEXICON.read_text(encoding="utf-8") + "新词\n", encoding="utf-8")
    monkeypatch.setattr("wardround.language.tokenizers.ZH_LEXICON", longer)
    assert ClinicalTokenizer().identity != CLINICAL.identity


def test_a_tokenizer_travels_to_another_process():
    copy = pickle.loads(pickle.dumps(CLINICAL))
    assert copy.identity == CLINICAL.identity
    assert copy.tokenize("无发热") == CLINICAL.tokenize("无发热")


def test_cutting_chinese_leaves_no_cache_in_the_shared_temporary_folder():
    segmenters._chinese.cache_clear()
    before = set(Path(tempfile.gettempdir()).glob("jieba*"))
    ChineseTokenizer().tokenize("视物模糊")
    assert set(Path(tempfile.gettempdir()).glob("jieba*")) == before


def test_the_chinese_lexicon_has_distinct_words_and_all_are_kept_whole():
    words = segmenters.zh_lexicon()
    assert len(words) == len(set(words)) > 200
    cut = [word for word in words if word not in segmenters.chinese_words(word)]
    assert cut == []


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.sampled_from([None, "en", "zh", "ja", "xx"]))
def test_any_text_gives_non_empty_terms_without_white_space(text, language):
    for term in CLINICAL.tokenize(text, language):
        assert term
        assert not any(character.isspace() for character in term)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=200))
def test_plain_ascii_reads_the_same_beside_a_foreign_sign(text):
    assert ENGLISH.tokenize(text + " ") == ENGLISH.tokenize(text + " “")
