"""The bodies that a crawl's archive holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from inchworm.archive import reader as warc_reader
from inchworm.archive import warc
from inchworm.errors import WrongUse
from inchworm.fetch import replay
from inchworm.model import Reply, Response, Version
from inchworm.store.crawl.read.visits import RecordedVisit
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.crawl.visits import Spot

_NO_BYTES = hashlib.sha256().digest()
_NOTHING = Response(200, b"", {}, b"", b"", 0.0)
EXPECTED = 1024
"""How many versions are kept at hand until they are asked about."""


class Bodies:
    """What the archive holds, by the digest of its payload."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._store = store
        self._archive = archive
        self._files = warc_reader.OpenFiles(archive)
        self._sizes: dict[str, int] = {}
        self._expected: dict[bytes, Spot] = {}

    def expect(self, versions: Sequence[Version]) -> None:
        """These are asked about next: where their bodies lie is looked up together."""
        self._look_up({one.payload for one in versions if one.revisit and one.payload})

    def expect_visits(self, visits: Iterable[RecordedVisit]) -> None:
        """The same for visits, of which only some do not know by themselves where their bodies lie."""
        self._look_up({bytes.fromhex(one.payload) for one in visits if one.payload and _own_spot(one) is None})

    def _look_up(self, payloads: set[bytes]) -> None:
        if len(self._expected) > EXPECTED:
            self._expected.clear()
        self._expected |= self._store.archive.spots(payloads)

    def has(self, version: Version) -> bool:
        """Whether the body of a version is still there. Looked up once per file."""
        if version.payload is None:
            return False
        name, offset = version.file, version.offset
        if version.revisit:
            name, offset, _ = self._spot(version.payload) or ("", 0, 0)
        if name not in self._sizes:
            path = self._archive / name
            self._sizes[name] = path.stat().st_size if name and path.exists() else 0
        return self._sizes[name] > offset

    def _spot(self, payload: bytes) -> Spot | None:
        return self._expected.get(payload) or self._store.archive.spot(payload)

    def of(self, payload: bytes | None) -> Response | None:
        """The answer that brought this payload; None when it is lost."""
        if payload == _NO_BYTES:
            return _NOTHING  # there is nothing in it that could be lost
        spot = self._spot(payload) if payload else None
        return self._response(spot, payload) if spot and payload else None

    def of_visit(self, visit: RecordedVisit) -> Response | None:
        """The answer that a visit read."""
        return self.own(visit) or self.of(bytes.fromhex(visit.payload) if visit.payload else None)

    def own(self, visit: RecordedVisit) -> Response | None:
        """The same, where the visit knows by itself where it lies, as most do: the store is not asked."""
        payload = bytes.fromhex(visit.payload) if visit.payload else None
        spot = _own_spot(visit)
        if payload is None or payload == _NO_BYTES or spot is None:
            return None
        return self._response(spot, payload)

    def at(self, file: str, offset: int) -> Reply | None:
        """The answer in one place of the archive."""
        try:
            return replay.answer_of(warc_reader.record_at(self._archive / file, offset))
        except WrongUse:
            return None

    def _response(self, spot: Spot, payload: bytes) -> Response | None:
        try:
            record = self._files.record(*spot)
        except WrongUse:
            return None
        if not warc.is_digest(record.headers.get("warc-payload-digest", ""), payload):
            return None
        reply = replay.answer_of(record)
        return reply if isinstance(reply, Response) else None


def _own_spot(visit: RecordedVisit) -> Spot | None:
    if visit.file is None or visit.offset is None or visit.length is None or visit.revisit:
        return None
    return visit.file, visit.offset, visit.length
