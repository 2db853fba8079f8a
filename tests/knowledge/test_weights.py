"""View weights by department: the table, a query's row, and learning them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.errors import InputError, SettingsError
from wardround.knowledge.weights import ViewWeights
from wardround.knowledge.weights_fit import FEWEST_CASES, WeightExample, fit_view_weights
from wardround.records.schema import VIEWS, View

ALL = np.ones(4, bool)
WHOLE = VIEWS.index(View.GLOBAL)


def test_the_shipped_table_has_the_papers_examples():
    table = ViewWeights.shipped()
    exam, history = VIEWS.index(View.EXAMINATION), VIEWS.index(View.HISTORY)
    eyes, practice = table.row("眼科", ALL), table.row("General practice", ALL)
    assert eyes[exam].sum() > eyes[history].sum()
    assert practice[history].sum() > practice[exam].sum()


@given(
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from([None, "眼科", "GP", "nowhere"]),
    st.booleans(),
)
def test_a_row_is_never_negative_and_sums_to_one_over_the_views_that_are_there(present, department, headed):
    there = np.array(present)
    row = ViewWeights.shipped().row(department, there, headed=headed)
    assert (row >= 0).all()
    assert (row[~there] == 0).all()
    assert row.sum() == pytest.approx(1 if there.any() else 0, abs=1e-5)


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_text_without_headings_keeps_half_its_weight_on_the_whole(present):
    there = np.array(present)
    there[WHOLE] = True
    lopsided = np.full((4, 2), 0.12, np.float32)
    lopsided[WHOLE] = 0.01
    row = ViewWeights(lopsided / lopsided.sum()).row(None, there, headed=False)
    assert row[WHOLE].sum() >= 0.5 - 1e-6


def test_a_table_that_breaks_its_schema_names_file_and_key(tmp_path):
    path = tmp_path / "weights.toml"
    path.write_text("[general]\nglobal = { dense = -1 }\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"weights\.toml: general\.global\.dense"):
        ViewWeights.load(path)


def test_two_rows_for_one_department_are_refused(tmp_path):
    path = tmp_path / "weights.toml"
    row = "global = { dense = 1, sparse = 1 }\n"
    path.write_text(
        f"[general]\n{row}[departments.'眼科']\n{row}[departments.ophthalmology]\n{row}", encoding="utf-8"
    )
    with pytest.raises(SettingsError, match="ophthalmology"):
        ViewWeights.load(path)


def examples(count, telling, department="eye", seed=0):
    """Cases in which the channel ``telling`` alone finds the record with the same label."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        scores = rng.uniform(0.1, 0.6, (12, 4, 2)).astype(np.float32)
        agrees = np.zeros(12, bool)
        agrees[:2] = True
        scores[:2, telling[0], telling[1]] += 0.4
        out.append(WeightExample(scores, agrees, ALL, department))
    return out


def test_fitting_moves_weight_to_the_channel_that_tells():
    fitted = fit_view_weights(examples(60, (1, 1)), ViewWeights.shipped(), data_hash="v1")
    assert fitted.general[1, 1] > 2 * ViewWeights.shipped().general[1, 1]
    assert fitted.general.sum() == pytest.approx(1, abs=1e-5)
    assert fitted.data_hash == "v1"
    assert fitted.score is not None


def test_too_few_cases_leave_the_table_and_the_report_says_so():
    fitted = fit_view_weights(examples(FEWEST_CASES - 1, (1, 1)), ViewWeights.shipped())
    assert np.array_equal(fitted.general, ViewWeights.shipped().general)
    assert "needed" in fitted.report["general"]


def test_a_small_department_gets_no_row_of_its_own_and_the_report_says_why():
    fitted = fit_view_weights([*examples(60, (1, 1)), *examples(8, (0, 0), "skin")], ViewWeights.shipped())
    assert "skin" not in fitted.departments
    assert "too few" in fitted.report["skin"]


def test_a_large_department_that_really_differs_gets_a_row():
    mixed = [*examples(150, (1, 1), "eye"), *examples(150, (0, 0), "skin", seed=1)]
    fitted = fit_view_weights(mixed, ViewWeights.shipped().general_only())
    assert fitted.departments["skin"][0, 0] > fitted.general[0, 0]
    assert fitted.departments["eye"][1, 1] > fitted.general[1, 1]


def test_fitted_weights_survive_being_stored():
    fitted = fit_view_weights(examples(60, (1, 1)), ViewWeights.shipped())
    again = ViewWeights.from_json(fitted.to_json())
    assert np.allclose(again.general, fitted.general)
    assert again.report == dict(fitted.report)
