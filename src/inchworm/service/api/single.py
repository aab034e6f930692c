"""Routes about pages that no crawl has."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import ConfigDict, Field

from inchworm.app.read.content.single import MOST_URLS, PARTS, USUAL_PARTS, page_facts, refuse_unknown_parts
from inchworm.service.api.web import Answer, Body, Service, api_routes, at_length, refusals

routes = api_routes("pages")


class ReadBody(Body):
    """Which page is to be read, and which parts of it are wanted."""

    url: str = Field(min_length=1, max_length=4000)
    parts: list[str] = Field(
        list(USUAL_PARTS), max_length=len(PARTS), alias="with", description=f"of {', '.join(PARTS)}"
    )

    model_config = ConfigDict(
        json_schema_extra={"example": {"url": "https://example.org/docs", "with": ["text", "links"]}}
    )


class ReadAnswer(Answer):
    url: str = Field(description="where the page was found in the end")
    status: int | None
    failure: str | None = Field(description="the kind of failure, when the page could not be had")
    message: str | None
    fetched_at: str | None
    content_type: str
    title: str
    author: str | None
    published: str | None
    modified: str | None
    language: str | None
    description: str | None


class MappedUrl(Answer):
    url: str
    canonical_url: str
    source: str = Field(description="`sitemap` or `spider`: on the page itself")
    lastmod: str | None


class MapAnswer(Answer):
    url: str
    urls: list[MappedUrl]
    is_cut: bool = Field(description="there are more than were asked for")
    failure: str | None = Field(description="why the page itself could not be read")
    notes: list[str] = Field(description="what else could not be read")


@routes.post("/read", response_model=ReadAnswer, responses=refusals(503))
def read_page(service: Service, body: ReadBody) -> Any:
    """Read one page, without a crawl: one polite request that obeys robots.txt. Nothing is stored. A page that cannot
    be had is an answer, too: `failure` and `message` say why."""
    refuse_unknown_parts(body.parts)
    with at_length():
        page = service.single_pages.read(body.url, allow_private=service.values.allow_private)
        return page_facts(page, body.parts)


@routes.get("/map", response_model=MapAnswer, responses=refusals(503))
def map_site(
    service: Service,
    url: Annotated[str, Query(min_length=1, max_length=4000, examples=["https://example.org/"])],
    limit: Annotated[int, Query(ge=1, le=MOST_URLS, description="URLs at most")] = 5_000,
) -> Any:
    """The URLs that a site names, without a crawl: those of its sitemaps, as robots.txt names them, and those of one
    page. Nothing is stored."""
    with at_length():
        return service.single_pages.map(url, limit, allow_private=service.values.allow_private)
