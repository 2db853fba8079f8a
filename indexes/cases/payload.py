"""What a record says, kept once and read only for the records that are shown."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...errors import IndexStoreError
from ...records.schema import Diagnosis, OutpatientRecord, View


@dataclass(frozen=True)
class CasePayload:
    """One record as the index keeps it.

    Attributes:
        id: of the record.
        department: as its source names it.
        date: of the visit.
        age: years.
        sex: as its source codes it.
        language: ``"en"``, ``"zh"`` or ``"ja"``.
        views: text of each view that the record has.
        diagnoses: main one first.
    """

    id: str
    department: str | None
    date: dt.date | None
    age: float | None
    sex: str | None
    language: str
    views: dict[View, str]
    diagnoses: tuple[Diagnosis, ...]

    @property
    def text(self) -> str:
        """The evidence: the whole without the diagnosis, or else the views one after the other."""
        return self.views.get(View.GLOBAL) or "\n".join(self.views.values())

    @classmethod
    def of(cls, record: OutpatientRecord, views: dict[View, str], language: str) -> CasePayload:
        """What the index keeps of a record; never its identifiers or patient id."""
        return cls(
            record.id,
            record.department,
            record.date,
            record.age,
            record.sex,
            language,
            views,
            tuple(record.diagnoses),
        )

    def to_bytes(self) -> bytes:
        """Compact JSON; equal payloads give equal bytes."""
        data = {
            "id": self.id,
            "department": self.department,
            "date": self.date.isoformat() if self.date else None,
            "age": self.age,
            "sex": self.sex,
            "language": self.language,
            "views": {view.value: self.views[view] for view in View if view in self.views},
            "diagnoses": [[d.name, d.code] for d in self.diagnoses],
        }
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, content: bytes) -> CasePayload:
        """Inverse of :meth:`to_bytes`.

        Raises:
            IndexStoreError: not a payload.
        """
        try:
            data: dict[str, Any] = json.loads(content.decode("utf-8", "surrogatepass"))
            return cls(
                id=data["id"],
                department=data["department"],
                date=dt.date.fromisoformat(data["date"]) if data["date"] else None,
                age=data["age"],
                sex=data["sex"],
                language=data["language"],
                views={View(name): text for name, text in data["views"].items()},
                diagnoses=tuple(Diagnosis(name=name, code=code) for name, code in data["diagnoses"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise IndexStoreError(
                "the case index holds an unreadable record; rebuild it with `wardround cases build`"
            ) from error


class StringColumn(Sequence[str]):
    """Strings in one block of bytes, decoded when asked for."""

    def __init__(self, block: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> None:
        self._block = block
        self._ends = ends

    @classmethod
    def of(cls, values: Sequence[str]) -> StringColumn:
        """Encode strings."""
        encoded = [value.encode("utf-8", "surrogatepass") for value in values]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The bytes, and where each string ends."""
        return self._block, self._ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: int | slice) -> str | list[str]:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        if key < 0:
            key += len(self)
        if not 0 <= key < len(self):
            msg = "row out of range"
            raise IndexError(msg)
        start = int(self._ends[key - 1]) if key else 0
        return self._block[start : int(self._ends[key])].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        whole = self._block.tobytes()
        start = 0
        for end in self._ends.tolist():
            yield whole[start:end].decode("utf-8", "surrogatepass")
            start = end
