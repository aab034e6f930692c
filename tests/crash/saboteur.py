"""The command line with something broken on purpose: `python saboteur.py PLAN crawl URL …`

PLAN is one of

    die-sql:N         SIGKILL right before the N-th SQL statement of any connection
    die-file:N        SIGKILL right before the N-th call that changes a file (of Python's, not of SQLite's)
    torn-write:N      the N-th write puts down half of its bytes, then SIGKILL
    fail-sql:N        the N-th SQL statement fails like a disk that cannot be read or written
    fail-row:N        so does the N-th row that is read from an answer
    lock-sql:N        the N-th transaction cannot begin, as when another process holds the file for too long
    lock-file:NAME    no transaction on the database of this name can begin, for the same reason
    fail-CALL:N:NAME  the N-th os.CALL fails with this errno (write, fdatasync, fsync, open, truncate, unlink)
    short-write:N     every N-th write puts down half of its bytes and says so
    poison:TEXT       SIGKILL while a page or sitemap that contains TEXT is read
    break:TEXT        an exception while a page, sitemap or robots.txt that contains TEXT is read
    clock:SECONDS     the wall clock is wrong by so much

so that the suite can reach places for which the product has no name.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any

_CHANGING = ("write", "fdatasync", "fsync", "open", "truncate", "ftruncate", "unlink", "replace", "rename", "mkdir")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Does something the N-th time it is called."""

    def __init__(self, count: int, then: Callable[[], None]) -> None:
        self._left = count
        self._then = then

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._then()


def at_sql(tick: Callable[[], None], start: str = "", file: str = "") -> None:
    """Have SQL statements pass `tick` first, below whatever the product does about errors.

    All of them, or those that start so, or those on the database of this name.
    """

    class Watched(sqlite3.Cursor):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            self._pass(sql)
            return super().execute(sql, *arguments)

        def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            self._pass(sql)
            return super().executemany(sql, *arguments)

        def _pass(self, sql: str) -> None:
            if sql.startswith(start) and (not file or self._name() == file):
                tick()

        def _name(self) -> str:
            return self.connection.execute("PRAGMA database_list").fetchone()[2].rpartition("/")[2]

    # The store makes its own kind of cursor of this one.
    sqlite3.Cursor = Watched


def at_row(tick: Callable[[], None]) -> None:
    """Have every reading of rows pass `tick` first."""

    class Watched(sqlite3.Cursor):
        def __next__(self) -> Any:
            tick()
            return super().__next__()

        def fetchone(self) -> Any:
            tick()
            return super().fetchone()

        def fetchall(self) -> list[Any]:
            tick()
            return super().fetchall()

    # The store makes its own kind of cursor of this one.
    sqlite3.Cursor = Watched


def at_call(name: str, tick: Callable[[], None]) -> None:
    real = getattr(os, name)

    def watched(*args: Any, **kwargs: Any) -> Any:
        if name != "open" or args[1] & (os.O_WRONLY | os.O_RDWR):
            tick()
        return real(*args, **kwargs)

    setattr(os, name, watched)


def tear_write(count: int) -> None:
    real, left = os.write, [count]

    def torn(descriptor: int, data: Any) -> int:
        left[0] -= 1
        if left[0]:
            return real(descriptor, data)
        real(descriptor, data[: len(data) // 2])
        die()
        return 0

    os.write = torn


def shorten_writes(every: int) -> None:
    real, calls = os.write, [0]

    def short(descriptor: int, data: Any) -> int:
        calls[0] += 1
        return real(descriptor, data if calls[0] % every or len(data) < 2 else data[: len(data) // 2])

    os.write = short


def failing_sql(text: str) -> Callable[[], None]:
    def fail() -> None:
        raise sqlite3.OperationalError(text)

    return fail


def failing(name: str) -> Callable[[], None]:
    def fail() -> None:
        number = getattr(errno, name)
        raise OSError(number, os.strerror(number))

    return fail


def poison(text: str, then: Callable[[], None]) -> None:
    from inchworm.rules.page import parse
    from inchworm.rules.web import robots, sitemap

    parts = ("read", "text_of", "main_of", "substance")
    readers = (*((parse, name) for name in parts), (sitemap, "read"), (robots, "parse"))
    for module, name in readers:
        setattr(module, name, _poisoned(getattr(module, name), text.encode(), then))


def _poisoned(read: Callable[..., Any], text: bytes, then: Callable[[], None]) -> Callable[..., Any]:
    def reading(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, bytes) and text in value for value in args):
            then()
        return read(*args, **kwargs)

    return reading


def choke() -> None:
    raise ValueError("something that nobody thought of")


def shift_clock(seconds: float) -> None:
    """For where `faketime` cannot be used: under it, time.sleep fails."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + round(seconds * 1e9)


def sabotage(plan: str) -> None:
    verb, *words = plan.split(":")
    if verb == "die-sql":
        at_sql(Countdown(int(words[0]), die))
    elif verb == "die-file":
        tick = Countdown(int(words[0]), die)
        for name in _CHANGING:
            at_call(name, tick)
    elif verb == "torn-write":
        tear_write(int(words[0]))
    elif verb == "short-write":
        shorten_writes(int(words[0]))
    elif verb == "fail-sql":
        at_sql(Countdown(int(words[0]), failing_sql("disk I/O error")))
    elif verb == "fail-row":
        at_row(Countdown(int(words[0]), failing_sql("disk I/O error")))
    elif verb == "lock-sql":
        at_sql(Countdown(int(words[0]), failing_sql("database is locked")), "BEGIN")
    elif verb == "lock-file":
        at_sql(failing_sql("database is locked"), "BEGIN", words[0])
    elif verb.startswith("fail-"):
        at_call(verb.removeprefix("fail-"), Countdown(int(words[0]), failing(words[1])))
    elif verb == "poison":
        poison(words[0], die)
    elif verb == "break":
        poison(words[0], choke)
    elif verb == "clock":
        shift_clock(float(words[0]))
    else:
        raise SystemExit(f"no such plan: {plan}")


if __name__ == "__main__":
    sabotage(sys.argv.pop(1))
    from inchworm.cli import main

    main(prog_name="inchworm")
