"""Visits on record: those of a URL, of a run in the order of record, or such as fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from inchworm.model import Json
from inchworm.store.crawl.joins import ADDRESS, ROW
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database

SPAN = 100_000
"""So many steps of a run are searched at a time for pages that fit."""

_PAGE = 500
_VISITS = (
    f"SELECT v.log_id, v.run_id, v.seq, v.session, u.url, {ADDRESS}, v.kind, v.outcome,"
    " v.requested, v.failure, v.message, v.status, v.at_ms, v.millis, v.size, v.content_type, v.etag,"
    " v.last_modified, v.payload, v.text_hash, v.title, v.language, v.canonical,"
    ' v.change, v.note, v.missing, v.meta, target.url, v.reader, a.name, v."offset", v.length, v.revisit,'
    " LENGTH(v.links) / 4, f.source, f.depth, f.hops, on_page.url"
    " FROM visit v JOIN url u USING (url_id)"
    f" LEFT JOIN {ROW}"
    " LEFT JOIN url on_page ON on_page.url_id = f.found_on"
    " LEFT JOIN url target ON target.url_id = v.redirect LEFT JOIN archive a ON a.file_id = v.file_id"
)

_ASKS = "{0}.requested = 1 AND {0}.kind IN ('page', 'resource')"
# The plus keeps SQLite on the index of URLs: a URL has few visits, a run has many.
_ASKED_BEFORE = (
    "SELECT 1 FROM visit e WHERE e.url_id = v.url_id AND e.run_id = v.run_id AND /*sqlite +*/e.seq < v.seq"
    f" AND {_ASKS.format('e')} AND COALESCE(e.request_url, u.url) = {ADDRESS}"
)
_REQUESTED = (
    f"SELECT {ADDRESS} FROM visit v JOIN url u USING (url_id) WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ?"
    f" AND {_ASKS.format('v')} AND NOT EXISTS ({_ASKED_BEFORE}) ORDER BY v.seq"
)


class RecordedVisit(NamedTuple):
    """A visit with the addresses that its numbers stand for, and what the frontier has on its URL."""

    log_id: int
    run_id: int
    seq: int
    session: int
    url: str
    request_url: str
    kind: str
    outcome: str
    requested: int
    failure: str | None
    message: str | None
    status: int
    at_ms: int
    millis: int
    size: int
    content_type: str | None
    etag: str | None
    last_modified: str | None
    payload: str | None
    text_hash: str | None
    title: str | None
    language: str | None
    canonical: str | None
    change: str | None
    note: str | None
    missing: int
    meta: Mapping[str, Json]
    redirect: str | None
    reader: str | None
    file: str | None
    offset: int | None
    length: int | None
    revisit: int
    links: int
    source: str
    depth: int
    hops: int
    found_on: str | None


_PAYLOAD, _META, _LINKS = (RecordedVisit._fields.index(name) for name in ("payload", "meta", "links"))


class WantedVisits(NamedTuple):
    """Which visits are wanted: with this outcome, kind of failure or change, and this in their URL. None: any."""

    outcome: str | None = None
    failure: str | None = None
    change: str | None = None
    text: str | None = None


def recorded(db: Database, where: str, *values: object) -> Iterator[RecordedVisit]:
    """Visits by a condition on `v`, with its order."""
    for row in db.execute(f"{_VISITS} WHERE {where}", values).fetchall():
        before, (payload, text_hash), said = row[:_PAYLOAD], row[_PAYLOAD : _PAYLOAD + 2], row[_PAYLOAD + 2 : _META]
        made = (
            *before,
            payload.hex() if payload else None,
            text_hash.hex() if text_hash else None,
            *said,
            json.loads(row[_META]) if row[_META] else {},
            *row[_META + 1 : _LINKS],
            row[_LINKS] or 0,
            *row[_LINKS + 1 :],
        )
        yield RecordedVisit._make(made)


class VisitReader:
    """The visits of a crawl."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def of_url(self, run_id: int, url_id: int) -> Sequence[RecordedVisit]:
        """Those of a run to a URL, in the order of record."""
        # The plus keeps SQLite off the index of the record, which would have it read the whole run.
        where = "v.run_id = ? AND v.url_id = ? ORDER BY /*sqlite +*/v.seq"
        return list(recorded(self._db, where, run_id, url_id))

    def newest(self, run_id: int, url_id: int) -> RecordedVisit | None:
        """The last one of a run to a URL."""
        where = "v.run_id = ? AND v.url_id = ? ORDER BY /*sqlite +*/v.seq DESC LIMIT 1"
        return next(recorded(self._db, where, run_id, url_id), None)

    def of_run(self, run_id: int, until: int) -> Iterator[RecordedVisit]:
        """Every visit to a page or resource up to a seq, in the order of record."""
        where = "v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.kind IN ('page', 'resource') ORDER BY v.seq"
        for after in range(0, until, _PAGE):
            yield from recorded(self._db, where, run_id, after, min(after + _PAGE, until))

    def that_failed(self, run_id: int, kind: str | None) -> Iterator[RecordedVisit]:
        """Those after which a URL counts as failed, in this way or any, in the order of record."""
        where = (
            "v.run_id = ? AND v.outcome = 'failed' AND f.done = v.seq AND f.state = 'done'"
            " AND v.failure = COALESCE(?, v.failure) ORDER BY v.seq"
        )
        return recorded(self._db, where, run_id, kind)

    def settled(self, run_id: int, wanted: WantedVisits, after: int, limit: int) -> Sequence[RecordedVisit]:
        """What became of pages and resources, one visit each, in the order of record, from behind a seq on. At most
        `SPAN` steps of the run are looked at."""
        conditions, values = _conditions(wanted)
        urls = " /*sqlite CROSS*/ JOIN url u ON u.url_id = v.url_id" if wanted.text is not None else ""
        # CROSS JOIN and the plus signs keep SQLite on the order of record, so that no page costs more than the first.
        rows = self._db.execute(
            f"SELECT v.seq FROM visit v{urls} /*sqlite CROSS*/ JOIN {ROW}"
            " AND f.done = v.seq WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.kind IN ('page', 'resource')"
            f"{conditions} ORDER BY v.seq LIMIT ?",
            (run_id, after, after + SPAN, *values, limit),
        )
        found = [seq for (seq,) in rows]
        return (
            list(recorded(self._db, "v.run_id = ? AND v.seq = ANY (?) ORDER BY v.seq", run_id, found)) if found else []
        )

    def requested_urls(self, run_id: int, until: int) -> Iterator[str]:
        """Every URL requested, as requested, once, in the order of record."""
        for after in range(0, until, _PAGE):
            rows = self._db.execute(_REQUESTED, (run_id, after, min(after + _PAGE, until)))
            yield from (address for (address,) in rows.fetchall())


def _conditions(wanted: WantedVisits) -> tuple[str, list[str]]:
    """What is to be true of a visit, and the values in it."""
    given = {f"/*sqlite +*/v.{name}": value for name, value in wanted._asdict().items() if name != "text"}
    conditions = "".join(f" AND {column} = ?" for column, value in given.items() if value is not None)
    values = [value for value in given.values() if value is not None]
    if wanted.text is not None:
        # Not LIKE: whatever is asked for means itself.
        conditions += " AND (instr(lower(u.url), lower(?)) > 0 OR instr(lower(v.request_url), lower(?)) > 0)"
        values += [wanted.text, wanted.text]
    return conditions, values
