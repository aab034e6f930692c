"""One session of a run: dispatch, visit, commit in order, until a limit, a pause or the end.

One event loop fetches, reads and decides; a thread waits for the disk. A commit has three steps: the first (locks) and
the last (syncing) wait and are the thread's, the one between is work and is the loop's. Work in two threads at a time
would cost a third more and be slower, for only one of them can run Python.

Everything that may be granted (a worker, a budget unit, a page of a seed's limit) is granted in the order of the lanes,
so limits are exact and the same URLs are visited at any number of workers.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, Protocol

from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.session.grants import Grants
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import Lookout, Outages
from inchworm.engine.session.window import HELD_BYTES, Lane, Slot, Window
from inchworm.engine.visit import PUSHING_BACK, Tools, visit
from inchworm.errors import InchwormError
from inchworm.model import (
    EndedBy,
    FinishedVisit,
    FrontierEntry,
    Kind,
    LiveProgress,
    Outcome,
    Reason,
    RunInfo,
    Turn,
    Unanswered,
)
from inchworm.ports import Store
from inchworm.rules.order import order
from inchworm.rules.web import control, outage, politeness
from inchworm.rules.web.url import host_of, origin_of
from inchworm.settings import Settings

BATCH_PAGES = 64
BATCH_SECONDS = 0.5
HEAVY_LINKS = 20_000
HEAVY_BYTES = 8_000_000
"""A batch over these would hold up the loop for too long: it goes to the thread as a whole."""

LOOK_UPS = 32
LOOK_UPS_IN_ALL = 512
"""How many entries of a lane, and of all lanes, are looked up in earlier runs before they are sent."""

POLL_SECONDS = 0.25
BEAT_SECONDS = 1.0
ROBOTS_SECONDS = 86_400.0
"""How long a robots.txt holds before it is asked for again."""


class Orders(Protocol):
    """What others want of a running session."""

    def poll(self) -> EndedBy | Callable[[], Committed | None] | None:
        """PAUSED or CANCELLED when the session shall end; something to be done between two commits; or nothing."""
        ...


class SessionEnd(NamedTuple):
    """How a session ended."""

    by: EndedBy
    message: str = ""
    error: InchwormError | None = None


class Watch(NamedTuple):
    """Callbacks: plain functions, called on the loop."""

    progress: Callable[[LiveProgress], None] = lambda _: None
    visited: Callable[[FinishedVisit], None] | None = None


class Loop:
    """Works a run until it ends or something stops it. Everything it knows can be rebuilt from the store."""

    def __init__(self, run: RunInfo, store: Store, ledger: Ledger, tools: Tools, orders: Orders, watch: Watch) -> None:
        self._run = run
        self._settings: Settings = tools.settings
        self._store = store
        self._ledger = ledger
        self._outages = Outages(store.answered(), store.down(), tools.settings.host_patience)
        self._tools = dataclasses.replace(tools, may_probe=self._may_probe, has_answered=self._outages.has_answered)
        self._orders = orders
        self._watch = watch
        self._clock = tools.clock
        self._window = Window(store, run.run_id, run.seq, tools.settings.order, ledger.ranking)
        self.hosts = Hosts(tools.settings, store.robots(run.run_id))
        self._grants = Grants(self._tools, self.hosts, self._outages, run.seeds)
        self._lookout = Lookout(self._outages, self.hosts, self._tools, self._looked)
        self._outdated: set[str] = set()
        self._remember_quiet()
        self._remember_robots()
        self._counters = run.counters
        self._disturbed = run.disturbed
        self._several_lanes = store.has_several_lanes(run.run_id)
        self._requests = 0
        self._size = 0
        self._held = 0
        self._uncommitted = 0
        self._unanswered = 0
        self._in_flight: dict[asyncio.Task[None], Slot] = {}
        self._stuck_since: float | None = None
        self._batch: list[Turn] = []
        self._batch_since = 0.0
        self._commit: asyncio.Future[Committed] | None = None
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._wake_at = 0.0
        self._ending: SessionEnd | None = None
        self._ending_since = 0.0
        self._started = self._clock.monotonic()

    def _remember_quiet(self) -> None:
        """Hosts that asked an earlier session for quiet; never longer than they asked, whatever the clock says."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        for host, until_ms, wait_ms in self._store.quiet_hosts():
            self.hosts.keep_quiet(host, now + max(0, min(until_ms - now_ms, wait_ms)) / 1000)

    def _remember_robots(self) -> None:
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        for origin, at_ms in self._store.robots_times(self._run.run_id):
            self.hosts.trust_until(origin, now + ROBOTS_SECONDS - max(0, now_ms - at_ms) / 1000)

    async def _may_probe(self, url: str) -> bool:
        """Whether a host may be asked for something besides what is in the frontier. It takes a polite turn."""
        if not self.hosts.is_known(url) or self.hosts.trouble(url) or not self.hosts.allows(url):
            return False
        now = self._clock.monotonic()
        turn = max(now, self.hosts.turn(url))
        self.hosts.started(url, turn)
        await asyncio.sleep(turn - now)
        return True

    # Stopping from outside

    def stop(self, by: EndedBy) -> None:
        """End soon: nothing new is sent, what is under way may finish within the grace time."""
        if self._ending is None:
            self._ending = SessionEnd(by)
            self._ending_since = self._clock.monotonic()
        else:
            self._abort()
        self._wake.set()

    # The loop

    async def work(self) -> SessionEnd:
        with ThreadPoolExecutor(1, "inchworm-writer") as writer:
            polling = asyncio.create_task(self._poll(writer))
            try:
                return await self._loop(writer)
            except InchwormError as error:
                return SessionEnd(EndedBy.ERROR, error.message, error)
            finally:
                polling.cancel()
                self._abort()
                await asyncio.gather(*self._in_flight, *self._lookout.tasks, polling, return_exceptions=True)
                if self._commit is not None:
                    await asyncio.gather(self._commit, return_exceptions=True)

    async def _loop(self, writer: ThreadPoolExecutor) -> SessionEnd:
        while True:
            self._wake.clear()
            self._wake_at = float("inf")
            self._take_commit()
            self._look_at_hosts()
            self._dispatch()
            self._retire(writer)
            ended = self._is_over(writer)
            if ended:
                return ended
            await self._sleep()

    async def _sleep(self) -> None:
        wake_at = min(self._wake_at, self._outages.next_look()) if self._outages else self._wake_at
        timeout = max(0.0, min(wake_at - self._clock.monotonic(), POLL_SECONDS))
        timer = asyncio.get_running_loop().call_later(timeout, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    async def _poll(self, writer: ThreadPoolExecutor) -> None:
        """Heartbeat, orders and progress, off the hot path."""
        beaten = self._clock.monotonic()
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                now = self._clock.monotonic()
                if now - beaten > min(BEAT_SECONDS, self._settings.stale / 4):
                    beaten = now
                    async with self._writing:
                        await asyncio.get_running_loop().run_in_executor(writer, self._ledger.beat)
                if self._ending is None:
                    await self._obey(self._refresh_robots() or self._orders.poll(), writer)
                self._watch.progress(self.progress())
        except Exception as error:
            # Without a heartbeat there is no owner: whatever it was, the session ends.
            ours = _as_ours(error)
            self._ending = SessionEnd(EndedBy.ERROR, ours.message, ours)
            self._abort()
            self._wake.set()

    async def _obey(self, order: EndedBy | Callable[[], Committed | None] | None, writer: ThreadPoolExecutor) -> None:
        if isinstance(order, EndedBy):
            self.stop(order)
        elif order is not None:
            async with self._writing:
                committed = await asyncio.get_running_loop().run_in_executor(writer, order)
            if committed is not None:
                self._learn(committed)
                self._window.read_again(committed.lanes)
                self._wake.set()

    def _refresh_robots(self) -> Callable[[], Committed | None] | None:
        origins, self._outdated = self._outdated, set()
        return functools.partial(self._ledger.refresh_robots, origins) if origins else None

    def progress(self) -> LiveProgress:
        return LiveProgress(
            self._counters,
            self._requests,
            self._size,
            self._clock.monotonic() - self._started,
            tuple(slot.entry.request_url for slot in self._in_flight.values()),
            self.order(),
            tuple((seed.url, seed.kept) for seed in self._grants.seeds.values()),
            self._ending is not None,
            self._unanswered,
            self._outages.all(),
        )

    def order(self) -> str:
        """How far the record's order can be relied on."""
        return order.word(self._disturbed, self._several_lanes)

    # Dispatching

    def _dispatch(self) -> None:
        self._grants.limit_hit = None
        if self._ending is not None or self._limit_reached():
            return
        share, now = self._share(), self._clock.monotonic()
        for lane in self._window.lanes():
            if lane.asleep_until > now:
                self._wake_by(lane.asleep_until)
                continue
            self._window.fill(lane)
            self._dispatch_lane(lane, share)
            if not self._has_worker():
                return

    def _limit_reached(self) -> bool:
        settings, used = self._settings, self._clock.monotonic() - self._started
        if settings.max_time and used >= settings.max_time:
            self.stop(EndedBy.TIME)
        elif settings.max_bytes and self._size + self._uncommitted >= settings.max_bytes:
            self.stop(EndedBy.BYTES)
        elif settings.max_time:
            self._wake_by(self._started + settings.max_time)
        return self._ending is not None

    def _share(self) -> int:
        """How many workers one host may have: as many as wished, but one is left for every other host."""
        fair = max(1, self._settings.workers - self._window.open_lanes() + 1)
        return fair if self._settings.strict_order else min(fair, self._settings.connections_per_host or fair)

    def _dispatch_lane(self, lane: Lane, share: int) -> None:
        """Send what may be sent, in order; step over what must wait, stop where order demands it."""
        skipped: list[Slot] = []
        now = self._clock.monotonic()
        while lane.todo and lane.in_flight < share and self._has_worker() and self._has_room(lane):
            slot = lane.todo.popleft()
            if self._outages and self._outages.is_down(origin_of(slot.entry.request_url)):
                lane.is_down, lane.asleep_until = True, float("inf")
                skipped.append(slot)
                break
            if self.hosts.is_outdated(slot.entry.request_url, now) and slot.entry.kind is not Kind.ROBOTS:
                self._outdated.add(origin_of(slot.entry.request_url))
                skipped.append(slot)
                break
            if self._grants.answer(slot):
                continue
            if not self._grants.grant(slot):
                skipped.append(slot)
                break
            wait_until = max(self.hosts.turn(slot.entry.request_url), self._ready_at(slot, now))
            if wait_until <= now:
                self._send(lane, slot, now)
                continue
            skipped.append(slot)
            self._wake_by(wait_until)
            if not (self._settings.strict_order or self._ready_at(slot, now) > now):
                # Its host must wait. With thousands of hosts nearly all of them do: they are not looked at till then.
                lane.asleep_until = wait_until
                break
        lane.todo.extendleft(reversed(skipped))

    def _has_worker(self) -> bool:
        return len(self._in_flight) < self._settings.workers

    def _has_room(self, lane: Lane) -> bool:
        """Answers that wait for their turn lie in memory; the front of a lane may always go.

        Where what is new comes first, it may come ahead of anything that was sent before: one goes after the other.
        """
        if self._ledger.new_first:
            return lane.slots[0] is lane.todo[0] and not lane.leaving
        return self._held < HELD_BYTES or lane.slots[0] is lane.todo[0]

    def _ready_at(self, slot: Slot, now: float) -> float:
        """The monotonic time at which a backoff is over; found once, so that setting the clock changes nothing."""
        if slot.ready_at is None:
            left = (slot.entry.not_before_ms - self._clock.now_ms()) / 1000 if slot.entry.not_before_ms else 0.0
            slot.ready_at = now + max(0.0, min(left, politeness.longest_backoff(slot.entry.attempts)))
        return slot.ready_at

    def _send(self, lane: Lane, slot: Slot, now: float) -> None:
        self._look_up_ahead(lane, slot.entry)
        self.hosts.started(slot.entry.request_url, now)
        self._grants.due -= 1
        task = asyncio.get_running_loop().create_task(self._work(slot))
        self._in_flight[task] = slot
        lane.in_flight += 1
        task.add_done_callback(functools.partial(self._sent, lane))

    def _look_up_ahead(self, lane: Lane, entry: FrontierEntry) -> None:
        if self._tools.earlier is not None and self._tools.compares:
            most = min(LOOK_UPS, LOOK_UPS_IN_ALL // self._window.open_lanes())
            self._tools.earlier.expect(entry, (slot.entry for slot in islice(lane.todo, most)))

    async def _work(self, slot: Slot) -> None:
        turn = await visit(slot.entry, self._tools)
        if isinstance(turn, Unanswered):
            # Its URL is as if it had never been asked for; the request counts in the budget all the same.
            self._unanswered += slot.entry.kind not in control.KINDS
            self._grants.use_up(slot)
            self._lookout.note(turn)
        else:
            slot.turn = turn

    def _sent(self, lane: Lane, task: asyncio.Task[None]) -> None:
        slot = self._in_flight.pop(task)
        lane.in_flight -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ending = SessionEnd(EndedBy.ERROR, f"{slot.entry.request_url}: {error!r}", _as_ours(error))
        elif slot.turn is None:
            lane.put_back(slot)
        self._held += _weight(slot.turn)
        self._uncommitted += _bytes(slot.turn)
        if isinstance(slot.turn, FinishedVisit):
            self._feel(slot.turn)
        self._wake.set()

    def _feel(self, made: FinishedVisit) -> None:
        """Notice how the host bears us, before anything else is sent there."""
        url, now = made.entry.request_url, self._clock.monotonic()
        if made.status and self._outages.answered(origin_of(url)):
            self._window.wake()
        if made.status in PUSHING_BACK or made.failure == "blocked":
            self.hosts.pushed_back(url, now - made.millis / 1000, now)
            self.hosts.keep_quiet(host_of(url), now + made.quiet_ms / 1000)
        elif made.requested:
            self.hosts.answered(url, made.millis / 1000)

    def _look_at_hosts(self) -> None:
        if self._outages and self._ending is None:
            self._lookout.look()

    def _looked(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ending = SessionEnd(EndedBy.ERROR, repr(error), _as_ours(error))
        self._window.wake()
        self._wake.set()

    # Retiring

    def _retire(self, writer: ThreadPoolExecutor) -> None:
        if not self._batch:
            self._batch_since = self._clock.monotonic()
        self._batch.extend(self._window.retire())
        if self._commit is not None or self._has_failed():
            return
        ranking = self._ledger.ranking
        if ranking is not None and ranking.wanted is not None:
            self._start_commit(self._commit_apart(functools.partial(ranking.count, ranking.wanted), writer))
            return
        if self._outages.has_news():
            news = functools.partial(self._ledger.note_hosts, *self._outages.take_news())
            self._start_commit(self._commit_apart(news, writer))
            return
        if not self._batch:
            return
        due = self._batch_since + BATCH_SECONDS
        idle = self._has_worker() or self._window.is_starving()
        if idle or len(self._batch) >= BATCH_PAGES or self._clock.monotonic() >= due:
            self._start_commit(self._commit_batch(self._batch, writer))
            self._batch = []
        else:
            self._wake_by(due)

    async def _commit_batch(self, batch: list[Turn], writer: ThreadPoolExecutor) -> Committed:
        in_thread = functools.partial(asyncio.get_running_loop().run_in_executor, writer)
        async with self._writing:
            await in_thread(self._ledger.begin)
            outcomes = await in_thread(self._ledger.apply, batch) if _is_heavy(batch) else self._ledger.apply(batch)
            return await in_thread(self._ledger.finish, outcomes)

    async def _commit_apart(self, work: Callable[[], Committed], writer: ThreadPoolExecutor) -> Committed:
        async with self._writing:
            return await asyncio.get_running_loop().run_in_executor(writer, work)

    def _start_commit(self, work: Coroutine[Any, Any, Committed]) -> None:
        self._commit = asyncio.create_task(work)
        self._commit.add_done_callback(lambda _: self._wake.set())

    def _has_failed(self) -> bool:
        return self._ending is not None and self._ending.by is EndedBy.ERROR

    def _take_commit(self) -> None:
        """Learn from a finished commit: verdicts, kept pages, new rows."""
        if self._commit is None or not self._commit.done():
            return
        committed = self._commit.result()
        self._commit = None
        self._learn(committed)

    def _learn(self, committed: Committed) -> None:
        self._grants.learn(committed.seeds)
        self._counters, self._disturbed = committed.counters, committed.disturbed
        self._several_lanes = self._several_lanes or self._store.has_several_lanes(self._run.run_id)
        self._requests, self._size = committed.requests, committed.size
        self.hosts.learn(committed.robots)
        for origin, _, _ in committed.robots:
            self.hosts.trust_until(origin, self._clock.monotonic() + ROBOTS_SECONDS)
        for cookie in committed.cookies:
            self._tools.jar.put(cookie)
        for turn, outcome in committed.outcomes:
            self._release(turn, outcome)
        if self._grants.weigh(committed.outcomes) and self._ending is None:
            self.stop(EndedBy.QUALITY)
        self._window.committed([turn.entry for turn, _ in committed.outcomes], committed.lanes, committed.seq)
        # A robots.txt that is tried again stays ahead of its host's pages.
        again = {turn.entry.lane for turn, outcome in committed.outcomes if _is_robots_again(turn, outcome)}
        self._window.read_again(again | committed.ahead)

    def _release(self, turn: Turn, outcome: Outcome | Reason) -> None:
        entry = turn.entry
        self._held -= _weight(turn)
        self._uncommitted -= _bytes(turn)
        self._grants.give_back(turn)
        if self._watch.visited is None or entry.kind in control.KINDS:
            return
        if isinstance(turn, FinishedVisit) and isinstance(outcome, Outcome):
            self._watch.visited(turn._replace(outcome=outcome))

    # Ending

    def _is_over(self, writer: ThreadPoolExecutor) -> SessionEnd | None:
        if self._has_failed():
            return self._ending
        if self._commit is not None or self._batch or self._writing.locked():
            return None
        if self._in_flight:
            self._stuck_since = None
            self._enforce_grace()
            return None
        cancelled = self._ending is not None and self._ending.by is EndedBy.CANCELLED
        may_be_done = self._ending is not None or not self._window.is_waiting()
        if not cancelled and may_be_done and not self._window.refresh():
            if (closing := self._ledger.closing()) is None:
                return SessionEnd(EndedBy.FINISHED)
            self._start_commit(self._commit_apart(closing, writer))
            return None
        if self._ending is not None:
            return self._ending
        if self._grants.limit_hit is not None and not self._grants.due:
            return SessionEnd(self._grants.limit_hit)
        return self._is_stuck()

    def _is_stuck(self) -> SessionEnd | None:
        """Whether all that is left must wait for longer than it is worth to sit here."""
        now, most = self._clock.monotonic(), self._settings.max_wait
        if self._wake_at - now <= most:
            return None
        if not self._window.has_down():
            is_timed = self._wake_at != float("inf")
            return SessionEnd(EndedBy.WAITING, "all that is left must wait longer than max_wait") if is_timed else None
        if self._grants.is_budget_spent:
            return SessionEnd(EndedBy.BUDGET)
        self._stuck_since = self._stuck_since or now
        if now - self._stuck_since < most or self._lookout.tasks:
            return None
        return SessionEnd(EndedBy.WAITING, "; ".join(map(outage.sentence, self._outages.all())))

    def _enforce_grace(self) -> None:
        if self._ending is None:
            return
        deadline = self._ending_since + self._settings.grace
        if self._clock.monotonic() >= deadline:
            self._abort()
        else:
            self._wake_by(deadline)

    def _abort(self) -> None:
        for task in (*self._in_flight, *self._lookout.tasks):
            task.cancel()

    def _wake_by(self, moment: float) -> None:
        self._wake_at = min(self._wake_at, moment)


def _is_robots_again(turn: Turn, outcome: Outcome | Reason) -> bool:
    return outcome is Outcome.RETRY and turn.entry.kind is Kind.ROBOTS


def _is_heavy(batch: list[Turn]) -> bool:
    links = sum(len(turn.reading.links) for turn in batch if isinstance(turn, FinishedVisit))
    return links > HEAVY_LINKS or sum(map(_weight, batch)) > HEAVY_BYTES


def _bytes(turn: Turn | None) -> int:
    """What an answer counts for the limit of bytes."""
    return len(turn.record.payload) if isinstance(turn, FinishedVisit) and turn.record else 0


def _weight(turn: Turn | None) -> int:
    """The memory that an answer takes while it waits for its turn."""
    return _bytes(turn) + (len(turn.reading.text) if isinstance(turn, FinishedVisit) else 0)


def _as_ours(error: BaseException) -> InchwormError:
    if isinstance(error, InchwormError):
        return error
    ours = InchwormError(
        f"An unexpected error ended the session: {error!r}.", "This is a bug in inchworm; please report it."
    )
    ours.__cause__ = error
    return ours
