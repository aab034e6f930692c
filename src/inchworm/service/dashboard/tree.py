"""The page that shows a site as a tree, one level at a time."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from inchworm.errors import Unknown
from inchworm.service.api.web import Home, Paged, crawl_of, cursor_of, goes_on
from inchworm.service.dashboard.content import CrawlId, Text, number_of
from inchworm.service.dashboard.frame import page, pages

routes = pages()
_SCHEMES = ("http://", "https://")


@routes.get("/crawls/{crawl_id}/tree")
def tree(
    request: Request,
    app: Home,
    crawl_id: CrawlId,
    paged: Paged,
    run: Text = "",
    at: Annotated[str, Query(max_length=4000)] = "",
) -> Any:
    """A level of the site. A large run is counted bit by bit, while one looks."""
    crawl, after = crawl_of(app, crawl_id), cursor_of(paged, int)
    if at and not (at.startswith(_SCHEMES) and at.endswith("/")):
        raise Unknown(f"{at[:200]!r} is no folder of a site.", "Begin at the top of the tree.")
    found = app.site.level(crawl, number_of(run), at, max(0, after[0]) if after else 0)
    answer = page(
        request,
        "tree.html",
        crawl=crawl,
        tab="tree",
        found=found,
        run=run,
        at=at,
        runs=app.runs.choices(crawl),
        crumbs=crumbs(at),
        query={"run": run, "at": at, "cursor": request.query_params.get("cursor", "")},
        next_cursor=goes_on((), found.next_offset).next_cursor,
    )
    if not found.is_complete:
        answer.headers["Refresh"] = "0"
    return answer


def crumbs(at: str) -> list[tuple[str, str]]:
    """The folders above this one and itself, each with its name."""
    if not at:
        return []
    scheme, host, *names = at[:-1].replace("://", "/", 1).split("/")
    place = f"{scheme}://{host}/"
    found = [(place, host)]
    for name in names:
        place += f"{name}/"
        found.append((place, name))
    return found
