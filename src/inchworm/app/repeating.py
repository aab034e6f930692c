"""Repeating: a crawl's next run now and again, people told what it found, and what that cost and saved."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from inchworm import fault, settings
from inchworm.app.crawling import Crawling, Start
from inchworm.app.notifying import Notifying, Telling, Wish
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.signals import stopping
from inchworm.errors import InchwormError, Lost, NotNow, Owned, TooNew, Unknown, WrongUse
from inchworm.model import CrawlInfo, EndedBy, Mode, RunInfo, RunState, SessionInfo
from inchworm.rules.schedule import repetition
from inchworm.rules.schedule.repetition import Clocks, Due, Occasion, Standing, Stop
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

MOST_EVERY = 3_660 * 86_400.0
_NAP_SECONDS = 3_600.0
_CHANGES = ("new", "modified", "deleted", "unknown")
_CANNOT_START = (WrongUse, Owned, TooNew)


@dataclass(frozen=True, slots=True)
class Repetition:
    """How a crawl is to be repeated. `every` are seconds from start to start, None: one run and no more."""

    word: str
    every: float | None = None
    max_iterations: int | None = None
    stop_if_no_changes: bool = False
    mode: str = ""
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notify: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    notify_on: str = Occasion.CHANGES
    secret_file: Path | None = None


def _unwatched() -> AbstractContextManager[Hooks]:
    return contextlib.nullcontext(Hooks())


@dataclass(slots=True)
class Listener:
    """How a caller takes part in a repetition: plain functions, all optional. `session` gives the hooks of each session
    and is left when that ends; `waits` gets the moment of the next run and the seconds until then."""

    session: Callable[[], AbstractContextManager[Hooks]] = _unwatched
    ran: Callable[[dict[str, Any], Summary], None] = lambda _, __: None
    waits: Callable[[int, float], None] = lambda _, __: None
    failed: Callable[[InchwormError], None] = lambda _: None
    said: Callable[[str], None] = lambda _: None
    signals: bool = False


class Ending(NamedTuple):
    """Why a repetition ended, by which signal, and how many runs the crawl has made after its baseline."""

    why: Stop
    iterations: int
    signal: int = 0


class Repeating(Crawling, Notifying):
    """Verbs about repeating a crawl."""

    async def repeat(self, wanted: Repetition, listener: Listener | None = None) -> Ending:
        """Make the next run of a crawl now, or go on with the open one, and again after every interval."""
        return await _Series(self, wanted, listener or Listener()).work()

    async def run_next(self, crawl: CrawlInfo, wanted: Repetition, hooks: Hooks) -> Summary:
        """One session on the line: of the run that is open, whatever its mode, else of the next one."""
        start = Start((wanted.word,), crawl.name, wanted.given, mode=wanted.mode)
        return await self._sit(crawl, start, hooks, self._plan_for_the_line)

    def iteration_stats(self, word: str) -> dict[str, Any]:
        """What the runs of a crawl cost, what they saved against full crawls, and how much changes. Of a crawl that has
        not started: nothing."""
        crawl = self.find(word)
        costs: list[_Cost] = []
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            costs = [_Cost.of(one, store) for one in store.runs()]
        running = self.is_running(crawl)
        lines = [_line(costs[: number + 1], running) for number in range(len(costs))]
        again = [line for line in lines if line["mode"] != Mode.BASELINE]
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "runs": len(lines),
            "iterations": len(again),
            "per_run": lines,
            "totals": _totals(lines, again),
        }


class _Cost(NamedTuple):
    """What a run took. Of a session that crashed nobody knows how long it worked, so its time is left out, and its
    requests wherever they are set against time."""

    run: RunInfo
    seconds: float
    requests: int
    reused: int

    @classmethod
    def of(cls, one: RunInfo, store: CrawlStore) -> _Cost:
        timed = [session for session in store.sessions(one.run_id) if session.ended_by not in (None, EndedBy.CRASHED)]
        seconds = sum(max(0, (session.ended_ms or session.started_ms) - session.started_ms) for session in timed) / 1000
        reused = View(store).reused(one.run_id) if one.mode != Mode.BASELINE else 0
        return cls(one, seconds, sum(session.requests for session in timed), reused)

    @property
    def pace(self) -> float | None:
        """Seconds per request."""
        return self.seconds / self.requests if self.requests else None

    def saved_at(self, pace: float) -> float:
        """How much longer as many requests, and those that were spared, would have taken at this pace; none when a run
        was slower than that, for it has saved nothing."""
        return max(0.0, (self.requests + self.reused) * pace - self.seconds)


def _line(costs: Sequence[_Cost], running: bool) -> dict[str, Any]:
    """The last of these runs, measured by the pace of the last one before it that downloaded everything."""
    *before, cost = costs
    counters, is_again = cost.run.counters, cost.run.mode != Mode.BASELINE
    paces = [one.pace for one in before if one.run.mode != Mode.INCREMENTAL and one.pace is not None]
    seen = counters.unchanged + counters.modified + counters.deleted
    return {
        "run": cost.run.number,
        "mode": cost.run.mode,
        "state": run.state_of(cost.run, running).value,
        "requests": counters.requests,
        "bytes": counters.size,
        "seconds": round(cost.seconds, 3),
        "requests_saved": cost.reused if is_again else 0,
        "bytes_saved": max(0, counters.saved) if is_again else 0,
        "seconds_saved_estimate": round(cost.saved_at(paces[-1]), 3) if is_again and paces else None,
        **{kind: getattr(counters, kind) if is_again else 0 for kind in (*_CHANGES, "unchanged")},
        "share_changed": round((counters.modified + counters.deleted) / seen, 4) if is_again and seen else None,
    }


def _totals(lines: Sequence[Mapping[str, Any]], again: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("requests", "bytes", "requests_saved", "bytes_saved", *_CHANGES, "unchanged")
    totals: dict[str, Any] = {name: sum(line[name] for line in lines) for name in names}
    estimates = [line["seconds_saved_estimate"] for line in again if line["seconds_saved_estimate"] is not None]
    seen = totals["unchanged"] + totals["modified"] + totals["deleted"]
    return totals | {
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "seconds_saved_estimate": round(sum(estimates), 3) if estimates else None,
        "share_changed": round((totals["modified"] + totals["deleted"]) / seen, 4) if seen else None,
    }


class _Series:
    """One repetition in one process. All that it has to know when it starts is in the store."""

    def __init__(self, app: Repeating, wanted: Repetition, listener: Listener) -> None:
        _check(wanted)
        self._app = app
        self._wanted = wanted
        self._listener = listener
        self._crawl_id = app.find(wanted.word).crawl_id
        # What is wrong is said now, not after the first wait.
        settings.make({**app.ground(), **wanted.given})
        wish = Wish(self._crawl_id, wanted.notify, Occasion(wanted.notify_on), wanted.secret_file)
        self._telling = Telling(app, wish, listener.said)
        self._interruption = _Interruption(listener.signals)
        self._seen: _Spot | None = None
        self._counted_from = 0.0
        self._has_tried = False

    async def work(self) -> Ending:
        if self._telling.is_unsigned:
            self._listener.said(
                "Notifications are not signed: there is no --notify-secret-file, no notify-secret in the home, and no"
                " INCHWORM_NOTIFY_SECRET."
            )
        with self._interruption.listening():
            why = await self._repeat()
        return Ending(why, self._look()[0].iterations, self._interruption.number)

    async def _repeat(self) -> Stop:
        # Whoever was killed after a run and before its message left that to us.
        if self._wanted.notify and not await self._interruption.during(self._telling.catch_up()):
            return Stop.SIGNAL
        while not repetition.is_enough(self._look()[0].iterations, self._wanted.max_iterations):
            due = self._due()
            if not await self._rest(due.at):
                return Stop.SIGNAL
            if self._look()[1] != self._seen:
                continue
            self._counted_from = due.counts_from
            summary = await self._try()
            # Whatever is in the store now is our own doing, or was told.
            self._seen = self._look()[1]
            if why := await self._conclude(summary):
                return why
        return Stop.ENOUGH

    def _look(self) -> tuple[Standing, _Spot]:
        """How the crawl stands, and which session was its last."""
        with contextlib.suppress(NotNow), self._app.reading(self._app.find(self._crawl_id)) as store:
            if runs := run.line_of(store.runs()):
                return _standing(runs, store.sessions(runs[-1].run_id))
        return Standing(), _Spot(-1, 0)

    def _due(self) -> Due:
        """When the next run is due. Who has to wait for it is told."""
        standing, spot = self._look()
        # We have just started, or somebody else has worked on the crawl meanwhile.
        is_news, self._seen = spot != self._seen, spot
        clocks = Clocks(self._app.clock.monotonic(), self._app.clock.now_ms())
        every = self._wanted.every
        if every is None:
            return Due(clocks.now, clocks.now)
        if is_news:
            due = repetition.from_store(standing, clocks, every)
        else:
            due = repetition.after(self._counted_from, every, clocks.now)
        # To the microsecond: the difference of two large numbers is a little more than the interval now and then.
        if (seconds := round(due.at - clocks.now, 6)) > 0:
            self._listener.waits(clocks.now_ms + round(seconds * 1000), seconds)
        return due

    async def _rest(self, until: float) -> bool:
        """Sleep, and meanwhile try again what has not arrived yet; False when a signal ended that."""
        while (left := until - self._app.clock.monotonic()) > 0:
            nap = min(left, _NAP_SECONDS, self._telling.seconds_until_due())
            if not await self._interruption.during(asyncio.sleep(nap)):
                return False
            if self._wanted.notify and not await self._interruption.during(self._telling.try_again()):
                return False
        return True

    async def _try(self) -> Summary | None:
        """One session; None when an error ended it, which is told and does not end the repetition."""
        is_first, self._has_tried = not self._has_tried, True
        try:
            crawl = self._app.find(self._crawl_id)
            with self._listener.session() as hooks:
                return await self._app.run_next(crawl, self._wanted, self._telling.promising(hooks))
        except (Lost, Unknown):
            raise
        except Exception as error:
            if self._wanted.every is None or (is_first and isinstance(error, _CANNOT_START)):
                raise
            self._listener.failed(_as_ours(error))
            return None
        finally:
            self._interruption.listen()

    async def _conclude(self, summary: Summary | None) -> Stop | None:
        """Tell of a run, and say whether it was the last."""
        if summary is not None:
            crawl, current = self._last_run()
            self._listener.ran({**self._app.run_told(crawl, current), "seconds": summary.seconds}, summary)
            fault.point("before_telling")
            if summary.signal:
                self._telling.write_down()  # Whoever is told to stop does not wait for others.
            elif self._wanted.notify and not await self._interruption.during(self._telling.tell()):
                self._listener.said("Stopped before all notifications were delivered; the others wait.")
                return Stop.SIGNAL
            if why := self._why_end(current, summary):
                return why
        return Stop.ONCE if self._wanted.every is None else None

    def _why_end(self, current: RunInfo, summary: Summary) -> Stop | None:
        self._interruption.number = self._interruption.number or summary.signal
        if summary.signal:
            return Stop.SIGNAL
        if summary.ended_by in (EndedBy.PAUSED, EndedBy.CANCELLED):
            return Stop(summary.ended_by)
        is_quiet = _is_iteration(current) and repetition.is_unchanged(current.counters)
        return Stop.NO_CHANGES if is_quiet and self._wanted.stop_if_no_changes else None

    def _last_run(self) -> tuple[CrawlInfo, RunInfo]:
        crawl = self._app.find(self._crawl_id)
        with self._app.reading(crawl) as store:
            return crawl, self._app.run_of(crawl, store)


class _Spot(NamedTuple):
    """Which session was a crawl's last."""

    run_id: int
    sessions: int


class _Interruption:
    """Signals that come while no session is there to be paused."""

    def __init__(self, is_wanted: bool) -> None:
        self._numbers = stopping() if is_wanted else []
        self._task: asyncio.Future[None] | None = None
        self.number = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        self.listen()
        try:
            yield
        finally:
            for number in self._numbers:
                asyncio.get_running_loop().remove_signal_handler(number)

    def listen(self) -> None:
        """To be called again after a session, which takes signals over and gives none back."""
        for number in self._numbers:
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        self.number = self.number or number
        if self._task is not None:
            self._task.cancel()

    async def during(self, work: Awaitable[None]) -> bool:
        """Do this until it is done; False when a signal came first."""
        self._task = asyncio.ensure_future(work)
        try:
            await self._task
        except asyncio.CancelledError:
            if not self.number:
                self._task.cancel()
                raise
        finally:
            self._task = None
        return not self.number


def _check(wanted: Repetition) -> None:
    if wanted.every is not None and not 0 < wanted.every <= MOST_EVERY:
        raise WrongUse("The interval is not one to wait for.", "Give a duration such as 90s, 6h or 7d: --every 24h")
    if wanted.max_iterations is not None and wanted.max_iterations < 1:
        raise WrongUse(f"There cannot be {wanted.max_iterations} runs.", "Give 1 or more: --max-runs 5")
    if wanted.notify_on not in list(Occasion):
        raise WrongUse(f"There is no occasion {wanted.notify_on!r}.", f"Known ones: {', '.join(Occasion)}.")


def _standing(runs: Sequence[RunInfo], sessions: Sequence[SessionInfo]) -> tuple[Standing, _Spot]:
    last = runs[-1]
    standing = Standing(
        repetition.began_ms(sessions, last.created_ms),
        last.mode == Mode.BASELINE,
        run.is_open(last),
        sessions[-1].ended_by if sessions else None,
        sum(map(_is_iteration, runs)),
    )
    return standing, _Spot(last.run_id, len(sessions))


def _is_iteration(one: RunInfo) -> bool:
    """Whether this is a complete run after a baseline."""
    return one.mode != Mode.BASELINE and one.state is RunState.COMPLETED


def _as_ours(error: Exception) -> InchwormError:
    if isinstance(error, InchwormError):
        return error
    return InchwormError(f"An unexpected error ended the session: {error!r}.", "The next interval tries again.")
