"""An answer as a person reads it: at 80 columns, in a dumb terminal, and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .console import one_line, plain, to_plain_data

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from ..knowledge.icd import IcdMatch
    from ..query import AnswerDetails, ClinicalAnswer, ConfidenceReport

_VIEWS = {"chief_complaint": "Complaint", "history": "History", "examination": "Exam", "global": "Whole"}
_QUOTE_CHARS = 220
_LISTED = 8
_EXTRACTIVE = "extractive"


def answer(given: ClinicalAnswer, console: Console, *, evidence: int) -> None:
    """Print diagnoses, the records they rest on, and how sure the answer is and why.

    Args:
        given: the answer with its source nodes.
        console: where to.
        evidence: at most so many records are shown.
    """
    details = given.details
    in_tables = details.model == _EXTRACTIVE and details.diagnoses and not details.refused
    if not in_tables:
        console.print(Text(plain(details.answer).strip() + "\n"))
    if details.degraded:
        console.print(Text(f"Degraded: {one_line(details.degraded)}\n", style="bold yellow"))
    if details.diagnoses:
        console.print(_diagnoses(details, console))
    if given.source_nodes and evidence:
        console.print(_evidence(given.source_nodes[:evidence], details))
    console.print(_grounds(details))


def _table(console: Console) -> Table:
    plain_terminal = console.is_dumb_terminal or not console.encoding.lower().startswith("utf")
    return Table(
        box=box.ASCII2 if plain_terminal else box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        expand=False,
        header_style="bold",
    )


def _diagnoses(details: AnswerDetails, console: Console) -> RenderableType:
    table = _table(console)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Diagnosis", ratio=3)
    table.add_column("Share", justify="right", no_wrap=True)
    table.add_column("ICD-10", no_wrap=True)
    table.add_column("Title", ratio=3)
    table.add_column("Records", justify="right", no_wrap=True)
    for rank, diagnosis in enumerate(details.diagnoses or [], start=1):
        table.add_row(
            str(rank),
            Text(one_line(diagnosis.name), style="bold" if rank == 1 else ""),
            _share(diagnosis.share),
            Text(one_line(diagnosis.code or "-")),
            Text(one_line(diagnosis.title or "")),
            str(len(diagnosis.evidence)),
        )
    return table


def _evidence(nodes: Iterable[NodeWithScore], details: AnswerDetails) -> RenderableType:
    quotes = {citation.id: citation.quote for citation in details.citations}
    parts: list[RenderableType] = [
        Text.assemble(
            ("\nEvidence", "bold"), " (how alike, in %: by meaning / by words; - where a part is missing)"
        )
    ]
    for rank, node in enumerate(nodes, start=1):
        data = node.metadata
        head = Text(f"{rank:>2} ")
        head.append(one_line(data.get("diagnosis") or "no diagnosis", 60), style="bold")
        head.append(f"  {one_line(data.get('code') or '')}".rstrip())
        parts.append(head)
        parts.append(_indented(_origin(data, node.score), style="dim"))
        if scores := data.get("channel_scores"):
            parts.append(_indented(_channels(scores, data.get("weights") or {})))
        quote = quotes.get(node.node_id) or node.get_content()
        parts.append(_indented(f"“{one_line(quote, _QUOTE_CHARS)}”", style="italic"))
    return Group(*parts)


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, 3), expand=False)


def _origin(data: Mapping[str, Any], score: float | None) -> str:
    age = data.get("age")
    facts = [
        f"record {one_line(data.get('record_id', '?'), 40)}",
        one_line(data.get("department") or "", 30),
        "" if age is None else f"{age:g} y",
        one_line(data.get("sex") or "", 10),
        one_line(data.get("date") or "", 10),
        "" if score is None else f"score {score:.2f}",
        "" if data.get("prior") is None else f"prior {data['prior']:.2f}",
        *(one_line(rule["reason"]) for rule in data.get("rules") or ()),
    ]
    return " · ".join(fact for fact in facts if fact)


def _channels(scores: Mapping[str, Mapping[str, float]], weights: Mapping[str, Mapping[str, float]]) -> str:
    """Each view's scores; a view that the case lacks has no weight, and a dash."""
    cells = []
    for view, name in _VIEWS.items():
        asked = any((weights.get(view) or {"": 1.0}).values())
        pair = (scores.get(view) or {}) if asked else {}
        dense, sparse = (_percent(pair.get(channel)) for channel in ("dense", "sparse"))
        cells.append(f"{name} {dense}/{sparse}")
    return "  ".join(cells)


def _share(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0%}" if value >= 0.005 or value == 0 else "<1%"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}"


def _grounds(details: AnswerDetails) -> RenderableType:
    text = Text("\n")
    if details.confidence is not None:
        text.append("Confidence ", style="bold").append(_confidence(details.confidence) + "\n")
    text.append("Route      ", style="bold").append(
        f"{one_line(details.route.engine)}: {one_line(details.route.why)}\n"
    )
    spent = f", {details.tokens.prompt} + {details.tokens.output} tokens" if details.tokens.output else ""
    text.append("Written by ", style="bold").append(f"{one_line(details.model)}{spent}\n")
    if (total := details.timings_ms.get("total")) is not None:
        text.append("Time       ", style="bold").append(f"{total:.0f} ms\n")
    text.append("Retrieval support for professionals; not a diagnosis, not a validated device.", style="dim")
    return text


def _confidence(confidence: ConfidenceReport) -> str:
    return (
        f"{confidence.value:.2f} (raw {confidence.raw:.2f}: best record {confidence.top:.2f}, "
        f"agreement of the best three {confidence.consensus:.2f}, lead {confidence.margin:.2f})"
    )


def codes(matches: Iterable[IcdMatch], console: Console) -> None:
    """Print coded diagnoses: one row each, with the stage that found the code and its lead."""
    table = _table(console)
    table.add_column("Text", ratio=3)
    table.add_column("Stage", no_wrap=True)
    table.add_column("Code", no_wrap=True)
    table.add_column("Title", ratio=4)
    table.add_column("Score", justify="right", no_wrap=True)
    table.add_column("Margin", justify="right", no_wrap=True)
    for match in matches:
        table.add_row(
            Text(one_line(match.text)),
            one_line(match.stage),
            Text(one_line(match.code or "-")),
            Text(one_line(match.title or "")),
            _cell(match.score),
            _cell(match.margin),
        )
    console.print(table)


def report(title: str, value: Any, console: Console) -> None:
    """Print a verb's report: values as lines, what belongs together indented, rows alike as a table."""
    console.print(Text(one_line(title), style="bold"))
    _section(to_plain_data(value), console, indent=2)


def _section(data: Mapping[str, Any], console: Console, indent: int) -> None:
    nested = {key: item for key, item in data.items() if isinstance(item, dict) and item}
    lines = {key: item for key, item in data.items() if key not in nested}
    width = max((len(_words(key)) for key in lines), default=0)
    for key, item in lines.items():
        console.print(
            Padding(Text(f"{_words(key):<{width}}  {_cell(item)}"), (0, 0, 0, indent), expand=False)
        )
    for key, item in nested.items():
        console.print(Padding(Text(_words(key), style="bold"), (0, 0, 0, indent), expand=False))
        if _is_table(item):
            for table in _as_tables(item, console, console.width - indent - 2):
                console.print(Padding(table, (0, 0, 0, indent + 2), expand=False))
        else:
            _section(item, console, indent + 2)


def _is_table(item: Mapping[str, Any]) -> bool:
    rows = list(item.values())
    return len(rows) > 1 and all(
        isinstance(row, dict) and _single(row).keys() & rows[0].keys() for row in rows
    )


def _single(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: cell for key, cell in row.items() if not isinstance(cell, dict)}


def _as_tables(rows: Mapping[str, Mapping[str, Any]], console: Console, width: int) -> Iterator[Table]:
    """One table, or several below each other where the columns don't fit beside each other."""
    waiting = list(dict.fromkeys(key for row in rows.values() for key in _single(row)))
    names = max(map(len, rows))
    while waiting:
        table, left = _table(console), width - names
        table.add_column("", no_wrap=True)
        columns: list[str] = []
        while waiting and (not columns or left >= _width(waiting[0], rows)):
            left -= _width(waiting[0], rows)
            columns.append(waiting.pop(0))
            table.add_column(_words(columns[-1]), justify="right")
        for name, row in rows.items():
            table.add_row(Text(one_line(name)), *(Text(_cell(row.get(column))) for column in columns))
        yield table


def _width(column: str, rows: Mapping[str, Mapping[str, Any]]) -> int:
    return 3 + max(len(_words(column)), *(len(_cell(row.get(column))) for row in rows.values()))


def _words(key: str) -> str:
    return one_line(key).replace("_", " ")


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value in (None, [], {}):
        return "yes" if value is True else "no" if value is False else "-"
    if isinstance(value, list):
        more = f" and {len(value) - _LISTED:,} more" if len(value) > _LISTED else ""
        return ("–" if len(value) == 2 else ", ").join(_cell(item) for item in value[:_LISTED]) + more
    if isinstance(value, dict):
        return ", ".join(f"{_words(str(key))} {_cell(item)}" for key, item in value.items())
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return one_line(value)
