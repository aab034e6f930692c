"""Exports of many files: everything that was fetched as the file it is, and what all such exports share.

The names are made of the URLs (`names`), so a later export puts each page where it was. `index.jsonl` says which file
belongs to which URL. Files of an earlier export that it does not name are left where they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from inchworm.sink.files.folder import opened
from inchworm.sink.files.names import INDEX, file_name, url_extension
from inchworm.sink.listing import GOOD, Visit

EXTENSIONS = {
    "application/atom+xml": "xml",
    "application/epub+zip": "epub",
    "application/gzip": "gz",
    "application/javascript": "js",
    "application/json": "json",
    "application/ld+json": "json",
    "application/manifest+json": "json",
    "application/msword": "doc",
    "application/pdf": "pdf",
    "application/rss+xml": "xml",
    "application/rtf": "rtf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/wasm": "wasm",
    "application/xhtml+xml": "xhtml",
    "application/xml": "xml",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "font/otf": "otf",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tiff",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "text/calendar": "ics",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/javascript": "js",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/xml": "xml",
    "video/mp4": "mp4",
    "video/ogg": "ogv",
    "video/webm": "webm",
}
_UNKNOWN = "bin"

MOST_LOST = 1000


class Left(NamedTuple):
    """How many pages were left out for one reason, and which ones, of many the first."""

    pages: int
    urls: tuple[str, ...]


class Written(NamedTuple):
    """How many files, lines or records were written, how many pages were left out because the archive does not have
    them, and which ones, of many the first; and what was left out altogether, by reason."""

    files: int
    skipped: int = 0
    lost: tuple[str, ...] = ()
    left_out: Mapping[str, Left] = MappingProxyType({})


LOST, UNREADABLE, WITHOUT_TEXT, COPY = "lost", "unreadable", "without_text", "duplicate"
"""Why a page may be left out."""


class LeftOut:
    """Counts what is left out."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._urls: dict[str, list[str]] = {}

    def add(self, reason: str, url: str) -> None:
        self._counts[reason] += 1
        if self._counts[reason] <= MOST_LOST:
            self._urls.setdefault(reason, []).append(url)

    def after(self, files: int) -> Written:
        """What came of an export that wrote so many files."""
        told = {reason: Left(count, tuple(self._urls[reason])) for reason, count in self._counts.items()}
        lost = told.get(LOST, Left(0, ()))
        return Written(files, lost.pages, lost.urls, told)


def files(
    visits: Iterable[Visit], body: Callable[[Visit], bytes | None], into: Path | BinaryIO, wanted: Sequence[str] = ()
) -> Written:
    """Every page and resource as it was fetched. `body` gives its bytes; None: the archive does not have them.

    `wanted` narrows it down: media types such as `image/*`, or extensions such as `pdf`. One that fits is enough.
    """
    patterns, left_out, count = [pattern.lower().lstrip(".") for pattern in wanted], LeftOut(), 0
    with opened(into) as target, target.replacing(INDEX) as index:
        for visit in visits:
            if visit["outcome"] not in GOOD or not _is_wanted(visit, patterns):
                continue
            data = body(visit)
            if data is None:
                left_out.add(LOST, visit["url"])
                continue
            name = _file_name(visit)
            target.write(name, data)
            with target.plain_errors(INDEX):
                index.write(index_line(visit["request_url"], visit["url"], name))
            count += 1
    return left_out.after(count)


def index_line(url: str, canonical_url: str, name: str) -> bytes:
    """Which file belongs to which page."""
    said = {"url": url, "canonical_url": canonical_url, "file": name}
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _file_name(visit: Visit) -> str:
    return file_name(visit["url"], EXTENSIONS.get(_media_type(visit), _UNKNOWN))


def _is_wanted(visit: Visit, patterns: Sequence[str]) -> bool:
    if not patterns:
        return True
    kind = _media_type(visit)
    endings = (url_extension(visit["url"]), EXTENSIONS.get(kind))
    return any(fnmatchcase(kind, one) if "/" in one else one in endings for one in patterns)


def _media_type(visit: Visit) -> str:
    return media_type(visit["content_type"])


def media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()
