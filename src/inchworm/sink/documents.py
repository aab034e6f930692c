"""Exports into a folder: pages as Markdown, and everything that was fetched as the file it is.

The names are made of the URLs (`names`), so a later export puts each page where it was. `index.jsonl` says which file
belongs to which URL. Files of an earlier export that it does not name are left where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from inchworm.rules.media import may_have_text
from inchworm.rules.times import iso
from inchworm.sink.folder import Folder
from inchworm.sink.listing import GOOD, Alternates, Visit
from inchworm.sink.names import INDEX, file_name, page_name, url_extension

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
_NOT_PRINTABLE = re.compile(r"[^ -~]")


MOST_LOST = 1000


class Written(NamedTuple):
    """How many files, lines or records were written, how many pages were left out because the archive does not have
    them, and which ones, of many the first."""

    files: int
    skipped: int = 0
    lost: tuple[str, ...] = ()


File = tuple[str, str, bytes | None]
"""A URL, the name of its file, and what is to be in it."""


def markdown(
    visits: Iterable[Visit], alternates: Alternates, to_markdown: Callable[[Visit], str | None], folder: Path
) -> Written:
    """One .md file for each page that has a content of its own. `to_markdown` gives its text; None: there is none."""
    return _write(_pages(visits, alternates, to_markdown), folder)


def files(
    visits: Iterable[Visit], body: Callable[[Visit], bytes | None], folder: Path, wanted: Sequence[str] = ()
) -> Written:
    """Every page and resource as it was fetched. `body` gives its bytes; None: the archive does not have them.

    `wanted` narrows it down: media types such as `image/*`, or extensions such as `pdf`. One that fits is enough.
    """
    patterns = [pattern.lower().lstrip(".") for pattern in wanted]
    good = (visit for visit in visits if visit["outcome"] in GOOD and _is_wanted(visit, patterns))
    return _write(((visit["url"], _file_name(visit), body(visit)) for visit in good), folder)


def _write(found: Iterable[File], folder: Path) -> Written:
    written = skipped = 0
    lost: list[str] = []
    with Folder(folder) as target, target.replacing(INDEX) as index:
        for url, name, data in found:
            if data is None:
                skipped += 1
                lost += [url] if skipped <= MOST_LOST else []
                continue
            target.write(name, data)
            line = json.dumps({"url": url, "file": name}, ensure_ascii=False).encode("utf-8", "replace")
            with target.plain_errors(INDEX):
                index.write(line + b"\n")
            written += 1
    return Written(written, skipped, tuple(lost))


def _pages(
    visits: Iterable[Visit], alternates: Alternates, to_markdown: Callable[[Visit], str | None]
) -> Iterator[File]:
    for visit in visits:
        if visit["outcome"] != "page" or not _has_text(visit):
            continue
        text = to_markdown(visit)
        data = None if text is None else _with_front_matter(text, visit, alternates)
        yield visit["url"], page_name(visit["url"]), data


def _has_text(visit: Visit) -> bool:
    # Whatever it is called: what has a title was read.
    return may_have_text(visit["content_type"] or "") or bool(visit["title"])


def _with_front_matter(text: str, visit: Visit, alternates: Alternates) -> bytes:
    fields = {
        "url": visit["url"],
        "title": visit["title"],
        "fetched_at": iso(visit["at_ms"]),
        "language": visit["language"],
        "content_hash": visit["text_hash"],
    }
    lines = [f"{name}: {_quoted(value)}" for name, value in fields.items() if value]
    others = alternates(visit["text_hash"]) if visit["text_hash"] else []
    if len(others) > 1:
        lines += ["alternate_urls:", *(f"  - {_quoted(url)}" for url in others)]
    return "\n".join(("---", *lines, "---", "", text.strip("\r\n"), "")).encode("utf-8", "replace")


def _quoted(text: str) -> str:
    """Text that YAML reads as exactly this, whatever it holds."""
    return _NOT_PRINTABLE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _file_name(visit: Visit) -> str:
    return file_name(visit["url"], EXTENSIONS.get(_media_type(visit), _UNKNOWN))


def _is_wanted(visit: Visit, patterns: Sequence[str]) -> bool:
    if not patterns:
        return True
    kind = _media_type(visit)
    endings = (url_extension(visit["url"]), EXTENSIONS.get(kind))
    return any(fnmatchcase(kind, one) if "/" in one else one in endings for one in patterns)


def _media_type(visit: Visit) -> str:
    return str(visit["content_type"] or "").partition(";")[0].strip().lower()
