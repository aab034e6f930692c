"""Entries: rows of the frontier one by one. Looking at them, adding one by hand, taking one out."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from inchworm.app.admitting import refuse_private
from inchworm.app.desk import Desk, identity
from inchworm.engine import run
from inchworm.engine.own.owner import Owner
from inchworm.errors import InchwormError, NotNow, Unknown, WrongUse
from inchworm.model import CrawlInfo, Entry, Found, Kind, Reason, Refusal, RunInfo, RunState, Source, State
from inchworm.ports import Row
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.words.explain import REASONS
from inchworm.rules.words.times import iso
from inchworm.store.crawl.frontier import Frontier
from inchworm.store.crawl.session import CrawlStore

ADD = "add"
"""What the owner of a run is asked for when somebody adds a URL."""

_ID = re.compile(r"([0-9A-Za-z]{1,64})_([0-9]{1,18})_([0-9]{1,18})")
_WITHOUT_CLEARED = {"reason_other_than": Reason.CLEARED.value}

After = tuple[int, str, int]
"""Where a list over all crawls goes on: when the crawl was made, its id, the last row seen."""

Listed = tuple[CrawlInfo, dict[str, Any]]
RowsOf = Callable[[CrawlInfo, int, int], list[dict[str, Any]]]
"""Gives the rows of a crawl: behind a row, at most so many."""


@dataclasses.dataclass(frozen=True, slots=True)
class Spot:
    """A row: its crawl, its run, its number."""

    crawl: CrawlInfo
    run: int
    url_id: int


class Entries(Desk):
    """Verbs about single rows of the frontier."""

    # Looking

    def entries(
        self, crawl: CrawlInfo, wanted: Mapping[str, str], number: int | None = None, after: int = 0, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Rows of a run, from behind a row on. `wanted`: `state`, `reason`, `source`."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            rows = Frontier(store, current.run_id).rows(wanted, after, limit)
        return [_row_json(Spot(crawl, current.number, row["url_id"]), row) for row in rows]

    def entry(self, entry_id: str) -> dict[str, Any]:
        """One row, by its id."""
        return self._entry_told(self.spot(entry_id))

    def links_not_followed(
        self, crawl: CrawlInfo, reason: str | None, after: int = 0, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Links that the last run of a crawl saw and refused. Those that somebody took out only on request."""
        wanted = {"reason": reason} if reason else _WITHOUT_CLEARED
        return self.entries(crawl, {"state": State.REFUSED.value, **wanted}, None, after, limit)

    def all_links_not_followed(self, reason: str | None, after: After | None, limit: int) -> list[Listed]:
        """The same over all crawls."""
        return self._over_all(
            lambda crawl, last, most: self.links_not_followed(crawl, reason, last, most), after, limit
        )

    def all_entries(self, wanted: Mapping[str, str], after: After | None, limit: int) -> list[Listed]:
        """The rows of the last run of every crawl."""
        return self._over_all(lambda crawl, last, most: self.entries(crawl, wanted, None, last, most), after, limit)

    def _over_all(self, rows_of: RowsOf, after: After | None, limit: int) -> list[Listed]:
        """Rows of all crawls, the oldest crawl first. One that cannot be read, or has not started, has none."""
        found: list[Listed] = []
        begin, number = (after[:2], after[2]) if after else ((0, ""), 0)
        for crawl in sorted(self.home.crawls(), key=_age):
            if _age(crawl) < begin or len(found) >= limit:
                continue
            last = number if _age(crawl) == begin else 0
            with contextlib.suppress(InchwormError):
                found += [(crawl, row) for row in rows_of(crawl, last, limit - len(found))]
        return found

    def link_not_followed(self, entry_id: str) -> dict[str, Any]:
        spot = self.spot(entry_id)
        found = self._entry_told(spot)
        if found["state"] != State.REFUSED:
            raise Unknown(
                f"{found['url']} is no link that was not followed: it is {found['state']}.",
                "Only links that were refused are such. One that is pending can be taken out.",
            )
        return found

    def entry_id(self, crawl: CrawlInfo, word: str) -> str:
        """The id of a row of a crawl, for whoever has its URL or the id itself. By its URL, it is that of the last
        run."""
        if _ID.fullmatch(word):
            if self.spot(word).crawl.crawl_id != crawl.crawl_id:
                raise WrongUse(f"{word} is an entry of another crawl.", "Name that crawl.")
            return word
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store)
            address = identity(current, word)
            known = _standing(store, current, address)
        if known is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}.", "Check how it is written."
            )
        return _id(Spot(crawl, current.number, known[0]))

    def spot(self, entry_id: str) -> Spot:
        """Which row an id means."""
        parts = _ID.fullmatch(entry_id)
        crawl = self.home.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1]:
            raise Unknown(f"There is no entry {entry_id!r}.", "An id is CRAWL_RUN_NUMBER, as the frontier lists it.")
        return Spot(crawl, int(parts[2]), int(parts[3]))

    def _entry_told(self, spot: Spot) -> dict[str, Any]:
        with self.reading(spot.crawl) as store:
            current = self.run_of(spot.crawl, store, spot.run)
            row = Frontier(store, current.run_id).row(spot.url_id)
        if row is None:
            raise Unknown(f"Run {spot.run} of {spot.crawl.name!r} has no row {spot.url_id}.", "Ids never move.")
        return _row_json(spot, row)

    # Adding

    def add_url(self, crawl: CrawlInfo, url: str, depth: int = 0, guarded: bool = False) -> dict[str, Any]:
        """Put a URL into the last run by hand: judged like any other, so it may be refused. A run that was complete is
        open again when it got something to do. `guarded`: nothing in a private network."""
        if guarded:
            _refuse_private(crawl, url)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store)
            found = _found(current, url)
            before = _standing(store, current, found.url)
        _refuse_useless(crawl, current, found.url, before)
        if before is None or before[1] is State.REFUSED:
            argument = {"url": found.url, "request_url": found.request_url, "depth": depth}
            answer = self.ask(crawl, ADD, argument) if self.is_running(crawl) else None
            if answer is None:
                with self.owning(crawl, self.stale()) as owner:
                    self._add(owner, crawl, found, depth)
        with self.reading(crawl) as store:
            after = _standing(store, current, found.url)
        if after is None:
            raise NotNow(f"{found.url} was not taken.", "Try again.")
        shown = self._entry_told(Spot(crawl, current.number, after[0]))
        is_added = before is None or before[1] is not after[1]
        return {**shown, "added": is_added, "message": _message(shown, is_added)}

    def _add(self, owner: Owner, crawl: CrawlInfo, found: Found, depth: int) -> None:
        current = self.run_of(crawl, owner.store)
        committed = self.ledger(owner, current).add(found, depth)
        if current.state is RunState.COMPLETED and committed.counters.pending > current.counters.pending:
            owner.store.set_run_state(owner.token, current.run_id, RunState.PAUSED, self.clock.now_ms())

    # Taking out

    def take_out(self, entry_id: str) -> None:
        """Refuse a pending row as `cleared`, so that it is not visited."""
        spot = self.spot(entry_id)
        found = self._entry_told(spot)
        if found["state"] == State.REFUSED and found["reason"] == Reason.CLEARED:
            return
        with self.owning(spot.crawl, self.stale()) as owner:
            current, row = self._row_of_last_run(owner, spot)
            _refuse_unless_pending(row)
            self.ledger(owner, current).commit([Refusal(_as_entry(row), Reason.CLEARED)])

    def dismiss(self, entry_id: str) -> None:
        """A link that was not followed is `cleared` from now on: it is no longer listed, and no other link to it can
        make the run follow it. The row stays."""
        spot = self.spot(entry_id)
        self.link_not_followed(entry_id)
        with self.owning(spot.crawl, self.stale()) as owner:
            current, row = self._row_of_last_run(owner, spot)
            self.ledger(owner, current).dismiss(row)

    def _row_of_last_run(self, owner: Owner, spot: Spot) -> tuple[RunInfo, Row]:
        current = self.run_of(spot.crawl, owner.store)
        if current.number != spot.run:
            raise NotNow(
                f"Run {spot.run} of {spot.crawl.name!r} is history: only run {current.number} can be changed.",
                "Change the row of that run, or go back to a checkpoint of the old one.",
            )
        return current, owner.store.rows(current.run_id, [spot.url_id])[0]


def _refuse_private(crawl: CrawlInfo, url: str) -> None:
    """Not even by hand, but for the hosts of seeds that were typed on this machine."""
    href = urls.parse(url)
    typed = {urls.host_of(form) for text in crawl.seeds if crawl.typed for form in urls.seed(text) or ()}
    if href is not None and urls.host_of(href) not in typed:
        refuse_private(href, run.shown(url))


def _message(entry: Mapping[str, Any], is_added: bool) -> str:
    """What became of a URL that was added by hand."""
    if entry["state"] == State.REFUSED:
        return f"It is refused ({entry['reason']}): {entry['why']}."
    return "It waits for its turn." if is_added else "It was known already, and waits for its turn."


def _found(current: RunInfo, url: str) -> Found:
    href = urls.parse(url)
    if href is not None and urls.userinfo_of(href) is not None:
        raise WrongUse("A URL with user and password cannot be added.", "Leave them out.")
    address = identity(current, url)
    return Found(address, urls.request_form(href or address), Kind.PAGE, Source.MANUAL)


def _standing(store: CrawlStore, current: RunInfo, url: str) -> tuple[int, State] | None:
    """The number of a URL and how it stands in a run."""
    known = store.known(current.run_id, [url]).get(url)
    return (known.url_id, known.state) if known and known.in_run else None


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


def _refuse_unless_pending(row: Row) -> None:
    if row.kind in control.KINDS:
        raise NotNow(f"{row.url} says what may be crawled, so it is read in any case.", "Take the pages out instead.")
    if row.standing.state is not State.PENDING:
        reason = f" ({row.standing.reason})" if row.standing.reason else ""
        raise NotNow(f"{row.url} is {row.standing.state}{reason}, not pending.", "Only what is pending is taken out.")


def _as_entry(row: Row) -> Entry:
    old = row.standing
    address, place = old.request_url or row.url, (old.place_seq, old.place_idx)
    return Entry(row.url_id, row.url, address, row.kind, row.source, old.seed, old.depth, old.hops, old.lane, place)


def _id(spot: Spot) -> str:
    return f"{spot.crawl.crawl_id}_{spot.run}_{spot.url_id}"


def _row_json(spot: Spot, row: Mapping[str, Any]) -> dict[str, Any]:
    waits_until = row["not_before_ms"]
    return {
        "id": _id(spot),
        "crawl_id": spot.crawl.crawl_id,
        "run": spot.run,
        **{name: value for name, value in row.items() if name != "not_before_ms"},
        "not_before": iso(waits_until) if waits_until else None,
        "why": REASONS.get(row["reason"]) if row["reason"] else None,
    }


def _age(crawl: CrawlInfo) -> tuple[int, str]:
    return crawl.created_ms, crawl.crawl_id
