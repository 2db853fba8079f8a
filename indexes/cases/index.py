"""The multi-view case index: four views, each with a dense and a sparse channel, in one folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy.typing as npt

from ...errors import IndexStoreError
from ...language.tokenizers import Tokenizer
from ...models.base import TextEmbedder
from ...models.cache import EmbeddingCache
from ...records.schema import VIEWS, OutpatientRecord
from ..generation import Generation
from ..store import GenerationStore
from .dense import AnnOptions
from .ingest import Parts, Report, Tick, ViewsOf
from .reader import CaseReader
from .state import State, check_meta
from .tables import Tables
from .update import Change, write_next

KIND = "wardround-cases"
FORMAT = 1

_REBUILD = "rebuild it with `wardround cases build`"


class CaseIndex(CaseReader):
    """Similar-case search over records, by chief complaint, history, examination and the whole.

    Reads are memory-mapped and keep the state they were opened with, whatever a writer does; writes publish
    a whole new state in one step. Make one with :meth:`build` or :meth:`open`. Source: MAP-RAG for views and
    channels; scales, whitening and storage are ours.

    Attributes:
        report: what came of the last build or change; None where the index was opened.
    """

    def __init__(self, generation: Generation, parts: Parts, options: AnnOptions, threads: int) -> None:
        super().__init__(State.load(generation, parts.tokenizer, options), parts, threads)
        self.report: Report | None = None
        self._options = options
        self._loading = Lock()
        self._seen = generation.stamp

    def snapshot(self) -> CaseReader:
        """The present state, which stays as it is when this index changes or reloads."""
        return CaseReader(self._state, self._parts, self._threads)

    def _load_newest(self) -> bool:
        """Take over what is current; whether that is another generation. One thread after the other."""
        with self._loading:
            current = GenerationStore(self.path, KIND, FORMAT).open()
            newer = current.name != self.generation
            if newer:
                _check_identities(current, self._parts)
                self._state = State.load(current, self._parts.tokenizer, self._options)
            self._seen = current.stamp
            return newer

    @classmethod
    def build(
        cls,
        records: Iterable[OutpatientRecord],
        path: str | Path,
        *,
        embedder: TextEmbedder,
        tokenizer: Tokenizer | None = None,
        views_of: ViewsOf | None = None,
        cache: EmbeddingCache | None = None,
        whitening: float = 0.5,
        batch_size: int = 64,
        options: AnnOptions | None = None,
        search_threads: int = 1,
        progress: Tick | None = None,
    ) -> Self:
        """Build an index, or put a new one in an old one's place in one step.

        Args:
            records: read once; of records with the same id the last one stands.
            path: folder of the index; made where missing.
            embedder: of texts.
            tokenizer: of texts; :class:`ClinicalTokenizer` where None.
            views_of: splits a record; ``records.views.views_of`` where None.
            cache: of vectors, so that an interrupted build resumes; None embeds everything.
            whitening: 0 leaves vectors as they are, 1 whitens fully.
            batch_size: texts a call of the embedder.
            options: of the dense channels.
            search_threads: of FAISS, one question at a time.
            progress: called with the number of records read since its last call.

        Raises:
            IndexStoreError: the folder is in use, not writable, or holds something else.
            ModelError: the embedder cannot be loaded.
        """
        parts = _parts(embedder, tokenizer, views_of, cache, batch_size)
        options = options or AnnOptions()
        store = GenerationStore(Path(path), KIND, FORMAT)
        with store.writing() as writer:
            meta, report = write_next(
                None,
                None,
                Change(records),
                writer,
                parts,
                whitening=whitening,
                options=options,
                tick=progress,
            )
            store.publish(writer, meta)
            index = cls(store.open(), parts, options, search_threads)
        index.report = report
        return index

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: TextEmbedder | None = None,
        tokenizer: Tokenizer | None = None,
        views_of: ViewsOf | None = None,
        cache: EmbeddingCache | None = None,
        batch_size: int = 64,
        options: AnnOptions | None = None,
        search_threads: int = 1,
        verify: bool = False,
    ) -> Self:
        """Open an index.

        Args:
            path: its folder.
            embedder: the one it was built with; without one, nothing can be encoded or added.
            tokenizer: as for :meth:`build`.
            views_of: as for :meth:`build`.
            cache: as for :meth:`build`.
            batch_size: as for :meth:`build`.
            options: as for :meth:`build`.
            search_threads: as for :meth:`build`.
            verify: compare all checksums, which for a large index takes seconds; sizes always are.

        Raises:
            IndexStoreError: missing, damaged, of another format, or built with another embedder or tokeniser.
        """
        generation = GenerationStore(Path(path), KIND, FORMAT).open(verify=verify)
        parts = _parts(embedder, tokenizer, views_of, cache, batch_size)
        _check_identities(generation, parts)
        return cls(generation, parts, options or AnnOptions(), search_threads)

    def add(self, records: Iterable[OutpatientRecord], *, progress: Tick | None = None) -> Report:
        """Add records whose ids are new.

        Raises:
            InputError: an id is in the index already; nothing is added then.
            IndexStoreError: another process is writing.
        """
        return self._change(Change(records), progress)

    def replace(self, records: Iterable[OutpatientRecord], *, progress: Tick | None = None) -> Report:
        """Add records; where an id is known, the new record takes the old one's place.

        Raises:
            IndexStoreError: another process is writing.
        """
        return self._change(Change(records, replace=True), progress)

    def delete(self, ids: Collection[str]) -> Report:
        """Remove records by id; ids that the index does not hold are reported as unknown.

        Raises:
            IndexStoreError: another process is writing.
        """
        return self._change(Change(remove=ids), None)

    def _change(self, change: Change, tick: Tick | None) -> Report:
        store = GenerationStore(self.path, KIND, FORMAT)
        with store.writing() as writer:
            current = store.open()
            _check_identities(current, self._parts)
            if current.name != self.generation:
                State.load(current, self._parts.tokenizer, self._options)  # refuse what does not fit together
            meta, report = write_next(
                Tables.read(current),
                current,
                change,
                writer,
                self._parts,
                whitening=current.meta["whitening"],
                options=self._options,
                tick=tick,
            )
            store.publish(writer, meta)
            self._load_newest()
            del current  # its lease would keep the old generation
            store.sweep()
        self.report = report
        return report

    def write_sidecar(self, name: str, files: Mapping[str, bytes | npt.NDArray[Any]]) -> None:
        """Keep learned parts with the index; they replace an earlier sidecar of that name.

        Args:
            name: of the sidecar.
            files: content by file name; arrays are written as ``.npy``.

        Raises:
            IndexStoreError: another process is writing.
        """
        store = GenerationStore(self.path, KIND, FORMAT)
        prefix = f"sidecar/{name}/"
        with store.writing() as writer:
            current = store.open()
            for file in current.files:
                if not file.startswith(prefix):
                    writer.link(current, file)
            for file, content in files.items():
                if isinstance(content, bytes):
                    writer.bytes(prefix + file, content)
                else:
                    writer.array(prefix + file, content)
            store.publish(writer, current.meta)
            self._load_newest()
            del current
            store.sweep()

    def reload(self) -> bool:
        """Take over the newest state that any writer has published; whether there was a newer one.

        Raises:
            IndexStoreError: the index is gone, damaged, or was rebuilt with other models.
        """
        return self._load_newest()

    def refresh_if_changed(self) -> bool:
        """As :meth:`reload`, but where no writer published anything it costs one look at the manifest's date.

        Call it before each question where another process or instance may change the index.

        Raises:
            IndexStoreError: the index is gone, damaged, or was rebuilt with other models.
        """
        seen = GenerationStore(self.path, KIND, FORMAT).stamp()
        if seen is not None and seen == self._seen:
            return False
        return self._load_newest()

    def info(self) -> dict[str, Any]:
        """Counts, identities and sizes, for people and for ``--json``."""
        meta = self._state.generation.meta
        keys = ("records", "labels", "embedder", "dimension", "tokenizer", "whitening", "texts", "vocabulary")
        return {
            "path": str(self.path),
            "format": FORMAT,
            "version": self.version,
            **{key: meta[key] for key in keys},
            "departments": len(self._state.names.departments),
            "languages": {
                name: int((self._state.columns.languages == i).sum())
                for i, name in enumerate(self._state.names.languages)
            },
            "views": {
                view.value: {
                    "records": meta["views"][view]["records"],
                    "texts": meta["views"][view]["texts"],
                    "search": "hnsw" if meta["views"][view]["graph"] else "exact",
                    "mean_cosine": meta["views"][view]["floor"],
                }
                for view in VIEWS
            },
            "sidecars": sorted(
                {f.split("/")[1] for f in self._state.generation.files if f.startswith("sidecar/")}
            ),
            "bytes": sum(entry.size for entry in self._state.generation.files.values()),
        }


def _parts(
    embedder: TextEmbedder | None,
    tokenizer: Tokenizer | None,
    views_of: ViewsOf | None,
    cache: EmbeddingCache | None,
    batch_size: int,
) -> Parts:
    if tokenizer is None:
        from ...language.tokenizers import ClinicalTokenizer  # noqa: PLC0415  # loads dictionaries

        tokenizer = ClinicalTokenizer()
    if views_of is None:
        from ...records.views import views_of as split  # noqa: PLC0415

        views_of = split
    return Parts(embedder, tokenizer, views_of, cache, batch_size)


def _check_identities(generation: Generation, parts: Parts) -> None:
    check_meta(generation)
    for what, part in (("embedder", parts.embedder), ("tokenizer", parts.tokenizer)):
        built_with = generation.meta[what]
        if part is not None and part.identity != built_with:
            raise IndexStoreError(
                f"{generation.root}: built with {what} {built_with}, but {part.identity} is set; "
                f"set that one, or {_REBUILD}"
            )
