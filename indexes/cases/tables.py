"""The case index as arrays: what a generation holds, read from and written to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...models.cache import HalfMatrix
from ...records.schema import VIEWS, View
from ..generation import Generation, GenerationWriter
from .payload import StringColumn
from .sparse import TermCounts

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint8]

KEY_BYTES = 16


@dataclass
class Names:
    """Distinct strings that columns refer to by number; -1 in a column means none.

    Attributes:
        departments: as written.
        labels: main diagnosis and its code, as written.
        sexes: as written.
        languages: served languages.
    """

    departments: list[str] = field(default_factory=list)
    labels: list[tuple[str, str | None]] = field(default_factory=list)
    sexes: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For the generation's ``names.json``."""
        return {
            "departments": self.departments,
            "labels": [list(label) for label in self.labels],
            "sexes": self.sexes,
            "languages": self.languages,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Names:
        """Inverse of :meth:`to_json`."""
        labels = [(str(name), code) for name, code in data["labels"]]
        return cls(list(data["departments"]), labels, list(data["sexes"]), list(data["languages"]))


@dataclass
class Columns:
    """One entry per record.

    Attributes:
        ids: record ids.
        departments: into ``Names.departments``.
        labels: into ``Names.labels``.
        sexes: into ``Names.sexes``.
        languages: into ``Names.languages``.
        ages: years, NaN where unknown.
        digests: ``[n, 16]``, hash of the payload.
        places: ``[n, 3]``: payload segment, first byte, length.
    """

    ids: StringColumn
    departments: Ints
    labels: Ints
    sexes: Ints
    languages: Ints
    ages: npt.NDArray[np.float32]
    digests: Keys
    places: Longs

    _ARRAYS = ("departments", "labels", "sexes", "languages", "ages", "digests", "places")

    def take(self, rows: Longs) -> Columns:
        """Some of the records."""
        ids = StringColumn.of([self.ids[int(row)] for row in rows])
        return Columns(ids, *(getattr(self, name)[rows] for name in self._ARRAYS))

    def then(self, other: Columns) -> Columns:
        """These records followed by others."""
        ids = StringColumn.of([*self.ids, *other.ids])
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in self._ARRAYS)
        return Columns(ids, *both)

    def write(self, writer: GenerationWriter) -> None:
        """Into a generation."""
        block, ends = self.ids.arrays
        writer.array("columns/ids.npy", block)
        writer.array("columns/id_ends.npy", ends)
        for name in self._ARRAYS:
            writer.array(f"columns/{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, generation: Generation) -> Columns:
        """From a generation, memory-mapped."""
        ids = StringColumn(generation.array("columns/ids.npy"), generation.array("columns/id_ends.npy"))
        return cls(ids, *(generation.array(f"columns/{name}.npy") for name in cls._ARRAYS))


@dataclass
class TextTable:
    """Distinct texts of all views: hashes and vectors as the embedder gave them.

    Attributes:
        keys: ``[t, 16]`` content hashes.
        segments: half-precision vectors, ``[t, d]`` in all.
    """

    keys: Keys
    segments: list[HalfMatrix]

    def vectors(self, texts: Ints) -> HalfMatrix:
        """Vectors of some texts."""
        if len(self.segments) == 1:
            return self.segments[0][texts]
        out = np.zeros((len(texts), self.segments[0].shape[1] if self.segments else 0), np.float16)
        first = 0
        for segment in self.segments:
            inside = (texts >= first) & (texts < first + len(segment))
            out[inside] = segment[texts[inside] - first]
            first += len(segment)
        return out

    @classmethod
    def read(cls, generation: Generation) -> TextTable:
        """From a generation, memory-mapped."""
        dimension = int(generation.meta["dimension"])
        names = [f"texts/vectors.{i}.f16" for i in range(generation.meta["text_segments"])]
        return cls(
            generation.array("texts/keys.npy"),
            [generation.raw(name, np.float16, dimension) for name in names],
        )


@dataclass
class ViewTable:
    """One view of every record.

    Attributes:
        slots: ``[n]`` slot of each record, -1 where it lacks the view.
        texts: ``[u]`` text of each slot.
        counts: terms of each record.
    """

    slots: Ints
    texts: Ints
    counts: TermCounts

    def write(self, writer: GenerationWriter, view: View) -> None:
        """Into a generation."""
        writer.array(f"{view}/slots.npy", self.slots)
        writer.array(f"{view}/texts.npy", self.texts)
        writer.array(f"{view}/count_pointers.npy", self.counts.pointers)
        writer.array(f"{view}/count_terms.npy", self.counts.terms)
        writer.array(f"{view}/count_values.npy", self.counts.counts)

    @classmethod
    def read(cls, generation: Generation, view: View) -> ViewTable:
        """From a generation, memory-mapped."""
        counts = TermCounts(
            generation.array(f"{view}/count_pointers.npy"),
            generation.array(f"{view}/count_terms.npy"),
            generation.array(f"{view}/count_values.npy"),
        )
        return cls(generation.array(f"{view}/slots.npy"), generation.array(f"{view}/texts.npy"), counts)


@dataclass
class Tables:
    """Everything that cannot be computed from the rest.

    Attributes:
        names: strings behind the columns.
        columns: one entry per record.
        texts: distinct texts.
        views: in the order of ``VIEWS``.
        vocabulary: term to id, for all views.
        payloads: memory-mapped segments.
    """

    names: Names
    columns: Columns
    texts: TextTable
    views: dict[View, ViewTable]
    vocabulary: dict[str, int]
    payloads: list[npt.NDArray[np.uint8]]

    @classmethod
    def read(cls, generation: Generation) -> Tables:
        """From a generation.

        Raises:
            IndexStoreError: a file is missing or damaged.
        """
        payloads = [f"payload.{i}.bin" for i in range(generation.meta["payload_segments"])]
        return cls(
            Names.from_json(generation.json("names.json")),
            Columns.read(generation),
            TextTable.read(generation),
            {view: ViewTable.read(generation, view) for view in VIEWS},
            {term: i for i, term in enumerate(generation.json("vocabulary.json"))},
            [generation.raw(name, np.uint8) for name in payloads],
        )
