"""What happens, as it happens: server-sent events of logs, crawls, health and metrics.

A channel is read from the database by one task, however many watch it. Whoever watches holds only the number of the
last event it has got, so a slow reader costs nothing, and one that stopped reading is let go; it comes back with
Last-Event-ID and misses nothing that is still kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from inchworm.errors import Unknown
from inchworm.job import ExecutionState
from inchworm.rules.words.times import iso
from inchworm.service.access import gate
from inchworm.service.access.auth import Identity
from inchworm.service.access.gate import Keys
from inchworm.service.api.jobs import JobId
from inchworm.service.api.web import Service, Verbs, refusals

LOOK_SECONDS = 0.5
MOST_WATCHERS = 2_000
_QUIET_SECONDS = 15.0
_BEGIN_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
_LOGIN_SECONDS = 5.0
_RECENT = 2_000
_BATCH = 500

routes = APIRouter(tags=["live"])
log = logging.getLogger("inchworm.live")


class LiveEvent(NamedTuple):
    """One event: its number, what it is, and what it says, in JSON."""

    number: int
    kind: str
    text: str

    def wire(self) -> bytes:
        # JSON has no line breaks of its own, so an event is what we say it is, whatever stands in it.
        return f"id: {self.number}\nevent: {self.kind}\ndata: {self.text}\n\n".encode()


Fetch = Callable[[int, int], list[LiveEvent]]
"""Events after a number, at most so many. Called in a thread."""


def event(number: int, kind: str, data: Mapping[str, Any]) -> LiveEvent:
    return LiveEvent(number, kind, json.dumps(dict(data)))


class Channel:
    """A sequence of events with numbers that grow, and those who watch it."""

    def __init__(self, fetch: Fetch, is_over: Callable[[], bool] = lambda: False) -> None:
        self.fetch = fetch
        self.is_over = is_over
        self.watchers = 0
        self.asked_for = 0.0
        self.over = False
        self._recent: deque[LiveEvent] = deque(maxlen=_RECENT)
        self._last: int | None = None
        self.moved = asyncio.Event()

    def is_watched(self) -> bool:
        """Whoever has just asked for it may not have begun to watch."""
        return self.watchers > 0 or time.monotonic() - self.asked_for < _BEGIN_SECONDS

    async def look(self) -> None:
        """Take in what is new, and wake whoever waits for it."""
        # Asked before: what was written before the end is there after it.
        over = await asyncio.to_thread(self.is_over)
        while found := await asyncio.to_thread(self.fetch, self._last or 0, _BATCH):
            self._recent.extend(found)
            self._last = found[-1].number
            self._wake()
        if over and not self.over:
            self.over = True
            self._wake()

    def start_at(self, number: int) -> None:
        """What came before this is looked up only for those who ask for it."""
        if self._last is None:
            self._last = number

    def _wake(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()

    async def after(self, number: int) -> list[LiveEvent]:
        """What came after a number: at once, from memory if it is recent."""
        if self._recent and self._recent[0].number <= number + 1:
            return [one for one in self._recent if one.number > number][:_BATCH]
        found = await asyncio.to_thread(self.fetch, number, _BATCH)
        return [one for one in found if self._last is None or one.number <= self._last]


class Hub:
    """The channels that somebody watches."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self.closing = asyncio.Event()

    def channel(self, name: str, make: Callable[[], Channel]) -> Channel:
        if sum(one.watchers for one in self._channels.values()) >= MOST_WATCHERS:
            raise HTTPException(503, "Too many are watching already.", {"Retry-After": "10"})
        if name not in self._channels:
            self._channels[name] = make()
        self._channels[name].asked_for = time.monotonic()
        return self._channels[name]

    def close(self) -> None:
        """End all streams: the service stops."""
        self.closing.set()

    async def work(self) -> None:
        """Look at every channel twice a second, and forget those that nobody watches."""
        while not self.closing.is_set():
            self._channels = {name: one for name, one in self._channels.items() if one.is_watched()}
            for name, channel in list(self._channels.items()):
                await self._look(name, channel)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), LOOK_SECONDS)

    async def _look(self, name: str, channel: Channel) -> None:
        """One that cannot be read must not end the others."""
        try:
            await channel.look()
        except Exception:
            log.exception("The stream %s could not be read; it is tried again", name)

    async def follow(self, channel: Channel, after: int) -> AsyncGenerator[list[LiveEvent], None]:
        """Everything after a number, until the channel is over, the reader leaves, or the service stops. Nothing, in
        an empty list, when nothing has happened for a while."""
        channel.watchers += 1
        number = after
        try:
            while not self.closing.is_set():
                # Taken before we look: whatever comes while we do, wakes us.
                moved, over = channel.moved, channel.over
                if found := await channel.after(number):
                    number = found[-1].number
                    yield found
                elif over:
                    return
                elif not await self._happens(moved):
                    yield []
        finally:
            channel.watchers -= 1

    async def watch(self, channel: Channel, after: int) -> AsyncGenerator[bytes, None]:
        """The same, as it goes over the wire."""
        yield b"retry: 2000\n\n"
        async with contextlib.aclosing(self.follow(channel, after)) as events:
            async for found in events:
                yield b"".join(one.wire() for one in found) or b": still here\n\n"
        if not self.closing.is_set():
            yield b"event: end\ndata: {}\n\n"

    async def _happens(self, moved: asyncio.Event) -> bool:
        """Wait until something happens; False when nothing does for a while."""
        waits = [asyncio.ensure_future(moved.wait()), asyncio.ensure_future(self.closing.wait())]
        try:
            done, _ = await asyncio.wait(waits, timeout=_QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        return bool(done)


class EventStream(Response):
    """A stream of events. A reader that takes nothing for too long is let go."""

    media_type = "text/event-stream"

    def __init__(self, source: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = [asyncio.ensure_future(one) for one in (self._send(send), _left(receive), _logged_out(scope))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with contextlib.aclosing(self._source) as source:
            async for chunk in source:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _logged_out(scope: Scope) -> None:
    """Until whoever watches would not be let in any more: a stream must not outlive its login."""
    identity: Identity | None = scope.get("state", {}).get("identity")
    keys: Keys | None = getattr(scope["app"].state, "keys", None)
    while identity is None or keys is None or await asyncio.to_thread(gate.is_still_in, identity, keys):  # noqa: ASYNC110 - only the clock tells
        await asyncio.sleep(_LOGIN_SECONDS)


# What there is to watch


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=40)]
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Server-sent events"}
}


@routes.get(
    "/api/v1/jobs/{job_id}/logs/stream/v2", responses={**_STREAM, **refusals(404, 409)}, response_class=Response
)
async def stream_log(
    request: Request,
    service: Service,
    job_id: JobId,
    last_event_id: LastId = None,
    execution_id: Annotated[int | None, Query(ge=1, lt=1 << 62, description="the last one, if left out")] = None,
) -> Any:
    """The log of an execution, line by line, while it runs. Ends with an `end` event."""
    found = await asyncio.to_thread(lambda: service.app.executions.of_job(job_id, execution_id))
    number = found.execution_id
    channel = _hub(request).channel(f"log {number}", lambda: log_channel(service, number))
    return EventStream(_hub(request).watch(channel, _number(last_event_id)))


def log_channel(service: Verbs, execution_id: int) -> Channel:
    def fetch(after: int, limit: int) -> list[LiveEvent]:
        lines = service.app.executions.logs.after(execution_id, after, limit)
        return [
            event(one.number, "log", {"number": one.number, "at": iso(one.at_ms), "level": one.level, "text": one.text})
            for one in lines
        ]

    def is_over() -> bool:
        try:
            return service.app.executions.store.get(execution_id).state is not ExecutionState.RUNNING
        except Unknown:
            return True  # it was deleted with its job

    return Channel(fetch, is_over)


@routes.get("/sse/{topic}/events", responses={**_STREAM, **refusals()}, response_class=Response)
async def stream_events(
    request: Request,
    service: Service,
    topic: Literal["crawler", "health", "metrics"],
    last_event_id: LastId = None,
) -> Any:
    """What happens to crawls and jobs; or how the service is, and its figures, now and whenever they change."""
    hub = _hub(request)
    if topic == "crawler":
        last = await asyncio.to_thread(_last_event, service)
        channel = hub.channel(topic, lambda: _crawler_channel(service))
        channel.start_at(last)
        return EventStream(hub.watch(channel, _number(last_event_id) if last_event_id else last))
    feed: Feed = request.app.state.feeds[topic]
    channel = hub.channel(topic, lambda: Channel(feed.after))
    # Their numbers begin anew with the service: one from before it says nothing.
    return EventStream(hub.watch(channel, min(_number(last_event_id), feed.number - 1)))


def _last_event(service: Verbs) -> int:
    return service.app.executions.events.last()


def _crawler_channel(service: Verbs) -> Channel:
    def fetch(after: int, limit: int) -> list[LiveEvent]:
        found = service.app.executions.events.after(after, limit)
        return [event(one.event_id, one.kind, {"at": iso(one.at_ms), **one.data}) for one in found]

    return Channel(fetch)


class Feed:
    """Snapshots that the service makes of itself: the last one, and a new one whenever it differs."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.number = 0
        self._shown: Mapping[str, Any] = {}
        self._last: LiveEvent | None = None

    def show(self, snapshot: Mapping[str, Any], ignored: Iterable[str] = ()) -> None:
        shown = {name: value for name, value in snapshot.items() if name not in ignored}
        if shown != self._shown:
            self.number += 1
            self._shown, self._last = shown, event(self.number, self._kind, snapshot)

    def after(self, number: int, _: int) -> list[LiveEvent]:
        """The newest, for whoever has not got it. Numbers begin anew with the service."""
        last = self._last
        return [last] if last is not None and (number < last.number) else []


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0
