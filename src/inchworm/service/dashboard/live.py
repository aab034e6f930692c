"""What changes on open pages, over one stream per browser: whole parts of pages, as the server made them.

A view is a page that is open somewhere, such as `run:7fb21d4d1e:0`. Its parts are made once a second at most, however
many watch it, and only while somebody does; each watcher is sent the parts that it has not got. Logs of executions come
line by line, from the channels that the API uses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from inchworm.app.root import App
from inchworm.errors import InchwormError, Unknown
from inchworm.service.api.live import EventStream, Hub, log_channel
from inchworm.service.api.web import Service, Verbs

routes = APIRouter(include_in_schema=False)
log = logging.getLogger("inchworm.dashboard")

Parts = Mapping[str, str]
"""The parts of a page by the id of the element that holds them."""

Make = Callable[[App, str], Parts]
"""Makes the parts of a view from what stands behind its name."""

VIEWS: dict[str, Make] = {}
WORKING: set[str] = set()
"""Views that go on with some work at every look, whether anything was written or not."""

LOOK_SECONDS = 1.0
_SHARE = 0.005
"""Of a core: what takes longer to make is looked at less often."""

_QUIET_SECONDS = 15.0
_LINGER_SECONDS = 5.0
_MOST_VIEWS = 50
STILL_HERE = b": still here\n\n"
_GONE = {"gone": "What this page showed has been deleted."}


def view(name: str, works: bool = False) -> Callable[[Make], Make]:
    """The parts that this function makes are renewed on pages that watch `name:…`."""

    def register(make: Make) -> Make:
        VIEWS[name] = make
        if works:
            WORKING.add(name)
        return make

    return register


class WatchedView:
    """A view that somebody watches. `mark` stays the same as long as nothing happens that it could show."""

    def __init__(self, make: Callable[[], Parts], mark: Callable[[], tuple[int, ...]], works: bool = False) -> None:
        self._make = make
        self._works = works
        self._mark = mark
        self._made_at: tuple[int, ...] = ()
        self._cost = 0.0
        self.parts: Parts = {}
        self.watchers = 0
        self.wanted_at = time.monotonic()
        self.moved = asyncio.Event()
        self.due_at = 0.0
        self._looking = asyncio.Lock()

    def is_watched(self) -> bool:
        return self.watchers > 0 or time.monotonic() - self.wanted_at < _LINGER_SECONDS

    async def look(self) -> None:
        # One at a time: what an older look saw must not take the place of what a newer one did.
        async with self._looking:
            parts = await asyncio.to_thread(self._now)
            if parts != self.parts:
                self.parts = parts
                self.moved.set()
                self.moved = asyncio.Event()

    def _now(self) -> Parts:
        # Asked before: whatever happens while the parts are made shows at the next look.
        mark = self._mark()
        if mark and mark == self._made_at:
            return self.parts
        began = time.thread_time()
        parts = self._make()
        self._made_at = mark
        # The first look after a start is dearer than any other, and says nothing about them.
        last, self._cost = self._cost, time.thread_time() - began
        self.due_at = time.monotonic() + (0.0 if self._works else min(last, self._cost) / _SHARE)
        return parts


class Board:
    """All views that are watched. `own`: those that need more than the verbs of the home."""

    def __init__(self, verbs: Verbs, own: Mapping[str, Make] | None = None) -> None:
        self._verbs = verbs
        self._own = own or {}
        self._shown: dict[str, WatchedView] = {}

    def shown(self, name: str) -> WatchedView:
        """The view of this name, for whoever begins to watch it."""
        kind, _, rest = name.partition(":")
        make = self._own.get(kind) or VIEWS.get(kind)
        if make is None:
            raise Unknown(f"There is no view {kind!r}.", "Load the page again.")
        if name not in self._shown:
            self._shown[name] = WatchedView(
                lambda: self._parts(make, rest), lambda: self._mark(kind, rest), kind in WORKING
            )
        self._shown[name].wanted_at = time.monotonic()
        return self._shown[name]

    def _parts(self, make: Make, rest: str) -> Parts:
        try:
            return make(self._verbs.app, rest)
        except Unknown:
            return _GONE

    def _mark(self, kind: str, rest: str) -> tuple[int, ...]:
        return (
            ()
            if kind in self._own or kind in WORKING
            else self._verbs.app.workspace.last_written(rest.partition(":")[0])
        )

    async def work(self) -> None:
        """Renew what is watched, once a second."""
        while True:
            self._shown = {name: one for name, one in self._shown.items() if one.is_watched()}
            now = time.monotonic()
            for name, one in [(name, one) for name, one in self._shown.items() if one.due_at <= now]:
                try:
                    await one.look()
                except InchwormError as error:
                    log.warning("The view %s could not be made: %s", name, error.message)
                except Exception:
                    log.exception("The view %s could not be made; it is tried again", name)
            await asyncio.sleep(LOOK_SECONDS)


@routes.get("/live")
async def live(
    request: Request, service: Service, view: Annotated[list[str], Query(max_length=_MOST_VIEWS)]
) -> Response:
    """The views of a browser's open pages: `event: parts`, `event: log`, each with the name of its view."""
    board, hub = request.app.state.board, request.app.state.hub
    sources = [_source(board, hub, service, name) for name in dict.fromkeys(view)]
    return EventStream(merged(sources, hub.closing))


def _source(board: Board, hub: Hub, service: Verbs, name: str) -> AsyncGenerator[bytes, None]:
    kind, _, rest = name.partition(":")
    if kind == "log":
        return _log_lines(hub, service, name, rest)
    return _watched(name, board.shown(name))


async def _watched(name: str, shown: WatchedView) -> AsyncGenerator[bytes, None]:
    """Whatever parts of a view are not as they were when they were sent."""
    sent: dict[str, str] = {}
    shown.watchers += 1
    try:
        # The page that watches is younger than our last look: it must not be set back to what was before it.
        with contextlib.suppress(Exception):
            await shown.look()
        while True:
            moved = shown.moved
            new = {key: html for key, html in shown.parts.items() if sent.get(key) != html}
            if new:
                sent |= new
                yield event("parts", {"view": name, "parts": new})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), _QUIET_SECONDS)
                continue
            yield STILL_HERE
    finally:
        shown.watchers -= 1


async def _log_lines(hub: Hub, service: Verbs, name: str, rest: str) -> AsyncGenerator[bytes, None]:
    """The log of an execution from behind a line on; `log:EXECUTION:LINE`."""
    numbers = [int(word) for word in rest.split(":") if word.isascii() and word.isdigit() and len(word) < 19]
    execution_id, after = (*numbers, 0, 0)[:2]
    channel = hub.channel(f"log {execution_id}", lambda: log_channel(service, execution_id))
    async with contextlib.aclosing(hub.follow(channel, after)) as events:
        async for found in events:
            if found:
                yield event("log", {"view": name, "lines": [json.loads(one.text) for one in found]})
            else:
                yield STILL_HERE
    yield event("log", {"view": name, "over": True})


async def merged(sources: list[AsyncGenerator[bytes, None]], closing: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Several streams as one, until all are over or the service stops."""
    stop = asyncio.ensure_future(closing.wait())
    waiting: dict[asyncio.Future[Any], AsyncGenerator[bytes, None]] = {_next(one): one for one in sources}
    try:
        yield STILL_HERE
        while waiting and not stop.done():
            done, _ = await asyncio.wait((*waiting, stop), return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stop}:
                source = waiting.pop(task)
                with contextlib.suppress(StopAsyncIteration):
                    yield task.result()
                    waiting[_next(source)] = source
    finally:
        for task in (stop, *waiting):
            task.cancel()
        await asyncio.gather(stop, *waiting, return_exceptions=True)
        for source in sources:
            await source.aclose()


def _next(source: AsyncGenerator[bytes, None]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(anext(source))


def event(kind: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(dict(data))}\n\n".encode()
