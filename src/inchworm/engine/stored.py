"""Pages as a crawl has them: what the store knows of each, and what the archive has of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inchworm.engine.bodies import Bodies
from inchworm.model import Change, Failure, Response
from inchworm.page import Page
from inchworm.sink.columns import renamed
from inchworm.store.crawl import CrawlStore
from inchworm.store.now import Changed
from inchworm.store.view import View

Visit = Mapping[str, Any]


class StoredPages:
    """Makes pages of visits, for as long as the store is open."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._view = View(store)
        self._bodies = Bodies(store, archive)
        # What is known of a run is what it had come to now, however long whoever asks takes to read it.
        self._runs = {run.run_id: run for run in store.runs()}

    def of(self, visit: Visit, earlier: Callable[[], Page | None] = lambda: None) -> Page:
        """The page that a visit saw. Nothing is taken from the archive before it is asked for."""
        return Page(
            visit["request_url"],
            visit["content_type"] or "",
            lambda: self._body(visit),
            self._record(visit),
            earlier,
            lambda: self._headers(visit),
        )

    def changed(self, one: Changed) -> Page:
        """A page with what became of it; of one that no run tells of any more only that."""
        if one.visit is not None:
            return self.of({**one.visit, "change": str(one.change)})
        told = {"url": one.request_url or one.url, "canonical_url": one.url, "change": str(Change.DELETED)}
        return Page(told["url"], "", lambda: None, {**told, "outcome": "deleted"})

    def _record(self, visit: Visit) -> dict[str, Any]:
        run, hashed, outcome = self._runs[visit["run_id"]], visit["text_hash"], visit["outcome"]
        is_copy, is_page = outcome == "duplicate" and hashed, outcome == "page" and hashed
        return {
            **renamed(visit),
            "run": run.number,
            "alternate_of": self._view.primary(run.run_id, hashed) if is_copy else None,
            "alternate_urls": self._view.alternates(run.run_id, hashed, run.seq) if is_page else [],
        }

    def _body(self, visit: Visit) -> bytes | None:
        response = self._bodies.of_visit(visit)
        return None if response is None else response.body

    def _headers(self, visit: Visit) -> Mapping[str, str]:
        """Those of the visit's own answer, or, where it asked for nothing, of the one that it was taken from."""
        own = self._bodies.at(visit["file"], visit["offset"]) if visit["file"] else None
        reply = own if own is not None else self._bodies.of_visit(visit)
        response = reply.answer if isinstance(reply, Failure) else reply
        return response.headers if isinstance(response, Response) else {}
