"""Pages about crawls: all of them, and one of them with its runs over time; and what can be done to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Path, Query, Request

from inchworm.app.act.configure import Configuration
from inchworm.app.act.plan import Start
from inchworm.app.read.runs import RunLine, RunSize
from inchworm.app.root import App
from inchworm.engine import run
from inchworm.errors import NotNow, WrongUse
from inchworm.model import CrawlInfo, RunState
from inchworm.rules.web import url as urls
from inchworm.service.api.web import Home, ListSlice, Paged, Service, Verbs, crawl_of, cursor_of, listed
from inchworm.service.dashboard.charts.growth import growth
from inchworm.service.dashboard.frame import Fields, Form, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view

routes = pages()
CrawlId = Annotated[str, Path(max_length=64)]
Text = Annotated[str, Query(max_length=200)]
_CRAWLS = 50
_RUNS = 30
_CHANGES = ("new", "modified", "unchanged", "deleted", "unknown")


# All crawls


@routes.get("/crawls")
def crawls(request: Request, app: Home, paged: Paged, text: Text = "") -> Any:
    seen = cursor_of(paged, str, str)
    asked = urlencode({"text": text, **(dict(zip(("at", "id"), seen, strict=True)) if seen else {})})
    return page(request, "crawls.html", view=f"crawls:{asked}", text=text, parts=list_parts(app, asked))


@view("crawls")
def list_parts(app: App, asked: str) -> Parts:
    """Crawls whose name has this `text`, made before `at`; of those made in that moment, the ones before `id`."""
    values = dict(parse_qsl(asked))
    seen, text = (values.get("at", ""), values.get("id", "")), values.get("text", "")
    found = app.crawls.list(seen if any(seen) else None, _CRAWLS + 1, text, newest_first=True)
    shown = listed(found, ListSlice(None, _CRAWLS), lambda one: [one.created_at, one.crawl_id])
    query = {"text": text, "cursor": "seen" if any(seen) else ""}
    return {"crawls": part("_crawls_rows.html", **shown._asdict(), query=query)}


# One crawl


@routes.get("/crawls/{crawl_id}")
def crawl(request: Request, app: Home, crawl_id: CrawlId, paged: Paged) -> Any:
    found = crawl_of(app, crawl_id)
    before = cursor_of(paged, int)
    older = _runs_part(app, found, app.runs.sizes(found), before[0]) if before else None
    return page(
        request,
        "crawl.html",
        view=f"crawl:{crawl_id}",
        crawl=found,
        tab="overview",
        seeds=[{"text": run.shown(text), "href": _href(text)} for text in found.seeds],
        parts=crawl_parts(app, crawl_id),
        older=older,
    )


@view("crawl")
def crawl_parts(app: App, crawl_id: str) -> Parts:
    found = crawl_of(app, crawl_id)
    now = app.crawls.now(found)
    names = ("state", "standing", "jobs")
    sizes = [] if now.note else app.runs.sizes(found)
    return {
        **{name: part(f"_crawl_{name}.html", crawl=found, now=now) for name in names},
        "growth": part("_crawl_growth.html", chart=growth(sizes)),
        "runs": _runs_part(app, found, sizes, None),
    }


def _runs_part(app: App, found: CrawlInfo, sizes: Sequence[RunSize], before: int | None) -> str:
    """Runs, each as long a bar as it is large. `before`: the number that they are below, if they are not the newest."""
    runs = app.runs.list(found, before, _RUNS + 1) if sizes else []
    shown = listed(runs[::-1], ListSlice(None, _RUNS), lambda one: one.run)
    rows = [(one, _counts(one)) for one in shown.items]
    totals = [sum(count for _, count in counts) for _, counts in rows]
    longest = max([1, *totals, *(one.pages for one in sizes)])
    return part(
        "_crawl_runs.html", crawl=found, rows=rows, longest=longest, before=before, next_cursor=shown.next_cursor
    )


def _counts(one: RunLine) -> list[tuple[str, int]]:
    """What became of the pages of a run."""
    if one.parent is None:
        return [("done", one.pages + one.duplicates)]
    return [(name, getattr(one, name)) for name in _CHANGES]


def _href(text: str) -> str:
    form = (urls.seed(text) or ("",))[0]
    return form if form.startswith(("http://", "https://")) and urls.userinfo_of(form) is None else ""


# What can be done to a crawl


@routes.post("/crawls/{crawl_id}/start")
def start(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    """The next run, now; the first is the baseline. `mode`: incremental or full."""
    found, mode = crawl_of(app, crawl_id), form.text("mode")
    if mode not in ("", "incremental", "full"):
        raise WrongUse(f"mode cannot be {mode!r}.", "It takes incremental or full.")
    job = app.hand_over.next_run(app.plan.recrawl(found.crawl_id, mode, caller=service.caller))
    begun = app.executions.begun(job.id, service.wake, job.executions)
    said = f"Run {begun.run} has begun." if begun else "The next run begins when the service gets to it."
    return back(f"/crawls/{crawl_id}", said)


@routes.post("/crawls/{crawl_id}/resume")
def resume(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    found = crawl_of(app, crawl_id)
    return back(page_of(form, crawl_id), _resumed(app, service, found))


def _resumed(app: App, service: Verbs, found: CrawlInfo) -> str:
    plan = app.plan.resume(found.crawl_id, caller=service.caller)
    return app.hand_over.session(plan, service.wake).message


@routes.post("/crawls/{crawl_id}/pause")
def pause(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    state = app.steer.pause(crawl_of(app, crawl_id).crawl_id)
    hint = "It goes on where it stopped when you resume it." if state == RunState.PAUSED else ""
    return back(page_of(form, crawl_id), f"The run is {state}.", hint)


@routes.post("/crawls/{crawl_id}/cancel")
def cancel(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    refuse_unsure(form)
    state = app.steer.end_run(crawl_of(app, crawl_id))
    return back(page_of(form, crawl_id), f"The run is {state}.", "Its pages stay.")


@routes.post("/crawls/{crawl_id}/fresh")
def start_over(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    refuse_unsure(form)
    found = crawl_of(app, crawl_id)
    plan = app.plan.crawl(Start(found.seeds, found.name, fresh=True, caller=service.caller))
    return back(f"/crawls/{crawl_id}", app.hand_over.session(plan, service.wake).message)


@routes.post("/crawls/{crawl_id}/checkpoint")
def checkpoint(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    made = app.steer.checkpoint(crawl_of(app, crawl_id).crawl_id)
    return back(page_of(form, crawl_id), f"Checkpoint {made.checkpoint_number} is made.")


@routes.post("/crawls/{crawl_id}/retry")
def retry(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    """Open what failed again, `kind` of it or all, and have it fetched: by the session that runs, else by a new one."""
    found = crawl_of(app, crawl_id)
    count = app.queue.retry(found.crawl_id, form.text("kind") or None)
    to = page_of(form, crawl_id)
    if not count:
        return back(to, "Nothing that failed is left to try again.")
    said = "1 URL is tried again." if count == 1 else f"{count:,} URLs are tried again."
    if app.workspace.is_running(found):
        return back(to, said)
    try:
        return back(to, f"{said} {_resumed(app, service, found)}")
    except NotNow as error:
        return back(to, f"{said} They wait for the next session.", error.message)


@routes.post("/crawls/{crawl_id}/enable")
def enable(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    app.configure.change(crawl_of(app, crawl_id).crawl_id, Configuration(enabled=True))
    service.wake()
    return back(page_of(form, crawl_id), "The crawl is on: its jobs run by themselves.")


@routes.post("/crawls/{crawl_id}/disable")
def disable(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    app.configure.change(crawl_of(app, crawl_id).crawl_id, Configuration(enabled=False))
    return back(page_of(form, crawl_id), "The crawl is off: its scheduled jobs are paused.")


@routes.post("/crawls/{crawl_id}/delete")
def delete(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    refuse_unsure(form)
    found = crawl_of(app, crawl_id)
    app.configure.remove(found)
    return back("/crawls", f"The crawl {found.name!r} is deleted.")


def page_of(form: Form, crawl_id: str) -> str:
    """The page that the form came from."""
    return form.text("back") or f"/crawls/{crawl_id}"


def refuse_unsure(form: Form) -> None:
    if form.text("sure") != "yes":
        raise WrongUse("That cannot be taken back, so it is asked for once more.", "Open it and say yes.")
