"""A page as people want it: its main text, what it says of itself, and, where it was crawled, what became of it.

Nothing is read before it is asked for, and then once: whoever wants titles does not pay for Markdown.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from inchworm.rules.formats import media
from inchworm.rules.metadata.title import own_title
from inchworm.rules.text.recurring import NO_FRAME, Frame

if TYPE_CHECKING:
    from inchworm.rules.metadata.data import Data
    from inchworm.rules.page.document import DocumentContent, Link, Parts
    from inchworm.rules.page.element import Element
    from inchworm.rules.text.fates import BlockFate

T = TypeVar("T")
Body = bytes  # a page has a property of that name

_THERE = ("page", "duplicate", "resource")
_NOTED = frozenset(("title", "language", "meta"))
_NO_RECORD: Mapping[str, Any] = MappingProxyType({})


class ArchiveSpot(NamedTuple):
    """Where an answer lies in the archive of its crawl."""

    file: str
    offset: int
    length: int


def read(body: bytes, url: str = "", content_type: str = "") -> Page:
    """Read a document: HTML, PDF, an office document, text or data. Nothing is fetched and nothing is kept. `url` is
    what its links are relative to; without a `content_type` the document is looked at to tell what it is."""
    return Page(url, content_type, lambda: body)


def opened(body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> Parts:
    """The parts of a document without the frame of its host: read here, or in a process of their own where that is
    safer."""
    # What reads documents takes long to load, and most who list pages never read one.
    if media.is_risky(body, content_type):
        from inchworm.apart import ApartDocument

        return ApartDocument(body, content_type, url, frame)
    from inchworm.rules.page.document import OpenDocument

    return OpenDocument(body, content_type, url, frame)


class Page:
    """A document, and what it says. Texts are empty where there is nothing, fields that nobody can tell are None.

    What became of a page in its crawl has the names that the columns of an export have. Of a page that is gone (it
    failed, leads elsewhere or was deleted) there is only that, its body and its headers.
    """

    def __init__(
        self,
        url: str,
        content_type: str,
        load: Callable[[], Body | None],
        record: Mapping[str, Any] = _NO_RECORD,
        earlier: Callable[[], Page | None] = lambda: None,
        load_headers: Callable[[], Mapping[str, str]] = lambda: _NO_RECORD,
        said: DocumentContent | None = None,
        load_frame: Callable[[], Frame] = lambda: NO_FRAME,
    ) -> None:
        self.url = url
        self.content_type = content_type
        self.record = record
        self._load = load
        self._earlier = earlier
        self._load_headers = load_headers
        self._known = said
        self._load_frame = load_frame
        self.take_rows: Callable[[Page], Sequence[Mapping[str, Any]]] = lambda _: ()
        """How its fields are taken out of it, where somebody said which."""

        self.unreadable: str | None = None
        """Why a part of the document could not be read, once it was asked for."""

    def __repr__(self) -> str:
        return f"<Page {self.url}>"

    # The document

    @property
    def is_gone(self) -> bool:
        """Whether the crawl found no page here: it failed, leads elsewhere, or was deleted."""
        return self.record.get("outcome", _THERE[0]) not in _THERE

    @property
    def is_lost(self) -> bool:
        """Whether the archive does not have it any more."""
        return self._loaded is None

    @cached_property
    def _loaded(self) -> Body | None:
        return self._load()

    @property
    def body(self) -> Body:
        """As it was served, decompressed."""
        return self._loaded or b""

    @property
    def raw_html(self) -> str:
        """The document as it came, as text; empty for what is no text."""
        return self._read(lambda parts: parts.source, "")

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer, names in lower case."""
        return self._load_headers()

    # What it says

    @cached_property
    def _parts(self) -> Parts:
        return opened(self.body, self.content_type, self.url, self._frame)

    @cached_property
    def _frame(self) -> Frame:
        return self._load_frame()

    def _read(self, part: Callable[[Parts], T], nothing: T) -> T:
        """A part of the document. Whatever somebody made of it: it can be asked for."""
        if self.is_gone:
            return nothing  # what came instead of the page is not what the page says
        try:
            return part(self._parts)
        except Exception as error:
            self.unreadable = str(error) or repr(error)
            return nothing

    @cached_property
    def _said(self) -> DocumentContent:
        from inchworm.rules.page.document import DocumentContent

        def part(parts: Parts) -> DocumentContent:
            # What a crawl noted when it read the page need not be read once more.
            return parts.text_alone if self.record.keys() >= _NOTED else parts.said

        said = self._known or self._read(part, DocumentContent())
        if needed := said.meta.get("needs"):
            self.unreadable = f"reading it needs more: pip install '{needed}'"
        return said

    @cached_property
    def title(self) -> str:
        """What the page calls itself: without the name of its site."""
        return own_title(self.full_title, self.meta, self.url, self.content_type)

    @property
    def full_title(self) -> str:
        """The title as it stands in the document: what makes two versions of a page differ."""
        return self._recorded("title", lambda: self._said.title) or ""

    @property
    def text(self) -> str:
        """The main text, laid out, without what stands around it; where a crawl has it, also without blocks that stand
        on most pages of its host (`frame="keep"` keeps them)."""
        return self._said.text

    @property
    def markdown(self) -> str:
        """The main part as Markdown."""
        return self._read(lambda parts: parts.markdown, "")

    @property
    def html(self) -> str:
        """The main part as HTML, with absolute links; empty for a PDF and for what is no more than text."""
        return self._read(lambda parts: parts.html, "")

    @property
    def blocks(self) -> list[BlockFate]:
        """The page block by block: what is its text, and why the rest is not."""
        return self._read(lambda parts: parts.fates, [])

    @property
    def left_out(self) -> int:
        """How many blocks its text lacks because they stand on most pages of its host. None where nobody crawled it."""
        return self._read(lambda parts: parts.left_out, 0) if self._frame else 0

    @property
    def links(self) -> list[Link]:
        """Every link of the document, each once."""
        return self._read(lambda parts: parts.links, [])

    @property
    def data(self) -> Data:
        """JSON-LD, microdata and Open Graph as they stand in the document."""
        return self._read(lambda parts: parts.data, {})

    @cached_property
    def rows(self) -> list[Mapping[str, Any]]:
        """The fields that were asked for (`extract`, or a function): one row, or one for each match."""
        return list(self.take_rows(self))

    @property
    def fields(self) -> Mapping[str, Any]:
        """The first of these rows."""
        return self.rows[0] if self.rows else {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the document says of itself."""
        return self._recorded("meta", lambda: self._said.meta) or {}

    @property
    def author(self) -> str | None:
        return self._meta_text("author")

    @property
    def published(self) -> str | None:
        return self._meta_text("published")

    @property
    def modified(self) -> str | None:
        return self._meta_text("modified")

    @property
    def description(self) -> str | None:
        return self._meta_text("description")

    @property
    def language(self) -> str | None:
        return self._recorded("language", lambda: self._said.language) or None

    @property
    def kind(self) -> str | None:
        """What kind of page it is: article, collection, documentation, forum, listing, product, service."""
        return self._meta_text("kind")

    @property
    def confidence(self) -> float | None:
        """How sure the reader is of the main part, from 0 to 1."""
        value = self.meta.get("confidence")
        return value if isinstance(value, float) else None

    @property
    def comments(self) -> str:
        """What readers wrote below it, which is no part of its text; the posts of a forum are."""
        return self._read(lambda parts: parts.comments, "")

    def _meta_text(self, name: str) -> str | None:
        value = self.meta.get(name)
        return value if isinstance(value, str) else None

    def _recorded(self, name: str, read: Callable[[], T]) -> T:
        """What the crawl noted of it when it read it; of a document that nobody crawled, what it says."""
        noted: T = self.record[name] if name in self.record else read()
        return noted

    # Parts of it, by selectors

    @cached_property
    def _whole(self) -> Element:
        from inchworm.rules.page.element import whole

        return whole(b"" if self.is_gone else self.body, self.content_type, self.url)

    def css(self, selector: str) -> list[Element]:
        """The elements of an HTML page that a CSS selector finds, in their order. Read in this process, without limits
        of time and memory, also where the page is large."""
        return self._whole.css(selector)

    def xpath(self, expression: str) -> list[Element]:
        """What an XPath expression finds: elements; texts, attributes and numbers are some without a tag. Read as by
        `css`."""
        return self._whole.xpath(expression)

    # What became of it, where it was crawled

    @property
    def canonical_url(self) -> str | None:
        """The address by which it is told from others."""
        return self._text("canonical_url")

    @property
    def run(self) -> int | None:
        """The run that saw this version."""
        return self._number("run")

    @property
    def seq(self) -> int | None:
        """Its place in the record of that run."""
        return self._number("seq")

    @property
    def outcome(self) -> str | None:
        """What came of it: page, duplicate, resource, redirect, failed, deleted, retry."""
        return self._text("outcome")

    @property
    def failure(self) -> str | None:
        """The kind of failure that the crawl met, or why the document could not be read, once that was tried."""
        return self._text("failure") or self.unreadable

    @property
    def message(self) -> str | None:
        """What went wrong, in words."""
        return self._text("message")

    @property
    def change(self) -> str | None:
        """New, modified, unchanged or deleted since the run before; None in a first run, and where nobody crawled."""
        return self._text("change")

    @property
    def note(self) -> str | None:
        """Words that say more of the change."""
        return self._text("note")

    @property
    def status(self) -> int | None:
        """The HTTP status."""
        return self._number("status")

    @property
    def fetched_at(self) -> datetime | None:
        """When it was asked for."""
        at_ms = self.record.get("at_ms")
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)

    @property
    def seconds(self) -> float | None:
        """How long the answer took."""
        millis = self.record.get("millis")
        return None if millis is None else millis / 1000

    @property
    def bytes(self) -> int | None:
        """The size of the answer as it was transferred."""
        return self._number("size")

    @property
    def etag(self) -> str | None:
        return self._text("etag")

    @property
    def last_modified(self) -> str | None:
        return self._text("last_modified")

    @property
    def content_hash(self) -> str | None:
        """SHA-256 of title and main text, or of the body: equal for equal content."""
        return self._text("text_hash")

    @property
    def payload_hash(self) -> str | None:
        """SHA-256 of the body as it was transferred."""
        return self._text("payload")

    @property
    def canonical(self) -> str | None:
        """The address that the page itself calls the canonical one."""
        return self._text("canonical")

    @property
    def redirect(self) -> str | None:
        """Where it leads."""
        return self._text("redirect")

    @property
    def source(self) -> str | None:
        """How the URL was found: initial, spider, sitemap, redirect, resource, manual."""
        return self._text("source")

    @property
    def depth(self) -> int | None:
        """Links from a seed."""
        return self._number("depth")

    @property
    def hops(self) -> int | None:
        """Distance outside of the scope."""
        return self._number("hops")

    @property
    def found_on(self) -> str | None:
        """The page on which it was first found."""
        return self._text("found_on")

    @property
    def link_count(self) -> int | None:
        """How many links it has."""
        return self._number("links")

    @property
    def alternate_of(self) -> str | None:
        """The page that has the same content and was there first; only duplicates have it."""
        return self._text("alternate_of")

    @property
    def alternate_urls(self) -> list[str]:
        """All pages with this content, the first one first; only that one has it."""
        return self.record.get("alternate_urls") or []

    @property
    def archive(self) -> ArchiveSpot | None:
        """Where its answer lies in the crawl's archive."""
        file, offset, length = (self.record.get(name) for name in ("file", "offset", "length"))
        return ArchiveSpot(file, offset or 0, length or 0) if file else None

    def _text(self, name: str) -> str | None:
        found: str | None = self.record.get(name)
        return found

    def _number(self, name: str) -> int | None:
        found: int | None = self.record.get(name)
        return found

    @cached_property
    def previous(self) -> Page | None:
        """The page as the runs before had it, or, where pages are wanted that changed since then, as it was then. None
        where there was none."""
        return self._earlier()

    def diff(self) -> list[str]:
        """What changed in its title and text since `previous`, as lines of a unified diff."""
        before = self.previous
        old, new = (before.lines() if before else []), self.lines()
        return list(difflib.unified_diff(old, new, "previous", "now", lineterm=""))

    def lines(self) -> list[str]:
        """Title and text, line by line, as versions of a page are compared; nothing of one that is gone."""
        return [] if self.is_gone else [f"title: {self.full_title}", "", *self._whole_text.splitlines()]

    @property
    def _whole_text(self) -> str:
        """With the frame of its host: whether a block is frame may change though the page does not."""
        if not self._frame:
            return self.text
        return self._read(lambda _: opened(self.body, self.content_type, self.url).text_alone.text, "")
