"""``evaluate icd10``: how often names get the right code, beside what a user would otherwise pick."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError
from ..knowledge.icd import CodeSystem, IcdCascade, IcdMatch, Stage, load_code_system
from ..knowledge.icd.system import category_of, code_key
from ..settings import Icd10Settings
from .icd10_baselines import run_baselines
from .metrics import tie_key

logger = logging.getLogger(__name__)

_STAGES = (Stage.CODE, Stage.EXACT, Stage.ALIAS, Stage.FUZZY, Stage.NEIGHBOUR)
_PRECISION = 0.95


class GoldName(BaseModel):
    """One line of a gold file."""

    model_config = ConfigDict(extra="ignore")

    text: str = Field(min_length=1)
    code: str | list[str]

    def codes(self) -> frozenset[str]:
        """Gold codes for comparison, dots and case ignored."""
        given = [self.code] if isinstance(self.code, str) else self.code
        return frozenset(key for code in given if (key := code_key(code)))


@dataclass(frozen=True)
class BadLine:
    """A line of the gold file that was skipped."""

    line: int
    reason: str


def read_gold(path: Path) -> tuple[list[GoldName], list[BadLine]]:
    """Rows and skipped lines of a gold file.

    Raises:
        InputError: the file is unreadable, or not one line is usable.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); give a JSON lines file of text and code"
        raise InputError(msg) from error
    rows: list[GoldName] = []
    bad: list[BadLine] = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = GoldName.model_validate_json(line.strip())
            if not row.text.strip() or not row.codes():
                bad.append(BadLine(number, "text or code is empty"))
                continue
            rows.append(row)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"]) or "line"
            bad.append(BadLine(number, f"{where}: {fault['msg']}"))
    if not rows:
        msg = f'{path}: no usable line; each must be {{"text": ..., "code": ...}}'
        raise InputError(msg)
    for fault_line in bad:
        logger.warning("%s:%d skipped: %s", path, fault_line.line, fault_line.reason)
    return rows, bad


def evaluate_icd10(
    path: str | Path,
    system: str | Path | CodeSystem | None = None,
    *,
    settings: Icd10Settings | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    baselines: bool = True,
) -> dict[str, Any]:
    """Code every name of a gold file and compare.

    Args:
        path: JSON lines ``{"text", "code"}``; ``code`` may be a list, any of which is right.
        system: a code system or what :func:`load_code_system` takes; that of the settings where None.
        settings: cut-offs and local aliases.
        language: of the names; they are told apart by themselves, so it is only reported.
        out: folder for ``icd10_predictions.jsonl`` and ``icd10.md``.
        seed: breaks ties between equally confident names in ``auto_share_at_95``.
        baselines: whether to run what a user would otherwise pick on the same names.

    Returns:
        ``n, exact, category, unmapped, by_stage, auto_share_at_95, names_per_second`` (shares 0..1), and
        ``skipped`` lines, ``system``, ``language``, and ``baselines`` by name.

    Raises:
        InputError: no usable line in ``path``, or an unreadable code list.
        SettingsError: unknown code system.
    """
    settings = settings or Icd10Settings()
    rows, bad = read_gold(Path(path))
    chosen = system if system is not None else settings.system
    codes = chosen if isinstance(chosen, CodeSystem) else load_code_system(chosen)
    cascade = IcdCascade(
        codes,
        aliases=settings.aliases,
        min_score=settings.min_score,
        min_margin=settings.min_margin,
        prefer_leaf=settings.prefer_leaf,
    )
    cascade.warm_up()
    texts = [row.text for row in rows]
    started = time.perf_counter()
    matches = cascade.map_many(texts, top_k=1)
    seconds = time.perf_counter() - started
    exact, category = _right(rows, [match.code for match in matches])
    report: dict[str, Any] = {
        "n": len(rows),
        "exact": _share(exact),
        "category": _share(category),
        "unmapped": _share([match.stage is Stage.UNMAPPED for match in matches]),
        "by_stage": _by_stage(matches, exact, category),
        "auto_share_at_95": auto_share(
            [match.score if match.code else -1.0 for match in matches], category, texts, seed=seed
        ),
        "names_per_second": round(len(rows) / max(seconds, 1e-9), 1),
        "skipped": len(bad),
        "system": codes.name,
        "language": language or codes.language,
    }
    if baselines:
        report["baselines"] = {}
        for name, run in run_baselines(codes, texts, seed=seed).items():
            right, near = _right([rows[i] for i in run.rows], run.codes)
            report["baselines"][name] = {
                "n": len(run.rows),
                "exact": _share(right),
                "category": _share(near),
                "names_per_second": round(len(run.rows) / max(run.seconds, 1e-9), 1),
            }
    if out is not None:
        _write(Path(out), rows, matches, report)
    return report


def auto_share(
    scores: Sequence[float], right: Sequence[bool], texts: Sequence[str], *, seed: int = 0,
    precision: float = _PRECISION,
) -> float:  # fmt: skip
    """Largest share that can be coded by itself, most confident first, with at least this precision."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], tie_key(seed, texts[i], "")))
    hits = np.cumsum([right[i] for i in order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(hits >= precision)
    return round((int(enough[-1]) + 1) / len(order), 4) if len(enough) else 0.0


def coding_lines(texts: Iterable[str], cascade: IcdCascade, *, top_k: int = 5) -> Iterator[dict[str, Any]]:
    """One object a text, as ``wardround icd10 --json`` prints it."""
    for match in cascade.map_many(list(texts), top_k=top_k):
        yield match_as_dict(match)


def match_as_dict(match: IcdMatch) -> dict[str, Any]:
    """A match with the keys of the command line's JSON."""
    return {**asdict(match), "stage": match.stage.value}


def _right(rows: Sequence[GoldName], codes: Sequence[str | None]) -> tuple[list[bool], list[bool]]:
    exact, category = [], []
    for row, code in zip(rows, codes, strict=True):
        gold = row.codes()
        exact.append(code is not None and code_key(code) in gold)
        category.append(code is not None and category_of(code) in {category_of(one) for one in gold})
    return exact, category


def _share(flags: Sequence[bool]) -> float:
    return round(float(np.mean(flags)), 4) if len(flags) else 0.0


def _by_stage(
    matches: Sequence[IcdMatch], exact: Sequence[bool], category: Sequence[bool]
) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for stage in _STAGES:
        at = [i for i, match in enumerate(matches) if match.stage is stage]
        if at:
            out[stage.value] = {
                "n": len(at),
                "exact": _share([exact[i] for i in at]),
                "category": _share([category[i] for i in at]),
            }
    return out


def _write(
    folder: Path, rows: Sequence[GoldName], matches: Sequence[IcdMatch], report: dict[str, Any]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "icd10_predictions.jsonl").open("w", encoding="utf-8") as stream:
        for row, match in zip(rows, matches, strict=True):
            line = {**match_as_dict(match), "gold": row.code}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    (folder / "icd10.md").write_text(as_table(report), encoding="utf-8")


def as_table(report: dict[str, Any]) -> str:
    """The report as a Markdown table: ours, its stages and the baselines."""
    lines = ["| | n | exact | category |", "|---|---|---|---|"]
    lines.append(f"| wardround | {report['n']} | {report['exact']:.3f} | {report['category']:.3f} |")
    for stage, figures in report["by_stage"].items():
        lines.append(
            f"| – stage {stage} | {figures['n']} | {figures['exact']:.3f} | {figures['category']:.3f} |"
        )
    for name, figures in report.get("baselines", {}).items():
        lines.append(f"| {name} | {figures['n']} | {figures['exact']:.3f} | {figures['category']:.3f} |")
    lines += [
        "",
        f"Unmapped {report['unmapped']:.3f}.",
        f"Coded without a person at 95% category precision: {report['auto_share_at_95']:.3f}.",
        f"{report['names_per_second']:.0f} names a second.",
        "",
    ]
    return "\n".join(lines)
