"""Jobs: making, changing and steering them, and what their executions came to."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shlex
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inchworm import settings
from inchworm.app.checking import refuse_unusable
from inchworm.app.crawling import Crawling, Start
from inchworm.app.desk import presentable
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.job import Execution, ExecutionState, Job, JobState
from inchworm.model import CrawlInfo, Mode
from inchworm.rules.schedule import occurrence, states, timetable
from inchworm.rules.schedule.states import Action
from inchworm.rules.web import url as urls
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.store.home.events import Events, Line
from inchworm.store.home.jobs import Jobs

DEFAULT_DEPTH = 3
"""How deep a crawl goes that a job makes, unless it is told."""

SYNC_INTERVAL = (1, "days")
SOURCE_DISABLED = "source_disabled"
_MOST_METADATA = 16_384
_DEEPEST = 20
_LOOK_SECONDS = 0.5
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
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


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


class Working(Crawling):
    """Verbs about jobs."""

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.home)

    @property
    def events(self) -> Events:
        return Events(self.home)

    def service_settings(self) -> Settings:
        """What file and environment say of a service, and of what runs in it."""
        return settings.make(self.ground())

    # Making and changing

    def add_job(self, wanted: Wanted) -> dict[str, Any]:
        """Make a job; with an interval it gets a place in the day, without one it runs at once."""
        now_ms = self.clock.now_ms()
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
        return self.job_json(self.jobs.add(job, has_crawl=True))

    def change_job(self, job_id: str, wanted: Wanted, cleared: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Change a job. `cleared` names what is to be taken away: `interval_minutes`, `after_job_id`."""
        now_ms = self.clock.now_ms()

        def decide(job: Job) -> Job:
            if wanted.source_id not in (None, job.crawl_id):
                raise WrongUse("A job stays with its crawl.", "Make a new job for the other one.")
            changed = dataclasses.replace(job, interval_count=None) if "interval_minutes" in cleared else job
            changed = dataclasses.replace(changed, after_job_id=None) if "after_job_id" in cleared else changed
            return self._with(changed, wanted)

        before = self.jobs.get(job_id)
        after = decide(before)
        is_new_rhythm = _rhythm(before) != _rhythm(after) and before.state in states.CLAIMABLE
        change = self.jobs.place if is_new_rhythm else self.jobs.change
        return self.job_json(change(job_id, decide, now_ms))

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
                before = self.jobs.get(before).after_job_id
            except Unknown as error:
                raise WrongUse(error.message, error.hint) from None

    def _crawl_for(self, wanted: Wanted) -> CrawlInfo:
        if wanted.crawl is not None:
            return wanted.crawl
        if wanted.source_id:
            crawl = self.home.find(wanted.source_id)
            if crawl is None:
                raise WrongUse(f"There is no crawl {wanted.source_id!r}.", "Give the id of a crawl, or only a `url`.")
            _refuse_another(crawl, wanted.url)
            return crawl
        if not wanted.url:
            raise WrongUse("A job needs a crawl.", "Give `source_id` (the id of a crawl) or `url`.")
        refuse_secrets((wanted.url,))
        defaults = {"max_depth": DEFAULT_DEPTH}
        return self.find_or_make(Start((wanted.url,), typed=wanted.typed, guarded=wanted.guarded, defaults=defaults))

    def start_job(self, crawl: CrawlInfo, task: Task) -> dict[str, Any]:
        """A job that runs once, now."""
        if self.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Watch it, pause it, or wait for its end.")
        return self.add_job(Wanted(crawl=crawl, task=task))

    # Steering

    def pause_job(self, job_id: str, reason: str = "") -> dict[str, Any]:
        return self._act(job_id, Action.PAUSE, lambda job: dataclasses.replace(job, due_ms=None, reason=reason))

    def resume_job(self, job_id: str) -> dict[str, Any]:
        """Schedule a paused job again, in the emptiest slot there is for it."""

        def decide(job: Job) -> Job:
            crawl = self.home.find(job.crawl_id)
            if crawl is not None and not crawl.enabled and job.state is JobState.PAUSED:
                raise NotNow(
                    f"The crawl {crawl.name!r} is disabled, so its jobs stay paused.",
                    f"Enable it, which resumes them: inchworm configure {shlex.quote(crawl.name)} --enable,"
                    f" or PATCH /api/v1/crawl/{crawl.crawl_id} with enabled: true.",
                )
            return dataclasses.replace(job, state=states.after_action(Action.RESUME, job.state), reason="")

        return self.job_json(self.jobs.place(job_id, decide, self.clock.now_ms()))

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        """End a job for good. An execution that runs is told, and ends within the grace time."""
        return self._act(job_id, Action.CANCEL, lambda job: dataclasses.replace(job, due_ms=None))

    def retry_job(self, job_id: str) -> dict[str, Any]:
        now_ms = self.clock.now_ms()
        return self._act(job_id, Action.RETRY, lambda job: occurrence.retried(job, now_ms))

    def run_job(self, job_id: str) -> dict[str, Any]:
        """Run a job now, besides the times that are planned for it."""
        now_ms = self.clock.now_ms()
        return self._act(job_id, Action.FORCE_RUN, lambda job: occurrence.forced(job, now_ms))

    def _act(self, job_id: str, action: Action, then: Any) -> dict[str, Any]:
        def decide(job: Job) -> Job:
            state = states.after_action(action, job.state)
            changed: Job = then(job)
            return dataclasses.replace(changed, state=state)

        return self.job_json(self.jobs.change(job_id, decide, self.clock.now_ms()))

    def delete_job(self, job_id: str) -> None:
        self.jobs.delete(job_id)

    # Sources

    def set_enabled(self, word: str, enabled: bool) -> dict[str, Any]:
        """Let a crawl take part in schedules, or not. Its jobs are paused, or go on."""
        crawl = self.find(word)
        self.home.configure(crawl.crawl_id, enabled=enabled)
        return self._sync_one(dataclasses.replace(crawl, enabled=enabled), make=False)

    def sync_jobs(self) -> dict[str, Any]:
        """Make a job for every crawl that is enabled and has none; pause the jobs of the rest."""
        totals = {"created": 0, "resumed": 0, "paused": 0, "unchanged": 0}
        with self._taking_turns():
            for crawl in self.home.crawls():
                for name, count in self._sync_one(crawl, make=True).items():
                    totals[name] += count
        return totals

    def _sync_one(self, crawl: CrawlInfo, make: bool) -> dict[str, Any]:
        done = {"created": 0, "resumed": 0, "paused": 0, "unchanged": 0}
        jobs = self.jobs.find({"crawl_id": crawl.crawl_id}, None, 10_000)
        for job in jobs:
            if crawl.enabled and job.state is JobState.PAUSED and job.reason == SOURCE_DISABLED:
                self.resume_job(job.job_id)
                done["resumed"] += 1
            elif not crawl.enabled and job.state is JobState.SCHEDULED:
                self.pause_job(job.job_id, SOURCE_DISABLED)
                done["paused"] += 1
            else:
                done["unchanged"] += 1
        if make and crawl.enabled and not any(job.interval_count for job in jobs):
            self.add_job(Wanted(crawl=crawl, interval_minutes=SYNC_INTERVAL[0], interval_type=SYNC_INTERVAL[1]))
            done["created"] += 1
        return done

    @contextlib.contextmanager
    def _taking_turns(self) -> Iterator[None]:
        """One at a time may look whether a crawl has a job and make one for it."""
        with (self.folder / "starting.lock").open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    # Looking

    def list_jobs(
        self, where: Mapping[str, Any], after: tuple[int, str] | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        return [self.job_json(job) for job in self.jobs.find(where, after, limit)]

    def job(self, job_id: str) -> dict[str, Any]:
        return self.job_json(self.jobs.get(job_id))

    def job_json(self, job: Job) -> dict[str, Any]:
        crawl = self.home.find(job.crawl_id)
        return {**_job_json(job), "url": crawl.seeds[0] if crawl else None, "name": crawl.name if crawl else None}

    def job_stats(self, job_id: str) -> dict[str, Any]:
        """The executions of a job in numbers."""
        job = self.jobs.get(job_id)
        figures = self.jobs.figures(job_id)
        return {
            "job_id": job_id,
            "status": job.state,
            "total_executions": figures["total"],
            "successful_executions": figures["completed"],
            "failed_executions": figures["failed"],
            "cancelled_executions": figures["cancelled"],
            "success_rate": figures["success_rate"],
            "average_duration_ms": figures["average_ms"],
            "total_items_crawled": figures["pages"],
            "total_cpu_time_ms": figures["cpu_ms"],
            "memory_peak_mb": round(figures["memory_peak_kb"] / 1024, 1),
            "last_success_at": _time(figures["last_success_ms"]),
            "last_failure_at": _time(figures["last_failure_ms"]),
            "next_run_at": _time(job.due_ms),
        }

    def execution(self, execution_id: int) -> dict[str, Any]:
        return execution_json(self.jobs.execution(execution_id))

    def executions(self, job_id: str, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:
        return [execution_json(one) for one in self.jobs.executions(job_id, before, limit)]

    def execution_of(self, job_id: str, execution_id: int | None) -> Execution:
        """An execution of a job, or its last one."""
        if execution_id is not None:
            found = self.jobs.execution(execution_id)
            if found.job_id == job_id:
                return found
            raise Unknown(f"Execution {execution_id} belongs to another job.", "`inchworm jobs executions` lists them.")
        last = self.jobs.executions(job_id, None, 1)
        if not last:
            raise NotNow("This job has not run yet, so it has no log.", "`inchworm jobs run` starts it.")
        return last[0]

    def log_lines(self, execution_id: int, follow: bool = False) -> Iterator[Line]:
        """The whole log of an execution: as it is now, or, to `follow` it, as it comes, to its end."""
        after, is_over = 0, not follow
        while True:
            while lines := self.events.lines(execution_id, after):
                yield from lines
                after = lines[-1].number
            if is_over:
                return
            # Once more after its end: what was written before it is there then.
            is_over = self.jobs.execution(execution_id).state is not ExecutionState.RUNNING
            time.sleep(0.0 if is_over else _LOOK_SECONDS)


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


def execution_json(one: Execution) -> dict[str, Any]:
    """An execution as it is shown."""
    ended_ms = one.ended_ms
    return {
        "id": one.execution_id,
        "job_id": one.job_id,
        "crawl_id": one.crawl_id,
        "execution_number": one.number,
        "status": one.state,
        "planned_at": iso(one.occurrence_ms),
        "attempt": one.attempt,
        "retry_attempt": one.attempt - 1,
        "started_at": iso(one.started_ms),
        "completed_at": _time(ended_ms),
        "duration_ms": ended_ms - one.started_ms if ended_ms is not None else None,
        "run": one.run,
        "session": one.session,
        "ended_by": one.ended_by or None,
        "items_crawled": one.pages,
        "items_indexed": one.indexed,
        "error_message": one.error or None,
        "stack_trace": one.trace or None,
        "cpu_time_ms": one.cpu_ms,
        "memory_peak_mb": round(one.memory_kb / 1024, 1),
        "machine": one.machine or None,
        "pid": one.pid or None,
        "progress": dict(one.progress),
    }


def _job_json(job: Job) -> dict[str, Any]:
    every = occurrence.every_ms(job)
    return {
        "id": job.job_id,
        "source_id": job.crawl_id,
        "crawl_id": job.crawl_id,
        "status": job.state,
        "interval_minutes": job.interval_count,
        "interval_type": job.interval_unit,
        "schedule_enabled": job.schedule_enabled and job.interval_count is not None,
        "adaptive_scheduling": job.adaptive,
        "current_interval_seconds": every // 1000 if every is not None else None,
        "unchanged_count": job.unchanged,
        "next_run_at": _time(job.due_ms),
        "planned_at": _time(job.occurrence_ms),
        "last_run_at": _time(job.last_ms),
        "is_paused": job.state is JobState.PAUSED,
        "is_locked": job.lock_token is not None,
        "slot": job.slot,
        "max_retries": job.max_retries,
        "retry_backoff_seconds": job.backoff_s,
        "current_retry_count": job.retries,
        "after_job_id": job.after_job_id,
        "task": {**job.task, "settings": presentable(job.task.get("settings", {}))},
        "repetition": _presentable(job.repetition),
        "executions": job.executions,
        "reason": job.reason or None,
        "metadata": dict(job.metadata),
        "created_at": iso(job.created_ms),
        "updated_at": iso(job.updated_ms),
    }


def _presentable(repetition: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Addresses may hold secrets: only how many there are is shown."""
    return {**repetition, "notify": len(repetition["notify"])} if repetition else None


def _time(at_ms: int | None) -> str | None:
    return iso(at_ms) if at_ms is not None else None


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
