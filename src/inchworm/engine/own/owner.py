"""The one process that may write to a crawl."""

from __future__ import annotations

import contextlib
from pathlib import Path

from inchworm.engine.own.recovery import cut_archive, recover
from inchworm.errors import Broken, InchwormError, NotNow, Owned, WrongUse
from inchworm.model import CheckpointInfo, CheckpointType, Record, RunInfo, Spot
from inchworm.ports import Original
from inchworm.store.crawl.history import History
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life, OwnerLock, ReadingMark, boot_ms, network_file_system


class CrawlOwner:
    """The one process that may write to a crawl: lock, token, recovered archive."""

    def __init__(self, folder: Path, stale_seconds: float) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        # For nobody else, like a home that we make; one that was there before may be open to others.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if kind := network_file_system(folder):
            raise WrongUse(
                f"{folder} lies on a network file system ({kind}), where locks cannot be trusted.",
                "Set INCHWORM_HOME to a folder on a local disk.",
            )
        self._refuse_without_store()
        self._lock = OwnerLock(folder)
        # Somebody holds the lock, but may be asleep and never wake up.
        is_asleep = not self._lock.acquire()
        if is_asleep:
            self._refuse_if_alive(stale_seconds)
        try:
            with self._lock.taking_over() if is_asleep else contextlib.nullcontext():
                self.store = CrawlStore(folder / "crawl.db")
                self.mark = ReadingMark(folder)
                self.token = self.store.take(Life.of_this_process())
                if is_asleep:
                    # Only now: had the store refused us, the old owner would still be the only one.
                    self._lock.replace()
                self.lost_files = recover(self.store, self.archive, self.mark, self.token, is_asleep)
        except BaseException:
            self._lock.release()
            raise

    def _refuse_without_store(self) -> None:
        """An archive whose store vanished must not be taken for leftovers and swept away."""
        path = self.folder / "crawl.db"
        if any(self.archive.glob("*.warc.gz")) and (not path.exists() or not path.stat().st_size):
            raise Broken(
                f"{path} is missing or empty, though its archive is there.",
                f"Put it back from a backup, or move {self.folder} away and start again from the seeds with --fresh.",
            )

    def _refuse_if_alive(self, stale_seconds: float) -> None:
        """Somebody holds the lock: leave it alone unless its heartbeat stood still for the stale time."""
        life, since_ms = _last_life(self.folder), self._lock.held_since_ms()
        is_new = since_ms is None or boot_ms() - since_ms < stale_seconds * 1000
        if life is None or is_new or not life.stood_still(stale_seconds):
            who = f"process {life.pid} on {life.machine}" if life else "another process"
            raise Owned(
                f"This crawl is being worked on by {who}.",
                "Watch it with `inchworm status`, pause it with `inchworm pause`, or wait for it to end.",
            )

    def cut_archive(self) -> None:
        """Make the archive end where the record ends."""
        self.lost_files = cut_archive(self.store, self.archive)

    def checkpoint(self, kind: CheckpointType, now_ms: int, run: RunInfo | None = None) -> CheckpointInfo:
        """Make the last commit of a run, or of the one that is current, a place to come back to."""
        current = run or self.store.runs.get()
        if current is None:
            raise NotNow("This crawl has not started yet.", "Start it: inchworm crawl URL")
        return History(self.store).add(self.token, current, kind, now_ms)

    def close(self) -> None:
        self.mark.close()
        self.store.close()
        self._lock.release()


def _last_life(folder: Path) -> Life | None:
    with contextlib.suppress(InchwormError):
        store = CrawlStore(folder / "crawl.db", read_only=True)
        try:
            return store.owner.life()
        finally:
            store.close()
    return None


class NoArchive:
    """For commits that archive nothing."""

    def append(self, record: Record, at_ms: int, original: Original | None) -> Spot:
        raise AssertionError(f"nothing to archive here: {record.url}, {at_ms}, {original}")

    def holds(self, _: str) -> bool:
        return True

    def sync(self) -> None: ...

    def close(self) -> None: ...
