"""The frontier: its rows one by one, and all of it in numbers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inchworm.app.read.runs import Runs
from inchworm.app.workspace import Workspace, identity
from inchworm.engine import run
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.model import CrawlInfo, Reason, RunInfo, RunState, State
from inchworm.rules.words.explain import REASONS
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.frontier import EntryFacts, FrontierReader, FrontierRow
from inchworm.store.crawl.store import CrawlStore

_ID = re.compile(r"([0-9A-Za-z]{1,64})_([0-9]{1,18})_([0-9]{1,18})")
_WITHOUT_CLEARED = {"reason_other_than": Reason.CLEARED.value}

After = tuple[int, str, int]
"""Where a list over all crawls goes on: when the crawl was made, its id, the last row seen."""


@dataclass(frozen=True, slots=True)
class EntryLine:
    """A URL in the frontier of a run."""

    id: str
    crawl_id: str
    run: int
    url_id: int
    url: str
    request_url: str
    facts: EntryFacts = field(metadata=FLAT)
    not_before: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class EntryCount:
    """How many URLs of one source are in one state, for one reason."""

    source: str
    state: str
    reason: str | None
    count: int


@dataclass(frozen=True, slots=True)
class FrontierNumbers:
    """The frontier of the last run in numbers. Of a crawl that has not started: of no run."""

    crawl_id: str
    has_queue: bool
    visited: int
    pending: int
    refused: int
    total: int
    can_resume: bool
    current_run: int | None
    run_state: str
    sessions: tuple[int, ...]
    counts: tuple[EntryCount, ...]


ListedEntry = tuple[CrawlInfo, EntryLine]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row: its crawl, its run, its number."""

    crawl: CrawlInfo
    run: int
    url_id: int


class FrontierRows:
    """What is known of the rows of a frontier."""

    def __init__(self, workspace: Workspace, runs: Runs) -> None:
        self._workspace = workspace
        self._runs = runs

    def list(
        self, crawl: CrawlInfo, wanted: Mapping[str, str], number: int | None = None, after: int = 0, limit: int = 50
    ) -> Sequence[EntryLine]:
        """Entries of a run, from behind one on. `wanted`: `state`, `reason`, `source`, or what `not_followed` says."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            rows = FrontierReader(store, current.run_id).rows(wanted, after, limit)
        return [_entry(RowPlace(crawl, current.number, row.url_id), row) for row in rows]

    def list_of_all(self, wanted: Mapping[str, str], after: After | None, limit: int) -> Sequence[ListedEntry]:
        """The same of the last run of every crawl, the oldest crawl first. One that cannot be read, or has not started,
        has none."""
        found: Sequence[ListedEntry] = []
        begin, number = (after[:2], after[2]) if after else ((0, ""), 0)
        for crawl in sorted(self._workspace.crawls.all(), key=_age):
            if _age(crawl) < begin or len(found) >= limit:
                continue
            last = number if _age(crawl) == begin else 0
            with contextlib.suppress(InchwormError):
                rows = self.list(crawl, wanted, None, last, limit - len(found))
                found = [*found, *((crawl, row) for row in rows)]
        return found

    def get(self, entry_id: str) -> EntryLine:
        """One entry, by its id."""
        return self.row(self.place_of(entry_id))

    def get_not_followed(self, entry_id: str) -> EntryLine:
        """One link that was not followed."""
        found = self.get(entry_id)
        if found.facts.state != State.REFUSED:
            raise Unknown(
                f"{found.url} is no link that was not followed: it is {found.facts.state}.",
                "Only links that were refused are such. One that is pending can be taken out.",
            )
        return found

    def entry_id(self, crawl: CrawlInfo, word: str) -> str:
        """The id of a row of a crawl, for whoever has its URL or the id itself. By its URL, it is that of the last
        run."""
        if _ID.fullmatch(word):
            if self.place_of(word).crawl.crawl_id != crawl.crawl_id:
                raise WrongUse(f"{word} is an entry of another crawl.", "Name that crawl.")
            return word
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
            address = identity(current, word)
            known = state_in_run(store, current, address)
        if known is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}.", "Check how it is written."
            )
        return id_of(RowPlace(crawl, current.number, known[0]))

    def place_of(self, entry_id: str) -> RowPlace:
        """Which row an id means."""
        parts = _ID.fullmatch(entry_id)
        crawl = self._workspace.crawls.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1]:
            raise Unknown(f"There is no entry {entry_id!r}.", "An id is CRAWL_RUN_NUMBER, as the frontier lists it.")
        return RowPlace(crawl, int(parts[2]), int(parts[3]))

    def row(self, spot: RowPlace) -> EntryLine:
        """One entry, by its place."""
        with self._workspace.reading(spot.crawl) as store:
            current = self._workspace.run_of(spot.crawl, store, spot.run)
            row = FrontierReader(store, current.run_id).row(spot.url_id)
        if row is None:
            raise Unknown(f"Run {spot.run} of {spot.crawl.name!r} has no row {spot.url_id}.", "Ids never move.")
        return _entry(spot, row)

    def numbers(self, crawl: CrawlInfo) -> FrontierNumbers:
        """The frontier of the last run in numbers."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
            counts = CountReader(store).rows_by_state(current.run_id)
            sessions = store.sessions.of(current.run_id)
        counters, state = current.counters, run.state_of(current, self._workspace.is_running(crawl))
        return FrontierNumbers(
            crawl_id=crawl.crawl_id,
            has_queue=counters.known > 0,
            visited=counters.known - counters.pending - counters.refused,
            pending=counters.pending,
            refused=counters.refused,
            total=counters.known,
            can_resume=state is RunState.PAUSED and counters.pending > 0,
            current_run=current.number,
            run_state=state.value,
            sessions=tuple(one.number for one in sessions),
            counts=tuple(EntryCount(*one) for one in counts),
        )

    def numbers_if_any(self, crawl: CrawlInfo) -> FrontierNumbers:
        """The same; of a crawl that has not started, nothing."""
        if self._runs.last(crawl) is None:
            nothing = (False, 0, 0, 0, 0, False)
            return FrontierNumbers(crawl.crawl_id, *nothing, current_run=None, run_state="", sessions=(), counts=())
        return self.numbers(crawl)


def not_followed(reason: str | None) -> Mapping[str, str]:
    """Links that a run saw and refused, for this reason or any. Those that somebody took out only on request."""
    return {"state": State.REFUSED.value, **({"reason": reason} if reason else _WITHOUT_CLEARED)}


def state_in_run(store: CrawlStore, current: RunInfo, url: str) -> tuple[int, State] | None:
    """The number of a URL and how it stands in a run."""
    known = store.frontier.known(current.run_id, [url]).get(url)
    return (known.url_id, known.state) if known and known.in_run else None


def id_of(spot: RowPlace) -> str:
    return f"{spot.crawl.crawl_id}_{spot.run}_{spot.url_id}"


def _entry(spot: RowPlace, row: FrontierRow) -> EntryLine:
    return EntryLine(
        id=id_of(spot),
        crawl_id=spot.crawl.crawl_id,
        run=spot.run,
        url_id=row.url_id,
        url=row.url,
        request_url=row.request_url,
        facts=row.facts,
        not_before=iso(row.not_before_ms) if row.not_before_ms else None,
        why=REASONS.get(row.facts.reason) if row.facts.reason else None,
    )


def _age(crawl: CrawlInfo) -> tuple[int, str]:
    return crawl.created_ms, crawl.crawl_id
