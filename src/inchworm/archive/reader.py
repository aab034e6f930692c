"""Reading WARC files record by record: ours and other people's, plain or with one gzip member per record.

A file may end in the middle of a record, because whoever wrote it was killed. Then what came before counts,
and reading simply ends there. A record that is damaged is left out, and reading goes on behind it. No more than one
record is in memory at a time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import weakref
from collections.abc import Callable, Generator, Iterator
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
_MEMBER = b"\x1f\x8b\x08"
_MOST_DAMAGE = 1000
"""After so many places where a file cannot be read, what is left of it is not worth the search."""

_HASHES = {"sha256", "sha1", "md5"}
_MOST_OPEN = 8
_MOST_AT_ONCE = 10_000_000
_HEAD_END = b"\r\n\r\n"

Noted = Callable[[int], None]
"""Is told where a file is damaged."""

# isal's own stub takes this class for an instance.
_INFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]


def records(path: Path, damaged: Noted | None = None) -> Iterator[WarcRecord]:
    """All records of a file that can be read, in order."""
    with _opened(path) as file:
        yield from _read(file, path, damaged or (lambda _: None))


def record_at(path: Path, offset: int) -> WarcRecord:
    """The record that begins at this place, seen to be as it was written."""
    with _opened(path) as file:
        file.seek(offset)
        for record in _read(file, path, lambda _: None):
            if record.offset == offset and _is_as_written(record):
                return record
            break
    raise WrongUse(f"{path} has no whole record at {offset}.", "It is damaged, or has changed since it was indexed.")


def is_whole(path: Path, offset: int, length: int) -> bool:
    """Whether a record of this length lies there, as it was written."""
    try:
        return record_at(path, offset).length == length
    except WrongUse:
        return False


class OpenFiles:
    """The files of an archive, kept open for whoever takes many records out of them, one here and one there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}
        weakref.finalize(self, _close, self._open)

    def record(self, name: str, offset: int, length: int) -> WarcRecord:
        """The record of this length at this place, seen to be as it was written."""
        found = self._at_once(name, offset, length) if length else None
        return record_at(self._folder / name, offset) if found is None else found

    def _at_once(self, name: str, offset: int, length: int) -> WarcRecord | None:
        """A record by a single read; None for whatever is not as we write them, or damaged: a gzip member has a
        checksum of its own."""
        try:
            data = os.pread(self._descriptor(name), length, offset)
            size = min(int.from_bytes(data[-4:], "little"), _MOST_AT_ONCE)  # as its end says
            member = isal_zlib.decompress(data, 31, size or 1)
        except (OSError, _INFLATE_ERROR):
            return None
        head, _, rest = member.partition(_HEAD_END)
        headers = _plain_headers(head)
        said = headers.get("content-length", "")
        if not head.startswith(_VERSION) or not said.isdecimal() or rest[int(said) :] != _HEAD_END:
            return None
        return WarcRecord(offset, length, headers, rest[: int(said)])

    def _descriptor(self, name: str) -> int:
        if name not in self._open:
            if len(self._open) == _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[name] = os.open(self._folder / name, os.O_RDONLY)
        return self._open[name]


def _close(descriptors: dict[str, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])


def _plain_headers(head: bytes) -> dict[str, str]:
    """The headers of a record as we write them, one line each."""
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def _is_as_written(record: WarcRecord) -> bool:
    """By the digest that came with it, if it is one that we know."""
    name, _, said = record.headers.get("warc-block-digest", "").partition(":")
    if name.lower() not in _HASHES:
        return True
    found = hashlib.new(name.lower(), record.content, usedforsecurity=False)
    try:
        is_hex = len(said) == 2 * found.digest_size
        return (bytes.fromhex(said) if is_hex else base64.b32decode(said.upper())) == found.digest()
    except (ValueError, binascii.Error):
        return True


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}.", "Check the name of the file.") from error


def _read(file: BinaryIO, path: Path, damaged: Noted) -> Iterator[WarcRecord]:
    start = file.tell()
    first = file.read(len(_VERSION))
    file.seek(start)
    if first.startswith(_GZIP_MAGIC):
        yield from _compressed(file, path, damaged)
    elif first == _VERSION:
        yield from _plain(file, damaged)
    elif not _VERSION.startswith(first):
        raise _not_a_warc(path)


def _plain(file: BinaryIO, damaged: Noted) -> Iterator[WarcRecord]:
    """Without compression nothing marks the beginning of a record but the end of the one before."""
    size, end = os.fstat(file.fileno()).st_size, file.tell()
    while (record := _next(file, size)) is not None:
        end = record.offset + record.length
        yield record
    if end < size:
        damaged(end)


def _compressed(file: BinaryIO, path: Path, damaged: Noted) -> Iterator[WarcRecord]:
    for offset, length, member in _members(file, damaged):
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


def _members(file: BinaryIO, damaged: Noted) -> Iterator[tuple[int, int, bytes]]:
    """Offset, length and content of each whole gzip member."""
    at = file.tell()
    for _ in range(_MOST_DAMAGE):
        at, is_damaged = yield from _members_in_a_row(file, at)
        behind = _next_member(file, at + 1)
        if is_damaged or behind is not None:
            damaged(at)
        if behind is None:
            return
        at = behind


def _next_member(file: BinaryIO, at: int) -> int | None:
    """Where, from a place on, the next gzip member may begin."""
    file.seek(at)
    data = b""
    while block := file.read(_BLOCK_BYTES):
        data += block
        if (found := data.find(_MEMBER)) >= 0:
            return at + found
        at += len(data) - (keep := min(len(data), len(_MEMBER) - 1))
        data = data[-keep:]
    return None


def _members_in_a_row(file: BinaryIO, offset: int) -> Generator[tuple[int, int, bytes], None, tuple[int, bool]]:
    """The whole gzip members from a place on; where the first one begins that is not, and whether it is damaged. If
    not, the file ends there."""
    file.seek(offset)
    data = b""
    while True:
        start, parts, stream = offset, [], isal_zlib.decompressobj(wbits=31)
        while not stream.eof:
            data = data or file.read(_BLOCK_BYTES)
            if not data:
                return start, False
            try:
                parts.append(stream.decompress(data))
            except _INFLATE_ERROR:
                return start, True
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
