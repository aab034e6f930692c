"""Routes about iterations: the runs of a crawl, how they are repeated, and what changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic import ConfigDict, Field

from inchworm.app.act.jobs.repetition import Rhythm
from inchworm.app.read.comparisons import PagesWanted
from inchworm.app.read.content.feed import TYPE
from inchworm.app.read.iterations import CrawlCosts, IterationLine
from inchworm.app.read.runs import iteration_id
from inchworm.job import JobState
from inchworm.model import Change, RunState
from inchworm.rules.change.groups import GroupPlace
from inchworm.rules.schedule.repetition import Occasion
from inchworm.service.api.web import (
    Answer,
    Body,
    Home,
    Paged,
    Service,
    api_routes,
    crawl_of,
    cursor_of,
    goes_on,
    listed,
    refusals,
    written,
)

routes = api_routes("iterations")
NEXT = "X-Next-Cursor"
CrawlId = Annotated[str, Path(max_length=200, examples=["5e8441a15c"])]
Number = Annotated[int, Path(ge=0, lt=1 << 62, description="0 is the first run")]
AnyNumber = Annotated[int | None, Query(ge=0, lt=1 << 62)]
Mode = Literal["incremental", "full"]
_MOST_HOURS = 87_840
_MOST_HOOKS = 20


def in_pages(status: int = 200) -> dict[int | str, dict[str, Any]]:
    """How a bare list says that there is more, for its documentation."""
    said = {"description": "The `cursor` of the next part; not there when this is the last.", "schema": _TEXT}
    return {status: {"headers": {NEXT: said}}, **refusals(400, 404)}


_TEXT = {"type": "string"}


class NewIterations(Body):
    """How a crawl is to be repeated. All of it counts: what is left out is as it is here. Without an interval the runs
    are started by `iterations/next`, and by nothing else."""

    max_iterations: int | None = Field(None, ge=1, lt=1 << 31, description="runs after the baseline; null: no end")
    iteration_interval_hours: float | None = Field(
        None, gt=0, le=_MOST_HOURS, description="from start to start; null: no interval"
    )
    mode: Mode = "incremental"
    stop_if_no_changes: bool = Field(False, description="a complete run that found nothing changed is the last")
    notify_on_completion: bool = Field(False, description="tell of every complete run, not only of changes")
    notify: list[Annotated[str, Field(max_length=2000)]] = Field(
        default_factory=list, max_length=_MOST_HOOKS, description="addresses of web hooks; they are never shown"
    )
    notify_if: list[Annotated[str, Field(max_length=500)]] = Field(
        default_factory=list,
        max_length=_MOST_HOOKS,
        description="tell only if one of these holds: `5%` for more than so many of the pages, `text:words * more` for"
        " what came or went",
    )
    budget: int | None = Field(None, ge=0, lt=1 << 53, description="requests in each session")

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "max_iterations": 5,
                "iteration_interval_hours": 24.0,
                "mode": "incremental",
                "stop_if_no_changes": True,
                "notify_on_completion": False,
            }
        }
    )


class IterationsAnswer(Answer):
    crawl_id: str
    baseline_iteration_id: str
    configured_iterations: int | None
    mode: Mode
    message: str
    job_id: str
    status: JobState
    next_run_at: str | None


class IterationAnswer(Answer):
    iteration_id: str
    crawl_id: str
    iteration_number: int
    parent_iteration_id: str | None
    baseline_iteration_id: str | None
    mode: Literal["baseline", "incremental", "full"]
    state: RunState
    started_at: str
    completed_at: str | None
    duration_seconds: float | None
    stats: dict[str, int]
    branch_of: str | None
    on_line: bool
    alarm: str | None


class PassageAnswer(Answer):
    where: Literal["title", "text", "link"]
    before: str
    after: str


class ModifiedGroupAnswer(Answer):
    """Modified pages that changed in the same way: how many they are, the first of them, and what changed."""

    pages: int
    urls: list[str]
    difference: list[PassageAnswer]
    difference_is_cut: bool
    note: str


class GroupAnswer(Answer):
    """Modified pages that changed in the same way: how many, what they have in common, the first of them, and what
    changed."""

    pages: int
    alike: str | None
    url: str
    title: str
    difference: list[PassageAnswer]
    difference_is_cut: bool
    note: str


class GroupList(Answer):
    items: list[GroupAnswer]
    next_cursor: str | None
    is_counted: bool


class GroupPageAnswer(Answer):
    url: str
    title: str


class GroupPages(Answer):
    items: list[GroupPageAnswer]
    next_cursor: str | None


class ComparisonAnswer(Answer):
    baseline_iteration_id: str
    current_iteration_id: str
    new_documents: list[str]
    modified_documents: list[str]
    unchanged_documents: list[str]
    deleted_documents: list[str]
    unknown_documents: list[str]
    modified_groups: list[ModifiedGroupAnswer]
    total_changes: int
    has_changes: bool
    summary: str


class NextAnswer(Answer):
    crawl_id: str
    iteration_id: str | None
    iteration_number: int | None
    mode: str
    session: int | None
    job_id: str
    message: str


@routes.post("/crawl/{crawl_id}/iterations", response_model=IterationsAnswer, responses=refusals(400, 404, 409))
def set_iterations(app: Home, service: Service, crawl_id: CrawlId, body: NewIterations) -> Any:
    """Have a crawl repeated. There is one job for that, which is made here, or changed."""
    occasion = Occasion.COMPLETION if body.notify_on_completion else Occasion.CHANGES
    wanted = Rhythm(
        body.max_iterations,
        body.iteration_interval_hours,
        body.mode,
        body.stop_if_no_changes,
        tuple(body.notify),
        occasion,
        body.budget or 0,
        allow_private=service.values.allow_private,
        notify_if=tuple(body.notify_if),
    )
    made = app.repetition.set(crawl_of(app, crawl_id).crawl_id, wanted)
    service.wake()
    return made


@routes.get("/crawl/{crawl_id}/iterations", response_model=list[IterationAnswer], responses=in_pages())
def iterations(app: Home, crawl_id: CrawlId, page: Paged, response: Response) -> Sequence[IterationLine]:
    """The runs of a crawl, in their order."""
    after = cursor_of(page, int)
    crawl = crawl_of(app, crawl_id)
    found = app.iterations.list(crawl, after[0] if after else -1, page.limit + 1)
    part = listed(found, page, lambda one: one.iteration_number)
    if part.next_cursor:
        response.headers[NEXT] = part.next_cursor
    return part.items


@routes.get("/crawl/{crawl_id}/iterations/compare", response_model=ComparisonAnswer, responses=refusals(404, 409, 503))
def compare(app: Home, crawl_id: CrawlId, baseline: AnyNumber = None, current: AnyNumber = None) -> Any:
    """Every page of two runs by what became of it. Without numbers: the last run and the one it builds on. The hundred
    largest groups of modified pages that changed in the same way are told with what changed."""
    word = crawl_of(app, crawl_id).crawl_id
    return written("application/json", lambda out: app.changes.write_comparison(word, baseline, current, out))


@routes.get("/crawl/{crawl_id}/iterations/compare/groups", response_model=GroupList, responses=refusals(400, 404, 409))
def modified_groups(
    app: Home, crawl_id: CrawlId, paged: Paged, baseline: AnyNumber = None, current: AnyNumber = None
) -> Any:
    """Modified pages of two runs by what differs on them, the largest group first; those that are alone come last. Not
    more than 50 at once. `is_counted` false: two runs that do not follow each other are counted a while at a time, and
    there may be more; ask again."""
    place = cursor_of(paged, int, int)
    wanted = PagesWanted(Change.MODIFIED, limit=paged.limit, behind=GroupPlace(*place) if place else None)
    found = app.comparisons.part(crawl_of(app, crawl_id), (baseline, current), wanted)
    items = [
        {
            "pages": one.pages,
            "alike": None if one.alike is None else str(one.alike),
            "url": one.first.url,
            "title": one.first.title,
            "difference": one.difference.passages,
            "difference_is_cut": one.difference.is_cut,
            "note": one.difference.said,
        }
        for one in found.groups
    ]
    return {**goes_on(items, found.next_group)._asdict(), "is_counted": found.looked_at >= found.urls}


@routes.get(
    "/crawl/{crawl_id}/iterations/compare/groups/{alike}", response_model=GroupPages, responses=refusals(400, 404, 409)
)
def pages_of_group(
    app: Home,
    crawl_id: CrawlId,
    alike: Annotated[int, Path(ge=-(1 << 63), lt=1 << 63, description="what the pages have in common")],
    paged: Paged,
    baseline: AnyNumber = None,
    current: AnyNumber = None,
) -> Any:
    """Every modified page of one group."""
    after = cursor_of(paged, int)
    wanted = PagesWanted(Change.MODIFIED, after=after[0] if after else 0, limit=paged.limit, alike=alike)
    found = app.comparisons.part(crawl_of(app, crawl_id), (baseline, current), wanted)
    return goes_on([{"url": one.url, "title": one.title} for one in found.rows], found.next_after)


@routes.get(
    "/crawl/{crawl_id}/changes.atom",
    response_class=Response,
    responses={200: {"content": {"application/atom+xml": {}}}, 304: {"description": "as before"}, **refusals(404)},
)
def feed(request: Request, app: Home, crawl_id: CrawlId) -> Response:
    """What the last ten runs that found changes found, with what differs: a feed for feed readers. As all that is read,
    it takes a token in `Authorization`, or the session of a browser; never one in the address, which would end up in
    logs. `inchworm feed` writes it to a file for readers that can send neither."""
    crawl = crawl_of(app, crawl_id)
    headers = {"ETag": (tag := f'"{app.feeds.stamp(crawl)}"'), "Cache-Control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    found = app.feeds.written(crawl, str(request.url.replace(query="")))
    return Response(found, media_type=TYPE, headers=headers)


@routes.get("/crawl/{crawl_id}/iterations/stats", response_model=dict[str, Any], responses=refusals(404, 409))
def stats(app: Home, crawl_id: CrawlId) -> CrawlCosts:
    """What the runs of a crawl cost, and what they saved against full crawls."""
    return app.iterations.costs(crawl_of(app, crawl_id))


@routes.post(
    "/crawl/{crawl_id}/iterations/next", status_code=202, response_model=NextAnswer, responses=refusals(404, 409)
)
def start_next(
    app: Home,
    service: Service,
    crawl_id: CrawlId,
    mode: Annotated[Mode | None, Query(description="as the crawl is repeated, if left out")] = None,
) -> Any:
    """Make the next run now. The first one is the baseline, whatever its mode. Not while a run is open."""
    crawl = crawl_of(app, crawl_id)
    job = app.hand_over.next_run(app.plan.recrawl(crawl.crawl_id, mode or "", caller=service.caller))
    begun = app.executions.begun(job.id, service.wake, job.executions)
    made = app.iterations.get(crawl, begun.run) if begun else None
    return {
        "crawl_id": crawl.crawl_id,
        "iteration_id": iteration_id(crawl, begun.run) if begun else None,
        "iteration_number": begun.run if begun else None,
        "mode": made.mode if made else job.task.mode or "incremental",
        "session": begun.session if begun else None,
        "job_id": job.id,
        "message": "The next iteration has begun" if begun else "The next iteration begins when the service gets to it",
    }


@routes.get("/crawl/{crawl_id}/iterations/{number}", response_model=IterationAnswer, responses=refusals(404))
def iteration(app: Home, crawl_id: CrawlId, number: Number) -> IterationLine:
    """One run."""
    return app.iterations.get(crawl_of(app, crawl_id), number)


@routes.post(
    "/crawl/{crawl_id}/iterations/{number}/make-line", response_model=IterationAnswer, responses=refusals(404, 409)
)
def make_line(app: Home, crawl_id: CrawlId, number: Number) -> IterationLine:
    """Have later runs build on this one and go by its settings. It has to be complete, and no session at work."""
    crawl = crawl_of(app, crawl_id)
    app.steer.make_line(crawl.crawl_id, number)
    return app.iterations.get(crawl, number)
