"""Pages as Markdown, a file each: with what is known of them, and links among each other that lead to files.

They are links as GitHub, Obsidian and everybody else follow them: relative, with percent signs for what could be
misread. A link to what is not there stays the address on the web that it was.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from inchworm.page import Page
from inchworm.rules.text import links
from inchworm.rules.words.times import iso
from inchworm.sink.documents import EXTENSIONS, index_line, media_type
from inchworm.sink.files.folder import Files
from inchworm.sink.files.names import IMAGES, INDEX, file_name

_NOT_PRINTABLE = re.compile(r"[^ -~]")
_IN_PATHS = "/~@,=+!'"
_IN_FRAGMENTS = "%/~@,=+!'$&;:?"
_PLAIN = ("text/plain", "text/csv", "application/json", "application/xml", "text/xml")
_SAID = ("author", "published", "modified", "description")


class Others(NamedTuple):
    """What a page has to know of others: what tells a URL from others, and the files of pages and of images, of which
    those are asked for by URLs of that kind."""

    canonical: Callable[[str], str | None]
    pages: Callable[[Iterable[str]], dict[str, str]]
    images: Callable[[Iterable[str]], dict[str, str]]


def markdown(pages: Iterable[tuple[Page, str]], others: Others, into: Files) -> int:
    """Write pages to files of these names; how many there were."""
    count = 0
    with into.replacing(INDEX) as index:
        for page, name in pages:
            into.write(name, _document(page, name, others))
            with into.plain_errors(INDEX):
                index.write(index_line(page.url, page.record["canonical_url"], name))
            count += 1
    return count


def text_of(page: Page) -> str:
    """The Markdown of a page, or its text where it has none."""
    return page.markdown or page.text


def image_name(url: str, content_type: str) -> str:
    """The file of an image, with an extension by which everybody knows what it is; empty for what is none."""
    kind = media_type(content_type)
    extension = EXTENSIONS.get(kind, "")
    if not kind.startswith("image/") or not extension:
        return ""
    return f"{IMAGES}/{file_name(url, extension, _IMAGE_EXTENSIONS)}"


_IMAGE_EXTENSIONS = {ending for kind, ending in EXTENSIONS.items() if kind.startswith("image/")} | {"jpeg", "tif"}


def _document(page: Page, name: str, others: Others) -> bytes:
    text = text_of(page)
    if media_type(page.content_type) not in _PLAIN:
        text = _linked(text, name, others)
    return "\n".join(("---", *_front_matter(page), "---", "", text.strip("\r\n"), "")).encode("utf-8", "replace")


# ---- links


def _linked(text: str, name: str, others: Others) -> str:
    found = links.links(text)
    ids = {link.url: one for link in found if (one := others.canonical(link.url))}
    files = {
        **(others.images(ids[link.url] for link in found if link.is_image and link.url in ids)),
        **others.pages(set(ids.values())),
    }
    targets = {url: _target(files[one], name, url) for url, one in ids.items() if one in files}
    return links.leading(text, found, targets)


def _target(file: str, name: str, url: str) -> str:
    """How one file leads to another, or to a place in it."""
    path = "" if file == name else quote(posixpath.relpath(file, posixpath.dirname(name)), _IN_PATHS)
    fragment = quote(url.partition("#")[2], _IN_FRAGMENTS)
    return f"{path}#{fragment}" if fragment else path or quote(posixpath.basename(file), _IN_PATHS)


# ---- what is known


def _front_matter(page: Page) -> Iterator[str]:
    record = page.record
    fields = {
        "title": page.title,
        "url": page.url,
        "canonical_url": record["canonical_url"],
        "fetched_at": None if record.get("at_ms") is None else iso(record["at_ms"]),
        "language": record.get("language"),
        **{name: (record.get("meta") or {}).get(name) for name in _SAID},
        "content_hash": record.get("text_hash"),
    }
    yield from (f"{name}: {_quoted(value)}" for name, value in fields.items() if _is_text(value))
    others = record.get("alternate_urls") or []
    if len(others) > 1:
        yield "alternate_urls:"
        yield from (f"  - {_quoted(url)}" for url in others)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


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
