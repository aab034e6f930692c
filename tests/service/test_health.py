"""Self-watch: what stopped, is stuck or overdue shows, and clears by itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.service.running import PATIENCE, Service, serving, wait_for

from inchworm.app.scheduling import Pulse
from inchworm.app.whole import App
from inchworm.job import Job, JobState
from inchworm.service.health import Health
from inchworm.settings import Settings
from inchworm.testing import ManualClock, Page, Site, linked_site

VALUES = Settings(poll=10, stale_lock=300)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def app(tmp_path: Path, clock: ManualClock) -> App:
    made = App(tmp_path / "home", clock)
    yield made
    made.close()


def problems(health: Health, app: App) -> dict[str, int]:
    health.look(app)
    return {one.code: one.count for one in health.problems}


def job(number: int, now_ms: int) -> Job:
    return Job(f"j{number}", f"c{number}", JobState.PENDING, {}, created_ms=now_ms)


class TestPulse:
    def test_it_counts_from_when_it_first_saw_somebody_stand_still(self) -> None:
        pulse: Pulse[str] = Pulse()
        assert pulse.look([("a", 1)], 100.0) == {"a": 0.0}
        assert pulse.look([("a", 1), ("b", 5)], 107.0) == {"a": 7.0, "b": 0.0}
        assert pulse.look([("a", 2), ("b", 5)], 108.0) == {"a": 0.0, "b": 1.0}
        assert pulse.look([("b", 5)], 110.0) == {"b": 3.0}
        assert pulse.look([("a", 2)], 111.0) == {"a": 0.0}, "who was away is new"


class TestProblems:
    def test_all_is_well(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=True)
        app.enrol("s", VALUES)
        assert problems(health, app) == {}
        assert health.as_json()["status"] == "ok"

    def test_nobody_runs_jobs(self, app: App) -> None:
        assert problems(Health(VALUES, needs_scheduler=True), app) == {"no_scheduler": 1}

    def test_a_scheduler_that_stops_shows_within_two_polls_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=True)
        app.enrol("s", VALUES)
        assert problems(health, app) == {}
        clock.advance(20)
        assert problems(health, app) == {}
        clock.advance(1.5)
        assert problems(health, app) == {"scheduler_stopped": 1}
        app.events.beat("s", clock.now_ms())
        assert problems(health, app) == {}

    def test_a_stuck_execution_shows_within_two_beats_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.add(job(1, clock.now_ms()))
        (execution,) = app.claim("s", 1)
        assert problems(health, app) == {}
        for _ in range(5):
            clock.advance(60)
            app.jobs.beat(execution.execution_id, execution.token)
            assert problems(health, app) == {}
        clock.advance(121.5)
        assert problems(health, app) == {"stuck_executions": 1}
        app.jobs.beat(execution.execution_id, execution.token)
        assert problems(health, app) == {}

    def test_an_overdue_job_shows_within_two_polls_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.add(job(1, clock.now_ms()))
        clock.advance(19)
        assert problems(health, app) == {}
        clock.advance(2)
        assert problems(health, app) == {"overdue_jobs": 1}
        app.claim("s", 1)
        assert "overdue_jobs" not in problems(health, app)

    def test_what_everybody_may_see_names_nobody(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.add(job(1, clock.now_ms()))
        clock.advance(100)
        health.look(app)
        assert "j1" not in str(health.as_json())
        assert "j1" in str(health.whole())


def codes(service: Service) -> set[str]:
    return {one["code"] for one in service.get("/health")["problems"]}


def test_a_child_that_stands_still_shows_everywhere_and_its_job_goes_on(tmp_path: Path) -> None:
    site = Site({path: Page(text, delay=0.02) for path, text in linked_site(60).items()})
    with site.serve() as web, serving(tmp_path / "home", "--stale-lock", "6") as service:
        made = service.post("/api/v1/jobs", {"url": web.url(), "settings": {"delay": 0}}, 201)
        path = f"/api/v1/jobs/{made['id']}/executions"
        wait_for(lambda: len(web.log) > 5, "some pages")
        child = service.get(path)["items"][0]
        os.kill(child["pid"], signal.SIGSTOP)
        wait_for(lambda: "stuck_executions" in codes(service), "the stuck execution to show")
        assert 'inchworm_problems{code="stuck_executions"} 1.0' in service.get("/metrics")
        assert "no sign of life" in service.text
        assert service.ended(made["id"], 2)["status"] == "completed"
        wait_for(lambda: codes(service) == set(), "it to clear")
        assert service.get("/api/v1/scheduler/metrics")["stale_locks_cleared"] == 1
        first, second = reversed(service.get(path)["items"])
        assert (first["status"], first["planned_at"]) == ("failed", second["planned_at"])
        assert (first["attempt"], second["attempt"]) == (1, 2)


def test_a_scheduler_elsewhere_that_stands_still_shows(tmp_path: Path) -> None:
    with serving(tmp_path / "home", "--no-scheduler") as watching, serving(tmp_path / "home") as other:
        wait_for(lambda: codes(watching) == set(), "the other one to be seen")
        other.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: "scheduler_stopped" in codes(watching), "its silence to show")
        finally:
            other.process.send_signal(signal.SIGCONT)
        wait_for(lambda: codes(watching) == set(), "it to clear")


def test_the_figures_are_collected_again(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        first = service.get("/api/v1/scheduler/metrics")["collected_at"]
        deadline = time.monotonic() + PATIENCE
        while service.get("/api/v1/scheduler/metrics")["collected_at"] == first and time.monotonic() < deadline:
            time.sleep(0.05)
        assert service.get("/api/v1/scheduler/metrics")["collected_at"] != first
