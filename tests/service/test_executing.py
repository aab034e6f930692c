"""Executions carried out in this process: what a try means for its job, and what is told of it meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inchworm.app import App, Start
from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.act.jobs.execute import STOPPED
from inchworm.errors import Lost
from inchworm.job import Execution, ExecutionState, Job, JobRepetition, JobState, Task
from inchworm.model import CrawlInfo
from inchworm.rules.words.json_form import json_object
from inchworm.testing import Page, Served, Site, linked_site, redirect

STALE = 60.0
ME = "me"


class Works:
    """A home with one job at a time, whose executions are claimed and carried out here."""

    def __init__(self, folder: Path) -> None:
        self.app = App(folder)
        self.job_id = ""

    def add(self, url: str = "", settings: dict[str, Any] | None = None, verb: str = "crawl", **wanted: Any) -> str:
        given = {"delay": 0.0, "max_retries": 0, "sitemap": False, "robots": False, **(settings or {})}
        wanted = {"interval_minutes": 60, "interval_type": "minutes", **({"url": url} if url else {}), **wanted}
        self.job_id = str(self.app.schedule.add(WantedJob(task=Task(verb, settings=given), **wanted)).id)
        return self.job_id

    def claim(self) -> Execution:
        """The next try, claimed because a person wants it now."""
        job = self.job()
        if job.state is JobState.FAILED:
            self.app.schedule.retry(self.job_id)
        elif job.due_ms is None or job.due_ms > self.app.clock.now_ms():
            self.app.schedule.run(self.job_id)
        (claimed,) = self.app.dispatch.claim(ME, 1)
        return claimed

    def execute(self, claimed: Execution | None = None) -> Execution:
        claimed = claimed or self.claim()
        went_well = asyncio.run(self.app.execute.execute(claimed.execution_id, claimed.token, STALE))
        done = self.app.executions.store.get(claimed.execution_id)
        assert went_well is not bool(done.error)
        return done

    def job(self) -> Job:
        return self.app.jobs.store.get(self.job_id)

    def log(self, execution: Execution) -> list[tuple[str, str]]:
        return [(line.level, line.text) for line in self.app.executions.log_tail(execution.execution_id)]


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    made = Works(tmp_path / "home")
    with contextlib.closing(made.app):
        yield made


def text(said: str) -> str:
    return f"<main><p>{said}</p></main>"


# Whether the seeds changed

HOME, AWAY = text("The same as ever."), text("Something new.")
CHANGES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "the same": ({}, [0, 1, 2]),
    "another text": ({"/": AWAY}, [0, 1, 0]),
    "not to be had": ({"/": Page("out of order", 500)}, [0, 1, 1]),
    "gone": ({"/": Page("gone", 404)}, [0, 1, 1]),
    "moved to a new page": ({"/": redirect("/en"), "/en": HOME}, [0, 1, 0]),
    "moved to nowhere": ({"/": redirect("/en")}, [0, 1, 1]),
}


@pytest.mark.parametrize(("then", "counted"), CHANGES.values(), ids=CHANGES)
def test_how_often_a_job_found_its_seed_unchanged(works: Works, then: dict[str, Any], counted: list[int]) -> None:
    """A page of which nobody can tell leaves the count as it is."""
    pages: dict[str, Any] = {"/": HOME}
    found = []
    with Site(pages).serve() as served:
        works.add(served.url("/"), max_retries=0)
        for _ in range(2):
            works.execute()
            found.append(works.job().unchanged)
        pages |= then
        works.execute()
    assert [*found, works.job().unchanged] == counted


SEEDS = {
    "both the same": ({}, 1),
    "one changed": ({"/b": AWAY}, 0),
    "one is not to be had": ({"/b": Page("out of order", 500)}, 0),
    "one changed, the other is not to be had": ({"/a": Page("out of order", 500), "/b": AWAY}, 0),
}


@pytest.mark.parametrize(("then", "unchanged"), SEEDS.values(), ids=SEEDS)
def test_a_job_with_several_seeds_changed_when_one_of_them_did(
    works: Works, then: dict[str, Any], unchanged: int
) -> None:
    """And is as it was only where that is certain of all of them."""
    pages: dict[str, Any] = {"/a": HOME, "/b": text("Another page.")}
    with Site(pages).serve() as served:
        crawl = works.app.plan.find_or_make(Start((served.url("/a"), served.url("/b"))))
        works.add(crawl=crawl, max_retries=0)
        works.execute()
        pages |= then
        works.execute()
    assert works.job().unchanged == unchanged


# Whether it is enough

ENOUGH = {
    "none but the first": (JobRepetition(max_iterations=1), ["", "max_iterations"]),
    "two": (JobRepetition(max_iterations=2), ["", "", "max_iterations"]),
    "until nothing changes": (JobRepetition(stop_if_no_changes=True), ["", "no_changes"]),
    "whatever comes first": (JobRepetition(max_iterations=1, stop_if_no_changes=True), ["", "no_changes"]),
    "for ever": (JobRepetition(), ["", "", ""]),
}


@pytest.mark.parametrize(("repeated", "reasons"), ENOUGH.values(), ids=ENOUGH)
def test_a_job_is_repeated_until_it_is_enough(works: Works, repeated: JobRepetition, reasons: list[str]) -> None:
    with Site({"/": HOME}).serve() as served:
        works.add(served.url("/"), repeated=repeated)
        for reason in reasons:
            assert works.job().state is JobState.SCHEDULED
            works.execute()
            assert works.job().reason == reason
    assert works.job().state is (JobState.COMPLETED if reasons[-1] else JobState.SCHEDULED)


def test_a_run_that_is_not_complete_is_no_iteration(works: Works) -> None:
    with Site(linked_site(6)).serve() as served:
        works.add(served.url("/"), {"budget": 4}, repeated=JobRepetition(max_iterations=1))
        seen = []
        for _ in range(4):
            done = works.execute()
            seen.append((done.run, done.session, done.ended_by, done.pages, works.job().reason))
    assert seen == [
        (0, 1, "budget", 4, ""),
        (0, 2, "finished", 2, ""),
        (1, 1, "budget", 4, ""),
        (1, 2, "finished", 2, "max_iterations"),
    ]


# What a try begins with


@pytest.mark.parametrize(
    ("verb", "runs"), [("crawl", [(0, 1), (1, 1)]), ("recrawl", [(0, 1), (1, 1)]), ("fresh", [(0, 1), (1, 1)])]
)
def test_every_occurrence_is_a_run_of_its_own(works: Works, verb: str, runs: list[tuple[int, int]]) -> None:
    with Site({"/": HOME}).serve() as served:
        works.add(served.url("/"))
        first = works.execute()
        works.add(crawl=crawl_of(works), verb=verb, max_retries=0)
        second = works.execute()
    assert [(one.run, one.session) for one in (first, second)] == runs


def crawl_of(works: Works) -> CrawlInfo:
    (crawl,) = works.app.workspace.crawls.all()
    return crawl


def test_a_job_that_resumes_goes_on_with_the_run_that_is_open(works: Works) -> None:
    with Site(linked_site(6)).serve() as served:
        works.add(served.url("/"), {"budget": 2})
        works.execute()
        works.add(settings={"budget": 0}, crawl=crawl_of(works), verb="resume")
        done = works.execute()
    assert (done.run, done.session, done.ended_by, done.pages) == (0, 2, "finished", 4)


def test_a_try_that_is_cancelled_before_it_begins_asks_for_nothing(works: Works) -> None:
    with Site({"/": HOME}).serve() as served:
        works.add(served.url("/"))
        claimed = works.claim()
        works.app.schedule.cancel(works.job_id)
        done = works.execute(claimed)
        assert served.log == []
    assert (done.state, done.ended_by, done.session) == (ExecutionState.CANCELLED, "cancelled", None)
    assert works.job().state is JobState.CANCELLED


# Others on the same crawl


@pytest.mark.parametrize(
    ("wanted", "is_put_off"),
    [
        ({"max_retries": 0}, True),
        ({"max_retries": 1, "interval_minutes": None, "interval_type": None}, True),
        ({"max_retries": 0, "interval_minutes": None, "interval_type": None}, False),
    ],
)
def test_a_crawl_that_somebody_works_on_is_nobodys_failure(
    works: Works, wanted: dict[str, Any], is_put_off: bool
) -> None:
    """Unless somebody wanted one try, now."""
    with Site({"/": HOME}).serve() as served:
        works.add(served.url("/"), **wanted)
        claimed = works.claim()
        with works.app.workspace.owning(crawl_of(works), 60.0):
            done = works.execute(claimed)
        assert served.log == []
    assert done.error and done.ended_by == "error"
    job = works.job()
    assert (job.state, job.retries) == (JobState.SCHEDULED if is_put_off else JobState.FAILED, 0)
    if is_put_off:
        assert job.due_ms is not None and 55_000 < job.due_ms - works.app.clock.now_ms() <= 60_000
        assert job.occurrence_ms == claimed.occurrence_ms


# Being stopped


def stopped(works: Works, served: Served, requests: int) -> Execution:
    """A try whose process is told to end after so many requests."""
    claimed = works.claim()

    async def execute() -> None:
        task = asyncio.create_task(works.app.execute.execute(claimed.execution_id, claimed.token, STALE))
        while len(served.log) < requests and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await task

    asyncio.run(execute())
    return works.app.executions.store.get(claimed.execution_id)


def test_a_try_whose_service_stops_is_handed_back_and_the_next_one_goes_on(works: Works) -> None:
    site = Site(linked_site(8, fan=8))
    site.latency = (0.2, 0.2)
    with site.serve() as served:
        works.add(served.url("/"), {"workers": 1})
        first = stopped(works, served, 4)
        assert (first.error, first.ended_by, first.state) == (STOPPED, "paused", ExecutionState.FAILED)
        job = works.job()
        assert (job.state, job.retries, job.crashes, job.occurrence_ms) == ("scheduled", 0, 0, first.occurrence_ms)
        site.latency = (0.0, 0.0)
        second = works.execute()
    assert (second.run, second.session, second.attempt, second.ended_by) == (0, 2, 2, "finished")
    assert first.pages + second.pages == 8 and first.pages >= 1
    assert sorted(hit.path for hit in served.log) == sorted(linked_site(8, fan=8))


def test_who_lost_its_job_ends_and_writes_nothing(works: Works) -> None:
    """It stood still for so long that another one has it."""
    site = Site(linked_site(8, fan=8))
    site.latency = (0.3, 0.3)
    with site.serve() as served:
        works.add(served.url("/"), {"workers": 1, "grace": 0.1})
        claimed = works.claim()

        async def execute() -> None:
            running = works.app.execute.execute(claimed.execution_id, claimed.token, 0.5)
            task = asyncio.create_task(running)
            while not served.log:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert works.app.dispatch.take_back(claimed.token)
            await task

        with pytest.raises(Lost):
            asyncio.run(execute())
        assert len(served.log) < 8
    assert works.app.executions.store.get(claimed.execution_id).error == "its process stood still for too long"
    assert works.job().state is JobState.SCHEDULED


# What is told of it


def test_the_log_of_a_try_tells_what_it_did(works: Works) -> None:
    with Site({"/": text('<a href="/x">x</a><a href="/y">y</a>'), "/y": HOME}).serve() as served:
        works.add(served.url("/"))
        done = works.execute()
        gone = served.url("/x")
    assert works.log(done) == [
        ("info", f"Execution 1, attempt 1, of job {works.job_id}"),
        ("info", "Run 0 (baseline), session 1"),
        ("warning", f"http_4xx: {gone} the server answered 404"),
        ("info", "Ended by finished: 2 pages"),
    ]


def test_a_later_try_tells_its_own_failures_and_counts_its_own_pages(works: Works) -> None:
    links = "".join(f'<a href="/{number}">x</a>' for number in range(4))
    with Site({"/": text(links), "/2": AWAY}).serve() as served:
        works.add(served.url("/"), {"budget": 3, "workers": 1})
        first, second = works.execute(), works.execute()
    told = [
        [text.split()[1].rpartition("/")[2] for level, text in works.log(one) if level == "warning"]
        for one in (first, second)
    ]
    assert told == [["0", "1"], ["3"]]
    assert (first.pages, second.pages) == (1, 1)
    progress = json_object(second.progress)
    assert (progress["pages"], progress["failed"], progress["requests"], progress["pending"]) == (2, 3, 2, 0)


def test_how_far_a_try_has_come_is_told_while_it_works(works: Works) -> None:
    site = Site(linked_site(12, fan=12))
    site.latency = (0.3, 0.3)
    seen: list[dict[str, Any]] = []

    def on_hit(_: object) -> None:
        seen.extend(json_object(one.progress) for one in works_seen.executions.store.running())

    with contextlib.closing(App(works.app.home.folder)) as works_seen, site.serve(on_hit=on_hit) as served:
        works.add(served.url("/"), {"workers": 1})
        done = works.execute()
    told = [one for one in seen if one]
    assert told, "while it worked"
    assert 0 < told[-1]["pages"] < 12 and told[-1]["known"] == 12 and told[-1]["pending"] > 0
    assert json_object(done.progress)["pages"] == done.pages == 12
