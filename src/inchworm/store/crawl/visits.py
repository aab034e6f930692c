"""Visits as a session looks them up again, and the files and records that they were archived in."""

from __future__ import annotations

from collections.abc import Iterable

from inchworm.ports import Original, VisitRow
from inchworm.store.crawl.commit import LINKS, unpack
from inchworm.store.crawl.joins import ADDRESS, SETTLING
from inchworm.store.crawl.owner import Ownership
from inchworm.store.database import Database, Row

IS_WHOLE = "(v.failure IS NULL OR v.failure LIKE 'http_%')"
"""Of an answer that failed otherwise the archive has the bytes, but not so that they can be read as a body again."""

_VISIT = ", ".join(f'v."{name}"' for name in VisitRow._fields)

Spot = tuple[str, int, int]
"""Archive file, offset and length of a record."""


class VisitTable:
    """What was visited and kept. `ports.KeptVisits` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, run_id: int, url_id: int) -> VisitRow | None:
        row = self._db.execute(
            f"SELECT {_VISIT} FROM frontier f JOIN {SETTLING} WHERE f.run_id = ? AND f.url_id = ? AND f.state = 'done'",
            (run_id, url_id),
        ).fetchone()
        return _visit_row(row) if row else None

    def owners_of(self, run_id: int, hashes: Iterable[bytes]) -> set[bytes]:
        query = "SELECT text_hash FROM visit WHERE run_id = ? AND outcome = 'page' AND text_hash = ANY (?)"
        return {text_hash for (text_hash,) in self._db.among(query, sorted(hashes), run_id)}

    def originals(self, payloads: Iterable[bytes]) -> dict[bytes, Original]:
        rows = self._db.among(
            f"SELECT v.payload, {ADDRESS}, v.at_ms, a.name FROM visit v JOIN url u USING (url_id)"
            " JOIN archive a USING (file_id)"
            f" WHERE v.file_id IS NOT NULL AND v.revisit = 0 AND v.payload = ANY (?) AND {IS_WHOLE} ORDER BY v.log_id",
            sorted(payloads),
        )
        return {payload: Original(url, at_ms, file=name) for payload, url, at_ms, name in rows}


class ArchiveTable:
    """The files of the archive, and where in them bodies lie."""

    def __init__(self, db: Database, owner: Ownership) -> None:
        self._db, self._owner = db, owner

    def files(self) -> list[tuple[int, int, str, int]]:
        """file_id, token, name and committed length of every archive file."""
        return list(self._db.execute("SELECT file_id, token, name, length FROM archive ORDER BY file_id"))

    def rename(self, token: int, file_id: int, name: str) -> None:
        with self._owner.transaction(token):
            self._db.execute("UPDATE archive SET name = ?, token = ? WHERE file_id = ?", (name, token, file_id))

    def spot(self, payload: bytes) -> Spot | None:
        """Where the record lies that holds a payload."""
        return self.spots([payload]).get(payload)

    def spots(self, payloads: Iterable[bytes]) -> dict[bytes, Spot]:
        """The same for many payloads at once."""
        rows = self._db.among(
            'SELECT v.payload, a.name, v."offset", v.length FROM visit v JOIN archive a USING (file_id) WHERE v.revisit = 0'
            f" AND v.file_id IS NOT NULL AND v.payload = ANY (?) ORDER BY {IS_WHOLE}, v.log_id",
            payloads,
        )
        return {payload: (name, offset, length) for payload, name, offset, length in rows}


def _visit_row(row: Row) -> VisitRow:
    return VisitRow._make((*row[:LINKS], tuple(unpack(row[LINKS])), *row[LINKS + 1 :]))
