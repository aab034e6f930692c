"""When jobs run: intervals that adapt, tries that are put off, and the slots of the day they are spread over.

The day has 96 slots of a quarter of an hour (in UTC). A new job starts in the slot with the fewest jobs that its
interval reaches; from then on it keeps its rhythm, so the load that was spread out stays spread out. A job's slot is
that of its next run, or, while it runs, of this one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

SLOTS = 96
SLOT_MS = 15 * 60_000
DAY_MS = SLOTS * SLOT_MS
UNITS: Mapping[str, int] = {"minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
LONGEST_BACKOFF_MS = 3_600_000
_MOST_DOUBLINGS = 32
_SETTLED_MS = 30 * 60_000
"""A job that is due sooner than this is not moved."""

_REST_MS = 3_600_000
"""Nor is one that was moved less than this ago."""


def interval_ms(count: int, unit: str) -> int:
    return count * UNITS[unit]


def backoff_ms(base_seconds: int, attempt: int) -> int:
    """How long to wait after the attempt that failed: the base, doubled each time, at most an hour."""
    doubled: int = base_seconds * 1000 * 2 ** min(max(0, attempt - 1), _MOST_DOUBLINGS)
    return min(doubled, LONGEST_BACKOFF_MS)


def adapted_ms(baseline_ms: int, unchanged: int) -> int:
    """The interval of a job whose seeds were found unchanged so many times in a row: doubled each time, up to a day."""
    doubled: int = baseline_ms * 2 ** min(unchanged, _MOST_DOUBLINGS)
    return max(baseline_ms, min(doubled, DAY_MS))


def next_ms(planned_ms: int, every_ms: int, now_ms: int) -> int:
    """The next time in the rhythm of a job that is later than now. Times that were missed are not made up for."""
    missed = max(0, (now_ms - planned_ms) // every_ms)
    return planned_ms + (missed + 1) * every_ms


def forward_ms(planned_ms: int, every_ms: int, now_ms: int) -> int:
    """A time that is planned, brought forward in its rhythm until it is no more than an interval from now."""
    return planned_ms - max(0, (planned_ms - now_ms - 1) // every_ms) * every_ms


# Slots


def slot_of(at_ms: int) -> int:
    return at_ms // SLOT_MS % SLOTS


def first_ms(loads: Sequence[int], every_ms: int, now_ms: int, rested_ms: int = 0) -> int:
    """When a new job starts: in the least loaded slot within its interval. Of equals in the one whose later times, in
    this rhythm and within a day, are the least loaded; of those in the earliest. One that has run before starts when it
    has rested, which takes an interval at most."""
    from_ms = min(max(now_ms, rested_ms), now_ms + every_ms)
    rhythm = max(1, min(every_ms // SLOT_MS, SLOTS))
    reach = max(1, min((now_ms + every_ms - from_ms) // SLOT_MS, SLOTS))
    first = from_ms // SLOT_MS

    def crowd(ahead: int) -> tuple[int, int]:
        at, *later = (loads[(first + ahead + step) % SLOTS] for step in range(0, SLOTS, rhythm))
        return at, sum(later)

    # The first of several that are the least.
    best = min(range(reach), key=crowd)
    return max(from_ms, (first + best) * SLOT_MS)


def score(loads: Sequence[int]) -> float:
    """How evenly jobs are spread, 0 (all in one slot) to 1 (as evenly as can be): the share of those that could be in
    a better slot and are not."""
    total = sum(loads)
    fair = math.ceil(total / SLOTS)
    if total <= fair:
        return 1.0
    return 1 - sum(max(0, load - fair) for load in loads) / (total - fair)


class WaitingJob(NamedTuple):
    """A job that waits for its time."""

    job_id: str
    due_ms: int
    every_ms: int
    moved_ms: int | None


class Shift(NamedTuple):
    """A job to be moved from one time to another."""

    job_id: str
    from_ms: int
    to_ms: int


def may_move(job: WaitingJob, now_ms: int) -> bool:
    """Whether a job may be moved: not when it is about to run, and not twice within the hour."""
    rested = job.moved_ms is None or now_ms - job.moved_ms >= _REST_MS
    return rested and job.due_ms - now_ms >= _SETTLED_MS


def rebalance(loads: Sequence[int], jobs: Iterable[WaitingJob], now_ms: int) -> list[Shift]:
    """Which jobs to move where, so that no slot holds more than its share.

    A job stays within an interval of now, so that it never misses a run.
    """
    after, fair = list(loads), math.ceil(sum(loads) / SLOTS)
    rooms: dict[int, _Room] = {}
    shifts: list[Shift] = []
    for job in jobs:
        _, due_ms, every_ms, _ = job
        slot = due_ms // SLOT_MS % SLOTS
        if after[slot] <= fair or not may_move(job, now_ms):
            continue
        reach = max(1, min((every_ms - _SETTLED_MS) // SLOT_MS, SLOTS))
        if reach not in rooms:
            rooms[reach] = _Room(after, reach, now_ms + _SETTLED_MS)
        target, to_ms = rooms[reach].emptiest()
        if after[target] < fair and to_ms <= now_ms + every_ms:
            after[slot] -= 1
            after[target] += 1
            shifts.append(Shift(job.job_id, due_ms, to_ms))
    return shifts


class _Room:
    """The next so many slots, the emptiest first. `after`: how many jobs each slot of the day has, which goes on
    changing."""

    def __init__(self, after: Sequence[int], reach: int, from_ms: int) -> None:
        self._after = after
        first = from_ms // SLOT_MS
        times = [max(from_ms, (first + ahead) * SLOT_MS) for ahead in range(reach)]
        self._heap = [(after[slot_of(to_ms)], to_ms, slot_of(to_ms)) for to_ms in times]
        heapq.heapify(self._heap)

    def emptiest(self) -> tuple[int, int]:
        """The least loaded slot, of equals the earliest, and when a job would run there. What came into a slot
        meanwhile is noticed when it comes up."""
        while True:
            load, to_ms, slot = self._heap[0]
            if load >= self._after[slot]:
                return slot, to_ms
            heapq.heapreplace(self._heap, (self._after[slot], to_ms, slot))
