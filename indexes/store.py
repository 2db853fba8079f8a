"""A folder that always holds one whole index: generations behind one atomically swapped manifest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from ..errors import IndexStoreError

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows keeps open files from being removed by itself
    fcntl = None  # type: ignore[assignment]

Array = npt.NDArray[Any]

MANIFEST = "manifest.json"
_LOCK = ".writer.lock"
_LEASE = "lease"
_TEMPORARY = "tmp-"
_GENERATION = "gen-"
_OPEN_TRIES = 20
_HASH_ALWAYS_BELOW = 64 << 20


@dataclass(frozen=True)
class FileEntry:
    """Size in bytes and SHA-256 of one file of a generation."""

    size: int
    sha256: str


class Lease:
    """A shared lock on a generation's lease file; while it is held no writer removes the generation."""

    def __init__(self, folder: Path) -> None:
        self._handle: IO[bytes] | None = (folder / _LEASE).open("rb")
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
    """

    root: Path
    name: str
    meta: dict[str, Any]
    files: dict[str, FileEntry]
    lease: Lease

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
            raise IndexStoreError(f"{self.root}: {MANIFEST} lists no file {name}; {_REBUILD}")
        return self.folder / name

    def array(self, name: str) -> Array:
        """A memory-mapped ``.npy`` file.

        Raises:
            IndexStoreError: missing or not an array.
        """
        path = self.path(name)
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError) as error:
            raise IndexStoreError(f"{path}: not a readable array ({error}); {_REBUILD}") from error

    def raw(self, name: str, dtype: npt.DTypeLike, columns: int = 0) -> Array:
        """A memory-mapped headerless file as ``[n]`` or, with ``columns``, ``[n, columns]``."""
        path = self.path(name)
        try:
            size = path.stat().st_size
            flat: Array = np.memmap(path, dtype=dtype, mode="r") if size else np.zeros(0, dtype)
            return flat.reshape(-1, columns) if columns else flat
        except (OSError, ValueError) as error:
            raise IndexStoreError(f"{path}: unreadable ({error}); {_REBUILD}") from error

    def json(self, name: str) -> Any:
        """A JSON file.

        Raises:
            IndexStoreError: missing or damaged.
        """
        path = self.path(name)
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise IndexStoreError(f"{path}: unreadable ({error}); {_REBUILD}") from error

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
                raise IndexStoreError(f"{path}: unreadable ({error.strerror}); {_REBUILD}") from error
            if digest != entry.sha256:
                raise IndexStoreError(f"{path}: its checksum differs from {MANIFEST}; {_REBUILD}")


_REBUILD = "the index is damaged: rebuild it with `wardround cases build` or restore a copy"


class GenerationWriter:
    """Collects the files of a new generation in a temporary folder and hashes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / f"{_TEMPORARY}{secrets.token_hex(6)}"
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


class GenerationStore:
    """Opens and publishes generations of one index folder.

    Args:
        root: folder of the index.
        kind: which sort of index it is; a folder of another kind is refused.
        version: format version of that kind.
    """

    def __init__(self, root: Path, kind: str, version: int) -> None:
        self.root = root
        self._kind = kind
        self._version = version

    def open(self, *, verify: bool = False) -> Generation:
        """The current generation, with its files' sizes checked; small ones by checksum as well.

        Raises:
            IndexStoreError: no index, a damaged one, or one of another format.
        """
        problem: OSError | None = None
        for _ in range(_OPEN_TRIES):
            manifest = self._manifest()
            try:
                lease = Lease(self.root / manifest["generation"])
            except OSError as error:  # a writer replaced it between the two reads
                problem = error
                continue
            files = {name: FileEntry(*entry) for name, entry in manifest["files"].items()}
            generation = Generation(self.root, manifest["generation"], manifest["meta"], files, lease)
            wrong = self._wrong_size(generation)
            if wrong is None:
                if verify or sum(entry.size for entry in files.values()) <= _HASH_ALWAYS_BELOW:
                    generation.verify()
                return generation
            lease.release()
            if generation.folder.is_dir():
                raise IndexStoreError(f"{wrong}; {_REBUILD}")
        raise IndexStoreError(f"{self.root}: its generation cannot be opened ({problem}); {_REBUILD}")

    def _wrong_size(self, generation: Generation) -> str | None:
        for name, entry in generation.files.items():
            path = generation.folder / name
            try:
                size = path.stat().st_size
            except OSError:
                return f"{path}: missing"
            if size != entry.size:
                return f"{path}: {size} bytes where {MANIFEST} says {entry.size}"
        return None

    def _manifest(self) -> dict[str, Any]:
        path = self.root / MANIFEST
        try:
            manifest = json.loads(path.read_bytes())
            checksum = manifest.pop("checksum")
            whole = checksum == _checksum(manifest)
        except FileNotFoundError as error:
            raise IndexStoreError(
                f"{self.root}: no index here ({MANIFEST} is missing); build one with `wardround cases build`"
            ) from error
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise IndexStoreError(f"{path}: unreadable ({type(error).__name__}); {_REBUILD}") from error
        if not whole:
            raise IndexStoreError(f"{path}: it was changed after it was written; {_REBUILD}")
        if manifest["kind"] != self._kind or manifest["format"] != self._version:
            raise IndexStoreError(
                f"{self.root}: holds {manifest['kind']} format {manifest['format']}, and this version reads "
                f"{self._kind} format {self._version}; rebuild it with `wardround cases build`"
            )
        return dict(manifest)

    @contextlib.contextmanager
    def writing(self) -> Iterator[GenerationWriter]:
        """Be the one writer; what the block writes is discarded unless it is published.

        Raises:
            IndexStoreError: another writer is at work, or the folder holds something else.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            foreign = [p.name for p in self.root.iterdir() if not _ours(p.name)]
        except OSError as error:
            raise IndexStoreError(f"{self.root}: not a writable folder ({error.strerror})") from error
        if foreign and not (self.root / MANIFEST).exists():
            raise IndexStoreError(
                f"{self.root}: holds {min(foreign)}, which is no part of an index; give an empty folder"
            )
        lock = FileLock(self.root / _LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise IndexStoreError(
                f"{self.root}: another process is writing this index; wait until it is done and try again"
            ) from error
        except OSError as error:
            raise IndexStoreError(f"{self.root}: not writable ({error.strerror})") from error
        try:
            self.sweep()
            try:
                writer = GenerationWriter(self.root)
            except OSError as error:
                raise IndexStoreError(f"{self.root}: not writable ({error.strerror})") from error
            try:
                yield writer
            except OSError as error:
                raise IndexStoreError(
                    f"{self.root}: cannot be written ({error.strerror or error})"
                ) from error
            finally:
                writer.discard()
        finally:
            lock.release()

    def publish(self, writer: GenerationWriter, meta: Mapping[str, Any]) -> None:
        """Make the written files the current generation, in one atomic step."""
        (writer.folder / _LEASE).touch()
        for folder in {(writer.folder / name).parent for name in writer.files} | {writer.folder}:
            _sync_folder(folder)
        name = f"{_GENERATION}{secrets.token_hex(8)}"
        writer.folder.rename(self.root / name)
        manifest: dict[str, Any] = {
            "kind": self._kind,
            "format": self._version,
            "generation": name,
            "meta": dict(meta),
            "files": {file: [entry.size, entry.sha256] for file, entry in sorted(writer.files.items())},
        }
        manifest["checksum"] = _checksum(manifest)
        temporary = self.root / f"{_TEMPORARY}{MANIFEST}"
        with temporary.open("wb") as handle:
            handle.write(json.dumps(manifest, ensure_ascii=False, indent=1).encode())
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(self.root / MANIFEST)
        _sync_folder(self.root)

    def sweep(self) -> None:
        """Remove what an interrupted writer left and generations that nobody reads; for the one writer."""
        try:
            current = self._manifest()["generation"]
        except IndexStoreError:
            if (self.root / MANIFEST).exists():
                return  # never remove data that a damaged manifest may still name
            current = None
        for path in self.root.iterdir():
            if path.name.startswith(_TEMPORARY):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
            elif path.name.startswith(_GENERATION) and path.name != current:
                _remove_unless_read(path)


def _ours(name: str) -> bool:
    return name in (MANIFEST, _LOCK) or name.startswith((_TEMPORARY, _GENERATION))


def _remove_unless_read(folder: Path) -> None:
    """Remove a generation whose lease nobody holds; renamed first, so that no reader sees half of it."""
    grave = folder.with_name(f"{_TEMPORARY}{folder.name}")
    with contextlib.suppress(OSError):
        with contextlib.ExitStack() as stack:
            if fcntl is not None and (folder / _LEASE).exists():
                handle = stack.enter_context((folder / _LEASE).open("rb"))
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # pragma: no cover
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
