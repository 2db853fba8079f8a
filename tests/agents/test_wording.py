"""Every language's texts load, and each fills in the same things as the English ones."""

import pytest
from wardround.agents.wording import LANGUAGES, placeholders, wording_of


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_has_the_placeholders_of_the_english_one(language):
    english, other = wording_of("en"), wording_of(language)
    for section in type(english).model_fields:
        for name in type(getattr(english, section)).model_fields:
            wanted = placeholders(getattr(getattr(english, section), name))
            assert placeholders(getattr(getattr(other, section), name)) == wanted, (language, name)


def test_a_language_that_is_not_served_reads_english():
    assert wording_of("fr") is wording_of("en")
    assert wording_of(None) is wording_of("en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_system_prompt_says_that_records_are_data(language):
    text = wording_of(language).prompt.system
    assert "<case>" in text
    assert "<record>" in text
    assert "JSON" in text
