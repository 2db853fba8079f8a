"""The benchmarks of the case index run and print the agreed keys."""

import json
import subprocess
import sys

import pytest

KEYS = {"ours", "floor", "alternatives", "unit", "ratio_to_floor", "speedup", "n", "threads", "peak_rss_mb"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retrieval", "build"])
def test_a_small_benchmark_prints_one_object_with_the_agreed_keys(name):
    command = [sys.executable, "-m", f"wardround.benchmarks.{name}", "--json", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result.keys() >= KEYS
    assert result["ratio_to_floor"] == pytest.approx(result["ours"] / result["floor"], rel=1e-2)
    if name == "retrieval":
        assert result["recall_at_50"] == pytest.approx(1, abs=0.02)
        assert "QueryFusionRetriever" in result["alternatives"]


def test_synthetic_cases_are_the_same_whatever_the_range():
    from wardround.benchmarks.synthetic import SyntheticCases

    cases = SyntheticCases(3, vocabulary=2000, conditions=20)
    whole = [record.model_dump() for record in cases.records(40)]
    assert [record.model_dump() for record in cases.records(10, start=25)] == whole[25:35]
    assert len({json.dumps(record, default=str) for record in whole}) == 40
