"""Splitting a record into views, with the diagnosis in none of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.language.cues import CueRules, cue_rules
from wardround.language.views import split_views

MARKER = "Zorblaxia"

HEADINGS = {
    "en": {
        "chief_complaint": ["Chief Complaint", "CC", "Reason for visit", "Presenting complaint"],
        "history": [
            "HPI",
            "History of Present Illness",
            "Past Medical History",
            "PMH",
            "Family history",
            "ROS",
        ],
        "examination": ["Physical Exam", "PE", "Vital signs", "Labs", "Imaging", "On examination"],
        "diagnosis": [
            "Diagnosis",
            "Diagnoses",
            "Final Diagnosis",
            "Primary diagnosis",
            "Working Diagnosis",
            "Discharge Diagnosis",
            "Differential Diagnosis",
            "Dx",
            "DDx",
            "Assessment",
            "Assessment and Plan",
            "Assessment & Plan",
            "Assessment/Plan",
            "A/P",
            "A&P",
            "Impression",
            "Clinical Impression",
            "Impression and Plan",
            "Imp",
            "Diagnostic Impression",
            "Provisional diagnosis",
            "Diagnosis (ICD-10)",
            "Diagnosis #1",
            "Diagnosis(es)",
            "Conclusion",
            "Problem list",
        ],
    },
    "zh": {
        "chief_complaint": ["主诉", "就诊原因"],
        "history": ["现病史", "既往史", "家族史", "个人史", "过敏史"],
        "examination": ["体格检查", "查体", "辅助检查", "专科检查", "实验室检查"],
        "diagnosis": [
            "诊断",
            "初步诊断",
            "入院诊断",
            "出院诊断",
            "门诊诊断",
            "临床诊断",
            "考虑诊断",
            "诊断考虑",
            "印象",
            "初步印象",
            "诊断意见",
            "鉴别诊断",
            "西医诊断",
            "中医诊断",
            "最后诊断",
            "拟诊",
            "诊断为",
            "主要诊断",
        ],
    },
    "ja": {
        "chief_complaint": ["主訴", "受診理由"],
        "history": ["現病歴", "既往歴", "家族歴", "生活歴"],
        "examination": ["身体所見", "検査所見", "画像所見", "理学所見"],
        "diagnosis": [
            "診断",
            "診断名",
            "臨床診断",
            "確定診断",
            "最終診断",
            "鑑別診断",
            "印象",
            "アセスメント",
            "評価",
            "病名",
            "傷病名",
            "考察",
        ],
    },
}
BODIES = {
    "en": [
        "three days of pain",
        "no fever. Eats well",
        "BP 120/80 mmHg",
        "denies trauma; sleeps badly",
        "mild swelling noted",
    ],
    "zh": ["疼痛3天", "无发热。食欲可", "血压120/80mmHg", "否认外伤，睡眠差", "轻度肿胀"],
    "ja": ["3日前からの痛み", "発熱なし。食欲あり", "血圧120/80mmHg", "外傷なし、不眠", "軽度の腫脹"],
}
LINES = {
    "en": [
        "{h}: {b}\n",
        "{h}:\n{b}\n\n",
        "{H}\n{b}\n\n",
        "{H}: {b}\n",
        "## {h}\n{b}\n",
        "**{h}:** {b}\n",
        "[{h}] {b}\n",
        "{h} - {b}\n",
        "{h}\t{b}\n",
    ],
    "zh": [
        "{h}：{b}\n",
        "{h}:{b}\n",
        "【{h}】{b}\n",
        "【{h}】\n{b}\n",
        "{h}\n{b}\n",
        "一、{h}\n{b}\n",
        "{h}： {b}。",
        "[{h}]{b}\n",
    ],
    "ja": [
        "{h}：{b}\n",
        "■{h}\n{b}\n",
        "【{h}】{b}\n",
        "【{h}】\n{b}\n",
        "＜{h}＞{b}\n",
        "{h}\n{b}\n",
        "● {h}：{b}\n",
        "{h}：{b}。",
    ],
}
ORDER = ["chief_complaint", "history", "examination", "diagnosis"]


@st.composite
def headed_records(draw, diagnosis_last=False):
    """A record in one way of writing, and the marker under its diagnosis heading alone."""
    language = draw(st.sampled_from(["en", "zh", "ja"]))
    line = draw(st.sampled_from(LINES[language]))
    order = ORDER if diagnosis_last else draw(st.permutations(ORDER))
    text = ""
    for kind in order:
        heading = draw(st.sampled_from(HEADINGS[language][kind]))
        body = draw(st.sampled_from(BODIES[language]))
        if kind == "diagnosis":
            body = draw(
                st.sampled_from(["{m}", "1. {m}\n2. {m} sicca", "{m}, probable", "- {m}\n- other"])
            ).format(m=MARKER)
        text += line.format(h=heading, H=heading.upper(), b=body)
    return text, language


@settings(max_examples=600, deadline=None)
@given(headed_records(), st.booleans())
def test_what_stands_under_a_diagnosis_heading_is_in_no_view(record, told):
    text, language = record
    split = split_views(text, language if told else None)
    for view, content in split.views.items():
        assert MARKER not in content, (view, text)
    assert MARKER in (split.diagnosis_text or "")


@settings(max_examples=300, deadline=None)
@given(headed_records(diagnosis_last=True))
def test_every_section_in_front_of_the_diagnosis_reaches_its_view(record):
    text, language = record
    split = split_views(text, language)
    assert list(split.views) == ["chief_complaint", "history", "examination", "global"]
    assert split.headed


@pytest.mark.parametrize(
    "ending",
    [
        "; Impression: {m}",
        ". Dx: {m}",
        " Assessment: {m}",
        " DIAGNOSIS: {m}",
        "; Dx {m}",
        ", impression: {m}.",
        "\nDx {m}",
        "\nImpression {m}",
        "\nImpression is {m}",
        "\nDiagnosis; {m}",
        "\nAssmt: {m}",
        " The most likely diagnosis: {m}",
        ". Final diagnosis - {m}",
        "\nDIAGNOSIS {m}",
        "\n**Diagnosis** {m}",
        "\nD I A G N O S I S: {m}",
        '\n"diagnosis": "{m}"',
        "\n<diagnosis>{m}</diagnosis>",
        "\nDiagnosis is: {m}",
        "\n> Diagnosis: {m}",
        "\nICD-10 code: {m}",
        "。考虑诊断：{m}",
        "，诊断：{m}",
        "。印象：{m}",
        "。门诊诊断为：{m}",
        "\n诊断 {m}",
        "\n诊 断：{m}",
        "。診断：{m}",
        "\n診断　{m}",
        "、病名：{m}",
        "\n・診断：{m}",
        "\n（診断）{m}",
    ],
)
def test_a_diagnosis_that_runs_in_stays_out_too(ending):
    for start in (
        "Sore toe for two days. No fever",
        "右足拇趾红肿疼痛2天，无发热",
        "2日前からの右足趾の痛み。発熱なし",
    ):
        split = split_views(start + ending.format(m=MARKER))
        assert MARKER not in " ".join(split.views.values()), ending
        assert split.views["chief_complaint"]


def test_a_headed_record_gives_its_sections_and_no_plan():
    evidence = "CC: sore toe\nHPI: two days\nPMH: gout\nExam: red toe\nLabs: urate 9"
    split = split_views(evidence + "\nAssessment: gout\nPlan: colchicine")
    assert split.views == {
        "chief_complaint": "sore toe",
        "history": "two days\ngout",
        "examination": "red toe\nurate 9",
        "global": evidence,
    }
    assert split.headed
    assert split.diagnosis_text == "gout"


@pytest.mark.parametrize(
    ("text", "complaint", "history", "examination"),
    [
        (
            (
                "A 40-year-old man presents with a sore toe. It began two days ago. He denies trauma. "
                "Temperature is 37.2°C. The toe is red and tender on palpation."
            ),
            "presents",
            "denies trauma",
            "red and tender",
        ),
        (
            "患者，男，40岁，因右足趾痛2天就诊。2天前饮酒后出现疼痛，否认外伤史。查体温37.2℃，右足趾红肿，压痛阳性。血尿酸升高。",
            "足趾痛",
            "否认外伤史",
            "压痛阳性",
        ),
        (
            "40歳男性。右足趾の痛みを主訴に来院した。2日前の飲酒後に出現した。既往歴に高血圧がある。体温37.2℃。右足趾に発赤と圧痛を認めた。",
            "主訴に来院",
            "既往歴",
            "圧痛",
        ),
    ],
)
def test_a_record_without_headings_is_sorted_by_its_words(text, complaint, history, examination):
    split = split_views(text)
    assert not split.headed
    assert complaint in split.views["chief_complaint"]
    assert history in split.views["history"]
    assert examination in split.views["examination"]
    assert split.views["global"] == text


def test_findings_alone_are_no_complaint():
    assert set(split_views("BP 120/80 mmHg, pulse 70, lungs clear.").views) == {"examination", "global"}


def test_text_in_front_of_the_headings_is_sorted_too():
    split = split_views("A 40-year-old man comes with a sore toe.\nExam: red\nDx: gout")
    assert split.views["chief_complaint"] == "A 40-year-old man comes with a sore toe."


@pytest.mark.parametrize(
    "text", ["", " \n", "Diagnosis: gout", "诊断：痛风", "診断：痛風", "Plan: rest", "ASSESSMENT\nGout"]
)
def test_nothing_is_left_of_a_text_without_evidence(text):
    assert split_views(text).views == {}


@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_each_cue_file_holds_to_its_schema_and_no_cue_points_both_ways(language):
    rules = cue_rules(language)
    assert isinstance(rules, CueRules)
    assert not set(rules.examination) & set(rules.history)
    assert not set(rules.diagnosing) & set(rules.told)


def noisy(seed):
    """A record with bytes changed, dropped and doubled, as broken exports have them."""
    chance = random.Random(seed)
    language = chance.choice(["en", "zh", "ja"])
    text = ""
    for kind in ORDER * chance.randint(1, 3):
        line = chance.choice(LINES[language])
        heading = chance.choice(HEADINGS[language][kind])
        text += line.format(h=heading, H=heading.upper(), b=chance.choice(BODIES[language]))
    raw = bytearray(text.encode())
    for _ in range(chance.randint(1, 30)):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randint(0, 3)] = bytes(
            chance.randrange(256) for _ in range(chance.randint(0, 3))
        )
        if not raw:
            break
    return bytes(raw).decode(chance.choice(["utf-8", "latin-1", "utf-16-le"]), errors="replace")


def test_two_thousand_damaged_records_are_split_with_valid_offsets():
    for seed in range(2_000):
        text = noisy(seed)
        split = split_views(text)
        for span in split.spans:
            assert 0 <= span.start < span.end <= len(text)
        for view, content in split.views.items():
            assert content == "\n".join(text[s.start : s.end] for s in split.spans if s.view == view)


def test_work_grows_in_proportion_to_the_text():
    """Counted in steps of the interpreter, not in time."""
    import sys

    def steps(text):
        count = 0

        def tracer(frame, event, arg):
            nonlocal count
            count += 1
            return tracer

        sys.settrace(tracer)
        try:
            split_views(text)
        finally:
            sys.settrace(None)
        return count

    for piece in ("x-", "Exam: x. ", "S: x O: y A: z ", "诊断：", "a:", " \n", "[x]"):
        small, large = steps(piece * 60), steps(piece * 600)
        assert large < 12 * small + 2_000, piece


@pytest.mark.parametrize("text", ["IOP 50", "BP 180/110", "HR 120", "血压 180/110"])
def test_a_finding_that_is_named_like_a_heading_is_still_a_finding(text: str) -> None:
    split = split_views(text)
    assert split.views["global"] == text
    assert not split.headed


@pytest.mark.parametrize("text", ["Chief complaint:", "History:\nExamination:", "【主诉】"])
def test_headings_with_nothing_under_them_are_no_case(text: str) -> None:
    assert split_views(text).views == {}
