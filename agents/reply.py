"""What a language model may answer, as a JSON schema, and the checks no schema can make."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .evidence import Evidence, neutral
from .overlap import share, terms
from .wording import RefusalWords

_DIAGNOSES = 3
_OWN = 0.5  # share of a reason's terms that the case must hold, where a record explains more of it


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)


class _Named(_Loose):
    name: str = Field(min_length=1, max_length=200)
    evidence: list[str] = Field(default_factory=list)
    reason: str = ""


class _Considered(_Loose):
    name: str
    for_: list[str] = Field(default_factory=list, alias="for")
    against: list[str] = Field(default_factory=list)


class _Reply(_Loose):
    problem: str = ""
    differential: list[_Considered] = Field(default_factory=list)
    diagnoses: list[_Named]


@dataclass(frozen=True)
class Proposed:
    """One diagnosis that survived the checks.

    Attributes:
        name: as the model wrote it.
        evidence: records shown to the model that it cites; empty where it rests on knowledge alone.
        reason: findings of the case, "" where the reason was none.
    """

    name: str
    evidence: tuple[Evidence, ...]
    reason: str = ""


@dataclass(frozen=True)
class Considered:
    """One line of the differential, cleared of findings that only the records have."""

    name: str
    for_: tuple[str, ...]
    against: tuple[str, ...]


@dataclass(frozen=True)
class Proposal:
    """A checked reply.

    Attributes:
        diagnoses: best first, at most three, no name twice.
        problem: the case in one sentence; "" where not asked for.
        differential: what was weighed.
        dropped: diagnoses that cite records which were not shown.
        borrowed: reasons left out because they are findings of a record, not of the case.
    """

    diagnoses: tuple[Proposed, ...]
    problem: str = ""
    differential: tuple[Considered, ...] = ()
    dropped: int = 0
    borrowed: int = 0


def reply_schema(shown: Sequence[Evidence], *, deep: bool, wide: bool) -> dict[str, Any]:
    """JSON schema of the answer.

    Args:
        shown: records in the prompt; nothing else can be cited where the server enforces the schema.
        deep: with problem and differential before the answer, so that it is written after thinking.
        wide: the language has about one token a character, so lengths are cut to a third.
    """

    def text(limit: int) -> dict[str, Any]:
        return {"type": "string", "maxLength": limit // 3 if wide else limit}

    def listed(of: dict[str, Any], least: int, most: int) -> dict[str, Any]:
        return {"type": "array", "items": of, "minItems": least, "maxItems": most}

    def record(properties: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    cited = listed({"type": "string", "enum": [one.number for one in shown] or ["-"]}, 0 if deep else 1, 3)
    if not shown:
        cited["minItems"] = cited["maxItems"] = 0
    diagnosis = {"name": text(80), "evidence": cited} | ({} if deep else {"reason": text(140)})
    properties = {"diagnoses": listed(record(diagnosis), 1, _DIAGNOSES)}
    if deep:
        finding = listed(text(75), 0, 2)
        considered = record({"name": text(75), "for": finding, "against": finding})
        properties = {"problem": text(180), "differential": listed(considered, 1, _DIAGNOSES)} | properties
    return record(properties) | {"title": "diagnoses"}


@dataclass
class ReplyCheck:
    """Turns a parsed reply into a :class:`Proposal`, or refuses it.

    Args:
        case: text of the case, what reasons are held against.
        shown: records in the prompt.
        words: of refusals, shown to the model in the repair.
        uncited: whether a diagnosis may rest on knowledge alone.
    """

    case: str
    shown: Sequence[Evidence]
    words: RefusalWords
    uncited: bool
    _by_name: dict[str, Evidence] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name = {one.number.casefold(): one for one in self.shown}
        self._by_name |= {one.record_id.casefold(): one for one in self.shown}
        self._case_terms = terms(self.case)

    def __call__(self, value: object) -> Proposal:
        """Check one reply.

        Raises:
            ValueError: the reply is not of the schema, or nothing in it can be used.
        """
        try:
            reply = _Reply.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if not reply.diagnoses:
            raise ValueError(self.words.empty)
        kept, dropped, seen = [], 0, set()
        for one in reply.diagnoses:
            name = " ".join(neutral(one.name).split())
            key = unicodedata.normalize("NFKC", name).casefold()
            if not any(char.isalpha() for char in name) or key in seen:
                continue
            seen.add(key)
            cited = self._cited(one.evidence)
            if not cited and (one.evidence or not self.uncited):
                dropped += 1
                continue
            kept.append(Proposed(name, cited, self._own(one.reason)))
        if not kept:
            raise ValueError(self.words.bad_citation)
        differential = tuple(self._weighed(one) for one in reply.differential[: 2 * _DIAGNOSES])
        said = [one.reason for one in reply.diagnoses if one.reason]
        said += [item for one in reply.differential for item in (*one.for_, *one.against) if item.strip()]
        return Proposal(
            diagnoses=tuple(kept[:_DIAGNOSES]),
            problem=self._own(reply.problem),
            differential=differential,
            dropped=dropped,
            borrowed=sum(not self._own(item) for item in said),
        )

    def _cited(self, names: Sequence[str]) -> tuple[Evidence, ...]:
        found: dict[str, Evidence] = {}
        for name in names:
            one = self._by_name.get(name.strip().strip("[]()").casefold())
            if one:
                found[one.record_id] = one
        return tuple(found.values())

    def _weighed(self, one: _Considered) -> Considered:
        def keep(items: Sequence[str]) -> tuple[str, ...]:
            return tuple(own for item in items if (own := self._own(item)))

        return Considered(" ".join(neutral(one.name).split()), keep(one.for_), keep(one.against))

    def _own(self, text: str) -> str:
        """The text, or "" where a record explains it better than the case does."""
        text = " ".join(neutral(text).split())
        said = terms(text)
        own = share(said, self._case_terms)
        if own >= _OWN or not said:
            return text
        return "" if any(share(said, one.terms) > own for one in self.shown) else text
