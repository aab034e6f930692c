"""Iterating: the runs of a crawl as iterations, the one job that repeats it, and sessions started by way of jobs."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inchworm import settings
from inchworm.app.admitting import refuse_private
from inchworm.app.changes import iteration_id
from inchworm.app.checking import refuse_unusable
from inchworm.app.checkpoints import Back, Checkpoints, as_json
from inchworm.app.desk import settings_of_run
from inchworm.app.jobs import Repeated, Task, Wanted, Working
from inchworm.app.scheduling import is_gone
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.job import Execution, ExecutionState, Job, JobState
from inchworm.model import Checkpoint, CrawlInfo, Mode, RunInfo, RunState
from inchworm.rules.schedule import occurrence, repetition, states
from inchworm.rules.schedule.repetition import Occasion
from inchworm.rules.schedule.states import Action
from inchworm.rules.web import url as urls
from inchworm.rules.words.times import iso
from inchworm.sink.servers import notify
from inchworm.store.crawl.history import History
from inchworm.store.home.events import Service

BEGIN_SECONDS = 5.0
"""How long whoever starts a session waits to see it begin."""

_LOOK_SECONDS = 0.05
_WAKE_SECONDS = 0.5
_MINUTES = 60
_LIVE = tuple(state for state in JobState if state not in states.FINAL)
_MOST_JOBS = 1000
_CHANGES = ("new", "modified", "unchanged", "deleted", "unknown")

Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Iterations:
    """How a crawl is to be repeated. Without `every_hours` only a person starts the next run."""

    max_iterations: int | None = None
    every_hours: float | None = None
    mode: str = Mode.INCREMENTAL
    stop_if_no_changes: bool = False
    notify: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    notify_on: str = Occasion.CHANGES
    budget: int = 0
    private_hooks: bool = False
    """Whether those who are told may be on this machine, or in the network around it."""


class Begun(NamedTuple):
    """The session that an execution has begun, and of which run."""

    run: int
    session: int


class Iterating(Working, Checkpoints):
    """Verbs about iterations."""

    def iterations(self, word: str, after: int = -1, limit: int | None = None) -> list[dict[str, Any]]:
        """The runs of a crawl after the one of this number, in their order."""
        crawl = self.find(word)
        runs = self._runs(crawl)
        baselines = _baselines(runs)
        shown = [one for one in runs if one.number > after][:limit]
        running = self.is_running(crawl)
        return [_iteration_json(crawl, one, baselines[one.number], running) for one in shown]

    def iteration(self, word: str, number: int) -> dict[str, Any]:
        """One run."""
        found = self.iterations(word, number - 1, 1)
        if not found or found[0]["iteration_number"] != number:
            raise Unknown(f"The crawl {self.find(word).name!r} has no run {number}.", "Its runs are listed.")
        return found[0]

    def _runs(self, crawl: CrawlInfo) -> list[RunInfo]:
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            return store.runs()
        return []

    def _last_run(self, crawl: CrawlInfo) -> RunInfo | None:
        """The run that is meant when none is named, if there is one."""
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            return store.run()
        return None

    # The job that repeats a crawl

    def set_iterations(self, word: str, wanted: Iterations) -> dict[str, Any]:
        """Have a crawl repeated as is wanted from now on: makes its one job for that, or changes it."""
        crawl = self.find(word)
        _refuse_wrong_hooks(wanted)
        job_wanted = _as_job(crawl, wanted)
        with self._taking_turns():
            runs = run.line_of(self._runs(crawl))
            _refuse_enough(crawl, runs, wanted)
            before = self._repetition_job(crawl)
            if before is None:
                job = self.add_job(job_wanted)
            else:
                job = self.change_job(before.job_id, job_wanted, frozenset(["interval_minutes"]))
            if wanted.every_hours is not None:
                job = self._enabled(job["id"], self._last_start(crawl, runs))
        baseline = _baselines(runs)[_parent_of_next(runs)] if runs else 0
        return {
            "crawl_id": crawl.crawl_id,
            "baseline_iteration_id": iteration_id(crawl, baseline),
            "configured_iterations": wanted.max_iterations,
            "mode": wanted.mode,
            "message": _said(wanted, job),
            "job_id": job["id"],
            "status": job["status"],
            "next_run_at": job["next_run_at"],
        }

    def _last_start(self, crawl: CrawlInfo, runs: Sequence[RunInfo]) -> int | None:
        """When the last run of a crawl began, which may be about to; None when there is none."""
        if runs:
            return runs[-1].created_ms
        return self.clock.now_ms() if self._job_at_work(crawl) or self.is_running(crawl) else None

    def _enabled(self, job_id: str, last_start_ms: int | None) -> dict[str, Any]:
        """Let a job with an interval run: an interval after the last run, else in a place in the day that is free."""
        now_ms = self.clock.now_ms()

        def decide(job: Job) -> Job:
            enabled = dataclasses.replace(job, schedule_enabled=True)
            if last_start_ms is None or job.state not in states.CLAIMABLE:
                return enabled
            due_ms = last_start_ms + (occurrence.every_ms(enabled) or 0)
            return dataclasses.replace(enabled, due_ms=due_ms, occurrence_ms=due_ms)

        job = self.jobs.get(job_id)
        planned_ms = decide(job).due_ms
        is_placed = job.state in states.CLAIMABLE and (planned_ms is None or planned_ms <= now_ms)
        change = self.jobs.place if is_placed else self.jobs.change
        return self.job_json(change(job_id, decide, now_ms))

    def _repetition_job(self, crawl: CrawlInfo) -> Job | None:
        """The job that repeats a crawl. One that has come to its end is history."""
        found = [job for job in self._jobs_of(crawl, _LIVE) if job.repetition is not None]
        return found[-1] if found else None

    def _jobs_of(self, crawl: CrawlInfo, those: Sequence[JobState]) -> list[Job]:
        where = {"crawl_id": crawl.crawl_id}
        return [job for state in those for job in self.jobs.find({**where, "state": state}, None, _MOST_JOBS)]

    # Sessions by way of jobs

    def start_next(self, word: str, mode: str = "") -> dict[str, Any]:
        """Have the next run of a crawl made now; the job that makes it. The first run is the baseline."""
        crawl = self.find(word)
        self._let_end(crawl)
        with self._taking_turns():
            self._refuse_busy(crawl)
            last = self._last_run(crawl)
            if last is not None and run.is_open(last):
                raise NotNow(
                    f"Run {last.number} of {crawl.name!r} is not complete, so the next one cannot begin.",
                    "Resume it, or cancel it.",
                )
            job = self._repetition_job(crawl)
            if job is not None and _runs_as(job, mode):
                return self.run_job(job.job_id)
            return self.start_job(crawl, Task("recrawl" if last else "crawl", mode))

    def start_again(self, word: str, back: Back, given: Mapping[str, Any]) -> dict[str, Any]:
        """Have a crawl continue from a checkpoint, seen to be possible; where from, and the job that does it."""
        crawl = self.find(word)
        self._let_end(crawl)
        with self._taking_turns():
            self._refuse_busy(crawl)
            point, current = self.way_on(crawl.crawl_id, back)
            _refuse_wrong_settings(current, back, given)
            job = self.add_job(Wanted(crawl.crawl_id, task=_task(back, point, given), max_retries=0))
        with self.reading(crawl) as store:
            state = as_json(crawl, point, History(store))
        urls_then = state["progress"]["urls"]
        return {
            "crawl_id": crawl.crawl_id,
            "checkpoint_id": state["checkpoint_id"] if point.number >= 0 else self._checkpoint_there(crawl, point),
            "resumed_from_state": state["current_state"],
            "resumed_from_substate": state["current_substate"],
            "crawled_urls": urls_then["completed"],
            "queued_urls": urls_then["pending"],
            "run_id": None if back.as_new_run else iteration_id(crawl, point.run),
            "session": None,
            "job_id": job["id"],
        }

    def _checkpoint_there(self, crawl: CrawlInfo, point: Checkpoint) -> str | None:
        """The last checkpoint, when nothing happened since it was made."""
        latest = next(reversed(self.checkpoints(crawl.crawl_id)), None)
        is_there = latest is not None and (latest["run"], latest["seq"]) == (point.run, point.seq)
        return latest["checkpoint_id"] if latest and is_there else None

    def begun(self, job_id: str, wake: Wake, executions: int = 0, seconds: float = BEGIN_SECONDS) -> Begun | None:
        """The session that a job begins after so many executions; None when nothing began in this time. `wake` has
        whoever runs jobs look now."""
        for newest in self._looks(job_id, wake, seconds):
            if newest is None or newest.number <= executions:
                continue
            if newest.run is not None and newest.session is not None:
                return Begun(newest.run, newest.session)
            if newest.state is ExecutionState.FAILED and self.jobs.state_of(job_id) is JobState.FAILED:
                raise NotNow(f"The session could not begin: {newest.error}", f"The log of job {job_id} may tell more.")
        return None

    def _looks(self, job_id: str, wake: Wake, seconds: float = BEGIN_SECONDS) -> Iterator[Execution | None]:
        """The newest execution of a job, again and again, until the time is over or nobody is there to run it."""
        deadline, woken = time.monotonic() + seconds, float("-inf")
        while True:
            yield next(iter(self.jobs.executions(job_id, None, 1)), None)
            now = time.monotonic()
            if now >= deadline or not self._runners():
                return
            if now - woken >= _WAKE_SECONDS:
                woken = now
                wake()
            time.sleep(_LOOK_SECONDS)

    def _runners(self) -> list[Service]:
        """The services that run jobs."""
        return [one for one in self.events.services() if one.scheduler and not is_gone(one.machine, one.pid)]

    def _let_end(self, crawl: CrawlInfo) -> None:
        """A session that is over may still have an execution that has to say so: no reason to refuse anything."""
        deadline = time.monotonic() + BEGIN_SECONDS
        while time.monotonic() < deadline and not self.is_running(crawl) and self._is_ending(crawl):
            time.sleep(_LOOK_SECONDS)

    def _is_ending(self, crawl: CrawlInfo) -> bool:
        return any(one.crawl_id == crawl.crawl_id and one.session is not None for one in self.jobs.running())

    def _refuse_busy(self, crawl: CrawlInfo) -> None:
        """Two sessions, one after the other, would do what was asked for twice."""
        if self.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Watch it, pause it, or wait for its end.")
        if job := self._job_at_work(crawl):
            raise NotNow(
                f"The crawl {crawl.name!r} is about to be worked on, by job {job.job_id}.",
                "Wait for its end, or cancel that job.",
            )

    def _job_at_work(self, crawl: CrawlInfo) -> Job | None:
        """The job that works on a crawl or is about to, if there is one."""
        now_ms = self.clock.now_ms()
        for job in self._jobs_of(crawl, (*states.CLAIMABLE, JobState.RUNNING)):
            is_due = job.due_ms is not None and (job.due_ms <= now_ms or not occurrence.recurs(job))
            if job.lock_token is not None or is_due:
                return job
        return None


# Iterations as they are shown


def _baselines(runs: Sequence[RunInfo]) -> dict[int, int]:
    """For each run, the baseline that it goes back to, which may be itself."""
    found: dict[int, int] = {}
    for one in runs:
        found[one.number] = one.number if one.parent is None else found[one.parent]
    return found


def _parent_of_next(runs: Sequence[RunInfo]) -> int:
    """The run that the next one builds on: the last that is complete, or is to become so."""
    completed = [one.number for one in runs if one.state is RunState.COMPLETED]
    return completed[-1] if completed else runs[-1].number


def _iteration_json(crawl: CrawlInfo, one: RunInfo, baseline: int, running: bool) -> dict[str, Any]:
    counters, is_again = one.counters, one.parent is not None
    stats = {
        "total_documents": counters.pages + counters.duplicates,
        "urls_crawled": counters.known - counters.pending - counters.refused,
        "urls_failed": counters.failed,
    }
    return {
        "iteration_id": iteration_id(crawl, one.number),
        "crawl_id": crawl.crawl_id,
        "iteration_number": one.number,
        "parent_iteration_id": iteration_id(crawl, one.parent) if one.parent is not None else None,
        "baseline_iteration_id": iteration_id(crawl, baseline) if is_again else None,
        "mode": one.mode,
        "state": run.state_of(one, running).value,
        "started_at": iso(one.created_ms),
        "completed_at": iso(one.ended_ms) if one.ended_ms is not None else None,
        "duration_seconds": (one.ended_ms - one.created_ms) / 1000 if one.ended_ms is not None else None,
        "stats": stats | ({f"{kind}_documents": getattr(counters, kind) for kind in _CHANGES} if is_again else {}),
        "branch_of": iteration_id(crawl, one.origin) if one.origin is not None else None,
        "on_line": not one.beside,
        "alarm": one.alarm or None,
    }


# Repeating


def _as_job(crawl: CrawlInfo, wanted: Iterations) -> Wanted:
    count, unit = _interval(wanted.every_hours) if wanted.every_hours is not None else (None, "minutes")
    given = {"budget": wanted.budget} if wanted.budget else {}
    repeated = Repeated(
        wanted.max_iterations, wanted.stop_if_no_changes, wanted.notify, wanted.notify_on, not wanted.private_hooks
    )
    return Wanted(
        crawl.crawl_id,
        interval_minutes=count,
        interval_type=unit,
        # Until its first run has a time.
        schedule_enabled=count is None,
        # Whoever names an interval means it.
        adaptive_scheduling=False,
        repeated=repeated,
        task=Task(mode=wanted.mode, settings=given),
    )


def _interval(hours: float) -> tuple[int, str]:
    if hours == int(hours):
        return int(hours), "hours"
    minutes = round(hours * _MINUTES)
    if not minutes:
        raise WrongUse(f"{hours} hours are less than a minute.", "Give a minute or more, which is 0.0167 hours.")
    return minutes, "minutes"


def _refuse_enough(crawl: CrawlInfo, runs: Sequence[RunInfo], wanted: Iterations) -> None:
    made = sum(1 for one in runs if one.mode != Mode.BASELINE and one.state is RunState.COMPLETED)
    if repetition.is_enough(made, wanted.max_iterations):
        raise NotNow(
            f"The crawl {crawl.name!r} has been repeated {made} times already, and max_iterations counts all of them.",
            f"Give more than {made}.",
        )


def _said(wanted: Iterations, job: Mapping[str, Any]) -> str:
    said = "Multi-iteration crawl configured"
    if job["status"] is JobState.PAUSED:
        said += "; its job is paused and has to be resumed"
    elif wanted.every_hours is None:
        said += "; there is no interval, so each run is started by hand"
    if wanted.notify_on == Occasion.COMPLETION and not wanted.notify:
        said += "; nobody is told, because `notify` has no addresses"
    return said


def _refuse_wrong_hooks(wanted: Iterations) -> None:
    """Web hooks only; and whoever is not the operator must not make us speak to this machine or its network."""
    for address in wanted.notify:
        href = urls.parse(address)
        if href is None:
            raise WrongUse(
                f"{notify.masked(address)!r} is no web address.", "Give a web hook such as https://example.org/hook."
            )
        if not wanted.private_hooks:
            refuse_private(href, notify.masked(address))


def _runs_as(job: Job, mode: str) -> bool:
    """Whether a job can be run now, and would make a run of this mode."""
    is_same = mode in ("", job.task["mode"] or Mode.INCREMENTAL)
    return is_same and job.state in states.ACTIONS[Action.FORCE_RUN]


# Continuing


def _task(back: Back, point: Checkpoint, given: Mapping[str, Any]) -> Task:
    if back.checkpoint is None and not back.as_new_run:
        return Task("resume", settings=given)
    checkpoint = None if back.checkpoint is None else str(point.number)
    return Task("continue", "", checkpoint, back.as_new_run, back.validate, given)


def _refuse_wrong_settings(current: RunInfo, back: Back, given: Mapping[str, Any]) -> None:
    """What was named has to be right, and a run that goes on keeps its own settings."""
    of_run = {name: settings.check(name, value) for name, value in given.items() if settings.belongs_to_run(name)}
    values = settings.make({**given, **settings_of_run(current), **of_run})
    refuse_unusable(values)
    if not back.as_new_run:
        run.refuse_changes(current.settings, of_run)
