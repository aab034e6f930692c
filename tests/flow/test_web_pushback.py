"""Retry-After in every spelling: the whole host is left alone as long as it says, and never longer than a day.

The time of these crawls goes faster than that of the machine, so that nobody has to wait for it.
"""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from tests.flow.crawling import FastClock, Home, page
from tests.flow.hostile import sound

from inchworm.testing import Answer, Hit, Page, Site

SLACK = 1.0
"""Seconds, on the fast clock, by which a request may seem early to the server."""


class Touchy:
    """A site of leaves whose first answer to /1 asks for quiet.

    Its Retry-After headers are texts, or dates that lie so many seconds ahead.
    """

    def __init__(self, clock: FastClock, *headers: str | float) -> None:
        self._clock = clock
        self._headers = [headers]
        self.refused_at = 0.0

    def site(self) -> Site:
        leaves = [f"/{number}" for number in range(1, 5)]
        pages: dict[str, Answer] = {path: page(f"leaf {path}") for path in leaves}
        return Site({**pages, "/": page("home", *leaves), "/1": self._answer})

    def _answer(self, _: Hit) -> Answer:
        if not self._headers:
            return page("leaf /1")
        self.refused_at = time.monotonic()
        lines = "".join(f"Retry-After: {self._written(header)}\r\n" for header in self._headers.pop())
        return Page(raw=f"HTTP/1.1 429 Too Many\r\n{lines}Content-Length: 0\r\n\r\n".encode())

    def _written(self, header: str | float) -> str:
        return header if isinstance(header, str) else formatdate(self._clock.now_ms() / 1000 + header, usegmt=True)


WAITS: dict[str, tuple[list[str | float], int]] = {
    "E13 5": (["5"], 5),
    "E13 twice, the same": (["5", "5"], 5),
    "E13 twice, the longer first": (["5", "1"], 5),
    "E13 twice, the first is nonsense": (["soon", "5"], 0),
    "E13 a date": ([6.0], 5),
    "E13 a past date": ([-3600.0], 0),
    "E13 two dates": ([6.0, 6.0], 0),
    "E13 -5": (["-5"], 0),
    "E13 soon": (["soon"], 0),
}


@pytest.mark.parametrize("name", WAITS)
def test_the_whole_host_waits_as_long_as_it_says(fast: Home, clock: FastClock, name: str) -> None:
    headers, least = WAITS[name]
    touchy = Touchy(clock, *headers)
    with touchy.site().serve() as served:
        ended = fast.crawl(served.url("/"), sitemap=False, workers=1)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 5, 0)
        later = [clock.at(hit.time) for hit in served.log if hit.time > touchy.refused_at]
        assert len(later) == 4, "three leaves, and /1 again"
        assert min(later) - clock.at(touchy.refused_at) >= least - SLACK
        sound(fast)


@pytest.mark.parametrize("header", ["1000000000000", "9" * 30, 1e9], ids=["10^12", "10^30", "in 30 years"])
def test_e13_nobody_is_left_alone_for_more_than_a_day(fast: Home, clock: FastClock, header: str | float) -> None:
    with Touchy(clock, header).site().serve() as served:
        ended = fast.crawl(served.url("/"), sitemap=False, workers=1)
        assert (ended.run_state, ended.ended_by) == ("paused", "waiting")
        asked = len(served.log)
        clock.skip(86_400 / 2)
        assert (fast.resume().ended_by, len(served.log)) == ("waiting", asked), "half a day later"
        clock.skip(86_400 / 2)
        ended = fast.resume(workers=1)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 5, 0)
        sound(fast)
