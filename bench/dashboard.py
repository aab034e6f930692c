"""How long the pages of the dashboard take, over HTTP, of a crawl of a hundred thousand pages in three runs.

Prints, for each page, milliseconds (the first answer, then the median and the worst of several) and its size, and what
is beyond what we want. The record has no bodies, so there is nothing to search in.

    python bench/dashboard.py [--pages 100000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from record import address

TIMES = 7
MOST_MS, MOST_BYTES = 300, 200_000
INCHWORM = Path(sys.executable).with_name("inchworm")
HOSTS = 40

Ask = Callable[[str], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to make the home; a temporary one otherwise")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        record = Path(__file__).with_name("record.py")
        made = _run(sys.executable, record, folder, "--pages", options.pages, "--hosts", HOSTS)
        print(made.strip())
        print(f"{'':<24}{'first ms':>10}{'median':>8}{'worst':>8}{'KB':>7}")
        with serving(Path(folder)) as ask:
            for name, path in pages(made.partition(":")[0]):
                report(name, ask, path)


def pages(crawl_id: str) -> Iterator[tuple[str, str]]:
    crawl, url = f"/crawls/{crawl_id}", quote(address(1, HOSTS), safe="")
    yield from (("overview", "/"), ("crawls", "/crawls"), ("crawl", crawl), ("settings", f"{crawl}/settings"))
    yield from ((f"run {number}", f"{crawl}/runs/{number}") for number in range(3))
    yield from (("compare 0 and 1", f"{crawl}/compare?baseline=0&current=1"), ("compare 1 and 2", f"{crawl}/compare"))
    yield from (("compare 0 and 2", f"{crawl}/compare?baseline=0&current=2"), ("checkpoints", f"{crawl}/checkpoints"))
    yield from (("pages", f"{crawl}/pages"), ("pages that failed", f"{crawl}/pages?outcome=failed"))
    yield from (("pages that wait", f"{crawl}/pages?outcome=pending"), ("page", f"{crawl}/page?url={url}"))
    yield from (("part of a URL", f"{crawl}/pages?q=section-77"), ("tree", f"{crawl}/tree"))
    yield ("tree of a host", f"{crawl}/tree?at={quote('https://host-0.scale.test/manual/', safe='')}")
    yield from ((f"report: {kind}", f"{crawl}/reports?kind={kind}") for kind in ("broken-links", "redirects", "slow"))
    yield from (("schedule", f"{crawl}/schedule"), ("jobs", "/jobs"), ("day", "/jobs/day"), ("health", "/status"))


def report(name: str, ask: Ask, path: str) -> None:
    taken: list[float] = []
    for _ in range(TIMES + 1):
        before = time.perf_counter()
        text = ask(path)
        taken.append((time.perf_counter() - before) * 1000)
    first, median, worst = taken[0], statistics.median(taken[1:]), max(taken[1:])
    size = len(text.encode())
    missed = "  missed" if max(first, median) > MOST_MS or size > MOST_BYTES else ""
    print(f"{name:<24}{first:>10.0f}{median:>8.0f}{worst:>8.0f}{size / 1000:>7.0f}{missed}", flush=True)


@contextmanager
def serving(home: Path) -> Iterator[Ask]:
    """A service on this home, and a way to ask it for pages."""
    environment, log = {**os.environ, "INCHWORM_HOME": str(home)}, home / "serve.log"
    with log.open("w") as out:
        made = subprocess.Popen([INCHWORM, "serve", "--port", "0"], env=environment, stdout=out, stderr=out)
    try:
        while not (found := re.search(r" at (http://\S+)/\n", log.read_text())):
            time.sleep(0.1)
        token = _run(INCHWORM, "token", "--read-only", env=environment).strip()

        def ask(path: str) -> str:
            request = urllib.request.Request(found[1] + path, headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                text: str = answer.read().decode()
                return text

        yield ask
    finally:
        made.terminate()
        made.wait()


def _run(*command: object, env: dict[str, str] | None = None) -> str:
    words = [str(one) for one in command]
    return subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
