"""fields.db: what was taken out of the pages of a crawl, in a file of its own.

It follows the crawl's log (`follower.py`), visit by visit and not URL by URL: each visit that found a page has its rows,
under its number in the log, so that every run can be told with its fields. A body that was met before under the same URL
is not read again, so that the visits of a run in which nothing changed cost next to nothing.

All rows are taken by the same rules. Other rules take the place of all rows; whoever is reading the old ones goes on with
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from inchworm.errors import NotNow
from inchworm.model import Json
from inchworm.rules.text.content import READER
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database, DatabaseFailed
from inchworm.store.follow.follower import (
    Follower,
    FollowerFile,
    Progress,
    UnfitFile,
    make_anew,
    sharing,
    use,
    work_off,
)
from inchworm.store.follow.log import VISIT, CrawlLog, LoggedPage

VERSION = f"1 reader={READER}"
"""What was taken by another version is taken anew."""

_CHUNK = 200
_CHUNK_CHARS = 8_000_000

_SCHEMA = """
CREATE TABLE rules (          -- by which all rows were taken
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  digest   TEXT NOT NULL
);
CREATE TABLE page (           -- every visit that found a page
  log_id   INTEGER PRIMARY KEY,
  run_id   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  content_id INTEGER NOT NULL
);
CREATE INDEX page_seq ON page (run_id, seq);
CREATE INDEX page_content ON page (content_id);
CREATE TABLE content (        -- each body once for each URL that had it, however many visits found it
  content_id INTEGER PRIMARY KEY AUTOINCREMENT,
  key      BLOB NOT NULL UNIQUE,
  matched  TEXT NOT NULL,     -- the numbers of the fields that it has, as JSON
  "rows"   TEXT,              -- lists of values, as JSON; none: they could not be taken
  failure  TEXT NOT NULL      -- why
);
CREATE TABLE tally (          -- what the visits of each run came to
  run_id   INTEGER NOT NULL,
  what     TEXT NOT NULL,
  count    INTEGER NOT NULL,
  PRIMARY KEY (run_id, what)
) WITHOUT ROWID;
"""


class ExtractedRows(NamedTuple):
    """The rows of a page; None when they could not be taken, and then why."""

    rows: list[list[Json]] | None
    failure: str = ""


LOST = ExtractedRows(None, "the archive does not have it")


class FieldSource(NamedTuple):
    """What is taken: a crawl's log, what takes the rows of a page, and what tells its rules from others."""

    store: CrawlStore
    extract: Callable[[LoggedPage], ExtractedRows]
    digest: str
    progress: Progress = lambda _done, _total: None


class FieldCounts(NamedTuple):
    """What came of the pages of a run: how many there are, how many rows they have, how many could not be read, and how
    many have each field, by its number."""

    pages: int
    rows: int
    failed: int
    matched: dict[int, int]


def catch_up(path: Path, source: FieldSource) -> None:
    """Bring the file at `path` to where the log ends now, making it anew where it is of no use."""
    use(_file(path), lambda db: FieldTable(db).catch_up(source))


def counts(path: Path, source: FieldSource, run_id: int) -> FieldCounts:
    """Bring the file up to date; what came of the pages of a run."""

    def work(db: Database) -> FieldCounts:
        fields = FieldTable(db)
        fields.catch_up(source)
        with db.snapshot():
            fields.refuse_others(source.digest)
            return fields.counts(run_id)

    return use(_file(path), work)


def forget(path: Path) -> None:
    """Begin anew: as if nothing had been taken."""
    make_anew(_file(path))


RowLookup = Callable[[int], ExtractedRows | None]
"""What was taken of the visit of a number; None when nobody knows."""


@contextlib.contextmanager
def lookup(path: Path, digest: str) -> Iterator[RowLookup]:
    """A way to look up what was taken by these rules, as it is now. Where the file is of no use, nothing is known."""
    with contextlib.ExitStack() as stack:
        try:
            db = stack.enter_context(sharing(_file(path)))
            stack.enter_context(db.snapshot())
            is_known = db.execute("SELECT 1 FROM rules WHERE digest = ?", (digest,)).fetchone() is not None
        except (UnfitFile, DatabaseFailed):
            is_known = False
        yield (lambda log_id: _look(db, log_id)) if is_known else (lambda _: None)


def _look(db: Database, log_id: int) -> ExtractedRows | None:
    query = 'SELECT c."rows", c.failure FROM page p JOIN content c USING (content_id) WHERE p.log_id = ?'
    # Damage is made good by whoever catches up; here a page is simply not known.
    with contextlib.suppress(DatabaseFailed, ValueError):
        row = db.execute(query, (log_id,)).fetchone()
        return row and ExtractedRows(json.loads(row[0]) if row[0] is not None else None, row[1])
    return None


def _file(path: Path) -> FollowerFile:
    # Exports read for as long as they last, and must not keep others from the crawl's folder.
    return FollowerFile(path, VERSION, _SCHEMA, path.with_suffix(".lock"), VISIT)


class FieldTable:
    """What was taken out of the pages of one crawl, open."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._follower = Follower(db, VISIT)

    def catch_up(self, source: FieldSource) -> None:
        """Take what is missing. Others may do the same at the same time, by the same rules."""
        log = CrawlLog(source.store)
        self._adopt(source.digest)
        self._follower.follow(log)
        work_off(self._follower.left, lambda: self._look_up(source, log), source.progress)
        self.refuse_others(source.digest)

    def _adopt(self, digest: str) -> None:
        """See to it that there are no rows of other rules."""
        if self._digest() == digest:
            return
        with self._db.transaction():
            if self._digest() != digest:
                for table in ("page", "content", "tally", "rules", "todo", "judged", "step"):
                    self._db.execute(f"DELETE FROM {table}")
                self._db.execute("INSERT INTO rules VALUES (1, ?)", (digest,))
                self._db.execute("UPDATE followed SET log_id = 0, turn = turn + 1")

    def refuse_others(self, digest: str) -> None:
        """Others may have begun with other rules meanwhile."""
        if self._digest() != digest:
            raise NotNow("Somebody has changed the fields of this crawl meanwhile.", "Try again.")

    def _digest(self) -> str:
        row = self._db.execute("SELECT digest FROM rules").fetchone()
        return str(row[0]) if row else ""

    # Looking visits up

    def _look_up(self, source: FieldSource, log: CrawlLog) -> None:
        """Take the rows of some visits. Should another process have been faster, that was for nothing."""
        with self._db.snapshot():
            self.refuse_others(source.digest)
            turn, log_ids = self._follower.turn(), self._follower.todo(_CHUNK)
        with log.snapshot():
            pages = log.pages(log_ids)
        found = self._read(list(pages.values()), source)
        settled = [log_id for log_id in log_ids if log_id in found or log_id not in pages]
        with self._follower.writing_after(turn) as is_first:
            if not is_first:
                return
            left = {self._leave(log_id) for log_id in settled}
            for log_id in found:
                self._enter(pages[log_id], found[log_id])
            for content_id in left:
                self._drop_unless_used(content_id)
            self._follower.cross_off(settled)

    def _read(self, pages: Sequence[LoggedPage], source: FieldSource) -> dict[int, ExtractedRows | None]:
        """What was taken of as many pages as there is room for in memory; None where it is known already."""
        found: dict[int, ExtractedRows | None] = {}
        fresh: set[bytes] = set()
        room = _CHUNK_CHARS
        for page in pages:
            if room <= 0:
                break
            key = _key(page)
            taken = None if key in fresh or self._content(key) is not None else source.extract(page)
            found[page.log_id] = taken
            if taken is not None and taken is not LOST:
                fresh.add(key)
                room -= len(json.dumps(taken.rows))
        return found

    def _content(self, key: bytes) -> int | None:
        row = self._db.execute("SELECT content_id FROM content WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _enter(self, page: LoggedPage, taken: ExtractedRows | None) -> None:
        # Another visit with this body may still have it.
        key = _key(page) if taken is not LOST else b"lost %d" % page.log_id
        content_id = self._content(key)
        if content_id is None:
            assert taken is not None
            rows = taken.rows or []
            matched = [number for number, values in enumerate(zip(*rows, strict=True)) if any(map(_is_there, values))]
            content_id = self._db.insert(
                'INSERT INTO content (key, matched, "rows", failure) VALUES (?, ?, ?, ?) RETURNING content_id',
                (key, json.dumps(matched), None if taken.rows is None else json.dumps(rows), taken.failure),
            )
        self._db.execute("INSERT INTO page VALUES (?, ?, ?, ?)", (page.log_id, page.run_id, page.seq, content_id))
        self._count(page.run_id, content_id, 1)

    def _leave(self, log_id: int) -> int | None:
        """Take a visit out; the content that it had comes back."""
        row = self._db.execute("SELECT run_id, content_id FROM page WHERE log_id = ?", (log_id,)).fetchone()
        if row is None:
            return None
        self._count(row[0], row[1], -1)
        self._db.execute("DELETE FROM page WHERE log_id = ?", (log_id,))
        return int(row[1])

    def _drop_unless_used(self, content_id: int | None) -> None:
        self._db.execute(
            "DELETE FROM content WHERE content_id = ?1 AND NOT EXISTS (SELECT 1 FROM page WHERE content_id = ?1)",
            (content_id,),
        )

    # Counting

    def _count(self, run_id: int, content_id: int, sign: int) -> None:
        row = self._db.execute(
            'SELECT matched, "rows" IS NULL, json_array_length("rows") FROM content WHERE content_id = ?', (content_id,)
        ).fetchone()
        if row is None:
            raise UnfitFile("it has a visit without a content")
        matched, failed, count = row
        try:
            fields = {str(number): 1 for number in json.loads(matched)}
        except ValueError as error:
            raise UnfitFile("a content is damaged") from error
        what = {"pages": 1, "failed": failed, "rows": count or 0, **fields}
        self._db.executemany(
            "INSERT INTO tally VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET count = count + ?3",
            [(run_id, name, sign * number) for name, number in what.items() if number],
        )

    def counts(self, run_id: int) -> FieldCounts:
        found = Counter(dict(self._db.execute("SELECT what, count FROM tally WHERE run_id = ?", (run_id,)).fetchall()))
        numbers = {int(what): count for what, count in found.items() if what.isdecimal()}
        return FieldCounts(found["pages"], found["rows"], found["failed"], numbers)


def _key(page: LoggedPage) -> bytes:
    """What the rows of a page depend on beside the rules: its body, what it is said to be, and its address."""
    if page.payload is None:
        return b"lost %d" % page.log_id
    told = b"\0".join((page.payload, page.content_type.encode(), page.request_url.encode("utf-8", "replace")))
    return hashlib.sha256(told).digest()[:16]


def _is_there(value: Json) -> bool:
    return value is not None and value != []
