"""URLs over all runs, the links between them, and all of a run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inchworm.store.crawl.commit import unpack
from inchworm.store.crawl.joins import SETTLING
from inchworm.store.crawl.store import CrawlStore

LINK_STEP = 5_000
"""So many steps of a run are searched for links at a time."""

TREE_STEP = 5_000
"""So many URLs are counted at a time."""

_STATES = (
    "SELECT u.url_id, COALESCE(v.request_url, f.request_url, u.url), f.state, f.reason, v.outcome, v.status, v.failure,"
    " v.title, v.size, v.change"
    " FROM url u LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = u.url_id"
    f" LEFT JOIN {SETTLING} AND f.state = 'done'"
    " WHERE u.url_id = ANY (?)"
)
_HISTORY = (
    "SELECT r.number, r.mode, f.state, f.reason, v.outcome, v.status, v.failure, v.change, v.size, v.at_ms, v.title"
    " FROM run r JOIN frontier f ON f.run_id = r.run_id AND f.url_id = ?"
    f" LEFT JOIN {SETTLING} AND f.state = 'done' ORDER BY r.run_id DESC LIMIT ?"
)
_LINKING = (
    "SELECT v.seq, v.url_id, v.links FROM visit v WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ?"
    " AND v.kind IN ('page', 'sitemap') AND v.outcome <> 'retry' AND instr(v.links, ?) > 0 ORDER BY v.seq"
)
_IN_ORDER = (
    "SELECT f.url_id, u.url, CASE f.state WHEN 'done' THEN v.outcome ELSE f.state END, v.size, v.change"
    " FROM frontier f /*sqlite CROSS*/ JOIN url u ON u.url_id = f.url_id"
    f" LEFT JOIN {SETTLING} AND f.state = 'done'"
    " WHERE f.run_id = ? AND f.url_id > ? AND f.kind IN ('page', 'resource') ORDER BY f.url_id LIMIT ?"
)


class UrlState(NamedTuple):
    """How a URL stands in a run; without a state: the run does not know it."""

    url_id: int
    url: str
    state: str | None
    reason: str | None
    outcome: str | None
    status: int | None
    failure: str | None
    title: str | None
    size: int | None
    change: str | None


class UrlInRun(NamedTuple):
    """How a URL stands in one of the runs."""

    run: int
    mode: str
    state: str
    reason: str | None
    outcome: str | None
    status: int | None
    failure: str | None
    change: str | None
    size: int | None
    at_ms: int | None
    title: str | None


class UrlInTree(NamedTuple):
    """A URL of a run, what became of it, how large it is, and how it changed."""

    url_id: int
    url: str
    became: str | None
    size: int | None
    change: str | None


class UrlReader:
    """URLs, and how they stand."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def states(self, run_id: int, url_ids: Sequence[int]) -> Sequence[UrlState]:
        """How URLs stand in a run, in the order of their numbers as given."""
        found = {row[0]: UrlState(*row) for row in self._db.execute(_STATES, (run_id, list(url_ids)))}
        return [found[url_id] for url_id in url_ids if url_id in found]

    def history(self, url_id: int, limit: int) -> Sequence[UrlInRun]:
        """How a URL stands in each run that knows it, the newest first."""
        return [UrlInRun(*row) for row in self._db.execute(_HISTORY, (url_id, limit))]

    def of_run(self, run_id: int, after: int, limit: int) -> Sequence[UrlInTree]:
        """Pages and resources of a run from behind a URL on."""
        return [UrlInTree(*row) for row in self._db.execute(_IN_ORDER, (run_id, after, limit))]

    def stamp(self, run_id: int) -> tuple[int, int, int]:
        """Something that is another when anything in a run has changed: how far it is, and where the log ends."""
        row = self._db.execute(
            "SELECT seq, COALESCE((SELECT MAX(log_id) FROM visit), 0), COALESCE((SELECT MAX(log_id) FROM undone), 0)"
            " FROM run WHERE run_id = ?",
            (run_id,),
        ).fetchone()
        return (int(row[0]), int(row[1]), int(row[2])) if row else (0, 0, 0)


class LinkReader:
    """Which URL links to which. URLs go by their numbers."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def found_by(self, run_id: int, seq: int) -> Sequence[int]:
        """The URLs that a visit found, each once."""
        row = self._db.execute("SELECT links FROM visit WHERE run_id = ? AND seq = ?", (run_id, seq)).fetchone()
        return list(dict.fromkeys(unpack(row[0]))) if row else []

    def leading_to(self, run_id: int, url_id: int, after: int, until: int) -> Sequence[tuple[int, int]]:
        """Visits that found a link to a URL, among these steps of a run: seq and number of the page or sitemap."""
        # SQLite looks for the four bytes anywhere; whether they are one link and not parts of two is seen afterwards.
        needle = url_id.to_bytes(4, "little")
        rows = self._db.execute(_LINKING, (run_id, after, until, needle))
        return [(seq, finder) for seq, finder, links in rows if url_id in unpack(links)]
