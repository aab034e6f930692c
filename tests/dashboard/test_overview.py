"""The first page, the frame around all pages, and what is renewed while one is open."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.crash.website import article
from tests.service.in_process import Api, serving, wait_for

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.root import App
from inchworm.job import Task
from inchworm.service.api.web import Verbs
from inchworm.service.dashboard import live
from inchworm.service.dashboard.frame import SAID
from inchworm.service.dashboard.live import Board, WatchedView
from inchworm.service.templating import age, when
from inchworm.settings import Settings
from inchworm.store.sqlite import last_written
from inchworm.testing import Served, Site, linked_site

EVIL = "<script>alert(1)</script>\"'&{{7*7}}"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ROOT = "http://inchworm.test"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Site(linked_site(12)).serve() as made:
        yield made


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """All routes, at their own addresses."""
    with serving(tmp_path_factory.mktemp("overview") / "home") as made:
        yield made


def shown(api: Api, path: str, status: int = 200, **options: object) -> str:
    answer = api.request("GET", ROOT + path, **options)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def post(api: Api, path: str, **fields: str) -> tuple[int, str, str]:
    """Status, where to, and what is said or shown."""
    answer = api.request("POST", ROOT + path, content=urlencode(fields), headers=FORM)
    said = answer.cookies.get(SAID, "")
    text = json.loads(base64.urlsafe_b64decode(said.strip('"').partition(".")[0]))[0] if said else answer.text
    return answer.status_code, answer.headers.get("location", ""), text


def test_where_nothing_is_it_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / "home", jobs=False) as alone:
        text = shown(alone, "/")
        assert "There is no crawl yet" in text and "Nothing runs at the moment" in text
        assert "Needs attention" not in text


def test_a_crawl_is_started_by_its_address(api: Api, served: Served) -> None:
    status, where, said = post(api, "/start", url=served.url("/"), name="docs")
    crawl = api.app.workspace.find("docs")
    assert (status, where, said) == (303, f"/crawls/{crawl.crawl_id}", "Run 0 (baseline) has started.")
    wait_for(lambda: api.status(crawl.crawl_id)["run_state"] == "completed", "the crawl to end")
    text = shown(api, "/")
    assert f'href="/crawls/{crawl.crawl_id}">docs</a>' in text
    told = api.get("/overview")
    assert (told["crawls"], [one["name"] for one in told["recent"]], told["attention"]) == (1, ["docs"], [])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": ""}, "nothing to crawl"),
        ({"url": "ftp://example.com/"}, "ftp://example.com/"),
        ({"url": f"http://{EVIL}"}, "&lt;script&gt;alert(1)"),
        ({"url": "https://example.com", "budget": "many"}, "budget"),
        ({"url": "hello world"}, "&#39;hello&#39; is not the address of a site"),
        ({"url": "https://example.com", "include": "re:("}, "re:("),
        ({"url": "https://user:word@example.com"}, "user or password"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(api: Api, fields: dict[str, str], told: str) -> None:
    status, where, text = post(api, "/start", **fields)
    assert (400 <= status < 500, where) == (True, "")
    assert told in text and 'role="alert"' in text
    assert "<script>alert" not in text and "49" not in text.split("<main")[1]


def test_a_path_that_leads_nowhere_is_a_page_for_people_only(api: Api) -> None:
    assert "There is no such page" in shown(api, "/nowhere", 404, headers=HTML)
    assert api.request("GET", f"{ROOT}/nowhere").json()["error"]["code"] == "not_found"
    assert api.request("GET", "/nowhere").json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "x",
        base64.urlsafe_b64encode(rb'["\ud800", "", true]').decode(),
        "e30=",
        "W10=",
        base64.urlsafe_b64encode(b"[1]").decode(),
        "[" * 9999,
    ],
)
def test_what_somebody_else_put_into_the_cookie_is_not_said(api: Api, said: str) -> None:
    assert 'class="said' not in shown(api, "/", headers={"Cookie": f"{SAID}={said}"})


def test_what_is_said_is_text(api: Api) -> None:
    said = base64.urlsafe_b64encode(json.dumps([EVIL, EVIL, True]).encode()).decode()
    text = shown(api, "/", headers={"Cookie": f"{SAID}={said}."})
    assert 'role="alert">&lt;script&gt;' in text and "<script>alert" not in text


def test_a_crawl_that_cannot_be_read_needs_attention(api: Api, tmp_path: Path) -> None:
    crawl = api.make("https://example.com/broken")
    folder = api.folder / "crawls" / crawl
    folder.mkdir(parents=True)
    (folder / "crawl.db").write_bytes(b"no database" * 100)
    assert "Needs attention" in shown(api, "/")
    api.app.configure.delete(crawl)
    assert "Needs attention" not in shown(api, "/") and not folder.exists()


# What is renewed


def test_a_view_is_made_again_only_when_something_happened(tmp_path: Path) -> None:
    made: list[int] = []
    marks = iter([(1,), (1,), (), (), (2,), (2,)])

    def make() -> dict[str, str]:
        made.append(1)
        return {"a": str(len(made))}

    one = WatchedView(make, lambda: next(marks))

    async def look() -> None:
        for _ in range(6):
            await one.look()

    asyncio.run(look())
    assert len(made) == 4 and one.parts == {"a": "4"}


def test_a_dear_view_is_looked_at_less_often_but_not_because_its_first_look_was_dear() -> None:
    def make() -> dict[str, str]:
        began = time.thread_time()
        while time.thread_time() - began < 0.03:
            pass
        return {}

    one = WatchedView(make, lambda: ())
    asyncio.run(one.look())
    assert one.due_at <= time.monotonic()
    asyncio.run(one.look())
    assert one.due_at > time.monotonic() + 1


def test_a_view_that_goes_on_with_something_is_looked_at_every_time(tmp_path: Path) -> None:
    verbs = Verbs(tmp_path / "home", Settings(), lambda: None)
    steps: list[int] = []

    def work(_: App, __: str) -> live.Parts:
        steps.append(1)
        sum(range(200_000))
        return {"a": str(len(steps))}

    async def look() -> None:
        shown = Board(verbs).shown("steps:x")
        for number in range(3):
            await shown.look()
            assert shown.parts == {"a": str(number + 1)} and shown.due_at <= time.monotonic()

    try:
        live.view("steps", works=True)(work)
        asyncio.run(look())
    finally:
        del live.VIEWS["steps"]
        live.WORKING.discard("steps")
        verbs.close()


def test_a_watcher_gets_what_it_has_not_got(tmp_path: Path) -> None:
    async def watch() -> list[dict[str, object]]:
        now = {"a": "1", "b": "1"}
        one = WatchedView(lambda: dict(now), lambda: ())
        source = live._watched("x:", one)
        first = await anext(source)
        waiting = asyncio.ensure_future(anext(source))
        now["a"] = "2"
        await one.look()
        second = await waiting
        await source.aclose()
        assert one.watchers == 0
        return [json.loads(got.split(b"data: ")[1])["parts"] for got in (first, second)]

    assert asyncio.run(watch()) == [{"a": "1", "b": "1"}, {"a": "2"}]


def test_what_was_deleted_is_told_once(tmp_path: Path) -> None:
    verbs = Verbs(tmp_path / "home", Settings(), lambda: None)

    async def look() -> live.Parts:
        shown = Board(verbs).shown("crawl:nothing")
        await shown.look()
        return shown.parts

    try:
        assert set(asyncio.run(look())) == {"gone"}
    finally:
        verbs.close()


def test_a_mark_moves_when_somebody_writes(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    assert last_written(path) == ()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE one (n)")
        assert last_written(path) == (), "it may be written again in the same tick"
    before = wait_for(lambda: last_written(path), "a tick")
    assert last_written(path) == before
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO one VALUES (1)")
        db.commit()
    assert last_written(path) != before


def test_lists_show_what_happened_since(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/?again"))
    app = App(api.folder)
    try:
        wait_for(lambda: last_written(api.folder / "crawls" / crawl_id / "crawl.db"), "a tick")
        line = next(one for one in app.crawls.list() if one.crawl_id == crawl_id)
        assert (line.run, line.state) == (0, "completed")
        api.post(f"/crawl/{crawl_id}/iterations/next", 202)
        wait_for(lambda: api.status(crawl_id)["run"] == 1, "the next run")
        assert next(one for one in app.crawls.list() if one.crawl_id == crawl_id).run == 1
    finally:
        app.close()


def test_what_changed_stays_until_something_changes_again(tmp_path: Path) -> None:
    pages = {"/": article("home", ("/a",)), "/a": article("first")}
    with Site(pages).serve() as site, serving(tmp_path / "home") as alone:
        crawl_id = alone.crawled(site.url("/"))
        assert alone.get("/overview")["changed"] == []
        pages["/a"] = article("second")
        alone.run_once(crawl_id, Task())
        alone.run_once(crawl_id, Task())
        (found,) = alone.get("/overview")["changed"]
        assert (found["run"], found["new"], found["modified"], found["deleted"]) == (1, 0, 1, 0)
        assert f"/crawls/{crawl_id}/compare?current=1" in shown(alone, "/")


def test_a_run_that_broke_off_needs_attention(tmp_path: Path, served: Served) -> None:
    with serving(tmp_path / "home") as alone:
        crawl_id = alone.crawled(served.url("/"), budget=3)
        assert alone.get("/overview")["attention"] == [], "a budget is no trouble"
        for ended_by, told in (
            ("error", "ended with an error: the disk is full"),
            ("crashed", "was killed, or crashed"),
        ):
            with closing(sqlite3.connect(alone.folder / "crawls" / crawl_id / "crawl.db")) as db, db:
                db.execute("UPDATE session SET ended_by = ?, message = 'the disk is full'", (ended_by,))
            (found,) = wait_for(lambda: alone.get("/overview")["attention"], "what is wrong")
            assert found["kind"] == "broken_off"
            wait_for(lambda text=told: text in alone.get("/overview")["attention"][0]["message"], told)
        assert told in shown(alone, "/")


def test_jobs_that_nobody_starts_need_attention(tmp_path: Path) -> None:
    with serving(tmp_path / "home", jobs=False) as alone:
        crawl = alone.app.workspace.find(alone.make("https://example.com/"))
        job_id = alone.app.schedule.add(WantedJob(crawl=crawl, task=Task())).id
        assert alone.get("/overview")["attention"] == [], "it is not late yet"
        alone.app.jobs.store.change(job_id, lambda one: replace(one, due_ms=one.due_ms - 61_000), 0)
        (found,) = alone.get("/overview")["attention"]
        assert (found["kind"], found["name"]) == ("jobs_overdue", "1 overdue job")
        assert '<a href="/jobs"><b>1 overdue job' in shown(alone, "/")


# Times


@pytest.mark.parametrize(
    ("away", "text"),
    [(0, "now"), (-4, "now"), (-59, "59s ago"), (61, "in 1 min"), (-7300, "2 h ago"), (-400_000, "4 days ago")],
)
def test_age(away: float, text: str) -> None:
    assert age(away) == text


def test_a_time_has_the_exact_one_behind_it() -> None:
    told = when("2026-01-02T03:04:05.678Z", 1_767_323_045.0)
    assert 'title="2026-01-02 03:04:05 UTC"' in told and 'datetime="2026-01-02T03:04:05.678Z"' in told
    assert when(None) == "–"
