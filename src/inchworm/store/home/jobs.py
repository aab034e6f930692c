"""home.db: jobs, who runs them, and their executions.

A job that runs is locked by a token. Only its holder may write about it, so whoever was stopped, lost its job and woke up
finds its writes refused. The holder shows that it lives by counting `beats`; whoever watches judges by its own clock.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from inchworm.errors import Lost, NotNow, Unknown
from inchworm.job import Execution, ExecutionState, Job, JobFilter, JobRepetition, JobState, Task
from inchworm.model import JsonObject
from inchworm.rules.schedule import occurrence, states
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.states import Move
from inchworm.rules.schedule.timetable import SLOTS, UNITS, Shift, WaitingJob
from inchworm.store.database import Database
from inchworm.store.home.events import tell
from inchworm.store.home.home import Home

NEVER_MS = 2**53 - 1
"""Later than any time: jobs without a next run stand before it, the older the nearer."""

KEEP_EXECUTIONS = 100
KEEP_MS = 30 * 86_400_000
_FLAGS = ("schedule_enabled", "adaptive")
_JOB = tuple(field.name for field in dataclasses.fields(Job))
_EXECUTION = tuple(field.name for field in dataclasses.fields(Execution))
_SELECT = f"SELECT {', '.join(_JOB)} FROM job"
_IS_FREE = "NOT EXISTS (SELECT 1 FROM job r WHERE r.crawl_id = j.crawl_id AND r.lock_token IS NOT NULL)"
"""No other job of the same crawl runs."""

_SELECT_EXECUTION = f"SELECT {', '.join(_EXECUTION)} FROM execution"
_CASES = " ".join(f"WHEN '{unit}' THEN {ms}" for unit, ms in UNITS.items())
_EVERY_MS = f"interval_count * CASE interval_unit {_CASES} END"
_SELECT_WAITING = f"SELECT job_id, due_ms, {_EVERY_MS}, moved_ms FROM job WHERE slot = ? ORDER BY due_ms DESC"


class Lock(NamedTuple):
    """Who holds a job, and how often it has shown that it lives."""

    job_id: str
    token: str
    beats: int


Decide = Callable[[Job], Job]
EVERY = JobFilter()
_MEANT = tuple(field.name for field in dataclasses.fields(JobFilter))


def place_of(job: Job, by_next: bool) -> tuple[int, str]:
    """Where a job stands in a list of them."""
    if not by_next:
        return job.created_ms, job.job_id
    return NEVER_MS - job.created_ms if job.due_ms is None else job.due_ms, job.job_id


class Jobs:
    """The jobs of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    # Jobs

    def add(self, job: Job, has_crawl: bool = False) -> Job:
        """Put a job in, placed in the day among the others. `has_crawl`: not if its crawl was deleted meanwhile."""
        with self._home.writing() as db:
            known = "SELECT 1 FROM crawl WHERE crawl_id = ?"
            if has_crawl and db.execute(known, (job.crawl_id,)).fetchone() is None:
                raise Unknown("The crawl of this job was deleted meanwhile.", "Send it again.")
            placed = occurrence.placed(job, _loads(db), job.created_ms)
            placed = dataclasses.replace(placed, slot=occurrence.slot_of(placed))
            _insert(db, placed)
            _count_slots(db, None, placed.slot)
            _tell_job(db, placed, placed.created_ms)
        return placed

    def get(self, job_id: str) -> Job:
        with self._home.reading() as db:
            return _get(db, job_id)

    def find(self, meant: JobFilter, after: tuple[int, str] | None, limit: int, by_next: bool = False) -> list[Job]:
        """Jobs in the order in which they were made; or in that of their next runs, those that have none behind the
        others, the newest first. `after`: the place of the last one seen."""
        key = f"COALESCE(due_ms, {NEVER_MS} - created_ms)" if by_next else "created_ms"
        where = {name: value for name in _MEANT if (value := getattr(meant, name)) is not None}
        conditions = [f"{name} = ?" for name in where]
        values = list(where.values())
        if after is not None:
            conditions.append(f"({key}, job_id) > (?, ?)")
            values += after
        clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._home.reading() as db:
            rows = db.execute(f"{_SELECT}{clause} ORDER BY {key}, job_id LIMIT ?", (*values, limit)).fetchall()
        return [_job(row) for row in rows]

    def newest(self, crawl_id: str, limit: int) -> list[Job]:
        """The jobs of a crawl that were made last, newest first."""
        query = f"{_SELECT} WHERE crawl_id = ? ORDER BY created_ms DESC, job_id DESC LIMIT ?"
        with self._home.reading() as db:
            return [_job(row) for row in db.execute(query, (crawl_id, limit)).fetchall()]

    def beginning_with(self, text: str) -> list[str]:
        """The ids that begin like this; two are enough to know that there are several."""
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT job_id FROM job WHERE job_id >= ? AND job_id < ? LIMIT 2", (text, text + "\uffff")
            ).fetchall()
        return [job_id for (job_id,) in rows]

    def change(self, job_id: str, decide: Decide, now_ms: int) -> Job:
        """Change a job as `decide` says, which sees it as it is now. It may refuse by raising."""
        with self._home.writing() as db:
            before = _get(db, job_id)
            return _write(db, before, decide(before), now_ms)

    def place(self, job_id: str, decide: Decide, now_ms: int) -> Job:
        """The same, and the job gets a new place in the day."""
        with self._home.writing() as db:
            before = _get(db, job_id)
            wanted = decide(before)
            if before.lock_token is not None or wanted.state not in states.CLAIMABLE:
                return _write(db, before, wanted, now_ms)
            others = _loads(db)
            if before.slot is not None:
                others[before.slot] -= 1
            return _write(db, before, occurrence.placed(wanted, others, now_ms), now_ms)

    def delete(self, job_id: str) -> None:
        """Remove a job with its executions and their logs. What it crawled stays."""
        with self._home.writing() as db:
            job = _get(db, job_id)
            if job.lock_token is not None:
                raise NotNow("This job is running.", "Cancel it first, and delete it when its execution has ended.")
            if followers := db.execute("SELECT job_id FROM job WHERE after_job_id = ? LIMIT 1", (job_id,)).fetchone():
                raise NotNow(f"The job {followers[0]} runs after this one.", "Delete or change that one first.")
            _delete(db, job)

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        with self._home.reading() as db:
            found = dict(db.execute("SELECT state, COUNT(*) FROM job GROUP BY state").fetchall())
        return {state.value: found.get(state.value, 0) for state in JobState}

    def overdue(self, before_ms: int, limit: int = 10) -> tuple[int, list[str]]:
        """How many jobs should have been started before this, and the first of them."""
        where = f"FROM job j WHERE due_ms < ? AND lock_token IS NULL AND {_IS_FREE}"
        with self._home.reading() as db:
            count = db.execute(f"SELECT COUNT(*) {where}", (before_ms,)).fetchone()[0]
            first = db.execute(f"SELECT job_id {where} ORDER BY due_ms LIMIT ?", (before_ms, limit)).fetchall()
        return count, [job_id for (job_id,) in first]

    # Slots

    def loads(self) -> list[int]:
        with self._home.reading() as db:
            return _loads(db)

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

    # Running

    def claim(self, service_id: str, now_ms: int, limit: int) -> list[Execution]:
        """Take jobs that are due, each with a new execution. A crawl has one at a time."""
        if limit < 1:
            return []
        with self._home.writing() as db:
            due = db.execute(
                f"{_SELECT} j WHERE due_ms <= ? AND lock_token IS NULL AND /*sqlite +*/state = ANY (?) AND {_IS_FREE}"
                " ORDER BY due_ms LIMIT ?",
                (now_ms, list(states.CLAIMABLE), 4 * limit),
            ).fetchall()
            taken: dict[str, Job] = {}
            for job in map(_job, due):
                if len(taken) < limit:
                    taken.setdefault(job.crawl_id, job)
            return [_take(db, job, service_id, now_ms) for job in taken.values()]

    def begin(self, execution_id: int, token: str, machine: str, pid: int) -> tuple[Execution, Job]:
        """The process that carries an execution out has started."""
        with self._home.writing() as db:
            execution = _held(db, execution_id, token)
            db.execute("UPDATE execution SET machine = ?, pid = ? WHERE execution_id = ?", (machine, pid, execution_id))
            return execution, _get(db, execution.job_id)

    def beat(self, execution_id: int, token: str) -> JobState:
        """Show that the execution lives; how its job stands now."""
        with self._home.writing() as db:
            job_id = _held(db, execution_id, token).job_id
            db.execute("UPDATE job SET beats = beats + 1 WHERE job_id = ?", (job_id,))
            return _get(db, job_id).state

    def state_of(self, job_id: str) -> JobState:
        with self._home.reading() as db:
            return _get(db, job_id).state

    def report(self, execution_id: int, token: str, **values: Any) -> None:
        """Note how far an execution is: `run`, `session`, `pages`, `progress`."""
        stored = {name: json.dumps(value) if name == "progress" else value for name, value in values.items()}
        with self._home.writing() as db:
            _held(db, execution_id, token)
            columns = ", ".join(f"{name} = ?" for name in stored)
            db.execute(f"UPDATE execution SET {columns} WHERE execution_id = ?", (*stored.values(), execution_id))

    def finish(self, execution_id: int, token: str, ended: Ended, decide: Decide, now_ms: int) -> Job:
        """An execution is over: its result, what its job does next, and the jobs that run after it, all at once."""
        with self._home.writing() as db:
            execution = _held(db, execution_id, token)
            job = _get(db, execution.job_id)
            if job.state is JobState.CANCELLED:
                state, after = ExecutionState.CANCELLED, job
            else:
                state = ExecutionState.FAILED if ended.error else ExecutionState.COMPLETED
                after = decide(job)
            _end(db, execution, state, ended, now_ms)
            after = _paused_if_disabled(db, after)
            if state is ExecutionState.COMPLETED and after.due_ms is None and _is_behind(db, after, execution):
                after = dataclasses.replace(after, due_ms=now_ms, occurrence_ms=now_ms)
            released = _write(db, job, dataclasses.replace(after, lock_token=None), now_ms)
            if state is ExecutionState.COMPLETED:
                _start_followers(db, job.job_id, now_ms)
            return released

    def hand_back(self, execution_id: int, token: str, error: str, decide: Decide, now_ms: int) -> bool:
        """Take an execution away from a holder that is gone; False when it was not its any more."""
        try:
            self.finish(execution_id, token, Ended(error=error, ended_by="crashed"), decide, now_ms)
        except Lost:
            return False
        return True

    def locks(self) -> list[Lock]:
        with self._home.reading() as db:
            rows = db.execute("SELECT job_id, lock_token, beats FROM job WHERE lock_token IS NOT NULL").fetchall()
        return [Lock(*row) for row in rows]

    def held_by(self, token: str) -> Execution | None:
        """The execution that runs under a token."""
        with self._home.reading() as db:
            row = db.execute(f"{_SELECT_EXECUTION} WHERE token = ? AND state = 'running'", (token,)).fetchone()
        return _execution(row) if row else None

    def running(self) -> list[Execution]:
        with self._home.reading() as db:
            rows = db.execute(
                f"{_SELECT_EXECUTION} WHERE state = 'running' ORDER BY /*sqlite +*/execution_id"
            ).fetchall()
        return [_execution(row) for row in rows]

    def adopt(self, from_service: str, to_service: str) -> int:
        """Executions of a service that is gone belong to another one now; how many."""
        with self._home.writing() as db:
            cursor = db.execute(
                "UPDATE execution SET service_id = ? WHERE service_id = ? AND state = 'running'",
                (to_service, from_service),
            )
            return cursor.rowcount

    # Executions

    def execution(self, execution_id: int) -> Execution:
        with self._home.reading() as db:
            row = db.execute(f"{_SELECT_EXECUTION} WHERE execution_id = ?", (execution_id,)).fetchone()
        if row is None:
            raise Unknown(f"There is no execution {execution_id}.", "`inchworm jobs executions` lists those of a job.")
        return _execution(row)

    def executions(self, job_id: str, before: int | None, limit: int) -> list[Execution]:
        """The executions of a job, newest first; `before`: the number of the last one seen."""
        with self._home.reading() as db:
            _get(db, job_id)
            rows = db.execute(
                f"{_SELECT_EXECUTION} WHERE job_id = ? AND number < ? ORDER BY number DESC LIMIT ?",
                (job_id, before if before is not None else 1 << 62, limit),
            ).fetchall()
        return [_execution(row) for row in rows]

    def figures(self, job_id: str | None = None, since_ms: int = 0) -> dict[str, Any]:
        """Executions that began since then in numbers, of one job or of all."""
        where, values = ("job_id = ? AND ", [job_id]) if job_id else ("", [])
        query = (
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 'completed'), COUNT(*) FILTER (WHERE state = 'failed'),"
            " COUNT(*) FILTER (WHERE state = 'cancelled'), COUNT(*) FILTER (WHERE state = 'running'), AVG(CASE WHEN state = 'completed' THEN ended_ms - started_ms END), SUM(pages),"
            " MAX(CASE WHEN state = 'completed' THEN ended_ms END), MAX(CASE WHEN state = 'failed' THEN ended_ms END),"
            f" SUM(cpu_ms), MAX(memory_kb) FROM execution WHERE {where}started_ms >= ?"
        )
        with self._home.reading() as db:
            row = db.execute(query, (*values, since_ms)).fetchone()
        total, completed, failed, cancelled, running = (value or 0 for value in row[:5])
        return {
            "total": total,
            "completed": completed,
            "failed": failed,
            "cancelled": cancelled,
            "running": running,
            "success_rate": round(completed / (completed + failed), 4) if completed + failed else None,
            "average_ms": round(row[5]) if row[5] is not None else None,
            "pages": row[6] or 0,
            "last_success_ms": row[7],
            "last_failure_ms": row[8],
            "cpu_ms": row[9] or 0,
            "memory_peak_kb": row[10] or 0,
        }

    def prune(self, now_ms: int) -> int:
        """Forget executions beyond the last hundred of a job and those older than a month, with their logs; how many."""
        old = "SELECT execution_id FROM execution WHERE ended_ms < ? LIMIT 1000"
        surplus = (
            "SELECT e.execution_id FROM job j /*sqlite CROSS*/ JOIN execution e ON e.job_id = j.job_id AND e.number <= j.executions - ?"
            " WHERE j.executions > ? AND e.state <> 'running' LIMIT 1000"
        )
        with self._home.writing() as db:
            found = db.execute(old, (now_ms - KEEP_MS,)).fetchall()
            found += db.execute(surplus, (KEEP_EXECUTIONS, KEEP_EXECUTIONS)).fetchall()
            gone = {one for (one,) in found}
            db.executemany("DELETE FROM log_line WHERE execution_id = ?", [(one,) for one in gone])
            db.executemany("DELETE FROM execution WHERE execution_id = ?", [(one,) for one in gone])
        return len(gone)


def _shift(db: Database, wanted: Shift, now_ms: int) -> bool:
    row = db.execute(f"{_SELECT} WHERE job_id = ?", (wanted.job_id,)).fetchone()
    job = _job(row) if row is not None else None
    if job is None or job.due_ms != wanted.from_ms or job.lock_token is not None or job.retries:
        return False
    moved = dataclasses.replace(job, due_ms=wanted.to_ms, occurrence_ms=wanted.to_ms, moved_ms=now_ms)
    _write(db, job, moved, now_ms)
    return True


def _take(db: Database, job: Job, service_id: str, now_ms: int) -> Execution:
    token, planned = uuid.uuid4().hex, job.occurrence_ms if job.occurrence_ms is not None else now_ms
    state = states.after(Move.PLACE, job.state) if job.state is JobState.PENDING else job.state
    number = job.executions + 1
    locked = dataclasses.replace(
        job,
        state=states.after(Move.CLAIM, state),
        lock_token=token,
        beats=0,
        executions=number,
        occurrence_ms=planned,
        last_ms=now_ms,
    )
    _write(db, job, locked, now_ms)
    last = "SELECT COALESCE(MAX(attempt), 0) FROM execution WHERE job_id = ? AND occurrence_ms = ?"
    attempt = db.execute(last, (job.job_id, planned)).fetchone()[0] + 1
    execution_id = db.insert(
        "INSERT INTO execution (job_id, crawl_id, number, occurrence_ms, attempt, state, token, service_id, started_ms)"
        " VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?) RETURNING execution_id",
        (job.job_id, job.crawl_id, number, planned, attempt, token, service_id, now_ms),
    )
    row = db.execute(f"{_SELECT_EXECUTION} WHERE execution_id = ?", (execution_id,)).fetchone()
    return _execution(row)


def _held(db: Database, execution_id: int, token: str) -> Execution:
    """An execution, for whoever still holds its job."""
    row = db.execute(
        f"{_SELECT_EXECUTION} e WHERE execution_id = ? AND token = ? AND state = 'running'"
        " AND EXISTS (SELECT 1 FROM job j WHERE j.job_id = e.job_id AND j.lock_token = e.token)",
        (execution_id, token),
    ).fetchone()
    if row is None:
        raise Lost(
            f"Execution {execution_id} was taken away from this process.",
            "It stood still for too long, and another one goes on with its job.",
        )
    return _execution(row)


def _end(db: Database, execution: Execution, state: ExecutionState, ended: Ended, now_ms: int) -> None:
    db.execute(
        "UPDATE execution SET state = ?, ended_ms = ?, ended_by = ?, pages = GREATEST(pages, ?), indexed = ?, error = ?,"
        " trace = ?, cpu_ms = ?, memory_kb = ? WHERE execution_id = ?",
        (
            state,
            now_ms,
            ended.ended_by,
            ended.pages,
            ended.indexed,
            ended.error,
            ended.trace,
            ended.cpu_ms,
            ended.memory_kb,
            execution.execution_id,
        ),
    )
    data = {"job_id": execution.job_id, "crawl_id": execution.crawl_id, "execution_id": execution.execution_id}
    tell(db, "execution_ended", {**data, "state": state, "ended_by": ended.ended_by, "error": ended.error}, now_ms)


def _start_followers(db: Database, job_id: str, now_ms: int) -> None:
    """Jobs that run after this one are due now."""
    rows = db.execute(f"{_SELECT} WHERE after_job_id = ? AND state = 'scheduled'", (job_id,)).fetchall()
    for follower in map(_job, rows):
        # One that is due already will run, and that is after this job too.
        if follower.due_ms is None:
            _write(db, follower, dataclasses.replace(follower, due_ms=now_ms, occurrence_ms=now_ms), now_ms)


def _paused_if_disabled(db: Database, job: Job) -> Job:
    """A job whose crawl was disabled while it ran does not run again."""
    if job.state is not JobState.SCHEDULED or not occurrence.recurs(job):
        return job
    row = db.execute("SELECT enabled FROM crawl WHERE crawl_id = ?", (job.crawl_id,)).fetchone()
    if row is None or row[0]:
        return job
    return dataclasses.replace(job, state=JobState.PAUSED, due_ms=None, reason="source_disabled")


def _is_behind(db: Database, job: Job, execution: Execution) -> bool:
    """Whether the job that this one follows has completed once more while it ran."""
    query = "SELECT 1 FROM execution WHERE job_id = ? AND state = 'completed' AND ended_ms > ? LIMIT 1"
    return db.execute(query, (job.after_job_id, execution.started_ms)).fetchone() is not None


def _write(db: Database, before: Job, after: Job, now_ms: int) -> Job:
    """Store what changed. The slot follows from the rest, and the counts per slot follow from that."""
    after = dataclasses.replace(after, slot=occurrence.slot_of(after), updated_ms=now_ms)
    changed = occurrence.differences(before, after)
    columns = ", ".join(f"{name} = ?" for name in changed)
    values = [_stored(name, value) for name, value in changed.items()]
    if changed:
        db.execute(f"UPDATE job SET {columns} WHERE job_id = ?", (*values, before.job_id))
    _count_slots(db, before.slot, after.slot)
    if after.state is not before.state:
        _tell_job(db, after, now_ms)
    return after


def _insert(db: Database, job: Job) -> None:
    values = [_stored(name, getattr(job, name)) for name in _JOB]
    db.execute(f"INSERT INTO job ({', '.join(_JOB)}) VALUES ({', '.join('?' * len(_JOB))})", values)


def _delete(db: Database, job: Job) -> None:
    db.execute(
        "DELETE FROM log_line WHERE execution_id IN (SELECT execution_id FROM execution WHERE job_id = ?)",
        (job.job_id,),
    )
    db.execute("DELETE FROM execution WHERE job_id = ?", (job.job_id,))
    db.execute("DELETE FROM job WHERE job_id = ?", (job.job_id,))
    _count_slots(db, job.slot, None)


def _count_slots(db: Database, before: int | None, after: int | None) -> None:
    if before == after:
        return
    for slot, by in ((before, -1), (after, 1)):
        if slot is not None:
            db.execute(
                "INSERT INTO slot (slot, jobs) VALUES (?, ?) ON CONFLICT (slot) DO UPDATE SET jobs = slot.jobs + ?",
                (slot, max(by, 0), by),
            )


def _loads(db: Database) -> list[int]:
    found = dict(db.execute("SELECT slot, jobs FROM slot").fetchall())
    return [found.get(slot, 0) for slot in range(SLOTS)]


def _tell_job(db: Database, job: Job, now_ms: int) -> None:
    data = {"job_id": job.job_id, "crawl_id": job.crawl_id, "state": job.state, "reason": job.reason}
    tell(db, "job", data, now_ms)


def _get(db: Database, job_id: str) -> Job:
    row = db.execute(f"{_SELECT} WHERE job_id = ?", (job_id,)).fetchone()
    if row is None:
        raise Unknown(f"There is no job {job_id!r}.", "`inchworm jobs list` shows them.")
    return _job(row)


def _stored(name: str, value: object) -> object:
    match value:
        case Task():
            return json.dumps(dataclasses.asdict(value))
        case JobRepetition():
            return json.dumps(_guarded(value))
        case _:
            return json.dumps(value) if name == "metadata" else value


def _guarded(one: JobRepetition) -> JsonObject:
    """A file has always held the opposite of `allow_private`."""
    rest = {name: value for name, value in dataclasses.asdict(one).items() if name != "allow_private"}
    return {**rest, "guarded": not one.allow_private}


def _repetition(text: str) -> JobRepetition:
    stored = json.loads(text)
    rest = {name: value for name, value in stored.items() if name not in ("guarded", "notify")}
    return JobRepetition(**rest, notify=tuple(stored.get("notify", ())), allow_private=not stored.get("guarded", False))


def _job(row: Sequence[Any]) -> Job:
    values = dict(zip(_JOB, row, strict=True))
    values |= {name: bool(values[name]) for name in _FLAGS}
    values["task"] = Task(**json.loads(values["task"]))
    values["metadata"] = json.loads(values["metadata"])
    if values["repetition"] is not None:
        values["repetition"] = _repetition(values["repetition"])
    return Job(**{**values, "state": JobState(values["state"])})


def _execution(row: Sequence[Any]) -> Execution:
    values = dict(zip(_EXECUTION, row, strict=True))
    return Execution(**{**values, "state": ExecutionState(values["state"]), "progress": json.loads(values["progress"])})
