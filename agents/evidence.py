"""Retrieved records as engines use them: numbered for the prompt, fenced as data, quoted in the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from llama_index.core.schema import MetadataMode, NodeWithScore

from ..query import Citation
from .overlap import best_sentence, terms

# Angle brackets carry our fences and chat templates' control tokens (<|im_start|>); invisible and control
# characters can hide words from a reader but not from a model.
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›"})
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_INST = re.compile(r"\[(/?)(INST|SYS)\]", re.IGNORECASE)


def neutral(text: str) -> str:
    """Text that cannot close a fence, open a chat turn or hide words, and otherwise reads the same."""
    return _INST.sub(r"(\1\2)", _HIDDEN.sub("", text).translate(_ANGLES))


@dataclass(frozen=True)
class Evidence:
    """One retrieved record.

    Attributes:
        number: as the prompt names it, ``R1`` for the most similar.
        record_id: id in the index.
        text: of the record, without its diagnosis.
        diagnosis: main one.
        code: its ICD code, where there is one.
        title: the code's title.
        label: what two names must share to count as the same diagnosis.
        score: fused and re-ranked, 0..1.
        label_share: of its label among all labels, where the retriever ranked labels with what it learned.
        department: clinic.
        date: of the visit, ISO.
        language: of the text.
    """

    number: str
    record_id: str
    text: str
    diagnosis: str
    code: str | None
    title: str | None
    label: str
    score: float
    department: str | None
    date: str | None
    label_share: float | None = None
    language: str | None = None

    @property
    def where(self) -> str:
        """Department and date, as far as known, then the diagnosis."""
        return ", ".join(part for part in (self.department, self.date, self.diagnosis) if part)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of the text."""
        return terms(self.text)

    def fenced(self, limit: int | None = None) -> str:
        """The record between tags that its text cannot close, cut to ``limit`` characters."""
        text = " ".join(neutral(self.text).split())
        if limit is not None and len(text) > limit:
            text = text[:limit].rstrip() + " …"
        diagnosis = neutral(self.diagnosis).replace('"', "'")
        return f'<record id="{self.number}" diagnosis="{diagnosis}">\n{text}\n</record>'

    def citation(self, about: frozenset[str]) -> Citation:
        """A citation that quotes the sentence nearest to the case's terms."""
        return Citation(
            id=self.record_id,
            kind="record",
            title=self.diagnosis,
            where=self.where or None,
            quote=best_sentence(self.text, about) or None,
        )


def evidence_of(nodes: Sequence[NodeWithScore]) -> list[Evidence]:
    """Retrieved nodes as numbered evidence, best first; records without a diagnosis are left out."""
    ordered = sorted(nodes, key=lambda node: -(node.score or 0.0))
    found: list[Evidence] = []
    for node in ordered:
        known = node.metadata
        diagnosis = str(known.get("diagnosis") or "").strip()
        if not diagnosis:
            continue
        coded = known.get("icd10") or {}
        share = known.get("label_share")
        found.append(
            Evidence(
                number=f"R{len(found) + 1}",
                record_id=str(known.get("record_id") or node.node_id),
                text=node.node.get_content(metadata_mode=MetadataMode.NONE),
                diagnosis=diagnosis,
                code=_text(known.get("code") or coded.get("code")),
                title=_text(coded.get("title")),
                label=str(known.get("label") or diagnosis.casefold()),
                score=max(0.0, float(node.score or 0.0)),
                department=_text(known.get("department")),
                date=_text(known.get("date")),
                label_share=None if share is None else float(share),
                language=_text(known.get("language")),
            )
        )
    return found


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None
