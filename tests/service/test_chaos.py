"""Three schedulers on one home, killed at random together with their children: every occurrence is done once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from tests.service import chaos
from tests.service.chaos import Chaos, processes_of, wait_until

from inchworm.app import App
from inchworm.app.act.jobs.change import WantedJob
from inchworm.job import Execution, ExecutionState, JobState, Task
from inchworm.testing import Page, Served, Site


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with closing(App(tmp_path / "home")) as made:
        yield made


@pytest.fixture
def served() -> Iterator[Served]:
    """A site with a small part for each crawl."""
    pages: dict[str, Page] = {}
    for number in range(chaos.JOBS):
        folder = f"/{number}/"
        links = "".join(f"<a href={folder}{name}>{name}</a>" for name in "abc")
        pages[folder] = Page(f"<main>Part {number} begins here.</main>{links}", delay=0.02)
        pages |= {f"{folder}{name}": Page(f"<main>{name} of {number}.</main>", delay=0.02) for name in "abc"}
    with Site(pages).serve() as made:
        yield made


def test_every_occurrence_is_completed_exactly_once(app: App, served: Served) -> None:
    task = Task(settings={"delay": 0.0, "workers": 1, "sitemap": False})
    names = [app.schedule.add(WantedJob(url=served.url(f"/{number}/"), task=task)).id for number in range(chaos.JOBS)]
    planned = {name: app.jobs.store.get(name).occurrence_ms for name in names}

    def is_over() -> bool:
        return app.jobs.store.counts()[JobState.COMPLETED] == len(names)

    with Chaos(app.folder) as raging:
        raging.rage(is_over)
        wait_until(is_over, chaos.PATIENCE + chaos.JOBS)
        wait_until(lambda: not app.executions.store.running() and not processes_of(app.folder))
    print(f"INCHWORM_SEED={chaos.SEED}: {', '.join(raging.story)}")

    assert app.jobs.store.counts()[JobState.COMPLETED] == len(names), app.jobs.store.counts()
    for name in names:
        assert_done_once(app.executions.store.of_job(name, None, 1000)[::-1], planned[name])
    for crawl in app.workspace.crawls.all():
        with app.workspace.reading(crawl) as store:
            assert app.check.record(crawl, store) == []
            (run,) = store.runs.list()
            assert (run.state, run.counters.pages, run.counters.pending) == ("completed", 4, 0)
    assert len(app.workspace.crawls.all()) == len(names)
    assert app.dispatch.slots.loads() == [0] * 96 and app.dispatch.claims.locks() == []
    assert_little_is_fetched_twice(served, raging)


def assert_done_once(tries: list[Execution], planned: int | None) -> None:
    """One planned time, tries without gaps, and the last of them is the one that is completed."""
    assert {one.occurrence_ms for one in tries} == {planned}
    assert [one.attempt for one in tries] == [one.number for one in tries] == list(range(1, len(tries) + 1))
    states = [one.state for one in tries]
    assert states == [ExecutionState.FAILED] * (len(tries) - 1) + [ExecutionState.COMPLETED]
    times = [(one.started_ms, one.ended_ms) for one in tries]
    for (_, ended), (began, _) in pairwise(times):
        assert ended is not None and began >= ended, "one after the other"


def assert_little_is_fetched_twice(served: Served, raging: Chaos) -> None:
    """A kill costs a crawl no more than the page that was under way and those not committed yet."""
    asked: dict[str, int] = defaultdict(int)
    for hit in served.log:
        asked[hit.path] += hit.path != "/robots.txt"
    again = sum(count - 1 for count in asked.values() if count)
    assert again <= 4 * len(raging.story), (again, raging.story)
