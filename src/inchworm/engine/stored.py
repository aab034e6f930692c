"""Pages as a crawl has them: what the store knows of each, and what the archive has of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from inchworm.engine.bodies import Bodies
from inchworm.model import Change, Failure, Response
from inchworm.page import Page
from inchworm.store.crawl import CrawlStore
from inchworm.store.now import Changed
from inchworm.store.view import View

T = TypeVar("T")

Visit = Mapping[str, Any]

_AT_ONCE = 100
"""So many visits are looked up in one question."""


class _Others(NamedTuple):
    """Pages with the same text, by run and text: the one that has it for its own, and all of them."""

    first: dict[tuple[int, str], str]
    all: dict[tuple[int, str], list[str]]


class StoredPages:
    """Makes pages of visits, for as long as the store is open."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._view = View(store)
        self._bodies = Bodies(store, archive)
        # What is known of a run is what it had come to now, however long whoever asks takes to read it.
        self._runs = {run.run_id: run for run in store.runs()}

    def of(self, visit: Visit, earlier: Callable[[], Page | None] = lambda: None) -> Page:
        """The page that a visit saw. Nothing is taken from the archive before it is asked for."""
        return self._page(visit, self._others([visit]), earlier)

    def of_all(self, visits: Iterable[Visit]) -> Iterator[Page]:
        """The pages that visits saw, in their order; what the store knows of them is asked for many at once."""
        for some in _parts(visits):
            others = self._expect(some)
            yield from (self._page(visit, others) for visit in some)

    def changed(self, changes: Iterable[Changed]) -> Iterator[Page]:
        """Pages with what became of them; of one that no run tells of any more only that."""
        for some in _parts(changes):
            others = self._expect([one.visit for one in some if one.visit is not None])
            for one in some:
                if one.visit is not None:
                    yield self._page({**one.visit, "change": str(one.change)}, others)
                else:
                    yield _withdrawn(one)

    def _page(self, visit: Visit, others: _Others, earlier: Callable[[], Page | None] = lambda: None) -> Page:
        return Page(
            visit["request_url"],
            visit["content_type"] or "",
            lambda: self._body(visit),
            self._record(visit, others),
            earlier,
            lambda: self._headers(visit),
        )

    def _expect(self, visits: Sequence[Visit]) -> _Others:
        self._bodies.expect_visits(visits)
        return self._others(visits)

    def _others(self, visits: Sequence[Visit]) -> _Others:
        found = _Others({}, {})
        for run_id in {visit["run_id"] for visit in visits}:
            copies, pages = (_hashes(visits, run_id, outcome) for outcome in ("duplicate", "page"))
            first = self._view.primaries(run_id, copies) if copies else {}
            every = self._view.alternates_of_all(run_id, pages, self._runs[run_id].seq) if pages else {}
            found.first.update({(run_id, hashed): url for hashed, url in first.items()})
            found.all.update({(run_id, hashed): urls for hashed, urls in every.items()})
        return found

    def _record(self, visit: Visit, others: _Others) -> dict[str, Any]:
        content, outcome = (visit["run_id"], visit["text_hash"]), visit["outcome"]
        return {
            **visit,
            "url": visit["request_url"],
            "canonical_url": visit["url"],
            "run": self._runs[visit["run_id"]].number,
            "alternate_of": others.first.get(content) if outcome == "duplicate" else None,
            "alternate_urls": others.all.get(content, []) if outcome == "page" else [],
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


def _parts(found: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(found)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _hashes(visits: Sequence[Visit], run_id: int, outcome: str) -> set[str]:
    of_run = (visit for visit in visits if visit["run_id"] == run_id and visit["outcome"] == outcome)
    return {visit["text_hash"] for visit in of_run if visit["text_hash"]}


def _withdrawn(one: Changed) -> Page:
    told = {"url": one.request_url or one.url, "canonical_url": one.url, "change": str(Change.DELETED)}
    return Page(told["url"], "", lambda: None, {**told, "outcome": "deleted"})
