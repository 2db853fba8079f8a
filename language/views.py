"""Splits a record into the four views it is compared by; the diagnosis goes into none of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .cues import sort_sentences
from .detect import Language, served_language
from .sections import Section, read_sections

EVIDENCE_VIEWS = ("chief_complaint", "history", "examination")
GLOBAL_VIEW = "global"

_LEFT_OUT = frozenset({"diagnosis", "plan"})
_HEADING_MARK = re.compile(r"[\n:：【\[■□●◆#*]")


@dataclass(frozen=True, slots=True)
class ViewSpan:
    """``text[start:end]`` belongs to ``view``: one of the four views, or ``diagnosis`` or ``plan``."""

    view: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ViewSplit:
    """A record's views.

    Attributes:
        views: ``chief_complaint``, ``history``, ``examination``, ``global`` -> text; an empty view is absent.
        headed: at least one view has a heading of its own in the text.
        diagnosis_text: what stood under diagnosis headings; the label, never evidence.
        spans: where it all stands in the text.
    """

    views: dict[str, str] = field(default_factory=dict)
    headed: bool = False
    diagnosis_text: str | None = None
    spans: tuple[ViewSpan, ...] = ()


def split_views(text: str, language: str | None = None) -> ViewSplit:
    r"""Split a record on its headings, or where it has none on the words of its sentences.

    ``global`` is the text without diagnosis and plan: a plan names the diagnosis, and a new case has neither
    yet. Source: MAP-RAG's views; the rules are ours.

    Args:
        text: the record.
        language: ``en``, ``zh`` or ``ja``; detected where None or another.

    Example:
        >>> split = split_views("CC: headache\nExam: no fever\nImpression: migraine")
        >>> split.views["chief_complaint"], split.diagnosis_text, "migraine" in split.views["global"]
        ('headache', 'migraine', False)
    """
    served: Language = served_language(language, text)
    sections = read_sections(text)
    if _is_terse(text, sections):
        sections = [Section(None, "", 0, 0, len(text))]
    headed = any(section.kind in EVIDENCE_VIEWS for section in sections)
    spans = [span for section in sections for span in _spans_of(section, text, served, sections)]
    spans = [span for span in (_trimmed(text, span) for span in spans) if span.start < span.end]
    views: dict[str, str] = {}
    for view in (*EVIDENCE_VIEWS, GLOBAL_VIEW):
        joined = "\n".join(text[span.start : span.end] for span in spans if span.view == view)
        if joined:
            views[view] = joined
    diagnosis = "\n".join(text[span.start : span.end] for span in spans if span.view == "diagnosis")
    return ViewSplit(views, headed, diagnosis or None, tuple(spans))


def _is_terse(text: str, sections: list[Section]) -> bool:
    """Whether what looks like headings is all there is, unmarked and on one line: "IOP 50" is a finding."""
    line = text.strip()
    return (
        not _HEADING_MARK.search(line)
        and all(section.kind in EVIDENCE_VIEWS for section in sections)
        and not any(text[section.body_start : section.end].strip() for section in sections)
    )


def _spans_of(section: Section, text: str, language: Language, sections: list[Section]) -> list[ViewSpan]:
    if section.kind in _LEFT_OUT:
        return [ViewSpan(str(section.kind), section.body_start, section.end)]
    spans = []
    if text[section.body_start : section.end].strip(" \t\r\n。.;；,，"):
        spans.append(ViewSpan(GLOBAL_VIEW, section.start, section.end))
    if section.kind in EVIDENCE_VIEWS:
        spans.append(ViewSpan(str(section.kind), section.body_start, section.end))
    elif section.kind is None:
        has_complaint = any(other.kind == "chief_complaint" for other in sections)
        sentences = sort_sentences(
            text, section.body_start, section.end, language, first_is_complaint=not has_complaint
        )
        spans += [ViewSpan(view, start, end) for view, start, end in sentences]
    return spans


def _trimmed(text: str, span: ViewSpan) -> ViewSpan:
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return ViewSpan(span.view, start, end)
