"""Who is asked when: hosts side by side, pauses, quiet, tries that come later, and files that are read again."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from tests.engine.works import DEAD, NOTHING, SECONDS, Works, page, refused

from inchworm.engine.session.hosts import ROBOTS_SECONDS
from inchworm.model import EndedBy, Reply, Response
from inchworm.testing import ManualClock

Begin = Callable[..., Works]
TWO = ("http://h.test/", "http://b.test/")


def leaves(path: str, number: int = 6) -> Reply:
    """On every host: a home page, and so many pages that it links to."""
    host, _, name = path.rpartition("/")
    if name == "robots.txt":
        return NOTHING
    return page(f"page {path}", *([f"{'http://' + host if host else ''}/{one}" for one in range(number)] * (not name)))


def asked_of(works: Works, host: str) -> list[str]:
    return [path for path in works.asked if path.startswith(host) and not path.endswith("robots.txt")]


# Workers


def test_one_worker_is_left_for_every_other_host(begin: Begin) -> None:
    """As long as both have something to be asked for."""
    most, now = Counter[str](), Counter[str]()

    async def answer(path: str) -> Reply:
        host = path[: path.rindex("/") + 1]
        now[host] += 1
        if min(len(asked_of(works, "/")), len(asked_of(works, "b.test"))) < 8:
            most[host] = max(most[host], now[host])
        await asyncio.sleep(0.05)
        now[host] -= 1
        return leaves(path, 12)

    works = begin(answer, seeds=TWO, workers=4)
    assert works.work().by is EndedBy.FINISHED
    assert max(most.values()) == 3
    assert works.session.progress().counters.pages == 26


@pytest.mark.parametrize(("given", "most"), [({"connections_per_host": 2}, 2), ({}, 5)])
def test_a_host_gets_no_more_connections_than_it_may(begin: Begin, given: dict[str, int], most: int) -> None:
    works = begin(leaves, workers=5, at_once=most, **given)
    assert works.work().by is EndedBy.FINISHED
    assert works.most == most


# Pauses


@pytest.mark.parametrize("strict", [False, True])
def test_a_host_is_asked_after_its_pause_and_others_go_on_meanwhile(begin: Begin, strict: bool) -> None:
    pause = 2 * SECONDS

    def answer(path: str) -> Reply:
        if path == "/robots.txt":
            body = f"User-agent: *\nCrawl-delay: {pause:g}".encode()
            return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {}, body, body, 0.01)
        return leaves(path, 3)

    works = begin(answer, seeds=TWO, workers=4, max_delay=60, strict_order=strict)
    assert works.work().by is EndedBy.FINISHED
    slow = [at for path, at in zip(works.asked, works.asked_at, strict=True) if path.startswith("/")]
    assert all(later - sooner >= pause for sooner, later in pairwise(slow[1:]))
    assert all(later - sooner <= pause + 2 * SECONDS for sooner, later in pairwise(slow[2:]))
    quick = [at for path, at in zip(works.asked, works.asked_at, strict=True) if path.startswith("b.test")]
    assert quick[-1] - quick[0] < pause


@pytest.mark.parametrize("strict", [False, True])
def test_a_url_that_is_tried_again_holds_nobody_up(begin: Begin, strict: bool) -> None:
    """It stands at the end of its lane by then, and waits for its own time."""
    failing = [refused(500)]
    works = begin(lambda path: failing.pop() if path == "/2" and failing else leaves(path), strict_order=strict)
    assert works.work().by is EndedBy.FINISHED
    assert [path for path in works.asked if path != "/2"] == ["/robots.txt", "/", "/0", "/1", "/3", "/4", "/5"]
    assert works.asked[-1] == "/2"
    first = works.asked.index("/2")
    assert works.asked_at[-1] >= works.asked_at[first] + 0.5, "half a second later at the least"


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_wants_quiet_gets_it_as_a_whole(begin: Begin, status: int) -> None:
    failing = [refused(status, retry_after="60")]
    works = begin(
        lambda path: failing.pop() if path == "/0" and failing else leaves(path), seeds=TWO, workers=1, max_wait=100
    )
    assert works.work().by is EndedBy.FINISHED
    times = dict(zip(works.asked, works.asked_at, strict=True))
    pushed = next(at for path, at in zip(works.asked, works.asked_at, strict=True) if path == "/0")
    after = [at for path, at in zip(works.asked, works.asked_at, strict=True) if path.startswith("/") and at > pushed]
    assert len(after) == 6
    assert min(after) >= pushed + 60
    assert times["b.test/5"] < pushed + 60


@pytest.mark.parametrize(("later", "left"), [(0, 60), (20, 40), (1000, 0), (-1000, 60)])
def test_a_quiet_holds_in_the_next_session_and_never_longer_than_it_was_asked_for(
    begin: Begin, later: int, left: float
) -> None:
    """Whatever the wall clock was set to in between: so many seconds later, by that, begins the next one."""
    failing = [refused(503, retry_after="60")]
    works = begin(lambda path: failing.pop() if path == "/0" and failing else leaves(path), workers=1, max_wait=30)
    pushed_ms = works.clock.now_ms()
    assert works.work().by is EndedBy.WAITING
    works.values = dataclasses.replace(works.values, max_wait=1000.0)
    works.clock, asked = ManualClock(pushed_ms + 1000 * later), len(works.asked)
    assert works.work().by is EndedBy.FINISHED
    assert left <= works.asked_at[asked] <= left + 2 * SECONDS


# Files that are read again


@pytest.mark.parametrize(("passed", "is_read_again"), [(ROBOTS_SECONDS - 60, False), (ROBOTS_SECONDS + 60, True)])
def test_a_robots_txt_holds_for_a_day(begin: Begin, passed: float, is_read_again: bool) -> None:
    """Then it is asked for before anything else is."""

    def answer(path: str) -> Reply:
        if path == "/3":
            works.clock.advance(passed)
        return leaves(path)

    works = begin(answer, workers=1)
    assert works.work().by is EndedBy.FINISHED
    assert works.asked == ["/robots.txt", *("/", "/0", "/1", "/2", "/3"), *["/robots.txt"] * is_read_again, "/4", "/5"]


def test_what_it_says_by_then_holds_for_what_was_about_to_be_asked(begin: Begin) -> None:
    def answer(path: str) -> Reply:
        if path == "/3":
            works.clock.advance(ROBOTS_SECONDS + 1)
        if path == "/robots.txt" and len(works.asked) > 1:
            body = b"User-agent: *\nDisallow: /4"
            return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {}, body, body, 0.01)
        return leaves(path)

    works = begin(answer, workers=1)
    assert works.work().by is EndedBy.FINISHED
    assert works.asked[-3:] == ["/3", "/robots.txt", "/5"]
    assert works.session.progress().counters.refused == 1


@pytest.mark.parametrize(("later", "is_read_again"), [(86_000, False), (87_000, True), (-87_000, False)])
def test_it_holds_for_a_day_in_later_sessions_too(begin: Begin, later: int, is_read_again: bool) -> None:
    """By the wall clock, as there is no other between two sessions."""
    works = begin(leaves, workers=1, budget=3)
    read_ms = works.clock.now_ms()
    assert works.work().by is EndedBy.BUDGET
    works.clock = ManualClock(read_ms + 1000 * later)
    assert works.work().by is EndedBy.BUDGET
    assert works.asked[4:] == [*["/robots.txt"] * is_read_again, "/2", "/3", "/4"]


# Pages that say that they are not there

EXCUSE = "<title>Not found</title><h1>Page not found</h1><p>The page that you are looking for does not exist."


def excuse(rules: str) -> Callable[[str], Reply | Awaitable[Reply]]:
    """A site with one page, which excuses itself for not being there."""

    def answer(path: str) -> Reply:
        if path == "/robots.txt":
            return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {}, rules.encode(), rules.encode(), 0.01)
        if path in ("/", "/0"):
            body = EXCUSE.encode() if path == "/0" else page("home", "/0").body
            return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {"content-type": "text/html"}, body, body, 0.01)
        return NOTHING

    return answer


def test_a_page_in_doubt_is_held_against_one_that_cannot_be_there_in_a_turn_of_its_own(begin: Begin) -> None:
    works = begin(excuse("User-agent: *\nCrawl-delay: 1"), workers=2)
    assert works.work().by is EndedBy.FINISHED
    assert works.asked[:3] == ["/robots.txt", "/", "/0"]
    assert works.asked[3].endswith("-is-not-here") and len(works.asked) == 4
    assert works.asked_at[3] >= works.asked_at[2] + 1, "after the pause that its host wants"


def test_nothing_is_asked_that_a_robots_txt_forbids_to_find_out_about_something_else(begin: Begin) -> None:
    works = begin(excuse("User-agent: *\nDisallow: /*-is-not-here"), workers=2)
    assert works.work().by is EndedBy.FINISHED
    assert works.asked == ["/robots.txt", "/", "/0"]
    assert works.session.progress().counters.pages == 2


# Hosts that are down


def test_a_host_that_is_back_is_gone_on_with_where_it_was_and_others_did_not_wait(begin: Begin) -> None:
    looks = [DEAD] * 6

    def answer(path: str) -> Reply:
        if path == "/robots.txt" and len(works.asked) > 4:
            return looks.pop() if looks else NOTHING
        return DEAD if looks and path in ("/0", "/1", "/2", "/3") else leaves(path)

    works = begin(answer, seeds=TWO, workers=2, max_wait=1000)
    assert works.work().by is EndedBy.FINISHED
    assert works.session.progress().counters.pages == 14
    assert works.session.progress().counters.failed == 0
    assert works.session.progress().down == ()
    back = max(index for index, path in enumerate(works.asked) if path == "/robots.txt")
    assert all(works.asked.index(f"b.test/{number}") < back for number in range(6))
    assert [path for path in works.asked[back + 1 :] if not path.startswith("b")] == [f"/{one}" for one in range(6)]
