"""home.db: who carries jobs out.

A job that runs is locked by a token. Only its holder may write about it, so whoever was stopped, lost its job and woke up
finds its writes refused. The holder shows that it lives by counting `beats`; whoever watches judges by its own clock.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Mapping
from typing import NamedTuple, TypedDict, Unpack

from inchworm.errors import Lost
from inchworm.job import Execution, ExecutionState, Job, JobState
from inchworm.model import Json, JsonObject
from inchworm.rules.schedule import occurrence, states
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.states import Move
from inchworm.store.database import Database
from inchworm.store.home.events import add_event
from inchworm.store.home.home import Home
from inchworm.store.home.job_rows import (
    IS_FREE,
    SELECT_EXECUTION,
    SELECT_JOB,
    Decide,
    execution_of,
    get_job,
    job_of,
    write_job,
)


class JobLock(NamedTuple):
    """Who holds a job, and how often it has shown that it lives."""

    job_id: str
    token: str
    beats: int


class ExecutionReport(TypedDict, total=False):
    """How far an execution is."""

    run: int
    session: int
    pages: int
    progress: Mapping[str, Json]


class Claims:
    """The jobs of one home, for those who carry them out."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def claim(self, service_id: str, now_ms: int, limit: int) -> list[Execution]:
        """Take jobs that are due, each with a new execution. A crawl has one at a time."""
        if limit < 1:
            return []
        with self._home.writing() as db:
            due = db.execute(
                f"{SELECT_JOB} j WHERE due_ms <= ? AND lock_token IS NULL AND /*sqlite +*/state = ANY (?) AND {IS_FREE}"
                " ORDER BY due_ms LIMIT ?",
                (now_ms, list(states.CLAIMABLE), 4 * limit),
            ).fetchall()
            taken: dict[str, Job] = {}
            for job in map(job_of, due):
                if len(taken) < limit:
                    taken.setdefault(job.crawl_id, job)
            return [_take(db, job, service_id, now_ms) for job in taken.values()]

    # By the holder

    def begin(self, execution_id: int, token: str, machine: str, pid: int) -> tuple[Execution, Job]:
        """The process that carries an execution out has started."""
        with self._home.writing() as db:
            execution = _held(db, execution_id, token)
            db.execute("UPDATE execution SET machine = ?, pid = ? WHERE execution_id = ?", (machine, pid, execution_id))
            return execution, get_job(db, execution.job_id)

    def beat(self, execution_id: int, token: str) -> JobState:
        """Show that the execution lives; how its job stands now."""
        with self._home.writing() as db:
            job_id = _held(db, execution_id, token).job_id
            db.execute("UPDATE job SET beats = beats + 1 WHERE job_id = ?", (job_id,))
            return get_job(db, job_id).state

    def report(self, execution_id: int, token: str, **values: Unpack[ExecutionReport]) -> None:
        """Note how far an execution is."""
        stored = {name: json.dumps(value) if name == "progress" else value for name, value in values.items()}
        with self._home.writing() as db:
            _held(db, execution_id, token)
            columns = ", ".join(f"{name} = ?" for name in stored)
            db.execute(f"UPDATE execution SET {columns} WHERE execution_id = ?", (*stored.values(), execution_id))

    def finish(self, execution_id: int, token: str, ended: Ended, decide: Decide, now_ms: int) -> Job:
        """An execution is over: its result, what its job does next, and the jobs that run after it, all at once."""
        with self._home.writing() as db:
            execution = _held(db, execution_id, token)
            job = get_job(db, execution.job_id)
            if job.state is JobState.CANCELLED:
                state, after = ExecutionState.CANCELLED, job
            else:
                state = ExecutionState.FAILED if ended.error else ExecutionState.COMPLETED
                after = decide(job)
            _end(db, execution, state, ended, now_ms)
            after = _paused_if_disabled(db, after)
            goes_on = state is ExecutionState.COMPLETED and after.state is JobState.SCHEDULED
            if goes_on and _is_behind(db, after, execution):
                after = dataclasses.replace(after, due_ms=now_ms, occurrence_ms=now_ms)
            released = write_job(db, job, dataclasses.replace(after, lock_token=None), now_ms)
            if state is ExecutionState.COMPLETED:
                _start_followers(db, job.job_id, now_ms)
            return released

    # By whoever watches the holders

    def hand_back(self, execution_id: int, token: str, error: str, decide: Decide, now_ms: int) -> bool:
        """Take an execution away from a holder that is gone; False when it was not its any more."""
        try:
            self.finish(execution_id, token, Ended(error=error, ended_by="crashed"), decide, now_ms)
        except Lost:
            return False
        return True

    def locks(self) -> list[JobLock]:
        with self._home.reading() as db:
            rows = db.execute("SELECT job_id, lock_token, beats FROM job WHERE lock_token IS NOT NULL").fetchall()
        return [JobLock(*row) for row in rows]

    def held_by(self, token: str) -> Execution | None:
        """The execution that runs under a token."""
        with self._home.reading() as db:
            row = db.execute(f"{SELECT_EXECUTION} WHERE token = ? AND state = 'running'", (token,)).fetchone()
        return execution_of(row) if row else None

    def adopt(self, from_service: str, to_service: str) -> int:
        """Executions of a service that is gone belong to another one now; how many."""
        with self._home.writing() as db:
            cursor = db.execute(
                "UPDATE execution SET service_id = ? WHERE service_id = ? AND state = 'running'",
                (to_service, from_service),
            )
            return cursor.rowcount


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
    write_job(db, job, locked, now_ms)
    last = "SELECT COALESCE(MAX(attempt), 0) FROM execution WHERE job_id = ? AND occurrence_ms = ?"
    attempt = db.execute(last, (job.job_id, planned)).fetchone()[0] + 1
    execution_id = db.insert(
        "INSERT INTO execution (job_id, crawl_id, number, occurrence_ms, attempt, state, token, service_id, started_ms)"
        " VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?) RETURNING execution_id",
        (job.job_id, job.crawl_id, number, planned, attempt, token, service_id, now_ms),
    )
    row = db.execute(f"{SELECT_EXECUTION} WHERE execution_id = ?", (execution_id,)).fetchone()
    return execution_of(row)


def _held(db: Database, execution_id: int, token: str) -> Execution:
    """An execution, for whoever still holds its job."""
    row = db.execute(
        f"{SELECT_EXECUTION} e WHERE execution_id = ? AND token = ? AND state = 'running'"
        " AND EXISTS (SELECT 1 FROM job j WHERE j.job_id = e.job_id AND j.lock_token = e.token)",
        (execution_id, token),
    ).fetchone()
    if row is None:
        raise Lost(
            f"Execution {execution_id} was taken away from this process.",
            "It stood still for too long, and another one goes on with its job.",
        )
    return execution_of(row)


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
    data: JsonObject = {
        "job_id": execution.job_id,
        "crawl_id": execution.crawl_id,
        "execution_id": execution.execution_id,
    }
    add_event(db, "execution_ended", {**data, "state": state, "ended_by": ended.ended_by, "error": ended.error}, now_ms)


def _start_followers(db: Database, job_id: str, now_ms: int) -> None:
    """Jobs that run after this one are due now."""
    rows = db.execute(f"{SELECT_JOB} WHERE after_job_id = ? AND state = 'scheduled'", (job_id,)).fetchall()
    for follower in map(job_of, rows):
        # One that is due already will run, and that is after this job too.
        if follower.due_ms is None:
            write_job(db, follower, dataclasses.replace(follower, due_ms=now_ms, occurrence_ms=now_ms), now_ms)


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
    if job.after_job_id is None:
        return False
    query = "SELECT 1 FROM execution WHERE job_id = ? AND state = 'completed' AND ended_ms > ? LIMIT 1"
    return db.execute(query, (job.after_job_id, execution.started_ms)).fetchone() is not None
