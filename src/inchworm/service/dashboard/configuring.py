"""Pages on which a crawl is set up: its settings, and how it is repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import Request

from inchworm import settings
from inchworm.app.act.configure import Configuration
from inchworm.app.act.jobs.repetition import Rhythm
from inchworm.app.read.jobs import JobLine
from inchworm.app.root import App
from inchworm.errors import InchwormError, WrongUse
from inchworm.job import JobState
from inchworm.model import CrawlInfo, Mode
from inchworm.rules.schedule.repetition import Occasion
from inchworm.service.api.settings import LISTED, LOCAL, SETTINGS
from inchworm.service.api.web import Home, Service, Verbs, crawl_of
from inchworm.service.dashboard.crawls import CrawlId, page_of, refuse_unsure
from inchworm.service.dashboard.frame import Fields, Form, back, page, pages

routes = pages()

ON_PAGE = tuple(name for name in SETTINGS if name not in LISTED)
"""What can be set on the page."""

_GROUPED: Mapping[str, tuple[str, ...]] = {
    "What to crawl": (
        *("scope", "max_depth", "external_hops", "loose_paths", "order", "strict_order", "robots", "sitemap"),
        *("resources", "trap_depth", "include", "exclude", "query", "drop_params"),
    ),
    "How fast": (
        *("workers", "delay", "connections_per_host", "max_delay", "max_retries", "timeout", "connect_timeout"),
        *("first_byte_timeout", "max_wait", "host_patience", "grace"),
    ),
    "Limits": ("page_limit", "budget", "max_time", "max_bytes", "max_body", "stop_below", "stop_window"),
    "Identity and network": ("cookies", "max_redirects", "rotate_user_agent", "user_agent"),
    "Fields": ("extract", "each"),
}
_OTHERS = tuple(name for name in ON_PAGE if all(name not in names for names in _GROUPED.values()))

GROUPS: Mapping[str, tuple[str, ...]] = {**_GROUPED, "Storing and comparing": _OTHERS}
"""Every setting that may be set from here, where it stands on the page: in the last group, unless it is named above."""

_MOST_DIGITS = 15
_HOURS = {"minutes": 1 / 60, "hours": 1, "days": 24}


# Settings


class SettingRow(NamedTuple):
    """A setting as it stands in the form. `value`: what is set for this crawl; `holds`: what holds at the moment."""

    name: str
    label: str
    help: str
    unit: str
    kind: str
    choices: tuple[str, ...]
    value: str
    holds: str
    is_of_run: bool

    @property
    def is_wide(self) -> bool:
        return self.kind in ("lines", "text")


@routes.get("/crawls/{crawl_id}/settings")
def settings_of(request: Request, app: Home, crawl_id: CrawlId) -> Any:
    found = crawl_of(app, crawl_id)
    was = _as_it_is(found)
    return _settings_page(request, app, found, was, {**was["texts"], "name": found.name, "was": json.dumps(was)})


@routes.post("/crawls/{crawl_id}/settings")
def save_settings(request: Request, app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    """Save what is different from what the page showed; an empty field is taken away."""
    found = crawl_of(app, crawl_id)
    was = _as_it_was(form, found)
    try:
        wanted = _configuration(form, was)
        app.configure.change(found.crawl_id, wanted)
    except InchwormError as error:
        flags = {name: name in form for name in ("enabled", "incremental")}
        return _settings_page(request, app, found, {**was, **flags}, form, error)
    service.wake()
    return back(f"/crawls/{crawl_id}/settings", _saved(wanted))


def _settings_page(
    request: Request,
    app: App,
    found: CrawlInfo,
    flags: Mapping[str, Any],
    values: Mapping[str, str],
    trouble: InchwormError | None = None,
) -> Any:
    holding = app.crawls.settings_of(found)
    groups = {
        title: [_row(name, values.get(name, ""), holding[name]) for name in names] for title, names in GROUPS.items()
    }
    return page(
        request,
        "crawl_settings.html",
        trouble.status if trouble else 200,
        crawl=found,
        tab="settings",
        groups=groups,
        flags=flags,
        values=values,
        trouble=trouble,
        local=[_row(name, "", holding[name]) for name in (*LOCAL, *LISTED)],
    )


def _row(name: str, value: str, holds: Any) -> SettingRow:
    field = settings.FIELDS[name]
    meta = field.metadata
    text = ", ".join(holds) if isinstance(holds, list | tuple) else _text(holds)
    return SettingRow(
        name,
        name.replace("_", " ").capitalize(),
        meta["help"],
        meta["unit"],
        _kind(field.default, meta),
        meta.get("choices", ("yes", "no")),
        value,
        text or "nothing",
        settings.belongs_to_run(name),
    )


def _kind(default: Any, meta: Mapping[str, Any]) -> str:
    if "choices" in meta or isinstance(default, bool):
        return "choice"
    return "lines" if isinstance(default, tuple) else "text" if isinstance(default, str) else "number"


def _text(value: Any) -> str:
    """A setting as it is written into the form."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "\n".join(value)
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else f"{value}"


def _as_it_is(found: CrawlInfo) -> dict[str, Any]:
    """What the page shows, to be sent back with the form: whatever somebody else changes meanwhile stays so."""
    texts = {name: _text(value) for name, value in found.defaults.items() if name in ON_PAGE}
    return {"texts": texts, "name": found.name, "enabled": found.enabled, "incremental": found.incremental}


def _as_it_was(form: Form, found: CrawlInfo) -> dict[str, Any]:
    now = _as_it_is(found)
    try:
        was = json.loads(form.get("was", ""))
    except (ValueError, RecursionError):
        return now
    is_ours = isinstance(was, dict) and set(was) == set(now) and isinstance(was["texts"], dict)
    return was if is_ours else now


def _configuration(form: Form, was: Mapping[str, Any]) -> Configuration:
    changed = {}
    for name in ON_PAGE:
        lines = [line.strip() for line in form.get(name, "").splitlines() if line.strip()]
        if name in form and "\n".join(lines) != was["texts"].get(name, ""):
            changed[name] = _checked(name, lines) if lines else None
    flags = {name: name in form for name in ("enabled", "incremental")}
    name = form.text("name")
    return Configuration(
        name if name != was["name"] else None,
        changed or None,
        flags["incremental"] if flags["incremental"] != was["incremental"] else None,
        flags["enabled"] if flags["enabled"] != was["enabled"] else None,
    )


def _checked(name: str, lines: list[str]) -> Any:
    if isinstance(settings.FIELDS[name].default, tuple):
        return lines
    return settings.check(name, " ".join(lines))


def _saved(wanted: Configuration) -> str:
    names = [name.replace("_", " ") for name in wanted.defaults or {}]
    others = {"name": wanted.name, "going on": wanted.incremental, "on or off": wanted.enabled}
    names += [name for name, value in others.items() if value is not None]
    return f"Saved: {', '.join(names)}." if names else "Nothing was changed."


# How it is repeated


@routes.get("/crawls/{crawl_id}/schedule")
def schedule(request: Request, app: Home, crawl_id: CrawlId) -> Any:
    found = crawl_of(app, crawl_id)
    jobs = app.jobs.repeating(found)
    return _schedule_page(request, app, found, _as_values(app.jobs.line(jobs[0]) if jobs else None))


@routes.post("/crawls/{crawl_id}/schedule")
def save_schedule(request: Request, app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    found = crawl_of(app, crawl_id)
    try:
        wanted = _iterations(form, service)
        keep = not wanted.notify and "nobody" not in form
        status = app.repetition.change(found, wanted, form.text("rhythm") == "adaptive", keep)
    except InchwormError as error:
        # An address of a hook may be a secret, so it is not sent back.
        return _schedule_page(request, app, found, {**form, "notify": ""}, error)
    service.wake()
    is_off = status is JobState.PAUSED
    return back(
        f"/crawls/{crawl_id}/schedule", "The schedule is saved.", "It is paused: resume it below." if is_off else ""
    )


@routes.post("/crawls/{crawl_id}/schedule/{command}")
def steer_schedule(app: Home, service: Service, crawl_id: CrawlId, command: str, form: Fields) -> Any:
    """Pause, resume or remove a job that repeats the crawl: the one that is named, and no job of another crawl."""
    found = crawl_of(app, crawl_id)
    job_id = form.text("job")
    if all(job.job_id != job_id for job in app.jobs.repeating(found)):
        raise WrongUse("That job does not repeat this crawl any more.", "Load the page again.")
    if command not in ("pause", "resume", "remove"):
        raise WrongUse(f"There is no {command!r} for a schedule.", "It can be paused, resumed and removed.")
    if command == "pause":
        app.schedule.pause(job_id)
        said = "The schedule is paused."
    elif command == "resume":
        app.schedule.resume(job_id)
        service.wake()
        said = "The schedule goes on."
    else:
        refuse_unsure(form)
        app.schedule.delete(job_id)
        said = "The schedule is removed. What it crawled stays."
    return back(page_of(form, f"{crawl_id}/schedule"), said)


def _schedule_page(
    request: Request, app: App, found: CrawlInfo, values: Mapping[str, str], trouble: InchwormError | None = None
) -> Any:
    jobs = [app.jobs.line(job) for job in app.jobs.repeating(found)]
    return page(
        request,
        "crawl_schedule.html",
        trouble.status if trouble else 200,
        crawl=found,
        tab="schedule",
        job=jobs[0] if jobs else None,
        others=jobs[1:],
        values=values,
        trouble=trouble,
        iterations=app.iterations.made(found),
    )


def _as_values(job: JobLine | None) -> dict[str, str]:
    """The form as it is filled in for a job; without one, as most people want it."""
    if job is None:
        return {"every": "1", "unit": "days", "rhythm": "fixed", "mode": Mode.INCREMENTAL, "notify_on": "changes"}
    repeated = job.repetition
    count, unit = job.interval_minutes, job.interval_type
    if count and unit == "hours" and count % 24 == 0:
        count, unit = count // 24, "days"
    values = {
        "every": str(count or ""),
        "unit": unit,
        "rhythm": "adaptive" if job.adaptive_scheduling else "fixed",
        "mode": job.task.mode or Mode.INCREMENTAL,
        "budget": str(job.task.settings.get("budget") or ""),
        "max_iterations": str((repeated and repeated.max_iterations) or ""),
        "notify_on": repeated.notify_on if repeated else "changes",
    }
    return values | ({"stop_if_no_changes": "yes"} if repeated and repeated.stop_if_no_changes else {})


def _iterations(form: Form, service: Verbs) -> Rhythm:
    unit, mode, occasion = form.text("unit"), form.text("mode"), form.text("notify_on")
    if unit not in _HOURS or mode not in ("incremental", "full") or occasion not in tuple(Occasion):
        raise WrongUse("That is no choice of ours.", "Load the page again, and choose from what it offers.")
    every = _number(form, "every", "The interval", 1)
    return Rhythm(
        max_iterations=_number(form, "max_iterations", "The number of runs", 1),
        every_hours=every * _HOURS[unit] if every else None,
        mode=mode,
        stop_if_no_changes="stop_if_no_changes" in form,
        notify=tuple(form.get("notify", "").split()),
        notify_on=occasion,
        budget=_number(form, "budget", "The budget", 0) or 0,
        allow_private=service.values.allow_private,
    )


def _number(form: Form, name: str, label: str, least: int) -> int | None:
    text = form.text(name)
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < least:
        raise WrongUse(f"{label} cannot be {text[:50]!r}.", f"It takes a whole number, at least {least}, or nothing.")
    return int(text)
