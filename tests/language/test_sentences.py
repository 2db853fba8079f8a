"""Where one sentence ends and the next begins."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.language.sentences import abbreviations, sentence_spans


def sentences(text):
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Ito saw him. He left.", ["Dr. Ito saw him.", "He left."]),
        ("T 38.5. Pulse 90.", ["T 38.5.", "Pulse 90."]),
        ("Aspirin b.i.d. since May. No rash!", ["Aspirin b.i.d. since May.", "No rash!"]),
        ("Seen by J. Doe. Fine.", ["Seen by J. Doe.", "Fine."]),
        ("a long line\nthat goes on. End", ["a long line\nthat goes on.", "End"]),
        ("BP 120/80\nPulse 90", ["BP 120/80", "Pulse 90"]),
        ("头痛3天。伴恶心；无发热", ["头痛3天。", "伴恶心；", "无发热"]),
        ("头痛3天.伴恶心,体温38.5度", ["头痛3天.", "伴恶心,体温38.5度"]),
        ("発熱なし。咳がある。", ["発熱なし。", "咳がある。"]),
        ("", []),
        (" \n \n", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, expected):
    assert sentences(text) == expected


def test_abbreviations_are_lower_case_without_their_dot():
    assert all(word == word.lower() and not word.endswith(".") for word in abbreviations())


@given(st.text(max_size=300))
def test_nothing_but_white_space_is_lost(text):
    spans = sentence_spans(text)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(a < b for a, b in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
