"""What tests of crawls need: a web site made of a dict, on a real local server, and a clock they can move.

    site = Site({"/": "<a href='/a'>a</a>", "/a": Page("text", delay=0.5), "/old": redirect("/a")})
    with site.serve() as served:
        ...                      # crawl served.url("/")
        assert served.paths() == ["/robots.txt", "/", "/a"]

The server speaks HTTP/1.1 with keep-alive, in a thread of its own, so it suits any client, blocking or not.
`python -m inchworm.testing --help` runs one as a process. It is not a web server for anything else.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath

MAX_HEAD_BYTES = 1_000_000

_TYPES = {
    ".css": "text/css",
    ".gz": "application/gzip",
    ".js": "text/javascript",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """One request as the server saw it. Header names are in lower case."""

    time: float
    host: str
    method: str
    path: str
    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """An answer. Its headers win over those the server would add, even where they lie.

    `delay` is in seconds. `raw` is written to the socket as it is, and the connection closed.
    """

    body: str | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    gzip: bool = False
    raw: bytes | None = None


Answer = str | bytes | Page
Pages = Mapping[str, Answer | Callable[[Hit], Answer]]


def redirect(location: str, status: int = 302) -> Page:
    return Page(status=status, headers={"Location": location})


class Site:
    """Pages by path. A path is looked up with its query, then without, then as "*"; else it is a 404.

    `hosts` holds other sets of pages, by the name in the Host header without its port. A page may be a
    function of the `Hit`; it runs on the server's loop, so `Page.delay` has to do the waiting for it.
    The dicts may be changed while they are served. `latency` is a range of seconds, added to every answer. With
    `validators` good pages bear an entity tag, and who has that version is told that it still holds.
    """

    def __init__(
        self,
        pages: Pages,
        hosts: Mapping[str, Pages] | None = None,
        latency: tuple[float, float] = (0.0, 0.0),
        validators: bool = False,
    ) -> None:
        self.pages = pages
        self.hosts = hosts or {}
        self.latency = latency
        self.validators = validators
        self._random = random.Random(1)  # noqa: S311 - latency is no secret

    def answer(self, hit: Hit) -> Page:
        """The page for a request. A mistake in a test's function must show up in the test: as a 500."""
        answer = self._find(hit)
        try:
            answer = answer(hit) if callable(answer) else answer
        except Exception as error:
            answer = Page(f"{type(error).__name__}: {error}", 500)
        page = answer if isinstance(answer, Page) else Page(answer)
        return _validated(page, hit) if self.validators and page.status == 200 else page

    def _find(self, hit: Hit) -> Answer | Callable[[Hit], Answer]:
        pages = self.hosts.get(hit.host.partition(":")[0], self.pages)
        for key in (hit.path, hit.path.partition("?")[0], "*"):
            if key in pages:
                return pages[key]
        return Page("not found", 404)

    def wait(self) -> float:
        return self._random.uniform(*self.latency) if self.latency[1] else 0.0

    @contextmanager
    def serve(self, port: int = 0, on_hit: Callable[[Hit], object] | None = None) -> Iterator[Served]:
        """Serve on 127.0.0.1 until the block ends. `on_hit` is called in the server's thread."""
        served = Served(self, on_hit)
        started: Future[int] = Future()
        thread = threading.Thread(target=asyncio.run, args=(served.run(port, started),), daemon=True)
        thread.start()
        try:
            served.port = started.result()
            yield served
        finally:
            served.stop()
            thread.join()


def _validated(page: Page, hit: Hit) -> Page:
    body = page.body.encode() if isinstance(page.body, str) else page.body
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": tag, **page.headers}
    if hit.headers.get("if-none-match") == headers["ETag"]:
        return Page(status=304, headers=headers, delay=page.delay)
    return replace(page, headers=headers)


class Served:
    """A site while it is being served, and the log of what it was asked."""

    def __init__(self, site: Site, on_hit: Callable[[Hit], object] | None = None) -> None:
        self.port = 0
        self._site = site
        self._on_hit = on_hit
        self._hits: list[Hit] = []
        self._connections: set[asyncio.Transport] = set()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def log(self) -> list[Hit]:
        """The requests so far, in the order they came in."""
        return list(self._hits)

    def paths(self) -> list[str]:
        return [hit.path for hit in self.log]

    async def run(self, port: int, started: Future[int]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = await self._loop.create_server(lambda: _HttpConnection(self), "127.0.0.1", port, backlog=1024)
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(server.sockets[0].getsockname()[1])
        await self._stopping.wait()
        # Whoever was let in just now becomes a connection when the task that does it has ended, and never does when the
        # server is closed before: then his socket would stay open.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        server.close()
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)

    def stop(self) -> None:
        if self.port:
            self._loop.call_soon_threadsafe(self._stopping.set)

    def answer(self, hit: Hit) -> tuple[Page, float]:
        """What to send, and after how many seconds. The request counts from now on, whatever comes of it."""
        page = self._site.answer(hit)
        hit = replace(hit, status=page.status)
        self._hits.append(hit)
        if self._on_hit:
            self._on_hit(hit)
        return page, page.delay + self._site.wait()

    def opened(self, connection: asyncio.Transport) -> None:
        self._connections.add(connection)

    def closed(self, connection: asyncio.Transport) -> None:
        self._connections.discard(connection)


_TLS = b"\x16\x03"
"""How a handshake begins."""


class _HttpConnection(asyncio.Protocol):
    """Answers the requests of one connection, one after the other."""

    transport: asyncio.Transport

    def __init__(self, served: Served) -> None:
        self._served = served
        self._unread = bytearray()
        self._is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._served.opened(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._served.closed(self.transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._go_on()

    def _go_on(self) -> None:
        while not self._is_busy and not self.transport.is_closing():
            if self._unread.startswith(_TLS):
                self.transport.close()  # whoever tries https is not left waiting
                return
            head, blank, rest = self._unread.partition(b"\r\n\r\n")
            if not blank:
                if len(head) > MAX_HEAD_BYTES:
                    self.transport.close()
                return
            self._unread = rest
            self._begin(bytes(head))

    def _begin(self, head: bytes) -> None:
        hit, is_last = _parse_head(head)
        page, wait = self._served.answer(hit)
        if wait:
            self._is_busy = True
            asyncio.get_running_loop().call_later(wait, self._finish, hit, page, is_last)
        else:
            self._send(hit, page, is_last)

    def _finish(self, hit: Hit, page: Page, is_last: bool) -> None:
        self._is_busy = False
        if not self.transport.is_closing():
            self._send(hit, page, is_last)
            self._go_on()

    def _send(self, hit: Hit, page: Page, is_last: bool) -> None:
        self.transport.write(_render(hit, page))
        if is_last or page.raw is not None or page.headers.get("Connection") == "close":
            self.transport.close()


def _parse_head(head: bytes) -> tuple[Hit, bool]:
    """The request, and whether it is the last of its connection. Bodies are not read, so those are."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, version = [*first.split(" "), "", "", ""][:3]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    hit = Hit(time.monotonic(), headers.get("host", ""), method, path, 0, headers)
    is_plain = method in ("GET", "HEAD") and version == "HTTP/1.1"
    return hit, not is_plain or headers.get("connection", "").lower() == "close"


def _render(hit: Hit, page: Page) -> bytes:
    if page.raw is not None:
        return page.raw
    body = page.body.encode() if isinstance(page.body, str) else page.body
    headers = {"Content-Type": _content_type(page, hit.path)}
    if page.gzip:
        body = gzip.compress(body, mtime=0)
        headers["Content-Encoding"] = "gzip"
    if page.status in (204, 304):
        body = b""
    else:
        headers["Content-Length"] = str(len(body))
    given = {name.lower() for name in page.headers}
    lines = [f"HTTP/1.1 {page.status} {_phrase(page.status)}", *map(": ".join, page.headers.items())]
    lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() not in given]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if hit.method == "HEAD" else head + body


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _content_type(page: Page, path: str) -> str:
    default = "text/html; charset=utf-8" if isinstance(page.body, str) else "application/octet-stream"
    return _TYPES.get(PurePosixPath(path.partition("?")[0]).suffix, default)


_WORDS = """
    anchor apple autumn basket beacon bridge candle canyon carbon castle cellar cherry circle cotton copper
    corner desert dragon engine falcon fabric filter forest garden ginger hammer harbor hollow island jacket
    jungle kettle ladder lantern legend marble meadow mirror mountain nectar orchard oxygen paper pepper
    pillow planet pocket quartz rabbit ribbon river rocket saddle salmon shadow silver spider summer temple
    thunder timber tunnel valley velvet violin walnut willow window winter wonder yellow
""".split()  # noqa: SIM905 - seventy quoted words are no better


def linked_site(pages: int, fan: int = 5, seed: int = 1, duplicates: int = 0) -> dict[str, str]:
    """A site of `/`, `/p1`, `/p2`, … that is the same every time: a tree with some links back and across.

    Every page has a text of its own. `/dup/0`, `/dup/1`, … say the same as `/`, `/p1`, …, which link to them.
    """
    paths = ["/", *(f"/p{number}" for number in range(1, pages))]
    copies: dict[int, list[str]] = {}
    for number in range(duplicates):
        copies.setdefault(number % pages, []).append(f"/dup/{number}")
    site = {}
    for number, path in enumerate(paths):
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - the point is that it can be foretold
        children = paths[number * fan + 1 : number * fan + fan + 1]
        others = [paths[(number - 1) // fan] if number else "/", "/", chance.choice(paths)]
        links = dict.fromkeys([*children, *others, *copies.get(number, ())])
        site[path] = _article(number, links, chance)
        site.update(dict.fromkeys(copies.get(number, ()), site[path]))
    return site


def _article(number: int, links: Mapping[str, None], chance: random.Random) -> str:
    paragraphs = "".join(f"<p>{' '.join(_sentence(chance) for _ in range(4))}</p>\n" for _ in range(4))
    items = "".join(f'<li><a href="{link}">{link}</a></li>\n' for link in links)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Page {number}</title></head>\n'
        f"<body><main><h1>Page {number}</h1>\n{paragraphs}</main>\n"
        f"<nav><ul>\n{items}</ul></nav></body></html>\n"
    )


def _sentence(chance: random.Random) -> str:
    words = chance.choices(_WORDS, k=chance.randint(7, 14))
    return " ".join(words).capitalize() + "."


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._started_ms = now_ms
        self._seconds = 0.0

    def now_ms(self) -> int:
        return self._started_ms + round(self._seconds * 1000)

    def monotonic(self) -> float:
        return self._seconds

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time does not go back")
        self._seconds += seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a linked site until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m inchworm.testing", description=main.__doc__)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--fan", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--duplicates", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, nargs=2, default=(0.0, 0.0), metavar=("LEAST", "MOST"))
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="gets one line per request")
    options = parser.parse_args(arguments)

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    least, most = options.latency_ms
    pages = linked_site(options.pages, options.fan, options.seed, options.duplicates)
    site = Site(pages, latency=(least / 1000, most / 1000))
    with (
        options.log.open("a", buffering=1) as log,
        site.serve(options.port, lambda hit: log.write(_line(hit))) as served,
    ):
        print(served.url("/"), flush=True)
        stop.wait()


def _line(hit: Hit) -> str:
    return f"{hit.time:.6f} {hit.host} {hit.path} {hit.status}\n"


if __name__ == "__main__":
    main()
