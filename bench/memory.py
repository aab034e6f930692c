"""A long crawl over HTTP: is memory flat, and does the event loop stay lively while it commits?

Generates a site of pages with 40 links each, crawls it in this process, and prints resident memory as the crawl goes
and how late the event loop was: a heartbeat every 10 ms is due then, and every lateness counts.

    python bench/memory.py [--pages 30000] [--workers 16]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from inchworm.app import App, Hooks, Start
from inchworm.model import LiveProgress

LINKS = 40
BEAT_SECONDS = 0.01
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor")


def page(number: int, pages: int) -> bytes:
    """A page of about 9 KB, the same each time it is asked for; every page can be reached from the first."""
    seed = hashlib.sha256(str(number).encode()).digest() * 2
    targets = [number * 3 + step for step in (1, 2, 3) if number * 3 + step < pages]
    targets += [int.from_bytes(seed[step : step + 4]) % pages for step in range(LINKS - len(targets))]
    words = " ".join(WORDS[byte % 8] for byte in seed * 12)
    links = "".join(f'<li><a href="/section/page-{target}.html">Page {target}</a></li>' for target in targets)
    text = f"<title>Page {number}</title><main><h1>{number}</h1><p>{words}</p></main><ul>{links}</ul>"
    return f"<!doctype html>{text}".encode()


async def serve(pages: int, make: Callable[[int, int], bytes] = page) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                number = int(head.split(b" ", 2)[1].partition(b"-")[2].removesuffix(b".html") or 0)
                body = make(number, pages)
                writer.write(HEAD % len(body) + body)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Watcher:
    """Notes memory at round numbers of pages, and how late the loop is."""

    def __init__(self) -> None:
        self.memory: dict[int, float] = {}
        self.late: list[float] = []
        self._next = 0

    def progress(self, progress: LiveProgress) -> None:
        done = progress.counters.pages
        if done >= self._next:
            self.memory[done] = resident_mb()
            print(f"{done:>8,} pages {progress.counters.known:>8,} known {self.memory[done]:>7.1f} MB", flush=True)
            self._next = done + 2_000

    async def listen(self) -> None:
        while True:
            due = time.perf_counter() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self.late.append(time.perf_counter() - due)


async def crawl(port: int, workers: int, folder: Path) -> Watcher:
    watcher = Watcher()
    listening = asyncio.create_task(watcher.listen())
    settings = {"delay": 0, "workers": workers, "robots": False, "sitemap": False}
    app = App(folder)
    start = Start((f"http://127.0.0.1:{port}/section/page-0.html",), "", settings)
    await app.sessions.work(app.plan.crawl(start), Hooks(progress=watcher.progress))
    app.close()
    listening.cancel()
    return watcher


def report(watcher: Watcher) -> None:
    late = sorted(watcher.late)
    settled = [memory for done, memory in watcher.memory.items() if done >= 2_000] or list(watcher.memory.values())
    print(f"memory after the first 2,000 pages: {settled[0]:.1f} MB, at the end {settled[-1]:.1f} MB")
    shares = {"median": 0.5, "99 %": 0.99, "99.9 %": 0.999}
    told = ", ".join(f"{name} {1000 * late[int(len(late) * share)]:.1f} ms" for name, share in shares.items())
    print(f"event loop late by: {told}, worst {1000 * late[-1]:.1f} ms ({len(late):,} beats)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=30_000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--serve", action="store_true", help="only serve the site, and print the port")
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(serve(arguments.pages))
        return
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", "--pages", str(arguments.pages)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        with tempfile.TemporaryDirectory(prefix="inchworm-memory-") as folder:
            port = int(server.stdout.readline())
            report(uvloop.run(crawl(port, arguments.workers, Path(folder))))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
