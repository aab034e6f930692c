"""Jobs: making, changing and steering them."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inchworm import settings
from inchworm.app.act.plan import Start
from inchworm.app.act.start import Starter
from inchworm.app.read.jobs import JobReads
from inchworm.app.refuse import refuse_unusable
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.job import Job, JobState
from inchworm.model import CrawlInfo, Mode
from inchworm.rules.schedule import occurrence, states, timetable
from inchworm.rules.schedule.states import Action
from inchworm.rules.web import url as urls
from inchworm.settings import NamedSettings

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


@dataclass(frozen=True, slots=True)
class Task:
    """What an execution does: which verb it calls on its crawl, with what."""

    verb: str = "crawl"
    mode: str = ""
    checkpoint: str | None = None
    as_new_run: bool = False
    validate: bool = True
    settings: NamedSettings = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repeated:
    """How often a job repeats its crawl, and who is told. Without an interval only a person starts the next run."""

    max_iterations: int | None = None
    stop_if_no_changes: bool = False
    notify: tuple[str, ...] = ()
    notify_on: str = "changes"
    guarded: bool = False
    """Messages never go to private addresses."""


@dataclass(frozen=True, slots=True)
class Wanted:
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
    metadata: Mapping[str, Any] | None = None
    repeated: Repeated | None = None
    task: Task | None = None
    typed: bool = True
    guarded: bool = False
    """A `url` in a private network is refused."""


class JobActs:
    """Makes and steers jobs."""

    def __init__(self, workspace: Workspace, jobs: JobReads, start: Starter) -> None:
        self._workspace = workspace
        self._jobs = jobs
        self._start = start

    # Making and changing

    def add(self, wanted: Wanted) -> dict[str, Any]:
        """Make a job; with an interval it gets a place in the day, without one it runs at once."""
        now_ms = self._workspace.clock.now_ms()
        job = Job(
            uuid.uuid4().hex,
            "",
            JobState.PENDING,
            dataclasses.asdict(Task()),
            adaptive=True,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        # All that is wanted is known to be right before a crawl is made for it.
        job = self._with(job, wanted)
        job = dataclasses.replace(job, crawl_id=self._crawl_for(wanted).crawl_id)
        return self._jobs.json(self._jobs.store.add(job, has_crawl=True))

    def change(self, job_id: str, wanted: Wanted, cleared: frozenset[str] = frozenset()) -> dict[str, Any]:
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
        return self._jobs.json(change(job_id, decide, now_ms))

    def _with(self, job: Job, wanted: Wanted) -> Job:
        """A job with what is wanted of it, every value checked."""
        values: dict[str, Any] = {
            "interval_count": _checked(wanted.interval_minutes, "interval_minutes", 1, None),
            "interval_unit": wanted.interval_type,
            "schedule_enabled": wanted.schedule_enabled,
            "adaptive": wanted.adaptive_scheduling,
            "max_retries": _checked(wanted.max_retries, "max_retries", 0, _MOST_RETRIES),
            "backoff_s": _checked(wanted.retry_backoff_seconds, "retry_backoff_seconds", 0, _MOST_BACKOFF),
            "after_job_id": wanted.after_job_id,
            "metadata": wanted.metadata,
            "repetition": dataclasses.asdict(wanted.repeated) if wanted.repeated else None,
            "task": dataclasses.asdict(_checked_task(wanted.task)) if wanted.task else None,
        }
        if wanted.repeated:
            _checked(wanted.repeated.max_iterations, "max_iterations", 1, None)
        changed = dataclasses.replace(job, **{name: value for name, value in values.items() if value is not None})
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

    def _crawl_for(self, wanted: Wanted) -> CrawlInfo:
        if wanted.crawl is not None:
            return wanted.crawl
        if wanted.source_id:
            crawl = self._workspace.home.find(wanted.source_id)
            if crawl is None:
                raise WrongUse(f"There is no crawl {wanted.source_id!r}.", "Give the id of a crawl, or only a `url`.")
            _refuse_another(crawl, wanted.url)
            return crawl
        if not wanted.url:
            raise WrongUse("A job needs a crawl.", "Give `source_id` (the id of a crawl) or `url`.")
        refuse_secrets((wanted.url,))
        defaults = {"max_depth": DEFAULT_DEPTH}
        return self._start.find_or_make(
            Start((wanted.url,), typed=wanted.typed, guarded=wanted.guarded, defaults=defaults)
        )

    def start(self, crawl: CrawlInfo, task: Task) -> dict[str, Any]:
        """A job that runs once, now."""
        if self._workspace.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Watch it, pause it, or wait for its end.")
        return self.add(Wanted(crawl=crawl, task=task))

    # Steering

    def pause(self, job_id: str, reason: str = "") -> dict[str, Any]:
        return self._act(job_id, Action.PAUSE, lambda job: dataclasses.replace(job, due_ms=None, reason=reason))

    def resume(self, job_id: str) -> dict[str, Any]:
        """Schedule a paused job again, in the emptiest slot there is for it."""

        def decide(job: Job) -> Job:
            crawl = self._workspace.home.find(job.crawl_id)
            if crawl is not None and not crawl.enabled and job.state is JobState.PAUSED:
                raise NotNow(
                    f"The crawl {crawl.name!r} is disabled, so its jobs stay paused.",
                    f"Enable it, which resumes them: inchworm configure {shlex.quote(crawl.name)} --enable,"
                    f" or PATCH /api/v1/crawl/{crawl.crawl_id} with enabled: true.",
                )
            return dataclasses.replace(job, state=states.after_action(Action.RESUME, job.state), reason="")

        return self._jobs.json(self._jobs.store.place(job_id, decide, self._workspace.clock.now_ms()))

    def cancel(self, job_id: str) -> dict[str, Any]:
        """End a job for good. An execution that runs is told, and ends within the grace time."""
        return self._act(job_id, Action.CANCEL, lambda job: dataclasses.replace(job, due_ms=None))

    def retry(self, job_id: str) -> dict[str, Any]:
        now_ms = self._workspace.clock.now_ms()
        return self._act(job_id, Action.RETRY, lambda job: occurrence.retried(job, now_ms))

    def run(self, job_id: str) -> dict[str, Any]:
        """Run a job now, besides the times that are planned for it."""
        now_ms = self._workspace.clock.now_ms()
        return self._act(job_id, Action.FORCE_RUN, lambda job: occurrence.forced(job, now_ms))

    def _act(self, job_id: str, action: Action, then: Any) -> dict[str, Any]:
        def decide(job: Job) -> Job:
            state = states.after_action(action, job.state)
            changed: Job = then(job)
            return dataclasses.replace(changed, state=state)

        return self._jobs.json(self._jobs.store.change(job_id, decide, self._workspace.clock.now_ms()))

    def delete(self, job_id: str) -> None:
        self._jobs.store.delete(job_id)

    # Sources

    def set_enabled(self, word: str, enabled: bool) -> dict[str, Any]:
        """Let a crawl take part in schedules, or not. Its jobs are paused, or go on."""
        crawl = self._workspace.find(word)
        self._workspace.home.configure(crawl.crawl_id, enabled=enabled)
        return self._sync_one(dataclasses.replace(crawl, enabled=enabled), make=False)

    def sync(self) -> dict[str, Any]:
        """Make a job for every crawl that is enabled and has none; pause the jobs of the rest."""
        totals = {"created": 0, "resumed": 0, "paused": 0, "unchanged": 0}
        with self.taking_turns():
            for crawl in self._workspace.home.crawls():
                for name, count in self._sync_one(crawl, make=True).items():
                    totals[name] += count
        return totals

    def _sync_one(self, crawl: CrawlInfo, make: bool) -> dict[str, Any]:
        done = {"created": 0, "resumed": 0, "paused": 0, "unchanged": 0}
        jobs = self._jobs.store.find({"crawl_id": crawl.crawl_id}, None, 10_000)
        for job in jobs:
            if crawl.enabled and job.state is JobState.PAUSED and job.reason == SOURCE_DISABLED:
                self.resume(job.job_id)
                done["resumed"] += 1
            elif not crawl.enabled and job.state is JobState.SCHEDULED:
                self.pause(job.job_id, SOURCE_DISABLED)
                done["paused"] += 1
            else:
                done["unchanged"] += 1
        if make and crawl.enabled and not any(job.interval_count for job in jobs):
            self.add(Wanted(crawl=crawl, interval_minutes=SYNC_INTERVAL[0], interval_type=SYNC_INTERVAL[1]))
            done["created"] += 1
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


def refuse_secrets(targets: Sequence[str]) -> None:
    """Nobody is there to type a password again for a session that starts by itself."""
    for text in targets:
        form = (urls.seed(text) or ("",))[0]
        if urls.userinfo_of(form) is not None:
            raise WrongUse(
                f"{run.shown(text)!r} was given with a user or password, which are kept nowhere.",
                "Leave them out. `inchworm crawl` on the machine itself takes them, for one session.",
            )


def _rhythm(job: Job) -> tuple[Any, ...]:
    return job.interval_count, job.interval_unit, job.schedule_enabled, job.after_job_id


def _checked(value: int | None, name: str, least: int, most: int | None) -> int | None:
    if value is not None and (value < least or (most is not None and value > most)):
        limits = f"at least {least}" + (f", at most {most}" if most is not None else "")
        raise WrongUse(f"{name} cannot be {value}.", f"It takes a whole number, {limits}.")
    return value


def _refuse_wrong_metadata(metadata: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        raise WrongUse("The metadata is no proper JSON.", "It must not hold NaN, or half characters.") from None
    if _is_deep(metadata, _DEEPEST):
        raise WrongUse(f"The metadata is nested more than {_DEEPEST} levels deep.", "Keep it flat.")
    if size > _MOST_METADATA:
        raise WrongUse(f"The metadata is longer than {_MOST_METADATA} bytes.", "Keep it short.")


def _is_deep(value: Any, levels: int) -> bool:
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


def _checked_task(task: Task) -> Task:
    if task.mode not in ("", Mode.INCREMENTAL, Mode.FULL):
        raise WrongUse(f"mode cannot be {task.mode!r}.", "It takes incremental or full.")
    values = settings.make(task.settings)
    refuse_unusable(values)
    return task
