"""The one job that repeats a crawl."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from inchworm.app.act.jobs.change import JobActs, WantedJob
from inchworm.app.read.iterations import baselines
from inchworm.app.read.jobs import JobLine, JobReads
from inchworm.app.read.runs import Runs, iteration_id
from inchworm.app.refuse import refuse_private
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, WrongUse
from inchworm.job import Job, JobRepetition, JobState, Task
from inchworm.model import CrawlInfo, Mode, RunInfo, RunState
from inchworm.rules.change import conditions
from inchworm.rules.schedule import occurrence, repetition, states
from inchworm.rules.schedule.repetition import Occasion
from inchworm.rules.web import url as urls
from inchworm.settings import NamedSettings
from inchworm.sink.servers import notify


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How a crawl is to be repeated. Without `every_hours` only a person starts the next run."""

    max_iterations: int | None = None
    every_hours: float | None = None
    mode: str = Mode.INCREMENTAL
    stop_if_no_changes: bool = False
    notify: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    notify_on: str = Occasion.CHANGES
    budget: int = 0
    allow_private: bool = False
    """Whether those who are told may be on this machine, or in the network around it."""

    notify_if: tuple[str, ...] = ()
    """They are told only if one of these conditions holds."""


@dataclass(frozen=True, slots=True)
class RepetitionSet:
    """How a crawl is repeated from now on, and by which job."""

    crawl_id: str
    baseline_iteration_id: str
    configured_iterations: int | None
    mode: str
    message: str
    job_id: str
    status: JobState
    next_run_at: str | None


_MINUTES = 60


class Repetitions:
    """Has crawls repeated by a job."""

    def __init__(self, workspace: Workspace, runs: Runs, jobs: JobReads, schedule: JobActs) -> None:
        self._workspace = workspace
        self._runs = runs
        self._jobs = jobs
        self._schedule = schedule

    # The job that repeats a crawl

    def set(self, word: str, wanted: Rhythm) -> RepetitionSet:
        """Have a crawl repeated as is wanted from now on: makes its one job for that, or changes it."""
        crawl = self._workspace.find(word)
        _refuse_wrong_hooks(wanted)
        conditions.refuse_wrong(wanted.notify_if)
        job_wanted = _as_job(crawl, wanted)
        with self._schedule.taking_turns():
            runs = run.line_of(self._runs.all(crawl))
            _refuse_enough(crawl, runs, wanted)
            before = self._jobs.repeater(crawl)
            if before is None:
                job = self._schedule.add(job_wanted)
            else:
                job = self._schedule.change(before.job_id, job_wanted, frozenset(["interval_minutes"]))
            if wanted.every_hours is not None:
                job = self._enabled(job.id, self._last_start(crawl, runs))
        baseline = baselines(runs)[_parent_of_next(runs)] if runs else 0
        return RepetitionSet(
            crawl_id=crawl.crawl_id,
            baseline_iteration_id=iteration_id(crawl, baseline),
            configured_iterations=wanted.max_iterations,
            mode=wanted.mode,
            message=_said(wanted, job),
            job_id=job.id,
            status=job.status,
            next_run_at=job.next_run_at,
        )

    def _last_start(self, crawl: CrawlInfo, runs: Sequence[RunInfo]) -> int | None:
        """When the last run of a crawl began, which may be about to; None when there is none."""
        if runs:
            return runs[-1].created_ms
        return (
            self._workspace.clock.now_ms() if self._jobs.at_work(crawl) or self._workspace.is_running(crawl) else None
        )

    def _enabled(self, job_id: str, last_start_ms: int | None) -> JobLine:
        """Let a job with an interval run: an interval after the last run, else in a place in the day that is free."""
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            enabled = dataclasses.replace(job, schedule_enabled=True)
            if last_start_ms is None or job.state not in states.CLAIMABLE:
                return enabled
            due_ms = last_start_ms + (occurrence.every_ms(enabled) or 0)
            return dataclasses.replace(enabled, due_ms=due_ms, occurrence_ms=due_ms)

        job = self._jobs.store.get(job_id)
        planned_ms = decide(job).due_ms
        is_placed = job.state in states.CLAIMABLE and (planned_ms is None or planned_ms <= now_ms)
        change = self._jobs.store.place if is_placed else self._jobs.store.change
        return self._jobs.line(change(job_id, decide, now_ms))

    def change(self, crawl: CrawlInfo, wanted: Rhythm, adaptive: bool, keep_hooks: bool) -> JobState:
        """Have a crawl repeated by the job that does so already, whoever made it, or by a new one. `keep_hooks`: those
        who are told now are told from now on, too. The conditions for that stay. How that job stands."""
        before = next((job for job in self._jobs.repeating(crawl) if job.after_job_id is None), None)
        if before is not None and before.repetition is not None:
            wanted = dataclasses.replace(wanted, notify_if=before.repetition.notify_if)
            if keep_hooks:
                wanted = dataclasses.replace(wanted, notify=before.repetition.notify)
        if before is not None and before.repetition is None:
            self._schedule.change(before.job_id, WantedJob(repeated=JobRepetition()))
        done = self.set(crawl.crawl_id, wanted)
        given = {**_further_settings(before), **({"budget": wanted.budget} if wanted.budget else {})}
        task = Task(mode=wanted.mode, settings=given)
        return self._schedule.change(done.job_id, WantedJob(adaptive_scheduling=adaptive, task=task)).status


def _parent_of_next(runs: Sequence[RunInfo]) -> int:
    """The run that the next one builds on: the last that is complete, or is to become so."""
    completed = [one.number for one in runs if one.state is RunState.COMPLETED]
    return completed[-1] if completed else runs[-1].number


# Repeating
def _as_job(crawl: CrawlInfo, wanted: Rhythm) -> WantedJob:
    count, unit = _interval(wanted.every_hours) if wanted.every_hours is not None else (None, "minutes")
    given = {"budget": wanted.budget} if wanted.budget else {}
    repeated = JobRepetition(
        wanted.max_iterations,
        wanted.stop_if_no_changes,
        wanted.notify,
        wanted.notify_on,
        wanted.allow_private,
        wanted.notify_if,
    )
    return WantedJob(
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


def _refuse_enough(crawl: CrawlInfo, runs: Sequence[RunInfo], wanted: Rhythm) -> None:
    made = sum(1 for one in runs if one.mode != Mode.BASELINE and one.state is RunState.COMPLETED)
    if repetition.is_enough(made, wanted.max_iterations):
        raise NotNow(
            f"The crawl {crawl.name!r} has been repeated {made} times already, and max_iterations counts all of them.",
            f"Give more than {made}.",
        )


def _said(wanted: Rhythm, job: JobLine) -> str:
    said = "Multi-iteration crawl configured"
    if job.status is JobState.PAUSED:
        said += "; its job is paused and has to be resumed"
    elif wanted.every_hours is None:
        said += "; there is no interval, so each run is started by hand"
    if wanted.notify_on == Occasion.COMPLETION and not wanted.notify:
        said += "; nobody is told, because `notify` has no addresses"
    return said


def _refuse_wrong_hooks(wanted: Rhythm) -> None:
    """Web hooks only; and whoever is not the operator must not make us speak to this machine or its network."""
    for address in wanted.notify:
        href = urls.parse(address)
        if href is None:
            raise WrongUse(
                f"{notify.masked(address)!r} is no web address.", "Give a web hook such as https://example.org/hook."
            )
        if not wanted.allow_private:
            refuse_private(href, notify.masked(address))


def _further_settings(job: Job | None) -> NamedSettings:
    """What a job was told beside what a schedule tells."""
    return {name: value for name, value in job.task.settings.items() if name != "budget"} if job else {}
