"""inchworm without what makes it durable: the store in memory, the archive thrown away. What durability costs is
the difference. Takes the arguments of `inchworm`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from inchworm.cli import main
from inchworm.engine import opening
from inchworm.model import Spot
from inchworm.store import sqlite
from inchworm.store.crawl import place
from inchworm.store.crawl import store as crawl_store

_OPEN: dict[Path, sqlite.SqliteDatabase] = {}


def open_in_memory(path: Path, schema: str, *_: bool) -> sqlite.SqliteDatabase:
    """One connection for owner and readers alike, as a store in memory has no other way."""
    if path not in _OPEN:
        path.touch()
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _OPEN[path] = sqlite.SqliteDatabase(connection, path, schema)
        sqlite._prepare(_OPEN[path], path, schema, False)
        _OPEN[path]._note_file()
    return _OPEN[path]


class Nowhere:
    """An archive that forgets."""

    def __init__(self, *_: Any) -> None:
        self._length = 0

    def append(self, *_: Any) -> Spot:
        self._length += 1
        return Spot("nowhere.warc.gz", self._length - 1, 1)

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Store(crawl_store.CrawlStore):
    def close(self) -> None:
        """Others still use the connection."""


if __name__ == "__main__":
    crawl_store.open_file = open_in_memory
    place.CrawlStore = Store  # type: ignore[misc]
    opening.warc.WarcWriter = Nowhere  # type: ignore[misc, assignment]
    main()
