"""The routes about crawls, asked as their users ask them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import page
from tests.service.in_process import VALUES, Api, HeldPages, serving, wait_for
from tests.sink.searchserver import SearchServer

from inchworm.app.act.jobs.change import WantedJob
from inchworm.service import build
from inchworm.service.api import checkpoints, crawls, jobs
from inchworm.service.api.web import Verbs
from inchworm.settings import Settings
from inchworm.testing import Page, Served, Site

BEGUN = {"crawl_id", "run_id", "run", "session", "state", "job_id", "execution_id", "message"}
QUICK = {"delay": 0, "grace": 0.1}
HOSTILE = [
    "x",
    "%00",
    "%C3%28",
    "x" * 5000,
    "..%2f..%2fhome.db",
    "'%20OR%201=1--",
    "%F0%9F%90%9B",
    "-1",
    "1000000000000",
]


class Pages(HeldPages):
    """A start page and six others; one of them can be made to answer only when the test says so."""

    def __init__(self) -> None:
        names = [f"/p{number}" for number in range(6)]
        super().__init__({"/": page("start", *names), **{name: page(name, "/") for name in names}})


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def served(pages: Pages) -> Iterator[Served]:
    with Site(pages).serve() as made:
        yield made


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path / "home", crawls.routes, jobs.routes) as made:
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Api]:
    """The routes, and nobody who runs what they start."""
    with serving(tmp_path / "home", crawls.routes, jobs.routes, jobs=False) as made:
        yield made


def start(api: Api, served: Served, status: int = 202, **body: Any) -> Any:
    return api.post("/crawl", status, {"url": served.url("/"), **QUICK, **body})


def finished(api: Api, served: Served, **body: Any) -> Any:
    """A crawl whose session is over."""
    begun = start(api, served, **body)
    api.ended(begun["job_id"])
    return begun


# Proxies and search servers


@contextmanager
def a_proxy() -> Iterator[Served]:
    """It serves one page of whatever host it is asked for."""
    with Site({"*": lambda hit: page("behind") if hit.path.endswith("site.test/") else Page("", 404)}).serve() as made:
        yield made


@contextmanager
def listed(folder: Path, **lists: list[str]) -> Iterator[Api]:
    """A service whose operator allows these; its executions learn of it from the same file."""
    folder.mkdir()
    (folder / "config.toml").write_text("".join(f"{name} = {json.dumps(found)}\n" for name, found in lists.items()))
    values = replace(VALUES, **{name: tuple(found) for name, found in lists.items()})
    with serving(folder, crawls.routes, jobs.routes, checkpoints.routes, values=values) as made:
        yield made


def test_a_caller_names_a_proxy_that_the_operator_allows(tmp_path: Path) -> None:
    with a_proxy() as way, a_proxy() as other:
        host = f"127.0.0.1:{way.port}"
        with listed(tmp_path / "home", allowed_proxies=[f"http://me:s3cret@{host}"]) as api:
            body = {"url": "http://site.test/", **QUICK, "max_retries": 0}
            for wrong in ([f"http://127.0.0.1:{other.port}"], [f"http://{host}", "http://10.0.0.1:1"], [], [""]):
                api.post("/crawl", 422, {**body, "proxies": wrong})
            said = api.post("/crawl", 422, {**body, "proxies": [f"http://you:hunter2@{host}"]})
            assert "hunter2" not in str(said) and "password" in said["message"]
            begun = api.post("/crawl", 202, {**body, "proxies": [f"http://{host}/"]})
            api.ended(begun["job_id"])
            assert api.status(begun["crawl_id"])["pages"] == 1
            path = f"/crawl/{begun['crawl_id']}"
            assert api.get(path)["defaults"]["proxies"] == [f"http://{host}/"]
            api.ended(api.next_run(begun["crawl_id"]))
            api.post("/jobs", 422, {"source_id": begun["crawl_id"], "settings": {"proxies": ["http://10.0.0.1:1"]}})
            api.post(f"{path}/continue", 422, {"settings": {"proxies": ["http://10.0.0.1:1"]}})
            api.ask("PATCH", path, 422, json={"settings": {"proxies": ["http://10.0.0.1:1"]}})
            assert api.ask("PATCH", path, 200, json={"settings": {"proxies": None}})["defaults"].get("proxies") is None
            answers = [api.request("GET", at).text for at in (path, "/crawls", "/jobs", f"/run/{begun['run_id']}")]
            answers += [api.request("GET", f"/jobs/{begun['job_id']}/logs").text]
    secret = "Basic " + base64.b64encode(b"me:s3cret").decode()
    assert way.log and not other.log
    assert {hit.headers.get("proxy-authorization") for hit in way.log} == {secret}
    assert not any("s3cret" in text for text in answers)
    kept = [one.read_bytes() for one in (tmp_path / "home").rglob("*") if one.is_file() and one.name != "config.toml"]
    assert not any(b"s3cret" in one for one in kept)


def test_a_caller_names_a_search_server_that_the_operator_allows(tmp_path: Path, served: Served) -> None:
    with SearchServer(tmp_path / "server", "opensearch", "me:s3cret") as server:
        address = f"http://127.0.0.1:{server.port}"
        with listed(tmp_path / "home", allowed_indexes=[f"http://me:s3cret@127.0.0.1:{server.port}"]) as api:
            said = start(api, served, 422, index="http://127.0.0.1:1")
            assert "operator's list" in said["message"] and "allowed_indexes" in said["hint"]
            begun = finished(api, served, index=address)
            assert api.app.executions.listed(begun["job_id"])[0].items_indexed == 7
            told = api.get(f"/crawl/{begun['crawl_id']}")
            assert told["defaults"]["index"] == address and "s3cret" not in str(told)
            api.ended(api.next_run(begun["crawl_id"]))
            assert api.app.index.status(begun["crawl_id"]).behind == 0, "the next run is told, too"


# Starting


def test_a_crawl_is_configured_started_and_resumed(api: Api, served: Served) -> None:
    """A budget of three requests takes seven pages in three sessions of one run, each page once."""
    url = served.url("/")
    config = {"url": url, "incrementalCrawlingEnabled": True, "crawlBudget": 3}
    set_up = api.ask("PUT", "/config", 200, json=config)
    crawl_id = set_up["crawl_id"]
    assert (set_up["incremental_crawling_enabled"], set_up["crawl_budget"], set_up["url"]) == (True, 3, url)

    begun = api.post("/crawl", 202, {"url": url, **QUICK})
    assert set(begun) >= BEGUN
    assert (begun["crawl_id"], begun["run_id"], begun["run"], begun["session"]) == (
        crawl_id,
        f"{crawl_id}_iter_0",
        0,
        1,
    )
    assert begun["execution_id"] == api.app.executions.listed(begun["job_id"])[0].id
    assert begun["state"] in ("in_progress", "paused") and begun["message"].startswith("Run 0 (baseline)")
    api.ended(begun["job_id"])

    queue = api.get(f"/crawl/{crawl_id}/queue")
    assert queue["crawl_id"] == crawl_id
    assert (queue["has_queue"], queue["visited"], queue["pending"], queue["total"]) == (True, 3, 4, 7)
    assert (queue["can_resume"], queue["run_state"], queue["run_crawl_ids"]) == (True, "paused", [1])
    assert queue["current_run_id"] == f"{crawl_id}_iter_0"
    assert {(one["source"], one["state"], one["count"]) for one in queue["counts"]} == {
        ("initial", "done", 1), ("spider", "done", 2), ("spider", "pending", 4),
    }  # fmt: skip

    again = api.post(f"/resume-crawl/{crawl_id}", 202)
    assert (again["run"], again["session"]) == (0, 2)
    assert again["message"] == "Run 0 (baseline) goes on with session 2."
    api.ended(again["job_id"])
    last = api.post(f"/crawl/{crawl_id}/resume", 202)
    api.ended(last["job_id"])

    made = api.get(f"/run/{crawl_id}_iter_0")
    assert (made["id"], made["crawl_id"], made["state"]) == (f"{crawl_id}_iter_0", crawl_id, "completed")
    assert [(one["id"], one["state"], one["pages_crawled"]) for one in made["sessions"]] == [
        (1, "completed", 3), (2, "completed", 3), (3, "completed", 1),
    ]  # fmt: skip
    assert made["total_pages_crawled"] == 7
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made["created_at"])
    asked = [path for path in served.paths() if path not in ("/robots.txt", "/sitemap.xml")]
    assert len(asked) == len(set(asked)) == 7
    assert not api.faults(crawl_id)


def test_what_a_crawl_was_made_with_holds_for_its_next_runs(api: Api, served: Served) -> None:
    made = finished(api, served, delay=0.01, checkpoint_every=2, budget=3)
    crawl_id = made["crawl_id"]
    api.ended(start(api, served, delay=0, checkpoint_every=1)["job_id"])
    told = api.get(f"/crawl/{crawl_id}")
    assert told["defaults"] == {"delay": 0.01, "grace": 0.1, "checkpoint_every": 2}
    again = api.next_run(crawl_id)
    assert (api.ended(again)["run"], used(api, crawl_id)) == (1, (0.01, 2, 0))
    api.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"settings": {"delay": 0.02, "checkpoint_every": None}})
    api.ended(api.next_run(crawl_id))
    assert used(api, crawl_id) == (0.02, 100, 0)


def used(api: Api, crawl_id: str) -> tuple[float, int, int]:
    """Of the settings that the last session worked with: delay, checkpoint_every, budget."""
    with api.app.workspace.reading(api.app.workspace.find(crawl_id)) as store:
        (text,) = store.db.execute("SELECT settings FROM session ORDER BY rowid DESC LIMIT 1").fetchone()
    found = json.loads(text)
    return found["delay"], found["checkpoint_every"], found["budget"]


def test_the_requests_of_others_are_taken_as_they_are(alone: Api) -> None:
    config = {"url": "https://example.com", "incrementalCrawlingEnabled": True, "crawlBudget": 50}
    made = alone.ask("PUT", "/config", 200, json=config)
    assert alone.post("/crawl", 202, {"url": "https://example.com"})["crawl_id"] == made["crawl_id"]
    papers = {"query": "Find all SEA past papers", "targets": ["moe.gov.tt"], "crawler": "scrapy"}
    assert alone.post("/crawl", 202, papers)["name"] == "moe.gov.tt"
    assert alone.post("/crawl", 202, {"query": "test", "targets": ["example.org"]})["run"] is None


def test_bare_hosts_a_query_and_a_name(api: Api, served: Served) -> None:
    body = {"targets": [f"127.0.0.1:{served.port}"], "query": "what p3 says", "crawler": "scrapy", "name": "papers"}
    begun = api.post("/crawl", 202, {**body, **QUICK, "maxRetries": 0, "connectTimeout": 0.5})
    api.ended(begun["job_id"])
    told = api.get(f"/crawl/{begun['crawl_id']}")
    assert (told["name"], told["pages"], told["state"]) == ("papers", 7, "completed")
    assert (told["settings"]["query"], told["settings"]["order"]) == ("what p3 says", "best")


def test_starting_again_begins_the_next_run(api: Api, served: Served) -> None:
    first = finished(api, served)
    second = start(api, served, mode="full")
    assert (second["crawl_id"], second["run"], second["session"]) == (first["crawl_id"], 1, 1)
    assert second["message"].startswith("Run 1 (full)")
    api.ended(second["job_id"])
    assert api.get(f"/run/{second['run_id']}")["mode"] == "full"


def test_a_session_gets_its_own_settings_and_no_others(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=2)
    assert api.status(begun["crawl_id"])["ended_by"] == "budget"
    assert finished(api, served)["run"] == 0
    assert api.status(begun["crawl_id"])["ended_by"] == "finished"


def test_camel_case_in_bodies(api: Api, served: Served) -> None:
    begun = finished(api, served, pageLimit=2, checkpointEvery=1, maxDepth=3)
    told = api.get(f"/crawl/{begun['crawl_id']}")
    assert (told["settings"]["page_limit"], told["settings"]["max_depth"], told["pages"]) == (2, 3, 2)


@pytest.mark.parametrize("crawler", ["browser", "playwright"])
def test_rendering_is_not_there(alone: Api, served: Served, crawler: str) -> None:
    assert "rendering is not available in this version" in start(alone, served, 422, crawler=crawler)["message"]


def test_who_goes_deep_is_warned(api: Api, served: Served) -> None:
    begun = start(api, served, max_depth=6)
    api.ended(begun["job_id"])
    lines = [line.text for line in api.app.executions.log(begun["execution_id"]) if line.level == "warning"]
    assert lines[0].startswith("max_depth is 6")
    assert "max_depth is 6" in begun["message"] or "completed" in begun["message"]


def test_an_unknown_crawler_is_told_the_known_ones(alone: Api, served: Served) -> None:
    error = start(alone, served, 422, crawler="selenium")
    assert error["code"] == "wrong_use" and error["hint"] == "Known ones: http, scrapy."
    assert not alone.app.workspace.crawls.all()


@pytest.mark.parametrize(
    "url", ["http://user:s3cret@example.com/", "user:s3cret@example.com", "//u:s3cret@example.com"]
)
def test_no_passwords_in_a_url(alone: Api, url: str) -> None:
    for method, path, body in (("POST", "/crawl", {"url": url}), ("PUT", "/config", {"url": url, "crawlBudget": 1})):
        error = alone.ask(method, path, 422, json=body)
        assert "s3cret" not in str(error) and error["hint"]
    assert not alone.app.workspace.crawls.all()


WRONG: list[dict[str, Any]] = [
    {},
    {"url": "https://example.com", "targets": ["example.com"]},
    {"url": None},
    {"url": ""},
    {"targets": []},
    {"targets": "example.com"},
    {"targets": ["example.com", 5]},
    {"targets": ["javascript:alert(1)"]},
    {"url": "ftp://example.com/"},
    {"url": "not a url at all"},
    {"url": "x" * 4001},
    {"url": "https://example.com", "name": ""},
    {"url": "https://example.com", "name": "two\nlines"},
    {"url": "https://example.com", "name": "\u202eturned around"},
    {"url": "https://example.com", "name": "  "},
    {"url": "https://example.com", "name": "x" * 201},
    {"url": "https://example.com", "mode": "baseline"},
    {"url": "https://example.com", "mode": "full", "fresh": True},
    {"url": "https://example.com", "fresh": "perhaps"},
    {"url": "https://example.com", "speed": 5},
    {"url": "https://example.com", "workers": 0},
    {"url": "https://example.com", "workers": 10**12},
    {"url": "https://example.com", "budget": -1},
    {"url": "https://example.com", "budget": None},
    {"url": "https://example.com", "delay": "Infinity"},
    {"url": "https://example.com", "scope": "galaxy"},
    {"url": "https://example.com", "include": ["re:("]},
    {"url": "https://example.com", "order": "best"},
    {"url": "https://example.com", "allow_private": True},
    {"url": "https://example.com", "proxies": ["http://127.0.0.1:1"]},
    {"url": "https://example.com", "replay": ["/etc/passwd"]},
    {"url": "https://example.com", "poll": 1},
]


@pytest.mark.parametrize("body", WRONG, ids=lambda body: str(body)[:60])
def test_what_is_wrong_is_found_before_anything_is_made(alone: Api, body: dict[str, Any]) -> None:
    error = alone.post("/crawl", 422, body)
    assert error["message"] and error["hint"]
    assert not alone.app.workspace.crawls.all() and not alone.app.jobs.listed()


def test_no_json_is_told(alone: Api) -> None:
    assert alone.ask("POST", "/crawl", 400, content=b"{", headers={"Content-Type": "application/json"})["message"]
    half = b'{"url": "https://example.com", "name": "\\ud800"}'
    for content in (b"[]", b"5", half):
        alone.ask("POST", "/crawl", 422, content=content, headers={"Content-Type": "application/json"})


def test_a_name_belongs_to_its_seeds(alone: Api) -> None:
    alone.post("/crawl", 202, {"url": "https://example.com", "name": "one"})
    error = alone.post("/crawl", 422, {"url": "https://example.org", "name": "one"})
    assert "other seeds" in error["message"]


def test_what_a_run_began_with_is_frozen(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=2, maxDepth=4)
    error = start(api, served, 409, max_depth=5)
    assert error["code"] == "frozen" and error["message"].startswith("max_depth is 4") and "fresh" in error["hint"]
    error = start(api, served, 409, mode="full")
    assert error["code"] == "frozen" and error["message"].startswith("mode is 'baseline'")
    assert api.post(f"/crawl/{begun['crawl_id']}/resume", 409, {"scope": "host"})["code"] == "frozen"
    assert len(api.app.jobs.listed()) == 1
    assert finished(api, served, max_depth=4)["session"] == 2


def test_a_fresh_start_is_a_baseline(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=2)
    fresh = start(api, served, fresh=True, max_depth=5)
    assert (fresh["crawl_id"], fresh["run"], fresh["session"]) == (begun["crawl_id"], 1, 1)
    api.ended(fresh["job_id"])
    assert api.get(f"/run/{begun['run_id']}")["state"] == "cancelled"
    made = api.get(f"/run/{fresh['run_id']}")
    assert (made["mode"], made["state"], made["total_pages_crawled"]) == ("baseline", "completed", 7)


def test_a_crawl_that_is_being_worked_on(api: Api, served: Served, pages: Pages) -> None:
    pages.hold("/p1")
    begun = start(api, served, workers=1)
    crawl = f"/crawl/{begun['crawl_id']}"
    assert (begun["state"], begun["message"]) == ("in_progress", "Run 0 (baseline) has started.")
    wait_for(lambda: api.status(begun["crawl_id"])["pages"] == 2, "two pages")
    assert "being worked on" in start(api, served, 409)["message"]
    assert "being worked on" in api.post(f"{crawl}/resume", 409)["message"]
    for path in (crawl, f"{crawl}/queue"):
        assert api.ask("DELETE", path, 409)["hint"]
    told = api.get(crawl)
    assert (told["state"], told["run_state"]) == ("in_progress", "in_progress") and told["owner"]["pid"]
    paused = api.post(f"{crawl}/pause")
    assert (paused["state"], paused["run"], paused["message"]) == ("paused", 0, "Run 0 is paused.")
    assert paused["run_id"] == f"{begun['crawl_id']}_iter_0"
    assert api.post(f"{crawl}/pause", 409)["message"].endswith("has nothing running to pause.")
    pages.is_open = True
    again = start(api, served)
    assert (again["run"], again["session"]) == (0, 2)
    api.ended(again["job_id"])
    assert api.get(crawl)["pages"] == 7
    assert not api.faults(begun["crawl_id"])


def test_a_run_that_is_cancelled(api: Api, served: Served, pages: Pages) -> None:
    pages.hold("/p1")
    begun = start(api, served, workers=1)
    crawl = f"/crawl/{begun['crawl_id']}"
    assert api.post(f"{crawl}/cancel")["state"] == "cancelled"
    assert api.post(f"{crawl}/cancel", 409)["message"].endswith("has no open run to cancel.")
    assert "begins its next run" in api.post(f"{crawl}/resume", 409)["hint"]
    pages.is_open = True
    paused = finished(api, served, budget=1)
    assert paused["run"] == 1
    assert api.post(f"{crawl}/cancel")["state"] == "cancelled"


def test_of_many_starts_at_once_one_counts(api: Api, served: Served, pages: Pages) -> None:
    pages.hold("/")
    body = {"url": served.url("/"), **QUICK}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.request("POST", "/crawl", json=body), range(8)))
    assert sorted(one.status_code for one in answers) == [202] + 7 * [409]
    assert len(api.app.workspace.crawls.all()) == len(api.app.jobs.listed()) == 1
    api.post(f"/crawl/{api.app.workspace.crawls.all()[0].crawl_id}/cancel")


def test_nobody_runs_jobs(alone: Api) -> None:
    begun = alone.post("/crawl", 202, {"url": "https://example.com"})
    assert {name: begun[name] for name in ("run_id", "run", "session", "execution_id")} == dict.fromkeys(
        ("run_id", "run", "session", "execution_id")
    )
    assert begun["state"] == "pending" and "no service of this home runs jobs" in begun["message"]
    error = alone.post("/crawl", 409, {"url": "https://example.com"})
    assert begun["job_id"] in error["message"] and "cancel that job" in error["hint"]
    alone.post(f"/jobs/{begun['job_id']}/cancel")
    assert alone.post("/crawl", 202, {"url": "https://example.com"})["crawl_id"] == begun["crawl_id"]


def test_all_executions_are_busy(tmp_path: Path, served: Served, pages: Pages) -> None:
    pages.hold("/")
    values = Settings(poll=0.1, executions=1, allow_private=True)
    with serving(tmp_path / "home", crawls.routes, values=values) as api:
        begun = start(api, served)
        second = api.post("/crawl", 202, {"url": served.url("/p1"), **QUICK})
        assert second["run"] is None and "all executions are busy" in second["message"]
        api.post(f"/crawl/{begun['crawl_id']}/cancel")
        pages.is_open = True
        api.ended(second["job_id"])
        assert api.get(f"/crawl/{second['crawl_id']}")["state"] == "completed"


def test_a_session_that_cannot_begin_is_told(api: Api, served: Served) -> None:
    """Here: the last session went through a proxy whose password nobody kept."""
    begun = finished(api, served, budget=1)
    api.app.workspace.crawls.change(begun["crawl_id"], settings={"proxies": ["http://…@127.0.0.1:9"]})
    error = api.post(f"/resume-crawl/{begun['crawl_id']}", 422)
    assert "proxy with a password" in error["message"] and "log of execution" in error["hint"]
    assert [one.line.status for one in api.app.jobs.listed()] == ["completed", "failed"]
    assert finished(api, served)["session"] == 2


# Resuming


def test_nothing_to_resume(api: Api, served: Served) -> None:
    begun = finished(api, served)
    for path in (f"/resume-crawl/{begun['crawl_id']}", f"/crawl/{begun['crawl_id']}/resume"):
        error = api.post(path, 409)
        assert error["code"] == "not_now" and "begins its next run" in error["hint"]
    unstarted = api.ask("PUT", "/config", 200, json={"url": "https://example.com"})["crawl_id"]
    assert "no paused run" in api.post(f"/resume-crawl/{unstarted}", 409)["message"]


def test_resuming_with_nothing_pending_completes_the_run(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=1)
    crawl_id = begun["crawl_id"]
    for row in api.app.frontier.list(api.app.workspace.find(crawl_id), {"state": "pending"}):
        api.app.queue.take_out(row.id)
    queue = api.get(f"/crawl/{crawl_id}/queue")
    assert (queue["pending"], queue["run_state"], queue["can_resume"]) == (0, "paused", False)
    done = api.post(f"/resume-crawl/{crawl_id}", 202)
    assert (done["state"], done["session"]) == ("completed", 2)
    assert done["message"] == "Run 0 (baseline) is completed: nothing is left to do."


def test_a_resumed_session_may_have_settings_of_its_own(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=1)
    again = api.post(f"/crawl/{begun['crawl_id']}/resume", 202, {"budget": 2, "workers": 1})
    api.ended(again["job_id"])
    assert api.get(f"/crawl/{begun['crawl_id']}/queue")["visited"] == 3
    for wrong in ({"workers": 0}, {"workers": None}, {"unknown": 1}):
        api.post(f"/crawl/{begun['crawl_id']}/resume", 422, wrong)


# Crawls


def test_a_list_of_crawls_comes_in_pages(alone: Api) -> None:
    made = [alone.ask("PUT", "/config", 200, json={"url": f"https://{n}.example.com"})["crawl_id"] for n in range(7)]
    seen, cursor = [], None
    while True:
        part = alone.get("/crawls", limit=3, **({"cursor": cursor} if cursor else {}))
        seen += part["items"]
        cursor = part["next_cursor"]
        if cursor is None:
            break
        assert len(part["items"]) == 3
    assert sorted(one["crawl_id"] for one in seen) == sorted(made)
    line = next(one for one in seen if one["crawl_id"] == made[3])
    assert (line["name"], line["seeds"], line["enabled"]) == ("3.example.com", ["https://3.example.com"], True)
    assert (line["state"], line["run"], line["pages"]) == ("", None, 0)
    assert len(alone.get("/crawls")["items"]) == 7


def test_a_list_tells_how_crawls_stand(api: Api, served: Served) -> None:
    begun = finished(api, served)
    (line,) = api.get("/crawls")["items"]
    assert (line["state"], line["run"], line["run_id"], line["pages"]) == ("completed", 0, begun["run_id"], 7)
    damaged = api.app.workspace.place(api.app.workspace.find(begun["crawl_id"])).folder / "crawl.db"
    damaged.write_bytes(b"this is no database" * 1000)
    (line,) = api.get("/crawls")["items"]
    assert line["state"] == "" and line["note"]


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WzEsIDJd", "%00", "🐛", "W1siYSJdLCAiYiJd", "9" * 900])
def test_cursors_that_are_not_ours(alone: Api, cursor: str) -> None:
    assert alone.get("/crawls", 400, cursor=cursor)["message"]


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "1000000000000", "x", ""])
def test_limits_that_are_none(alone: Api, limit: str) -> None:
    alone.get("/crawls", 422, limit=limit)


def test_everything_about_a_crawl(api: Api, served: Served) -> None:
    begun = finished(api, served, workers=2)
    told = api.get(f"/crawl/{begun['crawl_id']}")
    assert (told["run"], told["run_state"], told["ended_by"], told["order"]) == (0, "completed", "finished", "exact")
    assert (told["enabled"], told["incremental_crawling_enabled"], told["crawl_budget"]) == (True, True, 0)
    assert told["settings"]["workers"] == 2 and "poll" not in told["settings"]
    assert told["defaults"] == {**QUICK, "workers": 2}
    assert [one["id"] for one in told["jobs"]] == [begun["job_id"]]
    assert [one["session"] for one in told["sessions"]] == [1]


def test_a_crawl_that_has_not_started_can_be_seen(alone: Api) -> None:
    crawl_id = alone.ask("PUT", "/config", 200, json={"url": "https://example.com", "crawlBudget": 5})["crawl_id"]
    told = alone.get(f"/crawl/{crawl_id}")
    assert (told["state"], told["run"], told["defaults"]) == ("", None, {"budget": 5})
    queue = alone.get(f"/crawl/{crawl_id}/queue")
    assert (queue["has_queue"], queue["total"], queue["current_run_id"], queue["run_state"]) == (False, 0, None, "")
    assert (queue["run_crawl_ids"], queue["counts"], queue["can_resume"]) == ([], [], False)
    for method, path in (("DELETE", "queue"), ("POST", "pause"), ("POST", "cancel"), ("POST", "resume")):
        assert alone.ask(method, f"/crawl/{crawl_id}/{path}", 409)["code"] == "not_now"
    alone.get(f"/run/{crawl_id}_iter_0", 404)
    assert not list((alone.folder / "crawls").glob("*/crawl.db"))


def test_what_holds_for_a_crawl_can_be_changed(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=5, maxDepth=2)
    crawl = f"/crawl/{begun['crawl_id']}"
    changed = api.ask("PATCH", crawl, 200, json={"name": "mine", "settings": {"budget": 1, "maxDepth": 3, "delay": 0}})
    assert changed["name"] == "mine" and changed["defaults"] == {**QUICK, "budget": 1, "max_depth": 3}
    assert api.get(crawl)["settings"]["max_depth"] == 2  # frozen in the run that is open
    again = api.post("/crawl", 202, {"url": served.url("/"), "name": "mine"})
    api.ended(again["job_id"])
    assert api.get(f"{crawl}/queue")["visited"] == 6
    changed = api.ask("PATCH", crawl, 200, json={"settings": {"budget": None}})
    assert changed["defaults"] == {**QUICK, "max_depth": 3}
    api.ended(api.post(f"{crawl}/resume", 202)["job_id"])
    api.ended(api.post("/crawl", 202, {"url": served.url("/")})["job_id"])
    told = api.get(crawl)
    assert (told["run"], told["settings"]["max_depth"]) == (1, 3)


def test_without_increments_every_start_is_a_new_run(api: Api, served: Served) -> None:
    body = {"url": served.url("/"), "incrementalCrawlingEnabled": True, "crawlBudget": 2}
    crawl_id = api.ask("PUT", "/config", 200, json=body)["crawl_id"]
    finished(api, served)
    off = api.ask("PUT", "/config", 200, json={"url": served.url("/"), "incremental_crawling_enabled": False})
    assert (off["crawl_id"], off["incremental_crawling_enabled"], off["crawl_budget"]) == (crawl_id, False, 2)
    assert finished(api, served)["run"] == 1
    told = api.get(f"/crawl/{crawl_id}")
    assert (told["pages"], told["ended_by"]) == (7, "finished")
    assert api.get(f"/run/{crawl_id}_iter_0")["state"] == "cancelled"
    on = api.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"incrementalCrawlingEnabled": True})
    assert on["incremental_crawling_enabled"] is True
    none = api.ask("PUT", "/config", 200, json={"url": served.url("/"), "crawlBudget": 0})
    assert (none["crawl_budget"], none["incremental_crawling_enabled"]) == (0, True)


def test_jobs_of_a_disabled_crawl_are_paused(alone: Api) -> None:
    crawl_id = alone.make("https://example.com")
    job = alone.app.schedule.add(WantedJob(crawl_id, interval_minutes=60))
    told = alone.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"enabled": False})
    assert told["enabled"] is False
    assert (told["jobs"][0]["status"], told["jobs"][0]["reason"]) == ("paused", "source_disabled")
    error = alone.post(f"/jobs/{job.id}/resume", 409)
    assert error["code"] == "not_now" and "disabled" in error["message"] and "enable" in error["hint"].lower()
    assert alone.app.jobs.one(job.id).line.reason == "source_disabled", "it stays as it was"
    told = alone.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"enabled": True})
    assert told["enabled"] is True and alone.app.jobs.one(job.id).line.status == "scheduled"


def test_what_ended_is_not_resumed_whether_its_crawl_is_disabled_or_not(alone: Api) -> None:
    """To enable the crawl would not help."""
    crawl_id = alone.make("https://example.com")
    job = alone.app.schedule.add(WantedJob(crawl_id, interval_minutes=60))
    alone.post(f"/jobs/{job.id}/cancel")
    said = alone.post(f"/jobs/{job.id}/resume", 409)
    alone.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"enabled": False})
    assert alone.post(f"/jobs/{job.id}/resume", 409) == said


WRONG_CHANGES: list[dict[str, Any]] = [
    {"name": None},
    {"name": ""},
    {"name": "\x00"},
    {"enabled": None},
    {"enabled": "perhaps"},
    {"settings": None},
    {"settings": {"workers": 0}},
    {"settings": {"allow_private": True}},
    {"settings": {"exclude": ["re:["]}},
    {"settings": {"order": "best"}},
    {"incremental_crawling_enabled": None},
    {"seeds": ["https://example.org"]},
]


@pytest.mark.parametrize("body", WRONG_CHANGES, ids=str)
def test_changes_that_are_wrong(alone: Api, body: dict[str, Any]) -> None:
    crawl_id = alone.make("https://example.com")
    before = alone.get(f"/crawl/{crawl_id}")
    alone.ask("PATCH", f"/crawl/{crawl_id}", 422, json={"enabled": False, **body})
    assert alone.get(f"/crawl/{crawl_id}") == before


def test_a_name_is_given_once(alone: Api) -> None:
    one, two = alone.make("https://example.com"), alone.make("https://example.org")
    for name in ("example.com", one):
        assert "another crawl" in alone.ask("PATCH", f"/crawl/{two}", 409, json={"name": name})["message"]
    assert alone.ask("PATCH", f"/crawl/{two}", 200, json={"name": "example.org"})["name"] == "example.org"


@pytest.mark.parametrize(
    "body",
    [{}, {"url": "x y"}, {"url": "https://example.com", "crawlBudget": -1}, {"url": "https://example.com", "budget": 5},
     {"url": "https://example.com", "crawlBudget": None}, {"url": "https://example.com", "crawlBudget": 10**30},
     {"url": "https://example.com", "incrementalCrawlingEnabled": None}],
)  # fmt: skip
def test_configurations_that_are_wrong(alone: Api, body: dict[str, Any]) -> None:
    alone.ask("PUT", "/config", 422, json=body)
    assert not alone.app.workspace.crawls.all()


def test_a_crawl_goes_with_everything_it_has(api: Api, served: Served) -> None:
    begun = finished(api, served)
    folder = api.app.workspace.place(api.app.workspace.find(begun["crawl_id"])).folder
    assert folder.exists()
    assert api.ask("DELETE", f"/crawl/{begun['crawl_id']}", 204) is None
    assert not folder.exists() and not api.app.jobs.listed()
    api.ask("DELETE", f"/crawl/{begun['crawl_id']}", 404)
    api.get(f"/run/{begun['run_id']}", 404)


# The queue, and runs


def test_the_queue_is_cleared(api: Api, served: Served) -> None:
    begun = finished(api, served, budget=3)
    queue = f"/crawl/{begun['crawl_id']}/queue"
    cleared = api.ask("DELETE", queue, 200)
    assert (cleared["cleared"], cleared["pending"], cleared["run_state"]) == (4, 0, "completed")
    assert {"source": "spider", "state": "refused", "reason": "cleared", "count": 4} in cleared["counts"]
    assert api.ask("DELETE", queue, 200)["cleared"] == 0
    assert api.get(f"/run/{begun['run_id']}")["total_pages_crawled"] == 3
    assert not api.faults(begun["crawl_id"])


@pytest.mark.parametrize("word", HOSTILE)
def test_ids_that_are_none(alone: Api, word: str) -> None:
    crawl_id = alone.make("https://example.com")
    for method, path in (
        *(("GET", f"/crawl/{word}"), ("PATCH", f"/crawl/{word}"), ("DELETE", f"/crawl/{word}")),
        *(("POST", f"/resume-crawl/{word}"), ("POST", f"/crawl/{word}/resume"), ("POST", f"/crawl/{word}/pause")),
        *(("POST", f"/crawl/{word}/cancel"), ("GET", f"/crawl/{word}/queue"), ("DELETE", f"/crawl/{word}/queue")),
        *(("GET", f"/run/{word}"), ("GET", f"/run/{crawl_id}_iter_{word}"), ("GET", f"/run/{word}_iter_0")),
    ):
        answer = alone.request(method, path, **({"json": {}} if method == "PATCH" else {}))
        assert answer.status_code in (404, 409, 422), (method, path, answer.text)
        assert set(answer.json()["error"]) == {"code", "message", "hint"}
    # A crawl is known by its id alone.
    alone.get("/crawl/example.com", 404)


def test_the_whole_service_has_these_routes(tmp_path: Path) -> None:
    verbs = Verbs(tmp_path, VALUES, lambda: None)
    paths = build.api(verbs).openapi()["paths"]
    verbs.close()
    for method, path in (
        ("post", "/crawl"), ("get", "/crawls"), ("get", "/crawl/{crawl_id}"), ("patch", "/crawl/{crawl_id}"),
        ("delete", "/crawl/{crawl_id}"), ("put", "/config"), ("post", "/resume-crawl/{crawl_id}"),
        ("post", "/crawl/{crawl_id}/resume"), ("post", "/crawl/{crawl_id}/pause"), ("post", "/crawl/{crawl_id}/cancel"),
        ("get", "/crawl/{crawl_id}/queue"), ("delete", "/crawl/{crawl_id}/queue"), ("get", "/run/{run_id}"),
    ):  # fmt: skip
        told = paths[f"/api/v1{path}"][method]
        assert told["description"] and told["tags"] == ["crawls"] and "422" in told["responses"]
