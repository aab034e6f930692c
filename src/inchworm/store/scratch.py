"""What an export writes down for itself while it goes: SQLite keeps it in a file without a name, so it may be larger
than memory, and is gone when the export is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple

from inchworm.store.sqlite import open_unnamed


class Scratch:
    """An open database without a name."""

    def __init__(self, *tables: str) -> None:
        self.db = open_unnamed()
        for statement in tables:
            self.db.execute(statement)

    def close(self) -> None:
        self.db.close()


class Seen:
    """Texts that have been met, and the page that had each first."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE seen (hash BLOB PRIMARY KEY, url TEXT) WITHOUT ROWID")

    def __enter__(self) -> Seen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()

    def first(self, text_hash: str, url: str) -> str:
        """The page that had this text first: this one, if nobody had it before."""
        digest = bytes.fromhex(text_hash)
        added = self._scratch.db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (digest, url))
        if added.rowcount == 1:
            return url
        (found,) = self._scratch.db.execute("SELECT url FROM seen WHERE hash = ?", (digest,)).fetchone()
        return str(found)


class Place(NamedTuple):
    """A page that gets a file: the name it would have, how many have a better right to that, the one it has instead."""

    url: str
    name: str
    rank: int
    own: str


class Places:
    """Which URL has which file."""

    def __init__(self) -> None:
        self._scratch = Scratch(
            "CREATE TABLE place (url TEXT PRIMARY KEY, name TEXT, rank INTEGER, own TEXT, same_as TEXT) WITHOUT ROWID",
            "CREATE INDEX place_name ON place (name, rank)",
            "CREATE TABLE image (url TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID",
        )
        self._db = self._scratch.db

    def __enter__(self) -> Places:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()

    def add(self, place: Place) -> None:
        self._db.execute("INSERT OR REPLACE INTO place (url, name, rank, own) VALUES (?, ?, ?, ?)", place)

    def add_copy(self, url: str, same_as: str) -> None:
        """A URL that has no file of its own, because another page has the same text."""
        self._db.execute("INSERT OR REPLACE INTO place (url, same_as) VALUES (?, ?)", (url, same_as))

    def remove(self, url: str) -> None:
        self._db.execute("DELETE FROM place WHERE url = ?", (url,))

    def has_own(self, url: str) -> bool:
        return self._db.execute("SELECT 1 FROM place WHERE url = ? AND name IS NOT NULL", (url,)).fetchone() is not None

    def names(self, urls: Iterable[str]) -> dict[str, str]:
        """The files of those that have one, be it that of a page with the same text."""
        rows = self._db.among(
            "SELECT p.url, CASE WHEN EXISTS (SELECT 1 FROM place o WHERE o.name = f.name AND o.rank < f.rank)"
            " THEN f.own ELSE f.name END FROM place p JOIN place f ON f.url = COALESCE(p.same_as, p.url)"
            " WHERE f.name IS NOT NULL AND p.url = ANY (?)",
            urls,
        )
        return dict(rows)

    # Images

    def images(self, urls: Iterable[str]) -> dict[str, str | None]:
        """Images that were asked for before: the file of each, None where there is none."""
        return dict(self._db.among("SELECT url, name FROM image WHERE url = ANY (?)", urls))

    def add_images(self, names: Mapping[str, str | None]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO image VALUES (?, ?)", names.items())
