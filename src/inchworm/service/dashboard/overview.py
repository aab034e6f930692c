"""The first page: what runs now, what changed lately, what needs attention, and where a crawl is started."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from inchworm.app.act.plan import Start
from inchworm.app.root import App
from inchworm.engine.run import refuse_words
from inchworm.errors import InchwormError
from inchworm.service.api.web import Home, Service
from inchworm.service.dashboard.frame import Fields, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view

routes = pages()
_NAMED = ("scope", "page_limit", "max_depth", "budget", "delay", "workers")
_SEVERAL = ("include", "exclude")
_SCOPES = {
    "": "As usual: below its path",
    "host": "The whole host",
    "domain": "The domain with all its hosts",
    "any": "Wherever links lead",
}


@routes.get("/")
def overview(request: Request, app: Home) -> Any:
    return page(request, "overview.html", view="overview:", parts=parts(app, ""))


@view("overview")
def parts(app: App, _: str) -> Parts:
    found = app.health.overview()
    return {
        "running": part("_overview_running.html", running=found.running),
        "changed": part("_overview_changed.html", changed=found.changed),
        "attention": part("_overview_attention.html", attention=found.attention),
        "recent": part("_overview_recent.html", recent=found.recent, crawls=found.crawls),
    }


@routes.get("/start")
def new_crawl(request: Request, url: str = "") -> Any:
    return page(request, "start.html", values={"url": url}, trouble=None, scopes=_SCOPES)


@routes.post("/start")
def start(request: Request, app: Home, service: Service, form: Fields) -> Any:
    """Start a crawl by its URL, or go on with it."""
    urls = tuple(form.text("url").split())
    named: dict[str, Any] = {name: form.text(name) for name in _NAMED if form.text(name)}
    named |= {name: tuple(form.text(name).split()) for name in _SEVERAL if form.text(name)}
    try:
        refuse_words(urls)
        plan = app.plan.crawl(Start(urls, form.text("name"), named, caller=service.caller))
        started = app.hand_over.session(plan, service.wake)
    except InchwormError as error:
        return page(request, "start.html", error.status, values=dict(form), trouble=error, scopes=_SCOPES)
    return back(f"/crawls/{started.crawl_id}", started.message)
