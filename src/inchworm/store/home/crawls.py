"""home.db: which crawls there are, and what others ask of their owners."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inchworm.errors import NotNow, WrongUse
from inchworm.model import CrawlInfo
from inchworm.settings import NamedSettings
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.database import Database
from inchworm.store.sqlite import last_written, open_file


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
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WrongUse(
                f"{folder} cannot be made: {error.strerror}.", "Set INCHWORM_HOME to another folder."
            ) from None
        self.folder = folder
        self.while_waiting: Callable[[], None] = lambda: None
        """Called again and again while we wait for our turn to write."""

        self._path = folder / "home.db"
        self.db: Database = open_file(self._path, "home")
        # It holds addresses with secrets.
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + suffix).chmod(0o600)

    def close(self) -> None:
        self.db.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """One short transaction. Writers take turns at a lock of their own: SQLite's makes them sleep and ask again, and
        until 3.51.3 two that wrote and copied the log at the same moment could damage it."""
        with self.db.alone("home", self.while_waiting), self.db.transaction():
            yield self.db

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        yield self.db

    def place(self, crawl_id: str) -> CrawlPlace:
        """Where a crawl of this home lies."""
        return CrawlPlace(self.folder / "crawls" / crawl_id)

    def mark(self) -> tuple[int, ...]:
        """Something that stays the same as long as nothing happens here; empty when something has just happened."""
        return last_written(self._path)

    def crawls(self) -> list[CrawlInfo]:
        return [_crawl(row) for row in self.db.execute(f"{_SELECT} ORDER BY created_ms, name")]

    def find(self, word: str, seeds_key: str | None = None) -> CrawlInfo | None:
        """The crawl of this id, else of this name, else with exactly these seeds."""
        for where, value in (("crawl_id = ?", word), ("name = ?", word), ("seeds_key = ?", seeds_key)):
            if value is None:
                continue
            row = self.db.execute(f"{_SELECT} WHERE {where} ORDER BY created_ms LIMIT 1", (value,)).fetchone()
            if row:
                return _crawl(row)
        return None

    def find_or_add(self, crawl: CrawlInfo, seeds_key: str, is_named: bool) -> CrawlInfo:
        """The crawl of this name, or of these seeds if nobody named it; put in if there is none. One that nobody named
        gets a number behind its name when that is taken."""
        with self.writing() as db:
            there = self.find(crawl.name) if is_named else self.find("", seeds_key)
            if there:
                return there
            name, number = crawl.name, 2
            while not is_named and self.find(name):
                name, number = f"{crawl.name} ({number})", number + 1
            db.execute(
                "INSERT INTO crawl (crawl_id, name, seeds, seeds_key, settings, created_ms, defaults, typed)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    crawl.crawl_id,
                    name,
                    json.dumps(crawl.seeds),
                    seeds_key,
                    json.dumps(dict(crawl.settings)),
                    crawl.created_ms,
                    json.dumps(dict(crawl.defaults)),
                    crawl.typed,
                ),
            )
        return dataclasses.replace(crawl, name=name)

    def remember(self, crawl_id: str, settings: NamedSettings) -> None:
        with self.writing() as db:
            db.execute("UPDATE crawl SET settings = ? WHERE crawl_id = ?", (json.dumps(dict(settings)), crawl_id))

    def configure(self, crawl_id: str, **values: Any) -> None:
        """Change what is known of a crawl: `name`, `settings`, `defaults`, `incremental`, `enabled`, `typed`,
        `started`."""
        columns = ", ".join(f"{name} = ?" for name in _CONFIGURABLE if name in values)
        given = [
            json.dumps(values[n]) if n in ("settings", "defaults") else values[n] for n in _CONFIGURABLE if n in values
        ]
        if columns:
            with self.writing() as db:
                db.execute(f"UPDATE crawl SET {columns} WHERE crawl_id = ?", (*given, crawl_id))

    def remove(self, crawl_id: str) -> None:
        """Forget a crawl and its jobs, unless one of them runs. Nobody can make another one meanwhile."""
        with self.writing() as db:
            if db.execute("SELECT 1 FROM job WHERE crawl_id = ? AND lock_token IS NOT NULL", (crawl_id,)).fetchone():
                raise NotNow("A job of this crawl is running.", "Cancel it first.")
            for statement in _REMOVE_JOBS:
                db.execute(statement, (crawl_id,))
            db.execute("DELETE FROM inbox WHERE crawl_id = ?", (crawl_id,))
            db.execute("DELETE FROM delivery WHERE crawl_id = ? AND state = 'promised'", (crawl_id,))
            db.execute("DELETE FROM crawl WHERE crawl_id = ?", (crawl_id,))

    def ask(self, crawl_id: str, verb: str, argument: Mapping[str, Any], now_ms: int) -> int:
        """Leave a request for the owner of a crawl's run."""
        with self.writing() as db:
            return db.insert(
                "INSERT INTO inbox (crawl_id, verb, argument, asked_ms) VALUES (?, ?, ?, ?) RETURNING inbox_id",
                (crawl_id, verb, json.dumps(dict(argument)), now_ms),
            )

    def asked(self, crawl_id: str) -> list[Asked]:
        """Open requests, oldest first."""
        query = "SELECT inbox_id, verb, argument FROM inbox WHERE crawl_id = ? AND done_ms IS NULL ORDER BY inbox_id"
        rows = self.db.execute(query, (crawl_id,)).fetchall()
        return [Asked(inbox_id, verb, json.loads(argument)) for inbox_id, verb, argument in rows]

    def answer(self, inbox_id: int, answer: str, now_ms: int) -> None:
        with self.writing() as db:
            db.execute(
                "UPDATE inbox SET done_ms = ?, answer = ? WHERE inbox_id = ? AND done_ms IS NULL",
                (now_ms, answer, inbox_id),
            )

    def answer_to(self, inbox_id: int) -> str | None:
        row = self.db.execute("SELECT answer FROM inbox WHERE inbox_id = ?", (inbox_id,)).fetchone()
        return row[0] if row else ""


_OF_CRAWL = "IN (SELECT job_id FROM job WHERE crawl_id = ?)"
_REMOVE_JOBS = (
    f"DELETE FROM log_line WHERE execution_id IN (SELECT execution_id FROM execution WHERE job_id {_OF_CRAWL})",
    f"DELETE FROM execution WHERE job_id {_OF_CRAWL}",
    f"UPDATE job SET after_job_id = NULL WHERE after_job_id {_OF_CRAWL}",
    "UPDATE slot SET jobs = jobs - (SELECT COUNT(*) FROM job j WHERE j.slot = slot.slot AND j.crawl_id = ?)",
    "DELETE FROM job WHERE crawl_id = ?",
)
_CONFIGURABLE = ("name", "settings", "defaults", "incremental", "enabled", "typed", "started")
_SELECT = (
    "SELECT crawl_id, name, seeds, settings, created_ms, defaults, incremental, enabled, typed, started FROM crawl"
)


def _crawl(row: tuple[Any, ...]) -> CrawlInfo:
    crawl_id, name, seeds, settings, created_ms, defaults, *flags = row
    typed_seeds, given = tuple(json.loads(seeds)), json.loads(settings)
    return CrawlInfo(crawl_id, name, typed_seeds, given, created_ms, json.loads(defaults), *map(bool, flags))
