"""What a channel score means, and which records are scored."""

import bm25s
import numpy as np
import pytest
import Stemmer
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.retrievers.bm25 import BM25Retriever
from plain_cases import PlainEmbedder, case, parts, score_table
from wardround.indexes.cases import AnnOptions, CaseIndex, Channel
from wardround.indexes.cases.dense import DenseChannel, fill, mean_cosine, new_index
from wardround.indexes.cases.sparse import SparseChannel, TermCounts, top, weigh
from wardround.indexes.cases.whitening import Whitening
from wardround.records.schema import VIEWS, OutpatientRecord, View

GLOBAL = VIEWS.index(View.GLOBAL)
NOTES = [
    "Sudden loss of vision in the left eye, painful, with halos around lights",
    "Chronic cough with sputum and weight loss over three months",
    "Painful red eye with photophobia and a small pupil",
    "Crushing chest pain at rest radiating into the left arm, sweating",
    "Dry cough and fever for two days, chest clear on examination",
    "Painful left arm after a fall, no loss of sensation",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return CaseIndex.build(map(case, range(120)), tmp_path_factory.mktemp("search") / "cases", **parts())


def record(name, **views):
    return OutpatientRecord(id=name, language="en", views={View(v): t for v, t in views.items()})


def test_a_record_asked_with_its_own_words_scores_one_in_every_view_it_has(index):
    for number in (0, 17, 63):
        views = case(number).views
        scores = score_table(index, views)[f"r{number}"]
        for i, view in enumerate(VIEWS):
            assert scores[i] == pytest.approx(1 if view in views else 0, abs=2e-3)


def test_every_score_lies_between_nought_and_one_and_absent_views_score_nought(index):
    views = case(400).views | {View.HISTORY: " "}
    found = index.search(index.encode_query(views), candidates=120)
    assert found.scores.dtype == np.float32
    assert found.scores.min() >= 0
    assert found.scores.max() <= 1
    history = VIEWS.index(View.HISTORY)
    assert not found.present[history]
    assert not found.scores[:, history].any()
    for row, scores in zip(found.rows, found.scores, strict=True):
        missing = [i for i, view in enumerate(VIEWS) if view not in index.payload(int(row)).views]
        assert not scores[missing].any()


def test_a_candidate_of_one_channel_gets_the_scores_of_all(index):
    views = case(401).views
    few = score_table(index, views, candidates=5)
    every = score_table(index, views)
    assert 5 <= len(few) <= 40
    for name, scores in few.items():
        assert np.allclose(scores, every[name], atol=1e-6)


def test_the_union_holds_the_best_of_each_channel(index):
    views = case(402).views
    few, every = score_table(index, views, candidates=5), score_table(index, views)
    for i in np.flatnonzero(index.encode_query(views).present):
        for channel in Channel:
            ranked = sorted(every, key=lambda name: -every[name][i, channel])
            fifth = every[ranked[4]][i, channel]
            assert all(name in few for name in ranked if every[name][i, channel] > fifth + 1e-6)


def test_excluded_records_make_room_for_others(index):
    views = case(17).views
    with_it, without = score_table(index, views, candidates=3), None
    found = index.search(index.encode_query(views), candidates=3, exclude=frozenset({"r17", "nobody"}))
    without = [index.ids[int(row)] for row in found.rows]
    assert "r17" in with_it
    assert "r17" not in without
    assert len(without) >= 3


def test_rows_may_be_added_to_the_candidates_but_not_against_an_exclusion(index):
    encoded = index.encode_query(case(17).views)
    found = index.search(encoded, candidates=1, extra_rows=[100, 101], exclude=frozenset({"r101"}))
    assert 100 in found.rows
    assert 101 not in found.rows
    assert len(found.rows) == len(set(found.rows.tolist()))


def test_a_query_without_text_finds_nothing(index):
    found = index.search(index.encode_query({}))
    assert found.scores.shape == (0, 4, 2)
    assert not found.present.any()


def test_unheard_of_words_lower_the_share_that_is_covered(index):
    words = case(17).views[View.GLOBAL]
    known = score_table(index, {View.GLOBAL: words})["r17"][GLOBAL, Channel.SPARSE]
    more = score_table(index, {View.GLOBAL: words + " zebra quagga"})["r17"][GLOBAL, Channel.SPARSE]
    most = score_table(index, {View.GLOBAL: words + " zebra quagga okapi tapir"})["r17"][
        GLOBAL, Channel.SPARSE
    ]
    assert known == pytest.approx(1, abs=1e-4)
    assert most < more < known
    assert most > 0.3


def test_an_unheard_of_word_weighs_as_much_as_a_word_of_a_single_record():
    counts = TermCounts.of(np.array([2, 2, 2]), np.array([0, 1, 0, 2, 0, 3], np.int32))
    vocabulary = {"a": 0, "b": 1, "c": 2, "d": 3}
    channel = SparseChannel(weigh(counts, 4), vocabulary, ["x", "y", "z"], parts()["tokenizer"])
    known = channel.own_weight(np.array([0, 1], np.int32), [])
    assert channel.own_weight(np.array([0], np.int32), [1]) == pytest.approx(known)


class StockWords:
    """Words as the stock retriever cuts them."""

    identity = "stock/1"

    def tokenize(self, text, language=None):
        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(text, stemmer=stemmer, return_ids=False, show_progress=False)[0]

    def tokenize_many(self, texts, languages=None):
        return [self.tokenize(text) for text in texts]


@pytest.fixture
def both_sparse():
    words = StockWords()
    vocabulary = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words.tokenize(note)] for note in NOTES]
    counts = TermCounts.of(
        np.array([len(row) for row in ids]), np.array([i for row in ids for i in row], np.int32)
    )
    names = [f"n{i}" for i in range(len(NOTES))]
    ours = SparseChannel(weigh(counts, len(vocabulary)), vocabulary, names, words, similarity_top_k=6)
    nodes = [TextNode(id_=name, text=note) for name, note in zip(names, NOTES, strict=True)]
    stock = BM25Retriever(nodes=nodes, similarity_top_k=6)
    return ours, stock


@pytest.mark.parametrize(
    "question", ["painful left eye", "cough cough fever unheard", "chest pain chest", *NOTES]
)
def test_the_sparse_channel_scores_plain_english_as_the_stock_retriever_does(both_sparse, question):
    ours, stock = both_sparse
    expected = {n.node.node_id: n.score for n in stock.retrieve(question) if n.score > 0}
    found = {n.node.node_id: n.score for n in ours.retrieve(QueryBundle(question))}
    assert found == pytest.approx(expected, abs=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_sparse_channel_never_fills_up_with_records_that_share_no_word(both_sparse):
    ours, _ = both_sparse
    assert [n.node.node_id for n in ours.retrieve("photophobia")] == ["n2"]
    assert ours.retrieve("zebra") == []


def test_the_highest_scores_are_found_without_sorting_all():
    rng = np.random.default_rng(0)
    for size in (1, 40, 5_000):
        scores = np.where(rng.random(size) < 0.4, rng.random(size), 0).astype(np.float32)
        for count in (0, 1, 7, 60):
            rows = top(scores, count)
            expected = np.sort(scores[scores > 0])[::-1][:count]
            assert np.array_equal(np.sort(scores[rows])[::-1], expected)
            assert len(set(rows.tolist())) == len(rows)


def test_small_indexes_search_exactly(index):
    encoded = index.encode_query(case(404).views)
    matrix = index.dense_matrix(View.GLOBAL).astype(np.float32)
    exact = set(np.argsort(-(matrix @ encoded.vectors[GLOBAL]))[:10].tolist())
    only = {View.GLOBAL: case(404).views[View.GLOBAL]}
    found = index.search(index.encode_query(only, vectors=None), candidates=10)
    assert exact <= set(found.rows.tolist())


def test_dense_scores_start_at_the_mean_cosine_of_two_records():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(300, 8)) + 1.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = new_index(8, graph=False, options=AnnOptions())
    fill(flat, iter([vectors]), AnnOptions())
    slots = np.arange(300, dtype=np.int32)
    floor = mean_cosine(flat, slots)
    pairs = vectors @ vectors.T
    assert floor == pytest.approx(pairs[np.triu_indices(300, 1)].mean(), abs=1e-3)
    channel = DenseChannel(flat, slots, np.arange(300, dtype=np.uint64), floor)
    query = vectors[5].astype(np.float32)
    expected = np.clip((pairs[5] - floor) / (1 - floor), 0, 1)
    assert np.allclose(channel.scores(query, np.arange(300)), expected, atol=2e-3)


def test_the_dense_channel_is_a_llama_index_vector_store(index):
    channel = index.dense_channel(View.GLOBAL)
    encoded = index.encode_query(case(9).views)
    found = channel.store.query(
        VectorStoreQuery(query_embedding=encoded.vectors[GLOBAL].tolist(), similarity_top_k=3)
    )
    assert found.similarities[0] == pytest.approx(1, abs=1e-3)


def test_a_graph_of_clustered_vectors_finds_the_exact_neighbours():
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(40, 12))
    vectors = centres[rng.integers(0, 40, 4000)] + 0.5 * rng.normal(size=(4000, 12))
    vectors = (vectors @ rng.normal(size=(12, 64))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    options = AnnOptions()
    graph = new_index(64, graph=True, options=options)
    fill(graph, iter([vectors]), options)
    queries = vectors[:40] + 0.02 * rng.normal(size=(40, 64)).astype(np.float32)
    _, found = graph.search(queries, 100)
    exact = np.argsort(-(queries @ vectors.T), axis=1)[:, :50]
    recall = np.mean([len(set(f[:50]) & set(e)) / 50 for f, e in zip(found, exact, strict=True)])
    assert recall >= 0.98


def test_half_whitening_evens_out_directions_and_no_whitening_changes_nothing():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(5000, 16)) * np.geomspace(1, 0.05, 16) + 0.3
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def spread(matrix):
        values = np.linalg.eigvalsh(np.cov(matrix.T))
        return values[-1] / values[0]

    half, full = (Whitening.fit(vectors, e).apply(vectors) for e in (0.5, 1.0))
    assert spread(full) < spread(half) < spread(vectors)
    assert np.allclose(Whitening.fit(vectors, 0).apply(vectors), vectors, atol=1e-6)
    assert np.allclose(Whitening.fit(vectors[:20], 0.5).apply(vectors), vectors, atol=1e-6)
    assert not Whitening.fit(vectors, 0.5).apply(np.zeros((1, 16))).any()


def test_a_tie_of_thousands_of_equal_texts_keeps_the_wanted_number(tmp_path):
    records = [record(f"r{i}", chief_complaint="cough", **{"global": f"w{i} w{i % 7}"}) for i in range(300)]
    index = CaseIndex.build(records, tmp_path / "ties", **parts())
    found = index.search(index.encode_query({View.CHIEF_COMPLAINT: "cough"}), candidates=10)
    assert 10 <= len(found.rows) <= 20


def test_matrices_for_learning_hold_what_the_channels_score_with(index):
    encoded = index.encode_query(case(17).views)
    weights = index.sparse_matrix(View.GLOBAL)
    assert weights.shape == (120, len(index.vocabulary))
    query = np.bincount(encoded.terms[GLOBAL], minlength=len(index.vocabulary))
    found = index.search(encoded, candidates=200)
    bm25 = (weights @ query)[found.rows] / encoded.own_weights[GLOBAL]
    assert np.allclose(np.minimum(bm25, 1), found.scores[:, GLOBAL, Channel.SPARSE], atol=1e-5)
    norms = np.linalg.norm(index.dense_matrix(View.HISTORY).astype(np.float32), axis=1)
    has = [View.HISTORY in index.payload(row).views for row in range(120)]
    assert np.allclose(norms, has, atol=1e-3)


def test_columns_describe_records_without_reading_them(index):
    for row in (0, 5, 119):
        payload = index.payload(row)
        assert index.ids[row] == payload.id
        assert index.label_names[index.labels[row]] == payload.diagnoses[0].name
        assert index.label_codes[index.labels[row]] == payload.diagnoses[0].code
        number = index.departments[row]
        assert (index.department_names[number] if number >= 0 else None) == payload.department
        assert index.sex_names[index.sexes[row]] == payload.sex
        assert index.ages[row] == payload.age


def test_vectors_may_be_given_where_they_are_known(index):
    views = case(17).views
    embedder = PlainEmbedder()
    vectors = {view: embedder.encode([text])[0] for view, text in views.items()}
    given, own = index.encode_query(views, vectors=vectors), index.encode_query(views)
    assert np.allclose(given.vectors, own.vectors)


def test_a_case_is_embedded_once_for_all_who_ask(index):
    embedder = PlainEmbedder()
    again = CaseIndex.open(index.path, **parts(embedder=embedder))
    encoded = [reader.encode_query(case(300).views, "en") for reader in (again, again.snapshot(), again)]
    assert len(embedder.asked) == len(set(case(300).views.values()))
    assert encoded[0] is encoded[2]


def test_a_query_encoded_before_a_change_is_searched_as_if_encoded_after(tmp_path):
    changing = CaseIndex.build(map(case, range(60)), tmp_path / "cases", **parts())
    before = changing.encode_query(case(70, words=90).views, "en")
    changing.delete([f"r{n}" for n in range(20)])
    changing.add(case(n, words=90) for n in range(60, 80))
    after = changing.encode_query(case(70, words=90).views, "en")
    old, new = changing.search(before), changing.search(after)
    assert np.array_equal(old.rows, new.rows)
    assert np.allclose(old.scores, new.scores)
