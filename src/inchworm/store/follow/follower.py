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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from inchworm.errors import Broken
from inchworm.store.database import Database, DatabaseFailed, DatabaseTrouble
from inchworm.store.follow.log import URL, CrawlLog
from inchworm.store.sqlite import make_own, open_own

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

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""How many URLs or visits were looked up, of how many."""


# ---- the file


class FollowerFile(NamedTuple):
    """A follower's own file. `schema` makes its tables beside those that every follower has; one of them is `page`, with
    log_id, run_id and seq of what it holds, and with its `subject`. A file of another version is made anew. Whoever uses
    it shares the folder or file `shared` with the others, and whoever replaces it has that alone; None: only one uses it
    at a time."""

    path: Path
    version: str
    schema: str
    shared: Path | None = None
    subject: str = URL


class UnfitFile(Broken):
    """The file does not fit its crawl, or itself."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"What follows the crawl's log is of no use: {why}.",
            "Delete search.db, fields.db, frames.db and index.db in the crawl's folder; they are made anew from the archive.",
        )


class _MissingFile(UnfitFile):
    """There is no file, or one of another version."""


def use(file: FollowerFile, work: Callable[[Database], T]) -> T:
    """Work with a file, made anew where it is of no use."""
    for is_last in (False, True):
        try:
            with sharing(file) as db:
                return work(db)
        except (UnfitFile, DatabaseFailed) as error:
            if is_last or not _is_damage(error):
                raise
            make_anew(file, keep_if_fit=isinstance(error, _MissingFile))
    raise AssertionError("the second try returns or raises")


@contextlib.contextmanager
def sharing(file: FollowerFile) -> Iterator[Database]:
    """A file that others may use, too, and nobody may replace; `UnfitFile` when it is of no use."""
    with _locked(file, fcntl.LOCK_SH), contextlib.closing(_opened(file)) as db:
        yield db


def _is_damage(error: Exception) -> bool:
    return isinstance(error, UnfitFile) or (
        isinstance(error, DatabaseFailed) and error.trouble is DatabaseTrouble.DAMAGED
    )


@contextlib.contextmanager
def _locked(file: FollowerFile, mode: int) -> Iterator[None]:
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


def _opened(file: FollowerFile) -> Database:
    if not file.path.exists():
        raise _MissingFile("there is none")
    db = open_own(file.path)
    try:
        if not _is_fit(db, file.version):
            raise _MissingFile("it is of another version")
        # What a power cut takes away is read again; that the file stays whole is enough.
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def _is_fit(db: Database, version: str) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'followed'").fetchone():
        return False
    return bool(db.execute("SELECT version FROM followed").fetchone() == (version,))


def make_anew(file: FollowerFile, keep_if_fit: bool = False) -> None:
    """Put an empty file in the place of what is there."""
    path = file.path
    with _locked(file, fcntl.LOCK_EX):
        if keep_if_fit:
            # Another process may have been faster.
            with contextlib.suppress(UnfitFile, DatabaseFailed), contextlib.closing(_opened(file)):
                return
        first = f"INSERT INTO followed VALUES (1, '{file.version}', 0, 0);"
        make_own(path, f"{_SCHEMA.format(subject=file.subject)} {file.schema} {first}")


# ---- the follower


def number(db: Database, query: str) -> int:
    """The one number that a query asks for."""
    return int(db.execute(query).fetchone()[0])


def work_off(left: Callable[[], int], step: Callable[[], None], progress: Progress) -> None:
    """Take one step after the other until nothing is left to do."""
    total = to_do = left()
    while to_do:
        progress(max(total - to_do, 0), total)
        step()
        to_do = left()
    progress(total, total)


class Follower:
    """How far a file has followed the log, and what has to be looked up for it. What comes of that is for whoever has a
    follower."""

    def __init__(self, db: Database, subject: str = URL) -> None:
        self._db = db
        self._subject = subject

    def position(self) -> int:
        """The last entry of the log that was seen."""
        return number(self._db, "SELECT log_id FROM followed")

    def follow(self, log: CrawlLog) -> None:
        """Note everything up to where the log ends now. Others may do the same at the same time."""
        seen, end = self.position(), log.end()
        if seen > end:
            raise UnfitFile("this is not the log that was followed, somebody put an older one in its place")
        if seen < end or self._new_steps(log):
            while self._step(log) < end:
                pass

    def _step(self, log: CrawlLog) -> int:
        """Note what some entries of the log, and verdicts given since, have something to say of; how far it came."""
        with self._db.transaction(), log.snapshot():
            seen = self.position()
            upto = log.step_from(seen)
            self._db.executemany(
                "INSERT OR IGNORE INTO todo SELECT ?1 WHERE NOT EXISTS"
                f" (SELECT 1 FROM page WHERE {self._subject} = ?1 AND log_id >= ?2)",
                log.visits(self._subject, seen, upto),
            )
            for entry in log.undone(seen, upto):
                self._take_back(*entry)
            self._look_at_verdicts(log)
            self._db.execute("UPDATE followed SET log_id = ?, turn = turn + 1", (upto,))
        return upto

    def _take_back(self, log_id: int, run_id: int, from_seq: int) -> None:
        """Visits of a run are no more, nor are the verdicts that were given in those steps."""
        execute, later, note = (
            self._db.execute,
            (run_id, from_seq),
            f"INSERT OR IGNORE INTO todo SELECT {self._subject}",
        )
        execute(f"{note} FROM page WHERE run_id = ? AND seq >= ? AND log_id < ?", (*later, log_id))
        execute(f"{note} FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("DELETE FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("UPDATE step SET seq = MIN(seq, ?) WHERE run_id = ?", (from_seq - 1, run_id))

    def _look_at_verdicts(self, log: CrawlLog) -> None:
        """A step may have judged older visits anew, which leaves no entry in the log."""
        for run_id, seen, seq in self._new_steps(log):
            judged = log.judged(self._subject, run_id, seen)
            self._db.executemany("INSERT OR IGNORE INTO judged VALUES (?, ?, ?)", judged)
            self._db.executemany("INSERT OR IGNORE INTO todo VALUES (?)", [(subject,) for _, _, subject in judged])
            self._db.execute("INSERT OR REPLACE INTO step VALUES (?, ?)", (run_id, seq))

    def _new_steps(self, log: CrawlLog) -> list[tuple[int, int, int]]:
        """Each run with steps that were not looked at: up to where they were, and where it stands."""
        seen = dict(self._db.execute("SELECT run_id, seq FROM step").fetchall())
        return [(run_id, seen.get(run_id, 0), seq) for run_id, seq in log.runs() if seq > seen.get(run_id, 0)]

    # Looking it up

    def todo(self, limit: int) -> list[int]:
        return [one for (one,) in self._db.execute(f"SELECT {self._subject} FROM todo LIMIT ?", (limit,))]

    def left(self) -> int:
        """How much has to be looked up."""
        return number(self._db, "SELECT COUNT(*) FROM todo")

    def turn(self) -> int:
        return number(self._db, "SELECT turn FROM followed")

    @contextlib.contextmanager
    def writing_after(self, turn: int) -> Iterator[bool]:
        """A transaction, and whether nobody has written since this turn: otherwise what was read then is of no use."""
        with self._db.transaction():
            yield self.turn() == turn

    def cross_off(self, found: Sequence[int]) -> None:
        """These were looked up, inside the open transaction."""
        self._db.executemany(f"DELETE FROM todo WHERE {self._subject} = ?", [(one,) for one in found])
        self._db.execute("UPDATE followed SET turn = turn + 1")
