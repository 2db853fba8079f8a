"""Tables, plots and predictions of an evaluation of diagnoses."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .metrics import MISSED, accuracy_coverage, equal_mass_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .diagnosis_figures import Scored

_COLUMNS = (
    "condition", "top-1", "95%", "top-3", "95%", "MRR", "AUROC", "ECE", "coverage at 90%", "ms", "p top-1",
    "p top-3",
)  # fmt: skip
_PLOTTED = ("flat_hybrid", "supervised", "map_rag", "ours")


def ready_folder(folder: Path) -> None:
    """Make the folder, and see that files can be written there, before hours of work are to be kept in it.

    Raises:
        InputError: they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{folder}: results cannot be written there ({error.strerror}); choose another folder"
        raise InputError(msg) from error


def write_report(result: Mapping[str, Any], scored: Scored, folder: Path) -> None:
    """Write ``diagnosis.json``, ``diagnosis.md``, ``predictions.jsonl`` and three plots into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "diagnosis.json").write_text(
        json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    (folder / "diagnosis.md").write_text(tables_of(result), encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as out:
        for row in prediction_rows(scored):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    _plots(result, scored, folder)


def prediction_rows(scored: Scored) -> list[dict[str, Any]]:
    """One row a query: what each condition put first, where the right one stood, and how sure it was."""
    rows = []
    for place, query in enumerate(scored.ids):
        conditions = {}
        for name, ranks in scored.ranks.items():
            rank = int(ranks[place])
            row: dict[str, Any] = {
                "rank": None if rank >= MISSED else rank + 1,
                "diagnoses": [one for one, _ in scored.listed[name][place]],
            }
            if name in scored.confidence:
                row["confidence"] = round(float(scored.confidence[name][place]), 4)
                row["raw"] = round(float(scored.raw[name][place]), 4)
            conditions[name] = row
        rows.append(
            {
                "id": query,
                "department": scored.departments[place],
                "answerable": bool(scored.answerable[place]),
                "conditions": conditions,
            }
        )
    return rows


def tables_of(result: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "# Diagnosis",
        "",
        _summary(result),
        "",
        "top-1, top-3 and MRR are over answerable queries; AUROC, ECE and coverage over all.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
    ]
    for name, figures in result["conditions"].items():
        test = result["mcnemar"].get(f"ours_vs_{name}", {})
        cells = [
            name,
            f"{figures['top1']:.3f}",
            _interval(figures["top1_ci"]),
            f"{figures['top3']:.3f}",
            _interval(figures["top3_ci"]),
            f"{figures['mrr']:.3f}",
            _number(figures["auroc"]),
            _number(figures["ece"]),
            _number(figures["coverage_at_90"]),
            f"{figures['ms_per_query']:.1f}",
            _number(test.get("top1_p"), 4),
            _number(test.get("top3_p"), 4),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "p: exact McNemar against ours.", ""]
    for scale, lanes in result["routes"].items():
        total = max(1, sum(lane["n"] for lane in lanes.values()))
        lines += [
            f"## Lanes by {scale} confidence",
            "",
            "| lane | share | n | top-1 | top-3 |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {lane} | {row['n'] / total:.1%} | {row['n']} | {row['top1']:.3f} | {row['top3']:.3f} |"
            for lane, row in lanes.items()
        ]
        lines.append("")
    return "\n".join(lines)


def _summary(result: Mapping[str, Any]) -> str:
    return (
        f"{result['n']} queries, {result['answerable']:.1%} answerable, {result['labels']} labels,"
        f" {result['twins']} cases with a near-identical one."
    )


def _interval(bounds: list[float]) -> str:
    return f"{bounds[0]:.3f}–{bounds[1]:.3f}"


def _number(value: float | None, digits: int = 3) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _plots(result: Mapping[str, Any], scored: Scored, folder: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  # heavy; only where plots are wanted

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    shown = [name for name in _PLOTTED if name in scored.confidence]
    draw = {"reliability": _reliability, "accuracy_coverage": _coverage}
    for title, plot in draw.items():
        figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
        for name in shown:
            plot(axes, scored, name)
        if shown:
            axes.legend()
        figure.savefig(folder / f"{title}.png", dpi=130)
        plt.close(figure)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    _departments(axes, result)
    figure.savefig(folder / "by_department.png", dpi=130)
    plt.close(figure)


def _reliability(axes: Axes, scored: Scored, name: str) -> None:
    confidence, right = scored.confidence[name], scored.ranks[name] == 0
    bins = equal_mass_bins(confidence)
    axes.plot([0, 1], [0, 1], color="0.8", linewidth=1)
    axes.plot(
        [confidence[part].mean() for part in bins],
        [right[part].mean() for part in bins],
        marker="o",
        label=name,
    )
    axes.set_xlabel("confidence")
    axes.set_ylabel("leader right")


def _coverage(axes: Axes, scored: Scored, name: str) -> None:
    coverage, accuracy = accuracy_coverage(scored.confidence[name], scored.ranks[name] == 0)
    axes.plot(coverage, accuracy, label=name)
    axes.set_xlabel("share answered")
    axes.set_ylabel("accuracy of what is answered")
    axes.set_ylim(0, 1)


def _departments(axes: Axes, result: Mapping[str, Any]) -> None:
    names = [name for name in _PLOTTED if name in result["conditions"]]
    departments: list[str] = []
    for name in names[-1:]:
        table = result["conditions"][name]["by_department"]
        departments = [d for d in table if table[d]["answerable"]]
    places = np.arange(len(departments))
    for i, name in enumerate(names):
        table = result["conditions"][name]["by_department"]
        heights = [table[department]["top3"] for department in departments]
        axes.bar(places + (i - len(names) / 2) * 0.2, heights, 0.2, label=name)
    axes.set_xticks(
        places,
        [d if d.isascii() else f"#{i + 1}" for i, d in enumerate(departments)],
        rotation=60,
        ha="right",
    )
    axes.set_ylabel("top-3 (answerable)")
    if names:
        axes.legend()
