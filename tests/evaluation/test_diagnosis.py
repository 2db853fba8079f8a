"""``evaluate diagnosis`` keeps its contract and never lets a query see itself."""

import json

import pytest
from learnable_cases import learnable_case
from plain_cases import PlainEmbedder
from wardround.errors import InputError
from wardround.evaluation.conditions import CONDITIONS
from wardround.evaluation.diagnosis import evaluate_diagnosis
from wardround.evaluation.folds import folds_of, splits

CONTRACT = {
    "top1", "top3", "mrr", "top1_ci", "top3_ci", "top1_all", "top3_all", "ms_per_query", "auroc", "ece",
    "coverage_at_90", "by_department",
}  # fmt: skip
NAMES = [
    "bm25", "dense", "flat_hybrid", "vote", "supervised", "multi_view", "map_rag", "ours", "no_multi_view",
    "no_adaptive_weights", "no_rerank", "no_prior", "no_routing", "no_icd", "no_retrieval",
]  # fmt: skip


def cases(count, start=0, **how):
    return [learnable_case(number, **how) for number in range(start, start + count)]


def evaluate(records, queries=None, **how):
    return evaluate_diagnosis(records, queries, embedder=PlainEmbedder(), **how)


def untimed(result):
    for figures in result["conditions"].values():
        figures.pop("ms_per_query")
    return result


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("evaluation")
    return evaluate(cases(64), cv=3, out=out), out


def test_every_condition_of_the_contract_is_there_with_every_figure(report):
    result, _ = report
    assert list(CONDITIONS) == NAMES
    assert list(result["conditions"]) == NAMES
    for figures in result["conditions"].values():
        assert set(figures) >= CONTRACT
    assert set(result) >= {"n", "answerable", "labels", "twins", "conditions", "mcnemar", "routes"}
    assert set(result["mcnemar"]) >= {"ours_vs_flat_hybrid", "ours_vs_supervised", "ours_vs_map_rag"}
    for scale in ("raw", "calibrated"):
        lanes = result["routes"][scale]
        assert set(lanes) == {"vote", "standard", "deep"}
        assert sum(lane["n"] for lane in lanes.values()) == result["n"]
    assert json.loads(json.dumps(result)) == result


def test_ours_learns_what_tells_the_diseases_apart(report):
    conditions = report[0]["conditions"]
    assert conditions["ours"]["top1"] > 0.5  # by chance .125
    assert conditions["ours"]["top1"] >= conditions["flat_hybrid"]["top1"]


def test_tables_predictions_and_plots_are_written(report):
    result, out = report
    rows = [json.loads(line) for line in (out / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == result["n"]
    assert rows[0]["conditions"]["ours"]["diagnoses"]
    assert "| ours |" in (out / "diagnosis.md").read_text("utf-8")
    assert json.loads((out / "diagnosis.json").read_text("utf-8")) == result
    for plot in ("reliability", "accuracy_coverage", "by_department"):
        assert (out / f"{plot}.png").stat().st_size > 1000


def test_the_same_seed_gives_the_same_figures():
    first, again = (evaluate(cases(24), cv=2, conditions=["vote", "ours"], seed=4) for _ in range(2))
    assert untimed(first) == untimed(again)


def test_a_label_without_labels_in_common_is_answered_by_nobody():
    from wardround.records.schema import Diagnosis

    alone = [
        record.model_copy(update={"diagnoses": [Diagnosis(name=f"disease number {i} of many")]})
        for i, record in enumerate(cases(24))
    ]
    result = evaluate(alone, cv="loo", conditions=["vote", "supervised", "ours"])
    assert result["answerable"] == 0
    assert result["labels"] == 24
    for figures in result["conditions"].values():
        assert figures["top1_all"] == 0


def test_leave_one_out_of_twins_would_be_perfect_and_without_twins_is_not():
    twice = cases(20) + [r.model_copy(update={"id": f"again-{r.id}"}) for r in cases(20)]
    kept = evaluate(twice, cv="loo", conditions=["flat_hybrid"])
    dropped = evaluate(twice, cv="loo", conditions=["flat_hybrid"], drop_twins=True)
    assert kept["conditions"]["flat_hybrid"]["top1"] == 1
    assert kept["twins"] == 40
    assert dropped["n"] <= 20
    assert dropped["conditions"]["flat_hybrid"]["top1"] < 1


def test_records_and_queries_may_be_two_sets():
    result = evaluate(cases(60), cases(20, start=60), conditions=["bm25", "supervised", "ours"])
    assert result["n"] == 20
    assert result["conditions"]["ours"]["top1"] > 0.4


@pytest.mark.parametrize("count", [2, 3, 30])
def test_a_handful_of_records_is_no_reason_to_fail(count):
    result = evaluate(cases(count), cases(4, start=50))
    assert list(result["conditions"]) == NAMES


def test_one_record_can_be_searched_too():
    assert evaluate(cases(1), cases(3, start=8))["n"] == 3


def test_codes_of_the_files_decide_what_is_equal_and_names_can_be_asked_for():
    coded = cases(32, coded=True)
    by_code = evaluate(coded, cv=2, conditions=["ours", "no_icd"])
    assert by_code["labels"] == 8
    assert evaluate(coded, cv=2, conditions=["vote"], label="code")["labels"] == 24
    assert evaluate(coded, cv=2, conditions=["vote"], label="name")["labels"] == 8


def test_departments_ages_and_sexes_may_all_be_missing():
    bare = [
        r.model_copy(update={"department": None, "age": None, "sex": None}) for r in cases(40, headed=False)
    ]
    result = evaluate(bare, cv=4, conditions=["map_rag", "ours"])
    assert result["conditions"]["ours"]["by_department"] == {}


def test_bad_asking_is_explained():
    with pytest.raises(InputError, match="unknown condition 'magic'"):
        evaluate(cases(4), cv=2, conditions=["magic"])
    with pytest.raises(InputError, match="either queries or cv"):
        evaluate(cases(4))
    with pytest.raises(InputError, match="number of folds"):
        evaluate(cases(4), cv="one")
    with pytest.raises(InputError, match="--llm"):
        evaluate(cases(4), cv=2, conditions=["ours_llm"])


def test_no_fold_searches_what_it_asks_and_every_query_is_asked_once():
    records = cases(23)
    asked = []
    for split in splits(records, records, folds_of("5"), seed=1):
        ids = {record.id for record in split.records}
        assert not ids & {records[i].id for i in split.queries}
        asked += split.queries
    assert sorted(asked) == list(range(23))


def test_bad_lines_of_a_file_are_reported_by_number_and_passed_over(tmp_path, caplog):
    path = tmp_path / "cases.jsonl"
    lines = [record.model_dump_json(exclude_none=True) for record in cases(12)]
    path.write_text("\n".join([*lines, "not json", "{}"]) + "\n", encoding="utf-8")
    result = evaluate(path, cv=2, conditions=["vote"], out=tmp_path / "out")
    assert result["n"] == 12
    assert result["rejected"] == 2
    assert "cases.jsonl line 13" in caplog.text
    assert len((tmp_path / "out" / "records.rejects.jsonl").read_text("utf-8").splitlines()) == 2


def test_leaving_one_out_is_no_easier_than_asking_new_cases():
    records = cases(48, hardness=1.0, coded=True)  # no word tells anything
    result = evaluate(records, cv="loo", conditions=["supervised", "ours", "no_multi_view", "no_icd"])
    for figures in result["conditions"].values():
        assert figures["top1"] < 0.5


def test_a_query_that_is_among_the_records_is_not_its_own_answer():
    from wardround.records.schema import Diagnosis

    alone = [
        record.model_copy(update={"diagnoses": [Diagnosis(name=f"disease number {i} of many")]})
        for i, record in enumerate(cases(12))
    ]
    result = evaluate(alone, alone, conditions=["vote", "supervised", "ours"])
    assert result["answerable"] == 0
    for figures in result["conditions"].values():
        assert figures["top1_all"] == 0


def test_more_folds_than_records_are_as_many_as_there_are_records():
    assert evaluate(cases(6), cv=50, conditions=["vote"])["folds"] == 6
    assert evaluate(cases(6), cv=2, conditions=["vote"])["folds"] == 2
