"""``compare_embedders.py E5_DIR [RECORDS.jsonl]``: the embedded default beside E5 through FlagEmbedding.

For each language and embedder: how often the nearest other record (cosine of whole texts, raw vectors) has
the same label, over records whose label occurs again, and texts embedded a second. JSON on stdout.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from wardround.evaluation.llm_conditions import sampled
from wardround.knowledge.labels import label_of
from wardround.models import BgeM3Embedder, UseEmbedder
from wardround.models.base import TextEmbedder
from wardround.records.demo import demo_records
from wardround.records.schema import OutpatientRecord, View
from wardround.records.views import views_of

MOST = 400


def read(path: str | None) -> dict[str, list[OutpatientRecord]]:
    """Labelled records by language, at most a few hundred of each."""
    if path:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        records = [OutpatientRecord.model_validate_json(line) for line in lines if line.strip()]
    else:
        records = list(demo_records())
    kept = set(sampled([one.id for one in records if one.diagnoses], 3 * MOST))
    found = defaultdict(list)
    for one in records:
        if one.id in kept and len(found[one.language or "en"]) < MOST:
            found[one.language or "en"].append(one)
    return found


def measure(embedder: TextEmbedder, records: list[OutpatientRecord]) -> dict[str, float]:
    """Leave-one-out nearest neighbour and speed."""
    texts = [views_of(one).get(View.GLOBAL, "") for one in records]
    labels = np.array([label_of(one.diagnoses[0].name, one.diagnoses[0].code) for one in records])
    embedder.encode(texts[:2])
    started = time.perf_counter()
    vectors = embedder.encode(texts)
    seconds = time.perf_counter() - started
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    able = np.array([(labels == label).sum() > 1 for label in labels])
    right = labels[cosines.argmax(axis=1)] == labels
    return {
        "n": len(texts),
        "answerable": int(able.sum()),
        "top1": round(float(right[able].mean()), 4) if able.any() else 0.0,
        "texts_per_second": round(len(texts) / seconds, 1),
    }


def main() -> None:
    """Compare."""
    e5 = BgeM3Embedder(
        sys.argv[1],
        pooling="mean",
        query_prefix="query: ",
        passage_prefix="passage: ",
        max_length=512,
        threads=1,
    )
    embedders = {"use": UseEmbedder(threads=1), "e5": e5}
    groups = read(sys.argv[2] if len(sys.argv) > 2 else None)
    out = {
        language: {name: measure(embedder, records) for name, embedder in embedders.items()}
        for language, records in sorted(groups.items())
    }
    json.dump(out, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
