"""Opening SQLite files: durability, migrations, and errors in plain words."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inchworm.errors import Broken, NotNow, TooNew, Unknown

BUSY_SECONDS = 60.0
_SWITCH_SECONDS = 5.0
_TICK_NS = 1_000_000_000
_SMALL_CACHE = 6_000
_LARGE_CACHE = 98_000
"""In KB."""


class _Connection(sqlite3.Connection):
    """Says what went wrong in our words, wherever a statement fails."""

    path = Path()

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        except sqlite3.Error as error:
            raise _broken(self.path, error) from error

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().executemany(*arguments)
        except sqlite3.Error as error:
            raise _broken(self.path, error) from error


def open_file(path: Path, schema: str, read_only: bool = False) -> sqlite3.Connection:
    """A connection to a file of this schema, brought up to date first unless it is only read."""
    if read_only and not path.exists():
        raise Unknown(f"There is no {path}.", "`inchworm list` shows the crawls in this home.")
    mode = "ro" if read_only else "rwc"
    with plain_errors(path):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
            factory=_Connection,
        )
        connection.path = path
        try:
            _prepare(connection, path, schema, read_only)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, schema: str, read_only: bool) -> None:
    steps = _migrations(schema)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise TooNew(
            f"{path} was written by a newer inchworm (schema {version}, this one knows {len(steps)}).",
            "Upgrade inchworm: pip install --upgrade inchworm",
        )
    if read_only and not version:
        raise _not_ready(path)
    if read_only and version < len(steps):
        _bring_up_to_date(path, schema)
    size_cache(connection, 0)
    if read_only:
        return
    # WAL lets others read while the owner writes; FULL makes a commit survive a power cut.
    _use_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # The index of URLs is written all over: the longer the log, the more often a page is changed before it is copied.
    connection.execute("PRAGMA wal_autocheckpoint = 16000")
    for number in range(version, len(steps)):
        _migrate(connection, number + 1, steps[number])


def _bring_up_to_date(path: Path, schema: str) -> None:
    """For whoever only reads, and comes first after an upgrade."""
    try:
        open_file(path, schema).close()
    except Broken:
        raise _not_ready(path) from None


def _not_ready(path: Path) -> NotNow:
    hint = "Try again in a moment; a crawl that works on it brings it up to date."
    return NotNow(f"{path} is not ready to be read.", hint)


def size_cache(connection: sqlite3.Connection, rows: int) -> None:
    """A page cache for so many rows: a small crawl needs little, and no crawl takes more than 96 MB."""
    connection.execute(f"PRAGMA cache_size = {-min(_SMALL_CACHE + rows // 12, _LARGE_CACHE)}")


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL. While several processes do that at once SQLite says `locked` without waiting, so we wait."""
    deadline = time.monotonic() + _SWITCH_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except Broken as error:
            if "locked" not in error.message or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection, version: int, text: str) -> None:
    """One step, all of it or nothing; whoever comes second finds it done."""
    with transaction(connection):
        if connection.execute("PRAGMA user_version").fetchone()[0] >= version:
            return
        for statement in _statements(text):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")


def _migrations(schema: str) -> list[str]:
    folder = Path(__file__).parent / "migrations"
    names = sorted(f.name for f in folder.iterdir() if f.name.startswith(f"{schema}_"))
    return [(folder / name).read_text() for name in names]


def _statements(text: str) -> list[str]:
    """`executescript` would commit behind our back, so the statements run one by one."""
    without_comments = re.sub(r"--[^\n]*", "", text)
    return [s for s in (piece.strip() for piece in without_comments.split(";")) if s]


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(Broken):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything that is read in here is as it was at one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextlib.contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """SQLite's failures as ours: named, with the next step. What was committed stays committed."""
    try:
        yield
    except sqlite3.Error as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: sqlite3.Error) -> Broken:
    return Broken(f"{path}: {error}.", _hint(str(error)))


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
