"""One session against a web that is no network, with a clock that goes on only while the session polls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.works import DEAD, NOTHING, Works, page

from inchworm.engine.session import flight
from inchworm.model import EndedBy, Reply, Response


class Chain:
    """Pages that link to the next one. From some of them on, the host is down until it was looked at so often."""

    def __init__(self, length: int, outages: dict[int, int]) -> None:
        self._length = length
        self._outages = outages
        self._looks = 0
        self.passing: Callable[[], None] = lambda: None

    def __call__(self, path: str) -> Reply:
        if path == "/robots.txt":
            if self._looks:
                self._looks -= 1
                return DEAD
            return NOTHING
        number = int(path[1:] or 0)
        if number in self._outages:
            self._looks = self._outages.pop(number)
            self.passing()
        if self._looks:
            return DEAD
        return page(f"page {number}", *([f"/{number + 1}"] if number + 1 < self._length else []))


@pytest.mark.parametrize("delay", [0, 1])
def test_each_outage_of_a_session_may_last_as_long_as_it_waits(begin: Callable[..., Works], delay: float) -> None:
    """The second one begins long after the first was over, and is as short."""
    site = Chain(8, {3: 3, 6: 3})
    works = begin(site, max_wait=100, delay=delay)
    site.passing = lambda: works.clock.advance(1000)
    assert works.work().by is EndedBy.FINISHED


def test_an_outage_that_lasts_longer_ends_the_session(begin: Callable[..., Works]) -> None:
    works = begin(Chain(8, {3: 1000}), max_wait=30)
    assert works.work().by is EndedBy.WAITING


def star(path: str) -> Reply:
    """A page that links to thirty others."""
    if path == "/robots.txt":
        return NOTHING
    return page(f"page {path}", *([f"/{number}" for number in range(30)] if path == "/" else []))


def test_the_only_host_gets_every_worker(begin: Callable[..., Works]) -> None:
    works = begin(star, workers=4, at_once=4)
    assert works.work().by is EndedBy.FINISHED
    assert works.most == 4


def test_what_is_under_way_when_a_long_session_is_stopped_may_finish(begin: Callable[..., Works]) -> None:
    """The grace time begins when somebody wants it to end."""
    works = begin(Chain(8, {}), grace=60)
    works.stopping_at = "/3"
    assert works.work().by is EndedBy.PAUSED
    assert works.work().by is EndedBy.FINISHED
    assert works.asked == ["/robots.txt", "/", *(f"/{number}" for number in range(1, 8))]


@pytest.mark.parametrize(("room", "least", "most"), [(500, 3, 20), (1_000_000, 32, 32)])
def test_answers_that_wait_for_a_slow_one_take_no_more_memory_than_they_may(
    begin: Callable[..., Works], monkeypatch: pytest.MonkeyPatch, room: int, least: int, most: int
) -> None:
    monkeypatch.setattr(flight, "HELD_BYTES", room)
    works = begin(star, workers=2)
    works.slow = "/0"
    assert works.work().by is EndedBy.FINISHED
    assert least <= works.asked_meanwhile <= most


def test_a_session_takes_as_many_bytes_as_it_may(begin: Callable[..., Works]) -> None:
    """Each counts once, before its commit and after it."""
    site = Chain(20, {})
    sizes = [len(answer.payload) for answer in map(site, map("/{}".format, range(10))) if isinstance(answer, Response)]
    works = begin(site, workers=1, max_bytes=sum(sizes))
    assert works.work().by is EndedBy.BYTES
    assert works.asked == ["/robots.txt", "/", *(f"/{number}" for number in range(1, 10))]
