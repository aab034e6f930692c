"""Jobs: which there are, how they stand, and which of them repeats a crawl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inchworm.app.workspace import Workspace, presentable
from inchworm.errors import Unknown
from inchworm.job import Execution, Job, JobState
from inchworm.model import CrawlInfo
from inchworm.rules.schedule import occurrence, states, timetable
from inchworm.rules.words.times import iso
from inchworm.store.home.events import Events
from inchworm.store.home.jobs import Jobs, place_of

_DEFAULT_POLL = 1.0
_MOST_FOLLOWERS = 100


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is needed to say of many jobs whether they are late."""

    now_ms: int
    late_ms: int
    running: Mapping[str, Execution]
    """By crawl."""


_LIVE = tuple(state for state in JobState if state not in states.FINAL)
_MOST_JOBS = 1000


class JobReads:
    """What is known of jobs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.store = Jobs(workspace.home)
        self._events = Events(workspace.home)

    # Looking

    def listed(
        self, where: Mapping[str, Any], after: tuple[int, str] | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        return [self.json(job) for job in self.store.find(where, after, limit)]

    def one(self, job_id: str) -> dict[str, Any]:
        return self.json(self.store.get(job_id))

    def json(self, job: Job) -> dict[str, Any]:
        crawl = self._workspace.home.find(job.crawl_id)
        return {**_job_json(job), "url": crawl.seeds[0] if crawl else None, "name": crawl.name if crawl else None}

    def stats(self, job_id: str) -> dict[str, Any]:
        """The executions of a job in numbers."""
        job = self.store.get(job_id)
        figures = self.store.figures(job_id)
        return {
            "job_id": job_id,
            "status": job.state,
            "total_executions": figures["total"],
            "successful_executions": figures["completed"],
            "failed_executions": figures["failed"],
            "cancelled_executions": figures["cancelled"],
            "success_rate": figures["success_rate"],
            "average_duration_ms": figures["average_ms"],
            "total_items_crawled": figures["pages"],
            "total_cpu_time_ms": figures["cpu_ms"],
            "memory_peak_mb": round(figures["memory_peak_kb"] / 1024, 1),
            "last_success_at": time_or_none(figures["last_success_ms"]),
            "last_failure_at": time_or_none(figures["last_failure_ms"]),
            "next_run_at": time_or_none(job.due_ms),
        }

    def agenda(
        self, where: Mapping[str, Any], after: tuple[int, str] | None = None, limit: int = 50, by_next: bool = False
    ) -> list[dict[str, Any]]:
        """Jobs in the order in which they were made, or in that of their next runs; each with its place in this list,
        what holds it up and what can be done with it."""
        moment = self._moment()
        found = self.store.find(where, after, limit, by_next)
        return [{**self._agenda_line(job, moment), "place": place_of(job, by_next)} for job in found]

    def whole(self, job_id: str) -> dict[str, Any]:
        """One job, with the job it runs after and those that run after it."""
        job = self.store.get(job_id)
        followers = self.store.find({"after_job_id": job_id}, None, _MOST_FOLLOWERS)
        return {
            **self._agenda_line(job, self._moment()),
            "before": self.named(job.after_job_id) if job.after_job_id else None,
            "followers": [self.json(one) for one in followers],
        }

    def _moment(self) -> _Moment:
        now_ms = self._workspace.clock.now_ms()
        poll_s = max((one.poll_s for one in self._events.services()), default=_DEFAULT_POLL)
        running = {one.crawl_id: one for one in self.store.running()}
        return _Moment(now_ms, now_ms - round(2000 * poll_s), running)

    def _agenda_line(self, job: Job, moment: _Moment) -> dict[str, Any]:
        told = self.json(job)
        running = moment.running.get(job.crawl_id)
        is_mine = running is not None and running.job_id == job.job_id
        waits = job.due_ms is not None and job.lock_token is None and job.due_ms < moment.late_ms
        return {
            **told,
            "task": {**told["task"], "settings": presentable(told["task"].get("settings", {}))},
            "base_seconds": _base_seconds(job),
            "execution_id": running.execution_id if running is not None and is_mine else None,
            "is_overdue": waits and running is None,
            "waits_for_crawl": waits and running is not None,
            "actions": [one.value for one in states.Action if job.state in states.ACTIONS[one]],
        }

    def named(self, job_id: str) -> dict[str, Any] | None:
        try:
            return self.one(job_id)
        except Unknown:
            return None

    def repeater(self, crawl: CrawlInfo) -> Job | None:
        """The job that repeats a crawl. One that has come to its end is history."""
        found = [job for job in self.of_crawl(crawl, _LIVE) if job.repetition is not None]
        return found[-1] if found else None

    def of_crawl(self, crawl: CrawlInfo, those: Sequence[JobState]) -> list[Job]:
        where = {"crawl_id": crawl.crawl_id}
        return [job for state in those for job in self.store.find({**where, "state": state}, None, _MOST_JOBS)]

    def at_work(self, crawl: CrawlInfo) -> Job | None:
        """The job that works on a crawl or is about to, if there is one."""
        now_ms = self._workspace.clock.now_ms()
        for job in self.of_crawl(crawl, (*states.CLAIMABLE, JobState.RUNNING)):
            is_due = job.due_ms is not None and (job.due_ms <= now_ms or not occurrence.recurs(job))
            if job.lock_token is not None or is_due:
                return job
        return None

    # The job that repeats it

    def repeating_json(self, crawl: CrawlInfo) -> list[dict[str, Any]]:
        """The jobs that crawl it again by themselves; the first is the one that `repeat_crawl` changes."""
        return [self.json(job) for job in self.repeating(crawl)]

    def repeating(self, crawl: CrawlInfo) -> list[Job]:
        first = self.repeater(crawl)
        found = [job for job in self.of_crawl(crawl, _LIVE) if occurrence.recurs(job) and job != first]
        # One that runs after another job has no rhythm of its own to be changed.
        found.sort(key=lambda job: (job.after_job_id is not None, job.created_ms))
        return [first, *found] if first else found


def _job_json(job: Job) -> dict[str, Any]:
    every = occurrence.every_ms(job)
    return {
        "id": job.job_id,
        "source_id": job.crawl_id,
        "crawl_id": job.crawl_id,
        "status": job.state,
        "interval_minutes": job.interval_count,
        "interval_type": job.interval_unit,
        "schedule_enabled": job.schedule_enabled and job.interval_count is not None,
        "adaptive_scheduling": job.adaptive,
        "current_interval_seconds": every // 1000 if every is not None else None,
        "unchanged_count": job.unchanged,
        "next_run_at": time_or_none(job.due_ms),
        "planned_at": time_or_none(job.occurrence_ms),
        "last_run_at": time_or_none(job.last_ms),
        "is_paused": job.state is JobState.PAUSED,
        "is_locked": job.lock_token is not None,
        "slot": job.slot,
        "max_retries": job.max_retries,
        "retry_backoff_seconds": job.backoff_s,
        "current_retry_count": job.retries,
        "after_job_id": job.after_job_id,
        "task": {**job.task, "settings": presentable(job.task.get("settings", {}))},
        "repetition": _presentable(job.repetition),
        "executions": job.executions,
        "reason": job.reason or None,
        "metadata": dict(job.metadata),
        "created_at": iso(job.created_ms),
        "updated_at": iso(job.updated_ms),
    }


def _presentable(repetition: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Addresses may hold secrets: only how many there are is shown."""
    return {**repetition, "notify": len(repetition["notify"])} if repetition else None


def time_or_none(at_ms: int | None) -> str | None:
    return iso(at_ms) if at_ms is not None else None


def _base_seconds(job: Job) -> int | None:
    """The interval as it was asked for; it may be longer now."""
    if job.interval_count is None:
        return None
    return timetable.interval_ms(job.interval_count, job.interval_unit) // 1000
