"""Text files as numbered lines, whatever they are packed and encoded in."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from typing_extensions import Buffer

from ...errors import InputError
from .encodings import SAMPLE_BYTES, Encoding, contradiction, declared_encoding, detect_encoding

MAX_LINE_BYTES = 64 * 1024 * 1024
_CHUNK = 65_536
_GZIP_MAGIC = b"\x1f\x8b"
_STREAM_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, OSError)


class Line(NamedTuple):
    """One line of a file.

    Attributes:
        number: from 1.
        text: with its line end, where it has one; undecodable bytes are replaced.
        fault: why the line must not be used, or None.
    """

    number: int
    text: str
    fault: str | None


class _Unpacked(io.RawIOBase):
    """A gzip stream that hands out what it has before it says that the rest is missing."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        data = self._stream.read1(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Returned(io.RawIOBase):
    """A stream whose lines end in carriage returns alone, with line feeds instead."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        data = self._stream.read1(len(view)).replace(b"\r", b"\n")
        view[: len(data)] = data
        return len(data)


def open_binary(path: Path) -> io.BufferedReader:
    """Open a plain or gzipped file for reading; what counts is the content, not the name.

    Raises:
        InputError: it cannot be opened, or is empty.
    """
    try:
        stream = path.open("rb")
        magic = stream.read(2)
        stream.seek(0)
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
        raise InputError(msg) from error
    if not magic:
        stream.close()
        msg = f"{path}: the file is empty"
        raise InputError(msg)
    if magic == _GZIP_MAGIC:
        return io.BufferedReader(_Unpacked(gzip.GzipFile(fileobj=stream, mode="rb")), _CHUNK)
    return stream


def head_of(path: Path, size: int = SAMPLE_BYTES) -> bytes:
    """The first bytes of a file after unpacking; as many as can be had where it is damaged.

    Raises:
        InputError: it cannot be opened, or is empty.
    """
    parts: list[bytes] = []
    with open_binary(path) as stream:
        try:
            while size > 0 and (part := stream.read1(size)):
                parts.append(part)
                size -= len(part)
        except _STREAM_ERRORS:
            pass
    return b"".join(parts)


def encoding_of(path: Path, declared: str | None = None) -> Encoding:
    """The encoding of a file: as declared, else detected.

    Raises:
        InputError: the file is empty, or plainly not in the declared encoding.
        SettingsError: there is no such encoding.
    """
    sample = head_of(path)
    if not sample.strip(b"\x00 \r\n\t\xef\xbb\xbf\xff\xfe"):
        msg = f"{path}: the file holds no text"
        raise InputError(msg)
    if declared is None:
        return detect_encoding(sample)
    encoding = declared_encoding(declared, sample)
    if against := contradiction(encoding, sample):
        msg = (
            f"{path}: is not in the encoding that records.encoding = {declared!r} declares: {against}. "
            "Correct records.encoding, or leave it out to have it detected"
        )
        raise InputError(msg)
    return encoding


def read_lines(path: Path, declared: str | None = None) -> Iterator[Line]:
    """Lines of a plain or gzipped text file, one at a time.

    Lines end in line feeds, or in carriage returns where there is no line feed. One that does not decode, or
    is longer than 64 MiB, carries its fault. A gzip stream that ends early or is damaged gives the lines
    before the damage and then one faulty line.

    Args:
        path: of the file.
        declared: its encoding; detected where None.

    Raises:
        InputError: the file is empty, cannot be read, or is plainly not in the declared encoding.
        SettingsError: there is no such encoding.
    """
    encoding = encoding_of(path, declared)
    sample = head_of(path)
    returned = encoding.unit == 1 and b"\r" in sample[:-1] and b"\n" not in sample
    with open_binary(path) as file:
        number = 0
        stream: io.BufferedReader = file
        if returned:
            stream = io.BufferedReader(_Returned(file), _CHUNK)
        try:
            stream.read(encoding.bom_bytes)
            lines = _split_bytes(stream, encoding) if encoding.unit == 1 else _split_text(stream, encoding)
            for number, (text, fault) in enumerate(lines, start=1):
                yield Line(number, text, fault)
        except _STREAM_ERRORS:
            yield Line(number + 1, "", "the compressed file ends early or is damaged; lines before were read")


def _split_bytes(stream: io.BufferedReader, encoding: Encoding) -> Iterator[tuple[str, str | None]]:
    name = encoding.name
    while raw := stream.readline(MAX_LINE_BYTES):
        if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield "", f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB"
            continue
        try:
            yield raw.decode(name), None
        except UnicodeError as error:
            where = f" at byte {error.start + 1}" if isinstance(error, UnicodeDecodeError) else ""
            yield raw.decode(name, "replace"), f"the line is not valid {name}{where}"


def _split_text(stream: io.BufferedReader, encoding: Encoding) -> Iterator[tuple[str, str | None]]:
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    held = ""
    while chunk := stream.read1(_CHUNK):
        *whole, held = (held + decoder.decode(chunk)).split("\n")
        for text in whole:
            yield text + "\n", _wide_fault(text, encoding)
        if len(held) > MAX_LINE_BYTES // encoding.unit:
            msg = "one line fills the whole file"
            raise EOFError(msg)
    held += decoder.decode(b"", final=True)
    if held:
        yield held, _wide_fault(held, encoding)


def _wide_fault(text: str, encoding: Encoding) -> str | None:
    return f"the line is not valid {encoding.name}" if "\ufffd" in text else None
