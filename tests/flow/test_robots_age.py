"""A robots.txt is read in part when it is huge, and read again when it has grown old."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page

from inchworm.app import App, Hooks, Start
from inchworm.engine.clock import SystemClock
from inchworm.model import FinishedVisit
from inchworm.testing import Page, Site

LEAVES = [f"/p{number}" for number in range(6)]
DAY = 86_400.0


class JumpingClock(SystemClock):
    """The real clock, and what a test adds to it."""

    ahead = 0.0
    set_back = 0.0
    """By how much somebody set the clock of the wall back."""

    def now_ms(self) -> int:
        return super().now_ms() + round(1000 * (self.ahead - self.set_back))

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


def site(robots: list[str | Page]) -> Site:
    """Each request for robots.txt gets the next of these, the last one again and again."""
    answers = iter(robots[:-1])
    leaves = {path: page(path) for path in LEAVES}
    return Site({"/": page("home", *LEAVES), **leaves, "/robots.txt": lambda _: next(answers, robots[-1])})


def asked_for_robots(paths: list[str]) -> list[int]:
    return [index for index, path in enumerate(paths) if path == "/robots.txt"]


# R6


@pytest.mark.parametrize("gzip", [False, True])
def test_r6_rules_within_the_first_500_kib_count_and_the_rest_does_not(home: Home, gzip: bool) -> None:
    filler = "# nothing\n" * 50_000
    rules = f"User-agent: *\nDisallow: /p1\n{filler}"
    assert len(rules) < 512_000
    rules += f"{filler}Disallow: /p2\n"
    with site([Page(rules, gzip=gzip)]).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
    assert (ended.pages, ended.failed) == (6, 0)
    assert home.reason(served.url("/p1")) == "robots"
    assert "/p2" in served.paths()


def test_r6_one_without_end_is_cut(home: Home) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000000\r\n\r\n"
    rules = b"User-agent: *\nDisallow: /p1\n" + b"#" * 3_000_000
    with site([Page(raw=head + rules)]).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
    assert (ended.pages, ended.failed) == (6, 0)
    assert home.reason(served.url("/p1")) == "robots"


# R8

ALLOW, FORBID = "User-agent: *\nAllow: /", "User-agent: *\nDisallow: /p"


def crawl(folder: Path, url: str, clock: JumpingClock, hooks: Hooks | None = None, **given: object) -> dict[str, int]:
    app = App(folder, clock)
    try:
        settings = {"delay": 0, "allow_private": True, "sitemap": False, "workers": 1, **given}
        summary = asyncio.run(
            asyncio.wait_for(app.sessions.work(app.plan.crawl(Start((url,), "", settings)), hooks), 20)
        )
        crawl = app.workspace.find(url)
        with app.workspace.reading(crawl) as store:
            assert not app.check.record(crawl, store)
    finally:
        app.close()
    return {"pages": summary.pages, "refused": summary.refused, "failed": summary.failed, "pending": summary.pending}


def test_r8_the_next_day_it_is_asked_for_again_before_anything_else(tmp_path: Path) -> None:
    clock = JumpingClock()
    with site([ALLOW, FORBID]).serve() as served:
        crawl(tmp_path, served.url("/"), clock, budget=3)
        clock.ahead += DAY + 60
        ended = crawl(tmp_path, served.url("/"), clock)
    assert ended == {"pages": 3, "refused": 4, "failed": 0, "pending": 0}
    assert asked_for_robots(served.paths()) == [0, 4]


def test_r8_within_the_day_it_is_not(tmp_path: Path) -> None:
    clock = JumpingClock()
    with site([ALLOW, FORBID]).serve() as served:
        crawl(tmp_path, served.url("/"), clock, budget=3)
        clock.ahead += DAY - 600
        assert crawl(tmp_path, served.url("/"), clock)["pages"] == 7
    assert asked_for_robots(served.paths()) == [0]


def test_r8_also_in_the_middle_of_a_session(tmp_path: Path) -> None:
    clock = JumpingClock()

    def visited(visit: FinishedVisit) -> None:
        if visit.entry.url.endswith("/p1"):
            clock.ahead += DAY + 60

    with site([ALLOW, Page(FORBID, delay=0.7)]).serve() as served:
        ended = crawl(tmp_path, served.url("/"), clock, Hooks(visited=visited), delay=0.05)
    assert len(asked_for_robots(served.paths())) == 2
    assert ended["refused"] >= 2
    assert ended["pages"] + ended["refused"] == 7
    after = served.paths()[asked_for_robots(served.paths())[1] + 1 :]
    assert not [path for path in after if path.startswith("/p")]


def test_r8_a_clock_that_was_set_back_makes_it_hold_no_longer(tmp_path: Path) -> None:
    clock = JumpingClock()

    def visited(visit: FinishedVisit) -> None:
        if visit.entry.url.endswith("/p1"):
            clock.ahead += DAY + 60

    with site([ALLOW]).serve() as served:
        crawl(tmp_path, served.url("/"), clock, budget=2)
        clock.set_back = 10 * DAY
        assert crawl(tmp_path, served.url("/"), clock, Hooks(visited=visited), delay=0.1)["pages"] == 7
    assert len(asked_for_robots(served.paths())) == 2


def test_r8_also_when_all_that_was_chosen_waits_for_it(tmp_path: Path) -> None:
    """In an order by rank only so many turns are chosen at a time, and all of them may be of that host."""
    clock, leaves = JumpingClock(), [f"/p{number}" for number in range(100)]

    def visited(visit: FinishedVisit) -> None:
        if visit.entry.url.endswith("/p1"):
            clock.ahead += DAY + 60

    pages = {"/": page("home", *leaves), **{path: page(path) for path in leaves}, "/robots.txt": ALLOW}
    with Site(pages).serve() as served:
        ended = crawl(tmp_path, served.url("/"), clock, Hooks(visited=visited), query="home", workers=4)
    assert ended == {"pages": 101, "refused": 0, "failed": 0, "pending": 0}
    assert len(asked_for_robots(served.paths())) == 2


def test_r8_one_that_cannot_be_read_any_more_still_holds(tmp_path: Path) -> None:
    clock = JumpingClock()
    with site([f"{ALLOW}\nDisallow: /p5", Page("", 503)]).serve() as served:
        crawl(tmp_path, served.url("/"), clock, budget=3)
        clock.ahead += DAY + 60
        ended = crawl(tmp_path, served.url("/"), clock, max_retries=0)
    assert ended == {"pages": 6, "refused": 1, "failed": 0, "pending": 0}


def test_a_robots_file_that_was_cleared_is_asked_for_again(home: Home) -> None:
    """It was to be read again when the queue was cleared; without it nothing of its host may be asked for."""
    answers = iter([Page("", 503)])
    pages = {"/": page("home", "/a"), "/a": page("a"), "/robots.txt": lambda _: next(answers, "")}
    with Site(pages, {"localhost": {"/other": page("other")}}).serve() as served:
        seeds = [served.url("/"), served.url("/a"), served.url("/other", "localhost")]
        home.crawl(*seeds, sitemap=False, max_retries=0)
        assert home.app.queue.retry(home.word, url=seeds[0]) == 1
        home.app.queue.clear(home.word)
        assert home.app.queue.retry(home.word) == 1
        ended = home.resume()
    assert (ended.pages, ended.failed) == (2, 0)


def test_r8_what_it_forbids_now_gives_its_request_back_to_the_budget(tmp_path: Path) -> None:
    """A page that was granted and waited for its turn when its robots.txt grew old: others get the request."""
    clock = JumpingClock()

    def visited(visit: FinishedVisit) -> None:
        if visit.entry.url.endswith("/p1"):
            clock.ahead += DAY + 60

    with site([ALLOW, f"{ALLOW}\nDisallow: /p2"]).serve() as served:
        hooks = Hooks(visited=visited)
        ended = crawl(tmp_path, served.url("/"), clock, hooks, budget=5, workers=2, delay=0.2, max_retries=0)
        pages = [path for path in served.paths() if path != "/robots.txt"]
    assert pages == ["/", "/p0", "/p1", "/p3", "/p4"]
    assert (ended["pages"], ended["refused"], ended["pending"]) == (5, 1, 1)
