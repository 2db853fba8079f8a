"""Reading the headings of a record."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.errors import InputError
from wardround.language.headings import KINDS, LANGUAGES, SectionRules, heading_table, rules_of
from wardround.language.resources import load_rules
from wardround.language.sections import read_sections
from wardround.language.shadow import shadow_of


def kinds(text):
    return [(section.kind, text[section.body_start : section.end].strip()) for section in read_sections(text)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_heading_file_holds_to_its_schema(language):
    rules = rules_of(language)
    for kind in KINDS:
        names = getattr(rules.headings, kind)
        assert len(names) == len(set(names)), (kind, [name for name in names if names.count(name) > 1])
    every = {name for kind in KINDS for name in getattr(rules.headings, kind)}
    assert set(rules.rules.minor) <= every
    assert set(rules.rules.weak) <= set(rules.headings.diagnosis)
    assert set(rules.rules.without_colon) <= every


def test_no_file_calls_evidence_what_another_calls_the_diagnosis():
    table = heading_table()
    for language in LANGUAGES:
        for name in rules_of(language).headings.diagnosis:
            key = name.replace(" ", "")
            known = table.cjk.get(key.lower()) or table.squashed.get(key) or table.latin.get(name.lower())
            assert known is None or known.kind == "diagnosis", name


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("headings = 3", "headings"),
        ("[headings", "TOML"),
        ("[unheard]\nof = 1\n", "headings"),
    ],
)
def test_a_broken_rule_file_is_an_error_that_names_file_and_key(tmp_path, content, reason):
    path = tmp_path / "sections.xx.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=reason) as error:
        load_rules(path, SectionRules)
    assert "sections.xx.toml" in str(error.value)


def test_a_missing_rule_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml"):
        load_rules(tmp_path / "none.toml", SectionRules)


@pytest.mark.parametrize(
    "text",
    [
        "CHIEF COMPLAINT\nheadache\nPHYSICAL EXAM\nno fever",
        "Chief complaint: headache\nPhysical exam: no fever",
        "CC: headache PE: no fever",
        "CC - headache\nPE - no fever",
        "## Chief Complaint\nheadache\n## Exam\nno fever",
        "**Chief complaint** headache\n**Exam:** no fever",
        "1. Chief Complaint: headache\n2. O/E: no fever",
        "C.C.: headache\nP.E.: no fever",
        "[CC] headache\n[Exam] no fever",
        "chief_complaint: headache\nphysical_exam: no fever",
        "Chief complaint\theadache\nExamination\tno fever",
        "Reason for visit = headache\nVital signs = no fever",
        "Chief complaint:\r\nheadache\r\nExam:\r\nno fever",
        "主诉：headache\n体格检查：no fever",
        "主诉：headache。查体：no fever",
        "【主诉】headache【查体】no fever",
        "一、主诉\nheadache\n二、体格检查\nno fever",
        "主 诉：headache\n查 体：no fever",
        "主诉 headache\n查体 no fever",
        "主訴：headache 身体所見：no fever",
        "■主訴\nheadache\n■身体所見\nno fever",
        "＜主訴＞headache\n＜身体所見＞no fever",
        "【主訴】\nheadache\n【検査所見】\nno fever",
        "主訴\nheadache\n現症\nno fever",
    ],
)
def test_the_same_two_sections_are_found_in_every_way_of_writing_them(text):
    found = [(kind, body.strip("。 ")) for kind, body in kinds(text) if kind]
    assert found == [("chief_complaint", "headache"), ("examination", "no fever")]


@pytest.mark.parametrize(
    "text",
    [
        "<b>Chief complaint:</b> headache<br/><b>Exam:</b> no fever",
        "<h2>Chief complaint</h2><p>headache</p>\n<h2>Exam</h2><p>no fever</p>",
        "Chief complaint: headache\\nExam: no fever",
        '{"chief_complaint": "headache", "exam": "no fever"}',
    ],
)
def test_headings_are_found_behind_the_marks_of_other_formats(text):
    found = [(section.kind, text[section.body_start : section.end]) for section in read_sections(text)]
    assert [kind for kind, _ in found if kind] == ["chief_complaint", "examination"]
    assert "no fever" not in found[-2][1]


@pytest.mark.parametrize(
    "text",
    [
        "Gait Assessment: ataxic",
        "Differential count: neutrophils 70%",
        "He was assessed: stable",
        "The impression was that he slept badly.",
        "Seen at 10:30: stable",
        "History-taking was hard",
        "Vitamin A: low",
        "A diagnosis of gout was made in 2010.",
        "Diagnosis was made in 2010.",
        "Diagnosis is unclear.",
        "疼痛评估：3分",
        "機能評価：良好",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text):
    assert kinds(text) == [(None, text)]


def test_a_heading_with_words_in_front_keeps_its_meaning():
    assert kinds("Travel History: none")[-1] == ("history", "none")
    assert kinds("Knee Exam: stable")[-1] == ("examination", "stable")
    assert kinds("Previous diagnoses: asthma") == [("history", "asthma")]
    assert kinds("CT impression: mass") == [("examination", "mass")]


def test_what_belongs_to_an_assessment_does_not_end_it():
    assessment = "1. Gout.\nLabs: uric acid\n- Exam: in two weeks\n2. Anaemia"
    text = f"ASSESSMENT AND PLAN\n{assessment}\nPHYSICAL EXAM\nclear"
    assert kinds(text) == [
        ("diagnosis", assessment),
        ("examination", "clear"),
    ]


def test_soap_letters_are_headings_only_in_their_order():
    text = "S: sore toe O: red A: gout P: rest"
    assert kinds(text) == [
        ("history", "sore toe"),
        ("examination", "red"),
        ("diagnosis", "gout"),
        ("plan", "rest"),
    ]
    assert [kind for kind, _ in kinds("S）足趾の痛み\nO）発赤\nA）痛風\nP）安静")] == [
        "history",
        "examination",
        "diagnosis",
        "plan",
    ]
    assert [kind for kind, _ in kinds("Hepatitis A: negative")] == [None]


@given(st.text(max_size=400))
def test_the_shadow_is_as_long_as_the_text(text):
    assert len(shadow_of(text)) == len(text)


PIECES = st.sampled_from(
    [
        "CC",
        "Dx",
        "诊断",
        "主訴",
        "PLAN",
        "Exam",
        "S",
        "O",
        "A",
        "：",
        ": ",
        "\n",
        "\r\n",
        "【",
        "】",
        "**",
        "##",
        "- ",
        "1. ",
        "<br>",
        "\\n",
        "(",
        ")",
        "x",
        "痛",
        " ",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join)))
def test_sections_cover_any_text_without_gap_or_overlap(text):
    sections = read_sections(text)
    assert "".join(text[section.start : section.end] for section in sections) == text
    for section in sections:
        assert section.start <= section.body_start <= section.end
        assert section.heading in text[section.start : section.body_start]
