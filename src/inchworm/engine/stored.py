"""Pages as a crawl has them: what the store knows of each, and what the archive has of it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from inchworm.engine.own.bodies import Bodies
from inchworm.errors import Unknown
from inchworm.model import Change, Failure, JsonObject, Note
from inchworm.page import Page
from inchworm.rules.text.recurring import NO_FRAME, Frame
from inchworm.sink.columns import renamed
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.now import ChangedUrl, LineOfRuns, Now
from inchworm.store.crawl.read.visits import RecordedVisit
from inchworm.store.crawl.store import CrawlStore

if TYPE_CHECKING:
    from inchworm.rules.page.document import DocumentContent

T = TypeVar("T")

FrameLookup = Callable[[int, str], Frame]
"""The frame by which the page of a URL is read that a run saw."""

_AT_ONCE = 100
"""So many visits are looked up in one question."""


class _Sources(NamedTuple):
    """A store and an archive that can be asked."""

    copies: Copies
    now: Now
    bodies: Bodies


class _SameText(NamedTuple):
    """Pages with the same text, by run and text: the one that has it for its own, and all of them."""

    first: dict[tuple[int, str], str]
    all: dict[tuple[int, str], Sequence[str]]


class StoredPages:
    """Makes pages of visits. Pages may be asked for more after their store was closed, or in another thread: each such
    question opens it for itself, so that nobody who keeps a page keeps a file open."""

    def __init__(
        self, store: CrawlStore, place: CrawlPlace, frame_of: FrameLookup = lambda _run_id, _url: NO_FRAME
    ) -> None:
        """`frame_of`: what pages lack that stands on most pages of their host."""
        self._store, self._place, self._frame_of = store, place, frame_of
        self._open: _Sources | None = self._sources_of(store)
        # What is known of a run is what it had come to now, however long whoever asks takes to read it.
        self._runs = {run.run_id: run for run in store.runs.list()}

    def _sources_of(self, store: CrawlStore) -> _Sources:
        return _Sources(Copies(store), Now(store), Bodies(store, self._place.archive))

    def release(self) -> None:
        """The store is going to be closed."""
        self._open = None

    @contextlib.contextmanager
    def _open_sources(self) -> Iterator[_Sources]:
        if (is_open := self._open) is not None:
            yield is_open
            return
        with contextlib.closing(self._place.open()) as store:
            yield self._sources_of(store)

    # Pages

    def page_of(self, visit: RecordedVisit, content: DocumentContent | None = None) -> Page:
        """The page that a visit saw. Nothing is taken from the archive before it is asked for. `content`: what it says,
        if that was read already."""
        return self._page(visit, self._others([visit]), None, content)

    def pages_of(self, visits: Iterable[RecordedVisit]) -> Iterator[Page]:
        """The pages that visits saw, in their order; what the store knows of them is asked for many at once."""
        for some in _parts(visits):
            others = self._expect(some)
            yield from (self._page(visit, others) for visit in some)

    def changed_pages(self, changes: Iterable[ChangedUrl], before: LineOfRuns) -> Iterator[Page]:
        """Pages with what became of them since the runs before; of one that no run tells of any more only that."""
        for some in _parts(changes):
            others = self._expect([one.visit for one in some if one.visit is not None])
            for one in some:
                if one.visit is not None:
                    yield self._page(one.visit._replace(change=str(one.change)), others, before)
                else:
                    yield self._withdrawn(one, before)

    def _page(
        self,
        visit: RecordedVisit,
        others: _SameText,
        before: LineOfRuns | None = None,
        content: DocumentContent | None = None,
    ) -> Page:
        """`before`: the runs that have its previous version, if not those that its own run was compared with."""
        return Page(
            visit.request_url,
            visit.content_type or "",
            lambda: self._body(visit),
            self._record(visit, others),
            self._earlier(visit, before),
            lambda: self._headers(visit),
            content,
            lambda: self._frame_of(visit.run_id, visit.request_url),
        )

    def _withdrawn(self, one: ChangedUrl, before: LineOfRuns) -> Page:
        told = {"url": one.request_url or one.url, "canonical_url": one.url, "change": str(Change.DELETED)}
        earlier = functools.partial(self._version, before, one.url)
        return Page(told["url"], "", lambda: None, {**told, "outcome": "deleted"}, earlier)

    # What is known of many

    def _expect(self, visits: Sequence[RecordedVisit]) -> _SameText:
        with self._open_sources() as asked:
            asked.bodies.expect_visits(visits)
        return self._others(visits)

    def _others(self, visits: Sequence[RecordedVisit]) -> _SameText:
        found = _SameText({}, {})
        with self._open_sources() as asked:
            for run_id in {visit.run_id for visit in visits}:
                copies, pages = (_hashes(visits, run_id, outcome) for outcome in ("duplicate", "page"))
                # A visit that is newer than what is known of its run counts, too.
                until = max(self._runs[run_id].seq, *(visit.seq for visit in visits if visit.run_id == run_id))
                first = asked.copies.primaries(run_id, copies) if copies else {}
                every = asked.copies.of_all(run_id, pages, until) if pages else {}
                found.first.update({(run_id, hashed): url for hashed, url in first.items()})
                found.all.update({(run_id, hashed): urls for hashed, urls in every.items()})
        return found

    # What is known of one, when it is asked for

    def _earlier(self, visit: RecordedVisit, before: LineOfRuns | None) -> Callable[[], Page | None]:
        def earlier() -> Page | None:
            if visit.change == Change.NEW and Note.BACK not in (visit.note or "").split():
                return None
            with contextlib.suppress(Unknown), self._open_sources() as asked:
                line = before if before is not None else asked.now.before(visit.run_id)
                return self._version(line, visit.url)
            return None

        return earlier

    def _version(self, line: LineOfRuns, url: str) -> Page | None:
        """The last that these runs have of a page."""
        with contextlib.suppress(Unknown), self._open_sources() as asked:
            found = asked.now.version(line, url)
            return self.page_of(found) if found is not None else None
        return None

    def _record(self, visit: RecordedVisit, others: _SameText) -> JsonObject:
        content, outcome = (visit.run_id, visit.text_hash or ""), visit.outcome
        return {
            **renamed(visit._asdict()),
            "run": self._runs[visit.run_id].number,
            "alternate_of": others.first.get(content) if outcome == "duplicate" else None,
            "alternate_urls": others.all.get(content, []) if outcome == "page" else [],
        }

    def _body(self, visit: RecordedVisit) -> bytes | None:
        # To open a store takes ten times as long as to read a page, and most visits can do without.
        own = Bodies(self._store, self._place.archive).own(visit) if self._open is None else None
        if own is not None:
            return own.body
        with contextlib.suppress(Unknown), self._open_sources() as asked:
            response = asked.bodies.of_visit(visit)
            return None if response is None else response.body
        return None

    def _headers(self, visit: RecordedVisit) -> Mapping[str, str]:
        """Those of the visit's own answer, or, where that had none to keep, of the one that it stands for."""
        with contextlib.suppress(Unknown), self._open_sources() as asked:
            own = asked.bodies.at(visit.file, visit.offset or 0) if visit.file else None
            response = (own.answer if isinstance(own, Failure) else own) or asked.bodies.of_visit(visit)
            return response.headers if response is not None else {}
        return {}


def _parts(found: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(found)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _hashes(visits: Sequence[RecordedVisit], run_id: int, outcome: str) -> set[str]:
    of_run = (visit for visit in visits if visit.run_id == run_id and visit.outcome == outcome)
    return {visit.text_hash for visit in of_run if visit.text_hash}
