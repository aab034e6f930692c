"""home.db: the logs of executions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from inchworm.errors import Lost
from inchworm.store.home.home import Home

MOST_LINES = 20_000
"""An execution's log ends here: a crawl with a million failures must not fill the disk with them."""


class LogLine(NamedTuple):
    """One line of an execution's log."""

    number: int
    at_ms: int
    level: str
    text: str


class ExecutionLogs:
    """The logs of the executions of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def add(self, execution_id: int, token: str, lines: Iterable[LogLine]) -> None:
        """Add lines to the log of an execution, for whoever still carries it out."""
        with self._home.writing() as db:
            query = "SELECT 1 FROM execution WHERE execution_id = ? AND token = ? AND state = 'running'"
            if db.execute(query, (execution_id, token)).fetchone() is None:
                raise Lost(f"Execution {execution_id} is over for this process.", "Another one goes on with its job.")
            db.executemany(
                "INSERT INTO log_line (execution_id, number, at_ms, level, text) VALUES (?, ?, ?, ?, ?)",
                [(execution_id, *line) for line in lines],
            )

    def after(self, execution_id: int, number: int = 0, limit: int = 500) -> list[LogLine]:
        """The lines behind the one of this number."""
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT number, at_ms, level, text FROM log_line WHERE execution_id = ? AND number > ?"
                " ORDER BY number LIMIT ?",
                (execution_id, number, limit),
            ).fetchall()
        return [LogLine(*row) for row in rows]

    def last(self, execution_id: int, limit: int) -> list[LogLine]:
        """The end of an execution's log, in its order."""
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT number, at_ms, level, text FROM log_line WHERE execution_id = ? ORDER BY number DESC LIMIT ?",
                (execution_id, limit),
            ).fetchall()
        return [LogLine(*row) for row in reversed(rows)]
