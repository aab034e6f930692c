"""What an export is made of: the record of a run, the crawl as it is now, or what changed."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from inchworm.app.fields import FieldColumns, FieldRequest
from inchworm.app.frames import frames_for
from inchworm.engine.stored import StoredPages
from inchworm.errors import WrongUse
from inchworm.model import JsonObject, RunInfo
from inchworm.page import Page
from inchworm.sink.columns import BEYOND_TEXT, Column, chosen
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.read.now import Now, Since
from inchworm.store.crawl.read.visits import RecordedVisit, VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.scratch import Seen

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""How far an export is, of how much."""

_HANDFUL = 32
_HANDFUL_BYTES = 1_000_000


class ExportOptions(NamedTuple):
    """What an export is to hold. Without a run: the crawl as it is now. `since`: a run's number or a date, for what
    changed; `only`: these changes. `columns`: exactly these, and `more`: these too. `types`: media types or endings, of
    `files`. Of `chunks`: how large, how much of the one before, and the file of a tokenizer that counts. `frame`: what
    is done with blocks that stand on most pages of their host, and `fields`: how fields are to be taken, if not as the
    crawl says."""

    run: int | None = None
    since: str | None = None
    only: tuple[str, ...] = ()
    unique: bool = False
    columns: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    mark: bool = False
    images: bool = False
    chunk_size: int = 0
    chunk_overlap: int = 0
    tokenizer: str = ""
    frame: str = ""
    fields: FieldRequest = FieldRequest()

    @property
    def is_about_chunks(self) -> bool:
        return bool(self.chunk_size or self.chunk_overlap or self.tokenizer)

    @property
    def is_about_changes(self) -> bool:
        return self.since is not None or bool(self.only)


class Chosen(NamedTuple):
    """The run that is meant, the end of the line that tells how the crawl is now, and since when changes are wanted."""

    run: RunInfo
    end: RunInfo
    since: Since | None


class Selection:
    """The visits and pages of an export, one after the other."""

    def __init__(
        self,
        store: CrawlStore,
        place: CrawlPlace,
        chosen: Chosen,
        wanted: ExportOptions,
        fields: FieldColumns,
        progress: Progress | None,
    ) -> None:
        self._visits, self._now = VisitReader(store), Now(store)
        self._chosen, self._wanted, self._fields = chosen, wanted, fields
        # Before the line: copies that are newer than the line must not be named.
        self.stored = StoredPages(store, place, frames_for(place, wanted.frame))
        # Taken once: whoever goes through all of it twice has to see the same.
        self._line = self._now.line(chosen.end)
        self._progress = progress or (lambda _done, _total: None)

    def columns(self) -> tuple[Column, ...]:
        """What each row of a table holds."""
        return chosen(self._wanted.columns, self._wanted.more, self._fields.columns)

    @contextlib.contextmanager
    def rows(self, pages: Iterator[Page], columns: Sequence[Column]) -> Iterator[Iterator[Page]]:
        """These pages with the fields that columns ask for, a page for each row."""
        if not any(one in self._fields.columns for one in columns):
            yield pages
            return
        with self._fields.rows(pages, keeps_all=self._wanted.is_about_changes) as rows:
            yield rows

    def field_rows(self) -> Iterator[JsonObject]:
        """The fields of the pages that are there, each row with the address of its page."""
        self.refuse_without_fields()
        with self._fields.rows((page for page in self.pages() if not page.is_gone), keeps_all=False) as rows:
            for page in rows:
                yield {"url": page.url, **self._fields.values(page)}

    def refuse_without_fields(self) -> None:
        if not self._fields.columns:
            raise WrongUse("No fields are set for this crawl.", "Say which to take: extract={'name': 'h1'}")

    def pages(self, is_first_look: bool = False) -> Iterator[Page]:
        """One page after the other: of a run, of the crawl now, or of what changed. `is_first_look`: they will be gone
        through once more, and nothing is done yet."""
        if self._chosen.since is not None:
            pages = self._changed(self._chosen.since)
        else:
            pages = self.stored.pages_of(self.visits(is_first_look=is_first_look))
        return self._unique(pages) if self._wanted.unique else pages

    def _changed(self, since: Since) -> Iterator[Page]:
        only = self._wanted.only
        changes = self._counted(self._now.changed(since, self._line, self._goes_by_bytes()))
        told = (one for one in changes if not only or one.change in only)
        return self.stored.changed_pages(told, self._now.line_at(since))

    def _goes_by_bytes(self) -> bool:
        """Whether what is wanted of a page may have changed though its text and links are what they were: a price in a
        field may stand outside of the text."""
        has_more = any(one in self._fields.columns or one.name in BEYOND_TEXT for one in self.columns())
        return has_more or self._chosen.run.settings.get("compare_by") == "bytes"

    def visits(self, resources: bool = False, is_first_look: bool = False) -> Iterator[RecordedVisit]:
        """One visit after the other: the record of a run, or the newest of each URL that is there."""
        run, only = self._chosen.run, self._wanted.only
        if self._wanted.run is None:
            return self._counted(self._now.pages(self._line, resources), is_first_look)
        record = self._counted(self._visits.of_run(run.run_id, run.seq), is_first_look)
        return (visit for visit in record if not only or visit.change in only)

    def there(self, urls: Iterable[str]) -> Iterator[Page]:
        """Those of these URLs that are there, pages and resources."""
        return self.stored.pages_of(self._now.there(self._line, urls))

    def _counted(self, found: Iterator[T], is_first_look: bool = False) -> Iterator[T]:
        """Tell how far it is. How much there is nobody has counted; the run has about as much."""
        expected, done = self._chosen.end.counters.pages + self._chosen.end.counters.duplicates, 0
        for done, one in enumerate(found, 1):
            yield one
            self._progress(0 if is_first_look else done, max(done + 1, expected))
        if not is_first_look:
            self._progress(done, done)

    def with_first(self, pages: Iterator[Page]) -> Iterator[tuple[Page, str]]:
        """Pages with the URL of the one that stands for their content: the page that has it for its own where that is
        there, or else the first that has it."""
        with Seen() as seen:
            for page in pages:
                own, hashed = page.record["canonical_url"], page.record.get("text_hash")
                first = page.record.get("alternate_of")
                if hashed is None:
                    yield page, own
                elif first and self._now.has_text(self._line, first, hashed):
                    yield page, first
                else:
                    yield page, seen.first(hashed, own)

    def _unique(self, pages: Iterator[Page]) -> Iterator[Page]:
        return (page for page, first in self.with_first(pages) if first == page.record["canonical_url"])


def read_ahead(pages: Iterator[Page], content: Sequence[Column]) -> Iterator[Page]:
    """The same pages, a handful at a time: loaded one after the other, then read one after the other. That takes a
    tenth less than turning from one thing to the next with every page."""
    while handful := _handful(pages):
        for page in handful:
            for column in content:
                column.get(page)
        while handful:
            yield handful.popleft()


def _handful(pages: Iterator[Page]) -> deque[Page]:
    handful, size = deque[Page](), 0
    for page in pages:
        handful.append(page)
        size += 0 if page.is_gone else len(page.body)
        if len(handful) == _HANDFUL or size >= _HANDFUL_BYTES:
            break
    return handful
