"""Routes about jobs, their executions and the scheduler."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import ConfigDict, Field

from inchworm.app.act.jobs.change import WantedJob
from inchworm.job import ExecutionState, JobFilter, JobState, Task
from inchworm.rules.schedule import states
from inchworm.rules.schedule.states import Action
from inchworm.rules.words.times import iso
from inchworm.service.api.settings import SettingsBody, named
from inchworm.service.api.web import (
    Answer,
    Body,
    Home,
    ListPage,
    Paged,
    Service,
    api_routes,
    cursor_of,
    given,
    listed,
    refusals,
)

routes = api_routes("jobs")
second = api_routes("jobs", "/api/v2")
JobId = Annotated[str, Path(max_length=64, examples=["5e8441a15c74463fb105010a3dfd86f4"])]
ExecutionId = Annotated[int, Path(ge=1, lt=1 << 62)]
Metadata = dict[str, Any]


class NewJob(Body):
    """A job to be made. `source_id` is the id of a crawl; `url` finds or makes one. Together they have to agree."""

    source_id: str | None = Field(None, max_length=200)
    url: str | None = Field(None, max_length=4000)
    interval_minutes: int | None = Field(None, ge=1, le=5_270_400, description="counted in units of interval_type")
    interval_type: Literal["minutes", "hours", "days"] = "minutes"
    schedule_enabled: bool = True
    adaptive_scheduling: bool = True
    max_retries: int = Field(3, ge=0, le=100)
    retry_backoff_seconds: int = Field(60, ge=0, le=86_400)
    after_job_id: str | None = Field(None, max_length=64)
    mode: Literal["incremental", "full"] | None = None
    settings: SettingsBody = Field(default_factory=SettingsBody)
    metadata: Metadata = Field(default_factory=dict)

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "url": "https://example.com/news",
                "interval_minutes": 360,
                "interval_type": "minutes",
                "schedule_enabled": True,
                "max_retries": 3,
                "retry_backoff_seconds": 60,
            }
        }
    )


class ChangedJob(Body):
    """What is to change; what is left out stays. null takes the interval, or the job it runs after, away."""

    interval_minutes: int | None = Field(None, ge=1, le=5_270_400)
    interval_type: Literal["minutes", "hours", "days"] | None = None
    schedule_enabled: bool | None = None
    adaptive_scheduling: bool | None = None
    max_retries: int | None = Field(None, ge=0, le=100)
    retry_backoff_seconds: int | None = Field(None, ge=0, le=86_400)
    after_job_id: str | None = Field(None, max_length=64)
    metadata: Metadata | None = None

    model_config = ConfigDict(json_schema_extra={"example": {"interval_minutes": 12, "interval_type": "hours"}})


class JobAnswer(Answer):
    id: str
    source_id: str
    crawl_id: str
    status: JobState
    url: str | None
    interval_minutes: int | None
    interval_type: str
    schedule_enabled: bool
    adaptive_scheduling: bool
    next_run_at: str | None
    is_paused: bool
    max_retries: int
    retry_backoff_seconds: int
    current_retry_count: int
    reason: str | None
    metadata: Metadata


class JobList(Answer):
    items: list[JobAnswer]
    next_cursor: str | None


class ExecutionAnswer(Answer):
    id: int
    job_id: str
    execution_number: int
    status: ExecutionState
    started_at: str
    completed_at: str | None
    duration_ms: int | None
    items_crawled: int
    items_indexed: int
    error_message: str | None
    stack_trace: str | None
    cpu_time_ms: int
    memory_peak_mb: float
    retry_attempt: int


class ExecutionList(Answer):
    items: list[ExecutionAnswer]
    next_cursor: str | None


@routes.get("/jobs", response_model=JobList, responses=refusals(400))
def list_jobs(
    app: Home,
    page: Paged,
    status: Annotated[JobState | None, Query(description="only jobs in this state")] = None,
    source_id: Annotated[str | None, Query(description="only jobs of this crawl", max_length=200)] = None,
) -> Any:
    """All jobs, in the order in which they were made."""
    found = app.jobs.listed(JobFilter(status, source_id or None), cursor_of(page, int, str), page.limit + 1)
    part = listed(found, page, lambda one: one.place)
    return ListPage([one.line for one in part.items], part.next_cursor)


@routes.post("/jobs", status_code=201, response_model=JobAnswer, responses=refusals(400, 409))
def add_job(app: Home, service: Service, body: NewJob) -> Any:
    """Make a job. With an interval it gets a place in the day; without one it runs once, now."""
    wanted = WantedJob(
        **given(body, _WANTED),
        task=Task(mode=body.mode or "", settings=named(body.settings, service.values)),
        caller=service.caller,
    )
    made = app.schedule.add(wanted)
    service.wake()
    return made


@routes.get("/jobs/status-counts", responses=refusals())
def status_counts(app: Home) -> dict[JobState, int]:
    """How many jobs there are in each state."""
    return {JobState(state): count for state, count in app.jobs.store.counts().items()}


@routes.get("/jobs/{job_id}", response_model=JobAnswer, responses=refusals(404))
def job(app: Home, job_id: JobId) -> Any:
    """One job."""
    return app.jobs.one(job_id).line


@routes.put("/jobs/{job_id}", response_model=JobAnswer, responses=refusals(400, 404, 409))
def change_job(app: Home, service: Service, job_id: JobId, body: ChangedJob) -> Any:
    """Change a job."""
    values = given(body, _CHANGEABLE)
    cleared = frozenset(
        name for name in ("interval_minutes", "after_job_id") if name in values and values[name] is None
    )
    made = app.schedule.change(job_id, WantedJob(**values), cleared)
    service.wake()
    return made


@routes.delete("/jobs/{job_id}", status_code=204, responses=refusals(404, 409))
def delete_job(app: Home, job_id: JobId) -> None:
    """Remove a job with the history of its executions. What it crawled stays."""
    app.schedule.delete(job_id)


def _add_action(action: Action) -> None:
    def act(app: Home, service: Service, job_id: JobId) -> Any:
        made = app.schedule.act(job_id, action)
        service.wake()
        return made

    act.__name__, act.__doc__ = f"{action.command}_job", states.HELP[action]
    router = second if action is Action.FORCE_RUN else routes
    router.post(f"/jobs/{{job_id}}/{action}", response_model=JobAnswer, responses=refusals(404, 409))(act)


for _action in Action:
    _add_action(_action)


@routes.get("/jobs/{job_id}/stats", response_model=dict[str, Any], responses=refusals(404))
def job_stats(app: Home, job_id: JobId) -> Any:
    """The executions of a job in numbers."""
    return app.jobs.stats(job_id)


@routes.get("/jobs/{job_id}/executions", response_model=ExecutionList, responses=refusals(400, 404))
def executions(app: Home, job_id: JobId, page: Paged) -> Any:
    """What a job has done, newest first."""
    after = cursor_of(page, int)
    found = app.executions.listed(job_id, after[0] if after else None, page.limit + 1)
    return listed(found, page, lambda one: one.execution_number)


@routes.get("/executions/{execution_id}", response_model=ExecutionAnswer, responses=refusals(404))
def execution(app: Home, execution_id: ExecutionId) -> Any:
    """One execution."""
    return app.executions.one(execution_id)


@routes.get("/jobs/{job_id}/logs", responses={200: {"content": {"text/plain": {}}}, **refusals(404, 409)})
def logs(
    app: Home,
    job_id: JobId,
    execution_id: Annotated[int | None, Query(ge=1, lt=1 << 62, description="the last one, if left out")] = None,
    download: Annotated[bool, Query(description="as a file")] = False,
) -> Any:
    """The log of an execution, as text."""
    found = app.executions.of_job(job_id, execution_id)
    lines = (
        f"{iso(line.at_ms)} {line.level:<7} {line.text}\n" for line in list(app.executions.log(found.execution_id))
    )
    headers = {"Content-Disposition": f'attachment; filename="execution-{found.execution_id}.log"'} if download else {}
    return StreamingResponse(lines, media_type=PlainTextResponse.media_type, headers=headers)


# The scheduler

scheduler = api_routes("scheduler")


@scheduler.get("/scheduler/metrics", response_model=dict[str, Any], responses=refusals())
def metrics(app: Home) -> Any:
    """Jobs, and the executions of the last day, in numbers, with advice."""
    return app.health.scheduler()


@scheduler.get("/scheduler/distribution", response_model=dict[str, Any], responses=refusals())
def distribution(app: Home) -> Any:
    """How jobs are spread over the 96 slots of the day."""
    return app.health.distribution()


@scheduler.post("/scheduler/rebalance/preview", response_model=dict[str, Any], responses=refusals())
def rebalance_preview(app: Home) -> Any:
    """Which jobs a rebalance would move."""
    return app.dispatch.rebalance(is_preview=True)


@scheduler.post("/scheduler/rebalance", response_model=dict[str, Any], responses=refusals())
def rebalance(app: Home) -> Any:
    """Move jobs out of slots that hold more than their share."""
    return app.dispatch.rebalance(is_preview=False)


@scheduler.post("/admin/sync-enabled-sources", response_model=dict[str, Any], responses=refusals())
def sync(app: Home, service: Service) -> Any:
    """Make a job for every enabled crawl that has none; pause the jobs of the disabled ones."""
    done = app.schedule.sync()
    service.wake()
    return done


_WANTED = (
    *("source_id", "url", "interval_minutes", "interval_type", "schedule_enabled", "adaptive_scheduling"),
    *("max_retries", "retry_backoff_seconds", "after_job_id", "metadata"),
)
_CHANGEABLE = tuple(ChangedJob.model_fields)
