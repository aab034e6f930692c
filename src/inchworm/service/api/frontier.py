"""Routes about rows of the frontier: what is known, what waits, what was not followed and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import ConfigDict, Field

from inchworm.app.act.queue import EntryAdded
from inchworm.app.read.frontier import After, EntryLine, ListedEntry, not_followed
from inchworm.errors import WrongUse
from inchworm.model import Reason, Source, State
from inchworm.service.api.web import (
    Answer,
    Body,
    Home,
    ListPage,
    ListSlice,
    Paged,
    Service,
    api_routes,
    crawl_of,
    cursor_of,
    listed,
    refusals,
)

routes = api_routes("frontier")
EntryId = Annotated[str, Path(max_length=110, examples=["7fb21d4d1e_0_1"])]
AnyCrawl = Annotated[str | None, Query(max_length=64, description="all crawls, if left out", examples=["7fb21d4d1e"])]
RunNumber = Annotated[int | None, Query(ge=0, lt=1 << 62, description="which run; the last, if left out")]


class NewEntry(Body):
    """A URL to be added to the last run of a crawl, as if it were `depth` links away from a seed."""

    crawl_id: str = Field(max_length=64)
    url: str = Field(min_length=1, max_length=4000)
    depth: int = Field(0, ge=0, le=1_000_000)

    model_config = ConfigDict(
        json_schema_extra={"example": {"crawl_id": "7fb21d4d1e", "url": "https://example.com/hidden", "depth": 0}}
    )


class EntryAnswer(Answer):
    id: str
    crawl_id: str
    run: int
    url: str
    state: State
    reason: Reason | None
    why: str | None
    source: Source
    depth: int
    hops: int
    found_on: str | None


class AddedEntry(EntryAnswer):
    added: bool
    message: str


class EntryList(Answer):
    items: list[EntryAnswer]
    next_cursor: str | None


@routes.get("/frontier", response_model=EntryList, responses=refusals(400, 404, 409))
def list_entries(
    app: Home,
    page: Paged,
    crawl_id: AnyCrawl = None,
    state: State | None = None,
    reason: Reason | None = None,
    source: Source | None = None,
    run: RunNumber = None,
) -> ListPage[EntryLine]:
    """Pages and resources that a run knows, in the order in which the crawl first met them. Without `crawl_id`: those
    of the last run of every crawl, the oldest crawl first."""
    filters = {"state": state, "reason": reason, "source": source}
    wanted = {name: value.value for name, value in filters.items() if value is not None}
    if crawl_id is None:
        if run is not None:
            raise WrongUse("Which crawl's run is meant?", "Send `crawl_id` beside `run`.")
        return _of_all(page, lambda after: app.frontier.list_of_all(wanted, after, page.limit + 1))
    crawl, after = crawl_of(app, crawl_id), cursor_of(page, int)
    found = app.frontier.list(crawl, wanted, run, after[0] if after else 0, page.limit + 1)
    return listed(found, page, lambda one: one.url_id)


def _of_all(page: ListSlice, rows_after: Callable[[After | None], Sequence[ListedEntry]]) -> ListPage[EntryLine]:
    """One page of a list over all crawls."""
    place = cursor_of(page, int, str, int)
    pairs = rows_after((place[0], place[1], place[2]) if place else None)
    part = listed(pairs, page, lambda pair: [pair[0].created_ms, pair[0].crawl_id, pair[1].url_id])
    return ListPage([row for _, row in part.items], part.next_cursor)


@routes.post(
    "/frontier",
    status_code=201,
    response_model=AddedEntry,
    responses={200: {"model": AddedEntry, "description": "It was known already"}, **refusals(400, 404, 409)},
)
def add_entry(app: Home, service: Service, response: Response, body: NewEntry) -> EntryAdded:
    """Add a URL by hand. It is judged like any other, so it may be refused: `state`, `reason` and `why` tell. One that
    is known already is answered with 200."""
    made = app.queue.add(crawl_of(app, body.crawl_id), body.url, body.depth, service.values.allow_private)
    if not made.added:
        response.status_code = 200
    return made


@routes.get("/frontier/{entry_id}", response_model=EntryAnswer, responses=refusals(404, 409))
def show_entry(app: Home, entry_id: EntryId) -> EntryLine:
    """One row of the frontier."""
    return app.frontier.get(entry_id)


@routes.delete("/frontier/{entry_id}", status_code=204, responses=refusals(404, 409))
def take_out(app: Home, entry_id: EntryId) -> None:
    """Take a pending URL out of the queue: it is refused as `cleared`."""
    app.queue.take_out(entry_id)


# Links that were not followed


@routes.get("/discovered-links", response_model=EntryList, responses=refusals(400, 404, 409))
def list_links(
    app: Home,
    page: Paged,
    crawl_id: AnyCrawl = None,
    reason: Reason | None = None,
) -> ListPage[EntryLine]:
    """Links that were seen and not followed, with where they were found and why. Those that are `cleared` are listed
    only when that is the reason that is asked for."""
    wanted = not_followed(reason.value if reason else None)
    if crawl_id is None:
        return _of_all(page, lambda after: app.frontier.list_of_all(wanted, after, page.limit + 1))
    last = cursor_of(page, int)
    found = app.frontier.list(crawl_of(app, crawl_id), wanted, None, last[0] if last else 0, page.limit + 1)
    return listed(found, page, lambda one: one.url_id)


@routes.get("/discovered-links/{entry_id}", response_model=EntryAnswer, responses=refusals(404, 409))
def show_link(app: Home, entry_id: EntryId) -> EntryLine:
    """One link that was not followed."""
    return app.frontier.get_not_followed(entry_id)


@routes.delete("/discovered-links/{entry_id}", status_code=204, responses=refusals(404, 409))
def dismiss_link(app: Home, entry_id: EntryId) -> None:
    """Dismiss a link: it becomes `cleared`, is no longer listed, and nothing else that links to it can make this run
    follow it."""
    app.queue.dismiss(entry_id)
