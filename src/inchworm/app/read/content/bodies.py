"""What the archive has of a page: its bytes, its text, and all that can be read out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inchworm.app.fields import FieldRequest, rows_on_the_spot
from inchworm.app.frames import choice_of, frames_for
from inchworm.app.read.content.search import Texts
from inchworm.app.read.content.visits import known_url
from inchworm.app.workspace import Workspace, identity
from inchworm.engine.own.bodies import Bodies
from inchworm.engine.stored import StoredPages
from inchworm.errors import Unknown
from inchworm.model import CrawlInfo, FinishedVisit, Response, RunInfo
from inchworm.page import Page
from inchworm.rules.formats import media
from inchworm.store.crawl.read.now import Now
from inchworm.store.crawl.read.visits import RecordedVisit, VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow.log import LoggedPage as FollowedPage

MOST_TEXT = 20_000
"""Characters of a text that are shown."""


class StoredBody(NamedTuple):
    """What the archive has of a page."""

    url: str
    body: bytes
    content_type: str


_AS_IT_IS = FieldRequest()


class PageBodies:
    """What the archive has of pages."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    # What the archive has

    def body(self, crawl: CrawlInfo, url: str, number: int | None = None) -> StoredBody:
        """The body of a page as a run has it, decoded."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            visit, response = self._response(crawl, store, current, url)
        if visit is None or response is None:
            raise Unknown(f"The archive has nothing of {url} in run {current.number}.", "Another run may have it.")
        return StoredBody(visit.url, response.body or response.payload, visit.content_type or "")

    def text(self, crawl: CrawlInfo, url: str, number: int | None = None, at_any_cost: bool = False) -> str | None:
        """The main text of a page; None where there is none, or where only another process may read it: that takes
        longer, and is done `at_any_cost` only."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            visit, response = self._response(crawl, store, current, url)
            if visit is None or response is None or visit.outcome not in ("page", "duplicate"):
                return None
            if media.is_risky(response.body, visit.content_type or "") and not at_any_cost:
                return None
            read = Texts(store, self._workspace.place(crawl).archive).of(_as_page(visit, current))
            return None if read is None else read.text

    def _response(
        self, crawl: CrawlInfo, store: CrawlStore, current: RunInfo, url: str
    ) -> tuple[RecordedVisit | None, Response | None]:
        hint = "Look whether another run knows it."
        visits = known_url(store, crawl, current, [identity(current, url)], hint, 0).visits
        for visit in (one.record for one in reversed(visits)):
            if visit.payload:
                bodies = Bodies(store, self._workspace.place(crawl).archive)
                return visit, bodies.of(bytes.fromhex(visit.payload))
        return None, None

    def page(
        self, word: str, url: str, number: int | None = None, fields: FieldRequest = _AS_IT_IS, frame: str = ""
    ) -> Page:
        """What a crawl has of a URL now, or what one of its runs has. A page that is gone says so. `fields`: how
        they are to be taken out of it, if not by the rules of the crawl; `frame`: what is done with blocks that stand
        on most pages of its host, if not what the crawl says."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current, now = self._workspace.run_of(crawl, store, number), Now(store)
            address = identity(current, url)
            line = now.line(store.runs.line_end() or current)
            found = now.page(line if number is None else line._replace(run_ids=(current.run_id,)), address)
            if found is None:
                which = f"The crawl {crawl.name!r}" if number is None else f"Run {number} of {crawl.name!r}"
                raise Unknown(f"{which} has no page {address}.", "`why` tells why it was not crawled.")
            place = self._workspace.place(crawl)
            stored = StoredPages(store, place, frames_for(place, choice_of(self._workspace, crawl, frame)))
            page = stored.page_of(found)
            page.take_rows = rows_on_the_spot(self._workspace, crawl, fields)
            stored.release()
            return page


def _as_page(visit: RecordedVisit, current: RunInfo) -> FollowedPage:
    return FollowedPage(
        0,
        visit.url,
        0,
        current.run_id,
        visit.seq,
        current.number,
        visit.at_ms,
        visit.outcome,
        None,
        bytes.fromhex(visit.payload or ""),
        visit.content_type or "",
        visit.title or "",
        visit.request_url,
    )


class Watching:
    """Shows the pages of a session to somebody as they are committed. For `Hooks`."""

    def __init__(self, workspace: Workspace, look: Callable[[Page], None]) -> None:
        self._workspace, self._look = workspace, look
        self._store: CrawlStore | None = None

    def started(self, crawl: CrawlInfo, current: RunInfo, _session: int) -> None:
        place = self._workspace.place(crawl)
        self._store = place.open()
        self._stored = StoredPages(self._store, place)
        self._visits, self._run_id = VisitReader(self._store), current.run_id

    def visited(self, visit: FinishedVisit) -> None:
        from inchworm.rules.page.document import DocumentContent  # whoever crawls has loaded it

        found = self._visits.newest(self._run_id, visit.entry.url_id)
        assert found is not None
        read = visit.reading
        # What was taken from an earlier run was not read again.
        said = DocumentContent(read.title, read.text, read.language, read.meta) if read.text else None
        self._look(self._stored.page_of(found, content=said))

    def close(self) -> None:
        if self._store is not None:
            self._stored.release()
            self._store.close()
