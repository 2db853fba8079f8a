"""Embedders give unit rows, know who they are, and never fetch anything."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import QueryBundle, TextNode
from wardround.errors import ModelError
from wardround.models import BgeM3Embedder, LlamaEmbedder, UseEmbedder, embedder_from_settings
from wardround.models.bge import colbert_score, sparse_scores
from wardround.settings import EmbedderSettings

TEXTS = ["chest pain on exertion", "運動時の胸痛", "活动后胸痛", "itchy rash"]


@pytest.fixture(scope="module")
def use():
    return UseEmbedder(threads=1)


def test_rows_are_unit_vectors_of_the_said_dimension(use):
    rows = use.encode(TEXTS)
    assert rows.shape == (4, use.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_same_complaint_is_near_across_languages(use):
    rows = use.encode(TEXTS)
    assert min(rows[0] @ rows[1], rows[0] @ rows[2], rows[1] @ rows[2]) > max(rows[:3] @ rows[3])


def test_no_text_gives_no_row_and_blank_text_a_zero_row(use):
    assert use.encode([]).shape == (0, 512)
    assert not use.encode(["", " \n\t"]).any()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6))
def test_any_text_gives_finite_rows_and_equal_texts_equal_rows(texts):
    rows = UseEmbedder(threads=1).encode([*texts, *texts])
    assert np.isfinite(rows).all()
    assert np.array_equal(rows[: len(texts)], rows[len(texts) :])


def test_a_row_does_not_depend_on_its_company(use):
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS]
    alone = np.vstack([use.encode([text]) for text in texts])
    assert np.abs(use.encode(texts) - alone).max() < 1e-4


def test_threads_get_the_same_rows(use):
    wanted, found = use.encode(TEXTS), [None] * 6

    def work(place):
        found[place] = use.encode(TEXTS)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(rows, wanted) for rows in found)


def test_it_is_an_embedding_for_llama_index(use):
    (node,) = use([TextNode(text="chest pain")])
    assert node.embedding == pytest.approx(use.get_query_embedding("chest pain"), abs=1e-5)
    assert use.get_agg_embedding_from_queries([QueryBundle("a").query_str]) is not None


def test_the_default_settings_name_the_embedded_model():
    embedder = embedder_from_settings(EmbedderSettings(threads=3))
    assert isinstance(embedder, UseEmbedder)
    assert embedder.threads == 3


def test_a_foreign_embedding_is_wrapped_with_its_own_name():
    embedder = LlamaEmbedder(MockEmbedding(embed_dim=6))
    rows = embedder.encode(["a", "", "b"])
    assert rows.shape == (3, 6)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1])
    assert embedder.identity == "MockEmbedding/unknown"


@pytest.mark.parametrize("dimension", [5, 7])
def test_a_foreign_embedding_of_another_length_is_refused(dimension):
    with pytest.raises(ModelError, match="long"):
        LlamaEmbedder(MockEmbedding(embed_dim=6), dimension=dimension).encode(["a"])


def test_a_model_folder_that_does_not_exist_is_refused_not_fetched(tmp_path):
    with pytest.raises(ModelError, match="nothing is downloaded"):
        BgeM3Embedder(tmp_path / "BAAI" / "bge-m3")


@pytest.mark.parametrize(
    "missing", ["colbert_linear.pt", "sparse_linear.pt", "config.json", "model.safetensors"]
)
def test_a_model_folder_with_a_hole_is_refused_by_name(tmp_path, missing):
    names = {
        "colbert_linear.pt",
        "sparse_linear.pt",
        "config.json",
        "tokenizer_config.json",
        "model.safetensors",
    }
    for name in names - {missing}:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ModelError, match=missing):
        BgeM3Embedder(tmp_path)


def test_identity_follows_the_weights(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, weights in zip(folders, (b"one", b"two", b"one"), strict=True):
        folder.mkdir()
        for name in ("colbert_linear.pt", "sparse_linear.pt", "config.json", "tokenizer_config.json"):
            (folder / name).write_bytes(b"x")
        (folder / "model.safetensors").write_bytes(weights)
    one, two, three = (BgeM3Embedder(folder).identity for folder in folders)
    assert one == three != two


def test_late_interaction_and_sparse_scores_by_hand():
    from scipy import sparse

    query = np.array([[1, 0], [0, 1]], np.float32)
    document = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert colbert_score(query, document) == pytest.approx(0.9)
    assert colbert_score(query, document[:0]) == 0
    left, right = sparse.csr_matrix([[0.5, 0, 2]]), sparse.csr_matrix([[1, 1, 1], [0, 3, 0]])
    assert sparse_scores(left, right).tolist() == [[2.5, 0]]
