"""Answers that are sent while they are written, and end when nobody reads them any more.

A thread writes, and waits whenever much has not been taken yet; so memory does not grow with an answer, and a
slow reader slows only its own. When the reader has gone, whatever the thread does next ends it: writing, or telling how
far it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO, cast

import anyio.from_thread
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from inchworm.service.api.web import at_length

_PIECE = 1 << 16
_MOST_BYTES = 1 << 19
"""What may wait to be taken."""

Told = Callable[[int, int], None]
"""Is told how far it is, of how much."""


class Gone(Exception):
    """Whoever wanted this has left."""


def streamed(name: str, kind: str, write: Callable[[BinaryIO, Told], object]) -> Response:
    """What is written, as a download of this name and type, from its first bytes on. What goes wrong before there are
    any is raised here. Called in a thread of its own, as routes are."""
    pipe = _Pipe(anyio.from_thread.run_sync(asyncio.get_running_loop))
    with contextlib.ExitStack() as taken:
        taken.enter_context(at_length())
        turn = taken.pop_all()
    threading.Thread(target=_produce, args=(pipe, write, turn), daemon=True).start()
    pipe.wait_until_begun()
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return _Streamed(pipe, media_type=kind, headers=headers)


def _produce(pipe: _Pipe, write: Callable[[BinaryIO, Told], object], turn: contextlib.ExitStack) -> None:
    with turn:
        try:
            write(cast(BinaryIO, pipe), pipe.told)
            pipe.end()
        except Gone:
            pass
        except BaseException as error:
            pipe.end(error)


class _Pipe(io.RawIOBase):
    """Takes bytes in one thread, and gives them to an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._moved = asyncio.Event()
        self._change = threading.Condition()
        self._held = bytearray()
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._error: BaseException | None = None
        self._has_begun = self._is_over = self._is_left = False

    # In the thread that writes

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        if len(self._held) >= _PIECE:
            self._hand_over()
        return len(data)

    def told(self, _done: int, _total: int) -> None:
        """A good moment to see whether anybody is still there."""
        if self._is_left:
            raise Gone
        if not self._has_begun:
            with self._change:
                self._begin()

    def end(self, error: BaseException | None = None) -> None:
        if error is None:
            self._hand_over()
        with self._change:
            self._error, self._is_over = error, True
            self._begin()
        self._wake()

    def _hand_over(self) -> None:
        with self._change:
            self._change.wait_for(lambda: self._is_left or self._waiting < _MOST_BYTES)
            if self._is_left:
                raise Gone
            self._pieces.append(bytes(self._held))
            self._waiting += len(self._held)
            self._begin()
        self._held.clear()
        self._wake()

    def _begin(self) -> None:
        self._has_begun = True
        self._change.notify_all()

    def _wake(self) -> None:
        # The loop may have ended with the service.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._moved.set)

    # In a thread that waits for it

    def wait_until_begun(self) -> None:
        """Until there is something to send, or to do, or nothing at all; or until it failed, which is raised."""
        with self._change:
            self._change.wait_for(lambda: self._has_begun)
            if self._error is not None and not self._pieces:
                raise self._error

    # In the event loop

    async def pieces(self) -> AsyncIterator[bytes]:
        while True:
            with self._change:
                piece = self._pieces.popleft() if self._pieces else None
                self._waiting -= len(piece or b"")
                self._change.notify_all()
                is_over = self._is_over
            if piece is not None:
                yield piece
            elif is_over:
                break
            else:
                await self._moved.wait()
                self._moved.clear()
        if self._error is not None:
            raise self._error  # so that the answer has no end, by which whoever reads it sees that it is not whole

    def leave(self) -> None:
        """Nobody wants any more of it."""
        with self._change:
            self._is_left = True
            self._change.notify_all()


class _Streamed(StreamingResponse):
    """Lets the writer know when it is over, however it ends, also when it never began."""

    def __init__(self, pipe: _Pipe, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(pipe.pieces(), media_type=media_type, headers=headers)
        self._pipe = pipe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pipe.leave()
