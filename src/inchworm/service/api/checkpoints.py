"""Routes about checkpoints: the places in a run that one can go back to, and going on from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field

from inchworm.app.act.steer import KEEP_LAST
from inchworm.app.read.checkpoints import Back, CheckpointLine, CheckpointStats
from inchworm.app.read.runs import iteration_id
from inchworm.errors import Unknown
from inchworm.service.api.iterations import NEXT, CrawlId, in_pages
from inchworm.service.api.settings import SettingsBody, named
from inchworm.service.api.web import (
    Answer,
    Body,
    Home,
    Paged,
    Service,
    api_routes,
    as_file,
    crawl_of,
    cursor_of,
    listed,
    refusals,
)

routes = api_routes("checkpoints")
CheckpointId = Annotated[str, Path(max_length=300, examples=["5e8441a15c_ckpt_2"])]
_MOST = 1_000_000_000


class Continue(Body):
    """Where to continue. Without a checkpoint: where the crawl stands, and nothing is undone."""

    checkpoint_id: str | None = Field(None, max_length=300)
    validate_first: bool = Field(True, alias="validate", description="check state and archive before going on")
    as_new_run: bool = Field(False, description="leave the run as it is, and branch off a new one")
    settings: SettingsBody = Field(
        default_factory=SettingsBody, description="of the session; with as_new_run also of the new run"
    )

    model_config = ConfigDict(json_schema_extra={"example": {"checkpoint_id": "5e8441a15c_ckpt_2", "validate": True}})


class CheckpointAnswer(Answer):
    checkpoint_id: str
    crawl_id: str
    checkpoint_number: int
    checkpoint_type: Literal["auto", "manual", "pause", "error"]
    created_at: str
    current_state: str
    current_substate: str
    can_resume: bool = Field(description="its run can go back to it, as soon as no session runs")
    can_branch: bool = Field(description="a new run can branch off there")
    file_size_bytes: int
    progress: dict[str, Any]
    run: int
    seq: int


class StatsAnswer(Answer):
    crawl_id: str
    total_checkpoints: int
    latest_checkpoint_id: str | None
    latest_checkpoint_created: str | None
    latest_checkpoint_state: str | None
    can_resume: bool
    checkpoint_types: dict[str, int]
    total_size_bytes: int


class ContinuedAnswer(Answer):
    crawl_id: str
    checkpoint_id: str | None
    resumed_from_state: str
    resumed_from_substate: str
    crawled_urls: int
    queued_urls: int
    message: str
    run_id: str | None
    session: int | None
    job_id: str


class CleanedAnswer(Answer):
    crawl_id: str
    deleted: int


@routes.get("/crawl/{crawl_id}/checkpoints", response_model=list[CheckpointAnswer], responses=in_pages())
def checkpoints(app: Home, crawl_id: CrawlId, page: Paged, response: Response) -> Sequence[CheckpointLine]:
    """The checkpoints of a crawl, oldest first."""
    after = cursor_of(page, int)
    found = app.checkpoints.list(crawl_of(app, crawl_id))
    later = [one for one in found if after is None or one.checkpoint_number > after[0]]
    part = listed(later, page, lambda one: one.checkpoint_number)
    if part.next_cursor:
        response.headers[NEXT] = part.next_cursor
    return part.items


@routes.post(
    "/crawl/{crawl_id}/checkpoint", status_code=201, response_model=CheckpointAnswer, responses=refusals(404, 409)
)
def make_checkpoint(
    app: Home,
    crawl_id: CrawlId,
    checkpoint_type: Annotated[Literal["manual"], Query()] = "manual",  # noqa: ARG001 - the others make themselves
) -> CheckpointLine:
    """Make a checkpoint now. While a session runs, it makes it."""
    return app.steer.checkpoint(crawl_of(app, crawl_id).crawl_id)


@routes.get("/crawl/{crawl_id}/checkpoints/latest", response_model=CheckpointAnswer, responses=refusals(404))
def latest(app: Home, crawl_id: CrawlId) -> CheckpointLine:
    """The checkpoint that was made last."""
    crawl = crawl_of(app, crawl_id)
    found = app.checkpoints.list(crawl)
    if not found:
        raise Unknown(f"The crawl {crawl.name!r} has no checkpoints.", "POST …/checkpoint makes one.")
    return found[-1]


@routes.get("/crawl/{crawl_id}/checkpoints/stats", response_model=StatsAnswer, responses=refusals(404))
def stats(app: Home, crawl_id: CrawlId) -> CheckpointStats:
    """The checkpoints of a crawl in numbers. `can_resume`: `POST …/continue` without a checkpoint would go on now."""
    return app.checkpoints.stats(crawl_of(app, crawl_id))


@routes.get(
    "/crawl/{crawl_id}/checkpoints/{number}/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/gzip": {}}}, **refusals(404)},
)
def export(app: Home, crawl_id: CrawlId, number: Annotated[int, Path(ge=0, le=_MOST)]) -> Any:
    """The whole state of a run at a checkpoint, as gzipped JSON."""
    crawl = crawl_of(app, crawl_id)
    name = f"{crawl.crawl_id}-checkpoint{number}.json.gz"
    return as_file(name, "application/gzip", lambda out: app.checkpoints.export(crawl, number, out))


@routes.post(
    "/crawl/{crawl_id}/continue",
    status_code=202,
    response_model=ContinuedAnswer,
    responses=refusals(400, 404, 409, 503),
)
def continue_crawl(app: Home, service: Service, crawl_id: CrawlId, body: Continue | None = None) -> Any:
    """Continue a crawl. Whatever came after the checkpoint is undone, unless the crawl goes on as a new run."""
    crawl, wanted = crawl_of(app, crawl_id), body or Continue.model_validate({})
    back = Back(wanted.checkpoint_id, wanted.as_new_run, wanted.validate_first)
    plan = app.plan.continue_from(crawl.crawl_id, back, named(wanted.settings, service.values), service.caller)
    made = app.hand_over.continuation(plan)
    begun = app.executions.begun(made.job_id, service.wake)
    if begun is None:
        return replace(made, message="Crawl resumes from checkpoint when the service gets to it")
    return replace(
        made,
        run_id=iteration_id(crawl, begun.run),
        session=begun.session,
        message="Crawl resumed successfully from checkpoint",
    )


@routes.post("/crawl/{crawl_id}/checkpoints/cleanup", response_model=CleanedAnswer, responses=refusals(404, 409))
def clean_up(app: Home, crawl_id: CrawlId, keep_last: Annotated[int, Query(ge=0, le=_MOST)] = KEEP_LAST) -> Any:
    """Delete all checkpoints but the last so many. What they stood for stays. Not while a session runs."""
    crawl = crawl_of(app, crawl_id)
    return {"crawl_id": crawl.crawl_id, "deleted": app.steer.keep_checkpoints(crawl.crawl_id, keep_last)}


@routes.delete("/crawl/{crawl_id}/checkpoints/{checkpoint_id}", status_code=204, responses=refusals(404, 409))
def delete_checkpoint(app: Home, crawl_id: CrawlId, checkpoint_id: CheckpointId) -> None:
    """Delete a checkpoint. Not while a session runs."""
    app.steer.delete_checkpoint(crawl_of(app, crawl_id).crawl_id, checkpoint_id)
