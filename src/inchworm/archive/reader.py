"""Reading WARC files record by record: ours and other people's, plain or with one gzip member per record.

A file may end in the middle of a record, because whoever wrote it was killed. Then what came before counts,
and reading simply ends there. No more than one record is in memory at a time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from inchworm.errors import WrongUse
from inchworm.model import WarcRecord

_GZIP_MAGIC = b"\x1f\x8b"
_VERSION = b"WARC/"
_BLANK = (b"\r\n", b"\n")
_BLOCK_BYTES = 256 * 1024
_MAX_LINE_BYTES = 1024 * 1024
# isal's own stub takes this class for an instance.
_INFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]


def records(path: Path) -> Iterator[WarcRecord]:
    """All records of a file, in order."""
    with _opened(path) as file:
        yield from _read(file, path)


def record_at(path: Path, offset: int) -> WarcRecord:
    """The record that begins at this place."""
    with _opened(path) as file:
        file.seek(offset)
        for record in _read(file, path):
            return record
    raise WrongUse(f"{path} has no record at {offset}.", "Has the file changed since it was indexed?")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}.", "Check the name of the file.") from error


def _read(file: BinaryIO, path: Path) -> Iterator[WarcRecord]:
    start = file.tell()
    first = file.read(len(_VERSION))
    file.seek(start)
    if first.startswith(_GZIP_MAGIC):
        yield from _compressed(file, path)
    elif first == _VERSION:
        yield from _plain(file)
    elif not _VERSION.startswith(first):
        raise _not_a_warc(path)


def _plain(file: BinaryIO) -> Iterator[WarcRecord]:
    size = os.fstat(file.fileno()).st_size
    while (record := _next(file, size)) is not None:
        yield record


def _compressed(file: BinaryIO, path: Path) -> Iterator[WarcRecord]:
    for offset, length, member in _members(file):
        stream = io.BytesIO(member)
        record = _next(stream, len(member))
        if record is None:
            raise _not_a_warc(path)
        if stream.read().strip(b"\r\n"):
            raise WrongUse(
                f"{path} is compressed as a whole, so its records cannot be found again.",
                "`warcio recompress` makes a file with one gzip member per record of it.",
            )
        yield WarcRecord(offset, length, record.headers, record.content)


def _members(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Offset, length and content of each whole gzip member."""
    offset = file.tell()
    data = b""
    while True:
        start, parts, stream = offset, [], isal_zlib.decompressobj(wbits=31)
        while not stream.eof:
            data = data or file.read(_BLOCK_BYTES)
            if not data:
                return
            try:
                parts.append(stream.decompress(data))
            except _INFLATE_ERROR:
                return
            offset += len(data) - len(stream.unused_data)
            data = stream.unused_data
        yield start, offset - start, b"".join(parts)


def _next(stream: BinaryIO, size: int) -> WarcRecord | None:
    """The next record of a stream of this size; None at its end, be it torn or not."""
    offset, line = stream.tell(), stream.readline(_MAX_LINE_BYTES)
    while line in _BLANK:
        offset, line = stream.tell(), stream.readline(_MAX_LINE_BYTES)
    if not line.startswith(_VERSION):
        return None
    headers = _headers(stream)
    length = headers.get("content-length", "")
    # A length beyond the end is a torn tail, or a lie for which no memory is to be set aside.
    if not length.isdecimal() or int(length) > size - stream.tell():
        return None
    content = stream.read(int(length))
    stream.seek(_blank_after(stream))
    return WarcRecord(offset, stream.tell() - offset, headers, content)


def _headers(stream: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    name = ""
    while (line := stream.readline(_MAX_LINE_BYTES)) not in (*_BLANK, b""):
        text = line.decode("utf-8", "replace")
        if text[0] in " \t" and name:
            headers[name] += " " + text.strip()
            continue
        name, _, value = text.partition(":")
        name = name.strip().lower()
        headers[name] = value.strip()
    return headers


def _blank_after(stream: BinaryIO) -> int:
    """Where the blank lines that close a record end."""
    end = stream.tell()
    for _ in range(2):
        if stream.readline(2) in _BLANK:
            end = stream.tell()
    return end


def _not_a_warc(path: Path) -> WrongUse:
    return WrongUse(f"{path} is not a WARC file.", "Give the .warc or .warc.gz files of a crawl.")
