"""The routes about jobs, their executions and logs, the scheduler and the sources: each in use and in wrong use."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.running import Service, serving, wait_for

from inchworm.rules.schedule.states import ACTIONS, Action
from inchworm.testing import Page, Served, Site, linked_site

GHOST = "5e8441a15c74463fb105010a3dfd86f4"
UNKNOWN_SOURCE = "uuid-from-source-manager"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
RESTING = {"interval_minutes": 900, "schedule_enabled": False}
"""A job that is scheduled and that the clock never starts."""


@pytest.fixture(scope="module")
def web() -> Iterator[Served]:
    pages: dict[str, Any] = dict(linked_site(4))
    pages |= {"/broken": Page("", 500), "/slow": Page("<p>slow</p>", delay=60)}
    with Site(pages).serve() as served:
        yield served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    env = {"INCHWORM_GRACE": "0.2", "INCHWORM_DELAY": "0"}
    with serving(tmp_path_factory.mktemp("jobs") / "home", env=env) as running:
        yield running


def resting(service: Service, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = service.post(
        "/api/v1/jobs", {"url": "https://example.invalid/rest", **RESTING, **more}, 201
    )
    return found


def status(service: Service, job_id: str) -> str:
    found: str = service.get(f"/api/v1/jobs/{job_id}")["status"]
    return found


def act(service: Service, job_id: str, action: str, expected: int = 200) -> Any:
    version = "v2" if action == "force-run" else "v1"
    return service.post(f"/api/{version}/jobs/{job_id}/{action}", status=expected)


def in_state(service: Service, web: Served, state: str) -> str:
    """A job that is in this state and stays there."""
    if state in ("scheduled", "paused", "cancelled"):
        job: str = resting(service)["id"]
        if state != "scheduled":
            act(service, job, "pause" if state == "paused" else "cancel")
        return job
    path = {"failed": "/broken", "completed": "/"}.get(state, f"/slow?{state}")
    body = {"url": web.url(path), "max_retries": 0, "settings": {"delay": 0, "max_retries": 0}}
    job = service.post("/api/v1/jobs", body, 201)["id"]
    if state == "pending":
        # A crawl has one execution at a time, so that the second job has to wait.
        wait_for(lambda: status(service, job) == "running", "the first job to run")
        job = service.post("/api/v1/jobs", body, 201)["id"]
    wait_for(lambda: status(service, job) == state, f"a job that is {state}")
    return job


def source(service: Service, url: str) -> str:
    """The id of the crawl of a URL."""
    return str(service.put("/api/v1/config", {"url": url})["crawl_id"])


# The examples that people begin with


class TestExamples:
    def test_a_recurring_job(self, service: Service, web: Served) -> None:
        """A source and its URL, as whoever has a list of sources sends them."""
        body = {
            "source_id": source(service, web.url("/news")),
            "url": web.url("/news"),
            "interval_minutes": 360,
            "interval_type": "minutes",
            "schedule_enabled": True,
            "max_retries": 3,
            "retry_backoff_seconds": 60,
        }
        made = service.post("/api/v1/jobs", body, 201)
        assert {name: made[name] for name in body} == body
        assert made["source_id"] == made["crawl_id"]
        assert made["status"] == "scheduled"
        assert ISO.fullmatch(made["next_run_at"])
        again = service.post("/api/v1/jobs", {**body, "schedule_enabled": False}, 201)
        assert again["crawl_id"] == made["crawl_id"], "the crawl of a URL is found again"

    def test_the_short_form(self, service: Service, web: Served) -> None:
        body = {"source_id": source(service, web.url("/short")), "url": web.url("/short"), "interval_minutes": 360}
        made = service.post("/api/v1/jobs", {**body, "interval_type": "minutes", "schedule_enabled": True}, 201)
        assert (made["max_retries"], made["retry_backoff_seconds"], made["adaptive_scheduling"]) == (3, 60, True)

    def test_a_one_time_job(self, service: Service, web: Served) -> None:
        body = {"source_id": source(service, web.url("/")), "url": web.url("/"), "schedule_enabled": False}
        made = service.post("/api/v1/jobs", body, 201)
        assert (made["interval_minutes"], made["schedule_enabled"]) == (None, False)
        assert service.ended(made["id"])["status"] == "completed"
        wait_for(lambda: status(service, made["id"]) == "completed", "the job to be over")

    def test_pause_and_force_run(self, service: Service, web: Served) -> None:
        made = service.post("/api/v1/jobs", {"url": web.url("/forced"), **RESTING}, 201)
        assert act(service, made["id"], "pause")["is_paused"] is True
        assert act(service, made["id"], "resume")["is_paused"] is False
        assert act(service, made["id"], "force-run")["status"] == "scheduled"
        assert service.ended(made["id"])["execution_number"] == 1

    def test_a_failed_job_is_tried_again(self, service: Service, web: Served) -> None:
        job = in_state(service, web, "failed")
        assert act(service, job, "retry")["status"] == "pending"
        assert service.ended(job, 2)["status"] == "failed"

    def test_how_the_scheduler_is(self, service: Service) -> None:
        service.get("/health")
        found = service.get("/api/v1/scheduler/metrics")
        assert found["executions"]["success_rate"] is None or 0 <= found["executions"]["success_rate"] <= 1
        assert found["stale_locks_cleared"] == 0
        assert 0 <= service.get("/api/v1/scheduler/distribution")["distribution_score"] <= 1
        assert service.post("/api/v1/scheduler/rebalance/preview")["preview"] is True
        assert service.post("/api/v1/scheduler/rebalance")["preview"] is False


# Making and changing


def _crawl_ids(service: Service) -> list[str]:
    return [one["crawl_id"] for one in service.get("/api/v1/crawls?limit=1000")["items"]]


class TestMaking:
    def test_a_source_and_a_url_have_to_agree(self, service: Service, web: Served) -> None:
        url = web.url("/agreed")
        crawl_id = source(service, url)
        for same in (url, f"{url}/", f"{url}#part"):
            body = {"source_id": crawl_id, "url": same, **RESTING}
            assert service.post("/api/v1/jobs", body, 201)["crawl_id"] == crawl_id
        crawls, jobs = _crawl_ids(service), service.get("/api/v1/jobs/status-counts")
        for other in (web.url("/another"), "https://a.test/", "nothing at all", ""):
            service.post("/api/v1/jobs", {"source_id": crawl_id, "url": other, **RESTING}, 422)
        assert (_crawl_ids(service), service.get("/api/v1/jobs/status-counts")) == (crawls, jobs)

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"source_id": UNKNOWN_SOURCE},
            {"source_id": UNKNOWN_SOURCE, "url": "https://a.test/"},
            {"url": ""},
            {"url": "nothing at all"},
            {"url": "https://a.test/", "interval_minutes": 0},
            {"url": "https://a.test/", "interval_minutes": 1.5},
            {"url": "https://a.test/", "interval_minutes": 5_270_401},
            {"url": "https://a.test/", "interval_minutes": 5_270_400, "interval_type": "days"},
            {"url": "https://a.test/", "interval_type": "weeks"},
            {"url": "https://a.test/", "max_retries": -1},
            {"url": "https://a.test/", "max_retries": 101},
            {"url": "https://a.test/", "max_retries": None},
            {"url": "https://a.test/", "retry_backoff_seconds": 86_401},
            {"url": "https://a.test/", "after_job_id": GHOST},
            {"url": "https://a.test/", "mode": "baseline"},
            {"url": "https://a.test/", "metadata": {"a": "x" * 20_000}},
            {"url": "https://a.test/", "metadata": {"a": functools.reduce(lambda inner, _: [inner], range(300), 1)}},
            {"url": "https://a.test/", "settings": {"workers": "many"}},
            {"url": "https://a.test/", "next_run_at": "2030-01-01T00:00:00Z"},
        ],
    )
    def test_what_cannot_be(self, service: Service, body: dict[str, Any]) -> None:
        crawls, jobs = _crawl_ids(service), service.get("/api/v1/jobs/status-counts")
        error = service.post("/api/v1/jobs", body, 422)["error"]
        assert set(error) == {"code", "message", "hint"}
        assert _crawl_ids(service) == crawls, "nothing is left of it"
        assert sum(service.get("/api/v1/jobs/status-counts").values()) == sum(jobs.values())

    def test_in_camel_case(self, service: Service) -> None:
        body = {
            "sourceId": source(service, "https://example.invalid/camel"),
            "url": "https://example.invalid/camel",
            "intervalMinutes": 7,
            "intervalType": "days",
            "scheduleEnabled": False,
            "adaptiveScheduling": False,
            "maxRetries": 1,
            "retryBackoffSeconds": 5,
            "metadata": {"keepMe": 1},
            "settings": {"maxDepth": 2},
        }
        made = service.post("/api/v1/jobs", body, 201)
        assert (made["interval_minutes"], made["interval_type"], made["max_retries"]) == (7, "days", 1)
        assert (made["retry_backoff_seconds"], made["adaptive_scheduling"]) == (5, False)
        assert made["metadata"] == {"keepMe": 1}
        assert made["task"]["settings"] == {"max_depth": 2}
        changed = service.put(f"/api/v1/jobs/{made['id']}", {"intervalMinutes": 8, "retryBackoffSeconds": 6})
        assert (changed["interval_minutes"], changed["retry_backoff_seconds"]) == (8, 6)
        listed = service.get("/api/v1/jobs", params={"sourceId": made["crawl_id"]})["items"]
        assert [one["id"] for one in listed] == [made["id"]]

    @pytest.mark.parametrize("unit", ["minutes", "hours", "days"])
    def test_every_unit(self, service: Service, unit: str) -> None:
        made = resting(service, interval_minutes=2, interval_type=unit)
        seconds = {"minutes": 120, "hours": 7200, "days": 172_800}[unit]
        assert (made["interval_minutes"], made["current_interval_seconds"]) == (2, seconds)


class TestChanging:
    def test_what_is_left_out_stays(self, service: Service) -> None:
        made = resting(service, metadata={"a": 1}, max_retries=7)
        changed = service.put(f"/api/v1/jobs/{made['id']}", {"interval_minutes": 12, "interval_type": "hours"})
        assert (changed["interval_minutes"], changed["interval_type"]) == (12, "hours")
        assert (changed["max_retries"], changed["metadata"]) == (7, {"a": 1})
        unchanged = service.put(f"/api/v1/jobs/{made['id']}", {})
        assert {**unchanged, "updated_at": ""} == {**changed, "updated_at": ""}

    def test_without_its_interval_it_runs_once_more_and_is_over(self, service: Service, web: Served) -> None:
        made = service.post("/api/v1/jobs", {"url": web.url("/"), **RESTING, "max_retries": 0}, 201)
        changed = service.put(f"/api/v1/jobs/{made['id']}", {"interval_minutes": None})
        assert changed["interval_minutes"] is None
        service.ended(made["id"])
        wait_for(lambda: status(service, made["id"]) in ("completed", "failed"), "the job to be over")
        assert service.get(f"/api/v1/jobs/{made['id']}")["next_run_at"] is None

    def test_a_paused_one_without_its_interval_stays_paused(self, service: Service) -> None:
        made = resting(service)
        act(service, made["id"], "pause")
        changed = service.put(f"/api/v1/jobs/{made['id']}", {"intervalMinutes": None})
        assert (changed["status"], changed["next_run_at"]) == ("paused", None)

    @pytest.mark.parametrize(
        "body",
        [
            {"interval_minutes": 0},
            {"interval_type": "weeks"},
            {"max_retries": 101},
            {"after_job_id": GHOST, "interval_minutes": None},
            {"status": "completed"},
            {"url": "https://other.invalid/"},
            {"metadata": {"a": "x" * 20_000}},
        ],
    )
    def test_what_cannot_be(self, service: Service, body: dict[str, Any]) -> None:
        made = resting(service)
        service.put(f"/api/v1/jobs/{made['id']}", body, 422)
        assert service.get(f"/api/v1/jobs/{made['id']}") == made


# One job


class TestUnknown:
    @pytest.mark.parametrize("action", list(Action))
    def test_nothing_can_be_done_to_it(self, service: Service, action: Action) -> None:
        error = act(service, GHOST, action, 404)["error"]
        assert GHOST in error["message"]

    @pytest.mark.parametrize("part", ["", "/stats", "/executions", "/logs"])
    def test_nothing_is_known_of_it(self, service: Service, part: str) -> None:
        service.get(f"/api/v1/jobs/{GHOST}{part}", 404)

    def test_the_rest(self, service: Service) -> None:
        service.put(f"/api/v1/jobs/{GHOST}", {"max_retries": 1}, 404)
        service.delete(f"/api/v1/jobs/{GHOST}", 404)
        service.get("/api/v1/executions/999999999", 404)
        for wrong in ("0", "-1", "x", str(1 << 63)):
            service.get(f"/api/v1/executions/{wrong}", 422)


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "paused", "completed", "failed", "cancelled"])
def test_every_action_in_every_state(service: Service, web: Served, state: str) -> None:
    """What the table of states refuses is a 409 that says what is possible instead, and changes nothing."""
    job = in_state(service, web, state)
    for action in Action:
        if state not in [one.value for one in ACTIONS[action]]:
            error = act(service, job, action, 409)["error"]
            assert error["code"] == "not_now"
            assert state in error["message"]
            assert status(service, job) == state
    if state == "running":
        service.delete(f"/api/v1/jobs/{job}", 409)
    crawl_id = service.get(f"/api/v1/jobs/{job}")["crawl_id"]
    for one in service.get("/api/v1/jobs", params={"source_id": crawl_id})["items"]:
        if one["status"] in ("pending", "running"):
            assert act(service, one["id"], "cancel")["status"] == "cancelled"
    wait_for(lambda: not service.get(f"/api/v1/jobs/{job}")["is_locked"], "its execution to end")
    service.delete(f"/api/v1/jobs/{job}")
    service.get(f"/api/v1/jobs/{job}", 404)


# Lists


class TestLists:
    def test_120_jobs_without_gaps_or_repeats(self, service: Service) -> None:
        made = [resting(service, url="https://example.invalid/many") for _ in range(120)]
        source = made[0]["crawl_id"]
        for limit in (1000, 120, 50, 7):
            assert self._all(service, limit, source) == [one["id"] for one in made], limit
        late = resting(service, url="https://example.invalid/many")
        first = service.get("/api/v1/jobs", params={"source_id": source, "limit": 100})
        service.delete(f"/api/v1/jobs/{first['items'][-1]['id']}")
        params = {"source_id": source, "limit": 100, "cursor": first["next_cursor"]}
        rest = service.get("/api/v1/jobs", params=params)
        assert [one["id"] for one in rest["items"]] == [one["id"] for one in (*made[100:], late)]
        assert rest["next_cursor"] is None

    def _all(self, service: Service, limit: int, source: str) -> list[str]:
        found: list[str] = []
        params: dict[str, Any] = {"source_id": source, "limit": limit}
        while True:
            page = service.get("/api/v1/jobs", params=params)
            assert len(page["items"]) <= limit
            found += [one["id"] for one in page["items"]]
            if page["next_cursor"] is None:
                return found
            params["cursor"] = page["next_cursor"]

    def test_by_state_and_how_many_there_are(self, service: Service) -> None:
        job = resting(service, url="https://example.invalid/states")
        act(service, job["id"], "pause")
        paused = service.get("/api/v1/jobs", params={"status": "paused", "limit": 1000})["items"]
        assert job["id"] in [one["id"] for one in paused]
        assert {one["status"] for one in paused} == {"paused"}
        counts = service.get("/api/v1/jobs/status-counts")
        assert set(counts) == {"pending", "scheduled", "running", "paused", "completed", "failed", "cancelled"}
        assert counts["paused"] == len(paused)
        both = {"status": "paused", "source_id": job["crawl_id"]}
        assert [one["id"] for one in service.get("/api/v1/jobs", params=both)["items"]] == [job["id"]]

    @pytest.mark.parametrize(
        ("query", "code"),
        [("cursor=nonsense", 400), ("cursor=WzFd", 400), ("limit=0", 422), ("limit=1001", 422), ("status=odd", 422)],
    )
    def test_a_list_that_cannot_be(self, service: Service, query: str, code: int) -> None:
        service.get(f"/api/v1/jobs?{query}", code)

    def test_a_cursor_of_another_list(self, service: Service) -> None:
        resting(service)
        resting(service)
        cursor = service.get("/api/v1/jobs?limit=1")["next_cursor"]
        job = resting(service)
        service.get(f"/api/v1/jobs/{job['id']}/executions", 400, params={"cursor": cursor})


# Chains


class TestChains:
    def test_the_second_runs_when_the_first_is_over(self, service: Service, web: Served) -> None:
        first = service.post("/api/v1/jobs", {"url": web.url("/"), **RESTING, "settings": {"delay": 0}}, 201)
        second = service.post("/api/v1/jobs", {"url": web.url("/2"), "afterJobId": first["id"]}, 201)
        assert (second["status"], second["next_run_at"]) == ("scheduled", None)
        service.delete(f"/api/v1/jobs/{first['id']}", 409)
        act(service, first["id"], "force-run")
        service.ended(first["id"])
        service.ended(second["id"])
        wait_for(lambda: not service.get(f"/api/v1/jobs/{second['id']}")["is_locked"], "the second to be free")
        service.delete(f"/api/v1/jobs/{second['id']}")
        service.delete(f"/api/v1/jobs/{first['id']}")

    def test_no_circles(self, service: Service) -> None:
        first = resting(service)
        second = resting(service, interval_minutes=None, schedule_enabled=True, after_job_id=first["id"])
        third = resting(service, interval_minutes=None, schedule_enabled=True, after_job_id=second["id"])
        for last in (first, second, third):
            wish = {"after_job_id": last["id"], "interval_minutes": None}
            error = service.put(f"/api/v1/jobs/{first['id']}", wish, 422)["error"]
            assert "wait for each other" in error["message"]
        service.delete(f"/api/v1/jobs/{second['id']}", 409)
        assert service.get(f"/api/v1/jobs/{first['id']}") == first

    def test_by_the_clock_or_after_another(self, service: Service) -> None:
        first = resting(service)
        body = {"url": "https://example.invalid/both", "interval_minutes": 5, "after_job_id": first["id"]}
        service.post("/api/v1/jobs", body, 422)
        other = resting(service)
        service.put(f"/api/v1/jobs/{other['id']}", {"after_job_id": first["id"]}, 422)


# Executions and logs


@pytest.fixture(scope="module")
def ran(service: Service, web: Served) -> dict[str, Any]:
    job = service.post("/api/v1/jobs", {"url": web.url("/"), **RESTING, "settings": {"delay": 0}}, 201)
    for number in (1, 2, 3):
        act(service, job["id"], "force-run")
        service.ended(job["id"], number)
        wait_for(lambda: status(service, job["id"]) == "scheduled", "it to be scheduled again")
    found: dict[str, Any] = service.get(f"/api/v1/jobs/{job['id']}")
    return found


class TestExecutions:
    def test_the_figures(self, service: Service, ran: dict[str, Any]) -> None:
        newest, _, oldest = service.get(f"/api/v1/jobs/{ran['id']}/executions")["items"]
        assert (newest["execution_number"], oldest["execution_number"]) == (3, 1)
        assert oldest["items_crawled"] == 4
        for one in (newest, oldest):
            assert one["status"] == "completed"
            assert one["started_at"] <= one["completed_at"]
            assert one["duration_ms"] > 0
            assert one["cpu_time_ms"] > 0
            assert one["memory_peak_mb"] > 5
            assert (one["retry_attempt"], one["error_message"], one["stack_trace"]) == (0, None, None)
            assert service.get(f"/api/v1/executions/{one['id']}") == one

    def test_the_whole_of_them(self, service: Service, ran: dict[str, Any]) -> None:
        found = service.get(f"/api/v1/jobs/{ran['id']}/stats")
        items = service.get(f"/api/v1/jobs/{ran['id']}/executions")["items"]
        assert (found["total_executions"], found["successful_executions"], found["failed_executions"]) == (3, 3, 0)
        assert found["success_rate"] == 1
        assert found["total_items_crawled"] == sum(one["items_crawled"] for one in items)
        assert found["total_cpu_time_ms"] == sum(one["cpu_time_ms"] for one in items)
        assert found["memory_peak_mb"] == max(one["memory_peak_mb"] for one in items)
        assert found["average_duration_ms"] == pytest.approx(sum(one["duration_ms"] for one in items) / 3, abs=1)
        assert found["last_success_at"] == items[0]["completed_at"]
        assert found["last_failure_at"] is None

    def test_page_by_page(self, service: Service, ran: dict[str, Any]) -> None:
        path, numbers, cursor = f"/api/v1/jobs/{ran['id']}/executions", [], None
        for _ in range(3):
            page = service.get(path, params={"limit": 1, **({"cursor": cursor} if cursor else {})})
            numbers += [one["execution_number"] for one in page["items"]]
            cursor = page["next_cursor"]
        assert (numbers, cursor) == ([3, 2, 1], None)

    def test_its_log(self, service: Service, ran: dict[str, Any]) -> None:
        path = f"/api/v1/jobs/{ran['id']}/logs"
        first = service.get(f"/api/v1/jobs/{ran['id']}/executions")["items"][-1]["id"]
        shown = service.client.get(path)
        assert shown.headers["content-type"].startswith("text/plain")
        assert "content-disposition" not in shown.headers
        assert "Execution 3" in shown.text
        kept = service.client.get(path, params={"execution_id": first, "download": "true"})
        assert kept.headers["content-disposition"] == f'attachment; filename="execution-{first}.log"'
        assert "Execution 1" in kept.text
        assert all(ISO.fullmatch(line.split()[0]) for line in kept.text.splitlines())

    def test_logs_that_are_not_there(self, service: Service, ran: dict[str, Any]) -> None:
        never = resting(service)
        service.get(f"/api/v1/jobs/{never['id']}/logs", 409)
        foreign = service.get(f"/api/v1/jobs/{ran['id']}/executions")["items"][0]["id"]
        service.get(f"/api/v1/jobs/{never['id']}/logs", 404, params={"execution_id": foreign})
        service.get(f"/api/v1/jobs/{ran['id']}/logs", 404, params={"executionId": 999_999_999})
        service.get(f"/api/v1/jobs/{ran['id']}/logs", 422, params={"execution_id": "last"})

    def test_one_that_failed_says_why(self, service: Service, web: Served) -> None:
        job = in_state(service, web, "failed")
        found = service.ended(job)
        assert found["error_message"]
        assert found["items_crawled"] == 0
        stats = service.get(f"/api/v1/jobs/{job}/stats")
        assert (stats["success_rate"], stats["last_failure_at"]) == (0, found["completed_at"])


# The scheduler and the sources


class TestScheduler:
    def test_the_day(self, service: Service) -> None:
        before = service.get("/api/v1/scheduler/distribution")
        made = resting(service, url="https://example.invalid/day", interval_minutes=10, interval_type="days")
        service.put(f"/api/v1/jobs/{made['id']}", {"schedule_enabled": True})
        after = service.get("/api/v1/scheduler/distribution")
        slot = service.get(f"/api/v1/jobs/{made['id']}")["slot"]
        assert len(after["slots"]) == 96
        assert after["slots"][5]["starts_at"] == "01:15"
        assert sum(one["jobs"] for one in after["slots"]) == after["total_jobs"]
        if slot is not None:
            assert after["slots"][slot]["jobs"] == before["slots"][slot]["jobs"] + 1
        service.post("/api/v1/scheduler/metrics", status=405)

    def test_rebalance(self, tmp_path: Path) -> None:
        """Jobs whose places are all within the next hour, and then have a whole day to go to."""
        with serving(tmp_path / "home", "--no-scheduler") as service:
            body = {"url": "https://example.invalid/", "interval_minutes": 60}
            jobs = [service.post("/api/v1/jobs", body, 201)["id"] for _ in range(40)]
            for job in jobs:
                service.put(f"/api/v1/jobs/{job}", {"max_retries": 2})
            before = service.get("/api/v1/scheduler/distribution")
            assert before["advice"]
            preview = service.post("/api/v1/scheduler/rebalance/preview")
            assert service.get("/api/v1/scheduler/distribution") == before, "a preview changes nothing"
            done = service.post("/api/v1/scheduler/rebalance")
            assert [one["job_id"] for one in done["moves"]] == [one["job_id"] for one in preview["moves"]]
            assert done["score_after"] == preview["score_after"] >= done["score_before"]
            assert service.get("/api/v1/scheduler/distribution")["distribution_score"] == done["score_after"]
            for one in done["moves"]:
                assert service.get(f"/api/v1/jobs/{one['job_id']}")["next_run_at"] == one["to"]
            assert service.post("/api/v1/scheduler/rebalance")["moved"] == 0, "nobody is moved twice within the hour"

    def test_sources_and_their_jobs(self, tmp_path: Path) -> None:
        with serving(tmp_path / "home", "--no-scheduler") as service:
            sources = [
                service.put("/api/v1/config", {"url": f"https://example.invalid/{n}"})["crawl_id"] for n in range(3)
            ]
            off = service.client.patch(f"/api/v1/crawl/{sources[2]}", json={"enabled": False})
            assert off.json()["enabled"] is False
            first = service.post("/api/v1/admin/sync-enabled-sources")
            assert first == {"created": 2, "resumed": 0, "paused": 0, "unchanged": 0}
            jobs = service.get("/api/v1/jobs")["items"]
            assert {one["source_id"] for one in jobs} == set(sources[:2])
            again = service.post("/api/v1/admin/sync-enabled-sources")
            assert again == {"created": 0, "resumed": 0, "paused": 0, "unchanged": 2}

            service.client.patch(f"/api/v1/crawl/{sources[0]}", json={"enabled": False}).raise_for_status()
            paused = service.get("/api/v1/jobs", params={"source_id": sources[0]})["items"][0]
            assert (paused["status"], paused["reason"]) == ("paused", "source_disabled")
            service.client.patch(f"/api/v1/crawl/{sources[0]}", json={"enabled": True}).raise_for_status()
            assert status(service, paused["id"]) == "scheduled"

            act(service, paused["id"], "pause")
            service.client.patch(f"/api/v1/crawl/{sources[0]}", json={"enabled": True}).raise_for_status()
            service.post("/api/v1/admin/sync-enabled-sources")
            assert status(service, paused["id"]) == "paused", "what a person paused stays so"
