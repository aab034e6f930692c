"""Exports by URL: the plain list, fingerprints to compare with later, and sitemaps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import escape
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from inchworm.errors import WrongUse
from inchworm.rules.web.url import canonicalize, origin_of
from inchworm.rules.words.times import iso
from inchworm.sink.files.folder import Folder

Visit = Mapping[str, Any]
"""A visit of the record. What it does not have counts as None."""

GOOD = ("page", "duplicate", "resource")
"""What a visit comes to when it brought what was asked for."""

MAX_URLS = 50_000
MAX_BYTES = 50_000_000
_MAX_LOC = 2_047

_XML = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_SCHEMA = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_HEAD, _TAIL = _XML + b"<urlset " + _SCHEMA + b">\n", b"</urlset>\n"
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_HTTP_DATE = re.compile("[A-Za-z]{3,9},? ")
_FIRST_DAY = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
_DAY = 86_400


def urls(addresses: Iterable[str], out: BinaryIO) -> int:
    """One URL per line, as requested."""
    count = 0
    for address in addresses:
        out.write(address.encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def fingerprints(visits: Iterable[Visit], out: BinaryIO) -> int:
    """One JSON object by URL: what tells whether a page or resource has changed since."""
    count = 0
    out.write(b"{")
    for visit in visits:
        if visit["outcome"] not in GOOD:
            continue
        line = f"{_as_json(visit['url'])}: {_as_json(_fingerprint(visit))}"
        out.write((b",\n" if count else b"\n") + line.encode("utf-8", "replace"))
        count += 1
    out.write(b"\n}\n" if count else b"}\n")
    return count


def _fingerprint(visit: Visit) -> dict[str, Any]:
    return {
        "url": visit["url"],
        # Resources are not read, so what tells them apart are their bytes.
        "content_hash": visit["text_hash"] or visit["payload"],
        "last_modified": visit["last_modified"],
        "etag": visit["etag"],
        "file_size": visit["size"],
        "crawled_at": iso(visit["at_ms"]),
        "metadata": {"content_type": visit["content_type"], "title": visit["title"]},
    }


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def sitemap(visits: Iterable[Visit], out: BinaryIO) -> int:
    """One sitemap of the pages that want to be found. There may be too many for one: then `sitemaps` is needed."""
    entries = _entries(visits)
    count, left = _fill(out, next(entries, None), entries)
    if left is not None:
        raise WrongUse(
            f"One sitemap holds {MAX_URLS:,} URLs or {MAX_BYTES // 1_000_000} MB, and there are more.",
            "Name a folder to write to: it gets as many files as it takes, and an index.",
        )
    return count


def sitemaps(visits: Iterable[Visit], folder: Path, base: str = "") -> int:
    """A folder of sitemap-1.xml, sitemap-2.xml, … and sitemap.xml, the index that names them.

    `base` is the URL of the folder once it is on the web; the root of the first page's site when it is not given.
    """
    entries = _entries(visits)
    first = left = next(entries, None)
    total = files = 0
    with Folder(folder) as target:
        while left is not None or not files:
            files += 1
            name = f"sitemap-{files}.xml"
            with target.plain_errors(name), target.replacing(name) as out:
                count, left = _fill(out, left, entries)
            total += count
        root = base or (origin_of(first[0]) if first else "")
        target.write("sitemap.xml", _index(f"{root.rstrip('/')}/", files))
    return total


Entry = tuple[str, bytes]


def _fill(out: BinaryIO, first: Entry | None, entries: Iterator[Entry]) -> tuple[int, Entry | None]:
    """Write one file; how many entries it has, and the entry that found no room."""
    count, size, entry = 0, len(_HEAD) + len(_TAIL), first
    out.write(_HEAD)
    while entry is not None and count < MAX_URLS and size + len(entry[1]) <= MAX_BYTES:
        out.write(entry[1])
        count, size, entry = count + 1, size + len(entry[1]), next(entries, None)
    out.write(_TAIL)
    return count, entry


def _index(root: str, files: int) -> bytes:
    base = escape(_ascii(root), quote=False)
    names = (f"<sitemap><loc>{base}sitemap-{number}.xml</loc></sitemap>\n" for number in range(1, files + 1))
    return b"".join((_XML, b"<sitemapindex ", _SCHEMA, b">\n", "".join(names).encode(), b"</sitemapindex>\n"))


def _entries(visits: Iterable[Visit]) -> Iterator[Entry]:
    for visit in visits:
        address = _ascii(visit["request_url"])
        if len(address) > _MAX_LOC or not _wants_to_be_found(visit):
            continue
        lastmod = _lastmod(visit["last_modified"] or "", visit["at_ms"])
        when = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        yield address, f"<url><loc>{escape(address, quote=False)}</loc>{when}</url>\n".encode()


def _wants_to_be_found(visit: Visit) -> bool:
    if (visit.get("kind", "page"), visit["outcome"], visit["status"]) != ("page", "page", 200):
        return False
    if (visit["meta"] or {}).get("noindex"):
        return False
    named = visit["canonical"]
    return not named or canonicalize(named) in (visit["url"], canonicalize(visit["request_url"]))


def _lastmod(value: str, fetched_ms: int) -> str:
    """A Last-Modified as sitemaps write it; empty where it is no date, or none that can be believed."""
    if not _HTTP_DATE.match(value):
        return ""
    try:
        moment = parsedate_to_datetime(value)
        at = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return ""
    is_believable = _FIRST_DAY <= at <= fetched_ms / 1000 + _DAY
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" if is_believable else ""


def _ascii(url: str) -> str:
    return quote(url, safe=_ASCII, errors="replace")
