"""The one process that may write to a crawl."""

from __future__ import annotations

from inchworm.engine.own.recovery import cut_archive, recover
from inchworm.errors import Broken, NotNow
from inchworm.model import CheckpointInfo, CheckpointType, Record, RunInfo, Spot
from inchworm.ports import Original
from inchworm.store.crawl.history import History
from inchworm.store.crawl.place import CrawlPlace, OwnedCrawl


class CrawlOwner:
    """The one process that may write to a crawl: lock, token, recovered archive."""

    def __init__(self, place: CrawlPlace, stale_seconds: float) -> None:
        self.place = place
        self.archive = place.archive
        self._refuse_without_store()
        self._owned = place.own(stale_seconds, self._recover)
        self.store, self.token, self.mark = self._owned.store, self._owned.token, self._owned.mark

    def _refuse_without_store(self) -> None:
        """An archive whose store vanished must not be taken for leftovers and swept away."""
        if any(self.archive.glob("*.warc.gz")) and self.place.is_lost():
            raise Broken(
                f"{self.place.path} is missing or empty, though its archive is there.",
                f"Put it back from a backup, or move {self.place.folder} away and start again from the seeds"
                " with --fresh.",
            )

    def _recover(self, crawl: OwnedCrawl) -> None:
        self.lost_files = recover(crawl.store, self.archive, crawl.mark, crawl.token, crawl.was_asleep)

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
        self._owned.close()


class NoArchive:
    """For commits that archive nothing."""

    def append(self, record: Record, at_ms: int, original: Original | None) -> Spot:
        raise AssertionError(f"nothing to archive here: {record.url}, {at_ms}, {original}")

    def holds(self, _: str) -> bool:
        return True

    def sync(self) -> None: ...

    def close(self) -> None: ...
