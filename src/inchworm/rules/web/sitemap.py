"""Reading a sitemap: XML, an index of others, a feed, or plain text with a URL per line, gzip or not.

The data goes through in pieces, unpacked a bounded amount at a time, so memory stays flat, and no entity can
be declared. Sitemaps are often broken: what came before the break is kept, and the note says what happened.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator, Sized
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from xml.parsers import expat

from inchworm.rules.web import url as urls

MAX_BYTES = 50 * 1024 * 1024
MAX_URLS = 50_000

_PIECE_BYTES = 256 * 1024
_PACKED_PIECE_BYTES = 32 * 1024
_MAX_TOKEN_BYTES = 1024 * 1024
_MAX_MEMBERS = 10_000
_MAX_NESTING = 32
_MAX_TEXT = 16 * 1024

_GZIP = b"\x1f\x8b"
_ROOTS = ("urlset", "sitemapindex", "rss", "feed", "rdf")
_ENTRIES = ("url", "sitemap", "item", "entry")
_HTML = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_LINE_END = re.compile(r"[\r\n]")
_DECLARED_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}encoding\s{0,9}=\s{0,9}["']([\w-]{1,40})""")
_OLD_ENCODINGS = frozenset((b"iso-8859-1", b"latin-1", b"latin1", b"windows-1252", b"cp1252"))
_W3C_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?)?)?",
    re.ASCII,
)
_FIRST_WEB_YEAR = 1990


class Located(NamedTuple):
    """A page that a sitemap names, and when it changed, if the sitemap says so and can be believed."""

    url: str
    lastmod: str = ""


class Sitemap(NamedTuple):
    """What a sitemap gave: pages, further sitemaps, and what is to be said about it."""

    pages: tuple[Located, ...] = ()
    sitemaps: tuple[str, ...] = ()
    note: str = ""


class _Stop(Exception):
    """Nothing after this point is read; the message becomes the note."""


def read(data: bytes, url: str, now: date | None = None, is_cut: bool = False) -> Sitemap:
    """The URLs in a sitemap found at `url`. Never raises. With `now`, dates after it are not believed.

    `is_cut`: this is only its beginning, so what stands at the end may be half a URL.
    """
    found = _Findings(url, now)
    note = ""
    try:
        _read(_decoded(_bounded(_unpacked(data), is_cut)), found)
    except _Stop as stop:
        note = str(stop)
    if not (note or found.pages or found.sitemaps):
        note = "no URLs in it"
    pages = tuple(Located(url, lastmod) for url, lastmod in found.pages.items())
    return Sitemap(pages, tuple(found.sitemaps), note)


def _read(texts: Iterator[str], found: _Findings) -> None:
    start = next((text for piece in texts if (text := piece.lstrip())), "")
    if _HTML.match(start):
        raise _Stop("an HTML page, not a sitemap")
    read_all = _read_xml if start.startswith("<") else _read_lines
    read_all(chain((start,), texts), found)


def _unpacked(data: bytes) -> Iterator[bytes]:
    """The data in pieces of bounded size, gunzipped if it is gzip, whatever its name says."""
    if not data.startswith(_GZIP):
        yield from (data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))
        return
    member, members = zlib.decompressobj(31), 1
    for at in range(0, len(data), _PACKED_PIECE_BYTES):
        packed = data[at : at + _PACKED_PIECE_BYTES]
        while packed:
            if member.eof:
                if not packed.startswith(_GZIP[: len(packed)]):
                    return  # padding, which every gunzip passes over
                if (members := members + 1) > _MAX_MEMBERS:
                    raise _Stop("gzip of too many parts")
                member = zlib.decompressobj(31)
            try:
                yield member.decompress(packed, _PIECE_BYTES)
            except zlib.error as error:
                raise _Stop("broken gzip") from error
            packed = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise _Stop("gzip that ends too early")


def _bounded(pieces: Iterator[bytes], is_cut: bool) -> Iterator[bytes]:
    room = MAX_BYTES
    for piece in pieces:
        yield piece[:room]
        room -= len(piece)
        if room < 0:
            break
    if room < 0 or is_cut:
        raise _Stop(f"more than {MAX_BYTES // 1024 // 1024} MB: only those were read")


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    """As text. Encodings come from a fixed table; what a file calls its own is often wrong."""
    first = next((piece for piece in pieces if piece), b"")
    decoder = codecs.getincrementaldecoder(_encoding(first))("replace")
    yield decoder.decode(first)
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", True)


def _encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith((b"<\0", b"\0<")):
        return "utf-16-le" if start.startswith(b"<") else "utf-16-be"
    declared = _DECLARED_ENCODING.match(start)
    return "cp1252" if declared and declared[1].lower() in _OLD_ENCODINGS else "utf-8-sig"


def _read_lines(texts: Iterator[str], found: _Findings) -> None:
    rest = ""
    for text in texts:
        *lines, rest = _LINE_END.split(rest + text)
        for line in lines:
            found.line(line)
        # A line without end is no URL; its beginning is kept so that it is known to be too long.
        rest = rest[: _MAX_TEXT + 1]
    found.line(rest)


def _read_xml(texts: Iterator[str], found: _Findings) -> None:
    elements = _Elements(found)
    parser = expat.ParserCreate()
    parser.StartElementHandler = elements.start
    parser.EndElementHandler = elements.end
    parser.CharacterDataHandler = elements.text
    parser.EntityDeclHandler = elements.entity
    fed = 0
    try:
        for text in texts:
            parser.Parse(text, False)
            fed += len(text.encode())
            # Old versions of expat read an unfinished token again from its start with every piece.
            if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise _Stop("a tag or comment that does not end")
        parser.Parse("", True)
    except expat.ExpatError as error:
        raise _Stop(f"broken XML: {error}") from error
    finally:
        elements.finish()


class _Name(NamedTuple):
    prefix: str
    local: str


@lru_cache(maxsize=256)
def _name(full_name: str) -> _Name:
    """Prefixes are compared, not resolved: many a sitemap uses one that it never declared."""
    prefix, _, local = full_name.lower().rpartition(":")
    return _Name(prefix, local)


class _Elements:
    """What expat tells, boiled down to entries: an element with a place in it and perhaps a date."""

    def __init__(self, found: _Findings) -> None:
        self._found = found
        self._open: list[_Name] = []
        self._entry: _Name | None = None
        self._location = ""
        self._date = ""
        self._text: list[str] | None = None
        self._length = 0

    def start(self, full_name: str, attributes: dict[str, str]) -> None:
        name = _name(full_name)
        parent = self._open[-1] if self._open else None
        if parent is None and name.local not in _ROOTS:
            raise _Stop("an HTML page, not a sitemap" if name.local == "html" else "XML, but not a sitemap")
        if len(self._open) == _MAX_NESTING:
            raise _Stop("elements nested too deeply")
        self._open.append(name)
        if self._entry is None and name.local in _ENTRIES:
            self._entry = name
        elif parent is not None and parent == self._entry and name.prefix == parent.prefix:
            self._text, self._length = [], 0
            if "href" in attributes and attributes.get("rel", "alternate") == "alternate":
                self._location = self._location or attributes["href"]

    def text(self, text: str) -> None:
        if self._text is not None and self._length <= _MAX_TEXT:
            self._text.append(text)
            self._length += len(text)

    def end(self, _full_name: str) -> None:
        name = self._open.pop()
        if self._text is not None:
            # What is too long was not taken in to its end: without the blanks around it, it may look like a whole URL.
            if self._length <= _MAX_TEXT:
                self._keep(name.local, "".join(self._text).strip())
            self._text = None
        if name == self._entry:
            self.finish()

    def _keep(self, field: str, text: str) -> None:
        if field in ("loc", "link"):
            self._location = self._location or text
        elif field in ("lastmod", "updated"):
            self._date = text

    def finish(self) -> None:
        """The entry is complete, or nothing more will come of it."""
        entry, location, lastmod = self._entry, self._location, self._date
        self._entry, self._location, self._date = None, "", ""
        if entry is None or not location:
            return
        if entry.local == "sitemap":
            self._found.sitemap(location)
        else:
            self._found.page(location, lastmod)

    def entity(self, *_declaration: object) -> None:
        raise _Stop("XML with entities of its own, which are refused")


class _Findings:
    """What was found so far, without repetitions, in the order of the file."""

    def __init__(self, base: str, now: date | None) -> None:
        self.pages: dict[str, str] = {}
        self.sitemaps: dict[str, None] = {}
        self._base = base
        self._now = now

    def page(self, location: str, lastmod: str) -> None:
        href = self._href(location)
        if href and href not in self.pages:
            _check_room(self.pages)
            self.pages[href] = _plausible(lastmod, self._now)

    def sitemap(self, location: str) -> None:
        href = self._href(location)
        if href and href not in self.sitemaps:
            _check_room(self.sitemaps)
            self.sitemaps[href] = None

    def line(self, line: str) -> None:
        """A line of plain text. Prose is not taken for relative URLs, so only whole ones count."""
        words = line.split() if len(line) <= _MAX_TEXT else []
        if len(words) == 1 and words[0][:8].lower().startswith(("http://", "https://")):
            self.page(words[0], "")

    def _href(self, location: str) -> str | None:
        return urls.parse(location, self._base) if len(location) <= _MAX_TEXT else None


def _check_room(found: Sized) -> None:
    if len(found) >= MAX_URLS:
        raise _Stop(f"more than {MAX_URLS} URLs: only the first were kept")


def _plausible(lastmod: str, now: date | None) -> str:
    """The date if it can be one: of this calendar, of the web's time, and not of tomorrow's."""
    written = _W3C_DATE.fullmatch(lastmod)
    if written is None:
        return ""
    year, month, day = (int(part or 1) for part in written.groups())
    if year < _FIRST_WEB_YEAR:
        return ""
    try:
        changed = date(year, month, day)
    except ValueError:
        return ""
    # A day of grace: where the site is, it may be tomorrow already.
    return "" if now is not None and changed - timedelta(days=1) > now else lastmod
