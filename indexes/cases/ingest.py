"""From records to arrays: views, words, vectors and payloads, a batch at a time."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ...errors import IndexStoreError
from ...language.detect import detect_language
from ...language.tokenizers import Tokenizer
from ...models.base import TextEmbedder
from ...models.cache import EmbeddingCache, HalfMatrix, content_key, embed_half
from ...records.schema import VIEWS, OutpatientRecord, View
from ..generation import GenerationWriter
from .payload import CasePayload, StringColumn
from .sparse import TermCounts
from .tables import KEY_BYTES, Columns, Names, TextTable, ViewTable

ViewsOf = Callable[[OutpatientRecord], dict[View, str]]
Tick = Callable[[int], None]

_RECORDS_A_BATCH = 256
_SERVED = ("en", "zh", "ja")


@dataclass
class Report:
    """What came of the records that were given.

    Attributes:
        records: how many the index holds now.
        added: new ids.
        replaced: ids whose record was exchanged.
        deleted: ids that are gone.
        duplicates: ids given more than once; the last record stands.
        without_text: ids of records that say nothing but their diagnosis; they are left out.
        unknown: ids to delete that the index does not hold.
        texts: distinct texts that were new.
    """

    records: int = 0
    added: int = 0
    replaced: int = 0
    deleted: int = 0
    duplicates: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    texts: int = 0


@dataclass
class Parts:
    """What turns records into arrays.

    Attributes:
        embedder: of texts; None where nothing is to be encoded.
        tokenizer: of texts.
        views_of: splits a record.
        cache: of vectors; None embeds every new text.
        batch_size: texts a call of the embedder.
    """

    embedder: TextEmbedder | None
    tokenizer: Tokenizer
    views_of: ViewsOf
    cache: EmbeddingCache | None = None
    batch_size: int = 64

    def required(self) -> TextEmbedder:
        """The embedder.

        Raises:
            IndexStoreError: there is none.
        """
        if self.embedder is None:
            raise IndexStoreError(
                "the case index was opened without an embedder; open it with the one it names"
            )
        return self.embedder

    def embed(self, texts: list[str]) -> HalfMatrix:
        """Vectors of texts."""
        embedder = self.required()
        if self.cache is not None:
            return self.cache.encode(embedder, texts, batch_size=self.batch_size)
        out = np.zeros((len(texts), embedder.dimension), np.float16)
        for start in range(0, len(texts), self.batch_size):
            part = texts[start : start + self.batch_size]
            out[start : start + len(part)] = embed_half(embedder, part)
        return out


class _ViewRows:
    """New rows of one view."""

    def __init__(self, texts: list[int]) -> None:
        self.slot_of_text = {text: slot for slot, text in enumerate(texts)}
        self.texts = array("i", texts)
        self.slots = array("i")
        self.lengths = array("q")
        self.terms = array("i")

    def add(self, text: int, terms: list[int]) -> None:
        slot = self.slot_of_text.get(text)
        if slot is None:
            slot = self.slot_of_text[text] = len(self.texts)
            self.texts.append(text)
        self.slots.append(slot)
        self.lengths.append(len(terms))
        self.terms.extend(terms)

    def skip(self) -> None:
        self.slots.append(-1)
        self.lengths.append(0)

    def table(self) -> ViewTable:
        counts = TermCounts.of(np.array(self.lengths, np.int64), np.array(self.terms, np.int32))
        return ViewTable(np.array(self.slots, np.int32), np.array(self.texts, np.int32), counts)


@dataclass
class Ingested:
    """New records as arrays; text ids and slots go on from those that were known.

    Attributes:
        columns: one entry per record.
        views: of each record, with the slots known before in front.
        keys: hashes of the new texts.
    """

    columns: Columns
    views: dict[View, ViewTable]
    keys: np.ndarray[Any, np.dtype[np.uint8]]


class Ingest:
    """Reads records once and writes payloads and vectors as it goes.

    Args:
        parts: embedder and so on.
        names: extended in place.
        vocabulary: extended in place.
        texts: known texts.
        view_texts: text of each known slot of each view.
    """

    def __init__(
        self,
        parts: Parts,
        names: Names,
        vocabulary: dict[str, int],
        texts: TextTable | None,
        view_texts: dict[View, list[int]],
    ) -> None:
        self._parts = parts
        self._names = names
        self._vocabulary: defaultdict[str, int] = defaultdict(None, vocabulary)
        self._vocabulary.default_factory = self._vocabulary.__len__
        self._known = {} if texts is None else {bytes(key): i for i, key in enumerate(texts.keys)}
        self._first_new = len(self._known)
        self._views = {view: _ViewRows(view_texts[view]) for view in VIEWS}
        self._numbers: dict[str, dict[Any, int]] = {
            "departments": {name: i for i, name in enumerate(names.departments)},
            "labels": {label: i for i, label in enumerate(names.labels)},
            "sexes": {name: i for i, name in enumerate(names.sexes)},
            "languages": {name: i for i, name in enumerate(names.languages)},
        }
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self._last: dict[str, int] = {}
        self._written = 0

    @property
    def vocabulary(self) -> dict[str, int]:
        """All terms so far."""
        return dict(self._vocabulary)

    def run(
        self,
        records: Iterable[OutpatientRecord],
        writer: GenerationWriter,
        *,
        payload_name: str,
        vectors_name: str,
        report: Report,
        tick: Tick | None = None,
    ) -> Ingested:
        """Read all records; the two named files are written and sealed."""
        with ExitStack() as stack:
            payloads = stack.enter_context(writer.place(payload_name).open("wb"))
            vectors = stack.enter_context(writer.place(vectors_name).open("wb"))
            stream = iter(records)
            while batch := list(islice(stream, _RECORDS_A_BATCH)):
                fresh = self._batch(batch, payloads.write, report)
                if fresh:
                    vectors.write(self._parts.embed(fresh).tobytes())
                if tick is not None:
                    tick(len(batch))
        writer.seal(payload_name)
        writer.seal(vectors_name)
        report.texts = len(self._known) - self._first_new
        return self._finish()

    def _batch(
        self, batch: Iterable[OutpatientRecord], write: Callable[[bytes], object], report: Report
    ) -> list[str]:
        fresh: list[str] = []
        payloads: list[CasePayload] = []
        for record in batch:
            views = {v: t.strip() for v, t in self._parts.views_of(record).items() if t.strip()}
            if not views:
                report.without_text.append(record.id)
                continue
            language = record.language
            if language not in _SERVED:
                language = detect_language(views.get(View.GLOBAL) or next(iter(views.values())))
            payloads.append(CasePayload.of(record, views, language))
        texts = [payload.views[view] for payload in payloads for view in VIEWS if view in payload.views]
        languages: list[str | None] = [p.language for p in payloads for view in VIEWS if view in p.views]
        words = iter(self._parts.tokenizer.tokenize_many(texts, languages))
        for payload in payloads:
            self._record(payload, write, report)
            for view in VIEWS:
                text = payload.views.get(view)
                if text is None:
                    self._views[view].skip()
                    continue
                key = content_key(text)
                number = self._known.get(key)
                if number is None:
                    number = self._known[key] = len(self._known)
                    fresh.append(text)
                self._views[view].add(number, list(map(self._vocabulary.__getitem__, next(words))))
        return fresh

    def _record(self, payload: CasePayload, write: Callable[[bytes], object], report: Report) -> None:
        if payload.id in self._last:
            report.duplicates.append(payload.id)
        columns = self._columns
        self._last[payload.id] = len(columns["ids"])
        content = payload.to_bytes()
        write(content)
        main = payload.diagnoses[0] if payload.diagnoses else None
        columns["ids"].append(payload.id)
        columns["departments"].append(self._number("departments", payload.department))
        columns["labels"].append(self._number("labels", (main.name, main.code) if main else None))
        columns["sexes"].append(self._number("sexes", payload.sex))
        columns["languages"].append(self._number("languages", payload.language))
        columns["ages"].append(np.nan if payload.age is None else payload.age)
        columns["digests"].append(hashlib.blake2b(content, digest_size=KEY_BYTES).digest())
        columns["places"].append((self._written, len(content)))
        self._written += len(content)

    def _number(self, column: str, value: Any) -> int:
        if value is None:
            return -1
        numbers = self._numbers[column]
        if value not in numbers:
            numbers[value] = len(numbers)
            getattr(self._names, column).append(value)
        return numbers[value]

    def _finish(self) -> Ingested:
        columns = self._columns
        count = len(columns["ids"])
        places = np.zeros((count, 3), np.int64)
        if count:
            places[:, 1:] = columns["places"]
        table = Columns(
            ids=StringColumn.of(columns["ids"]),
            departments=np.array(columns["departments"], np.int32),
            labels=np.array(columns["labels"], np.int32),
            sexes=np.array(columns["sexes"], np.int32),
            languages=np.array(columns["languages"], np.int32),
            ages=np.array(columns["ages"], np.float32),
            digests=_as_keys(columns["digests"]),
            places=places,
        )
        views = {view: rows.table() for view, rows in self._views.items()}
        last = np.array(sorted(self._last.values()), np.int64)
        if len(last) < count:
            table = table.take(last)
            views = {
                view: ViewTable(rows.slots[last], rows.texts, rows.counts.take(last))
                for view, rows in views.items()
            }
        fresh = list(islice(self._known, self._first_new, None))
        return Ingested(table, views, _as_keys(fresh))


def _as_keys(keys: list[bytes]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
