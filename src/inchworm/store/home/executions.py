"""home.db: what came of the tries of jobs."""

from __future__ import annotations

from typing import NamedTuple

from inchworm.errors import Unknown
from inchworm.job import Execution
from inchworm.store.database import NO_LIMIT
from inchworm.store.home.home import Home
from inchworm.store.home.job_rows import SELECT_EXECUTION, execution_of, get_job

KEEP_EXECUTIONS = 100
KEEP_MS = 30 * 86_400_000


class ExecutionTotals(NamedTuple):
    """Executions in numbers. The average is over those that completed."""

    total: int
    completed: int
    failed: int
    cancelled: int
    running: int
    average_ms: int | None
    pages: int
    last_success_ms: int | None
    last_failure_ms: int | None
    cpu_ms: int
    memory_peak_kb: int

    @property
    def success_rate(self) -> float | None:
        """Of those that came to an end by themselves; None when none did."""
        ended = self.completed + self.failed
        return round(self.completed / ended, 4) if ended else None


class Executions:
    """The executions of one home. Whoever carries one out writes of it through `Claims`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def get(self, execution_id: int) -> Execution:
        with self._home.reading() as db:
            row = db.execute(f"{SELECT_EXECUTION} WHERE execution_id = ?", (execution_id,)).fetchone()
        if row is None:
            raise Unknown(f"There is no execution {execution_id}.", "`inchworm jobs executions` lists those of a job.")
        return execution_of(row)

    def of_job(self, job_id: str, before: int | None, limit: int) -> list[Execution]:
        """The executions of a job, newest first; `before`: the number of the last one seen."""
        with self._home.reading() as db:
            get_job(db, job_id)
            rows = db.execute(
                f"{SELECT_EXECUTION} WHERE job_id = ? AND number < ? ORDER BY number DESC LIMIT ?",
                (job_id, before if before is not None else NO_LIMIT, limit),
            ).fetchall()
        return [execution_of(row) for row in rows]

    def running(self) -> list[Execution]:
        with self._home.reading() as db:
            rows = db.execute(
                f"{SELECT_EXECUTION} WHERE state = 'running' ORDER BY /*sqlite +*/execution_id"
            ).fetchall()
        return [execution_of(row) for row in rows]

    def totals(self, job_id: str | None = None, since_ms: int = 0) -> ExecutionTotals:
        """Executions that began since then in numbers, of one job or of all."""
        where, values = ("job_id = ? AND ", [job_id]) if job_id else ("", [])
        query = (
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 'completed'), COUNT(*) FILTER (WHERE state = 'failed'),"
            " COUNT(*) FILTER (WHERE state = 'cancelled'), COUNT(*) FILTER (WHERE state = 'running'), AVG(CASE WHEN state = 'completed' THEN ended_ms - started_ms END), COALESCE(SUM(pages), 0),"
            " MAX(CASE WHEN state = 'completed' THEN ended_ms END), MAX(CASE WHEN state = 'failed' THEN ended_ms END),"
            f" COALESCE(SUM(cpu_ms), 0), COALESCE(MAX(memory_kb), 0) FROM execution WHERE {where}started_ms >= ?"
        )
        with self._home.reading() as db:
            found = ExecutionTotals(*db.execute(query, (*values, since_ms)).fetchone())
        return found._replace(average_ms=None if found.average_ms is None else round(found.average_ms))

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
