"""Dispatching: what a service that runs jobs asks and decides, and how the day is filled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from inchworm.app.act.admit import Admission
from inchworm.app.act.deliver import Deliverer
from inchworm.app.machine import is_gone, this_machine
from inchworm.app.read.executions import ExecutionReads
from inchworm.app.read.health import STALE_LOCKS
from inchworm.app.workspace import Workspace
from inchworm.job import Execution, Job
from inchworm.rules.schedule import occurrence, timetable
from inchworm.rules.words.json_form import named
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.store.home.claims import Claims
from inchworm.store.home.services import Service
from inchworm.store.home.slots import Slots

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


@dataclass(frozen=True, slots=True)
class JobMove:
    """A job that is moved to another time."""

    job_id: str
    moved_from: str = field(metadata=named("from"))
    to: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Which jobs a rebalance moves, the first of them, and how evenly jobs are spread before and after, 0 to 1."""

    preview: bool
    moved: int
    score_before: float
    score_after: float
    moves: tuple[JobMove, ...]
    moves_are_cut: bool


_SHOWN = 1000
_AT_ONCE = 500


class Dispatcher:
    """Hands out jobs to those who run them."""

    def __init__(
        self, workspace: Workspace, executions: ExecutionReads, admission: Admission, deliver: Deliverer
    ) -> None:
        self._workspace = workspace
        self.claims = Claims(workspace.home)
        self.slots = Slots(workspace.home)
        self._executions = executions
        self._admission = admission
        self._deliver = deliver

    def claim(self, service_id: str, most: int) -> list[Execution]:
        """Take jobs that are due, as many as this service may run beside those it runs already."""
        mine = sum(1 for one in self._executions.store.running() if one.service_id == service_id)
        return self.claims.claim(service_id, self._workspace.clock.now_ms(), most - mine)

    def give_up(self, execution: Execution, error: str, is_crash: bool = True) -> bool:
        """The process of an execution is gone: the next one goes on with its job, from the same occurrence."""
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            return occurrence.after_crash(job, error, now_ms) if is_crash else occurrence.handed_back(job, now_ms)

        return self.claims.hand_back(execution.execution_id, execution.token, error, decide, now_ms)

    def take_back(self, token: str) -> Execution | None:
        """Take a job away from a holder that stood still for too long."""
        execution = self.claims.held_by(token)
        if execution is not None and self.give_up(execution, "its process stood still for too long"):
            self._executions.tallies.count(STALE_LOCKS)
            return execution
        return None

    def prune(self) -> None:
        """Forget what is too old to be of use."""
        now_ms = self._workspace.clock.now_ms()
        while self._executions.store.prune(now_ms):
            pass
        self._executions.events.prune()
        self._admission.store.prune(now_ms)
        self._deliver.prune()

    # Services

    def enrol(self, service_id: str, values: Settings) -> None:
        """A service is there, and runs jobs."""
        now_ms = self._workspace.clock.now_ms()
        me = Service(service_id, this_machine(), os.getpid(), now_ms, now_ms, 0, True, values.executions, values.poll)
        self._executions.services.add(me)

    def dead_services(self, pulse: Pulse[str], limit: float) -> list[str]:
        """Services that are gone, or were silent for longer than this."""
        services = self._executions.services.all()
        silent = pulse.look(((one.service_id, one.beats) for one in services), self._workspace.clock.monotonic())
        return [
            one.service_id
            for one in services
            if is_gone(one.machine, one.pid) or silent.get(one.service_id, 0.0) > limit
        ]

    def inherit(self, dead: str, heir: str) -> int:
        """The executions of a service that is gone belong to another one now; how many."""
        count = self.claims.adopt(dead, heir)
        self._executions.services.remove(dead)
        return count

    def rebalance(self, is_preview: bool) -> Rebalance:
        """Move jobs out of slots that hold more than their share, or say which would be moved."""
        now_ms, loads = self._workspace.clock.now_ms(), self.slots.loads()
        fair = -(-sum(loads) // timetable.SLOTS)
        crowded = [slot for slot, jobs in enumerate(loads) if jobs > fair]
        shifts = timetable.rebalance(loads, self.slots.waiting(crowded), now_ms)
        if not is_preview:
            shifts = self._moved(shifts, now_ms)
        after = list(loads)
        for one in shifts:
            after[timetable.slot_of(one.from_ms)] -= 1
            after[timetable.slot_of(one.to_ms)] += 1
        return Rebalance(
            preview=is_preview,
            moved=len(shifts),
            score_before=round(timetable.score(loads), 4),
            score_after=round(timetable.score(after), 4),
            moves=tuple(JobMove(one.job_id, iso(one.from_ms), iso(one.to_ms)) for one in shifts[:_SHOWN]),
            moves_are_cut=len(shifts) > _SHOWN,
        )

    def _moved(self, shifts: Sequence[timetable.Shift], now_ms: int) -> list[timetable.Shift]:
        """Move jobs, some hundred at a time: whoever else writes to the home gets a turn in between."""
        parts = (shifts[at : at + _AT_ONCE] for at in range(0, len(shifts), _AT_ONCE))
        return [one for part in parts for one in self.slots.shift(part, now_ms)]
