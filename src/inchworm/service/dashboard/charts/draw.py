"""Charts as values: where lines, marks and words of a picture stand. Templates only write them down.

Places across are in percent of the width, so that a picture fits every screen while its words keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

SIDE = 1000
"""Paths are drawn in a square of this side, which is stretched to its place."""

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_DAY = 86_400
_UNITS = ((_DAY, "d"), (3600, "h"), (60, "min"), (1, "s"))

Point = tuple[float, float]


class Tick(NamedTuple):
    """A word beside a scale, at so many percent of it."""

    at: float
    text: str


class Plot(NamedTuple):
    """A curve with its scales. `breaks`: where something began anew."""

    line: str
    area: str
    across: list[Tick]
    up: list[Tick]
    breaks: list[float]


class Segment(NamedTuple):
    """A stretch of a line."""

    at: float
    width: float


def plot(points: Sequence[Point], starts: Sequence[float] = (), first: float = 0.0) -> Plot | None:
    """Amounts over seconds; None when there is too little to draw. A curve never goes back, whatever clocks say."""
    forward = rising([(0.0, first), *points])
    seconds, top = forward[-1]
    if len(forward) < 3 or seconds <= 0 or top <= first:
        return None
    up = [value for value in ticks(first, top) if value > first]
    across = spans(seconds)
    return Plot(
        path(forward, seconds, (first, top)),
        area(forward, seconds, (first, top)),
        [Tick(percent(at, seconds), duration(at)) for at in across],
        [Tick(100 - percent(value - first, top - first), f"{value:,.0f}") for value in up],
        [percent(at, seconds) for at in starts if 0 < at < seconds],
    )


def rising(points: Sequence[Point]) -> list[Point]:
    """The points, each at least as far right and up as the one before."""
    found: list[Point] = []
    for x, y in points:
        before = found[-1] if found else (x, y)
        found.append((max(x, before[0]), max(y, before[1])))
    return found


def path(points: Sequence[Point], width: float, heights: tuple[float, float]) -> str:
    """A line through the points."""
    bottom, top = heights
    places = (f"{SIDE * x / width:.1f},{SIDE - SIDE * (y - bottom) / (top - bottom):.1f}" for x, y in points)
    return "M" + "L".join(places)


def area(points: Sequence[Point], width: float, heights: tuple[float, float]) -> str:
    """What lies below a line."""
    return f"{path(points, width, heights)}V{SIDE}H{SIDE * points[0][0] / width:.1f}Z"


def percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole > 0 else 0.0


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers between two numbers, at most so many."""
    rough = (high - low) / most
    if rough <= 0:
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(1.0, next(nice * power for nice in _NICE if nice * power >= rough * 0.999))
    start = math.ceil(low / step)
    return [number * step for number in range(start, math.floor(high / step) + 1)]


def spans(seconds: float, most: int = 6) -> list[float]:
    """Round times from nothing up to this one, at most so many."""
    fitting = (step for step in _SPANS if seconds / step < most)
    step = next(fitting, _DAY * math.ceil(seconds / _DAY / (most - 1)))
    return [float(number * step) for number in range(math.floor(seconds / step) + 1)]


def duration(seconds: float) -> str:
    """0, 90 s, 5 min, 2 h, 3 d."""
    if not seconds:
        return "0"
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size and seconds % size == 0)
    return f"{seconds / size:,.0f} {unit}"


def segments(stretches: Sequence[tuple[float, float]], low: float, high: float) -> list[Segment]:
    """Stretches of a scale as parts of a line."""
    whole = high - low
    return [Segment(percent(start - low, whole), percent(end - start, whole)) for start, end in stretches]


def thinned(places: Sequence[Segment], most: int) -> list[int]:
    """Which of these, by their number, are far enough from each other to be told apart; the last one always."""
    gap = 100 / most
    kept: list[int] = []
    for number in range(len(places) - 1, -1, -1):
        if not kept or places[kept[-1]].at - places[number].at >= gap:
            kept.append(number)
    return kept[::-1]
