"""Self-watch: what stopped, is stuck or overdue shows, and clears by itself."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from pathlib import Path

import httpx
import pytest
from tests.service.running import PATIENCE, Service, serving, wait_for

from inchworm.app.act.jobs.dispatch import Pulse
from inchworm.app.root import App
from inchworm.job import Job, JobState
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.timetable import Shift
from inchworm.service.api.health import Health
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
    return Job(f"j{number}", f"c{number}", JobState.PENDING, created_ms=now_ms)


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
        app.dispatch.enrol("s", VALUES)
        assert problems(health, app) == {}
        assert health.as_json()["status"] == "ok"

    def test_nobody_runs_jobs(self, app: App) -> None:
        assert problems(Health(VALUES, needs_scheduler=True), app) == {"no_scheduler": 1}

    def test_a_scheduler_that_stops_shows_within_two_polls_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=True)
        app.dispatch.enrol("s", VALUES)
        assert problems(health, app) == {}
        clock.advance(20)
        assert problems(health, app) == {}
        clock.advance(1.5)
        assert problems(health, app) == {"scheduler_stopped": 1}
        app.executions.services.beat("s", clock.now_ms())
        assert problems(health, app) == {}

    def test_a_stuck_execution_shows_within_two_beats_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.store.add(job(1, clock.now_ms()))
        (execution,) = app.dispatch.claim("s", 1)
        assert problems(health, app) == {}
        for _ in range(5):
            clock.advance(60)
            app.dispatch.claims.beat(execution.execution_id, execution.token)
            assert problems(health, app) == {}
        clock.advance(121.5)
        assert problems(health, app) == {"stuck_executions": 1}
        app.dispatch.claims.beat(execution.execution_id, execution.token)
        assert problems(health, app) == {}

    def test_an_overdue_job_shows_within_two_polls_and_clears(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.store.add(job(1, clock.now_ms()))
        clock.advance(19)
        assert problems(health, app) == {}
        clock.advance(2)
        assert problems(health, app) == {"overdue_jobs": 1}
        app.dispatch.claim("s", 1)
        assert "overdue_jobs" not in problems(health, app)

    def test_what_everybody_may_see_names_nobody(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        app.jobs.store.add(job(1, clock.now_ms()))
        clock.advance(100)
        health.look(app)
        assert "j1" not in str(health.as_json())
        assert "j1" in str(health.whole())


class TestAdvice:
    def run(self, app: App, ended: list[str]) -> None:
        """Executions that ended so: with this error, or well."""
        for number, error in enumerate(ended):
            app.jobs.store.add(dataclasses.replace(job(number, app.clock.now_ms()), max_retries=0))
            (one,) = app.dispatch.claim("s", 1)
            app.dispatch.claims.finish(
                one.execution_id, one.token, Ended(error=error), lambda job: job, app.clock.now_ms()
            )

    def test_none_is_given_unasked(self, app: App) -> None:
        health = Health(VALUES, needs_scheduler=False)
        health.look(app)
        assert health.as_json()["advice"] == health.whole()["advice"] == []

    @pytest.mark.parametrize(("failed", "is_said"), [(1, False), (2, True)], ids=["0.8", "below"])
    def test_when_many_executions_fail(self, app: App, failed: int, is_said: bool) -> None:
        self.run(app, ["gone"] * failed + [""] * 4)
        health = Health(VALUES, needs_scheduler=False)
        health.look(app)
        said = [one for one in health.as_json()["advice"] if "fail" in one]
        assert bool(said) is is_said
        assert health.as_json()["status"] == "ok", "advice is no alarm"
        assert health.whole()["advice"] == health.as_json()["advice"]
        assert all(one in app.health.scheduler().advice for one in said), "the same words everywhere"

    @pytest.mark.parametrize(("together", "is_said"), [(4, False), (5, True)], ids=["0.7", "below"])
    def test_when_jobs_crowd_together(self, app: App, clock: ManualClock, together: int, is_said: bool) -> None:
        """Of eleven jobs so many begin at the same time: the share of them that need not is 0.3, or more."""
        now_ms = clock.now_ms()
        for number in range(11):
            made = app.jobs.store.add(dataclasses.replace(job(number, now_ms), interval_count=1, interval_unit="days"))
            if number < together:
                app.dispatch.slots.shift([Shift(made.job_id, made.due_ms or 0, now_ms + 12 * 3_600_000)], now_ms)
        assert app.health.distribution().distribution_score == (0.6 if is_said else 0.7)
        health = Health(VALUES, needs_scheduler=False)
        health.look(app)
        assert any("rebalance" in one for one in health.as_json()["advice"]) is is_said

    def test_it_is_looked_for_as_often_as_the_figures_are_collected(self, app: App, clock: ManualClock) -> None:
        health = Health(VALUES, needs_scheduler=False)
        health.look(app)
        self.run(app, ["gone"])
        clock.advance(VALUES.metrics_every - 1)
        health.look(app)
        assert health.as_json()["advice"] == []
        clock.advance(1)
        health.look(app)
        assert health.as_json()["advice"] != []


def test_advice_is_given_to_whoever_asks_how_the_service_is(tmp_path: Path) -> None:
    with Site({"*": Page("", 500)}).serve() as web, serving(tmp_path / "home") as service:
        body = {"url": web.url(), "max_retries": 0, "settings": {"delay": 0, "max_retries": 0}}
        service.ended(service.post("/api/v1/jobs", body, 201)["id"])
        wait_for(lambda: service.get("/api/v1/health")["advice"], "the advice")
        without_token = httpx.get(f"{service.url}/health").json()
    assert len(without_token["advice"]) == 1 and without_token["status"] == "ok"


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
