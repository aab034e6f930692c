"""A folder as one zip file that is written from its beginning to its end, to whatever takes bytes.

The list of files that stands at the end of a zip file is kept in a temporary file meanwhile, so that memory does not
grow with their number, as it does with `zipfile`. All files bear the same date: the same content gives the same bytes.
"""

from __future__ import annotations

import contextlib
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, NamedTuple, cast

from isal import isal_zlib

_IN_MEMORY = 1_000_000
_LEVEL = 2
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s2B5H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LONG_END = struct.Struct("<4sQ2H2L4Q")
_LONG_END_PLACE = struct.Struct("<4sLQL")
_LONG_OFFSET = struct.Struct("<2HQ")

_VERSION, _LONG_VERSION = 20, 45
_UNIX = 3
_UTF8 = 0x800
_DEFLATED = 8
_DATE = 0x21  # the first day there is, 1980-01-01
_READABLE = 0o100644 << 16
_MOST_FILES, _MOST_BYTES = 0xFFFF, 0xFFFFFFFF


class _FileHead(NamedTuple):
    """What stands of a file in its head: a checksum, and its sizes packed and not."""

    checksum: int
    packed: int
    size: int


class Zipped:
    """Takes files, as `Folder` does."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._offset = self._files = 0
        self._list = _temporary()

    def __enter__(self) -> Zipped:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._list:
            if kind is None:
                self._end()

    def write(self, name: str, data: bytes) -> None:
        """A whole file, under a name such as `host/path/page.md`."""
        packer = isal_zlib.compressobj(_LEVEL, wbits=-15)
        packed = packer.compress(data) + packer.flush()
        self._begin(name, _FileHead(zlib.crc32(data), len(packed), len(data)))
        self._put(packed)

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A file to write to, while others are written. It takes its place at the end, unless anything is raised."""
        with _temporary() as packed:
            packer = _Packer(packed)
            yield cast(BinaryIO, packer)
            self._begin(name, packer.end())
            packed.seek(0)
            while chunk := packed.read(_IN_MEMORY):
                self._put(chunk)

    def plain_errors(self, _name: str) -> contextlib.AbstractContextManager[None]:
        """What goes wrong with the stream is for whoever opened it."""
        return contextlib.nullcontext()

    def _begin(self, name: str, packed: _FileHead) -> None:
        raw = name.encode()
        about = (_UTF8, _DEFLATED, 0, _DATE, *packed, len(raw))
        is_far = self._offset > _MOST_BYTES
        extra = _LONG_OFFSET.pack(1, 8, self._offset) if is_far else b""
        version, offset = (_LONG_VERSION, _MOST_BYTES) if is_far else (_VERSION, self._offset)
        rest = (len(extra), 0, 0, 0, _READABLE, offset)
        self._list.write(_CENTRAL.pack(b"PK\1\2", version, _UNIX, version, *about, *rest) + raw + extra)
        self._put(_LOCAL.pack(b"PK\3\4", version, *about, 0) + raw)
        self._files += 1

    def _put(self, data: bytes) -> None:
        self._out.write(data)
        self._offset += len(data)

    def _end(self) -> None:
        begin, size = self._offset, self._list.tell()
        self._list.seek(0)
        shutil.copyfileobj(self._list, self._out)
        if self._files > _MOST_FILES or begin + size > _MOST_BYTES:
            counts = (self._files, self._files, size, begin)
            self._out.write(_LONG_END.pack(b"PK\6\6", _LONG_END.size - 12, _LONG_VERSION, _LONG_VERSION, 0, 0, *counts))
            self._out.write(_LONG_END_PLACE.pack(b"PK\6\7", 0, begin + size, 1))
        files = min(self._files, _MOST_FILES)
        self._out.write(_END.pack(b"PK\5\6", 0, 0, files, files, min(size, _MOST_BYTES), min(begin, _MOST_BYTES), 0))


def _temporary() -> BinaryIO:
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))


class _Packer:
    """Packs what is written to it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._stream = isal_zlib.compressobj(_LEVEL, wbits=-15)
        self._checksum = self._size = 0

    def write(self, data: bytes) -> int:
        self._checksum, self._size = zlib.crc32(data, self._checksum), self._size + len(data)
        self._out.write(self._stream.compress(data))
        return len(data)

    def end(self) -> _FileHead:
        self._out.write(self._stream.flush())
        return _FileHead(self._checksum, self._out.tell(), self._size)
