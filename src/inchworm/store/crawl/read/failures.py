"""What failed in a run, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inchworm.store.crawl.joins import ADDRESS, ROW, SETTLED
from inchworm.store.crawl.store import CrawlStore

_FAILED = f"SELECT {ADDRESS}, v.failure, COALESCE(v.message, '') FROM visit v JOIN url u USING (url_id)"


class FailedUrl(NamedTuple):
    """A URL as it was asked for, the kind of its failure, and what went wrong in words."""

    url: str
    kind: str
    message: str


class FailureReader:
    """Failures of the runs of a crawl."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def first(self, run_id: int) -> FailedUrl | None:
        """What failed first, of what is failed now."""
        row = self._db.execute(
            f"{_FAILED} JOIN {ROW} AND f.done = v.seq"
            " WHERE v.run_id = ? AND v.outcome = 'failed' ORDER BY v.seq LIMIT 1",
            (run_id,),
        ).fetchone()
        return FailedUrl(*row) if row else None

    def between(self, run_id: int, after: int, until: int) -> Sequence[FailedUrl]:
        """What failed in these steps of a run, tries that will be repeated included."""
        rows = self._db.execute(
            f"{_FAILED} WHERE v.run_id = ? AND v.seq > ? AND v.seq <= ? AND v.failure IS NOT NULL ORDER BY v.seq LIMIT 1000",
            (run_id, after, until),
        )
        return [FailedUrl(*row) for row in rows]

    def count(self, run_id: int, kind: str) -> int:
        """How many URLs are failed in this way."""
        row = self._db.execute(
            f"SELECT COUNT(*) FROM {SETTLED} WHERE v.run_id = ? AND v.outcome = 'failed' AND v.failure = ?",
            (run_id, kind),
        ).fetchone()
        return int(row[0])
