"""Fetching from the web, on libcurl.

Names are looked up here, not by libcurl: every address of a name has to pass the guard, and the connection is
pinned to those addresses and checked once more when its socket is made. So what was judged is what is
dialled, even when the name server changes its mind in between.

A `_Transfer` is an easy handle with its callbacks. Handles are kept and used again, and only options that
differ from the last request are set: most of the cost of a small page is in handling, not in bytes.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pycurl

from inchworm.fetch.decode import answer, body_limit, read_head
from inchworm.fetch.guard import Guard
from inchworm.model import Failure, Reply, Request
from inchworm.rules.url import hostname_of, origin_of, parse, request_form

_ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_RECEIVE_BYTES = 128 * 1024
_MAX_HEAD_BYTES = 1024 * 1024
_MAX_ADDRESSES = 8
_NAME_SECONDS = 60.0
_MAX_NAMES = 10_000
_LOCALHOST = ("127.0.0.1", "::1")
_REFUSED = "the address or port is not one that may be connected to"

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
_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
# The ways a connection breaks off: closed, reset, and on HTTP/2 as a whole or one stream (which has no name).
_BREAKS = frozenset(
    (pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING, pycurl.E_HTTP2, 92)
)


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to fetch. Total time and body size come with each request. `proxy` is a URL (http, https, socks5);
    it looks names up itself, so behind one the guard sees only addresses that are written out. `credentials` are
    values of Authorization by origin; no other origin ever gets one."""

    user_agent: str
    guard: Guard
    connect_timeout_seconds: float = 10.0
    first_byte_timeout_seconds: float = 20.0
    max_connections: int = 64
    proxy: str = field(default="", repr=False)
    ca_file: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


class HttpFetcher:
    """A `ports.Fetcher` on one event loop. Fetches beyond `max_connections` wait for their turn, outside
    every time limit."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._multi = _Multi(options.max_connections)
        self._turns = asyncio.Semaphore(options.max_connections)
        self._routes = _Routes(options)
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
                return transfer.reply(time.monotonic() - started)
            finally:
                self._put_back(transfer)

    def _normal(self, url: str) -> str | None:
        """A URL as it is sent. Where its origin is known to be so, a plain path needs no parser to be so too."""
        origin = origin_of(url)
        if origin in self._routes and _PLAIN.fullmatch(url, len(origin)) and "/." not in url:
            return url
        href = parse(url)
        return None if href is None else request_form(href)

    async def _route(self, origin: str, total: float, started: float) -> tuple[_Route | Failure, float]:
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


class _Route(NamedTuple):
    """The addresses that a host and port may be dialled at, and how libcurl is told so."""

    addresses: frozenset[str]
    pins: list[str]


class _Multi:
    """The transfers of libcurl on an event loop.

    Their sockets are watched by an epoll of our own, and the loop watches that. A watcher of the loop's would be made
    and taken away for every request, which costs as much as the request itself; here a connection that is kept may
    stay watched, and one that is closed is forgotten by the system.
    """

    def __init__(self, max_connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._curl: Any = pycurl.CurlMulti()
        self._curl.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self._curl.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._curl.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._sockets = select.epoll()
        self._loop.add_reader(self._sockets.fileno(), self._act)
        self._wanted: set[int] = set()
        self._running: dict[Any, asyncio.Future[None]] = {}
        self._timer: asyncio.Handle | None = None
        self._timer_ends = self._due = math.inf

    def start(self, curl: Any) -> asyncio.Future[None]:
        """Begin a transfer. The future ends with it, in `pycurl.error` where it fails."""
        done = self._running[curl] = self._loop.create_future()
        self._curl.add_handle(curl)
        return done

    def stop(self, curl: Any) -> None:
        """Abort a transfer that has not ended by itself."""
        if self._running.pop(curl, None) is not None:
            self._curl.remove_handle(curl)

    def close(self) -> None:
        if self._curl.closed:
            return
        for curl, done in tuple(self._running.items()):
            self.stop(curl)
            done.cancel()
        self._curl.close()
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._sockets.fileno())
        self._sockets.close()

    def _watch(self, what: int, number: int, *_: Any) -> None:
        """libcurl wants to know when it can go on with a socket, or does not want to any more."""
        events = _EVENTS.get(what)
        if events is None:
            self._wanted.discard(number)
            return
        self._wanted.add(number)
        try:
            self._sockets.modify(number, events)
        except FileNotFoundError:
            self._sockets.register(number, events)

    def _act(self) -> None:
        """Some sockets are ready. One that libcurl does not want is left alone from now on."""
        for number, events in self._sockets.poll(0):
            if number in self._wanted:
                can_read = pycurl.CSELECT_IN if events & ~select.EPOLLOUT else 0
                can_write = pycurl.CSELECT_OUT if events & ~select.EPOLLIN else 0
                self._drive(number, can_read | can_write)
            else:
                with suppress(OSError):
                    self._sockets.unregister(number)
        self._settle()

    def _set_timer(self, milliseconds: int) -> None:
        """libcurl wants to be called by then. It says so all the time: a timer that ends earlier is left as it is."""
        self._due = self._loop.time() + milliseconds / 1000 if milliseconds >= 0 else math.inf
        if self._due < self._timer_ends:
            self._wake_at_due()

    def _wake_at_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ends = self._due
        self._timer = self._loop.call_at(self._due, self._wake) if self._due < math.inf else None

    def _wake(self) -> None:
        self._timer, self._timer_ends = None, math.inf
        if self._loop.time() < self._due:
            self._wake_at_due()
            return
        self._due = math.inf
        self._drive(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()

    def _drive(self, number: int, mask: int) -> None:
        try:
            self._curl.socket_action(number, mask)
        except pycurl.error as error:
            for curl in tuple(self._running):
                self._end(curl, error)

    def _settle(self) -> None:
        _, ended, failed = self._curl.info_read()
        for curl in ended:
            self._end(curl, None)
        for curl, code, message in failed:
            self._end(curl, pycurl.error(code, message))

    def _end(self, curl: Any, error: Exception | None) -> None:
        done = self._running.get(curl)
        self.stop(curl)
        if done is None or done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


class _Transfer:
    """One reusable easy handle, and what the transfer under way has brought so far."""

    def __init__(self, options: HttpOptions) -> None:
        self.curl: Any = pycurl.Curl()
        self._options = options
        self._route: _Route | None = None
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._request = Request("")
        self._left_seconds = 0.0
        self._refuse_above = 0
        self._lines: list[bytes] = []
        # Not a list of chunks: a body may come byte by byte, and then that would take fifty times its size.
        self._body = bytearray()
        self._began = 0.0
        self._trouble: tuple[str, str] | None = None
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
        setopt(pycurl.DNS_CACHE_TIMEOUT, 2 * math.ceil(_NAME_SECONDS))
        setopt(pycurl.CONNECTTIMEOUT_MS, math.ceil(1000 * options.connect_timeout_seconds))
        setopt(pycurl.CAINFO, options.ca_file or _system_certificates())
        # Said out loud, for otherwise libcurl obeys the proxy variables of the environment.
        setopt(pycurl.PROXY, _proxy_url(options.proxy))
        setopt(pycurl.NOPROXY, "" if options.proxy else "*")
        setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        setopt(pycurl.SOCKOPTFUNCTION, _keep_from_children)
        setopt(pycurl.HEADERFUNCTION, self._take_header)
        setopt(pycurl.WRITEFUNCTION, self._take_body)

    def aim(self, url: str, route: _Route, request: Request, left_seconds: float) -> None:
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
        if left_seconds != self._left_seconds:
            self._left_seconds = left_seconds
            setopt(pycurl.TIMEOUT_MS, math.ceil(1000 * left_seconds))
        self._request = request
        self._most_bytes = request.max_body_bytes or sys.maxsize

    def release(self) -> None:
        """Let go of everything that belongs to the transfer that ended."""
        self._lines.clear()
        self._body.clear()
        self._trouble = None
        self._head_complete = False
        self._head_bytes = 0

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        dialled = str(ip_address(address.addr[0]))
        if self._route is None or dialled not in self._route.addresses:
            self._trouble = ("address_refused", _REFUSED)
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
            self._trouble = ("protocol_error", "the head of the answer does not end")
            return 0
        if self._head_complete:
            # After a proxy's own answer comes the head that counts; after the body, trailers.
            if self._body or not line.startswith(b"HTTP/"):
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
        self._body += chunk
        if len(self._body) > self._most_bytes:
            self._trouble = ("too_large", f"the body is larger than {self._most_bytes} bytes")
            return 0
        return None

    async def perform(self, multi: _Multi) -> None:
        """Transfer. What goes wrong is kept for `reply`."""
        self._began = time.monotonic()
        done = multi.start(self.curl)
        self._watch_first_byte(done, self._options.first_byte_timeout_seconds)
        try:
            await done
        except pycurl.error as error:
            self._trouble = self._trouble or self._explain(*error.args)
        finally:
            self._timer.cancel()
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
        if self._head_complete and code in _BREAKS:
            return ("protocol_error" if self._is_misframed(code, message) else "truncated"), message
        return _KINDS.get(code, "protocol_error"), message

    def _limit_reached(self) -> str:
        if time.monotonic() - self._began < (self._left_seconds or math.inf):
            return f"no connection within {self._options.connect_timeout_seconds:g} s"
        return f"no complete answer within {self._request.timeout_seconds:g} s in total"

    def _is_misframed(self, code: int, message: str) -> bool:
        """Chunks that are not well-formed, or that end without the last one although nothing broke."""
        if code == pycurl.E_PARTIAL_FILE:
            return any(line.lower().startswith(b"transfer-encoding:") for line in self._lines)
        return "chunk" in message

    def reply(self, seconds: float) -> Reply:
        """What the transfer came to."""
        trouble = Failure(*self._trouble, seconds) if self._trouble else None
        head = read_head(b"".join(self._lines)) if self._head_complete else None
        if head is not None:
            return answer(head, bytes(self._body), self._request, seconds, trouble)
        if trouble is not None:
            return trouble
        if self._lines and not self._head_complete:
            return Failure("truncated", "the connection was closed within the head", seconds)
        return Failure("protocol_error", "the answer has no valid status line", seconds)


class _Routes:
    """Finds where an origin may be dialled, and remembers it for a minute."""

    def __init__(self, options: HttpOptions) -> None:
        self._guard = options.guard
        self._proxy = _proxy_host(_proxy_url(options.proxy))
        self._known: dict[str, tuple[float, _Route | Failure]] = {}
        self._under_way: dict[str, asyncio.Future[tuple[str, ...] | str]] = {}

    def __contains__(self, origin: str) -> bool:
        """Whether this origin was met, which is in its normal form then."""
        return origin in self._known

    def known(self, origin: str, now: float) -> _Route | Failure | None:
        expires, route = self._known.get(origin, (0.0, None))
        return route if now < expires else None

    async def find(self, origin: str, timeout_seconds: float) -> _Route | Failure:
        """Every address of a name must pass the guard: one that does not speaks against the name itself."""
        host, port = _host_and_port(origin)
        addresses = _fixed_addresses(host)
        if not addresses and self._proxy is None:
            found = await self._look_up(host, timeout_seconds)
            if isinstance(found, Failure):
                return found
            addresses = found
        if not all(self._guard.allows(host, port, address) for address in addresses):
            return self._remember(origin, Failure("address_refused", _REFUSED))
        if self._proxy is not None:
            host, port = self._proxy
            found = _fixed_addresses(host) or await self._look_up(host, timeout_seconds)
            if isinstance(found, Failure):
                return found
            addresses = found
        return self._remember(origin, _route(host, port, addresses[:_MAX_ADDRESSES]))

    def abandon(self) -> None:
        """Wait for no name any more."""
        for answered in tuple(self._under_way.values()):
            answered.cancel()

    def _remember(self, origin: str, route: _Route | Failure) -> _Route | Failure:
        self._known.pop(origin, None)
        while len(self._known) >= _MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[origin] = (time.monotonic() + _NAME_SECONDS, route)
        return route

    async def _look_up(self, host: str, timeout_seconds: float) -> tuple[str, ...] | Failure:
        answered = self._under_way.get(host)
        if answered is None:
            answered = asyncio.get_running_loop().create_future()
            self._under_way[host] = answered
            answered.add_done_callback(lambda _: self._under_way.pop(host))
            # A daemon thread: a name server that does not answer must not keep the process from ending.
            threading.Thread(target=_ask_system, args=(host, answered), daemon=True).start()
        try:
            async with asyncio.timeout(timeout_seconds):
                found = await asyncio.shield(answered)
        except TimeoutError:
            return Failure("timeout", f"the name was not looked up within {timeout_seconds:g} s")
        return Failure("dns", found) if isinstance(found, str) else found


def _ask_system(host: str, answered: asyncio.Future[tuple[str, ...] | str]) -> None:
    """In a thread: the addresses of a name, or why there are none."""
    found: tuple[str, ...] | str
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        found = tuple(dict.fromkeys(str(row[4][0]) for row in rows))
    except OSError as error:
        found = error.strerror or str(error)
    except UnicodeError:
        found = "not a valid host name"
    with suppress(RuntimeError):  # the loop has ended in the meantime
        answered.get_loop().call_soon_threadsafe(_settle, answered, found)


def _settle(answered: asyncio.Future[tuple[str, ...] | str], found: tuple[str, ...] | str) -> None:
    if not answered.done():
        answered.set_result(found)


def _fixed_addresses(host: str) -> tuple[str, ...]:
    """Addresses that need no asking: a literal's own, and this machine's for localhost, as in browsers."""
    if host.rstrip(".").rpartition(".")[2] == "localhost":
        return _LOCALHOST
    try:
        return (str(ip_address(host)),)
    except ValueError:
        return ()


def _route(host: str, port: int, addresses: tuple[str, ...]) -> _Route:
    # The plus lets libcurl forget the entry, or its own table would grow with every host met.
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    pin = f"+{host}:{port}:{listed}"
    return _Route(frozenset(str(ip_address(address)) for address in addresses), [pin] if ":" not in host else [])


def _host_and_port(origin: str) -> tuple[str, int]:
    host = hostname_of(origin)
    port = origin.partition("://")[2][len(host) + 1 :]
    return host.strip("[]"), int(port or (443 if origin.startswith("https:") else 80))


def _proxy_url(proxy: str) -> str:
    """SOCKS comes in two ways; we take the one where the proxy looks the name up, as other proxies do."""
    if proxy and "://" not in proxy:
        return f"http://{proxy}"
    return proxy.replace("socks5://", "socks5h://", 1).replace("socks4://", "socks4a://", 1)


def _proxy_host(proxy: str) -> tuple[str, int] | None:
    parts = urlsplit(proxy)
    port = parts.port or (443 if parts.scheme == "https" else 1080)  # as libcurl has it
    return (parts.hostname, port) if parts.hostname else None


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
