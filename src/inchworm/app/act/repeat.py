"""Repeating: a crawl's next run now and again in this process, people told what it found."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from inchworm import fault, settings
from inchworm.app.act.deliver import Deliverer, RunAnnouncer, Subscription
from inchworm.app.act.plan import SCHEDULE, Plan
from inchworm.app.act.work import SessionWorker
from inchworm.app.read.runs import RunOutcome, Runs
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.signals import stop_signals
from inchworm.errors import InchwormError, Lost, NotNow, Owned, TooNew, Unknown, WrongUse
from inchworm.job import Task, Verb
from inchworm.model import CrawlInfo, EndedBy, Mode, RunInfo, RunState, SessionInfo
from inchworm.rules.change.conditions import Conditions
from inchworm.rules.schedule import repetition
from inchworm.rules.schedule.repetition import Clocks, Due, Occasion, RepeatState, Stop
from inchworm.settings import NamedSettings

MOST_EVERY = 3_660 * 86_400.0
_NAP_SECONDS = 3_600.0
_CANNOT_START = (WrongUse, Owned, TooNew)


@dataclass(frozen=True, slots=True)
class Repetition:
    """How a crawl is to be repeated. `every` are seconds from start to start, None: one run and no more."""

    word: str
    every: float | None = None
    max_iterations: int | None = None
    stop_if_no_changes: bool = False
    mode: str = ""
    given: NamedSettings = dataclasses.field(default_factory=dict)
    notify: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    notify_on: str = Occasion.CHANGES
    secret_file: Path | None = None
    notify_if: tuple[str, ...] = ()


def _unwatched() -> AbstractContextManager[Hooks]:
    return contextlib.nullcontext(Hooks())


@dataclass(slots=True)
class Listener:
    """How a caller takes part in a repetition: plain functions, all optional. `session` gives the hooks of each session
    and is left when that ends; `waits` gets the moment of the next run and the seconds until then."""

    session: Callable[[], AbstractContextManager[Hooks]] = _unwatched
    ran: Callable[[RunOutcome, Summary], None] = lambda _, __: None
    waits: Callable[[int, float], None] = lambda _, __: None
    failed: Callable[[InchwormError], None] = lambda _: None
    said: Callable[[str], None] = lambda _: None
    signals: bool = False


class Ending(NamedTuple):
    """Why a repetition ended, by which signal, and how many runs the crawl has made after its baseline."""

    why: Stop
    iterations: int
    signal: int = 0


class Repeater:
    """Repeats crawls in this process."""

    def __init__(self, workspace: Workspace, sessions: SessionWorker, runs: Runs, deliver: Deliverer) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._runs = runs
        self._deliver = deliver

    async def repeat(self, wanted: Repetition, listener: Listener | None = None) -> Ending:
        """Make the next run of a crawl now, or go on with the open one, and again after every interval."""
        listener = listener or Listener()
        _refuse_wrong(wanted)
        crawl_id = self._workspace.find(wanted.word).crawl_id
        # What is wrong is said now, not after the first wait.
        settings.make({**self._workspace.base_settings(), **wanted.given})
        occasion, conditions = Occasion(wanted.notify_on), Conditions(wanted.notify_if)
        subscription = Subscription(crawl_id, wanted.notify, occasion, wanted.secret_file, conditions=conditions)
        announcer = RunAnnouncer(self._workspace, self._deliver, subscription, listener.said)
        tools = _Tools(self._workspace, self._sessions, self._runs, announcer)
        return await _Series(tools, crawl_id, wanted, listener).work()


class _Tools(NamedTuple):
    """What a repetition works with."""

    workspace: Workspace
    sessions: SessionWorker
    runs: Runs
    announcer: RunAnnouncer


class _Series:
    """One repetition in one process. All that it has to know when it starts is in the store."""

    def __init__(self, tools: _Tools, crawl_id: str, wanted: Repetition, listener: Listener) -> None:
        self._workspace, self._sessions, self._runs, self._announcer = tools
        self._crawl_id = crawl_id
        self._wanted = wanted
        self._listener = listener
        self._interruption = _Interruption(listener.signals)
        self._seen: _Spot | None = None
        self._counted_from = 0.0
        self._has_tried = False

    async def work(self) -> Ending:
        if self._announcer.is_unsigned:
            self._listener.said(
                "Notifications are not signed: there is no --notify-secret-file, no notify-secret in the home, and no"
                " INCHWORM_NOTIFY_SECRET."
            )
        with self._interruption.listening():
            why = await self._repeat()
        return Ending(why, self._look()[0].iterations, self._interruption.number)

    async def _repeat(self) -> Stop:
        # Whoever was killed after a run and before its message left that to us.
        if self._wanted.notify and not await self._interruption.during(self._announcer.catch_up()):
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

    def _look(self) -> tuple[RepeatState, _Spot]:
        """How the crawl stands, and which session was its last."""
        with contextlib.suppress(NotNow), self._workspace.reading(self._workspace.find(self._crawl_id)) as store:
            if runs := run.line_of(store.runs.list()):
                return _standing(runs, store.sessions.of(runs[-1].run_id))
        return RepeatState(), _Spot(-1, 0)

    def _due(self) -> Due:
        """When the next run is due. Who has to wait for it is told."""
        standing, spot = self._look()
        # We have just started, or somebody else has worked on the crawl meanwhile.
        is_news, self._seen = spot != self._seen, spot
        clocks = Clocks(self._workspace.clock.monotonic(), self._workspace.clock.now_ms())
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
        while (left := until - self._workspace.clock.monotonic()) > 0:
            nap = min(left, _NAP_SECONDS, self._announcer.seconds_until_due())
            if not await self._interruption.during(asyncio.sleep(nap)):
                return False
            if self._wanted.notify and not await self._interruption.during(self._announcer.try_again()):
                return False
        return True

    async def _try(self) -> Summary | None:
        """One session; None when an error ended it, which is told and does not end the repetition."""
        is_first, self._has_tried = not self._has_tried, True
        try:
            crawl = self._workspace.find(self._crawl_id)
            with self._listener.session() as hooks:
                plan = Plan(crawl, Task(Verb.CRAWL, self._wanted.mode, settings=self._wanted.given), SCHEDULE)
                return await self._sessions.work(plan, self._announcer.promising(hooks))
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
            self._listener.ran(
                dataclasses.replace(self._runs.outcome(crawl, current), seconds=summary.seconds), summary
            )
            fault.point("before_telling")
            if summary.signal:
                self._announcer.write_down()  # Whoever is told to stop does not wait for others.
            elif self._wanted.notify and not await self._interruption.during(self._announcer.tell()):
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
        crawl = self._workspace.find(self._crawl_id)
        with self._workspace.reading(crawl) as store:
            return crawl, self._workspace.run_of(crawl, store)


class _Spot(NamedTuple):
    """Which session was a crawl's last."""

    run_id: int
    sessions: int


class _Interruption:
    """Signals that come while no session is there to be paused."""

    def __init__(self, is_wanted: bool) -> None:
        self._numbers = stop_signals() if is_wanted else []
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


def _refuse_wrong(wanted: Repetition) -> None:
    if wanted.every is not None and not 0 < wanted.every <= MOST_EVERY:
        raise WrongUse("The interval is not one to wait for.", "Give a duration such as 90s, 6h or 7d: --every 24h")
    if wanted.max_iterations is not None and wanted.max_iterations < 1:
        raise WrongUse(f"There cannot be {wanted.max_iterations} runs.", "Give 1 or more: --max-runs 5")
    if wanted.notify_on not in list(Occasion):
        raise WrongUse(f"There is no occasion {wanted.notify_on!r}.", f"Known ones: {', '.join(Occasion)}.")


def _standing(runs: Sequence[RunInfo], sessions: Sequence[SessionInfo]) -> tuple[RepeatState, _Spot]:
    last = runs[-1]
    standing = RepeatState(
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
