"""The routes about checkpoints, asked as their users ask them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.flow.crawling import Home
from tests.service.in_process import Api, serving, wait_for

from inchworm.app import App
from inchworm.app.act.go_back import branch
from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.read.checkpoints import Back, Past
from inchworm.app.read.iterations import IterationLine
from inchworm.app.workspace import settings_of_run
from inchworm.job import JobFilter, Task
from inchworm.service.api.iterations import NEXT
from inchworm.settings import Settings, changed
from inchworm.testing import Hit, Page, Served, Site, linked_site

SIZE = 40
EVERY = 10
HOSTILE = ["%2e%2e", "%00", "..%2f..%2fhome.db", "-1", "1.5", str(10**20), "%F0%9F%90%9B", "'%20OR%201=1--", "+1", "１"]
WAITS = 600.0


class Gate:
    """A site that can be stopped: while the gate is shut, nothing after so many pages is answered."""

    def __init__(self, pages: dict[str, str]) -> None:
        self._pages = pages
        self.most: int | None = None
        self._answered = 0
        self._mutex = threading.Lock()

    def site(self) -> dict[str, Any]:
        return {path: self._page(text) for path, text in self._pages.items()}

    def _page(self, text: str) -> Any:
        def answer(_: Hit) -> Page:
            with self._mutex:
                self._answered += 1
                is_shut = self.most is not None and self._answered > self.most
            return Page(text, delay=WAITS if is_shut else 0.0)

        return answer

    def shut(self, after: int) -> None:
        with self._mutex:
            self._answered, self.most = 0, after

    def open(self) -> None:
        self.most = None


@pytest.fixture
def gate() -> Gate:
    return Gate(linked_site(SIZE))


@pytest.fixture
def served(gate: Gate) -> Iterator[Served]:
    with Site(gate.site()).serve() as made:
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
def home(tmp_path) -> Iterator[Home]:
    """No service at all."""
    made = Home(tmp_path / "home")
    yield made
    made.app.close()


@pytest.fixture
def never_ran(idle: Api) -> str:
    return idle.make("http://127.0.0.1:9/")


@pytest.fixture
def crawl_id(api: Api, served: Served) -> str:
    """A complete crawl with a checkpoint every ten pages."""
    return api.crawled(served.url(), checkpoint_every=EVERY)


@pytest.fixture
def running(api: Api, served: Served, gate: Gate) -> Iterator[tuple[str, str]]:
    """A crawl under way, and its job: it has got 15 pages and waits for the others."""
    gate.shut(15)
    crawl_id = api.make(served.url(), checkpoint_every=EVERY, workers=1)
    job_id = api.app.schedule.add(WantedJob(crawl=api.app.workspace.find(crawl_id), task=Task())).id
    wait_for(lambda: _pages(api.app, crawl_id) >= 15, "fifteen pages")
    yield crawl_id, job_id
    gate.open()


def _pages(app: App, crawl_id: str) -> int:
    """How many pages are on record."""
    runs = iterations(app, crawl_id)
    return runs[-1].stats.total_documents if runs else 0


def iterations(app: App, crawl_id: str) -> Sequence[IterationLine]:
    return app.iterations.list(app.workspace.find(crawl_id))


def go_on(api: Api, crawl_id: str, status: int = 202, **body: Any) -> Any:
    return api.post(f"/crawl/{crawl_id}/continue", status, body=body)


def ids(api: Api, crawl_id: str) -> list[str]:
    return [one["checkpoint_id"] for one in api.get(f"/crawl/{crawl_id}/checkpoints")]


# The examples


def test_resume_after_a_crash(tmp_path, served: Served, gate: Gate) -> None:
    home = Home(tmp_path / "home")
    gate.shut(15)
    with home.running("crawl", served.url(), "--delay", "0", "--workers", "1", "--allow-private") as process:
        wait_for(lambda: home.app.workspace.crawls.all() and _pages(home.app, home.word) >= 15, "fifteen pages")
        crawl_id = home.word
        process.kill()
        process.wait()
    home.app.close()
    gate.open()
    with serving(tmp_path / "home") as api:
        stats = api.get(f"/crawl/{crawl_id}/checkpoints/stats")
        assert (stats["can_resume"], stats["total_checkpoints"]) == (True, 0), "nobody had the time to make one"
        resumed = go_on(api, crawl_id, validate=True)
        assert resumed["resumed_from_state"] == "crawling"
        assert resumed["crawled_urls"] == 15 and resumed["queued_urls"] > 0
        assert resumed["message"] == "Crawl resumed successfully from checkpoint"
        api.ended(resumed["job_id"])
        assert api.status(crawl_id)["run_state"] == "completed"
        assert api.get(f"/crawl/{crawl_id}/checkpoints/latest")["checkpoint_type"] == "error"
        assert not api.faults(crawl_id)


def test_a_checkpoint_before_something_risky(api: Api, running: tuple[str, str], gate: Gate) -> None:
    crawl_id, job_id = running
    made = api.post(f"/crawl/{crawl_id}/checkpoint", 201, checkpoint_type="manual")
    assert (made["checkpoint_type"], made["current_state"], made["can_resume"]) == ("manual", "crawling", True)
    api.app.steer.pause(crawl_id)
    api.ended(job_id)
    gate.open()
    resumed = api.post(f"/crawl/{crawl_id}/continue", 202)
    assert resumed["crawled_urls"] == made["progress"]["urls"]["completed"]
    api.ended(resumed["job_id"])
    assert api.status(crawl_id)["pages"] == SIZE


# Looking


def test_the_list(api: Api, crawl_id: str) -> None:
    listed = api.get(f"/crawl/{crawl_id}/checkpoints")
    assert [one["checkpoint_number"] for one in listed] == [0, 1, 2, 3]
    first = listed[0]
    assert {name: first[name] for name in first if name not in ("created_at", "file_size_bytes", "progress")} == {
        "checkpoint_id": f"{crawl_id}_ckpt_0",
        "crawl_id": crawl_id,
        "checkpoint_number": 0,
        "checkpoint_type": "auto",
        "current_state": "crawling",
        "current_substate": "downloading_pages",
        "can_resume": True,
        "can_branch": True,
        "run": 0,
        "seq": first["seq"],
    }
    assert first["progress"]["urls"]["completed"] == EVERY and first["file_size_bytes"] > 0
    assert set(first["progress"]["urls"]) >= {"total", "completed", "failed"}
    assert api.get(f"/crawl/{crawl_id}/checkpoints/latest") == listed[-1]


def test_the_list_in_parts(api: Api, crawl_id: str) -> None:
    seen, cursor = [], ""
    while True:
        query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        answer = api.request("GET", f"/crawl/{crawl_id}/checkpoints", params=query)
        seen.append([one["checkpoint_number"] for one in answer.json()])
        cursor = answer.headers.get(NEXT, "")
        if not cursor:
            break
    assert seen == [[0, 1, 2], [3]]
    for wrong in ("x", "Im5vdGhpbmci", "W10", "MTAwMDAwMDAwMDAwMDAwMDAwMDAw"):
        api.get(f"/crawl/{crawl_id}/checkpoints", 400, cursor=wrong)
    for wrong in ("0", "-1", "1001", "x", str(10**20)):
        api.get(f"/crawl/{crawl_id}/checkpoints", 422, limit=wrong)


def test_in_numbers(api: Api, crawl_id: str) -> None:
    listed = api.get(f"/crawl/{crawl_id}/checkpoints")
    assert api.get(f"/crawl/{crawl_id}/checkpoints/stats") == {
        "crawl_id": crawl_id,
        "total_checkpoints": 4,
        "latest_checkpoint_id": f"{crawl_id}_ckpt_3",
        "latest_checkpoint_created": listed[-1]["created_at"],
        "latest_checkpoint_state": "crawling",
        "can_resume": False,
        "checkpoint_types": {"auto": 4, "manual": 0, "pause": 0, "error": 0},
        "total_size_bytes": sum(one["file_size_bytes"] for one in listed),
    }


def test_a_crawl_that_never_ran(idle: Api, never_ran: str) -> None:
    assert idle.get(f"/crawl/{never_ran}/checkpoints") == []
    idle.get(f"/crawl/{never_ran}/checkpoints/latest", 404)
    stats = idle.get(f"/crawl/{never_ran}/checkpoints/stats")
    assert (stats["total_checkpoints"], stats["latest_checkpoint_id"], stats["can_resume"]) == (0, None, False)
    idle.post(f"/crawl/{never_ran}/checkpoint", 409)
    idle.post(f"/crawl/{never_ran}/continue", 409)
    idle.post(f"/crawl/{never_ran}/checkpoints/cleanup", 409)
    idle.ask("DELETE", f"/crawl/{never_ran}/checkpoints/{never_ran}_ckpt_0", 409)
    assert not idle.app.workspace.place(idle.app.workspace.find(never_ran)).folder.exists(), (
        "looking leaves nothing behind"
    )
    assert idle.app.jobs.listed() == []


@pytest.mark.parametrize("word", ["%2e%2e", "%00", "x" * 5000, "..%2f..%2fhome.db", "'%20OR%201=1--"])
def test_crawls_that_there_are_not(idle: Api, never_ran: str, word: str) -> None:
    for method, path in (
        *(("GET", "/checkpoints"), ("POST", "/checkpoint"), ("GET", "/checkpoints/latest"), ("POST", "/continue")),
        *(("DELETE", "/checkpoints/0"), ("POST", "/checkpoints/cleanup"), ("GET", "/checkpoints/stats")),
    ):
        idle.ask(method, f"/crawl/{word}{path}", 422 if len(word) > 200 else 404)


# Making and deleting


def test_one_of_a_run_that_is_over(api: Api, crawl_id: str) -> None:
    made = api.post(f"/crawl/{crawl_id}/checkpoint", 201)
    assert (made["checkpoint_type"], made["current_state"], made["can_resume"]) == ("manual", "completed", False)
    assert api.post(f"/crawl/{crawl_id}/checkpoint", 201, checkpointType="manual") == made, "nothing happened since"
    for wrong in ("auto", "pause", "error", "", "x"):
        api.post(f"/crawl/{crawl_id}/checkpoint", 422, checkpoint_type=wrong)


def test_deleting(api: Api, crawl_id: str) -> None:
    api.ask("DELETE", f"/crawl/{crawl_id}/checkpoints/{crawl_id}_ckpt_1", 204)
    assert ids(api, crawl_id) == [f"{crawl_id}_ckpt_{number}" for number in (0, 2, 3)]
    api.ask("DELETE", f"/crawl/{crawl_id}/checkpoints/{crawl_id}_ckpt_1", 404)
    api.ask("DELETE", f"/crawl/{crawl_id}/checkpoints/3", 204)
    assert api.post(f"/crawl/{crawl_id}/checkpoints/cleanup", keep_last=1) == {"crawl_id": crawl_id, "deleted": 1}
    assert api.post(f"/crawl/{crawl_id}/checkpoints/cleanup") == {"crawl_id": crawl_id, "deleted": 0}
    assert api.post(f"/crawl/{crawl_id}/checkpoints/cleanup", keepLast=0)["deleted"] == 1
    assert ids(api, crawl_id) == []
    for wrong in ("-1", "x", "1.5", str(10**20)):
        api.post(f"/crawl/{crawl_id}/checkpoints/cleanup", 422, keep_last=wrong)


def test_not_while_a_session_runs(api: Api, running: tuple[str, str]) -> None:
    crawl_id, job_id = running
    for _ in range(5):
        api.post(f"/crawl/{crawl_id}/checkpoint", 201)
    assert api.ask("DELETE", f"/crawl/{crawl_id}/checkpoints/{crawl_id}_ckpt_0", 409)["code"] == "owned"
    assert api.post(f"/crawl/{crawl_id}/checkpoints/cleanup", 409, keep_last=0)["code"] == "owned"
    assert ids(api, crawl_id)[0] == f"{crawl_id}_ckpt_0"
    assert "being worked on" in go_on(api, crawl_id, 409)["message"]
    api.app.schedule.cancel(job_id)


def test_checkpoints_that_there_are_not(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url(), checkpoint_every=EVERY)
    other = api.crawled(served.url("/p1"), checkpoint_every=EVERY)
    before = ids(api, crawl_id)
    for name in (*HOSTILE, f"{other}_ckpt_0", f"{crawl_id}_ckpt_99", f"{crawl_id}_ckpt_", "x" * 5000):
        status = 422 if len(name) > 300 else 404
        api.ask("DELETE", f"/crawl/{crawl_id}/checkpoints/{name}", status)
        go_on(api, crawl_id, status, checkpoint_id=name)
    assert ids(api, crawl_id) == before
    assert len(api.app.jobs.listed(JobFilter(crawl_id=crawl_id))) == 1, "no job was made for what cannot be done"


# Continuing


def test_going_back(api: Api, crawl_id: str) -> None:
    made = go_on(api, crawl_id, checkpoint_id=f"{crawl_id}_ckpt_1", validate=True)
    job_id, session = made.pop("job_id"), made.pop("session")
    assert made == {
        "crawl_id": crawl_id,
        "checkpoint_id": f"{crawl_id}_ckpt_1",
        "resumed_from_state": "crawling",
        "resumed_from_substate": "downloading_pages",
        "crawled_urls": 2 * EVERY,
        "queued_urls": made["queued_urls"],
        "message": "Crawl resumed successfully from checkpoint",
        "run_id": f"{crawl_id}_iter_0",
    }
    assert session == 2 and made["queued_urls"] > 0
    assert api.app.jobs.one(job_id).line.max_retries == 0
    api.ended(job_id)
    assert api.status(crawl_id)["pages"] == SIZE
    assert not api.faults(crawl_id)


def test_without_an_id_nothing_is_undone(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url(), budget=25, checkpoint_every=EVERY)
    latest = api.get(f"/crawl/{crawl_id}/checkpoints/latest")
    assert latest["checkpoint_type"] == "pause"
    made = go_on(api, crawl_id, settings={"budget": 0})
    assert (made["checkpoint_id"], made["crawled_urls"]) == (latest["checkpoint_id"], 25)
    api.ended(made["job_id"])
    paths = Counter(served.paths())
    assert max(paths[path] for path in linked_site(SIZE)) == 1, "every page was fetched once"
    assert api.status(crawl_id)["run_state"] == "completed"


def test_a_branch_with_settings_of_its_own(api: Api, crawl_id: str) -> None:
    made = go_on(
        api, crawl_id, checkpointId=f"{crawl_id}_ckpt_0", asNewRun=True, settings={"pageLimit": 15, "workers": 2}
    )
    assert (made["run_id"], made["session"], made["crawled_urls"]) == (f"{crawl_id}_iter_1", 1, EVERY)
    api.ended(made["job_id"])
    first, branch = api.get(f"/crawl/{crawl_id}/iterations")
    assert branch["branch_of"] == first["iteration_id"]
    assert (first["stats"]["total_documents"], branch["stats"]["total_documents"]) == (SIZE, 15)
    assert not api.faults(crawl_id)
    assert (first["on_line"], branch["on_line"]) == (True, False)


def test_later_runs_build_on_a_branch_when_they_are_told_to(api: Api, crawl_id: str) -> None:
    made = go_on(
        api, crawl_id, checkpoint_id=f"{crawl_id}_ckpt_0", as_new_run=True, settings={"exclude": ["*p3?"], "budget": 5}
    )
    api.ended(made["job_id"])
    assert "is paused" in api.post(f"/crawl/{crawl_id}/iterations/1/make-line", 409)["message"]
    api.ended(go_on(api, crawl_id, settings={"budget": 0})["job_id"])
    assert api.post(f"/crawl/{crawl_id}/iterations/1/make-line")["on_line"]
    assert [one["on_line"] for one in api.get(f"/crawl/{crawl_id}/iterations")] == [False, True]
    api.ended(api.post(f"/crawl/{crawl_id}/iterations/next", 202)["job_id"])
    assert api.get(f"/crawl/{crawl_id}/iterations/2")["parent_iteration_id"] == f"{crawl_id}_iter_1"
    api.post(f"/crawl/{crawl_id}/iterations/9/make-line", 404)


def test_a_branch_of_a_run_as_it_stands(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url(), budget=5)
    made = go_on(api, crawl_id, as_new_run=True, settings={"budget": 0})
    assert made["run_id"] == f"{crawl_id}_iter_1"
    api.ended(made["job_id"])
    assert [one["state"] for one in api.get(f"/crawl/{crawl_id}/iterations")] == ["paused", "completed"]


def test_a_start_is_judged_by_the_line_that_it_works_on_and_not_by_an_open_branch(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url(), checkpoint_every=EVERY)
    branched = go_on(api, crawl_id, checkpoint_id=f"{crawl_id}_ckpt_1", as_new_run=True, settings={"budget": 1})
    api.ended(branched["job_id"])
    made = api.post("/crawl", 202, {"url": served.url(), "max_depth": 2})
    api.ended(made["job_id"])
    assert [one["state"] for one in api.get(f"/crawl/{crawl_id}/iterations")] == ["completed", "paused", "completed"]


@pytest.mark.parametrize("then", ["paused", "finished", "cancelled", "built on", "branched"])
def test_what_can_be_resumed_is_what_continue_does(api: Api, served: Served, then: str) -> None:
    crawl_id = api.crawled(served.url(), budget=0 if then != "paused" else 25, checkpoint_every=EVERY)
    api.post(f"/crawl/{crawl_id}/checkpoint", 201)
    if then == "cancelled":
        api.run_once(crawl_id, Task("recrawl", settings={"budget": 12}))
        api.app.steer.cancel(crawl_id)
    if then == "built on":
        api.run_once(crawl_id, Task("recrawl", settings={"budget": 12}))
    if then == "branched":
        api.run_once(crawl_id, Task("continue", checkpoint="1", as_new_run=True, settings={"budget": 5}))
    listed = api.get(f"/crawl/{crawl_id}/checkpoints")
    assert {one["can_resume"] for one in listed} == ({True} if then == "paused" else {True, False})
    stats = api.get(f"/crawl/{crawl_id}/checkpoints/stats")
    promised = [(None, stats["can_resume"]), *((one["checkpoint_id"], one["can_resume"]) for one in listed[::-1])]
    for checkpoint_id, can_resume in promised:
        body = {"checkpoint_id": checkpoint_id, "settings": {"budget": 1}}
        answer = api.request("POST", f"/crawl/{crawl_id}/continue", json=body)
        assert (answer.status_code == 202) == can_resume, (checkpoint_id, answer.text)
        if can_resume:
            api.ended(answer.json()["job_id"])


def test_what_runs_is_not_resumed(api: Api, running: tuple[str, str]) -> None:
    stats = api.get(f"/crawl/{running[0]}/checkpoints/stats")
    assert stats["can_resume"] is False
    go_on(api, running[0], 409)


def test_what_another_run_builds_on(api: Api, crawl_id: str) -> None:
    api.run_once(crawl_id, Task("recrawl"))
    before = len(api.app.jobs.listed())
    error = go_on(api, crawl_id, 409, checkpoint_id=f"{crawl_id}_ckpt_1")
    assert "builds on" in error["message"] and "as_new_run" in error["hint"]
    assert len(api.app.jobs.listed()) == before
    made = go_on(api, crawl_id, checkpoint_id=f"{crawl_id}_ckpt_1", as_new_run=True)
    assert made["run_id"] == f"{crawl_id}_iter_2"
    api.ended(made["job_id"])


def test_what_cannot_be_continued(api: Api, crawl_id: str) -> None:
    over = api.post(f"/crawl/{crawl_id}/checkpoint", 201)
    for as_new_run in (False, True):
        error = go_on(api, crawl_id, 409, checkpoint_id=over["checkpoint_id"], as_new_run=as_new_run)
        assert "cannot resume from terminal state" in error["message"]
        assert "nothing to resume" in go_on(api, crawl_id, 409, as_new_run=as_new_run)["message"]
    assert "nothing to resume" in api.post(f"/crawl/{crawl_id}/continue", 409)["message"]
    error = go_on(api, crawl_id, 409, checkpoint_id=f"{crawl_id}_ckpt_1", settings={"max_depth": 2})
    assert error["code"] == "frozen"
    for wrong in (
        *({"workers": 0}, {"workers": "many"}, {"delay": -1}, {"surprise": 1}, {"workers": None}),
        *({"allow_private": True}, {"proxies": ["http://10.0.0.1/"]}, {"replay": ["/etc/passwd"]}, {"poll": 1}),
    ):
        go_on(api, crawl_id, 422, checkpoint_id=f"{crawl_id}_ckpt_1", settings=wrong)
    go_on(api, crawl_id, 422, checkpoint_id=f"{crawl_id}_ckpt_1", as_new_run=True, settings={"include": ["re:("]})
    assert len(api.app.jobs.listed()) == 1
    assert api.status(crawl_id)["run_state"] == "completed"


def test_bodies_that_mean_nothing(idle: Api, never_ran: str) -> None:
    path = f"/crawl/{never_ran}/continue"
    assert idle.ask("POST", path, 400, content=b"{", headers={"Content-Type": "application/json"})["code"] == "bad_json"
    for wrong in ([], "text", 7, {"checkpoint_id": 2}, {"validate": "perhaps"}, {"as_new_run": None}, {"more": 1}):
        idle.ask("POST", path, 422, json=wrong)
    idle.ask("POST", path, 409, json=None)
    idle.ask("POST", path, 409, json={"checkpoint_id": None})


def test_an_archive_that_is_damaged(api: Api, crawl_id: str) -> None:
    archive = api.app.workspace.place(api.app.workspace.find(crawl_id)).folder / "archive"
    file = next(archive.glob("*.warc.gz"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    body = {"checkpoint_id": f"{crawl_id}_ckpt_3"}
    assert go_on(api, crawl_id, 503, **body)["code"] == "broken"
    assert len(api.app.jobs.listed()) == 1
    file.write_bytes(whole)
    api.ended(go_on(api, crawl_id, **body)["job_id"])


def test_two_at_once_go_back_once(api: Api, crawl_id: str) -> None:
    body = {"checkpoint_id": f"{crawl_id}_ckpt_0"}
    with ThreadPoolExecutor(5) as many:
        path = f"/crawl/{crawl_id}/continue"
        answers = list(many.map(lambda _: api.request("POST", path, json=body), range(5)))
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 4]
    api.ended(next(answer.json()["job_id"] for answer in answers if answer.status_code == 202))
    assert len(api.status(crawl_id)["sessions"]) == 2


@pytest.mark.parametrize("as_new_run", [False, True], ids=["back", "branch"])
def test_a_process_that_dies(api: Api, crawl_id: str, served: Served, gate: Gate, as_new_run: bool) -> None:
    """The second try goes on with what the first has begun: it neither goes back again nor branches off again."""
    gate.shut(15)
    body = {"checkpoint_id": f"{crawl_id}_ckpt_0", "as_new_run": as_new_run, "settings": {"workers": 1}}
    made = go_on(api, crawl_id, **body)
    wait_for(lambda: _pages(api.app, crawl_id) >= EVERY + 14, "fifteen pages more")
    known = len(served.log)
    api.kill(made["job_id"])
    gate.open()
    wait_for(lambda: api.app.jobs.one(made["job_id"]).line.status == "completed", "the second try")
    tries = api.app.executions.listed(made["job_id"])
    assert [(one.attempt, one.status) for one in tries] == [(2, "completed"), (1, "failed")]
    again = Counter(hit.path for hit in served.log[known:] if hit.path in gate.site())
    assert sum(again.values()) <= SIZE - EVERY - 14, "nothing of the first try was done again"
    assert [one.stats.total_documents for one in iterations(api.app, crawl_id)] == [SIZE] * (1 + as_new_run)
    assert not api.faults(crawl_id)


@pytest.mark.parametrize("settings", [{}, {"page_limit": 30}], ids=["same", "others"])
@pytest.mark.parametrize("has_session", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("is_named", [False, True], ids=["as it stands", "checkpoint"])
def test_a_branch_whose_maker_died_at_once(home, served: Served, is_named: bool, has_session: bool, settings) -> None:
    """The second try of a job finds the branch, before and after its first session was written down."""
    home.crawl(served.url(), budget=15, checkpoint_every=EVERY)
    crawl, back = home.app.workspace.find(home.word), Back(0 if is_named else None, as_new_run=True)
    with home.app.workspace.owning(crawl, 60) as owner:
        past = Past(owner.store, owner.archive, crawl)
        point = past.point(back)
        values = changed(Settings(), {**settings_of_run(past.run(point)), **settings})
        made = branch(owner, point, values, 1)
        if has_session:
            owner.store.sessions.start(owner.token, made, "{}", 1)
    named = {"delay": 0, "allow_private": True, "budget": 0, **settings}
    for number in (1, 2):
        asyncio.run(
            home.app.sessions.work(
                home.app.plan.continue_from(home.word, Back(0, as_new_run=True) if number == 2 else back, named)
            )
        )
        runs = iterations(home.app, home.word)
        assert [one.iteration_number for one in runs] == list(range(number + 1)), "a new one once it got somewhere"
    assert runs[1].stats.total_documents == settings.get("page_limit", SIZE)
    assert not home.faults()


def test_a_job_that_waits_is_in_the_way(idle: Api, tmp_path, served: Served) -> None:
    home = Home(tmp_path / "home")
    crawl_id = home.crawl(served.url(), budget=5).crawl_id
    home.app.close()
    first = go_on(idle, crawl_id)
    assert (first["session"], first["run_id"]) == (None, f"{crawl_id}_iter_0")
    assert "when the service gets to it" in first["message"]
    assert first["job_id"] in go_on(idle, crawl_id, 409)["message"]
