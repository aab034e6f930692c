"""The frame of each host of a crawl: blocks that stand on most of its pages, found in what the archive has."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from inchworm import settings
from inchworm.app.workspace import Workspace, defaults_of
from inchworm.engine.own.bodies import Bodies
from inchworm.engine.stored import FrameLookup
from inchworm.model import CrawlInfo
from inchworm.page import opened
from inchworm.rules.text.recurring import NO_FRAME, Block, Frame
from inchworm.rules.web import url as urls
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import frames as stored
from inchworm.store.follow.follower import Progress
from inchworm.store.follow.frames import RunEnd
from inchworm.store.follow.log import CrawlLog, LoggedPage

FILE = "frames.db"

KEEP, DROP = "keep", "drop"
"""What is done with blocks that are frame."""


def silent(_done: int, _total: int) -> None:
    """Progress that nobody is told of."""


def choice_of(workspace: Workspace, crawl: CrawlInfo, asked: str = "") -> str:
    """What is done with the frames of a crawl, by whoever asks, or else by its settings."""
    levels = {**workspace.base_settings(), **defaults_of(crawl), **crawl.settings}
    return str(settings.check("frame", asked or levels.get("frame", DROP)))


class CrawlFrames:
    """The frames of a crawl, found when they are first asked for. Runs are looked at once: whoever writes an export
    reads all its pages alike."""

    def __init__(self, place: CrawlPlace, progress: Progress = silent) -> None:
        self._place, self._progress = place, progress
        self._ends: stored.RunEnds | None = None
        self._found: dict[tuple[RunEnd, str], Frame] = {}

    def of(self, run_id: int, url: str) -> Frame:
        """The frame by which a page is read that this run saw."""
        if self._ends is None:
            with contextlib.closing(self._place.open()) as store:
                self._ends = stored.run_ends(CrawlLog(store))
        return self.at(self._ends.get(run_id), url, self._progress)

    def at(self, end: RunEnd | None, url: str, progress: Progress = silent) -> Frame:
        """The frame of a page's host as a run had it when it was complete."""
        if end is None:
            return NO_FRAME
        key = end, urls.host_of(url)
        if key not in self._found:
            with contextlib.closing(self._place.open()) as store:
                self._found[key] = stored.frame_of(self._place.folder / FILE, self._source(store, progress), *key)
        return self._found[key]

    def _source(self, store: CrawlStore, progress: Progress) -> stored.FrameSource:
        bodies = Bodies(store, self._place.archive)

        def blocks_of(page: LoggedPage) -> Sequence[Block]:
            response = bodies.of(page.payload)
            # What nobody can read, whatever somebody made of it, tells nothing of its host.
            with contextlib.suppress(Exception):
                return opened(response.body, page.content_type, page.request_url).blocks if response else ()
            return ()

        return stored.FrameSource(store, blocks_of, progress)


def frames_for(place: CrawlPlace, choice: str) -> FrameLookup:
    """By which frames the pages of a crawl are read: its own, or none."""
    return CrawlFrames(place).of if choice == DROP else lambda _run_id, _url: NO_FRAME
