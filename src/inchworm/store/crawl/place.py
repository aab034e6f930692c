"""Where a crawl lies: its tables, who works on it, and whether anything has happened there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import OwnerLock
from inchworm.store.sqlite import last_written


@dataclass(frozen=True, slots=True)
class CrawlPlace:
    """The folder of one crawl, whether or not there is anything in it yet."""

    folder: Path

    @property
    def path(self) -> Path:
        """What holds the record, for messages that name it."""
        return self.folder / "crawl.db"

    def has_started(self) -> bool:
        return self.path.exists()

    def is_lost(self) -> bool:
        """Whether there is no record, of a crawl that has one."""
        return not self.path.exists() or not self.path.stat().st_size

    def is_worked_on(self) -> bool:
        """Whether a living process owns the crawl."""
        return self.folder.exists() and OwnerLock(self.folder).is_held()

    def open(self) -> CrawlStore:
        """To read, beside whoever works on it."""
        return CrawlStore(self.path, read_only=True)

    def mark(self) -> tuple[int, ...]:
        """Something that stays the same as long as nothing happens; empty when something has just happened."""
        return last_written(self.path)
