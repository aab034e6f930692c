"""Where an origin may be dialled: names are looked up here, and every address of a name has to pass the guard."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from inchworm.fetch.guard import Guard
from inchworm.model import Failure
from inchworm.rules.web.url import hostname_of

NAME_SECONDS = 60.0
REFUSED = "the address or port is not one that may be connected to"
_MAX_ADDRESSES = 8
_MAX_NAMES = 10_000
_LOCALHOST = ("127.0.0.1", "::1")


class Route(NamedTuple):
    """The addresses that a host and port may be dialled at, and how libcurl is told so."""

    addresses: frozenset[str]
    pins: list[str]


class Routes:
    """Finds where an origin may be dialled, and remembers it for a minute."""

    def __init__(self, guard: Guard, proxy: str) -> None:
        self._guard = guard
        self._proxy = _proxy_host(proxy_url(proxy))
        self._known: dict[str, tuple[float, Route | Failure]] = {}
        self._under_way: dict[str, asyncio.Future[tuple[str, ...] | str]] = {}

    def __contains__(self, origin: str) -> bool:
        """Whether this origin was met, which is in its normal form then."""
        return origin in self._known

    def known(self, origin: str, now: float) -> Route | Failure | None:
        expires, route = self._known.get(origin, (0.0, None))
        return route if now < expires else None

    async def find(self, origin: str, timeout_seconds: float) -> Route | Failure:
        """Every address of a name must pass the guard: one that does not speaks against the name itself."""
        host, port = _host_and_port(origin)
        addresses = _fixed_addresses(host)
        if not addresses and self._proxy is None:
            found = await self._look_up(host, timeout_seconds)
            if isinstance(found, Failure):
                return found
            addresses = found
        if not all(self._guard.allows(host, port, address) for address in addresses):
            return self._remember(origin, Failure("address_refused", REFUSED))
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

    def _remember(self, origin: str, route: Route | Failure) -> Route | Failure:
        self._known.pop(origin, None)
        while len(self._known) >= _MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[origin] = (time.monotonic() + NAME_SECONDS, route)
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
            return Failure("timeout", f"the name was not looked up within {timeout_seconds:g} s", unreachable=True)
        return Failure("dns", f"name not found: {found}", unreachable=True) if isinstance(found, str) else found


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


def _route(host: str, port: int, addresses: tuple[str, ...]) -> Route:
    # The plus lets libcurl forget the entry, or its own table would grow with every host met.
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    pin = f"+{host}:{port}:{listed}"
    return Route(frozenset(str(ip_address(address)) for address in addresses), [pin] if ":" not in host else [])


def _host_and_port(origin: str) -> tuple[str, int]:
    host = hostname_of(origin)
    port = origin.partition("://")[2][len(host) + 1 :]
    return host.strip("[]"), int(port or (443 if origin.startswith("https:") else 80))


def proxy_url(proxy: str) -> str:
    """SOCKS comes in two ways; we take the one where the proxy looks the name up, as other proxies do."""
    if proxy and "://" not in proxy:
        return f"http://{proxy}"
    return proxy.replace("socks5://", "socks5h://", 1).replace("socks4://", "socks4a://", 1)


def _proxy_host(proxy: str) -> tuple[str, int] | None:
    parts = urlsplit(proxy)
    port = parts.port or (443 if parts.scheme == "https" else 1080)  # as libcurl has it
    return (parts.hostname, port) if parts.hostname else None
