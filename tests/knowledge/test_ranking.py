"""From scored records to ranked diagnoses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wardround.knowledge.ranking import (
    FEATURES,
    RankingMix,
    frequency_belief,
    learned_belief,
    no_belief,
    rank_labels,
    rerank,
    select_records,
    signs,
    vote_shares,
)

MIX = RankingMix(prior=0.25, power=4.0, neighbours=5)


def by_number(label):
    return label.to_bytes(4, "big")


def floats(*values):
    return np.array(values, np.float32)


def ints(*values):
    return np.array(values, np.int32)


def test_reranking_mixes_score_and_prior_as_the_formula_says():
    scores, priors = rerank(floats(0.8, 0.4), ints(1, 0), np.array([1.0, 0.2]), None, MIX)
    assert scores == pytest.approx([0.75 * 0.8 + 0.25 * 0.2, 0.75 * 0.4 + 0.25 * 1.0])
    assert priors == pytest.approx([0.2, 1.0])


def test_a_record_without_a_diagnosis_gets_no_prior():
    _, priors = rerank(floats(0.8), ints(-1), np.array([1.0]), None, MIX)
    assert priors == pytest.approx([0])


def test_a_rule_multiplies_the_odds_of_a_records_vote():
    effects = np.array([np.log(2.0), 0.0])
    plain = MIX.but(prior=0.0)
    scores, _ = rerank(floats(0.5, 0.5), ints(0, 1), None, effects, plain)
    shares = vote_shares(scores, ints(0, 1), 2, plain)
    assert shares[0] / shares[1] == pytest.approx(2, rel=1e-3)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(-1, 3)), max_size=20), st.floats(-10, 10))
def test_reranked_scores_stay_between_zero_and_one(records, effect):
    fused = floats(*(s for s, _ in records))
    labels = ints(*(label for _, label in records))
    scores, _ = rerank(fused, labels, np.full(4, 0.5), np.full(len(fused), effect), MIX)
    assert ((scores >= 0) & (scores <= 1)).all()


@given(st.lists(st.tuples(st.floats(0.01, 1), st.integers(-1, 3)), max_size=20))
def test_vote_shares_sum_to_one_where_anybody_votes(records):
    labels = ints(*(label for _, label in records))
    shares = vote_shares(floats(*(s for s, _ in records)), labels, 4, MIX)
    assert shares.sum() == pytest.approx(1 if (labels >= 0).any() else 0)


def test_only_the_nearest_records_vote():
    shares = vote_shares(floats(0.9, 0.8, 0.7, 0.6, 0.5, 0.4), ints(0, 0, 0, 0, 0, 1), 2, MIX)
    assert shares[1] == 0


def test_a_proposed_label_brings_its_best_record_in():
    fused = floats(0.9, 0.8, 0.7, 0.6, 0.5, 0.2, 0.1)
    labels = ints(0, 0, 0, 0, 0, 3, 3)
    kept = select_records(fused, labels, ints(3, 7), MIX)
    assert kept.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_learned_label_can_lead_without_the_nearest_record():
    belief = learned_belief(floats(0.0, 0.0, 0.9), np.zeros(3), MIX)
    ranked = rank_labels(floats(0.9, 0.1), floats(0.9, 0.1), ints(0, 2), belief, MIX, tie=by_number)
    assert ranked.order[0] == 2
    assert ranked.shares.sum() == pytest.approx(1)


def test_without_anything_learned_the_reranked_records_vote():
    ranked = rank_labels(floats(0.2, 0.9), floats(0.9, 0.2), ints(0, 2), no_belief(3), MIX, tie=by_number)
    assert ranked.order.tolist() == [2, 0]


def test_a_rule_turns_the_order_of_learned_labels_round():
    belief = learned_belief(floats(0.5, 0.45), np.zeros(2), MIX)
    ranked = rank_labels(
        floats(0.5),
        floats(0.5),
        ints(0),
        belief,
        MIX,
        tie=by_number,
        effects=lambda label: -4.0 * (label == 0),
    )
    assert ranked.order[0] == 1


def test_ties_are_broken_by_the_key_and_by_nothing_else():
    equal = floats(0.5, 0.5)
    first = rank_labels(equal, equal, ints(0, 1), no_belief(2), MIX, tie=by_number)
    last = rank_labels(equal, equal, ints(0, 1), no_belief(2), MIX, tie=lambda label: by_number(9 - label))
    assert first.order.tolist() == [0, 1]
    assert last.order.tolist() == [1, 0]


def test_the_learned_prior_is_a_scale_from_zero_to_one_in_the_order_of_the_scores():
    prior = learned_belief(floats(-1.0, 0.1, 0.5, 0.9), np.zeros(4), MIX).prior
    assert ((prior >= 0) & (prior <= 1)).all()
    assert (np.diff(prior) >= 0).all()


@pytest.mark.parametrize("records", [0, 1, 6])
def test_signs_are_finite_however_little_is_found(records):
    rng = np.random.default_rng(records)
    fused, labels = rng.random(records).astype(np.float32), rng.integers(0, 3, records).astype(np.int32)
    channels = rng.random((records, 4, 2)).astype(np.float32)
    for belief in (
        no_belief(3),
        frequency_belief(np.ones(3)),
        learned_belief(floats(0.1, 0.2, 0.3), np.zeros(3), MIX),
    ):
        ranked = rank_labels(fused, fused, labels, belief, MIX, tie=by_number)
        values, raw = signs(ranked, fused, fused, labels=labels, channels=channels, belief=belief)
        assert values.shape == (len(FEATURES),)
        assert np.isfinite(values).all()
        assert 0 <= raw.raw <= 1


def test_a_mix_survives_json():
    assert RankingMix.from_json(MIX.to_json()) == MIX
