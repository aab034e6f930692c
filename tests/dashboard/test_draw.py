"""Charts as values: scales with round numbers, curves that never go back, parts of a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.service.dashboard.charts import draw
from inchworm.service.dashboard.charts.draw import SIDE, Segment

AMOUNTS = st.floats(0, 1e9, allow_nan=False)


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+),([\d.-]+)", path)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 25, 50, 75, 100]),
        (0, 1183, [0, 500, 1000]),
        (0, 60_000, [0, 20_000, 40_000, 60_000]),
        (400, 1000, [400, 600, 800, 1000]),
        (0, 3, [0, 1, 2, 3]),
        (5, 5, []),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert draw.ticks(low, high) == expected


@given(AMOUNTS, AMOUNTS)
def test_ticks_lie_between_their_ends_and_are_few(one, other):
    low, high = sorted((one, other))
    found = draw.ticks(low, high)
    assert len(found) <= 6
    assert all(low - 1e-3 <= value <= high + 1e-3 for value in found)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, ["0"]),
        (3, ["0", "1 s", "2 s", "3 s"]),
        (100, ["0", "30 s", "1 min", "90 s"]),
        (7200, ["0", "30 min", "1 h", "90 min", "2 h"]),
        (1_000_000, ["0", "3 d", "6 d", "9 d"]),
    ],
)
def test_times_are_round_and_said_shortly(seconds, words):
    assert [draw.duration(at) for at in draw.spans(seconds)] == words


@given(st.floats(0.01, 1e9))
def test_times_are_few_and_within(seconds):
    found = draw.spans(seconds)
    assert found[0] == 0
    assert len(found) <= 7
    assert found[-1] <= seconds


def test_a_curve_goes_from_corner_to_corner():
    made = draw.plot([(10, 50), (20, 100)], starts=(0, 10))
    assert made is not None
    assert places(made.line) == [(0, SIDE), (SIDE / 2, SIDE / 2), (SIDE, 0)]
    assert made.area.endswith(f"V{SIDE}H0.0Z")
    assert made.breaks == [50]
    assert made.up[-1] == (0, "100")
    assert made.across[0] == (0, "0")


def test_a_run_that_branched_off_begins_where_it_did():
    made = draw.plot([(10, 500), (20, 600)], first=400)
    assert made is not None
    assert places(made.line)[0] == (0, SIDE)
    assert [tick.text for tick in made.up] == ["450", "500", "550", "600"]


@pytest.mark.parametrize("points", [[], [(1, 1)], [(0, 1), (0, 2)], [(1, 0), (2, 0)]])
def test_what_is_no_curve_is_not_drawn(points):
    assert draw.plot(points) is None


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1))
def test_a_curve_never_goes_back_and_stays_in_its_square(points):
    made = draw.plot(points)
    if made is None:
        return
    found = places(made.line)
    assert all(0 <= x <= SIDE and 0 <= y <= SIDE for x, y in found)
    assert found == sorted(found, key=lambda place: (place[0], -place[1]))
    assert all(0 <= tick.at <= 100 for tick in (*made.up, *made.across))


def test_stretches_become_parts_of_a_line():
    assert draw.segments([(100, 300), (300, 500)], 100, 500) == [Segment(0, 50), Segment(50, 50)]
    assert draw.segments([(0, 0)], 0, 0) == [Segment(0, 0)]


def test_marks_that_would_be_one_are_thinned_out_and_the_last_stays():
    marks = draw.segments([(seq, seq) for seq in range(1001)], 0, 1000)
    kept = draw.thinned(marks, 40)
    assert len(kept) <= 41
    assert kept[-1] == 1000
    assert draw.thinned(marks[:1], 40) == [0]
    assert draw.thinned([], 40) == []
