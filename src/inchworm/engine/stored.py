"""Pages as a crawl has them: what the store knows of each, and what the archive has of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inchworm.engine.bodies import Bodies
from inchworm.errors import Unknown
from inchworm.model import Change, Failure
from inchworm.page import Page
from inchworm.sink.columns import renamed
from inchworm.store.crawl import CrawlStore
from inchworm.store.now import Changed, Line, Now
from inchworm.store.view import View

if TYPE_CHECKING:
    from inchworm.rules.document import Said

Visit = Mapping[str, Any]


class _Open(NamedTuple):
    """A store and an archive that can be asked."""

    view: View
    now: Now
    bodies: Bodies


class StoredPages:
    """Makes pages of visits. Pages may be asked for more after their store was let go, or in another thread: each such
    question opens it for itself, so that nobody who keeps a page keeps a file open."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._store, self._archive = store, archive
        self._open: _Open | None = self._asked(store)
        # What is known of a run is what it had come to now, however long whoever asks takes to read it.
        self._runs = {run.run_id: run for run in store.runs()}

    def _asked(self, store: CrawlStore) -> _Open:
        return _Open(View(store), Now(store), Bodies(store, self._archive))

    def let_go(self) -> None:
        """The store is going to be closed."""
        self._open = None

    @contextlib.contextmanager
    def _asking(self) -> Iterator[_Open]:
        if (is_open := self._open) is not None:
            yield is_open
            return
        with contextlib.closing(CrawlStore(self._store.path, read_only=True)) as store:
            yield self._asked(store)

    # Pages

    def of(self, visit: Visit, before: Line | None = None, said: Said | None = None) -> Page:
        """The page that a visit saw. Nothing is taken from the archive before it is asked for. `before`: the runs that
        have its previous version, if not those that its own run was compared with; `said`: what it says, if that was
        read already."""
        return Page(
            visit["request_url"],
            visit["content_type"] or "",
            lambda: self._body(visit),
            self._record(visit),
            self._earlier(visit, before),
            lambda: self._headers(visit),
            said,
        )

    def changed(self, one: Changed, before: Line) -> Page:
        """A page with what became of it since then; of one that no run tells of any more only that."""
        if one.visit is not None:
            return self.of({**one.visit, "change": str(one.change)}, before)
        told = {"url": one.request_url or one.url, "canonical_url": one.url, "change": str(Change.DELETED)}
        earlier = self._earlier({**told, "url": one.url}, before)
        return Page(told["url"], "", lambda: None, {**told, "outcome": "deleted"}, earlier)

    # What is known of one, when it is asked for

    def _earlier(self, visit: Visit, before: Line | None) -> Callable[[], Page | None]:
        def earlier() -> Page | None:
            if visit["change"] == Change.NEW:
                return None
            with contextlib.suppress(Unknown), self._asking() as asked:
                line = before if before is not None else asked.now.before(visit["run_id"])
                found = asked.now.version(line, visit["url"])
                return self.of(found) if found is not None else None
            return None

        return earlier

    def _record(self, visit: Visit) -> dict[str, Any]:
        run, hashed, outcome = self._runs[visit["run_id"]], visit["text_hash"], visit["outcome"]
        is_copy, is_page = outcome == "duplicate" and hashed, outcome == "page" and hashed
        primary, alternates = None, list[str]()
        if is_copy or is_page:
            with self._asking() as asked:
                until = max(run.seq, visit["seq"])
                primary = asked.view.primary(run.run_id, hashed) if is_copy else None
                alternates = asked.view.alternates(run.run_id, hashed, until) if is_page else []
        return {**renamed(visit), "run": run.number, "alternate_of": primary, "alternate_urls": alternates}

    def _body(self, visit: Visit) -> bytes | None:
        # To open a store takes ten times as long as to read a page, and most visits can do without.
        own = Bodies(self._store, self._archive).own(visit) if self._open is None else None
        if own is not None:
            return own.body
        with contextlib.suppress(Unknown), self._asking() as asked:
            response = asked.bodies.of_visit(visit)
            return None if response is None else response.body
        return None

    def _headers(self, visit: Visit) -> Mapping[str, str]:
        """Those of the visit's own answer, or, where that had none to keep, of the one that it stands for."""
        with contextlib.suppress(Unknown), self._asking() as asked:
            own = asked.bodies.at(visit["file"], visit["offset"]) if visit["file"] else None
            response = (own.answer if isinstance(own, Failure) else own) or asked.bodies.of_visit(visit)
            return response.headers if response is not None else {}
        return {}
