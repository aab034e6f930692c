"""The HTTP fetcher against a server on loopback that does everything a server should not."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import brotli
import pytest
import uvloop
from tests.fetch.server import (
    Handler,
    Server,
    listening,
    message,
    ok,
    send,
    send_and_close,
    send_and_reset,
    send_for_ever,
    serving,
    silence,
    until,
)

from inchworm.fetch import routes
from inchworm.fetch.guard import Guard
from inchworm.fetch.http import HttpFetcher, HttpOptions
from inchworm.fetch.room import Room
from inchworm.model import Failure, Reply, Request, Response
from inchworm.ports import Fetcher

OPTIONS = HttpOptions(
    "inchworm-test",
    Guard(allow_private=True),
    connect_timeout_seconds=5.0,
    first_byte_timeout_seconds=5.0,
)
LIMIT = 1_000_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

# A key pair for localhost that nobody trusts, made for these tests.
KEY_AND_CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgatN+StnjvnioD5sL
AhcARRgzvLqhb6KwT5Wfi9chcbqhRANCAAQCBhEfPpED2hiWMUyz+rwq+wKxPCpZ
hEAXW7VfJC7Rq/hb9ZLUB5Zg23/mbQGbkSPKKf3RoePb2Uu3bkU43oGh
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUVGW/NEzKmGWo8vcbwx5bOdqRH3MwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTIyMTgwMVoYDzIxMjYxMDIy
MjIxODAxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQCBhEfPpED2hiWMUyz+rwq+wKxPCpZhEAXW7VfJC7Rq/hb9ZLUB5Zg
23/mbQGbkSPKKf3RoePb2Uu3bkU43oGho28wbTAdBgNVHQ4EFgQUMR5DwC7V+7LI
rT4uZKaXingZqDQwHwYDVR0jBBgwFoAUMR5DwC7V+7LIrT4uZKaXingZqDQwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAPN2XmyGfIF2fiMENec9PsSCbQdFT1nNQEliiQRxI5lHAiBb
TtokNBwCprJ61bylQHVdfjYPID14+o3UkVSCp+bwww==
-----END CERTIFICATE-----
"""

Scenario = Callable[[HttpFetcher, Server], Awaitable[None]]


def play(
    routes: Mapping[str, Handler],
    scenario: Scenario,
    options: HttpOptions = OPTIONS,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Run a scenario with a server and a fetcher, within ten seconds."""

    async def run() -> None:
        async with asyncio.timeout(10), serving(routes, tls) as server:
            fetcher = HttpFetcher(options)
            fits: Fetcher = fetcher
            try:
                await scenario(fetcher, server)
            finally:
                await fits.close()

    uvloop.run(run())


def fetch(handler: Handler, options: HttpOptions = OPTIONS, seconds: float = 5.0, limit: int = LIMIT) -> Reply:
    """The reply to one request, after which the fetcher must still be able to fetch."""
    replies: list[Reply] = []

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        replies.append(await fetcher.fetch(Request(server.url("/"), (), limit, seconds)))
        after = good(await fetcher.fetch(Request(server.url("/after"), (), limit, 5.0)))
        assert after.body == b"fine"

    play({"/": handler, "/after": ok(b"fine")}, scenario, options)
    return replies[0]


def good(reply: Reply) -> Response:
    assert isinstance(reply, Response), reply
    return reply


def bad(reply: Reply) -> Failure:
    assert isinstance(reply, Failure), reply
    return reply


def names(table: Mapping[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the system know only these names; the list of what it was asked."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: object, *_args: object, **_more: object) -> list[object]:
        asked.append(host)
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


# An answer as it should be


def test_a_good_answer_is_taken_apart():
    body = b"<title>hello</title>" * 50
    packed = gzip.compress(body)
    handler = ok(packed, "Content-Encoding: gzip", "X-Two: a", "x-two: b", 'ETag: W/"1"')
    reply = good(fetch(handler))
    assert reply.status == 200
    assert (reply.payload, reply.body, reply.truncated) == (packed, body, "")
    assert reply.headers["x-two"] == "a, b"
    assert reply.headers["etag"] == 'W/"1"'
    assert reply.head.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: ")
    assert reply.head.endswith(b'x-two: b\r\nETag: W/"1"\r\n\r\n')
    assert 0 < reply.seconds < 5


def test_what_is_sent():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        headers = (("Accept", "text/html"), ("If-None-Match", 'W/"é"'), ("X-Bad", "a\r\nInjected: yes"))
        url = server.url("/p?q=%2e&r=#frag").replace("http://", "http://user:secret@")
        good(await fetcher.fetch(Request(url, headers)))
        lines = server.requests[0].split(b"\r\n")
        assert lines[0] == b"GET /p?q=%2e&r= HTTP/1.1"
        assert b"User-Agent: inchworm-test" in lines
        assert b"Accept-Encoding: gzip, deflate, br, zstd" in lines
        assert b"Accept: text/html" in lines
        assert 'If-None-Match: W/"é"'.encode() in lines
        for never in (b"Cookie", b"Authorization", b"Injected", b"secret", b"Referer"):
            assert never not in server.requests[0]

    play({"/p?q=%2e&r=": ok()}, scenario)


def test_a_request_may_bring_its_own_user_agent():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        await fetcher.fetch(Request(server.url(), (("user-agent", "other"), ("accept-encoding", "identity"))))
        assert b"user-agent: other\r\n" in server.requests[0]
        assert server.requests[0].lower().count(b"user-agent") == 1
        assert server.requests[0].lower().count(b"accept-encoding") == 1

    play({"/": ok()}, scenario)


def test_headers_of_one_request_do_not_stay_for_the_next():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        await fetcher.fetch(Request(server.url(), (("X-Once", "1"),)))
        await fetcher.fetch(Request(server.url()))
        assert [b"X-Once" in request for request in server.requests] == [True, False]
        assert server.connections == 1

    play({"/": ok()}, scenario)


def test_one_connection_serves_many_requests_and_hosts_do_not_mix(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        asked = names({"one.test": ["127.0.0.1"], "two.test": ["127.0.0.1"]}, monkeypatch)
        for _ in range(5):
            for host in ("one.test", "two.test"):
                good(await fetcher.fetch(Request(server.url(host=host))))
        assert server.connections == 2
        assert asked == ["one.test", "two.test"]

    play({"/": ok()}, scenario)


def test_lines_that_end_in_lf_alone_are_normalised():
    reply = good(fetch(send_and_close(b"HTTP/1.0 200 OK\nX: y\nContent-Length: 2\n\nhi")))
    assert reply.head == b"HTTP/1.0 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\n"
    assert reply.body == b"hi"


def test_chunks_are_taken_off_and_the_head_says_so():
    reply = good(fetch(send(CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Trailer: t\r\n\r\n")))
    assert (reply.payload, reply.body) == (b"hello", b"hello")
    assert reply.head == b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\n\r\n"
    assert "x-trailer" not in reply.headers


def test_a_body_without_length_ends_with_its_connection():
    assert good(fetch(send_and_close(b"HTTP/1.1 200 OK\r\n\r\n", b"all ", b"of it"))).body == b"all of it"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_answers_and_not_followed(status):
    reply = good(fetch(ok(b"moved", "Location: /after", status=f"{status} Moved")))
    assert (reply.status, reply.headers["location"], reply.body) == (status, "/after", b"")


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_errors_are_answers(status):
    reply = good(fetch(ok(b"sorry", "Retry-After: 5", status=f"{status} Sorry")))
    assert (reply.status, reply.headers["retry-after"], reply.body) == (status, "5", b"sorry")


def test_the_environment_has_no_say(monkeypatch, tmp_path):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        assert good(await fetcher.fetch(Request(server.url()))).body == b"hello"
        assert b"Authorization" not in server.requests[0]

    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    play({"/": ok()}, scenario)


# Framing and broken connections


def test_n1_a_reset_in_the_body():
    assert bad(fetch(send_and_reset(message(b"x" * 1000)[:500]))).kind == "truncated"


def test_n2_a_body_shorter_than_declared():
    assert bad(fetch(send_and_close(message(b"x" * 1000)[:500]))).kind == "truncated"


def test_n3_a_body_longer_than_declared_does_not_leak_into_the_next_answer():
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    assert good(fetch(send(message(b"declared") + evil))).body == b"declared"


def test_n4_a_byte_now_and_then_is_stopped_by_the_total_limit():
    reply = bad(fetch(send_for_ever(b"HTTP/1.1 200 OK\r\n\r\n", b"x", pause=0.05), seconds=0.4))
    assert (reply.kind, reply.message) == ("timeout", "no complete answer within 0.4 s in total")
    assert 0.3 < reply.seconds < 2


def test_n5_a_body_that_never_ends_stops_at_the_limit():
    reply = bad(fetch(send_for_ever(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536)))
    assert reply.kind == "too_large"


def test_n5_a_declared_size_over_the_limit_is_not_even_begun():
    reply = bad(fetch(silence(b"HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n")))
    assert reply.kind == "too_large"


def sized(size: int) -> dict[str, Handler]:
    """An answer of this size in every way in which its end can be known."""
    body = b"x" * size
    return {
        "by its length": ok(body),
        "by its end": send_and_close(b"HTTP/1.1 200 OK\r\n\r\n" + body),
        "by chunks": send(CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (size, body)),
        "packed": ok(gzip.compress(body), "Content-Encoding: gzip"),
        "packed twice": ok(gzip.compress(brotli.compress(body)), "Content-Encoding: br, gzip"),
        "packed without getting smaller": ok(gzip.compress(body, 0), "Content-Encoding: gzip"),
    }


@pytest.mark.parametrize("how", sized(0))
@pytest.mark.parametrize(("limit", "fits"), [(0, True), (1001, True), (1000, True), (999, False)])
def test_the_size_limit_is_exact(limit, fits, how):
    if how == "packed without getting smaller" and limit:
        limit += len(gzip.compress(b"x" * 1000, 0)) - 1000  # bytes on the way count as well
    reply = fetch(sized(1000)[how], limit=limit)
    assert isinstance(reply, Response) is fits
    assert fits or bad(reply).kind == "too_large"


@pytest.mark.parametrize("how", sized(0))
@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_a_beginning_is_as_long_as_it_may_be(size, how):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        reply = good(await fetcher.fetch(Request(server.url("/"), (), 1000, 5.0, beginning=True)))
        packed = how == "packed without getting smaller"
        assert reply.body == b"x" * min(size, len(reply.body) if packed else 1000)
        assert len(reply.body) <= 1000
        assert bool(reply.truncated) is (packed or (size > 1000 and "packed" not in how))

    play({"/": sized(size)[how]}, scenario)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
def test_the_size_limit_of_a_redirects_body_is_exact_b2(size):
    reply = good(fetch(ok(b"x" * size, "Location: /x", status="302 Found")))
    assert (len(reply.payload), reply.truncated) == (min(size, 65_536), "length" if size > 65_536 else "")


def test_n6_silence_after_the_request_is_stopped_by_the_first_byte_limit():
    reply = bad(fetch(silence(), replace(OPTIONS, first_byte_timeout_seconds=0.2)))
    assert (reply.kind, reply.message) == ("timeout", "no first byte within 0.2 s")
    assert 0.15 < reply.seconds < 2


def test_n6_silence_after_the_head_is_stopped_by_the_total_limit():
    options = replace(OPTIONS, first_byte_timeout_seconds=0.1)
    reply = bad(fetch(silence(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), options, seconds=0.4))
    assert (reply.kind, reply.message) == ("timeout", "no complete answer within 0.4 s in total")


def test_n6_a_connection_that_does_not_come_about_is_stopped_by_its_own_limit():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        # The server waits for a request in the clear, the fetcher for a greeting in TLS.
        reply = bad(await fetcher.fetch(Request(server.url(scheme="https"))))
        assert (reply.kind, reply.message) == ("timeout", "no connection within 0.2 s")

    play({}, scenario, replace(OPTIONS, connect_timeout_seconds=0.2, first_byte_timeout_seconds=0.1))


@pytest.mark.parametrize(
    "chunks",
    [
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n",
        b"5\r\nabc",
        b"8000000000000000\r\nabc",
        b"ffffffffffffffffffff\r\nabc",
        b"-3\r\nabc\r\n0\r\n\r\n",
    ],
)
def test_n7_broken_chunks(chunks):
    assert bad(fetch(send_and_close(CHUNKED + chunks))).kind == "protocol_error"


def test_n8_two_lengths_fail_closed():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\n"
    assert bad(fetch(send_and_close(head + b"abcde"))).kind == "protocol_error"


def test_n8_chunks_win_over_a_length():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert good(fetch(send(head + b"2\r\nhi\r\n0\r\n\r\n"))).body == b"hi"


def test_n9_many_tiny_chunks_cost_no_more_than_their_number():
    began = time.process_time()
    reply = good(fetch(send(CHUNKED + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")))
    assert reply.body == b"x" * 100_000
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"a" * 1_000_000 + b"\r\n",
        b"X: a\r\n" * 100_000,
        b"X: a\0b\r\n",
    ],
    ids=["one of 1 MB", "100,000 of them", "NUL"],
)
def test_n10_monstrous_headers(head):
    assert bad(fetch(send_and_close(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n"))).kind == "protocol_error"


@pytest.mark.parametrize("more", [-1, 0, 1, 50_000, 800_000])
def test_n10_the_size_of_a_head_is_limited_and_the_limit_is_exact(more):
    """Whatever libcurl has a limit for: the connection was good, the answer was not."""
    start, line = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", b"X: " + b"a" * 995 + b"\r\n"
    size = 256 * 1024 + more - len(start) - len(b"\r\n")
    count = (size - 100) // len(line)
    last = b"Y: " + b"b" * (size - count * len(line) - 5) + b"\r\n"
    reply = fetch(send(start + line * count + last + b"\r\n"))
    if more > 0:
        assert (bad(reply).kind, "head" in bad(reply).message) == ("protocol_error", True)
    else:
        assert len(good(reply).head) == 256 * 1024 + more


def test_n10_folded_headers_become_one_line():
    reply = good(fetch(send(b"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 0\r\n\r\n")))
    assert reply.headers["x"] == "a b"


def test_n10_a_head_that_breaks_off_is_no_answer():
    assert bad(fetch(send_and_close(b"HTTP/1.1 200 OK\r\nContent-Le"))).kind == "truncated"


@pytest.mark.parametrize("value", [b"a\x82b", b"\xff\xfeb", b"a\x1b[31mb"])
def test_n10_what_a_header_holds_is_quoted_as_printable_text(value):
    failure = bad(fetch(send_and_close(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + value + b"\r\n\r\n")))
    assert failure.kind == "protocol_error"
    assert "Transfer-Encoding" in failure.message
    assert failure.message.isprintable()


def test_n10_every_failure_says_what_was_wrong():
    failure = bad(fetch(send_and_close(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 120_000 + b"\r\n\r\n")))
    assert failure.kind == "protocol_error"
    assert failure.message


def test_n11_interim_answers_are_passed_over():
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    reply = good(fetch(send(b"HTTP/1.1 100 Continue\r\n\r\n" + interim * 500 + message(b"final"))))
    assert (reply.status, reply.body) == (200, b"final")
    assert reply.head == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


def test_n11_interim_answers_without_end_are_cut_off():
    reply = bad(fetch(send_for_ever(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)))
    assert reply.kind == "protocol_error"


def test_n11_an_interim_answer_alone_is_none():
    assert bad(fetch(send_and_close(b"HTTP/1.1 100 Continue\r\n\r\n"))).kind == "connect"


def test_n12_trailers_without_end_are_cut_off():
    reply = bad(fetch(send_for_ever(CHUNKED + b"0\r\n", b"X-Trailer: t\r\n" * 1000)))
    assert reply.kind == "protocol_error"


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, gzip, gzip, gzip", "nonsense"])
def test_n13_a_coding_that_lies(coding):
    assert bad(fetch(ok(b"<p>plain</p>" * 20, f"Content-Encoding: {coding}"))).kind == "decode_error"


def test_n14_a_compressed_body_that_is_cut():
    payload = gzip.compress(bytes(range(256)) * 100)
    assert bad(fetch(ok(payload[:-20], "Content-Encoding: gzip"))).kind == "truncated"


@pytest.mark.parametrize(
    "data",
    [
        b"<html>HTTP/0.9</html>",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc",
    ],
)
def test_n15_what_is_not_http(data):
    assert bad(fetch(send_and_close(data))).kind == "protocol_error"


def test_a_server_that_hangs_up_without_an_answer():
    assert bad(fetch(send_and_close(b""))).kind == "connect"
    assert bad(fetch(send_and_reset(b""))).kind == "connect"


def test_nobody_listens():
    async def scenario(fetcher: HttpFetcher, _server: Server) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
            assert bad(await fetcher.fetch(Request(url))).kind == "connect"

    play({}, scenario)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "localhost.pem"
    path.write_text(KEY_AND_CERTIFICATE)
    return path


def tls_server(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_n16_a_certificate_that_nobody_vouches_for_is_refused(certificate):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        reply = bad(await fetcher.fetch(Request(server.url(host="localhost", scheme="https"))))
        assert reply.kind == "tls"
        assert server.requests == []

    play({"/": ok()}, scenario, tls=tls_server(certificate))


def test_n16_a_certificate_is_good_for_its_names_only(certificate, monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        names({"other.test": ["127.0.0.1"]}, monkeypatch)
        assert good(await fetcher.fetch(Request(server.url(host="localhost", scheme="https")))).body == b"hello"
        assert bad(await fetcher.fetch(Request(server.url(host="other.test", scheme="https")))).kind == "tls"

    play({"/": ok()}, scenario, replace(OPTIONS, ca_file=str(certificate)), tls_server(certificate))


def test_n16_no_tls_at_all():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with listening(shout) as port:
            assert bad(await fetcher.fetch(Request(f"https://127.0.0.1:{port}/"))).kind == "tls"

    play({}, scenario)


def test_n20_a_connection_closed_between_requests_is_replaced_in_silence():
    async def once(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(message(b"first"))
        await writer.drain()
        asyncio.get_running_loop().call_later(0.02, writer.close)

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        for _ in range(3):
            assert good(await fetcher.fetch(Request(server.url()))).body == b"first"
            await asyncio.sleep(0.05)
        assert server.connections == 3

    play({"/": once}, scenario)


def test_n20_a_connection_closed_on_the_second_request_is_replaced_in_silence():
    served: set[asyncio.StreamWriter] = set()

    async def first_only(_request: bytes, writer: asyncio.StreamWriter) -> None:
        if writer in served:
            writer.close()
        else:
            served.add(writer)
            writer.write(message(b"hello"))

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        for _ in range(4):
            assert good(await fetcher.fetch(Request(server.url()))).body == b"hello"
        assert server.connections == 4
        assert len(server.requests) == 7

    play({"/": first_only}, scenario)


def test_n21_a_part_that_nobody_asked_for():
    reply = bad(fetch(ok(b"part", "Content-Range: bytes 0-3/100", status="206 Partial Content")))
    assert reply.kind == "truncated"


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content", "304 Not Modified"])
def test_n22_a_body_where_none_may_be(status):
    reply = good(fetch(send(message(b"unexpected", status=status))))
    assert (reply.payload, reply.body) == (b"", b"")


# Bombs


def test_b1_b5_a_bomb_stops_at_the_limit():
    payload = brotli.compress(bytes(50_000_000), quality=5)
    assert len(payload) < 1000
    assert bad(fetch(ok(payload, "Content-Encoding: br"))).kind == "too_large"


def test_b2_a_bomb_in_a_redirect_is_not_decoded():
    payload = gzip.compress(bytes(50_000_000))
    reply = good(fetch(ok(payload, "Content-Encoding: gzip", "Location: /x", status="302 Found")))
    assert (len(reply.payload), reply.body, reply.headers["location"]) == (len(payload), b"", "/x")


def test_b2_a_redirect_counts_although_its_body_never_ends():
    handler = send_for_ever(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", b"x" * 65536)
    reply = good(fetch(handler, limit=0))
    assert (len(reply.payload), reply.truncated, reply.headers["location"]) == (65536, "length", "/x")


def test_an_error_counts_although_its_body_is_broken():
    reply = good(fetch(send_and_close(message(b"x" * 100, status="404 Gone")[:-50])))
    assert (reply.status, len(reply.payload), reply.truncated) == (404, 50, "disconnect")


# Names and addresses

STRICT = replace(OPTIONS, guard=Guard())


def refused(urls: Callable[[Server], list[str]], options: HttpOptions = STRICT) -> None:
    """None of these may reach the server."""

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        for url in urls(server):
            for _ in range(2):
                reply = bad(await fetcher.fetch(Request(url)))
                assert reply.kind == "address_refused", url
                assert "127" not in reply.message
        assert server.connections == 0

    play({"/": ok()}, scenario, options)


def test_s3_private_addresses_are_refused():
    hosts = ["127.0.0.1", "0.0.0.0", "10.0.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[::1]"]
    hosts += [
        "[::ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[::]",
    ]
    refused(lambda server: [server.url(host=host) for host in hosts])


def test_s4_however_they_are_spelled():
    hosts = ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "017700000001", "１２７.0.0.1", "127.0.0.1."]
    refused(lambda server: [server.url(host=host) for host in hosts])


def test_s5_the_host_that_is_dialled_is_the_one_that_is_judged():
    def urls(server: Server) -> list[str]:
        port = server.port
        return [
            f"http://example.org@127.0.0.1:{port}/",
            f"http://127.0.0.1:{port}\\@example.org/",
            f"http://127.0.0.1:{port}#@example.org/",
            f"http://example.org:80@127.0.0.1:{port}/",
        ]

    refused(urls)


def test_localhost_is_this_machine_whatever_the_name_server_says(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        asked = names({}, monkeypatch)
        for host in ("localhost", "LOCALHOST", "app.localhost", "localhost."):
            assert good(await fetcher.fetch(Request(server.url(host=host)))).body == b"hello"
        assert asked == []

    play({"/": ok()}, scenario)
    refused(lambda server: [server.url(host="localhost"), server.url(host="app.localhost")])


def test_localhost_may_listen_at_its_ipv6_address_only():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        try:
            listener = await asyncio.start_server(server.serve, "::1", 0)
        except OSError:
            pytest.skip("there is no IPv6 here")
        async with listener:
            port = listener.sockets[0].getsockname()[1]
            assert good(await fetcher.fetch(Request(f"http://localhost:{port}/close"))).body == b"hello"

    play({"/close": ok(b"hello", "Connection: close")}, scenario)


def test_s6_one_private_record_rejects_the_name(monkeypatch):
    names({"mixed.test": ["8.8.8.8", "127.0.0.1"], "inside.test": ["10.1.2.3"]}, monkeypatch)
    refused(lambda server: [server.url(host="mixed.test"), server.url(host="inside.test")])


def test_s6_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    """A second look-up would find another address; there is none."""

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        table = {"rebind.test": ["127.0.0.1"]}
        asked = names(table, monkeypatch)
        request = Request(server.url("/close", host="rebind.test"))
        good(await fetcher.fetch(request))
        table["rebind.test"] = ["127.0.0.2"]
        good(await fetcher.fetch(request))
        assert asked == ["rebind.test"]
        assert server.connections == 2

    play({"/close": send_and_close(message(b"x", "Connection: close"))}, scenario)


def test_s6_an_address_that_was_not_checked_is_not_dialled(monkeypatch):
    """Even if libcurl came to another address by itself, the socket would be refused."""

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        names({"public.test": ["8.8.8.8"]}, monkeypatch)

        def wrong_pin(host: str, port: int, _addresses: tuple[str, ...]) -> routes.Route:
            return routes.Route(frozenset({"8.8.8.8"}), [f"+{host}:{port}:127.0.0.1"])

        monkeypatch.setattr(routes, "_route", wrong_pin)
        reply = bad(await fetcher.fetch(Request(server.url(host="public.test"))))
        assert reply.kind == "address_refused"
        assert server.connections == 0

    play({"/": ok()}, scenario, STRICT)


def test_exactly_the_seed_that_was_typed_is_allowed():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        guard = Guard(allowed=frozenset({("127.0.0.1", server.port)}))
        strict = HttpFetcher(replace(OPTIONS, guard=guard))
        try:
            assert good(await strict.fetch(Request(server.url()))).body == b"hello"
            for url in (server.url(host="localhost"), "http://127.0.0.1:1/", "http://127.0.0.2/"):
                assert bad(await strict.fetch(Request(url))).kind == "address_refused"
        finally:
            await strict.close()

    play({"/": ok()}, scenario)


@pytest.mark.parametrize("port", [22, 25, 6379])
def test_u16_ports_of_other_services(port, monkeypatch):
    names({"public.test": ["8.8.8.8"]}, monkeypatch)
    refused(lambda _server: [f"http://public.test:{port}/"])


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x/", "data:,x", "no url", "", "http://h:65536/"],
)
def test_s1_other_schemes_are_unsupported(url):
    async def scenario(fetcher: HttpFetcher, _server: Server) -> None:
        assert bad(await fetcher.fetch(Request(url))).kind == "unsupported"

    play({}, scenario)


def test_n17_a_name_that_does_not_exist(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        names({}, monkeypatch)
        for host in ("nowhere.test", "x" * 70 + ".test"):
            assert bad(await fetcher.fetch(Request(server.url(host=host)))).kind == "dns"

    play({}, scenario)


def test_n17_a_thousand_addresses(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        many = ["127.0.0.1"] + [f"127.0.{number // 250}.{number % 250 + 2}" for number in range(1000)]
        names({"many.test": many}, monkeypatch)
        assert good(await fetcher.fetch(Request(server.url(host="many.test")))).body == b"hello"

    play({"/": ok()}, scenario)


def test_n17_a_slow_name_server_is_waited_for_by_its_own_names_only(monkeypatch):
    released = threading.Event()
    asked: list[str] = []

    def getaddrinfo(host: str, *_args: object, **_more: object) -> list[object]:
        asked.append(host)
        if host == "slow.test":
            released.wait(5)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        slow = [asyncio.create_task(fetcher.fetch(Request(server.url(host="slow.test")))) for _ in range(10)]
        await asyncio.sleep(0)
        assert good(await fetcher.fetch(Request(server.url(host="quick.test")))).body == b"hello"
        for reply in await asyncio.gather(*slow):
            assert (bad(reply).kind, bad(reply).message) == ("timeout", "the name was not looked up within 0.3 s")
        assert asked.count("slow.test") == 1
        released.set()

    play({"/": ok()}, scenario, replace(OPTIONS, connect_timeout_seconds=0.3))


def test_n17_the_time_for_looking_a_name_up_is_a_part_of_the_total(monkeypatch):
    seconds_for_the_name = 2.0

    def getaddrinfo(*_args: object, **_more: object) -> list[object]:
        time.sleep(seconds_for_the_name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        began = time.monotonic()
        reply = bad(await fetcher.fetch(Request(server.url(host="slow.test"), (), LIMIT, 2.5)))
        assert (reply.kind, reply.message) == ("timeout", "no complete answer within 2.5 s in total")
        assert reply.seconds >= 2.4
        assert time.monotonic() - began < seconds_for_the_name + 2.5, "half a second is left for the rest"

    play({"/": send_for_ever(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.05)}, scenario)


def test_names_are_asked_for_again_after_a_while_and_forgotten_when_there_are_many(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        hosts = [f"host{number}.test" for number in range(5)]
        asked = names({host: ["127.0.0.1"] for host in hosts}, monkeypatch)
        monkeypatch.setattr(routes, "_MAX_NAMES", 3)
        for host in hosts + hosts[2:]:
            good(await fetcher.fetch(Request(server.url(host=host))))
        assert asked == hosts
        good(await fetcher.fetch(Request(server.url(host=hosts[0]))))
        assert asked == [*hosts, hosts[0]]
        monkeypatch.setattr(routes, "NAME_SECONDS", 0.0)
        for _ in range(2):
            good(await fetcher.fetch(Request(server.url(host=hosts[1]))))
        assert asked == [*hosts, *hosts[:2], hosts[1]]

    play({"/": ok()}, scenario)


def test_n18_an_address_family_without_a_listener_is_passed_over(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        names({"both.test": ["::1", "127.0.0.1"]}, monkeypatch)
        reply = good(await fetcher.fetch(Request(server.url(host="both.test"))))
        assert reply.seconds < 2

    play({"/": ok()}, scenario)


def test_n18_a_machine_without_ipv6_gets_along(monkeypatch):
    class OnlyIPv4(socket.socket):
        def __init__(self, family: int = -1, *more: int) -> None:
            if family == socket.AF_INET6:
                raise OSError("Address family not supported by protocol")
            super().__init__(family, *more)

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        monkeypatch.setattr(socket, "socket", OnlyIPv4)
        assert good(await fetcher.fetch(Request(server.url(host="localhost")))).body == b"hello"

    play({"/": ok()}, scenario)


# Proxies


def test_a_proxy_gets_the_request_and_looks_the_name_up(monkeypatch):
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        asked = names({}, monkeypatch)
        guard = Guard(allowed=frozenset({("typed.test", 80)}))
        behind = HttpFetcher(replace(OPTIONS, guard=guard, proxy=f"127.0.0.1:{server.port}"))
        try:
            assert good(await behind.fetch(Request("http://far.test/page"))).body == b"from afar"
            for url in ("http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/"):
                assert bad(await behind.fetch(Request(url))).kind == "address_refused"
        finally:
            await behind.close()
        assert [request.split(b" ")[1] for request in server.requests] == [b"http://far.test/page"]
        assert asked == []

    play({"http://far.test/page": ok(b"from afar")}, scenario)


def test_a_tunnel_through_a_proxy_leaves_no_trace_in_the_answer(certificate):
    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": ok(b"secret")}, tls_server(certificate)) as origin:

            async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
                inner, outer = await asyncio.open_connection("127.0.0.1", origin.port)
                try:
                    await asyncio.gather(pump(reader, outer), pump(inner, writer))
                finally:
                    outer.transport.abort()

            async with listening(relay) as port:
                options = replace(OPTIONS, proxy=f"http://127.0.0.1:{port}", ca_file=str(certificate))
                fetcher = HttpFetcher(options)
                reply = good(await fetcher.fetch(Request(f"https://localhost:{origin.port}/")))
                await fetcher.close()
            assert (reply.body, "x-proxy" in reply.headers) == (b"secret", False)
            assert b"established" not in reply.head

    uvloop.run(run())


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


# Turns, cancelling and closing


def test_no_more_connections_than_allowed():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        requests = [Request(server.url(), (), LIMIT, 1.0) for _ in range(40)]
        for reply in await asyncio.gather(*map(fetcher.fetch, requests)):
            good(reply)
        assert server.most_open <= 4

    play({"/": send(message(b"x"), pause=0.02)}, scenario, replace(OPTIONS, max_connections=4))


def test_waiting_for_a_turn_is_no_time_of_the_server():
    """It would look slow, and be asked less."""
    released = asyncio.Event()

    async def hold(_request: bytes, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.write(message(b"at last"))

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        held = asyncio.create_task(fetcher.fetch(Request(server.url("/held"))))
        await until(partial(server.has_seen, "/held"))
        waiting = asyncio.create_task(fetcher.fetch(Request(server.url("/fine"))))
        await asyncio.sleep(1)
        released.set()
        assert good(await held).seconds >= 1
        assert good(await waiting).seconds < 1

    play({"/held": hold, "/fine": ok()}, scenario, replace(OPTIONS, max_connections=1))


def test_many_at_once_do_not_mix_up():
    routes = {f"/{number}": ok(b"%d" % number * (number + 1)) for number in range(200)}

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        replies = await asyncio.gather(*(fetcher.fetch(Request(server.url(path))) for path in routes))
        assert [good(reply).body for reply in replies] == [b"%d" % n * (n + 1) for n in range(200)]

    play(routes, scenario)


def test_cancelling_aborts_the_transfer_and_the_fetcher_goes_on():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        for path in ("/endless", "/silent"):
            task = asyncio.create_task(fetcher.fetch(Request(server.url(path))))
            await until(partial(server.has_seen, path))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert good(await fetcher.fetch(Request(server.url("/fine")))).body == b"hello"
            if path == "/endless":
                await until(lambda: server.open == 1)

    endless = send_for_ever(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, pause=0.01)
    play({"/silent": silence(), "/endless": endless, "/fine": ok()}, scenario)


def test_cancelling_while_a_name_is_looked_up_or_a_turn_is_waited_for(monkeypatch):
    released = threading.Event()

    def getaddrinfo(*_args: object, **_more: object) -> list[object]:
        released.wait(5)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        tasks = [asyncio.create_task(fetcher.fetch(Request(server.url(host="slow.test")))) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in tasks[:2]:
            task.cancel()
        released.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[:2]] == [asyncio.CancelledError] * 2
        assert isinstance(outcomes[2], Response)

    play({"/": ok()}, scenario, replace(OPTIONS, max_connections=1))


def test_closing_aborts_what_is_under_way_and_what_waits(monkeypatch):
    released = threading.Event()

    def getaddrinfo(*_args: object, **_more: object) -> list[object]:
        released.wait(5)
        return []

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        urls = [server.url()] * 5 + [server.url(host="slow.test")] + [server.url()] * 3
        tasks = [asyncio.create_task(fetcher.fetch(Request(url))) for url in urls]
        await until(lambda: len(server.requests) == 5)
        await fetcher.close()
        released.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
        await fetcher.close()

    play({"/": silence()}, scenario, replace(OPTIONS, max_connections=6))


# Room for large answers

LARGE = 3_000_000


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_z4_large_answers_wait_for_room_and_small_ones_pass(coding):
    """What waits loses no time: its own limit is for the server."""
    body, headers = (gzip.compress(b"x" * LARGE), ["Content-Encoding: gzip"]) if coding else (b"x" * LARGE, [])

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        finished: list[str] = []
        go = [asyncio.Event() for _ in range(3)]

        async def visit(number: int) -> None:
            reply = good(await fetcher.fetch(Request(server.url(f"/{number}"), (), LARGE, 1.0)))
            assert reply.body == b"x" * LARGE
            assert reply.seconds < 1
            finished.append(str(number))
            await go[number].wait()

        async def small() -> None:
            good(await fetcher.fetch(Request(server.url("/small"), (), LARGE, 1.0)))
            finished.append("small")

        tasks = [asyncio.create_task(visit(number)) for number in range(3)]
        await until(lambda: len(finished) == 1)
        await small()
        await asyncio.sleep(1.5)
        assert finished[1:] == ["small"], "as long as the first is being read, no other large one comes in"
        for _ in range(3):
            go[int(next(name for name in reversed(finished) if name != "small"))].set()
            count = len(finished)
            await until(lambda count=count: len(finished) > count or all(one.is_set() for one in go))
        await asyncio.gather(*tasks)
        assert sorted(finished) == ["0", "1", "2", "small"]

    routes = {f"/{number}": ok(body, *headers) for number in range(3)}
    play({**routes, "/small": ok()}, scenario, replace(OPTIONS, room=Room(LARGE)))


def test_z4_after_it_waited_for_room_an_answer_still_has_its_limit_of_time():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        first = asyncio.create_task(asyncio.sleep(0.5))
        assert fetcher._options.room.take(first, LARGE, lambda: None)
        reply = bad(await fetcher.fetch(Request(server.url("/stuck"), (), LARGE, 1.0)))
        assert (reply.kind, reply.message) == ("timeout", "no complete answer within 1 s in total")
        assert 0.9 < reply.seconds < 4
        assert good(await fetcher.fetch(Request(server.url("/fine"), (), LARGE, 1.0))).body == b"fine"

    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE
    routes = {"/stuck": silence(head + b"x" * (LARGE // 2)), "/fine": ok(b"fine")}
    play(routes, scenario, replace(OPTIONS, room=Room(LARGE)))


def test_z4_what_an_answer_took_before_it_waited_for_room_counts():
    """Of a second and a half one is over when it begins to wait, and the rest of it comes a second after that."""

    async def late(_: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1.0)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE + b"x" * (LARGE // 2))
        await asyncio.sleep(1.2)
        writer.write(b"x" * (LARGE - LARGE // 2))

    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        first = asyncio.create_task(asyncio.sleep(1.2))
        assert fetcher._options.room.take(first, LARGE, lambda: None)
        reply = bad(await fetcher.fetch(Request(server.url("/"), (), LARGE, 1.5)))
        assert (reply.kind, reply.message) == ("timeout", "no complete answer within 1.5 s in total")
        assert first.done(), "it had room in the end"

    play({"/": late}, scenario, replace(OPTIONS, room=Room(LARGE)))


def test_z4_who_is_cancelled_while_waiting_for_room_leaves_no_trace():
    async def scenario(fetcher: HttpFetcher, server: Server) -> None:
        first = asyncio.create_task(asyncio.sleep(60))
        room = fetcher._options.room
        assert room.take(first, LARGE, lambda: None)
        for path in ("/plain", "/packed"):
            waits = asyncio.create_task(fetcher.fetch(Request(server.url(path), (), LARGE, 5.0)))
            await until(lambda: len(room._waiting) == 1)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            await until(lambda: not room._waiting)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        for path in ("/plain", "/packed"):
            assert len(good(await fetcher.fetch(Request(server.url(path), (), LARGE, 5.0))).body) == LARGE

    routes = {"/plain": ok(b"x" * LARGE), "/packed": ok(gzip.compress(b"x" * LARGE), "Content-Encoding: gzip")}
    play(routes, scenario, replace(OPTIONS, room=Room(LARGE)))
