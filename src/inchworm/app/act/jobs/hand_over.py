"""Handing over: sessions that the service is to work on, by way of jobs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from inchworm import settings
from inchworm.app.act.choice import ChosenRun, RunChooser
from inchworm.app.act.jobs.change import JobActs, WantedJob
from inchworm.app.act.plan import Plan
from inchworm.app.read.checkpoints import Back, Checkpoints, checkpoint_line
from inchworm.app.read.executions import ExecutionReads, Wake
from inchworm.app.read.jobs import JobLine, JobReads
from inchworm.app.read.runs import iteration_id
from inchworm.app.refuse import refuse_aimless, refuse_unusable
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow
from inchworm.job import Execution, Job, JobState, Task, Verb
from inchworm.model import CheckpointInfo, CrawlInfo, Mode, RunInfo, RunState
from inchworm.rules.schedule import states
from inchworm.rules.schedule.states import Action
from inchworm.store.crawl.history import History


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
    """Has the service work on planned sessions, by jobs."""

    def __init__(
        self,
        workspace: Workspace,
        chooser: RunChooser,
        jobs: JobReads,
        executions: ExecutionReads,
        checkpoints: Checkpoints,
        schedule: JobActs,
    ) -> None:
        self._workspace = workspace
        self._chooser = chooser
        self._jobs = jobs
        self._executions = executions
        self._checkpoints = checkpoints
        self._schedule = schedule

    def session(self, plan: Plan, wake: Wake) -> StartedSession:
        """Have a session begin, and wait a little until it has. What cannot be done is refused here. `wake` has whoever
        runs jobs look now."""
        with self._taking_turns(plan.crawl):
            choice = self._refuse_impossible(plan)
            if plan.task.verb in (Verb.CRAWL, Verb.FRESH):
                # What was set for an earlier session is not meant for this one.
                self._workspace.crawls.change(plan.crawl.crawl_id, settings=plan.crawl.settings)
            job = self._once(plan.crawl, plan.task)
        is_empty = choice.open_run is not None and not choice.open_run.counters.pending
        execution = self._executions.session_of(job.id, wake, until_its_end=is_empty)
        return self._started(plan.crawl, job.id, execution)

    def next_run(self, plan: Plan) -> JobLine:
        """Have the next run of a crawl made now, by the job that repeats the crawl if that is the same. The first run
        is the baseline."""
        with self._taking_turns(plan.crawl):
            self._refuse_impossible(plan)
            job = self._jobs.repeater(plan.crawl)
            if job is not None and _runs_as(job, plan.task.mode):
                return self._schedule.run(job.job_id)
            verb = Verb.RECRAWL if plan.crawl.started else Verb.CRAWL
            return self._schedule.add(WantedJob(crawl=plan.crawl, task=dataclasses.replace(plan.task, verb=verb)))

    def continuation(self, plan: Plan) -> ContinuedCrawl:
        """Have a crawl continue from a checkpoint, seen to be possible; where from, and the job that does it."""
        crawl, task = plan.crawl, plan.task
        with self._taking_turns(crawl):
            point, _ = self._checkpoints.target(crawl, Back(task.checkpoint, task.as_new_run, task.validate))
            if task.checkpoint is not None:
                task = dataclasses.replace(task, checkpoint=str(point.number))
            # State and archive have just been looked at.
            self._refuse_impossible(dataclasses.replace(plan, task=dataclasses.replace(task, validate=False)))
            job = self._once(crawl, task)
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
            run_id=None if task.as_new_run else iteration_id(crawl, point.run),
            session=None,
            job_id=job.id,
        )

    def _once(self, crawl: CrawlInfo, task: Task) -> JobLine:
        """A job that is tried once, now: whoever asked sees how it goes, and may ask again."""
        return self._schedule.add(WantedJob(crawl=crawl, task=task, max_retries=0))

    # What is refused

    @contextlib.contextmanager
    def _taking_turns(self, crawl: CrawlInfo) -> Iterator[None]:
        """One at a time may have a session begin, and only when nobody works on the crawl: two sessions, one after the
        other, would do what was asked for twice."""
        self._executions.let_end(crawl)
        with self._schedule.taking_turns():
            if self._workspace.is_running(crawl):
                raise NotNow(
                    f"The crawl {crawl.name!r} is being worked on.", "Watch it, pause it, or wait for its end."
                )
            if job := self._jobs.at_work(crawl):
                raise NotNow(
                    f"The crawl {crawl.name!r} is about to be worked on, by job {job.job_id}.",
                    "Wait for its end, or cancel that job.",
                )
            yield

    def _refuse_impossible(self, plan: Plan) -> ChosenRun:
        """See that there is a run for this session, and that it can work with what was named."""
        choice = self._choice(plan)
        named = {**self._workspace.base_settings(), **self._chooser.named(plan)}
        values = settings.changed(settings.make(named), choice.settings)
        refuse_unusable(values)
        refuse_aimless(values, plan.caller.hints.query)
        return choice

    def _choice(self, plan: Plan) -> ChosenRun:
        with contextlib.ExitStack() as stack:
            store = None
            with contextlib.suppress(NotNow):  # It may never have started.
                store = stack.enter_context(self._workspace.reading(plan.crawl))
            return self._chooser.choose(plan, store)

    # What came of it

    def _started(self, crawl: CrawlInfo, job_id: str, execution: Execution | None) -> StartedSession:
        """What came of a start. Its job has no execution yet when nobody has begun with it."""
        started = StartedSession(crawl.crawl_id, crawl.name, job_id)
        if execution is None or execution.run is None:
            return dataclasses.replace(started, message=self._why_not_yet())
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, execution.run)
        return dataclasses.replace(
            started,
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

    def _checkpoint_there(self, crawl: CrawlInfo, point: CheckpointInfo) -> str | None:
        """The last checkpoint, when nothing happened since it was made."""
        latest = next(reversed(self._checkpoints.list(crawl)), None)
        is_there = latest is not None and (latest.run, latest.seq) == (point.run, point.seq)
        return latest.checkpoint_id if latest and is_there else None


def _message(current: RunInfo, execution: Execution) -> str:
    which = f"Run {current.number} ({current.mode})"
    if current.state is RunState.COMPLETED:
        return f"{which} is completed: nothing is left to do."
    does = "has started" if execution.session == 1 else f"goes on with session {execution.session}"
    return " ".join([f"{which} {does}.", *settings.cautions(current.settings)])


def _runs_as(job: Job, mode: str) -> bool:
    """Whether a job can be run now, and would make a run of this mode."""
    is_same = mode in ("", job.task.mode or Mode.INCREMENTAL)
    return is_same and job.state in states.ACTIONS[Action.FORCE_RUN]
