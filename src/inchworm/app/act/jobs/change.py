"""Jobs: making, changing and steering them."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shlex
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from inchworm import settings
from inchworm.app.act.plan import TERMINAL, Caller, Planner, Start
from inchworm.app.read.jobs import JobLine, JobReads
from inchworm.app.refuse import refuse_secrets, refuse_unusable
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.job import Job, JobFilter, JobRepetition, JobState, Task
from inchworm.model import CrawlInfo, Json, Mode
from inchworm.rules.schedule import occurrence, states, timetable
from inchworm.rules.schedule.states import Action

DEFAULT_DEPTH = 3
"""How deep a crawl goes that a job makes, unless it is told."""

SYNC_INTERVAL = (1, "days")
SOURCE_DISABLED = "source_disabled"
_MOST_METADATA = 16_384
_DEEPEST = 20
_MOST_RETRIES = 100
_MOST_BACKOFF = 86_400
_LONGEST_MS = 3_660 * 86_400_000
_LONGEST_CHAIN = 100
_MOST_JOBS = 10_000

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class WantedJob:
    """A job as somebody wants it. What is None is left as it is, or as it usually is."""

    source_id: str | None = None
    url: str | None = None
    crawl: CrawlInfo | None = None
    """Instead of either: the crawl itself, for who has it at hand."""

    interval_minutes: int | None = None
    interval_type: str | None = None
    schedule_enabled: bool | None = None
    adaptive_scheduling: bool | None = None
    max_retries: int | None = None
    retry_backoff_seconds: int | None = None
    after_job_id: str | None = None
    metadata: Mapping[str, Json] | None = None
    repeated: JobRepetition | None = None
    task: Task | None = None
    caller: Caller = TERMINAL


@dataclass(frozen=True, slots=True)
class JobsSynced:
    """How many jobs were made, resumed and paused, so that they fit their crawls; and how many stayed as they are."""

    created: int = 0
    resumed: int = 0
    paused: int = 0
    unchanged: int = 0

    def __add__(self, other: JobsSynced) -> JobsSynced:
        return JobsSynced(
            self.created + other.created,
            self.resumed + other.resumed,
            self.paused + other.paused,
            self.unchanged + other.unchanged,
        )


class JobActs:
    """Makes and steers jobs."""

    def __init__(self, workspace: Workspace, jobs: JobReads, planner: Planner) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self._planner = planner

    # Making and changing

    def add(self, wanted: WantedJob) -> JobLine:
        """Make a job; with an interval it gets a place in the day, without one it runs at once."""
        now_ms = self._workspace.clock.now_ms()
        job = Job(uuid.uuid4().hex, "", JobState.PENDING, adaptive=True, created_ms=now_ms, updated_ms=now_ms)
        # All that is wanted is known to be right before a crawl is made for it.
        job = self._with(job, wanted)
        job = dataclasses.replace(job, crawl_id=self._crawl_for(wanted).crawl_id)
        return self._jobs.line(self._jobs.store.add(job, has_crawl=True))

    def change(self, job_id: str, wanted: WantedJob, cleared: frozenset[str] = frozenset()) -> JobLine:
        """Change a job. `cleared` names what is to be taken away: `interval_minutes`, `after_job_id`."""
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            if wanted.source_id not in (None, job.crawl_id):
                raise WrongUse("A job stays with its crawl.", "Make a new job for the other one.")
            changed = dataclasses.replace(job, interval_count=None) if "interval_minutes" in cleared else job
            changed = dataclasses.replace(changed, after_job_id=None) if "after_job_id" in cleared else changed
            return self._with(changed, wanted)

        before = self._jobs.store.get(job_id)
        after = decide(before)
        is_new_rhythm = _rhythm(before) != _rhythm(after) and before.state in states.CLAIMABLE
        change = self._jobs.store.place if is_new_rhythm else self._jobs.store.change
        return self._jobs.line(change(job_id, decide, now_ms))

    def _with(self, job: Job, wanted: WantedJob) -> Job:
        """A job with what is wanted of it, every value checked."""
        _refuse_beyond(wanted.interval_minutes, "interval_minutes", 1, None)
        _refuse_beyond(wanted.max_retries, "max_retries", 0, _MOST_RETRIES)
        _refuse_beyond(wanted.retry_backoff_seconds, "retry_backoff_seconds", 0, _MOST_BACKOFF)
        if wanted.task:
            _refuse_wrong_task(wanted.task)
        if wanted.repeated:
            _refuse_beyond(wanted.repeated.max_iterations, "max_iterations", 1, None)
        changed = dataclasses.replace(
            job,
            interval_count=_either(wanted.interval_minutes, job.interval_count),
            interval_unit=_either(wanted.interval_type, job.interval_unit),
            schedule_enabled=_either(wanted.schedule_enabled, job.schedule_enabled),
            adaptive=_either(wanted.adaptive_scheduling, job.adaptive),
            max_retries=_either(wanted.max_retries, job.max_retries),
            backoff_s=_either(wanted.retry_backoff_seconds, job.backoff_s),
            after_job_id=_either(wanted.after_job_id, job.after_job_id),
            metadata=_either(wanted.metadata, job.metadata),
            repetition=_either(wanted.repeated, job.repetition),
            task=_either(wanted.task, job.task),
        )
        _refuse_wrong_interval(changed)
        if wanted.metadata is not None:
            _refuse_wrong_metadata(wanted.metadata)
        if changed.after_job_id is not None:
            self._refuse_circle(changed)
        return changed

    def _refuse_circle(self, job: Job) -> None:
        """A job must not wait for itself, by whatever detour."""
        before, seen = job.after_job_id, {job.job_id}
        while before is not None:
            if before in seen or len(seen) > _LONGEST_CHAIN:
                raise WrongUse("These jobs would wait for each other.", "Let one of them run after no other.")
            seen.add(before)
            try:
                before = self._jobs.store.get(before).after_job_id
            except Unknown as error:
                raise WrongUse(error.message, error.hint) from None

    def _crawl_for(self, wanted: WantedJob) -> CrawlInfo:
        if wanted.crawl is not None:
            return wanted.crawl
        if wanted.source_id:
            crawl = self._workspace.crawls.find(wanted.source_id)
            if crawl is None:
                raise WrongUse(f"There is no crawl {wanted.source_id!r}.", "Give the id of a crawl, or only a `url`.")
            _refuse_another(crawl, wanted.url)
            return self._planner.trusted(crawl) if wanted.caller.typed else crawl
        if not wanted.url:
            raise WrongUse("A job needs a crawl.", "Give `source_id` (the id of a crawl) or `url`.")
        refuse_secrets((wanted.url,))
        defaults = {"max_depth": DEFAULT_DEPTH}
        return self._planner.find_or_make(Start((wanted.url,), caller=wanted.caller, defaults=defaults))

    # Steering

    def act(self, job_id: str, action: Action) -> JobLine:
        """What people can do to a job: `states` says in which state, `occurrence` what becomes of it."""
        return self.resume(job_id) if action is Action.RESUME else self._change(job_id, action)

    def pause(self, job_id: str, reason: str = "") -> JobLine:
        return self._change(job_id, Action.PAUSE, reason)

    def resume(self, job_id: str) -> JobLine:
        """Schedule a paused job again, in the emptiest slot there is for it."""
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            crawl = self._workspace.crawls.find(job.crawl_id)
            if crawl is not None and not crawl.enabled and job.state is JobState.PAUSED:
                raise NotNow(
                    f"The crawl {crawl.name!r} is disabled, so its jobs stay paused.",
                    f"Enable it, which resumes them: inchworm configure {shlex.quote(crawl.name)} --enable,"
                    f" or PATCH /api/v1/crawl/{crawl.crawl_id} with enabled: true.",
                )
            return occurrence.after_action(Action.RESUME, job, now_ms)

        return self._jobs.line(self._jobs.store.place(job_id, decide, now_ms))

    def cancel(self, job_id: str) -> JobLine:
        """End a job for good. An execution that runs is told, and ends within the grace time."""
        return self.act(job_id, Action.CANCEL)

    def retry(self, job_id: str) -> JobLine:
        return self.act(job_id, Action.RETRY)

    def run(self, job_id: str) -> JobLine:
        """Run a job now, besides the times that are planned for it."""
        return self.act(job_id, Action.FORCE_RUN)

    def _change(self, job_id: str, action: Action, reason: str | None = None) -> JobLine:
        now_ms = self._workspace.clock.now_ms()

        def decide(job: Job) -> Job:
            after = occurrence.after_action(action, job, now_ms)
            return after if reason is None else dataclasses.replace(after, reason=reason)

        return self._jobs.line(self._jobs.store.change(job_id, decide, now_ms))

    def delete(self, job_id: str) -> None:
        self._jobs.store.delete(job_id)

    # Sources

    def set_enabled(self, word: str, enabled: bool) -> JobsSynced:
        """Let a crawl take part in schedules, or not. Its jobs are paused, or go on."""
        crawl = self._workspace.find(word)
        self._workspace.crawls.change(crawl.crawl_id, enabled=enabled)
        return self._sync_one(dataclasses.replace(crawl, enabled=enabled), make=False)

    def sync(self) -> JobsSynced:
        """Make a job for every crawl that is enabled and has none; pause the jobs of the rest."""
        with self.taking_turns():
            return sum((self._sync_one(crawl, make=True) for crawl in self._workspace.crawls.all()), JobsSynced())

    def _sync_one(self, crawl: CrawlInfo, make: bool) -> JobsSynced:
        done = JobsSynced()
        jobs = self._jobs.store.find(JobFilter(crawl_id=crawl.crawl_id), None, _MOST_JOBS)
        for job in jobs:
            if crawl.enabled and job.state is JobState.PAUSED and job.reason == SOURCE_DISABLED:
                self.resume(job.job_id)
                done += JobsSynced(resumed=1)
            elif not crawl.enabled and job.state is JobState.SCHEDULED:
                self.pause(job.job_id, SOURCE_DISABLED)
                done += JobsSynced(paused=1)
            else:
                done += JobsSynced(unchanged=1)
        if make and crawl.enabled and not any(job.interval_count for job in jobs):
            self.add(WantedJob(crawl=crawl, interval_minutes=SYNC_INTERVAL[0], interval_type=SYNC_INTERVAL[1]))
            done += JobsSynced(created=1)
        return done

    @contextlib.contextmanager
    def taking_turns(self) -> Iterator[None]:
        """One at a time may look whether a crawl has a job and make one for it."""
        with (self._workspace.folder / "starting.lock").open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield


def _refuse_another(crawl: CrawlInfo, url: str | None) -> None:
    """A URL that is named beside a crawl has to be one of its seeds: nobody can tell which of the two was meant."""
    if url is None:
        return
    seeds = {seed.url for seed in run.seeds_of(crawl.seeds)}
    if any(seed.url not in seeds for seed in run.seeds_of((url,))):
        raise WrongUse(
            f"{run.shown(url)!r} is not what the crawl {crawl.crawl_id!r} crawls: that is {', '.join(crawl.seeds)}.",
            "Leave `source_id` or `url` out.",
        )


def _rhythm(job: Job) -> tuple[int | None, str, bool, str | None]:
    return job.interval_count, job.interval_unit, job.schedule_enabled, job.after_job_id


def _either(wanted: Given | None, otherwise: Given) -> Given:
    return otherwise if wanted is None else wanted


def _refuse_beyond(value: int | None, name: str, least: int, most: int | None) -> None:
    if value is not None and (value < least or (most is not None and value > most)):
        limits = f"at least {least}" + (f", at most {most}" if most is not None else "")
        raise WrongUse(f"{name} cannot be {value}.", f"It takes a whole number, {limits}.")


def _refuse_wrong_metadata(metadata: Mapping[str, Json]) -> None:
    try:
        size = len(json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        raise WrongUse("The metadata is no proper JSON.", "It must not hold NaN, or half characters.") from None
    if _is_deep(metadata, _DEEPEST):
        raise WrongUse(f"The metadata is nested more than {_DEEPEST} levels deep.", "Keep it flat.")
    if size > _MOST_METADATA:
        raise WrongUse(f"The metadata is longer than {_MOST_METADATA} bytes.", "Keep it short.")


def _is_deep(value: Json, levels: int) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else None
    return inner is not None and (levels == 0 or any(_is_deep(one, levels - 1) for one in inner))


def _refuse_wrong_interval(job: Job) -> None:
    if job.interval_unit not in timetable.UNITS:
        raise WrongUse(
            f"interval_type cannot be {job.interval_unit!r}.", f"It takes one of {', '.join(timetable.UNITS)}."
        )
    if job.interval_count is not None and timetable.interval_ms(job.interval_count, job.interval_unit) > _LONGEST_MS:
        raise WrongUse("The interval is longer than ten years.", "Give a shorter one.")
    if job.interval_count is not None and job.after_job_id is not None:
        raise WrongUse(
            "A job runs by the clock or after another job, not both.", "Leave interval_minutes or after_job_id out."
        )


def _refuse_wrong_task(task: Task) -> None:
    if task.mode not in ("", Mode.INCREMENTAL, Mode.FULL):
        raise WrongUse(f"mode cannot be {task.mode!r}.", "It takes incremental or full.")
    refuse_unusable(settings.make(task.settings))
