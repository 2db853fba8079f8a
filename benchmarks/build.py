"""Building the case index without embedding, beside the bare libraries on the same records.

``python -m wardround.benchmarks.build --json --records 140000 --views 4 --dim 512``

- ours: ``CaseIndex.build`` with everything it keeps (payloads, columns, term counts, weights, whitened
  vectors, checksums, flushed to the disk), less the time of the embedder.
- floor: per view ``bm25s.tokenize`` and ``bm25s.BM25().index``, and the same kind of FAISS index over the
  same vectors, in memory only.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ..records.schema import VIEWS
from ._common import BenchmarkResult, parser, peak_rss_mb, run_stage, show
from .retrieval import given_views
from .synthetic import SyntheticCases, SyntheticEmbedder

MODULE = "wardround.benchmarks.build"


def ours(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Our build, less the embedder's seconds and those of making the records."""
    from ..indexes.cases import AnnOptions, CaseIndex  # noqa: PLC0415
    from ..language.tokenizers import ClinicalTokenizer  # noqa: PLC0415

    cases = SyntheticCases(options.seed)
    embedder = SyntheticEmbedder(cases, options.dim)
    records = list(cases.records(options.records))
    tokenizer = ClinicalTokenizer()
    tokenizer.tokenize("warm", "en")
    begin = time.perf_counter()
    CaseIndex.build(
        records,
        folder / "cases",
        embedder=embedder,
        tokenizer=tokenizer,
        views_of=given_views,
        batch_size=4096,
        options=AnnOptions(threads=options.threads),
    )
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds - embedder.seconds,
        "embedding": embedder.seconds,
        "peak_rss_mb": peak_rss_mb(),
    }


def floor(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The bare libraries; vectors and texts are at hand."""
    import bm25s  # noqa: PLC0415

    from ..indexes.cases import AnnOptions, CaseIndex  # noqa: PLC0415
    from ..indexes.cases.dense import fill, new_index  # noqa: PLC0415

    index = CaseIndex.open(folder / "cases", views_of=given_views)
    payloads = index.payloads(range(len(index)))
    anns = AnnOptions(threads=options.threads)
    words = vectors = 0.0
    for view in VIEWS[: options.views]:
        texts = [payload.views[view] for payload in payloads]
        channel = index.dense_channel(view)
        stored = channel.vectors.astype("float32")
        begin = time.perf_counter()
        tokens = bm25s.tokenize(texts, show_progress=False)
        bm25s.BM25().index(tokens, show_progress=False)
        words += time.perf_counter() - begin
        begin = time.perf_counter()
        bare = new_index(options.dim, graph=hasattr(channel.index, "hnsw"), options=anns)
        fill(bare, iter([stored]), anns)
        vectors += time.perf_counter() - begin
    return {"seconds": words + vectors, "bm25s_s": words, "faiss_s": vectors}


STAGES = {"ours": ours, "floor": floor}


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run both, each in a process of its own."""
    passed = []
    for name in ("records", "views", "dim", "seed", "threads"):
        passed += [f"--{name}", str(getattr(options, name))]
    built = run_stage(MODULE, "ours", folder, passed, options.threads)
    bare = run_stage(MODULE, "floor", folder, passed, options.threads)
    each = 1e3 / options.records
    return BenchmarkResult(
        ours=built["seconds"] * each,
        floor=bare["seconds"] * each,
        alternatives={},
        unit="ms/record",
        n=options.records,
        threads=options.threads,
        peak_rss_mb=built["peak_rss_mb"],
        more={
            "views": options.views,
            "dim": options.dim,
            "ours_s": built["seconds"],
            "synthetic_embedding_s": built["embedding"],
            "floor_bm25s_s": bare["bm25s_s"],
            "floor_faiss_s": bare["faiss_s"],
        },
    ).to_json()


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--records", type=int, default=140_000)
    arguments.add_argument("--views", type=int, default=len(VIEWS), choices=range(1, len(VIEWS) + 1))
    arguments.add_argument("--dim", type=int, default=512)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--stage", choices=sorted(STAGES), help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.stage:
        print(json.dumps(STAGES[options.stage](options.folder, options)))
        return
    if options.small:
        options.records, options.dim = 300, 32
    with tempfile.TemporaryDirectory() as scratch:
        show(measure(options, Path(scratch)), as_json=options.json)


if __name__ == "__main__":
    main()
