"""Politeness, as the server sees it: pauses between requests, robots.txt, and hosts that do not hold up others."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

import pytest
from tests.flow.crawling import Home, chain, is_control, page
from tests.gaps import gap_but_one, gaps

from inchworm.app import Hooks
from inchworm.engine.session import flight
from inchworm.testing import Hit, ManualClock, Page, Served, Site, linked_site, redirect

SLACK = 0.12
"""Seconds by which a request may seem early to the server, because the one before was late in coming in."""


def times(served: Served, host: str = "", control: bool = True) -> list[float]:
    """When requests to a host came in."""
    return [hit.time for hit in served.log if hit.host.startswith(host) and (control or not is_control(hit.path))]


@pytest.mark.parametrize("workers", [1, 16])
def test_delay_between_two_requests_to_a_host(home: Home, workers: int) -> None:
    """robots.txt and sitemaps included, whatever the number of workers."""
    with Site(linked_site(6), latency=(0.0, 0.05)).serve() as served:
        home.crawl(served.url("/"), delay=0.2, workers=workers)
        assert len(served.log) == 8
        assert gap_but_one(times(served)) >= 0.2 - SLACK
        assert median(gaps(times(served))) < 0.5, "no longer than it must"


def test_delay_after_the_question_whether_a_page_is_there(home: Home) -> None:
    """It is a request like any other to the host that is asked."""
    missing = "<title>Page not found</title><main><p>Sorry, the page you are looking for does not exist.</p></main>"
    dead, leaves = [f"/{name}/dead" for name in "abc"], [f"/p{number}" for number in range(8)]
    pages = {"/": page("home", *dead, *leaves), **{path: page(path) for path in leaves}, **dict.fromkeys(dead, missing)}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), delay=0.3, workers=4, sitemap=False)
        assert sum("is-not-here" in path for path in served.paths()) == 3
        assert gap_but_one(times(served)) >= 0.3 - SLACK


@pytest.mark.parametrize("robots", [True, False])
def test_delay_across_sessions(home: Home, robots: bool) -> None:
    with Site(linked_site(6)).serve() as served:
        for _ in range(3):
            home.crawl(served.url("/"), delay=0.3, budget=2, robots=robots, sitemap=False)
        assert len(times(served, control=False)) == 6
        assert gap_but_one(times(served)) >= 0.3 - SLACK


def test_delay_counts_from_the_last_of_several_sessions(home: Home) -> None:
    clock = home.app.workspace.clock = ManualClock()
    moments: list[float] = []
    hooks = Hooks(progress=lambda _: clock.advance(2.5))
    with Site(linked_site(6)).serve(on_hit=lambda _: moments.append(clock.monotonic())) as served:
        for _ in range(4):
            home.crawl(served.url("/"), hooks=hooks, delay=10, budget=1, robots=False, sitemap=False)
    assert len(moments) == 4
    assert min(later - earlier for earlier, later in pairwise(moments)) >= 10


def test_delay_across_runs(home: Home) -> None:
    with Site(linked_site(2)).serve() as served:
        for _ in range(2):
            home.crawl(served.url("/"), delay=0.3, sitemap=False)
        assert len(served.log) == 6
        assert gap_but_one(times(served)) >= 0.3 - SLACK


def test_delay_is_per_host(home: Home) -> None:
    """Three hosts at a time: the crawl takes as long as one of them."""
    names = [f"h{number}.localhost" for number in range(3)]
    hosts = {name: chain(4, "/") for name in names}
    with Site({}, hosts).serve() as served:
        ended = home.crawl(*(served.url("/0", name) for name in names), scope="host", delay=0.2, sitemap=False)
        for name in names:
            assert gap_but_one(times(served, name)) >= 0.2 - SLACK
        assert ended.duplicates == 8
        assert max(times(served)) - min(times(served)) < 2.8


@pytest.mark.parametrize(("delay", "expected"), [(0, 0.3), (0.4, 0.4)])
def test_crawl_delay(home: Home, delay: float, expected: float) -> None:
    """The longer of ours and the site's."""
    site = {**linked_site(5), "/robots.txt": "User-agent: *\nCrawl-delay: 0.3\n"}
    with Site(site).serve() as served:
        home.crawl(served.url("/"), delay=delay, workers=8, sitemap=False)
        assert len(times(served, control=False)) == 5
        assert gap_but_one(times(served, control=False)) >= expected - SLACK


def test_crawl_delay_across_sessions(home: Home) -> None:
    site = {**linked_site(5), "/robots.txt": "User-agent: *\nCrawl-delay: 0.4\n"}
    with Site(site).serve() as served:
        for _ in range(2):
            home.crawl(served.url("/"), budget=2, sitemap=False)
        assert gap_but_one(times(served, control=False)) >= 0.4 - SLACK


def test_crawl_delay_has_a_cap(home: Home) -> None:
    site = {**linked_site(3), "/robots.txt": "User-agent: *\nCrawl-delay: 3600\n"}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_delay=0.2, sitemap=False)
        assert (ended.pages, ended.run_state) == (3, "completed")
        assert gap_but_one(times(served, control=False)) >= 0.2 - SLACK


@pytest.mark.parametrize("most", [1, 3])
def test_a_host_has_no_more_requests_at_a_time_than_it_may(home: Home, most: int) -> None:
    """The server takes its time for an answer: till then so many requests come in and no more."""
    leaves = [f"/{number}" for number in range(9)]
    pages = {"/": page("home", *leaves), **{path: Page(page(path), delay=0.2) for path in leaves}}
    with Site(pages).serve() as served:
        ended = home.crawl(served.url("/"), workers=8, connections_per_host=most, sitemap=False)
        assert ended.pages == 10
        came = times(served, control=False)[1:]
        assert min(later - earlier for earlier, later in zip(came, came[most:], strict=False)) >= 0.19


# robots.txt


def test_robots_disallow(home: Home) -> None:
    site = {
        "/robots.txt": "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private\nAllow: /private/open\n",
        "/": page("home", "/private/a", "/private/open", "/b", "/to"),
        "/private/open": page("open"),
        "/b": page("b"),
        "/to": redirect("/private/target"),
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert served.paths()[0] == "/robots.txt"
        assert sorted(home.paths()) == ["/", "/b", "/private/open", "/to"]
        assert home.reason(served.url("/private/a")) == home.reason(served.url("/private/target")) == "robots"
        assert (ended.refused, ended.failed, ended.word) == (2, 0, "completed")
        assert not [path for path in served.paths() if path in ("/private/a", "/private/target")]


def test_robots_can_be_ignored(home: Home) -> None:
    site = {"/robots.txt": "User-agent: *\nDisallow: /", "/": page("home", "/a"), "/a": page("a")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), robots=False, sitemap=False)
        assert (ended.pages, served.paths()) == (2, ["/", "/a"])


def test_a_seed_that_robots_forbid(home: Home) -> None:
    with Site({"/robots.txt": "User-agent: *\nDisallow: /", "/": page("home")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.refused, ended.run_state) == (0, 1, "completed")
        assert served.paths() == ["/robots.txt"]
        assert home.reason(served.url("/")) == "robots"


@pytest.mark.parametrize("status", [404, 403, 410])
def test_no_robots_allows_all(home: Home, status: int) -> None:
    site = {"/robots.txt": Page("User-agent: *\nDisallow: /", status), "/": page("home", "/a"), "/a": page("a")}
    with Site(site).serve() as served:
        assert home.crawl(served.url("/"), sitemap=False).pages == 2


@pytest.mark.parametrize("retries", [0, 1])
def test_robots_that_cannot_be_read_forbid_all(home: Home, retries: int) -> None:
    """A failure that can be tried again: not one page is requested, and the run says why."""
    site: dict[str, Any] = {"/robots.txt": Page("oops", 500), "/": page("home", "/a"), "/a": page("a")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_retries=retries)
        assert (ended.run_state, ended.pages, ended.ended_by) == ("paused", 0, "error")
        assert served.paths() == ["/robots.txt"] * (retries + 1)
        assert "robots.txt could not be read" in ended.message

        site["/robots.txt"] = ""
        ended = home.resume()
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 2, 0)


def test_robots_that_fail_once_are_asked_again(fast: Home) -> None:
    """The pages wait for the second answer, and then the crawl is as if nothing had been."""
    answers = [Page("oops", 503), Page("User-agent: *\nDisallow: /a", headers={"Content-Type": "text/plain"})]

    def robots(_: Hit) -> Page:
        return answers.pop(0)

    site: dict[str, Any] = {"/robots.txt": robots, "/": page("home", "/a", "/b"), "/b": page("b")}
    with Site(site).serve() as served:
        ended = fast.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.refused, ended.failed) == ("completed", 2, 1, 0)
        assert served.paths() == ["/robots.txt", "/robots.txt", "/", "/b"]


def test_robots_are_asked_once_per_run(home: Home) -> None:
    with Site(linked_site(9)).serve() as served:
        for _ in range(3):
            home.crawl(served.url("/"), budget=3, sitemap=False)
        assert served.paths().count("/robots.txt") == 1


# Hosts do not hold up each other


def test_a_slow_host_does_not_take_every_worker(home: Home) -> None:
    """Sixteen pages of half a second each on one host; the other one's twenty are through in no time."""
    slow: dict[str, Any] = {f"/{number}": Page(page(f"slow {number}"), delay=0.5) for number in range(16)}
    slow["/"] = page("slow", *slow)
    hosts = {"slow.localhost": slow, "fast.localhost": chain(20)}
    with Site({}, hosts).serve() as served:
        seeds = [served.url("/", "slow.localhost"), served.url("/c0", "fast.localhost")]
        ended = home.crawl(*seeds, scope="host", workers=5, sitemap=False)
        assert ended.pages == 37
        fast = times(served, "fast.")
        assert fast[-1] - fast[0] < 1.5


def test_a_worker_is_left_for_a_host_beside_one_that_hardly_answers(home: Home) -> None:
    """As many pages as there are workers take their time on one host; the other one is through before the first."""
    slow: dict[str, Any] = {f"/{number}": Page(page(f"slow {number}"), delay=4.0) for number in range(5)}
    slow["/"] = page("slow", *slow)
    hosts = {"slow.localhost": slow, "fast.localhost": chain(12)}
    with Site({}, hosts).serve() as served:
        seeds = [served.url("/", "slow.localhost"), served.url("/c0", "fast.localhost")]
        assert home.crawl(*seeds, scope="host", workers=5, sitemap=False).pages == 18
        first = min(hit.time for hit in served.log if hit.path == "/0" and hit.host.startswith("slow."))
        assert max(times(served, "fast.")) < first + 4.0


def test_answers_that_wait_for_a_slow_page_do_not_hold_up_another_host(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie in memory, and nothing more is asked for ahead; what comes next on its host may go all the same."""
    monkeypatch.setattr(flight, "HELD_BYTES", 1)
    slow = {"/": page("slow home", "/slow", "/1", "/2"), "/slow": Page(page("slow", "/end"), delay=3.0)}
    slow |= {path: page(f"slow {path}") for path in ("/1", "/2", "/end")}
    with Site({}, {"slow.localhost": slow, "fast.localhost": chain(8)}).serve() as served:
        seeds = [served.url("/", "slow.localhost"), served.url("/c0", "fast.localhost")]
        ended = home.crawl(*seeds, scope="host", workers=5, sitemap=False)
        assert ended.pages == 13
        (end,) = (hit.time for hit in served.log if hit.path == "/end")
        assert max(times(served, "fast.")) < end


@pytest.mark.parametrize("first", [redirect("/docs/"), None], ids=["redirect", "failure"])
def test_a_second_try_does_not_wait_for_other_hosts(home: Home, first: Page | None) -> None:
    """/docs needs another request. It gets it while the other host has pages to go."""
    answers = [first or Page("not now", 503)]
    docs: dict[str, Any] = {"/docs": lambda _: answers.pop() if answers else page("docs"), "/docs/": page("docs")}
    other = {path: Page(text, delay=0.02) for path, text in linked_site(200, fan=50).items()}
    with Site({}, {"a.localhost": docs, "b.localhost": other}).serve() as served:
        seeds = [served.url("/docs", "a.localhost"), served.url("/", "b.localhost")]
        ended = home.crawl(*seeds, workers=2, sitemap=False)
        assert (ended.pages, ended.failed) == (201, 0)
        assert times(served, "a.")[-1] < times(served, "b.")[-20]


def test_a_host_that_fails_does_not_slow_another(home: Home) -> None:
    """One host answers 503 and is asked again later, the other one goes on meanwhile."""
    broken = {"/robots.txt": "", "/": page("broken home", *(f"/{number}" for number in range(3))), "*": Page("no", 503)}
    with Site({}, {"a.localhost": broken, "b.localhost": chain(30)}).serve() as served:
        seeds = [served.url("/", "a.localhost"), served.url("/c0", "b.localhost")]
        ended = home.crawl(*seeds, scope="host", workers=2, max_retries=1, sitemap=False)
        assert (ended.failed, ended.order.partition(" at ")[0]) == (3, "disturbed")
        fine = times(served, "b.")
        assert fine[-1] - fine[0] < times(served, "a.")[-1] - times(served, "a.")[0]
        assert median(gaps(fine)) < 0.4


def test_two_hundred_hosts_that_wait_take_hardly_longer_than_one(home: Home) -> None:
    names = [f"h{number}.localhost" for number in range(200)]
    with Site({}, dict.fromkeys(names, chain(3, "/"))).serve() as served:
        seeds = [served.url("/0", name) for name in names]
        ended = home.crawl(*seeds, scope="host", robots=False, sitemap=False, delay=1.0, workers=4)
    assert ended.pages + ended.duplicates == 600
    assert ended.seconds < 12
