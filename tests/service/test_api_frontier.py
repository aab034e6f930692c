"""The routes about rows of the frontier, asked as their users ask them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import page
from tests.service.in_process import Api, HeldPages, serving, wait_for

from inchworm.service.api import checkpoints, crawls, frontier, pages
from inchworm.testing import Page, Served, Site

OUT = "https://elsewhere.example/"
HOSTILE = ["x", "%00", "%C3%28", "x_0_1", "' OR 1=1", "0_0_0", "a_-1_1", "a_1_" + "9" * 30, "..%2f..", "%F0%9F%90%9B"]


class Pages(HeldPages):
    """A start page that leads to three others, out of scope, and where robots.txt says no. Nobody links to /hidden."""

    def __init__(self) -> None:
        names = ("/a", "/b", "/c")
        super().__init__({name: page(name, "/", "/deep") for name in (*names, "/hidden", "/secret", "/deep")})
        self["/"] = page("start", *names, "/secret", OUT, "https://elsewhere.example/2")
        self["/robots.txt"] = Page("User-agent: *\nDisallow: /secret", headers={"Content-Type": "text/plain"})
        self["/deep"] = page("deep", "/deeper")
        self["/hidden/"] = self["/hidden"]


@pytest.fixture
def site() -> Pages:
    return Pages()


@pytest.fixture
def served(site: Pages) -> Iterator[Served]:
    with Site(site).serve() as made:
        yield made


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path / "home", frontier.routes, crawls.routes, pages.routes, checkpoints.routes) as made:
        yield made


def everything(api: Api, path: str, limit: int, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        part = api.get(path, limit=limit, **query, **cursor)
        found += part["items"]
        if part["next_cursor"] is None:
            return found
        assert len(part["items"]) == limit
        cursor = {"cursor": part["next_cursor"]}


def row_of(api: Api, crawl_id: str, url: str) -> dict[str, Any]:
    (found,) = [one for one in everything(api, "/frontier", 1000, crawl_id=crawl_id) if one["url"] == url]
    return found


def resumed(api: Api, crawl_id: str) -> None:
    api.ended(api.post(f"/crawl/{crawl_id}/resume", 202, {"budget": 0})["job_id"])


# Looking


def test_rows_are_listed(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=2)
    found = everything(api, "/frontier", 2, crawl_id=crawl_id)
    assert len(found) == len({one["id"] for one in found}) == 8
    assert everything(api, "/frontier", 1000, crawlId=crawl_id, run=0) == found
    first = found[0]
    assert (first["url"], first["state"], first["source"], first["depth"]) == (served.url("/"), "done", "initial", 0)
    assert first["found_on"] is None and first["reason"] is None and first["why"] is None
    assert first["id"] == f"{crawl_id}_0_{first['url_id']}" and api.get(f"/frontier/{first['id']}") == first
    assert {one["state"] for one in everything(api, "/frontier", 3, crawl_id=crawl_id, state="pending")} == {"pending"}
    outside = everything(api, "/frontier", 1, crawl_id=crawl_id, reason="out_of_scope")
    assert [one["url"] for one in outside] == [OUT, "https://elsewhere.example/2"]
    assert outside[0]["found_on"] == served.url("/") and outside[0]["why"] == "it lies outside the crawl's scope"
    assert not everything(api, "/frontier", 5, crawl_id=crawl_id, source="sitemap", state="done")


def test_lists_that_are_none(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"))
    assert "crawl_id" in api.get("/frontier", 422, run=0)["hint"]
    wrong = {"state": "lost", "reason": "' OR 1=1 --", "source": "%", "run": 10**30}
    numbers = [("limit", number) for number in (0, -1, 1001, 10**12)]
    for name, value in (*wrong.items(), *numbers, ("run", -1)):
        api.get("/frontier", 422, crawl_id=crawl_id, **{name: value})
    api.get("/frontier", 404, crawl_id=crawl_id, run=9)
    for word in ("nobody", "\x00", "' OR 1=1", served.url("/")):
        api.get("/frontier", 404, crawl_id=word)
        api.get("/discovered-links", 404, crawl_id=word)
    for cursor in ("x", "WyJhIl0", "WzEsIDJd", "MS41", "dHJ1ZQ", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"):
        api.get("/frontier", 400, crawl_id=crawl_id, cursor=cursor)
        api.get("/discovered-links", 400, crawl_id=crawl_id, cursor=cursor)
        api.get("/frontier", 400, cursor=cursor)
        api.get("/discovered-links", 400, cursor=cursor)
    unstarted = api.make("https://example.com")
    assert "not started" in api.get("/frontier", 409, crawl_id=unstarted)["message"]
    assert "not started" in api.post("/frontier", 409, {"crawl_id": unstarted, "url": OUT})["message"]


@pytest.mark.parametrize("word", HOSTILE)
def test_ids_that_are_none(api: Api, word: str) -> None:
    crawl_id = api.make("https://example.com")
    for path in (f"/frontier/{word}", f"/discovered-links/{word}", f"/frontier/{crawl_id}_0_{word}"):
        for method in ("GET", "DELETE"):
            api.ask(method, path, 404)


def test_rows_of_all_crawls(api: Api, served: Served) -> None:
    one, two = api.crawled(served.url("/"), budget=2), api.crawled(served.url("/a"), scope="host")
    api.make("https://example.com")
    whole = [row for crawl_id in (one, two) for row in everything(api, "/frontier", 1000, crawl_id=crawl_id)]
    for limit in (1, 3, 1000):
        assert everything(api, "/frontier", limit) == whole
    pending = [row for row in whole if row["state"] == "pending"]
    assert pending and everything(api, "/frontier", 2, state="pending") == pending
    assert everything(api, "/frontier", 2, state="pending", source="sitemap") == []


# Adding


def test_a_url_is_added_by_hand(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=2)
    hidden = served.url("/hidden")
    made = api.post("/frontier", 201, {"crawlId": crawl_id, "url": hidden + "/#part"})
    assert (made["url"], made["request_url"], made["source"]) == (hidden, hidden + "/", "manual")
    assert (made["state"], made["depth"], made["found_on"], made["added"]) == ("pending", 0, None, True)
    again = api.post("/frontier", 200, {"crawl_id": crawl_id, "url": hidden})
    assert (again["id"], again["added"], again["state"]) == (made["id"], False, "pending")
    assert [one["id"] for one in everything(api, "/frontier", 1, crawl_id=crawl_id, source="manual")] == [made["id"]]
    assert {"source": "manual", "state": "pending", "reason": None, "count": 1} in api.get(f"/crawl/{crawl_id}/queue")[
        "counts"
    ]
    assert not api.faults(crawl_id)
    resumed(api, crawl_id)
    assert api.get(f"/frontier/{made['id']}")["state"] == "done"
    assert api.get(f"/crawl/{crawl_id}/page", url=hidden)["visits"][0]["outcome"] == "page"
    error = api.post("/frontier", 409, {"crawl_id": crawl_id, "url": hidden})
    assert "has visited" in error["message"] and error["hint"]
    assert not api.faults(crawl_id)


def test_what_is_refused_is_told(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), max_depth=2, exclude=["*never*"])
    told = api.post("/frontier", 201, {"crawl_id": crawl_id, "url": "https://third.example/x"})
    assert (told["state"], told["reason"], told["source"]) == ("refused", "out_of_scope", "manual")
    assert told["message"] == "It is refused (out_of_scope): it lies outside the crawl's scope."
    assert api.post("/frontier", 201, {"crawl_id": crawl_id, "url": served.url("/never")})["reason"] == "excluded"
    assert (
        api.post("/frontier", 201, {"crawl_id": crawl_id, "url": served.url("/x"), "depth": 3})["reason"] == "max_depth"
    )
    assert api.post("/frontier", 200, {"crawl_id": crawl_id, "url": OUT})["reason"] == "out_of_scope"
    assert api.post("/frontier", 200, {"crawl_id": crawl_id, "url": served.url("/secret")})["reason"] == "robots"
    assert api.status(crawl_id)["run_state"] == "completed"
    assert not api.faults(crawl_id)


def test_a_complete_run_opens_again(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), max_depth=2)
    deeper = served.url("/deeper")
    assert row_of(api, crawl_id, deeper)["reason"] == "max_depth"
    made = api.post("/frontier", 201, {"crawl_id": crawl_id, "url": deeper, "depth": 1})
    assert (made["state"], made["depth"], made["added"]) == ("pending", 1, True)
    queue = api.get(f"/crawl/{crawl_id}/queue")
    assert (queue["run_state"], queue["pending"], queue["can_resume"]) == ("paused", 1, True)
    resumed(api, crawl_id)
    assert api.status(crawl_id)["run_state"] == "completed" and "/deeper" in served.paths()
    assert not api.faults(crawl_id)


def test_nothing_is_added_to_a_cancelled_run(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=1)
    api.post(f"/crawl/{crawl_id}/cancel")
    assert "was cancelled" in api.post("/frontier", 409, {"crawl_id": crawl_id, "url": served.url("/x")})["message"]


def test_adding_can_be_undone(api: Api, served: Served) -> None:
    """Whatever is done by hand is a step of the run, so one can go back to before it."""
    crawl_id = api.crawled(served.url("/"), budget=2)
    point = api.post(f"/crawl/{crawl_id}/checkpoint", 201)["checkpoint_id"]
    before = everything(api, "/frontier", 1000, crawl_id=crawl_id)
    api.post("/frontier", 201, {"crawl_id": crawl_id, "url": served.url("/hidden")})
    api.ask("DELETE", f"/frontier/{row_of(api, crawl_id, served.url('/c'))['id']}", 204)
    api.ask("DELETE", f"/discovered-links/{row_of(api, crawl_id, OUT)['id']}", 204)
    assert not api.faults(crawl_id)
    job = api.post(f"/crawl/{crawl_id}/continue", 202, {"checkpoint_id": point, "settings": {"budget": 1, "delay": 0}})
    api.ended(job["job_id"])
    after = everything(api, "/frontier", 1000, crawl_id=crawl_id)
    assert [(one["url"], one["reason"]) for one in after] == [(one["url"], one["reason"]) for one in before]
    assert not api.faults(crawl_id)


def test_adding_while_a_session_runs(api: Api, served: Served, site: Pages) -> None:
    site.hold("/b")
    crawl_id = api.make(served.url("/"), workers=1, grace=0.1)
    begun = api.post("/crawl", 202, {"url": served.url("/")})
    wait_for(lambda: "/b" in served.paths(), "a session in the middle of its work")
    made = api.post("/frontier", 201, {"crawl_id": crawl_id, "url": served.url("/hidden")})
    assert (made["state"], made["source"], made["added"]) == ("pending", "manual", True)
    told = api.post("/frontier", 201, {"crawl_id": crawl_id, "url": "https://third.example/"})
    assert (told["state"], told["reason"]) == ("refused", "out_of_scope")
    again = api.post("/frontier", 200, {"crawl_id": crawl_id, "url": served.url("/hidden")})
    assert (again["id"], again["added"]) == (made["id"], False)
    for row in (made, told):
        error = api.ask("DELETE", f"/frontier/{row['id']}", 409)
        assert error["code"] == "owned"
    assert api.ask("DELETE", f"/discovered-links/{told['id']}", 409)["code"] == "owned"
    assert api.is_running(crawl_id) and not api.get(f"/crawl/{crawl_id}/checkpoints")
    api.post(f"/crawl/{crawl_id}/pause")
    site.is_open = True
    assert begun["run"] == 0
    resumed(api, crawl_id)
    assert "/hidden" in served.paths() and api.get(f"/frontier/{made['id']}")["state"] == "done"
    assert not api.faults(crawl_id)


WRONG: list[dict[str, Any]] = [
    {}, {"url": OUT}, {"url": "no url"}, {"url": ""}, {"url": "javascript:x"}, {"url": "https://u:s3cret@example.com/"},
    {"url": OUT, "depth": -1}, {"url": OUT, "depth": 10**12}, {"url": OUT, "depth": None}, {"url": OUT, "rank": 1},
    {"url": "x" * 4001}, {"url": 5}, {"url": "\x00"},
]  # fmt: skip


def test_urls_that_are_none(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=1)
    for body in WRONG:
        wrong = body if set(body) == {"url"} and body["url"] == OUT else {"crawl_id": crawl_id, **body}
        error = api.post("/frontier", 422, wrong)
        assert "s3cret" not in str(error)
    api.post("/frontier", 404, {"crawl_id": "nobody", "url": OUT})


# Taking out


def test_a_pending_url_is_taken_out(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=2)
    row = row_of(api, crawl_id, served.url("/c"))
    assert row["state"] == "pending"
    assert api.ask("DELETE", f"/frontier/{row['id']}", 204) is None
    told = api.get(f"/frontier/{row['id']}")
    assert (told["state"], told["reason"]) == ("refused", "cleared")
    api.ask("DELETE", f"/frontier/{row['id']}", 204)
    assert not api.faults(crawl_id)
    resumed(api, crawl_id)
    assert "/c" not in served.paths() and "/b" in served.paths()
    opened = api.post("/frontier", 201, {"crawl_id": crawl_id, "url": served.url("/c")})
    assert (opened["id"], opened["state"]) == (row["id"], "pending")
    assert not api.faults(crawl_id)
    resumed(api, crawl_id)
    assert "/c" in served.paths()


def test_what_cannot_be_taken_out(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), budget=2)
    done, refused = row_of(api, crawl_id, served.url("/")), row_of(api, crawl_id, OUT)
    assert "is done" in api.ask("DELETE", f"/frontier/{done['id']}", 409)["message"]
    assert "refused (out_of_scope)" in api.ask("DELETE", f"/frontier/{refused['id']}", 409)["message"]
    assert api.ask("DELETE", f"/frontier/{crawl_id}_0_999999", 404)["message"]
    resumed(api, crawl_id)
    api.ended(api.post("/crawl", 202, {"url": served.url("/"), "budget": 1})["job_id"])
    assert "history" in api.ask("DELETE", f"/frontier/{done['id']}", 409)["message"]
    assert "history" in api.ask("DELETE", f"/discovered-links/{refused['id']}", 409)["message"]


def test_robots_files_stay(api: Api, served: Served, site: Pages) -> None:
    site.hold("/robots.txt")
    crawl_id = api.make(served.url("/"), grace=0.1)
    api.post("/crawl", 202, {"url": served.url("/")})
    api.post(f"/crawl/{crawl_id}/pause")
    for number in range(1, 4):
        answer = api.request("DELETE", f"/frontier/{crawl_id}_0_{number}")
        assert answer.status_code in (204, 404, 409)
        if answer.status_code == 409:
            assert "read in any case" in answer.json()["error"]["message"]
            return
    pytest.fail("no robots.txt was pending")


# Links that were not followed


def test_links_that_were_not_followed(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), max_depth=2)
    found = everything(api, "/discovered-links", 1, crawl_id=crawl_id)
    assert {(one["url"], one["reason"]) for one in found} == {
        (OUT, "out_of_scope"),
        ("https://elsewhere.example/2", "out_of_scope"),
        (served.url("/secret"), "robots"),
        (served.url("/deeper"), "max_depth"),
    }
    assert all(one["found_on"] and one["why"] and one["state"] == "refused" for one in found)
    assert [one["url"] for one in everything(api, "/discovered-links", 5, crawl_id=crawl_id, reason="robots")] == [
        served.url("/secret")
    ]
    one = found[0]
    assert api.get(f"/discovered-links/{one['id']}") == one
    done = row_of(api, crawl_id, served.url("/"))
    assert "is done" in api.get(f"/discovered-links/{done['id']}", 404)["message"]
    api.ask("DELETE", f"/discovered-links/{done['id']}", 404)
    api.get("/discovered-links", 422, reason="bad weather")


def test_a_link_is_dismissed(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/"), max_depth=2)
    (deep,) = everything(api, "/discovered-links", 5, crawl_id=crawl_id, reason="max_depth")
    assert api.ask("DELETE", f"/discovered-links/{deep['id']}", 204) is None
    api.ask("DELETE", f"/discovered-links/{deep['id']}", 204)
    assert deep["url"] not in [one["url"] for one in everything(api, "/discovered-links", 5, crawl_id=crawl_id)]
    (cleared,) = everything(api, "/discovered-links", 5, crawl_id=crawl_id, reason="cleared")
    assert cleared["id"] == deep["id"] and api.get(f"/discovered-links/{deep['id']}")["reason"] == "cleared"
    assert api.status(crawl_id)["run_state"] == "completed"
    assert not api.faults(crawl_id)


def test_links_of_all_crawls(api: Api, served: Served) -> None:
    one, two = api.crawled(served.url("/")), api.crawled(served.url("/a"), scope="host")
    api.make("https://example.com")
    whole = everything(api, "/discovered-links", 1000)
    crawls_in_order = [row["crawl_id"] for row in whole]
    assert set(crawls_in_order) == {one, two} and crawls_in_order == sorted(crawls_in_order, key=[one, two].index)
    for limit in (1, 2, 3, len(whole)):
        assert everything(api, "/discovered-links", limit) == whole
    assert {row["reason"] for row in everything(api, "/discovered-links", 1, reason="robots")} == {"robots"}
