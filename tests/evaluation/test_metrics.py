"""Figures of merit and their intervals, against slow plain definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score
from wardround.evaluation.metrics import (
    MISSED,
    accuracy_coverage,
    auroc,
    coverage_at,
    equal_mass_bins,
    expected_calibration_error,
    mean_reciprocal_rank,
    rank_of,
    tie_key,
    top_k,
)
from wardround.evaluation.statistics import bootstrap_interval, mcnemar
from wardround.evaluation.twins import twin_pairs

answers = st.lists(
    st.tuples(st.floats(0, 1).map(lambda x: round(x, 2)), st.booleans()), min_size=1, max_size=60
)


def columns(pairs):
    return np.array([c for c, _ in pairs]), np.array([r for _, r in pairs], bool)


@given(answers)
def test_auroc_is_scikit_learns(pairs):
    confidence, right = columns(pairs)
    if right.all() or not right.any():
        assert auroc(confidence, right) is None
    else:
        assert auroc(confidence, right) == pytest.approx(roc_auc_score(right, confidence))


@given(answers)
def test_coverage_at_a_precision_is_the_largest_cut_that_reaches_it(pairs):
    confidence, right = columns(pairs)
    best = 0.0
    for cut in set(confidence.tolist()):
        answered = confidence >= cut
        if right[answered].mean() >= 0.9:
            best = max(best, answered.mean())
    assert coverage_at(0.9, confidence, right) == pytest.approx(best)


def test_equal_confidences_are_answered_together():
    coverage, accuracy = accuracy_coverage(np.array([0.5, 0.5, 0.9]), np.array([True, False, True]))
    assert coverage.tolist() == pytest.approx([1 / 3, 1])
    assert accuracy.tolist() == pytest.approx([1, 2 / 3])


def test_ece_is_zero_where_confidence_is_accuracy_and_large_where_it_boasts():
    right = np.array([True] * 30 + [False] * 70)
    assert expected_calibration_error(np.full(100, 0.3), right, bins=1) == pytest.approx(0)
    assert expected_calibration_error(np.ones(100), right) == pytest.approx(0.7)


@given(st.lists(st.floats(0, 1), max_size=50))
def test_bins_are_of_equal_mass_and_lose_nobody(values):
    bins = equal_mass_bins(np.array(values))
    assert sorted(i for part in bins for i in part) == list(range(len(values)))
    assert max((len(b) for b in bins), default=0) - min((len(b) for b in bins), default=0) <= 1


def test_ranks_and_what_is_made_of_them():
    ranks = np.array([rank_of(3, [1, 3]), rank_of(1, [1, 3]), rank_of(9, [1, 3]), rank_of(-1, [1])])
    assert ranks.tolist() == [1, 0, MISSED, MISSED]
    assert top_k(ranks, 1) == 0.25
    assert top_k(ranks, 3) == 0.5
    assert mean_reciprocal_rank(ranks) == pytest.approx(1.5 / 4)
    assert top_k(ranks[:0], 1) == 0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80))
def test_mcnemar_is_the_exact_binomial_test(pairs):
    first = np.array([a for a, _ in pairs], bool)
    second = np.array([b for _, b in pairs], bool)
    n, k = int((first ^ second).sum()), int((first & ~second).sum())
    expected = 1.0 if n == 0 else min(1.0, binomtest(k, n).pvalue)
    assert mcnemar(first, second) == pytest.approx(expected)


def test_a_bootstrap_interval_holds_the_share_and_is_the_same_for_the_same_seed():
    hits = np.array([True] * 40 + [False] * 60)
    low, high = bootstrap_interval(hits, seed=3)
    assert low < 0.4 < high
    assert (low, high) == bootstrap_interval(hits, seed=3)
    assert bootstrap_interval(hits[:0]) == (0.0, 0.0)


def test_ties_depend_on_seed_query_and_label_alone():
    assert tie_key(0, "q", "a") == tie_key(0, "q", "a")
    assert len({tie_key(0, "q", "a"), tie_key(1, "q", "a"), tie_key(0, "p", "a"), tie_key(0, "q", "b")}) == 4


def test_twins_are_found_however_many_others_there_are():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 3000, 60)) for _ in range(60)]
    texts.append(texts[7].replace("w1", "w1 then", 2))
    texts.append(texts[9])
    assert (7, 60) in twin_pairs(texts)
    assert (9, 61) in twin_pairs(texts)
    assert len(twin_pairs(texts)) == 2


def test_empty_texts_are_nobodys_twins():
    assert twin_pairs(["", "", "chest pain"]) == []
