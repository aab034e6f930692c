"""The feed of a crawl: what its last runs found changed, with what differs."""

from __future__ import annotations

from inchworm.app.read.comparisons import Comparisons, PagesWanted
from inchworm.app.read.runs import has_changes
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow
from inchworm.model import Change, CrawlInfo, RunInfo, RunState
from inchworm.rules.change.groups import ModifiedGroup
from inchworm.sink import atom
from inchworm.sink.atom import ChangeFeed, FeedEntry
from inchworm.sink.servers import notify

TYPE = atom.TYPE
ENTRIES = 10
GROUPS = 20
PAGES = 50
"""So many runs are told of, and of each so many groups of modified pages, and so many pages that came or went."""


class Feeds:
    """Feeds of what changed."""

    def __init__(self, workspace: Workspace, comparisons: Comparisons) -> None:
        self._workspace = workspace
        self._comparisons = comparisons

    def of(self, crawl: CrawlInfo) -> ChangeFeed:
        """The feed of a crawl: complete runs of its line that found changes, the last one first."""
        runs = self._told(crawl)
        updated_ms = max((one.ended_ms or 0 for one in runs), default=0) or crawl.created_ms
        entries = [self._entry(crawl, one) for one in runs]
        return ChangeFeed(f"urn:uuid:{notify.feed_id(crawl.crawl_id)}", f"Changes of {crawl.name}", updated_ms, entries)

    def written(self, crawl: CrawlInfo, address: str = "") -> bytes:
        """The same as XML, to be had at this address. Without one nobody knows where the dashboard is: nothing leads
        there."""
        found = self.of(crawl)
        if not address:
            found = found._replace(entries=[entry._replace(link="") for entry in found.entries])
        return atom.written(found, address)

    def stamp(self, crawl: CrawlInfo) -> str:
        """The same as long as the feed is."""
        ended = (f"{one.number}.{one.ended_ms}" for one in self._told(crawl))
        return "-".join((crawl.crawl_id, *ended))

    def _told(self, crawl: CrawlInfo) -> list[RunInfo]:
        try:
            with self._workspace.reading(crawl) as store:
                line = run.line_of(store.runs.list())
        except NotNow:
            return []  # It has never started.
        told = [one for one in line if one.state is RunState.COMPLETED and has_changes(one)]
        return told[: -ENTRIES - 1 : -1]

    def _entry(self, crawl: CrawlInfo, one: RunInfo) -> FeedEntry:
        runs, counters = (one.parent, one.number), one.counters
        modified = self._comparisons.part(crawl, runs, PagesWanted(Change.MODIFIED, limit=GROUPS))
        came, gone = (
            [page.url for page in self._comparisons.part(crawl, runs, PagesWanted(change, limit=PAGES)).rows]
            for change in (Change.NEW, Change.DELETED)
        )
        groups = [
            ModifiedGroup(
                group.pages,
                [group.first.url],
                group.difference.passages,
                group.difference.is_cut,
                group.difference.said,
            )
            for group in modified.groups
        ]
        said = f"{counters.new:,} new, {counters.modified:,} modified, {counters.deleted:,} deleted"
        return FeedEntry(
            f"urn:uuid:{notify.event_id(crawl.crawl_id, one.number, one.ended_ms or 0)}",
            f"{crawl.name}, run {one.number}: {said}",
            one.ended_ms or 0,
            f"/crawls/{crawl.crawl_id}/compare?baseline={one.parent}&current={one.number}",
            groups,
            counters.modified,
            came,
            counters.new,
            gone,
            counters.deleted,
        )
