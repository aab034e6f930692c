"""When a repeated crawl is due again, and when it has been repeated enough."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.model import Counters, EndedBy, SessionInfo, SessionState
from inchworm.rules.schedule.repetition import (
    OWN_ENDINGS,
    Clocks,
    Due,
    Occasion,
    RepeatState,
    after,
    began_ms,
    from_store,
    has_changes,
    is_enough,
    is_told,
    is_unchanged,
)

HOUR = 3600.0
DAY = 24 * HOUR
NOW_MS = 1_800_000_000_000
CLOCKS = Clocks(5_000_000.0, NOW_MS)


def ago(seconds: float) -> int:
    """That long before now, on the wall clock."""
    return NOW_MS - round(seconds * 1000)


def complete(seconds_ago: float) -> RepeatState:
    """A crawl whose last run is complete and began that long ago."""
    return RepeatState(ago(seconds_ago), is_baseline=False, ended_by=EndedBy.FINISHED, iterations=1)


def unfinished(seconds_ago: float, ended_by: EndedBy | None) -> RepeatState:
    return RepeatState(ago(seconds_ago), is_baseline=False, is_open=True, ended_by=ended_by)


# At the start of a process

AT_THE_START = {
    "no run yet": (RepeatState(), 0.0, 0.0),
    "the baseline is complete": (RepeatState(ago(HOUR), ended_by=EndedBy.FINISHED), 0.0, 0.0),
    "the baseline stopped at its budget": (RepeatState(ago(HOUR), is_open=True, ended_by=EndedBy.BUDGET), 0.0, 0.0),
    "the baseline was paused": (RepeatState(ago(HOUR), is_open=True, ended_by=EndedBy.PAUSED), 0.0, -HOUR),
    "a run began an hour ago": (complete(HOUR), DAY - HOUR, DAY - HOUR),
    "a run began just now": (complete(0), DAY, DAY),
    "a run began an interval ago": (complete(DAY), 0.0, 0.0),
    "a run began long ago": (complete(30 * DAY), 0.0, 0.0),
    "a run was cancelled": (complete(HOUR)._replace(ended_by=EndedBy.CANCELLED), DAY - HOUR, DAY - HOUR),
    "a run was paused": (unfinished(HOUR, EndedBy.PAUSED), 0.0, -HOUR),
    "a run crashed": (unfinished(HOUR, EndedBy.CRASHED), 0.0, -HOUR),
    "a run was killed": (unfinished(HOUR, None), 0.0, -HOUR),
    "a run was killed long ago": (unfinished(30 * DAY, None), 0.0, -DAY),
    "a run was opened again": (unfinished(HOUR, EndedBy.FINISHED), 0.0, -HOUR),
    "a run stopped at its budget": (unfinished(HOUR, EndedBy.BUDGET), DAY - HOUR, DAY - HOUR),
    "a run has to wait": (unfinished(HOUR, EndedBy.WAITING), DAY - HOUR, DAY - HOUR),
    "a run ended by an error": (unfinished(HOUR, EndedBy.ERROR), DAY - HOUR, DAY - HOUR),
    "the clock was set back": (complete(-100 * DAY), DAY, DAY),
    "the clock was set back while a run was open": (unfinished(-100 * DAY, None), 0.0, 0.0),
}


@pytest.mark.parametrize(("standing", "at", "counts_from"), AT_THE_START.values(), ids=AT_THE_START)
def test_due_at_the_start(standing: RepeatState, at: float, counts_from: float) -> None:
    assert from_store(standing, CLOCKS, DAY) == Due(CLOCKS.now + at, CLOCKS.now + counts_from)


STANDINGS = st.builds(
    RepeatState,
    st.none() | st.integers(-(2**62), 2**62),
    st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from(EndedBy),
    st.integers(0, 1000),
)
INTERVALS = st.floats(0.001, 10 * 365 * DAY)


@effort(database=None)
@given(STANDINGS, st.floats(0, 1e9), st.integers(0, 2**62), INTERVALS)
def test_never_a_freeze_and_never_a_burst_whatever_the_clock_says(
    standing: RepeatState, now: float, now_ms: int, every: float
) -> None:
    due = from_store(standing, Clocks(now, now_ms), every)
    assert now <= due.at <= now + every
    assert due.at - every <= due.counts_from <= due.at
    following = after(due.counts_from, every, due.at)
    assert due.at <= following.at <= due.at + every


# Within a process


@pytest.mark.parametrize(
    ("counted_from", "now", "at"),
    [(100.0, 101.0, 110.0), (100.0, 100.0, 110.0), (100.0, 110.0, 110.0), (100.0, 135.0, 135.0)],
    ids=["a short run", "no time at all", "exactly the interval", "longer than the interval"],
)
def test_due_again(counted_from: float, now: float, at: float) -> None:
    assert after(counted_from, 10.0, now) == Due(at, at)


def starts(durations: list[float], lateness: list[float], every: float) -> list[tuple[float, float, float]]:
    """Planned start, real start and end of runs that take so long, by a process that wakes up so late."""
    made, now, due = [], 0.0, Due(0.0, 0.0)
    for duration, late in zip(durations, lateness, strict=True):
        begun = max(now, due.at) + (late if due.at > now else 0.0)
        now = begun + duration
        made.append((due.at, begun, now))
        due = after(due.counts_from, every, now)
    return made


SHORT = st.lists(st.tuples(st.floats(0, 4), st.floats(0, 0.5)), min_size=2, max_size=50)
ANY_LENGTH = st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 0.5)), min_size=2, max_size=50)


@effort(database=None)
@given(SHORT)
def test_no_drift(runs: list[tuple[float, float]]) -> None:
    """However late the process wakes up, the tenth run is due after nine intervals."""
    made = starts([duration for duration, _ in runs], [late for _, late in runs], 5.0)
    assert [planned for planned, _, _ in made] == pytest.approx([5.0 * number for number in range(len(runs))])


@effort(database=None)
@given(ANY_LENGTH)
def test_nothing_piles_up(runs: list[tuple[float, float]]) -> None:
    """A run that takes too long is followed at once by one run, and the next interval counts from that one."""
    made = starts([duration for duration, _ in runs], [late for _, late in runs], 5.0)
    for (planned, _, ended), (following, begun, _) in pairwise(made):
        assert begun >= ended
        assert following == max(planned + 5.0, ended)


# When a run, or a try at it, was begun


def session(started: int, ended_by: EndedBy | None) -> SessionInfo:
    return SessionInfo(1, 1, 1, SessionState.COMPLETED, ended_by, started, None, 0, 0)


BEGINNINGS = {
    "no session": ([], 5),
    "one session": ([(10, EndedBy.FINISHED)], 10),
    "killed": ([(10, None)], 10),
    "paused and gone on": ([(10, EndedBy.PAUSED), (20, EndedBy.FINISHED)], 10),
    "crashed twice": ([(10, EndedBy.CRASHED), (20, EndedBy.CRASHED), (30, None)], 10),
    "a budget a day": ([(10, EndedBy.BUDGET), (20, EndedBy.BUDGET), (30, EndedBy.FINISHED)], 30),
    "a budget, then paused": ([(10, EndedBy.BUDGET), (20, EndedBy.PAUSED), (30, EndedBy.FINISHED)], 20),
    "an error, then killed": ([(10, EndedBy.ERROR), (20, None), (30, EndedBy.WAITING)], 20),
    "opened again": ([(10, EndedBy.FINISHED), (20, EndedBy.FINISHED)], 20),
}


@pytest.mark.parametrize(("sessions", "began"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_when_it_was_begun(sessions: list[tuple[int, EndedBy | None]], began: int) -> None:
    assert began_ms([session(*one) for one in sessions], 5) == began


def test_every_ending_is_thought_of() -> None:
    outside = {EndedBy.PAUSED, EndedBy.CANCELLED, EndedBy.CRASHED}
    whole = {EndedBy.FINISHED, EndedBy.PAGE_LIMIT}
    assert set(EndedBy) - outside - whole == OWN_ENDINGS


# When it is enough


@pytest.mark.parametrize(
    ("counters", "changed", "unchanged"),
    [
        (Counters(unchanged=10), False, True),
        (Counters(unchanged=10, unknown=10), False, True),
        (Counters(unchanged=10, unknown=11), False, False),
        (Counters(unknown=10), False, False),
        (Counters(), False, False),
        (Counters(unchanged=10, new=1), True, False),
        (Counters(unchanged=10, modified=1), True, False),
        (Counters(unchanged=10, deleted=1), True, False),
    ],
    ids=["all", "half in sight", "most out of sight", "down", "nothing at all", "new", "modified", "deleted"],
)
def test_what_counts_as_no_changes(counters: Counters, changed: bool, unchanged: bool) -> None:
    assert (has_changes(counters), is_unchanged(counters)) == (changed, unchanged)


@pytest.mark.parametrize(
    ("iterations", "most", "enough"),
    [(0, None, False), (10**9, None, False), (0, 1, False), (1, 1, True), (4, 5, False), (5, 5, True), (6, 5, True)],
)
def test_enough(iterations: int, most: int | None, enough: bool) -> None:
    assert is_enough(iterations, most) is enough


@pytest.mark.parametrize("changed", [True, False], ids=["changed", "unchanged"])
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "not complete"])
@pytest.mark.parametrize("occasion", Occasion)
def test_what_people_are_told_of(occasion: Occasion, complete: bool, changed: bool) -> None:
    expected = {
        (Occasion.CHANGES, True, True): True,
        (Occasion.COMPLETION, True, True): True,
        (Occasion.COMPLETION, True, False): True,
    }
    assert is_told(occasion, complete, changed) is expected.get((occasion, complete, changed), False)


def test_times_stay_numbers() -> None:
    assert all(map(math.isfinite, from_store(RepeatState(-(2**62)), Clocks(0.0, 2**62), 1.0)))
