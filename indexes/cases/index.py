"""The multi-view case index: four views, each with a dense and a sparse channel, in one folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import faiss
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ...errors import IndexStoreError
from ...language.detect import detect_language
from ...language.tokenizers import Tokenizer
from ...models.base import TextEmbedder
from ...models.cache import EmbeddingCache
from ...records.schema import VIEWS, OutpatientRecord, View
from ..store import Generation, GenerationStore
from . import dense
from .dense import AnnOptions, DenseChannel
from .encoded import EncodedQuery
from .ingest import Parts, Report, Tick, ViewsOf
from .payload import CasePayload, StringColumn
from .scores import Channel, ChannelScores
from .sparse import Postings, SparseChannel, top
from .tables import Columns, Names, Tables
from .update import Change, ranks_of, read_whitening, write_next
from .whitening import Whitening

KIND = "wardround-cases"
FORMAT = 1

_REBUILD = "rebuild it with `wardround cases build`"

Rows = npt.NDArray[np.int64]


class CaseIndex:
    """Similar-case search over records, by chief complaint, history, examination and the whole.

    Reads are memory-mapped and keep the state they were opened with, whatever a writer does; writes publish
    a whole new state in one step. Make one with :meth:`build` or :meth:`open`. Source: MAP-RAG for views and
    channels; scales, whitening and storage are ours.

    Attributes:
        report: what came of the last build or change; None where the index was opened.
    """

    def __init__(self, generation: Generation, parts: Parts, options: AnnOptions, threads: int) -> None:
        self.report: Report | None = None
        self._parts = parts
        self._options = options
        self._threads = threads
        self._load(generation)

    def _load(self, generation: Generation) -> None:
        self._generation = generation
        for name in ("_rows", "_dense_channels", "_sparse_channels"):
            self.__dict__.pop(name, None)
        try:
            self._columns = Columns.read(generation)
            self._names = Names.from_json(generation.json("names.json"))
            self._vocabulary = {term: i for i, term in enumerate(generation.json("vocabulary.json"))}
            segments = range(generation.meta["payload_segments"])
            self._payloads = [generation.raw(f"payload.{i}.bin", np.uint8) for i in segments]
            ranks = ranks_of(self._columns)
            self._transforms: list[Whitening] = []
            self._dense: list[DenseChannel] = []
            self._sparse: list[SparseChannel] = []
            for view in VIEWS:
                self._load_view(view, ranks)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise IndexStoreError(
                f"{generation.root}: its files do not fit together ({type(error).__name__}: {error}); {_REBUILD}"
            ) from error

    def _load_view(self, view: View, ranks: npt.NDArray[np.uint64]) -> None:
        generation = self._generation
        meta = generation.meta["views"][view]
        self._transforms.append(read_whitening(generation, view))
        path = generation.path(f"{view}/vectors.faiss")
        index = dense.read(path)
        slots = np.asarray(generation.array(f"{view}/slots.npy"))
        if (
            index.d != generation.meta["dimension"]
            or not dense.sound(index)
            or slots.max(initial=-1) >= index.ntotal
        ):
            raise IndexStoreError(f"{path}: does not fit the manifest; {_REBUILD}")
        if hasattr(index, "hnsw"):
            index.hnsw.efSearch = self._options.search_breadth
        self._dense.append(DenseChannel(index, slots, ranks, float(meta["floor"])))
        postings = Postings(
            generation.array(f"{view}/post_pointers.npy"),
            generation.array(f"{view}/post_rows.npy"),
            generation.array(f"{view}/post_weights.npy"),
            int(meta["records"]),
            float(meta["mean_length"]),
        )
        self._sparse.append(
            SparseChannel(postings, self._vocabulary, self._columns.ids, self._parts.tokenizer)
        )

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
        self._need_embedder()
        store = GenerationStore(self._generation.root, KIND, FORMAT)
        with store.writing() as writer:
            current = store.open()
            _check_identities(current, self._parts)
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
            self._load(store.open())
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
        store = GenerationStore(self._generation.root, KIND, FORMAT)
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
            self._load(store.open())

    def sidecar(self, name: str) -> Path:
        """Folder of a sidecar; it does not exist where none was written."""
        return self._generation.folder / "sidecar" / name

    def reload(self) -> bool:
        """Take over the newest state that any writer has published; whether there was a newer one."""
        current = GenerationStore(self._generation.root, KIND, FORMAT).open()
        if current.name == self._generation.name:
            return False
        _check_identities(current, self._parts)
        self._load(current)
        return True

    # -- search ------------------------------------------------------------------------------------

    def encode_query(
        self,
        views: Mapping[View, str] | Mapping[str, str],
        language: str | None = None,
        *,
        vectors: Mapping[View, npt.NDArray[np.float32]] | None = None,
    ) -> EncodedQuery:
        """Turn a query's views into vectors and terms.

        A query is a case and is compared with cases, so it is embedded as a passage.

        Args:
            views: text by view; unknown names are an error, blank texts are absent views.
            language: detected from the text where None.
            vectors: ``[d]`` by view as the embedder gives them, where they are known already.

        Raises:
            IndexStoreError: there is no embedder and ``vectors`` are missing.
            ModelError: the embedder cannot be loaded.
        """
        texts = {
            view: views_text.strip() for view, views_text in _by_view(views).items() if views_text.strip()
        }
        if language is None and texts:
            language = detect_language(texts.get(View.GLOBAL) or max(texts.values(), key=len))
        raw = self._embed(texts) if vectors is None else vectors
        matrix = np.zeros((len(VIEWS), self._generation.meta["dimension"]), np.float32)
        terms = [np.zeros(0, np.int32) for _ in VIEWS]
        weights = np.zeros(len(VIEWS))
        given = [view for view in VIEWS if view in texts]
        words_of = self._parts.tokenizer.tokenize_many([texts[v] for v in given], [language] * len(given))
        for view, words in zip(given, words_of, strict=True):
            i = VIEWS.index(view)
            matrix[i] = self._transforms[i].apply(np.asarray(raw[view])[None, :])[0]
            known = [self._vocabulary[word] for word in words if word in self._vocabulary]
            unknown = Counter(word for word in words if word not in self._vocabulary)
            terms[i] = np.array(known, np.int32)
            weights[i] = self._sparse[i].own_weight(terms[i], list(unknown.values()))
        present = np.array([view in texts for view in VIEWS])
        return EncodedQuery(matrix, tuple(terms), weights, present)

    def _embed(self, texts: Mapping[View, str]) -> dict[View, npt.NDArray[np.float32]]:
        self._need_embedder()
        distinct = list(dict.fromkeys(texts.values()))
        matrix = self._parts.embedder.encode(distinct, "passage")
        return {view: matrix[distinct.index(text)] for view, text in texts.items()}

    def search(
        self,
        encoded: EncodedQuery,
        *,
        candidates: int = 100,
        exclude: frozenset[str] = frozenset(),
        extra_rows: Sequence[int] | Rows | None = None,
    ) -> ChannelScores:
        """Score the union of each channel's best records in all eight channels.

        Args:
            encoded: the query.
            candidates: how many records each channel proposes.
            exclude: ids of records that are no evidence; others move up.
            extra_rows: rows to score as well.
        """
        faiss.omp_set_num_threads(self._threads)
        found = (self._rows.get(record) for record in exclude)
        excluded = np.array([row for row in found if row is not None], np.int64)
        pools = [] if extra_rows is None else [np.setdiff1d(np.asarray(extra_rows, np.int64), excluded)]
        overlaps: dict[int, npt.NDArray[np.float32]] = {}
        views = np.flatnonzero(encoded.present).tolist()
        for i in views:
            if np.any(encoded.vectors[i]):
                pools.append(self._dense[i].nearest(encoded.vectors[i], candidates, excluded))
            if len(encoded.terms[i]) and encoded.own_weights[i] > 0:
                overlaps[i] = self._sparse[i].scores(encoded.terms[i])
                overlaps[i][excluded] = 0
                pools.append(top(overlaps[i], candidates))
        rows = np.unique(np.concatenate(pools)) if pools else np.zeros(0, np.int64)
        scores = np.zeros((len(rows), len(VIEWS), len(Channel)), np.float32)
        for i in views:
            scores[:, i, Channel.DENSE] = self._dense[i].scores(encoded.vectors[i], rows)
            if i in overlaps:
                scores[:, i, Channel.SPARSE] = np.minimum(overlaps[i][rows] / encoded.own_weights[i], 1)
        return ChannelScores(rows.astype(np.int64, copy=False), scores, encoded.present)

    # -- what it holds -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._columns.ids)

    @property
    def version(self) -> str:
        """Depends on the records and on what turned them into numbers, not on how they came in."""
        return str(self._generation.meta["version"])

    @property
    def path(self) -> Path:
        """Folder of the index."""
        return self._generation.root

    @property
    def embedder(self) -> TextEmbedder:
        """The embedder it was opened with.

        Raises:
            IndexStoreError: it was opened without one.
        """
        self._need_embedder()
        return self._parts.embedder

    @property
    def ids(self) -> StringColumn:
        """Record ids by row."""
        return self._columns.ids

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {record: row for row, record in enumerate(self._columns.ids)}

    def row_of(self, record_id: str) -> int | None:
        """Row of a record, None where the index does not hold it."""
        return self._rows.get(record_id)

    @property
    def labels(self) -> npt.NDArray[np.int32]:
        """``[n]`` main diagnosis: number into :attr:`label_names`; -1 for none."""
        return self._columns.labels

    @property
    def label_names(self) -> list[str]:
        """Distinct main diagnoses as written; two may differ only in their code."""
        return [name for name, _ in self._names.labels]

    @property
    def label_codes(self) -> list[str | None]:
        """Code of each of :attr:`label_names`, where its source gave one."""
        return [code for _, code in self._names.labels]

    @property
    def departments(self) -> npt.NDArray[np.int32]:
        """``[n]`` number into :attr:`department_names`; -1 for none."""
        return self._columns.departments

    @property
    def department_names(self) -> list[str]:
        """Distinct departments as written."""
        return list(self._names.departments)

    @property
    def ages(self) -> npt.NDArray[np.float32]:
        """``[n]`` years, NaN where unknown."""
        return self._columns.ages

    @property
    def sexes(self) -> npt.NDArray[np.int32]:
        """``[n]`` number into :attr:`sex_names`; -1 for none."""
        return self._columns.sexes

    @property
    def sex_names(self) -> list[str]:
        """Distinct sexes as written."""
        return list(self._names.sexes)

    def payload(self, row: int) -> CasePayload:
        """What one record says.

        Raises:
            IndexStoreError: the index is damaged.
        """
        segment, start, size = self._columns.places[row].tolist()
        return CasePayload.from_bytes(self._payloads[segment][start : start + size].tobytes())

    def payloads(self, rows: Iterable[int]) -> list[CasePayload]:
        """What some records say, in that order."""
        return [self.payload(int(row)) for row in rows]

    def dense_matrix(self, view: View) -> npt.NDArray[np.float16]:
        """``[n, d]`` whitened unit vectors of a view; a zero row where a record lacks it."""
        channel = self._dense[VIEWS.index(view)]
        return channel.matrix()

    def dense_floor(self, view: View) -> float:
        """Mean cosine of two records in a view, the cosine that scores 0."""
        return self._dense[VIEWS.index(view)].floor

    def sparse_matrix(self, view: View) -> sp.csr_matrix:
        """``[n, vocabulary]`` BM25 weights of a view."""
        postings = self._sparse[VIEWS.index(view)].postings
        shape = (len(self), len(self._vocabulary))
        return sp.csc_matrix((postings.weights, postings.rows, postings.pointers), shape=shape).tocsr()

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """Term ids, the columns of :meth:`sparse_matrix`."""
        return self._vocabulary

    def info(self) -> dict[str, Any]:
        """Counts, identities and sizes, for people and for ``--json``."""
        meta = self._generation.meta
        keys = ("records", "labels", "embedder", "dimension", "tokenizer", "whitening", "texts", "vocabulary")
        return {
            "path": str(self.path),
            "format": FORMAT,
            "version": self.version,
            **{key: meta[key] for key in keys},
            "departments": len(self._names.departments),
            "languages": {
                name: int((self._columns.languages == i).sum())
                for i, name in enumerate(self._names.languages)
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
            "sidecars": sorted({f.split("/")[1] for f in self._generation.files if f.startswith("sidecar/")}),
            "bytes": sum(entry.size for entry in self._generation.files.values()),
        }

    def _need_embedder(self) -> None:
        if self._parts.embedder is None:
            raise IndexStoreError(
                f"{self.path}: opened without an embedder; open it with {self._generation.meta['embedder']}"
            )


def _by_view(views: Mapping[View, str] | Mapping[str, str]) -> dict[View, str]:
    return {View(name): text for name, text in views.items()}


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
    for what, part in (("embedder", parts.embedder), ("tokenizer", parts.tokenizer)):
        built_with = generation.meta[what]
        if part is not None and part.identity != built_with:
            raise IndexStoreError(
                f"{generation.root}: built with {what} {built_with}, but {part.identity} is set; "
                f"set that one, or {_REBUILD}"
            )
