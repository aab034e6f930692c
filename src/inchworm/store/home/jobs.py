"""home.db: jobs, as people make and change them."""

from __future__ import annotations

import dataclasses

from inchworm.errors import NotNow, Unknown
from inchworm.job import Job, JobFilter, JobState
from inchworm.rules.schedule import occurrence, states
from inchworm.store.home.home import Home
from inchworm.store.home.job_rows import (
    IS_FREE,
    SELECT_JOB,
    Decide,
    add_job,
    add_job_event,
    delete_job,
    get_job,
    job_of,
    slot_loads,
    write_job,
)

NEVER_MS = 2**53 - 1
"""Later than any time: jobs without a next run stand before it, the older the nearer."""

EVERY = JobFilter()
_FILTERS = tuple(field.name for field in dataclasses.fields(JobFilter))


def place_of(job: Job, by_next: bool) -> tuple[int, str]:
    """Where a job stands in a list of them."""
    if not by_next:
        return job.created_ms, job.job_id
    return NEVER_MS - job.created_ms if job.due_ms is None else job.due_ms, job.job_id


class Jobs:
    """The jobs of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def add(self, job: Job, has_crawl: bool = False) -> Job:
        """Put a job in, placed in the day among the others. `has_crawl`: not if its crawl was deleted meanwhile."""
        with self._home.writing() as db:
            known = "SELECT 1 FROM crawl WHERE crawl_id = ?"
            if has_crawl and db.execute(known, (job.crawl_id,)).fetchone() is None:
                raise Unknown("The crawl of this job was deleted meanwhile.", "Send it again.")
            placed = occurrence.placed(job, slot_loads(db), job.created_ms)
            placed = dataclasses.replace(placed, slot=occurrence.slot_of(placed))
            add_job(db, placed)
            add_job_event(db, placed, placed.created_ms)
        return placed

    def get(self, job_id: str) -> Job:
        with self._home.reading() as db:
            return get_job(db, job_id)

    def find(self, filters: JobFilter, after: tuple[int, str] | None, limit: int, by_next: bool = False) -> list[Job]:
        """Jobs in the order in which they were made; or in that of their next runs, those that have none behind the
        others, the newest first. `after`: the place of the last one seen."""
        key = f"COALESCE(due_ms, {NEVER_MS} - created_ms)" if by_next else "created_ms"
        where = {name: value for name in _FILTERS if (value := getattr(filters, name)) is not None}
        conditions = [f"{name} = ?" for name in where]
        values = list(where.values())
        if after is not None:
            conditions.append(f"({key}, job_id) > (?, ?)")
            values += after
        clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._home.reading() as db:
            rows = db.execute(f"{SELECT_JOB}{clause} ORDER BY {key}, job_id LIMIT ?", (*values, limit)).fetchall()
        return [job_of(row) for row in rows]

    def newest(self, crawl_id: str, limit: int) -> list[Job]:
        """The jobs of a crawl that were made last, newest first."""
        query = f"{SELECT_JOB} WHERE crawl_id = ? ORDER BY created_ms DESC, job_id DESC LIMIT ?"
        with self._home.reading() as db:
            return [job_of(row) for row in db.execute(query, (crawl_id, limit)).fetchall()]

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
            before = get_job(db, job_id)
            return write_job(db, before, decide(before), now_ms)

    def place(self, job_id: str, decide: Decide, now_ms: int) -> Job:
        """The same, and the job gets a new place in the day."""
        with self._home.writing() as db:
            before = get_job(db, job_id)
            wanted = decide(before)
            if before.lock_token is not None or wanted.state not in states.CLAIMABLE:
                return write_job(db, before, wanted, now_ms)
            others = slot_loads(db)
            if before.slot is not None:
                others[before.slot] -= 1
            return write_job(db, before, occurrence.placed(wanted, others, now_ms), now_ms)

    def delete(self, job_id: str) -> None:
        """Remove a job with its executions and their logs. What it crawled stays."""
        with self._home.writing() as db:
            job = get_job(db, job_id)
            if job.lock_token is not None:
                raise NotNow("This job is running.", "Cancel it first, and delete it when its execution has ended.")
            if followers := db.execute("SELECT job_id FROM job WHERE after_job_id = ? LIMIT 1", (job_id,)).fetchone():
                raise NotNow(f"The job {followers[0]} runs after this one.", "Delete or change that one first.")
            delete_job(db, job)

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        with self._home.reading() as db:
            found = dict(db.execute("SELECT state, COUNT(*) FROM job GROUP BY state").fetchall())
        return {state.value: found.get(state.value, 0) for state in JobState}

    def overdue(self, before_ms: int, limit: int = 10) -> tuple[int, list[str]]:
        """How many jobs should have been started before this, and the first of them."""
        where = f"FROM job j WHERE due_ms < ? AND lock_token IS NULL AND {IS_FREE}"
        with self._home.reading() as db:
            count = db.execute(f"SELECT COUNT(*) {where}", (before_ms,)).fetchone()[0]
            first = db.execute(f"SELECT job_id {where} ORDER BY due_ms LIMIT ?", (before_ms, limit)).fetchall()
        return count, [job_id for (job_id,) in first]

    def state_of(self, job_id: str) -> JobState:
        with self._home.reading() as db:
            return get_job(db, job_id).state
