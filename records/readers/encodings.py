"""Which encoding a file is in: the same bytes always give the same answer."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ...errors import SettingsError

SAMPLE_BYTES = 262_144

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_NOT_OF_FILES = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7"}
"""Python counts these as text encodings; no records are written in them."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
_PLAUSIBLE_OTHER = re.compile("[\u3000-\u303f\uff00-\uff60\u2160-\u217f\u2460-\u2473℃°×·±μ]")
_NOT_ASCII = re.compile("[^\x00-\x7f]")


class Encoding(NamedTuple):
    """An encoding and what it asks of a reader.

    Attributes:
        name: as Python knows it, without byte order mark.
        bom_bytes: to skip at the start.
        unit: bytes of one code unit; lines can be split as bytes only where it is 1.
    """

    name: str
    bom_bytes: int = 0
    unit: int = 1


def detect_encoding(sample: bytes) -> Encoding:
    """Guess from the first bytes of a file.

    A byte order mark decides; then UTF-8, where nearly all of the non-ASCII text is valid UTF-8 (single
    damaged bytes don't make it another encoding); then UTF-16 by its zero bytes; then the one of GB18030,
    Shift_JIS and EUC-JP whose text looks most like Chinese or Japanese; Western single bytes last.

    Args:
        sample: up to :data:`SAMPLE_BYTES` from the start.
    """
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return Encoding(name, len(bom), _WIDE.get(name, 1))
    if wide := _wide_without_bom(sample):
        return Encoding(wide, 0, _WIDE[wide])
    if _is_utf8(sample):
        return Encoding("utf-8")
    runs = [len(run) for run in _HIGH_RUN.findall(sample)]
    single = sum(1 for n in runs if n == 1)
    if single > 0.6 * len(runs) and sum(runs) < 0.1 * len(sample):
        return Encoding("cp1252")
    scores = {name: _plausibility(sample, name) for name in ("gb18030", "cp932", "euc_jp")}
    best = max(scores, key=lambda name: scores[name])
    return Encoding(best if scores[best] > 0 else "utf-8")


def declared_encoding(name: str, sample: bytes) -> Encoding:
    """The encoding that the settings name, with the byte order mark that the file may have.

    Raises:
        SettingsError: Python has no such text encoding.
    """
    try:
        "".encode(name)
        known = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError) as error:
        raise _no_such(name) from error
    if known.replace("-", "_") in _NOT_OF_FILES:
        raise _no_such(name)
    known = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(known, known)
    found = detect_encoding(sample)
    if found.bom_bytes and found.name.split("-")[:2] == known.split("-")[:2]:
        return found
    return Encoding(known, 0, _WIDE.get(known, 1))


def _no_such(name: str) -> SettingsError:
    return SettingsError(
        f"records.encoding = {name!r}: no such text encoding; for example utf-8, utf-16, gb18030, "
        "shift_jis and euc_jp are known, and leaving it out detects the encoding"
    )


def contradiction(declared: Encoding, sample: bytes) -> str | None:
    """What speaks against a declared encoding, as words for a message; None where nothing does."""
    found = detect_encoding(sample)
    if found.name == declared.name:
        return None
    body = sample[declared.bom_bytes :]
    if found.bom_bytes:
        return f"it starts with the byte order mark of {found.name}"
    valid = _decode(body, declared.name) is not None
    if valid and found.name == "utf-8" and len(_NOT_ASCII.findall(_decode(body, "utf-8") or "")) >= 8:
        return "its non-ASCII text is valid utf-8"
    if valid:
        return None
    lines = body.split(b"\n")[:-1] or [body]
    bad = sum(1 for line in lines if _decode(line, declared.name) is None)
    if bad > len(lines) / 2:
        return f"{bad} of its first {len(lines)} lines do not decode; it looks like {found.name}"
    return None


def _decode(data: bytes, name: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)("strict").decode(data, final=False)
    except (UnicodeError, LookupError, ValueError):
        return None


def _is_utf8(sample: bytes) -> bool:
    if _decode(sample, "utf-8") is not None:
        return True
    text = sample[:-4].decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = len(_NOT_ASCII.findall(text)) - bad
    return good > 4 * bad


def _wide_without_bom(sample: bytes) -> str | None:
    head = sample[:4096]
    if len(head) < 8:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if odd > 0.3 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.3 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None


def _plausibility(sample: bytes, name: str) -> float:
    """Share of the non-ASCII text that is everyday Chinese (gb18030) or Japanese, 0..1."""
    decoder = codecs.getincrementaldecoder(name)("replace")
    text = "".join(_NOT_ASCII.findall(decoder.decode(sample, final=False)))
    if not text:
        return 0.0
    kana = len(_KANA.findall(text))
    points = float(len(_PLAUSIBLE_OTHER.findall(text)) + _everyday_ideographs(text, name))
    if name == "gb18030":
        points -= 2.0 * kana
    else:
        points = points + 1.5 * kana if kana > 0.02 * len(text) else 0.6 * points
    return (points - 2.0 * text.count("\ufffd")) / len(text)


def _everyday_ideographs(text: str, name: str) -> int:
    """Characters of the first level of the national standard, in which everyday ones are collected."""
    table, low, high = ("gb2312", 0xB0, 0xD7) if name == "gb18030" else ("euc_jp", 0xB0, 0xCF)
    encoded = [char.encode(table, "ignore") for char in text]
    return sum(1 for code in encoded if len(code) == 2 and low <= code[0] <= high)
