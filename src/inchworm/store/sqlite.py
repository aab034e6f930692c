"""The adapter for SQLite: one file each. Durability, migrations, locks between processes, errors in plain words."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from inchworm.errors import Broken, NotNow, TooNew, Unknown
from inchworm.store.database import DatabaseFailed, DatabaseTrouble, Row, Values
from inchworm.store.lock import OwnerLock

BUSY_SECONDS = 60.0
_SWITCH_SECONDS = 5.0
_TURN_SECONDS = 0.002
_TICK_NS = 1_000_000_000
_TRIES = 10
_SMALL_CACHE = 6_000
_LARGE_CACHE = 98_000
"""In KB."""

_AT_ONCE = 256
_LENGTHS = (1, 4, 16, 64, _AT_ONCE, 1024, 4096, 16384)
"""Lists have one of these lengths, their last value repeated, so that there are few statements to be kept compiled."""

_KEPT = 4096
"""So many statements are remembered as SQLite reads them."""

_HINT = re.compile(r"/\*sqlite (.*?)\*/")
_LARGEST = re.compile(r"\b(GREATEST|LEAST)\(")
_SPELLED = {"GREATEST": "MAX(", "LEAST": "MIN("}
_LIST = "= ANY (?)"

# For a value that is neither a number nor a text, sqlite3 searches long for somebody who turns it into one, and half of
# what we write is that: these say at once that it stays as it is.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(type(None), dict[None, None]().get)


class _Connection(sqlite3.Connection):
    path = Path()
    """Of the file, for messages."""


class _Cursor(sqlite3.Cursor):
    """Says what went wrong in our words, also where a row cannot be read."""

    def __iter__(self) -> Iterator[Row]:  # type: ignore[override]
        try:
            # A cursor is its own iterator, and would bring us back here.
            yield from iter(super().__next__, None)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def fetchone(self) -> Row:
        try:
            return super().fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def fetchall(self) -> list[Row]:
        try:
            return super().fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> DatabaseFailed:
        return _failed(getattr(self.connection, "path", Path()), error)


class SqliteDatabase:
    """An open file, as the port `Database` describes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path, schema: str) -> None:
        self._connection = connection
        self._path = path
        self._stat: os.stat_result | None = None
        self.schema = schema
        """Whose statements these are; empty for a file of our own, which only SQLite ever reads."""

    def execute(self, sql: str, values: Values = ()) -> _Cursor:
        text, lists = native(sql)
        if lists:
            text, values = _with_lists(text, lists, values)
        try:
            return self._connection.cursor(_Cursor).execute(text, values)
        except sqlite3.Error as error:
            raise _failed(self._path, error) from error

    def executemany(self, sql: str, rows: Iterable[Values]) -> _Cursor:
        try:
            return self._connection.cursor(_Cursor).executemany(native(sql)[0], rows)
        except sqlite3.Error as error:
            raise _failed(self._path, error) from error

    def insert(self, sql: str, values: Values) -> int:
        ((row_id,),) = self.execute(sql, values).fetchall()
        return int(row_id)

    def among(self, sql: str, values: Iterable[object], *given: object) -> Iterator[Row]:
        before = sql.partition(_LIST)[0].count("?")
        left = iter(values)
        while some := list(islice(left, _AT_ONCE)):
            yield from self.execute(sql, (*given[:before], some, *given[before:])).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Row]:
        return iter(self.execute(sql, values))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(Broken):
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        self.execute("BEGIN")
        try:
            yield
        finally:
            self.execute("COMMIT")

    @contextlib.contextmanager
    def alone(self, name: str, while_waiting: Callable[[], None]) -> Iterator[None]:
        with self._path.with_name(f"{name}.lock").open("a") as turn:
            self._take(turn, while_waiting)
            yield

    def _take(self, turn: IO[str], while_waiting: Callable[[], None]) -> None:
        """Wait for our turn, but not for ever: whoever has it may have been stopped."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DatabaseFailed(
                        f"{self._path} has been locked for {BUSY_SECONDS:.0f} seconds.",
                        "A process of this home stands still in the middle of a write; end it and try again.",
                        DatabaseTrouble.BUSY,
                    ) from None
                while_waiting()
                time.sleep(_TURN_SECONDS)
            else:
                return

    def expect(self, rows: int) -> None:
        """A page cache for so many rows: a small crawl needs little, and no crawl takes more than 96 MB."""
        self.execute(f"PRAGMA cache_size = {-min(_SMALL_CACHE + rows // 12, _LARGE_CACHE)}")

    def _note_file(self) -> None:
        """From now on this is the file, whatever comes to lie in its place."""
        self._stat = self._path.stat()

    def is_same(self) -> bool:
        try:
            return self._stat is not None and os.path.samestat(self._stat, self._path.stat())
        except OSError:
            return False

    def check(self) -> str:
        return str(self.execute("PRAGMA integrity_check(1)").fetchone()[0])

    def close(self) -> None:
        self._connection.close()


# ---- statements


@functools.lru_cache(_KEPT)
def native(sql: str) -> tuple[str, tuple[int, ...]]:
    """A statement as SQLite reads it, and which of its values are lists."""
    text = _LARGEST.sub(lambda found: _SPELLED[found[1]], _HINT.sub(r"\1", sql))
    pieces = text.split(_LIST)
    counts = [piece.count("?") for piece in pieces[:-1]]
    return text, tuple(sum(counts[: number + 1]) + number for number in range(len(counts)))


def _with_lists(text: str, lists: tuple[int, ...], values: Values) -> tuple[str, list[object]]:
    """The statement for lists of these lengths, and its values one by one."""
    assert isinstance(values, Sequence)
    given: list[object] = []
    lengths = []
    for number, value in enumerate(values):
        if number in lists:
            assert isinstance(value, Sequence)
            length = next(one for one in _LENGTHS if one >= len(value))
            lengths.append(length)
            given += value
            given += (value[-1] if value else None,) * (length - len(value))
        else:
            given.append(value)
    return _sized(text, tuple(lengths)), given


@functools.lru_cache(_KEPT)
def _sized(text: str, lengths: tuple[int, ...]) -> str:
    first, *rest = text.split(_LIST)
    return first + "".join(
        f"IN ({', '.join('?' * length)}){piece}" for length, piece in zip(lengths, rest, strict=True)
    )


# ---- files


def open_file(path: Path, schema: str, read_only: bool = False) -> SqliteDatabase:
    """A file of this schema, brought up to date first unless it is only read."""
    if read_only and not path.exists():
        raise Unknown(f"There is no {path}.", "`inchworm list` shows the crawls in this home.")
    db = _opened(path, schema, "ro" if read_only else "rwc")
    try:
        _prepare(db, path, schema, read_only)
        db._note_file()
    except BaseException:
        db.close()
        raise
    return db


def open_own(path: Path, read_only: bool = False) -> SqliteDatabase:
    """A file of our own beside the crawl's, as it is."""
    return _opened(path, "", "ro" if read_only else "rwc")


def make_own(path: Path, tables: str) -> None:
    """An empty file with these tables, in the place of what is there."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
        path.with_name(name).unlink(missing_ok=True)
    with contextlib.closing(open_own(path)) as db:
        # Texts are a few thousand bytes each: on small pages, one of each would lie alone.
        db.execute("PRAGMA page_size = 16384")
        db.execute("PRAGMA journal_mode = WAL")
        with db.transaction():
            for statement in _statements(tables):
                db.execute(statement)


def open_unnamed() -> SqliteDatabase:
    """A file without a name, which may be larger than memory, and is gone when it is closed."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False, factory=_Connection)
    db = SqliteDatabase(connection, Path(), "")
    for statement in ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = OFF"):
        db.execute(statement)
    return db


def _opened(path: Path, schema: str, mode: str) -> SqliteDatabase:
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
            factory=_Connection,
        )
        connection.path = path
    except sqlite3.Error as error:
        raise _failed(path, error) from error
    return SqliteDatabase(connection, path, schema)


def _prepare(db: SqliteDatabase, path: Path, schema: str, read_only: bool) -> None:
    steps = _migrations(schema)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise TooNew(
            f"{path} was written by a newer inchworm (schema {version}, this one knows {len(steps)}).",
            "Upgrade inchworm: pip install --upgrade inchworm",
        )
    if read_only and not version:
        raise _not_ready(path)
    if read_only and version < len(steps):
        _bring_up_to_date(path, schema)
    db.expect(0)
    if read_only:
        return
    # WAL lets others read while the owner writes; FULL makes a commit survive a power cut.
    _use_log(db)
    db.execute("PRAGMA synchronous = FULL")
    # The index of URLs is written all over: the longer the log, the more often a page is changed before it is copied.
    db.execute("PRAGMA wal_autocheckpoint = 16000")
    for number in range(version, len(steps)):
        _migrate(db, number + 1, steps[number])


def _bring_up_to_date(path: Path, schema: str) -> None:
    """For whoever only reads, and comes first after an upgrade. Only an owner may do that, so one has to be it meanwhile;
    whoever works on the crawl, by an older version, is left alone."""
    lock = OwnerLock(path.parent)
    try:
        # Others that only read may be at it just now; that takes a moment.
        if not any(lock.acquire() for _ in range(_TRIES)):
            raise _not_ready(path)
        open_file(path, schema).close()
    except (Broken, OSError):
        raise _not_ready(path) from None
    finally:
        lock.release()


def _not_ready(path: Path) -> NotNow:
    hint = "Try again in a moment; a crawl that works on it brings it up to date."
    return NotNow(f"{path} is not ready to be read.", hint)


def _use_log(db: SqliteDatabase) -> None:
    """Switch to WAL. While several processes do that at once SQLite says `locked` without waiting, so we wait."""
    deadline = time.monotonic() + _SWITCH_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except Broken as error:
            if "locked" not in error.message or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(db: SqliteDatabase, version: int, text: str) -> None:
    """One step, all of it or nothing; whoever comes second finds it done."""
    with db.transaction():
        if db.execute("PRAGMA user_version").fetchone()[0] >= version:
            return
        for statement in _statements(text):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")


def _migrations(schema: str) -> list[str]:
    folder = Path(__file__).parent / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.startswith(f"{schema}_"))
    return [(folder / name).read_text() for name in names]


def _statements(text: str) -> list[str]:
    """`executescript` would commit behind our back, so the statements run one by one."""
    without_comments = re.sub(r"--[^\n]*", "", text)
    return [s for s in (piece.strip() for piece in without_comments.split(";")) if s]


def _failed(path: Path, error: sqlite3.Error) -> DatabaseFailed:
    """What was committed stays committed."""
    text, code = str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF
    trouble = DatabaseTrouble.DAMAGED if _NOT_THERE.match(text) else _FAILURES.get(code, DatabaseTrouble.OTHER)
    return DatabaseFailed(f"{path}: {text}.", _hint(text), trouble)


_FAILURES = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), DatabaseTrouble.BUSY),
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), DatabaseTrouble.GONE),
    **dict.fromkeys((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR), DatabaseTrouble.FULL),
    **dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), DatabaseTrouble.DAMAGED),
}
_NOT_THERE = re.compile("no such (table|column)|vtable constructor failed")


def _hint(text: str) -> str:
    if "full" in text or "disk I/O" in text:
        return "Free some disk space and run the same command again; nothing committed is lost."
    if "locked" in text:
        return "Another process holds the file. `inchworm status` names the owner; end it and try again."
    if "readonly" in text or "unable to open" in text:
        return "Check that the folder exists and may be written to."
    if "malformed" in text or "not a database" in text:
        return "The file is damaged. `inchworm doctor` tells more; restore it from a backup."
    return "`inchworm doctor` tells more."


def last_written(path: Path) -> tuple[int, ...]:
    """A mark of a database that stays the same as long as nobody writes; nothing when it was written just now, since
    it may be written again within one tick of the clock that files go by."""
    found: list[int] = []
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(OSError):
            file = path.with_name(name).stat()
            found += file.st_mtime_ns, file.st_size
    return tuple(found) if found and time.time_ns() - max(found[::2]) > _TICK_NS else ()
