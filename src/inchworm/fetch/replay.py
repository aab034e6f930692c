"""Fetching from an archive instead of the web: the answers of an earlier crawl, read back from WARC files.

The index is a table in memory from URL to place. When a URL was archived more than once, its last record
counts. How records are read is passed in, because the archive is a neighbour of this package, no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from inchworm.errors import WrongUse
from inchworm.fetch.decode import Head, answer, read_head
from inchworm.model import Failure, Reply, Request, WarcRecord
from inchworm.rules.web.url import canonicalize

_Place = tuple[Path, int]

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_CUT_SHORT = {"length": "too_large", "time": "timeout"}
_FOR_ALL = Request("", max_body_bytes=0)


class ReplayFetcher:
    """A `ports.Fetcher` that never touches the network."""

    def __init__(
        self,
        paths: Sequence[Path],
        records: Callable[[Path, Callable[[int], None]], Iterator[WarcRecord]],
        record_at: Callable[[Path, int], WarcRecord],
    ) -> None:
        self._record_at = record_at
        self._by_url: dict[str, _Place] = {}
        self._by_identity: dict[str, _Place] = {}
        self._by_date: dict[tuple[str, str], _Place] = {}
        self._by_digest: dict[str, _Place] = {}
        damage: list[_Place] = []
        for path in paths:
            for record in records(path, lambda offset, path=path: damage.append((path, offset))):  # type: ignore[misc]
                self._add(record, (path, record.offset))
        self._missing = "no record of this URL"
        if damage:
            self._missing += f"; {damage[0][0].name} is damaged at {damage[0][1]}"
            self._missing += f" and {len(damage) - 1} more places" if len(damage) > 1 else ""

    def _add(self, record: WarcRecord, place: _Place) -> None:
        kind = record.headers.get("warc-type")
        url = _uri(record, "warc-target-uri")
        if kind not in ("response", "revisit") or not url.startswith(("http:", "https:")):
            return
        self._by_url[url] = place
        self._by_identity[canonicalize(url) or url] = place
        if kind == "response":
            self._by_date[url, record.headers.get("warc-date", "")] = place
            self._by_digest[record.headers.get("warc-payload-digest", "")] = place

    async def fetch(self, request: Request) -> Reply:
        """What the archive has for a URL as it is written, or else for its canonical form."""
        place = self._by_url.get(request.url) or self._by_identity.get(canonicalize(request.url) or "")
        if place is None:
            return Failure("not_in_archive", self._missing)
        try:
            return self._answer(self._record_at(*place), request)
        except WrongUse as error:
            return Failure("not_in_archive", f"its record is damaged: {error.message}")

    async def close(self) -> None:
        """Nothing is kept open."""

    def _answer(self, record: WarcRecord, request: Request) -> Reply:
        head, payload, trouble = _parts(record)
        if record.headers.get("warc-type") == "revisit":
            original = self._original(record)
            if original is None:
                return Failure("not_in_archive", "the record refers to one that is not here")
            first_head, payload, trouble = _parts(original)
            head = first_head if head is None or head.status == 304 else head
        if head is None:
            return Failure("protocol_error", "the record holds no HTTP answer")
        return answer(head, payload, request, 0.0, trouble)

    def _original(self, revisit: WarcRecord) -> WarcRecord | None:
        """The record whose payload a revisit stands for."""
        named = (_uri(revisit, "warc-refers-to-target-uri"), revisit.headers.get("warc-refers-to-date", ""))
        digest = revisit.headers.get("warc-payload-digest")
        place = self._by_date.get(named) or (self._by_digest.get(digest) if digest else None)
        return self._record_at(*place) if place else None


def answer_of(record: WarcRecord) -> Reply:
    """The answer that a record holds, as it was when it came."""
    head, payload, trouble = _parts(record)
    if head is None:
        return Failure("protocol_error", "the record holds no HTTP answer")
    return answer(head, payload, _FOR_ALL, 0.0, trouble)


def _uri(record: WarcRecord, name: str) -> str:
    """A URI of a record. The first version of the standard puts it in angle brackets, and wget still does."""
    return record.headers.get(name, "").removeprefix("<").removesuffix(">")


def _parts(record: WarcRecord) -> tuple[Head | None, bytes, Failure | None]:
    """Head and payload of an archived answer, and what the archive says is wrong with it."""
    content = record.content
    end = _HEAD_END.search(content)
    at = end.end() if end else len(content)
    head, payload = read_head(content[:at]), content[at:]
    whole = True
    if head is not None and "chunked" in head.headers.get("transfer-encoding", "").lower():
        payload, whole = _without_chunks(payload)
    reason = record.headers.get("warc-truncated", "" if whole else "disconnect")
    if not reason:
        return head, payload, None
    trouble = Failure(_CUT_SHORT.get(reason, "truncated"), f"the archive has only a part of it ({reason})")
    return head, payload, trouble


def _without_chunks(body: bytes) -> tuple[bytes, bool]:
    """The body without chunks, and whether their last one is there.

    Some archives keep chunks as they came, others only the header that speaks of them; a body that does not
    begin with a whole chunk is taken as it is.
    """
    parts: list[bytes] = []
    at = 0
    while (chunk := _CHUNK.match(body, at)) is not None:
        size = int(chunk[1], 16)
        if size == 0:
            return b"".join(parts), True
        at = chunk.end() + size
        if not body.startswith(b"\r\n", at):
            break
        parts.append(body[chunk.end() : at])
        at += 2
    return (b"".join(parts), False) if parts else (body, True)
