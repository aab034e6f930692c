"""Handing over: sessions that the service is to work on, by way of jobs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from inchworm import settings
from inchworm.app.act.jobs.change import JobActs, WantedJob, refuse_secrets
from inchworm.app.act.plan import Start
from inchworm.app.act.start import Starter
from inchworm.app.read.checkpoints import Back, Checkpoints, checkpoint_line
from inchworm.app.read.executions import ExecutionReads
from inchworm.app.read.jobs import JobLine, JobReads
from inchworm.app.read.runs import Runs, iteration_id
from inchworm.app.refuse import refuse_unusable
from inchworm.app.workspace import Workspace, defaults_of, settings_of_run
from inchworm.engine import run
from inchworm.errors import Frozen, NotNow, WrongUse
from inchworm.job import Execution, Job, JobState, Task
from inchworm.model import CheckpointInfo, CrawlInfo, Mode, RunInfo, RunState
from inchworm.rules.order import order
from inchworm.rules.schedule import states
from inchworm.rules.schedule.states import Action
from inchworm.settings import NamedSettings
from inchworm.store.crawl.history import History

FETCHERS = {"http": True, "scrapy": True, "browser": False, "playwright": False}
"""What may fetch pages, and whether this version has it."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A crawl as somebody wants it started. `given`: the settings that were named."""

    targets: tuple[str, ...]
    name: str = ""
    fetcher: str = "http"
    mode: str = ""
    fresh: bool = False
    given: NamedSettings = dataclasses.field(default_factory=dict)
    allow_private: bool = True
    """Targets may lie in a private network; otherwise they are refused."""


@dataclass(frozen=True, slots=True)
class StartedSession:
    """What came of a start: the session that its job has begun, if it has begun one yet."""

    crawl_id: str
    name: str
    job_id: str
    run_id: str | None = None
    run: int | None = None
    session: int | None = None
    execution_id: int | None = None
    state: str = JobState.PENDING.value
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContinuedCrawl:
    """Where a crawl continues from, and the job that does it."""

    crawl_id: str
    checkpoint_id: str | None
    resumed_from_state: str
    resumed_from_substate: str
    crawled_urls: int
    queued_urls: int
    run_id: str | None
    session: int | None
    job_id: str
    message: str = ""


class HandOver:
    """Makes jobs that start sessions."""

    def __init__(
        self,
        workspace: Workspace,
        runs: Runs,
        jobs: JobReads,
        executions: ExecutionReads,
        checkpoints: Checkpoints,
        start: Starter,
        schedule: JobActs,
    ) -> None:
        self._workspace = workspace
        self._runs = runs
        self._jobs = jobs
        self._executions = executions
        self._checkpoints = checkpoints
        self._start = start
        self._schedule = schedule

    # Starting

    def start_crawl(self, wanted: Beginning) -> tuple[CrawlInfo, str]:
        """Make a job that starts a crawl, or goes on with its open run: the crawl and the job's id. Everything that can
        be wrong with what was asked is found here."""
        _refuse_unless_there(wanted.fetcher)
        if wanted.name:
            refuse_odd(wanted.name)
        refuse_secrets(wanted.targets)
        self.refuse_wrong(wanted.given)
        crawl = self._start.find_or_make(
            Start(wanted.targets, wanted.name, typed=False, allow_private=wanted.allow_private)
        )
        self._executions.let_end(crawl)
        with self._schedule.taking_turns():
            self._refuse_busy(crawl)
            self._refuse_unfitting(crawl, wanted)
            # What was set for an earlier session is not meant for this one.
            self._workspace.crawls.change(crawl.crawl_id, settings=crawl.settings)
            verb = "fresh" if wanted.fresh else "crawl"
            return crawl, self._once(crawl, Task(verb, wanted.mode, settings=dict(wanted.given)))

    def resume_crawl(self, crawl: CrawlInfo, given: NamedSettings) -> str:
        """Make a job that goes on with the open run of a crawl; its id."""
        self._executions.let_end(crawl)
        with self._schedule.taking_turns():
            self._refuse_busy(crawl)
            last = self._runs.last(crawl)
            if last is None or not run.is_open(last):
                raise NotNow(
                    f"The crawl {crawl.name!r} has no paused run to resume.", "Start it: that begins its next run."
                )
            self.refuse_wrong(given)
            _refuse_changes(last, given)
            return self._once(crawl, Task("resume", settings=dict(given)))

    def _once(self, crawl: CrawlInfo, task: Task) -> str:
        """A job that is tried once, now: whoever asked sees how it goes, and may ask again."""
        return self._schedule.add(WantedJob(crawl=crawl, task=task, max_retries=0)).id

    def refuse_wrong(self, given: NamedSettings, below: NamedSettings | None = None) -> None:
        values = settings.make({**self._workspace.base_settings(), **(below or {}), **given})
        refuse_unusable(values)
        if values.order == order.BEST and not values.query:
            raise WrongUse("Best for what? The order `best` goes by a query.", "Send a `query`.")

    def _refuse_unfitting(self, crawl: CrawlInfo, wanted: Beginning) -> None:
        """What is wanted has to fit the run that is open, or what the crawl remembers."""
        last = self._runs.last(crawl)
        if last is None or not run.is_open(last) or wanted.fresh or not crawl.incremental:
            self.refuse_wrong(wanted.given, {**defaults_of(crawl), **crawl.settings})
            return
        _refuse_changes(last, wanted.given, wanted.mode)

    def told(self, crawl: CrawlInfo, job_id: str, execution: Execution | None) -> StartedSession:
        """What came of a start, to be told."""
        told = StartedSession(crawl.crawl_id, crawl.name, job_id)
        if execution is None or execution.run is None:
            return dataclasses.replace(told, message=self._why_not_yet())
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, execution.run)
        return dataclasses.replace(
            told,
            run_id=iteration_id(crawl, current.number),
            run=current.number,
            session=execution.session,
            execution_id=execution.execution_id,
            state=run.state_of(current, self._workspace.is_running(crawl)).value,
            message=_message(current, execution),
        )

    def _why_not_yet(self) -> str:
        services = self._executions.runners()
        if not services:
            return "No session has begun: no service of this home runs jobs. It begins when one does."
        if len(self._executions.store.running()) >= sum(one.executions for one in services):
            return "No session has begun yet: all executions are busy. It begins when one of them ends."
        return "No session has begun yet. Its job tells when one has."

    # Sessions by way of jobs

    def start_next(self, word: str, mode: str = "") -> JobLine:
        """Have the next run of a crawl made now; the job that makes it. The first run is the baseline."""
        crawl = self._workspace.find(word)
        self._executions.let_end(crawl)
        with self._schedule.taking_turns():
            self._refuse_busy(crawl)
            last = self._runs.last(crawl)
            if last is not None and run.is_open(last):
                raise NotNow(
                    f"Run {last.number} of {crawl.name!r} is not complete, so the next one cannot begin.",
                    "Resume it, or cancel it.",
                )
            job = self._jobs.repeater(crawl)
            if job is not None and _runs_as(job, mode):
                return self._schedule.run(job.job_id)
            return self._schedule.start(crawl, Task("recrawl" if last else "crawl", mode))

    def start_again(self, word: str, back: Back, given: NamedSettings) -> ContinuedCrawl:
        """Have a crawl continue from a checkpoint, seen to be possible; where from, and the job that does it."""
        crawl = self._workspace.find(word)
        self._executions.let_end(crawl)
        with self._schedule.taking_turns():
            self._refuse_busy(crawl)
            point, current = self._checkpoints.target(crawl, back)
            _refuse_wrong_settings(current, back, given)
            job = self._schedule.add(WantedJob(crawl.crawl_id, task=_task(back, point, given), max_retries=0))
        with self._workspace.reading(crawl) as store:
            state = checkpoint_line(crawl, point, History(store))
        urls_then = state.progress.urls
        return ContinuedCrawl(
            crawl_id=crawl.crawl_id,
            checkpoint_id=state.checkpoint_id if point.number >= 0 else self._checkpoint_there(crawl, point),
            resumed_from_state=state.current_state,
            resumed_from_substate=state.current_substate,
            crawled_urls=urls_then.completed,
            queued_urls=urls_then.pending,
            run_id=None if back.as_new_run else iteration_id(crawl, point.run),
            session=None,
            job_id=job.id,
        )

    def _checkpoint_there(self, crawl: CrawlInfo, point: CheckpointInfo) -> str | None:
        """The last checkpoint, when nothing happened since it was made."""
        latest = next(reversed(self._checkpoints.list(crawl)), None)
        is_there = latest is not None and (latest.run, latest.seq) == (point.run, point.seq)
        return latest.checkpoint_id if latest and is_there else None

    def _refuse_busy(self, crawl: CrawlInfo) -> None:
        """Two sessions, one after the other, would do what was asked for twice."""
        if self._workspace.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Watch it, pause it, or wait for its end.")
        if job := self._jobs.at_work(crawl):
            raise NotNow(
                f"The crawl {crawl.name!r} is about to be worked on, by job {job.job_id}.",
                "Wait for its end, or cancel that job.",
            )

    def start_over(self, crawl: CrawlInfo, allow_private: bool) -> str:
        """Make a job that starts a crawl over with a new baseline; its id."""
        wanted = Beginning(crawl.seeds, crawl.name, fresh=True, allow_private=allow_private)
        return self.start_crawl(wanted)[1]


def _refuse_unless_there(fetcher: str) -> None:
    there = ", ".join(name for name, is_there in FETCHERS.items() if is_there)
    if fetcher not in FETCHERS:
        raise WrongUse(f"There is no crawler {fetcher!r}.", f"Known ones: {there}.")
    if not FETCHERS[fetcher]:
        raise WrongUse(
            f"The crawler {fetcher!r} renders pages, and rendering is not available in this version.",
            f"Use one of {there}, or leave `crawler` out.",
        )


def refuse_odd(name: str) -> None:
    if not name.isprintable() or not name.strip():
        raise WrongUse(f"A crawl cannot be called {name!r}.", "Give it a name that people can read.")


def _refuse_changes(last: RunInfo, given: NamedSettings, mode: str = "") -> None:
    wanted = settings.of_run(given)
    try:
        run.refuse_changes({**last.settings, "mode": last.mode}, {**wanted, **({"mode": mode} if mode else {})})
    except Frozen as error:
        raise Frozen(error.message, 'Leave it out to go on, or send "fresh": true to start over with it.') from None


def _message(current: RunInfo, execution: Execution) -> str:
    which = f"Run {current.number} ({current.mode})"
    if current.state is RunState.COMPLETED:
        return f"{which} is completed: nothing is left to do."
    said = "has started" if execution.session == 1 else f"goes on with session {execution.session}"
    return " ".join([f"{which} {said}.", *settings.cautions(current.settings)])


# Continuing
def _task(back: Back, point: CheckpointInfo, given: NamedSettings) -> Task:
    if back.checkpoint is None and not back.as_new_run:
        return Task("resume", settings=given)
    checkpoint = None if back.checkpoint is None else str(point.number)
    return Task("continue", "", checkpoint, back.as_new_run, back.validate, given)


def _refuse_wrong_settings(current: RunInfo, back: Back, given: NamedSettings) -> None:
    """What was named has to be right, and a run that goes on keeps its own settings."""
    of_run = settings.of_run(given)
    values = settings.make({**given, **settings_of_run(current), **of_run})
    refuse_unusable(values)
    if not back.as_new_run:
        run.refuse_changes(current.settings, of_run)


def _runs_as(job: Job, mode: str) -> bool:
    """Whether a job can be run now, and would make a run of this mode."""
    is_same = mode in ("", job.task.mode or Mode.INCREMENTAL)
    return is_same and job.state in states.ACTIONS[Action.FORCE_RUN]
