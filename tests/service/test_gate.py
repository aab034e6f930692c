"""The gate and the login page: who comes in, with what, from where, and what every answer bears."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
import socket
import threading
import time
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from inchworm.service import protocol
from inchworm.service.access import auth, gate, login
from inchworm.service.access.auth import Role
from inchworm.service.access.gate import COOKIE, Gate, Keys, Tries, hosts_of, local_path
from inchworm.service.api import live
from inchworm.service.protocol import PatientProtocol
from inchworm.store.home.access import Access
from inchworm.store.home.home import Home

SECRET = b"8c1f6d0b7ae94c25b3d2f0917e6a5c48"
HOME = "http://localhost:8060"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


async def echo(request: Request) -> Response:
    identity = request.state.identity
    body = await request.body()
    return JSONResponse({"role": identity and identity.role, "bytes": len(body), "path": request.url.path})


async def cached(request: Request) -> Response:
    own = {"Cache-Control": "max-age=5", "Content-Security-Policy": "default-src 'none'", "X-Frame-Options": "ALLOW"}
    return PlainTextResponse("cached", headers=own)


async def large(request: Request) -> Response:
    return Response(bytes(20_000_000))


async def fail(request: Request) -> Response:
    raise RuntimeError("a mistake of ours")


def application(keys: Keys) -> Gate:
    every = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    own = [
        Route("/cached", cached),
        Route("/fail", fail),
        Route("/large", large),
        Route("/{path:path}", echo, methods=every),
    ]
    return Gate(Starlette(routes=[*login.routes(keys), *own]), keys)


@pytest.fixture
def access(tmp_path):
    with closing(Home(tmp_path / "home")) as home:
        yield Access(home)


@pytest.fixture
def keys(access):
    return Keys(SECRET, access, hosts_of("127.0.0.1", ["crawler.test"]), max_body=1000)


def token(role: Role = Role.FULL, seconds: int = 600) -> str:
    return auth.issue(SECRET, role, seconds, int(time.time()))


def bearer(role: Role = Role.FULL) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(role)}"}


def cookie(role: Role = Role.FULL) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={token(role)}"}


def ask(keys: Keys, method: str, url: str, **options: Any) -> httpx.Response:
    """One request to the application, which need not be on a server for that."""
    client = options.pop("client", ("192.0.2.1", 999))

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(application(keys), raise_app_exceptions=False, client=client)
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as browser:
            return await browser.request(method, url, **options)

    return asyncio.run(run())


def code_of(answer: httpx.Response) -> str:
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert all(isinstance(text, str) for text in error.values())
    return error["code"]


def raw_scope(**changes: Any) -> dict[str, Any]:
    """A request as a server hands it over, for what httpx would not send."""
    plain = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api",
        "raw_path": b"/api",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost:8060")],
        "client": ("192.0.2.1", 999),
        "server": ("127.0.0.1", 8060),
        "state": {"shared": 1},
    }
    return {**plain, **changes}


def hand_over(app: Any, scope: dict[str, Any], messages: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """What an application sends in answer to these messages."""
    coming = messages if messages is not None else [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return coming.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


# Who comes in.


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("way", [bearer, cookie])
def test_a_token_lets_in_and_says_who_asks(keys, role, way):
    answer = ask(keys, "GET", "/api/jobs", headers=way(role))
    assert (answer.status_code, answer.json()["role"]) == (200, role)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_as_it_comes(keys, scheme):
    assert ask(keys, "GET", "/api", headers={"Authorization": f"{scheme}  {token()}"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("HEAD", "/health"), ("GET", "/login"), ("GET", "/static/a.css"), ("HEAD", "/static/a/b.js")],
)
def test_open_paths(keys, method, path):
    assert ask(keys, method, path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/health"),
        ("HEAD", "/api/v1/health"),
        ("GET", "/health/"),
        ("GET", "/healthz"),
        ("GET", "/Health"),
        ("GET", "//health"),
        ("GET", "/api/../health"),
        ("GET", "/health;x"),
        ("GET", "/health%00"),
        ("PUT", "/login"),
        ("GET", "/login/"),
        ("GET", "/login/x"),
        ("POST", "/logout"),
        ("GET", "/"),
        ("GET", ""),
        ("GET", "/static"),
        ("GET", "/static/"),
        ("GET", "/staticfile"),
        ("POST", "/static/a"),
        ("DELETE", "/static/a"),
        ("GET", "/static/../api"),
        ("GET", "/static/a/../../api"),
        ("GET", "/static/./api"),
        ("GET", "/static//api"),
        ("GET", "/static/..\\api"),
        ("GET", "/STATIC/a"),
        ("GET", "/api"),
        ("OPTIONS", "/api"),
        ("TRACE", "/api"),
        ("get", "/health"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
    ],
)
def test_everything_else_is_closed(keys, method, path):
    """Paths as a server hands them over: decoded, and otherwise as they came."""
    start, body = hand_over(application(keys), raw_scope(method=method, path=path, raw_path=path.encode()))
    assert start["status"] == 401
    assert (b"www-authenticate", b"Bearer") in start["headers"]
    assert json.loads(body["body"])["error"]["message"] == "This needs a valid token."


@pytest.mark.parametrize("path", ["/static/%2e%2e/api", "/static/%2E./api", "/static/x%2f..%2fapi", "/static/..%5capi"])
def test_an_encoded_way_out_of_the_files_is_closed(keys, path):
    assert ask(keys, "GET", path).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer x"},
        {"Authorization": "Basic b3BlcmF0b3I6"},
        {"Authorization": "Bearer x, Bearer y"},
        {"Cookie": ""},
        {"Cookie": "inchworm"},
        {"Cookie": "inchworm="},
        {"Cookie": "inchworm=x"},
        {"Cookie": ";;=;inchworm =;"},
    ],
)
def test_without_a_valid_token_nobody_comes_in(keys, headers):
    answer = ask(keys, "GET", "/api", headers=headers)
    assert (answer.status_code, code_of(answer)) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("name", ["Inchworm", "inchworm2", "xinchworm", "__Host-inchworm"])
def test_only_our_cookie_counts(keys, name):
    assert ask(keys, "GET", "/api", headers={"Cookie": f"{name}={token()}"}).status_code == 401


def test_our_cookie_is_found_among_others(keys):
    assert ask(keys, "GET", "/api", headers={"Cookie": f"a=b;  inchworm={token()} ; c"}).status_code == 200


@pytest.mark.parametrize("authorization", ["Bearer x", "Basic x", ""])
def test_authorization_wins_over_the_cookie(keys, authorization):
    answer = ask(keys, "GET", "/api", headers={**cookie(), "Authorization": authorization})
    assert answer.status_code == 401
    both = {"Cookie": "inchworm=x", **bearer(Role.READ_ONLY)}
    assert ask(keys, "GET", "/api", headers=both).json()["role"] == "read-only"


@pytest.mark.parametrize("whose", [None, Role.FULL, Role.READ_ONLY])
def test_what_a_browser_keeps_is_good_in_a_cookie_only(keys, whose):
    """Whoever listens on another port of this machine is sent it, too."""
    shown = auth.verify(token(whose), SECRET, lambda _: False) if whose else None
    kept = auth.issue_for_browser(SECRET, shown, int(time.time()))
    assert ask(keys, "GET", "/x", headers={"Cookie": f"{COOKIE}={kept}"}).status_code == 200
    assert ask(keys, "GET", "/x", headers={"Authorization": f"Bearer {kept}"}).status_code == 401


@pytest.mark.parametrize(("client", "status"), [("127.0.0.1", 200), ("10.1.2.3", 403)])
def test_a_proxy_on_this_machine_says_how_it_was_called(keys, client, status):
    headers = {"host": "localhost:8060", "cookie": f"{COOKIE}={token()}", "origin": "https://localhost:8060"}
    raw = [(name.encode(), value.encode()) for name, value in {**headers, "x-forwarded-proto": "https"}.items()]
    said = hand_over(application(keys), raw_scope(method="POST", headers=raw, client=(client, 4711)))
    assert said[0]["status"] == status


@pytest.mark.parametrize("ends", ["revoked", "parent revoked", "expired"])
def test_a_stream_ends_with_the_login(keys, access, ends, monkeypatch):
    monkeypatch.setattr(live, "_LOGIN_SECONDS", 0.02)
    identity = auth.Identity(Role.FULL, "child", int(time.time()) + (0 if ends == "expired" else 600), "parent")
    app = types.SimpleNamespace(state=types.SimpleNamespace(keys=keys))
    sent = []

    async def source():
        while True:
            yield b": still here\n\n"
            await asyncio.sleep(0.01)

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    async def watch():
        scope = {"type": "http", "state": {"identity": identity}, "app": app}
        watching = asyncio.ensure_future(live.EventStream(source())(scope, receive, send))
        if ends != "expired":
            await asyncio.sleep(0.1)
            assert not watching.done()
            access.revoke("child" if ends == "revoked" else "parent", int(time.time()) + 600)
        await asyncio.wait_for(watching, 20)

    asyncio.run(watch())


def test_two_authorizations_are_none(keys):
    valid = f"Bearer {token()}".encode()
    headers = [(b"host", b"localhost"), (b"authorization", valid), (b"authorization", valid)]
    assert hand_over(application(keys), raw_scope(headers=headers))[0]["status"] == 401


def test_a_revoked_token_does_not_let_in(keys, access):
    mine = token()
    access.revoke(auth.verify(mine, SECRET, access.is_revoked).token_id, 0)
    assert ask(keys, "GET", "/api", headers={"Authorization": f"Bearer {mine}"}).status_code == 401


def test_a_store_that_is_broken_lets_nobody_in(keys, tmp_path):
    closed = Home(tmp_path / "other")
    closed.close()
    answer = ask(Keys(SECRET, Access(closed), keys.hosts), "GET", "/api", headers=bearer())
    assert (answer.status_code, code_of(answer)) == (503, "broken")


def test_the_secret_is_not_shown(keys):
    assert SECRET.decode() not in repr(keys)


def test_what_was_in_the_state_stays_there(keys):
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope["state"])

    scope = raw_scope(path="/health")
    hand_over(Gate(app, keys), scope)
    assert seen == {"shared": 1, "identity": None}
    assert scope["state"] == {"shared": 1}


# What a read-only token may do.


def test_a_token_without_a_role_looks_unless_the_operator_says_otherwise(keys):
    others = {"Authorization": f"Bearer {jwt.encode({'exp': time.time() + 60}, SECRET, algorithm='HS256')}"}
    assert ask(keys, "GET", "/api/jobs", headers=others).json()["role"] == "read-only"
    answer = ask(keys, "POST", "/api/jobs", headers=others)
    assert (answer.status_code, code_of(answer)) == (403, "read_only")
    assert "AUTH_DEFAULT_ROLE=full" in answer.json()["error"]["hint"]
    assert "AUTH_DEFAULT_ROLE" not in ask(keys, "POST", "/api/jobs", headers=bearer(Role.READ_ONLY)).text
    trusting = dataclasses.replace(keys, default_role=Role.FULL)
    assert ask(trusting, "POST", "/api/jobs", headers=others).json()["role"] == "full"
    assert ask(trusting, "POST", "/api/jobs", headers=bearer(Role.READ_ONLY)).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_read_only_token_does_not_touch(keys, method):
    answer = ask(keys, method, "/api/jobs", headers=bearer(Role.READ_ONLY))
    assert (answer.status_code, code_of(answer)) == (403, "read_only")
    assert ask(keys, method, "/api/jobs", headers=bearer()).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_read_only_token_looks(keys, method):
    assert ask(keys, method, "/api/jobs", headers=bearer(Role.READ_ONLY)).status_code == 200


def test_a_header_that_names_another_method_is_not_looked_at(keys):
    headers = {**bearer(Role.READ_ONLY), "X-HTTP-Method-Override": "GET"}
    assert ask(keys, "POST", "/api", headers=headers).status_code == 403


# Browsers are sent to the login page.


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/", "/"),
        ("/jobs/7", "/jobs/7"),
        ("/search?q=a%26b&run=2", "/search?q=a%26b&run=2"),
        ("/a%20b/%C3%A4", "/a%20b/%C3%A4"),
        ("//evil.test/", "/"),
        ("/%5Cevil.test", "/%5Cevil.test"),
        ("/x?" + "y" * 3000, "/"),
    ],
)
def test_a_browser_is_sent_to_the_login_page_and_comes_back(keys, url, target):
    answer = ask(keys, "GET", f"{HOME}{url}", headers=HTML)
    assert answer.status_code == 303
    place = urlsplit(answer.headers["location"])
    assert (place.scheme, place.netloc, place.path) == ("", "", "/login")
    assert parse_qs(place.query) == {"next": [target]}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", HTML),
        ("HEAD", HTML),
        ("GET", {"Accept": "application/json"}),
        ("GET", {"Accept": "text/event-stream"}),
        ("GET", {**HTML, "Authorization": "Bearer x"}),
    ],
)
def test_others_are_told(keys, method, headers):
    assert ask(keys, method, "/", headers=headers).status_code == 401


def test_a_cookie_that_has_expired_is_cleared(keys):
    answer = ask(keys, "GET", "/", headers={**HTML, "Cookie": f"inchworm={token(seconds=-100)}"})
    assert answer.status_code == 303
    assert re.match(r'inchworm="";.*Max-Age=0', answer.headers["set-cookie"])
    assert "set-cookie" not in ask(keys, "GET", "/", headers=HTML).headers


# The host.

FINE = [
    "localhost",
    "localhost:1",
    "LOCALHOST:8060",
    "127.0.0.1",
    "127.0.0.1:65535",
    "127.3.2.1:80",
    "[::1]",
    "[::1]:8060",
    "[0:0:0:0:0:0:0:1]:8060",
    "crawler.test",
    "Crawler.Test:443",
]
FOREIGN = [
    "evil.test",
    "localhost.evil.test",
    "evil.test:8060",
    "localhost.",
    "127.0.0.1.evil.test",
    "127.1",
    "2130706433",
    "0.0.0.0",
    "10.0.0.1",
    "[::]",
    "[::ffff:127.0.0.1]",
    "192.168.0.1:8060",
    "xcrawler.test",
    "sub.crawler.test",
]
MALFORMED = [
    "",
    " ",
    ":8060",
    "localhost:",
    "localhost:port",
    "localhost:123456",
    "localhost:80:80",
    "user@localhost",
    "localhost/",
    "localhost/@evil.test",
    "localhost#evil.test",
    "local host",
    "localhost,evil.test",
    "[::1",
    "::1]",
    "[localhost]",
    "[evil.test]",
    "löcalhost",
    "a" * 300,
    "http://localhost",
]


@pytest.mark.parametrize(
    ("host", "status"),
    [*((host, 200) for host in FINE), *((host, 421) for host in FOREIGN), *((host, 400) for host in MALFORMED)],
)
@pytest.mark.parametrize("path", ["/health", "/api"])
def test_the_host_has_to_be_ours(keys, host, status, path):
    """Even on open paths, and with a valid token: a page of another site may have been given our address as its own."""
    headers = [(b"host", host.encode("latin-1")), (b"authorization", f"Bearer {token()}".encode())]
    start, body = hand_over(application(keys), raw_scope(headers=headers, path=path))
    assert start["status"] == status
    assert status == 200 or json.loads(body["body"])["error"]["code"] == "wrong_host"
    assert (b"x-content-type-options", b"nosniff") in start["headers"]


@pytest.mark.parametrize("hosts", [[], [b"localhost", b"localhost"], [b"localhost", b"evil.test"]])
def test_there_has_to_be_one_host(keys, hosts):
    headers = [(b"host", host) for host in hosts]
    assert hand_over(application(keys), raw_scope(headers=headers, path="/health"))[0]["status"] == 400


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "[::]"])
@pytest.mark.parametrize(
    ("host", "status"),
    [("10.0.0.1:8060", 200), ("[fe80::1]", 200), ("192.168.1.9", 200), ("evil.test", 421), ("localhost", 200)],
)
def test_bound_to_all_addresses_it_goes_by_any_address_and_no_other_name(keys, bind, host, status):
    """A name can be made to lead here; an address cannot."""
    open_keys = Keys(SECRET, keys.book, hosts_of(bind))
    assert ask(open_keys, "GET", "/health", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("bind", "names", "hosts"),
    [
        ("127.0.0.1", [], {"127.0.0.1"}),
        ("::1", ["A.test", " b.test:8443 "], {"::1", "a.test", "b.test"}),
        ("[FE80:0::1]:80", ["not a name", ""], {"fe80::1"}),
    ],
)
def test_names_are_compared_without_port_and_spelling(bind, names, hosts):
    assert hosts_of(bind, names) == hosts


# Where a request with a cookie comes from.

OURS = [
    {"Origin": HOME},
    {"Origin": HOME.upper()},
    {"Origin": HOME, "Sec-Fetch-Site": "cross-site"},
    {"Referer": f"{HOME}/jobs?x=1"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    {"Referer": "http://evil.test/", "Sec-Fetch-Site": "same-origin"},
]
NOT_OURS = [
    {},
    {"Origin": ""},
    {"Origin": "null"},
    {"Origin": "null", "Referer": f"{HOME}/"},
    {"Origin": "http://evil.test"},
    {"Origin": "http://localhost"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "https://localhost:8060"},
    {"Origin": "http://127.0.0.1:8060"},
    {"Origin": "http://localhost:8060.evil.test"},
    {"Origin": "http://localhost:8060@evil.test"},
    {"Origin": "http://evil.test", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://evil.test", "Referer": f"{HOME}/"},
    {"Origin": "http://[evil"},
    {"Origin": "localhost:8060"},
    {"Referer": "http://evil.test/http://localhost:8060/"},
    {"Referer": "http://localhost:8060.evil.test/"},
    {"Referer": "http://[evil"},
    {"Referer": "/"},
    {"Referer": ""},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-site", "Referer": f"{HOME}/"},
]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize(("headers", "status"), [*((h, 200) for h in OURS), *((h, 403) for h in NOT_OURS)])
def test_a_cookie_touches_only_from_our_own_page(keys, method, headers, status):
    answer = ask(keys, method, "/api", headers={**cookie(), **headers})
    assert answer.status_code == status
    assert status == 200 or code_of(answer) == "foreign_page"


@pytest.mark.parametrize("headers", NOT_OURS)
def test_a_token_needs_no_page(keys, headers):
    assert ask(keys, "POST", "/api", headers={**bearer(), **headers}).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "text/html"])
@pytest.mark.parametrize("headers", [headers for headers in NOT_OURS if "Origin" in headers])
def test_a_cookie_does_not_look_for_another_page(keys, method, accept, headers):
    answer = ask(keys, method, "/api/events", headers={**cookie(), "Accept": accept, **headers})
    assert answer.status_code == 403


@pytest.mark.parametrize("headers", [*OURS, *(headers for headers in NOT_OURS if "Origin" not in headers)])
def test_a_cookie_looks_from_anywhere_else(keys, headers):
    """Somebody follows a link from another site; that site does not get to see the answer."""
    assert ask(keys, "GET", "/jobs", headers={**cookie(), **headers}).status_code == 200


@pytest.mark.parametrize(
    ("url", "origin", "status"),
    [
        ("http://crawler.test/api", "http://crawler.test", 200),
        ("http://crawler.test/api", "http://crawler.test:80", 200),
        ("http://crawler.test/api", "https://crawler.test", 403),
        ("https://crawler.test/api", "https://crawler.test", 200),
        ("https://crawler.test:8443/api", "https://crawler.test:8443", 200),
        ("https://crawler.test:8443/api", "https://crawler.test", 403),
        ("http://[::1]:8060/api", "http://[::1]:8060", 200),
    ],
)
def test_our_own_page_is_scheme_host_and_port(keys, url, origin, status):
    assert ask(keys, "POST", url, headers={**cookie(), "Origin": origin}).status_code == status


# The body.


async def pieces(count: int, size: int = 100):
    for _ in range(count):
        yield b"x" * size


@pytest.mark.parametrize(("size", "status"), [(0, 200), (1000, 200), (1001, 413), (100_000, 413)])
def test_a_body_that_is_too_large_is_refused(keys, size, status):
    answer = ask(keys, "POST", "/api", headers=bearer(), content=b"x" * size)
    assert answer.status_code == status
    assert code_of(answer) == "too_large" if status == 413 else answer.json()["bytes"] == size


@pytest.mark.parametrize(("count", "status"), [(0, 200), (10, 200), (11, 413), (5000, 413)])
def test_a_body_without_a_length_is_counted_while_it_comes(keys, count, status):
    answer = ask(keys, "POST", "/api", headers=bearer(), content=pieces(count))
    assert answer.status_code == status
    assert status == 413 or answer.json()["bytes"] == 100 * count


def test_no_more_of_a_body_is_read_than_it_takes_to_know(keys):
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token()}".encode())]
    messages = [{"type": "http.request", "body": b"x" * 600, "more_body": True} for _ in range(9)]
    start, _ = hand_over(application(keys), raw_scope(method="POST", headers=headers), messages)
    assert (start["status"], len(messages)) == (413, 7)


@pytest.mark.parametrize("length", ["1001", "99999999999999999999999999", "9" * 5000])
def test_a_length_that_is_too_large_is_enough(keys, length):
    headers = [(b"host", b"localhost"), (b"content-length", length.encode())]
    headers.append((b"authorization", f"Bearer {token()}".encode()))
    assert hand_over(application(keys), raw_scope(method="POST", headers=headers), [])[0]["status"] == 413


def test_a_length_that_lies_does_not_help(keys):
    headers = [(b"host", b"localhost"), (b"content-length", b"5"), (b"authorization", f"Bearer {token()}".encode())]
    messages = [{"type": "http.request", "body": b"x" * 5000, "more_body": False}]
    assert hand_over(application(keys), raw_scope(method="POST", headers=headers), messages)[0]["status"] == 413


def test_nothing_is_read_of_who_may_not_come_in(keys):
    assert hand_over(application(keys), raw_scope(method="POST"), [])[0]["status"] == 401


def test_whoever_leaves_half_way_gets_no_answer(keys):
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token()}".encode())]
    messages = [{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}]
    assert hand_over(application(keys), raw_scope(method="POST", headers=headers), messages) == []


def test_the_application_hears_what_comes_after_the_body(keys):
    heard = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        heard.extend([await receive(), await receive()])

    messages = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.request", "body": b"b"}]
    hand_over(Gate(app, keys), raw_scope(path="/health"), [*messages, {"type": "http.disconnect"}])
    assert heard == [{"type": "http.request", "body": b"ab", "more_body": False}, {"type": "http.disconnect"}]


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity", ""])
@pytest.mark.parametrize("path", ["/api", "/login"])
def test_an_encoded_body_is_refused(keys, encoding, path):
    answer = ask(keys, "POST", path, headers={**bearer(), "Content-Encoding": encoding}, content=b"x")
    assert (answer.status_code, code_of(answer)) == (415, "encoded")


# Those who keep trying.


def test_wrong_tokens_are_always_told_so(keys):
    wrong = {"Authorization": "Bearer x"}
    assert {ask(keys, "GET", "/api", headers=wrong).status_code for _ in range(3 * gate.MAX_WRONG)} == {401}


def test_requests_without_a_token_are_not_counted(keys):
    assert {ask(keys, "GET", "/api").status_code for _ in range(gate.MAX_WRONG + 5)} == {401}


def test_wrong_tokens_are_forgotten_after_a_minute():
    tries = Tries()
    for second in range(gate.MAX_WRONG):
        assert tries.wrong("a", float(second)) == 0.0
    assert tries.wrong("a", 20.0) == 40.0
    assert tries.wrong("a", 59.5) == 0.5
    assert tries.wrong("a", 60.0) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("", "", True),
        ("testclient", "unix", False),
    ],
)
def test_one_customer_has_many_addresses(one, other, is_same):
    tries = Tries()
    for _ in range(gate.MAX_WRONG):
        tries.wrong(one, 0.0)
    assert (tries.wrong(other, 1.0) > 0) is is_same


def test_addresses_do_not_pile_up():
    tries = Tries()
    for number in range(30_000):
        tries.wrong(f"{number}.test", 0.0)
    assert len(tries._seen) <= 10_000
    assert "29999.test" in tries._seen


# What every answer bears.


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/health", {}),
        ("GET", "/api", Role.FULL),
        ("GET", "/api", {}),
        ("GET", "/", HTML),
        ("POST", "/api", Role.READ_ONLY),
        ("GET", "/api", {"Host": "evil.test"}),
        ("GET", "/fail", Role.FULL),
        ("GET", "/static/a.css", {}),
        ("POST", "/logout", Role.FULL),
    ],
)
def test_every_answer_is_made_safe(keys, method, path, headers):
    answer = ask(keys, method, path, headers=bearer(headers) if isinstance(headers, Role) else headers)
    assert {name: answer.headers.get(name) for name in ALWAYS} == ALWAYS
    assert answer.headers.get("cache-control") == (None if path.startswith("/static/") else "no-store")


def test_an_answer_may_say_how_long_it_keeps_and_what_it_loads(keys):
    answer = ask(keys, "GET", "/cached", headers=bearer())
    assert answer.headers.get_list("cache-control") == ["max-age=5"]
    assert answer.headers.get_list("content-security-policy") == ["default-src 'none'"]
    assert answer.headers.get_list("x-frame-options") == ["DENY"]


def test_only_http_comes_in(keys):
    reached = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    for kind in ("websocket", "webtransport"):
        sent = hand_over(Gate(app, keys), {"type": kind, "path": "/health"}, [{"type": f"{kind}.connect"}])
        assert sent == [{"type": "websocket.close", "code": 1008}]
    hand_over(Gate(app, keys), {"type": "lifespan"})
    assert reached == ["lifespan"]


# Logging in.


def new_code(access: Access, seconds: int = 60) -> str:
    code, digest = auth.login_code()
    now_ms = int(time.time() * 1000)
    access.add_login(digest, now_ms + seconds * 1000, now_ms - 10**6)
    return code


def token_in(answer: httpx.Response) -> str:
    return re.match(r"inchworm=([^;]+);", answer.headers["set-cookie"])[1]


def test_a_code_becomes_a_cookie_once(keys, access):
    code = new_code(access)
    answer = ask(keys, "GET", "/login", params={"code": code, "next": "/jobs?x=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?x=1")
    attributes = answer.headers["set-cookie"].lower().split("; ")[1:]
    assert sorted(attributes) == ["httponly", "max-age=43200", "path=/", "samesite=strict"]
    identity = auth.verify(token_in(answer), SECRET, access.is_revoked)
    assert identity.role is Role.FULL
    assert 0 <= time.time() + auth.BROWSER_SECONDS - identity.expires_s < 60
    assert ask(keys, "GET", "/", headers={"Cookie": f"inchworm={token_in(answer)}"}).status_code == 200
    again = ask(keys, "GET", "/login", params={"code": code})
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)
    assert "used already" in again.text
    assert 'method="post" action="/login">' in again.text


def test_over_https_the_cookie_stays_there(keys, access):
    answer = ask(keys, "GET", f"https://crawler.test/login?code={new_code(access)}")
    assert "secure" in answer.headers["set-cookie"].lower().split("; ")


def test_a_code_lets_in_one_of_two_who_come_at_once(keys, access):
    for _ in range(5):
        code = new_code(access)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: ask(keys, "GET", f"/login?code={code}", client=("::1", 1)), range(4)))  # noqa: B023
        assert sorted("set-cookie" in answer.headers for answer in answers) == [False, False, False, True]


@pytest.mark.parametrize("code", ["", "x", "é😀", "x" * 5000])
def test_a_wrong_code_gives_the_page(keys, code):
    answer = ask(keys, "GET", "/login", params={"code": code})
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_a_code_that_is_too_old_gives_the_page(keys, access):
    assert ask(keys, "GET", f"/login?code={new_code(access, -1)}").status_code == 401


def test_who_tries_codes_has_to_wait(keys, access):
    statuses = [ask(keys, "GET", f"/login?code={number}").status_code for number in range(gate.MAX_WRONG + 1)]
    assert statuses == [401] * gate.MAX_WRONG + [429]
    assert ask(keys, "GET", f"/login?code={new_code(access)}").status_code == 303
    assert ask(keys, "POST", "/login", data={"token": "x"}).status_code == 429
    assert ask(keys, "POST", "/login", data={"token": token()}).status_code == 303


@pytest.mark.parametrize("role", Role)
def test_a_token_that_is_pasted_becomes_a_cookie(keys, access, role):
    pasted = token(role)
    answer = ask(keys, "POST", "/login", data={"token": f" {pasted}\r\n", "next": "/jobs"}, headers={"Origin": HOME})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    shown, kept = (auth.verify(one, SECRET, access.is_revoked) for one in (pasted, token_in(answer)))
    assert (kept.role, kept.expires_s) == (role, shown.expires_s)
    access.revoke(shown.token_id, 0)
    assert ask(keys, "GET", "/api", headers={"Cookie": f"inchworm={token_in(answer)}"}).status_code == 401


@pytest.mark.parametrize(
    "body",
    [b"", b"token=", b"token=x", b"token=" + b"x" * 9000, b"token=%ff%00", b"&&==&", b"a=1&" * 200, b"\xff", b"{}"],
)
def test_a_form_without_a_valid_token_gives_the_page(access, body):
    keys = Keys(SECRET, access)
    answer = ask(keys, "POST", "/login", content=body)
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "not a valid token" in answer.text


@pytest.mark.parametrize(("size", "status"), [(30_000, 303), (40_000, 413)])
def test_nobody_sends_much_without_a_token(access, size, status):
    answer = ask(Keys(SECRET, access), "POST", "/login", data={"token": token(), "x": "y" * size})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "headers", [headers for headers in NOT_OURS if "Origin" in headers or "Sec-Fetch-Site" in headers]
)
def test_another_site_cannot_log_anybody_in(keys, headers):
    """It would be as somebody else, who could then read what is done."""
    answer = ask(keys, "POST", "/login", data={"token": token()}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_the_page_is_plain_and_names_its_origin_to_us_only(keys):
    answer = ask(keys, "GET", "/login")
    assert answer.status_code == 200
    assert not re.search(r"<script|<style|style=|\son\w+=|javascript:|http", answer.text, re.IGNORECASE)
    assert answer.headers.get_list("referrer-policy") == ["same-origin"]
    assert answer.headers["content-security-policy"] == ALWAYS["content-security-policy"]


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("text", ['/"><script>alert(1)</script>', "/'onfocus='x", "/{text}{0}&amp;"])
def test_what_stands_on_the_page_is_escaped(keys, text, status):
    params = {"next": text} | ({"code": "x"} if status == 401 else {})
    page = ask(keys, "GET", "/login", params=params)
    assert page.status_code == status
    assert page.text.count(f'"{escape(text)}"') == 2
    assert "<script" not in page.text


LOCAL = [
    "/",
    "/jobs",
    "/jobs?x=//y",
    "/a/b?c=d#e",
    "/ä",
    "/a:b",
    "/@evil.test",
    "/%2f%2fevil.test",
    "/?next=http://a.test",
]
ELSEWHERE = [
    "",
    " ",
    "jobs",
    "//evil.test",
    "///evil.test",
    "////evil.test",
    "/\\evil.test",
    "\\/evil.test",
    "\\\\evil.test",
    "/a\\..\\..\\evil.test",
    "/a//evil.test",
    "/.//evil.test",
    "/\t/evil.test",
    "/\n/evil.test",
    "/\r\nSet-Cookie: a=b",
    "\t//evil.test",
    " //evil.test",
    "/\0",
    "/\x7f",
    "/\x85",
    "/\u2028",
    "/\ud800",
    "http://evil.test",
    "HTTP://evil.test",
    "http:evil.test",
    "https:///evil.test",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.test",
    "@evil.test",
    "?x",
    "#x",
    "/" + "x" * 2000,
]


@pytest.mark.parametrize(("text", "path"), [*((text, text) for text in LOCAL), *((text, "/") for text in ELSEWHERE)])
def test_after_logging_in_nobody_is_sent_elsewhere(text, path):
    assert local_path(text) == path


@pytest.mark.parametrize("text", [text for text in ELSEWHERE if "\ud800" not in text])
def test_neither_link_nor_form_leads_elsewhere(keys, access, text):
    by_code = ask(keys, "GET", "/login", params={"code": new_code(access), "next": text})
    by_form = ask(Keys(SECRET, access), "POST", "/login", data={"token": token(), "next": text})
    assert by_code.headers["location"] == by_form.headers["location"] == "/"


@given(st.text(st.sampled_from("/\\.:@?#%a \t\r\n\0é"), max_size=12))
def test_whatever_the_text_a_browser_stays_here(text):
    target = httpx.URL("http://here.test/login").join(local_path(text))
    assert (target.scheme, target.host) == ("http", "here.test")


# Logging out.


def test_who_leaves_has_no_cookie_and_the_token_in_it_is_no_use(keys, access):
    for role in Role:
        mine = cookie(role)
        assert ask(keys, "GET", "/api", headers=mine).status_code == 200
        answer = ask(keys, "POST", "/logout", headers={**mine, "Origin": HOME})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert re.match(r'inchworm="";.*Max-Age=0', answer.headers["set-cookie"])
        assert ask(keys, "GET", "/api", headers=mine).status_code == 401


def test_the_token_that_was_pasted_outlives_its_browser(keys):
    pasted = token()
    kept = token_in(ask(keys, "POST", "/login", data={"token": pasted}))
    ask(keys, "POST", "/logout", headers={"Cookie": f"inchworm={kept}", "Origin": HOME})
    assert ask(keys, "GET", "/api", headers={"Authorization": f"Bearer {pasted}"}).status_code == 200


def test_a_program_that_leaves_keeps_its_token(keys):
    mine = bearer()
    assert ask(keys, "POST", "/logout", headers=mine).status_code == 303
    assert ask(keys, "GET", "/api", headers=mine).status_code == 200


def test_another_site_cannot_log_anybody_out(keys):
    mine = cookie()
    assert ask(keys, "POST", "/logout", headers={**mine, "Origin": "http://evil.test"}).status_code == 403
    assert ask(keys, "GET", "/logout", headers=mine).status_code == 200
    assert ask(keys, "GET", "/api", headers=mine).status_code == 200


# On a real server.


@contextlib.contextmanager
def serving(keys: Keys) -> Iterator[int]:
    config = uvicorn.Config(
        application(keys), log_level="critical", ws="none", lifespan="off", loop="asyncio", http=PatientProtocol
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def port(keys):
    with serving(keys) as port:
        yield port


def test_a_browser_logs_in_looks_touches_and_leaves(port, access):
    own = f"http://localhost:{port}"
    with httpx.Client(base_url=own, headers=HTML, follow_redirects=True) as browser:
        assert browser.get("/jobs").url.path == "/login"
        there = browser.get("/login", params={"code": new_code(access), "next": "/jobs"})
        assert (there.url.path, there.json()["role"]) == ("/jobs", "full")
        assert browser.post("/api", content=b"abc", headers={"Origin": own}).json()["bytes"] == 3
        assert browser.post("/api", content=b"abc", headers={"Origin": "http://evil.test"}).status_code == 403
        assert browser.post("/logout", headers={"Origin": own}).url.path == "/login"
        assert not browser.cookies
        assert browser.get("/jobs").url.path == "/login"


def test_whoever_does_not_take_the_answer_is_let_go(port, monkeypatch):
    monkeypatch.setattr(protocol, "TAKE_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(20)
        head = f"GET /large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token()}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(9) == b"HTTP/1.1 "
        time.sleep(1)
        taken = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(1 << 20):
                taken += len(piece)
    assert taken < 20_000_000


def test_a_program_sends_pieces_until_it_is_told_to_stop(port):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer()) as program:
        assert program.post("/api", content=(b"x" * 10 for _ in range(100))).json()["bytes"] == 1000
        answer = program.post("/api", content=(b"x" * 10 for _ in range(101)))
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
        assert program.get("/api").status_code == 200


def talk(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(request)
        return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200"),
        (b"GET /health HTTP/1.0\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET http://evil.test/api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"401"),
        (b"GET /static/../api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"401"),
        (b"GET /static/%2e%2e/api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"401"),
        (b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde", b"401"),
    ],
)
def test_requests_as_they_come_over_the_line(port, request_, status):
    assert talk(port, request_).split(b" ", 2)[1] == status


def test_two_browsers_follow_the_same_link_at_once(port, access):
    code = new_code(access)

    def follow(_: int) -> bool:
        return "set-cookie" in httpx.get(f"http://localhost:{port}/login", params={"code": code}).headers

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(follow, range(4))) == [False, False, False, True]
