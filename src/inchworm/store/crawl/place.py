"""Where a crawl lies: to open it and to read, to own it and to write, and whether anything has happened there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inchworm.errors import InchwormError, Owned, WrongUse
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life, OwnerLock, ReadingMark, boot_ms, network_file_system
from inchworm.store.sqlite import last_written


@dataclass(frozen=True, slots=True)
class OwnedCrawl:
    """A crawl in the hands of the one process that may write to it. `token`: with every change; `mark`: what is being
    read; `was_asleep`: it was taken from an owner that stood still and may wake up."""

    store: CrawlStore
    token: int
    mark: ReadingMark
    was_asleep: bool
    lock: OwnerLock

    def close(self) -> None:
        self.mark.close()
        self.store.close()
        self.lock.release()


@dataclass(frozen=True, slots=True)
class CrawlPlace:
    """The folder of one crawl, whether or not there is anything in it yet."""

    folder: Path

    @property
    def path(self) -> Path:
        """What holds the record, for messages that name it."""
        return self.folder / "crawl.db"

    @property
    def archive(self) -> Path:
        """What holds the bodies."""
        return self.folder / "archive"

    def has_started(self) -> bool:
        return self.path.exists()

    def is_lost(self) -> bool:
        """Whether there is no record, of a crawl that has one."""
        return not self.path.exists() or not self.path.stat().st_size

    def is_worked_on(self) -> bool:
        """Whether a living process owns the crawl."""
        return self.folder.exists() and OwnerLock(self.folder).is_held()

    def mark(self) -> tuple[int, ...]:
        """Something that stays the same as long as nothing happens; empty when something has just happened."""
        return last_written(self.path)

    def open(self) -> CrawlStore:
        """To read, beside whoever works on it."""
        return CrawlStore(self.path, read_only=True)

    def own(self, stale_seconds: float, recover: Callable[[OwnedCrawl], None]) -> OwnedCrawl:
        """To write, as the only one until it is closed. An owner before us is left alone unless nothing was heard of it
        for so long. `recover` is called before anybody can take the crawl from us."""
        self._make()
        lock = OwnerLock(self.folder)
        was_asleep = not lock.acquire()
        if was_asleep:
            self._refuse_if_alive(lock, stale_seconds)
        try:
            with lock.taking_over() if was_asleep else contextlib.nullcontext():
                store, mark = CrawlStore(self.path), ReadingMark(self.folder)
                owned = OwnedCrawl(store, store.take(Life.of_this_process()), mark, was_asleep, lock)
                if was_asleep:
                    # Only now: had the store refused us, the old owner would still be the only one.
                    lock.replace()
                recover(owned)
        except BaseException:
            lock.release()
            raise
        return owned

    def _make(self) -> None:
        # For nobody else, like a home that we make; one that was there before may be open to others.
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if kind := network_file_system(self.folder):
            raise WrongUse(
                f"{self.folder} lies on a network file system ({kind}), where locks cannot be trusted.",
                "Set INCHWORM_HOME to a folder on a local disk.",
            )

    def _refuse_if_alive(self, lock: OwnerLock, stale_seconds: float) -> None:
        """Somebody holds the lock: leave it alone unless its heartbeat stood still for the stale time."""
        life, since_ms = self._last_life(), lock.held_since_ms()
        is_new = since_ms is None or boot_ms() - since_ms < stale_seconds * 1000
        if life is None or is_new or not life.stood_still(stale_seconds):
            who = f"process {life.pid} on {life.machine}" if life else "another process"
            raise Owned(
                f"This crawl is being worked on by {who}.",
                "Watch it with `inchworm status`, pause it with `inchworm pause`, or wait for it to end.",
            )

    def _last_life(self) -> Life | None:
        with contextlib.suppress(InchwormError), contextlib.closing(self.open()) as store:
            return store.owner.life()
        return None
