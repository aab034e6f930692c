"""One session against a web that is no network, with a clock that goes on only while the session polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from inchworm.archive.warc import WarcWriter
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.engine.session import flight
from inchworm.engine.session.ending import SessionEnd
from inchworm.engine.session.loop import Loop, Watch
from inchworm.engine.visit import Tools
from inchworm.model import EndedBy, Failure, Mode, Reply, Request, Response
from inchworm.reader import DocumentReader
from inchworm.settings import RUN, make, to_json
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.lock import Life
from inchworm.testing import ManualClock

DEAD = Failure("connect", "connection refused", unreachable=True)


def page(text: str, *links: str) -> Response:
    body = f"<title>{text}</title><p>This is {text}.{''.join(f'<a href={link}>x</a>' for link in links)}".encode()
    return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {"content-type": "text/html"}, body, body, 0.01)


NOTHING = Response(404, b"HTTP/1.1 404 Not Found\r\n\r\n", {}, b"", b"", 0.01)


class Works:
    """A run, its web, and its sessions. `answer` says what comes of a path; `asked` is what was asked for, in order.
    With `at_once`, no page but a seed is answered before so many are asked for, or nobody asks for more; `most` is how
    many that were."""

    def __init__(
        self,
        folder: Path,
        answer: Callable[[str], Reply],
        at_once: int = 0,
        **given: Any,
    ) -> None:
        self.values = make({"delay": 0, "sitemap": False, **given})
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.slow, self.asked_meanwhile = "", 0
        """What is answered when nobody has asked for anything else for a while, and how much was asked for by then."""
        self.stopping: asyncio.Event | None = None
        self.stopping_at = ""
        """While this is asked for somebody wants the session to pause, which has worked for a long time by then."""
        self.most = self._under_way = self._sessions = 0
        self._at_once = at_once
        self._answer = answer
        self._store = CrawlStore(folder / "crawl.db")
        self._folder = folder / "archive"
        self._folder.mkdir()
        self._token = self._store.take(Life.of_this_process())
        typed = run.seeds_of(("http://h.test/",))
        new = run.with_seeds(run.next_run([], Mode.BASELINE, to_json(self.values, RUN), 0), typed)
        changes = Ledger(self._store, NoArchive(), new, Author(0, self._token), self.values).seed(typed)
        self._store.create_run(self._token, new, changes)

    def close(self) -> None:
        self._store.close()

    # What a session works with

    async def fetch(self, request: Request) -> Reply:
        path = urlsplit(request.url).path
        self.asked.append(path)
        if path == self.stopping_at:
            await self._paused()
        if path == self.slow:
            await self._kept_back()
        await (self._gathered() if path not in ("/", "/robots.txt") else asyncio.sleep(0))
        return self._answer(path)

    async def _paused(self) -> None:
        self.clock.advance(10_000)
        self.stopping = asyncio.Event()
        await self.stopping.wait()
        await asyncio.sleep(0.1)

    async def _kept_back(self) -> None:
        while self.asked_meanwhile < len(self.asked):
            self.asked_meanwhile = len(self.asked)
            await asyncio.sleep(0.3)

    async def _gathered(self) -> None:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if self._under_way >= self._at_once:
                break
        self._under_way -= 1

    def poll(self) -> EndedBy | None:
        """What somebody wants, and five seconds have passed."""
        self.clock.advance(5.0)
        if self.stopping is None or self.stopping.is_set():
            return None
        self.stopping.set()
        return EndedBy.PAUSED

    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...

    def work(self) -> SessionEnd:
        self._sessions += 1
        current = self._store.run(0)
        assert current is not None
        self._store.start_session(self._token, current, "{}", 0)
        tools = Tools(self.values, self, DocumentReader(), self.clock, self, lambda: 0.0, {})
        with (
            closing(WarcWriter(self._folder, f"session{self._sessions}", {})) as archive,
            closing(CrawlStore(self._store.path, read_only=True)) as reading,
        ):
            ledger = Ledger(self._store, archive, current, Author(self._sessions, self._token), self.values)
            return asyncio.run(self._work(current, reading, ledger, tools))

    async def _work(self, current: Any, reading: CrawlStore, ledger: Ledger, tools: Tools) -> SessionEnd:
        session = Loop(current, reading, ledger, tools, self, Watch())
        return await asyncio.wait_for(session.work(), 60)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Works]]:
    made: list[Works] = []

    def begin(answer: Callable[[str], Reply], **given: Any) -> Works:
        made.append(Works(tmp_path, answer, **given))
        return made[-1]

    yield begin
    for one in made:
        one.close()


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
