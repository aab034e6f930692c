"""The records of the archive that visits point to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from inchworm.store.crawl.joins import ADDRESS
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.crawl.visits import IS_WHOLE

_PAGE = 500


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


class RecordReader:
    """Where the records of a crawl lie."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def of_run(self, run_id: int, until: int) -> Iterator[tuple[str, int, int, str]]:
        """Where the records of a run lie, in the order of record: file, offset, length, and for which URL. Where a record
        refers to one of an earlier run, that one comes first."""
        for after in range(0, until, _PAGE):
            rows = self._db.execute(
                f'SELECT a.name, v."offset", v.length, {ADDRESS}, v.revisit, v.payload, v.seq, 1'
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

    def count(self) -> int:
        return int(self._db.execute("SELECT COUNT(*) FROM visit WHERE file_id IS NOT NULL").fetchone()[0])

    def all(self) -> Iterator[Archived]:
        """Every record of the archive that a visit points to, in the order of the log. Read in parts, so that whoever
        looks at them does not keep the store from tidying up."""
        last = 0
        while rows := self._db.execute(
            f'SELECT v.log_id, a.name, v."offset", v.length, v.payload, v.revisit, {ADDRESS}, r.number'
            " FROM visit v JOIN archive a USING (file_id) JOIN url u USING (url_id) JOIN run r ON r.run_id = v.run_id"
            " WHERE v.log_id > ? ORDER BY v.log_id LIMIT ?",
            (last, _PAGE),
        ).fetchall():
            yield from (Archived(*row[1:]) for row in rows)
            last = rows[-1][0]

    def last(self, run_id: int, until: int, limit: int) -> list[Kept]:
        """The newest records of a run's visits up to a seq."""
        rows = self._db.execute(
            f'SELECT a.name, v."offset", v.payload, {ADDRESS} FROM visit v'
            " JOIN archive a USING (file_id) JOIN url u USING (url_id)"
            " WHERE v.run_id = ? AND v.seq <= ? ORDER BY v.seq DESC LIMIT ?",
            (run_id, until, limit),
        )
        return [Kept(*row) for row in rows]
