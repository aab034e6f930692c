"""The routes about pages, asked as their users ask them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import page
from tests.flow.test_frames import NOTICE, SUBJECTS, shop
from tests.service.in_process import Api, serving, wait_for

from inchworm.app.read.content import pages as page_reads
from inchworm.service.api import crawls, exports, pages, web
from inchworm.store.crawl.read import visits
from inchworm.store.crawl.read.visits import VisitReader, WantedVisits
from inchworm.store.crawl.store import CrawlStore
from inchworm.testing import Hit, Page, Served, Site, redirect

HOSTILE = [
    "' OR 1=1 --",
    "%",
    "_",
    "\x00",
    "\\",
    '"; DROP TABLE visit; --',
    "🐛",
    "10" * 900,
    "%00",
    "../../etc/passwd",
]


def made_pages() -> dict[str, Any]:
    """Fine pages, a duplicate, a redirect, a dead link, a failing page, and URLs with signs that LIKE would take up."""
    names = ["/a", "/b", "/b2", "/old", "/dead", "/broken", "/100%25", "/under_score", "/underXscore", "/Upper"]
    fine = ("/a", "/b", "/100%25", "/under_score", "/underXscore", "/Upper")
    return {
        "/": page("start", *names, "https://elsewhere.example/"),
        **{name: page(name, "/") for name in fine},
        "/b2": page("/b", "/"),
        "/old": redirect("/a", 301),
        "/broken": Page("trouble", 500),
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with Site(made_pages()).serve() as served:
        yield served


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("pages") / "home", crawls.routes, pages.routes, exports.routes) as made:
        yield made


@pytest.fixture(scope="module")
def crawl(api: Api, site: Served) -> str:
    """The path of a crawl that has been run once. Nobody changes it."""
    crawl_id = api.crawled(site.url("/"), max_retries=0)
    return f"/crawl/{crawl_id}"


@pytest.fixture(scope="module")
def unstarted(api: Api) -> str:
    return f"/crawl/{api.make('https://example.com')}"


def paths(items: list[dict[str, Any]]) -> list[str]:
    return [one["url"].partition("//")[2].partition("/")[2] for one in items]


def everything(api: Api, path: str, limit: int, **query: Any) -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        part = api.get(path, limit=limit, **query, **cursor)
        assert len(part["items"]) <= limit
        found += part["items"]
        if part["next_cursor"] is None:
            return found
        cursor = {"cursor": part["next_cursor"]}


# The list


def test_what_became_of_every_page(api: Api, crawl: str, site: Served) -> None:
    found = everything(api, f"{crawl}/pages", 3)
    assert len(found) == 11 and [one["seq"] for one in found] == sorted(one["seq"] for one in found)
    by_path = dict(zip(paths(found), found, strict=True))
    assert {path: one["outcome"] for path, one in by_path.items()} == {
        "": "page", "a": "page", "b": "page", "b2": "duplicate", "old": "redirect", "dead": "failed",
        "broken": "failed", "100%25": "page", "under_score": "page", "underXscore": "page", "Upper": "page",
    }  # fmt: skip
    first = by_path["a"]
    assert (first["status"], first["title"], first["source"], first["depth"]) == (200, "/a", "spider", 1)
    assert first["found_on"] == site.url("/") and first["fetched_at"].endswith("Z") and first["archive"]["file"]
    assert by_path["b2"]["content_hash"] == by_path["b"]["content_hash"]
    assert by_path["old"]["redirect"] == site.url("/a")
    assert (by_path["broken"]["failure"], by_path["dead"]["failure"]) == ("http_5xx", "http_4xx")
    assert everything(api, f"{crawl}/pages", 1000) == found


def test_filters(api: Api, crawl: str) -> None:
    assert paths(everything(api, f"{crawl}/pages", 1, outcome="failed")) == ["dead", "broken"]
    assert paths(everything(api, f"{crawl}/pages", 2, outcome="duplicate", run=0)) == ["b2"]
    assert paths(api.get(f"{crawl}/pages", q="upper")["items"]) == ["Upper"]
    assert paths(api.get(f"{crawl}/pages", q="B2", outcome="duplicate")["items"]) == ["b2"]
    assert api.get(f"{crawl}/pages", change="new") == {"items": [], "next_cursor": None}
    assert len(api.get(f"{crawl}/pages", q="")["items"]) == 11


def test_what_is_looked_for_means_itself(api: Api, crawl: str) -> None:
    assert paths(api.get(f"{crawl}/pages", q="under_s")["items"]) == ["under_score"]
    assert paths(api.get(f"{crawl}/pages", q="100%")["items"]) == ["100%25"]
    for word in HOSTILE:
        found = api.get(f"{crawl}/pages", q=word)["items"]
        assert paths(found) == {"%": ["100%25"], "_": ["under_score"]}.get(word, []), word


@pytest.mark.parametrize(
    "query",
    [{"run": "-1"}, {"run": "x"}, {"run": 10**30}, {"outcome": "retry"}, {"outcome": "page' OR 1=1"}, {"limit": 0},
     {"change": "moved"}, {"limit": -1}, {"limit": 1001}, {"q": "x" * 2001}],
)  # fmt: skip
def test_questions_that_are_none(api: Api, crawl: str, query: dict[str, Any]) -> None:
    api.get(f"{crawl}/pages", 422, **query)


@pytest.mark.parametrize(
    "cursor", ["x", "WyJhIl0", "WzEsIDJd", "MS41", "dHJ1ZQ", "e30", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "%00"]
)
def test_cursors_that_are_not_ours(api: Api, crawl: str, cursor: str) -> None:
    api.get(f"{crawl}/pages", 400, cursor=cursor)
    api.get(f"{crawl}/failed", 400, cursor=cursor)


def test_no_page_of_a_list_costs_more_than_the_first(api: Api, crawl: str) -> None:
    """SQLite follows the order of record and looks rows up: it reads no table from its start, and sorts nothing."""
    told: list[str] = []
    path = api.app.workspace.place(api.app.workspace.find(crawl.split("/")[-1])).folder / "crawl.db"
    store = CrawlStore(path, read_only=True)
    store.db._connection.set_trace_callback(told.append)
    for sought in (
        WantedVisits(),
        WantedVisits(outcome="page"),
        WantedVisits("failed", "http_4xx"),
        WantedVisits(change="new", text="a"),
    ):
        VisitReader(store).settled(1, sought, 0, 3)
    store.db._connection.set_trace_callback(None)
    assert len(told) == 7  # nothing is new, so nothing more is asked
    for statement in told:
        plan = [row[3] for row in store.db.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert "INDEX visit_seq (run_id=? AND seq" in plan[0], plan
        assert all(line.startswith("SEARCH") for line in plan), plan
    store.close()


def test_a_long_run_is_searched_bit_by_bit(api: Api, crawl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = everything(api, f"{crawl}/pages", 1000)
    monkeypatch.setattr(visits, "SPAN", 2)
    monkeypatch.setattr(page_reads, "SPAN", 2)
    assert everything(api, f"{crawl}/pages", 1) == everything(api, f"{crawl}/pages", 1000) == whole
    assert paths(everything(api, f"{crawl}/pages", 50, q="upper")) == ["Upper"]
    assert paths(everything(api, f"{crawl}/failed", 50)) == ["dead", "broken"]


# One URL


def test_what_a_page_says(api: Api, crawl: str, site: Served) -> None:
    url = site.url("/")
    page = api.get(f"{crawl}/page", url=url, **{"with": "text, markdown,raw_html,links"})
    assert page["url"] == url and page["visits"]
    assert page["text"]
    assert page["markdown"]
    assert page["raw_html"].startswith("<")
    assert all(link["url"].startswith("http") for link in page["links"])
    assert "html" not in page
    assert "text" not in api.get(f"{crawl}/page", url=url)
    assert "no part 'soul'" in api.get(f"{crawl}/page", 422, url=url, **{"with": "soul"})["message"]


def test_one_page(api: Api, crawl: str, site: Served) -> None:
    told = api.get(f"{crawl}/page", url=site.url("/b2"))
    assert (told["state"], told["source"], told["found_on"]) == ("done", "spider", site.url("/"))
    (visit,) = told["visits"]
    assert visit["alternate_urls"] == [site.url("/b"), site.url("/b2")] and visit["fetched_at"].endswith("Z")
    assert not [name for name in (*told, *visit) if name.endswith("_ms")]
    for name in ("/nowhere", "/a%00"):
        assert "not known" in api.get(f"{crawl}/page", 404, url=site.url(name))["message"]
    for url in ("no url", "javascript:x", "\x00", "' OR 1=1"):
        api.get(f"{crawl}/page", 422, url=url)
    api.get(f"{crawl}/page", 422)
    api.get(f"{crawl}/page", 404, url=site.url("/a"), run=7)


def test_why(api: Api, crawl: str, site: Served) -> None:
    told = api.get(f"{crawl}/why", url="https://elsewhere.example/")
    assert (told["state"], told["reason"]) == ("refused", "out_of_scope")
    assert told["why"] == "refused (out_of_scope): it lies outside the crawl's scope."
    said = {
        "/a": "done: it was fetched as page number ",
        "/b2": f"done: it was fetched, and its text is that of {site.url('/b')}.",
        "/old": f"done: it redirects to {site.url('/a')}.",
        "/broken": "done, and failed (http_5xx): ",
    }
    for path, beginning in said.items():
        assert api.get(f"{crawl}/why", url=site.url(path))["why"].startswith(beginning)
    api.get(f"{crawl}/why", 404, url="https://unheard.example/")


def test_what_failed(api: Api, crawl: str) -> None:
    assert paths(everything(api, f"{crawl}/failed", 1)) == ["dead", "broken"]
    assert paths(api.get(f"{crawl}/failed", kind="http_5xx")["items"]) == ["broken"]
    assert api.get(f"{crawl}/failed", kind="dns")["items"] == []
    assert "http_5xx" in api.get(f"{crawl}/failed", 422, kind="http_5xx' OR 1=1 --")["hint"]


# Text, reports


def test_search(api: Api, crawl: str, site: Served) -> None:
    found = api.get(f"{crawl}/search", q="Upper says", limit=5)
    assert found["query"] == "Upper says" and found["results"][0]["url"] == site.url("/Upper")
    assert len(api.get(f"{crawl}/search", q="says", limit=2)["results"]) == 2
    for word in HOSTILE[:8]:
        answer = api.request("GET", f"{crawl}/search", params={"q": word})
        assert answer.status_code in (200, 422), (word, answer.text)
    for query in ({}, {"q": ""}, {"q": "a", "limit": 0}, {"q": "a", "limit": -5}, {"q": "a", "limit": 10**12}):
        api.get(f"{crawl}/search", 422, **query)


def test_reports(api: Api, crawl: str, site: Served) -> None:
    broken = api.get(f"{crawl}/reports/broken-links")
    assert (broken["report"], broken["run"], broken["count"]) == ("broken-links", 0, 2)
    assert {one["url"] for one in broken["rows"]} == {site.url("/dead"), site.url("/broken")}
    assert broken["rows"][0]["linked_from"][0]["url"] == site.url("/")
    assert len(api.get(f"{crawl}/reports/broken-links", limit=1)["rows"]) == 1
    for kind in ("redirects", "duplicates", "errors", "slow"):
        assert api.get(f"{crawl}/reports/{kind}", run=0)["rows"], kind
    assert "broken-links" in api.get(f"{crawl}/reports/everything", 422)["hint"]
    api.get(f"{crawl}/reports/slow", 404, run=3)
    api.get(f"{crawl}/reports/slow", 422, limit=0)


LOOKS = (
    *("pages", "page?url=https://example.com", "why?url=https://example.com", "diff?url=https://example.com", "failed"),
    *("search?q=a", "reports/slow", "export?format=urls"),
)


@pytest.mark.parametrize("path", LOOKS)
def test_crawls_that_are_not_there_or_have_not_started(api: Api, unstarted: str, path: str) -> None:
    assert "not started" in api.ask("GET", f"{unstarted}/{path}", 409)["message"]
    for word in ("nobody", "%00", "1%20OR%201=1", "x" * 64):
        assert api.ask("GET", f"/crawl/{word}/{path}", 404)["message"]


def test_a_retry_of_what_is_not_there(api: Api, unstarted: str) -> None:
    api.post(f"{unstarted}/retry", 409)
    api.post("/crawl/nobody/retry", 404)


# What changes


def test_retries(tmp_path: Path) -> None:
    site = made_pages()
    with Site(site).serve() as served, serving(tmp_path / "home", crawls.routes, pages.routes) as api:
        crawl_id = api.crawled(served.url("/"), max_retries=0)
        crawl = f"/crawl/{crawl_id}"
        for wrong in ({"kind": "rain"}, {"url": "no url"}, {"kind": 5}, {"what": 1}, {"kind": "x" * 60}):
            assert api.post(f"{crawl}/retry", 422, wrong)["message"]
        assert api.post(f"{crawl}/retry", 200, {"kind": "dns"}) == {
            "reopened": 0,
            "message": "Nothing that failed fits.",
        }
        assert api.post(f"{crawl}/retry", 200, {"url": served.url("/a")})["reopened"] == 0
        site["/broken"] = page("mended")
        assert api.post(f"{crawl}/retry", 200, {"kind": "http_5xx"})["reopened"] == 1
        assert api.get(f"{crawl}/queue")["can_resume"] is True
        assert paths(api.get(f"{crawl}/failed")["items"]) == ["dead"]
        api.ended(api.post(f"{crawl}/resume", 202)["job_id"])
        assert api.get(f"{crawl}/page", url=served.url("/broken"))["visits"][-1]["outcome"] == "page"
        assert api.post(f"{crawl}/retry", 200)["reopened"] == 1
        assert not api.faults(crawl_id)


def test_a_retry_while_a_session_runs(tmp_path: Path) -> None:
    site, gate = made_pages(), threading.Event()

    def answer(_: Hit) -> Page:
        return Page(page("late", "/"), delay=0.0 if gate.is_set() else 600.0)

    site["/a"] = answer
    with Site(site).serve() as served, serving(tmp_path / "home", crawls.routes, pages.routes) as api:
        body = {"url": served.url("/"), "delay": 0, "max_retries": 0, "grace": 0.1, "strict_order": False, "workers": 3}
        site["/"] = page("start", "/broken", "/a")
        begun = api.post("/crawl", 202, body)
        crawl = f"/crawl/{begun['crawl_id']}"
        wait_for(lambda: api.request("GET", f"{crawl}/failed").json().get("items"), "a failure")
        site["/broken"] = page("mended")
        assert api.post(f"{crawl}/retry", 200, {"url": served.url("/broken")})["reopened"] == 1
        assert api.get(f"{crawl}/pages")["items"]
        api.post(f"{crawl}/pause")
        gate.set()
        api.ended(api.post(f"{crawl}/resume", 202)["job_id"])
        assert api.get(f"{crawl}/failed")["items"] == []


def test_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = made_pages()
    with Site(site, validators=True).serve() as served, serving(tmp_path / "home", crawls.routes, pages.routes) as api:
        crawl_id = api.crawled(served.url("/"), max_retries=0)
        crawl = f"/crawl/{crawl_id}"
        assert "nothing to compare" in api.get(f"{crawl}/diff", 409, url=served.url("/a"))["message"]
        site["/a"] = page("/a", "/", body="<p>Something new is said here.</p>")
        site["/new"] = page("new", "/")
        site["/b"] = page("/b", "/", "/new")
        api.ended(api.post("/crawl", 202, {"url": served.url("/"), "delay": 0})["job_id"])
        assert sorted(paths(api.get(f"{crawl}/pages", change="new")["items"])) == ["new"]
        assert "a" in paths(api.get(f"{crawl}/pages", change="modified")["items"])
        assert len(api.get(f"{crawl}/pages", run=0)["items"]) == 11
        told = api.get(f"{crawl}/diff", url=served.url("/a"))
        assert (told["baseline"], told["current"]) == (0, 1)
        assert "+Something new is said here." in told["diff"]
        same = api.get(f"{crawl}/diff", url=served.url("/a"), baseline=1, current=1)
        assert (same["diff"], same["is_cut"]) == ([], False)
        monkeypatch.setattr(pages, "_MOST_LINES", 1)
        cut = api.get(f"{crawl}/diff", url=served.url("/a"))
        assert cut["is_cut"] and "+Something new is said here." not in cut["diff"]
        api.get(f"{crawl}/diff", 404, url=served.url("/a"), baseline=0, current=7)
        api.get(f"{crawl}/diff", 404, url=served.url("/unheard"))
        api.get(f"{crawl}/diff", 422, url="no url")
        api.get(f"{crawl}/diff", 422, url=served.url("/a"), baseline=-1)


def test_what_takes_long_is_done_for_a_few_at_a_time(api: Api, crawl: str) -> None:
    with contextlib.ExitStack() as others:
        for _ in range(4):
            others.enter_context(web.at_length())
        answer = api.request("GET", f"{crawl}/search?q=a")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert api.request("GET", f"{crawl}/export?format=urls").status_code == 503
        assert api.request("GET", f"{crawl}/pages").status_code == 200
    assert api.request("GET", f"{crawl}/export?format=urls").status_code == 200


def test_blocks_on_most_pages_are_found_and_shown_if_wanted(api: Api) -> None:
    with Site(shop()).serve() as served:
        crawl = f"/crawl/{api.crawled(served.url('/'))}"
        address = served.url("/lamps")
    assert api.get(f"{crawl}/search", q="kassel")["count"] == 0
    assert api.get(f"{crawl}/search", q="kassel", frame="keep")["count"] == len(SUBJECTS)
    assert NOTICE not in api.get(f"{crawl}/page", **{"url": address, "with": "text,markdown,html"})["text"]
    assert NOTICE in api.get(f"{crawl}/page", **{"url": address, "with": "text", "frame": "keep"})["text"]
