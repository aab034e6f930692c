"""What it costs to read a page without a crawl, part by part: CPU per page, and as a multiple of parsing alone.

The pages are those of the PostgreSQL manual (Debian package postgresql-doc-15). Rounds alternate, and the best of each
is told: whatever else the machine does can only make a round slower.

    python bench/read.py [--pages 300] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import turbohtml

from inchworm import read

SITE = Path("/usr/share/doc/postgresql-doc-15/html")
TYPE = "text/html"
WAYS: dict[str, Callable[[bytes, str], object]] = {
    "parsing alone": lambda body, _: turbohtml.parse(body, detect_encoding=True),
    "text": lambda body, url: read(body, url, TYPE).text,
    "markdown": lambda body, url: read(body, url, TYPE).markdown,
    "html": lambda body, url: read(body, url, TYPE).html,
    "links": lambda body, url: read(body, url, TYPE).links,
    "data": lambda body, url: read(body, url, TYPE).data,
}


def cost(way: Callable[[bytes, str], object], pages: list[tuple[bytes, str]]) -> float:
    started = time.process_time()
    for body, url in pages:
        way(body, url)
    return 1000 * (time.process_time() - started) / len(pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    files = sorted(SITE.glob("*.html"))[: arguments.pages]
    pages = [(file.read_bytes(), f"https://example.org/{file.name}") for file in files]
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(arguments.rounds):
        for name, way in WAYS.items():
            best[name] = min(best[name], cost(way, pages))
    size = sum(len(body) for body, _ in pages) / len(pages) / 1000
    print(f"{len(pages)} pages of {size:.1f} KB")
    for name, ms in best.items():
        print(f"{name:<14} {ms:6.3f} ms/page {ms / best['parsing alone']:5.1f}x")


if __name__ == "__main__":
    main()
