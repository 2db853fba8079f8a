"""What learning needs of a case index; the index itself lives a floor above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..records.schema import Diagnosis, View

Rows = npt.NDArray[np.int64]


class Encoded(Protocol):
    """A query as the index compares it: vectors ``[4, d]``, term ids by view, and which views it has."""

    @property
    def vectors(self) -> npt.NDArray[np.float32]: ...  # noqa: D102

    @property
    def terms(self) -> tuple[npt.NDArray[np.int32], ...]: ...  # noqa: D102

    @property
    def present(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102


class Found(Protocol):
    """Candidates of a search: rows ``[n]`` and channel scores ``[n, 4, 2]``."""

    @property
    def rows(self) -> Rows: ...  # noqa: D102

    @property
    def scores(self) -> npt.NDArray[np.float32]: ...  # noqa: D102

    @property
    def present(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102


class Payload(Protocol):
    """What one record says."""

    @property
    def views(self) -> dict[View, str]: ...  # noqa: D102

    @property
    def text(self) -> str: ...  # noqa: D102

    @property
    def language(self) -> str: ...  # noqa: D102

    @property
    def department(self) -> str | None: ...  # noqa: D102

    @property
    def age(self) -> float | None: ...  # noqa: D102

    @property
    def sex(self) -> str | None: ...  # noqa: D102

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]: ...  # noqa: D102


class CaseSource(Protocol):
    """An open case index, as far as learning reads it."""

    def __len__(self) -> int: ...

    @property
    def version(self) -> str: ...  # noqa: D102

    @property
    def ids(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def labels(self) -> npt.NDArray[np.int32]: ...  # noqa: D102

    @property
    def label_names(self) -> list[str]: ...  # noqa: D102

    @property
    def label_codes(self) -> list[str | None]: ...  # noqa: D102

    @property
    def departments(self) -> npt.NDArray[np.int32]: ...  # noqa: D102

    @property
    def department_names(self) -> list[str]: ...  # noqa: D102

    @property
    def ages(self) -> npt.NDArray[np.float32]: ...  # noqa: D102

    @property
    def sexes(self) -> npt.NDArray[np.int32]: ...  # noqa: D102

    @property
    def sex_names(self) -> list[str]: ...  # noqa: D102

    @property
    def vocabulary(self) -> Mapping[str, int]: ...  # noqa: D102

    def payload(self, row: int) -> Payload: ...  # noqa: D102

    def sidecar(self, name: str) -> Path: ...  # noqa: D102

    def dense_matrix(self, view: View) -> npt.NDArray[Any]: ...  # noqa: D102

    def sparse_matrix(self, view: View) -> sp.csr_matrix: ...  # noqa: D102

    def encode_query(  # noqa: D102
        self,
        views: Mapping[View, str],
        language: str | None = None,
        *,
        vectors: Mapping[View, Any] | None = None,
    ) -> Any: ...

    def search(  # noqa: D102
        self,
        encoded: Any,
        *,
        candidates: int = 100,
        exclude: frozenset[str] = frozenset(),
        extra_rows: Sequence[int] | Rows | None = None,
    ) -> Found: ...


class WritableCaseSource(CaseSource, Protocol):
    """A case index that keeps what is learned beside itself."""

    def write_sidecar(self, name: str, files: Mapping[str, bytes | npt.NDArray[Any]]) -> None: ...  # noqa: D102
