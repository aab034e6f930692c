"""Extracting: fields taken out of pages that the archive has, again and without a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from inchworm.app.act.configure import Configuration, Configurer
from inchworm.app.fields import CrawlFields, Taker, rules_of, unmatched
from inchworm.app.refuse import refuse_fields
from inchworm.app.workspace import Workspace, identity
from inchworm.engine.stored import StoredPages
from inchworm.errors import Unknown, WrongUse
from inchworm.model import CrawlInfo, Json
from inchworm.page import Page
from inchworm.rules.fields.selectors import Rules, to_json
from inchworm.rules.words.json_form import OPTIONAL
from inchworm.settings import NamedSettings
from inchworm.sink.fields import columns_of, told
from inchworm.store.crawl.read.frontier import FrontierReader
from inchworm.store.crawl.read.now import Now
from inchworm.store.crawl.read.visits import RecordedVisit, VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import fields as stored
from inchworm.store.follow.follower import Progress

SHOWN = 5

MOST_TRIED = 500
"""So many pages are tried until as many as are shown have something."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """A field, what its values are, and how many pages have it."""

    name: str
    pages: int
    type: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of taking fields out of the pages of a run."""

    crawl_id: str
    name: str
    run: int
    extract: Sequence[str]
    each: str
    pages: int
    rows: int
    failed: int
    fields: Sequence[FieldLine]
    unmatched_fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class TriedPage:
    """What rules find on a page, or why it cannot be read by them."""

    url: str
    rows: Sequence[Mapping[str, Json]]
    failure: str | None


@dataclass(frozen=True, slots=True)
class FieldTrial:
    """What rules find on some pages."""

    extract: Sequence[str]
    each: str
    tried: int
    pages: Sequence[TriedPage]
    fields: Sequence[FieldLine]
    unmatched_fields: Sequence[str]


class Extractor:
    """Takes fields out of pages."""

    def __init__(self, workspace: Workspace, configure: Configurer) -> None:
        self._workspace = workspace
        self._configure = configure

    def extract(
        self,
        word: str,
        given: NamedSettings | None = None,
        rebuild: bool = False,
        progress: Progress = lambda _done, _total: None,
    ) -> Extraction:
        """Take the fields of all pages from the archive; of those that have them by the same rules only with `rebuild`.
        Rules that are given are kept with the crawl."""
        crawl = self._workspace.find(word)
        rules = self._rules(crawl, given)
        with self._workspace.reading(crawl) as store:
            if given:
                self._configure.change(crawl.crawl_id, Configuration(defaults=given))
            place = CrawlFields(store, self._workspace.place(crawl), rules)
            if rebuild:
                stored.forget(place.path)
            current = store.runs.line_end() or self._workspace.run_of(crawl, store)
            counts = place.counts(current.run_id, place.source(progress))
        columns = columns_of(rules)[-len(rules.fields) :]
        return Extraction(
            crawl.crawl_id,
            crawl.name,
            current.number,
            *_as_written(rules),
            counts.pages,
            counts.rows,
            counts.failed,
            [FieldLine(one.name, counts.matched.get(number, 0), one.type.value) for number, one in enumerate(columns)],
            unmatched(rules, counts),
        )

    def try_fields(self, word: str, url: str = "", given: NamedSettings | None = None) -> FieldTrial:
        """The rows of one page, or of the first pages that have any. Nothing is kept."""
        crawl = self._workspace.find(word)
        rules = self._rules(crawl, given)
        with self._workspace.reading(crawl) as store:
            archived = StoredPages(store, self._workspace.place(crawl))
            pages = (
                iter([archived.page_of(self._visit(crawl, store, url))]) if url else self._some(crawl, store, archived)
            )
            return _tried(rules, pages)

    def page_fields(self, word: str, url: str, number: int | None = None) -> list[Mapping[str, Json]] | None:
        """The rows of a page as a run, or the newest one that has it, saw it; None where nothing is to be taken, where
        there is no page, or none that could be read."""
        crawl = self._workspace.find(word)
        rules = rules_of(self._workspace, crawl)
        if rules is None:
            return None
        with self._workspace.reading(crawl) as store:
            visit = self._visit_in(crawl, store, url, number)
            if visit is None:
                return None
            place = self._workspace.place(crawl)
            with CrawlFields(store, place, rules).looking() as taken:
                rows = taken(StoredPages(store, place).page_of(visit)).rows
        return None if rows is None else [told(rules, row) for row in rows]

    def _rules(self, crawl: CrawlInfo, given: NamedSettings | None) -> Rules:
        rules = rules_of(self._workspace, crawl, given)
        if rules is None:
            raise WrongUse(
                f"No fields are set for {crawl.name!r}.", "Say which to take, as in: --extract name=h1 (repeatable)"
            )
        refuse_fields(**to_json(rules))
        return rules

    def _some(self, crawl: CrawlInfo, store: CrawlStore, archived: StoredPages) -> Iterator[Page]:
        now = Now(store)
        line = now.line(store.runs.line_end() or self._workspace.run_of(crawl, store))
        return (archived.page_of(visit) for visit in islice(now.pages(line), MOST_TRIED))

    def _visit(self, crawl: CrawlInfo, store: CrawlStore, url: str) -> RecordedVisit:
        visit = self._visit_in(crawl, store, url, None)
        if visit is None:
            raise Unknown(
                f"No run of {crawl.name!r} has a page at {url}.",
                f"See what it has: inchworm export {crawl.crawl_id} --format urls",
            )
        return visit

    def _visit_in(self, crawl: CrawlInfo, store: CrawlStore, url: str, number: int | None) -> RecordedVisit | None:
        """The newest visit that found a page at a URL, of this run or of any."""
        visits = VisitReader(store)
        for current in (
            [self._workspace.run_of(crawl, store, number)] if number is not None else reversed(store.runs.list())
        ):
            row = FrontierReader(store, current.run_id).find(identity(current, url))
            for visit in reversed(visits.of_url(current.run_id, row.url_id) if row else ()):
                if visit.outcome in ("page", "duplicate"):
                    return visit
        return None


def _as_written(rules: Rules) -> tuple[Sequence[str], str]:
    return [one.as_written for one in rules.fields], rules.each_as_written


def _tried(rules: Rules, pages: Iterator[Page]) -> FieldTrial:
    taker = Taker(rules)
    shown: list[TriedPage] = []
    tried = 0
    matched = dict.fromkeys(rules.names, 0)
    for page in pages:
        tried += 1
        taken = taker.take(None if page.is_lost else page.body, page.content_type, page.url)
        rows = [told(rules, row) for row in taken.rows or ()]
        has = [name for name in rules.names if any(row[name] not in (None, []) for row in rows)]
        for name in has:
            matched[name] += 1
        if has or taken.failure:
            shown.append(TriedPage(page.url, rows, taken.failure or None))
        if len(shown) == SHOWN:
            break
    lines = [FieldLine(name, count) for name, count in matched.items()]
    return FieldTrial(*_as_written(rules), tried, shown, lines, [one.name for one in lines if not one.pages])
