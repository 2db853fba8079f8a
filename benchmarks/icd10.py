"""Coding names of diagnoses: ours, the bare sparse product, and what a user would pick instead.

    python -m wardround.benchmarks.icd10 --json [--small] [--seed 0]

Names are made from ICD-10-CM's own titles: a word dropped, added or moved, a slip of the pen. The floor is
the bare scipy product of our vectors of the names, given, with those of all our wordings, and the best of
each row. Ours does that and denoising, look-up, vectors, features of fifty candidates and their judging.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process
from wardround.evaluation.icd10_baselines import plain_wordings, tfidf_coder
from wardround.knowledge.icd import IcdCascade, load_code_system
from wardround.knowledge.icd.canonical import english_tokens

from ._common import BenchmarkResult, parser, peak_rss_mb, run_stage, show

_BATCH = 512
_MODULE = "wardround.benchmarks.icd10"
_ADDED = ("type 2", "severe", "hereditary", "chronic", "syndrome", "3", "early onset", "due to infection")


def names(n: int, seed: int) -> list[str]:
    """Names of diagnoses as somebody might write them, from the terms of ICD-10-CM."""
    rng = random.Random(seed)  # noqa: S311
    system = load_code_system("icd10cm")
    diseases = [row for row, code in enumerate(system.codes) if code[0] in "ABCDEFGHIJKLMNQ"]
    out = []
    for row in rng.sample(diseases, min(n, len(diseases))):
        words = system.titles[row].lower().split()
        kind = rng.randrange(5)
        if kind == 1:
            words.insert(rng.randrange(len(words) + 1), rng.choice(_ADDED))
        elif kind == 2 and len(words) > 2:
            words.pop(rng.randrange(len(words)))
        elif kind == 3:
            words = [*words[1:], words[0]]
        elif kind == 4 and len(words[-1]) > 4:
            words[-1] = words[-1][:2] + words[-1][3:]
        out.append(" ".join(words))
    return out


def _ours(texts: list[str]) -> dict[str, Any]:
    begin = time.perf_counter()
    cascade = IcdCascade(load_code_system("icd10cm"))
    cascade.warm_up()
    load = time.perf_counter() - begin
    begin = time.perf_counter()
    cascade.map_many(texts, top_k=1)
    seconds = time.perf_counter() - begin
    peak = peak_rss_mb()
    grams = cascade.wordings.grams
    vectors = grams.encode([english_tokens(text) for text in texts])
    begin = time.perf_counter()
    for start in range(0, len(texts), _BATCH):
        grams.nearest(vectors[start : start + _BATCH], 1)
    floor = time.perf_counter() - begin
    return {"seconds": seconds, "floor": floor, "load_seconds": load, "peak_rss_mb": peak}


def _others(texts: list[str]) -> dict[str, Any]:
    wordings, rows = plain_wordings(load_code_system("icd10cm"))
    code = tfidf_coder(wordings, rows, cjk=False)
    begin = time.perf_counter()
    code(texts)
    tfidf = time.perf_counter() - begin
    few = texts[:: max(1, len(texts) // 40)]
    begin = time.perf_counter()
    for text in few:
        process.extractOne(text, wordings, scorer=fuzz.token_sort_ratio)
    ratio = (time.perf_counter() - begin) / len(few) * len(texts)
    return {"TfidfVectorizer": tfidf, "rapidfuzz.process.extractOne": ratio}


def main() -> None:
    """Run every contestant in a process of its own, on one thread, and print."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--stage", choices=("ours", "others"))
    arguments.add_argument("--folder", type=Path)
    options = arguments.parse_args()
    n = 200 if options.small else 5_000
    if options.stage:
        run = _ours if options.stage == "ours" else _others
        show(run(names(n, options.seed)), as_json=True)
        return
    passed = ["--seed", str(options.seed), *(["--small"] if options.small else [])]
    with tempfile.TemporaryDirectory() as folder:
        ours, others = (run_stage(_MODULE, stage, Path(folder), passed, 1) for stage in ("ours", "others"))
    n = len(names(n, options.seed))
    per_item = {name: seconds / n * 1e3 for name, seconds in others.items()}
    result = BenchmarkResult(
        ours=ours["seconds"] / n * 1e3,
        floor=ours["floor"] / n * 1e3,
        alternatives=per_item,
        unit="ms per name",
        n=n,
        threads=1,
        peak_rss_mb=ours["peak_rss_mb"],
        more={"names_per_second": n / ours["seconds"], "load_seconds": ours["load_seconds"]},
    )
    show(result.to_json(), as_json=options.json)


if __name__ == "__main__":
    main()
