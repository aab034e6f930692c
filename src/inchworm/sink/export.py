"""Exports: a run's record in other forms, as it stood when the export began.

Every export takes visits (or URLs, or places in the archive) in the order of record, reads them once, writes as they
come, and says how many it wrote.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from inchworm.sink.documents import Written, files, markdown
from inchworm.sink.listing import fingerprints, sitemap, sitemaps, urls
from inchworm.sink.records import warc
from inchworm.sink.table import csv, jsonl, parquet

__all__ = [
    "FORMATS",
    "Format",
    "Target",
    "Written",
    "csv",
    "files",
    "fingerprints",
    "jsonl",
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


class Format(NamedTuple):
    """What a format writes to, what it writes many of, and whether only programs can read that."""

    target: Target
    thing: str
    is_binary: bool = False


FORMATS = {
    "urls": Format(Target.STREAM, "URL"),
    "jsonl": Format(Target.STREAM, "line"),
    "csv": Format(Target.STREAM, "row"),
    "parquet": Format(Target.STREAM, "row", is_binary=True),
    "fingerprints": Format(Target.STREAM, "fingerprint"),
    "sitemap": Format(Target.EITHER, "URL"),
    "markdown": Format(Target.FOLDER, "page"),
    "files": Format(Target.FOLDER, "file"),
    "warc": Format(Target.STREAM, "record", is_binary=True),
}
