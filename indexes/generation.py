"""One generation of an index: its files, whole and unchanging once they are published."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..errors import IndexStoreError

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows keeps open files from being removed by itself
    fcntl = None  # type: ignore[assignment]

Array = npt.NDArray[Any]
Stamp = tuple[int, int, int]

MANIFEST = "manifest.json"
TEMPORARY = "tmp-"
LEASE = "lease"
REBUILD = "the index is damaged: rebuild it with `wardround cases build` or restore a copy"


@dataclass(frozen=True)
class FileEntry:
    """Size in bytes and SHA-256 of one file of a generation."""

    size: int
    sha256: str


class Lease:
    """A shared lock on a generation's lease file; while it is held no writer removes the generation."""

    def __init__(self, folder: Path) -> None:
        self._handle: IO[bytes] | None = (folder / LEASE).open("rb")
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let the generation go; may be called twice."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def __del__(self) -> None:
        self.release()


@dataclass(frozen=True)
class Generation:
    """One complete, unchanging state of an index.

    Attributes:
        root: folder of the index.
        name: of the generation's subfolder.
        meta: what the index wrote about itself.
        files: every file by its name relative to the generation.
        lease: keeps writers from removing the generation.
        stamp: of the manifest that named it, see :meth:`GenerationStore.stamp`.
    """

    root: Path
    name: str
    meta: dict[str, Any]
    files: dict[str, FileEntry]
    lease: Lease
    stamp: Stamp | None = None

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self.root / self.name

    def path(self, name: str) -> Path:
        """Path of one file.

        Raises:
            IndexStoreError: the manifest knows no such file.
        """
        if name not in self.files:
            raise IndexStoreError(f"{self.root}: {MANIFEST} lists no file {name}; {REBUILD}")
        return self.folder / name

    def array(self, name: str) -> Array:
        """A memory-mapped ``.npy`` file.

        Raises:
            IndexStoreError: missing or not an array.
        """
        path = self.path(name)
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise IndexStoreError(f"{path}: not a readable array ({error}); {REBUILD}") from error

    def raw(self, name: str, dtype: npt.DTypeLike, columns: int = 0) -> Array:
        """A memory-mapped headerless file as ``[n]`` or, with ``columns``, ``[n, columns]``."""
        path = self.path(name)
        try:
            size = path.stat().st_size
            flat = np.asarray(np.memmap(path, dtype=dtype, mode="r")) if size else np.zeros(0, dtype)
            return flat.reshape(-1, columns) if columns else flat
        except (OSError, ValueError) as error:
            raise IndexStoreError(f"{path}: unreadable ({error}); {REBUILD}") from error

    def json(self, name: str) -> Any:
        """A JSON file.

        Raises:
            IndexStoreError: missing or damaged.
        """
        path = self.path(name)
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise IndexStoreError(f"{path}: unreadable ({error}); {REBUILD}") from error

    def verify(self) -> None:
        """Compare every file's checksum with the manifest.

        Raises:
            IndexStoreError: naming the first file that differs.
        """
        for name, entry in sorted(self.files.items()):
            path = self.folder / name
            try:
                with path.open("rb") as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
            except OSError as error:
                raise IndexStoreError(f"{path}: unreadable ({error.strerror}); {REBUILD}") from error
            if digest != entry.sha256:
                raise IndexStoreError(f"{path}: its checksum differs from {MANIFEST}; {REBUILD}")


class GenerationWriter:
    """Collects the files of a new generation in a temporary folder and hashes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / f"{TEMPORARY}{secrets.token_hex(6)}"
        self.files: dict[str, FileEntry] = {}
        self.folder.mkdir()

    def place(self, name: str) -> Path:
        """Path to write a file to; call :meth:`seal` when it is complete."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def seal(self, name: str) -> None:
        """Flush a file that was written to :meth:`place` and note its size and checksum."""
        path = self.folder / name
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            os.fsync(handle.fileno())
        self.files[name] = FileEntry(path.stat().st_size, digest)

    def array(self, name: str, values: Array) -> None:
        """Write an ``.npy`` file."""
        with self.place(name).open("wb") as handle:
            np.save(handle, values, allow_pickle=False)
        self.seal(name)

    def bytes(self, name: str, content: bytes) -> None:
        """Write a file as it is."""
        self.place(name).write_bytes(content)
        self.seal(name)

    def json(self, name: str, value: object) -> None:
        """Write a JSON file."""
        self.bytes(name, json.dumps(value, ensure_ascii=False).encode())

    def link(self, source: Generation, name: str, as_name: str | None = None) -> None:
        """Take over an unchanged file of another generation without copying it where the disk allows."""
        target = self.place(as_name or name)
        try:
            target.hardlink_to(source.path(name))
        except OSError:
            shutil.copyfile(source.path(name), target)
            with target.open("rb") as handle:
                os.fsync(handle.fileno())
        self.files[as_name or name] = source.files[name]

    def drop(self, name: str) -> None:
        """Take back a file."""
        (self.folder / name).unlink()
        del self.files[name]

    def discard(self) -> None:
        """Remove what was written so far."""
        shutil.rmtree(self.folder, ignore_errors=True)
