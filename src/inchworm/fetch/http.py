"""Fetching from the web, on libcurl.

Names are looked up by `routes`, not by libcurl, and a connection is pinned to the addresses that passed the guard and
checked once more when its socket is made. So what was judged is what is dialled, even when the name server changes its
mind in between.

A `_Transfer` is an easy handle with its callbacks. Handles are kept and used again, and only options that
differ from the last request are set: most of the cost of a small page is in handling, not in bytes.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
import re
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import pycurl

from inchworm.fetch.decode import Large, answer, body_limit, read_head
from inchworm.fetch.guard import Guard
from inchworm.fetch.multi import Multi
from inchworm.fetch.room import SMALL_BYTES, Room
from inchworm.fetch.routes import NAME_SECONDS, REFUSED, Route, Routes, proxy_url
from inchworm.model import Failure, Reply, Request
from inchworm.rules.web.url import origin_of, parse, request_form

_ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_RECEIVE_BYTES = 128 * 1024
# Below what libcurl takes (300 KiB), which calls more than that a broken connection.
_MAX_HEAD_BYTES = 256 * 1024

_BREAKOUT = re.compile("[\r\n\0]")
_PLAIN = re.compile("/[A-Za-z0-9_~/.,:=&?+-]*")
_PROTOCOLS = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_KINDS: dict[int, str] = {
    pycurl.E_COULDNT_RESOLVE_PROXY: "dns",
    pycurl.E_COULDNT_RESOLVE_HOST: "dns",
    pycurl.E_COULDNT_CONNECT: "connect",
    pycurl.E_GOT_NOTHING: "connect",
    pycurl.E_SEND_ERROR: "connect",
    pycurl.E_RECV_ERROR: "connect",
    97: "connect",  # CURLE_PROXY, which pycurl has no name for
    pycurl.E_FILESIZE_EXCEEDED: "too_large",
    pycurl.E_URL_MALFORMAT: "unsupported",
    pycurl.E_SSL_CONNECT_ERROR: "tls",
    pycurl.E_SSL_CERTPROBLEM: "tls",
    pycurl.E_SSL_CIPHER: "tls",
    pycurl.E_SSL_CACERT_BADFILE: "tls",
    pycurl.E_SSL_ISSUER_ERROR: "tls",
    pycurl.E_SSL_INVALIDCERTSTATUS: "tls",
    pycurl.E_PEER_FAILED_VERIFICATION: "tls",
}
_NOBODY_THERE = frozenset((pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT, 97))
# The ways a connection breaks off: closed, reset, and on HTTP/2 as a whole or one stream (which has no name).
_BREAKS = frozenset(
    (pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING, pycurl.E_HTTP2, 92)
)


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to fetch. Total time and body size come with each request. `proxy` is a URL (http, https, socks5);
    it looks names up itself, so behind one the guard sees only addresses that are written out. `credentials` are
    values of Authorization by origin; no other origin ever gets one. `room` is what large answers share."""

    user_agent: str
    guard: Guard
    connect_timeout_seconds: float = 10.0
    first_byte_timeout_seconds: float = 20.0
    max_connections: int = 64
    proxy: str = field(default="", repr=False)
    ca_file: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    room: Room = field(default_factory=Room, repr=False)


class HttpFetcher:
    """A `ports.Fetcher` on one event loop. Fetches beyond `max_connections` wait for their turn, outside
    every time limit."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._multi = Multi(options.max_connections)
        self._turns = asyncio.Semaphore(options.max_connections)
        self._routes = Routes(options.guard, options.proxy)
        self._idle: list[_Transfer] = []
        self._closed = False

    async def fetch(self, request: Request) -> Reply:
        """One request, one answer. Cancelling it aborts the transfer; so does `close`, which ends it with
        `CancelledError`, since a fetch that was not let finish says nothing about its URL."""
        url = self._normal(request.url)
        if url is None:
            return Failure("unsupported", "not an http or https URL")
        async with self._turns:
            started = time.monotonic()
            origin = origin_of(url)
            if secret := self._options.credentials.get(origin):
                request = request._replace(headers=(*request.headers, ("Authorization", secret)))
            route, left = await self._route(origin, request.timeout_seconds, started)
            if isinstance(route, Failure):
                return route._replace(seconds=time.monotonic() - started)
            if self._closed:
                raise asyncio.CancelledError
            transfer = self._idle.pop() if self._idle else _Transfer(self._options)
            try:
                transfer.aim(url, route, request, left)
                await transfer.perform(self._multi)
                seconds = time.monotonic() - started - transfer.stood_still
                try:
                    return transfer.reply(seconds, SMALL_BYTES)
                except Large:
                    await transfer.find_room()
                    return transfer.reply(seconds)
            finally:
                self._put_back(transfer)

    def _normal(self, url: str) -> str | None:
        """A URL as it is sent. Where its origin is known to be so, a plain path needs no parser to be so too."""
        origin = origin_of(url)
        if origin in self._routes and _PLAIN.fullmatch(url, len(origin)) and "/." not in url:
            return url
        href = parse(url)
        return None if href is None else request_form(href)

    async def _route(self, origin: str, total: float, started: float) -> tuple[Route | Failure, float]:
        """The way to an origin, and what is left of the time; no time at all when the way is known."""
        route = self._routes.known(origin, started)
        if route is not None:
            return route, total
        most = min(self._options.connect_timeout_seconds, total or math.inf)
        found = await self._routes.find(origin, most)
        return found, total and max(total - (time.monotonic() - started), 0.001)

    def _put_back(self, transfer: _Transfer) -> None:
        transfer.release()
        if self._closed:
            transfer.curl.close()
        else:
            self._idle.append(transfer)

    async def close(self) -> None:
        """Abort what is under way and close every connection."""
        self._closed = True
        self._routes.abandon()
        self._multi.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()


class _Transfer:
    """One reusable easy handle, and what the transfer under way has brought so far."""

    def __init__(self, options: HttpOptions) -> None:
        self.curl: Any = pycurl.Curl()
        self._options = options
        self._route: Route | None = None
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._request = Request("")
        self._left_seconds = self._had_seconds = 0.0
        self._refuse_above = 0
        self._lines: list[bytes] = []
        # Not a list of chunks: a body may come byte by byte, and then that would take fifty times its size. And what
        # is taken out of this at the end is no copy.
        self._body = io.BytesIO()
        self._size = 0
        self._task: asyncio.Task[Any] | None = None
        self._done: asyncio.Future[None] | None = None
        self._roomy_bytes = SMALL_BYTES
        self._stood_since = 0.0
        self.stood_still = 0.0
        self._total: asyncio.TimerHandle | None = None
        self._began = 0.0
        self._trouble: tuple[str, str] | None = None
        self._unreachable = False
        self._head_bytes = 0
        self._head_complete = False
        self._most_bytes = 0
        self._set_up()

    def _set_up(self) -> None:
        """What is the same for every request."""
        options, setopt = self._options, self.curl.setopt
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.PROTOCOLS, _PROTOCOLS)
        setopt(pycurl.FOLLOWLOCATION, 0)
        setopt(pycurl.PATH_AS_IS, 1)
        setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        setopt(pycurl.BUFFERSIZE, _RECEIVE_BYTES)
        # A pin must outlive the route that it was made for, or libcurl would look the name up by itself.
        setopt(pycurl.DNS_CACHE_TIMEOUT, 2 * math.ceil(NAME_SECONDS))
        setopt(pycurl.CONNECTTIMEOUT_MS, math.ceil(1000 * options.connect_timeout_seconds))
        setopt(pycurl.CAINFO, options.ca_file or _system_certificates())
        # Said out loud, for otherwise libcurl obeys the proxy variables of the environment.
        setopt(pycurl.PROXY, proxy_url(options.proxy))
        setopt(pycurl.NOPROXY, "" if options.proxy else "*")
        setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        setopt(pycurl.SOCKOPTFUNCTION, _keep_from_children)
        setopt(pycurl.HEADERFUNCTION, self._take_header)
        setopt(pycurl.WRITEFUNCTION, self._take_body)

    def aim(self, url: str, route: Route, request: Request, left_seconds: float) -> None:
        """Set what differs from the request before."""
        setopt = self.curl.setopt
        setopt(pycurl.URL, url)
        if route is not self._route:
            self._route = route
            setopt(pycurl.RESOLVE, route.pins)
        if request.headers != self._headers:
            self._headers = request.headers
            setopt(pycurl.HTTPHEADER, _header_lines(self._options.user_agent, request.headers))
        # What is announced as too large need not even begin, unless its beginning is wanted.
        refuse_above = 0 if request.beginning else request.max_body_bytes
        if refuse_above != self._refuse_above:
            self._refuse_above = refuse_above
            setopt(pycurl.MAXFILESIZE_LARGE, refuse_above)
        self._had_seconds = left_seconds
        if left_seconds != self._left_seconds:
            self._left_seconds = left_seconds
            setopt(pycurl.TIMEOUT_MS, math.ceil(1000 * left_seconds))
        self._request = request
        self._most_bytes = request.max_body_bytes or sys.maxsize
        self._task = asyncio.current_task()
        self.stood_still = 0.0

    def release(self) -> None:
        """Let go of everything that belongs to the transfer that ended."""
        if self._stood_since and self._task is not None:
            self._options.room.leave(self._task)
        self._lines.clear()
        self._body = io.BytesIO()
        self._size = 0
        self._task = self._done = None
        self._roomy_bytes = SMALL_BYTES
        self._stood_since = 0.0
        self._trouble = None
        self._unreachable = False
        self._head_complete = False
        self._head_bytes = 0

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        dialled = str(ip_address(address.addr[0]))
        if self._route is None or dialled not in self._route.addresses:
            self._trouble = ("address_refused", REFUSED)
            return pycurl.SOCKET_BAD
        try:
            opened = socket.socket(address.family, address.socktype, address.protocol)
        except OSError:
            return pycurl.SOCKET_BAD  # no IPv6 here, or no file descriptors left; another address may do
        # libcurl makes a duplicate of it, and works on that.
        asyncio.get_running_loop().call_soon(opened.close)
        return opened

    def _take_header(self, line: bytes) -> int | None:
        self._head_bytes += len(line)
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._trouble = ("protocol_error", f"the head of the answer is larger than {_MAX_HEAD_BYTES} bytes")
            return 0
        if self._head_complete:
            # After a proxy's own answer comes the head that counts; after the body, trailers.
            if self._size or not line.startswith(b"HTTP/"):
                return None
            self._lines.clear()
            self._head_complete = False
        self._lines.append(line)
        if line in (b"\r\n", b"\n"):
            self._end_head(self._lines[0].partition(b" ")[2])
        return None

    def _end_head(self, status: bytes) -> None:
        if status.startswith(b"1"):
            self._lines.clear()  # an interim answer
            return
        self._head_complete = True
        if status.startswith(b"3"):
            self._most_bytes = body_limit(300, self._request.max_body_bytes)

    def _take_body(self, chunk: bytes) -> int | None:
        if self._size + len(chunk) > self._roomy_bytes and not self._has_room():
            return int(pycurl.WRITEFUNC_PAUSE)
        room = self._most_bytes - self._size
        self._size += self._body.write(chunk if len(chunk) <= room else chunk[:room])
        if len(chunk) > room:
            self._trouble = ("too_large", f"the body is larger than {self._most_bytes} bytes")
            return 0
        return None

    # Waiting for room. The time that this takes is no fault of the server's.

    def _has_room(self) -> bool:
        """Whether there is room for all that may come; where there is not, the transfer goes on when there is."""
        assert self._task is not None
        self._roomy_bytes = sys.maxsize
        if self._options.room.take(self._task, self._may_take(), self._go_on):
            return True
        self._stood_since = time.monotonic()
        asyncio.get_running_loop().call_soon(self._stop_clock)
        return False

    def _may_take(self) -> int:
        """The most that may come of this answer: its body, and twice that when there is something to unpack."""
        is_packed = any(line[:17].lower() == b"content-encoding:" for line in self._lines)
        return self._request.max_body_bytes * (1 + is_packed)

    def _stop_clock(self) -> None:
        if self._stood_since and self._left_seconds:
            self._left_seconds = 0.0
            self.curl.setopt(pycurl.TIMEOUT_MS, 0)

    def _go_on(self) -> None:
        if not self._stood_since or self._done is None:
            return
        self.stood_still, self._stood_since = time.monotonic() - self._stood_since, 0.0
        loop = asyncio.get_running_loop()
        if self._had_seconds:
            left = self._had_seconds - (time.monotonic() - self._began - self.stood_still)
            self._total = loop.call_later(max(left, 0.0), self._give_up, self._done)
        loop.call_soon(self._continue, self._done)

    def _continue(self, done: asyncio.Future[None]) -> None:
        if not done.done():
            self.curl.pause(pycurl.PAUSE_CONT)

    def _give_up(self, done: asyncio.Future[None]) -> None:
        if not done.done():
            self._trouble = ("timeout", self._too_late())
            done.set_exception(pycurl.error(pycurl.E_OPERATION_TIMEDOUT, ""))

    async def find_room(self) -> None:
        """What came is small, and what comes out of it is not."""
        assert self._task is not None
        found = asyncio.Event()
        if not self._options.room.take(self._task, self._may_take(), found.set):
            self._stood_since = time.monotonic()
            await found.wait()
            self._stood_since = 0.0

    async def perform(self, multi: Multi) -> None:
        """Transfer. What goes wrong is kept for `reply`."""
        self._began = time.monotonic()
        done = self._done = multi.start(self.curl)
        self._watch_first_byte(done, self._options.first_byte_timeout_seconds)
        try:
            await done
        except pycurl.error as error:
            self._unreachable = self._trouble is None and self._was_never_sent(error.args[0])
            self._trouble = self._trouble or self._explain(*error.args)
        finally:
            self._timer.cancel()
            if self._total is not None:
                self._total.cancel()
                self._total = None
            multi.stop(self.curl)

    def _watch_first_byte(self, done: asyncio.Future[Any], seconds: float) -> None:
        self._timer = done.get_loop().call_later(seconds, self._expect_first_byte, done)

    def _expect_first_byte(self, done: asyncio.Future[Any]) -> None:
        """Give up, unless something has come or the request was sent later than thought."""
        if self._head_bytes or done.done():
            return
        limit = self._options.first_byte_timeout_seconds
        sent_after = self.curl.getinfo(pycurl.PRETRANSFER_TIME)
        waited = time.monotonic() - self._began - sent_after if sent_after else 0.0
        if waited < limit:
            self._watch_first_byte(done, limit - waited)
            return
        self._trouble = ("timeout", f"no first byte within {limit:g} s")
        done.set_exception(pycurl.error(pycurl.E_OPERATION_TIMEDOUT, ""))

    def _explain(self, code: int, message: str) -> tuple[str, str]:
        """What an error of libcurl's means: a kind of failure and a sentence, which may quote what the server sent."""
        message = "".join(mark if mark.isprintable() else "\ufffd" for mark in message) or f"libcurl error {code}"
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return "timeout", self._limit_reached()
        if code == pycurl.E_COULDNT_CONNECT and (number := self.curl.getinfo(pycurl.OS_ERRNO)):
            said = os.strerror(number).lower()
            return "connect", f"the proxy does not take us: {said}" if self._options.proxy else said
        if self._head_complete and code in _BREAKS:
            return ("protocol_error" if self._is_misframed(code, message) else "truncated"), message
        return _KINDS.get(code, "protocol_error"), message

    def _was_never_sent(self, code: int) -> bool:
        """Whether nobody was there to take the request: then it is the host's trouble, or the proxy's."""
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return not self.curl.getinfo(pycurl.PRETRANSFER_TIME)
        return code in _NOBODY_THERE

    def _limit_reached(self) -> str:
        if time.monotonic() - self._began < (self._left_seconds or math.inf):
            return f"no connection within {self._options.connect_timeout_seconds:g} s"
        return self._too_late()

    def _too_late(self) -> str:
        return f"no complete answer within {self._request.timeout_seconds:g} s in total"

    def _is_misframed(self, code: int, message: str) -> bool:
        """Chunks that are not well-formed, or that end without the last one although nothing broke."""
        if code == pycurl.E_PARTIAL_FILE:
            return any(line.lower().startswith(b"transfer-encoding:") for line in self._lines)
        return "chunk" in message

    def reply(self, seconds: float, small: int = 0) -> Reply:
        """What the transfer came to. With `small`, `Large` is raised when more than that comes out of it."""
        trouble = Failure(*self._trouble, seconds, None, self._unreachable) if self._trouble else None
        head = read_head(b"".join(self._lines)) if self._head_complete else None
        if head is not None:
            return answer(head, self._body.getvalue(), self._request, seconds, trouble, small)
        if trouble is not None:
            return trouble
        if self._lines and not self._head_complete:
            return Failure("truncated", "the connection was closed within the head", seconds)
        return Failure("protocol_error", "the answer has no valid status line", seconds)


def _header_lines(user_agent: str, headers: tuple[tuple[str, str], ...]) -> list[bytes]:
    """The request's headers, and ours where it has none. One that would break out of its line is left out."""
    given = {name.lower() for name, _ in headers}
    ours = (("User-Agent", user_agent), ("Accept-Encoding", _ACCEPT_ENCODING))
    fields = (*(field for field in ours if field[0].lower() not in given), *headers)
    lines = (f"{name}: {value}" for name, value in fields)
    return [line.encode() for line in lines if not _BREAKOUT.search(line)]


def _keep_from_children(number: int, _purpose: int) -> int:
    """A connection that is closed here must not live on in a process that we started, nor be watched any longer."""
    os.set_inheritable(number, False)
    return 0


def _system_certificates() -> str:
    """Where this system keeps its certificates: the libcurl in the wheel was built for another one."""
    return ssl.get_default_verify_paths().cafile or ""
