"""What an index teaches about its own records."""

import numpy as np
import pytest
from learnable_cases import DISEASES, learnable_case, learnable_index
from wardround.errors import IndexStoreError
from wardround.knowledge.learned import CaseTable, LabelScorer, Patient
from wardround.knowledge.learned_models import LearnedModels
from wardround.knowledge.learning import Lessons, learn, store, stored, unlearned
from wardround.knowledge.ridge import Likeness, RidgeOptions, label_likeness
from wardround.query import ClinicalQuery
from wardround.retrievers.case_ranker import CaseRanker


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return learnable_index(tmp_path_factory.mktemp("learning") / "cases", 120)


@pytest.fixture(scope="module")
def models(index):
    return learn(index)


def encoded(index, record):
    ranker = CaseRanker(index, models=unlearned(index))
    case = ranker.prepare(ClinicalQuery.of(record.text, department=record.department))
    return case.encoded, case.text, case.patient


def test_the_scorer_finds_the_disease_of_cases_it_never_saw(index):
    scorer, _ = LabelScorer.fit(CaseTable(index))
    right = 0
    for number in range(500, 540):
        record = learnable_case(number)
        leader = int(scorer.score(scorer.features(*encoded(index, record))).argmax())
        right += scorer.keys[leader] == record.diagnoses[0].name
    assert right >= 24  # by chance 5


def test_left_out_scores_are_those_of_a_scorer_that_never_saw_the_record(tmp_path):
    table = CaseTable(learnable_index(tmp_path / "all", 40))
    options = RidgeOptions(smoothing=0.0)
    scorer, left_out = LabelScorer.fit(table, options=options)
    cases, others = scorer.ridge.cases, np.arange(1, 40)
    kernel = Likeness(cases, cases, views=True).kernel(options, scorer.ridge.scale).astype(float)
    targets = np.eye(len(table.space))[table.labels[others]]
    without_first = kernel[np.ix_(others, others)] + options.ridge * np.eye(39)
    expected = kernel[0, others] @ np.linalg.solve(without_first, targets)
    assert np.allclose(left_out[0], expected, atol=1e-4)


def test_the_words_that_speak_for_a_label_are_its_signs(index):
    scorer, _ = LabelScorer.fit(CaseTable(index))
    record = learnable_case(501, hardness=0.0)
    case = scorer.features(*encoded(index, record))
    label = scorer.keys.index(record.diagnoses[0].name)
    words = scorer.explain(case, label, index.vocabulary, top=3)
    assert words[0].word.startswith(record.diagnoses[0].name[:4])
    assert [w.share for w in words] == sorted((w.share for w in words), reverse=True)


def test_the_large_corpus_scorer_agrees_with_the_exact_one_on_most_cases(index):
    table = CaseTable(index)
    exact, _ = LabelScorer.fit(table)
    linear, left_out = LabelScorer.fit(table, exact_limit=10)
    same = 0
    for number in range(500, 540):
        features = encoded(index, learnable_case(number))
        same += int(exact.score(exact.features(*features)).argmax()) == int(
            linear.score(linear.features(*features)).argmax()
        )
    assert same >= 28
    seen = (left_out.argmax(axis=1) == table.labels).mean()
    assert 0.4 < seen < 1.0
    assert (
        linear.explain(linear.features(*encoded(index, learnable_case(501))), 0, index.vocabulary) is not None
    )


def test_both_scorers_survive_being_stored_and_score_the_same(index, tmp_path):
    features = encoded(index, learnable_case(503))
    for limit in (10_000, 10):
        scorer, _ = LabelScorer.fit(CaseTable(index), exact_limit=limit)
        folder = tmp_path / str(limit)
        folder.mkdir()
        for name, content in scorer.to_files().items():
            if isinstance(content, bytes):
                (folder / name).write_bytes(content)
            else:
                np.save(folder / f"{name}.npy", content, allow_pickle=False)
        again = LabelScorer.load(folder)
        assert np.allclose(
            again.score(again.features(*features)), scorer.score(scorer.features(*features)), atol=5e-3
        )


def test_a_damaged_scorer_says_what_to_do(tmp_path):
    (tmp_path / "scorer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IndexStoreError, match="wardround fit"):
        LabelScorer.load(tmp_path)


def test_learning_reports_what_it_asked_and_which_departments_are_too_small(models):
    assert models.report["asked"] == 120
    assert models.report["top1_left_out"] > 0.4
    assert "too few" in models.report["weights"]["dermatology"]
    assert models.calibration.examples == 120


def test_what_was_learned_is_kept_with_the_index_until_its_records_change(tmp_path):
    index = learnable_index(tmp_path / "cases", 60)
    assert stored(index) is None
    before = learn(index)
    store(index, before)
    after = stored(index)
    assert after.mix == before.mix
    assert np.allclose(after.weights.general, before.weights.general)
    case = ClinicalQuery.of(learnable_case(900).text)
    first, again = (CaseRanker(index, models=m).rank(case) for m in (before, after))
    assert [d.label for d in first.diagnoses] == [d.label for d in again.diagnoses]
    assert again.confidence.value == pytest.approx(first.confidence.value, abs=5e-3)
    index.add([learnable_case(901)])
    assert stored(index) is None


def test_learning_twice_gives_the_same(index, models):
    again = learn(index)
    assert again.mix == models.mix
    assert again.report == models.report


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30])
def test_hardly_any_record_is_enough_to_learn_without_failing(tmp_path, count):
    index = learnable_index(tmp_path / "cases", count)
    ranking = CaseRanker(index, models=learn(index)).rank(learnable_case(700).text)
    assert ranking.diagnoses
    assert 0 <= ranking.confidence.value <= 1


def test_records_without_diagnoses_are_evidence_of_nothing_but_do_not_disturb(tmp_path):
    from plain_cases import PlainEmbedder
    from wardround.indexes.cases import CaseIndex

    records = [learnable_case(number) for number in range(40)]
    blank = [r.model_copy(update={"id": f"b{r.id}", "diagnoses": []}) for r in records[:10]]
    index = CaseIndex.build([*records, *blank], tmp_path / "cases", embedder=PlainEmbedder())
    ranking = CaseRanker(index, models=learn(index)).rank(records[3].text)
    assert {d.label for d in ranking.diagnoses} <= set(DISEASES)


def test_lessons_never_show_a_record_itself(index):
    for asked in Lessons(index, most_asked=20).asked:
        assert asked.row not in asked.rows


def test_alike_names_share_and_others_do_not():
    likeness = label_likeness(["Viral hepatitis", "Viral hepatitis B", "Gout"], 0.3).toarray()
    assert likeness[0, 1] > 0.1
    assert likeness[0, 2] == 0
    assert np.allclose(np.diag(likeness), 1)


def test_an_index_that_learned_nothing_still_ranks_by_vote(index):
    models = unlearned(index)
    assert isinstance(models, LearnedModels)
    ranking = CaseRanker(index, models=models).rank(learnable_case(500, hardness=0.0).text)
    assert ranking.diagnoses[0].label == learnable_case(500).diagnoses[0].name
    assert not ranking.confidence.calibrated


def test_a_patient_is_read_from_fields_first_and_from_the_text_else():
    patient = Patient.of("A 40-year-old woman", "眼科", None, "M")
    assert (patient.department, patient.age, patient.sex) == ("ophthalmology", 40, "M")
