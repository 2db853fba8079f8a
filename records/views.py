"""The views a record is compared by, whatever form it came in."""

from __future__ import annotations

import re
import unicodedata

from ..language.cues import states_diagnosis
from ..language.headings import WORD
from ..language.sections import read_sections
from ..language.sentences import sentence_spans
from ..language.views import EVIDENCE_VIEWS, split_views
from .schema import OutpatientRecord, View

_WORD = re.compile(r"[^\W_]+")
_LABEL_LINE = re.compile(
    r"[ \t\-•*#>|\"'(\[【■]*(?P<heading>[^\n:：=]{1,40})[ \t]*[:：=][ \t]*(?P<rest>[^\n]{1,300})\Z"
)
_MAX_HEADING_WORDS = 4
_QUALIFIER = re.compile(r"[,(\[（，]")
_LONG_ENOUGH = re.compile(r"[^\W\d_]{3}|[\u3041-\u9fff]{2}")
_LABEL_WORDS = re.compile(
    r"\b(?:diagnos[ei]s|diagnosed|diagnostic|impression|assessment|dx|main|final|primary|most|likely|the|is|was|of|with|icd)\b"
    r"|诊断|初步|考虑|印象|为|是|診断|病名|名|疑い|の|は|である|です",
    re.IGNORECASE,
)


def views_of(record: OutpatientRecord) -> dict[View, str]:
    """A record's views without its diagnosis; an empty view is absent.

    Given views are kept, the text is split otherwise. Either way diagnosis sections are cut out, and so are a
    last line or sentence that only names the record's own diagnosis, and every sentence that states it
    ("consistent with migraine"; a history of migraine stays). ``GLOBAL`` is composed where it is missing. A
    record that says nothing but its diagnosis has no view. Source: MAP-RAG; cleaning ours.
    """
    labels = [d.name for d in record.diagnoses] + [d.code for d in record.diagnoses if d.code]
    given = {view: text for view, text in (record.views or {}).items() if text.strip()}
    views: dict[View, str] = {}
    if given:
        for view in View:
            if view in given:
                views[view] = _without_label_line(_without_diagnosis(given[view]), labels)
        if View.GLOBAL not in given:
            parts = [views[view] for view in View if views.get(view)]
            whole = split_views(record.text, record.language).views.get("global", "") if record.text else ""
            views[View.GLOBAL] = _without_label_line(whole, labels) or "\n".join(parts)
    else:
        text = _without_label_line(record.text or "", labels)
        split = split_views(text, record.language)
        views = {View(name): text for name, text in split.views.items()}
    stated = [pattern for d in record.diagnoses if (pattern := _name_pattern(d.name)) is not None]
    views = {view: _without_statements(text, stated) for view, text in views.items()}
    views = {view: text for view, text in views.items() if _WORD.search(text)}
    if all(_only_says(text, labels) for text in views.values()):
        return {}
    return {view: views[view] for view in View if view in views}


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _name_pattern(name: str) -> re.Pattern[str] | None:
    """Finds a diagnosis by its name, whole or up to a comma or bracket; None where it is too short."""
    whole = _plain(name).strip(" .,;:")
    forms = {form for form in (whole, _QUALIFIER.split(whole)[0].strip()) if _LONG_ENOUGH.search(form)}
    if not forms:
        return None
    either = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.compile(rf"(?<![a-z0-9])(?:{either})(?:e?s)?(?![a-z0-9])")


def _without_statements(text: str, names: list[re.Pattern[str]]) -> str:
    """Drops the sentences that state a diagnosis; the text is only split where its name occurs."""
    plain = _plain(text) if names else ""
    names = [name for name in names if name.search(plain)]
    if not names:
        return text
    kept, end = [], 0
    for start, stop in sentence_spans(text):
        sentence = _plain(text[start:stop])
        if any(states_diagnosis(sentence, name) for name in names):
            kept.append(text[end:start])
            end = stop + len(text[stop:]) - len(text[stop:].lstrip(" \t"))
    return "".join([*kept, text[end:]]).strip()


def _without_diagnosis(text: str) -> str:
    """A given view without diagnosis sections in it; a plan stays, for whoever gave the view put it there."""
    sections = read_sections(text)
    if all(section.kind != "diagnosis" for section in sections):
        return text.strip()
    kept = [text[s.start : s.end].strip() for s in sections if s.kind != "diagnosis"]
    return "\n".join(part for part in kept if part)


def _without_label_line(text: str, labels: list[str]) -> str:
    """Drops last lines or sentences that only state one of ``labels``, whatever heading they have."""
    text = text.strip()
    while text and labels:
        spans = sentence_spans(text[-400:])
        offset = max(0, len(text) - 400)
        if not spans:
            return text
        start = offset + spans[-1][0]
        last = text[start:]
        if not _states_label(last, labels) or start == 0:
            return text
        text = text[:start].rstrip()
    return text


def _states_label(sentence: str, labels: list[str]) -> bool:
    if any(section.kind in EVIDENCE_VIEWS for section in read_sections(sentence)):
        return False
    match = _LABEL_LINE.match(sentence.strip())
    if match is not None and len(WORD.findall(match["heading"])) <= _MAX_HEADING_WORDS:
        return _only_says(match["rest"], labels)
    return _only_says(sentence, labels)


def _only_says(text: str, labels: list[str]) -> bool:
    """Whether nothing is left of ``text`` without the labels and the words that announce a diagnosis."""
    left = text.lower()
    for label in sorted({label.lower().strip() for label in labels}, key=len, reverse=True):
        left = left.replace(label, " ")
    left = _LABEL_WORDS.sub(" ", left)
    return not any(word.isalpha() for word in _WORD.findall(left)) and (
        left != text.lower() or not _WORD.search(text)
    )
