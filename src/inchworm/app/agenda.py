"""The agenda: jobs as people look at them, what is late, the end of a log, and how the home stands."""

from __future__ import annotations

import contextlib
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inchworm import __version__
from inchworm.app.desk import presentable
from inchworm.app.scheduling import LOW_SCORE, LOW_SUCCESS, Scheduling
from inchworm.errors import Unknown
from inchworm.job import Execution, Job
from inchworm.rules.schedule import states, timetable
from inchworm.rules.words.times import iso
from inchworm.store.home.events import Line, Service
from inchworm.store.home.jobs import place_of

_DEFAULT_POLL = 1.0
_MOST_FOLLOWERS = 100
_MOST_CHARACTERS = 120_000
"""Of a log that is shown on a page; lines may be long."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is needed to say of many jobs whether they are late."""

    now_ms: int
    late_ms: int
    running: Mapping[str, Execution]
    """By crawl."""


class Agenda(Scheduling):
    """Verbs for whoever looks after jobs."""

    def agenda(
        self, where: Mapping[str, Any], after: tuple[int, str] | None = None, limit: int = 50, by_next: bool = False
    ) -> list[dict[str, Any]]:
        """Jobs in the order in which they were made, or in that of their next runs; each with its place in this list,
        what holds it up and what can be done with it."""
        moment = self._moment()
        found = self.jobs.find(where, after, limit, by_next)
        return [{**self._agenda_line(job, moment), "place": place_of(job, by_next)} for job in found]

    def job_whole(self, job_id: str) -> dict[str, Any]:
        """One job, with the job it runs after and those that run after it."""
        job = self.jobs.get(job_id)
        followers = self.jobs.find({"after_job_id": job_id}, None, _MOST_FOLLOWERS)
        return {
            **self._agenda_line(job, self._moment()),
            "before": self._job_named(job.after_job_id) if job.after_job_id else None,
            "followers": [self.job_json(one) for one in followers],
        }

    def log_tail(self, execution_id: int, limit: int = 500) -> list[Line]:
        """The end of an execution's log: so many lines, fewer when they are long."""
        lines, room = self.events.last_lines(execution_id, limit), _MOST_CHARACTERS
        for index in range(len(lines) - 1, -1, -1):
            room -= len(lines[index].text)
            if room < 0:
                return lines[index + 1 :]
        return lines

    def rebalance_named(self, most: int) -> dict[str, Any]:
        """What a rebalance would move, the first of them with the names of their crawls."""
        found = self.rebalance(is_preview=True)
        moves = ({**one, "job": self._job_named(one["job_id"])} for one in found["moves"][:most])
        return {**found, "moves": [one for one in moves if one["job"] is not None]}

    def home_told(self) -> dict[str, Any]:
        """How the home stands: who serves it, the executions of the last day, room on the disk."""
        figures = self.scheduler_metrics()
        rate, score = figures["executions"]["success_rate"], figures["distribution_score"]
        return {
            **figures,
            "services": [_service_json(one) for one in self.events.services()],
            "is_failing": rate is not None and rate < LOW_SUCCESS,
            "is_crowded": score < LOW_SCORE,
            "crawls": len(self.home.crawls()),
            **self._room(),
            "version": __version__,
            "python": platform.python_version(),
        }

    def _room(self) -> dict[str, Any]:
        """What the disk says, and the size of the one file that all crawls share."""
        disk = shutil.disk_usage(self.folder)
        size = 0
        for name in ("home.db", "home.db-wal"):
            with contextlib.suppress(OSError):
                size += (self.folder / name).stat().st_size
        return {"folder": str(self.folder), "disk_free": disk.free, "disk_total": disk.total, "database_bytes": size}

    def _moment(self) -> _Moment:
        now_ms = self.clock.now_ms()
        poll_s = max((one.poll_s for one in self.events.services()), default=_DEFAULT_POLL)
        running = {one.crawl_id: one for one in self.jobs.running()}
        return _Moment(now_ms, now_ms - round(2000 * poll_s), running)

    def _agenda_line(self, job: Job, moment: _Moment) -> dict[str, Any]:
        told = self.job_json(job)
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

    def _job_named(self, job_id: str) -> dict[str, Any] | None:
        try:
            return self.job(job_id)
        except Unknown:
            return None


def _base_seconds(job: Job) -> int | None:
    """The interval as it was asked for; it may be longer now."""
    if job.interval_count is None:
        return None
    return timetable.interval_ms(job.interval_count, job.interval_unit) // 1000


def _service_json(one: Service) -> dict[str, Any]:
    return {
        "id": one.service_id,
        "machine": one.machine.split("/")[0],
        "pid": one.pid,
        "started_at": iso(one.started_ms),
        "seen_at": iso(one.seen_ms),
        "executions": one.executions,
        "poll_seconds": one.poll_s,
        "scheduler": one.scheduler,
    }
