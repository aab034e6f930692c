"""Broken HTTP: every breach has a name, what came is archived, no page is made of it, and the rest is complete."""

from __future__ import annotations

import asyncio
import gzip
import random
from typing import Any

import brotli
import pytest
from tests.fetch.server import (
    Handler,
    message,
    ok,
    send,
    send_and_close,
    send_and_reset,
    send_for_ever,
    silence,
)
from tests.flow.crawling import Home, page, wait_until
from tests.flow.hostile import HTML, again, archived, failure, html, paths_asked, serving, site, sound

OK = f"HTTP/1.1 200 OK\r\n{HTML}\r\n".encode()
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
TEXT = page("bad", "/never").encode()
WHOLE = message(TEXT, HTML)
HALF = WHOLE[: len(WHOLE) - len(TEXT) // 2]
PACKED = gzip.compress(TEXT)
LONG = gzip.compress(TEXT + random.Random(1).randbytes(5_000).hex().encode())

QUICK: dict[str, Any] = {"sitemap": False, "max_retries": 0, "workers": 1}


def damaged(packed: bytes) -> bytes:
    """The same with one wrong bit in its checksum."""
    return packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]


def part(*fields: str) -> Handler:
    return ok(TEXT, HTML, *fields, status="206 Partial Content")


ANSWERS: dict[str, tuple[Handler, str, str | None]] = {
    "N1 reset half way": (send_and_reset(HALF), "truncated", "disconnect"),
    "N2 closed half way": (send_and_close(HALF), "truncated", "disconnect"),
    "N5 no end": (send_for_ever(OK + b"\r\n" + TEXT, b"x" * 65536), "too_large", "length"),
    "N7 bad hex": (send_and_close(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "protocol_error", "disconnect"),
    "N7 no last chunk": (send_and_close(CHUNKED + b"3\r\nabc\r\n"), "protocol_error", "disconnect"),
    "N7 half a chunk": (send_and_close(CHUNKED + b"5\r\nabc"), "protocol_error", "disconnect"),
    "N7 chunk of 2^63": (send_and_close(CHUNKED + b"8000000000000000\r\nabc"), "protocol_error", "disconnect"),
    "N7 chunk of 2^63 - 1, silence": (send(CHUNKED + b"7fffffffffffffff\r\nabc"), "timeout", "time"),
    "N7 negative chunk": (send_and_close(CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n"), "protocol_error", "disconnect"),
    "N21 206 nobody asked for": (part(f"Content-Range: bytes 0-{len(TEXT) - 1}/99999"), "truncated", "disconnect"),
    "N21 206 with a wrong range": (part("Content-Range: bytes 900-7/3"), "truncated", "disconnect"),
    "N21 206 without a range": (part(), "truncated", "disconnect"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_breach_is_named_and_the_rest_is_complete(home: Home, name: str) -> None:
    answer, kind, cut = ANSWERS[name]
    with serving(site(answer)) as server:
        settings = {**QUICK, "max_body": 100_000, "timeout": 0.5 if kind == "timeout" else 10}
        ended = home.crawl(server.url("/"), **settings)
        assert (ended.run_state, ended.pages, ended.failed, ended.known) == ("completed", 3, 1, 4)
        assert failure(home, server.url("/bad"))["failure"] == kind
        ((_, why),) = archived(home, server.url("/bad"))
        assert why == cut
        sound(home)
        again(home, server.url("/"), **settings)
        assert "/never" not in paths_asked(server)


CODINGS = {
    "N13 gzip header, plain body": ("gzip", TEXT, "decode_error"),
    "N13 br labelled gzip": ("gzip", brotli.compress(TEXT), "decode_error"),
    "N13 gzip labelled br": ("br", PACKED, "decode_error"),
    "N13 unknown coding": ("rot13", TEXT, "decode_error"),
    "N13 gzip, gzip, gzip": ("gzip, gzip, gzip", PACKED, "decode_error"),
    "N13 nested too deep": (", ".join(["gzip"] * 50), PACKED, "decode_error"),
    "N14 cut gzip": ("gzip", PACKED[:-20], "truncated"),
    "N14 bad CRC": ("gzip", damaged(LONG), "truncated"),
    "N14 bad CRC of a small page": ("gzip", damaged(PACKED), "truncated"),
}


@pytest.mark.parametrize("name", CODINGS)
def test_a_coding_that_lies_is_named_and_its_bytes_are_archived_as_they_came(home: Home, name: str) -> None:
    coding, payload, kind = CODINGS[name]
    with serving(site(ok(payload, HTML, f"Content-Encoding: {coding}"))) as server:
        ended = home.crawl(server.url("/"), **QUICK)
        assert (ended.run_state, ended.pages, ended.failed, ended.known) == ("completed", 3, 1, 4)
        assert failure(home, server.url("/bad"))["failure"] == kind
        assert archived(home, server.url("/bad")) == [(payload, None)]
        sound(home)
        again(home, server.url("/"), **QUICK)
        assert "/never" not in paths_asked(server)


def first(bad: Handler, then: Handler) -> Handler:
    """Answers badly once, then well."""
    turns = iter([bad])

    async def handler(request: bytes, writer: asyncio.StreamWriter) -> None:
        await next(turns, then)(request, writer)

    return handler


@pytest.mark.parametrize("breaks", [send_and_reset, send_and_close], ids=["N1 reset", "N2 closed"])
def test_half_a_page_is_asked_for_again_and_only_the_whole_counts(home: Home, breaks: Any) -> None:
    routes = site(first(breaks(HALF), ok(TEXT, HTML)))
    with serving({**routes, "/never": html("linked from the whole")}) as server:
        ended = home.crawl(server.url("/"), **{**QUICK, "max_retries": 1})
        assert (ended.pages, ended.failed) == (5, 0)
        tries = home.show(server.url("/bad"))["visits"]
        assert [(one["outcome"], one["failure"]) for one in tries] == [("retry", "truncated"), ("page", None)]
        assert tries[1]["at_ms"] - tries[0]["at_ms"] >= 500, "with a pause between"
        assert [(body == TEXT, cut) for body, cut in archived(home, server.url("/bad"))] == [
            (False, "disconnect"),
            (True, None),
        ]
        sound(home)


@pytest.mark.parametrize("breaks", [send_and_reset, send_and_close], ids=["N1 reset", "N2 closed"])
def test_half_a_page_never_replaces_the_whole_one_of_an_earlier_run(home: Home, breaks: Any) -> None:
    with serving(site(first(ok(TEXT, HTML), breaks(HALF)))) as server:
        home.crawl(server.url("/"), **QUICK)
        before = home.export("jsonl", 0)
        home.crawl(server.url("/"), **QUICK)
        assert failure(home, server.url("/bad"))["failure"] == "truncated"
        assert home.export("jsonl", 0) == before
        assert home.show(server.url("/bad"), 0)["visits"][0]["outcome"] == "page"
        assert archived(home, server.url("/bad"))[-1][0] != TEXT
        sound(home)


def test_n3_what_follows_the_declared_length_is_no_answer_to_anybody(home: Home) -> None:
    evil = message(page("EVIL", "/evil").encode(), HTML)
    with serving(site(send(WHOLE + evil))) as server:
        ended = home.crawl(server.url("/"), **QUICK)
        assert (ended.pages, ended.failed) == (4, 1), "all four, and the dead link on /bad"
        assert archived(home, server.url("/bad")) == [(TEXT, None)]
        assert [visit["title"] for visit in home.record()] == ["home", "one", "bad", "two", None]
        assert "/evil" not in paths_asked(server)
        sound(home)


def test_n4_a_byte_now_and_then_is_ended_by_the_total_time(home: Home) -> None:
    """One worker: if the slow answer kept it, the page after it would never come."""
    with serving(site(send_for_ever(OK + b"\r\n", b"x", pause=0.05))) as server:
        settings = {**QUICK, "timeout": 0.6, "first_byte_timeout": 0.3}
        ended = home.crawl(server.url("/"), **settings)
        assert (ended.pages, ended.failed) == (3, 1)
        found = failure(home, server.url("/bad"))
        assert (found["failure"], found["message"]) == ("timeout", "no complete answer within 0.6 s in total")
        wait_until(lambda: server.open == 0)
        again(home, server.url("/"), **settings)


SILENCES: dict[str, tuple[str, Handler, str]] = {
    "N6 no connection": ("https", silence(), "no connection within 0.3 s"),
    "N6 accepted, then silence": ("http", silence(), "no first byte within 0.4 s"),
    "N6 headers, then silence": (
        "http",
        silence(OK + b"Content-Length: 5\r\n\r\n"),
        "no complete answer within 0.6 s in total",
    ),
}


@pytest.mark.parametrize("name", SILENCES)
def test_each_silence_has_its_own_limit_and_message(home: Home, name: str) -> None:
    """The server never greets in TLS, so by https no connection comes about."""
    scheme, handler, said = SILENCES[name]
    with serving(site(handler)) as server:
        bad = server.url("/bad", scheme=scheme)
        routes = server.routes
        assert isinstance(routes, dict)
        routes["/"] = html("home", "/one", bad, "/two")
        ended = home.crawl(
            server.url("/"),
            **QUICK,
            scope="any",
            robots=False,
            connect_timeout=0.3,
            first_byte_timeout=0.4,
            timeout=0.6,
        )
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 3, 1)
        found = failure(home, bad)
        assert (found["failure"], found["message"]) == ("timeout", said)
        sound(home)


async def hang_up_later(request: bytes, writer: asyncio.StreamWriter) -> None:
    """A good answer that promises to keep the connection, and does not."""
    name = request.split(b" ", 2)[1].decode()
    writer.write(message(page(name, *(["/1", "/2", "/3"] if name == "/" else [])).encode(), HTML))
    await writer.drain()
    asyncio.get_running_loop().call_later(0.02, writer.close)


class HangUpOnTheSecond:
    """Every connection is good for one answer; the next request on it is met with a hang-up."""

    def __init__(self) -> None:
        self.served: set[asyncio.StreamWriter] = set()

    async def __call__(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        if writer in self.served:
            writer.close()
            return
        self.served.add(writer)
        name = request.split(b" ", 2)[1].decode()
        writer.write(message(page(name, *(["/1", "/2", "/3"] if name == "/" else [])).encode(), HTML))


@pytest.mark.parametrize("how", ["N20 between two requests", "N20 at the next request"])
def test_a_kept_connection_that_was_closed_is_no_failure(home: Home, how: str) -> None:
    handler: Handler = hang_up_later if "between" in how else HangUpOnTheSecond()
    with serving(dict.fromkeys(("/", "/1", "/2", "/3"), handler)) as server:
        ended = home.crawl(server.url("/"), **QUICK, delay=0.1)
        assert (ended.pages, ended.failed, ended.fetched, ended.order) == (4, 0, 4, "exact")
        assert {visit["outcome"] for visit in home.record()} == {"page"}
        sound(home)


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content", "304 Not Modified"])
def test_n22_a_body_where_none_may_be_is_ignored_and_the_next_answer_is_whole(home: Home, status: str) -> None:
    smuggled = message(page("EVIL", "/evil").encode(), HTML)
    with serving(site(send(message(smuggled, HTML, status=status)))) as server:
        home.crawl(server.url("/"), **QUICK)
        titles = {visit["url"]: visit["title"] for visit in home.record()}
        assert titles == {
            server.url("/"): "home",
            server.url("/one"): "one",
            server.url("/two"): "two",
            server.url("/bad"): None,
        }
        assert archived(home, server.url("/bad")) == [(b"", None)]
        assert home.show(server.url("/bad"))["visits"][0]["status"] == int(status[:3])
        assert "/evil" not in paths_asked(server)
        sound(home)
        again(home, server.url("/"), **QUICK)
