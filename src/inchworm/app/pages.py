"""Pages one by one: what a crawl has of a URL, and what a session brings as it goes."""

from __future__ import annotations

from collections.abc import Callable

from inchworm.app.desk import Desk, identity
from inchworm.app.fields import Asked, rows_on_the_spot
from inchworm.engine.stored import StoredPages
from inchworm.errors import Unknown
from inchworm.model import CrawlInfo, RunInfo, Visit
from inchworm.page import Page
from inchworm.store.crawl.now import Now
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

_AS_IT_IS = Asked()


class Pages(Desk):
    """Verbs that hand out one page."""

    def stored_page(self, word: str, url: str, number: int | None = None, fields: Asked = _AS_IT_IS) -> Page:
        """What a crawl has of a URL now, or what one of its runs has. A page that is gone says so. `fields`: how
        they are to be taken out of it, if not by the rules of the crawl."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current, now = self.run_of(crawl, store, number), Now(store)
            address = identity(current, url)
            line = now.line(store.line_end() or current)
            found = now.page(line if number is None else line._replace(run_ids=(current.run_id,)), address)
            if found is None:
                which = f"The crawl {crawl.name!r}" if number is None else f"Run {number} of {crawl.name!r}"
                raise Unknown(f"{which} has no page {address}.", "`why` tells why it was not crawled.")
            stored = StoredPages(store, self.crawl_folder(crawl) / "archive")
            page = stored.of(found)
            page.take_rows = rows_on_the_spot(self, crawl, fields)
            stored.let_go()
            return page


class Watching:
    """Shows the pages of a session to somebody as they are committed. For `Hooks`."""

    def __init__(self, app: Desk, look: Callable[[Page], None]) -> None:
        self._app, self._look = app, look
        self._store: CrawlStore | None = None

    def started(self, crawl: CrawlInfo, current: RunInfo, _session: int) -> None:
        folder = self._app.crawl_folder(crawl)
        self._store = CrawlStore(folder / "crawl.db", read_only=True)
        self._stored = StoredPages(self._store, folder / "archive")
        self._view, self._run_id = View(self._store), current.run_id

    def visited(self, visit: Visit) -> None:
        from inchworm.rules.page.document import Said  # whoever crawls has loaded it

        found = self._view.newest(self._run_id, visit.entry.url_id)
        assert found is not None
        read = visit.reading
        # What was taken from an earlier run was not read again.
        said = Said(read.title, read.text, read.language, read.meta) if read.text else None
        self._look(self._stored.of(found, said=said))

    def close(self) -> None:
        if self._store is not None:
            self._stored.let_go()
            self._store.close()
