"""Whether a crawl's tables are as they must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inchworm.store.crawl import votes
from inchworm.store.crawl.joins import ROW, SETTLING
from inchworm.store.crawl.store import CrawlStore


class RecordChecks:
    """Counts again what is counted, and looks for what must never be."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def recount(self, run_id: int) -> Mapping[str, int]:
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
            f"SELECT v.outcome, COUNT(*) FROM frontier f JOIN {SETTLING}"
            " WHERE f.run_id = ? AND f.state = 'done' AND f.kind IN ('page', 'resource') GROUP BY v.outcome",
            (run_id,),
        )
        for outcome, count in rows:
            if outcome in names:
                counted[names[outcome]] = count
        counted |= dict.fromkeys(("new", "modified", "unchanged", "deleted"), 0)
        rows = self._db.execute(
            f"SELECT v.change, COUNT(*) FROM frontier f JOIN {SETTLING}"
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

    def faults(self, run_id: int) -> Sequence[str]:
        """Leaks and doubles: what must never be, in words. Empty for a healthy run."""
        checks = {
            "visited URLs that the frontier does not know": (
                f"SELECT COUNT(*) FROM visit v LEFT JOIN {ROW} WHERE v.run_id = :run AND f.url_id IS NULL"
            ),
            "done URLs without a visit": (
                f"SELECT COUNT(*) FROM frontier f LEFT JOIN {SETTLING} AND v.url_id = f.url_id"
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
