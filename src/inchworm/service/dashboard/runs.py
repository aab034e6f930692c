"""Pages about one run and its past: how it goes, its sessions, and the checkpoints that one can go back to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request

from inchworm.app.act.steer import KEEP_LAST
from inchworm.app.read.checkpoints import Back, NewestCheckpoints
from inchworm.app.read.progress import RunDetail
from inchworm.app.read.runs import SessionLine
from inchworm.app.root import App
from inchworm.errors import Unknown, WrongUse
from inchworm.model import Counters, CrawlInfo, RunState
from inchworm.rules.words.explain import DOWNLOADED
from inchworm.service.api.iterations import CrawlId, Number
from inchworm.service.api.web import Home, Paged, Service, crawl_of, cursor_of, listed
from inchworm.service.api.web import ListSlice as Place
from inchworm.service.dashboard.charts import draw
from inchworm.service.dashboard.frame import Fields, Form, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view

routes = pages()

_MOST_MARKS = 40
CHECKPOINTS = 50
_DIGITS = 18
_PARTS = ("state", "standing", "pace", "line", "failures", "hosts", "changes")
_COMPLETE = ("finished", "page_limit")

ENDINGS: Mapping[str, str] = {
    "finished": "Complete: nothing is left to crawl.",
    "page_limit": "Complete: every seed has the pages that its limit allows.",
    "budget": "Paused: the last session has used up its budget.",
    "time": "Paused: the last session has used up its time.",
    "bytes": "Paused: the last session has used up its bytes.",
    "waiting": "Paused: all that is left has to wait, because servers asked for that.",
    "quality": "Paused: the last pages brought too little.",
    "paused": "Paused because somebody asked for it.",
    "cancelled": "Cancelled. Its pages stay.",
    "error": "The last session ended with an error. What was committed before is safe.",
    "crashed": "The last session crashed. What was committed before is safe.",
}
"""How a run stands when its last session ended so."""

TONES: Mapping[str | None, str] = {
    None: "live",
    **dict.fromkeys(("finished", "page_limit"), "done"),
    **dict.fromkeys(("budget", "time", "bytes", "waiting", "quality", "paused"), "pending"),
    "cancelled": "refused",
    **dict.fromkeys(("error", "crashed"), "failed"),
}
"""The colour of a session that ended so; none: it is at work."""

# One run


@routes.get("/crawls/{crawl_id}/runs/{number}")
def show_run(request: Request, app: Home, crawl_id: CrawlId, number: Number) -> Any:
    crawl = crawl_of(app, crawl_id)
    found = app.progress.of(crawl, number)
    name = f"run:{crawl_id}:{number}" if found.is_last else ""
    context: dict[str, Any] = {"crawl": crawl, "tab": "run", "one": found, "parts": _parts(app, crawl, found)}
    return page(request, "run.html", view=name, **context)


@view("run")
def run_parts(app: App, name: str) -> Parts:
    crawl_id, _, number = name.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        raise Unknown(f"There is no run {number[:80]!r}.", "Load the page again.")
    crawl = crawl_of(app, crawl_id)
    return _parts(app, crawl, app.progress.of(crawl, int(number)))


def _parts(app: App, crawl: CrawlInfo, found: RunDetail) -> Parts:
    why = app.progress.downloaded(crawl, found.run)
    context = {
        "crawl": crawl,
        "at": f"/crawls/{crawl.crawl_id}",
        "one": found,
        "stands": in_words(found.state, found.counters, [one.line for one in found.sessions], found.is_running),
        "plot": _plot(found),
        "line": _line(found),
        "tones": TONES,
        "why": sorted(((DOWNLOADED[word], count) for word, count in why.items()), key=lambda one: -one[1]),
    }
    return {f"run-{name}": part(f"_run_{name}.html", **context) for name in _PARTS}


def in_words(state: RunState, counters: Counters, sessions: Sequence[SessionLine], is_running: bool) -> str:
    """How a run stands, in a sentence."""
    if is_running:
        return f"Session {sessions[-1].session} is at work." if sessions else "It is about to begin."
    if not sessions:
        return "No session has worked on it yet."
    by = sessions[-1].ended_by or ""
    if state == "cancelled":
        return ENDINGS["cancelled"]
    if state == "paused" and by in _COMPLETE:
        return "Open again: what is pending waits for the next session."
    if state == "completed" and by not in _COMPLETE:
        return "Complete: what was still pending was given up."
    if state == "completed" and counters.failed and not counters.pages:
        return "Complete, but nothing could be fetched."
    return ENDINGS.get(by, f"Its last session ended: {by.replace('_', ' ')}.")


def _plot(found: RunDetail) -> draw.Plot | None:
    worked, starts = 0.0, []
    for one in found.sessions:
        starts.append(worked)
        worked += one.seconds
    return draw.plot(found.pace.points, starts, found.pace.first)


def _line(found: RunDetail) -> dict[str, Any]:
    """Sessions and checkpoints on one line, from the first step of the run to its last."""
    sessions = [one for one in found.sessions if one.last > one.first]
    low, high = found.pace.first, max(found.seq, 1)
    places = draw.segments([(one.first, one.last) for one in sessions], low, high)
    shown = [(number, seq) for number, seq in found.marks if seq >= low]
    marks = draw.segments([(seq, seq) for _, seq in shown], low, high)
    return {
        "sessions": list(zip(places, sessions, strict=True)),
        "marks": [(marks[at].at, *shown[at]) for at in draw.thinned(marks, _MOST_MARKS)],
        "tones": sorted({TONES.get(one.line.ended_by, "refused") for one in sessions}),
        "low": low,
        "high": found.seq,
    }


@routes.post("/crawls/{crawl_id}/runs/{number}/make-line")
def make_line(app: Home, crawl_id: CrawlId, number: Number, form: Fields) -> Any:
    """Have later runs build on this one; asked for twice, as it changes what all of them are told against."""
    if form.text("sure") != "yes":
        raise WrongUse("Later runs would build on another one, so it is asked for once more.", "Open it and say yes.")
    made = app.steer.make_line(crawl_of(app, crawl_id).crawl_id, number)
    return back(f"/crawls/{crawl_id}/runs/{number}", f"Later runs build on run {made.line}.")


# Checkpoints


@routes.get("/crawls/{crawl_id}/checkpoints")
def checkpoints(request: Request, app: Home, crawl_id: CrawlId, paged: Paged) -> Any:
    crawl, before = crawl_of(app, crawl_id), cursor_of(paged, int)
    found = app.checkpoints.newest(crawl, before[0] if before else None, paged.limit + 1)
    context: dict[str, Any] = {"crawl": crawl, "tab": "checkpoints", "found": found, "keep_last": KEEP_LAST}
    parts = _list_part(crawl, found, paged, request.query_params.get("cursor", ""))
    name = f"checkpoints:{crawl_id}" if before is None else ""
    return page(request, "checkpoints.html", **context, parts=parts, view=name)


@view("checkpoints")
def checkpoint_parts(app: App, crawl_id: str) -> Parts:
    crawl, place = crawl_of(app, crawl_id), Place(None, CHECKPOINTS)
    return _list_part(crawl, app.checkpoints.newest(crawl, None, CHECKPOINTS + 1), place, "")


def _list_part(crawl: CrawlInfo, found: NewestCheckpoints, paged: Place, cursor: str) -> Parts:
    shown = listed(found.rows, paged, lambda one: one.checkpoint_number)
    context = {
        "crawl_id": crawl.crawl_id,
        "at": f"/crawls/{crawl.crawl_id}",
        "found": found,
        "query": {"cursor": cursor},
        **shown._asdict(),
    }
    return {"checkpoint-list": part("_checkpoint_list.html", **context)}


@routes.post("/crawls/{crawl_id}/checkpoints/{number}/continue")
def continue_from(app: Home, service: Service, crawl_id: CrawlId, number: Number, form: Fields) -> Any:
    """Go back to a checkpoint. If that undoes something, it is asked for once more."""
    crawl = crawl_of(app, crawl_id)
    point, current = app.checkpoints.target(crawl, Back(number, validate=False))
    if point.seq < current.seq and form.text("sure") != "yes":
        raise WrongUse("That cannot be taken back, so it is asked for once more.", "Open it and say yes.")
    return _went_on(app, service, crawl, Back(number))


@routes.post("/crawls/{crawl_id}/checkpoints/{number}/branch")
def branch_from(app: Home, service: Service, crawl_id: CrawlId, number: Number, _: Fields) -> Any:
    """A new run from a checkpoint on; the old one stays as it is."""
    return _went_on(app, service, crawl_of(app, crawl_id), Back(number, as_new_run=True))


def _went_on(app: App, service: Any, crawl: Any, wanted: Back) -> Any:
    made = app.hand_over.continuation(app.plan.continue_from(crawl.crawl_id, wanted, caller=service.caller))
    begun = app.executions.begun(made.job_id, service.wake)
    if begun is None:
        text = f"The crawl goes on from checkpoint {wanted.checkpoint} when the service gets to it."
        return back(f"/crawls/{crawl.crawl_id}/checkpoints", text)
    verb = "has branched off" if wanted.as_new_run else "goes on"
    text = f"Run {begun.run} {verb} from checkpoint {wanted.checkpoint}."
    return back(f"/crawls/{crawl.crawl_id}/runs/{begun.run}", text)


@routes.post("/crawls/{crawl_id}/checkpoints/{number}/delete")
def delete_checkpoint(app: Home, crawl_id: CrawlId, number: Number, form: Fields) -> Any:
    gone = app.steer.delete_checkpoint(crawl_of(app, crawl_id).crawl_id, number)
    return back(_list_of(form, crawl_id), f"Checkpoint {gone} is deleted.", "The pages before it stay.")


@routes.post("/crawls/{crawl_id}/checkpoints/cleanup")
def clean_up(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    """Delete all checkpoints but the last so many."""
    keep = form.text("keep")
    if not (keep.isascii() and keep.isdecimal() and len(keep) < _DIGITS):
        raise WrongUse(f"{keep[:20]!r} checkpoints cannot be kept.", "Give a number from 0 on.")
    gone = app.steer.keep_checkpoints(crawl_of(app, crawl_id).crawl_id, int(keep))
    text = f"{gone:,} checkpoints are deleted." if gone != 1 else "1 checkpoint is deleted."
    return back(_list_of(form, crawl_id), text if gone else "There was nothing to delete.")


def _list_of(form: Form, crawl_id: str) -> str:
    return form.text("back") or f"/crawls/{crawl_id}/checkpoints"
