"""Pages in pieces, in a vector store that is kept up to date: only what changed is embedded again.

    pip install duckdb
    python examples/vectors.py https://example.org/docs 'how are limits set?'

DuckDB holds the pieces with their vectors in one file, and compares a question with all of them. The embedding here
only counts words, so that nothing has to be downloaded; put a model in its place.
"""

import math
import re
import sys
import zlib
from collections.abc import Iterator

import duckdb

from inchworm import Crawl

CHARS = 1_000
TABLE = "CREATE TABLE IF NOT EXISTS piece (url TEXT, title TEXT, text TEXT, content TEXT, vector FLOAT[512])"
NEAREST = "SELECT title, url, text FROM piece ORDER BY array_cosine_distance(vector, ?::FLOAT[512]) LIMIT 3"


def embed(text: str) -> list[float]:
    """Which words a text has, and how often, as a vector of length one."""
    vector = [0.0] * 512
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % 512] += 1
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]


def pieces(text: str) -> Iterator[str]:
    """Paragraphs, as many together as fit."""
    piece = ""
    for paragraph in text.split("\n\n"):
        if piece and len(piece) + len(paragraph) > CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}".strip()
    if piece:
        yield piece


def main(url: str, question: str) -> None:
    crawl = Crawl(url)
    crawl.run_sync()

    with duckdb.connect("vectors.duckdb") as store:
        store.execute(TABLE)
        known = dict(store.execute("SELECT DISTINCT url, content FROM piece").fetchall())
        embedded = 0
        for page in crawl.pages(unique=True):
            if known.pop(page.url, None) == page.content_hash:
                continue  # it says what it said, so it is not even read
            store.execute("DELETE FROM piece WHERE url = ?", [page.url])
            for text in pieces(page.text):
                row = [page.url, page.title, text, page.content_hash, embed(text)]
                store.execute("INSERT INTO piece VALUES (?, ?, ?, ?, ?)", row)
            embedded += 1
        for gone in known:
            store.execute("DELETE FROM piece WHERE url = ?", [gone])
        print(f"{embedded} pages embedded, {len(known)} gone")

        for title, address, text in store.execute(NEAREST, [embed(question)]).fetchall():
            print(f"\n{title}  {address}\n{text[:200]}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
