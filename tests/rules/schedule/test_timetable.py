"""When jobs run: waits after failures, intervals that adapt, rhythm, and the slots of the day."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.schedule.timetable import (
    DAY_MS,
    SLOT_MS,
    SLOTS,
    UNITS,
    Shift,
    WaitingJob,
    adapted_ms,
    backoff_ms,
    first_ms,
    forward_ms,
    interval_ms,
    may_move,
    next_ms,
    rebalance,
    score,
    slot_of,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
MIDNIGHT = 20_000 * DAY_MS
NOON = MIDNIGHT + 12 * HOUR

times = st.integers(0, 4_000_000_000_000)
intervals = st.builds(interval_ms, st.integers(1, 2000), st.sampled_from(sorted(UNITS)))
loads_of_a_day = st.lists(st.integers(0, 6), min_size=SLOTS, max_size=SLOTS)


def test_the_day_has_96_quarters_of_an_hour() -> None:
    assert (SLOTS, SLOT_MS, SLOTS * SLOT_MS) == (96, 15 * MINUTE, 24 * HOUR) and DAY_MS == 24 * HOUR


@pytest.mark.parametrize(
    ("count", "unit", "expected"),
    [(1, "minutes", MINUTE), (360, "minutes", 6 * HOUR), (6, "hours", 6 * HOUR), (2, "days", 48 * HOUR)],
)
def test_an_interval_counts_in_its_unit(count: int, unit: str, expected: int) -> None:
    assert interval_ms(count, unit) == expected


# Waiting after a failure


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 60), (2, 120), (3, 240), (4, 480), (5, 960), (6, 1920), (7, 3600), (8, 3600), (1000, 3600), (0, 60)],
)
def test_the_wait_after_a_failure_doubles_up_to_an_hour(attempt: int, seconds: int) -> None:
    assert backoff_ms(60, attempt) == seconds * 1000


@pytest.mark.parametrize(
    ("base", "attempt", "seconds"), [(0, 1, 0), (0, 9, 0), (1, 4, 8), (3599, 2, 3600), (86400, 1, 3600)]
)
def test_the_wait_begins_with_its_base(base: int, attempt: int, seconds: int) -> None:
    assert backoff_ms(base, attempt) == seconds * 1000


@given(st.integers(0, 86_400), st.integers(1, 200))
def test_the_wait_never_shrinks_and_never_exceeds_an_hour(base: int, attempt: int) -> None:
    assert backoff_ms(base, attempt) <= backoff_ms(base, attempt + 1) <= HOUR


# Intervals that adapt


@pytest.mark.parametrize(
    ("baseline", "unchanged", "expected"),
    [
        (6 * HOUR, 0, 6 * HOUR),
        (6 * HOUR, 1, 12 * HOUR),
        (6 * HOUR, 2, 24 * HOUR),
        (6 * HOUR, 3, 24 * HOUR),
        (5 * HOUR, 3, 24 * HOUR),
        (MINUTE, 10, 1024 * MINUTE),
        (MINUTE, 10_000, 24 * HOUR),
        (24 * HOUR, 5, 24 * HOUR),
        (48 * HOUR, 0, 48 * HOUR),
        (48 * HOUR, 7, 48 * HOUR),
    ],
)
def test_an_interval_doubles_with_every_unchanged_run_up_to_a_day(baseline: int, unchanged: int, expected: int) -> None:
    assert adapted_ms(baseline, unchanged) == expected


@given(intervals, st.integers(0, 100))
def test_an_adapted_interval_is_never_shorter_than_its_baseline(baseline: int, unchanged: int) -> None:
    now, later = adapted_ms(baseline, unchanged), adapted_ms(baseline, unchanged + 1)
    assert baseline <= now <= later <= max(baseline, DAY_MS)
    assert adapted_ms(baseline, 0) == baseline


# Rhythm


@pytest.mark.parametrize(
    ("planned", "now", "expected"),
    [
        (NOON, NOON, NOON + 6 * HOUR),
        (NOON, NOON + 1, NOON + 6 * HOUR),
        (NOON, NOON + 6 * HOUR - 1, NOON + 6 * HOUR),
        (NOON, NOON + 6 * HOUR, NOON + 12 * HOUR),
        (NOON, NOON + 20 * HOUR, NOON + 24 * HOUR),
        (NOON, NOON + 366 * DAY_MS, NOON + 366 * DAY_MS + 6 * HOUR),
        (NOON, NOON - HOUR, NOON + 6 * HOUR),
    ],
    ids=["on time", "a little late", "almost missed", "took an interval", "after a pause", "after a year", "early"],
)
def test_the_next_time_keeps_the_rhythm(planned: int, now: int, expected: int) -> None:
    assert next_ms(planned, 6 * HOUR, now) == expected


@given(times, intervals, times)
def test_the_next_time_is_later_than_now_and_in_rhythm(planned: int, every: int, now: int) -> None:
    later = next_ms(planned, every, now)
    assert later > now and later > planned
    assert (later - planned) % every == 0
    assert later - every <= max(now, planned), "the first that is possible"


@given(times, st.integers(1, 30), times)
def test_whole_days_keep_their_slot(planned: int, days: int, now: int) -> None:
    assert slot_of(next_ms(planned, interval_ms(days, "days"), now)) == slot_of(planned)


@given(times, intervals, times)
def test_a_time_that_is_brought_forward_stays_in_rhythm_and_in_the_future(planned: int, every: int, now: int) -> None:
    sooner = forward_ms(planned, every, now)
    assert (planned - sooner) % every == 0 and sooner <= planned
    assert sooner == planned if planned <= now else now < sooner <= now + every


# Slots


@pytest.mark.parametrize(
    ("at", "slot"),
    [
        (MIDNIGHT, 0),
        (MIDNIGHT + 15 * MINUTE - 1, 0),
        (MIDNIGHT + 15 * MINUTE, 1),
        (NOON, 48),
        (MIDNIGHT + DAY_MS - 1, 95),
        (MIDNIGHT + DAY_MS, 0),
    ],
)
def test_slots_are_quarters_of_the_day(at: int, slot: int) -> None:
    assert slot_of(at) == slot


def loads(**by_slot: int) -> list[int]:
    """How many jobs are in each slot: `loads(s3=2)`."""
    return [by_slot.get(f"s{slot}", 0) for slot in range(SLOTS)]


FIRST = {
    "an empty day": (loads(), DAY_MS, NOON, NOON),
    "an empty day, in the middle of a slot": (loads(), DAY_MS, NOON + 7 * MINUTE, NOON + 7 * MINUTE),
    "somebody is here": (loads(s48=1), DAY_MS, NOON + 7 * MINUTE, NOON + 15 * MINUTE),
    "the next two are taken": (loads(s48=2, s49=1, s50=1), DAY_MS, NOON, NOON + 45 * MINUTE),
    "all within reach are taken alike": (loads(s48=1, s49=1), HOUR // 2, NOON, NOON),
    "one within reach is less taken": (loads(s48=2, s49=1), HOUR // 2, NOON, NOON + 15 * MINUTE),
    "an interval shorter than a slot": (loads(s48=9), 5 * MINUTE, NOON + 7 * MINUTE, NOON + 7 * MINUTE),
    "an interval of one slot": (loads(s48=9), SLOT_MS, NOON + 7 * MINUTE, NOON + 7 * MINUTE),
    "an interval of a month looks a day ahead": (
        [1] * 47 + [0] + [1] * 48,
        30 * DAY_MS,
        NOON,
        MIDNIGHT + DAY_MS + 47 * SLOT_MS,
    ),
    "somebody who was here comes again when this one would": (loads(s72=1), 6 * HOUR, NOON, NOON + 15 * MINUTE),
    "and so does another one, a day after it began": (loads(s72=1, s1=2), 6 * HOUR, NOON, NOON + 30 * MINUTE),
    "all come again, two of them in one slot": (
        loads(s48=1, s49=1, s72=1),
        HOUR // 2,
        NOON,
        NOON + 15 * MINUTE,
    ),
    "what stands in the slot itself counts more than what comes later": (
        loads(s48=1, s51=4, s53=4),
        HOUR // 2,
        NOON,
        NOON + 15 * MINUTE,
    ),
    "around midnight": ([1] * 90 + [2] * 6, 3 * HOUR, MIDNIGHT + DAY_MS - 5 * MINUTE, MIDNIGHT + DAY_MS),
}


@pytest.mark.parametrize(("taken", "every", "now", "expected"), FIRST.values(), ids=FIRST)
def test_a_new_job_starts_in_the_least_loaded_slot(taken: list[int], every: int, now: int, expected: int) -> None:
    assert first_ms(taken, every, now) == expected


@given(loads_of_a_day, intervals, times)
def test_the_first_time_is_in_the_least_loaded_slot_that_is_reachable(taken: list[int], every: int, now: int) -> None:
    at = first_ms(taken, every, now)
    assert now <= at <= now + every
    # Slots are reachable when they begin within the interval, counted from the beginning of this one.
    reach = max(1, min(every // SLOT_MS, SLOTS))
    ahead = [(now // SLOT_MS + number) % SLOTS for number in range(reach)]
    assert slot_of(at) in ahead
    assert taken[slot_of(at)] == min(taken[slot] for slot in ahead)
    equals = [slot for slot in ahead if taken[slot] == taken[slot_of(at)]]
    later = {slot: sum(taken[(slot + step) % SLOTS] for step in range(reach, SLOTS, reach)) for slot in equals}
    assert later[slot_of(at)] == min(later.values()), "of equals the one whose later times are least loaded"
    earlier = equals[: equals.index(slot_of(at))]
    assert all(later[slot] > later[slot_of(at)] for slot in earlier), "and of those the earliest"
    assert at == now or at % SLOT_MS == 0


@given(st.lists(intervals.filter(lambda every: every >= DAY_MS), min_size=1, max_size=300), times)
@effort(max_examples=40)
def test_daily_jobs_that_are_added_one_by_one_are_spread_perfectly(wanted: list[int], now: int) -> None:
    taken = [0] * SLOTS
    for every in wanted:
        taken[slot_of(first_ms(taken, every, now))] += 1
    assert score(taken) == 1.0
    assert max(taken) - min(taken) <= 1


# The score


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([0] * SLOTS, 1.0),
        ([1] + [0] * 95, 1.0),
        ([2] + [0] * 95, 0.0),
        ([1000] + [0] * 95, 0.0),
        ([1] * SLOTS, 1.0),
        ([7] * SLOTS, 1.0),
        ([1] * 95 + [2], 1.0),
        ([2] * 48 + [0] * 48, 1 - 48 / 95),
        ([3, 1] + [0] * 94, 1 - 2 / 3),
    ],
)
def test_the_score(taken: list[int], expected: float) -> None:
    assert score(taken) == pytest.approx(expected)


@given(loads_of_a_day)
def test_the_score_is_between_nothing_and_one(taken: list[int]) -> None:
    assert 0.0 <= score(taken) <= 1.0
    fair = math.ceil(sum(taken) / SLOTS)
    assert (score(taken) == 1.0) == (max(taken) <= fair)


@given(st.integers(2, 100_000), st.integers(0, SLOTS - 1))
def test_all_in_one_slot_is_the_worst(jobs: int, slot: int) -> None:
    assert score(loads(**{f"s{slot}": jobs})) == 0.0


@given(loads_of_a_day, st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1))
def test_moving_a_job_to_a_slot_with_fewer_never_lowers_the_score(taken: list[int], fuller: int, emptier: int) -> None:
    if taken[fuller] > taken[emptier]:
        moved = list(taken)
        moved[fuller] -= 1
        moved[emptier] += 1
        assert score(moved) >= score(taken)


# Moving jobs


@pytest.mark.parametrize(
    ("due_in", "moved_ago", "expected"),
    [
        (30 * MINUTE, None, True),
        (30 * MINUTE - 1, None, False),
        (0, None, False),
        (-HOUR, None, False),
        (5 * HOUR, HOUR, True),
        (5 * HOUR, HOUR - 1, False),
        (5 * HOUR, 0, False),
        (29 * MINUTE, 5 * HOUR, False),
    ],
)
def test_which_jobs_may_be_moved(due_in: int, moved_ago: int | None, expected: bool) -> None:
    moved_ms = None if moved_ago is None else NOON - moved_ago
    assert may_move(WaitingJob("j", NOON + due_in, DAY_MS, moved_ms), NOON) is expected


def test_two_jobs_in_one_slot_are_set_apart() -> None:
    at = NOON + 3 * HOUR
    jobs = [WaitingJob("a", at, DAY_MS, None), WaitingJob("b", at + MINUTE, DAY_MS, None)]
    assert rebalance(counted(jobs), jobs, NOON) == [Shift("a", at, NOON + 30 * MINUTE)]


def test_what_is_spread_is_left_alone() -> None:
    jobs = [WaitingJob(str(slot), NOON + HOUR + slot * SLOT_MS, DAY_MS, None) for slot in range(SLOTS)]
    assert rebalance(counted(jobs), jobs, NOON) == []


def test_a_job_that_cannot_leave_its_slot_within_its_interval_stays() -> None:
    """Hourly jobs reach four slots, and all four are full."""
    jobs = [WaitingJob(str(number), NOON + 45 * MINUTE + number * 1000, HOUR, None) for number in range(40)]
    shifts = rebalance(counted(jobs), jobs, NOON)
    found = [slot_of(one.to_ms) for one in shifts]
    assert found in ([50], [50, 52]), "the slots from half past on, within the hour, each once"


waiting_jobs = st.lists(
    st.tuples(
        st.integers(-2 * HOUR, 26 * HOUR),
        st.one_of(st.sampled_from([5 * MINUTE, SLOT_MS, HOUR, 6 * HOUR, DAY_MS, 7 * DAY_MS]), intervals),
        st.one_of(st.none(), st.integers(0, 3 * HOUR)),
    ),
    max_size=150,
)


def made(wanted: list[tuple[int, int, int | None]], now: int) -> list[WaitingJob]:
    return [
        WaitingJob(str(number), now + due_in, every, None if ago is None else now - ago)
        for number, (due_in, every, ago) in enumerate(wanted)
    ]


def counted(jobs: list[WaitingJob]) -> list[int]:
    taken = [0] * SLOTS
    for job in jobs:
        taken[slot_of(job.due_ms)] += 1
    return taken


def applied(jobs: list[WaitingJob], shifts: list[Shift], now: int, marked: bool = True) -> list[WaitingJob]:
    to = {shift.job_id: shift.to_ms for shift in shifts}
    return [
        job._replace(due_ms=to[job.job_id], moved_ms=now if marked else job.moved_ms) if job.job_id in to else job
        for job in jobs
    ]


nows = st.integers(NOON, NOON + 2 * DAY_MS)


@given(waiting_jobs, nows)
def test_rebalancing_moves_only_what_may_be_moved_and_not_out_of_its_interval(
    wanted: list[tuple[int, int, int | None]], now: int
) -> None:
    jobs = made(wanted, now)
    by_id = {job.job_id: job for job in jobs}
    shifts = rebalance(counted(jobs), jobs, now)
    assert len({one.job_id for one in shifts}) == len(shifts), "nothing is moved twice"
    for one in shifts:
        job = by_id[one.job_id]
        assert one.from_ms == job.due_ms
        assert job.due_ms - now >= 30 * MINUTE
        assert job.moved_ms is None or now - job.moved_ms >= HOUR
        assert now + 30 * MINUTE <= one.to_ms <= now + job.every_ms
        assert slot_of(one.to_ms) != slot_of(one.from_ms)


@given(waiting_jobs, nows)
def test_rebalancing_never_lowers_the_score_nor_overfills_a_slot(
    wanted: list[tuple[int, int, int | None]], now: int
) -> None:
    jobs = made(wanted, now)
    before = counted(jobs)
    shifts = rebalance(before, jobs, now)
    after = counted(applied(jobs, shifts, now))
    assert sum(after) == sum(before)
    assert score(after) >= score(before)
    assert not shifts or score(after) > score(before), "whatever is moved is moved for the better"
    fair = math.ceil(len(jobs) / SLOTS)
    assert all(after[slot_of(one.to_ms)] <= fair for one in shifts)


@given(waiting_jobs, nows, st.booleans())
def test_rebalancing_again_moves_nothing(wanted: list[tuple[int, int, int | None]], now: int, marked: bool) -> None:
    """Not even when nobody remembers that they were moved."""
    jobs = made(wanted, now)
    jobs = applied(jobs, rebalance(counted(jobs), jobs, now), now, marked)
    assert rebalance(counted(jobs), jobs, now) == []


@pytest.mark.parametrize("number", [100, 400, 5000])
@pytest.mark.parametrize("now", [NOON, NOON + 7 * MINUTE])
def test_daily_jobs_crowded_into_one_slot_are_spread_over_all_that_they_reach(number: int, now: int) -> None:
    """A day has 94 slots that are neither within the next half hour nor after the next run."""
    at = now + 5 * HOUR
    jobs = [WaitingJob(str(one), at, DAY_MS, None) for one in range(number)]
    after = counted(applied(jobs, rebalance(counted(jobs), jobs, now), now))
    fair = math.ceil(number / SLOTS)
    assert after[slot_of(at)] <= max(fair, number - 93 * fair)


@given(st.integers(2, 90), nows)
@effort(max_examples=40)
def test_a_few_daily_jobs_crowded_into_one_slot_are_all_set_apart(number: int, now: int) -> None:
    jobs = [WaitingJob(str(one), now + 5 * HOUR, DAY_MS, None) for one in range(number)]
    after = counted(applied(jobs, rebalance(counted(jobs), jobs, now), now))
    assert max(after) == 1 and score(after) == 1.0
