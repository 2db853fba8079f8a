"""The experiment with a real language model: ``experiment.py RECORDS|demo URL OUT_DIR [CASES]``.

Sets some labelled cases aside as queries (those with ``choices`` first; the demo's get choices from their own
department), indexes the rest without near-copies of the queries, learns from it, and asks the model under
every condition. Outcomes are kept as they come; running it again goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from wardround.agents.overlap import terms
from wardround.evaluation.llm_conditions import sampled
from wardround.evaluation.llm_rankers import LlmRankers
from wardround.evaluation.llm_report import as_table, run_llm_conditions
from wardround.indexes.cases import CaseIndex
from wardround.knowledge.labels import label_of
from wardround.knowledge.learning import learn, store
from wardround.models import EmbeddingCache, UseEmbedder
from wardround.models.llm import ServedLlm
from wardround.records.demo import demo_records
from wardround.records.schema import OutpatientRecord
from wardround.retrievers.case_ranker import CaseRanker

CASES = 60
TWIN = 0.7  # share of terms in common
ORDER = ("direct", "ours_llm", "hybrid_rag", "map_rag_llm", "naive_rag", "cot", "long_context")
DEADLINE_S = 1800.0  # of one question: the machine may be slow, and a failed one is asked again


def labelled(source: str) -> list[OutpatientRecord]:
    """Records of a file, or the shipped demo with choices."""
    if source != "demo":
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        return [
            one
            for line in lines
            if line.strip() and (one := OutpatientRecord.model_validate_json(line)).diagnoses
        ]
    records = [one for one in demo_records() if one.diagnoses and one.language == "en"]
    names = defaultdict(set)
    for one in records:
        names[one.department].add(one.diagnoses[0].name)
    with_choices = []
    for one in records:
        gold = one.diagnoses[0].name
        others = sampled(sorted(names[one.department] - {gold}), 3)
        with_choices.append(one.model_copy(update={"choices": [gold, *others]}))
    return with_choices


def split(
    records: list[OutpatientRecord], cases: int
) -> tuple[list[OutpatientRecord], list[OutpatientRecord]]:
    """Queries, and the records that are neither queries nor near-copies of one."""
    able = [one.id for one in records if one.choices] or [one.id for one in records]
    chosen = set(sampled(able, cases))
    queries = sorted((one for one in records if one.id in chosen), key=lambda one: one.id)
    asked = [terms(text(one)) for one in queries]
    rest = []
    for one in records:
        mine = terms(text(one))
        twin = any(len(mine & theirs) > TWIN * len(mine | theirs) for theirs in asked)
        if one.id not in chosen and not twin:
            rest.append(one)
    return queries, rest


def text(record: OutpatientRecord) -> str:
    """All of a record's text."""
    return record.text or "\n".join((record.views or {}).values())


def main() -> None:
    """Run it; the report is ``OUT_DIR/report.md`` and ``report.json``, rewritten after each condition."""
    source, url, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    cases = int(sys.argv[4]) if len(sys.argv) > 4 else CASES
    out.mkdir(parents=True, exist_ok=True)
    queries, rest = split(labelled(source), cases)
    llm = ServedLlm(url, deadline_s=DEADLINE_S)
    llm.probe()
    known = {label_of(one.diagnoses[0].name, one.diagnoses[0].code) for one in rest}
    answerable = [label_of(one.diagnoses[0].name, one.diagnoses[0].code) in known for one in queries]
    with tempfile.TemporaryDirectory() as folder:
        cache = EmbeddingCache(out / "vectors")
        index = CaseIndex.build(rest, Path(folder) / "cases", embedder=UseEmbedder(threads=1), cache=cache)
        store(index, learn(index))
        rankers = LlmRankers(index, CaseRanker(index))
        done: list[str] = []
        for name in ORDER:
            done.append(name)
            run = run_llm_conditions(
                done, queries, rankers, llm, answerable=answerable, log=out / "outcomes.jsonl", at_once=4
            )
            head = {
                "model": llm.model,
                "n": len(queries),
                "records": len(rest),
                "answerable": sum(answerable),
            }
            report = head | {"conditions": run.figures, "mcnemar": run.mcnemar}
            (out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
            title = (
                f"{llm.model}, {len(queries)} cases over {len(rest)} records "
                f"({sum(answerable)} cases have their label among the records)"
            )
            (out / "report.md").write_text(f"{title}\n\n{as_table(run)}\n", encoding="utf-8")
            sys.stderr.write(f"{name}: {run.figures[name]['top1_all']:.3f}\n")


if __name__ == "__main__":
    main()
