"""crawl.db: the crawl as it is now, whichever run saw it last, and what changed since an earlier run.

The state of a line of runs is, of every URL, the newest visit of those runs that tells whether the page is there. What
changed since a run is the difference between the state of its line and the state of the line now. Where a run went back,
or the line was made another one, nobody knows any more which state somebody saw before: so pages of which a run does not
tell any more are noted in `withdrawn`, and are told again, however they are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from inchworm.model import Change, RunInfo
from inchworm.store.crawl.joins import (
    BY_URL,
    ITSELF,
    TELLING,
    TELLING_RESOURCES_TOO,
    earlier_runs,
    line_from,
    newest_visits,
)
from inchworm.store.crawl.read.visits import RecordedVisit, recorded
from inchworm.store.crawl.store import CrawlStore

STEP = 500
"""So many URLs are looked at in one question, so that the owner is never held up."""

_THERE = ("page", "duplicate", "resource")


class LineOfRuns(NamedTuple):
    """Runs that follow each other, and up to which entry of the log they count."""

    run_ids: tuple[int, ...]
    until: int


class _Newest(NamedTuple):
    log_id: int
    run_id: int
    outcome: str
    text_hash: bytes | None
    payload: bytes | None
    link_hash: bytes | None

    @property
    def is_there(self) -> bool:
        return self.outcome in _THERE


class Since(NamedTuple):
    """Since when: the end of a run (None: since before there was anything), and the time that was asked for, if it was
    one."""

    run: RunInfo | None
    at_ms: int | None = None


class ChangedUrl(NamedTuple):
    """What became of a page. The visit is None where no run tells of it any more."""

    change: Change
    url: str
    visit: RecordedVisit | None
    request_url: str = ""


class Now:
    """Questions to a crawl's store about its state. Reads only, in small steps."""

    def __init__(self, store: CrawlStore) -> None:
        self._store = store
        self._db = store.db

    # Lines

    def line(self, end: RunInfo) -> LineOfRuns:
        """A run and those before it on its line."""
        rows = self._db.execute(line_from(ITSELF), (end.run_id,))
        return LineOfRuns(tuple(run_id for (run_id,) in rows), self._log_end())

    def line_at(self, since: Since) -> LineOfRuns:
        """The runs that there were then."""
        return self.line(since.run) if since.run else LineOfRuns((), 0)

    def before(self, run_id: int) -> LineOfRuns:
        """The runs that a run was compared with."""
        return LineOfRuns(tuple(one for (one,) in self._db.execute(earlier_runs(), (run_id,))), self._log_end())

    def ended_by(self, end: RunInfo, at_ms: int) -> RunInfo | None:
        """The newest run of a line that had ended by then."""
        ids = self.line(end).run_ids
        row = self._db.execute(
            "SELECT number FROM run WHERE run_id = ANY (?) AND ended_ms <= ? ORDER BY run_id DESC LIMIT 1", (ids, at_ms)
        ).fetchone()
        return self._store.runs.get(row[0]) if row else None

    def _log_end(self) -> int:
        row = self._db.execute("SELECT MAX(log_id) FROM visit").fetchone()
        return int(row[0] or 0)

    # The state

    def pages(self, line: LineOfRuns, resources: bool = False) -> Iterator[RecordedVisit]:
        """The newest version of every page that is there, in the order in which their URLs were first found."""
        for url_ids in self._steps("SELECT url_id FROM url WHERE url_id > ? ORDER BY url_id LIMIT ?"):
            newest = self._newest(url_ids, line, resources)
            yield from self._visits([one.log_id for one in newest.values() if one.is_there])

    def page(self, line: LineOfRuns, url: str) -> RecordedVisit | None:
        """What these runs have last on a URL: whether there is a page, or else what came of asking for it."""
        known = self._known([url]).get(url)
        newest = self._newest([known], line, resources=True) if known is not None else {}
        if known is None or newest:
            return next(self._visits([one.log_id for one in newest.values()]), None)
        return self._last(line, known, "v.kind IN ('page', 'resource')")

    def version(self, line: LineOfRuns, url: str) -> RecordedVisit | None:
        """The last that these runs have of a page itself, wherever it is now."""
        known = self._known([url]).get(url)
        return self._last(line, known, "v.outcome IN ('page', 'duplicate', 'resource')") if known is not None else None

    def _last(self, line: LineOfRuns, url_id: int, condition: str) -> RecordedVisit | None:
        # The plus: a URL has few visits, a run has many.
        where = f"v.url_id = ? AND /*sqlite +*/v.run_id = ANY (?) AND v.log_id <= ? AND {condition}"
        found = recorded(self._db, f"{where} ORDER BY v.log_id DESC LIMIT 1", url_id, line.run_ids, line.until)
        return next(found, None)

    def there(self, line: LineOfRuns, urls: Iterable[str]) -> Iterator[RecordedVisit]:
        """The newest version of each of these pages and resources that is there."""
        newest = self._newest(list(self._known(list(urls)).values()), line, resources=True)
        return self._visits([one.log_id for one in newest.values() if one.is_there])

    def has_text(self, line: LineOfRuns, url: str, text_hash: str) -> bool:
        """Whether this page is there now, with this text."""
        known = self._store.frontier.known(line.run_ids[0], [url], rows=False).get(url) if line.run_ids else None
        newest = self._newest([known.url_id], line) if known else {}
        return any(one.is_there and one.text_hash == bytes.fromhex(text_hash) for one in newest.values())

    def _newest(self, url_ids: Sequence[int], line: LineOfRuns, resources: bool = False) -> dict[int, _Newest]:
        """Of each URL the newest visit that tells whether it is there."""
        if not url_ids or not line.run_ids:
            return {}
        which = "v.url_id = ANY (?) AND v.run_id = ANY (?) AND v.log_id <= ?"
        newest = newest_visits(which, TELLING_RESOURCES_TOO if resources else TELLING, BY_URL)
        rows = self._db.execute(
            "SELECT n.url_id, n.log_id, n.run_id, n.outcome, n.text_hash, n.payload, n.link_hash FROM visit n"
            f" WHERE n.log_id IN ({newest}) ORDER BY n.url_id",
            (url_ids, line.run_ids, line.until),
        )
        return {url_id: _Newest(*rest) for url_id, *rest in rows}

    def _visits(self, log_ids: Sequence[int]) -> Iterator[RecordedVisit]:
        return recorded(self._db, "v.log_id = ANY (?) ORDER BY v.url_id", log_ids)

    def _steps(self, query: str, *arguments: object) -> Iterator[list[int]]:
        """The URLs that a query finds, part by part. Its first value is behind which one to begin, its last how many."""
        after = 0
        while url_ids := [url_id for (url_id,) in self._db.execute(query, (after, *arguments, STEP))]:
            yield url_ids
            after = url_ids[-1]

    # What changed

    def changed(self, since: Since, line: LineOfRuns, by_bytes: bool) -> Iterator[ChangedUrl]:
        """What became of each page since then: those that differ, and all of which nobody can tell. `by_bytes`: pages
        differ as soon as their bytes do."""
        before = self.line_at(since)
        runs, redone = tuple(set(before.run_ids) ^ set(line.run_ids)), self._redone(since.run)
        is_candidate = "(v.run_id = ANY (?) OR (v.run_id = ? AND v.log_id > ?))"
        query = f"SELECT DISTINCT v.url_id FROM visit v WHERE v.url_id > ? AND {is_candidate} ORDER BY v.url_id LIMIT ?"
        for url_ids in self._steps(query, runs, *redone):
            urls = self._urls(url_ids)
            doubted = self._withdrawn(since, list(urls.values()))
            yield from self._compared(urls, (before, line), redone, doubted, by_bytes)
        yield from self._withdrawn_only(since, line, (is_candidate, (runs, *redone)))

    def _compared(
        self,
        urls: dict[int, str],
        lines: tuple[LineOfRuns, LineOfRuns],
        redone: tuple[int, int],
        doubted: set[str],
        by_bytes: bool,
    ) -> Iterator[ChangedUrl]:
        then, now = (self._newest(list(urls), line) for line in lines)
        told: dict[int, Change] = {}
        for url_id, url in urls.items():
            old, new = then.get(url_id), now.get(url_id)
            is_doubted = url in doubted or (new is not None and new.run_id == redone[0] and new.log_id > redone[1])
            if (change := _difference(old, new, is_doubted, by_bytes)) is not None:
                told[url_id] = change
        visits = {visit.url: visit for visit in self._visits([now[one].log_id for one in told if one in now])}
        yield from (ChangedUrl(change, urls[url_id], visits.get(urls[url_id])) for url_id, change in told.items())

    def _redone(self, run: RunInfo | None) -> tuple[int, int]:
        """A run that went back, and after which entry of the log what it did is not what somebody may have seen."""
        if run is None:
            return 0, 0
        row = self._db.execute("SELECT MIN(log_id) FROM undone WHERE run_id = ?", (run.run_id,)).fetchone()
        return (run.run_id, row[0]) if row[0] is not None else (0, 0)

    # Pages of which a run does not tell any more

    def _withdrawn(self, since: Since, urls: Sequence[str]) -> set[str]:
        condition, values = _is_withdrawn(since)
        query = f"SELECT url FROM withdrawn WHERE {condition} AND url = ANY (?)"
        return {url for (url,) in self._db.execute(query, (*values, urls))}

    def _withdrawn_only(
        self, since: Since, line: LineOfRuns, candidates: tuple[str, tuple[object, ...]]
    ) -> Iterator[ChangedUrl]:
        """Those that no run since then has visited."""
        condition, values = _is_withdrawn(since)
        query = f"SELECT url, MAX(request_url) FROM withdrawn WHERE {condition} AND url > ? GROUP BY url ORDER BY url LIMIT ?"
        after = ""
        while rows := self._db.execute(query, (*values, after, STEP)).fetchall():
            after = rows[-1][0]
            known = self._known([url for url, _ in rows])
            visited = self._visited(known, candidates)
            newest = self._newest(list(known.values()), line)
            there = {url: newest[known[url]].log_id for url in known if known[url] in newest}
            visits = {visit.url: visit for visit in self._visits(list(there.values()))}
            for url, address in rows:
                if url in known and known[url] in visited:
                    continue
                one = newest.get(known.get(url, 0))
                is_there = one is not None and one.is_there
                yield ChangedUrl(Change.MODIFIED if is_there else Change.DELETED, url, visits.get(url), address)

    def _visited(self, known: dict[str, int], candidates: tuple[str, tuple[object, ...]]) -> set[int]:
        is_candidate, values = candidates
        query = f"SELECT DISTINCT v.url_id FROM visit v WHERE v.url_id = ANY (?) AND {is_candidate}"
        return {url_id for (url_id,) in self._db.execute(query, (list(known.values()), *values))}

    def _urls(self, url_ids: Sequence[int]) -> dict[int, str]:
        query = "SELECT url_id, url FROM url WHERE url_id = ANY (?) ORDER BY url_id"
        return dict(self._db.execute(query, (url_ids,)).fetchall())

    def _known(self, urls: Sequence[str]) -> dict[str, int]:
        return {url: one.url_id for url, one in self._store.frontier.known(0, urls, rows=False).items()}


def _difference(old: _Newest | None, new: _Newest | None, is_doubted: bool, by_bytes: bool) -> Change | None:
    was_there, is_there = old is not None and old.is_there, new is not None and new.is_there
    if not is_there:
        return Change.DELETED if was_there or is_doubted else None
    if not was_there:
        return Change.NEW
    assert old is not None
    assert new is not None
    is_same = old.payload == new.payload
    if not (is_same or by_bytes):
        is_same = (old.text_hash, old.link_hash) == (new.text_hash, new.link_hash)
    return None if is_same and not is_doubted else Change.MODIFIED


def _is_withdrawn(since: Since) -> tuple[str, tuple[int, ...]]:
    if since.at_ms is not None:
        return "at_ms > ?", (since.at_ms,)
    return "run_id >= ?", (since.run.run_id if since.run else 0,)
