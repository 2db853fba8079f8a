"""A copy of a text in plain signs, in which headings are looked for."""

from __future__ import annotations

import re

_SAME_LENGTH = {0xFF01 + i: 0x21 + i for i in range(94)} | {
    ord(sign): plain
    for plain, signs in {
        " ": "\u3000\u00a0\u2002\u2003\u2009\u200b\u200c\u200d\ufeff\0",
        "\n": "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029",
        ":": "﹕∶︰꞉",
        "[": "【〔「『《〈",
        "]": "】〕」』》〉",
    }.items()
    for sign in signs
}
_BREAK = re.compile(r"\r\n|\\r\\n|\\n|<\s*(?:br|/p|/div|/li|/h\d)\b[^<>\n]{0,40}>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:b|i|u|p|h\d|em|strong|span|div|font|td|th|tr|li|ul|table|tbody)\b[^<>\n]{0,80}>", re.IGNORECASE
)


def shadow_of(text: str) -> str:
    """The text in plain signs, character for character, so that offsets into it are offsets into the text."""
    shadow = text.translate(_SAME_LENGTH) if not text.isascii() else text
    shadow = _BREAK.sub(lambda m: "\n".ljust(len(m[0])) if m[0][0] != "\r" else " \n", shadow)
    shadow = _TAG.sub(lambda m: " " * len(m[0]), shadow)
    return shadow.replace("\r", "\n").replace("\v", "\n").replace("\f", "\n").replace("\0", " ")
