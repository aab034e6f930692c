"""home.db: what happens, for whoever watches: events, the lines of executions' logs, services and their tallies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from inchworm.errors import Lost
from inchworm.store.database import Database
from inchworm.store.home.home import Home

KEEP_EVENTS = 20_000
MOST_LINES = 20_000
"""An execution's log ends here: a crawl with a million failures must not fill the disk with them."""


class HomeEvent(NamedTuple):
    event_id: int
    at_ms: int
    kind: str
    data: Mapping[str, Any]


class LogLine(NamedTuple):
    """One line of an execution's log."""

    number: int
    at_ms: int
    level: str
    text: str


class Service(NamedTuple):
    """A service of this home, as it last wrote of itself."""

    service_id: str
    machine: str
    pid: int
    started_ms: int
    seen_ms: int
    beats: int
    scheduler: bool
    executions: int
    poll_s: float


def tell(db: Database, kind: str, data: Mapping[str, Any], now_ms: int) -> None:
    """Add an event to the transaction of what it tells of."""
    db.execute("INSERT INTO event (at_ms, kind, data) VALUES (?, ?, ?)", (now_ms, kind, json.dumps(dict(data))))


class Events:
    """What happened in one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def tell(self, kind: str, data: Mapping[str, Any], now_ms: int) -> None:
        with self._home.writing() as db:
            tell(db, kind, data, now_ms)

    def last(self) -> int:
        with self._home.reading() as db:
            return db.execute("SELECT COALESCE(MAX(event_id), 0) FROM event").fetchone()[0] or 0

    def after(self, event_id: int, limit: int = 500) -> list[HomeEvent]:
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT event_id, at_ms, kind, data FROM event WHERE event_id > ? ORDER BY event_id LIMIT ?",
                (event_id, limit),
            ).fetchall()
        return [HomeEvent(number, at_ms, kind, json.loads(data)) for number, at_ms, kind, data in rows]

    def prune(self) -> None:
        with self._home.writing() as db:
            db.execute("DELETE FROM event WHERE event_id <= (SELECT MAX(event_id) FROM event) - ?", (KEEP_EVENTS,))

    # Logs

    def write_lines(self, execution_id: int, token: str, lines: Iterable[LogLine]) -> None:
        """Add lines to the log of an execution, for whoever still carries it out."""
        with self._home.writing() as db:
            query = "SELECT 1 FROM execution WHERE execution_id = ? AND token = ? AND state = 'running'"
            if db.execute(query, (execution_id, token)).fetchone() is None:
                raise Lost(f"Execution {execution_id} is over for this process.", "Another one goes on with its job.")
            db.executemany(
                "INSERT INTO log_line (execution_id, number, at_ms, level, text) VALUES (?, ?, ?, ?, ?)",
                [(execution_id, *line) for line in lines],
            )

    def lines(self, execution_id: int, after: int = 0, limit: int = 500) -> list[LogLine]:
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT number, at_ms, level, text FROM log_line WHERE execution_id = ? AND number > ?"
                " ORDER BY number LIMIT ?",
                (execution_id, after, limit),
            ).fetchall()
        return [LogLine(*row) for row in rows]

    def last_lines(self, execution_id: int, limit: int) -> list[LogLine]:
        """The end of an execution's log, in its order."""
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT number, at_ms, level, text FROM log_line WHERE execution_id = ? ORDER BY number DESC LIMIT ?",
                (execution_id, limit),
            ).fetchall()
        return [LogLine(*row) for row in reversed(rows)]

    # Services

    def enrol(self, service: Service) -> None:
        with self._home.writing() as db:
            db.execute("INSERT INTO service VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", service)

    def beat(self, service_id: str, now_ms: int) -> bool:
        """Show that a service lives; False when it is not entered any more."""
        with self._home.writing() as db:
            query = "UPDATE service SET beats = beats + 1, seen_ms = ? WHERE service_id = ?"
            return db.execute(query, (now_ms, service_id)).rowcount > 0

    def leave(self, service_id: str) -> None:
        with self._home.writing() as db:
            db.execute("DELETE FROM service WHERE service_id = ?", (service_id,))

    def services(self) -> list[Service]:
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT service_id, machine, pid, started_ms, seen_ms, beats, scheduler, executions, poll_s"
                " FROM service ORDER BY started_ms"
            ).fetchall()
        return [Service(*row)._replace(scheduler=bool(row[6])) for row in rows]

    # Tallies

    def count(self, name: str, by: int = 1) -> None:
        with self._home.writing() as db:
            db.execute(
                "INSERT INTO tally (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = tally.value + ?",
                (name, by, by),
            )

    def tallies(self) -> dict[str, int]:
        with self._home.reading() as db:
            return dict(db.execute("SELECT name, value FROM tally").fetchall())
