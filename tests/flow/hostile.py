"""A bad web for whole crawls: servers that break HTTP, doors nobody may knock at, names that lie, and what to check."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.crash import checker
from tests.fetch import server as raw
from tests.fetch.server import Handler, Server, ok
from tests.flow.crawling import Home, page
from warcio.archiveiterator import ArchiveIterator

with warnings.catch_warnings(action="ignore"):  # it warns of its own old names when it is imported
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecordType

HTML = "Content-Type: text/html; charset=utf-8"
REST = ("/", "/one", "/two")
"""The good pages of a `site`."""


# Servers


class _Routes(dict[str, Handler]):
    def __missing__(self, path: str) -> Handler:
        return ok(b"not found", status="404 Not Found")


@contextmanager
def serving(routes: Mapping[str, Handler]) -> Iterator[Server]:
    """Serve handlers that may do anything to their connection, in a thread of its own; other paths are a 404."""
    started: Future[tuple[Server, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with raw.serving(_Routes(routes)) as server:
            started.set_result((server, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    server, loop, stop = started.result()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def html(name: str, *links: str, head: str = "") -> Handler:
    """A good page, on a connection that stays open."""
    return ok(page(name, *links, head=head).encode(), HTML)


def site(bad: Handler) -> dict[str, Handler]:
    """Good pages around one that is not."""
    return {"/": html("home", "/one", "/bad", "/two"), "/one": html("one"), "/bad": bad, "/two": html("two")}


def paths_asked(server: Server) -> list[str]:
    return [request.split(b" ", 2)[1].decode() for request in list(server.requests)]


class Door:
    """A port of this machine that only counts who knocks, on IPv4 and, where there is one, on IPv6."""

    def __init__(self) -> None:
        self.knocks = 0
        first = socket.create_server(("127.0.0.1", 0))
        self.port: int = first.getsockname()[1]
        self._sockets = [first]
        with suppress(OSError):  # a machine without IPv6: nobody can come that way either
            self._sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))

    def count(self) -> int:
        """How many have knocked. The system takes connections by itself, so they can be counted afterwards."""
        for listener in self._sockets:
            listener.setblocking(False)
            while True:
                try:
                    listener.accept()[0].close()
                except BlockingIOError:
                    break
                self.knocks += 1
        return self.knocks

    def close(self) -> None:
        for listener in self._sockets:
            listener.close()


@contextmanager
def door() -> Iterator[Door]:
    made = Door()
    try:
        yield made
    finally:
        made.close()


def names(table: Mapping[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the system know only these names; the list of what it was asked."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: object, *_args: object, **_more: object) -> list[object]:
        asked.append(host)
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (families[ipaddress.ip_address(address).version], socket.SOCK_STREAM, 6, "", (address, 0))
            for address in table[host]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


# What to check


def sound(home: Home) -> None:
    """The newest crawl's store holds together, and its archive passes two foreign readers, digest by digest."""
    db = checker.copy_store(home.app.workspace.place(home.app.workspace.find(home.word)).folder, home.folder / "copy")
    assert db is not None
    with closing(db):
        problems = checker.store_problems(db)
    assert not problems, problems
    for run in range(home.status()["run"] + 1):
        _check_archive(home.export("warc", run))


def _check_archive(data: bytes) -> None:
    seen = 0
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        # Not `content_stream`: bodies that lie about their coding are archived as they came.
        record.raw_stream.read()
        seen += 1
    records = FastIterator(io.BytesIO(data), record_types=WarcRecordType.any_type, parse_http=False)
    for record in records:
        assert record.record_type == WarcRecordType.warcinfo or record.verify_block_digest()
        seen -= 1
    assert seen == 0, "both find the same number of records"


def again(home: Home, seed: str, **settings: Any) -> None:
    """A second run over the same web comes to the same, URL by URL."""
    before = ends(home)
    home.crawl(seed, **settings)
    assert home.status()["run"] == 1
    assert ends(home) == before
    sound(home)


def ends(home: Home) -> dict[str, tuple[str, str | None]]:
    """What every URL that was asked for came to: outcome or kind of failure, and its content."""
    return {visit["url"]: (visit["failure"] or visit["outcome"], visit["content_hash"]) for visit in home.record()}


def failure(home: Home, url: str) -> dict[str, Any]:
    """The one failed URL of a crawl, as all that look at it are told."""
    (listed,) = home.ask("failed", home.word)["failed"]
    shown = home.ask("show", home.word, url)
    assert listed["url"] == shown["url"]
    assert shown["visits"][-1]["failure"] == listed["failure"]
    assert f"failed ({listed['failure']})" in home.ask("why", home.word, url)["why"]
    assert home.ask("status", home.word)["failed"] == 1
    assert listed["text_hash"] is None, "nothing of it is taken for a page"
    found: dict[str, Any] = listed
    return found


def archived(home: Home, url: str) -> list[tuple[bytes, str | None]]:
    """What the archive holds of a URL: the bytes as they came, and why they end where they do."""
    return [
        (record.raw_stream.read(), record.rec_headers.get("WARC-Truncated"))
        for record in ArchiveIterator(io.BytesIO(home.export("warc")))
        if record.rec_headers.get("WARC-Target-URI") == url and record.rec_type == "response"
    ]


def secret_file(folder: Path) -> tuple[str, str]:
    """A file that no crawl may read: its file: URL, and the word in it that must never turn up."""
    path = folder / "secret.txt"
    path.write_text("SENTINEL-7d1c")
    return path.as_uri(), "SENTINEL-7d1c"


def knows(home: Home, word: str) -> bool:
    """Whether this word turned up anywhere in what a crawl keeps."""
    records = ArchiveIterator(io.BytesIO(home.export("warc")))
    kept = b"".join(record.content_stream().read() for record in records if record.rec_type == "response")
    rows = home.export("jsonl")
    for path in home.folder.rglob("crawl.db*"):
        rows += path.read_bytes()
    return word.encode() in kept or word.encode() in rows
