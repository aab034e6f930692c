"""Routes about pages: what became of each URL, why, what changed, what failed, full text, reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from inchworm.app.read.content.pages import ListPart
from inchworm.app.read.content.single import PARTS, parts_of, refuse_unknown_parts
from inchworm.app.read.content.visits import UrlLine, VisitLine, url_line
from inchworm.app.read.reports import REPORTS
from inchworm.app.root import App
from inchworm.errors import WrongUse
from inchworm.model import Change, Json
from inchworm.rules.words.failures import KINDS
from inchworm.rules.words.json_form import FLAT
from inchworm.service.api.web import (
    Answer,
    Body,
    Frame,
    Home,
    ListPage,
    ListSlice,
    Paged,
    api_routes,
    as_file,
    at_length,
    crawl_of,
    cursor_of,
    goes_on,
    refusals,
)

routes = api_routes("pages", "/api/v1/crawl/{crawl_id}")
CrawlId = Annotated[str, Path(max_length=64, examples=["7fb21d4d1e"])]
Url = Annotated[str, Query(min_length=1, max_length=4000, examples=["https://example.com/docs"])]
RunNumber = Annotated[int | None, Query(ge=0, lt=1 << 62, description="which run; the last, if left out")]
Kind = Annotated[str | None, Query(max_length=50, description="only failures of this kind")]
Settled = Literal["page", "duplicate", "resource", "redirect", "failed", "deleted"]

_MOST_LINES = 2_000
"""Of a text that is compared with another."""


class PageAnswer(Answer):
    url: str
    canonical_url: str
    seq: int
    outcome: str
    status: int
    failure: str | None
    message: str | None
    change: Change | None
    title: str | None
    content_type: str | None
    bytes: int
    fetched_at: str


class PageList(Answer):
    items: list[PageAnswer]
    next_cursor: str | None


class KnownAnswer(Answer):
    url: str
    canonical_url: str
    state: str
    reason: str | None
    source: str
    depth: int
    found_on: str | None
    visits: list[PageAnswer]
    fields: list[dict[str, Any]] | None = Field(description="the rows of fields of the page; null where there are none")


@dataclass(frozen=True, slots=True)
class KnownPage:
    """What a run knows of a URL, its rows of fields, and parts of the page."""

    known: UrlLine = field(metadata=FLAT)
    fields: Sequence[Mapping[str, Json]] | None
    parts: Mapping[str, Json] = field(default_factory=dict, metadata=FLAT)


class WhyAnswer(Answer):
    url: str
    canonical_url: str
    state: str
    reason: str | None
    why: str


class DiffAnswer(Answer):
    url: str
    canonical_url: str
    baseline: int
    current: int
    diff: list[str]
    is_cut: bool = Field(description="only the beginning of both texts is compared")


class Failed(Body):
    """Which failed URLs are to be opened again: those of a kind, one, or, without either, all."""

    kind: str | None = Field(None, max_length=50)
    url: str | None = Field(None, min_length=1, max_length=4000)

    model_config = ConfigDict(json_schema_extra={"example": {"kind": "http_5xx"}})


class Reopened(Answer):
    reopened: int
    message: str


class SearchAnswer(Answer):
    query: str
    count: int
    results: list[dict[str, Any]]


class ReportAnswer(Answer):
    report: str
    crawl_id: str
    run: int
    count: int
    rows: list[dict[str, Any]]


@routes.get("/pages", response_model=PageList, responses=refusals(400, 404, 409))
def list_pages(
    app: Home,
    page: Paged,
    crawl_id: CrawlId,
    run: RunNumber = None,
    outcome: Annotated[Settled | None, Query(description="only what came to this")] = None,
    change: Annotated[Change | None, Query(description="only what changed in this way")] = None,
    q: Annotated[str | None, Query(max_length=2000, description="only URLs with this in them")] = None,
) -> Any:
    """What became of the pages and resources of a run, in the order of record. In a long run a part of this list may
    hold less than was asked for: the list has ended when there is no `next_cursor`."""
    filters = {"outcome": outcome, "change": change and change.value, "text": q}
    wanted = {name: value for name, value in filters.items() if value}
    return _listed(app, crawl_id, wanted, run, page)


def _listed(app: App, crawl_id: str, wanted: dict[str, str], run: int | None, page: ListSlice) -> ListPage[VisitLine]:
    crawl, after = crawl_of(app, crawl_id), cursor_of(page, int)
    found = app.pages.listed(crawl.crawl_id, wanted, run, ListPart(max(0, after[0]) if after else 0, page.limit))
    return goes_on(found.items, found.next_after)


@routes.get("/page", response_model=KnownAnswer, responses=refusals(404, 409, 503))
def show_page(
    app: Home,
    crawl_id: CrawlId,
    url: Url,
    run: RunNumber = None,
    parts: Annotated[
        str, Query(alias="with", max_length=200, description=f"parts of the page itself, of {', '.join(PARTS)}")
    ] = "",
    frame: Frame = None,
) -> Any:
    """All that a run knows of one URL, every visit to it included; and, `with` some, parts of the page as the archive
    has it: those of the newest version, or of the run that was named."""
    wanted = [name.strip() for name in parts.split(",") if name.strip()]
    refuse_unknown_parts(wanted)
    crawl = crawl_of(app, crawl_id)
    known = url_line(app.pages.one(crawl.crawl_id, url, run))
    rows = app.extract.page_fields(crawl.crawl_id, url, run)
    if not wanted:
        return KnownPage(known, rows)
    with at_length():
        return KnownPage(known, rows, parts_of(app.bodies.page(crawl.crawl_id, url, run, frame=frame or ""), wanted))


@routes.get("/why", response_model=WhyAnswer, responses=refusals(404, 409))
def why(app: Home, crawl_id: CrawlId, url: Url, run: RunNumber = None) -> Any:
    """Why a URL was or was not crawled."""
    return app.pages.why(crawl_of(app, crawl_id).crawl_id, url, run)


@routes.get("/diff", response_model=DiffAnswer, responses=refusals(404, 409))
def diff(app: Home, crawl_id: CrawlId, url: Url, baseline: RunNumber = None, current: RunNumber = None) -> Any:
    """The text of one page in two runs, line by line. Without numbers: the last run and the one it builds on."""
    with at_length():
        return app.changes.diff(crawl_of(app, crawl_id).crawl_id, url, baseline, current, _MOST_LINES)


@routes.get("/failed", response_model=PageList, responses=refusals(400, 404, 409))
def list_failed(app: Home, page: Paged, crawl_id: CrawlId, kind: Kind = None) -> Any:
    """URLs of the last run that failed, in the order of record."""
    _refuse_unknown(kind)
    wanted = {"outcome": "failed", **({"failure": kind} if kind else {})}
    return _listed(app, crawl_id, wanted, None, page)


@routes.post("/retry", response_model=Reopened, responses=refusals(400, 404, 409))
def retry(app: Home, crawl_id: CrawlId, body: Failed | None = None) -> Any:
    """Open failed URLs again. A session that runs fetches them; otherwise the next one does."""
    crawl = crawl_of(app, crawl_id)
    kind, url = (body.kind, body.url) if body else (None, None)
    _refuse_unknown(kind)
    count = app.queue.retry(crawl.crawl_id, kind, url)
    message = "The next session fetches them." if count else "Nothing that failed fits."
    return {"reopened": count, "message": message}


def _refuse_unknown(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise WrongUse(f"There is no kind of failure called {kind!r}.", f"Known ones: {', '.join(KINDS)}.")


@routes.get("/search", response_model=SearchAnswer, responses=refusals(404, 409))
def search(
    app: Home,
    crawl_id: CrawlId,
    q: Annotated[str, Query(min_length=1, max_length=1000, description="words, or phrases in quotation marks")],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    frame: Frame = None,
) -> Any:
    """Pages that say something, best first. The index is brought up to date first."""
    with at_length():
        return app.search.find(crawl_of(app, crawl_id).crawl_id, q, limit, frame=frame or "")


@routes.get("/reports/{kind}", response_model=ReportAnswer, responses=refusals(404, 409))
def report(
    app: Home,
    crawl_id: CrawlId,
    kind: Annotated[str, Path(max_length=50, description=f"one of {', '.join(REPORTS)}", examples=["broken-links"])],
    run: RunNumber = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="rows at most; of `errors`: examples of each")] = 100,
    format: Annotated[Literal["json", "csv"], Query(description="`csv`: a file for spreadsheets, all rows")] = "json",  # noqa: A002 - what callers call it
) -> Any:
    """What a run found wrong with a site, or slow."""
    crawl = crawl_of(app, crawl_id)
    if format == "json":
        with at_length():
            return app.reports.one(crawl.crawl_id, kind, run, limit)
    return as_file(
        f"{crawl.crawl_id}-{kind}.csv",
        "text/csv; charset=utf-8",
        lambda out: app.reports.csv(crawl.crawl_id, kind, out, run),
    )
