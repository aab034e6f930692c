"""home.db: how jobs are spread over the day, and moving them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import starmap

from inchworm.rules.schedule.timetable import UNITS, Shift, WaitingJob
from inchworm.store.database import Database
from inchworm.store.home.home import Home
from inchworm.store.home.job_rows import SELECT_JOB, job_of, slot_loads, write_job

_CASES = " ".join(f"WHEN '{unit}' THEN {ms}" for unit, ms in UNITS.items())
_EVERY_MS = f"interval_count * CASE interval_unit {_CASES} END"
_SELECT_WAITING = f"SELECT job_id, due_ms, {_EVERY_MS}, moved_ms FROM job WHERE slot = ? ORDER BY due_ms DESC"


class Slots:
    """The slots of the day, and the jobs of one home that wait in them."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def loads(self) -> list[int]:
        """How many jobs are in each slot of the day."""
        with self._home.reading() as db:
            return slot_loads(db)

    def waiting(self, slots: Iterable[int]) -> Iterator[WaitingJob]:
        """The jobs of these slots, those that run last first: they have the longest time to be moved."""
        for slot in slots:
            with self._home.reading() as db:
                rows = db.execute(_SELECT_WAITING, (slot,)).fetchall()
            yield from starmap(WaitingJob, rows)

    def shift(self, shifts: Iterable[Shift], now_ms: int) -> list[Shift]:
        """Move jobs to other times, all at once, but for those that changed meanwhile; which ones were moved."""
        with self._home.writing() as db:
            return [one for one in shifts if _shift(db, one, now_ms)]


def _shift(db: Database, wanted: Shift, now_ms: int) -> bool:
    row = db.execute(f"{SELECT_JOB} WHERE job_id = ?", (wanted.job_id,)).fetchone()
    job = job_of(row) if row is not None else None
    if job is None or job.due_ms != wanted.from_ms or job.lock_token is not None or job.retries:
        return False
    moved = dataclasses.replace(job, due_ms=wanted.to_ms, occurrence_ms=wanted.to_ms, moved_ms=now_ms)
    write_job(db, job, moved, now_ms)
    return True
