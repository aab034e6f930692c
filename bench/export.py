"""How fast a large crawl is exported, beside the floor: reading the same archive and calling the same reader.

Generates a site of pages with headings, paragraphs, lists, tables and code, crawls it over HTTP, and exports what was
archived, each time in a process of its own: JSON lines and Parquet with the text, and chunks. The floor of a format is
a loop over the same WARC files with fastwarc that asks the same reader for the same part of each page, and writes
nothing. Prints CPU and wall seconds, peak memory, and how fast the export is compared to its floor.

    python bench/export.py [--pages 100000] [--rounds 1] [--folder DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import uvloop
from memory import serve

LEAST_SPEED, MOST_MB = 0.7, 200
LINKS = 24
WORDS = [a + b for a in ("am", "bas", "ce", "del", "em", "fjo", "gar", "har") for b in ("ber", "a", "rd", "n")]
FORMATS = {"jsonl": "text", "parquet": "text", "chunks": "markdown"}
"""Each format, and the part of a page that it asks the reader for."""


# The site


def page(number: int, pages: int) -> bytes:
    """A page like those of the PostgreSQL manual, which have 14 KB, 500 tags, 30 links and 6.5 KB of text. It is always
    the same, and every page can be reached from the first."""
    chance = hashlib.sha512(str(number).encode()).digest() * 16
    targets = [number * 3 + step for step in (1, 2, 3) if number * 3 + step < pages]
    targets += [int.from_bytes(chance[step : step + 4]) % pages for step in range(LINKS - len(targets))]
    menu = "".join(
        f'<li class="entry"><a class="menu" href="/section/page-{one}.html">{one}</a></li>' for one in targets
    )
    parts = "".join(_section(number, part, chance[97 * part :]) for part in range(6))
    head = f'<title>Page {number}</title><meta name="description" content="What page {number} is about">'
    main = f'<main><div class="chapter" id="chapter-{number}"><h1 class="title">Page {number}</h1>{parts}</div></main>'
    body = f'<nav class="menu"><ul>{menu}</ul></nav>{main}<footer class="foot"><p>The end</p></footer>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'.encode()


def _section(number: int, part: int, chance: bytes) -> str:
    told = [f'<p class="para">{_sentences(chance[at : at + 52])}</p>' for at in (0, 60, 120)]
    link = f'<p>See <a class="xref" href="/section/page-{number // 2}.html" title="Before">the page before</a>.</p>'
    items = "".join(f"<li><p>{_sentences(chance[at : at + 6])}</p></li>" for at in range(0, 30, 6))
    rows = "".join(f"<tr><td>{WORDS[byte % 32]}</td><td>{byte}</td></tr>" for byte in chance[:8])
    code = " ".join(WORDS[byte % 32] for byte in chance[:20])
    extra = (
        f'<ul class="itemizedlist">{items}</ul>',
        f'<pre class="programlisting">{code}\n{code}</pre>',
        f'<table class="informal"><tr><th>name</th><th>value</th></tr>{rows}</table>',
    )[part % 3]
    title = f'<h2 class="title" id="part-{part}">Part {part} of {number}</h2>'
    return f'<div class="sect1">{title}{told[0]}{told[1]}{extra}{told[2]}{link}</div>'


def _sentences(chance: bytes) -> str:
    words = [WORDS[byte % len(WORDS)] for byte in chance]
    words[3::15] = (f'<code class="literal">{word}</code>' for word in words[3::15])
    words[5::26] = (f'<em class="emphasis">{word}</em>' for word in words[5::26])
    return " ".join(f"{' '.join(words[at : at + 12])}." for at in range(0, len(words), 12))


def crawl(home: Path, port: int) -> None:
    from inchworm.app import App, Start

    app = App(home)
    settings = {"delay": 0, "workers": 16, "robots": False, "sitemap": False}
    uvloop.run(
        app.sessions.work(app.plan.crawl(Start((f"http://127.0.0.1:{port}/section/page-0.html",), "bench", settings)))
    )
    app.close()


# What is measured


class Cost(NamedTuple):
    """What a process took."""

    cpu: float
    wall: float
    memory_mb: float


def floor(archive: Path, part: str) -> None:
    """Read every page of an archive and ask the reader for a part of it."""
    from fastwarc import ArchiveIterator, WarcRecordType

    from inchworm import read

    count = 0
    for path in sorted(archive.glob("*.warc.gz")):
        for record in ArchiveIterator(str(path), record_types=WarcRecordType.response):
            kind = record.http_headers.get("content-type", "")
            found = read(record.reader.read(), record.headers["WARC-Target-URI"], kind)
            count += bool(getattr(found, part))
    print(count)


def measured(home: Path, *command: object) -> Cost:
    began = time.perf_counter()
    environment = {**os.environ, "INCHWORM_HOME": str(home)}
    child = subprocess.Popen([str(one) for one in command], env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss / 1000)


def compare(home: Path, rounds: int) -> None:
    archive = next(home.glob("crawls/*/archive"))
    print(f"{'':<10}{'CPU s':>8}{'wall s':>8}{'MB':>6}{'floor CPU':>11}{'wall':>8}{'speed CPU':>11}{'wall':>7}")
    for name, part in FORMATS.items():
        taken = []
        for _ in range(rounds):
            export = ("-m", "inchworm", "export", "bench", "--format", name, "-o", home / f"out.{name}")
            own = measured(home, sys.executable, *export)
            taken.append((own, measured(home, sys.executable, __file__, "--floor", part, "--folder", archive)))
        report(name, min(one for one, _ in taken), min(one for _, one in taken))


def report(name: str, own: Cost, least: Cost) -> None:
    speeds = (least.cpu / own.cpu, least.wall / own.wall)
    missed = "  missed" if min(speeds) < LEAST_SPEED or own.memory_mb > MOST_MB else ""
    costs = f"{own.cpu:>8.1f}{own.wall:>8.1f}{own.memory_mb:>6.0f}{least.cpu:>11.1f}{least.wall:>8.1f}"
    print(f"{name:<10}{costs}{speeds[0]:>10.0%}{speeds[1]:>7.0%}{missed}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1, help="how often; the best counts")
    parser.add_argument("--folder", type=Path, default=None, help="where to make the home; a temporary one otherwise")
    parser.add_argument("--serve", action="store_true", help="only serve the site, and print the port")
    parser.add_argument("--crawl", type=int, metavar="PORT", help="only crawl the site into the folder")
    parser.add_argument("--floor", metavar="PART", help="only read the archive in the folder")
    given = parser.parse_args()
    if given.serve:
        uvloop.run(serve(given.pages, page))
    elif given.crawl:
        crawl(given.folder, given.crawl)
    elif given.floor:
        floor(given.folder, given.floor)
    elif given.folder and (given.folder / "crawls").exists():
        compare(given.folder, given.rounds)
    else:
        with tempfile.TemporaryDirectory(prefix="inchworm-export-", dir=given.folder) as folder:
            fill(Path(folder), given.pages)
            compare(Path(folder), given.rounds)


def fill(home: Path, pages: int) -> None:
    command = [sys.executable, __file__, "--pages", str(pages)]
    server = subprocess.Popen([*command, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        cost = measured(home, *command, "--crawl", int(server.stdout.readline()), "--folder", home)
        print(f"{pages:,} pages crawled in {cost.wall:.0f} s", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
