"""A folder that always holds one whole index: generations behind one atomically swapped manifest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout

from ..errors import IndexStoreError
from .generation import (
    LEASE,
    MANIFEST,
    REBUILD,
    TEMPORARY,
    FileEntry,
    Generation,
    GenerationWriter,
    Lease,
    Stamp,
)

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

_LOCK = ".writer.lock"
_GENERATION = "gen-"
_NAME = re.compile(rf"{_GENERATION}[0-9a-f]+", re.ASCII)
_OPEN_TRIES = 20
_HASH_ALWAYS_BELOW = 64 << 20


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

    def stamp(self) -> Stamp | None:
        """What changes with every published generation and costs one look at the file system to see.

        Inode, time of change and size of the manifest; None where it cannot be seen.
        """
        try:
            seen = (self.root / MANIFEST).stat()
        except OSError:
            return None
        return seen.st_ino, seen.st_mtime_ns, seen.st_size

    def open(self, *, verify: bool = False) -> Generation:
        """The current generation, with its files' sizes checked; small ones by checksum as well.

        Raises:
            IndexStoreError: no index, a damaged one, or one of another format.
        """
        problem: OSError | None = None
        for _ in range(_OPEN_TRIES):
            stamp = self.stamp()
            manifest = self._manifest()
            try:
                lease = Lease(self.root / manifest["generation"])
            except OSError as error:  # a writer replaced it between the two reads
                problem = error
                continue
            files = {name: FileEntry(*entry) for name, entry in manifest["files"].items()}
            generation = Generation(self.root, manifest["generation"], manifest["meta"], files, lease, stamp)
            wrong = self._wrong_size(generation)
            if wrong is None:
                if verify or sum(entry.size for entry in files.values()) <= _HASH_ALWAYS_BELOW:
                    generation.verify()
                return generation
            lease.release()
            if generation.folder.is_dir():
                raise IndexStoreError(f"{wrong}; {REBUILD}")
        raise IndexStoreError(f"{self.root}: its generation cannot be opened ({problem}); {REBUILD}")

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
            other = (manifest["kind"], manifest["format"]) != (self._kind, self._version)
        except FileNotFoundError as error:
            raise IndexStoreError(
                f"{self.root}: no index here ({MANIFEST} is missing); build one with `wardround cases build`"
            ) from error
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise IndexStoreError(f"{path}: unreadable ({type(error).__name__}); {REBUILD}") from error
        if not whole:
            raise IndexStoreError(f"{path}: it was changed after it was written; {REBUILD}")
        if other:
            raise IndexStoreError(
                f"{self.root}: holds {manifest['kind']} format {manifest['format']}, and this version reads "
                f"{self._kind} format {self._version}; rebuild it with `wardround cases build`"
            )
        wrong = _unfit(manifest)
        if wrong:
            raise IndexStoreError(f"{path}: {wrong}; {REBUILD}")
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
        (writer.folder / LEASE).touch()
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
        temporary = self.root / f"{TEMPORARY}{MANIFEST}"
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
            if path.name.startswith(TEMPORARY):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
            elif path.name.startswith(_GENERATION) and path.name != current:
                _remove_unless_read(path)


def _unfit(manifest: Mapping[str, Any]) -> str | None:
    """What in a manifest no writer wrote; what passes names files inside the generation only."""
    name, files = manifest.get("generation"), manifest.get("files")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "it names no generation"
    if not isinstance(manifest.get("meta"), dict):
        return "it does not describe its generation"
    if not isinstance(files, dict):
        return "it lists no files"
    for file, entry in files.items():
        if not _is_inside(file):
            return f"it lists {file!r}, which is no file of a generation"
        match entry:
            case [int(size), str()] if not isinstance(size, bool) and size >= 0:
                continue
        return f"it gives no size and checksum of {file}"
    return None


def _is_inside(file: str) -> bool:
    parts = PurePosixPath(file).parts
    plain = not any(char in file for char in "\0\\:")
    return plain and bool(parts) and ".." not in parts and not file.startswith("/")


def _ours(name: str) -> bool:
    return name in (MANIFEST, _LOCK) or name.startswith((TEMPORARY, _GENERATION))


def _remove_unless_read(folder: Path) -> None:
    """Remove a generation whose lease nobody holds; renamed first, so that no reader sees half of it."""
    grave = folder.with_name(f"{TEMPORARY}{folder.name}")
    with contextlib.suppress(OSError):
        with contextlib.ExitStack() as stack:
            if fcntl is not None and (folder / LEASE).exists():
                handle = stack.enter_context((folder / LEASE).open("rb"))
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
