"""Bombs: a few bytes that become gigabytes, and bodies without end. One real process crawls them all.

Each is cut off under its name, and the memory of the process stays near what a harmless crawl takes.
"""

from __future__ import annotations

import gzip
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest
from tests.fetch.server import Handler, Server, message, ok, send, send_for_ever
from tests.flow.crawling import PATIENCE, Home, page
from tests.flow.hostile import HTML, archived, html, serving, sound

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_BODY = 4_000_000
WORKERS = 2
GIGABYTE = 1_000_000_000
STEP = 16_000_000


def room(max_body: int) -> int:
    """Bytes by which a crawl may grow, whatever the web does."""
    return max_body * WORKERS + 64 * 1024 * 1024


def inflated(wbits: int, gigabytes: int, start: bytes = b"", filling: bytes = b"\0") -> bytes:
    """Gigabytes of deflate: the same flushed piece over and over, for it refers to nothing before it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(filling * STEP) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + piece * (gigabytes * GIGABYTE // STEP)


def brotli_bomb() -> bytes:
    packer = brotli.Compressor(quality=1)
    first = packer.process(bytes(STEP)) + packer.flush()
    second = packer.process(bytes(STEP)) + packer.flush()
    return bytes(first + second * (10 * GIGABYTE // STEP))


def zstd_bomb() -> bytes:
    return zstd.compress(bytes(STEP)) * (10 * GIGABYTE // STEP)


def huge_window() -> bytes:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    return bytes(packer.compress(page("window").encode()) + packer.flush())


def coded(coding: str, payload: bytes) -> Handler:
    return ok(payload, HTML, f"Content-Encoding: {coding}")


def one_chunk(coding: str, payload: bytes) -> Handler:
    head = f"HTTP/1.1 200 OK\r\n{HTML}\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    return send(head.encode() + b"%x\r\n" % len(payload) + payload + b"\r\n0\r\n\r\n")


def bombs() -> dict[str, Handler]:
    gzip_bomb, deflate_bomb = inflated(31, 2), inflated(15, 2)
    ok_head = f"HTTP/1.1 200 OK\r\n{HTML}\r\n\r\n".encode()
    moved = message(gzip_bomb, HTML, "Content-Encoding: gzip", "Location: /target", status="302 Found")
    return {
        "/gzip": coded("gzip", gzip_bomb),
        "/gzip-gzip": coded("gzip, gzip", gzip.compress(inflated(31, 10))),
        "/deflate": coded("deflate", deflate_bomb),
        "/br": coded("br", brotli_bomb()),
        "/zstd": coded("zstd", zstd_bomb()),
        "/moved": send(moved),
        "/window": coded("zstd", huge_window()),
        "/gzip-chunk": one_chunk("gzip", gzip_bomb),
        "/br-chunk": one_chunk("br", brotli_bomb()),
        "/endless": send_for_ever(ok_head, b"x" * 65536),
    }


def web() -> dict[str, Handler]:
    bad = bombs()
    start = b"<urlset><url><loc>/only-in-the-map</loc></url>"
    return {
        "/sitemap.xml.gz": ok(inflated(31, 10, start, b" "), "Content-Type: application/gzip"),
        "/": html("home", *bad, "/last"),
        **bad,
        "/target": html("target"),
        "/last": html("last"),
        "/only-in-the-map": html("map"),
    }


def peak(home: Home, *arguments: str) -> int:
    """Run a command to its end; the most memory that it, or a process it started, ever held, in bytes."""
    most = 0
    with home.running(*arguments) as process:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:
            assert time.monotonic() < deadline, "it hangs"
            most = max(most, *map(held, family(process.pid)))
            time.sleep(0.01)
        out, err = process.communicate()
    assert process.returncode == 0, (out, err)
    return most


def family(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(int(child) for task in tasks for child in read(task).split())]


def held(pid: int) -> int:
    """The system keeps the maximum, so no moment is missed."""
    lines = (line.split() for line in read(Path(f"/proc/{pid}/status")).splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "VmHWM:"), 0)


def read(path: Path) -> str:
    """What a file of a process says; nothing when the process or thread is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def options(max_body: int) -> tuple[str, ...]:
    return ("--delay", "0", "--workers", str(WORKERS), "--max-body", str(max_body), "--max-retries", "0")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a harmless crawl takes."""
    home = Home(tmp_path_factory.mktemp("harmless"))
    with serving({"/": html("home")}) as server:
        most = peak(home, "crawl", server.url("/"), *options(MAX_BODY))
    home.app.close()
    return most


@dataclass(frozen=True)
class Crawled:
    home: Home
    server: Server
    grown: int


@pytest.fixture(scope="module")
def crawled(usual: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    home = Home(tmp_path_factory.mktemp("bombed"))
    with serving(web()) as server:
        assert isinstance(server.routes, dict)
        server.routes["/robots.txt"] = ok(f"Sitemap: {server.url('/sitemap.xml.gz')}".encode())
        grown = peak(home, "crawl", server.url("/"), *options(MAX_BODY)) - usual
        yield Crawled(home, server, grown)
    home.app.close()


ENDS = {
    "B1 gzip": ("/gzip", "too_large"),
    "B1 gzip in gzip": ("/gzip-gzip", "too_large"),
    "B1 deflate": ("/deflate", "too_large"),
    "B1 br": ("/br", "too_large"),
    "B1 zstd": ("/zstd", "too_large"),
    "B2 in a redirect": ("/moved", "redirect"),
    "B2 where the redirect leads": ("/target", "page"),
    "B3 in a sitemap, what came before it": ("/only-in-the-map", "page"),
    "B4 zstd with a huge window": ("/window", "decode_error"),
    "B5 gzip in one chunk": ("/gzip-chunk", "too_large"),
    "B5 br in one chunk": ("/br-chunk", "too_large"),
    "N5 no end": ("/endless", "too_large"),
    "the last page": ("/last", "page"),
}


@pytest.mark.parametrize("name", ENDS)
def test_it_is_cut_off_under_its_name(crawled: Crawled, name: str) -> None:
    path, end = ENDS[name]
    assert dict(crawled.home.outcomes())[path] == end
    if end == "too_large":
        assert "failed (too_large)" in crawled.home.ask("why", crawled.home.word, crawled.server.url(path))["why"]


def test_memory_stays_bounded_b1_b2_b3_b4_b5_n5(crawled: Crawled) -> None:
    assert crawled.grown < room(MAX_BODY)


def test_memory_stays_bounded_when_there_are_many_b1_m1(home: Home, usual: int) -> None:
    """The largest bodies that are let in, one after the other, faster than they can be committed."""
    paths = [f"/{number}" for number in range(12)]
    bomb = coded("gzip", inflated(31, 10))
    with serving({"/": html("home", *paths), **dict.fromkeys(paths, bomb)}) as server:
        grown = peak(home, "crawl", server.url("/"), "--no-sitemap", *options(12_000_000)) - usual
    assert home.status()["failed"] == len(paths)
    assert grown < room(12_000_000)


def test_memory_stays_bounded_when_many_sitemaps_come_at_once_z4(home: Home, usual: int) -> None:
    """Each may have 50 MB, and one after the other is read: what waits meanwhile must not be unpacked yet."""
    count, start = 12, b"<urlset><url><loc>/only-in-the-map</loc></url>"
    bomb = coded("gzip", inflated(31, 1, start, b" "))
    maps = [f"/map{number}.xml" for number in range(count)]
    index = "".join(f"<sitemap><loc>{path}</loc></sitemap>" for path in maps)
    web = {"/": html("home"), "/only-in-the-map": html("map"), "/sitemap.xml": ok(f"<sitemapindex>{index}".encode())}
    with serving({**web, **dict.fromkeys(maps, bomb)}) as server:
        # The last word counts: as many workers as there are sitemaps.
        arguments = ("crawl", server.url("/"), *options(MAX_BODY), "--workers", str(count))
        grown = peak(home, *arguments) - usual
    assert "/only-in-the-map" in home.paths()
    assert grown < MAX_BODY * count + 64 * 1024 * 1024


def test_the_run_is_complete_and_its_archive_is_sound(crawled: Crawled) -> None:
    status = crawled.home.status()
    assert (status["run_state"], status["pages"], status["failed"], status["pending"]) == ("completed", 4, 9, 0)
    sound(crawled.home)


def test_n5_the_archive_holds_no_more_than_the_limit(crawled: Crawled) -> None:
    ((body, cut),) = archived(crawled.home, crawled.server.url("/endless"))
    assert (len(body), cut) == (MAX_BODY, "length")


def test_b2_of_a_redirect_a_little_is_kept(crawled: Crawled) -> None:
    ((body, cut),) = archived(crawled.home, crawled.server.url("/moved"))
    assert (len(body), cut) == (65_536, "length")
