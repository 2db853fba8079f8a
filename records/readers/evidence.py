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
    before = head[: _first_heading(head)]
    for name in names:
        before = before.replace(name, "")
    return sum(map(len, _WORDS.findall(before))) >= _ENOUGH


def _first_heading(head: str) -> int:
    """Where the first thing like a heading of a diagnosis may begin; the end where there is none."""
    first_words, other = _diagnosis_headings()
    found = other.search(head)
    end = found.start() if found else len(head)
    return next((m.start() for m in _WORDS.finditer(head, 0, end) if m[0] in first_words), end)


@cache
def _diagnosis_headings() -> tuple[frozenset[str], re.Pattern[str]]:
    """First words of the Latin headings, and a pattern of all others: "A/P" and Chinese and Japanese ones."""
    known = {name.lower() for language in LANGUAGES for name in rules_of(language).headings.diagnosis}
    first_of = {name: found[0] for name in known if (found := _WORDS.search(name)) and name.isascii()}
    words = {name: word for name, word in first_of.items() if len(word) > 1}
    other = sorted(known - words.keys())
    return frozenset(words.values()), re.compile("|".join(map(re.escape, other)))
