"""Whether a record says anything besides its diagnosis."""

from __future__ import annotations

import re

from ..schema import OutpatientRecord

_NOT_WORD = re.compile(r"[\W_]+")


def has_evidence(record: OutpatientRecord) -> bool:
    """Whether anything is left of the record's text once its diagnoses are taken out."""
    names = {_bare(item.name) for item in record.diagnoses} | {
        _bare(item.code or "") for item in record.diagnoses
    }
    texts = [record.text or "", *(record.views or {}).values()]
    return any((bare := _bare(text)) and bare not in names for text in texts)


def _bare(text: str) -> str:
    return _NOT_WORD.sub("", text).casefold()
