"""Routes about crawls: starting, resuming, stopping, configuring, and how they stand."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import ConfigDict, Field

from inchworm.app.act.configure import Configuration
from inchworm.app.act.jobs.hand_over import StartedSession
from inchworm.app.act.plan import Start
from inchworm.app.read.runs import iteration_id
from inchworm.app.root import App
from inchworm.errors import WrongUse
from inchworm.model import CrawlInfo, JsonObject, RunState
from inchworm.rules.words.json_form import json_object
from inchworm.service.api.settings import SettingsBody, named
from inchworm.service.api.web import (
    Answer,
    Body,
    Home,
    Paged,
    Service,
    Verbs,
    api_routes,
    crawl_of,
    cursor_of,
    given,
    listed,
    refusals,
    refuse_null,
)

routes = api_routes("crawls")
CrawlId = Annotated[str, Path(max_length=64, examples=["7fb21d4d1e"])]
RunId = Annotated[str, Path(max_length=100, examples=["7fb21d4d1e_iter_0"])]
FETCHERS = {"http": True, "scrapy": True, "browser": False, "playwright": False}
"""What may fetch pages, and whether this version has it."""

Url = Annotated[str, Field(min_length=1, max_length=4000)]


class NewCrawl(SettingsBody):
    """What to crawl: `url`, or several `targets`; a bare host name will do. Every setting may be named beside it."""

    url: Url | None = None
    targets: Annotated[list[Url], Field(min_length=1, max_length=1000)] | None = None
    name: str | None = Field(None, min_length=1, max_length=200)
    crawler: str = Field("http", max_length=50, description="what fetches pages: `http`, also called `scrapy`")
    mode: Literal["incremental", "full"] | None = Field(None, description="how to crawl again")
    fresh: bool = Field(False, description="start over with a baseline; an open run is cancelled")

    model_config = ConfigDict(
        json_schema_extra={"example": {"targets": ["example.com"], "query": "annual reports", "budget": 500}}
    )


class Begun(Answer):
    """A session that has begun; `run` and `session` are null when none has yet."""

    crawl_id: str
    run_id: str | None
    run: int | None
    session: int | None
    state: str
    job_id: str
    execution_id: int | None
    message: str


class CrawlLine(Answer):
    crawl_id: str
    name: str
    seeds: list[str]
    enabled: bool
    state: str
    run: int | None
    run_id: str | None
    pages: int
    failed: int
    pending: int
    created_at: str


class CrawlList(Answer):
    items: list[CrawlLine]
    next_cursor: str | None


class ChangeLine(Answer):
    crawl_id: str
    name: str
    run: int
    run_id: str
    at: str
    new: int
    modified: int
    deleted: int


class OverviewAnswer(Answer):
    crawls: int
    running: list[CrawlLine]
    changed: list[ChangeLine]
    attention: list[dict[str, Any]]
    recent: list[CrawlLine]


class CrawlAnswer(CrawlLine):
    incremental_crawling_enabled: bool
    crawl_budget: int
    settings: dict[str, Any]
    defaults: dict[str, Any]
    jobs: list[dict[str, Any]]


class ChangedCrawl(Body):
    """What is to change; what is left out stays. A setting that is null is taken away."""

    name: str | None = Field(None, min_length=1, max_length=200)
    settings: SettingsBody | None = Field(
        None, description="what holds for every session, unless a start says otherwise"
    )
    enabled: bool | None = Field(None, description="whether jobs of this crawl run by themselves")
    incremental_crawling_enabled: bool | None = Field(
        None, description="off: no budget, and every start begins a new run"
    )

    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "the manual", "settings": {"budget": 500}, "enabled": True}}
    )


class Config(Body):
    """How the crawl of a URL goes on from session to session."""

    url: Url
    incremental_crawling_enabled: bool | None = None
    crawl_budget: int | None = Field(None, ge=0, lt=1 << 62, description="requests per session; 0: no limit")

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"url": "https://example.com", "incrementalCrawlingEnabled": True, "crawlBudget": 50}
        }
    )


class ConfigAnswer(Answer):
    crawl_id: str
    name: str
    url: str
    incremental_crawling_enabled: bool
    crawl_budget: int


class Stopped(Answer):
    crawl_id: str
    run_id: str
    run: int
    state: RunState
    message: str


class QueueAnswer(Answer):
    crawl_id: str
    has_queue: bool
    visited: int
    pending: int
    total: int
    can_resume: bool
    current_run_id: str | None
    run_state: str
    run_crawl_ids: list[int]
    counts: list[dict[str, Any]]


class ClearedQueue(QueueAnswer):
    cleared: int


class RunSession(Answer):
    id: int
    state: str
    pages_crawled: int


class RunAnswer(Answer):
    id: str
    crawl_id: str
    state: RunState
    sessions: list[RunSession]
    total_pages_crawled: int
    created_at: str


# Starting and stopping


@routes.post("/crawl", status_code=202, response_model=Begun, responses=refusals(400, 409))
def start_crawl(app: Home, service: Service, body: NewCrawl) -> Any:
    """Start a crawl. One with a paused run goes on with it; otherwise its next run begins."""
    if (body.url is None) == (body.targets is None):
        raise WrongUse("What is to be crawled?", "Send `url`, or `targets`, and not both.")
    if body.fresh and body.mode:
        raise WrongUse("A fresh start is a baseline, so it has no mode.", "Leave `mode` or `fresh` out.")
    chosen = named(body, service.values)
    refuse_null(chosen)
    targets = tuple(body.targets or (body.url or "",))
    _refuse_unavailable(body.crawler)
    start = Start(targets, body.name or "", chosen, body.fresh, body.mode or "", service.caller)
    return app.hand_over.session(app.plan.crawl(start), service.wake)


def _refuse_unavailable(fetcher: str) -> None:
    there = ", ".join(name for name, is_there in FETCHERS.items() if is_there)
    if fetcher not in FETCHERS:
        raise WrongUse(f"There is no crawler {fetcher!r}.", f"Known ones: {there}.")
    if not FETCHERS[fetcher]:
        raise WrongUse(
            f"The crawler {fetcher!r} renders pages, and rendering is not available in this version.",
            f"Use one of {there}, or leave `crawler` out.",
        )


@routes.post("/resume-crawl/{crawl_id}", status_code=202, response_model=Begun, responses=refusals(400, 404, 409))
def resume_crawl(app: Home, service: Service, crawl_id: CrawlId, body: SettingsBody | None = None) -> Any:
    """Go on with the paused run of a crawl."""
    return _resume(app, service, crawl_id, body)


@routes.post("/crawl/{crawl_id}/resume", status_code=202, response_model=Begun, responses=refusals(400, 404, 409))
def resume(app: Home, service: Service, crawl_id: CrawlId, body: SettingsBody | None = None) -> Any:
    """Go on with the paused run of a crawl."""
    return _resume(app, service, crawl_id, body)


def _resume(app: App, service: Verbs, crawl_id: str, body: SettingsBody | None) -> StartedSession:
    crawl = crawl_of(app, crawl_id)
    chosen = named(body, service.values)
    refuse_null(chosen)
    return app.hand_over.session(app.plan.resume(crawl.crawl_id, chosen, service.caller), service.wake)


@routes.post("/crawl/{crawl_id}/pause", response_model=Stopped, responses=refusals(404, 409))
def pause(app: Home, crawl_id: CrawlId) -> Any:
    """Pause the run that is in progress, and wait until it is."""
    crawl = crawl_of(app, crawl_id)
    return _stopped(app, crawl_id, app.steer.pause(crawl.crawl_id))


@routes.post("/crawl/{crawl_id}/cancel", response_model=Stopped, responses=refusals(404, 409))
def cancel(app: Home, crawl_id: CrawlId) -> Any:
    """End the open run for good. Its pages stay; it can be continued from its last checkpoint."""
    crawl = crawl_of(app, crawl_id)
    return _stopped(app, crawl_id, app.steer.end_run(crawl))


def _stopped(app: App, crawl_id: str, state: str) -> dict[str, Any]:
    crawl = crawl_of(app, crawl_id)
    number = app.crawls.status(crawl).run
    message = f"Run {number} is {state}."
    return {
        "crawl_id": crawl_id,
        "run_id": iteration_id(crawl, number),
        "run": number,
        "state": state,
        "message": message,
    }


# Crawls


@routes.get("/overview", response_model=OverviewAnswer, responses=refusals())
def overview(app: Home) -> Any:
    """What runs now, what changed lately, what needs attention."""
    return app.health.overview()


@routes.get("/crawls", response_model=CrawlList, responses=refusals(400))
def list_crawls(app: Home, page: Paged) -> Any:
    """All crawls, in the order in which they were made, with how their last runs stand."""
    after = cursor_of(page, str, str)
    found = app.crawls.list((after[0], after[1]) if after else None, page.limit + 1)
    return listed(found, page, lambda one: [one.created_at, one.crawl_id])


@routes.get("/crawl/{crawl_id}", response_model=CrawlAnswer, responses=refusals(404))
def show_crawl(app: Home, crawl_id: CrawlId) -> Any:
    """A crawl: how its last run stands, its settings, its jobs."""
    return app.crawls.get(crawl_of(app, crawl_id))


@routes.patch("/crawl/{crawl_id}", response_model=CrawlAnswer, responses=refusals(400, 404, 409))
def change_crawl(app: Home, service: Service, crawl_id: CrawlId, body: ChangedCrawl) -> Any:
    """Change a crawl. Settings of a run hold from its next run on, those of a session from the next session on."""
    crawl = crawl_of(app, crawl_id)
    refuse_null({name: getattr(body, name) for name in body.model_fields_set})
    defaults = None if body.settings is None else named(body.settings, service.values)
    wanted = Configuration(body.name, defaults, body.incremental_crawling_enabled, body.enabled)
    changed = app.configure.change(crawl.crawl_id, wanted)
    service.wake()
    return app.crawls.get(changed)


@routes.delete("/crawl/{crawl_id}", status_code=204, responses=refusals(404, 409))
def delete_crawl(app: Home, crawl_id: CrawlId) -> None:
    """Delete a crawl with everything that it has: runs, pages, archive, jobs."""
    app.configure.remove(crawl_of(app, crawl_id))


@routes.put("/config", response_model=ConfigAnswer, responses=refusals(400))
def configure(app: Home, service: Service, body: Config) -> Any:
    """Set how the crawl of a URL goes on from session to session. The crawl is made if there is none."""
    values = given(body, ("incremental_crawling_enabled", "crawl_budget"))
    refuse_null(values)
    return app.configure.for_url(body.url, body.incremental_crawling_enabled, body.crawl_budget, service.caller)


# Runs


@routes.get("/crawl/{crawl_id}/queue", response_model=QueueAnswer, responses=refusals(404))
def queue(app: Home, crawl_id: CrawlId) -> Any:
    """The frontier of the last run in numbers."""
    return _queue(app, crawl_of(app, crawl_id))


@routes.delete("/crawl/{crawl_id}/queue", response_model=ClearedQueue, responses=refusals(404, 409))
def clear_queue(app: Home, crawl_id: CrawlId) -> Any:
    """Refuse every pending URL as `cleared` and complete the run. Its pages stay."""
    crawl = crawl_of(app, crawl_id)
    cleared = app.queue.clear_if_open(crawl)
    return {**_queue(app, crawl), "cleared": cleared}


def _queue(app: App, crawl: CrawlInfo) -> JsonObject:
    """The frontier in numbers, with the id of its run instead of the number."""
    found = app.frontier.numbers_if_any(crawl)
    named = {name: value for name, value in json_object(found).items() if name not in ("current_run", "sessions")}
    run_id = None if found.current_run is None else iteration_id(crawl, found.current_run)
    return {**named, "current_run_id": run_id, "run_crawl_ids": found.sessions}


@routes.get("/run/{run_id}", response_model=RunAnswer, responses=refusals(404))
def show_run(app: Home, run_id: RunId) -> Any:
    """A run and its sessions."""
    return app.runs.get(run_id)
