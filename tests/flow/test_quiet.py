"""A host that says it is asked too much is left alone: all of it, as long as it says, also across a kill."""

import sqlite3
import time
from contextlib import closing
from email.utils import formatdate

import pytest
from tests.flow.crawling import FastClock, Home
from tests.gaps import gap_but_one, gaps

from inchworm.testing import Hit, Page, Site

SLACK = 1.0
"""Seconds, on the fast clock, by which a request may seem early to the server."""


def words(text: str, *links: str) -> str:
    anchors = " ".join(f"<a href='{link}'>{link}</a>" for link in links)
    return f"<title>{text}</title><p>{text} {'and more of it ' * 20}</p>{anchors}"


class Touchy:
    """A site of leaves whose first answer to /1 is a refusal."""

    def __init__(self, status: int = 429, retry_after: str | None = "1", refusals: int = 1) -> None:
        self.left = refusals
        self.refused_at = 0.0
        self.status = status
        self.retry_after = retry_after

    def pages(self) -> dict[str, object]:
        leaves = [f"/{number}" for number in range(1, 7)]
        site: dict[str, object] = {path: words(f"leaf {path}") for path in leaves}
        return {**site, "/": words("home", *leaves), "/1": self.answer}

    def answer(self, hit: Hit) -> Page | str:
        if not self.left:
            return words("leaf /1")
        self.left -= 1
        self.refused_at = time.monotonic()
        headers = {"Retry-After": self.retry_after} if self.retry_after is not None else {}
        return Page("slow down", self.status, headers)


@pytest.mark.parametrize("status", [429, 503])
def test_the_whole_host_waits(fast: Home, clock: FastClock, status: int) -> None:
    site = Touchy(status, "10")
    with Site(site.pages()).serve() as served:
        ended = fast.crawl(served.url("/"), sitemap=False, workers=1)
        later = [clock.at(hit.time) for hit in served.log if hit.time > site.refused_at]
    assert (ended.pages, ended.failed) == (7, 0)
    assert min(later) - clock.at(site.refused_at) >= 10 - SLACK
    assert ended.order.startswith("disturbed at ")


def test_a_date_is_a_time_to_wait(home: Home) -> None:
    """By the real clock: whenever we came to the site, nobody asks it again before the second that it named."""
    until = int(time.time()) + 3
    site = Touchy(retry_after=formatdate(until, usegmt=True))
    with Site(site.pages()).serve() as served:
        ahead = time.time() - time.monotonic()
        assert home.crawl(served.url("/"), sitemap=False, workers=1).pages == 7
        later = [hit.time for hit in served.log if hit.time > site.refused_at]
    assert min(later) + ahead >= until - 0.1


@pytest.mark.parametrize("nonsense", ["soon", "-5", "", "1e3", None, "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_nonsense_costs_a_backoff_and_no_more(fast: Home, clock: FastClock, nonsense: str | None) -> None:
    site = Touchy(retry_after=nonsense)
    with Site(site.pages()).serve() as served:
        started = clock.monotonic()
        assert fast.crawl(served.url("/"), sitemap=False, workers=1).pages == 7
    assert clock.monotonic() - started < 40


def test_a_long_wait_pauses_the_run_and_the_next_session_keeps_it(home: Home) -> None:
    site = Touchy(retry_after="3600")
    with Site(site.pages()).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, workers=1)
        assert (ended.run_state, ended.ended_by) == ("paused", "waiting")
        asked = len(served.log)
        again = home.crawl(served.url("/"))
        assert (again.ended_by, len(served.log)) == ("waiting", asked), "nobody was asked meanwhile"


def test_it_survives_a_kill(home: Home) -> None:
    site = Touchy(retry_after="2")
    with Site(site.pages()).serve() as served:
        with home.running("crawl", served.url("/"), "--no-sitemap", "--workers", "1", "--delay", "0") as process:
            while not site.refused_at:
                time.sleep(0.01)
            time.sleep(0.6)
            process.kill()
            process.wait()
        ended = home.crawl(served.url("/"))
        later = [hit.time for hit in served.log if hit.time > site.refused_at]
    assert ended.pages == 7
    assert min(later) - site.refused_at >= 1.9


def test_another_host_does_not_wait(fast: Home) -> None:
    touchy = Touchy(retry_after="20")
    other = {"/": words("other", "/a", "/b"), "/a": words("a"), "/b": words("b")}
    with Site({}, {"a.localhost": touchy.pages(), "b.localhost": other}).serve() as served:
        seeds = [served.url("/", "a.localhost"), served.url("/", "b.localhost")]
        ended = fast.crawl(*seeds, sitemap=False, workers=2)
        b = [hit.time for hit in served.log if hit.host.startswith("b.")]
    assert ended.pages == 10
    assert max(b) < touchy.refused_at + 1


def test_after_a_push_back_it_goes_slower(home: Home) -> None:
    site = Touchy(retry_after=None)
    with Site(site.pages()).serve() as served:
        home.crawl(served.url("/"), sitemap=False, workers=1)
        after = sorted(hit.time for hit in served.log if hit.time > site.refused_at)
    assert gaps(after)[0] >= 0.4, "half a second on top of a delay of none"
    assert gap_but_one(after) >= 0.2, "which goes by and by"


def test_a_shorter_wait_does_not_take_back_a_longer_one(home: Home) -> None:
    """Two requests were under way; the second answer asks for less, and after a kill the first still counts."""
    answers = {"/1": Page("", 429, {"Retry-After": "3600"}), "/2": Page("", 429, {"Retry-After": "1"}, delay=0.3)}
    pages = {"/": words("home", "/1", "/2", "/3"), "/3": words("three"), **answers}
    with Site(pages).serve() as served:
        assert home.crawl(served.url("/"), sitemap=False, workers=2).ended_by == "waiting"
        asked = len(served.log)
        assert home.crawl(served.url("/")).ended_by == "waiting"
        assert len(served.log) == asked


def test_a_clock_that_was_set_back_makes_no_wait_longer_than_was_asked_for(home: Home) -> None:
    site = Touchy(retry_after="1")
    with Site(site.pages()).serve() as served:
        home.crawl(served.url("/"), sitemap=False, workers=1, budget=2)
        crawl = home.app.workspace.crawls.find(home.word)
        with closing(sqlite3.connect(home.app.workspace.place(crawl).folder / "crawl.db")) as db, db:
            assert db.execute("UPDATE host SET wait_until_ms = wait_until_ms + 864000000").rowcount == 1
        ended = home.crawl(served.url("/"), max_wait=60)
    assert (ended.pages, ended.run_state) == (7, "completed")
