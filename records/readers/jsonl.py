"""JSON lines, one record a line (the format of docs/evaluation.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ...settings import RecordsSettings
from .door import Row
from .lines import read_lines


def read_jsonl(path: Path, settings: RecordsSettings) -> Iterator[Row]:
    """Rows of a JSON lines file, plain or gzipped; blank lines are passed over.

    Args:
        path: of the file.
        settings: the encoding is taken from here.

    Raises:
        InputError: the file is empty or cannot be read.
    """
    for line in read_lines(path, settings.encoding):
        if line.fault is not None:
            yield Row(None, line.number, line.fault)
            continue
        if line.text.isspace():
            continue
        value, fault = parse_json(line.text)
        if fault is not None:
            yield Row(None, line.number, fault)
        elif isinstance(value, dict):
            yield Row(value, line.number)
        else:
            yield Row(None, line.number, "a record must be a JSON object")


def parse_json(text: str) -> tuple[object, str | None]:
    """The value of one line, or what is wrong with it; never an exception."""
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        if not text.endswith("\n") and error.pos >= len(text.rstrip()) - 1:
            return None, "the last line is cut off"
        if not text.endswith("\n") and error.msg.startswith("Unterminated string"):
            return None, "the last line is cut off"
        return None, f"not valid JSON: {error.msg} at character {error.pos + 1}"
    except RecursionError:
        return None, "not valid JSON: nested too deeply"
    except ValueError:
        return None, "not valid JSON: a number with too many digits"
