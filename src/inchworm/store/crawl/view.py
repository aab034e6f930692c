"""What people and exports ask of a crawl's store: one URL, failures, counts, the record in order, checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from inchworm.store.crawl import votes
from inchworm.store.crawl.earlier import IS_WHOLE
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.database import NO_LIMIT

SPAN = 100_000
"""So many steps of a run are searched at a time for pages that fit."""

_PAGE = 500
_WHY = (
    "no_validators",
    "validators_changed",
    "distrusted",
    "shared_validators",
    "sampled",
    "reader_changed",
    "asked_in_full",
)
_FOR_EVER = 1 << 62
_SAME = (
    "SELECT v.seq, u.url, v.text_hash FROM visit v JOIN url u USING (url_id) JOIN frontier f ON f.run_id = v.run_id"
    " AND f.url_id = v.url_id AND f.done = /*sqlite +*/v.seq WHERE v.run_id = ? AND v.text_hash = ANY (?)"
    " AND /*sqlite +*/v.seq <= ? AND v.outcome = '{}' LIMIT ?"
)


class Kept(NamedTuple):
    """A record that the archive should have."""

    file: str
    offset: int
    payload: bytes
    url: str


class Archived(NamedTuple):
    """A record of the archive, and which page of which run it was written for."""

    file: str
    offset: int
    length: int
    payload: bytes | None
    is_revisit: int
    url: str
    run: int


class Sought(NamedTuple):
    """What pages are wanted: those with this outcome, kind of failure or change, and this in their URL. None: any."""

    outcome: str | None = None
    failure: str | None = None
    change: str | None = None
    text: str | None = None


class View:
    """Questions to a crawl's store. Reads only, in small steps, so that it never holds the owner up."""

    def __init__(self, store: CrawlStore) -> None:
        self._store = store
        self._db = store.db

    def entry(self, run_id: int, url: str) -> dict[str, Any] | None:
        """All that a run knows of one URL."""
        known = self._store.known(run_id, [url]).get(url)
        if known is None or not known.in_run:
            return None
        cursor = self._db.execute(
            "SELECT u.url, f.request_url, f.state, f.reason, f.kind, f.source, f.seed, s.url AS seed_url, f.depth,"
            " f.hops, f.found, on_page.url AS found_on, f.place_seq, f.place_idx, f.attempts, f.not_before_ms, f.chain,"
            " f.lastmod, f.done FROM frontier f JOIN url u USING (url_id)"
            " LEFT JOIN url on_page ON on_page.url_id = f.found_on"
            " LEFT JOIN seed s ON s.run_id = f.run_id AND s.number = f.seed WHERE f.run_id = ? AND f.url_id = ?",
            (run_id, known.url_id),
        )
        row = _dict(cursor, cursor.fetchone())
        row["visits"] = self._visits_of(run_id, known.url_id)
        return row

    def _visits_of(self, run_id: int, url_id: int) -> list[dict[str, Any]]:
        # The plus keeps SQLite off the index of the record, which would have it read the whole run.
        where = "v.run_id = ? AND v.url_id = ? ORDER BY /*sqlite +*/v.seq"
        return [self._with_alternates(visit) for visit in self.visits(where, run_id, url_id)]

    def _with_alternates(self, visit: dict[str, Any]) -> dict[str, Any]:
        visit["alternate_urls"] = self.alternates(visit["run_id"], visit["text_hash"])
        return visit

    def alternates(
        self, run_id: int, text_hash: str | None, until: int = _FOR_EVER, limit: int = NO_LIMIT
    ) -> list[str]:
        """URLs of the run with this text up to a seq, the primary one first; of each outcome so many at most."""
        if text_hash is None:
            return []
        return self.alternates_of_all(run_id, [text_hash], until, limit).get(text_hash, [])

    def alternates_of_all(
        self, run_id: int, text_hashes: Iterable[str], until: int = _FOR_EVER, limit: int = NO_LIMIT
    ) -> dict[str, list[str]]:
        """The same for many texts."""
        # One question per outcome, because each has an index of its own; the plus keeps SQLite to it.
        rows = [row for one in ("page", "duplicate") for row in self._same(run_id, text_hashes, one, until, limit)]
        found: dict[str, list[str]] = {}
        for _, url, text_hash in sorted(rows):
            found.setdefault(text_hash.hex(), []).append(url)
        return found

    def primaries(self, run_id: int, text_hashes: Iterable[str]) -> dict[str, str]:
        """Of each text the page of a run that has it for its own."""
        return {one.hex(): url for _, url, one in self._same(run_id, text_hashes, "page", _FOR_EVER, NO_LIMIT)}

    def _same(
        self, run_id: int, text_hashes: Iterable[str], outcome: str, until: int, limit: int
    ) -> list[tuple[int, str, bytes]]:
        wanted = [bytes.fromhex(one) for one in text_hashes]
        return self._db.execute(_SAME.format(outcome), (run_id, wanted, until, limit)).fetchall()

    def visits(self, where: str, *arguments: Any) -> Iterator[dict[str, Any]]:
        """Visits as people are told of them; `where` is a condition on `v`, with its order."""
        cursor = self._db.execute(
            "SELECT v.log_id, v.run_id, v.seq, v.session, u.url, COALESCE(v.request_url, u.url) AS request_url, v.kind, v.outcome,"
            " v.requested, v.failure, v.message, v.status, v.at_ms, v.millis, v.size, v.content_type, v.etag,"
            " v.last_modified, v.payload, v.text_hash, v.title, v.language, v.canonical,"
            ' v.change, v.note, v.missing, v.meta, target.url AS redirect, v.reader, a.name AS file, v."offset", v.length, v.revisit,'
            " LENGTH(v.links) / 4 AS links, f.source, f.depth, f.hops, on_page.url AS found_on"
            " FROM visit v JOIN url u USING (url_id)"
            " LEFT JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
            " LEFT JOIN url on_page ON on_page.url_id = f.found_on"
            " LEFT JOIN url target ON target.url_id = v.redirect LEFT JOIN archive a ON a.file_id = v.file_id"
            f" WHERE {where}",
            arguments,
        )
        names = [column[0] for column in cursor.description]
        for row in cursor.fetchall():
            visit = dict(zip(names, row, strict=True))
            for name in ("payload", "text_hash"):
                visit[name] = visit[name].hex() if visit[name] else None
            visit["links"] = visit["links"] or 0
            visit["meta"] = json.loads(visit["meta"]) if visit["meta"] else {}
            yield visit

    def newest(self, run_id: int, url_id: int) -> dict[str, Any] | None:
        """The last visit of a run to a URL."""
        return next(
            self.visits("v.run_id = ? AND v.url_id = ? ORDER BY /*sqlite +*/v.seq DESC LIMIT 1", run_id, url_id), None
        )

    def record(self, run_id: int, until: int) -> Iterator[dict[str, Any]]:
        """Every visit to a page or resource up to a seq, in the order of record."""
        after = 0
        while after < until:
            upper = min(after + _PAGE, until)
            where = "v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.kind IN ('page', 'resource') ORDER BY v.seq"
            yield from self.visits(where, run_id, after, upper)
            after = upper

    def requested_urls(self, run_id: int, until: int) -> Iterator[str]:
        """Every URL requested, as requested, once, in the order of record."""
        rows = self._db.execute(
            "SELECT MIN(v.seq) AS first, COALESCE(v.request_url, u.url) AS address FROM visit v JOIN url u USING (url_id)"
            " WHERE v.run_id = ? AND v.seq <= ? AND v.requested = 1 AND v.kind IN ('page', 'resource')"
            " GROUP BY address ORDER BY first",
            (run_id, until),
        )
        return (address for _, address in rows.fetchall())

    def failures(self, run_id: int, kind: str | None) -> Iterator[dict[str, Any]]:
        where = (
            "v.run_id = ? AND v.outcome = 'failed' AND f.done = v.seq AND f.state = 'done'"
            " AND v.failure = COALESCE(?, v.failure) ORDER BY v.seq"
        )
        return self.visits(where, run_id, kind)

    def first_failure(self, run_id: int) -> tuple[str, str, str]:
        """URL, kind and message of what failed first, of what is failed now."""
        row = self._db.execute(
            "SELECT COALESCE(v.request_url, u.url), v.failure, COALESCE(v.message, '') FROM visit v JOIN url u USING (url_id)"
            " JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id AND f.done = v.seq"
            " WHERE v.run_id = ? AND v.outcome = 'failed' ORDER BY v.seq LIMIT 1",
            (run_id,),
        ).fetchone()
        url, kind, message = row
        return url, kind, message

    def count_failed(self, run_id: int, kind: str) -> int:
        """How many URLs are failed in this way."""
        row = self._db.execute(
            "SELECT COUNT(*) FROM visit v JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id AND f.done = v.seq"
            " WHERE v.run_id = ? AND v.outcome = 'failed' AND v.failure = ?",
            (run_id, kind),
        ).fetchone()
        return int(row[0])

    def failed_since(self, run_id: int, after: int, until: int) -> list[tuple[str, str, str]]:
        """URL, kind and message of what failed in these steps of a run, tries that will be repeated included."""
        return self._db.execute(
            "SELECT COALESCE(v.request_url, u.url), v.failure, COALESCE(v.message, '') FROM visit v JOIN url u USING (url_id)"
            " WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.failure IS NOT NULL ORDER BY v.seq LIMIT 1000",
            (run_id, after, until),
        ).fetchall()

    def settled(self, run_id: int, sought: Sought, after: int, limit: int) -> list[dict[str, Any]]:
        """What became of pages and resources, one visit each, in the order of record, from behind a seq on. At most
        `SPAN` steps of the run are looked at."""
        conditions, values = _conditions(sought)
        urls = " /*sqlite CROSS*/ JOIN url u ON u.url_id = v.url_id" if sought.text is not None else ""
        # CROSS JOIN and the plus signs keep SQLite on the order of record, so that no page costs more than the first.
        rows = self._db.execute(
            f"SELECT v.seq FROM visit v{urls} /*sqlite CROSS*/ JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
            " AND f.done = v.seq WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.kind IN ('page', 'resource')"
            f"{conditions} ORDER BY v.seq LIMIT ?",
            (run_id, after, after + SPAN, *values, limit),
        )
        found = [seq for (seq,) in rows]
        if not found:
            return []
        return list(self.visits("v.run_id = ? AND v.seq = ANY (?) ORDER BY v.seq", run_id, found))

    def pages_by_session(self, run_id: int) -> dict[int, int]:
        """How many pages each session of a run brought, duplicates included."""
        rows = self._db.execute(
            "SELECT session, COUNT(*) FROM visit WHERE run_id = ? AND outcome IN ('page', 'duplicate') GROUP BY session",
            (run_id,),
        )
        return dict(rows.fetchall())

    def sizes(self) -> list[tuple[int, int, int, int]]:
        """Number, beginning and pages of every run, and whether it is complete."""
        return self._db.execute(
            "SELECT number, created_ms, pages, state = 'completed' FROM run ORDER BY number"
        ).fetchall()

    def iterations(self) -> int:
        """How many complete runs build on another."""
        row = self._db.execute("SELECT COUNT(*) FROM run WHERE mode <> 'baseline' AND state = 'completed'").fetchone()
        return int(row[0])

    def queue_counts(self, run_id: int) -> list[dict[str, Any]]:
        """How many rows per source, state and reason. This one counts; it is for people, not for the engine."""
        cursor = self._db.execute(
            "SELECT source, state, reason, COUNT(*) AS count FROM frontier"
            " WHERE run_id = ? AND kind IN ('page', 'resource') GROUP BY source, state, reason ORDER BY source, state, reason",
            (run_id,),
        )
        return [_dict(cursor, row) for row in cursor.fetchall()]

    def why_downloaded(self, run_id: int) -> dict[str, int]:
        """Why pages were downloaded that turned out to be unchanged: how many for each reason."""
        rows = self._db.execute(
            "SELECT note, COUNT(*) FROM visit WHERE run_id = ? AND change = 'unchanged' AND status = 200"
            " AND requested = 1 GROUP BY note",
            (run_id,),
        )
        counts: Counter[str] = Counter()
        for note, count in rows:
            counts.update(dict.fromkeys((word for word in (note or "").split() if word in _WHY), count))
        return dict(counts)

    def reused(self, run_id: int) -> int:
        """How many pages and resources were taken from earlier runs without a request."""
        row = self._db.execute(
            "SELECT COUNT(*) FROM visit WHERE run_id = ? AND requested = 0 AND failure IS NULL"
            " AND kind IN ('page', 'resource')",
            (run_id,),
        ).fetchone()
        return int(row[0])

    def has_refused(self, run_id: int, reason: str) -> bool:
        row = self._db.execute(
            "SELECT 1 FROM frontier WHERE run_id = ? AND state = 'refused' AND reason = ? LIMIT 1",
            (run_id, reason),
        ).fetchone()
        return row is not None

    def spots(self, run_id: int, until: int) -> Iterator[tuple[str, int, int, str]]:
        """Where the records of a run lie, in the order of record: file, offset, length, and for which URL. Where a record
        refers to one of an earlier run, that one comes first."""
        for after in range(0, until, _PAGE):
            rows = self._db.execute(
                'SELECT a.name, v."offset", v.length, COALESCE(v.request_url, u.url), v.revisit, v.payload, v.seq, 1'
                " FROM visit v JOIN archive a USING (file_id) JOIN url u USING (url_id)"
                " WHERE v.run_id = :run AND v.seq > :after AND v.seq <= :until"
                ' UNION ALL SELECT a.name, p."offset", p.length, p.request_url, 0, NULL, p.seq, 0 FROM probe p'
                " JOIN archive a USING (file_id) WHERE p.run_id = :run AND p.seq > :after AND p.seq <= :until ORDER BY 7, 8",
                {"run": run_id, "after": after, "until": min(after + _PAGE, until)},
            ).fetchall()
            for name, offset, length, url, is_revisit, payload, _, _ in rows:
                if is_revisit:
                    for spot in self._originals(payload):
                        yield (*spot, url)
                yield name, offset, length, url

    def _originals(self, payload: bytes) -> Iterator[tuple[str, int, int]]:
        query = (
            'SELECT a.name, v."offset", v.length FROM visit v JOIN archive a USING (file_id)'
            " WHERE v.payload = ? AND v.file_id IS NOT NULL AND v.revisit = 0"
        )
        first = (
            self._db.execute(f"{query} AND {which} LIMIT 1", (payload,)).fetchone() for which in (IS_WHOLE, "1 = 1")
        )
        yield from islice(filter(None, first), 1)

    def count_records(self) -> int:
        return int(self._db.execute("SELECT COUNT(*) FROM visit WHERE file_id IS NOT NULL").fetchone()[0])

    def records(self) -> Iterator[Archived]:
        """Every record of the archive that a visit points to, in the order of the log. Read in parts, so that whoever
        looks at them does not keep the store from tidying up."""
        last = 0
        while rows := self._db.execute(
            'SELECT v.log_id, a.name, v."offset", v.length, v.payload, v.revisit, COALESCE(v.request_url, u.url), r.number'
            " FROM visit v JOIN archive a USING (file_id) JOIN url u USING (url_id) JOIN run r ON r.run_id = v.run_id"
            " WHERE v.log_id > ? ORDER BY v.log_id LIMIT ?",
            (last, _PAGE),
        ).fetchall():
            yield from (Archived(*row[1:]) for row in rows)
            last = rows[-1][0]

    def last_records(self, run_id: int, until: int, limit: int) -> list[Kept]:
        """The newest records of a run's visits up to a seq."""
        rows = self._db.execute(
            'SELECT a.name, v."offset", v.payload, COALESCE(v.request_url, u.url) FROM visit v'
            " JOIN archive a USING (file_id) JOIN url u USING (url_id)"
            " WHERE v.run_id = ? AND v.seq <= ? ORDER BY v.seq DESC LIMIT ?",
            (run_id, until, limit),
        )
        return [Kept(*row) for row in rows]

    def recount(self, run_id: int) -> dict[str, int]:
        """The run's counters, counted from the rows; they must equal the kept ones."""
        counted = dict.fromkeys(("known", "pending", "refused"), 0)
        rows = self._db.execute(
            "SELECT state, COUNT(*) FROM frontier WHERE run_id = ? AND kind IN ('page', 'resource') GROUP BY state",
            (run_id,),
        )
        for state, count in rows:
            counted["known"] += count
            if state in counted:
                counted[state] += count
        names = {"page": "pages", "duplicate": "duplicates", "resource": "resources", "redirect": "redirects"}
        names["failed"] = "failed"
        counted |= dict.fromkeys(names.values(), 0)
        rows = self._db.execute(
            "SELECT v.outcome, COUNT(*) FROM frontier f JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " WHERE f.run_id = ? AND f.state = 'done' AND f.kind IN ('page', 'resource') GROUP BY v.outcome",
            (run_id,),
        )
        for outcome, count in rows:
            if outcome in names:
                counted[names[outcome]] = count
        counted |= dict.fromkeys(("new", "modified", "unchanged", "deleted"), 0)
        rows = self._db.execute(
            "SELECT v.change, COUNT(*) FROM frontier f JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " WHERE f.run_id = ? AND f.state = 'done' AND v.change IS NOT NULL GROUP BY v.change",
            (run_id,),
        )
        counted |= {change: count for change, count in rows if change in counted}
        sums = (
            "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status <> 304 THEN size END), 0),"
            " COALESCE(SUM(CASE WHEN status = 304 AND outcome <> 'retry' THEN size END), 0)"
            " FROM visit WHERE run_id = ? AND requested = ? AND kind IN ('page', 'resource')"
        )
        counted["requests"], counted["size"], not_modified = self._db.execute(sums, (run_id, 1)).fetchone()
        _, reused, again = self._db.execute(sums, (run_id, 0)).fetchone()
        counted["saved"] = not_modified + reused + again
        return counted

    def faults(self, run_id: int) -> list[str]:
        """Leaks and doubles: what must never be, in words. Empty for a healthy run."""
        checks = {
            "visited URLs that the frontier does not know": (
                "SELECT COUNT(*) FROM visit v LEFT JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
                " WHERE v.run_id = :run AND f.url_id IS NULL"
            ),
            "done URLs without a visit": (
                "SELECT COUNT(*) FROM frontier f LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done AND v.url_id = f.url_id"
                " WHERE f.run_id = :run AND f.state = 'done' AND v.seq IS NULL"
            ),
            "pages recorded twice": (
                "SELECT COUNT(*) FROM (SELECT 1 FROM visit WHERE run_id = :run AND outcome IN ('page', 'duplicate', 'resource')"
                " GROUP BY url_id HAVING COUNT(*) > 1) AS doubles"
            ),
            "rows found after the end of the record": (
                "SELECT COUNT(*) FROM frontier f JOIN run r USING (run_id) WHERE f.run_id = :run AND f.found > r.seq"
            ),
            "gaps in the record": (
                "SELECT (SELECT seq FROM run WHERE run_id = :run) - COUNT(*) FROM (SELECT seq FROM visit WHERE run_id = :run"
                " AND seq BETWEEN 1 AND (SELECT seq FROM run WHERE run_id = :run)"
                " UNION SELECT done FROM frontier WHERE run_id = :run AND state = 'refused' AND done > 0"
                " UNION SELECT found FROM frontier WHERE run_id = :run AND found > 0"
                " UNION SELECT seq FROM undo WHERE run_id = :run AND seq > 0"
                " UNION SELECT CAST(json_extract(before, '$.done') AS BIGINT) FROM undo WHERE run_id = :run"
                " AND CAST(json_extract(before, '$.done') AS BIGINT) > 0) AS steps"
            ),
            "visits after the end of the record": (
                "SELECT COUNT(*) FROM visit v JOIN run r USING (run_id) WHERE v.run_id = :run AND v.seq > r.seq"
            ),
            "pending URLs in no lane": (
                "SELECT COUNT(*) FROM frontier f LEFT JOIN lane l ON l.run_id = f.run_id AND l.lane = f.lane"
                " WHERE f.run_id = :run AND f.state = 'pending' AND l.lane IS NULL"
            ),
            "lanes with a wrong count": (
                "SELECT COUNT(*) FROM lane l WHERE l.run_id = :run AND l.pending <> (SELECT COUNT(*) FROM frontier f"
                " WHERE f.run_id = l.run_id AND f.lane = l.lane AND f.state = 'pending')"
            ),
        }
        found = []
        with self._db.snapshot():
            for words, query in checks.items():
                count = self._db.execute(query, {"run": run_id}).fetchone()[0]
                if count:
                    found.append(f"{count} {words}")
            if count := votes.wrong(self._db, run_id):
                found.append(f"{count} URLs whose votes do not add up")
        return found

    def integrity(self) -> str:
        """'ok', or what the database finds wrong with itself."""
        return self._db.check()


def _conditions(sought: Sought) -> tuple[str, list[str]]:
    """What is to be true of a visit, and the values in it."""
    given = {f"/*sqlite +*/v.{name}": value for name, value in sought._asdict().items() if name != "text"}
    conditions = "".join(f" AND {column} = ?" for column, value in given.items() if value is not None)
    values = [value for value in given.values() if value is not None]
    if sought.text is not None:
        # Not LIKE: whatever is asked for means itself.
        conditions += " AND (instr(lower(u.url), lower(?)) > 0 OR instr(lower(v.request_url), lower(?)) > 0)"
        values += [sought.text, sought.text]
    return conditions, values


def _dict(cursor: Any, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}
