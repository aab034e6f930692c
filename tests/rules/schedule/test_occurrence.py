"""What becomes of a job when people do something to it, and when a try of it is over."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.errors import NotNow
from inchworm.job import Job, JobState
from inchworm.rules.schedule import occurrence
from inchworm.rules.schedule.occurrence import MOST_CRASHES, Ended
from inchworm.rules.schedule.states import Action
from inchworm.rules.schedule.timetable import DAY_MS, SLOTS

MINUTE = 60_000
HOUR = 60 * MINUTE
NOON = 20_000 * DAY_MS + 12 * HOUR
EMPTY = [0] * SLOTS
NIGHTLY = {"max_iterations": None, "stop_if_no_changes": False, "notify": [], "notify_on": "changes"}

WELL = Ended("finished", 10)
CHANGED = Ended("finished", 10, changed=True)
UNCHANGED = Ended("finished", 10, changed=False)
LAST = Ended("finished", 10, enough="no_changes")


def job(state: str = "running", **values: Any) -> Job:
    """A job whose occurrence was planned for noon."""
    return Job("j", "c", JobState(state), **{"occurrence_ms": NOON, "due_ms": NOON, **values})


def once(state: str = "running", **values: Any) -> Job:
    return job(state, **values)


def every_6_hours(state: str = "running", **values: Any) -> Job:
    return job(state, interval_count=6, interval_unit="hours", **values)


def chained(state: str = "running", **values: Any) -> Job:
    return job(state, after_job_id="other", **values)


def by_hand(state: str = "running", **values: Any) -> Job:
    """Repeated whenever a person says so."""
    return job(state, repetition=NIGHTLY, **values)


def switched_off(state: str = "running", **values: Any) -> Job:
    """With an interval that does not count."""
    return every_6_hours(state, schedule_enabled=False, **values)


KINDS = {
    "once": once,
    "every 6 hours": every_6_hours,
    "chained": chained,
    "by hand": by_hand,
    "switched off": switched_off,
}


def places(one: Job) -> tuple[str, int | None, int | None]:
    return one.state.value, one.due_ms, one.occurrence_ms


# A new or resumed job


PLACED = {
    "once": (once, "pending", NOON),
    "every 6 hours": (every_6_hours, "scheduled", NOON),
    "chained": (chained, "scheduled", None),
    "by hand": (by_hand, "scheduled", None),
    "switched off": (switched_off, "scheduled", None),
}


@pytest.mark.parametrize(("kind", "state", "due"), PLACED.values(), ids=PLACED)
def test_a_new_job_is_placed(kind: Any, state: str, due: int | None) -> None:
    new = occurrence.placed(kind("pending", occurrence_ms=None, due_ms=None), EMPTY, NOON)
    assert places(new) == (state, due, due)


def test_a_job_is_placed_in_the_least_loaded_slot_within_its_interval() -> None:
    taken = [2] * SLOTS
    taken[48 + 3], taken[48 + 30] = 1, 0
    assert occurrence.placed(every_6_hours("pending"), taken, NOON).due_ms == NOON + 45 * MINUTE


def test_one_with_an_interval_and_a_repetition_goes_by_the_clock() -> None:
    new = occurrence.placed(every_6_hours("pending", repetition=NIGHTLY), EMPTY, NOON)
    assert places(new) == ("scheduled", NOON, NOON)


RESTED = {
    "never ran": ({}, EMPTY, 0),
    "ran an hour ago": ({"last_ms": NOON - HOUR}, EMPTY, 5),
    "began when the interval did": ({"last_ms": NOON - 6 * HOUR}, EMPTY, 0),
    "ran long ago": ({"last_ms": NOON - 60 * HOUR}, EMPTY, 0),
    "ran now": ({"last_ms": NOON}, [9] * SLOTS, 6),
    "ran two hours ago, and most slots are taken": ({"last_ms": NOON - 2 * HOUR}, [0] * 64 + [1] * 4 + [0] * 28, 5),
    "ran two hours ago, unchanged twice": ({"last_ms": NOON - 2 * HOUR, "unchanged": 2}, EMPTY, 22),
    "ran two hours ago, not adaptive": ({"last_ms": NOON - 2 * HOUR, "unchanged": 2, "adaptive": False}, EMPTY, 4),
    "a try of it failed": ({"last_ms": NOON - HOUR, "retries": 1}, EMPTY, 0),
    "its service stopped": ({"last_ms": NOON - HOUR, "occurrence_ms": NOON - HOUR, "due_ms": NOON}, EMPTY, 0),
    "its process died": ({"last_ms": NOON - HOUR, "crashes": 1}, EMPTY, 0),
    "ran tomorrow, by a clock that was set back": ({"last_ms": NOON + DAY_MS}, EMPTY, 6),
}


@pytest.mark.parametrize(("values", "taken", "hours"), RESTED.values(), ids=RESTED)
def test_a_job_that_is_placed_anew_does_not_run_before_its_interval_is_over(
    values: dict[str, Any], taken: list[int], hours: int
) -> None:
    """One that was resumed or changed, and is not to be tried again anyway."""
    again = occurrence.placed(every_6_hours("scheduled", **{"due_ms": None, **values}), taken, NOON)
    assert places(again) == ("scheduled", NOON + hours * HOUR, NOON + hours * HOUR)


@given(
    st.integers(1, 60),
    st.integers(0, 4),
    st.integers(0, 3 * DAY_MS),
    st.lists(st.integers(0, 6), min_size=SLOTS, max_size=SLOTS),
)
def test_a_job_is_placed_between_one_interval_after_its_last_run_and_one_from_now(
    quarters: int, unchanged: int, ago: int, taken: list[int]
) -> None:
    one = job("paused", interval_count=15 * quarters, unchanged=unchanged, last_ms=NOON - ago, due_ms=None)
    every = occurrence.every_ms(one) or 0
    due = occurrence.placed(one, taken, NOON).due_ms or 0
    assert max(NOON, NOON - ago + every) <= due <= NOON + every


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_placing_forgets_the_tries_of_before(kind: Any) -> None:
    new = occurrence.placed(kind("paused", retries=3, crashes=7, unchanged=2), EMPTY, NOON)
    assert (new.retries, new.crashes, new.unchanged) == (0, 0, 2)


# Success


SUCCESS = {
    "once": (once, "completed", None, NOON),
    "every 6 hours": (every_6_hours, "scheduled", NOON + 6 * HOUR, NOON + 6 * HOUR),
    "chained": (chained, "scheduled", None, NOON),
    "by hand": (by_hand, "scheduled", None, NOON),
    "switched off": (switched_off, "scheduled", None, NOON),
}


@pytest.mark.parametrize(("kind", "state", "due", "planned"), SUCCESS.values(), ids=SUCCESS)
def test_after_a_success(kind: Any, state: str, due: int | None, planned: int | None) -> None:
    after = occurrence.after_success(kind(), WELL, NOON + 5 * MINUTE)
    assert places(after) == (state, due, planned)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_last_repetition_completes_a_job_of_any_kind(kind: Any) -> None:
    after = occurrence.after_success(kind(), LAST, NOON)
    assert after.state is JobState.COMPLETED and after.due_ms is None
    assert after.reason == "no_changes", "and says why"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_success_makes_up_for_failures(kind: Any) -> None:
    after = occurrence.after_success(kind(retries=2, crashes=4, reason="it failed"), WELL, NOON)
    assert (after.retries, after.crashes, after.reason) == (0, 0, "")


def test_times_that_were_missed_are_not_made_up_for() -> None:
    after = occurrence.after_success(every_6_hours(), WELL, NOON + 100 * HOUR)
    assert after.due_ms == NOON + 102 * HOUR


@pytest.mark.parametrize(("ended", "following"), [(NOON + MINUTE, 4), (NOON + 4 * HOUR, 10), (NOON + 17 * HOUR, 22)])
def test_a_run_in_between_leaves_the_rhythm_as_it_is(ended: int, following: int) -> None:
    """Twice, as somebody may be impatient."""
    early = occurrence.forced(every_6_hours("scheduled", occurrence_ms=NOON + 4 * HOUR, due_ms=NOON + 4 * HOUR), NOON)
    running = dataclasses.replace(occurrence.forced(early, NOON + 1), state=JobState.RUNNING)
    after = occurrence.after_success(running, WELL, ended)
    assert (after.due_ms, after.occurrence_ms) == (NOON + following * HOUR, NOON + following * HOUR)
    assert after.aside_ms is None


@pytest.mark.parametrize(
    ("planned", "ended", "following"),
    [(20, CHANGED, 2), (6, CHANGED, 6), (4, CHANGED, 4), (20, UNCHANGED, 20), (20, WELL, 20)],
)
def test_a_run_in_between_that_finds_a_change_brings_the_next_one_forward(
    planned: int, ended: Ended, following: int
) -> None:
    """The interval is short again, so the next run is no further away than that; in rhythm, as ever."""
    waiting = every_6_hours("scheduled", unchanged=2, occurrence_ms=NOON + planned * HOUR, due_ms=NOON + planned * HOUR)
    running = dataclasses.replace(occurrence.forced(waiting, NOON), state=JobState.RUNNING)
    after = occurrence.after_success(running, ended, NOON)
    assert (after.due_ms, after.occurrence_ms) == (NOON + following * HOUR, NOON + following * HOUR)


def test_a_run_in_between_that_fails_at_first_leaves_the_rhythm_as_it_is() -> None:
    early = occurrence.forced(every_6_hours("scheduled", occurrence_ms=NOON + 4 * HOUR, due_ms=NOON + 4 * HOUR), NOON)
    failed = occurrence.after_failure(dataclasses.replace(early, state=JobState.RUNNING), "gone", NOON + MINUTE)
    assert failed.occurrence_ms == NOON
    again = dataclasses.replace(failed, state=JobState.RUNNING)
    assert occurrence.after_success(again, WELL, NOON + HOUR).due_ms == NOON + 4 * HOUR


def test_a_late_retry_keeps_the_rhythm_too() -> None:
    running = every_6_hours(retries=3, due_ms=NOON + HOUR)
    assert occurrence.after_success(running, WELL, NOON + HOUR).due_ms == NOON + 6 * HOUR


# The interval adapts


ADAPTING = {
    "changed": (CHANGED, 2, 0, 6 * HOUR),
    "changed again": (CHANGED, 0, 0, 6 * HOUR),
    "unchanged": (UNCHANGED, 0, 1, 12 * HOUR),
    "unchanged again": (UNCHANGED, 1, 2, 24 * HOUR),
    "unchanged for long": (UNCHANGED, 9, 10, 24 * HOUR),
    "nobody could tell": (WELL, 0, 0, 6 * HOUR),
    "nobody could tell, as before": (WELL, 1, 1, 12 * HOUR),
}


@pytest.mark.parametrize(("ended", "before", "counted", "every"), ADAPTING.values(), ids=ADAPTING)
def test_the_interval_adapts(ended: Ended, before: int, counted: int, every: int) -> None:
    after = occurrence.after_success(every_6_hours(unchanged=before), ended, NOON)
    assert after.unchanged == counted
    assert after.due_ms == NOON + every
    assert occurrence.every_ms(after) == every


@pytest.mark.parametrize("ended", [CHANGED, UNCHANGED, WELL])
def test_a_fixed_interval_does_not_adapt(ended: Ended) -> None:
    after = occurrence.after_success(every_6_hours(adaptive=False, unchanged=3), ended, NOON)
    assert after.due_ms == NOON + 6 * HOUR and occurrence.every_ms(after) == 6 * HOUR


def test_errors_are_no_evidence() -> None:
    """A try that failed says nothing of whether the pages changed."""
    assert occurrence.after_failure(every_6_hours(unchanged=1), "gone", NOON).unchanged == 1
    assert occurrence.after_crash(every_6_hours(unchanged=1), "gone", NOON).unchanged == 1


@pytest.mark.parametrize("kind", [once, chained, by_hand])
def test_without_an_interval_there_is_none(kind: Any) -> None:
    assert occurrence.every_ms(kind()) is None


# Failure


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("retries", "wait"), [(0, 60), (1, 120), (2, 240)])
def test_a_failed_try_is_put_off(kind: Any, retries: int, wait: int) -> None:
    after = occurrence.after_failure(kind(retries=retries), "gone", NOON + HOUR)
    assert places(after) == ("scheduled", NOON + HOUR + wait * 1000, NOON)
    assert after.retries == retries + 1


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_after_all_its_retries_a_job_has_failed(kind: Any) -> None:
    after = occurrence.after_failure(kind(retries=3), "gone", NOON)
    assert places(after) == ("failed", None, NOON)
    assert (after.reason, after.retries) == ("gone", 3)


@pytest.mark.parametrize(("allowed", "tries"), [(0, 1), (1, 2), (3, 4), (7, 8)])
def test_a_job_is_tried_once_and_then_as_often_as_it_may(allowed: int, tries: int) -> None:
    one, count = every_6_hours(max_retries=allowed), 0
    while one.state is not JobState.FAILED:
        one, count = dataclasses.replace(one, state=JobState.RUNNING), count + 1
        one = occurrence.after_failure(one, "gone", NOON)
    assert count == tries


def test_the_waits_between_tries_are_those_of_its_own_base() -> None:
    one, waits = once(max_retries=4, backoff_s=600), []
    while one.state is not JobState.FAILED:
        one = occurrence.after_failure(dataclasses.replace(one, state=JobState.RUNNING), "gone", NOON)
        waits.append(None if one.due_ms is None else (one.due_ms - NOON) // 1000)
    assert waits == [600, 1200, 2400, 3600, None]


# Crashes and handing back


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whoever_crashed_is_followed_at_once_with_the_same_occurrence(kind: Any) -> None:
    after = occurrence.after_crash(kind(retries=2), "its process is gone", NOON + HOUR)
    assert places(after) == ("scheduled", NOON + HOUR, NOON)
    assert (after.retries, after.crashes) == (2, 1), "a crash uses up no retry"


def test_whatever_kills_every_try_is_given_up() -> None:
    one, count = once(), 0
    while one.state is not JobState.FAILED:
        one, count = dataclasses.replace(one, state=JobState.RUNNING), count + 1
        one = occurrence.after_crash(one, "killed", NOON)
    assert count == (MOST_CRASHES + 1) * (one.max_retries + 1), "so many at once, then so often later"
    assert places(one) == ("failed", None, NOON) and one.reason == "killed"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_job_that_is_handed_back_is_due_at_once(kind: Any) -> None:
    after = occurrence.handed_back(kind(retries=1, crashes=1), NOON + HOUR)
    assert places(after) == ("scheduled", NOON + HOUR, NOON)
    assert (after.retries, after.crashes) == (1, 1)


# What people do


def test_running_a_job_now_is_an_occurrence_of_its_own() -> None:
    planned = every_6_hours("scheduled", occurrence_ms=NOON + HOUR, due_ms=NOON + HOUR)
    forced = occurrence.forced(planned, NOON)
    assert (*places(forced), forced.aside_ms) == ("scheduled", NOON, NOON, NOON + HOUR)


@pytest.mark.parametrize("due_ms", [NOON - HOUR, NOON + HOUR], ids=["overdue", "to be tried again"])
def test_running_a_job_now_that_is_late_is_the_occurrence_that_waits(due_ms: int) -> None:
    late = every_6_hours("scheduled", occurrence_ms=NOON - HOUR, due_ms=due_ms)
    forced = occurrence.forced(late, NOON)
    assert (*places(forced), forced.aside_ms) == ("scheduled", NOON, NOON - HOUR, None)


def test_a_job_that_runs_once_has_one_occurrence_whatever_the_clock_was_set_to() -> None:
    """By a clock that was set back its time is yet to come; its next try is a try of the same all the same."""
    waiting = once("scheduled", retries=1, occurrence_ms=NOON + HOUR, due_ms=NOON + 2 * HOUR)
    forced = occurrence.forced(waiting, NOON)
    assert (*places(forced), forced.aside_ms) == ("scheduled", NOON, NOON + HOUR, None)


def test_a_new_plan_takes_the_place_of_a_time_that_was_put_aside() -> None:
    """Or the job would be counted in a slot that it is not in, and go on from a plan that holds no more."""
    forced = occurrence.forced(every_6_hours("scheduled", occurrence_ms=NOON + HOUR, due_ms=NOON + HOUR), NOON)
    again = occurrence.placed(dataclasses.replace(forced, interval_count=1), EMPTY, NOON)
    assert again.aside_ms is None
    running = dataclasses.replace(again, state=JobState.RUNNING)
    assert occurrence.after_success(running, WELL, NOON).due_ms == NOON + HOUR


@pytest.mark.parametrize("kind", [chained, by_hand, switched_off])
def test_running_a_job_that_waits_is_an_occurrence_of_its_own(kind: Any) -> None:
    """Also when it ran before: what comes next must not be taken for another try of that."""
    waiting = kind("scheduled", due_ms=None)
    assert places(occurrence.forced(waiting, NOON + HOUR)) == ("scheduled", NOON + HOUR, NOON + HOUR)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_retried_job_has_all_its_tries_again(kind: Any) -> None:
    failed = kind("failed", due_ms=None, retries=3, crashes=5, reason="gone")
    again = occurrence.retried(failed, NOON + HOUR)
    assert places(again) == ("pending", NOON + HOUR, NOON)
    assert (again.retries, again.crashes, again.reason) == (0, 0, "")


def test_a_job_that_never_ran_is_retried_now() -> None:
    assert places(occurrence.retried(once("failed", occurrence_ms=None, due_ms=None), NOON)) == ("pending", NOON, NOON)


# What people do to it

DONE_TO_IT = {
    "pause": ("scheduled", ("paused", None, NOON), ""),
    "resume": ("paused", ("scheduled", NOON, NOON), ""),
    "cancel": ("running", ("cancelled", None, NOON), "why"),
    "retry": ("failed", ("pending", NOON + HOUR, NOON), ""),
    "force-run": ("scheduled", ("scheduled", NOON + HOUR, NOON), "why"),
}


def test_the_table_of_what_is_done_to_a_job_has_every_action() -> None:
    assert set(DONE_TO_IT) == set(Action)


@pytest.mark.parametrize("action", DONE_TO_IT)
def test_what_people_do_to_a_job(action: str) -> None:
    before, expected, reason = DONE_TO_IT[action]
    after = occurrence.after_action(Action(action), every_6_hours(before, reason="why"), NOON + HOUR)
    assert places(after) == expected
    assert after.reason == reason


@pytest.mark.parametrize("action", Action)
def test_what_is_not_possible_in_its_state_is_done_to_no_job(action: Action) -> None:
    with pytest.raises(NotNow, match=f"cannot be changed by {action}"):
        occurrence.after_action(action, every_6_hours("completed"), NOON)


# The rest


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (every_6_hours("scheduled"), 48),
        (every_6_hours("scheduled", due_ms=NOON + 16 * MINUTE), 49),
        (every_6_hours("running"), 48),
        (every_6_hours("running", due_ms=NOON + HOUR, aside_ms=NOON + 4 * HOUR), 64),
        (every_6_hours("scheduled", due_ms=NOON, aside_ms=NOON + 4 * HOUR), 64),
        (every_6_hours("cancelled"), None),
        (every_6_hours("completed", due_ms=None), None),
        (once("running"), None),
        (every_6_hours("paused", due_ms=None), None),
        (every_6_hours("pending"), None),
        (switched_off("scheduled", due_ms=None), None),
        (once("scheduled"), None),
        (chained("scheduled"), None),
    ],
)
def test_only_jobs_that_go_by_the_clock_take_a_slot(one: Job, expected: int | None) -> None:
    assert occurrence.slot_of(one) == expected


@pytest.mark.parametrize(("kind", "expected"), [(once, False), (every_6_hours, True), (chained, True), (by_hand, True)])
def test_which_jobs_go_on(kind: Any, expected: bool) -> None:
    assert occurrence.recurs(kind()) is expected


def test_differences_are_named() -> None:
    before = every_6_hours()
    assert occurrence.differences(before, before) == {}
    after = dataclasses.replace(before, retries=1, state=JobState.SCHEDULED)
    assert occurrence.differences(before, after) == {"retries": 1, "state": JobState.SCHEDULED}


endings = st.lists(
    st.one_of(
        st.sampled_from(["failure", "crash", "hand back"]),
        st.builds(Ended, changed=st.sampled_from([True, False, None])),
    ),
    max_size=40,
)


@given(
    endings,
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 5),
    st.lists(st.integers(0, 3 * DAY_MS), min_size=40, max_size=40),
)
def test_whatever_happens_a_job_stays_in_its_rhythm_or_ends(
    story: list[str | Ended], kind: str, allowed: int, naps: list[int]
) -> None:
    """A life of a job: each try is claimed when it is due or later, and ends somehow."""
    one, now = KINDS[kind](max_retries=allowed), NOON
    for how, nap in zip(story, naps, strict=False):
        if one.state is not JobState.SCHEDULED and one.state is not JobState.RUNNING:
            break
        if one.due_ms is None:
            one = occurrence.forced(one, now)
        planned = one.occurrence_ms
        now = max(now, one.due_ms or 0) + nap
        one = dataclasses.replace(one, state=JobState.RUNNING)
        if isinstance(how, Ended):
            one = occurrence.after_success(one, how, now)
            assert one.due_ms is None or one.due_ms > now, "the next occurrence is in the future"
            assert one.due_ms is None or (one.due_ms - (planned or 0)) % (6 * HOUR) == 0, "and in rhythm"
        else:
            step = {"failure": occurrence.after_failure, "crash": occurrence.after_crash}.get(how)
            one = step(one, how, now) if step else occurrence.handed_back(one, now)
            assert one.occurrence_ms == planned, "the next try is one of the same occurrence"
            assert one.due_ms is None or one.due_ms >= now
        assert one.retries <= allowed and one.crashes <= MOST_CRASHES
        assert (one.due_ms is None) or one.state is JobState.SCHEDULED
