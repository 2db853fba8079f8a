"""Vectors of texts that were embedded before, by content hash, on disk."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from platformdirs import user_cache_path

from .base import TextEmbedder

HalfMatrix = npt.NDArray[np.float16]

_log = logging.getLogger(__name__)
_BUSY_S = 60.0
_KEYS_A_QUERY = 500
_KEY_BYTES = 16


def content_key(text: str) -> bytes:
    """The 16-byte hash by which a text is known."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


class EmbeddingCache:
    """A SQLite file per embedder identity that holds content hashes and half-precision vectors, no text.

    Each batch is committed when it is embedded, so an interrupted build goes on where it stopped.
    Several processes may share the folder. A cache that is damaged or cannot be written is no error:
    the texts are embedded anew. Source: ours.

    Example:
        >>> import tempfile
        >>> from wardround.models.use import UseEmbedder
        >>> cache = EmbeddingCache(Path(tempfile.mkdtemp()))
        >>> cache.encode(UseEmbedder(), ["chest pain", "chest pain"]).shape
        (2, 512)

    Args:
        folder: where the files are; the user's cache folder where None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_cache_path("wardround") / "embeddings"

    def path(self, embedder: TextEmbedder) -> Path:
        """The file that holds one embedder's vectors."""
        identity = hashlib.blake2b(embedder.identity.encode(), digest_size=8).hexdigest()
        return self.folder / f"{identity}-{embedder.dimension}.sqlite"

    def encode(
        self,
        embedder: TextEmbedder,
        texts: Sequence[str],
        *,
        batch_size: int = 64,
        tick: Callable[[int], None] | None = None,
    ) -> HalfMatrix:
        """Vectors of texts as ``[len(texts), dimension]`` float16, each distinct text embedded once.

        The result is the same with a cold and a warm cache.

        Args:
            embedder: computes what is missing.
            texts: passages.
            batch_size: texts a call and a commit.
            tick: called with the number of distinct texts done since its last call.

        Raises:
            ModelError: the model cannot be loaded.
        """
        keys = [content_key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        order = {key: i for i, key in enumerate(distinct)}
        found = np.zeros((len(order), embedder.dimension), np.float16)
        with self._open(embedder) as store:
            missing = store.read_into(found, order)
            if tick is not None:
                tick(len(order) - len(missing))
            for start in range(0, len(missing), batch_size):
                batch = missing[start : start + batch_size]
                vectors = embed_half(embedder, [distinct[key] for key in batch])
                found[[order[key] for key in batch]] = vectors
                store.write(batch, vectors)
                if tick is not None:
                    tick(len(batch))
        return found[[order[key] for key in keys]]

    @contextlib.contextmanager
    def _open(self, embedder: TextEmbedder) -> Iterator[_Store]:
        store = _Store(self.path(embedder), embedder.dimension)
        try:
            yield store
        finally:
            store.close()


def embed_half(embedder: TextEmbedder, texts: list[str]) -> HalfMatrix:
    """Embed passages and round to half precision, as the cache and the index keep them."""
    return embedder.encode(texts, "passage").astype(np.float16)


class _Store:
    """One open SQLite file; after its first failure it only says that nothing is known."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._width = dimension * 2
        self._base: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._base = self._connect()
        except sqlite3.OperationalError as error:
            self._give_up(error)
        except sqlite3.DatabaseError:
            self._start_anew()
        except OSError as error:
            self._give_up(error)

    def _connect(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        try:
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=NORMAL")
            base.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        except sqlite3.Error:
            base.close()
            raise
        return base

    def _start_anew(self) -> None:
        _log.warning("%s: the embedding cache is damaged and is started anew", self._path)
        try:
            for end in ("", "-wal", "-shm"):
                Path(f"{self._path}{end}").unlink(missing_ok=True)
            self._base = self._connect()
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.warning("%s: working without the embedding cache (%s)", self._path, error)
        self.close()

    def read_into(self, found: HalfMatrix, order: dict[bytes, int]) -> list[bytes]:
        """Fill the rows that are known; the keys that are not, in order."""
        known: set[bytes] = set()
        keys = list(order)
        for start in range(0, len(keys), _KEYS_A_QUERY):
            if self._base is None:
                break
            part = keys[start : start + _KEYS_A_QUERY]
            marks = ",".join("?" * len(part))
            try:
                rows = self._base.execute(
                    f"SELECT key, vector FROM vectors WHERE key IN ({marks})",  # noqa: S608  # only marks
                    part,
                ).fetchall()
            except sqlite3.DatabaseError:
                self.close()
                self._start_anew()
                break
            for key, vector in rows:
                if len(vector) == self._width:
                    found[order[key]] = np.frombuffer(vector, np.float16)
                    known.add(key)
        return [key for key in keys if key not in known]

    def write(self, keys: list[bytes], vectors: HalfMatrix) -> None:
        """Keep one batch, all of it or nothing."""
        if self._base is None:
            return
        rows = [(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        try:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        if self._base is not None:
            self._base.close()
            self._base = None
