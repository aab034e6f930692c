"""Health: how the home and its jobs stand, and what needs attention."""

from __future__ import annotations

import contextlib
import platform
import shutil
from typing import Any

from inchworm import __version__
from inchworm.app.read.crawls import Crawls
from inchworm.app.read.executions import ExecutionReads
from inchworm.app.read.jobs import JobReads
from inchworm.app.read.runs import SessionLine
from inchworm.app.workspace import Workspace
from inchworm.job import JobState
from inchworm.model import EndedBy, RunState
from inchworm.rules.schedule import timetable
from inchworm.rules.words.times import iso
from inchworm.store.home.events import Service

_FEW = 8
_LATE_MS = 60_000
_BAD_ENDS = (EndedBy.ERROR, EndedBy.CRASHED)
LOW_SUCCESS = 0.8
LOW_SCORE = 0.7
STALE_LOCKS = "stale_locks_cleared"
_DAY_MS = 86_400_000
_FEW_JOBS = 10


class HomeHealth:
    """How the home stands."""

    def __init__(self, workspace: Workspace, jobs: JobReads, executions: ExecutionReads, crawls: Crawls) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self._executions = executions
        self._crawls = crawls

    # How it goes

    def scheduler(self) -> dict[str, Any]:
        """Jobs, and the executions of the last day, in numbers."""
        now_ms = self._workspace.clock.now_ms()
        figures = self._jobs.store.figures(since_ms=now_ms - _DAY_MS)
        score = round(timetable.score(self._jobs.store.loads()), 4)
        rate = figures["success_rate"]
        return {
            "jobs": self._jobs.store.counts(),
            "executions": {
                "window_hours": 24,
                "total": figures["total"],
                "completed": figures["completed"],
                "failed": figures["failed"],
                "cancelled": figures["cancelled"],
                "running": figures["running"],
                "success_rate": rate,
                "average_duration_ms": figures["average_ms"],
                "items_crawled": figures["pages"],
            },
            "stale_locks_cleared": self._executions.events.tallies().get(STALE_LOCKS, 0),
            "distribution_score": score,
            "advice": _advice(rate, score),
            "collected_at": iso(now_ms),
        }

    def advice(self) -> list[str]:
        """What to look at, though nothing is wrong with the service itself. Names no job."""
        rate = self._jobs.store.figures(since_ms=self._workspace.clock.now_ms() - _DAY_MS)["success_rate"]
        return _advice(rate, timetable.score(self._jobs.store.loads()))

    def overdue(self, seconds: float) -> tuple[int, list[str]]:
        return self._jobs.store.overdue(self._workspace.clock.now_ms() - round(seconds * 1000), _FEW_JOBS)

    # The day

    def distribution(self) -> dict[str, Any]:
        """How jobs are spread over the day."""
        loads = self._jobs.store.loads()
        score = round(timetable.score(loads), 4)
        return {
            "slots": [
                {"slot": slot, "starts_at": f"{slot // 4:02}:{slot % 4 * 15:02}", "jobs": jobs}
                for slot, jobs in enumerate(loads)
            ],
            "slot_minutes": timetable.SLOT_MS // 60_000,
            "total_jobs": sum(loads),
            "fullest": max(loads),
            "distribution_score": score,
            "advice": "Consider a rebalance: POST /api/v1/scheduler/rebalance" if score < LOW_SCORE else None,
        }

    def home(self) -> dict[str, Any]:
        """How the home stands: who serves it, the executions of the last day, room on the disk."""
        figures = self.scheduler()
        rate, score = figures["executions"]["success_rate"], figures["distribution_score"]
        return {
            **figures,
            "services": [_service_json(one) for one in self._executions.events.services()],
            "is_failing": rate is not None and rate < LOW_SUCCESS,
            "is_crowded": score < LOW_SCORE,
            "crawls": len(self._workspace.home.crawls()),
            **self._room(),
            "version": __version__,
            "python": platform.python_version(),
        }

    def _room(self) -> dict[str, Any]:
        """What the disk says, and the size of the one file that all crawls share."""
        disk = shutil.disk_usage(self._workspace.folder)
        size = 0
        for name in ("home.db", "home.db-wal"):
            with contextlib.suppress(OSError):
                size += (self._workspace.folder / name).stat().st_size
        return {
            "folder": str(self._workspace.folder),
            "disk_free": disk.free,
            "disk_total": disk.total,
            "database_bytes": size,
        }

    def overview(self) -> dict[str, Any]:
        """What runs now, what changed lately, what needs attention."""
        lines = sorted(self._crawls.listed(None, len(self._workspace.home.crawls())), key=_activity, reverse=True)
        return {
            "crawls": len(lines),
            "running": [one for one in lines if one["state"] == RunState.IN_PROGRESS],
            "changed": sorted((one["changed"] for one in lines if one["changed"]), key=_when, reverse=True)[:_FEW],
            "attention": [*self._overdue(), *self._failed(), *(found for one in lines for found in _troubles(one))],
            "recent": lines[:_FEW],
        }

    def _overdue(self) -> list[dict[str, Any]]:
        count, _ = self._jobs.store.overdue(self._workspace.clock.now_ms() - _LATE_MS, 1)
        if not count:
            return []
        name = "1 overdue job" if count == 1 else f"{count:,} overdue jobs"
        message = "Nobody has started what is due: no scheduler runs, or all its executions are busy."
        return [{"kind": "jobs_overdue", "name": name, "message": message}]

    def _failed(self) -> list[dict[str, Any]]:
        failed = self._jobs.store.find({"state": JobState.FAILED.value}, None, _FEW)
        return [
            {
                "kind": "job_failed",
                "job_id": told["id"],
                "crawl_id": told["crawl_id"],
                "name": told["name"],
                "message": told["reason"] or "The job failed.",
            }
            for told in map(self._jobs.json, failed)
        ]


def _activity(line: dict[str, Any]) -> str:
    return str(line["run_started_at"] or line["created_at"])


def _when(change: dict[str, Any]) -> str:
    return str(change["at"])


def _troubles(line: dict[str, Any]) -> list[dict[str, Any]]:
    about = {"crawl_id": line["crawl_id"], "name": line["name"], "run": line["run"]}
    found = []
    if line["note"]:
        found.append({**about, "kind": "unreadable", "message": line["note"]})
    if line["alarm"]:
        found.append({**about, "kind": "alarm", "message": line["alarm"]})
    if line["failed"] and line["failed"] > line["pages"] + line["duplicates"]:
        message = f"{line['failed']:,} URLs failed, and {line['pages']:,} pages came."
        found.append({**about, "kind": "failing", "message": message})
    if (session := line["session"]) and line["state"] == RunState.PAUSED and session.ended_by in _BAD_ENDS:
        found.append({**about, "kind": "broken_off", "message": _broken_off(session)})
    if line["down"] and line["state"] in (RunState.IN_PROGRESS, RunState.PAUSED):
        first, others = line["down"][0], len(line["down"]) - 1
        rest = f", and {others:,} more" if others else ""
        message = f"{first['host']}{rest} cannot be reached: {first['message']}. Its URLs wait."
        found.append({**about, "kind": "down", "message": message})
    return found


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
