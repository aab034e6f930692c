"""Following a crawl's log, for whatever is kept beside it in a file of its own.

A follower is never part of a commit. What it is to hold follows from the log alone: of each URL the newest visit that
tells whether the page is there, or every visit that found a page. So whatever happens to a URL, or to a visit, it is
only noted in `todo`, and later looked up anew. How far the log was followed is written together with what was noted: a
process that dies at any moment leaves a follower that is behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from inchworm.errors import Broken
from inchworm.store.crawl.commit import marks
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.sqlite import BUSY_SECONDS, plain_errors, snapshot

STEP = 5_000
"""How many entries of the log are noted in one transaction."""

_SCHEMA = """
CREATE TABLE followed (
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  version  TEXT NOT NULL,
  log_id   INTEGER NOT NULL,  -- the last entry of the log that was seen
  turn     INTEGER NOT NULL   -- one more with every transaction
);
CREATE TABLE step (           -- up to which seq of each run it was seen which visits got another verdict
  run_id   INTEGER PRIMARY KEY,
  seq      INTEGER NOT NULL
);
CREATE TABLE judged (         -- the verdicts that going back takes back: seq is the step that gave them
  run_id   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  {subject} INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq, {subject})
) WITHOUT ROWID;
CREATE TABLE todo (           -- what has to be looked up
  {subject} INTEGER PRIMARY KEY
);
"""

URL, VISIT = "url_id", "log_id"
"""What a follower holds something of."""

TELLING = (
    "v.kind = 'page' AND (v.outcome IN ('page', 'duplicate', 'deleted')"
    " OR (v.outcome = 'redirect' AND v.change = 'deleted'))"
)
"""What a visit is like that tells whether its page is there."""

_IS_PAGE = "v.kind = 'page' AND v.outcome IN ('page', 'duplicate')"
_MATTERS = {URL: TELLING, VISIT: _IS_PAGE}

_DAMAGE = {1, 11, 26}
"""SQLite's codes for a table that is not there, a malformed file, and no database at all."""

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""How many URLs or visits were looked up, of how many."""


class Page(NamedTuple):
    """What the crawl has last on a URL."""

    url_id: int
    url: str
    log_id: int
    run_id: int
    seq: int
    run: int
    at_ms: int
    outcome: str
    text_hash: bytes | None
    payload: bytes | None
    content_type: str
    title: str
    request_url: str

    @property
    def is_there(self) -> bool:
        return self.outcome in ("page", "duplicate")

    @property
    def key(self) -> bytes:
        """What names the content of a page. One without a hash has it for itself."""
        return self.text_hash or b"url %d" % self.url_id


PAGE = (
    "v.run_id, v.seq, r.number, v.at_ms, v.outcome, v.text_hash, v.payload, COALESCE(v.content_type, ''),"
    " COALESCE(v.title, ''), COALESCE(v.request_url, u.url)"
)
"""The columns of a page after its URL and its number in the log."""


# ---- the file


class File(NamedTuple):
    """A follower's own file. `schema` makes its tables beside those that every follower has; one of them is `page`, with
    log_id, run_id and seq of what it holds, and with its `subject`. A file of another version is made anew. Whoever uses
    it shares the folder or file `shared` with the others, and whoever replaces it has that alone; None: only one uses it
    at a time."""

    path: Path
    version: str
    schema: str
    shared: Path | None = None
    subject: str = URL


class Unfit(Broken):
    """The file does not fit its crawl, or itself."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"What follows the crawl's log is of no use: {why}.",
            "Delete search.db, fields.db and index.db in the crawl's folder; they are made anew from the archive.",
        )


class _Missing(Unfit):
    """There is no file, or one of another version."""


def used(file: File, work: Callable[[sqlite3.Connection], T]) -> T:
    """Work with a file, made anew where it is of no use."""
    for is_last in (False, True):
        try:
            with shared(file) as db:
                return work(db)
        except (Unfit, sqlite3.DatabaseError) as error:
            if is_last or not _is_damage(error):
                with plain_errors(file.path):
                    raise
            make_anew(file, keep_if_fit=isinstance(error, _Missing))
    raise AssertionError("the second try returns or raises")


@contextlib.contextmanager
def shared(file: File) -> Iterator[sqlite3.Connection]:
    """A file that others may use, too, and nobody may replace; `Unfit` when it is of no use."""
    with _locked(file, fcntl.LOCK_SH), contextlib.closing(_opened(file)) as db:
        yield db


def _is_damage(error: Exception) -> bool:
    return isinstance(error, Unfit) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


@contextlib.contextmanager
def _locked(file: File, mode: int) -> Iterator[None]:
    if file.shared is None:
        yield
        return
    # A folder cannot be made by opening it, and is there.
    make = 0 if file.shared.is_dir() else os.O_CREAT
    descriptor = os.open(file.shared, os.O_RDONLY | os.O_CLOEXEC | make, 0o666)
    try:
        fcntl.flock(descriptor, mode)
        yield
    finally:
        os.close(descriptor)


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)


def _opened(file: File) -> sqlite3.Connection:
    if not file.path.exists():
        raise _Missing("there is none")
    db = _connected(file.path)
    try:
        if not _is_fit(db, file.version):
            raise _Missing("it is of another version")
        # What a power cut takes away is read again; that the file stays whole is enough.
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def _is_fit(db: sqlite3.Connection, version: str) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'followed'").fetchone():
        return False
    return bool(db.execute("SELECT version FROM followed").fetchone() == (version,))


def make_anew(file: File, keep_if_fit: bool = False) -> None:
    """Put an empty file in the place of what is there."""
    path = file.path
    with _locked(file, fcntl.LOCK_EX), plain_errors(path):
        if keep_if_fit:
            # Another process may have been faster.
            with contextlib.suppress(Unfit, sqlite3.DatabaseError), contextlib.closing(_opened(file)):
                return
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
            path.with_name(name).unlink(missing_ok=True)
        with contextlib.closing(_connected(path)) as db:
            # Texts are a few thousand bytes each: on small pages, one of each would lie alone.
            db.execute("PRAGMA page_size = 16384")
            db.execute("PRAGMA journal_mode = WAL")
            first = f"INSERT INTO followed VALUES (1, '{file.version}', 0, 0);"
            common = _SCHEMA.format(subject=file.subject)
            db.executescript(f"BEGIN; {common} {file.schema} {first} COMMIT")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


# ---- the follower


class Follower:
    """Notes what has to be looked up. What comes of it is for those who build on it."""

    subject = URL

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def number(self, query: str) -> int:
        return int(self.db.execute(query).fetchone()[0])

    def follow(self, log: Log) -> None:
        """Note everything up to where the log ends now. Others may do the same at the same time."""
        seen, end = self.number("SELECT log_id FROM followed"), log.end()
        if seen > end:
            raise Unfit("this is not the log that was followed, somebody put an older one in its place")
        if seen < end or self._new_steps(log):
            while self._step(log) < end:
                pass

    def work_off(self, step: Callable[[], None], progress: Progress) -> None:
        """Take one step after the other until nothing has to be looked up."""
        total = left = self.left()
        while left:
            progress(max(total - left, 0), total)
            step()
            left = self.left()
        progress(total, total)

    def _step(self, log: Log) -> int:
        """Note what some entries of the log, and verdicts given since, have something to say of; how far it came."""
        with transaction(self.db, "IMMEDIATE"), log.snapshot():
            seen = self.number("SELECT log_id FROM followed")
            upto = log.step_from(seen)
            self.db.executemany(
                "INSERT OR IGNORE INTO todo SELECT ?1 WHERE NOT EXISTS"
                f" (SELECT 1 FROM page WHERE {self.subject} = ?1 AND log_id >= ?2)",
                log.visits(self.subject, seen, upto),
            )
            for entry in log.undone(seen, upto):
                self._take_back(*entry)
            self._look_at_verdicts(log)
            self.db.execute("UPDATE followed SET log_id = ?, turn = turn + 1", (upto,))
        return upto

    def _take_back(self, log_id: int, run_id: int, from_seq: int) -> None:
        """Visits of a run are no more, nor are the verdicts that were given in those steps."""
        execute, later, note = self.db.execute, (run_id, from_seq), f"INSERT OR IGNORE INTO todo SELECT {self.subject}"
        execute(f"{note} FROM page WHERE run_id = ? AND seq >= ? AND log_id < ?", (*later, log_id))
        execute(f"{note} FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("DELETE FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("UPDATE step SET seq = MIN(seq, ?) WHERE run_id = ?", (from_seq - 1, run_id))

    def _look_at_verdicts(self, log: Log) -> None:
        """A step may have judged older visits anew, which leaves no entry in the log."""
        for run_id, seen, seq in self._new_steps(log):
            judged = log.judged(self.subject, run_id, seen)
            self.db.executemany("INSERT OR IGNORE INTO judged VALUES (?, ?, ?)", judged)
            self.db.executemany("INSERT OR IGNORE INTO todo VALUES (?)", [(subject,) for _, _, subject in judged])
            self.db.execute("INSERT OR REPLACE INTO step VALUES (?, ?)", (run_id, seq))

    def _new_steps(self, log: Log) -> list[tuple[int, int, int]]:
        """Each run with steps that were not looked at: up to where they were, and where it stands."""
        seen = dict(self.db.execute("SELECT run_id, seq FROM step").fetchall())
        return [(run_id, seen.get(run_id, 0), seq) for run_id, seq in log.runs() if seq > seen.get(run_id, 0)]

    # Looking it up

    def todo(self, limit: int) -> list[int]:
        return [one for (one,) in self.db.execute(f"SELECT {self.subject} FROM todo LIMIT ?", (limit,))]

    def left(self) -> int:
        """How much has to be looked up."""
        return self.number("SELECT COUNT(*) FROM todo")

    def turn(self) -> int:
        return self.number("SELECT turn FROM followed")

    @contextlib.contextmanager
    def writing_after(self, turn: int) -> Iterator[bool]:
        """A transaction, and whether nobody has written since this turn: otherwise what was read then is of no use."""
        with transaction(self.db, "IMMEDIATE"):
            yield self.turn() == turn

    def cross_off(self, found: Sequence[int]) -> None:
        """These were looked up, inside the open transaction."""
        self.db.executemany(f"DELETE FROM todo WHERE {self.subject} = ?", [(one,) for one in found])
        self.db.execute("UPDATE followed SET turn = turn + 1")


# ---- the log


class Log:
    """What followers ask of the crawl's own store."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db
        self._path = store.path

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        # What is wrong with the crawl's file must not be taken for damage to the follower's.
        with plain_errors(self._path):
            return self._db.execute(query, arguments).fetchall()

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything asked in here is as it was at one moment."""
        return snapshot(self._db)

    def end(self) -> int:
        newest = (
            "SELECT MAX(COALESCE((SELECT MAX(log_id) FROM visit), 0), COALESCE((SELECT MAX(log_id) FROM undone), 0))"
        )
        return int(self.rows(newest)[0][0])

    def step_from(self, seen: int) -> int:
        """Where a step of bounded size ends."""
        rows = self.rows("SELECT log_id FROM visit WHERE log_id > ? ORDER BY log_id LIMIT 1 OFFSET ?", seen, STEP)
        return int(rows[0][0]) if rows else self.end()

    def visits(self, subject: str, seen: int, upto: int) -> list[tuple[int, int]]:
        """Subject and number of the entries that matter to it."""
        where = f"v.log_id > ? AND v.log_id <= ? AND {_MATTERS[subject]}"
        return self.rows(f"SELECT v.{subject}, v.log_id FROM visit v WHERE {where}", seen, upto)

    def undone(self, seen: int, upto: int) -> list[tuple[int, int, int]]:
        query = "SELECT log_id, run_id, from_seq FROM undone WHERE log_id > ? AND log_id <= ? ORDER BY log_id"
        return self.rows(query, seen, upto)

    def runs(self) -> list[tuple[int, int]]:
        return self.rows("SELECT run_id, seq FROM run")

    def judged(self, subject: str, run_id: int, after: int) -> list[tuple[int, int, int]]:
        """Visits that later steps judged anew in a way that matters here: run, step and subject. Every such step has left
        what it changed in `undo`."""
        query = (
            f"SELECT n.run_id, n.seq, v.{subject} FROM undo n JOIN visit v ON v.run_id = n.run_id AND v.seq = n.subject_id"
            " WHERE n.run_id = ? AND n.seq > ? AND n.subject = 'visit' AND v.kind = 'page'"
            " AND v.outcome IN ('redirect', 'retry')"
        )
        return self.rows(query, run_id, after)

    def newest(self, url_ids: Sequence[int]) -> dict[int, Page]:
        """The newest visit of each URL that tells whether the page is there. A bare column comes from the row with the
        maximum."""
        query = (
            f"SELECT v.url_id, u.url, MAX(v.log_id), {PAGE}"
            " FROM visit v INDEXED BY visit_url JOIN url u USING (url_id) JOIN run r USING (run_id)"
            f" WHERE v.url_id IN ({marks(len(url_ids))}) AND {TELLING} GROUP BY v.url_id"
        )
        return {row[0]: Page._make(row) for row in self.rows(query, *url_ids)}

    def pages(self, log_ids: Sequence[int]) -> dict[int, Page]:
        """Of these visits those that are there and found a page, by their number."""
        query = (
            f"SELECT v.url_id, u.url, v.log_id, {PAGE} FROM visit v JOIN url u USING (url_id) JOIN run r USING (run_id)"
            f" WHERE v.log_id IN ({marks(len(log_ids))}) AND {_IS_PAGE}"
        )
        return {row[2]: Page._make(row) for row in self.rows(query, *log_ids)}
