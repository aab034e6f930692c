"""crawl.db: what people ask who look around in what a crawl has: one page over all runs, its links, the site by folders."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inchworm.store.crawl.commit import unpack
from inchworm.store.crawl.view import View
from inchworm.store.database import Database
from inchworm.store.follow import search as index
from inchworm.store.follow.follower import File, used

LINK_STEP = 5_000
"""So many steps of a run are searched for links at a time."""

TREE_STEP = 5_000
"""So many URLs are counted at a time."""

INDEX_STEP = 100
"""So many URLs are entered into the index at a time."""

MOST_ALTERNATES = 50
MOST_SEQ = 1 << 62

_STANDING = (
    "SELECT u.url_id, COALESCE(v.request_url, f.request_url, u.url) AS url, f.state, f.reason, v.outcome, v.status, v.failure,"
    " v.title, v.size, v.change"
    " FROM url u LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = u.url_id"
    " LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done AND f.state = 'done'"
    " WHERE u.url_id = ANY (?)"
)
_HISTORY = (
    "SELECT r.number AS run, r.mode, f.state, f.reason, v.outcome, v.status, v.failure, v.change, v.size, v.at_ms, v.title"
    " FROM run r JOIN frontier f ON f.run_id = r.run_id AND f.url_id = ?"
    " LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done AND f.state = 'done' ORDER BY r.run_id DESC LIMIT ?"
)
_LINKING = (
    "SELECT v.seq, v.url_id, v.links FROM visit v WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ?"
    " AND v.kind IN ('page', 'sitemap') AND v.outcome <> 'retry' AND instr(v.links, ?) > 0 ORDER BY v.seq"
)
_TREE = (
    "SELECT f.url_id, u.url, CASE f.state WHEN 'done' THEN v.outcome ELSE f.state END, v.size, v.change"
    " FROM frontier f /*sqlite CROSS*/ JOIN url u ON u.url_id = f.url_id"
    " LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done AND f.state = 'done'"
    " WHERE f.run_id = ? AND f.url_id > ? AND f.kind IN ('page', 'resource') ORDER BY f.url_id LIMIT ?"
)


class Browse(View):
    """Questions of people who look around. Reads only, and never more than it is told to."""

    def stamp(self, run_id: int) -> tuple[int, int, int]:
        """Something that is another when anything in a run has changed: how far it is, and where the log ends."""
        row = self._db.execute(
            "SELECT seq, COALESCE((SELECT MAX(log_id) FROM visit), 0), COALESCE((SELECT MAX(log_id) FROM undone), 0)"
            " FROM run WHERE run_id = ?",
            (run_id,),
        ).fetchone()
        return (int(row[0]), int(row[1]), int(row[2])) if row else (0, 0, 0)

    # One page

    def _with_alternates(self, visit: dict[str, Any]) -> dict[str, Any]:
        return {**visit, "alternate_urls": self.alternates(visit["run_id"], visit["text_hash"], limit=MOST_ALTERNATES)}

    def history(self, url_id: int, limit: int) -> list[dict[str, Any]]:
        """How a URL stands in each run that knows it, the newest first."""
        return self._dicts(_HISTORY, url_id, limit)

    def links_of(self, run_id: int, seq: int) -> list[int]:
        """The numbers of the URLs that a visit found, each once."""
        row = self._db.execute("SELECT links FROM visit WHERE run_id = ? AND seq = ?", (run_id, seq)).fetchone()
        return list(dict.fromkeys(unpack(row[0]))) if row else []

    def standing(self, run_id: int, url_ids: Sequence[int]) -> list[dict[str, Any]]:
        """How URLs stand in a run, in the order of their numbers as given."""
        found = {row["url_id"]: row for row in self._dicts(_STANDING, run_id, list(url_ids))}
        return [found[url_id] for url_id in url_ids if url_id in found]

    def linking_to(self, run_id: int, url_id: int, after: int, until: int) -> list[tuple[int, int]]:
        """Visits that found a link to a URL, among these steps of a run: seq and number of the page or sitemap."""
        # SQLite looks for the four bytes anywhere; whether they are one link and not parts of two is seen afterwards.
        needle = url_id.to_bytes(4, "little")
        rows = self._db.execute(_LINKING, (run_id, after, until, needle))
        return [(seq, finder) for seq, finder, links in rows if url_id in unpack(links)]

    # The site by folders

    def tree_rows(
        self, run_id: int, after: int, limit: int
    ) -> list[tuple[int, str, str | None, int | None, str | None]]:
        """Pages and resources of a run from behind a URL on: number, address, what became of it, size, change."""
        return self._db.execute(_TREE, (run_id, after, limit)).fetchall()

    def _dicts(self, query: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self._db.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


# ---- full text, for as long as somebody waits


class _Enough(Exception):
    """The time that there was is over."""


class _Index(index.Index):
    """An index that is brought up to date in small steps, so that the clock is looked at often."""

    def todo(self, limit: int) -> list[int]:
        return super().todo(min(limit, INDEX_STEP))


def search(path: Path, source: index.SearchSource, question: index.Question, seconds: float) -> tuple[index.Found, int]:
    """Bring the index at `path` up to date for so long, a first step at least, and ask it; how many URLs are missing."""
    until = time.monotonic() + seconds
    first = True

    def look_at_the_clock(_done: int, _total: int) -> None:
        nonlocal first
        if not first and time.monotonic() > until:
            raise _Enough
        first = False

    def work(db: Database) -> tuple[index.Found, int]:
        found = _Index(db)
        with contextlib.suppress(_Enough):
            found.catch_up(source._replace(progress=look_at_the_clock))
        return found.find(question), found.left()

    return used(File(path, index.VERSION, index.SCHEMA, path.parent), work)
