"""A crawl in numbers that no counter keeps: they are counted when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inchworm.store.crawl.store import CrawlStore

_WHY = (
    "no_validators",
    "validators_changed",
    "distrusted",
    "shared_validators",
    "sampled",
    "reader_changed",
    "asked_in_full",
)


class RunPages(NamedTuple):
    """A run, when it began, how many pages it has, and whether it is complete."""

    number: int
    created_ms: int
    pages: int
    is_complete: int


class StateCount(NamedTuple):
    """How many rows of one source are in one state, for one reason."""

    source: str
    state: str
    reason: str | None
    rows: int


class CountReader:
    """Counts rows. For people, not for the engine."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def runs(self) -> Sequence[RunPages]:
        """Every run, in their order."""
        rows = self._db.execute("SELECT number, created_ms, pages, state = 'completed' FROM run ORDER BY number")
        return [RunPages(*row) for row in rows]

    def iterations(self) -> int:
        """How many complete runs build on another."""
        row = self._db.execute("SELECT COUNT(*) FROM run WHERE mode <> 'baseline' AND state = 'completed'").fetchone()
        return int(row[0])

    def pages_by_session(self, run_id: int) -> Mapping[int, int]:
        """How many pages each session of a run brought, duplicates included."""
        rows = self._db.execute(
            "SELECT session, COUNT(*) FROM visit WHERE run_id = ? AND outcome IN ('page', 'duplicate') GROUP BY session",
            (run_id,),
        )
        return dict(rows.fetchall())

    def rows_by_state(self, run_id: int) -> Sequence[StateCount]:
        """How many rows per source, state and reason."""
        rows = self._db.execute(
            "SELECT source, state, reason, COUNT(*) AS count FROM frontier"
            " WHERE run_id = ? AND kind IN ('page', 'resource') GROUP BY source, state, reason ORDER BY source, state, reason",
            (run_id,),
        )
        return [StateCount(*row) for row in rows]

    def has_refused(self, run_id: int, reason: str) -> bool:
        """Whether any URL was refused for this reason."""
        row = self._db.execute(
            "SELECT 1 FROM frontier WHERE run_id = ? AND state = 'refused' AND reason = ? LIMIT 1",
            (run_id, reason),
        ).fetchone()
        return row is not None

    def why_downloaded(self, run_id: int) -> Mapping[str, int]:
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
