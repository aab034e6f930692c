"""Writing WARC 1.1: one gzip member per record, so that a file cut at any record's end is a valid file.

A file belongs to one run and one token. Nothing is ever appended to another token's file: whoever takes a run
over starts files of its own, and an old owner that wakes up can only spoil files that no longer count.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from isal import isal_zlib

from inchworm.errors import Broken
from inchworm.model import Record, Spot
from inchworm.ports import Original

ROTATE_BYTES = 1_000_000_000
_GZIP = 31
_LEVEL = 2
_BUFFER_BYTES = 4_000_000
"""More than this is not held back until `sync`: it may be cut away again as well from the disk as from memory."""

_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class WarcWriter:
    """Appends records to numbered files in a folder. Creates a file only when there is something to put in."""

    def __init__(self, folder: Path, prefix: str, info: dict[str, str], rotate_bytes: int = ROTATE_BYTES) -> None:
        self._folder = folder
        self._prefix = prefix
        self._info = info
        self._rotate_bytes = rotate_bytes
        self._number = 0
        self._name = ""
        self._descriptor = -1
        self._length = 0
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._unsynced = False
        self._new_file = False

    def append(self, record: Record, at_ms: int, original: Original | None) -> Spot:
        """Put a record at the end; its place. It lies in memory until `sync`."""
        if self._descriptor < 0 or self._length + self._buffered > self._rotate_bytes:
            self._open(at_ms)
        member = isal_zlib.compress(_response(record, at_ms, original), _LEVEL, _GZIP)
        spot = Spot(self._name, self._length + self._buffered, len(member))
        self._buffer.append(member)
        self._buffered += len(member)
        if self._buffered > _BUFFER_BYTES:
            with self._plain_errors():
                self._flush()
        return spot

    def sync(self) -> None:
        """Make everything appended so far survive a power cut."""
        if not self._unsynced and not self._buffer:
            return
        with self._plain_errors():
            self._flush()
            os.fdatasync(self._descriptor)
            self._unsynced = False
            if self._new_file:
                _sync_folder(self._folder)
                _sync_folder(self._folder.parent)
                self._new_file = False

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Broken(
                f"The archive {self._folder / self._name} cannot be written: {error.strerror}.",
                "Free some disk space and run the same command again; nothing committed is lost.",
            ) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self, at_ms: int) -> None:
        self.sync()
        self.close()
        self._number += 1
        self._name = f"{self._prefix}-{self._number:05}.warc.gz"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._folder / self._name, flags, 0o644)
        except OSError as error:
            raise Broken(
                f"The archive file {self._folder / self._name} cannot be made: {error.strerror}.",
                "Check the folder and the disk, then run the same command again.",
            ) from error
        self._length = 0
        self._new_file = True
        member = isal_zlib.compress(_warcinfo(self._name, self._info, at_ms), _LEVEL, _GZIP)
        self._buffer.append(member)
        self._buffered += len(member)

    def _flush(self) -> None:
        self._unsynced = True
        data = memoryview(self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer))
        while data:
            written = os.write(self._descriptor, data)
            self._length += written
            data = data[written:]
        self._buffer.clear()
        self._buffered = 0


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(sha256: bytes) -> str:
    """A SHA-256 the way WARC writes it."""
    return "sha256:" + base64.b32encode(sha256).decode()


def _response(record: Record, at_ms: int, original: Original | None) -> bytes:
    block = (record.head, b"" if original else record.payload)
    fields = [
        ("WARC-Type", "revisit" if original else "response"),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
        ("WARC-Date", _date(at_ms)),
        ("WARC-Target-URI", record.url),
        ("Content-Type", "application/http; msgtype=response"),
        ("WARC-Payload-Digest", digest(record.digest)),
        ("WARC-Block-Digest", digest(_sha256(block))),
    ]
    if original:
        fields += [
            ("WARC-Profile", _PROFILE),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", _date(original.at_ms)),
        ]
    if record.truncated:
        fields.append(("WARC-Truncated", record.truncated))
    return _assemble(fields, block)


def _warcinfo(name: str, info: dict[str, str], at_ms: int) -> bytes:
    block = ("".join(f"{key}: {_one_line(value)}\r\n" for key, value in info.items()).encode(),)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
        ("WARC-Date", _date(at_ms)),
        ("WARC-Filename", name),
        ("Content-Type", "application/warc-fields"),
    ]
    return _assemble(fields, block)


def _assemble(fields: list[tuple[str, str]], block: tuple[bytes, ...]) -> bytes:
    lines = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields)
    length = sum(map(len, block))
    return b"".join((f"WARC/1.1\r\n{lines}Content-Length: {length}\r\n\r\n".encode(), *block, b"\r\n\r\n"))


def _sha256(parts: tuple[bytes, ...]) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.digest()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _date(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"


def recover(folder: Path, committed: dict[str, int]) -> list[str]:
    """Make a folder hold exactly what was committed: cut torn tails, remove files nobody knows.

    Returns the names of files that are missing or too short, which no crash of ours can cause.
    """
    if not folder.exists():
        return sorted(committed)
    broken = []
    for path in folder.glob("*.warc.gz"):
        length = committed.get(path.name)
        if length is None:
            path.unlink()
        elif path.stat().st_size > length:
            os.truncate(path, length)
    for name, length in committed.items():
        path = folder / name
        if not path.exists() or path.stat().st_size < length:
            broken.append(name)
    return sorted(broken)


def copy_prefix(folder: Path, name: str, length: int, new_name: str) -> None:
    """The committed part of a file under a new name, for when its old owner may still be alive."""
    if not (folder / name).exists():
        raise Broken(f"{folder / name} is missing.", "`inchworm doctor` tells more.")
    with (folder / name).open("rb") as source, (folder / new_name).open("xb") as target:
        left = length
        while left:
            chunk = source.read(min(left, 1 << 20))
            if not chunk:
                raise Broken(f"{folder / name} is shorter than what was committed.", "`inchworm doctor` tells more.")
            target.write(chunk)
            left -= len(chunk)
        target.flush()
        os.fsync(target.fileno())
    _sync_folder(folder)
