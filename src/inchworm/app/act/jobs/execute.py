"""Executing: one try of a job, in a process of its own.

The process needs nobody. It shows by itself that it lives, writes its own log, and says in one transaction what came of
it and what its job does next. So a service may be killed and started again while it works; and when its job was taken
away because it stood still, it finds that it cannot write any more.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import resource
import signal
import traceback
from collections.abc import Callable

from inchworm import fault
from inchworm.app.act.deliver import Deliverer, RunAnnouncer, Subscription
from inchworm.app.act.jobs.keeper import CONTROL, Keeper
from inchworm.app.act.plan import SCHEDULE, Plan, for_a_new_start
from inchworm.app.act.work import SessionWorker
from inchworm.app.machine import this_machine
from inchworm.app.read.runs import Runs
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import InchwormError, Owned
from inchworm.job import Execution, Job, JobRepetition, JobState, Task, Verb
from inchworm.model import Change, CrawlInfo, EndedBy, Mode, RunInfo, RunState, SessionInfo
from inchworm.rules.change.conditions import Conditions
from inchworm.rules.schedule import occurrence, repetition
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.repetition import Occasion, Stop
from inchworm.rules.web.url import host_of
from inchworm.rules.words import failures
from inchworm.store.crawl.read.failures import FailureReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.home.claims import Claims
from inchworm.store.home.executions import Executions

STOPPED = "the service stopped"
TOKEN_VARIABLE = "INCHWORM_EXECUTION_TOKEN"  # noqa: S105 - the name of a variable
_HOPS = 20

_OVER = (EndedBy.BUDGET, EndedBy.TIME, EndedBy.BYTES, EndedBy.WAITING, EndedBy.QUALITY)
"""Endings after which an occurrence is done although its run is open; after any other its next try goes on."""

Instead = Callable[[Job, int], Job]


class Executor:
    """Carries executions out."""

    def __init__(self, workspace: Workspace, runs: Runs, sessions: SessionWorker, deliver: Deliverer) -> None:
        self._workspace = workspace
        self._runs = runs
        self._claims, self._executions = Claims(workspace.home), Executions(workspace.home)
        self._sessions = sessions
        self._deliver = deliver

    async def execute(self, execution_id: int, token: str, stale_lock: float) -> bool:
        """Carry an execution out, to the end of its session; whether it went well."""
        execution, job = self._claims.begin(execution_id, token, this_machine(), os.getpid())
        crawl = self._workspace.crawls.find(job.crawl_id)
        if job.state is JobState.CANCELLED:
            self._claims.finish(
                execution_id, token, Ended("cancelled"), lambda job: job, self._workspace.clock.now_ms()
            )
            return True
        keeper = Keeper(self._workspace, execution, crawl, stale_lock)
        with keeper.watching():
            keeper.say("info", f"Execution {execution.number}, attempt {execution.attempt}, of job {job.job_id}")
            ended, instead = await self._carry_out(execution, job, crawl, keeper)
            keeper.catch_up()
            level = "error" if ended.error else "info"
            keeper.say(level, ended.error or f"Ended by {ended.ended_by}: {ended.pages:,} pages", is_end=True)
        keeper.report_end()
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            if instead is not None:
                return instead(job, now_ms)
            if ended.error:
                return occurrence.after_failure(job, ended.error, now_ms)
            return occurrence.after_success(job, ended, now_ms)

        self._claims.finish(execution_id, token, ended, decide, now_ms)
        return not ended.error

    async def _carry_out(
        self, execution: Execution, job: Job, crawl: CrawlInfo | None, keeper: Keeper
    ) -> tuple[Ended, Instead | None]:
        """How it went, and what becomes of the job if that says nothing about it."""
        try:
            if crawl is None:
                raise InchwormError("The crawl of this job is gone.", "Delete the job.")
            announcer = RunAnnouncer(
                self._workspace, self._deliver, _subscription(job), lambda text: keeper.say("warning", text)
            )
            before = self._earlier_try(execution)
            session = self._session_of(crawl, before) if before else None
            goes_on = before is not None and session is not None and self._is_open(crawl, before)
            if before and session and _was_broken_off(before) and (session.ended_by in _OVER or not goes_on):
                # Whoever made it died before it could say so.
                keeper.say("info", f"The session of attempt {before.attempt} had come to its end")
                ended = self._judged(job, crawl, before, str(session.ended_by), session.message)
                announcer.write_down()
                return _measured(ended), None
            hooks = announcer.promising(keeper.hooks())
            summary = await self._sessions.work(_plan(crawl, job.task, is_begun=goes_on), hooks)
            # Whoever is asked to stop now has done so; it only has to say how it went.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
            fault.point("before_finishing")
            this = dataclasses.replace(execution, run=summary.run, session=summary.session, indexed=summary.indexed)
            ended = Ended() if summary.signal else self._judged(job, crawl, this, summary.ended_by, summary.message)
            announcer.write_down()
        except Owned as error:
            # Whoever asked for one try, now, sees that; a job that goes on by itself comes later.
            is_patient = bool(job.max_retries) or occurrence.recurs(job)
            return _measured(Ended(error=error.message, ended_by="error")), occurrence.put_off if is_patient else None
        except Exception as error:
            said = error.message if isinstance(error, InchwormError) else f"an unexpected error: {error!r}"
            return _measured(Ended(error=said, ended_by="error", trace=traceback.format_exc())), None
        if summary.signal:
            pages = summary.pages + summary.duplicates - keeper.pages_before
            return _measured(Ended(summary.ended_by, pages, error=STOPPED)), occurrence.handed_back
        if summary.note:
            keeper.say("warning", summary.note)
        return _measured(dataclasses.replace(ended, pages=ended.pages - keeper.pages_before)), None

    def _earlier_try(self, execution: Execution) -> Execution | None:
        """The last try of the same occurrence that began a session."""
        for one in self._executions.of_job(execution.job_id, execution.number, 100):
            if one.occurrence_ms != execution.occurrence_ms:
                return None
            if one.session is not None:
                return one
        return None

    def _is_open(self, crawl: CrawlInfo, execution: Execution) -> bool:
        """Whether the run that an execution worked on is not complete yet."""
        with self._workspace.reading(crawl) as store:
            return run.is_open(self._workspace.run_of(crawl, store, execution.run))

    def _session_of(self, crawl: CrawlInfo, execution: Execution) -> SessionInfo | None:
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, execution.run)
            found = [one for one in store.sessions.of(current.run_id) if one.number == execution.session]
        return found[0] if found else None

    def _judged(self, job: Job, crawl: CrawlInfo, made: Execution, ended_by: str, message: str) -> Ended:
        """What a session that is over means for its job."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, made.run)
            seen = [_seed_changed(store, current, seed.url, made.started_ms) for seed in current.seeds]
            error = _failure(FailureReader(store), current, message)
        changed = True if any(seen) else False if seen and all(one is False for one in seen) else None
        pages = current.counters.pages + current.counters.duplicates
        return Ended(ended_by, pages, made.indexed, changed, _enough(job, self._iterations(crawl), current), error)

    def _iterations(self, crawl: CrawlInfo) -> int:
        line = [one for one in self._runs.all(crawl) if not one.beside]
        return sum(1 for one in line if one.mode != Mode.BASELINE and one.state is RunState.COMPLETED)


def _plan(crawl: CrawlInfo, task: Task, is_begun: bool) -> Plan:
    """The session of a try. What an earlier try has begun is gone on with, and not begun again."""
    if is_begun and task.verb != Verb.CRAWL:
        task = Task(Verb.RESUME, settings=task.settings)
    is_new = task.verb not in (Verb.RESUME, Verb.CONTINUE)
    return Plan(for_a_new_start(crawl) if is_new else crawl, task, SCHEDULE)


def _subscription(job: Job) -> Subscription:
    """Who is to be told of the runs of a job. The service sends it."""
    wanted = job.repetition or JobRepetition()
    occasion, conditions = Occasion(wanted.notify_on), Conditions(wanted.notify_if)
    return Subscription(
        job.crawl_id, wanted.notify, occasion, allow_private=wanted.allow_private, conditions=conditions
    )


def _seed_changed(store: CrawlStore, current: RunInfo, url: str, began_ms: int) -> bool | None:
    """Whether a seed is new or modified; None when it was not looked at, or nobody could tell."""
    known = store.frontier.known(current.run_id, [url]).get(url)
    url_id = known.url_id if known and known.in_run else None
    for _ in range(_HOPS):
        visit = store.visits.of(current.run_id, url_id) if url_id else None
        if visit is None or visit.at_ms < began_ms:
            return None
        if visit.redirect is None or visit.redirect == url_id:
            break
        url_id = visit.redirect
    if visit is None or visit.outcome not in ("page", "duplicate"):
        return None
    return visit.change != Change.UNCHANGED


def _was_broken_off(execution: Execution) -> bool:
    """Whether nobody has judged yet what this try came to."""
    return execution.ended_by == "crashed" or execution.error == STOPPED


def _failure(failed: FailureReader, current: RunInfo, message: str) -> str:
    """A run that got nothing at all, because the site was not there, is a try that failed: why, as its session says, or
    what failed first."""
    counters = current.counters
    if counters.pages or counters.duplicates or counters.deleted:
        return ""
    if not message and counters.failed and (first := failed.first(current.run_id)) is not None:
        message = failures.cause(host_of(first.url), first.kind, first.message)
    return message.translate(CONTROL)


def _enough(job: Job, iterations: int, current: RunInfo) -> str:
    """Why a job is not repeated any more."""
    if not job.repetition or current.state is not RunState.COMPLETED:
        return ""
    if job.repetition.stop_if_no_changes and repetition.is_unchanged(current.counters):
        return Stop.NO_CHANGES
    return Stop.ENOUGH if repetition.is_enough(iterations, job.repetition.max_iterations) else ""


def _measured(ended: Ended) -> Ended:
    """With what this process and its children have used: all of it was for this execution."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return dataclasses.replace(ended, cpu_ms=round(1000 * seconds), memory_kb=max(own.ru_maxrss, children.ru_maxrss))
