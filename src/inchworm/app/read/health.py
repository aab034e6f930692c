"""Health: how the home and its jobs stand, and what needs attention."""

from __future__ import annotations

import contextlib
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from inchworm import __version__
from inchworm.app.read.crawls import ChangesOfRun, Crawls, CrawlSummary
from inchworm.app.read.executions import ExecutionReads
from inchworm.app.read.jobs import JobReads
from inchworm.app.read.runs import SessionLine
from inchworm.app.workspace import Workspace
from inchworm.job import JobFilter, JobState
from inchworm.model import EndedBy, RunState
from inchworm.rules.schedule import timetable
from inchworm.rules.words.times import iso
from inchworm.store.home.services import Service
from inchworm.store.home.slots import Slots

_FEW = 8
_LATE_MS = 60_000
_BAD_ENDS = (EndedBy.ERROR, EndedBy.CRASHED)
LOW_SUCCESS = 0.8
LOW_SCORE = 0.7
STALE_LOCKS = "stale_locks_cleared"
_DAY_HOURS = 24
_DAY_MS = 86_400_000
_FEW_JOBS = 10


@dataclass(frozen=True, slots=True)
class ExecutionFigures:
    """The executions of the last hours in numbers."""

    window_hours: int
    total: int
    completed: int
    failed: int
    cancelled: int
    running: int
    success_rate: float | None
    average_duration_ms: int | None
    items_crawled: int


@dataclass(frozen=True, slots=True)
class SchedulerFigures:
    """Jobs by their state, and the executions of the last day."""

    jobs: Mapping[str, int]
    executions: ExecutionFigures
    stale_locks_cleared: int
    distribution_score: float
    advice: Sequence[str]
    collected_at: str


@dataclass(frozen=True, slots=True)
class DaySlot:
    """A part of the day, and how many jobs start in it."""

    slot: int
    starts_at: str
    jobs: int


@dataclass(frozen=True, slots=True)
class DayDistribution:
    """How jobs are spread over the day."""

    slots: Sequence[DaySlot]
    slot_minutes: int
    total_jobs: int
    fullest: int
    distribution_score: float
    advice: str | None


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """A service of this home."""

    id: str
    machine: str
    pid: int
    started_at: str
    seen_at: str
    executions: int
    poll_seconds: float
    scheduler: bool


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """What the disk says, and the size of the one file that all crawls share."""

    folder: str
    disk_free: int
    disk_total: int
    database_bytes: int


@dataclass(frozen=True, slots=True)
class HomeState:
    """How the home is: who serves it, the executions of the last day, room on the disk."""

    figures: SchedulerFigures
    services: Sequence[ServiceLine]
    is_failing: bool
    is_crowded: bool
    crawls: int
    room: DiskRoom
    version: str
    python: str


@dataclass(frozen=True, slots=True)
class OverdueJobs:
    """Jobs that nobody has started."""

    kind: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that failed, and why."""

    kind: str
    job_id: str
    crawl_id: str
    name: str | None
    message: str


@dataclass(frozen=True, slots=True)
class CrawlTrouble:
    """Something about a crawl that a person should look at."""

    crawl_id: str
    name: str
    run: int | None
    kind: str
    message: str


Concern: TypeAlias = OverdueJobs | FailedJob | CrawlTrouble


@dataclass(frozen=True, slots=True)
class HomeOverview:
    """What runs now, what changed lately, what needs attention, the latest crawls; `crawls`: how many there are."""

    crawls: int
    running: Sequence[CrawlSummary]
    changed: Sequence[ChangesOfRun]
    attention: Sequence[Concern]
    recent: Sequence[CrawlSummary]


class HomeHealth:
    """How the home stands."""

    def __init__(self, workspace: Workspace, jobs: JobReads, executions: ExecutionReads, crawls: Crawls) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self._executions = executions
        self._crawls = crawls
        self._slots = Slots(workspace.home)

    # How it goes

    def scheduler(self) -> SchedulerFigures:
        """Jobs, and the executions of the last day, in numbers."""
        now_ms = self._workspace.clock.now_ms()
        totals = self._executions.store.totals(since_ms=now_ms - _DAY_MS)
        score = round(timetable.score(self._slots.loads()), 4)
        executions = ExecutionFigures(
            _DAY_HOURS,
            totals.total,
            totals.completed,
            totals.failed,
            totals.cancelled,
            totals.running,
            totals.success_rate,
            totals.average_ms,
            totals.pages,
        )
        cleared = self._executions.tallies.all().get(STALE_LOCKS, 0)
        advice = _advice(executions.success_rate, score)
        return SchedulerFigures(self._jobs.store.counts(), executions, cleared, score, advice, iso(now_ms))

    def advice(self) -> Sequence[str]:
        """What to look at, though nothing is wrong with the service itself. Names no job."""
        rate = self._executions.store.totals(since_ms=self._workspace.clock.now_ms() - _DAY_MS).success_rate
        return _advice(rate, timetable.score(self._slots.loads()))

    def overdue(self, seconds: float) -> tuple[int, Sequence[str]]:
        """How many jobs should have been started so long ago, and the first of them."""
        return self._jobs.store.overdue(self._workspace.clock.now_ms() - round(seconds * 1000), _FEW_JOBS)

    # The day

    def distribution(self) -> DayDistribution:
        """How jobs are spread over the day."""
        loads = self._slots.loads()
        score = round(timetable.score(loads), 4)
        return DayDistribution(
            [DaySlot(slot, f"{slot // 4:02}:{slot % 4 * 15:02}", jobs) for slot, jobs in enumerate(loads)],
            timetable.SLOT_MS // 60_000,
            sum(loads),
            max(loads),
            score,
            "Consider a rebalance: POST /api/v1/scheduler/rebalance" if score < LOW_SCORE else None,
        )

    def home(self) -> HomeState:
        """How the home is."""
        figures = self.scheduler()
        rate, score = figures.executions.success_rate, figures.distribution_score
        return HomeState(
            figures,
            [_service_line(one) for one in self._executions.services.all()],
            rate is not None and rate < LOW_SUCCESS,
            score < LOW_SCORE,
            len(self._workspace.crawls.all()),
            self._room(),
            __version__,
            platform.python_version(),
        )

    def _room(self) -> DiskRoom:
        disk = shutil.disk_usage(self._workspace.folder)
        size = 0
        for name in ("home.db", "home.db-wal"):
            with contextlib.suppress(OSError):
                size += (self._workspace.folder / name).stat().st_size
        return DiskRoom(str(self._workspace.folder), disk.free, disk.total, size)

    def overview(self) -> HomeOverview:
        """What runs now, what changed lately, what needs attention."""
        crawls = sorted(self._crawls.list(), key=_activity, reverse=True)
        changed = sorted((one.changed for one in crawls if one.changed), key=lambda one: one.at, reverse=True)
        return HomeOverview(
            len(crawls),
            [one for one in crawls if one.state == RunState.IN_PROGRESS],
            changed[:_FEW],
            [*self._overdue(), *self._failed(), *(found for one in crawls for found in _troubles(one))],
            crawls[:_FEW],
        )

    def _overdue(self) -> Sequence[Concern]:
        count, _ = self._jobs.store.overdue(self._workspace.clock.now_ms() - _LATE_MS, 1)
        if not count:
            return ()
        name = "1 overdue job" if count == 1 else f"{count:,} overdue jobs"
        message = "Nobody has started what is due: no scheduler runs, or all its executions are busy."
        return (OverdueJobs("jobs_overdue", name, message),)

    def _failed(self) -> Sequence[Concern]:
        failed = self._jobs.store.find(JobFilter(JobState.FAILED), None, _FEW)
        names = {one.crawl_id: one.name for one in self._workspace.crawls.all()} if failed else {}
        return [
            FailedJob("job_failed", one.job_id, one.crawl_id, names.get(one.crawl_id), one.reason or "The job failed.")
            for one in failed
        ]


def _activity(crawl: CrawlSummary) -> str:
    return crawl.run_started_at or crawl.created_at


def _troubles(crawl: CrawlSummary) -> Sequence[CrawlTrouble]:
    found = {}
    if crawl.note:
        found["unreadable"] = crawl.note
    if crawl.alarm:
        found["alarm"] = crawl.alarm
    if crawl.failed and crawl.failed > crawl.pages + crawl.duplicates:
        found["failing"] = f"{crawl.failed:,} URLs failed, and {crawl.pages:,} pages came."
    if (session := crawl.session) and crawl.state == RunState.PAUSED and session.ended_by in _BAD_ENDS:
        found["broken_off"] = _broken_off(session)
    if crawl.down and crawl.state in (RunState.IN_PROGRESS, RunState.PAUSED):
        first, others = crawl.down[0], len(crawl.down) - 1
        rest = f", and {others:,} more" if others else ""
        found["down"] = f"{first.host}{rest} cannot be reached: {first.message}. Its URLs wait."
    return [CrawlTrouble(crawl.crawl_id, crawl.name, crawl.run, kind, message) for kind, message in found.items()]


def _broken_off(session: SessionLine) -> str:
    if session.ended_by == EndedBy.CRASHED:
        return "Its last session was killed, or crashed. Nothing is lost: resume it."
    return f"Its last session ended with an error: {session.message or 'it was not said which'}"


def _advice(success_rate: float | None, score: float) -> list[str]:
    said = []
    if success_rate is not None and success_rate < LOW_SUCCESS:
        said.append("Many executions fail: look at the jobs that failed, GET /api/v1/jobs?status=failed")
    if round(score, 4) < LOW_SCORE:
        said.append("Jobs crowd together: POST /api/v1/scheduler/rebalance/preview shows what could be moved")
    return said


def _service_line(one: Service) -> ServiceLine:
    return ServiceLine(
        one.service_id,
        one.machine.split("/")[0],
        one.pid,
        iso(one.started_ms),
        iso(one.seen_ms),
        one.executions,
        one.poll_s,
        one.scheduler,
    )
