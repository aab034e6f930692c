"""One session of a run: dispatch, visit, commit in order, until a limit, a pause or the end.

Everything that may be granted (a worker, a budget unit, a page of a seed's limit) is granted in the order of the lanes,
so limits are exact and the same URLs are visited at any number of workers.

`Loop` is the story; each of its parts has its own state: `window` (what comes next), `dispatch` (who may go now) with
`grants` and `hosts`, `flight` (what is under way), `outages` (who is down), `commits` (what becomes part of the
record), `totals`, `waiting` and `ending` (when it is over), `heartbeat`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.session.commits import Commits
from inchworm.engine.session.dispatch import Dispatch
from inchworm.engine.session.ending import SessionEnd, SessionEnding
from inchworm.engine.session.flight import Flight
from inchworm.engine.session.grants import Grants
from inchworm.engine.session.heartbeat import Heartbeat
from inchworm.engine.session.hosts import ROBOTS_SECONDS, known_hosts
from inchworm.engine.session.outages import HostWatch, Outages
from inchworm.engine.session.totals import SessionLimits, SessionTotals
from inchworm.engine.session.waiting import WaitLimit
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.session.window.window import Window
from inchworm.engine.visit import Tools
from inchworm.errors import InchwormError
from inchworm.model import EndedBy, FinishedVisit, Kind, LiveProgress, Outcome, Reason, RunInfo, Turn
from inchworm.ports import Store
from inchworm.rules.web import control

POLL_SECONDS = 0.25

Edit = Callable[[], Committed | None]
"""Something to be done between two commits."""


class Orders(Protocol):
    """What others want of a running session."""

    def poll(self) -> EndedBy | Edit | None:
        """PAUSED or CANCELLED when the session shall end; something to be done between two commits; or nothing."""
        ...


class Watch(NamedTuple):
    """Callbacks: plain functions, called on the loop."""

    progress: Callable[[LiveProgress], None] = lambda _: None
    visited: Callable[[FinishedVisit], None] | None = None


class Loop:
    """Works a run until it ends or something stops it. Everything it knows can be rebuilt from the store."""

    def __init__(self, run: RunInfo, store: Store, ledger: Ledger, tools: Tools, orders: Orders, watch: Watch) -> None:
        settings, clock = tools.settings, tools.clock
        self._settings, self._clock = settings, clock
        self._ledger = ledger
        self._orders = orders
        self._watch = watch
        self._wake_up = WakeUp(clock)
        self._ending = SessionEnding(clock, self._wake_up)
        self._outages = Outages(store.hosts.answered(), store.hosts.down(), settings.host_patience)
        self.hosts = known_hosts(store.hosts, run.run_id, settings, clock)
        self._tools = tools = dataclasses.replace(
            tools, may_probe=self._may_probe, has_answered=self._outages.has_answered
        )
        self._host_watch = HostWatch(self._outages, self.hosts, tools, self._ending, self._host_changed)
        self._window = Window(store.queue, run.run_id, run.seq, settings.order, ledger.ranking)
        self._grants = Grants(tools, self.hosts, self._outages, run.seeds)
        self._flight = Flight(tools, self._grants, self._host_watch, self._ending, self._wake_up, ledger.new_first)
        self._dispatch = Dispatch(
            self._window, self.hosts, self._outages, self._grants, self._flight, self._wake_up, tools
        )
        self._commits = Commits(ledger, clock, self._wake_up)
        self._totals = SessionTotals(run, store.queue, clock)
        self._limits = SessionLimits(settings, self._totals, self._flight, self._ending, self._wake_up)
        self._wait_limit = WaitLimit(settings.max_wait, clock, self._wake_up, self._outages)
        self._heartbeat = Heartbeat(ledger, self._commits, clock, settings.stale)

    async def work(self) -> SessionEnd:
        """Work until the session is over."""
        polling = asyncio.create_task(self._poll())
        try:
            return await self._rounds()
        except InchwormError as error:
            return SessionEnd(EndedBy.ERROR, error.message, error)
        finally:
            polling.cancel()
            self._cancel_requests()
            await asyncio.gather(*self._flight.tasks, *self._host_watch.tasks, polling, return_exceptions=True)
            await self._commits.close()

    def stop(self, by: EndedBy) -> None:
        """End soon: nothing new is sent, what is under way may finish within the grace time. Asked twice: at once."""
        if self._ending.end is None:
            self._ending.begin(by)
        else:
            self._cancel_requests()
            self._wake_up.now()

    def progress(self) -> LiveProgress:
        """Where the session stands."""
        totals, flight = self._totals, self._flight
        return LiveProgress(
            totals.counters,
            totals.requests,
            totals.size,
            totals.seconds(),
            tuple(slot.entry.request_url for slot in flight.tasks.values()),
            totals.order(),
            tuple((seed.url, seed.kept) for seed in self._grants.seeds.values()),
            self._ending.end is not None,
            flight.unanswered,
            self._outages.all(),
        )

    # The rounds of the loop

    async def _rounds(self) -> SessionEnd:
        while True:
            self._wake_up.begin_round()
            if (committed := self._commits.take()) is not None:
                self._learn(committed)
            if self._ending.end is None:
                self._send()
            self._retire()
            if (end := self._end()) is not None:
                return end
            next_check = self._outages.next_check() if self._outages else float("inf")
            await self._wake_up.sleep(next_check, POLL_SECONDS)

    def _learn(self, committed: Committed) -> None:
        """Take in what a commit came to: verdicts, kept pages, new rows."""
        self._totals.learn(committed)
        self.hosts.robots.learn(committed.robots, self._clock.monotonic() + ROBOTS_SECONDS)
        for cookie in committed.cookies:
            self._tools.jar.put(cookie)
        for turn, outcome in committed.outcomes:
            self._flight.release(turn)
            self._show(turn, outcome)
        if self._grants.learn(committed.seeds, committed.outcomes) and self._ending.end is None:
            self._ending.begin(EndedBy.QUALITY)
        self._window.committed([turn.entry for turn, _ in committed.outcomes], committed.lanes, committed.seq)
        self._window.read_again(committed.ahead | _tried_again_ahead(committed))

    def _show(self, turn: Turn, outcome: Outcome | Reason) -> None:
        if self._watch.visited is None or turn.entry.kind in control.KINDS:
            return
        if isinstance(turn, FinishedVisit) and isinstance(outcome, Outcome):
            self._watch.visited(turn._replace(outcome=outcome))

    def _send(self) -> None:
        """Send what may be sent, and ask hosts that are down whether they are up again."""
        if self._outages:
            self._host_watch.check_due()
        self._limits.end_if_reached()
        if self._ending.end is None:
            self._dispatch.send()

    def _retire(self) -> None:
        """Take finished turns from the front of their lanes, and commit what is due."""
        self._commits.add(self._window.retire())
        if self._commits.is_under_way() or self._ending.has_failed():
            return
        ranking = self._ledger.ranking
        if ranking is not None and ranking.wanted is not None:
            self._commits.start(functools.partial(ranking.count, ranking.wanted))
        elif self._outages.has_news():
            self._commits.start(functools.partial(self._ledger.note_hosts, *self._outages.take_news()))
        elif self._commits.has_batch():
            self._commits.start_batch(self._flight.has_worker() or self._window.is_starving())

    def _end(self) -> SessionEnd | None:
        """How the session ends, if it is over."""
        ending = self._ending
        if ending.has_failed():
            return ending.end
        if self._commits.is_busy():
            return None
        if self._flight.tasks:
            self._wait_limit.reset()
            self._enforce_grace()
            return None
        if not ending.is_cancelled() and self._has_nothing_left():
            if (closing := self._ledger.closing()) is None:
                return SessionEnd(EndedBy.FINISHED)
            self._commits.start(closing)
            return None
        if ending.end is not None:
            return ending.end
        if self._grants.limit_hit is not None and not self._grants.due:
            return SessionEnd(self._grants.limit_hit)
        return self._wait_limit.end(self._window, self._grants, self._host_watch)

    def _has_nothing_left(self) -> bool:
        may_be_done = self._ending.end is not None or not self._window.is_waiting()
        return may_be_done and not self._window.refresh()

    def _enforce_grace(self) -> None:
        deadline = self._ending.deadline(self._settings.grace)
        if self._clock.monotonic() >= deadline:
            self._cancel_requests()
        else:
            self._wake_up.by(deadline)

    # Beside the rounds

    async def _poll(self) -> None:
        """Heartbeat, orders and progress, off the hot path."""
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                await self._heartbeat.beat_if_due()
                if self._ending.end is None:
                    await self._obey(self._robots_to_refresh() or self._orders.poll())
                self._watch.progress(self.progress())
        except Exception as error:
            # Without a heartbeat there is no owner: whatever it was, the session ends.
            self._ending.fail(error)

    async def _obey(self, order: EndedBy | Edit | None) -> None:
        if isinstance(order, EndedBy):
            self.stop(order)
        elif order is not None and (committed := await self._commits.in_between(order)) is not None:
            self._learn(committed)
            self._window.read_again(committed.lanes)
            self._wake_up.now()

    def _robots_to_refresh(self) -> Edit | None:
        origins = self._dispatch.take_outdated()
        return functools.partial(self._ledger.refresh_robots, origins) if origins else None

    async def _may_probe(self, url: str) -> bool:
        """Whether a host may be asked for something besides what is in the frontier. It takes a polite turn."""
        if not self.hosts.robots.may_ask(url):
            return False
        await asyncio.sleep(self.hosts.take_turn(url, self._clock.monotonic()))
        return True

    def _host_changed(self) -> None:
        self._window.wake()
        self._wake_up.now()

    def _cancel_requests(self) -> None:
        self._flight.cancel()
        self._host_watch.cancel()


def _tried_again_ahead(committed: Committed) -> set[int]:
    """Lanes of a robots.txt that is tried again: it stays ahead of its host's pages."""
    outcomes = committed.outcomes
    return {turn.entry.lane for turn, was in outcomes if was is Outcome.RETRY and turn.entry.kind is Kind.ROBOTS}
