"""Jobs: which there are, when they run, and which of them repeats a crawl."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inchworm.app.workspace import Workspace, presentable
from inchworm.errors import Unknown
from inchworm.job import Execution, Job, JobFilter, JobRepetition, JobState, Task
from inchworm.model import CrawlInfo, Json
from inchworm.rules.schedule import occurrence, states, timetable
from inchworm.rules.schedule.states import Action
from inchworm.rules.words.times import iso
from inchworm.store.home.executions import Executions
from inchworm.store.home.jobs import EVERY, Jobs, place_of
from inchworm.store.home.services import Services

_DEFAULT_POLL = 1.0
_MOST_FOLLOWERS = 100
_LIVE = tuple(state for state in JobState if state not in states.FINAL)
_MOST_JOBS = 1000
_FEW_JOBS = 6


@dataclass(frozen=True, slots=True)
class RepetitionLine:
    """How a job repeats its crawl. Addresses may hold secrets: `notify` only counts them. `guarded`: messages never go
    to private ones."""

    max_iterations: int | None
    stop_if_no_changes: bool
    notify: int
    notify_on: str
    notify_if: tuple[str, ...]
    guarded: bool


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as everybody may see it."""

    id: str
    source_id: str
    crawl_id: str
    status: JobState
    interval_minutes: int | None
    interval_type: str
    schedule_enabled: bool
    adaptive_scheduling: bool
    current_interval_seconds: int | None
    unchanged_count: int
    next_run_at: str | None
    planned_at: str | None
    last_run_at: str | None
    is_paused: bool
    is_locked: bool
    slot: int | None
    max_retries: int
    retry_backoff_seconds: int
    current_retry_count: int
    after_job_id: str | None
    task: Task
    repetition: RepetitionLine | None
    executions: int
    reason: str | None
    metadata: Mapping[str, Json]
    created_at: str
    updated_at: str
    url: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class JobDetail:
    """A job with what holds it up now and what can be done with it. `place`: where it stands in the list it is from;
    `base_seconds`: the interval as it was asked for, which may be longer now."""

    line: JobLine
    place: tuple[int, str]
    base_seconds: int | None
    execution_id: int | None
    is_overdue: bool
    waits_for_crawl: bool
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class JobChain:
    """The job that a job runs after, and those that run after it."""

    before: JobLine | None
    followers: tuple[JobLine, ...]


@dataclass(frozen=True, slots=True)
class JobStats:
    """The executions of a job in numbers."""

    job_id: str
    status: JobState
    total_executions: int
    successful_executions: int
    failed_executions: int
    cancelled_executions: int
    success_rate: float | None
    average_duration_ms: int | None
    total_items_crawled: int
    total_cpu_time_ms: int
    memory_peak_mb: float
    last_success_at: str | None
    last_failure_at: str | None
    next_run_at: str | None


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is needed to say of many jobs whether they are late."""

    late_ms: int
    running: Mapping[str, Execution]
    """By crawl."""


class JobReads:
    """What is known of jobs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.store = Jobs(workspace.home)
        self._executions = Executions(workspace.home)
        self._services = Services(workspace.home)

    def listed(
        self, which: JobFilter = EVERY, after: tuple[int, str] | None = None, limit: int = 50, by_next: bool = False
    ) -> list[JobDetail]:
        """Jobs in the order in which they were made, or in that of their next runs."""
        moment = self._moment()
        return [self._detail(job, moment, by_next) for job in self.store.find(which, after, limit, by_next)]

    def one(self, job_id: str) -> JobDetail:
        return self._detail(self.store.get(job_id), self._moment(), by_next=False)

    def line(self, job: Job) -> JobLine:
        crawl = self._workspace.crawls.find(job.crawl_id)
        return _line(job, crawl.seeds[0] if crawl else None, crawl.name if crawl else None)

    def line_if_there(self, job_id: str) -> JobLine | None:
        try:
            return self.line(self.store.get(job_id))
        except Unknown:
            return None

    def of(self, crawl: CrawlInfo) -> list[JobLine]:
        """The jobs of a crawl, in the order in which they were made."""
        return [self.line(job) for job in self.store.find(JobFilter(crawl_id=crawl.crawl_id), None, _MOST_JOBS)]

    def newest(self, crawl: CrawlInfo) -> list[JobLine]:
        """The last few of them, the newest first."""
        return [self.line(job) for job in self.store.newest(crawl.crawl_id, _FEW_JOBS)]

    def chain(self, job_id: str) -> JobChain:
        before = self.store.get(job_id).after_job_id
        followers = self.store.find(JobFilter(after_job_id=job_id), None, _MOST_FOLLOWERS)
        return JobChain(self.line_if_there(before) if before else None, tuple(map(self.line, followers)))

    def stats(self, job_id: str) -> JobStats:
        job = self.store.get(job_id)
        totals = self._executions.totals(job_id)
        return JobStats(
            job_id=job_id,
            status=job.state,
            total_executions=totals.total,
            successful_executions=totals.completed,
            failed_executions=totals.failed,
            cancelled_executions=totals.cancelled,
            success_rate=totals.success_rate,
            average_duration_ms=totals.average_ms,
            total_items_crawled=totals.pages,
            total_cpu_time_ms=totals.cpu_ms,
            memory_peak_mb=round(totals.memory_peak_kb / 1024, 1),
            last_success_at=time_or_none(totals.last_success_ms),
            last_failure_at=time_or_none(totals.last_failure_ms),
            next_run_at=time_or_none(job.due_ms),
        )

    def _moment(self) -> _Moment:
        poll_s = max((one.poll_s for one in self._services.all()), default=_DEFAULT_POLL)
        running = {one.crawl_id: one for one in self._executions.running()}
        return _Moment(self._workspace.clock.now_ms() - round(2000 * poll_s), running)

    def _detail(self, job: Job, moment: _Moment, by_next: bool) -> JobDetail:
        running = moment.running.get(job.crawl_id)
        is_mine = running is not None and running.job_id == job.job_id
        waits = job.due_ms is not None and job.lock_token is None and job.due_ms < moment.late_ms
        return JobDetail(
            line=self.line(job),
            place=place_of(job, by_next),
            base_seconds=_base_seconds(job),
            execution_id=running.execution_id if running is not None and is_mine else None,
            is_overdue=waits and running is None,
            waits_for_crawl=waits and running is not None,
            actions=tuple(one for one in Action if job.state in states.ACTIONS[one]),
        )

    # Those of one crawl

    def of_crawl(self, crawl: CrawlInfo, those: Sequence[JobState]) -> list[Job]:
        filters = (JobFilter(state, crawl.crawl_id) for state in those)
        return [job for one in filters for job in self.store.find(one, None, _MOST_JOBS)]

    def at_work(self, crawl: CrawlInfo) -> Job | None:
        """The job that works on a crawl or is about to, if there is one."""
        now_ms = self._workspace.clock.now_ms()
        for job in self.of_crawl(crawl, (*states.CLAIMABLE, JobState.RUNNING)):
            is_due = job.due_ms is not None and (job.due_ms <= now_ms or not occurrence.recurs(job))
            if job.lock_token is not None or is_due:
                return job
        return None

    def repeater(self, crawl: CrawlInfo) -> Job | None:
        """The job that repeats a crawl. One that has come to its end is history."""
        found = [job for job in self.of_crawl(crawl, _LIVE) if job.repetition is not None]
        return found[-1] if found else None

    def repeating(self, crawl: CrawlInfo) -> list[Job]:
        """The jobs that crawl it again by themselves; the first is the one that a new repetition changes."""
        first = self.repeater(crawl)
        found = [job for job in self.of_crawl(crawl, _LIVE) if occurrence.recurs(job) and job != first]
        # One that runs after another job has no rhythm of its own to be changed.
        found.sort(key=lambda job: (job.after_job_id is not None, job.created_ms))
        return [first, *found] if first else found


def _line(job: Job, url: str | None, name: str | None) -> JobLine:
    every = occurrence.every_ms(job)
    return JobLine(
        id=job.job_id,
        source_id=job.crawl_id,
        crawl_id=job.crawl_id,
        status=job.state,
        interval_minutes=job.interval_count,
        interval_type=job.interval_unit,
        schedule_enabled=job.schedule_enabled and job.interval_count is not None,
        adaptive_scheduling=job.adaptive,
        current_interval_seconds=every // 1000 if every is not None else None,
        unchanged_count=job.unchanged,
        next_run_at=time_or_none(job.due_ms),
        planned_at=time_or_none(job.occurrence_ms),
        last_run_at=time_or_none(job.last_ms),
        is_paused=job.state is JobState.PAUSED,
        is_locked=job.lock_token is not None,
        slot=job.slot,
        max_retries=job.max_retries,
        retry_backoff_seconds=job.backoff_s,
        current_retry_count=job.retries,
        after_job_id=job.after_job_id,
        task=dataclasses.replace(job.task, settings=presentable(job.task.settings)),
        repetition=_repetition_line(job.repetition) if job.repetition else None,
        executions=job.executions,
        reason=job.reason or None,
        metadata=job.metadata,
        created_at=iso(job.created_ms),
        updated_at=iso(job.updated_ms),
        url=url,
        name=name,
    )


def _repetition_line(one: JobRepetition) -> RepetitionLine:
    return RepetitionLine(
        one.max_iterations,
        one.stop_if_no_changes,
        len(one.notify),
        one.notify_on,
        one.notify_if,
        guarded=not one.allow_private,
    )


def time_or_none(at_ms: int | None) -> str | None:
    return iso(at_ms) if at_ms is not None else None


def _base_seconds(job: Job) -> int | None:
    if job.interval_count is None:
        return None
    return timetable.interval_ms(job.interval_count, job.interval_unit) // 1000
