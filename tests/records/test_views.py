"""The views of a record, whatever form it came in."""

import pytest
from wardround.records.schema import OutpatientRecord, View
from wardround.records.views import views_of


def record(**fields):
    fields.setdefault("diagnoses", [{"name": "Gout", "code": "M10.9"}])
    return OutpatientRecord.model_validate({"id": "r1"} | fields)


def test_a_text_is_split():
    views = views_of(record(text="CC: sore toe\nExam: red\nDiagnosis: Gout"))
    assert views == {
        View.CHIEF_COMPLAINT: "sore toe",
        View.EXAMINATION: "red",
        View.GLOBAL: "CC: sore toe\nExam: red",
    }


def test_given_views_are_kept_and_the_whole_is_composed():
    views = views_of(record(views={"history": "two days", "chief_complaint": "sore toe"}))
    assert list(views) == [View.CHIEF_COMPLAINT, View.HISTORY, View.GLOBAL]
    assert views[View.GLOBAL] == "sore toe\ntwo days"


def test_a_given_whole_is_kept():
    views = views_of(record(views={"history": "two days", "global": "the whole story"}))
    assert views == {View.HISTORY: "two days", View.GLOBAL: "the whole story"}


def test_a_diagnosis_inside_a_given_view_is_cut_out():
    views = views_of(
        record(views={"history": "two days. Impression: Gout", "examination": "red\nDx: Gout\nLabs: urate"})
    )
    assert "Gout" not in " ".join(views.values())
    assert views[View.HISTORY] == "two days."


@pytest.mark.parametrize(
    "ending",
    [
        "\nOutcome label: Gout",
        "\nFinal: gout.",
        "\nGout",
        "\nThe diagnosis is gout.",
        "\nMost likely gout",
        "\nM10.9 Gout",
        "\nLabel = Gout (M10.9)",
    ],
)
def test_a_last_line_that_only_names_the_diagnosis_is_dropped(ending):
    views = views_of(record(text="A man comes with a sore toe. It began two days ago." + ending))
    assert views[View.GLOBAL] == "A man comes with a sore toe. It began two days ago."


def test_a_chinese_last_line_is_dropped_too():
    views = views_of(record(text="右足趾红肿疼痛2天。无发热。\n结果：痛风", diagnoses=[{"name": "痛风"}]))
    assert "痛风" not in " ".join(views.values())


def test_a_sentence_that_says_more_than_the_diagnosis_stays():
    text = "A man comes with a sore toe. His father had gout."
    assert views_of(record(text=text))[View.GLOBAL] == text
    assert views_of(record(text="Exam: red toe\nHistory: Gout"))[View.HISTORY] == "Gout"


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "Gout"},
        {"text": "Gout."},
        {"text": "Diagnosis: Gout"},
        {"text": "M10.9 Gout"},
        {"text": "The diagnosis is gout."},
        {"text": "Gout, hypertension", "diagnoses": [{"name": "Gout"}, {"name": "Hypertension"}]},
        {"text": "诊断：痛风", "diagnoses": [{"name": "痛风"}]},
        {"text": "痛风", "diagnoses": [{"name": "痛风"}]},
        {"text": "診断は痛風である。", "diagnoses": [{"name": "痛風"}]},
        {"views": {"history": "Gout", "global": "Diagnosis: Gout"}},
        {"text": "..., ---"},
        {"text": "Assessment: something else"},
    ],
)
def test_a_record_that_says_nothing_but_its_diagnosis_has_no_view(fields):
    assert views_of(record(**fields)) == {}


def test_a_query_without_diagnosis_is_split_alike():
    query = record(text="CC: sore toe\nExam: red", diagnoses=[])
    assert views_of(query) == views_of(record(text="CC: sore toe\nExam: red\nDiagnosis: Gout"))


def test_views_and_text_together_give_the_whole_from_the_text():
    views = views_of(
        record(text="Sore toe for two days, worse at night. Dx: Gout", views={"chief_complaint": "Sore toe"})
    )
    assert views[View.CHIEF_COMPLAINT] == "Sore toe"
    assert views[View.GLOBAL] == "Sore toe for two days, worse at night."


@pytest.mark.parametrize(
    ("before", "statement", "after", "name"),
    [
        ("Headache for two days.", " She was diagnosed with migraine today.", " She rests.", "Migraine"),
        ("Headache for two days.", " Findings consistent with migraine.", " Light hurts.", "Migraine"),
        ("Headache for two days.", " The picture is suggestive of migraines.", "", "Migraine"),
        ("Headache for two days.", " Migraine was confirmed.", " She rests.", "Migraine, unspecified"),
        ("Her toe hurts.", " Crystals confirmed gouty\narthritis.", " It is red.", "Gouty arthritis"),
        ("Cough since May.", " His mother brought him, and he was diagnosed with COPD.", "", "COPD"),
        ("头痛3天，伴恶心。", "诊断为偏头痛。", "嘱休息。", "偏头痛"),
        ("头痛3天，伴恶心。", "考虑偏头痛可能。", "嘱休息。", "偏头痛"),
        ("頭痛が3日続く。", "片頭痛と診断した。", "光がまぶしい。", "片頭痛"),
        ("頭痛が3日続く。", "以上より片頭痛と考えた。", "", "片頭痛"),
    ],
)  # fmt: skip
def test_a_sentence_that_states_the_diagnosis_is_dropped_wherever_it_stands(before, statement, after, name):
    fields = {"diagnoses": [{"name": name}]}
    kept = " ".join((before + after).split())
    for views in (
        views_of(record(text=before + statement + after, **fields)),
        views_of(record(views={"history": before + statement + after}, **fields)),
    ):
        assert " ".join(views[View.GLOBAL].split()) == kept
        assert all(statement.strip() not in text for text in views.values())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Headache for two days. She has a history of migraine.", "Migraine"),
        ("Headache for two days. She was previously diagnosed with migraine.", "Migraine"),
        ("Headache for two days. She was diagnosed with migraine ten years ago.", "Migraine"),
        ("Headache for two days. Her mother was diagnosed with migraine.", "Migraine"),
        ("Headache for two days. It is consistent with overuse of drugs.", "Migraine"),
        ("Headache for two days. Findings consistent with migrainous aura.", "Migraine"),
        ("头痛3天。曾诊断为偏头痛。伴恶心。", "偏头痛"),
        ("頭痛が3日続く。母が片頭痛と診断されている。吐き気あり。", "片頭痛"),
    ],
)
def test_what_is_told_of_the_past_or_of_others_stays(text, name):
    assert views_of(record(text=text, diagnoses=[{"name": name}]))[View.GLOBAL] == text


def test_a_query_without_diagnosis_keeps_what_it_says():
    text = "Headache for two days. Findings consistent with migraine."
    assert views_of(record(text=text, diagnoses=[]))[View.GLOBAL] == text
