"""Visits as a session looks them up again, and the files and records that they were archived in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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


class KeptText(NamedTuple):
    """A page that a run has kept, and who read its text."""

    seq: int
    url: str
    at_ms: int
    content_type: str
    payload: bytes | None
    text_hash: bytes
    reader: str


_KEPT_TEXTS = (
    f"SELECT v.seq, {ADDRESS}, v.at_ms, COALESCE(v.content_type, ''), v.payload, v.text_hash, COALESCE(v.reader, '')"
    " FROM visit v JOIN url u USING (url_id)"
    " WHERE v.run_id = ? AND v.outcome = 'page' AND v.text_hash IS NOT NULL"
)


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

    def first_kept(self, run_id: int) -> KeptText | None:
        """The first page that a run has kept."""
        row = self._db.execute(f"{_KEPT_TEXTS} ORDER BY v.seq LIMIT 1", (run_id,)).fetchone()
        return KeptText._make(row) if row else None

    def kept_by_others(self, run_id: int, reader: str, before: int | None, limit: int) -> list[KeptText]:
        """Pages before a step that a run has kept, but that this reader did not read: the last ones first."""
        by_others = "COALESCE(v.reader, '') <> ? AND COALESCE(v.reader, '') NOT LIKE ?"
        query = f"{_KEPT_TEXTS} AND v.seq < ? AND {by_others} ORDER BY v.seq DESC LIMIT ?"
        end = before if before is not None else 1 << 62
        rows = self._db.execute(query, (run_id, end, reader, f"{reader} %", limit))
        return [KeptText._make(row) for row in rows]

    def name_text(self, run_id: int, page: KeptText, text_hash: bytes, reader: str) -> None:
        """Name the text of a kept page, and of its duplicates, as this reader does. In a transaction of the owner."""
        named = f"{reader} again"
        self._db.execute(
            "UPDATE visit SET text_hash = ?, reader = ? WHERE run_id = ? AND seq = ?",
            (text_hash, named, run_id, page.seq),
        )
        self._db.execute(
            "UPDATE visit SET text_hash = ? WHERE run_id = ? AND outcome = 'duplicate' AND text_hash = ?",
            (text_hash, run_id, page.text_hash),
        )

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
