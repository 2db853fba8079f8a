"""No reply, however odd, gets past the checks or breaks them."""

import json

import pytest
from cases import CASE, eye_nodes
from hypothesis import given
from hypothesis import strategies as st
from wardround.agents.evidence import Evidence, evidence_of, neutral
from wardround.agents.overlap import best_sentence, share, terms
from wardround.agents.reply import ReplyCheck, reply_schema
from wardround.agents.tokens import cut_to_tokens, estimate_tokens
from wardround.agents.wording import wording_of

SHOWN = evidence_of(eye_nodes())


def check(value, uncited=False, shown=SHOWN):
    return ReplyCheck(case=CASE, shown=shown, words=wording_of("en").refusal, uncited=uncited)(value)


def reply(*diagnoses, **more):
    return {"diagnoses": [{"name": name, "evidence": list(cited)} for name, *cited in diagnoses], **more}


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["diagnoses", "name", "evidence", "reason", "differential", "for", "against", "problem", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(json_values, st.booleans())
def test_any_json_is_either_refused_or_cites_shown_records_only(value, uncited):
    try:
        proposal = check(value, uncited)
    except ValueError:
        return
    assert 1 <= len(proposal.diagnoses) <= 3
    for one in proposal.diagnoses:
        assert one.name
        assert one.evidence or uncited
        assert all(record in SHOWN for record in one.evidence)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=8), st.sampled_from(["R1", "r2", "[R3]", "g1", "R9", ""])),
        max_size=6,
    )
)
def test_names_are_unique_and_citations_are_understood_however_written(pairs):
    try:
        names = [one.name.casefold() for one in check(reply(*pairs)).diagnoses]
    except ValueError:
        return
    assert len(names) == len(set(names))


@pytest.mark.parametrize("written", ["R1", "r1", " R1 ", "[R1]", "(R1)", "g1", "G1"])
def test_a_record_may_be_cited_by_number_or_id(written):
    (only,) = check(reply(("Glaucoma", written))).diagnoses
    assert only.evidence[0].record_id == "g1"


def test_more_than_three_are_cut_to_three():
    many = [(f"Disease {letter}", "R1") for letter in "abcdef"]
    assert len(check(reply(*many)).diagnoses) == 3


def test_the_refusal_is_in_the_language_of_the_case():
    words = wording_of("ja").refusal
    with pytest.raises(ValueError, match="R1 など"):
        ReplyCheck(case=CASE, shown=SHOWN, words=words, uncited=False)(reply(("Glaucoma", "R9")))


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("IOP 44 mmHg and haloes around lights", True),
        ("painful red eye with vomiting", True),
        ("mid-dilated pupil", False),
        ("cells and flare in the anterior chamber", False),
        ("typical age and course", True),
        ("", True),
    ],
)
def test_reasons_must_be_findings_of_the_case_not_of_a_record(reason, kept):
    value = {"diagnoses": [{"name": "Glaucoma", "evidence": ["R1"], "reason": reason}]}
    proposal = check(value)
    assert proposal.diagnoses[0].reason == (reason if kept else "")
    assert proposal.borrowed == (0 if kept else 1)


def test_borrowed_findings_are_taken_out_of_the_differential():
    value = reply(
        ("Glaucoma", "R1"),
        differential=[
            {"name": "Uveitis", "for": ["painful red eye", "cells and flare"], "against": ["haloes"]}
        ],
    )
    (line,) = check(value).differential
    assert line.for_ == ("painful red eye",)
    assert line.against == ("haloes",)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shown", [SHOWN, []])
def test_the_schema_is_plain_json_and_closes_every_object(deep, wide, shown):
    schema = reply_schema(shown, deep=deep, wide=wide)
    assert json.loads(json.dumps(schema)) == schema

    def walk(part):
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert set(part["required"]) == set(part["properties"])
            for inner in part["properties"].values():
                walk(inner)
        if part.get("type") == "array":
            assert part["minItems"] <= part["maxItems"]
            walk(part["items"])

    walk(schema)


@given(st.text())
def test_neutral_text_cannot_open_or_close_anything(text):
    made = neutral(text)
    assert not set(made) & set("<>＜＞")
    assert "[INST]" not in made.upper()
    assert neutral(made) == made


@given(st.text(alphabet=st.sampled_from('ab <>/"\n\u200b|IO3。痛'), max_size=200), st.integers(1, 50))
def test_a_fenced_record_has_one_fence(text, limit):
    record = Evidence("R1", "x", text, 'a"b>', None, None, "l", 0.5, None, None)
    made = record.fenced(limit)
    assert made.count("<record ") == 1
    assert made.count("</record>") == 1
    assert made.startswith('<record id="R1" diagnosis="a\'b›">\n')
    assert made.endswith("\n</record>")


@given(st.text(max_size=300), st.integers(4, 200))
def test_a_cut_text_fits_and_is_a_beginning(text, limit):
    made = cut_to_tokens(text, limit)
    assert estimate_tokens(made) <= limit or made == text
    assert text.startswith(made.removesuffix(" …"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_overlap_is_a_share_and_full_with_itself(left, right):
    a, b = terms(left), terms(right)
    assert 0 <= share(a, b) <= 1
    assert share(a, a) == (1 if a else 0)
    assert len(best_sentence(left, b, limit=50)) <= 50


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("眼圧上昇", "右眼の眼圧上昇を認めた"),
        ("眼压升高", "右眼眼压升高，伴头痛"),
        ("K+ 5.9", "Serum K+ 5.9 mmol/L"),
    ],
)
def test_terms_are_found_in_all_three_languages(part, whole):
    assert share(terms(part), terms(whole)) == 1
