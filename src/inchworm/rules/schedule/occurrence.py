"""What becomes of a job when people do something to it, and when a try of it is over: values in, values out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inchworm.job import Job, JobState
from inchworm.rules.schedule import states, timetable
from inchworm.rules.schedule.states import Action, Move

BUSY_MS = 60_000
MOST_CRASHES = 10
"""So many tries may die before that counts as a failure: whatever kills them may kill the machine."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a try went. `changed`: whether the text of a seed changed, None when nobody could tell; `enough`: why the
    job is not repeated any more, empty when it is; `error` is empty when all went well."""

    ended_by: str = ""
    pages: int = 0
    indexed: int = 0
    changed: bool | None = None
    enough: str = ""
    error: str = ""
    trace: str = ""
    cpu_ms: int = 0
    memory_kb: int = 0


def placed(job: Job, loads: Sequence[int], now_ms: int) -> Job:
    """A new, changed or resumed job with the time of its next run. One that waits for another job or for a person has
    none; one without an interval runs at once; one that ran within its interval, and not in vain, waits for its end."""
    every = every_ms(job)
    if every is None:
        waits = job.after_job_id is not None or job.repetition is not None
        due_ms = None if waits else now_ms
        state = JobState.SCHEDULED if waits or job.state is JobState.SCHEDULED else JobState.PENDING
    else:
        due_ms = timetable.first_ms(loads, every, now_ms, _rested_ms(job, every)) if job.schedule_enabled else None
        state = JobState.SCHEDULED
    return dataclasses.replace(
        job, state=state, due_ms=due_ms, occurrence_ms=due_ms, aside_ms=None, retries=0, crashes=0
    )


def _rested_ms(job: Job, every: int) -> int:
    """From when on a job may run again: once its interval is over, at once if its last try was not the end of it."""
    if job.last_ms is None or job.retries or job.crashes:
        return 0
    is_in_hand = job.due_ms is not None and job.occurrence_ms is not None and job.occurrence_ms <= job.last_ms
    return 0 if is_in_hand else job.last_ms + every


def after_action(action: Action, job: Job, now_ms: int) -> Job:
    """A job to which people did something, or an error that says what is possible. One that is resumed still has to be
    placed."""
    state = states.after_action(action, job.state)
    return dataclasses.replace(_ACTED[action](job, now_ms), state=state)


def forced(job: Job, now_ms: int) -> Job:
    """A job that runs now because a person said so. A planned time that is yet to come stays; one that is over, or a
    try that waits, is what runs now."""
    if job.due_ms is None:
        return dataclasses.replace(job, due_ms=now_ms, occurrence_ms=now_ms)
    if job.occurrence_ms is None or job.occurrence_ms <= now_ms or not recurs(job):
        return dataclasses.replace(job, due_ms=now_ms)
    return dataclasses.replace(job, due_ms=now_ms, occurrence_ms=now_ms, aside_ms=job.occurrence_ms)


def retried(job: Job, now_ms: int) -> Job:
    """A job that failed, tried again from the start: the same occurrence, all its tries."""
    occurrence = job.occurrence_ms if job.occurrence_ms is not None else now_ms
    return dataclasses.replace(
        job, state=JobState.PENDING, due_ms=now_ms, occurrence_ms=occurrence, retries=0, crashes=0, reason=""
    )


_ACTED: Mapping[Action, Callable[[Job, int], Job]] = {
    Action.PAUSE: lambda job, _: dataclasses.replace(job, due_ms=None, reason=""),
    Action.RESUME: lambda job, _: dataclasses.replace(job, reason=""),
    Action.CANCEL: lambda job, _: dataclasses.replace(job, due_ms=None),
    Action.RETRY: retried,
    Action.FORCE_RUN: forced,
}
"""What becomes of a job, its state aside, by what people do to it."""


def after_success(job: Job, ended: Ended, now_ms: int) -> Job:
    unchanged = job.unchanged if ended.changed is None else 0 if ended.changed else job.unchanged + 1
    done = dataclasses.replace(
        job, state=states.after(Move.SUCCEED, job.state), unchanged=unchanged, retries=0, crashes=0, reason=ended.enough
    )
    if ended.enough or not recurs(job):
        return dataclasses.replace(done, due_ms=None)
    due_ms = _next_ms(done, now_ms)
    occurrence = job.occurrence_ms if due_ms is None else due_ms
    return dataclasses.replace(
        done, state=states.after(Move.RECUR, done.state), due_ms=due_ms, occurrence_ms=occurrence, aside_ms=None
    )


def after_failure(job: Job, error: str, now_ms: int) -> Job:
    """Tried again later, or failed for good."""
    if job.retries >= job.max_retries:
        return dataclasses.replace(job, state=states.after(Move.FAIL, job.state), due_ms=None, reason=error)
    retries = job.retries + 1
    due_ms = now_ms + timetable.backoff_ms(job.backoff_s, retries)
    return dataclasses.replace(job, state=states.after(Move.TRY_AGAIN, job.state), due_ms=due_ms, retries=retries)


def after_crash(job: Job, error: str, now_ms: int) -> Job:
    """Whoever ran it is gone: the next one goes on at once, with the same occurrence. Where that does not help, it has
    failed like any other."""
    if job.crashes >= MOST_CRASHES:
        return after_failure(dataclasses.replace(job, crashes=0), error, now_ms)
    return dataclasses.replace(handed_back(job, now_ms), crashes=job.crashes + 1)


def handed_back(job: Job, now_ms: int) -> Job:
    return dataclasses.replace(job, state=states.after(Move.HAND_BACK, job.state), due_ms=now_ms)


def put_off(job: Job, now_ms: int) -> Job:
    """Somebody else works on the crawl: that is nobody's failure, so the same try comes later."""
    return dataclasses.replace(handed_back(job, now_ms), due_ms=now_ms + BUSY_MS)


def recurs(job: Job) -> bool:
    """Whether a job goes on after it has run: by the clock, after another job, or whenever a person says so."""
    return job.interval_count is not None or job.after_job_id is not None or job.repetition is not None


def every_ms(job: Job) -> int | None:
    """The interval of a job as it stands now."""
    if job.interval_count is None:
        return None
    baseline = timetable.interval_ms(job.interval_count, job.interval_unit)
    return timetable.adapted_ms(baseline, job.unchanged) if job.adaptive else baseline


def slot_of(job: Job) -> int | None:
    """The slot that a job takes up: only jobs that go by the clock take one. One that runs keeps it, and so does one
    that a person runs in between."""
    if job.interval_count is None or job.due_ms is None or job.state not in (JobState.SCHEDULED, JobState.RUNNING):
        return None
    return timetable.slot_of(job.due_ms if job.aside_ms is None else job.aside_ms)


def _next_ms(job: Job, now_ms: int) -> int | None:
    every = every_ms(job)
    if every is None or not job.schedule_enabled:
        return None
    if job.aside_ms is not None and job.aside_ms > now_ms:
        # What was found in between may have made the interval shorter.
        return timetable.forward_ms(job.aside_ms, every, now_ms)
    planned = job.occurrence_ms if job.aside_ms is None else job.aside_ms
    return timetable.next_ms(now_ms if planned is None else planned, every, now_ms)


def differences(before: Job, after: Job) -> dict[str, Any]:
    """What changed in a job, by name."""
    names = (field.name for field in dataclasses.fields(Job))
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
