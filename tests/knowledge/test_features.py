"""What the label scorer sees of a case."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from wardround.knowledge.features import CharSpace, character_grams


def grams(text):
    ids, counts = character_grams(text)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def test_letters_give_grams_inside_words_only():
    assert not set(grams("pain")) & set(grams("ache"))
    assert set(grams("chest pain")) == set(grams("chest")) | set(grams("pain"))


def test_case_width_and_blanks_do_not_matter():
    assert grams("Chest  PAIN") == grams("ｃｈｅｓｔ pain")


def test_chinese_gives_grams_of_one_to_three_characters():
    assert sum(grams("眼压高").values()) == 3 + 2 + 1
    assert set(grams("眼压")) <= set(grams("眼压高"))


def test_a_mixed_text_keeps_both_scripts():
    assert set(grams("眼压")) <= set(grams("IOP 眼压 42"))


@given(st.text(max_size=200))
def test_any_text_gives_ascending_hashes(text):
    ids, counts = character_grams(text)
    assert (np.diff(ids) > 0).all()
    assert (counts >= 1).all()


def test_rows_have_length_one_or_are_empty():
    space = CharSpace.of(["chest pain", "chest ache", "gout"])
    matrix = space.matrix(["chest", "zzz", ""])
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    assert np.allclose(lengths, [1, 0, 0], atol=1e-5)


def test_a_space_of_no_texts_has_no_columns():
    assert CharSpace.of([]).matrix(["a"]).shape == (1, 0)
