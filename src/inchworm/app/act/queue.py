"""The queue of a run: adding a URL by hand, taking one out, trying again what failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from inchworm.app.act.edit import end_early, ledger_of
from inchworm.app.read.frontier import EntryLine, FrontierRows, RowPlace, state_in_run
from inchworm.app.refuse import refuse_private
from inchworm.app.workspace import Workspace, identity
from inchworm.engine import run
from inchworm.engine.own.orders import AddOrder, RetryOrder
from inchworm.engine.own.owner import CrawlOwner
from inchworm.errors import NotNow, WrongUse
from inchworm.model import (
    CrawlInfo,
    FoundUrl,
    FrontierEntry,
    Kind,
    Reason,
    RefusedEntry,
    RunInfo,
    RunState,
    Source,
    State,
)
from inchworm.ports import StoredRow
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.words.json_form import FLAT

ADD = "add"
"""What the owner of a run is asked for when somebody adds a URL."""


@dataclass(frozen=True, slots=True)
class EntryAdded:
    """A URL that was put in by hand, and what became of it."""

    entry: EntryLine = field(metadata=FLAT)
    added: bool
    message: str


class QueueActs:
    """Changes the queue of a run."""

    def __init__(self, workspace: Workspace, frontier: FrontierRows) -> None:
        self._workspace = workspace
        self._frontier = frontier

    # Adding

    def add(self, crawl: CrawlInfo, url: str, depth: int = 0, allow_private: bool = True) -> EntryAdded:
        """Put a URL into the last run by hand: judged like any other, so it may be refused. A run that was complete is
        open again when it got something to do. Without `allow_private` nothing in a private network."""
        if not allow_private:
            _refuse_private(crawl, url)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
            found = _found(current, url)
            before = state_in_run(store, current, found.url)
        _refuse_useless(crawl, current, found.url, before)
        if before is None or before[1] is State.REFUSED:
            argument = AddOrder(found.url, found.request_url, depth).to_json()
            answer = self._workspace.ask(crawl, ADD, argument) if self._workspace.is_running(crawl) else None
            if answer is None:
                with self._workspace.owning(crawl) as owner:
                    self._add(owner, crawl, found, depth)
        with self._workspace.reading(crawl) as store:
            after = state_in_run(store, current, found.url)
        if after is None:
            raise NotNow(f"{found.url} was not taken.", "Try again.")
        shown = self._frontier.row(RowPlace(crawl, current.number, after[0]))
        is_added = before is None or before[1] is not after[1]
        return EntryAdded(shown, is_added, _message(shown, is_added))

    def _add(self, owner: CrawlOwner, crawl: CrawlInfo, found: FoundUrl, depth: int) -> None:
        current = self._workspace.run_of(crawl, owner.store)
        committed = ledger_of(owner, current).edits.add(found, depth)
        if current.state is RunState.COMPLETED and committed.counters.pending > current.counters.pending:
            owner.store.runs.set_state(owner.token, current.run_id, RunState.PAUSED, self._workspace.clock.now_ms())

    # Taking out

    def take_out(self, entry_id: str) -> None:
        """Refuse a pending row as `cleared`, so that it is not visited."""
        spot = self._frontier.place_of(entry_id)
        found = self._frontier.row(spot)
        if found.facts.state == State.REFUSED and found.facts.reason == Reason.CLEARED:
            return
        with self._workspace.owning(spot.crawl) as owner:
            current, row = self._row_of_last_run(owner, spot)
            _refuse_unless_pending(row)
            ledger_of(owner, current).commit([RefusedEntry(_as_entry(row), Reason.CLEARED)])

    def dismiss(self, entry_id: str) -> None:
        """A link that was not followed is `cleared` from now on: it is no longer listed, and no other link to it can
        make the run follow it. The row stays."""
        spot = self._frontier.place_of(entry_id)
        self._frontier.get_not_followed(entry_id)
        with self._workspace.owning(spot.crawl) as owner:
            current, row = self._row_of_last_run(owner, spot)
            ledger_of(owner, current).edits.dismiss(row)

    def _row_of_last_run(self, owner: CrawlOwner, spot: RowPlace) -> tuple[RunInfo, StoredRow]:
        current = self._workspace.run_of(spot.crawl, owner.store)
        if current.number != spot.run:
            raise NotNow(
                f"Run {spot.run} of {spot.crawl.name!r} is history: only run {current.number} can be changed.",
                "Change the row of that run, or go back to a checkpoint of the old one.",
            )
        return current, owner.store.frontier.rows(current.run_id, [spot.url_id])[0]

    def clear(self, word: str) -> int:
        """Refuse every pending URL and complete the run; how many."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl):
            pass  # one that never started has no queue
        with self._workspace.owning(crawl) as owner:
            last = self._workspace.run_of(crawl, owner.store)
            pending = last.counters.pending
            end_early(owner, last, self._workspace.clock.now_ms())
        return pending

    def clear_if_open(self, crawl: CrawlInfo) -> int:
        """Refuse what is pending and complete the run; how many. A run that is complete stays as it is."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
        return 0 if current.state is RunState.COMPLETED else self.clear(crawl.crawl_id)

    def retry(self, word: str, kind: str | None = None, url: str | None = None) -> int:
        """Re-open failed URLs; how many. The next session fetches them."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            last = self._workspace.run_of(crawl, store)
            address = identity(last, url) if url else None
            count = len(store.frontier.failed(last.run_id, kind, address))
        if not count:
            return 0
        if self._workspace.is_running(crawl):
            self._workspace.ask(crawl, "retry", RetryOrder(kind, address).to_json())
            return count
        with self._workspace.owning(crawl) as owner:
            last = self._workspace.run_of(crawl, owner.store)
            ledger_of(owner, last).edits.reopen(kind, address)
            owner.store.runs.set_state(owner.token, last.run_id, RunState.PAUSED, self._workspace.clock.now_ms())
        return count


def _refuse_private(crawl: CrawlInfo, url: str) -> None:
    """Not even by hand, but for the hosts of seeds that were typed on this machine."""
    href = urls.parse(url)
    typed = {urls.host_of(form) for text in crawl.seeds if crawl.typed for form in urls.seed(text) or ()}
    if href is not None and urls.host_of(href) not in typed:
        refuse_private(href, run.shown(url))


def _message(entry: EntryLine, is_added: bool) -> str:
    """What became of a URL that was added by hand."""
    if entry.facts.state == State.REFUSED:
        return f"It is refused ({entry.facts.reason}): {entry.why}."
    return "It waits for its turn." if is_added else "It was known already, and waits for its turn."


def _found(current: RunInfo, url: str) -> FoundUrl:
    href = urls.parse(url)
    if href is not None and urls.userinfo_of(href) is not None:
        raise WrongUse("A URL with user and password cannot be added.", "Leave them out.")
    address = identity(current, url)
    return FoundUrl(address, urls.request_form(href or address), Kind.PAGE, Source.MANUAL)


def _refuse_useless(crawl: CrawlInfo, current: RunInfo, url: str, before: tuple[int, State] | None) -> None:
    if before is not None and before[1] is State.DONE:
        raise NotNow(
            f"Run {current.number} of {crawl.name!r} has visited {url}.",
            "The next run visits it again; `retry` opens what failed.",
        )
    if not run.is_open(current) and current.state is not RunState.COMPLETED:
        raise NotNow(
            f"Run {current.number} of {crawl.name!r} was {current.state}, so nothing can be added to it.",
            "Continue it from a checkpoint, or start the next run.",
        )


def _refuse_unless_pending(row: StoredRow) -> None:
    if row.kind in control.KINDS:
        raise NotNow(f"{row.url} says what may be crawled, so it is read in any case.", "Take the pages out instead.")
    if row.standing.state is not State.PENDING:
        reason = f" ({row.standing.reason})" if row.standing.reason else ""
        raise NotNow(f"{row.url} is {row.standing.state}{reason}, not pending.", "Only what is pending is taken out.")


def _as_entry(row: StoredRow) -> FrontierEntry:
    old = row.standing
    address, place = old.request_url or row.url, (old.place_seq, old.place_idx)
    return FrontierEntry(
        row.url_id, row.url, address, row.kind, row.source, old.seed, old.depth, old.hops, old.lane, place
    )
