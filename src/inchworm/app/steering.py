"""Steering: starting, configuring and removing crawls from outside. What starts a session here makes a job for it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inchworm import errors, settings
from inchworm.app.changes import iteration_id
from inchworm.app.checking import refuse_unusable
from inchworm.app.crawling import Start
from inchworm.app.desk import defaults_of, presentable
from inchworm.app.iterating import Iterating, Wake
from inchworm.app.jobs import Task, Wanted, refuse_secrets
from inchworm.app.looking import Looking, down_json, session_json
from inchworm.engine import run
from inchworm.errors import Frozen, InchwormError, NotNow, Unknown, WrongUse
from inchworm.job import Execution, ExecutionState, JobState
from inchworm.model import CrawlInfo, Down, RunInfo, RunState, SessionInfo
from inchworm.rules.order import order
from inchworm.rules.words.times import iso
from inchworm.settings import SERVICE
from inchworm.store.crawl.view import View
from inchworm.store.sqlite import last_written

FETCHERS = {"http": True, "scrapy": True, "browser": False, "playwright": False}
"""What may fetch pages, and whether this version has it."""

_MOST_JOBS = 1000
_COUNTED = ("pages", "duplicates", "failed", "pending", "new", "modified", "deleted", "unchanged", "unknown")
_RUN_ID = re.compile(r"([0-9A-Za-z]{1,64})_iter_([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Beginning:
    """A crawl as somebody wants it started. `given`: the settings that were named."""

    targets: tuple[str, ...]
    name: str = ""
    fetcher: str = "http"
    mode: str = ""
    fresh: bool = False
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    guarded: bool = False
    """Targets in a private network are refused."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is to hold for a crawl. None: as it is. Of `defaults`, a setting that is None is taken away."""

    name: str | None = None
    defaults: Mapping[str, Any] | None = None
    incremental: bool | None = None
    enabled: bool | None = None


class _Glance(NamedTuple):
    """What lists tell of a crawl: its last run, that run's last session, the last run that found changes, and the hosts
    that cannot be reached."""

    run: RunInfo
    session: SessionInfo | None
    changed: RunInfo | None
    down: Sequence[Down]


class Steering(Iterating, Looking):
    """Verbs for whoever does not sit at this machine."""

    # Starting

    def start_crawl(self, wanted: Beginning) -> tuple[CrawlInfo, str]:
        """Make a job that starts a crawl, or goes on with its open run: the crawl and the job's id. Everything that can
        be wrong with what was asked is found here."""
        _refuse_unless_there(wanted.fetcher)
        if wanted.name:
            _refuse_odd(wanted.name)
        refuse_secrets(wanted.targets)
        self._refuse_wrong(wanted.given)
        crawl = self.find_or_make(Start(wanted.targets, wanted.name, typed=False, guarded=wanted.guarded))
        self._let_end(crawl)
        with self._taking_turns():
            self._refuse_busy(crawl)
            self._refuse_unfitting(crawl, wanted)
            # What was set for an earlier session is not meant for this one.
            self.home.remember(crawl.crawl_id, crawl.settings)
            verb = "fresh" if wanted.fresh else "crawl"
            return crawl, self._once(crawl, Task(verb, wanted.mode, settings=dict(wanted.given)))

    def resume_crawl(self, crawl: CrawlInfo, given: Mapping[str, Any]) -> str:
        """Make a job that goes on with the open run of a crawl; its id."""
        self._let_end(crawl)
        with self._taking_turns():
            self._refuse_busy(crawl)
            last = self._last_run(crawl)
            if last is None or not run.is_open(last):
                raise NotNow(
                    f"The crawl {crawl.name!r} has no paused run to resume.", "Start it: that begins its next run."
                )
            self._refuse_wrong(given)
            _refuse_changes(last, given)
            return self._once(crawl, Task("resume", settings=dict(given)))

    def _once(self, crawl: CrawlInfo, task: Task) -> str:
        """A job that is tried once, now: whoever asked sees how it goes, and may ask again."""
        return str(self.add_job(Wanted(crawl=crawl, task=task, max_retries=0))["id"])

    def _refuse_wrong(self, given: Mapping[str, Any], below: Mapping[str, Any] | None = None) -> None:
        values = settings.make({**self.ground(), **(below or {}), **given})
        refuse_unusable(values)
        if values.order == order.BEST and not values.query:
            raise WrongUse("Best for what? The order `best` goes by a query.", "Send a `query`.")

    def _refuse_unfitting(self, crawl: CrawlInfo, wanted: Beginning) -> None:
        """What is wanted has to fit the run that is open, or what the crawl remembers."""
        last = self._last_run(crawl)
        if last is None or not run.is_open(last) or wanted.fresh or not crawl.incremental:
            self._refuse_wrong(wanted.given, {**defaults_of(crawl), **crawl.settings})
            return
        _refuse_changes(last, wanted.given, wanted.mode)

    # Waiting for it

    def session_of(self, job_id: str, wake: Wake, until_its_end: bool = False) -> Execution | None:
        """The execution that has begun a session for a job; None when none has in the time that one can wait. When none
        can, what is wrong is told."""
        found: Execution | None = None
        for found in self._looks(job_id, wake):
            if found is not None and found.session is None and found.ended_by == "error":
                raise _error_of(found)
            is_over = found is not None and found.state is not ExecutionState.RUNNING
            if found is not None and found.session is not None and (is_over or not until_its_end):
                return found
        return found if found is not None and found.session is not None else None

    def start_told(self, crawl: CrawlInfo, job_id: str, execution: Execution | None) -> dict[str, Any]:
        """What came of a start, to be told."""
        told = {"crawl_id": crawl.crawl_id, "name": crawl.name, "job_id": job_id}
        if execution is None or execution.run is None:
            nothing = dict.fromkeys(("run_id", "run", "session", "execution_id"))
            return {**told, **nothing, "state": JobState.PENDING.value, "message": self._why_not_yet()}
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, execution.run)
        return {
            **told,
            "run_id": iteration_id(crawl, current.number),
            "run": current.number,
            "session": execution.session,
            "execution_id": execution.execution_id,
            "state": run.state_of(current, self.is_running(crawl)).value,
            "message": _message(current, execution),
        }

    def _why_not_yet(self) -> str:
        services = self._runners()
        if not services:
            return "No session has begun: no service of this home runs jobs. It begins when one does."
        if len(self.jobs.running()) >= sum(one.executions for one in services):
            return "No session has begun yet: all executions are busy. It begins when one of them ends."
        return "No session has begun yet. Its job tells when one has."

    # Configuring

    def config_for(
        self, url: str, incremental: bool | None, budget: int | None, guarded: bool = False
    ) -> dict[str, Any]:
        """Set how the crawl of a URL goes on from session to session, and make it if there is none. `guarded`: not one
        in a private network."""
        refuse_secrets((url,))
        defaults = None if budget is None else {"budget": budget or None}
        if budget is not None:
            settings.check("budget", budget)
        crawl = self.find_or_make(Start((url,), typed=False, guarded=guarded))
        crawl = self.configure_crawl(crawl.crawl_id, Configuration(defaults=defaults, incremental=incremental))
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "url": crawl.seeds[0],
            **_how_it_goes_on(crawl),
        }

    def configure_crawl(self, crawl_id: str, wanted: Configuration) -> CrawlInfo:
        """Change what holds for a crawl. Nothing is changed when anything is wrong."""
        crawl = self.find(crawl_id)
        values: dict[str, Any] = {}
        if wanted.name is not None and wanted.name != crawl.name:
            self._refuse_taken(wanted.name)
            values["name"] = wanted.name
        if wanted.defaults is not None:
            values |= self._with_defaults(crawl, wanted.defaults)
        if wanted.incremental is not None:
            values["incremental"] = wanted.incremental
        self.home.configure(crawl.crawl_id, **values)
        if wanted.enabled is not None:
            self.set_enabled(crawl.crawl_id, wanted.enabled)
        return self.find(crawl.crawl_id)

    def _with_defaults(self, crawl: CrawlInfo, changes: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {name: _stored(name, value) for name, value in changes.items() if value is not None}
        if presentable(wanted) != wanted:
            raise WrongUse(
                "A password is not kept for every session.",
                "Name it at each start, or put it into config.toml or the environment.",
            )
        defaults = {name: value for name, value in crawl.defaults.items() if name not in changes} | wanted
        # What an earlier start named would win over it.
        remembered = {name: value for name, value in crawl.settings.items() if name not in changes}
        self._refuse_wrong(remembered, defaults)
        return {"defaults": defaults, "settings": remembered}

    def _refuse_taken(self, name: str) -> None:
        _refuse_odd(name)
        if (other := self.home.find(name)) is not None:
            raise NotNow(f"There is another crawl called {name!r}: {other.crawl_id}.", "Give it another name.")

    def remove_crawl(self, crawl: CrawlInfo) -> None:
        """Delete a crawl with its jobs, unless somebody works on it."""
        self._let_end(crawl)
        if self.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Cancel it first.")
        self.delete(crawl.crawl_id)

    def end_run(self, crawl: CrawlInfo) -> str:
        """End the open run for good; its state."""
        # Whoever owns a crawl makes its files, so those have to be there first.
        if self._last_run(crawl) is None:
            raise NotNow(f"The crawl {crawl.name!r} has no open run to cancel.", "It has not started yet.")
        return self.cancel(crawl.crawl_id)

    def empty_queue(self, crawl: CrawlInfo) -> int:
        """Refuse what is pending and complete the run; how many. A run that is complete stays as it is."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store)
        return 0 if current.state is RunState.COMPLETED else self.clear_queue(crawl.crawl_id)

    # Looking

    def list_crawls(self, after: tuple[str, str] | None, limit: int) -> list[dict[str, Any]]:
        """Crawls in the order in which they were made, and how they stand. `after`: when the last one that was seen was
        made, and its id."""
        made = sorted((iso(one.created_ms), one.crawl_id, one) for one in self.home.crawls())
        later = [crawl for at, crawl_id, crawl in made if after is None or (at, crawl_id) > after]
        return [self._line(one) for one in later[:limit]]

    def _line(self, crawl: CrawlInfo) -> dict[str, Any]:
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
        last, running = seen.run, self.is_running(crawl)
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
            "session": session_json(seen.session, running) if seen.session else None,
            "changed": _change_json(crawl, seen.changed) if seen.changed else None,
            "down": [down_json(one) for one in seen.down],
        }

    def hosts_down(self) -> int:
        """How many hosts that crawls wait for cannot be reached."""
        lines = (self._line(crawl) for crawl in self.home.crawls())
        return sum(len(one["down"]) for one in lines if one["state"] in (RunState.IN_PROGRESS, RunState.PAUSED))

    def _glance(self, crawl: CrawlInfo) -> _Glance | None:
        """A crawl as it was read when its files last changed: lists are looked at all the time."""
        mark = last_written(self.crawl_folder(crawl) / "crawl.db")
        seen = self._seen.get(crawl.crawl_id)
        if seen is not None and seen[0] == mark:
            return seen[1]
        found = None
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            last = store.run()
            if last is not None:
                found = _Glance(last, store.last_session(last.run_id), store.last_change(), store.down())
        if mark:
            self._seen[crawl.crawl_id] = mark, found
        return found

    @functools.cached_property
    def _seen(self) -> dict[str, tuple[tuple[int, ...], _Glance | None]]:
        return {}

    def crawl_told(self, crawl: CrawlInfo) -> dict[str, Any]:
        """Everything that is known of a crawl and its last run, if it has one."""
        status = self.status(crawl) if self._last_run(crawl) else {}
        jobs = self.jobs.find({"crawl_id": crawl.crawl_id}, None, _MOST_JOBS)
        values = self.effective_settings(crawl.crawl_id)
        return {
            **self._line(crawl),
            **status,
            "created_at": iso(crawl.created_ms),
            "enabled": crawl.enabled,
            **_how_it_goes_on(crawl),
            "settings": {name: value for name, value in values.items() if not settings.belongs_to(name, SERVICE)},
            "defaults": presentable(crawl.defaults),
            "jobs": [self.job_json(job) for job in jobs],
        }

    def queue_told(self, crawl: CrawlInfo) -> dict[str, Any]:
        """The frontier of the last run in numbers; of a crawl that has not started, nothing."""
        if self._last_run(crawl) is None:
            empty = dict.fromkeys(("visited", "pending", "refused", "total"), 0)
            nowhere: dict[str, Any] = {"current_run_id": None, "run_state": "", "run_crawl_ids": [], "counts": []}
            return {"crawl_id": crawl.crawl_id, "has_queue": False, **empty, "can_resume": False, **nowhere}
        found = self.queue(crawl.crawl_id)
        number, sessions = found.pop("current_run"), found.pop("sessions")
        return {**found, "current_run_id": iteration_id(crawl, number), "run_crawl_ids": sessions}

    def run_shown(self, run_id: str) -> dict[str, Any]:
        """One run with its sessions, by the id that says of which crawl it is."""
        parts = _RUN_ID.fullmatch(run_id)
        crawl = self.home.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1] or self._last_run(crawl) is None:
            raise Unknown(f"There is no run {run_id!r}.", "A run's id is CRAWL_iter_NUMBER.")
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, int(parts[2]))
            last = self.run_of(crawl, store)
            sessions = store.sessions(current.run_id)
            pages = current.counters.pages + current.counters.duplicates
            counts = {one.number: pages for one in sessions}
            if len(sessions) > 1:
                counts = View(store).pages_by_session(current.run_id)
        running = last.number == current.number and self.is_running(crawl)
        return {
            "id": run_id,
            "crawl_id": crawl.crawl_id,
            "run": current.number,
            "mode": current.mode,
            "state": run.state_of(current, running).value,
            "sessions": [
                {**told, "id": told["session"], "pages_crawled": counts.get(told["session"], 0)}
                for told in (session_json(one, running) for one in sessions)
            ],
            "total_pages_crawled": pages,
            **dataclasses.asdict(current.counters),
            "created_at": iso(current.created_ms),
            "ended_at": iso(current.ended_ms) if current.ended_ms else None,
        }


def _refuse_unless_there(fetcher: str) -> None:
    there = ", ".join(name for name, is_there in FETCHERS.items() if is_there)
    if fetcher not in FETCHERS:
        raise WrongUse(f"There is no crawler {fetcher!r}.", f"Known ones: {there}.")
    if not FETCHERS[fetcher]:
        raise WrongUse(
            f"The crawler {fetcher!r} renders pages, and rendering is not available in this version.",
            f"Use one of {there}, or leave `crawler` out.",
        )


def _stored(name: str, value: Any) -> Any:
    """A setting as it is kept, checked."""
    checked = settings.check(name, value)
    return list(checked) if isinstance(checked, tuple) else checked


def _refuse_odd(name: str) -> None:
    if not name.isprintable() or not name.strip():
        raise WrongUse(f"A crawl cannot be called {name!r}.", "Give it a name that people can read.")


def _change_json(crawl: CrawlInfo, one: RunInfo) -> dict[str, Any]:
    """What a run found, in a line."""
    counted = {name: getattr(one.counters, name) for name in ("new", "modified", "deleted")}
    about = {"crawl_id": crawl.crawl_id, "name": crawl.name}
    return {**about, "run": one.number, "run_id": iteration_id(crawl, one.number), "at": iso(one.created_ms), **counted}


def _refuse_changes(last: RunInfo, given: Mapping[str, Any], mode: str = "") -> None:
    wanted = {name: settings.check(name, value) for name, value in given.items() if settings.belongs_to_run(name)}
    try:
        run.refuse_changes({**last.settings, "mode": last.mode}, {**wanted, **({"mode": mode} if mode else {})})
    except Frozen as error:
        raise Frozen(error.message, 'Leave it out to go on, or send "fresh": true to start over with it.') from None


def _error_of(execution: Execution) -> InchwormError:
    """What kept an execution from beginning, as if it had happened here."""
    name = execution.trace.rpartition("inchworm.errors.")[2].partition(":")[0]
    kind = getattr(errors, name, None)
    is_mistake = isinstance(kind, type) and issubclass(kind, WrongUse) and not issubclass(kind, Frozen)
    hint = f"The log of execution {execution.execution_id} tells more."
    return (WrongUse if is_mistake else NotNow)(execution.error, hint)


def _message(current: RunInfo, execution: Execution) -> str:
    which = f"Run {current.number} ({current.mode})"
    if current.state is RunState.COMPLETED:
        return f"{which} is completed: nothing is left to do."
    said = "has started" if execution.session == 1 else f"goes on with session {execution.session}"
    return " ".join([f"{which} {said}.", *settings.cautions(current.settings)])


def _how_it_goes_on(crawl: CrawlInfo) -> dict[str, Any]:
    return {"incremental_crawling_enabled": crawl.incremental, "crawl_budget": crawl.defaults.get("budget", 0)}
