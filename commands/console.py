"""Where the verbs read and write: text and pipes in; terminal, pipe or JSON out.

Records and questions are other people's text: nothing of it reaches a terminal as a control
sequence or as markup.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

# C0 and C1 controls but tab and newline, characters that reorder a line, and lone surrogates.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_C1 = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def plain(text: str) -> str:
    """The text without characters that would steer a terminal; tabs and newlines stay."""
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: object, width: int | None = None) -> str:
    """The text on one line, cut to ``width`` characters where given."""
    line = " ".join(plain(str(text)).split())
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)].rstrip() + "…"


def out() -> Console:
    """The console on stdout; a character that its encoding lacks becomes ``?``."""
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def note(message: str) -> None:
    """Say something beside the result, on stderr."""
    sys.stderr.write(plain(message) + "\n")
    sys.stderr.flush()


def to_plain_data(value: Any) -> Any:
    """Reports, enums, paths, dates and numpy values as what JSON can hold; NaN becomes null."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(to_plain_data(key)): to_plain_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((to_plain_data(item) for item in value), key=str)
    return _object_to_plain_data(value)


def _object_to_plain_data(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return to_plain_data(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value):
        return to_plain_data({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Sequence):
        return [to_plain_data(item) for item in value]
    if hasattr(value, "tolist"):
        return to_plain_data(value.tolist())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def emit_json(value: Any) -> None:
    """One JSON value on one line of stdout, in UTF-8 whatever the locale says."""
    line = json.dumps(to_plain_data(value), ensure_ascii=False, allow_nan=False)
    safe = _C1.sub(lambda match: f"\\u{ord(match[0]):04x}", line)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(safe + "\n")
    sys.stdout.flush()


def print_report(title: str, report: Any, *, as_json: bool) -> None:
    """Print a verb's report as JSON or for a person."""
    if as_json:
        emit_json(report)
        return
    from . import render

    render.report(title, report, out())


def read_text(
    text: str | None, file: Path | None, *, what: str, limit: int, encoding: str | None = None
) -> str:
    """The text given as an argument, in a file, or piped in; ``-`` as file or text means stdin.

    Args:
        text: the argument.
        file: its alternative.
        what: how messages call the text.
        limit: most characters that are taken.
        encoding: of file and pipe; UTF-8, or UTF-16 by its mark, where None.

    Raises:
        InputError: nothing there, not readable, not text, empty or too long.
    """
    if text is not None and file is not None:
        raise InputError(f"{what} is given twice, as text and as --file {file}; give one of them")
    most = 4 * limit + 4
    if text is not None and text != "-":
        content, source = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), what
    elif file is not None and str(file) != "-":
        content, source = _decode(_read_file(file, what, most), str(file), encoding, most), str(file)
    else:
        piped = _read_pipe(what, most, asked=text == "-" or file is not None)
        content, source = _decode(piped, "stdin", encoding, most), "stdin"
    if not content.strip():
        raise InputError(f"{source}: {what} is empty; give some text")
    if len(content) > limit:
        raise InputError(
            f"{source}: {what} has more than the {limit:,} characters that are taken; give less at once"
        )
    return content


def _read_file(file: Path, what: str, most: int) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise InputError(
            f"{file}: {what} cannot be read ({error.strerror}); give an existing text file"
        ) from error


def _read_pipe(what: str, most: int, *, asked: bool) -> bytes:
    stream = sys.stdin
    if stream is None or stream.closed or (stream.isatty() and not asked):
        raise InputError(
            f"no {what.removeprefix('the ')}: give it as an argument, with --file, or pipe it in"
        )
    return stream.buffer.read(most)


def _decode(content: bytes, source: str, encoding: str | None, most: int) -> str:
    if len(content) == most:  # cut there, perhaps inside a character
        return "\ufffd" * most
    from ..records.readers.encodings import SAMPLE_BYTES, declared_encoding, detect_encoding

    sample = content[:SAMPLE_BYTES]
    found = declared_encoding(encoding, sample) if encoding else detect_encoding(sample)
    try:
        text = content[found.bom_bytes :].decode(found.name)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source}: not {found.name} text (byte {error.start + found.bom_bytes}); convert it, or name "
            "its encoding in the settings (records.encoding)"
        ) from error
    if "\0" in text:
        raise InputError(f"{source}: holds NUL bytes, so it is no text; give plain text")
    return text
