"""home.db: what other processes ask of the owners of crawls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from inchworm.model import Json
from inchworm.store.home.home import Home


@dataclass(frozen=True, slots=True)
class OwnerRequest:
    """A request of another process to the owner of a run."""

    inbox_id: int
    verb: str
    argument: Mapping[str, Json]


class OwnerRequests:
    """The requests to the owners of all crawls of a home, and their answers."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def ask(self, crawl_id: str, verb: str, argument: Mapping[str, Json], now_ms: int) -> int:
        """Leave a request for the owner of a crawl's run."""
        with self._home.writing() as db:
            return db.insert(
                "INSERT INTO inbox (crawl_id, verb, argument, asked_ms) VALUES (?, ?, ?, ?) RETURNING inbox_id",
                (crawl_id, verb, json.dumps(dict(argument)), now_ms),
            )

    def unanswered(self, crawl_id: str) -> list[OwnerRequest]:
        """Open requests, oldest first."""
        query = "SELECT inbox_id, verb, argument FROM inbox WHERE crawl_id = ? AND done_ms IS NULL ORDER BY inbox_id"
        with self._home.reading() as db:
            rows = db.execute(query, (crawl_id,)).fetchall()
        return [OwnerRequest(inbox_id, verb, json.loads(argument)) for inbox_id, verb, argument in rows]

    def answer(self, inbox_id: int, answer: str, now_ms: int) -> None:
        """Answer a request; the first answer stands."""
        with self._home.writing() as db:
            db.execute(
                "UPDATE inbox SET done_ms = ?, answer = ? WHERE inbox_id = ? AND done_ms IS NULL",
                (now_ms, answer, inbox_id),
            )

    def answer_to(self, inbox_id: int) -> str | None:
        """The answer to a request, None as long as there is none; empty when nobody knows of the request any more."""
        with self._home.reading() as db:
            row = db.execute("SELECT answer FROM inbox WHERE inbox_id = ?", (inbox_id,)).fetchone()
        return row[0] if row else ""
