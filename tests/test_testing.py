"""The helpers that other tests, ours and our users', stand on."""

from __future__ import annotations

import gc
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from inchworm.ports import Clock
from inchworm.rules.page.parse import read
from inchworm.rules.text.content import text_hash
from inchworm.testing import Answer, Hit, ManualClock, Page, Pages, Served, Site, linked_site, redirect


def ask(
    served: Served, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=5)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def exchange(served: Served, request: bytes) -> bytes:
    """Everything a raw request brings, until the server closes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_pages_of_every_kind() -> None:
    pages: Pages = {
        "/": "<p>ü</p>",
        "/empty": "",
        "/bytes": b"\x00\xff",
        "/robots.txt": "User-agent: *",
        "/page": Page("gone", status=410, headers={"X-Note": "1", "content-type": "text/plain"}),
        "/r": redirect("/", 301),
        "/made": lambda hit: f"{hit.method} {hit.path} {hit.headers['x-in']}",
        "/wrong": lambda hit: hit.headers["x-missing"],
        "/q?a=1": "with query",
        "/q": "without",
        "/odd": Page(status=599),
    }
    with Site(pages).serve() as served:
        response, body = ask(served, "/")
        assert (response.status, body) == (200, "<p>ü</p>".encode())
        assert response.getheader("Content-Type") == "text/html; charset=utf-8"
        assert ask(served, "/empty")[1] == b""
        response, body = ask(served, "/bytes")
        assert (response.getheader("Content-Type"), body) == ("application/octet-stream", b"\x00\xff")
        assert ask(served, "/robots.txt")[0].getheader("Content-Type") == "text/plain; charset=utf-8"
        response, body = ask(served, "/page")
        assert (response.status, response.getheader("X-Note"), body) == (410, "1", b"gone")
        assert response.headers.get_all("Content-Type") == ["text/plain"]
        response, _ = ask(served, "/r")
        assert (response.status, response.getheader("Location")) == (301, "/")
        assert ask(served, "/made?x", headers={"X-In": "y"})[1] == b"GET /made?x y"
        response, body = ask(served, "/wrong")
        assert (response.status, body[:8]) == (500, b"KeyError")
        assert [ask(served, path)[1] for path in ("/q?a=1", "/q?a=2")] == [b"with query", b"without"]
        assert ask(served, "/odd")[0].status == 599
        assert ask(served, "/absent")[0].status == 404


def test_everything_else_can_be_one_page() -> None:
    with Site({"*": lambda hit: f"<a href='{hit.path}/x'>deeper</a>"}).serve() as served:
        assert ask(served, "/a/b")[1] == b"<a href='/a/b/x'>deeper</a>"


def test_the_log_tells_what_was_asked() -> None:
    heard: list[Hit] = []
    with Site({"/": "x"}).serve(on_hit=heard.append) as served:
        ask(served, "/?a=1", headers={"X-In": "y", "Host": "name.test"})
        ask(served, "/b", "HEAD")
        first, second = served.log
        assert (first.host, first.method, first.path, first.status) == ("name.test", "GET", "/?a=1", 200)
        assert first.headers["x-in"] == "y"
        assert (second.host, second.method, second.status) == (f"127.0.0.1:{served.port}", "HEAD", 404)
        assert first.time <= second.time
        assert served.paths() == ["/?a=1", "/b"]
        assert served.url("/b") == f"http://127.0.0.1:{served.port}/b"
    assert heard == [first, second]


def test_hosts_have_their_own_pages() -> None:
    with Site({"/": "default"}, hosts={"a.test": {"/": "a"}}).serve() as served:
        answers = [ask(served, "/", headers={"Host": host})[1] for host in ("a.test", "a.test:80", "b.test")]
        assert answers == [b"a", b"a", b"default"]


def test_a_connection_is_kept_and_requests_may_queue() -> None:
    with Site({"/": "x", "/slow": Page("slow", delay=0.05)}).serve() as served:
        connection = HTTPConnection("127.0.0.1", served.port, timeout=5)
        for path in ("/", "/slow", "/none", "/"):
            connection.request("GET", path)
            connection.getresponse().read()
            assert connection.sock
        connection.close()
        end = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
        answer = exchange(served, b"GET /slow HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n" + end)
        assert answer.count(b"HTTP/1.1") == 3
        assert answer.index(b"slow") < answer.index(b"not found") < answer.rindex(b"x")


def test_no_body_where_there_is_none() -> None:
    with Site({"/": "four", "/304": Page("no", status=304)}).serve() as served:
        response, body = ask(served, "/", "HEAD")
        assert (response.getheader("Content-Length"), body) == ("4", b"")
        assert exchange(served, b"GET /304 HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\n")


def test_whoever_tries_https_is_not_left_waiting() -> None:
    with (
        Site({"/": "home"}).serve() as served,
        socket.create_connection(("127.0.0.1", int(served.url("/").rsplit(":")[-1].strip("/")))) as client,
    ):
        client.settimeout(20)
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert client.recv(1) == b""


def test_answers_may_lie() -> None:
    pages = {
        "/short": Page("abc", headers={"Content-Length": "10"}),
        "/raw": Page(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
        "/gzip": Page("abc", gzip=True),
    }
    with Site(pages).serve() as served:
        answer = exchange(served, b"GET /short HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert answer.count(b"Content-Length") == 1
        assert answer.endswith(b"abc")
        assert exchange(served, b"GET /raw HTTP/1.1\r\n\r\n") == pages["/raw"].raw
        response, body = ask(served, "/gzip")
        assert (response.getheader("Content-Encoding"), gzip.decompress(body)) == ("gzip", b"abc")
        assert exchange(served, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 404")


def test_a_page_may_fail_before_it_works() -> None:
    answers: Iterator[Answer] = iter([Page(status=503), Page(status=503), "there"])
    with Site({"/": lambda hit: next(answers)}).serve() as served:
        assert [ask(served, "/")[0].status for _ in range(3)] == [503, 503, 200]
        assert [hit.status for hit in served.log] == [503, 503, 200]


def give_up(served: Served, path: str) -> None:
    with suppress(OSError):
        exchange(served, f"GET {path} HTTP/1.1\r\n\r\n".encode())


def test_delays_and_latency_hold_up_one_connection_only() -> None:
    with Site({"/": "x", "/slow": Page("x", delay=30)}, latency=(0.02, 0.03)).serve() as served:
        waiting = threading.Thread(target=give_up, args=(served, "/slow"))
        waiting.start()
        while not served.log:
            time.sleep(0.001)
        start = served.log[0].time
        ask(served, "/")
        ask(served, "/")
        assert 0.02 <= served.log[2].time - start < 5
    waiting.join(5)
    assert not waiting.is_alive()


def test_a_taken_port_is_an_error() -> None:
    with (
        Site({}).serve() as served,
        pytest.raises(OSError, match=str(served.port)),
        Site({}).serve(served.port),
    ):
        pass


# ---- the synthetic site


def reach(site: dict[str, str]) -> list[str]:
    """The paths of a site in the order in which a crawl from its root meets them."""
    found = ["/"]
    for path in found:
        for link in read(site[path].encode(), "text/html", f"http://h{path}").links:
            if (target := link.request_url.removeprefix("http://h")) not in found:
                found.append(target)
    return found


@pytest.mark.parametrize(("pages", "fan", "duplicates"), [(1, 5, 0), (2, 1, 1), (60, 3, 0), (60, 5, 70)])
def test_all_of_a_linked_site_can_be_reached(pages: int, fan: int, duplicates: int) -> None:
    site = linked_site(pages, fan, duplicates=duplicates)
    assert len(site) == pages + duplicates
    assert sorted(reach(site)) == sorted(site)
    assert linked_site(pages, fan, duplicates=duplicates) == site
    assert linked_site(pages, fan, seed=2, duplicates=duplicates) != site


def test_texts_differ_save_those_of_duplicates() -> None:
    site = linked_site(60, duplicates=7)
    readings = {path: read(page.encode(), "text/html", "http://h/") for path, page in site.items()}
    assert min(len(reading.text.split()) for reading in readings.values()) > 100
    hashes = {path: text_hash(reading.title, reading.text, b"") for path, reading in readings.items()}
    assert len(set(hashes.values())) == 60
    assert hashes["/dup/0"] == hashes["/"]
    assert hashes["/dup/6"] == hashes["/p6"]


# ---- the clock and the process


def test_the_clock_moves_when_told() -> None:
    clock: Clock
    clock = manual = ManualClock(1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    manual.advance(1.5)
    assert (clock.now_ms(), clock.monotonic()) == (2_500, 1.5)
    with pytest.raises(ValueError, match="back"):
        manual.advance(-1)


def test_as_a_process(tmp_path: Path) -> None:
    log = tmp_path / "hits"
    command = [
        sys.executable,
        "-m",
        "inchworm.testing",
        "--pages",
        "3",
        "--duplicates",
        "1",
        "--log",
        str(log),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*command, "--latency-ms", "1", "2"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        host = url.removeprefix("http://").removesuffix("/")
        for path in ("/", "/dup/0", "/none"):
            connection = HTTPConnection(host, timeout=5)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    assert [line[1:] for line in lines] == [
        [host, "/", "200"],
        [host, "/dup/0", "200"],
        [host, "/none", "404"],
    ]
    assert float(lines[0][0]) <= float(lines[1][0])


def test_nobody_who_comes_while_it_closes_is_left_behind() -> None:
    """Who is let in at the last moment is no connection yet, and has to be closed all the same: what is not shows as a
    warning in whatever comes next."""
    ports: list[int] = []
    is_over = threading.Event()

    def knock() -> None:
        while not is_over.is_set():
            with suppress(OSError, IndexError), socket.create_connection(("127.0.0.1", ports[-1]), timeout=5):
                pass

    knocking = [threading.Thread(target=knock) for _ in range(4)]
    for one in knocking:
        one.start()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(150):
            with Site({}).serve() as served:
                ports.append(served.port)
                time.sleep(0.002)
        is_over.set()
        for one in knocking:
            one.join()
        gc.collect()
    assert [str(one.message) for one in heard] == []
