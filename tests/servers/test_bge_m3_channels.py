"""BGE-M3's three scores as channels over retrieved records, with tiny random weights."""

import asyncio

import numpy as np
import pytest
from cases import CASE, eye_nodes, eye_query, node
from pydantic import PrivateAttr, ValidationError
from wardround.models import BgeM3Embedder
from wardround.models.bge import colbert_score, sparse_scores
from wardround.postprocessors.bge_m3_channels import BgeM3ChannelReranker
from wardround.query import ClinicalQuery

pytestmark = pytest.mark.bge
BEFORE = {one.node_id: one.score for one in eye_nodes()}
WEIGHTS = ("fused_weight", "dense_weight", "sparse_weight", "colbert_weight")


class Counting(BgeM3Embedder):
    """The real model, and how many texts each of its calls had."""

    _calls: list = PrivateAttr(default_factory=list)

    def encode_full(self, texts):
        self._calls.append(len(texts))
        return super().encode_full(texts)


@pytest.fixture(scope="module")
def model(tiny_bge):
    return Counting(tiny_bge / "bge-m3", threads=1)


@pytest.fixture
def m3(model):
    model._calls.clear()
    return model


def only(channel, m3):
    return BgeM3ChannelReranker(embedder=m3, **{name: float(name == f"{channel}_weight") for name in WEIGHTS})


def channels_of(nodes):
    return {one.node_id: one.node.metadata["channel_scores"]["bge_m3"] for one in nodes}


def test_each_record_gets_the_three_scores_of_the_model_between_0_and_1(m3):
    found = channels_of(BgeM3ChannelReranker(embedder=m3).postprocess_nodes(eye_nodes(), eye_query()))
    full = m3.encode_full([CASE, *(one.text for one in eye_nodes())])
    lexical = sparse_scores(full.sparse[0], full.sparse)[0]
    assert lexical[0] > 0
    for place, record_id in enumerate(BEFORE, start=1):
        late = colbert_score(full.colbert[0], full.colbert[place])
        wanted = {
            "dense": np.clip(full.dense[0] @ full.dense[place], 0, 1),
            "sparse": min(1.0, lexical[place] / lexical[0]),
            "colbert": np.clip(late, 0, 1),
        }
        assert found[record_id] == pytest.approx(wanted, abs=1e-4)
    assert len({one["colbert"] for one in found.values()}) == 4


def test_a_record_that_is_the_case_itself_has_full_scores(m3):
    (same,) = BgeM3ChannelReranker(embedder=m3).postprocess_nodes(
        [node("same", CASE, "Glaucoma", 1.0)], eye_query()
    )
    wanted = dict.fromkeys(("dense", "sparse", "colbert"), 1.0)
    assert channels_of([same])["same"] == pytest.approx(wanted, abs=1e-3)
    assert same.score == pytest.approx(1, abs=1e-3)


def test_the_score_is_the_weighted_mean_and_decides_the_order(m3):
    nodes = BgeM3ChannelReranker(embedder=m3).postprocess_nodes(eye_nodes(), eye_query())
    scores = [one.score for one in nodes]
    assert scores == sorted(scores, reverse=True)
    for one in nodes:
        channels = one.node.metadata["channel_scores"]["bge_m3"]
        mean = 0.4 * channels["dense"] + 0.2 * channels["sparse"] + 0.4 * channels["colbert"]
        assert one.score == pytest.approx((BEFORE[one.node_id] + mean) / 2, abs=1e-5)
        assert one.node.metadata["fused"] == BEFORE[one.node_id]


@pytest.mark.parametrize("channel", ["dense", "sparse", "colbert"])
def test_a_channel_with_all_the_weight_is_the_score(m3, channel):
    nodes = only(channel, m3).postprocess_nodes(eye_nodes(), eye_query())
    for one in nodes:
        assert one.score == pytest.approx(channels_of([one])[one.node_id][channel], abs=1e-5)


def test_equal_scores_keep_the_order_they_came_in(m3):
    nodes = [node(name, "Hazy cornea.", "Glaucoma", 0.5) for name in "bca"]
    ranked = BgeM3ChannelReranker(embedder=m3).postprocess_nodes(nodes, eye_query())
    assert [one.node_id for one in ranked] == ["b", "c", "a"]


def test_what_the_metadata_said_before_stays_and_no_model_is_shown_the_scores(m3):
    shared = {"global": {"dense": 0.7, "sparse": 0.4}}
    one = node("g1", "Hazy cornea.", "Glaucoma", 0.6, channel_scores=shared, fused=0.8)
    (ranked,) = BgeM3ChannelReranker(embedder=m3).postprocess_nodes([one], eye_query())
    assert ranked.node.metadata["fused"] == 0.8
    assert ranked.node.metadata["channel_scores"]["global"] == {"dense": 0.7, "sparse": 0.4}
    assert list(shared) == ["global"]
    assert {"channel_scores", "fused"} <= set(ranked.node.excluded_llm_metadata_keys)


def test_records_are_encoded_once_and_the_case_each_time(m3):
    reranker = BgeM3ChannelReranker(embedder=m3)
    twice = [*eye_nodes(), node("g1-again", eye_nodes()[0].text, "Glaucoma", 0.1)]
    first = channels_of(reranker.postprocess_nodes(twice, eye_query()))
    again = channels_of(reranker.postprocess_nodes(eye_nodes(), eye_query()))
    assert m3._calls == [5, 1]
    for record_id, channels in again.items():
        assert channels == pytest.approx(first[record_id], abs=1e-4)
    assert first["g1-again"] == first["g1"]


def test_the_records_kept_are_the_latest_ones_that_fit(m3):
    reranker = BgeM3ChannelReranker(embedder=m3, cache_mb=1)
    for number in range(12):
        long = node(f"r{number}", f"Visit {number}. " + "Pain in the right eye. " * 150, "Uveitis", 0.5)
        reranker.postprocess_nodes([long], eye_query())
    assert 1 < len(reranker._kept) < 12
    assert 0 < reranker._kept_bytes == sum(one.size for one in reranker._kept.values()) <= 1 << 20
    reranker.postprocess_nodes([long], eye_query())
    assert m3._calls == [2] * 12 + [1]
    none_kept = BgeM3ChannelReranker(embedder=m3, cache_mb=0)
    assert len(none_kept.postprocess_nodes(eye_nodes(), eye_query())) == 4
    assert not none_kept._kept


def test_the_diagnosis_in_a_case_does_not_count(m3):
    reranker = BgeM3ChannelReranker(embedder=m3)
    text = f"Chief complaint: {CASE}"
    plain = channels_of(reranker.postprocess_nodes(eye_nodes(), ClinicalQuery.of(text)))
    told = ClinicalQuery.of(f"{text}\nDiagnosis: Contact lens keratitis")
    assert channels_of(reranker.postprocess_nodes(eye_nodes(), told)) == plain


@pytest.mark.parametrize("asked", [{}, {"query_str": ""}, {"query_str": " \n"}])
def test_without_a_question_the_records_stay_as_they_are(m3, asked):
    nodes = BgeM3ChannelReranker(embedder=m3).postprocess_nodes(eye_nodes(), **asked)
    assert {one.node_id: one.score for one in nodes} == BEFORE
    assert all("channel_scores" not in one.node.metadata for one in nodes)
    assert m3._calls == []


def test_no_records_and_a_record_without_text_are_fine(m3):
    reranker = BgeM3ChannelReranker(embedder=m3)
    assert reranker.postprocess_nodes([], eye_query()) == []
    (blank,) = reranker.postprocess_nodes([node("x", " ", "Uveitis", 0.5)], eye_query())
    assert channels_of([blank]) == {"x": {"dense": 0.0, "sparse": 0.0, "colbert": 0.0}}
    assert blank.score == pytest.approx(0.25)


def test_questions_at_the_same_time_get_what_each_gets_alone(m3):
    alone = channels_of(BgeM3ChannelReranker(embedder=m3).postprocess_nodes(eye_nodes(), eye_query()))
    shared = BgeM3ChannelReranker(embedder=m3)

    async def ask():
        return await asyncio.gather(*(shared.apostprocess_nodes(eye_nodes(), eye_query()) for _ in range(4)))

    for nodes in asyncio.run(ask()):
        for record_id, channels in channels_of(nodes).items():
            assert channels == pytest.approx(alone[record_id], abs=1e-4)


def test_weights_that_weigh_nothing_are_refused(m3):
    with pytest.raises(ValidationError, match="all four weights are 0"):
        BgeM3ChannelReranker(embedder=m3, **dict.fromkeys(WEIGHTS, 0.0))
    with pytest.raises(ValidationError, match="sparse_weight"):
        BgeM3ChannelReranker(embedder=m3, sparse_weight=-0.1)
