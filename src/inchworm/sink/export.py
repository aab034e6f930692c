"""Exports: what a crawl has in other forms, as it stood when the export began.

Every export takes pages (or visits, URLs, places in the archive) in a stable order, reads them once, writes as they
come, and says how many it wrote.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from inchworm.sink.chunks import CHARACTERS, TOKENS, chunks, limits
from inchworm.sink.documents import MOST_LOST, Written, files
from inchworm.sink.listing import fingerprints, sitemap, sitemaps, urls
from inchworm.sink.markdown import markdown
from inchworm.sink.records import warc
from inchworm.sink.table import csv, data, jsonl, parquet

__all__ = [
    "CHARACTERS",
    "FORMATS",
    "MOST_LOST",
    "TOKENS",
    "Format",
    "RowSource",
    "Target",
    "Written",
    "chunks",
    "csv",
    "data",
    "files",
    "fingerprints",
    "jsonl",
    "limits",
    "markdown",
    "parquet",
    "sitemap",
    "sitemaps",
    "urls",
    "warc",
]


class Target(StrEnum):
    """What an export writes to."""

    STREAM = "stream"
    FOLDER = "folder"
    EITHER = "either"


class RowSource(StrEnum):
    """What an export goes through: the record of one run, the crawl as it is now, or that or what changed."""

    RUN = "run"
    NOW = "now"
    PAGES = "pages"


class Format(NamedTuple):
    """What a format writes to, what it writes many of, what it goes through, whether columns can be chosen, and whether
    only programs can read it."""

    target: Target
    thing: str
    rows: RowSource
    has_columns: bool = False
    is_binary: bool = False
    has_text: bool = False


FORMATS = {
    "jsonl": Format(Target.STREAM, "line", RowSource.PAGES, has_columns=True, has_text=True),
    "csv": Format(Target.STREAM, "row", RowSource.PAGES, has_columns=True, has_text=True),
    "parquet": Format(Target.STREAM, "row", RowSource.PAGES, has_columns=True, is_binary=True, has_text=True),
    "chunks": Format(Target.STREAM, "chunk", RowSource.PAGES, has_text=True),
    "data": Format(Target.STREAM, "line", RowSource.NOW),
    "markdown": Format(Target.FOLDER, "page", RowSource.NOW, has_text=True),
    "files": Format(Target.FOLDER, "file", RowSource.NOW),
    "sitemap": Format(Target.EITHER, "URL", RowSource.NOW),
    "urls": Format(Target.STREAM, "URL", RowSource.RUN),
    "fingerprints": Format(Target.STREAM, "fingerprint", RowSource.RUN),
    "warc": Format(Target.STREAM, "record", RowSource.RUN, is_binary=True),
}
