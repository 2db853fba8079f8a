"""Raw confidence as MAP-RAG describes it, and the chance that it is turned into."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.knowledge.calibration import ConfidenceCalibration, raw_confidence


def test_raw_confidence_is_the_weighted_sum_of_top_consensus_and_margin():
    found = raw_confidence([0.8, 0.6, 0.4, 0.2], ["a", "a", "b", "b"])
    assert found.top == pytest.approx(0.8)
    assert found.consensus == pytest.approx(1.4 / 1.8)
    assert found.margin == pytest.approx(0.5)
    assert found.raw == pytest.approx(0.4 * 0.8 + 0.35 * 1.4 / 1.8 + 0.25 * 0.5)


def test_without_a_rival_the_margin_is_whole():
    assert raw_confidence([0.9, 0.1], ["a", "a"]).margin == 1


def test_nothing_found_is_no_confidence():
    assert raw_confidence([], []).raw == 0
    assert raw_confidence([0.0, 0.0], ["a", "b"]).raw == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=12))
def test_confidence_and_its_parts_stay_between_zero_and_one(records):
    found = raw_confidence([s for s, _ in records], [label for _, label in records])
    for value in (found.raw, found.top, found.consensus, found.margin):
        assert 0 <= value <= 1 + 1e-12


def skilled(n, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3))
    return values, rng.random(n) < 1 / (1 + np.exp(-(1.5 * values[:, 0] - 1)))


def test_calibrated_confidence_means_what_it_says():
    fitted = ConfidenceCalibration.fit(("a", "b", "c"), *skilled(3000))
    values, right = skilled(4000, seed=1)
    chance = fitted.apply(values)
    for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 1)):
        here = (chance >= low) & (chance < high)
        assert chance[here].mean() == pytest.approx(right[here].mean(), abs=0.05)


def test_few_examples_give_the_base_rate_and_nothing_bolder():
    values, _ = skilled(10)
    fitted = ConfidenceCalibration.fit(("a", "b", "c"), values, np.array([True] * 4 + [False] * 6))
    assert np.ptp(fitted.apply(values)) == 0
    assert fitted.apply(values)[0] == pytest.approx(5 / 12)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hardly_any_example_is_no_crash(n):
    values, right = skilled(n)
    assert 0 < ConfidenceCalibration.fit(("a", "b", "c"), values, right).apply(np.zeros((1, 3)))[0] < 1


def test_examples_that_are_all_right_do_not_promise_certainty():
    values, _ = skilled(100)
    assert ConfidenceCalibration.fit(("a", "b", "c"), values, np.ones(100, bool)).apply(values).max() < 1


def test_the_isotonic_step_never_turns_the_order_round():
    values, right = skilled(2000)
    fitted = ConfidenceCalibration.fit(("a", "b", "c"), values, right, isotonic=True)
    plain = ConfidenceCalibration.fit(("a", "b", "c"), values, right)
    order = np.argsort(plain.apply(values))
    assert (np.diff(fitted.apply(values)[order]) >= -1e-12).all()


def test_a_calibration_survives_json():
    fitted = ConfidenceCalibration.fit(("a", "b", "c"), *skilled(1200), isotonic=True)
    again = ConfidenceCalibration.from_json(json.loads(json.dumps(fitted.to_json())))
    values, _ = skilled(50, seed=2)
    assert np.allclose(again.apply(values), fitted.apply(values))
