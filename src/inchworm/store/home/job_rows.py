"""home.db: jobs, executions and slots as rows, inside of an open transaction.

The slot of a job follows from the rest of it, and how many jobs are in each slot is kept, not counted: so jobs are only
written here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

from inchworm.errors import Unknown
from inchworm.job import Execution, ExecutionState, Job, JobRepetition, JobState, Task
from inchworm.model import JsonObject
from inchworm.rules.schedule import occurrence
from inchworm.rules.schedule.timetable import SLOTS
from inchworm.store.database import Database, Row
from inchworm.store.home.events import add_event

Decide = Callable[[Job], Job]
"""What becomes of a job, from how it is now. It may refuse by raising."""

_JOB = tuple(field.name for field in dataclasses.fields(Job))
_EXECUTION = tuple(field.name for field in dataclasses.fields(Execution))
_FLAGS = ("schedule_enabled", "adaptive")

SELECT_JOB = f"SELECT {', '.join(_JOB)} FROM job"
SELECT_EXECUTION = f"SELECT {', '.join(_EXECUTION)} FROM execution"

IS_FREE = "NOT EXISTS (SELECT 1 FROM job r WHERE r.crawl_id = j.crawl_id AND r.lock_token IS NOT NULL)"
"""No other job of the same crawl runs."""


# ---- jobs


def get_job(db: Database, job_id: str) -> Job:
    row = db.execute(f"{SELECT_JOB} WHERE job_id = ?", (job_id,)).fetchone()
    if row is None:
        raise Unknown(f"There is no job {job_id!r}.", "`inchworm jobs list` shows them.")
    return job_of(row)


def add_job(db: Database, job: Job) -> None:
    values = [_stored(name, getattr(job, name)) for name in _JOB]
    db.execute(f"INSERT INTO job ({', '.join(_JOB)}) VALUES ({', '.join('?' * len(_JOB))})", values)
    _count_slots(db, None, job.slot)


def write_job(db: Database, before: Job, after: Job, now_ms: int) -> Job:
    """Store what changed."""
    after = dataclasses.replace(after, slot=occurrence.slot_of(after), updated_ms=now_ms)
    changed = occurrence.differences(before, after)
    columns = ", ".join(f"{name} = ?" for name in changed)
    values = [_stored(name, value) for name, value in changed.items()]
    if changed:
        db.execute(f"UPDATE job SET {columns} WHERE job_id = ?", (*values, before.job_id))
    _count_slots(db, before.slot, after.slot)
    if after.state is not before.state:
        add_job_event(db, after, now_ms)
    return after


def delete_job(db: Database, job: Job) -> None:
    """Remove a job, with its executions and their logs."""
    db.execute(
        "DELETE FROM log_line WHERE execution_id IN (SELECT execution_id FROM execution WHERE job_id = ?)",
        (job.job_id,),
    )
    db.execute("DELETE FROM execution WHERE job_id = ?", (job.job_id,))
    db.execute("DELETE FROM job WHERE job_id = ?", (job.job_id,))
    _count_slots(db, job.slot, None)


def add_job_event(db: Database, job: Job, now_ms: int) -> None:
    data = {"job_id": job.job_id, "crawl_id": job.crawl_id, "state": job.state, "reason": job.reason}
    add_event(db, "job", data, now_ms)


def job_of(row: Row) -> Job:
    values = dict(zip(_JOB, row, strict=True))
    values |= {name: bool(values[name]) for name in _FLAGS}
    values["task"] = Task(**json.loads(values["task"]))
    values["metadata"] = json.loads(values["metadata"])
    if values["repetition"] is not None:
        values["repetition"] = _repetition_of(values["repetition"])
    return Job(**{**values, "state": JobState(values["state"])})


def _stored(name: str, value: object) -> object:
    match value:
        case Task():
            return json.dumps(dataclasses.asdict(value))
        case JobRepetition():
            return json.dumps(_stored_repetition(value))
        case _:
            return json.dumps(value) if name == "metadata" else value


_LISTS = ("notify", "notify_if")


def _stored_repetition(one: JobRepetition) -> JsonObject:
    """A file has always held the opposite of `allow_private`."""
    rest = {name: value for name, value in dataclasses.asdict(one).items() if name != "allow_private"}
    return {**rest, "guarded": not one.allow_private}


def _repetition_of(text: str) -> JobRepetition:
    stored = json.loads(text)
    rest = {name: value for name, value in stored.items() if name not in ("guarded", *_LISTS)}
    notify, notify_if = (tuple(stored.get(name, ())) for name in _LISTS)
    guarded = stored.get("guarded", False)
    return JobRepetition(**rest, notify=notify, allow_private=not guarded, notify_if=notify_if)


# ---- slots


def slot_loads(db: Database) -> list[int]:
    """How many jobs are in each slot of the day."""
    found = dict(db.execute("SELECT slot, jobs FROM slot").fetchall())
    return [found.get(slot, 0) for slot in range(SLOTS)]


def _count_slots(db: Database, before: int | None, after: int | None) -> None:
    if before == after:
        return
    for slot, by in ((before, -1), (after, 1)):
        if slot is not None:
            db.execute(
                "INSERT INTO slot (slot, jobs) VALUES (?, ?) ON CONFLICT (slot) DO UPDATE SET jobs = slot.jobs + ?",
                (slot, max(by, 0), by),
            )


# ---- executions


def execution_of(row: Row) -> Execution:
    values = dict(zip(_EXECUTION, row, strict=True))
    return Execution(**{**values, "state": ExecutionState(values["state"]), "progress": json.loads(values["progress"])})
