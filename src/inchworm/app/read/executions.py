"""Executions: what came of the tries of a job, their logs, and the sessions they begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from inchworm import errors
from inchworm.app.machine import is_gone
from inchworm.app.read.jobs import JobReads, time_or_none
from inchworm.app.workspace import Workspace
from inchworm.errors import Frozen, InchwormError, NotNow, Unknown, WrongUse
from inchworm.job import Execution, ExecutionState, JobState
from inchworm.model import CrawlInfo, Json
from inchworm.rules.words.times import iso
from inchworm.store.home.events import Events, Tallies
from inchworm.store.home.executions import Executions
from inchworm.store.home.logs import ExecutionLogs, LogLine
from inchworm.store.home.services import Service, Services

_LOOK_SECONDS = 0.5
_SESSION_LOOK_SECONDS = 0.05
_WAKE_SECONDS = 0.5

BEGIN_SECONDS = 5.0
"""How long whoever starts a session waits to see it begin."""

Wake = Callable[[], None]


class BegunSession(NamedTuple):
    """The session that an execution has begun, and of which run."""

    run: int
    session: int


@dataclass(frozen=True, slots=True)
class ExecutionLine:
    """One try of a job, and what came of it."""

    id: int
    job_id: str
    crawl_id: str
    execution_number: int
    status: ExecutionState
    planned_at: str
    attempt: int
    retry_attempt: int
    started_at: str
    completed_at: str | None
    duration_ms: int | None
    run: int | None
    session: int | None
    ended_by: str | None
    items_crawled: int
    items_indexed: int
    error_message: str | None
    stack_trace: str | None
    cpu_time_ms: int
    memory_peak_mb: float
    machine: str | None
    pid: int | None
    progress: Mapping[str, Json]


_MOST_CHARACTERS = 120_000
"""Of a log that is shown on a page; lines may be long."""


class ExecutionReads:
    """What is known of executions."""

    def __init__(self, workspace: Workspace, jobs: JobReads) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self.store = Executions(workspace.home)
        self.logs = ExecutionLogs(workspace.home)
        self.services = Services(workspace.home)
        self.events, self.tallies = Events(workspace.home), Tallies(workspace.home)

    def one(self, execution_id: int) -> ExecutionLine:
        return _line(self.store.get(execution_id))

    def listed(self, job_id: str, before: int | None = None, limit: int = 50) -> list[ExecutionLine]:
        return [_line(one) for one in self.store.of_job(job_id, before, limit)]

    def of_job(self, job_id: str, execution_id: int | None) -> Execution:
        """An execution of a job, or its last one."""
        if execution_id is not None:
            found = self.store.get(execution_id)
            if found.job_id == job_id:
                return found
            raise Unknown(f"Execution {execution_id} belongs to another job.", "`inchworm jobs executions` lists them.")
        last = self.store.of_job(job_id, None, 1)
        if not last:
            raise NotNow("This job has not run yet, so it has no log.", "`inchworm jobs run` starts it.")
        return last[0]

    def log(self, execution_id: int, follow: bool = False) -> Iterator[LogLine]:
        """The whole log of an execution: as it is now, or, to `follow` it, as it comes, to its end."""
        after, is_over = 0, not follow
        while True:
            while lines := self.logs.after(execution_id, after):
                yield from lines
                after = lines[-1].number
            if is_over:
                return
            # Once more after its end: what was written before it is there then.
            is_over = self.store.get(execution_id).state is not ExecutionState.RUNNING
            time.sleep(0.0 if is_over else _LOOK_SECONDS)

    def log_tail(self, execution_id: int, limit: int = 500) -> list[LogLine]:
        """The end of an execution's log: so many lines, fewer when they are long."""
        lines, room = self.logs.last(execution_id, limit), _MOST_CHARACTERS
        for index in range(len(lines) - 1, -1, -1):
            room -= len(lines[index].text)
            if room < 0:
                return lines[index + 1 :]
        return lines

    def begun(
        self, job_id: str, wake: Wake, executions: int = 0, seconds: float = BEGIN_SECONDS
    ) -> BegunSession | None:
        """The session that a job begins after so many executions; None when nothing began in this time. `wake` has
        whoever runs jobs look now."""
        for newest in self.looks(job_id, wake, seconds):
            if newest is None or newest.number <= executions:
                continue
            if newest.run is not None and newest.session is not None:
                return BegunSession(newest.run, newest.session)
            if newest.state is ExecutionState.FAILED and self._jobs.store.state_of(job_id) is JobState.FAILED:
                raise NotNow(f"The session could not begin: {newest.error}", f"The log of job {job_id} may tell more.")
        return None

    # Waiting for it

    def session_of(self, job_id: str, wake: Wake, until_its_end: bool = False) -> Execution | None:
        """The execution that has begun a session for a job; None when none has in the time that one can wait. When none
        can, what is wrong is told."""
        found: Execution | None = None
        for found in self.looks(job_id, wake):
            if found is not None and found.session is None and found.ended_by == "error":
                raise _error_of(found)
            is_over = found is not None and found.state is not ExecutionState.RUNNING
            if found is not None and found.session is not None and (is_over or not until_its_end):
                return found
        return found if found is not None and found.session is not None else None

    def looks(self, job_id: str, wake: Wake, seconds: float = BEGIN_SECONDS) -> Iterator[Execution | None]:
        """The newest execution of a job, again and again, until the time is over or nobody is there to run it."""
        deadline, woken = time.monotonic() + seconds, float("-inf")
        while True:
            yield next(iter(self.store.of_job(job_id, None, 1)), None)
            now = time.monotonic()
            if now >= deadline or not self.runners():
                return
            if now - woken >= _WAKE_SECONDS:
                woken = now
                wake()
            time.sleep(_SESSION_LOOK_SECONDS)

    def runners(self) -> list[Service]:
        """The services that run jobs."""
        return [one for one in self.services.all() if one.scheduler and not is_gone(one.machine, one.pid)]

    def let_end(self, crawl: CrawlInfo) -> None:
        """A session that is over may still have an execution that has to say so: no reason to refuse anything."""
        deadline = time.monotonic() + BEGIN_SECONDS
        while time.monotonic() < deadline and not self._workspace.is_running(crawl) and self._is_ending(crawl):
            time.sleep(_SESSION_LOOK_SECONDS)

    def _is_ending(self, crawl: CrawlInfo) -> bool:
        return any(one.crawl_id == crawl.crawl_id and one.session is not None for one in self.store.running())


def _line(one: Execution) -> ExecutionLine:
    ended_ms = one.ended_ms
    return ExecutionLine(
        id=one.execution_id,
        job_id=one.job_id,
        crawl_id=one.crawl_id,
        execution_number=one.number,
        status=one.state,
        planned_at=iso(one.occurrence_ms),
        attempt=one.attempt,
        retry_attempt=one.attempt - 1,
        started_at=iso(one.started_ms),
        completed_at=time_or_none(ended_ms),
        duration_ms=ended_ms - one.started_ms if ended_ms is not None else None,
        run=one.run,
        session=one.session,
        ended_by=one.ended_by or None,
        items_crawled=one.pages,
        items_indexed=one.indexed,
        error_message=one.error or None,
        stack_trace=one.trace or None,
        cpu_time_ms=one.cpu_ms,
        memory_peak_mb=round(one.memory_kb / 1024, 1),
        machine=one.machine or None,
        pid=one.pid or None,
        progress=one.progress,
    )


def _error_of(execution: Execution) -> InchwormError:
    """What kept an execution from beginning, as if it had happened here."""
    name = execution.trace.rpartition("inchworm.errors.")[2].partition(":")[0]
    kind = getattr(errors, name, None)
    is_mistake = isinstance(kind, type) and issubclass(kind, WrongUse) and not issubclass(kind, Frozen)
    hint = f"The log of execution {execution.execution_id} tells more."
    return (WrongUse if is_mistake else NotNow)(execution.error, hint)
