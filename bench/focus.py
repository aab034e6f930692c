"""How many fetches it takes to get 90 % (and half) of the pages that match a query, best first and in breadth order.

The PostgreSQL manual behind nginx on loopback, and ten queries that were fixed before anything was measured. A page
matches when its main text has all words of the query, and words are what `inchworm search` takes for words. The second
group of columns counts words inside of others as well: `row` is in `browser`. Every query is crawled with 16 workers
and with one, and the two orders must be the same.

    python bench/focus.py [QUERY ...]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from peers import SITE, served

from inchworm.rules.page import parse

QUERIES = (
    "logical replication",
    "partial index",
    "row security policy",
    "full text search",
    "window function",
    "point-in-time recovery",
    "foreign data wrapper",
    "autovacuum threshold",
    "json path",
    "connection pooling",
)
PARTS = (0.9, 0.5)
WORD = re.compile(r"[^\W_]+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=QUERIES)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inchworm-focus-"))
    try:
        with served(folder) as url:
            compare(folder, url, arguments.queries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(folder: Path, url: str, queries: list[str]) -> None:
    breadth = crawl(folder, url, "breadth")
    texts = {page: text_of(page) for page in breadth}
    print(f"{'':<24} {'as words':>31}   {'anywhere':>31}")
    head = f"{'pages':>6} {'breadth':>8} {'best':>5} {'90 %':>5} {'half':>5}"
    print(f"{'query':<24} {head} | {head}")
    ratios: list[list[float]] = []
    for number, query in enumerate(queries):
        best = crawl(folder, url, f"best {number}", "--query", query)
        if crawl(folder, url, f"alone {number}", "--query", query, "--workers", "1") != best:
            raise SystemExit(f"{query}: another order with one worker")
        found = [matching(texts, query, whole) for whole in (True, False)]
        rows = [row(pages, breadth, best) for pages in found]
        print(f"{query:<24} {' | '.join(text for text, _ in rows)}")
        ratios.append([ratio for _, values in rows for ratio in values])
    print(f"{'median':<24} " + " | ".join(f"{'':>21} {a:>5.2f} {b:>5.2f}" for a, b in pairs(ratios)))


def crawl(folder: Path, url: str, name: str, *more: str) -> list[str]:
    """The pages of the site in the order in which a crawl asked for them."""
    environment = {**os.environ, "INCHWORM_HOME": str(folder / "home")}
    inchworm = [sys.executable, "-m", "inchworm"]
    command = [*inchworm, "crawl", url, "--name", name, "--delay", "0", "--workers", "16", "--json", *more]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    listed = subprocess.run(
        [*inchworm, "export", name, "--format", "urls"], env=environment, check=True, capture_output=True
    )
    return [one for one in listed.stdout.decode().splitlines() if one.endswith(".html")]


def text_of(url: str) -> str:
    body = (SITE / urlsplit(url).path.lstrip("/")).read_bytes()
    return parse.read(body, "text/html", url, parse.How(text=True)).text.lower()


def matching(texts: dict[str, str], query: str, whole: bool) -> set[str]:
    if not whole:
        return {url for url, text in texts.items() if all(word in text for word in query.lower().split())}
    wanted = set(WORD.findall(query.lower()))
    return {url for url, text in texts.items() if wanted.issubset(WORD.findall(text))}


def row(pages: set[str], breadth: list[str], best: list[str]) -> tuple[str, list[float]]:
    counts = [(fetches(breadth, pages, part), fetches(best, pages, part)) for part in PARTS]
    values = [ours / theirs for theirs, ours in counts]
    return f"{len(pages):>6} {counts[0][0]:>8} {counts[0][1]:>5} {values[0]:>5.2f} {values[1]:>5.2f}", values


def fetches(order: list[str], pages: set[str], part: float) -> int:
    """How many pages have been fetched when this part of those that match is there."""
    places = [place for place, url in enumerate(order, 1) if url in pages]
    return places[math.ceil(part * len(places)) - 1]


def pairs(ratios: list[list[float]]) -> Iterator[tuple[float, float]]:
    medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
    yield from zip(medians[::2], medians[1::2], strict=True)


if __name__ == "__main__":
    main()
