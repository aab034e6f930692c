"""The page of reports: what a run found wrong with a site, and what is slow."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from inchworm.app.read.reports import REPORTS
from inchworm.errors import Unknown
from inchworm.service.api.web import Home, crawl_of
from inchworm.service.dashboard.content import CrawlId, Text, number_of
from inchworm.service.dashboard.frame import page, pages

routes = pages()


@routes.get("/crawls/{crawl_id}/reports")
def reports(request: Request, app: Home, crawl_id: CrawlId, kind: Text = "broken-links", run: Text = "") -> Any:
    """One report. That of a large run is made beside, while one looks."""
    if kind not in REPORTS:
        raise Unknown(f"There is no report {kind[:50]!r}.", f"There is {', '.join(REPORTS)}.")
    crawl = crawl_of(app, crawl_id)
    found = app.reports.soon(crawl, kind, number_of(run))
    answer = page(
        request,
        "reports.html",
        crawl=crawl,
        tab="reports",
        kinds=REPORTS,
        kind=kind,
        found=found,
        run=run,
        runs=app.runs.choices(crawl),
    )
    if found is None:
        answer.headers["Refresh"] = "1"
    return answer
