"""Jobs: all of them, one of them, one execution with its log as it is written; and whatever can be done with them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import Query, Request
from fastapi.responses import Response

from inchworm.app.act.jobs.change import SOURCE_DISABLED, WantedJob
from inchworm.app.act.plan import Caller
from inchworm.app.read.jobs import JobDetail, JobLine, RepetitionLine
from inchworm.app.root import App
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.job import ExecutionState, JobFilter, JobState, Task
from inchworm.rules.schedule import states
from inchworm.rules.schedule.repetition import Stop
from inchworm.rules.schedule.states import Action
from inchworm.rules.schedule.timetable import SLOTS, UNITS
from inchworm.rules.words.figures import clip
from inchworm.rules.words.times import iso
from inchworm.service.api.jobs import ExecutionId, JobId
from inchworm.service.api.web import Home, ListPage, Paged, Service, cursor_of, listed
from inchworm.service.api.web import ListSlice as Place
from inchworm.service.dashboard.frame import Fields, Form, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view
from inchworm.service.templating import age, one_of

routes = pages()
ROWS = 50
_MOST_NAMES = 100
_MOST_TRACE = 20_000
_MOST_DIGITS = 16
_MODES = ("", "incremental", "full")


# All jobs


@dataclass(frozen=True, slots=True)
class ShownJobs:
    """Which jobs a page lists; its name is what an open page watches."""

    status: str = ""
    crawl: str = ""
    slot: int | None = None
    order: str = ""
    after: tuple[int, str] | None = None

    @property
    def query(self) -> dict[str, Any]:
        slot = "" if self.slot is None else self.slot
        return {"status": self.status, "crawl": self.crawl, "slot": slot, "order": self.order}

    @property
    def name(self) -> str:
        after = {"place": self.after[0], "job": self.after[1]} if self.after else {}
        return urlencode({name: value for name, value in {**self.query, **after}.items() if value != ""})

    @classmethod
    def named(cls, name: str) -> ShownJobs:
        """From a name that anybody may have written."""
        given = dict(parse_qsl(name))
        place = _digits(given.get("place", ""))
        after = (place, given.get("job", "")) if place is not None else None
        status, crawl, order = (given.get(name, "") for name in ("status", "crawl", "order"))
        status = status if status in tuple(JobState) else ""
        return cls(status, crawl, _digits(given.get("slot", "")), order, after)

    @property
    def filter(self) -> JobFilter:
        return JobFilter(JobState(self.status) if self.status else None, self.crawl or None, self.slot)


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


@routes.get("/jobs")
def jobs(
    request: Request,
    app: Home,
    place: Paged,
    status: JobState | None = None,
    crawl: Annotated[str, Query(max_length=200)] = "",
    slot: Annotated[int | None, Query(ge=0, lt=SLOTS)] = None,
    order: Literal["", "made"] = "",
) -> Any:
    which = ShownJobs(status or "", crawl, slot, order, cursor_of(place, int, str))
    return _jobs_page(request, app, which)


def _jobs_page(
    request: Request,
    app: App,
    which: ShownJobs,
    status: int = 200,
    values: Mapping[str, str] | None = None,
    trouble: InchwormError | None = None,
) -> Response:
    found = app.workspace.crawls.find(which.crawl) if which.crawl else None
    return page(
        request,
        "jobs.html",
        status,
        view=f"jobs:{which.name}",
        parts=_jobs_parts(app, which),
        which=which,
        crawl=found,
        names=[one.name for one in app.workspace.crawls.all()[:_MOST_NAMES]],
        values=values or {"target": found.name if found else "", "unit": "hours", "adaptive": "yes"},
        trouble=trouble,
    )


@view("jobs")
def jobs_parts(app: App, name: str) -> Parts:
    return _jobs_parts(app, ShownJobs.named(name))


def _jobs_parts(app: App, which: ShownJobs) -> Parts:
    found = app.jobs.listed(which.filter, which.after, ROWS + 1, which.order != "made")
    part_of_them = listed(found, Place(None, ROWS), lambda one: one.place)
    rows = ListPage([in_words(one) for one in part_of_them.items], part_of_them.next_cursor)
    counts = app.jobs.store.counts()
    query = {**which.query, "cursor": "yes" if which.after else ""}
    return {
        "job-tabs": part("_jobs_tabs.html", counts=counts, total=sum(counts.values()), which=which),
        "job-rows": part("_jobs_rows.html", rows=rows, which=which, query=query),
    }


@routes.post("/jobs")
def add_job(request: Request, app: Home, service: Service, form: Fields) -> Any:
    """Make a job for a crawl, by its name, its id or the address of its site."""
    try:
        made = app.schedule.add(_wanted(app, form, service.caller))
    except InchwormError as error:
        return _jobs_page(request, app, ShownJobs(), error.status, form, error)
    service.wake()
    return back(f"/jobs/{made.id}", f"There is a job for {made.name} now.")


def _wanted(app: App, form: Form, caller: Caller) -> WantedJob:
    target = form.text("target")
    if not target:
        raise WrongUse("A job needs a crawl.", "Give the name of a crawl, or the address of a site.")
    known = app.workspace.crawls.find(target)
    return WantedJob(
        source_id=known.crawl_id if known else None,
        url=None if known else target,
        interval_minutes=_whole(form, "every"),
        interval_type=form.text("unit") or None,
        adaptive_scheduling="adaptive" in form,
        task=Task(mode=form.text("mode")),
        caller=caller,
    )


def _whole(form: Form, name: str) -> int | None:
    """A number that was filled in; None when nothing was."""
    text = form.text(name)
    if not text:
        return None
    if (number := _digits(text)) is None:
        raise WrongUse(f"{clip(text, 40)!r} is no whole number.", "Give digits only, such as 6.")
    return number


# What can be done with a job


_ACTIONS = {one.command: one for one in Action}


@routes.post("/jobs/{job_id}/edit")
def change_job(request: Request, app: Home, service: Service, job_id: JobId, form: Fields) -> Any:
    try:
        wanted, cleared = _changed(form)
        made = app.schedule.change(job_id, wanted, cleared)
    except Unknown:
        raise
    except InchwormError as error:
        return _edit_page(request, app, job_id, error.status, form, error)
    service.wake()
    return back(f"/jobs/{job_id}", f"Changed. {made.name or 'It'} runs {rhythm(app.jobs.one(job_id))}.")


def _changed(form: Form) -> tuple[WantedJob, frozenset[str]]:
    after = form.text("after")
    wanted = WantedJob(
        interval_minutes=_whole(form, "every"),
        interval_type=form.text("unit") or None,
        schedule_enabled="enabled" in form,
        adaptive_scheduling="adaptive" in form,
        max_retries=_whole(form, "retries"),
        retry_backoff_seconds=_whole(form, "backoff"),
        after_job_id=after or None,
    )
    empty = {"interval_minutes": wanted.interval_minutes is None, "after_job_id": not after}
    return wanted, frozenset(name for name, is_empty in empty.items() if is_empty)


@routes.post("/jobs/{job_id}/delete")
def delete_job(request: Request, app: Home, job_id: JobId, _: Fields) -> Any:
    name = app.jobs.one(job_id).line.name or job_id
    app.schedule.delete(job_id)
    came_from: str = request.state.back
    is_list = came_from.partition("?")[0] == "/jobs"
    return back(came_from if is_list else "/jobs", f"The job of {name} is deleted. What it crawled stays.")


@routes.post("/jobs/{job_id}/{command}")
def act(request: Request, app: Home, service: Service, job_id: JobId, command: str, _: Fields) -> Any:
    if command not in _ACTIONS:
        raise WrongUse(f"Nothing that is called {clip(command, 40)!r} can be done with a job.", "Load the page again.")
    made = app.schedule.act(job_id, _ACTIONS[command])
    service.wake()
    text = states.DONE[_ACTIONS[command]].format(name=made.name or "The job", next=_soon(made))
    return back(request.state.back or f"/jobs/{job_id}", text)


def _soon(made: JobLine) -> str:
    """When a job runs next, in words."""
    if not made.next_run_at:
        return "when somebody starts it"
    away = datetime.fromisoformat(made.next_run_at).timestamp() - time.time()
    return "now" if away <= 0 else age(away)


# One job


@routes.get("/jobs/{job_id}/edit")
def edit_job(request: Request, app: Home, job_id: JobId) -> Any:
    return _edit_page(request, app, job_id)


def _edit_page(
    request: Request,
    app: App,
    job_id: str,
    status: int = 200,
    values: Mapping[str, str] | None = None,
    trouble: InchwormError | None = None,
) -> Response:
    job = app.jobs.one(job_id).line
    others = [one.line for one in app.jobs.listed(limit=_MOST_NAMES) if one.line.id != job_id]
    context = {"job": job, "others": others, "values": values or _filled_in(job), "trouble": trouble}
    return page(request, "job_edit.html", status, units=tuple(UNITS), **context)


def _filled_in(job: JobLine) -> dict[str, str]:
    """The form as it is before anybody changes it."""
    boxes = {"enabled": job.schedule_enabled or not job.interval_minutes, "adaptive": job.adaptive_scheduling}
    return {
        "every": str(job.interval_minutes or ""),
        "unit": job.interval_type,
        "retries": str(job.max_retries),
        "backoff": str(job.retry_backoff_seconds),
        "after": job.after_job_id or "",
        **{name: "yes" for name, is_on in boxes.items() if is_on},
    }


@routes.get("/jobs/{job_id}")
def job(request: Request, app: Home, job_id: JobId, place: Paged) -> Any:
    before = cursor_of(place, int)
    found = _job_parts(app, job_id, before[0] if before else None)
    name = app.jobs.one(job_id).line.name or job_id
    watched = f"job:{job_id}:{before[0]}" if before else f"job:{job_id}"
    return page(request, "job.html", view=watched, parts=found, name=name, job_id=job_id)


@view("job")
def job_parts(app: App, name: str) -> Parts:
    job_id, _, before = name.partition(":")
    return _job_parts(app, job_id, _digits(before))


def _job_parts(app: App, job_id: str, before: int | None) -> Parts:
    job = in_words(app.jobs.one(job_id))
    found = app.executions.listed(job_id, before, ROWS + 1)
    executions = listed(found, Place(None, ROWS), lambda one: one.execution_number)
    query = {"cursor": "yes" if before is not None else ""}
    return {
        "job-head": part("_job_head.html", job=job),
        "job-facts": part("_job_facts.html", job=job, chain=app.jobs.chain(job_id), does=does(job.line)),
        "job-figures": part("_job_figures.html", stats=app.jobs.stats(job_id)),
        "job-executions": part("_job_executions.html", job=job, executions=executions, query=query),
    }


# In words


_WHY = {
    SOURCE_DISABLED: "Its crawl is switched off.",
    Stop.NO_CHANGES: "It ended because its last run found no changes.",
    Stop.ENOUGH: "It ended because it has made as many runs as it was to make.",
}


class JobInWords(NamedTuple):
    """A job, what holds it up now, how often it runs, and why it is in its state."""

    line: JobLine
    now: JobDetail
    rhythm: str
    why: str | None


def in_words(job: JobDetail) -> JobInWords:
    reason = job.line.reason
    return JobInWords(job.line, job, rhythm(job), _WHY.get(reason, reason) if reason else None)


def rhythm(detail: JobDetail) -> str:
    """How often a job runs, as it is now."""
    job = detail.line
    if detail.base_seconds is None or job.current_interval_seconds is None:
        waits = "after another job" if job.after_job_id else "whenever somebody starts it"
        return waits if job.after_job_id or job.repetition else "once"
    base, current = detail.base_seconds, job.current_interval_seconds
    said = f"every {span(base)}"
    if not job.schedule_enabled:
        return f"{said}, but its schedule is switched off"
    return f"{said}, now {span(current)} because nothing changed" if current != base else said


def span(seconds: int) -> str:
    """30 min, 1 h 4 min, 7 days."""
    days, rest = divmod(seconds, 86_400)
    hours, minutes = divmod(rest // 60, 60)
    said = [one_of(days, "day")] if days else []
    said += [f"{hours} h"] if hours else []
    said += [f"{minutes} min"] if minutes else []
    return " ".join(said)


_DOES = {
    "crawl": "Goes on with the run that is open; when there is none, begins the next one.",
    "resume": "Goes on with the run that is open.",
    "recrawl": "Begins a new run.",
    "fresh": "Begins anew, as if nothing were known.",
    "continue": "Goes back to a checkpoint and goes on from there.",
}
_HOW = {
    "incremental": "New runs ask only for what may have changed.",
    "full": "New runs fetch everything again.",
}


def does(job: JobLine) -> list[str]:
    """What a job does, in sentences."""
    task, repetition = job.task, job.repetition
    said = [_DOES.get(task.verb, ""), _HOW.get(task.mode, "")]
    if task.checkpoint:
        said.append(f"The checkpoint is {task.checkpoint}.")
    if repetition:
        said += _repeats(repetition)
    return [one for one in said if one]


def _repeats(repetition: RepetitionLine) -> list[str]:
    said = []
    if repetition.max_iterations:
        said.append(f"It ends after {repetition.max_iterations:,} runs.")
    if repetition.stop_if_no_changes:
        said.append("It ends when a run finds nothing changed.")
    if repetition.notify:
        occasion = "every run" if repetition.notify_on == "completion" else "runs that found changes"
        others = "1 other is" if repetition.notify == 1 else f"{repetition.notify} others are"
        said.append(f"{others} told of {occasion}.")
    return said


# One execution


@routes.get("/executions/{execution_id}")
def execution(request: Request, app: Home, execution_id: ExecutionId) -> Any:
    # Its state before its log: whatever was written before its end is there then.
    found = app.executions.one(execution_id)
    lines = app.executions.log_tail(execution_id)
    name = app.jobs.one(found.job_id).line.name or found.crawl_id
    return page(
        request,
        "execution.html",
        path=f"/jobs/{found.job_id}",  # where it belongs to in the menu
        view=f"execution:{execution_id}",
        parts=execution_parts(app, str(execution_id)),
        one=found,
        name=name,
        lines=[{"at": iso(line.at_ms)[11:19], "level": line.level, "text": line.text} for line in lines],
        last=lines[-1].number if lines else 0,
        left_out=lines[0].number - 1 if lines else 0,
        is_over=found.status != ExecutionState.RUNNING,
    )


@view("execution")
def execution_parts(app: App, name: str) -> Parts:
    number = _digits(name)
    if number is None:
        raise Unknown(f"There is no execution {clip(name, 40)!r}.", "Load the page again.")
    one = app.executions.one(number)
    job = in_words(app.jobs.one(one.job_id))
    seconds = (one.duration_ms or 0) / 1000
    if one.status == ExecutionState.RUNNING:
        seconds = max(0.0, (app.clock.now_ms() - app.executions.store.get(number).started_ms) / 1000)
    context = {"one": one, "job": job, "seconds": seconds, "trace": (one.stack_trace or "")[-_MOST_TRACE:]}
    return {
        "execution-head": part("_execution_head.html", **context),
        "execution-facts": part("_execution_facts.html", **context),
    }
