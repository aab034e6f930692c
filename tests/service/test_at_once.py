"""Several people do everything to one job, or to one crawl, at the same time.

Whatever comes first wins, the others are told so; in the end there is one consistent state, the counts per slot are
those of the jobs, and no process is left behind. How often that is tried can be set:

    INCHWORM_ROUNDS=300 pytest tests/service/test_at_once.py
"""

from __future__ import annotations

import dataclasses
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.service.chaos import end_processes, processes_of
from tests.service.running import Service, serving, wait_for

from inchworm.app.root import App
from inchworm.job import Job, JobFilter, JobState
from inchworm.rules.schedule import occurrence
from inchworm.testing import Page, Served, Site, linked_site

ROUNDS = int(os.environ.get("INCHWORM_ROUNDS") or 6)
ROUNDS_WITH_PROCESSES = max(2, ROUNDS // 5)
SEED = os.environ.get("INCHWORM_SEED") or "20261115"
AT_ONCE = 8
PEACEFUL = (200, 201, 202, 204, 404, 409)
JOBS, FORCED = "/api/v1/jobs", "/api/v2/jobs"


class Wish(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None


def wishes_for(job_id: str) -> list[Wish]:
    actions = [Wish("POST", f"{JOBS}/{job_id}/{action}") for action in ("cancel", "pause", "resume", "retry")]
    changes = [{"interval_minutes": 700}, {"interval_minutes": None}, {"schedule_enabled": True, "max_retries": 1}]
    return [
        *actions,
        Wish("DELETE", f"{JOBS}/{job_id}"),
        Wish("POST", f"{FORCED}/{job_id}/force-run"),
        *(Wish("PUT", f"{JOBS}/{job_id}", body) for body in changes),
    ]


class Crowd:
    """Clients that ask at the same moment."""

    def __init__(self, service: Service) -> None:
        self._client = service.client
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._chance = random.Random(SEED)

    def close(self) -> None:
        self._pool.shutdown()

    def ask(self, wishes: Sequence[Wish], allowed: Sequence[int] = PEACEFUL) -> list[tuple[Wish, httpx.Response]]:
        """Eight of these wishes, or some of them twice, all at once; what was answered."""
        chosen = [*self._chance.sample(wishes, min(AT_ONCE, len(wishes)))]
        chosen += self._chance.choices(wishes, k=AT_ONCE - len(chosen))
        barrier = threading.Barrier(AT_ONCE)

        def work(wish: Wish) -> tuple[Wish, httpx.Response]:
            barrier.wait()
            return wish, self._client.request(wish.method, wish.path, json=wish.body)

        answers = list(self._pool.map(work, chosen))
        for wish, answer in answers:
            assert answer.status_code in allowed, (wish, answer.status_code, answer.text)
        return answers


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("crowd") / "home"
    try:
        with serving(home, "--executions", "4", env={"INCHWORM_GRACE": "0.1"}) as running:
            yield running
            assert running.stop() == 0
            assert "Traceback" not in running.text, running.text
            assert processes_of(home) == []
    finally:
        end_processes(home)


@pytest.fixture(scope="module")
def app(service: Service) -> Iterator[App]:
    made = App(service.home)
    yield made
    made.close()


@pytest.fixture(scope="module")
def crowd(service: Service) -> Iterator[Crowd]:
    made = Crowd(service)
    yield made
    made.close()


def slow_site() -> Site:
    return Site({path: Page(text, delay=0.05) for path, text in linked_site(200).items()})


def put_into(app: App, job_id: str, state: JobState) -> None:
    """A job that came into this state a moment ago."""

    def decide(job: Job) -> Job:
        due_ms = app.clock.now_ms() if state is JobState.PENDING else job.due_ms
        is_waiting = state in (JobState.PENDING, JobState.SCHEDULED)
        return dataclasses.replace(job, state=state, due_ms=due_ms if is_waiting else None)

    app.jobs.store.change(job_id, decide, app.clock.now_ms())


# What has to hold


def faults_of(job: Job) -> list[str]:
    """What is inconsistent in a job that nobody is at any more."""
    waits = job.state in (JobState.PENDING, JobState.SCHEDULED)
    found = [] if job.lock_token is None else ["it is locked"]
    found += ["it runs, and nobody runs it"] if job.state is JobState.RUNNING else []
    found += ["it is over or paused, and has a time"] if job.due_ms is not None and not waits else []
    found += ["its slot is not that of its time"] if job.slot != occurrence.slot_of(job) else []
    is_lost = job.state is JobState.PENDING and job.due_ms is None
    return found + (["it waits for nothing"] if is_lost else [])


def assert_sound(app: App) -> None:
    jobs = app.jobs.store.find(JobFilter(), None, 100_000)
    wrong = {job.job_id: faults for job in jobs if (faults := faults_of(job))}
    assert not wrong, (wrong, [job for job in jobs if job.job_id in wrong])
    counted = Counter(job.slot for job in jobs if job.slot is not None)
    assert app.dispatch.slots.loads() == [counted[slot] for slot in range(96)]
    assert app.executions.store.running() == []
    assert app.dispatch.claims.locks() == []


def assert_told_truly(app: App, job_id: str, answers: Sequence[tuple[Wish, httpx.Response]]) -> None:
    """At most one deletion went through, and then the job is gone."""
    deleted = sum(answer.status_code == 204 for _, answer in answers)
    is_there = any(job.job_id == job_id for job in app.jobs.store.find(JobFilter(), None, 100_000))
    assert deleted == (0 if is_there else 1)
    cancelled = sum(wish.path.endswith("/cancel") and answer.is_success for wish, answer in answers)
    assert cancelled <= 1, "a job is cancelled once"
    if cancelled and is_there:
        assert app.jobs.store.state_of(job_id) is JobState.CANCELLED


def has_begun(app: App, job_id: str) -> bool:
    return app.jobs.store.get(job_id).executions > 0


def was_asked(web: Served, path: str) -> bool:
    return path in web.paths()


def quiet(app: App, home: Path) -> Callable[[], bool]:
    return lambda: not app.executions.store.running() and not processes_of(home)


# Jobs


@pytest.mark.parametrize("state", [one for one in JobState if one is not JobState.RUNNING])
def test_a_job_that_does_not_run(service: Service, app: App, crowd: Crowd, state: JobState) -> None:
    """Of a crawl that is being worked on, so that nobody starts it meanwhile."""
    with slow_site().serve() as web:
        settings = {"delay": 5, "workers": 1}
        held = service.post(JOBS, {"url": web.url(), "settings": settings}, 201)
        wait_for(app.dispatch.claims.locks, "the crawl to be worked on")
        for _ in range(ROUNDS):
            body = {"source_id": held["crawl_id"], "interval_minutes": 900}
            job_id = service.post(JOBS, body, 201)["id"]
            put_into(app, job_id, state)
            answers = crowd.ask(wishes_for(job_id))
            assert_told_truly(app, job_id, answers)
            assert [
                one
                for one in app.jobs.store.find(JobFilter(), None, 1000)
                if one.job_id != held["id"] and faults_of(one)
            ] == []
        for job in app.jobs.store.find(JobFilter(), None, 1000):
            if job.state in (JobState.PENDING, JobState.SCHEDULED, JobState.PAUSED, JobState.RUNNING):
                service.post(f"{JOBS}/{job.job_id}/cancel")
        wait_for(quiet(app, service.home), "everything to end")
        assert_sound(app)


def test_a_job_that_runs(service: Service, app: App, crowd: Crowd) -> None:
    """In the middle of its execution, about to begin, or about to end: by chance."""
    with Site({path: Page(text, delay=0.02) for path, text in linked_site(12).items()}).serve() as web:
        made: list[str] = []
        for number in range(ROUNDS_WITH_PROCESSES):
            body = {"url": web.url(f"/?{number}"), "settings": {"delay": 0}, "max_retries": 0}
            job_id = service.post(JOBS, body, 201)["id"]
            made.append(job_id)
            if number % 3:
                wait_for(partial(has_begun, app, job_id), "an execution")
            if number % 3 == 2:
                wait_for(partial(was_asked, web, f"/?{number}"), "its first page")
            assert_told_truly(app, job_id, crowd.ask(wishes_for(job_id)))
        for job in app.jobs.store.find(JobFilter(), None, 1000):
            if job.state in (JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING):
                service.client.post(f"{JOBS}/{job.job_id}/cancel")
        wait_for(quiet(app, service.home), "everything to end")
        assert_sound(app)


# Crawls


def test_a_crawl(service: Service, app: App, crowd: Crowd) -> None:
    with slow_site().serve() as web:
        for number in range(ROUNDS_WITH_PROCESSES):
            start = Wish("POST", "/api/v1/crawl", {"url": web.url(f"/?{number}"), "delay": 0, "grace": 0.1})
            crawl_id = service.post(start.path, start.body, 202)["crawl_id"]
            path = f"/api/v1/crawl/{crawl_id}"
            stops = [Wish("POST", f"{path}/pause"), Wish("POST", f"{path}/cancel"), Wish("DELETE", path)]
            crowd.ask([start, start, *stops, *stops])
            assert_crawl_is_whole(service, crawl_id)
        for job in app.jobs.store.find(JobFilter(), None, 1000):
            service.client.post(f"{JOBS}/{job.job_id}/cancel")
        wait_for(quiet(app, service.home), "everything to end")
        assert_sound(app)
        known = {one.crawl_id for one in app.workspace.crawls.all()}
        assert {job.crawl_id for job in app.jobs.store.find(JobFilter(), None, 1000)} <= known, (
            "no job of a crawl that is gone"
        )
        folders = service.home / "crawls"
        assert {one.name for one in folders.iterdir()} <= known if folders.exists() else True


def test_a_crawl_that_is_deleted_leaves_no_job(service: Service, app: App, crowd: Crowd) -> None:
    for number in range(ROUNDS):
        crawl_id = service.put("/api/v1/config", {"url": f"https://example.invalid/{number}"})["crawl_id"]
        delete = Wish("DELETE", f"/api/v1/crawl/{crawl_id}")
        make = Wish("POST", JOBS, {"source_id": crawl_id, "interval_minutes": 900, "schedule_enabled": False})
        crowd.ask([*[delete] * 4, *[make] * 4], (*PEACEFUL, 422))
        left = app.jobs.store.find(JobFilter(crawl_id=crawl_id), None, 10)
        is_there = app.workspace.crawls.find(crawl_id) is not None
        for job in left:
            service.delete(f"{JOBS}/{job.job_id}")
        assert is_there or not left


def test_a_start_while_the_crawl_is_deleted_is_not_called_wrong(service: Service, app: App, crowd: Crowd) -> None:
    with Site({"/": "<p>one page</p>"}).serve() as web:
        try:
            for number in range(ROUNDS):
                url = web.url(f"/?{number}")
                crawl_id = service.put("/api/v1/config", {"url": url})["crawl_id"]
                delete, start = Wish("DELETE", f"/api/v1/crawl/{crawl_id}"), Wish("POST", "/api/v1/crawl", {"url": url})
                crowd.ask([*[delete] * 4, *[start] * 4])
        finally:
            wait_for(quiet(app, service.home), "everything to end")


def assert_crawl_is_whole(service: Service, crawl_id: str) -> None:
    """There, in a state that it can be in; or gone."""
    answer = service.client.get(f"/api/v1/crawl/{crawl_id}")
    assert answer.status_code in (200, 404), answer.text
    if answer.status_code == 200 and answer.json()["run"] is not None:
        assert answer.json()["state"] in ("running", "paused", "cancelled", "completed", "interrupted"), answer.text
