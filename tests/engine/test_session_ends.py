"""How a session ends: what is under way then, what it tells until then, and what the next one goes on with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.works import DEAD, NOTHING, SECONDS, Works, never, page, refused

from inchworm.errors import InchwormError
from inchworm.model import EndedBy, Kind, Outcome, Reply, Response

Begin = Callable[..., Works]
ALL = ["/", *(f"/{number}" for number in range(6))]


class Star:
    """A page that links to six others, of which some are answered in another way until they are `mended`."""

    def __init__(self, **others: Callable[[], Reply | Awaitable[Reply]]) -> None:
        self._others = {f"/{name[1:]}": answer for name, answer in others.items()}

    def mend(self) -> None:
        self._others = {}

    def __call__(self, path: str) -> Reply | Awaitable[Reply]:
        if path in self._others:
            return self._others[path]()
        if path == "/robots.txt":
            return NOTHING
        return page(f"page {path}", *(ALL[1:] if path == "/" else []))


def broken() -> Reply:
    raise RuntimeError("the wire is cut")


# Failing


def test_an_unexpected_error_ends_a_session_at_once_and_names_the_url(begin: Begin) -> None:
    """Nobody waits for what is under way meanwhile, be it without end, and nothing new is asked for."""
    site = Star(_0=never, _1=broken)
    works = begin(site, workers=2)
    ended = works.work()
    assert (ended.by, ended.message) == (EndedBy.ERROR, "http://h.test/1: RuntimeError('the wire is cut')")
    assert ended.error is not None and "bug in inchworm" in ended.error.hint
    assert isinstance(ended.error.__cause__, RuntimeError)
    assert [path for path, _ in works.broken_off] == ["/0"]
    assert works.asked == ["/robots.txt", "/", "/0", "/1"]
    site.mend()
    assert works.work().by is EndedBy.FINISHED
    assert works.asked[4:] == ALL[1:]


def test_an_error_of_the_store_is_told_as_it_is(begin: Begin) -> None:
    def write() -> None:
        raise InchwormError("The disk is full.", "Make room.")

    works = begin(Star(_0=never), workers=1)
    works.orders, works.orders_behind = [write], "/0"
    ended = works.work()
    assert (ended.by, ended.message) == (EndedBy.ERROR, "The disk is full.")
    assert [path for path, _ in works.broken_off] == ["/0"]


def test_who_lost_its_heart_ends(begin: Begin) -> None:
    """Whatever goes wrong beside the rounds: nobody would know that it lives."""
    works = begin(Star(_0=never), workers=1)
    works.orders = [lambda: 1 / 0]  # type: ignore[list-item,return-value]
    ended = works.work()
    assert ended.by is EndedBy.ERROR
    assert ended.error is not None and isinstance(ended.error.__cause__, ZeroDivisionError)


# Being stopped


def test_what_is_under_way_may_finish_within_the_grace_time_and_is_broken_off_after_it(begin: Begin) -> None:
    site = Star(_0=never)
    works = begin(site, workers=2, grace=20)
    works.orders = [EndedBy.PAUSED]
    assert works.work().by is EndedBy.PAUSED
    ((path, at),) = works.broken_off
    assert path == "/0"
    stopped_at = next(number * SECONDS for number, told in enumerate(works.told) if told.is_ending)
    assert stopped_at + 20 <= at <= stopped_at + 20 + 2 * SECONDS
    site.mend()
    asked = len(works.asked)
    assert works.work().by is EndedBy.FINISHED
    assert works.asked[asked] == "/0", "it keeps its place"
    assert sorted(set(works.asked)) == sorted(["/robots.txt", *ALL])


def test_nothing_new_is_asked_for_once_somebody_wants_the_end(begin: Begin) -> None:
    """What came by then becomes part of the record."""
    works = begin(Star(_0=lambda: asyncio.sleep(0.5, page("late"))), workers=1)
    works.orders = [EndedBy.PAUSED]
    assert works.work().by is EndedBy.PAUSED
    assert works.asked == ["/robots.txt", "/", "/0"]
    assert [visit.entry.request_url[13:] for visit in works.visited] == ["/", "/0"]


def test_who_asks_twice_does_not_want_to_wait(begin: Begin) -> None:
    async def insist() -> Reply:
        works.session.stop(EndedBy.PAUSED)
        assert works.session.progress().is_ending
        works.session.stop(EndedBy.CANCELLED)
        return await never()

    works = begin(Star(_0=insist), workers=1, grace=1e6)
    assert works.work().by is EndedBy.PAUSED, "the first word counts"
    assert [path for path, _ in works.broken_off] == ["/0"]


def test_hosts_that_are_down_are_not_asked_any_more_once_somebody_wants_the_end(begin: Begin) -> None:
    dead = dict.fromkeys(("_1", "_2", "_3"), lambda: DEAD)
    works = begin(Star(**dead), workers=4)
    works.stopping_at = "/0"
    assert works.work().by is EndedBy.PAUSED
    assert works.asked.count("/robots.txt") == 1


def test_nobody_waits_for_a_host_that_is_asked_whether_it_is_up(begin: Begin) -> None:
    """It may not answer for as long as a request may take."""

    async def insist() -> Reply:
        works.session.stop(EndedBy.PAUSED)
        return await never()

    def answer(path: str) -> Reply | Awaitable[Reply]:
        if len(works.asked) <= 2:
            return page("home", *ALL[1:]) if path == "/" else NOTHING
        return insist() if path == "/robots.txt" else DEAD

    works = begin(answer, workers=3)
    assert works.work().by is EndedBy.PAUSED
    assert [path for path, _ in works.broken_off] == ["/robots.txt"]


def test_a_cancelled_session_ends_though_nothing_is_left(begin: Begin) -> None:
    """Whoever cancels says that the run is not wanted, and not that it is complete."""
    works = begin(lambda path: NOTHING if path == "/robots.txt" else asyncio.sleep(0.5, page("alone")), workers=1)
    works.orders = [EndedBy.CANCELLED]
    assert works.work().by is EndedBy.CANCELLED
    assert [visit.entry.url for visit in works.visited] == ["http://h.test/"]


def test_a_session_that_is_paused_with_nothing_left_is_finished(begin: Begin) -> None:
    works = begin(lambda path: NOTHING if path == "/robots.txt" else asyncio.sleep(0.5, page("alone")), workers=1)
    works.orders = [EndedBy.PAUSED]
    assert works.work().by is EndedBy.FINISHED


# Limits of its own


@pytest.mark.parametrize(("max_time", "is_reached"), [(2 * SECONDS, True), (1000.0, False)])
def test_a_session_lasts_as_long_as_it_may(begin: Begin, max_time: float, is_reached: bool) -> None:
    slow = {f"_{number}": lambda: asyncio.sleep(0.3, page("slow")) for number in range(6)}
    works = begin(Star(**slow), workers=1, max_time=max_time)
    assert works.work().by is (EndedBy.TIME if is_reached else EndedBy.FINISHED)
    assert all(at < max_time for at in works.asked_at)
    assert (len(works.asked) < 8) is is_reached


def test_a_budget_is_spent_by_requests_for_pages_and_by_nothing_else(begin: Begin) -> None:
    """A session of one goes as far as one request."""
    works = begin(Star(), workers=8, budget=3)
    assert works.work().by is EndedBy.BUDGET
    assert works.asked == ["/robots.txt", "/", "/0", "/1"]
    assert works.work().by is EndedBy.BUDGET
    assert works.asked[4:] == ["/2", "/3", "/4"]
    assert works.work().by is EndedBy.FINISHED
    assert works.asked[7:] == ["/5"]


@pytest.mark.parametrize(("max_wait", "by"), [(59, EndedBy.WAITING), (61, EndedBy.FINISHED)])
def test_a_session_waits_for_what_is_left_as_long_as_it_may(begin: Begin, max_wait: float, by: EndedBy) -> None:
    answers: list[Response] = [refused(503, retry_after="60")]
    works = begin(
        lambda path: NOTHING if path == "/robots.txt" else answers.pop() if answers else page("there"),
        max_wait=max_wait,
    )
    ended = works.work()
    assert ended.by is by
    assert ended.message == ("all that is left must wait longer than max_wait" if by is EndedBy.WAITING else "")
    assert works.asked.count("/") == (1 if by is EndedBy.WAITING else 2)


class Gone:
    """A home page with six links, on a host that nobody can reach after that."""

    def __init__(self) -> None:
        self._asked: list[str] = []

    def __call__(self, path: str) -> Reply:
        self._asked.append(path)
        if len(self._asked) > 2:
            return DEAD
        return page("home", *ALL[1:]) if path == "/" else NOTHING


def test_what_waits_for_a_host_that_is_down_ends_by_the_budget_when_that_is_spent(begin: Begin) -> None:
    """There is nothing to wait for."""
    works = begin(Gone(), workers=3, budget=4, max_wait=20)
    assert works.work().by is EndedBy.BUDGET
    assert [path for path in works.asked if path != "/robots.txt"] == ["/", "/0", "/1", "/2"]
    assert works.session.progress().unanswered == 3


def test_a_session_that_waited_in_vain_says_for_whom(begin: Begin) -> None:
    works = begin(Gone(), workers=3, max_wait=60)
    ended = works.work()
    assert ended.by is EndedBy.WAITING
    assert ended.message.startswith("http://h.test has not answered since 2023-11-14T22:13:20")
    assert ended.message.endswith(": connection refused")
    assert [down.origin for down in works.session.progress().down] == ["http://h.test"]
    assert 60 <= works.clock.monotonic() <= 60 + 8 * SECONDS


# What it tells


def test_pages_are_told_in_order_and_files_that_steer_a_crawl_are_not(begin: Begin) -> None:
    works = begin(Star(_3=lambda: refused(404)), workers=8, sitemap=True)
    assert works.work().by is EndedBy.FINISHED
    assert {visit.entry.kind for visit in works.visited} == {Kind.PAGE}
    told = [(visit.entry.request_url[13:], visit.outcome) for visit in works.visited]
    assert told == [(path, Outcome.FAILED if path == "/3" else Outcome.PAGE) for path in ALL]


def test_a_copy_is_told_as_a_copy(begin: Begin) -> None:
    """That is only known when it becomes part of the record."""
    text = "the same words in the same order, and enough of them to be called a text of its own by anybody " * 3
    works = begin(Star(_1=lambda: page(text), _2=lambda: page(text)), workers=8)
    assert works.work().by is EndedBy.FINISHED
    outcomes = {visit.entry.request_url[13:]: visit.outcome for visit in works.visited}
    assert (outcomes["/1"], outcomes["/2"]) == (Outcome.PAGE, Outcome.DUPLICATE)


def test_a_session_tells_where_it_stands(begin: Begin) -> None:
    works = begin(Star(_0=lambda: asyncio.sleep(0.7, page("late"))), workers=2)
    assert works.work().by is EndedBy.FINISHED
    first, last = works.told[0], works.session.progress()
    assert first.in_flight == ("http://h.test/0",)
    assert (first.is_ending, first.unanswered, first.down) == (False, 0, ())
    assert (last.counters.pages, last.requests, last.counters.pending, last.in_flight) == (7, 7, 0, ())
    assert last.size == sum(visit.size for visit in works.visited)
    assert last.seconds == works.clock.monotonic() == len(works.told) * SECONDS
    assert last.seeds == (("http://h.test/", 7),)
    assert last.order == "exact"


@pytest.mark.parametrize(("stale", "beats"), [(2, 3), (60, 2)])
def test_a_session_shows_that_it_lives_while_it_has_nothing_to_commit(begin: Begin, stale: float, beats: int) -> None:
    """Every second, and four times as often as others would take it for dead."""

    async def late() -> Reply:
        for _ in range(1000):
            await asyncio.sleep(0.05)
            if len(works.told) >= 10:
                break
        return page("late")

    works = begin(Star(**{f"_{number}": late for number in range(6)}), workers=6, stale=stale)
    works.seconds = 0.45
    assert works.work().by is EndedBy.FINISHED
    assert works.beats[8] - works.beats[2] == beats
