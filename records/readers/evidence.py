"""Whether a record says anything besides its diagnosis."""

from __future__ import annotations

import re
from functools import cache

from ...language.headings import LANGUAGES, rules_of
from ..schema import OutpatientRecord
from ..views import views_of

_HEAD_CHARS = 160
_ENOUGH = 20
_WORDS = re.compile(r"[^\W_]+")


def has_evidence(record: OutpatientRecord) -> bool:
    """Whether any view is left once the diagnosis is taken out.

    Splitting every record would make reading ten times slower, so a text in which words enough, the record's
    own diagnoses not counted, come before anything like a heading of a diagnosis is taken at its word.
    """
    names = [item.name.lower() for item in record.diagnoses]
    texts = [record.text or "", *(record.views or {}).values()]
    return any(_plainly_has(text, names) for text in texts) or bool(views_of(record))


def _plainly_has(text: str, names: list[str]) -> bool:
    head = text[:_HEAD_CHARS].lower()
    heading = _diagnosis_heading().search(head)
    before = head[: heading.start()] if heading else head
    for name in names:
        before = before.replace(name, "")
    return sum(map(len, _WORDS.findall(before))) >= _ENOUGH


@cache
def _diagnosis_heading() -> re.Pattern[str]:
    known = {name.lower() for language in LANGUAGES for name in rules_of(language).headings.diagnosis}
    latin = "|".join(map(re.escape, sorted((n for n in known if n.isascii()), key=len, reverse=True)))
    other = "|".join(map(re.escape, sorted((n for n in known if not n.isascii()), key=len, reverse=True)))
    return re.compile(rf"(?<![a-z])(?:{latin})(?![a-z])|{other}")
