"""The routes about iterations, asked as their users ask them."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.flow.crawling import page
from tests.service.in_process import PATIENCE, VALUES, Api, serving

from inchworm.app import Start
from inchworm.app.act.jobs.change import WantedJob
from inchworm.errors import NotNow
from inchworm.job import JobFilter, JobRepetition, Task
from inchworm.rules.words.json_form import json_form
from inchworm.service.api.iterations import NEXT
from inchworm.testing import Hit, Page, Served, Site

BASELINE = {"total_documents", "urls_crawled", "urls_failed"}
CHANGES = {f"{kind}_documents" for kind in ("new", "modified", "unchanged", "deleted", "unknown")}
FIELDS = {
    *("iteration_id", "crawl_id", "iteration_number", "parent_iteration_id", "baseline_iteration_id", "mode"),
    *("started_at", "completed_at", "duration_seconds", "stats", "state", "branch_of", "on_line", "alarm"),
}
HOSTILE = ["%2e%2e", "%00", "x" * 5000, "..%2f..%2fhome.db", "'%20OR%201=1--", "%F0%9F%90%9B", "%C3%28", "-1"]


class Pages(dict[str, Any]):
    """A small site that can be changed, slowed down and stopped."""

    def __init__(self) -> None:
        super().__init__()
        self["/"] = page("start", "/a", "/b", "/c", "/gone")
        self |= {f"/{name}": page(name, "/") for name in ("a", "b", "c")}
        self.gate = threading.Event()

    def change(self) -> None:
        """One page new, one modified, the others as they were."""
        self["/a"] = page("a says something else", "/", "/new")
        self["/new"] = page("new", "/")

    def hold(self, path: str) -> None:
        """A page that does not answer before the test says so."""
        text = self[path]

        def answer(_: Hit) -> Page:
            return Page(text, delay=0.0 if self.gate.is_set() else 600.0)

        self[path] = answer


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def served(pages: Pages) -> Iterator[Served]:
    with Site(pages, validators=True).serve() as made:
        yield made


@pytest.fixture
def api(tmp_path, served: Served) -> Iterator[Api]:
    """Ends before the site does, so that nobody asks for what is gone."""
    with serving(tmp_path / "home") as made:
        yield made


@pytest.fixture
def idle(tmp_path) -> Iterator[Api]:
    """Nobody runs jobs here."""
    with serving(tmp_path / "home", jobs=False) as made:
        yield made


@pytest.fixture
def crawl_id(api: Api, served: Served) -> str:
    """A crawl with a complete baseline."""
    return api.crawled(served.url())


# The examples


def test_a_daily_incremental_crawl(api: Api, served: Served, pages: Pages) -> None:
    begun = api.post("/crawl", 202, body={"targets": [served.url()], "crawler": "scrapy", "delay": 0})
    crawl_id = begun["crawl_id"]
    api.ended(begun["job_id"])
    api.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"settings": {"delay": 0}})
    configured = api.post(
        f"/crawl/{crawl_id}/iterations",
        body={
            "max_iterations": 30,
            "iteration_interval_hours": 24,
            "mode": "incremental",
            "stop_if_no_changes": True,
        },
    )
    assert configured["baseline_iteration_id"] == f"{crawl_id}_iter_0"
    pages.change()
    started = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="incremental")
    assert started["iteration_id"] == f"{crawl_id}_iter_1"
    assert started["job_id"] == configured["job_id"]
    api.ended(started["job_id"])
    comparison = api.get(f"/crawl/{crawl_id}/iterations/compare", baseline=0, current=1)
    assert (len(comparison["new_documents"]), len(comparison["modified_documents"])) == (1, 1)


# Looking


def test_the_list(api: Api, crawl_id: str, pages: Pages) -> None:
    pages.change()
    api.run_once(crawl_id, Task("recrawl"))
    baseline, again = api.get(f"/crawl/{crawl_id}/iterations")
    assert set(baseline) == set(again) == FIELDS
    assert baseline["stats"] == {"total_documents": 4, "urls_crawled": 5, "urls_failed": 1}
    assert set(again["stats"]) == BASELINE | CHANGES
    assert {name: again["stats"][name] for name in CHANGES} == {
        "new_documents": 1,
        "modified_documents": 1,
        "unchanged_documents": 3,
        "deleted_documents": 0,
        "unknown_documents": 0,
    }
    assert (baseline["parent_iteration_id"], baseline["baseline_iteration_id"]) == (None, None)
    assert again["parent_iteration_id"] == again["baseline_iteration_id"] == f"{crawl_id}_iter_0"
    assert [one["mode"] for one in (baseline, again)] == ["baseline", "incremental"]
    assert all(one["state"] == "completed" and one["completed_at"].endswith("Z") for one in (baseline, again))
    assert all(one["duration_seconds"] > 0 for one in (baseline, again))
    assert api.get(f"/crawl/{crawl_id}/iterations/1") == again


def test_the_list_in_parts(api: Api, crawl_id: str) -> None:
    for _ in range(2):
        api.run_once(crawl_id, Task("recrawl"))
    seen, cursor = [], ""
    while True:
        query = {"limit": 1, **({"cursor": cursor} if cursor else {})}
        answer = api.request("GET", f"/crawl/{crawl_id}/iterations", params=query)
        seen += [one["iteration_number"] for one in answer.json()]
        cursor = answer.headers.get(NEXT, "")
        if not cursor:
            break
    assert seen == [0, 1, 2]
    for wrong in ("x", "bnVsbA", "WzFd", "Im5vdGhpbmci"):
        answer = api.request("GET", f"/crawl/{crawl_id}/iterations", params={"cursor": wrong})
        assert answer.status_code in (200, 400), answer.text
    api.get(f"/crawl/{crawl_id}/iterations", 422, limit=0)


def test_a_baseline_of_a_later_series(api: Api, crawl_id: str) -> None:
    """A run's baseline is the one it goes back to, not the first of all."""
    start = Start(api.app.workspace.find(crawl_id).seeds, given={"delay": 0, "allow_private": True}, fresh=True)
    asyncio.run(api.app.sessions.work(api.app.plan.crawl(start)))
    api.run_once(crawl_id, Task("recrawl"))
    listed = api.get(f"/crawl/{crawl_id}/iterations")
    assert [one["baseline_iteration_id"] for one in listed] == [None, None, f"{crawl_id}_iter_1"]
    made = api.post(f"/crawl/{crawl_id}/iterations", body={})
    assert made["baseline_iteration_id"] == f"{crawl_id}_iter_1"


def test_a_crawl_that_never_ran(idle: Api) -> None:
    crawl_id = idle.make("http://127.0.0.1:9/")
    assert idle.get(f"/crawl/{crawl_id}/iterations") == []
    idle.get(f"/crawl/{crawl_id}/iterations/0", 404)
    idle.get(f"/crawl/{crawl_id}/iterations/compare", 409)
    stats = idle.get(f"/crawl/{crawl_id}/iterations/stats")
    assert (stats["crawl_id"], stats["runs"], stats["iterations"], stats["per_run"]) == (crawl_id, 0, 0, [])
    assert not any(stats["totals"].values()), "nothing was asked for, and nothing was saved"


def test_comparing(api: Api, crawl_id: str, pages: Pages, served: Served) -> None:
    assert "builds on no other" in api.get(f"/crawl/{crawl_id}/iterations/compare", 409)["message"]
    pages.change()
    del pages["/c"]
    api.run_once(crawl_id, Task("recrawl"))
    found = api.get(f"/crawl/{crawl_id}/iterations/compare")
    assert found == api.get(f"/crawl/{crawl_id}/iterations/compare", baseline=0, current=1)
    assert found["deleted_documents"] == [served.url("/c")]
    assert (found["total_changes"], found["has_changes"]) == (3, True)
    assert found["summary"] == "Iteration 1 vs 0: 1 new, 1 modified, 1 deleted, 2 unchanged"
    back = api.get(f"/crawl/{crawl_id}/iterations/compare", baseline=1, current=0)
    assert back["deleted_documents"] == found["new_documents"]
    api.get(f"/crawl/{crawl_id}/iterations/compare", 404, baseline=0, current=7)
    for wrong in ("-1", "x", "1.5", str(10**20), ""):
        api.get(f"/crawl/{crawl_id}/iterations/compare", 422, baseline=wrong)


def test_what_runs_cost(api: Api, crawl_id: str) -> None:
    api.run_once(crawl_id, Task("recrawl"))
    found = api.get(f"/crawl/{crawl_id}/iterations/stats")
    assert (found["crawl_id"], found["runs"], found["iterations"]) == (crawl_id, 2, 1)
    assert [line["requests"] for line in found["per_run"]] == [5, 5]
    assert found["totals"]["bytes_saved"] > 0


@pytest.mark.parametrize("number", ["-1", "x", str(10**20), "9" * 5000, "0x1", "%00"])
def test_numbers_that_are_none(idle: Api, number: str) -> None:
    idle.get(f"/crawl/{idle.make('http://127.0.0.1:9/')}/iterations/{number}", 422)


@pytest.mark.parametrize("word", HOSTILE)
def test_crawls_that_there_are_not(idle: Api, word: str) -> None:
    idle.make("http://127.0.0.1:9/")
    for method, path in (
        *(("GET", "/iterations"), ("POST", "/iterations"), ("GET", "/iterations/0")),
        *(("GET", "/iterations/compare"), ("GET", "/iterations/stats"), ("POST", "/iterations/next")),
    ):
        options = {"json": {}} if path == "/iterations" else {}
        idle.ask(method, f"/crawl/{word}{path}", 422 if len(word) > 200 else 404, **options)


def test_a_name_is_not_an_id(idle: Api) -> None:
    crawl_id = idle.make("http://127.0.0.1:9/")
    idle.get(f"/crawl/{idle.app.workspace.find(crawl_id).name}/iterations", 404)


# The next run


def test_the_next_run(api: Api, crawl_id: str, pages: Pages) -> None:
    pages.change()
    made = api.post(f"/crawl/{crawl_id}/iterations/next", 202)
    assert {name: made[name] for name in ("crawl_id", "iteration_id", "iteration_number", "mode", "session")} == {
        "crawl_id": crawl_id,
        "iteration_id": f"{crawl_id}_iter_1",
        "iteration_number": 1,
        "mode": "incremental",
        "session": 1,
    }
    api.ended(made["job_id"])
    full = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="full")
    assert (full["mode"], full["iteration_number"]) == ("full", 2)
    api.ended(full["job_id"])
    assert [one["mode"] for one in api.get(f"/crawl/{crawl_id}/iterations")] == ["baseline", "incremental", "full"]
    for wrong in ("baseline", "x", ""):
        api.post(f"/crawl/{crawl_id}/iterations/next", 422, mode=wrong)


def test_the_first_run_is_the_baseline(api: Api, served: Served) -> None:
    crawl_id = api.make(served.url())
    made = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="full")
    assert (made["iteration_id"], made["mode"]) == (f"{crawl_id}_iter_0", "baseline")
    api.ended(made["job_id"])


def test_not_while_a_run_is_open(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url(), budget=2)
    assert api.status(crawl_id)["run_state"] == "paused"
    assert "not complete" in api.post(f"/crawl/{crawl_id}/iterations/next", 409)["message"]
    assert len(api.get(f"/crawl/{crawl_id}/iterations")) == 1


def test_not_while_it_is_worked_on(api: Api, crawl_id: str, pages: Pages) -> None:
    pages.hold("/b")
    made = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="full")
    assert api.get(f"/crawl/{crawl_id}/iterations/1")["state"] == "in_progress"
    api.post(f"/crawl/{crawl_id}/iterations/next", 409)
    pages.gate.set()
    api.app.schedule.cancel(made["job_id"])


def test_not_while_a_job_waits(idle: Api) -> None:
    crawl_id = idle.make("http://127.0.0.1:9/")
    job = idle.app.schedule.add(WantedJob(crawl=idle.app.workspace.find(crawl_id), task=Task()))
    assert job.id in idle.post(f"/crawl/{crawl_id}/iterations/next", 409)["message"]
    idle.app.schedule.cancel(job.id)
    made = idle.post(f"/crawl/{crawl_id}/iterations/next", 202)
    assert (made["iteration_id"], made["iteration_number"], made["session"]) == (None, None, None)


def test_two_at_once_make_one_run(api: Api, crawl_id: str) -> None:
    path = f"/crawl/{crawl_id}/iterations/next"
    with ThreadPoolExecutor(6) as many:
        answers = list(many.map(lambda _: api.request("POST", path), range(6)))
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 5]
    api.ended(next(answer.json()["job_id"] for answer in answers if answer.status_code == 202))
    assert len(api.get(f"/crawl/{crawl_id}/iterations")) == 2


def test_a_session_that_cannot_begin_is_told(api: Api, crawl_id: str) -> None:
    """Somebody else works on the crawl when the process of the job gets there."""
    with api.app.workspace.owning(api.app.workspace.find(crawl_id), 60):
        job = api.app.schedule.add(WantedJob(crawl_id, task=Task("recrawl"), max_retries=0))
        with pytest.raises(NotNow, match=r"could not begin.*is being worked on"):
            api.app.executions.begun(job.id, lambda: None, seconds=PATIENCE)


# The job that repeats


def configured(api: Api, crawl_id: str, status: int = 200, **body: Any) -> Any:
    return api.post(f"/crawl/{crawl_id}/iterations", status, body=body)


@pytest.fixture
def made(idle: Api) -> str:
    """A crawl that nobody runs."""
    return idle.make("http://127.0.0.1:9/")


def test_what_is_answered(idle: Api, made: str) -> None:
    answer = configured(idle, made, max_iterations=5, iteration_interval_hours=24.0, mode="incremental")
    job_id, due = answer.pop("job_id"), answer.pop("next_run_at")
    assert answer == {
        "crawl_id": made,
        "baseline_iteration_id": f"{made}_iter_0",
        "configured_iterations": 5,
        "mode": "incremental",
        "message": "Multi-iteration crawl configured",
        "status": "scheduled",
    }
    job = idle.app.jobs.one(job_id)
    assert (job.line.interval_minutes, job.line.interval_type, job.line.next_run_at) == (24, "hours", due)
    assert not job.line.adaptive_scheduling
    assert json_form(job.line.repetition) == {
        "max_iterations": 5,
        "stop_if_no_changes": False,
        "notify": 0,
        "notify_on": "changes",
        "notify_if": [],
        "guarded": False,
    }


def test_there_is_one_job_which_is_changed(idle: Api, made: str) -> None:
    first = configured(idle, made, max_iterations=5, iteration_interval_hours=24, budget=100, mode="full")
    assert idle.app.jobs.one(first["job_id"]).line.task.settings == {"budget": 100}
    second = configured(idle, made, max_iterations=3, stop_if_no_changes=True, notify_on_completion=True)
    assert second["job_id"] == first["job_id"]
    job = idle.app.jobs.one(first["job_id"])
    assert (job.line.interval_minutes, job.line.next_run_at, job.line.status) == (None, None, "scheduled")
    assert (job.line.task.mode, job.line.task.settings) == ("incremental", {})
    assert job.line.repetition.max_iterations == 3 and job.line.repetition.notify_on == "completion"
    assert "by hand" in second["message"] and "nobody is told" in second["message"]
    assert len(idle.app.jobs.listed(JobFilter(crawl_id=made))) == 1
    idle.app.schedule.change(first["job_id"], WantedJob(interval_minutes=1))
    idle.app.schedule.pause(first["job_id"])
    paused = configured(idle, made, iteration_interval_hours=1)
    assert (paused["job_id"], paused["status"]) == (first["job_id"], "paused")
    assert "has to be resumed" in paused["message"]
    idle.app.schedule.cancel(first["job_id"])
    assert configured(idle, made)["job_id"] != first["job_id"], "what has ended is history"


def test_the_first_run_waits_for_the_interval(api: Api, crawl_id: str) -> None:
    """Counted from the start of the last one; when that is long ago, or there is none, the next free place is taken."""
    began = datetime.fromisoformat(api.get(f"/crawl/{crawl_id}/iterations/0")["started_at"])
    answer = configured(api, crawl_id, iteration_interval_hours=24)
    assert datetime.fromisoformat(answer["next_run_at"]) == began + timedelta(hours=24)
    again = configured(api, crawl_id, iteration_interval_hours=0.5)
    assert datetime.fromisoformat(again["next_run_at"]) == began + timedelta(minutes=30)
    assert api.app.jobs.one(answer["job_id"]).line.schedule_enabled


def test_an_interval_while_the_first_run_is_awaited(idle: Api, made: str) -> None:
    idle.app.schedule.add(WantedJob(crawl=idle.app.workspace.find(made), task=Task()))
    due = datetime.fromisoformat(configured(idle, made, iteration_interval_hours=24)["next_run_at"])
    assert due > datetime.now(UTC) + timedelta(hours=23)


def test_many_at_once_make_one_job(idle: Api, made: str) -> None:
    with ThreadPoolExecutor(6) as many:
        answers = list(many.map(lambda _: configured(idle, made, iteration_interval_hours=24), range(6)))
    assert len({answer["job_id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("hours", "interval"), [(1, (1, "hours")), (0.5, (30, "minutes")), (1.75, (105, "minutes")), (0.02, (1, "minutes"))]
)
def test_intervals(idle: Api, made: str, hours: float, interval: tuple[int, str]) -> None:
    job = idle.app.jobs.one(configured(idle, made, iteration_interval_hours=hours)["job_id"])
    assert (job.line.interval_minutes, job.line.interval_type) == interval


@pytest.mark.parametrize(
    "body",
    [
        *({"iteration_interval_hours": hours} for hours in (0, -1, 0.001, 1e9, "x", [])),
        *({"max_iterations": number} for number in (0, -1, 1.5, 10**20, "x")),
        *({"mode": mode} for mode in ("baseline", "", None, 1)),
        *({"budget": budget} for budget in (-1, 10**20, "x")),
        *({"notify": notify} for notify in ("https://example.org/", [1], ["https://example.org/"] * 21, ["x" * 2001])),
        *({"stop_if_no_changes": None}, {"notify_on_completion": "perhaps"}, {"surprise": 1}),
    ],
    ids=str,
)
def test_wrong_wishes(idle: Api, made: str, body: dict[str, Any]) -> None:
    configured(idle, made, 422, **body)
    assert idle.app.jobs.listed(JobFilter(crawl_id=made)) == []


def test_bodies_that_are_no_wishes(idle: Api, made: str) -> None:
    path = f"/crawl/{made}/iterations"
    assert idle.ask("POST", path, 400, content=b"{", headers={"Content-Type": "application/json"})["code"] == "bad_json"
    idle.ask("POST", path, 422)
    for body in ([], "text", 7, None):
        idle.ask("POST", path, 422, json=body)


def test_either_spelling(idle: Api, made: str) -> None:
    answer = configured(idle, made, maxIterations=5, iterationIntervalHours=2, stopIfNoChanges=True)
    job = idle.app.jobs.one(answer["job_id"])
    assert (job.line.interval_minutes, job.line.repetition.stop_if_no_changes) == (2, True)


PRIVATE = [
    *("http://127.0.0.1/hook", "http://localhost:9/", "https://LOCALHOST./", "http://a.localhost/", "http://[::1]/"),
    *("http://10.1.2.3/", "http://192.168.0.1:8080/x", "http://169.254.169.254/latest/meta-data", "http://0/"),
    *("http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/"),
    *("http://user:secret@127.0.0.1/", "http://１２７.0.0.1/", "http://172.16.0.1/", "http://[fc00::1]/"),
]
NO_HOOK = ["mailto://x@example.org", "ftp://example.org/", "file:///etc/passwd", "", "x", "https://", "http://\x00/"]


@pytest.mark.parametrize("address", [*PRIVATE, *NO_HOOK])
def test_whom_callers_may_not_have_told(tmp_path, address: str) -> None:
    careful = dataclasses.replace(VALUES, allow_private=False)
    with serving(tmp_path / "home", values=careful, jobs=False) as idle:
        crawl_id = idle.make("https://example.org/")
        error = configured(idle, crawl_id, 422, notify=["https://example.org/hook", address])
        assert "secret" not in error["message"] + error["hint"]
        assert idle.app.jobs.listed(JobFilter(crawl_id=crawl_id)) == []
        public = configured(idle, crawl_id, notify=["https://example.org/hook?key=1", "http://8.8.8.8:8000/"])
        assert idle.app.jobs.one(public["job_id"]).line.repetition.notify == 2


def test_a_service_that_may(idle: Api, made: str) -> None:
    job_id = configured(idle, made, notify=PRIVATE[:3])["job_id"]
    assert idle.app.jobs.store.get(job_id).repetition == JobRepetition(
        max_iterations=None,
        stop_if_no_changes=False,
        notify=tuple(PRIVATE[:3]),
        notify_on="changes",
        allow_private=True,
    )
    for address in NO_HOOK:
        configured(idle, made, 422, notify=[address])


def test_runs_until_there_are_enough(api: Api, served: Served, pages: Pages) -> None:
    """With an interval the first run, the baseline, comes by itself; `next` brings the others forward."""
    crawl_id = api.make(served.url())
    job_id = configured(api, crawl_id, max_iterations=2, iteration_interval_hours=0.25)["job_id"]
    for number in range(1, 3):
        api.ended(job_id, number)
        assert api.app.jobs.one(job_id).line.status == "scheduled"
        pages[f"/more{number}"] = page(f"more {number}")
        pages["/a"] = page("a", "/", *(f"/more{one}" for one in range(1, number + 1)))
        made = api.post(f"/crawl/{crawl_id}/iterations/next", 202)
        assert (made["job_id"], made["iteration_number"]) == (job_id, number), "it is the job of the crawl that runs"
    api.ended(job_id, 3)
    told = api.get(f"/jobs/{job_id}")
    assert (told["status"], told["reason"]) == ("completed", "max_iterations")
    listed = api.get(f"/crawl/{crawl_id}/iterations")
    assert [(one["mode"], one["stats"].get("new_documents")) for one in listed] == [
        ("baseline", None),
        ("incremental", 1),
        ("incremental", 1),
    ]
    assert "more than 2" in configured(api, crawl_id, 409, max_iterations=2)["hint"]
    assert configured(api, crawl_id, max_iterations=3)["job_id"] != job_id


def test_a_job_that_would_do_something_else_is_left_alone(api: Api, crawl_id: str) -> None:
    job_id = configured(api, crawl_id, mode="incremental")["job_id"]
    assert api.app.jobs.one(job_id).line.next_run_at is None
    other = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="full")
    assert other["job_id"] != job_id and other["mode"] == "full"
    api.ended(other["job_id"])
    own = api.post(f"/crawl/{crawl_id}/iterations/next", 202, mode="incremental")
    assert own["job_id"] == job_id
    api.ended(job_id)
    assert api.app.jobs.one(job_id).line.status == "scheduled", "it waits for the next time somebody says so"


def test_it_stops_when_nothing_changes(api: Api, crawl_id: str) -> None:
    job_id = configured(api, crawl_id, stop_if_no_changes=True)["job_id"]
    api.post(f"/crawl/{crawl_id}/iterations/next", 202)
    api.ended(job_id)
    told = api.get(f"/jobs/{job_id}")
    assert (told["status"], told["reason"]) == ("completed", "no_changes")


def test_modified_pages_are_listed_by_what_differs_on_them(api: Api, pages: Pages, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"))
    for name in ("a", "b"):
        pages[f"/{name}"] = page(name, "/", body="<p>All of them say so.</p>")
    pages["/c"] = page("c", "/", body="<p>Only one says that.</p>")
    api.run_once(crawl_id, Task("recrawl"))
    path = f"/crawl/{crawl_id}/iterations/compare/groups"
    both, one = (found := api.get(path))["items"]
    assert (found["next_cursor"], found["is_counted"], both["pages"], one["pages"]) == (None, True, 2, 1)
    assert both["difference"] == [{"where": "text", "before": "", "after": "All of them say so."}]
    assert (one["url"], one["difference"][0]["after"]) == (served.url("/c"), "Only one says that.")
    first = api.get(path, limit=1)
    assert first["items"] == [both]
    assert api.get(path, limit=1, cursor=first["next_cursor"])["items"] == [one]
    members = api.get(f"{path}/{both['alike']}")
    assert [item["url"] for item in members["items"]] == [served.url("/a"), served.url("/b")]
    part = api.get(f"{path}/{both['alike']}", limit=1)
    assert api.get(f"{path}/{both['alike']}", limit=1, cursor=part["next_cursor"])["items"] == members["items"][1:]
    assert api.get(f"{path}/7")["items"] == []
    whole = api.get(f"/crawl/{crawl_id}/iterations/compare")["modified_groups"]
    assert [(group["pages"], group["urls"]) for group in whole] == [
        (2, [served.url("/a"), served.url("/b")]),
        (1, [served.url("/c")]),
    ]
    api.get(path, 400, cursor="bm8")
    api.get(f"{path}/none", 422)


def test_the_feed_tells_what_changed_and_is_sent_again_only_when_there_is_more(
    api: Api, pages: Pages, served: Served
) -> None:
    crawl_id = api.crawled(served.url("/"))
    address = f"http://inchworm.test/api/v1/crawl/{crawl_id}/changes.atom"
    empty = api.request("GET", address)
    assert (empty.status_code, empty.headers["content-type"]) == (200, "application/atom+xml; charset=utf-8")
    pages.change()
    api.run_once(crawl_id, Task("recrawl"))
    api.run_once(crawl_id, Task("recrawl"))
    answer = api.request("GET", address)
    feed = ElementTree.fromstring(answer.content)
    names = {"a": "http://www.w3.org/2005/Atom"}
    (entry,) = feed.findall("a:entry", names)
    assert entry.findtext("a:title", "", names).endswith("run 1: 1 new, 1 modified, 0 deleted")
    content = entry.findtext("a:content", "", names)
    assert "says something else" in content
    assert served.url("/new") in content
    assert feed.findtext("a:id", "", names) == ElementTree.fromstring(empty.content).findtext("a:id", "", names)
    tag = answer.headers["etag"]
    assert tag != empty.headers["etag"]
    again = api.request("GET", address, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert api.request("GET", address.replace(crawl_id, "nobody")).status_code == 404


def test_conditions_for_messages_are_kept_with_the_job(idle: Api, made: str) -> None:
    answer = configured(idle, made, iteration_interval_hours=24.0, notify_if=["5%", "text:price"])
    job = idle.app.jobs.one(answer["job_id"])
    assert json_form(job.line.repetition)["notify_if"] == ["5%", "text:price"]
    assert "is no condition" in configured(idle, made, 422, notify_if=["when it rains"])["message"]
