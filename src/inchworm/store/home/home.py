"""home.db: the file, reading it and writing it in turns, and where the crawls of a home lie."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from inchworm.errors import WrongUse
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.database import Database
from inchworm.store.sqlite import last_written, open_file


class Home:
    """The database that all crawls of a home share. Transactions here are short, because every process of the home waits
    for them. What is in it is asked of the objects beside this one, each of which is made over a home."""

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
