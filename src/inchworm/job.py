"""Jobs and their executions as values. Apart from `model`, because whoever only crawls has no use for them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from inchworm.model import Json
from inchworm.settings import NamedSettings


class JobState(StrEnum):
    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExecutionState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verb(StrEnum):
    """Which run a session works on."""

    CRAWL = "crawl"
    """The one that is open, else the next one."""

    FRESH = "fresh"
    """A new one that builds on no other; what is open ends."""

    RESUME = "resume"
    """The one that is open, and no other."""

    RECRAWL = "recrawl"
    """The next one."""

    CONTINUE = "continue"
    """One that goes back to a checkpoint, or branches off there."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an execution does: what it is to work on, with what. A `verb` is kept as text: a home may know more of them
    than this version does."""

    verb: str = Verb.CRAWL
    mode: str = ""
    checkpoint: str | None = None
    as_new_run: bool = False
    validate: bool = True
    settings: NamedSettings = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobRepetition:
    """How often a job repeats its crawl, and who is told. Without an interval only a person starts the next run."""

    max_iterations: int | None = None
    stop_if_no_changes: bool = False
    notify: tuple[str, ...] = ()
    notify_on: str = "changes"
    allow_private: bool = True
    """Messages may go to private addresses."""

    notify_if: tuple[str, ...] = ()
    """One of these conditions has to hold."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant: all that fit what is not None."""

    state: JobState | None = None
    crawl_id: str | None = None
    slot: int | None = None
    after_job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """When a crawl's next session starts. The occurrence is the planned time that is in hand; `due_ms` is when it is to
    be tried, None when nothing but another job or a person starts it."""

    job_id: str
    crawl_id: str
    state: JobState
    task: Task = Task()
    interval_count: int | None = None
    interval_unit: str = "minutes"
    schedule_enabled: bool = True
    adaptive: bool = True
    unchanged: int = 0
    max_retries: int = 3
    backoff_s: int = 60
    retries: int = 0
    crashes: int = 0
    occurrence_ms: int | None = None
    due_ms: int | None = None
    aside_ms: int | None = None
    """The planned time that stays, while the job runs because a person said so."""

    slot: int | None = None
    moved_ms: int | None = None
    lock_token: str | None = None
    beats: int = 0
    executions: int = 0
    after_job_id: str | None = None
    repetition: JobRepetition | None = None
    reason: str = ""
    metadata: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    created_ms: int = 0
    updated_ms: int = 0
    last_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """One try of a job's occurrence. It owns one session."""

    execution_id: int
    job_id: str
    crawl_id: str
    number: int
    occurrence_ms: int
    attempt: int
    state: ExecutionState
    token: str
    service_id: str
    machine: str
    pid: int
    started_ms: int
    ended_ms: int | None
    run: int | None
    session: int | None
    ended_by: str
    pages: int
    indexed: int
    progress: Mapping[str, Json]
    error: str
    trace: str
    cpu_ms: int
    memory_kb: int
