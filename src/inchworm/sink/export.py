"""Exports: a run's record as URLs, JSON lines or one WARC file, as it stood when the export began."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from inchworm.errors import Broken

FORMATS = ("urls", "jsonl", "warc")
_CHUNK = 1 << 20


def urls(addresses: Iterable[str], out: BinaryIO) -> int:
    """One URL per line, as requested."""
    return _count(out.write(address.encode() + b"\n") for address in addresses)


def jsonl(visits: Iterable[Mapping[str, Any]], alternates: Callable[[str], list[str]], out: BinaryIO) -> int:
    """One JSON object per visit, in the order of record."""
    return _count(out.write(_line(visit, alternates)) for visit in visits)


def _line(visit: Mapping[str, Any], alternates: Callable[[str], list[str]]) -> bytes:
    fields = {
        "url": visit["url"],
        "request_url": visit["request_url"],
        "seq": visit["seq"],
        "outcome": visit["outcome"],
        "failure": visit["failure"],
        "message": visit["message"],
        "status": visit["status"],
        "fetched_at": iso(visit["at_ms"]),
        "seconds": visit["millis"] / 1000,
        "bytes": visit["size"],
        "content_type": visit["content_type"],
        "etag": visit["etag"],
        "last_modified": visit["last_modified"],
        "content_hash": visit["text_hash"],
        "payload_hash": visit["payload"],
        "title": visit["title"],
        "language": visit["language"],
        "canonical": visit["canonical"],
        "meta": visit["meta"],
        "redirect": visit["redirect"],
        "source": visit["source"],
        "depth": visit["depth"],
        "hops": visit["hops"],
        "found_on": visit["found_on"],
        "links": visit["links"],
        "alternate_urls": alternates(visit["text_hash"]) if visit["outcome"] == "page" else [],
        "archive": {"file": visit["file"], "offset": visit["offset"], "length": visit["length"]},
    }
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def warc(folder: Path, ranges: Iterable[tuple[str, int]], out: BinaryIO) -> int:
    """The run's archive as one file: WARC files may simply follow one another."""
    files = list(ranges)
    for name, length in files:
        _copy(folder / name, length, out)
    return len(files)


def _copy(path: Path, length: int, out: BinaryIO) -> None:
    with path.open("rb") as source:
        left = length
        while left and (chunk := source.read(min(left, _CHUNK))):
            out.write(chunk)
            left -= len(chunk)
    if left:
        raise Broken(f"{path} is shorter than what was committed.", "`inchworm doctor` tells more.")


def iso(at_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _count(steps: Iterator[Any]) -> int:
    return sum(1 for _ in steps)
