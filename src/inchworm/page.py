"""A page as people want it: its main text, what it says of itself, and, where it was crawled, what became of it.

Nothing is read before it is asked for, and then once: whoever wants titles does not pay for Markdown.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from inchworm.rules import media

if TYPE_CHECKING:
    from inchworm.rules.data import Data
    from inchworm.rules.document import Link, Parts, Said

T = TypeVar("T")

_THERE = ("page", "duplicate", "resource")
_NO_RECORD: Mapping[str, Any] = MappingProxyType({})


def read(body: bytes, url: str = "", content_type: str = "") -> Page:
    """Read a document: HTML, PDF, an office document, text or data. Nothing is fetched and nothing is kept. `url` is
    what its links are relative to; without a `content_type` the document is looked at to tell what it is."""
    return Page(url, content_type, lambda: body)


def opened(body: bytes, content_type: str, url: str) -> Parts:
    """The parts of a document: read here, or in a process of their own where that is safer."""
    # What reads documents takes long to load, and most who list pages never read one.
    if media.is_risky(body, content_type):
        from inchworm.apart import ApartDocument

        return ApartDocument(body, content_type, url)
    from inchworm.rules.document import OpenDocument

    return OpenDocument(body, content_type, url)


class Page:
    """A document, and what it says. Texts are empty where there is nothing, fields that nobody can tell are None."""

    def __init__(
        self,
        url: str,
        content_type: str,
        load: Callable[[], bytes | None],
        record: Mapping[str, Any] = _NO_RECORD,
        earlier: Callable[[], Page | None] = lambda: None,
        load_headers: Callable[[], Mapping[str, str]] = lambda: _NO_RECORD,
    ) -> None:
        self.url = url
        self.content_type = content_type
        self.record = record
        self._load = load
        self._earlier = earlier
        self._load_headers = load_headers
        self.failure: str | None = None
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
    def _loaded(self) -> bytes | None:
        return self._load()

    @property
    def body(self) -> bytes:
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
        return opened(self.body, self.content_type, self.url)

    def _read(self, part: Callable[[Parts], T], nothing: T) -> T:
        """A part of the document. Whatever somebody made of it: it can be asked for."""
        try:
            return part(self._parts)
        except Exception as error:
            self.failure = str(error) or repr(error)
            return nothing

    @cached_property
    def _said(self) -> Said:
        from inchworm.rules.document import Said

        said = self._read(lambda parts: parts.said, Said())
        if needed := said.meta.get("needs"):
            self.failure = f"reading it needs more: pip install '{needed}'"
        return said

    @property
    def title(self) -> str:
        return self._said.title

    @property
    def text(self) -> str:
        """The main text, laid out, without what stands around it."""
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
    def links(self) -> list[Link]:
        """Every link of the document, each once."""
        return self._read(lambda parts: parts.links, [])

    @property
    def data(self) -> Data:
        """JSON-LD, microdata and Open Graph as they stand in the document."""
        return self._read(lambda parts: parts.data, {})

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the document says of itself."""
        return self._said.meta

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
        return self._said.language or None

    @property
    def kind(self) -> str | None:
        """What kind of page it is: an article, a product, … The reader cannot tell yet."""
        return None

    @property
    def confidence(self) -> float | None:
        """How sure the reader is of the main part. It cannot tell yet."""
        return None

    @property
    def comments(self) -> str | None:
        """What readers wrote below it. The reader cannot tell it from the text yet."""
        return None

    def _meta_text(self, name: str) -> str | None:
        value = self.meta.get(name)
        return value if isinstance(value, str) else None

    # What became of it, where it was crawled

    @property
    def status(self) -> int | None:
        number: int | None = self.record.get("status")
        return number

    @property
    def change(self) -> str | None:
        """New, modified, unchanged or deleted since the run before; None in a first run, and where nobody crawled."""
        said: str | None = self.record.get("change")
        return said

    @property
    def fetched_at(self) -> datetime | None:
        at_ms = self.record.get("at_ms")
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)

    @cached_property
    def previous(self) -> Page | None:
        """The page as the runs before had it; None where they did not."""
        return self._earlier()

    def diff(self) -> list[str]:
        """What changed in its text since then, as lines of a unified diff."""
        before = self.previous
        old, new = (before.lines() if before else []), self.lines()
        return list(difflib.unified_diff(old, new, "previous", "now", lineterm=""))

    def lines(self) -> list[str]:
        """Title and text, line by line, as versions of a page are compared."""
        return [f"title: {self.title}", "", *self.text.splitlines()]
