"""Scheduling: what a service that runs jobs asks and decides, how the day is filled, and whether all is well."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from inchworm.app.admitting import Admitting
from inchworm.app.jobs import Working
from inchworm.app.notifying import Notifying
from inchworm.job import Execution, Job
from inchworm.rules.schedule import occurrence, timetable
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.store.home.events import Service

LOW_SUCCESS = 0.8
LOW_SCORE = 0.7
STALE_LOCKS = "stale_locks_cleared"
_DAY_MS = 86_400_000
_SHOWN = 1000
_FEW = 10
_AT_ONCE = 500

Key = TypeVar("Key")


@dataclass(slots=True)
class Pulse(Generic[Key]):
    """Who stood still, judged by our own clock: others may have another time, or have set theirs."""

    longest_gap: float = float("inf")
    """Who looked longer ago than this stood still itself, and begins to watch anew."""

    _seen: dict[Key, tuple[int, float]] = field(default_factory=dict)
    _looked: float = 0.0

    def look(self, beats: Iterable[tuple[Key, int]], now: float) -> dict[Key, float]:
        """For how long each has not moved, as far as we have watched it."""
        if now - self._looked > self.longest_gap:
            self._seen = {}
        self._looked = now
        seen: dict[Key, tuple[int, float]] = {}
        for key, count in beats:
            before = self._seen.get(key)
            seen[key] = before if before is not None and before[0] == count else (count, now)
        self._seen = seen
        return {key: now - since for key, (_, since) in seen.items()}


class Scheduling(Working, Admitting, Notifying):
    """Verbs of the scheduler."""

    def claim(self, service_id: str, most: int) -> list[Execution]:
        """Take jobs that are due, as many as this service may run beside those it runs already."""
        mine = sum(1 for one in self.jobs.running() if one.service_id == service_id)
        return self.jobs.claim(service_id, self.clock.now_ms(), most - mine)

    def give_up(self, execution: Execution, error: str, is_crash: bool = True) -> bool:
        """The process of an execution is gone: the next one goes on with its job, from the same occurrence."""
        now_ms = self.clock.now_ms()

        def decide(job: Job) -> Job:
            return occurrence.after_crash(job, error, now_ms) if is_crash else occurrence.handed_back(job, now_ms)

        return self.jobs.hand_back(execution.execution_id, execution.token, error, decide, now_ms)

    def take_back(self, token: str) -> Execution | None:
        """Take a job away from a holder that stood still for too long."""
        execution = self.jobs.held_by(token)
        if execution is not None and self.give_up(execution, "its process stood still for too long"):
            self.events.count(STALE_LOCKS)
            return execution
        return None

    def prune(self) -> None:
        """Forget what is too old to be of use."""
        now_ms = self.clock.now_ms()
        while self.jobs.prune(now_ms):
            pass
        self.events.prune()
        self.access.prune(now_ms)
        self.prune_deliveries()

    # Services

    def enrol(self, service_id: str, values: Settings) -> None:
        """A service is there, and runs jobs."""
        now_ms = self.clock.now_ms()
        me = Service(service_id, this_machine(), os.getpid(), now_ms, now_ms, 0, True, values.executions, values.poll)
        self.events.enrol(me)

    def dead_services(self, pulse: Pulse[str], limit: float) -> list[str]:
        """Services that are gone, or were silent for longer than this."""
        services = self.events.services()
        silent = pulse.look(((one.service_id, one.beats) for one in services), self.clock.monotonic())
        return [
            one.service_id
            for one in services
            if is_gone(one.machine, one.pid) or silent.get(one.service_id, 0.0) > limit
        ]

    def inherit(self, dead: str, heir: str) -> int:
        """The executions of a service that is gone belong to another one now; how many."""
        count = self.jobs.adopt(dead, heir)
        self.events.leave(dead)
        return count

    # The day

    def distribution(self) -> dict[str, Any]:
        """How jobs are spread over the day."""
        loads = self.jobs.loads()
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

    def rebalance(self, is_preview: bool) -> dict[str, Any]:
        """Move jobs out of slots that hold more than their share, or say which would be moved."""
        now_ms, loads = self.clock.now_ms(), self.jobs.loads()
        fair = -(-sum(loads) // timetable.SLOTS)
        crowded = [slot for slot, jobs in enumerate(loads) if jobs > fair]
        shifts = timetable.rebalance(loads, self.jobs.waiting(crowded), now_ms)
        if not is_preview:
            shifts = self._moved(shifts, now_ms)
        after = list(loads)
        for one in shifts:
            after[timetable.slot_of(one.from_ms)] -= 1
            after[timetable.slot_of(one.to_ms)] += 1
        return {
            "preview": is_preview,
            "moved": len(shifts),
            "score_before": round(timetable.score(loads), 4),
            "score_after": round(timetable.score(after), 4),
            "moves": [
                {"job_id": one.job_id, "from": iso(one.from_ms), "to": iso(one.to_ms)} for one in shifts[:_SHOWN]
            ],
            "moves_are_cut": len(shifts) > _SHOWN,
        }

    def _moved(self, shifts: Sequence[timetable.Shift], now_ms: int) -> list[timetable.Shift]:
        """Move jobs, some hundred at a time: whoever else writes to the home gets a turn in between."""
        parts = (shifts[at : at + _AT_ONCE] for at in range(0, len(shifts), _AT_ONCE))
        return [one for part in parts for one in self.jobs.shift(part, now_ms)]

    # How it goes

    def scheduler_metrics(self) -> dict[str, Any]:
        """Jobs, and the executions of the last day, in numbers."""
        now_ms = self.clock.now_ms()
        figures = self.jobs.figures(since_ms=now_ms - _DAY_MS)
        score = round(timetable.score(self.jobs.loads()), 4)
        rate = figures["success_rate"]
        return {
            "jobs": self.jobs.counts(),
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
            "stale_locks_cleared": self.events.tallies().get(STALE_LOCKS, 0),
            "distribution_score": score,
            "advice": _advice(rate, score),
            "collected_at": iso(now_ms),
        }

    def advice(self) -> list[str]:
        """What to look at, though nothing is wrong with the service itself. Names no job."""
        rate = self.jobs.figures(since_ms=self.clock.now_ms() - _DAY_MS)["success_rate"]
        return _advice(rate, timetable.score(self.jobs.loads()))

    def overdue(self, seconds: float) -> tuple[int, list[str]]:
        return self.jobs.overdue(self.clock.now_ms() - round(seconds * 1000), _FEW)


def _advice(success_rate: float | None, score: float) -> list[str]:
    said = []
    if success_rate is not None and success_rate < LOW_SUCCESS:
        said.append("Many executions fail: look at the jobs that failed, GET /api/v1/jobs?status=failed")
    if round(score, 4) < LOW_SCORE:
        said.append("Jobs crowd together: POST /api/v1/scheduler/rebalance/preview shows what could be moved")
    return said


def this_machine() -> str:
    """Names the machine as far as process numbers are the same: two containers may share a name, but not these."""
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{platform.node()}/{boot}/{space}"


def is_gone(machine: str, pid: int) -> bool:
    """Whether a process is known to be dead. Of another machine's nobody knows."""
    return machine == this_machine() and pid > 0 and not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
