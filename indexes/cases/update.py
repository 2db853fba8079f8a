"""From one generation to the next: add and remove records, then recompute what depends on all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...models.cache import HalfMatrix
from ...records.schema import VIEWS, OutpatientRecord, View
from ..generation import Generation, GenerationWriter
from . import dense
from .compact import REFIT_SHARE, forget_words, write_payloads, write_texts
from .dense import AnnOptions
from .ingest import Ingest, Ingested, Parts, Report, Tick
from .sparse import weigh
from .tables import KEY_BYTES, Columns, Ints, Names, Tables, TextTable, ViewTable
from .whitening import FIT_ROWS, Whitening

Meta = dict[str, Any]


@dataclass
class Change:
    """What is to happen to an index.

    Attributes:
        records: to add.
        remove: ids to remove.
        replace: whether a record whose id is known takes the old one's place; else it is an error.
    """

    records: Iterable[OutpatientRecord] = ()
    remove: Collection[str] = ()
    replace: bool = False


def write_next(
    old: Tables | None,
    generation: Generation | None,
    change: Change,
    writer: GenerationWriter,
    parts: Parts,
    *,
    whitening: float,
    options: AnnOptions,
    tick: Tick | None = None,
) -> tuple[Meta, Report]:
    """Write every file of the next generation.

    Args:
        old: of the current generation; None for a new index.
        generation: the current one.
        change: what to add and remove.
        writer: collects the files.
        parts: embedder and so on.
        whitening: exponent.
        options: of the dense channels.
        tick: called with the number of records read.

    Raises:
        InputError: a record to add is there already.
    """
    report = Report()
    embedder = parts.required()
    names = old.names if old else Names()
    segments = len(old.texts.segments) if old else 0
    payload_segments = len(old.payloads) if old else 0
    ingest = Ingest(
        parts,
        names,
        old.vocabulary if old else {},
        old.texts if old else None,
        {view: old.views[view].texts.tolist() if old else [] for view in VIEWS},
    )
    new_vectors = f"texts/vectors.{segments}.f16"
    new = ingest.run(
        change.records,
        writer,
        payload_name=f"payload.{payload_segments}.bin",
        vectors_name=new_vectors,
        report=report,
        tick=tick,
    )
    new.columns.places[:, 0] = payload_segments
    tables = _join(old, new, change, report)
    payload_segments = write_payloads(tables, payload_segments, generation, writer)
    tables.vocabulary = ingest.vocabulary
    forget_words(tables)
    dimension = embedder.dimension
    tables.texts.segments.append(_vectors_in(writer.folder / new_vectors, dimension))
    write_texts(tables, segments, generation, writer)
    tables.columns.write(writer)
    writer.json("names.json", names.to_json())
    writer.json("vocabulary.json", list(tables.vocabulary))
    meta: Meta = {
        "records": len(tables.columns.ids),
        "dimension": dimension,
        "embedder": embedder.identity,
        "tokenizer": parts.tokenizer.identity,
        "whitening": whitening,
        "text_segments": len(tables.texts.segments),
        "texts": len(tables.texts.keys),
        "payload_segments": payload_segments,
        "vocabulary": len(tables.vocabulary),
        "labels": len(names.labels),
        "views": {},
    }
    for view in VIEWS:
        before = generation.meta["views"][view] if generation else None
        meta["views"][view.value] = _write_view(
            view, tables, before, generation, writer, whitening=whitening, options=options
        )
    meta["version"] = content_version(tables.columns, meta)
    if generation is not None:
        for name in generation.files:
            if name.startswith("sidecar/"):
                writer.link(generation, name)
    report.records = meta["records"]
    return meta, report


def _vectors_in(path: Path, dimension: int) -> HalfMatrix:
    if path.stat().st_size == 0:
        return np.zeros((0, dimension), np.float16)
    return np.memmap(path, np.float16, "r").reshape(-1, dimension)


def content_version(columns: Columns, meta: Meta) -> str:
    """A hash of the records, whatever their order, and of what turned them into numbers."""
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for part in ("embedder", "tokenizer", "whitening"):
        digest.update(f"{part}={meta[part]}\n".encode())
    digest.update(b"".join(sorted(bytes(row) for row in columns.digests)))
    return digest.hexdigest()


def _join(old: Tables | None, new: Ingested, change: Change, report: Report) -> Tables:
    incoming = set(new.columns.ids)
    if old is None:
        report.added = len(incoming)
        report.unknown = sorted(set(change.remove))
        return Tables(Names(), new.columns, TextTable(new.keys, []), new.views, {}, [])
    known = {record: row for row, record in enumerate(old.columns.ids)}
    clash = incoming & known.keys()
    if clash and not change.replace:
        raise InputError(
            f"record {min(clash)!r} is in the index already ({len(clash)} such ids); "
            "replace it, or delete it first"
        )
    remove = set(change.remove)
    report.unknown = sorted(remove - known.keys())
    report.replaced = len(clash)
    report.added = len(incoming) - len(clash)
    report.deleted = len((remove & known.keys()) - incoming)
    gone = np.array([known[i] for i in (remove & known.keys()) | clash], np.int64)
    keep = np.setdiff1d(np.arange(len(known), dtype=np.int64), gone)
    views = {}
    for view in VIEWS:
        before, after = old.views[view], new.views[view]
        counts = before.counts.take(keep) if len(gone) else before.counts
        slots = np.concatenate([before.slots[keep], after.slots])
        views[view] = ViewTable(slots, after.texts, counts.then(after.counts))
    texts = TextTable(np.concatenate([old.texts.keys, new.keys]), list(old.texts.segments))
    return Tables(old.names, old.columns.take(keep).then(new.columns), texts, views, {}, old.payloads)


def _write_view(
    view: View,
    tables: Tables,
    before: Meta | None,
    generation: Generation | None,
    writer: GenerationWriter,
    *,
    whitening: float,
    options: AnnOptions,
) -> Meta:
    table = tables.views[view]
    postings = weigh(table.counts, len(tables.vocabulary))
    writer.array(f"{view}/post_pointers.npy", postings.pointers)
    writer.array(f"{view}/post_rows.npy", postings.rows)
    writer.array(f"{view}/post_weights.npy", postings.weights)
    per_slot = np.bincount(table.slots[table.slots >= 0], minlength=len(table.texts))
    live = int((per_slot > 0).sum())
    graph = live > options.flat_limit
    meta: Meta = {
        "records": postings.documents,
        "mean_length": postings.mean_length,
        "texts": live,
        "graph": graph,
    }
    index, transform, fitted = None, Whitening(), live
    if graph and before and before["graph"] and generation is not None:
        changed = len(table.texts) - before["slots"] + before["changed"] + len(table.texts) - live
        if changed <= REFIT_SHARE * before["fitted"]:
            index = dense.read(generation.path(f"{view}/vectors.faiss"), writable=True)
            transform = read_whitening(generation, view)
            fitted = before["fitted"]
            meta["changed"] = len(table.texts) - before["slots"] + before["changed"]
    if index is None:
        meta["changed"] = 0
        _compact(table, per_slot)
        transform = Whitening.fit(tables.texts.vectors(_sample(table, tables.texts)), whitening)
        index = dense.new_index(tables.texts.segments[-1].shape[1], graph=graph, options=options)
    dense.fill(index, _transformed(tables, table.texts[index.ntotal :], transform), options)
    meta |= {
        "slots": len(table.texts),
        "fitted": fitted,
        "floor": dense.mean_cosine(index, table.slots),
        "whitened": transform.matrix is not None,
    }
    dense.write(index, writer.place(f"{view}/vectors.faiss"))
    writer.seal(f"{view}/vectors.faiss")
    if transform.mean is not None and transform.matrix is not None:
        writer.array(f"{view}/mean.npy", transform.mean)
        writer.array(f"{view}/matrix.npy", transform.matrix)
    table.write(writer, view)
    return meta


def read_whitening(generation: Generation, view: View) -> Whitening:
    """The transform of one view."""
    if not generation.meta["views"][view]["whitened"]:
        return Whitening()
    return Whitening(
        np.asarray(generation.array(f"{view}/mean.npy")), np.asarray(generation.array(f"{view}/matrix.npy"))
    )


def _compact(table: ViewTable, per_slot: npt.NDArray[np.int64]) -> None:
    """Forget slots that no record uses."""
    live = np.flatnonzero(per_slot > 0)
    if len(live) == len(table.texts):
        return
    number = np.full(len(table.texts) + 1, -1, np.int32)  # slot -1 reads the last entry
    number[live] = np.arange(len(live), dtype=np.int32)
    table.slots = number[table.slots]
    table.texts = table.texts[live]


def _sample(table: ViewTable, texts: TextTable) -> Ints:
    """Up to 20,000 texts, the same ones in whatever order they came."""
    if len(table.texts) <= FIT_ROWS:
        return table.texts
    first = np.ascontiguousarray(texts.keys[table.texts, :8]).view(np.uint64).ravel()
    return table.texts[np.argpartition(first, FIT_ROWS)[:FIT_ROWS]]


def _transformed(tables: Tables, texts: Ints, transform: Whitening) -> Iterator[npt.NDArray[np.float32]]:
    for start in range(0, len(texts), dense.CHUNK):
        yield transform.apply(tables.texts.vectors(texts[start : start + dense.CHUNK]))


def ranks_of(columns: Columns) -> npt.NDArray[np.uint64]:
    """A fixed order of records that does not depend on when they came."""
    return np.ascontiguousarray(columns.digests[:, :8]).view(np.uint64).ravel()
