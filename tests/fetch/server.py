"""A web server that misbehaves on request, for the tests: raw sockets on loopback, one handler per path."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """What the tests may ask a running server: its address, and what it has seen."""

    def __init__(self, routes: Mapping[str, Handler]) -> None:
        self.routes = routes
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def has_seen(self, path: str) -> bool:
        return any(request.split(b" ", 2)[1] == path.encode() for request in self.requests)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not writer.is_closing():
                    request = await reader.readuntil(b"\r\n\r\n")
                    self.requests.append(request)
                    path = request.split(b" ", 2)[1].decode()
                    await self.routes[path](request, writer)
                    if not writer.is_closing():
                        await writer.drain()
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A port where everybody who comes is served. In the end nothing is left of it, neither a task nor a connection:
    what is shows as a warning in whatever test comes next."""
    at_work: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work[task] = writer
        await serve(reader, writer)

    listener = await asyncio.start_server(welcome, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        for one in listener.sockets:
            asyncio.get_running_loop().remove_reader(one.fileno())
        for _ in range(5):  # whoever was let in just now is served only in the next rounds of the loop
            await asyncio.sleep(0)
        listener.close()
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)
        for writer in at_work.values():
            writer.transport.abort()
        for _ in range(2):
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(routes: Mapping[str, Handler], tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(routes)
    async with listening(server.serve, tls) as server.port:
        yield server


def message(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A well-formed answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def ok(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> Handler:
    """Answers well and keeps the connection open."""
    return send(message(body, *headers, status=status))


def send(*pieces: bytes, pause: float = 0.0) -> Handler:
    """Sends these bytes and keeps the connection open."""

    async def handler(_request: bytes, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return handler


def send_and_close(*pieces: bytes) -> Handler:
    async def handler(request: bytes, writer: asyncio.StreamWriter) -> None:
        await send(*pieces)(request, writer)
        writer.close()

    return handler


def send_and_reset(data: bytes) -> Handler:
    """Sends these bytes, waits until they are there, and breaks the connection."""

    async def handler(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.05)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return handler


def send_for_ever(start: bytes, piece: bytes, pause: float = 0.0) -> Handler:
    async def handler(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return handler


def silence(start: bytes = b"") -> Handler:
    """Sends these bytes, then nothing any more."""

    async def handler(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.sleep(60)

    return handler


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something to happen on the other side of the connection."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
