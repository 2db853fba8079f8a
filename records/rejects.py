"""What could not be read, and why: a log beside the build, without any patient text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pydantic import BaseModel, ConfigDict

from ..errors import InputError

EARLY_CHECK_ROWS = 1_000
_MAX_ID_CHARS = 120


class Reject(BaseModel):
    """One row that was not taken.

    Attributes:
        file: its name as given.
        line: where the row begins, from 1; None where the format has no lines.
        id: of the record, if it could be read.
        reason: what was wrong. Names fields and positions, never their content.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    line: int | None
    id: str | None
    reason: str


class RejectLog:
    """Counts accepted and rejected rows and writes each rejected one as a JSON line.

    The file is created with the first rejected row. Use as a context manager, or call :meth:`close`.

    Attributes:
        path: of the rejects file; nothing is written where None.
        accepted: rows that became records.
        rejected: rows that did not.
        parts_accepted: good rows that belong to a record without being one, such as a coded diagnosis.
        parts_rejected: bad ones of that kind.
        skipped: parts of the source that are no record by nature, such as a visit without a note.
        cut_fields: fields that were longer than ``records.max_field_chars`` and were cut.
        cleaned_fields: fields that held NUL or other control characters, which were removed.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self.accepted = 0
        self.rejected = 0
        self.parts_accepted = 0
        self.parts_rejected = 0
        self.skipped = 0
        self.cut_fields = 0
        self.cleaned_fields = 0
        self._reasons: Counter[str] = Counter()
        self._first: Reject | None = None
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def rows(self) -> int:
        """Accepted and rejected together."""
        return self.accepted + self.rejected

    @property
    def share(self) -> float:
        """Rejected rows among all, 0..1; 0 where there are none."""
        return self.rejected / self.rows if self.rows else 0.0

    @property
    def parts_share(self) -> float:
        """Rejected parts among all parts, 0..1; 0 where there are none."""
        parts = self.parts_accepted + self.parts_rejected
        return self.parts_rejected / parts if parts else 0.0

    @property
    def reasons(self) -> Mapping[str, int]:
        """Rejected and skipped rows by reason, commonest first."""
        return dict(self._reasons.most_common())

    @property
    def first(self) -> Reject | None:
        """The first rejected row."""
        return self._first

    def accept(self, rows: int = 1) -> None:
        """Count rows that became records."""
        self.accepted += rows

    def accept_parts(self, rows: int) -> None:
        """Count good rows that belong to a record without being one."""
        self.parts_accepted += rows

    def reject(
        self,
        file: str | Path,
        reason: str,
        *,
        line: int | None = None,
        record_id: str | None = None,
        part: bool = False,
    ) -> None:
        """Log a row that cannot be used.

        Args:
            file: as the user named it.
            reason: what is wrong, without the row's content.
            line: where the row begins, from 1.
            record_id: if it could be read.
            part: the row belongs to a record without being one.

        Raises:
            InputError: the rejects file cannot be written.
        """
        entry = self._log(file, reason, line, record_id)
        if part:
            self.parts_rejected += 1
        else:
            self.rejected += 1
        self._first = self._first or entry

    def skip(
        self, file: str | Path, reason: str, *, line: int | None = None, record_id: str | None = None
    ) -> None:
        """Log what is no record by nature; it does not count towards :attr:`share`."""
        self._log(file, reason, line, record_id)
        self.skipped += 1

    def check(self, max_share: float) -> None:
        """Stop where too much was rejected.

        Args:
            max_share: 0..1, normally ``records.max_reject_share``.

        Raises:
            InputError: the share of rejected rows, or of rejected parts, is above ``max_share``.
        """
        if self.share > max_share:
            self._stop(self.rejected, self.rows, max_share)
        if self.parts_share > max_share:
            self._stop(self.parts_rejected, self.parts_accepted + self.parts_rejected, max_share)

    def check_early(self, max_share: float) -> None:
        """As :meth:`check`, once a thousand rows were seen, so that a wrong file stops soon."""
        if self.rows >= EARLY_CHECK_ROWS and self.share > max_share:
            self._stop(self.rejected, self.rows, max_share)
        parts = self.parts_accepted + self.parts_rejected
        if parts >= EARLY_CHECK_ROWS and self.parts_share > max_share:
            self._stop(self.parts_rejected, parts, max_share)

    def _stop(self, bad: int, rows: int, max_share: float) -> None:
        first = self._first
        if first is None:
            return
        reason, count = self._reasons.most_common(1)[0]
        where = f", line {first.line}" if first.line is not None else ""
        see = f"; all are listed in {self.path}" if self.path else ""
        msg = (
            f"{first.file}: {bad} of {rows} rows ({bad / rows:.1%}) cannot be used, "
            f"more than records.max_reject_share = {max_share:.1%} allows. "
            f"Commonest reason ({count}×): {reason}. First one{where}: {first.reason}{see}. "
            "Correct the file or raise records.max_reject_share"
        )
        raise InputError(msg)

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _log(self, file: str | Path, reason: str, line: int | None, record_id: str | None) -> Reject:
        shown = record_id[:_MAX_ID_CHARS] if record_id else None
        entry = Reject(file=str(file), line=line, id=shown, reason=reason)
        self._reasons[reason] += 1
        if self.path is None:
            return entry
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("w", encoding="utf-8", errors="replace")
            self._file.write(json.dumps(entry.model_dump(), ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            msg = f"{self.path}: the rejects file cannot be written ({error.strerror}); choose another place"
            raise InputError(msg) from error
        return entry
