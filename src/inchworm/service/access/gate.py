"""The gate: every request passes here first, and every answer last.

It stands around the whole application, and refuses whatever is not explicitly let in:

    host       a name that leads here by somebody else's DNS is not ours
    entry      a token, in `Authorization: Bearer` or in the cookie that the login page sets
    page       what comes with a cookie has to come from a page of ours, or be a mere look
    role       a read-only token looks and does not touch
    body       not encoded, and not too large

What it refuses is answered as {"error": {"code", "message", "hint"}}. A browser that only has to log in is sent to do
that.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inchworm.errors import InchwormError, NoEntry, ReadOnly
from inchworm.service.access import auth
from inchworm.service.access.auth import Identity, Role

COOKIE = "inchworm"
MAX_BODY_BYTES = 1_000_000
MAX_WRONG = 20
WINDOW_SECONDS = 60.0

_MAX_OPEN_BODY = 32_000
"""What anybody may send: a form with the longest token, of which every byte may take three."""
_BODY_SECONDS = 30.0
_MAX_ADDRESSES = 10_000
_MAX_NEXT = 2000
_LOOKING = ("GET", "HEAD")
_OPEN = {("GET", "/health"), ("HEAD", "/health"), ("GET", "/login"), ("POST", "/login")}
_STATIC = "/static/"
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,252}))(?::[0-9]{1,5})?")
_DEFAULT_PORT = {"http": ":80", "https": ":443"}
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - recognised, not bound to

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_UNLESS_SET = {
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}

_THIS_MACHINE = ("127.0.0.1", "::1")
_STORED = re.compile(r"/crawls/[^/]+/body")
STORED_HEADERS = {
    "X-Frame-Options": "SAMEORIGIN",
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'self'"
    ),
    "X-DNS-Prefetch-Control": "off",
}
"""What others wrote, and the archive has, may look like a page of ours and be no part of it: nothing in it runs, sends,
loads or knows our cookies, in a frame of ours or alone. Whatever is answered there bears this."""


class Refused(InchwormError):
    """A request that the gate turns away for what it is, whoever sends it."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code


class TooMany(Refused):
    """Too many wrong tokens from one address."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(429, "too_many", "Too many wrong tokens came from this address.", "Wait a minute.")
        self.wait_seconds = wait_seconds


class Book(Protocol):
    """Where it is written which tokens end early and which codes let in once."""

    def is_revoked(self, token_id: str) -> bool: ...

    def revoke(self, token_id: str, until_ms: int) -> None: ...

    def take_login(self, code_digest: bytes, now_ms: int) -> bool: ...


class Tries:
    """How many wrong tokens came lately, and from where. It has room for so many addresses; the oldest go first."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def wrong(self, address: str, now: float) -> float:
        """Note a wrong token. 0.0, or for how many seconds this address is to be left without an answer."""
        key = _network(address)
        since, count = self._seen.pop(key, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._seen[key] = (since, count + 1)
        if len(self._seen) > _MAX_ADDRESSES:
            del self._seen[next(iter(self._seen))]
        return since + WINDOW_SECONDS - now if count >= MAX_WRONG else 0.0


def _network(address: str) -> str:
    """One customer has a whole /64 of the addresses of IPv6."""
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or int(parsed) >> 64)


@dataclass(frozen=True, slots=True)
class Keys:
    """What the gate and the login page need to know. `hosts` comes from `hosts_of`."""

    secret: bytes = field(repr=False)
    book: Book
    hosts: frozenset[str] = frozenset()
    max_body: int = MAX_BODY_BYTES
    tries: Tries = field(default_factory=Tries)
    default_role: Role = Role.READ_ONLY
    """Of tokens that name none."""


class Gate:
    """Put around an application: `Gate(app, keys)`. The application finds who asks in `scope["state"]["identity"]`."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = _as_called(scope)
            await self._answer(scope, receive, _adding_headers(scope, send))
        elif scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        else:
            # Nothing but HTTP is spoken here, so nothing else can pass unseen.
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            identity = admit(scope, self.keys)
            body = await _whole_body(scope, receive, self.keys.max_body if identity else _MAX_OPEN_BODY)
        except InchwormError as error:
            await _refusal(scope, error)(scope, receive, send)
            return
        if body is not None:
            scope = {**scope, "state": {**scope.get("state", {}), "identity": identity}}
            await self.app(scope, _again(body, receive), send)


def _as_called(scope: Scope) -> Scope:
    """The request as it was made to a proxy on this machine, which alone is believed."""
    address = (scope.get("client") or ("",))[0]
    is_safe = Headers(scope=scope).getlist("x-forwarded-proto") == ["https"]
    return {**scope, "scheme": "https"} if is_safe and address in _THIS_MACHINE else scope


def admit(scope: Scope, keys: Keys) -> Identity | None:
    """Who asks; None where anybody may. Raises what is to be answered instead."""
    headers = Headers(scope=scope)
    _check_host(headers, keys.hosts)
    if "content-encoding" in headers:
        raise Refused(415, "encoded", "The body is encoded.", "Send it plain, without Content-Encoding.")
    if _is_open(scope["method"], scope["path"]):
        return None
    identity = _identify(scope, keys)
    # Whoever may only look may still leave.
    if identity.role is Role.READ_ONLY and scope["method"] not in _LOOKING and scope["path"] != "/logout":
        raise _read_only(identity)
    return identity


def _read_only(identity: Identity) -> ReadOnly:
    if identity.names_role:
        return ReadOnly("This token may look and not touch.", "Use one that was made without `--read-only`.")
    return ReadOnly(
        "This token may look and not touch, because it names no role.",
        f'Put "role": "full" into it, or have the service started with {auth.ROLE_VARIABLE}=full.',
    )


def _is_open(method: str, path: str) -> bool:
    if (method, path) in _OPEN:
        return True
    # Files, and not what a path that climbs back out of their folder may lead to.
    names = path.removeprefix(_STATIC).split("/")
    return method in _LOOKING and path.startswith(_STATIC) and not {"", ".", ".."} & set(names) and "\\" not in path


# The host.


def hosts_of(bind: str, names: Iterable[str] = ()) -> frozenset[str]:
    """The names under which a service may be called, beside those of this machine to itself.

    Bound to all addresses it may be called by any address: it is names that can be made to lead elsewhere.
    """
    return frozenset(found for name in (bind, *names) if (found := _bare(name)))


def _bare(name: str) -> str:
    """A name as it is compared: no port, no brackets, small letters; nothing for what cannot be one."""
    name = name.strip().lower()
    if match := _HOST.fullmatch(name):
        name = match[1].strip("[]")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name if match and not match[1].startswith("[") else ""


def _check_host(headers: Headers, hosts: frozenset[str]) -> None:
    given = headers.getlist("host")
    name = _bare(given[0]) if len(given) == 1 else ""
    if not name:
        raise Refused(400, "wrong_host", "The request does not name one host.", "Send one Host header.")
    if name not in hosts and not _is_address_of_ours(name, hosts):
        hint = "Call it by its address, or start it with that name allowed."
        raise Refused(421, "wrong_host", "This service does not go by that name.", hint)


def _is_address_of_ours(name: str, hosts: frozenset[str]) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return address.is_loopback or not _EVERYWHERE.isdisjoint(hosts)


# Where a request with a cookie comes from.


def check_page(scope: Scope) -> None:
    """Raises unless a request comes from a page of ours, or only looks and names no other page.

    Browsers send the cookie along whoever makes them send a request; a page on another port of this machine counts as
    the same site to them.
    """
    headers = Headers(scope=scope)
    if scope["method"] in _LOOKING and "origin" not in headers:
        return
    if not _is_from_us(headers, _own_origin(scope, headers)):
        hint = "Send a token instead of a cookie. A proxy has to pass on Host and X-Forwarded-Proto."
        raise Refused(403, "foreign_page", "This came from a page of another site.", hint)


def _is_from_us(headers: Headers, own: str) -> bool:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin != "null":
        return _origin(origin) == own
    if site is not None:
        return site == "same-origin"
    return origin is None and _origin(headers.get("referer", "")) == own


def _own_origin(scope: Scope, headers: Headers) -> str:
    return _origin(f"{scope['scheme']}://{headers['host']}")


def _origin(url: str) -> str:
    """Scheme, host and port of a URL, without a port that goes without saying; `null` where there is none."""
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return "null"
    place = parts.netloc.removesuffix(_DEFAULT_PORT.get(parts.scheme, " "))
    return f"{parts.scheme}://{place}" if place else "null"


# The token.


def _identify(scope: Scope, keys: Keys) -> Identity:
    headers = Headers(scope=scope)
    token = _token(headers)
    if token is None:
        raise auth.no_entry()
    if "authorization" not in headers:
        check_page(scope)
    # Nobody guesses a signature, so whoever comes with wrong tokens is told so however often he comes.
    identity = auth.verify(token, keys.secret, keys.book.is_revoked, keys.default_role)
    if identity.is_for_browser and "authorization" in headers:
        raise auth.no_entry()
    return identity


def is_still_in(identity: Identity, keys: Keys) -> bool:
    """Whether somebody who was let in would be let in now as well."""
    return time.time() < identity.expires_s and not auth.is_over(identity, keys.book.is_revoked)


def check_pasted(token: str, scope: Scope, keys: Keys) -> Identity:
    """Whose token was pasted at the login. Raises NoEntry, and TooMany to who keeps trying."""
    try:
        return auth.verify(token, keys.secret, keys.book.is_revoked, keys.default_role)
    except NoEntry:
        count_wrong(scope, keys)
        raise


def count_wrong(scope: Scope, keys: Keys) -> None:
    """Note that a wrong token or code came. Raises TooMany where they come all the time."""
    wait = keys.tries.wrong((scope.get("client") or ("",))[0], time.monotonic())
    if wait:
        raise TooMany(wait)


def _token(headers: Headers) -> str | None:
    """The token that was sent, if any. Who sends `Authorization` means it: the cookie is not looked at then."""
    given = headers.getlist("authorization")
    if given:
        scheme, _, token = given[0].partition(" ")
        return token.strip() if len(given) == 1 and scheme.lower() == "bearer" else ""
    return cookie_of(headers)


def cookie_of(headers: Headers) -> str | None:
    """The token in our cookie."""
    return next((value for name, value in _cookies(headers) if name == COOKIE), None)


def _cookies(headers: Headers) -> Iterator[tuple[str, str]]:
    for header in headers.getlist("cookie"):
        for pair in header.split(";"):
            name, _, value = pair.partition("=")
            yield name.strip(), value.strip()


# The body.


async def _whole_body(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The body, counted while it comes in, whatever its length was said to be. None: whoever sent it has gone."""
    announced = Headers(scope=scope).get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    deadline = time.monotonic() + _BODY_SECONDS
    while True:
        try:
            message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise Refused(408, "too_slow", "The body did not come in time.", "Send it at once.") from None
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(limit: int) -> Refused:
    return Refused(413, "too_large", f"The body has more than {limit:,} bytes.", "Send less at once.")


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then whatever comes after it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return left.pop() if left else await receive()

    return next_message


# The answer.


def _adding_headers(scope: Scope, send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": list(message.get("headers", []))}
            _add_headers(MutableHeaders(scope=message), scope["path"], message["status"])
        await send(message)

    return with_headers


def _add_headers(headers: MutableHeaders, path: str, status: int) -> None:
    for name, value in _ALWAYS.items():
        headers[name] = value
    for name, value in _UNLESS_SET.items():
        headers.setdefault(name, value)
    if _STORED.fullmatch(path):
        headers.update(STORED_HEADERS)
    if not path.startswith(_STATIC):
        headers.setdefault("Cache-Control", "no-store")
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")


def _refusal(scope: Scope, error: InchwormError) -> Response:
    if error.status == 401 and is_browser(scope):
        return _to_login(scope)
    body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    response = JSONResponse(body, error.status)
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(math.ceil(error.wait_seconds))
    if error.status == 413:
        # The rest of the body is not read, so nothing after it can be understood.
        response.headers["Connection"] = "close"
    return response


def is_browser(scope: Scope) -> bool:
    """Whether somebody looks at this with a browser and can log in."""
    headers = Headers(scope=scope)
    return scope["method"] == "GET" and "text/html" in headers.get("accept", "") and "authorization" not in headers


def _to_login(scope: Scope) -> Response:
    query = scope.get("query_string", b"").decode("latin-1")
    target = local_path(quote(scope["path"]) + (f"?{query}" if query else ""))
    response = RedirectResponse(f"/login?next={quote(target, safe='')}", 303)
    if cookie_of(Headers(scope=scope)) is not None:
        clear_cookie(response, scope)
    return response


def local_path(text: str) -> str:
    """Where to go after logging in: a path of ours. Whatever a browser could take for another site becomes `/`."""
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    is_plain = text.isprintable() and len(text) <= _MAX_NEXT and "\\" not in text
    return text if is_plain and path.startswith("/") and "//" not in path else "/"


def set_cookie(response: Response, token: str, scope: Scope) -> None:
    """Let the browser keep a token for half a day: out of reach of scripts, and of other sites."""
    is_safe = scope["scheme"] == "https"
    response.set_cookie(COOKIE, token, auth.BROWSER_SECONDS, secure=is_safe, httponly=True, samesite="strict")


def clear_cookie(response: Response, scope: Scope) -> None:
    response.delete_cookie(COOKIE, secure=scope["scheme"] == "https", httponly=True, samesite="strict")
