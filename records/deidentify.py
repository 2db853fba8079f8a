"""De-identification: declared by the hospital, or scrubbed as far as patterns and fields reach."""

from __future__ import annotations

import datetime as dt
import hmac
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field

from ..errors import PrivacyError
from ..settings import PrivacySettings
from .dates import to_ascii_width
from .deid_dates import DateContext, date_spans, is_day_first, move
from .deid_names import MIN_ID_CHARS, Span, known_spans
from .deid_tables import deid_tables, passes
from .schema import Diagnosis, OutpatientRecord

MAX_SHIFT_DAYS = 365
OLDEST_AGE = 90
_REFERENCE_YEAR = 2023

NO_GUARANTEE = (
    "Scrubbing finds what patterns and the record's own fields can find. It is no guarantee: names, places "
    "and events that are written in other ways stay in the text."
)


class ScrubReport(BaseModel):
    """What was removed or moved, by kind.

    Attributes:
        records: how many were scrubbed.
        counts: kind -> places in the texts and fields.
        warning: that this is no guarantee.
    """

    model_config = ConfigDict(validate_assignment=True)

    records: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    warning: str = NO_GUARANTEE

    @property
    def total(self) -> int:
        """All places."""
        return sum(self.counts.values())

    def add(self, other: ScrubReport) -> None:
        """Take another report's figures into this one."""
        self.records += other.records
        self.counts = dict(Counter(self.counts) + Counter(other.counts))

    def __str__(self) -> str:
        found = (
            ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in sorted(self.counts.items())) or "nothing"
        )
        return f"Scrubbed {self.records} records: {found}. {self.warning}"


def require_deidentified(privacy: PrivacySettings) -> None:
    """Stop where other patients' text would be shown without anyone having de-identified it.

    Raises:
        PrivacyError: neither ``privacy.deidentified`` nor ``privacy.scrub`` is on.
    """
    if not (privacy.deidentified or privacy.scrub):
        msg = (
            "A case index shows other patients' text. Give --deidentified (or set privacy.deidentified = "
            "true, WARDROUND_PRIVACY__DEIDENTIFIED=true) if these records are de-identified already, or "
            "--scrub (privacy.scrub = true, WARDROUND_PRIVACY__SCRUB=true) to remove what patterns and the "
            "records' own fields can find; scrubbing is no guarantee"
        )
        raise PrivacyError(msg)


def scrubber_for(privacy: PrivacySettings) -> Scrubber | None:
    """What an index's records go through: a scrubber, or nothing where the hospital de-identified them.

    Raises:
        PrivacyError: neither ``privacy.deidentified`` nor ``privacy.scrub`` is on.
    """
    require_deidentified(privacy)
    if not privacy.scrub:
        return None
    return Scrubber(privacy.scrub_key.get_secret_value() if privacy.scrub_key else None)


class Scrubber:
    """Removes identifying data from records and texts. No guarantee (see :data:`NO_GUARANTEE`).

    Names, numbers and addresses that the record gives in ``identifiers`` and ``patient_id`` are removed from
    its text; so is what the patterns of ``data/deid.toml`` find. Dates of a patient all move back by the same
    number of days, 1 to 365, so that intervals stay. Ages above 89 become 90. Clinical numbers stay.

    Example:
        >>> scrubber = Scrubber("a long secret of the hospital")
        >>> scrubber.scrub_text("Seen by Dr. Smith, tel 555-123-4567. BP 120/80.")[0]
        'Seen by Dr. [NAME], tel [PHONE]. BP 120/80.'

    Args:
        key: secret from which shifts and pseudonyms are made; the same key gives the same ones. Whoever
            has it can undo the shifts, so keep it apart from the index. A random one where None.

    Attributes:
        report: everything since construction.
    """

    def __init__(self, key: str | bytes | None = None) -> None:
        if key is None:
            key = secrets.token_bytes(32)
        self._key = key.encode() if isinstance(key, str) else key
        self.report = ScrubReport()

    def shift_of(self, patient_id: str) -> dt.timedelta:
        """How far this patient's dates move: 1 to 365 days back."""
        number = int.from_bytes(self._digest("shift", patient_id)[:8], "big")
        return dt.timedelta(days=-(1 + number % MAX_SHIFT_DAYS))

    def pseudonym(self, identifier: str) -> str:
        """A stable stand-in for an id; 16 hexadecimal digits."""
        return self._digest("id", identifier).hex()[:16]

    def scrub(self, record: OutpatientRecord) -> tuple[OutpatientRecord, ScrubReport]:
        """Scrub one record: text, views, names of diagnoses, date, age, patient id.

        The record's id is kept, since the index is kept up to date by it, unless it contains the patient id
        or one of the identifiers; then a pseudonym takes its place.

        Args:
            record: stays as it is.

        Returns:
            The scrubbed record, without identifiers, and what was done to it.
        """
        counts: Counter[str] = Counter()
        known = [*record.identifiers, *([record.patient_id] if record.patient_id else [])]
        context = DateContext(
            shift=self.shift_of(record.patient_id or record.id),
            year=record.date.year if record.date else _REFERENCE_YEAR,
            day_first=is_day_first(
                to_ascii_width("\n".join([record.text or "", *(record.views or {}).values()]))
            ),
        )
        text = None if record.text is None else _scrubbed(record.text, known, context, counts)
        views = None
        if record.views is not None:
            views = {view: _scrubbed(part, known, context, counts) for view, part in record.views.items()}
        diagnoses = [
            Diagnosis(name=_scrubbed(item.name, known, context, counts) or item.name, code=item.code)
            for item in record.diagnoses
        ]
        age = record.age
        if age is not None and age >= OLDEST_AGE:
            counts["age"] += age > OLDEST_AGE
            age = float(OLDEST_AGE)
        counts["date"] += record.date is not None
        counts["id"] += record.patient_id is not None
        record_id = record.id
        if any(len(part) >= MIN_ID_CHARS and part in record_id for part in known) or record_id in known:
            counts["id"] += 1
            record_id = self.pseudonym(record_id)
        scrubbed = record.model_copy(
            update={
                "id": record_id,
                "text": text,
                "views": views,
                "diagnoses": diagnoses,
                "age": age,
                "date": move(record.date, context.shift),
                "patient_id": self.pseudonym(record.patient_id) if record.patient_id else None,
                "identifiers": [],
            }
        )
        report = ScrubReport(records=1, counts=dict(+counts))
        self.report.add(report)
        return scrubbed, report

    def scrub_text(
        self, text: str, *, identifiers: Iterable[str] = (), patient_id: str = "", year: int = _REFERENCE_YEAR
    ) -> tuple[str, ScrubReport]:
        """Scrub a text on its own.

        Args:
            text: in English, Chinese or Japanese.
            identifiers: known names, numbers and addresses.
            patient_id: decides how far dates move.
            year: of dates that are written without one.
        """
        counts: Counter[str] = Counter()
        context = DateContext(self.shift_of(patient_id), year, is_day_first(to_ascii_width(text)))
        known = [*identifiers, *([patient_id] if patient_id else [])]
        scrubbed = _scrubbed(text, known, context, counts)
        report = ScrubReport(counts=dict(counts))
        self.report.add(report)
        return scrubbed, report

    def _digest(self, purpose: str, value: str) -> bytes:
        return hmac.digest(self._key, f"{purpose}\x00{value}".encode("utf-8", "replace"), "sha256")


def _scrubbed(text: str, known: Iterable[str], context: DateContext, counts: Counter[str]) -> str:
    plain = to_ascii_width(text)
    spans = [*known_spans(plain, known), *_pattern_spans(plain), *_age_spans(plain)]
    spans += [Span(start, end, "date", new) for start, end, new in date_spans(plain, context)]
    taken: list[Span] = []
    free = bytearray(b"\x01") * len(plain)
    for span in spans:
        if span.start < span.end and all(free[span.start : span.end]):
            free[span.start : span.end] = bytes(span.end - span.start)
            taken.append(span)
            counts[span.kind] += 1
    parts: list[str] = []
    position = 0
    for span in sorted(taken):
        parts += [text[position : span.start], span.replacement]
        position = span.end
    return "".join([*parts, text[position:]])


def _pattern_spans(text: str) -> Iterator[Span]:
    tables = deid_tables()
    for kind, regex, check in tables.patterns:
        group = "x" if "x" in regex.groupindex else 0
        for match in regex.finditer(text):
            if passes(check, match[group]):
                yield Span(*match.span(group), kind, tables.placeholders[kind])


def _age_spans(text: str) -> Iterator[Span]:
    for regex in deid_tables().ages:
        for match in regex.finditer(text):
            if int(match["n"]) > OLDEST_AGE:
                yield Span(*match.span("n"), "age", str(OLDEST_AGE))
