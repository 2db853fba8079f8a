"""The text of FHIR documents: narratives, sections and inline attachments."""

from __future__ import annotations

import base64
import binascii
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from .encodings import detect_encoding

MAX_SECTION_DEPTH = 10
Json = dict[str, object]

_BLOCKS = [
    *("address", "article", "blockquote", "br", "caption", "dd", "div", "dl", "dt", "fieldset", "footer"),
    *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "ol", "p", "pre", "section", "table"),
    *("tbody", "thead", "tr", "ul"),
]
_TEXT_TYPES = frozenset({"", "text/plain", "text/markdown", "text/x-markdown"})
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/xhtml"})


class FhirTables(BaseModel):
    """``data/fhir.toml``.

    Attributes:
        icd10_systems: system URIs of ICD-10 and its national editions.
        not_a_diagnosis: verification states.
        label_sections: LOINC codes of sections that state the diagnosis.
        section_titles: LOINC code -> heading.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    icd10_systems: frozenset[str]
    not_a_diagnosis: frozenset[str]
    label_sections: frozenset[str]
    section_titles: dict[str, str]


@cache
def fhir_tables() -> FhirTables:
    """The shipped tables, checked against their schema."""
    text = resources.files(__package__).joinpath("data/fhir.toml").read_text(encoding="utf-8")
    return FhirTables.model_validate(tomllib.loads(text))


def dig(value: object, *path: str | int) -> object:
    """The part of a JSON value at a path of keys and positions, or None."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def string(value: object, *path: str | int) -> str | None:
    """The non-blank text at a path, or None."""
    found = dig(value, *path)
    return found.strip() or None if isinstance(found, str) else None


def items(value: object, *path: str | int) -> Iterator[Json]:
    """The objects of the list at a path; nothing where there is none."""
    found = dig(value, *path)
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))


def concept_text(concept: object) -> str | None:
    """The words of a CodeableConcept: its text, else the first display."""
    return string(concept, "text") or next(
        (display for coding in items(concept, "coding") if (display := string(coding, "display"))), None
    )


def html_text(html: str) -> str | None:
    """HTML or XHTML as plain text, a line for a block or a table's row; None where unreadable."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - only narratives need it
    from bs4.exceptions import ParserRejectedMarkup  # noqa: PLC0415

    try:
        soup = BeautifulSoup(html, "html.parser")
        for unseen in soup(["script", "style", "head", "title"]):
            unseen.decompose()
        for block in soup.find_all(_BLOCKS):
            block.insert_before("\n")
            block.append("\n")
        for cell in soup.find_all(["td", "th"]):
            cell.append(" ")
        text = soup.get_text()
    except (ParserRejectedMarkup, RecursionError, AssertionError, ValueError):
        return None
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def composition_text(composition: Json) -> tuple[str, str | None]:
    """A Composition's sections under their titles, or its narrative; else what is wrong with it."""
    parts = [part for section in items(composition, "section") for part in _section(section, 0)]
    if not parts and (div := string(composition, "text", "div")):
        parts = [html_text(div) or ""]
    text = "\n".join(part for part in parts if part)
    return text, None if text else "the document has no narrative text besides the diagnosis"


def _section(section: Json, depth: int) -> Iterator[str]:
    tables = fhir_tables()
    codes = [code for coding in items(section, "code", "coding") if (code := string(coding, "code"))]
    if any(code in tables.label_sections for code in codes):
        return
    title = string(section, "title") or next(
        (tables.section_titles[code] for code in codes if code in tables.section_titles),
        string(section, "code", "text"),
    )
    text = html_text(string(section, "text", "div") or "") or ""
    inner = (
        [part for s in items(section, "section") for part in _section(s, depth + 1)]
        if depth < MAX_SECTION_DEPTH
        else []
    )
    if not text and not inner:
        return
    if title and not text.casefold().startswith(title.casefold()):
        yield f"{title}:\n{text}" if text else f"{title}:"
    elif text:
        yield text
    yield from inner


def document_text(document: Json) -> tuple[str, str | None]:
    """A DocumentReference's inline text; with what is wrong where there is none."""
    fault = "the document has no content"
    for content in items(document, "content"):
        text, fault_here = _attachment_text(content.get("attachment"))
        if text:
            return text, None
        fault = fault_here or fault
    return "", fault


def _attachment_text(attachment: object) -> tuple[str, str | None]:
    kind, _, parameters = (string(attachment, "contentType") or "").lower().partition(";")
    kind = kind.strip()
    if kind not in _TEXT_TYPES | _HTML_TYPES:
        return "", f"the attachment is {_shown(kind)}, not text or HTML"
    data = string(attachment, "data")
    if data is None:
        return "", "the attachment is not inline; export documents with their data"
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return "", "the attachment is not valid base64"
    charset = parameters.partition("charset=")[2].strip(" \"'") or None
    text = _decoded(raw, charset)
    if text is None:
        return "", "the attachment is not in the encoding that it declares"
    text = html_text(text) if kind in _HTML_TYPES else text
    return (text, None) if text and text.strip() else ("", "the attachment holds no text")


def _decoded(raw: bytes, charset: str | None) -> str | None:
    encoding = detect_encoding(raw)
    try:
        return raw[encoding.bom_bytes :].decode(
            encoding.name if encoding.bom_bytes else charset or encoding.name
        )
    except (UnicodeError, LookupError, ValueError):
        return None


def _shown(kind: str) -> str:
    return (
        kind
        if len(kind) < 60 and kind.replace("/", "").replace("-", "").replace(".", "").isalnum()
        else "unknown"
    )
