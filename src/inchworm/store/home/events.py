"""home.db: what happens, for whoever watches, and how often some things have happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from inchworm.model import Json
from inchworm.store.database import Database
from inchworm.store.home.home import Home

KEEP_EVENTS = 20_000


class HomeEvent(NamedTuple):
    event_id: int
    at_ms: int
    kind: str
    data: Mapping[str, Json]


def add_event(db: Database, kind: str, data: Mapping[str, Json], now_ms: int) -> None:
    """Add an event to the transaction of what it tells of."""
    db.execute("INSERT INTO event (at_ms, kind, data) VALUES (?, ?, ?)", (now_ms, kind, json.dumps(dict(data))))


class Events:
    """What happened in one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def add(self, kind: str, data: Mapping[str, Json], now_ms: int) -> None:
        with self._home.writing() as db:
            add_event(db, kind, data, now_ms)

    def last(self) -> int:
        """The number of the last event, 0 when there was none."""
        with self._home.reading() as db:
            return int(db.execute("SELECT COALESCE(MAX(event_id), 0) FROM event").fetchone()[0])

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


class Tallies:
    """How often some things have happened in one home, each by its name."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def count(self, name: str, by: int = 1) -> None:
        with self._home.writing() as db:
            db.execute(
                "INSERT INTO tally (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = tally.value + ?",
                (name, by, by),
            )

    def all(self) -> dict[str, int]:
        with self._home.reading() as db:
            return dict(db.execute("SELECT name, value FROM tally").fetchall())
