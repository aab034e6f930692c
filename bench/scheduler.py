"""Scale of schedules: what the scheduler's steps cost in a home with a hundred thousand jobs.

Every job is daily and has a crawl of its own. A thousand are made one by one, as users make them; the rest are put in
at once. Each has run five times before. Prints milliseconds, the median and the worst of several, beside what we want
of them.

    python bench/scheduler.py [--jobs 100000] [--history 5] [--folder DIR]
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inchworm.app.root import App
from inchworm.job import Job, JobState, Task
from inchworm.rules.schedule import occurrence, timetable
from inchworm.store.home import job_rows
from inchworm.store.home.jobs import EVERY
from inchworm.testing import ManualClock

NOW_MS = 1_800_000_000_000 // timetable.DAY_MS * timetable.DAY_MS
ONE_BY_ONE = 1000
DUE = 1000
TIMES = 20
ROOM = 4
"""How many executions a service runs at once."""

GOALS = {
    "poll, nothing due": 50,
    f"poll, {DUE:,} due": 50,
    "placing a job": 5,
    "distribution": 1000,
    "rebalance preview, spread": 1000,
    "rebalance preview, crowded": 1000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--history", type=int, default=5, help="how many executions each job has had")
    parser.add_argument("--folder", type=Path, default=None, help="where to make the home; a temporary one otherwise")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        app = App(Path(folder), ManualClock(NOW_MS))
        print(f"{'':<34}{'median ms':>10}{'worst ms':>10}{'goal':>8}", flush=True)
        for name, taken in measured(app, options.jobs, options.history):
            report(name, taken)
        app.close()


def report(name: str, taken: list[float]) -> None:
    median, goal = statistics.median(taken), GOALS.get(name)
    verdict = "" if goal is None else f"{goal:>8}" + ("" if median < goal else "  missed")
    print(f"{name:<34}{median:>10.2f}{max(taken):>10.2f}{verdict}", flush=True)


def measured(app: App, count: int, history: int) -> Iterator[tuple[str, list[float]]]:
    """The steps, each with what it took."""
    few = min(ONE_BY_ONE, count)
    yield (
        "making a job, among few",
        [timed(lambda number=number: app.jobs.store.add(job(number))) for number in range(few)],
    )
    fill(app, range(few, count))
    remember(app, range(count), history)
    yield (
        f"making a job, among {count:,}",
        [timed(lambda n=n: app.jobs.store.add(job(n))) for n in range(count, count + TIMES)],
    )
    yield "poll, nothing due", several(lambda: app.dispatch.claim("s", ROOM))
    yield "placing a job", [timed(lambda n=n: app.jobs.store.place(f"{n:08}", same, NOW_MS)) for n in range(TIMES)]
    yield "distribution", several(app.health.distribution)
    yield "rebalance preview, spread", several(lambda: app.dispatch.rebalance(is_preview=True))
    yield "numbers of the last day", several(app.health.scheduler, 3)
    yield "forgetting old executions", several(lambda: app.executions.store.prune(NOW_MS), 3)
    yield "first page of the list", several(lambda: app.jobs.store.find(EVERY, None, 50))
    yield (
        "page in the middle of the list",
        several(lambda: app.jobs.store.find(EVERY, (NOW_MS + count // 2, ""), 50)),
    )
    make_due(app, range(DUE))
    yield f"poll, {DUE:,} due", [timed(lambda n=n: app.dispatch.claim(f"s{n}", ROOM)) for n in range(TIMES)]
    crowd(app)
    yield "rebalance preview, crowded", several(lambda: app.dispatch.rebalance(is_preview=True), 3)
    yield "rebalance, crowded", several(lambda: app.dispatch.rebalance(is_preview=False), 1)


def timed(step: Callable[[], Any]) -> float:
    began = time.perf_counter()
    step()
    return 1000 * (time.perf_counter() - began)


def several(step: Callable[[], Any], times: int = TIMES) -> list[float]:
    return [timed(step) for _ in range(times)]


def same(one: Job) -> Job:
    return one


# Jobs


def job(number: int) -> Job:
    """A daily job. None is due yet: they were made so that today is over for them."""
    name = f"{number:08}"
    made_ms = NOW_MS + timetable.DAY_MS + number
    return Job(name, f"c{name}", JobState.PENDING, Task(), 1, "days", created_ms=made_ms, updated_ms=made_ms)


def fill(app: App, numbers: range) -> None:
    """Jobs in one transaction: through the door it would take a minute."""
    loads = app.dispatch.slots.loads()
    with app.home.writing() as db:
        for number in numbers:
            placed = occurrence.placed(job(number), loads, job(number).created_ms)
            placed = dataclasses.replace(placed, slot=occurrence.slot_of(placed))
            job_rows.add_job(db, placed)
            loads[placed.slot or 0] += 1


def remember(app: App, numbers: range, history: int) -> None:
    """Executions of the last days, all of them completed."""
    names = ("job_id", "crawl_id", "number", "occurrence_ms", "attempt", "state", "token", "service_id", "started_ms")
    query = f"INSERT INTO execution ({', '.join(names)}, ended_ms) VALUES (?, ?, ?, ?, 1, 'completed', ?, 's', ?, ?)"
    with app.home.writing() as db:
        for number in numbers:
            times = [(one, NOW_MS - one * timetable.DAY_MS) for one in range(1, history + 1)]
            rows = [
                (f"{number:08}", f"c{number:08}", -one, at_ms, f"{number}-{one}", at_ms, at_ms + 1000)
                for one, at_ms in times
            ]
            db.executemany(query, rows)


def make_due(app: App, numbers: range) -> None:
    with app.home.writing() as db:
        for number in numbers:
            before = job_rows.get_job(db, f"{number:08}")
            job_rows.write_job(db, before, dataclasses.replace(before, due_ms=NOW_MS - number), NOW_MS)


def crowd(app: App) -> None:
    """All jobs that wait, in one and the same slot."""
    at_ms = NOW_MS + timetable.DAY_MS // 2
    with app.home.writing() as db:
        for (name,) in db.execute("SELECT job_id FROM job WHERE slot IS NOT NULL").fetchall():
            before = job_rows.get_job(db, name)
            job_rows.write_job(db, before, dataclasses.replace(before, due_ms=at_ms, occurrence_ms=at_ms), NOW_MS)


if __name__ == "__main__":
    main()
