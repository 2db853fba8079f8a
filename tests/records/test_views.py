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
