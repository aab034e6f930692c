"""Crawls: how each of them stands."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from inchworm import settings
from inchworm.app.read.jobs import JobReads
from inchworm.app.read.runs import Runs, iteration_id, session_line
from inchworm.app.workspace import Workspace, defaults_of, presentable, settings_of_run
from inchworm.engine import run
from inchworm.errors import InchwormError, NotNow
from inchworm.model import CrawlInfo, Down, RunInfo, RunState, SessionInfo
from inchworm.rules.order import order
from inchworm.rules.words.times import iso
from inchworm.settings import SERVICE, NamedSettings
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View
from inchworm.store.sqlite import last_written

_COUNTED = ("pages", "duplicates", "failed", "pending", "new", "modified", "deleted", "unchanged", "unknown")


class _Glance(NamedTuple):
    """What lists tell of a crawl: its last run, that run's last session, the last run that found changes, and the hosts
    that cannot be reached."""

    run: RunInfo
    session: SessionInfo | None
    changed: RunInfo | None
    down: Sequence[Down]


_MOST_JOBS = 1000
_FEW_JOBS = 6


class Crawls:
    """How crawls stand."""

    def __init__(self, workspace: Workspace, runs: Runs, jobs: JobReads) -> None:
        self._workspace = workspace
        self._runs = runs
        self._jobs = jobs

    def all(self) -> list[dict[str, Any]]:
        """Every crawl with the state of its last run."""
        listed = []
        for crawl in self._workspace.home.crawls():
            try:
                listed.append(self.status(crawl))
            except InchwormError as error:
                listed.append({"crawl_id": crawl.crawl_id, "name": crawl.name, "run_state": "", "note": error.message})
        return listed

    def status(self, crawl: CrawlInfo) -> dict[str, Any]:
        """Where a crawl stands. A run whose owner is dead is paused."""
        with self._workspace.reading(crawl) as store:
            current, end = self._workspace.run_of(crawl, store), store.line_end()
            sessions = store.sessions(current.run_id)
            owner = store.owner()
            down = store.down()
            blocked = View(store).count_failed(current.run_id, "blocked") if current.counters.failed else 0
            several = store.has_several_lanes(current.run_id)
            lost = self.lost_files(crawl, store)
        running = self._workspace.is_running(crawl)
        state = run.state_of(current, running)
        last = sessions[-1] if sessions else None
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "seeds": list(crawl.seeds),
            "run": current.number,
            "mode": current.mode,
            "branch_of": current.origin,
            "on_line": not current.beside,
            "line_end": end.number if end else None,
            "run_state": str(state),
            "word": run.word_for(dataclasses.replace(current, state=state)),
            "owner": {"pid": owner.pid, "machine": owner.machine} if running else None,
            "sessions": [session_line(one, running) for one in sessions],
            "ended_by": str(last.ended_by) if last and last.ended_by else None,
            "order": order.word(current.disturbed, several),
            "created_at": iso(current.created_ms),
            **dataclasses.asdict(current.counters),
            "seed_pages": {seed.url: seed.kept for seed in current.seeds},
            "message": last.message if last else "",
            "blocked": blocked,
            "down": [down_json(one) for one in down],
            "lost_files": lost,
        }

    def lost_files(self, crawl: CrawlInfo, store: CrawlStore) -> list[str]:
        """Files of the archive that are missing, or shorter than what was committed."""
        archive = self._workspace.crawl_folder(crawl) / "archive"
        files = [(name, length, archive / name) for _, _, name, length in store.files()]
        return [name for name, length, path in files if not path.exists() or path.stat().st_size < length]

    def settings_of(self, word: str) -> NamedSettings:
        """The settings that the open run, or the next one, works with."""
        crawl = self._workspace.find(word)
        values = settings.make({**self._workspace.base_settings(), **defaults_of(crawl), **crawl.settings})
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            last = store.run()
            if last is not None and run.is_open(last):
                values = settings.changed(values, settings_of_run(last))
        return presentable(settings.to_json(values))

    # Looking

    def listed(self, after: tuple[str, str] | None, limit: int) -> list[dict[str, Any]]:
        """Crawls in the order in which they were made, and how they stand. `after`: when the last one that was seen was
        made, and its id."""
        made = sorted((iso(one.created_ms), one.crawl_id, one) for one in self._workspace.home.crawls())
        later = [crawl for at, crawl_id, crawl in made if after is None or (at, crawl_id) > after]
        return [self.line(one) for one in later[:limit]]

    def latest(self, before: tuple[str, str] | None, limit: int, text: str = "") -> list[dict[str, Any]]:
        """Crawls, the one that was made last first, with how they stand. `before`: when the last one that was seen was
        made, and its id; `text`: a part of the name, or of a seed."""
        made = sorted(((iso(one.created_ms), one.crawl_id, one) for one in self._workspace.home.crawls()), reverse=True)
        earlier = [crawl for at, crawl_id, crawl in made if before is None or (at, crawl_id) < before]
        return [self.line(one) for one in [one for one in earlier if _fits(one, text.lower())][:limit]]

    def line(self, crawl: CrawlInfo) -> dict[str, Any]:
        line = {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "seeds": list(crawl.seeds),
            "enabled": crawl.enabled,
            "created_at": iso(crawl.created_ms),
            **dict.fromkeys(("run", "run_id", "mode", "run_started_at", "run_ended_at", "alarm", "note")),
            **dict.fromkeys(("session", "changed")),
            **dict.fromkeys(_COUNTED, 0),
            "state": "",
            "down": [],
        }
        try:
            seen = self._glance(crawl)
        except InchwormError as error:
            return {**line, "note": error.message}
        if seen is None:
            return line
        last, running = seen.run, self._workspace.is_running(crawl)
        return {
            **line,
            "state": run.state_of(last, running).value,
            "run": last.number,
            "run_id": iteration_id(crawl, last.number),
            "mode": last.mode,
            "run_started_at": iso(last.created_ms),
            "run_ended_at": iso(last.ended_ms) if last.ended_ms is not None else None,
            "alarm": last.alarm or None,
            **{name: getattr(last.counters, name) for name in _COUNTED},
            "session": session_line(seen.session, running) if seen.session else None,
            "changed": _change_json(crawl, seen.changed) if seen.changed else None,
            "down": [down_json(one) for one in seen.down],
        }

    def hosts_down(self) -> int:
        """How many hosts that crawls wait for cannot be reached."""
        lines = (self.line(crawl) for crawl in self._workspace.home.crawls())
        return sum(len(one["down"]) for one in lines if one["state"] in (RunState.IN_PROGRESS, RunState.PAUSED))

    def _glance(self, crawl: CrawlInfo) -> _Glance | None:
        """A crawl as it was read when its files last changed: lists are looked at all the time."""
        mark = last_written(self._workspace.crawl_folder(crawl) / "crawl.db")
        seen = self._seen.get(crawl.crawl_id)
        if seen is not None and seen[0] == mark:
            return seen[1]
        found = None
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            last = store.run()
            if last is not None:
                found = _Glance(last, store.last_session(last.run_id), store.last_change(), store.down())
        if mark:
            self._seen[crawl.crawl_id] = mark, found
        return found

    @functools.cached_property
    def _seen(self) -> dict[str, tuple[tuple[int, ...], _Glance | None]]:
        return {}

    def detail(self, crawl: CrawlInfo) -> dict[str, Any]:
        """Everything that is known of a crawl and its last run, if it has one."""
        status = self.status(crawl) if self._runs.last(crawl) else {}
        jobs = self._jobs.store.find({"crawl_id": crawl.crawl_id}, None, _MOST_JOBS)
        values = self.settings_of(crawl.crawl_id)
        return {
            **self.line(crawl),
            **status,
            "created_at": iso(crawl.created_ms),
            "enabled": crawl.enabled,
            **how_it_goes_on(crawl),
            "settings": {name: value for name, value in values.items() if not settings.belongs_to(name, SERVICE)},
            "defaults": presentable(crawl.defaults),
            "jobs": [self._jobs.json(job) for job in jobs],
        }

    def standing(self, crawl: CrawlInfo) -> dict[str, Any]:
        """How a crawl stands: its last run, its last session, its newest jobs, and who is about to work on it. `note`
        says why it cannot be read."""
        at_work = self._jobs.at_work(crawl)
        jobs = [self._jobs.json(job) for job in self._jobs.store.newest(crawl.crawl_id, _FEW_JOBS)]
        about = {
            **{name: getattr(crawl, name) for name in ("crawl_id", "name", "seeds", "enabled")},
            "job_at_work": at_work.job_id if at_work else None,
            "jobs": jobs,
            "note": "",
        }
        try:
            return {**about, **self._last_standing(crawl)}
        except InchwormError as error:
            return {**about, "state": "", "run": None, "session": None, "note": error.message}

    def _last_standing(self, crawl: CrawlInfo) -> dict[str, Any]:
        if self._runs.last(crawl) is None:
            return {"state": "", "run": None, "session": None}
        with self._workspace.reading(crawl) as store:
            last = self._workspace.run_of(crawl, store)
            session = store.last_session(last.run_id)
            why_nothing = _why_nothing(View(store), last)
            blocked = View(store).count_failed(last.run_id, "blocked") if last.counters.failed else 0
            down = [down_json(one) for one in store.down()]
        running = self._workspace.is_running(crawl)
        return {
            "state": run.state_of(last, running).value,
            "run": {**dataclasses.asdict(last.counters), **_about(last)},
            "session": session_line(session, running) if session else None,
            "why_nothing": why_nothing,
            "blocked": blocked,
            "down": down,
        }


def _change_json(crawl: CrawlInfo, one: RunInfo) -> dict[str, Any]:
    """What a run found, in a line."""
    counted = {name: getattr(one.counters, name) for name in ("new", "modified", "deleted")}
    about = {"crawl_id": crawl.crawl_id, "name": crawl.name}
    return {**about, "run": one.number, "run_id": iteration_id(crawl, one.number), "at": iso(one.created_ms), **counted}


def how_it_goes_on(crawl: CrawlInfo) -> dict[str, Any]:
    return {"incremental_crawling_enabled": crawl.incremental, "crawl_budget": crawl.defaults.get("budget", 0)}


def _fits(crawl: CrawlInfo, text: str) -> bool:
    return any(text in one.lower() for one in (crawl.name, *crawl.seeds))


def _why_nothing(view: View, last: RunInfo) -> str:
    """What happened to the first page of a run that brought none."""
    if last.counters.pages or last.counters.duplicates or not last.counters.failed:
        return ""
    url, failure, message = next(iter(view.failed_since(last.run_id, 0, last.seq)), ("", "", ""))
    return f"{url}: {message or failure}" if url else ""


def _about(last: RunInfo) -> dict[str, Any]:
    return {
        "number": last.number,
        "mode": last.mode,
        "alarm": last.alarm,
        "started_at": iso(last.created_ms),
        "ended_at": iso(last.ended_ms) if last.ended_ms is not None else None,
    }


def down_json(one: Down) -> dict[str, Any]:
    """A host that cannot be reached, as it is shown."""
    return {
        "host": one.origin,
        "kind": one.kind,
        "message": one.message,
        "since": iso(one.since_ms),
        "sessions": one.sessions,
    }
