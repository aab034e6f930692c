"""Pages: what became of each URL of a run, and why."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm import settings
from inchworm.app.read.content.visits import KnownUrl, StoredVisit, known_url
from inchworm.app.read.runs import MOST_RUNS
from inchworm.app.workspace import Workspace, identity, settings_of_run
from inchworm.archive import reader as warc_reader
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.fetch import replay
from inchworm.model import CrawlInfo, Failure, FoundUrl, FrontierEntry, Kind, Reason, RunInfo, Source
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import Judge, Patterns, Scope
from inchworm.rules.words.explain import prospect
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.sink.columns import VisitLine, visit_line
from inchworm.store.crawl.read.urls import LINK_STEP, LinkReader, UrlInRun, UrlReader, UrlState
from inchworm.store.crawl.read.visits import SPAN, RecordedVisit, VisitReader, WantedVisits

MOST_MEANT = 5
"""So many URLs are named when somebody may mean several."""


class ListPart(NamedTuple):
    """Which part of a list is wanted: from behind this number on, at most so much."""

    after: int = 0
    limit: int = 50


class VisitList(NamedTuple):
    """A part of a list of visits, and behind which number the next one begins, if there is one. A part may hold less
    than was wanted though there is more, but never nothing."""

    items: Sequence[VisitLine]
    next_after: int | None


class UrlExplanation(NamedTuple):
    """Why a URL was or was not crawled."""

    url: str
    canonical_url: str
    state: str
    reason: str | None
    why: str


class LinkingPages(NamedTuple):
    """Pages that link to a URL, and behind which step of the run there may be more."""

    items: Sequence[UrlState]
    next_after: int | None


class HistoryLine(NamedTuple):
    """How a URL stands in one of the runs. `baseline`: the run before it whose text can be compared with its own."""

    run: int
    state: str
    reason: str | None
    outcome: str | None
    status: int | None
    failure: str | None
    change: str | None
    size: int | None
    at: str | None
    baseline: int | None


@dataclass(frozen=True, slots=True)
class PageVisit:
    """The last visit to a page. `alternates`: other pages with its text; `is_stored`: the archive has a body of it;
    `requested`: it was not taken from an earlier run."""

    line: VisitLine = field(metadata=FLAT)
    alternates: Sequence[str]
    is_stored: bool
    requested: bool


@dataclass(frozen=True, slots=True)
class PageDetails:
    """All that is known of one URL: in a run, in the others, where it leads, and what came with it."""

    run: int
    known: KnownUrl
    visit: PageVisit | None
    tries: Sequence[VisitLine]
    history: Sequence[HistoryLine]
    links: Sequence[UrlState]
    link_count: int
    headers: Mapping[str, str]


MOST_LINKS = 100
MOST_ALTERNATES = 50
LINK_SECONDS = 0.1

MATTER = (
    *("content-type", "content-language", "content-encoding", "last-modified", "etag", "cache-control", "expires"),
    *("age", "vary", "location", "link", "x-robots-tag", "retry-after", "server"),
)
"""The headers that say something of a page."""


class Pages:
    """What is known of the URLs of a run."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def url_of(self, word: str, part: str, number: int | None = None) -> str:
        """The URL that somebody means by a part of it: the only one that a run visited with this in it, or that ends
        so. A whole URL means itself."""
        if urls.parse(part) is not None:
            return part
        found, after = dict[str, str](), 0
        while len(found) <= MOST_MEANT:
            listed = self.listed(word, {"text": part}, number, ListPart(after, MOST_MEANT + 1))
            found |= {one.canonical_url: one.url for one in listed.items}
            if listed.next_after is None:
                break
            after = listed.next_after
        ending = [url for url in found.values() if url.rstrip("/").endswith(part.rstrip("/"))]
        meant = ending if len(ending) == 1 else list(found.values())
        if len(meant) == 1:
            return meant[0]
        if not meant:
            raise Unknown(f"No URL that was visited has {part!r} in it.", "`inchworm export --format urls` lists them.")
        some = ", ".join(meant[:MOST_MEANT]) + (", …" if len(meant) > MOST_MEANT else "")
        raise WrongUse(f"{part!r} may mean several URLs.", f"Give more of it: {some}")

    def one(self, word: str, url: str, number: int | None = None) -> KnownUrl:
        """What is known of one URL."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            address = identity(current, url)
            names = (address, control.robots_file(urls.origin_of(address)).url, control.sitemap_file(address).url)
            wanted = [name for name in names if name.endswith(address)]
            hint = "Check the spelling, or look whether the page that should link to it was reached."
            return known_url(store, crawl, current, wanted, hint)

    def listed(self, word: str, wanted: Mapping[str, str], number: int | None, part: ListPart) -> VisitList:
        """What became of the pages and resources of a run, in the order of record. `wanted`: `outcome`, `failure`,
        `change`, and `text`, a part of the URL."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            visits, after = VisitReader(store), part.after
            found = visits.settled(current.run_id, WantedVisits(**wanted), after, part.limit + 1)
            while not found and after + SPAN < current.seq:
                after += SPAN
                found = visits.settled(current.run_id, WantedVisits(**wanted), after, part.limit + 1)
        shown = [visit_line(one._asdict()) for one in found[: part.limit]]
        if len(found) > part.limit:
            return VisitList(shown, shown[-1].seq)
        return VisitList(shown, after + SPAN if after + SPAN < current.seq else None)

    def visits(self, word: str, number: int | None = None) -> Iterator[VisitLine]:
        """Every visit of a run to a page or resource, in the order of record."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            visits = VisitReader(store).of_run(current.run_id, current.seq)
            yield from (visit_line(one._asdict()) for one in visits)

    def requested_urls(self, word: str, number: int | None = None) -> Iterator[str]:
        """Every URL a run requested, as requested, once, in the order of record."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            yield from VisitReader(store).requested_urls(current.run_id, current.seq)

    def why(self, word: str, url: str, number: int | None = None) -> UrlExplanation:
        """Why a URL was or was not crawled; of one that is not known, what would become of it."""
        try:
            found = self.one(word, url, number)
        except Unknown as error:
            error.message += self._prospect(word, url, number)
            raise
        return UrlExplanation(found.address, found.url, found.facts.state, found.facts.reason, found.why)

    def _prospect(self, word: str, url: str, number: int | None) -> str:
        crawl = self._workspace.find(word)
        with contextlib.suppress(Unknown, NotNow), self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            values, address = settings.changed(Settings(), settings_of_run(current)), identity(current, url)
            robots = RobotsVerdicts(values, store.hosts.robots(current.run_id, urls.origin_of(address)))
            reason, is_known = _linked_by_a_seed(current, values, address), robots.is_known(address)
            if reason is None and is_known and not robots.trouble(address) and not robots.allows(address):
                reason = Reason.ROBOTS
            return " " + prospect(reason, is_known)
        return ""

    def failed(self, word: str, kind: str | None = None) -> list[StoredVisit]:
        """What failed in the last run, and why."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            found = VisitReader(store).that_failed(self._workspace.run_of(crawl, store).run_id, kind)
            return [StoredVisit(one) for one in found]

    # One page

    def details(self, crawl: CrawlInfo, url: str, number: int | None = None) -> PageDetails:
        """All that is known of one URL: in a run, in the others, where it leads, and what came with it."""
        with self._workspace.reading(crawl) as store:
            current, urls_of = self._workspace.run_of(crawl, store, number), UrlReader(store)
            hint = "Look whether another run knows it."
            known = known_url(store, crawl, current, [identity(current, url)], hint, MOST_ALTERNATES)
            url_id = store.frontier.known(current.run_id, [known.url], rows=False)[known.url].url_id
            last = known.visits[-1] if known.visits else None
            ids = LinkReader(store).found_by(current.run_id, last.record.seq) if last else []
            return PageDetails(
                current.number,
                known,
                _page_visit(last) if last else None,
                [one.line for one in known.visits[:-1]],
                _history(urls_of.history(url_id, MOST_RUNS)),
                urls_of.states(current.run_id, ids[:MOST_LINKS]),
                len(ids),
                self._headers(crawl, last.record) if last else {},
            )

    def _headers(self, crawl: CrawlInfo, visit: RecordedVisit) -> dict[str, str]:
        """The headers that matter, of this visit's own answer."""
        if not visit.file or visit.offset is None:
            return {}
        try:
            record = warc_reader.record_at(self._workspace.place(crawl).archive / visit.file, visit.offset)
        except WrongUse:
            return {}
        reply = replay.answer_of(record)
        response = reply.answer if isinstance(reply, Failure) else reply
        return {name: response.headers[name] for name in MATTER if name in response.headers} if response else {}

    def links_to(self, crawl: CrawlInfo, url: str, number: int | None = None, after: int = 0) -> LinkingPages:
        """Pages of a run that link to a URL, from behind a step on; and behind which step there is more to see. As many
        as are found in a moment."""
        until = time.monotonic() + LINK_SECONDS
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            address = identity(current, url)
            known = store.frontier.known(current.run_id, [address], rows=False).get(address)
            if known is None:
                return LinkingPages([], None)
            links = LinkReader(store)
            found: list[tuple[int, int]] = []
            while after < current.seq and len(found) <= MOST_LINKS and time.monotonic() < until:
                found += links.leading_to(current.run_id, known.url_id, after, after + LINK_STEP)
                after += LINK_STEP
            if len(found) > MOST_LINKS:
                found = found[:MOST_LINKS]
                after = found[-1][0]
            ids = list(dict.fromkeys(url_id for _, url_id in found))
            return LinkingPages(UrlReader(store).states(current.run_id, ids), after if after < current.seq else None)


def _linked_by_a_seed(current: RunInfo, values: Settings, address: str) -> Reason | None:
    """Why a URL would be refused if a seed linked to it."""
    scope = Scope(values.scope, current.seeds, values.loose_paths)
    patterns = Patterns(values.include, values.exclude)
    judge = Judge(scope, patterns, values.max_depth, values.external_hops, values.trap_depth)
    seed = current.seeds[0]
    page = FrontierEntry(0, seed.url, seed.url, Kind.PAGE, Source.INITIAL, seed.number, 0, 0, 0, (0, 0))
    return judge.judge(FoundUrl(address, address), page).reason


def _page_visit(visit: StoredVisit) -> PageVisit:
    record = visit.record
    alternates = [url for url in visit.alternate_urls or () if url != record.url]
    return PageVisit(visit.line, alternates, bool(record.payload) and bool(record.size), bool(record.requested))


def _history(runs: Sequence[UrlInRun]) -> list[HistoryLine]:
    """How a URL stands in runs, the newest first, with the run before each that has a text to compare with, if both
    have one."""
    found: list[HistoryLine] = []
    before: int | None = None
    for one in reversed(runs):
        has_text = one.outcome in ("page", "duplicate")
        at, baseline = iso(one.at_ms) if one.at_ms else None, before if has_text else None
        stands = (one.run, one.state, one.reason, one.outcome, one.status, one.failure, one.change, one.size)
        found.append(HistoryLine(*stands, at, baseline))
        before = one.run if has_text else before
    return found[::-1]
