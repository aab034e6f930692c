"""crawl.db as followers ask it: what there is new in the log, and what a visit or a URL has to say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from inchworm.errors import Broken
from inchworm.model import JsonObject
from inchworm.store.crawl.joins import ADDRESS, BY_URL, HAS_PAGE, ROW, TELLING, newest_visits
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import DatabaseFailed, Row

STEP = 5_000
"""How many entries of the log are noted in one transaction."""

URL, VISIT = "url_id", "log_id"
"""What a follower holds something of."""

_MATTERS = {URL: TELLING, VISIT: HAS_PAGE}


class LoggedPage(NamedTuple):
    """What the crawl has last on a URL."""

    url_id: int
    url: str
    log_id: int
    run_id: int
    seq: int
    run: int
    at_ms: int
    outcome: str
    text_hash: bytes | None
    payload: bytes | None
    content_type: str
    title: str
    request_url: str

    @property
    def is_there(self) -> bool:
        return self.outcome in ("page", "duplicate")

    @property
    def key(self) -> bytes:
        """What names the content of a page. One without a hash has it for itself."""
        return self.text_hash or b"url %d" % self.url_id


PAGE = (
    "v.run_id, v.seq, r.number, v.at_ms, v.outcome, v.text_hash, v.payload, COALESCE(v.content_type, ''),"
    f" COALESCE(v.title, ''), {ADDRESS}"
)
"""The columns of a page after its URL and its number in the log."""

PAGES = f"SELECT v.url_id, u.url, v.log_id, {PAGE} FROM visit v JOIN url u USING (url_id) JOIN run r USING (run_id)"


# Each outcome has an index of its own, which is used only where the outcome stands in the question.
_BY_TEXT = (
    f"{PAGES} WHERE v.run_id = ? AND v.outcome = '{{}}' AND v.log_id <= ?"
    " AND (v.text_hash, v.log_id) > (?, ?) ORDER BY v.text_hash, v.log_id LIMIT ?"
)
_FIELDS = (
    *("status", "size", "language", "canonical", "etag", "last_modified", "change", "meta", "source", "depth"),
    *("seed", "first_ms"),
)
_VISITED = (
    f"SELECT v.url_id, u.url, v.log_id, {PAGE}, v.status, v.size, v.language, v.canonical, v.etag, v.last_modified,"
    " v.change, v.meta, f.source, f.depth, s.url, (SELECT MIN(o.at_ms) FROM visit o WHERE o.url_id = v.url_id"
    " AND o.kind = 'page' AND o.outcome IN ('page', 'duplicate'))"
    " FROM visit v JOIN url u USING (url_id) JOIN run r USING (run_id)"
    f" LEFT JOIN {ROW}"
    " LEFT JOIN seed s ON s.run_id = v.run_id AND s.number = f.seed WHERE v.log_id = ANY (?)"
)


class CrawlLog:
    """What followers ask of the crawl's own store."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def rows(self, query: str, *arguments: object) -> list[Row]:
        try:
            return self._db.execute(query, arguments).fetchall()
        except DatabaseFailed as error:
            # What is wrong with the crawl's file must not be taken for damage to the follower's.
            raise Broken(error.message, error.hint) from error

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything asked in here is as it was at one moment."""
        return self._db.snapshot()

    def end(self) -> int:
        newest = "SELECT GREATEST(COALESCE((SELECT MAX(log_id) FROM visit), 0), COALESCE((SELECT MAX(log_id) FROM undone), 0))"
        return int(self.rows(newest)[0][0])

    def step_from(self, seen: int) -> int:
        """Where a step of bounded size ends."""
        rows = self.rows("SELECT log_id FROM visit WHERE log_id > ? ORDER BY log_id LIMIT 1 OFFSET ?", seen, STEP)
        return int(rows[0][0]) if rows else self.end()

    def visits(self, subject: str, seen: int, upto: int) -> list[tuple[int, int]]:
        """Subject and number of the entries that matter to it."""
        where = f"v.log_id > ? AND v.log_id <= ? AND {_MATTERS[subject]}"
        return self.rows(f"SELECT v.{subject}, v.log_id FROM visit v WHERE {where}", seen, upto)

    def undone(self, seen: int, upto: int) -> list[tuple[int, int, int]]:
        query = "SELECT log_id, run_id, from_seq FROM undone WHERE log_id > ? AND log_id <= ? ORDER BY log_id"
        return self.rows(query, seen, upto)

    def runs(self) -> list[tuple[int, int]]:
        return self.rows("SELECT run_id, seq FROM run")

    def judged(self, subject: str, run_id: int, after: int) -> list[tuple[int, int, int]]:
        """Visits that later steps judged anew in a way that matters here: run, step and subject. Every such step has left
        what it changed in `undo`."""
        query = (
            f"SELECT n.run_id, n.seq, v.{subject} FROM undo n JOIN visit v ON v.run_id = n.run_id AND v.seq = n.subject_id"
            " WHERE n.run_id = ? AND n.seq > ? AND n.subject = 'visit' AND v.kind = 'page'"
            " AND v.outcome IN ('redirect', 'retry')"
        )
        return self.rows(query, run_id, after)

    def newest(self, url_ids: Sequence[int]) -> dict[int, LoggedPage]:
        """The newest visit of each URL that tells whether the page is there."""
        newest = newest_visits("v.url_id = ANY (?)", index=BY_URL)
        query = f"{PAGES} WHERE v.log_id IN ({newest}) ORDER BY v.url_id"
        return {row[0]: LoggedPage._make(row) for row in self.rows(query, url_ids)}

    def pages(self, log_ids: Sequence[int]) -> dict[int, LoggedPage]:
        """Of these visits those that are there and found a page, by their number."""
        query = f"{PAGES} WHERE v.log_id = ANY (?) AND {HAS_PAGE}"
        return {row[2]: LoggedPage._make(row) for row in self.rows(query, log_ids)}

    def visited(self, log_ids: Sequence[int]) -> dict[int, tuple[LoggedPage, JsonObject]]:
        """The visits that are still there. One that is not was undone, and its turn will come."""
        rows = self.rows(_VISITED, log_ids)
        width = len(LoggedPage._fields)
        found = {}
        for row in rows:
            fields = dict(zip(_FIELDS, row[width:], strict=True))
            meta = json.loads(fields["meta"]) if fields["meta"] else {}
            found[row[2]] = (LoggedPage._make(row[:width]), {**fields, "meta": meta})
        return found


# ---- runs and their texts


def run_ends(log: CrawlLog) -> list[tuple[int, int | None, bool, int | None]]:
    """Of each run its number, the one that it follows, whether it is complete, and its last entry."""
    last = "SELECT v.log_id FROM visit v WHERE v.run_id = r.run_id ORDER BY v.seq DESC LIMIT 1"
    return log.rows(f"SELECT r.run_id, r.follows, r.state = 'completed', ({last}) FROM run r ORDER BY r.run_id")


def pages_by_text(log: CrawlLog, run_id: int, until: int, are_copies: bool) -> Iterator[LoggedPage]:
    """The pages of a run by the hashes of their texts: those that have theirs for their own, or the others."""
    query = _BY_TEXT.format("duplicate" if are_copies else "page")
    after = (b"", 0)
    while rows := log.rows(query, run_id, until, *after, STEP):
        pages = list(map(LoggedPage._make, rows))
        yield from pages
        after = pages[-1].text_hash or b"", pages[-1].log_id
