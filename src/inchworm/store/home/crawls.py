"""home.db: which crawls there are, and what is remembered of each."""

from __future__ import annotations

import dataclasses
import json
from typing import TypedDict, Unpack

from inchworm.errors import NotNow
from inchworm.model import CrawlInfo
from inchworm.settings import NamedSettings
from inchworm.store.database import Row
from inchworm.store.home.home import Home


class CrawlChange(TypedDict, total=False):
    """What may change of a crawl, each by the name of its column."""

    name: str
    settings: NamedSettings
    defaults: NamedSettings
    incremental: bool
    enabled: bool
    typed: bool
    started: bool


class KnownCrawls:
    """The crawls of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def all(self) -> list[CrawlInfo]:
        """Every crawl, the oldest first."""
        with self._home.reading() as db:
            return [_crawl(row) for row in db.execute(f"{_SELECT} ORDER BY created_ms, name")]

    def find(self, word: str, seeds_key: str | None = None) -> CrawlInfo | None:
        """The crawl of this id, else of this name, else with exactly these seeds."""
        with self._home.reading() as db:
            for where, value in (("crawl_id = ?", word), ("name = ?", word), ("seeds_key = ?", seeds_key)):
                if value is None:
                    continue
                row = db.execute(f"{_SELECT} WHERE {where} ORDER BY created_ms LIMIT 1", (value,)).fetchone()
                if row:
                    return _crawl(row)
        return None

    def find_or_add(self, crawl: CrawlInfo, seeds_key: str, is_named: bool) -> CrawlInfo:
        """The crawl of this name, or of these seeds if nobody named it; put in if there is none. One that nobody named
        gets a number behind its name when that is taken."""
        with self._home.writing() as db:
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

    def change(self, crawl_id: str, **values: Unpack[CrawlChange]) -> None:
        """Change what is remembered of a crawl."""
        stored = {
            name: json.dumps(value) if name in ("settings", "defaults") else value for name, value in values.items()
        }
        if stored:
            columns = ", ".join(f"{name} = ?" for name in stored)
            with self._home.writing() as db:
                db.execute(f"UPDATE crawl SET {columns} WHERE crawl_id = ?", (*stored.values(), crawl_id))

    def remove(self, crawl_id: str) -> None:
        """Forget a crawl and its jobs, unless one of them runs. Nobody can make another one meanwhile."""
        with self._home.writing() as db:
            if db.execute("SELECT 1 FROM job WHERE crawl_id = ? AND lock_token IS NOT NULL", (crawl_id,)).fetchone():
                raise NotNow("A job of this crawl is running.", "Cancel it first.")
            for statement in _REMOVE_JOBS:
                db.execute(statement, (crawl_id,))
            db.execute("DELETE FROM inbox WHERE crawl_id = ?", (crawl_id,))
            db.execute("DELETE FROM delivery WHERE crawl_id = ? AND state = 'promised'", (crawl_id,))
            db.execute("DELETE FROM crawl WHERE crawl_id = ?", (crawl_id,))


_OF_CRAWL = "IN (SELECT job_id FROM job WHERE crawl_id = ?)"
_REMOVE_JOBS = (
    f"DELETE FROM log_line WHERE execution_id IN (SELECT execution_id FROM execution WHERE job_id {_OF_CRAWL})",
    f"DELETE FROM execution WHERE job_id {_OF_CRAWL}",
    f"UPDATE job SET after_job_id = NULL WHERE after_job_id {_OF_CRAWL}",
    "UPDATE slot SET jobs = jobs - (SELECT COUNT(*) FROM job j WHERE j.slot = slot.slot AND j.crawl_id = ?)",
    "DELETE FROM job WHERE crawl_id = ?",
)
_SELECT = (
    "SELECT crawl_id, name, seeds, settings, created_ms, defaults, incremental, enabled, typed, started FROM crawl"
)


def _crawl(row: Row) -> CrawlInfo:
    crawl_id, name, seeds, settings, created_ms, defaults, *flags = row
    typed_seeds, given = tuple(json.loads(seeds)), json.loads(settings)
    return CrawlInfo(crawl_id, name, typed_seeds, given, created_ms, json.loads(defaults), *map(bool, flags))
