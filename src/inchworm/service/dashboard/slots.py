"""The day: how jobs are spread over its quarters of an hour, and moving them apart."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import Request

from inchworm.app.root import App
from inchworm.rules.schedule import timetable
from inchworm.rules.words.times import iso
from inchworm.service.api.web import Home
from inchworm.service.dashboard.frame import Fields, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view

routes = pages()
_LEVELS = 4
_MOST_MOVES = 50
_QUARTERS = 4


class Cell(NamedTuple):
    """A quarter of an hour, and how full it is, 0 to 4."""

    slot: int
    starts_at: str
    jobs: int
    level: int
    is_now: bool


@routes.get("/jobs/day")
def day(request: Request, app: Home) -> Any:
    preview = app.dispatch.rebalance(is_preview=True)
    moves = [(move, job) for move in preview.moves[:_MOST_MOVES] if (job := app.jobs.line_if_there(move.job_id))]
    return page(request, "slots.html", view="day:", parts=parts(app, ""), preview=preview, moves=moves)


@view("day")
def parts(app: App, _: str) -> Parts:
    found, now_ms = app.health.distribution(), app.clock.now_ms()
    now = timetable.slot_of(now_ms)
    step = max(1, -(-found.fullest // _LEVELS))
    cells = [Cell(one.slot, one.starts_at, one.jobs, -(-one.jobs // step), one.slot == now) for one in found.slots]
    hours = [cells[first : first + _QUARTERS] for first in range(0, len(cells), _QUARTERS)]
    legend = [_between(level, step) for level in range(_LEVELS + 1)]
    return {
        "day-score": part("_slots_score.html", day=found, now=iso(now_ms)[11:16], fair=_fair(found.total_jobs)),
        "day-map": part("_slots_map.html", hours=hours, legend=legend),
    }


def _fair(total: int) -> int:
    """How many jobs a slot holds when they are spread as evenly as can be."""
    return -(-total // timetable.SLOTS)


def _between(level: int, step: int) -> str:
    first, last = (level - 1) * step + 1, level * step
    return "none" if level == 0 else str(last) if first == last else f"{first} to {last}"


@routes.post("/jobs/day/rebalance")
def rebalance(app: Home, _: Fields) -> Any:
    done = app.dispatch.rebalance(is_preview=False)
    if not done.moved:
        return back("/jobs/day", "There was nothing to move.")
    count = "1 job was" if done.moved == 1 else f"{done.moved:,} jobs were"
    return back(
        "/jobs/day",
        f"{count} moved. Before, jobs were spread {_percent(done.score_before)} evenly,"
        f" now {_percent(done.score_after)}.",
    )


def _percent(score: float) -> str:
    return f"{100 * score:.0f} %"
