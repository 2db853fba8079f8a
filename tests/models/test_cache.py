"""Texts are embedded once, whatever happens in between."""

import sqlite3
import threading

import numpy as np
import pytest
from plain_cases import PlainEmbedder, case, parts
from wardround.indexes.cases import CaseIndex
from wardround.models.cache import EmbeddingCache

TEXTS = ["chest pain", "cough", "chest pain", "", "fever and 咳嗽"]


@pytest.fixture
def cache(tmp_path):
    return EmbeddingCache(tmp_path / "cache")


def test_a_cold_and_a_warm_cache_give_the_same_vectors(cache):
    cold = cache.encode(PlainEmbedder(), TEXTS)
    warm_embedder = PlainEmbedder()
    warm = cache.encode(warm_embedder, TEXTS)
    assert warm_embedder.asked == []
    assert np.array_equal(cold, warm)
    assert np.array_equal(cold[0], cold[2])
    assert np.allclose(cold, PlainEmbedder().encode(TEXTS), atol=1e-3)


def test_each_distinct_text_is_embedded_once(cache):
    embedder = PlainEmbedder()
    cache.encode(embedder, TEXTS)
    assert sorted(embedder.asked) == sorted(set(TEXTS))


def test_embedders_never_share_vectors(cache):
    cache.encode(PlainEmbedder(), TEXTS)
    other = PlainEmbedder(name="other")
    cache.encode(other, TEXTS)
    assert len(other.asked) == 4


def test_an_interrupted_build_resumes_where_it_stopped(cache, tmp_path):
    broken = PlainEmbedder(fail_after=150)
    with pytest.raises(KeyboardInterrupt):
        CaseIndex.build(
            map(case, range(100)), tmp_path / "a", **parts(embedder=broken, cache=cache, batch_size=8)
        )
    assert len(broken.asked) > 100
    whole = PlainEmbedder()
    CaseIndex.build(map(case, range(100)), tmp_path / "a", **parts(embedder=whole, cache=cache, batch_size=8))
    assert not set(broken.asked) & set(whole.asked)


def test_the_cache_holds_no_text(cache):
    secret = "Mrs Emerald Featherstonehaugh of Lower Slaughter"
    cache.encode(PlainEmbedder(), [secret])
    for path in cache.folder.iterdir():
        content = path.read_bytes()
        assert all(word.encode() not in content for word in secret.split() if len(word) > 3)


def test_a_damaged_cache_is_started_anew(cache, caplog):
    cache.encode(PlainEmbedder(), TEXTS)
    path = cache.path(PlainEmbedder())
    for end in ("", "-wal"):
        path.with_name(path.name + end).write_bytes(b"not a database at all, only noise" * 200)
    assert np.allclose(cache.encode(PlainEmbedder(), TEXTS), PlainEmbedder().encode(TEXTS), atol=1e-3)
    again = PlainEmbedder()
    cache.encode(again, TEXTS)
    assert again.asked == []
    assert "chest" not in caplog.text


def test_a_cache_that_cannot_be_written_costs_no_answer(tmp_path):
    (tmp_path / "file").write_text("in the way")
    embedder = PlainEmbedder()
    assert EmbeddingCache(tmp_path / "file").encode(embedder, TEXTS).shape == (5, embedder.dimension)


def test_vectors_of_a_wrong_length_are_embedded_again(cache):
    cache.encode(PlainEmbedder(), TEXTS)
    with sqlite3.connect(cache.path(PlainEmbedder())) as base:
        base.execute("UPDATE vectors SET vector = x'0000'")
    embedder = PlainEmbedder()
    assert np.allclose(cache.encode(embedder, TEXTS), PlainEmbedder().encode(TEXTS), atol=1e-3)
    assert len(embedder.asked) == 4


def test_several_writers_share_a_cache(cache):
    texts = [f"w{i} w{i + 1}" for i in range(300)]
    results = []

    def work():
        results.append(cache.encode(PlainEmbedder(), texts, batch_size=7))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert all(np.array_equal(results[0], result) for result in results)


def test_progress_counts_every_distinct_text_once(cache):
    for _ in range(2):
        steps = []
        cache.encode(PlainEmbedder(), TEXTS, batch_size=2, tick=steps.append)
        assert sum(steps) == 4
