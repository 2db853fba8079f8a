"""Similar-case search at scale: ours, the bare libraries, and LlamaIndex's stock fusion, on the same data.

``python -m wardround.benchmarks.retrieval --json --records 140000 --views 4 --dim 512 --queries 50``

- ours: ``MultiViewHybridRetriever`` (tokenising, all eight channels, fusion, nodes) and the clinical
  re-rank, ten nodes in the end; only the embedding of the query is left out.
- floor: per view ``bm25s.BM25.get_scores`` with the words given and ``argpartition``, and a search of the
  very same FAISS index held in memory.
- ``QueryFusionRetriever``: reciprocal-rank fusion over four ``VectorStoreIndex`` retrievers with
  ``FaissVectorStore`` over the very same FAISS indexes, and four ``BM25Retriever``, embedding left out as
  well.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..models.base import Kind, Matrix, TextEmbedder
from ..records.schema import VIEWS, OutpatientRecord, View
from ._common import BenchmarkResult, interleaved_ms, parser, peak_rss_mb, run_stage, show
from .synthetic import SyntheticCases, SyntheticEmbedder, intrinsic_dimension

MODULE = "wardround.benchmarks.retrieval"
CANDIDATES = 100
NODES = 10


class KnownVectors(TextEmbedder):
    """Looks vectors up, so that embedding costs nothing."""

    model_name: str = "known"
    _identity: str
    _dimension: int
    _vectors: dict[str, npt.NDArray[np.float32]]

    def __init__(self, identity: str, dimension: int, vectors: dict[str, npt.NDArray[np.float32]]) -> None:
        super().__init__()
        self._identity, self._dimension, self._vectors = identity, dimension, vectors

    @property
    def identity(self) -> str:
        """Of the embedder that made the vectors."""
        return self._identity

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Vectors of texts that are known."""
        del kind
        return np.stack([self._vectors[text] for text in texts])


def given_views(record: OutpatientRecord) -> dict[View, str]:
    """Synthetic cases come with their views."""
    return record.views or {}


def prepare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Build the index and write the questions."""
    from ..indexes.cases import AnnOptions, CaseIndex  # noqa: PLC0415

    cases = SyntheticCases(options.seed)
    embedder = SyntheticEmbedder(cases, options.dim)
    begin = time.perf_counter()
    CaseIndex.build(
        cases.records(options.records),
        folder / "cases",
        embedder=embedder,
        views_of=given_views,
        batch_size=4096,
        options=AnnOptions(threads=options.build_threads),
    )
    seconds = time.perf_counter() - begin
    asked = list(cases.records(options.queries, start=10_000_000))
    texts = sorted({text for record in asked for text in given_views(record).values()})
    np.save(folder / "vectors.npy", embedder.encode(texts))
    questions = [
        {"views": {v.value: t for v, t in given_views(r).items()}, "department": r.department} for r in asked
    ]
    about = {"identity": embedder.identity, "dimension": options.dim, "texts": texts, "questions": questions}
    (folder / "questions.json").write_text(json.dumps(about))
    sample = embedder.encode([given_views(r)[View.GLOBAL] for r in cases.records(1500, start=20_000_000)])
    return {"index_build_s": seconds, "intrinsic_dimension": intrinsic_dimension(sample)}


def _questions(folder: Path) -> tuple[KnownVectors, list[Any]]:
    from ..query import ClinicalQuery  # noqa: PLC0415

    about = json.loads((folder / "questions.json").read_text())
    matrix = np.load(folder / "vectors.npy")
    vectors = dict(zip(about["texts"], matrix, strict=True))
    embedder = KnownVectors(about["identity"], about["dimension"], vectors)
    queries = [
        ClinicalQuery.of(q["views"]["global"], views=q["views"], department=q["department"], language="en")
        for q in about["questions"]
    ]
    return embedder, queries


def _ours(folder: Path, embedder: KnownVectors) -> tuple[Any, Any]:
    from ..indexes.cases import CaseIndex  # noqa: PLC0415
    from ..postprocessors.clinical_prior import ClinicalPriorReranker  # noqa: PLC0415
    from ..retrievers.multi_view import MultiViewHybridRetriever  # noqa: PLC0415

    index = CaseIndex.open(folder / "cases", embedder=embedder, views_of=given_views)
    retriever = MultiViewHybridRetriever(index, top_k=3 * NODES, candidates=CANDIDATES)
    reranker = ClinicalPriorReranker.from_defaults(index)

    def answer(query: Any) -> Any:
        return reranker.postprocess_nodes(retriever.retrieve(query), query_bundle=query)[:NODES]

    return index, answer


def serve(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A process that only loads the index and answers."""
    del options
    embedder, queries = _questions(folder)
    from ..indexes.cases import CaseIndex  # noqa: PLC0415  # imports are no part of loading
    from ..language.tokenizers import ClinicalTokenizer  # noqa: PLC0415

    ClinicalTokenizer().tokenize("warm", "en")
    before = peak_rss_mb()
    begin = time.perf_counter()
    CaseIndex.open(folder / "cases", embedder=embedder, views_of=given_views)
    load = time.perf_counter() - begin
    _, answer = _ours(folder, embedder)
    for query in queries:
        answer(query)
    return {"load_s": load, "peak_rss_mb": peak_rss_mb(), "rss_before_load_mb": before}


def compare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Ours and the floor, question by question."""
    import bm25s  # noqa: PLC0415
    import faiss  # noqa: PLC0415

    embedder, queries = _questions(folder)
    index, answer = _ours(folder, embedder)
    faiss.omp_set_num_threads(options.threads)
    state = index._state  # noqa: SLF001  # the floor uses the very same data
    words = {id(q): [_words(index, q.views[v.value]) for v in VIEWS] for q in queries}
    encoded = {id(q): index.encode_query(q.views, "en") for q in queries}
    bare = []
    for i, view in enumerate(VIEWS):
        bm25 = bm25s.BM25()
        postings = state.sparse[i].postings
        bm25.scores = {
            "data": np.array(postings.weights),
            "indices": np.array(postings.rows),
            "indptr": np.array(postings.pointers),
            "num_docs": len(index),
        }
        bm25.vocab_dict, bm25.nonoccurrence_array = state.vocabulary, None
        path = state.generation.path(f"{view}/vectors.faiss")
        vectors = faiss.read_index(str(path))
        if hasattr(vectors, "hnsw"):
            vectors.hnsw.efSearch = state.dense[i].index.hnsw.efSearch
        bare.append((bm25, vectors))
    views = range(options.views)

    def floor(query: Any) -> None:
        for i in views:
            bm25, vectors = bare[i]
            scores = bm25.get_scores(words[id(query)][i])
            np.argpartition(scores, -CANDIDATES)[-CANDIDATES:]
            vectors.search(encoded[id(query)].vectors[i : i + 1], CANDIDATES)

    times = interleaved_ms({"ours": answer, "floor": floor}, queries)
    recall = [_recall(state.dense[i], encoded[id(q)].vectors[i]) for q in queries for i in range(len(VIEWS))]
    return times | {"recall_at_50": float(np.mean(recall)), "worst_recall_at_50": float(np.min(recall))}


def _words(index: Any, text: str) -> list[str]:
    known = index.vocabulary
    return [word for word in index.tokenizer.tokenize(text, "en") if word in known]


def _recall(channel: Any, query: npt.NDArray[np.float32]) -> float:
    """Share of the fifty nearest texts that the channel proposes; equally near ones count as well."""
    vectors = channel.vectors
    exact = np.concatenate(
        [vectors[start : start + 8192].astype(np.float32) @ query for start in range(0, len(vectors), 8192)]
    )
    fifty = min(50, len(exact))
    least = np.partition(exact, -fifty)[-fifty]
    _, slots = channel.index.search(query[None, :], CANDIDATES)
    return min(1.0, float((exact[slots[0][slots[0] >= 0][:fifty]] >= least - 1e-5).sum()) / fifty)


def stock(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """LlamaIndex's own fusion over its own channels."""
    from llama_index.core import StorageContext, VectorStoreIndex  # noqa: PLC0415
    from llama_index.core.data_structs import IndexDict  # noqa: PLC0415
    from llama_index.core.llms import MockLLM  # noqa: PLC0415
    from llama_index.core.retrievers import QueryFusionRetriever  # noqa: PLC0415
    from llama_index.core.schema import BaseNode, TextNode  # noqa: PLC0415
    from llama_index.core.storage.docstore import SimpleDocumentStore  # noqa: PLC0415
    from llama_index.retrievers.bm25 import BM25Retriever  # noqa: PLC0415
    from llama_index.vector_stores.faiss import FaissVectorStore  # noqa: PLC0415

    embedder, queries = _questions(folder)
    index, answer = _ours(folder, embedder)
    payloads = index.payloads(range(len(index)))
    state = index._state  # noqa: SLF001
    channels: list[Any] = []
    for i, view in enumerate(VIEWS[: options.views]):
        nodes: list[BaseNode] = [TextNode(id_=f"{p.id}/{view}", text=p.views[view]) for p in payloads]
        channels.append(BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=CANDIDATES))
        store = SimpleDocumentStore()
        store.add_documents(nodes)
        named = {str(slot): nodes[row].node_id for row, slot in enumerate(state.dense[i].slots.tolist())}
        context = StorageContext.from_defaults(
            docstore=store, vector_store=FaissVectorStore(faiss_index=state.dense[i].index)
        )
        vectors = VectorStoreIndex(
            index_struct=IndexDict(nodes_dict=named), storage_context=context, embed_model=embedder
        )
        channels.append(vectors.as_retriever(similarity_top_k=CANDIDATES))
    fusion = QueryFusionRetriever(
        channels,
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=NODES,
        mode="reciprocal_rerank",  # type: ignore[arg-type]
        use_async=False,
    )
    fused = interleaved_ms(
        {"ours": answer, "fusion": lambda q: fusion.retrieve(q.query_str)}, queries, rounds=2
    )
    return {"fusion": fused["fusion"], "ours": fused["ours"], "peak_rss_mb": peak_rss_mb()}


STAGES = {"prepare": prepare, "serve": serve, "compare": compare, "stock": stock}


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run all stages, each in a process of its own."""
    passed = []
    for name in ("records", "views", "dim", "queries", "seed", "threads", "build_threads"):
        passed += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    threads = options.threads

    def run(stage: str) -> dict[str, Any]:
        return run_stage(MODULE, stage, folder, passed, threads)

    folder.mkdir(parents=True, exist_ok=True)
    prepared = folder / "prepared.json"
    if not prepared.exists() or json.loads(prepared.read_text())["arguments"] != passed:
        prepared.unlink(missing_ok=True)
        prepared.write_text(json.dumps({"arguments": passed, "built": run("prepare")}))
    built = json.loads(prepared.read_text())["built"]
    served, compared = run("serve"), run("compare")
    alternatives = {}
    more: dict[str, Any] = {}
    if not options.no_alternatives:
        rival = run("stock")
        # both were timed in turn in that process; the ratio is carried over to this run's own figure
        alternatives["QueryFusionRetriever"] = rival["fusion"] / rival["ours"] * compared["ours"]
        more["alternatives_peak_rss_mb"] = {"QueryFusionRetriever": rival["peak_rss_mb"]}
    return BenchmarkResult(
        ours=compared["ours"],
        floor=compared["floor"],
        alternatives=alternatives,
        unit="ms/query",
        n=options.queries,
        threads=threads,
        peak_rss_mb=served["peak_rss_mb"],
        more={
            "recall_at_50": compared["recall_at_50"],
            "worst_recall_at_50": compared["worst_recall_at_50"],
            "records": options.records,
            "views": options.views,
            "dim": options.dim,
            "load_s": served["load_s"],
            **more,
            **built,
        },
    ).to_json()


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--records", type=int, default=140_000)
    arguments.add_argument("--views", type=int, default=len(VIEWS), choices=range(1, len(VIEWS) + 1))
    arguments.add_argument("--dim", type=int, default=512)
    arguments.add_argument("--queries", type=int, default=50)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--build-threads", type=int, default=2)
    arguments.add_argument("--no-alternatives", action="store_true")
    arguments.add_argument("--keep", type=Path, help="folder for the index, kept for another run")
    arguments.add_argument("--stage", choices=sorted(STAGES), help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.stage:
        print(json.dumps(STAGES[options.stage](options.folder, options)))
        return
    if options.small:
        options.records, options.dim, options.queries = 400, 32, 4
    with tempfile.TemporaryDirectory() as scratch:
        show(measure(options, options.keep or Path(scratch)), as_json=options.json)


if __name__ == "__main__":
    main()
