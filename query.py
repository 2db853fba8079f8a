"""The one object that travels, the answer it becomes, and the closed enumerations both carry."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, ConfigDict, Field


class Task(StrEnum):
    """What a message asks for."""

    DIAGNOSE = "diagnose"
    CHART = "chart"
    GUIDELINE = "guideline"
    MIXED = "mixed"
    NONE = "none"


class Lane(StrEnum):
    """How much reasoning a diagnosis is given, by confidence (DIAGNOSIS: MAP-RAG's three routes)."""

    VOTE = "vote"
    STANDARD = "standard"
    DEEP = "deep"


@dataclass
class Confidence:
    """How sure the retrieval is that its leading diagnosis is right; every value is in 0..1.

    Attributes:
        value: calibrated where a calibration exists, else equal to ``raw``.
        raw: the weighted sum of the three parts below.
        top: score of the best record after re-ranking.
        consensus: share of the three best records' score that agrees with the leader.
        margin: relative lead over the best record with another diagnosis.
        calibrated: whether ``value`` comes from a calibration.
    """

    value: float
    raw: float
    top: float
    consensus: float
    margin: float
    calibrated: bool = False


@dataclass
class ClinicalQuery(QueryBundle):
    """A question or case with what the caller knows about it.

    The first block is the caller's; the second is filled in once by the router, which
    overwrites whatever stood there.

    Attributes:
        department: clinic or specialty as the caller names it.
        age: years.
        sex: ``"F"``, ``"M"`` or another code; compared case-insensitively.
        patient_id: whose chart may be read; set by the caller, never by a model.
        as_of: valid time asked about.
        known_at: transaction time: what the chart held then.
        guideline: name of the guideline to answer from.
        views: the case already split into views; else the text is split on its headings.
        language: ``"en"``, ``"zh"`` or ``"ja"``; detected where None.
        record_ids: restricts nothing; ids in here are left out of the evidence (a record is
            never its own evidence).
        task: what the message asks for.
        confidence: of the leading diagnosis.
        evidence: retrieved and re-ranked nodes, by task.
    """

    department: str | None = None
    age: float | None = None
    sex: str | None = None
    patient_id: str | None = None
    as_of: dt.date | None = None
    known_at: dt.date | None = None
    guideline: str | None = None
    views: dict[str, str] | None = None
    language: str | None = None
    record_ids: frozenset[str] = frozenset()

    task: Task | None = None
    intent: str | None = None
    confidence: Confidence | None = None
    evidence: dict[Task, list[NodeWithScore]] = field(default_factory=dict)
    timings_ms: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, query: str | QueryBundle, **known: Any) -> Self:
        """Wrap a plain string or foreign ``QueryBundle``; a fresh copy with router fields cleared.

        Args:
            query: the question; a ``ClinicalQuery`` keeps what its caller knew.
            **known: caller's fields that replace those of ``query``.

        Raises:
            TypeError: an argument that no caller's field has.
        """
        fields: dict[str, Any] = dict.fromkeys(_CALLER_FIELDS)
        if isinstance(query, ClinicalQuery):
            fields = {name: getattr(query, name) for name in _CALLER_FIELDS}
        unknown = set(known) - set(_CALLER_FIELDS)
        if unknown:
            msg = f"unknown query field(s) {sorted(unknown)}; known are {sorted(_CALLER_FIELDS)}"
            raise TypeError(msg)
        fields.update(known)
        fields["record_ids"] = frozenset(fields["record_ids"] or ())
        text = query if isinstance(query, str) else query.query_str
        return cls(text, **fields)


_CALLER_FIELDS = (
    "department", "age", "sex", "patient_id", "as_of", "known_at", "guideline", "views", "language",
    "record_ids",
)  # fmt: skip


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RouteTaken(_Frozen):
    """Which engine answered, and the selector's reason."""

    engine: str
    why: str


class ConfidenceReport(_Frozen):
    """JSON form of :class:`Confidence`."""

    value: float
    raw: float
    top: float
    consensus: float
    margin: float


class RankedDiagnosis(_Frozen):
    """One answer to "what does this case have?".

    Attributes:
        name: the diagnosis as the evidence or the model wrote it.
        code: ICD code, where the cascade found one.
        title: the code's title.
        share: of the vote, 0..1; for an LLM's list its rank weight.
        evidence: ids of the records it rests on.
    """

    name: str
    code: str | None = None
    title: str | None = None
    share: float | None = None
    evidence: list[str] = Field(default_factory=list)


class Citation(_Frozen):
    """Where a statement comes from.

    Attributes:
        id: record, note or page id.
        kind: ``"record"``, ``"note"`` or ``"page"``.
        title: what a person would call it.
        where: url, or date and span.
        quote: the words relied on.
    """

    id: str
    kind: str
    title: str | None = None
    where: str | None = None
    quote: str | None = None


class TokenUse(_Frozen):
    """Tokens that a language model read and wrote; zeros where none was asked."""

    prompt: int = 0
    output: int = 0


class AnswerDetails(_Frozen):
    """The typed view of an answer; the same keys as its JSON."""

    answer: str
    task: Task
    route: RouteTaken
    confidence: ConfidenceReport | None = None
    diagnoses: list[RankedDiagnosis] | None = None
    verdict: str | None = None
    facts: list[dict[str, Any]] | None = None
    citations: list[Citation] = Field(default_factory=list)
    refused: bool = False
    degraded: str | None = None
    model: str
    tokens: TokenUse = TokenUse()
    timings_ms: dict[str, float] = Field(default_factory=dict)
    index_version: str | None = None


@dataclass
class ClinicalAnswer(Response):
    """A LlamaIndex ``Response`` whose metadata keeps the typed details.

    ``metadata`` stays a plain dict, because LlamaIndex writes ``selector_result`` into it.
    """

    @classmethod
    def from_details(cls, details: AnswerDetails, source_nodes: list[NodeWithScore] | None = None) -> Self:
        """Build the response that carries ``details``."""
        return cls(
            response=details.answer,
            source_nodes=list(source_nodes or []),
            metadata={"details": details.model_dump(mode="json")},
        )

    @property
    def details(self) -> AnswerDetails:
        """The typed view."""
        return AnswerDetails.model_validate((self.metadata or {})["details"])

    def with_details(self, **changes: Any) -> Self:
        """The same answer with some details replaced; the response text follows ``answer``."""
        details = AnswerDetails.model_validate(self.details.model_dump() | changes)
        metadata = dict(self.metadata or {}) | {"details": details.model_dump(mode="json")}
        return type(self)(response=details.answer, source_nodes=self.source_nodes, metadata=metadata)

    def to_json(self) -> dict[str, Any]:
        """A dict with the keys that every ``--json`` verb prints; a part that does not apply is None."""
        return self.details.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Replay an answer from :meth:`to_json`.

        Raises:
            pydantic.ValidationError: a missing or unknown key.
        """
        return cls.from_details(AnswerDetails.model_validate(data))
