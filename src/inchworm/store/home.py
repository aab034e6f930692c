"""home.db: which crawls there are, and what others ask of their owners."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inchworm.errors import WrongUse
from inchworm.model import CrawlInfo
from inchworm.store.sqlite import open_file, plain_errors, transaction


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of another process to the owner of a run."""

    inbox_id: int
    verb: str
    argument: Mapping[str, Any]


class Home:
    """The crawls of one home. Transactions here are short, because every process of the home shares it."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WrongUse(
                f"{folder} cannot be made: {error.strerror}.", "Set INCHWORM_HOME to another folder."
            ) from None
        self.folder = folder
        self._path = folder / "home.db"
        self._db = open_file(self._path, "home")

    def close(self) -> None:
        self._db.close()

    def crawls(self) -> list[CrawlInfo]:
        with plain_errors(self._path):
            return [_crawl(row) for row in self._db.execute(f"{_SELECT} ORDER BY created_ms, name")]

    def find(self, word: str, seeds_key: str | None = None) -> CrawlInfo | None:
        """The crawl of this name, else of this id, else with exactly these seeds."""
        for where, value in (("name = ?", word), ("crawl_id = ?", word), ("seeds_key = ?", seeds_key)):
            if value is None:
                continue
            with plain_errors(self._path):
                row = self._db.execute(f"{_SELECT} WHERE {where} ORDER BY created_ms LIMIT 1", (value,)).fetchone()
            if row:
                return _crawl(row)
        return None

    def add(self, crawl: CrawlInfo, seeds_key: str) -> CrawlInfo:
        """Put a crawl in; the one that is there when another process was quicker."""
        with plain_errors(self._path), transaction(self._db):
            self._db.execute(
                "INSERT INTO crawl (crawl_id, name, seeds, seeds_key, settings, created_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                (
                    crawl.crawl_id,
                    crawl.name,
                    json.dumps(crawl.seeds),
                    seeds_key,
                    json.dumps(dict(crawl.settings)),
                    crawl.created_ms,
                ),
            )
        return self.find(crawl.name) or crawl

    def remember(self, crawl_id: str, settings: Mapping[str, Any]) -> None:
        with plain_errors(self._path), transaction(self._db):
            self._db.execute("UPDATE crawl SET settings = ? WHERE crawl_id = ?", (json.dumps(dict(settings)), crawl_id))

    def remove(self, crawl_id: str) -> None:
        with plain_errors(self._path), transaction(self._db):
            self._db.execute("DELETE FROM inbox WHERE crawl_id = ?", (crawl_id,))
            self._db.execute("DELETE FROM crawl WHERE crawl_id = ?", (crawl_id,))

    def ask(self, crawl_id: str, verb: str, argument: Mapping[str, Any], now_ms: int) -> int:
        """Leave a request for the owner of a crawl's run."""
        with plain_errors(self._path), transaction(self._db):
            cursor = self._db.execute(
                "INSERT INTO inbox (crawl_id, verb, argument, asked_ms) VALUES (?, ?, ?, ?)",
                (crawl_id, verb, json.dumps(dict(argument)), now_ms),
            )
            return int(cursor.lastrowid or 0)

    def asked(self, crawl_id: str) -> list[Asked]:
        """Open requests, oldest first."""
        query = "SELECT inbox_id, verb, argument FROM inbox WHERE crawl_id = ? AND done_ms IS NULL ORDER BY inbox_id"
        with plain_errors(self._path):
            rows = self._db.execute(query, (crawl_id,)).fetchall()
        return [Asked(inbox_id, verb, json.loads(argument)) for inbox_id, verb, argument in rows]

    def answer(self, inbox_id: int, answer: str, now_ms: int) -> None:
        with plain_errors(self._path), transaction(self._db):
            self._db.execute(
                "UPDATE inbox SET done_ms = ?, answer = ? WHERE inbox_id = ? AND done_ms IS NULL",
                (now_ms, answer, inbox_id),
            )

    def answer_to(self, inbox_id: int) -> str | None:
        with plain_errors(self._path):
            row = self._db.execute("SELECT answer FROM inbox WHERE inbox_id = ?", (inbox_id,)).fetchone()
        return row[0] if row else ""


_SELECT = "SELECT crawl_id, name, seeds, settings, created_ms FROM crawl"


def _crawl(row: tuple[Any, ...]) -> CrawlInfo:
    crawl_id, name, seeds, settings, created_ms = row
    return CrawlInfo(crawl_id, name, tuple(json.loads(seeds)), json.loads(settings), created_ms)
