"""What is known of a URL in a run: its row of the frontier, and its visits, as the store has them and as people are
told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inchworm.errors import Unknown
from inchworm.model import CrawlInfo, RunInfo
from inchworm.rules.words.explain import FrontierState, LastVisit, explanation
from inchworm.rules.words.json_form import FLAT, OPTIONAL
from inchworm.rules.words.times import iso
from inchworm.sink.columns import VisitLine as VisitLine
from inchworm.sink.columns import visit_line
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.frontier import EntryFacts, FrontierReader, LanePlace
from inchworm.store.crawl.read.visits import RecordedVisit, VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import NO_LIMIT


@dataclass(frozen=True, slots=True)
class StoredVisit:
    """A visit as the store has it. `alternate_urls`: all pages of its run with the same text, where somebody asked for
    them."""

    record: RecordedVisit = field(metadata=FLAT)
    alternate_urls: Sequence[str] | None = field(default=None, metadata=OPTIONAL)

    @property
    def line(self) -> VisitLine:
        """The same by the names that people know."""
        return visit_line({**self.record._asdict(), "alternate_urls": self.alternate_urls})


@dataclass(frozen=True, slots=True)
class KnownUrl:
    """All that a run knows of one URL, as the store has it."""

    url: str
    request_url: str | None
    facts: EntryFacts = field(metadata=FLAT)
    place: LanePlace = field(metadata=FLAT)
    not_before_ms: int | None
    visits: Sequence[StoredVisit]

    @property
    def address(self) -> str:
        """As it is asked for."""
        return self.request_url or self.url

    @property
    def not_before(self) -> str | None:
        return iso(self.not_before_ms) if self.not_before_ms else None

    @property
    def why(self) -> str:
        """How it came to stand as it does, in a sentence."""
        row = FrontierState(self.facts.state, self.facts.reason, self.facts.kind, self.facts.attempts)
        return explanation(row, _last(self.visits[-1]) if self.visits else None)


@dataclass(frozen=True, slots=True)
class VisitWithAlternates:
    """A visit, and all pages of its run that have the same text."""

    visit: VisitLine = field(metadata=FLAT)
    alternate_urls: Sequence[str]


@dataclass(frozen=True, slots=True)
class UrlLine:
    """All that a run knows of one URL, as people are told."""

    url: str
    canonical_url: str
    facts: EntryFacts = field(metadata=FLAT)
    place: LanePlace = field(metadata=FLAT)
    not_before: str | None
    visits: Sequence[VisitWithAlternates]


def url_line(known: KnownUrl) -> UrlLine:
    """A URL by the names that people know, with times as they are written."""
    visits = [VisitWithAlternates(one.line, one.alternate_urls or ()) for one in known.visits]
    return UrlLine(known.address, known.url, known.facts, known.place, known.not_before, visits)


def known_url(
    store: CrawlStore,
    crawl: CrawlInfo,
    current: RunInfo,
    urls: Sequence[str],
    hint: str,
    alternates: int = NO_LIMIT,
) -> KnownUrl:
    """What a run knows of the first of these URLs that it knows. `hint`: what to do when it knows none; `alternates`:
    how many others with its text are wanted, at most."""
    frontier = FrontierReader(store, current.run_id)
    found = next(filter(None, map(frontier.find, urls)), None)
    if found is None:
        raise Unknown(
            f"{urls[0]} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.", hint
        )
    address = found.request_url if found.request_url != found.url else None
    copies, visits = Copies(store), VisitReader(store).of_url(current.run_id, found.url_id)
    told = [StoredVisit(one, copies.of(one.run_id, one.text_hash, alternates)) for one in visits]
    return KnownUrl(found.url, address, found.facts, found.place, found.not_before_ms, told)


def _last(visit: StoredVisit) -> LastVisit:
    one, original = visit.record, next(iter(visit.alternate_urls or ()), None)
    return LastVisit(one.outcome, one.seq, one.status, one.failure, one.message, one.redirect, original)
