"""A run, its web that is no network, and its sessions, with a clock that goes on only while a session polls."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inchworm.archive.warc import WarcWriter
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.engine.session.ending import SessionEnd
from inchworm.engine.session.loop import Edit, Loop, Watch
from inchworm.engine.visit import Tools
from inchworm.model import EndedBy, Failure, FinishedVisit, LiveProgress, Mode, Reply, Request, Response
from inchworm.reader import DocumentReader
from inchworm.settings import RUN, make, to_json
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life
from inchworm.testing import ManualClock

DEAD = Failure("connect", "connection refused", unreachable=True)
NOTHING = Response(404, b"HTTP/1.1 404 Not Found\r\n\r\n", {}, b"", b"", 0.01)
SECONDS = 5.0
"""How far the clock goes between two polls of a session, unless a test wants it otherwise."""


def page(text: str, *links: str) -> Response:
    body = f"<title>{text}</title><p>This is {text}.{''.join(f'<a href={link}>x</a>' for link in links)}".encode()
    return Response(200, b"HTTP/1.1 200 OK\r\n\r\n", {"content-type": "text/html"}, body, body, 0.01)


def refused(status: int, **headers: str) -> Response:
    """An error, with headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} No", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    return Response(status, "\r\n".join(lines).encode(), named, b"no", b"no", 0.01)


async def never() -> Reply:
    """An answer that does not come."""
    await asyncio.Event().wait()
    raise AssertionError("nobody waits for ever")


class Works:
    """`answer` says what comes of a path, with its host where that is not `h.test`; it may take its time. `asked` is
    what was asked for, in order, and `asked_at` when. With `at_once`, no page but a seed is answered before so many are
    asked for, or nobody asks for more; `most` is how many that were."""

    def __init__(
        self,
        folder: Path,
        answer: Callable[[str], Reply | Awaitable[Reply]],
        at_once: int = 0,
        seeds: tuple[str, ...] = ("http://h.test/",),
        **given: Any,
    ) -> None:
        self.values = make({"delay": 0, "sitemap": False, **given})
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.asked_at: list[float] = []
        self.broken_off: list[tuple[str, float]] = []
        """Requests that were cancelled, and when."""
        self.visited: list[FinishedVisit] = []
        self.told: list[LiveProgress] = []
        self.beats: list[int] = []
        """What was told at each poll, and how often the owner had shown by then that it lives."""
        self.seconds = SECONDS
        self.orders: list[EndedBy | Edit] = []
        self.orders_behind = "/robots.txt"
        """What somebody wants of the session, one at each poll, once this was asked for."""
        self.slow, self.asked_meanwhile = "", 0
        """What is answered when nobody has asked for anything else for a while, and how much was asked for by then."""
        self.stopping: asyncio.Event | None = None
        self.stopping_at = ""
        """While this is asked for somebody wants the session to pause, which has worked for a long time by then."""
        self.most = self._under_way = self._sessions = 0
        self._at_once = at_once
        self.answer = answer
        self.store = CrawlStore(folder / "crawl.db")
        self._folder = folder / "archive"
        self._folder.mkdir()
        self._token = self.store.take(Life.of_this_process())
        typed = run.seeds_of(seeds)
        new = run.with_seeds(run.next_run([], Mode.BASELINE, to_json(self.values, RUN), 0), typed)
        changes = Ledger(self.store, NoArchive(), new, Author(0, self._token), self.values).seed(typed)
        self.store.runs.create(self._token, new, changes)

    def close(self) -> None:
        self.store.close()

    # What a session works with

    async def fetch(self, request: Request) -> Reply:
        parts = urlsplit(request.url)
        path = parts.path if parts.netloc == "h.test" else f"{parts.netloc}{parts.path}"
        self.asked.append(path)
        self.asked_at.append(self.clock.monotonic())
        try:
            return await self._reply(path)
        except asyncio.CancelledError:
            self.broken_off.append((path, self.clock.monotonic()))
            raise

    async def _reply(self, path: str) -> Reply:
        if path == self.stopping_at:
            await self._paused()
        if path == self.slow:
            await self._kept_back()
        await (self._gathered() if path not in ("/", "/robots.txt") else asyncio.sleep(0))
        reply = self.answer(path)
        return await reply if inspect.isawaitable(reply) else reply

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

    def poll(self) -> EndedBy | Edit | None:
        """What somebody wants."""
        if self.orders and self.orders_behind in self.asked:
            return self.orders.pop(0)
        if self.stopping is None or self.stopping.is_set():
            return None
        self.stopping.set()
        return EndedBy.PAUSED

    def _told(self, progress: LiveProgress) -> None:
        self.told.append(progress)
        self.beats += self.store.db.execute("SELECT heartbeat FROM owner").fetchone()
        self.clock.advance(self.seconds)

    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...

    # Sessions

    def work(self) -> SessionEnd:
        self._sessions += 1
        current = self.store.runs.get(0)
        assert current is not None
        self.store.sessions.start(self._token, current, "{}", 0)
        tools = Tools(self.values, self, DocumentReader(), self.clock, self, lambda: 0.0, {})
        with (
            closing(WarcWriter(self._folder, f"session{self._sessions}", {})) as archive,
            closing(CrawlStore(self.store.path, read_only=True)) as reading,
        ):
            self.ledger = Ledger(self.store, archive, current, Author(self._sessions, self._token), self.values)
            return asyncio.run(self._work(current, reading, tools))

    async def _work(self, current: Any, reading: CrawlStore, tools: Tools) -> SessionEnd:
        watch = Watch(self._told, self.visited.append)
        self.session = Loop(current, reading, self.ledger, tools, self, watch)
        return await asyncio.wait_for(self.session.work(), 60)
