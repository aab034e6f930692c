"""The size of a crawl over its runs, as a chart: where its line goes, and what stands at its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inchworm.app.read.runs import RunSize
from inchworm.service.dashboard.charts import draw

_MOST_POINTS = 200
_MOST_DOTS = 40
_STEPS = (1, 2, 5, 10)


class Dot(NamedTuple):
    """A run in the chart, at so many percent of its width and from above."""

    x: float
    y: float
    run: int
    pages: int
    day: str


class Chart(NamedTuple):
    dots: Sequence[Dot]
    line: str
    area: str
    top: int
    has_dots: bool
    """Not so many that they would be one smear."""

    labels: Sequence[Dot]
    """The runs that are named below: the first and the last, and the one in the middle if there is one."""


def growth(sizes: Sequence[RunSize]) -> Chart | None:
    """Pages by run; None before the first one. A run that is not complete would look like a loss of pages, so it is
    left out once there are others."""
    if not sizes:
        return None
    shown = _thinned([one for one in sizes if one.is_complete] or sizes)
    top = _round_up(max(one.pages for one in shown))
    width = max(1, len(shown) - 1)
    points = [(at if len(shown) > 1 else 0.5, one.pages) for at, one in enumerate(shown)]
    dots = [
        Dot(draw.percent(x, width), 100 - draw.percent(pages, top), one.run, pages, one.started_at[:10])
        for (x, pages), one in zip(points, shown, strict=True)
    ]
    line, area = draw.path(points, width, (0, top)), draw.area(points, width, (0, top))
    return Chart(dots, line, area, top, len(dots) <= _MOST_DOTS, _labels(dots))


def _thinned(sizes: Sequence[RunSize]) -> list[RunSize]:
    """Of very many runs every so many, counted from the last."""
    step = -(-len(sizes) // _MOST_POINTS)
    return list(reversed(sizes[::-1][::step]))


def _round_up(value: int) -> int:
    """The next number that people like: 1, 2 or 5 and zeros, and nothing below 2, which has a half."""
    size: int = 10 ** (len(str(max(value, 1))) - 1)
    return max(2, next(step * size for step in _STEPS if step * size >= value))


def _labels(dots: Sequence[Dot]) -> list[Dot]:
    ends = [dots[0], dots[-1]] if len(dots) > 1 else [dots[0]]
    has_middle = len(dots) > 2 and (len(dots) % 2 == 1 or len(dots) > _MOST_DOTS)
    return [ends[0], dots[len(dots) // 2], ends[1]] if has_middle else ends
