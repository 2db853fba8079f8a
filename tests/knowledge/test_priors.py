"""How frequent a diagnosis is in a department."""

import numpy as np
import pytest
from wardround.knowledge.priors import DiagnosisPrior, log_scaled

LABELS = np.array([0, 0, 0, 1, 1, 2, -1], np.int32)
CLINICS = np.array([0, 0, 1, 1, 1, -1, 0], np.int32)


@pytest.fixture
def prior():
    return DiagnosisPrior.of(LABELS, CLINICS, 4, 2)


def test_probabilities_are_laplace_smoothed_and_sum_to_one(prior):
    assert prior.given(0) == pytest.approx(np.array([3, 1, 1, 1]) / 6)
    for department in (-1, 0, 1):
        assert prior.given(department).sum() == pytest.approx(1)
        assert prior.soft(department).sum() == pytest.approx(1)


def test_an_unknown_department_has_the_overall_frequencies(prior):
    assert prior.given(-1) == pytest.approx(prior.overall())
    assert prior.given(99) == pytest.approx(prior.overall())


def test_a_record_left_out_no_longer_counts(prior):
    assert prior.given(0, without=0)[0] < prior.given(0)[0]
    assert prior.overall(without=2)[2] == pytest.approx(1 / 9)


def test_the_scaled_prior_is_one_for_the_commonest_and_zero_for_the_unseen(prior):
    scaled = prior.scaled(0)
    assert scaled[0] == 1
    assert scaled[3] == 0
    assert ((scaled >= 0) & (scaled <= 1)).all()


def test_small_departments_are_pulled_towards_all(prior):
    lone = DiagnosisPrior.of(np.array([0] * 50 + [1], np.int32), np.array([0] * 50 + [1], np.int32), 2, 2)
    assert lone.soft(1)[0] > lone.given(1)[0]
    del prior


def test_log_scaling_keeps_order_and_stays_between_zero_and_one():
    values = log_scaled(np.array([1e-12, 1e-3, 0.01, 0.5, 1.0]), 1e-3)
    assert values[0] == values[1] == 0
    assert values[-1] == 1
    assert (np.diff(values[1:]) > 0).all()
