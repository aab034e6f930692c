"""A run's record as one WARC file: record by record, in the order of record, as they lie in the archive.

A record that is damaged is left out. Which pages are lost with it is told, and written down in a last record.
"""

from __future__ import annotations

import gzip
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from inchworm import __version__
from inchworm.errors import Broken
from inchworm.sink.documents import MOST_LOST, Written

_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_DOCTOR = "`inchworm doctor` tells more."


class _Range(NamedTuple):
    """Records that lie one after the other in a file."""

    file: str
    start: int
    end: int
    records: int


Spot = tuple[str, int, int, str]
"""File, offset and length of a record, and the URL for which it is wanted."""

Check = Callable[[Path, int, int], bool]
"""Whether at an offset of a file a record of this length lies, as it was written."""


def warc(folder: Path, spots: Iterable[Spot], out: BinaryIO, is_whole: Check) -> Written:
    """Copy the records at these places, each once; how many there were, and which pages are lost.

    Every record is a gzip member of its own, so they can be put together in any order.
    """
    out.write(gzip.compress(_record("warcinfo", _ABOUT), mtime=0))
    count, lost = 0, dict[str, None]()
    for name, ranges in groupby(_joined(_once(_whole(folder, spots, is_whole, lost))), key=lambda one: one.file):
        path = folder / name
        with _opened(path) as source:
            for one in ranges:
                _copy(source, one, path, out)
                count += one.records
    if lost:
        out.write(gzip.compress(_record("metadata", "".join(f"lost: {url}\r\n" for url in lost)), mtime=0))
    return Written(count, len(lost), tuple(lost)[:MOST_LOST])


def _whole(folder: Path, spots: Iterable[Spot], is_whole: Check, lost: dict[str, None]) -> Iterator[Spot]:
    """The records that can be read; the URLs of the others are added to `lost`."""
    broken: set[tuple[str, int]] = set()
    for spot in spots:
        file, offset, length, url = spot
        if (file, offset) not in broken and is_whole(folder / file, offset, length):
            yield spot
        else:
            broken.add((file, offset))
            lost[url] = None


def _once(spots: Iterable[Spot]) -> Iterator[_Range]:
    """Each spot the first time it comes. What was there is kept as stretches, which are few, however many the spots."""
    seen: dict[str, tuple[list[int], list[int]]] = {}
    for file, offset, length, _ in spots:
        starts, ends = seen.setdefault(file, ([], []))
        at = bisect_right(starts, offset) - 1
        if at >= 0 and offset < ends[at]:
            continue
        if at >= 0 and offset == ends[at]:
            ends[at] = offset + length
        else:
            starts.insert(at + 1, offset)
            ends.insert(at + 1, offset + length)
        yield _Range(file, offset, offset + length, 1)


def _joined(spots: Iterable[_Range]) -> Iterator[_Range]:
    """Neighbours as one range, to be copied in one go."""
    last: _Range | None = None
    for spot in spots:
        if last is not None and (spot.file, spot.start) == (last.file, last.end):
            last = last._replace(end=spot.end, records=last.records + 1)
            continue
        if last is not None:
            yield last
        last = spot
    if last is not None:
        yield last


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise Broken(f"{path} cannot be read: {error.strerror}.", _DOCTOR) from error


def _copy(source: BinaryIO, one: _Range, path: Path, out: BinaryIO) -> None:
    source.seek(one.start)
    left = one.end - one.start
    is_first = True
    while left and (chunk := source.read(min(left, _CHUNK))):
        if is_first and not chunk.startswith(_GZIP_MAGIC):
            raise Broken(f"{path} has no record at {one.start}.", _DOCTOR)
        out.write(chunk)
        left -= len(chunk)
        is_first = False
    if left:
        raise Broken(f"{path} is shorter than what was committed.", _DOCTOR)


_ABOUT = (
    f"software: inchworm/{__version__}\r\n"
    "format: WARC File Format 1.1\r\n"
    "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
    "description: the record of one run, in its order\r\n"
)


def _record(kind: str, fields: str) -> bytes:
    """A record that tells something about the file."""
    block = fields.encode("utf-8", "replace")
    head = (
        "WARC/1.1\r\n"
        f"WARC-Type: {kind}\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
        f"WARC-Date: {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\r\n"
        "Content-Type: application/warc-fields\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"
