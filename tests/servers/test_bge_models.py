"""FlagEmbedding for real: BGE-M3 and its reranker in their own layout, with tiny random weights."""

import asyncio
import os
import threading

import numpy as np
import pytest
from cases import CASE, eye_nodes, eye_query
from wardround.models import BgeM3Embedder, embedder_from_settings
from wardround.models.bge import colbert_score, sparse_scores
from wardround.postprocessors.bge_reranker import BgeReranker
from wardround.settings import EmbedderSettings

pytestmark = pytest.mark.bge
TEXTS = ["chest pain and a cough", "右眼胀痛，眼压升高", "三日前からの頭痛", "no fever"]


@pytest.fixture(scope="module")
def m3(tiny_bge):
    return BgeM3Embedder(tiny_bge / "bge-m3", threads=1)


def test_dense_rows_are_unit_vectors_and_repeat(m3):
    rows = m3.encode(TEXTS)
    assert rows.shape == (4, 64) == (4, m3.dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-4)
    assert np.allclose(rows, m3.encode(TEXTS), atol=1e-6)


def test_no_text_and_blank_text_do_not_reach_the_model(m3):
    assert m3.encode([]).shape == (0, 64)
    full = m3.encode_full(["", TEXTS[0], "  "])
    assert not full.dense[[0, 2]].any()
    assert full.sparse.shape == (3, m3.vocabulary)
    assert [len(one) > 0 for one in full.colbert] == [False, True, False]
    assert m3.encode_full([]).sparse.shape == (0, m3.vocabulary)


def test_a_text_is_the_same_alone_and_in_a_batch_of_other_lengths(m3):
    batch = m3.encode([*TEXTS, "long " * 200])
    assert np.allclose(batch[0], m3.encode([TEXTS[0]])[0], atol=1e-4)


def test_our_scores_are_those_of_flagembedding(m3):
    full = m3.encode_full(TEXTS)
    model = m3._loaded()
    theirs = model.encode(TEXTS, return_dense=True, return_sparse=True, return_colbert_vecs=True)
    lexical = theirs["lexical_weights"]
    ours = sparse_scores(full.sparse, full.sparse)
    for i in range(4):
        for j in range(4):
            want = model.compute_lexical_matching_score(lexical[i], lexical[j])
            assert ours[i, j] == pytest.approx(want, abs=1e-4)
            late = float(model.colbert_score(theirs["colbert_vecs"][i], theirs["colbert_vecs"][j]))
            assert colbert_score(full.colbert[i], full.colbert[j]) == pytest.approx(late, abs=1e-4)


def test_the_heads_in_the_folder_are_the_ones_used(m3, tiny_bge, tmp_path):
    import shutil

    import torch

    other = tmp_path / "bge-m3"
    shutil.copytree(tiny_bge / "bge-m3", other)
    torch.save({"weight": torch.zeros(1, 64), "bias": torch.full((1,), 0.25)}, other / "sparse_linear.pt")
    changed = BgeM3Embedder(other, threads=1)
    weights = changed.encode_full([TEXTS[0]]).sparse.data
    assert weights == pytest.approx(0.25)
    assert changed.identity != m3.identity


def test_settings_choose_it_and_threads_share_it(tiny_bge):
    settings = EmbedderSettings(kind="bge-m3", path=tiny_bge / "bge-m3", threads=1, batch_size=2)
    embedder = embedder_from_settings(settings)
    wanted, found = embedder.encode(TEXTS), []
    threads = [threading.Thread(target=lambda: found.append(embedder.encode(TEXTS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.allclose(rows, wanted, atol=1e-6) for rows in found)
    assert asyncio.run(embedder.aget_query_embedding(TEXTS[0])) == pytest.approx(list(wanted[0]), abs=1e-5)
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_the_reranker_mixes_its_score_in_and_reorders(tiny_bge):
    before = {one.node_id: one.score for one in eye_nodes()}
    reranker = BgeReranker(tiny_bge / "reranker", weight=1.0, threads=1, candidates=3)
    nodes = reranker.postprocess_nodes(eye_nodes(), query_bundle=eye_query())
    assert nodes[-1].node_id == "k1"
    assert nodes[-1].score == before["k1"]
    scores = [one.score for one in nodes[:3]]
    assert scores == sorted(scores, reverse=True)
    assert all(one.score == one.node.metadata["reranker"] for one in nodes[:3])
    assert all(one.node.metadata["fused"] == before[one.node_id] for one in nodes[:3])
    assert reranker.postprocess_nodes([], query_str=CASE) == []
    (only,) = reranker.postprocess_nodes(eye_nodes()[:1], query_str=CASE)
    assert 0 < only.score < 1
