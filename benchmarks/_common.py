"""What every benchmark prints, and how it measures."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")

KIB = 1024


@dataclass
class BenchmarkResult:
    """One benchmark's figures; times are per item in ``unit``.

    Attributes:
        ours: time of the part under test.
        floor: time of the bare libraries on the same data.
        alternatives: time of what a user would pick instead, by the class or function that was timed.
        unit: of the times.
        n: items timed.
        threads: used by every contestant.
        peak_rss_mb: of a process that only loads and works.
        more: further keys.
    """

    ours: float
    floor: float
    alternatives: dict[str, float]
    unit: str
    n: int
    threads: int
    peak_rss_mb: float
    more: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "ours": self.ours,
            "floor": self.floor,
            "alternatives": self.alternatives,
            "unit": self.unit,
            "ratio_to_floor": self.ours / self.floor,
            "speedup": {name: value / self.ours for name, value in self.alternatives.items()},
            "n": self.n,
            "threads": self.threads,
            "peak_rss_mb": self.peak_rss_mb,
            **self.more,
        }


def rounded(value: Any) -> Any:
    """The same with four significant digits in every float."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return value


def show(result: dict[str, Any], *, as_json: bool) -> None:
    """Print one JSON object, or the same as lines."""
    result = rounded(result)
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
        return
    for key, value in result.items():
        print(f"{key:>16}  {json.dumps(value) if isinstance(value, dict) else value}")


def interleaved_ms(
    contestants: dict[str, Callable[[Item], object]], items: Sequence[Item], *, rounds: int = 3
) -> dict[str, float]:
    """Median milliseconds per item of each contestant, taken in turn item by item.

    Taking turns exposes all of them to the same load of the machine; of the rounds the fastest counts, and a
    first round warms caches and is not counted.
    """
    best = {name: [float("inf")] * len(items) for name in contestants}
    for attempt in range(rounds + 1):
        for i, item in enumerate(items):
            for name, run in contestants.items():
                begin = time.perf_counter()
                run(item)
                if attempt:
                    best[name][i] = min(best[name][i], time.perf_counter() - begin)
    return {name: sorted(times)[len(times) // 2] * 1e3 for name, times in best.items()}


def peak_rss_mb() -> float:
    """Highest resident memory of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / KIB if sys.platform != "darwin" else peak / KIB / KIB


def run_stage(
    module: str, stage: str, folder: Path, arguments: Sequence[str], threads: int
) -> dict[str, Any]:
    """Run one stage of a benchmark in a process of its own and read the object it prints last."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", module, "--stage", stage, "--folder", str(folder), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)  # noqa: S603
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def parser(description: str) -> argparse.ArgumentParser:
    """Arguments that every benchmark takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--json", action="store_true", help="print one JSON object alone")
    arguments.add_argument("--small", action="store_true", help="a size that only shows that it runs")
    arguments.add_argument("--seed", type=int, default=0)
    return arguments
