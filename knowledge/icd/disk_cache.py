"""Built tables kept between runs, as plain arrays; whatever is missing or damaged is simply built again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from platformdirs import user_cache_path

from .lexicon import lexicon_hash

_FORMAT = "7"
_KEPT = 8
_SEPARATOR = "\x1e"
Array = npt.NDArray[Any]


def cache_key(*parts: str) -> str:
    """Key of a table: its inputs, the data files and the format of what is stored."""
    return hashlib.sha256(_SEPARATOR.join((_FORMAT, lexicon_hash(), *parts)).encode()).hexdigest()[:24]


def pack_texts(texts: Iterable[str]) -> Array:
    """Texts as one array of bytes."""
    cleaned = (text.replace(_SEPARATOR, " ") for text in texts)
    return np.frombuffer(_SEPARATOR.join(cleaned).encode("utf-8", "surrogatepass"), np.uint8)


def unpack_texts(packed: Array) -> list[str]:
    """Texts out of :func:`pack_texts`; at least one was packed."""
    return packed.tobytes().decode("utf-8", "surrogatepass").split(_SEPARATOR)


def _folder() -> Path:
    chosen = os.environ.get("WARDROUND_CACHE")
    return (Path(chosen) if chosen else user_cache_path("wardround")) / "icd"


def load_arrays(key: str, names: Sequence[str]) -> dict[str, Array] | None:
    """Stored arrays; None where they are not there, not readable or not complete."""
    path = _folder() / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def store_arrays(key: str, arrays: Mapping[str, Array]) -> None:
    """Keep arrays for the next run; a folder that cannot be written to is no error."""
    with contextlib.suppress(OSError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez(stream, **arrays)  # type: ignore[arg-type]
            Path(temporary).replace(folder / f"{key}.npz")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _prune(folder)


def _prune(folder: Path) -> None:
    """Leave the newest tables only: every change of data files makes new ones."""
    tables = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in tables[_KEPT:]:
        path.unlink(missing_ok=True)
