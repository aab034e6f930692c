"""Exports of pages take as much memory for many as for few: nothing of a page stays when it is written."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import BinaryIO

import pytest
from tests.sink.pages import page_of

from inchworm.page import Page
from inchworm.sink import arrow, export, table
from inchworm.sink.columns import USUAL

FEW, MANY, LINKS = 200, 1_000, 20
ROOM = 1_000_000
"""So much more is let pass. What stayed of the links alone would be ten times as much."""

Write = Callable[[Iterator[Page], BinaryIO], int]
FORMATS: dict[str, Write] = {
    "jsonl": lambda pages, out: export.jsonl(pages, USUAL, out),
    "csv": lambda pages, out: export.csv(pages, USUAL, out),
    "parquet": lambda pages, out: export.parquet(pages, USUAL, out),
    "chunks": lambda pages, out: export.chunks(pages, export.limits(0, 0), out),
}


class Nowhere(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return memoryview(data).nbytes  # type: ignore[arg-type]


NUMBERS = count()


def crawled(pages: int) -> Iterator[Page]:
    """Pages as a crawl has them, none of which has a link of another one."""
    for number in islice(NUMBERS, pages):
        url = f"http://a.test/some/folder/with/a/long/name/page-{number}"
        links = "".join(f"<li><a href='{url}/{link}'>{link}</a>" for link in range(LINKS))
        body = f"<html lang=en><title>{number}</title><ul>{links}</ul><main><h1>{number}</h1><p>{'Text. ' * 50}</main>"
        noted = {"title": str(number), "language": "en", "meta": {"headings": [str(number)]}}
        yield page_of({"url": url, "outcome": "page", "at_ms": number, **noted}, body.encode())


def peak(write: Write, pages: int) -> int:
    tracemalloc.start()
    try:
        assert write(crawled(pages), Nowhere()) >= pages  # type: ignore[arg-type]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FORMATS)
def test_memory_does_not_grow_with_the_number_of_pages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_CHARS", 20_000)
    monkeypatch.setattr(table, "ROW_GROUP_BYTES", 50_000)
    peak(FORMATS[name], 10)  # what is loaded once is there by now
    assert peak(FORMATS[name], MANY) < peak(FORMATS[name], FEW) + ROOM
