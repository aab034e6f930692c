"""A document and what it says, whatever it is; and one that is open: each part is read when it is asked for, and then
once.

HTML and style sheets are the business of `parse`. Everything else becomes `Contents` first, by a reader of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from inchworm.model import Reading, Substance
from inchworm.rules.formats import contents, pdf, plain
from inchworm.rules.formats.contents import MAX_TEXT, MAX_TITLE, Contents
from inchworm.rules.formats.media import OFFICE, TEXTS, Media, media_of
from inchworm.rules.metadata.data import Data
from inchworm.rules.metadata.describe import squeeze
from inchworm.rules.page import parse
from inchworm.rules.page.links import named_links
from inchworm.rules.page.parse import FramedText
from inchworm.rules.text import markdown
from inchworm.rules.text.content import as_written
from inchworm.rules.text.fates import BlockFate, fates
from inchworm.rules.text.recurring import NO_FRAME, Block, Frame

_WITH_TEXT = parse.How(text=True)
_WITH_ANCHORS = parse.How(anchors=True)
_AS_WRITTEN = TEXTS - {Media.JSON, Media.XML}


def read(body: bytes, content_type: str, url: str, how: parse.How) -> Reading:
    """What a document says. Links are those that a crawl follows: texts and data have none."""
    media = media_of(body, content_type)
    held = _contents(body, content_type, media)
    return parse.read(body, content_type, url, how) if held is None else _reading(held, media, url, how)


def _reading(held: Contents, media: Media, url: str, how: parse.How) -> Reading:
    links, is_capped = named_links(((run.href, run.text) for run in held.links), url, how.resolver, how.anchors)
    title, text = squeeze(held.title), held.text[:MAX_TEXT]
    flags = {
        "links_capped": is_capped,
        "title_capped": len(title) > MAX_TITLE,
        "text_capped": len(held.text) > MAX_TEXT,
    }
    return Reading(
        links=links,
        title=title[:MAX_TITLE],
        words="" if held.is_thin else as_written(text) if media in _AS_WRITTEN else squeeze(text),
        hrefs="\n".join(link.url for link in links),
        text=text if how.text else "",
        language=held.language,
        meta={**held.meta, **{flag: True for flag, is_set in flags.items() if is_set}},
    )


def substance(body: bytes, content_type: str, url: str, how: parse.How | None = None) -> Substance:
    """What makes this document what it is, to be compared with another version of it."""
    if media_of(body, content_type) is Media.HTML:
        return parse.substance(body, content_type, url, how)
    return substance_of(read(body, content_type, url, how or _WITH_ANCHORS), Media.OTHER, url, how)


def substance_of(reading: Reading, media: Media, url: str, how: parse.How | None = None) -> Substance:
    """The same of a document that was read just now."""
    if media is Media.HTML:
        return parse.substance_of(reading, url, how)
    return Substance(reading.title, reading.words, tuple(link.url for link in reading.links))


def _contents(body: bytes, content_type: str, media: Media) -> Contents | None:
    """What a document holds; None for what is HTML, or nothing that can be read."""
    if media in TEXTS:
        return plain.contents(body, content_type, media)
    if media is Media.PDF:
        return pdf.contents(body)
    if media in OFFICE:
        from inchworm.rules.formats import office  # only processes of their own read any

        return office.contents(body, media)
    return None


class Link(NamedTuple):
    """Where a link of a page leads, and what it says."""

    url: str
    text: str


class DocumentContent(NamedTuple):
    """What a document says: its title, its main text laid out, its language, and what it says of itself."""

    title: str = ""
    text: str = ""
    language: str = ""
    meta: Mapping[str, object] = {}


class Parts(Protocol):
    """What a document holds. Every part is a value that JSON can carry."""

    @property
    def said(self) -> DocumentContent: ...

    @property
    def text_alone(self) -> DocumentContent:
        """The same for whoever knows title, language and the rest already: it may be left out."""
        ...

    @property
    def comments(self) -> str:
        """What readers wrote below the text."""
        ...

    @property
    def fates(self) -> list[BlockFate]:
        """The page block by block: what is its text, and why the rest is not."""
        ...

    @property
    def links(self) -> list[Link]:
        """Every link of the document, each once."""
        ...

    @property
    def targets(self) -> list[str]:
        """The URLs that the links in its main part lead to, in their order."""
        ...

    @property
    def markdown(self) -> str: ...

    @property
    def html(self) -> str:
        """The main part as HTML, with absolute links."""
        ...

    @property
    def source(self) -> str:
        """The document as it came, as text."""
        ...

    @property
    def data(self) -> Data:
        """What it says for machines."""
        ...

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks of its main part, in their order, with those that are frame. Only HTML has any."""
        ...

    @property
    def left_out(self) -> int:
        """How many of them text, Markdown and HTML leave out."""
        ...


class OpenDocument:
    """`Parts` that are read here and now. `frame`: the blocks that stand on most pages of its host."""

    def __init__(self, body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> None:
        self._body, self._type, self._url, self._frame = body, content_type, url, frame
        self._media = media_of(body, content_type)

    @cached_property
    def _held(self) -> Contents | None:
        return _contents(self._body, self._type, self._media)

    def _read(self, how: parse.How) -> Reading:
        if self._held is None:
            return parse.read(self._body, self._type, self._url, how)
        return _reading(self._held, self._media, self._url, how)

    @cached_property
    def said(self) -> DocumentContent:
        reading = self._read(_WITH_TEXT)
        return DocumentContent(reading.title, reading.text, reading.language, reading.meta)

    @cached_property
    def text_alone(self) -> DocumentContent:
        if self._media is not Media.HTML:
            return self.said
        if self._frame or "_framed" in self.__dict__:
            return DocumentContent(text=self._framed.text)
        return DocumentContent(text=parse.text_of(self._body, self._type))

    @cached_property
    def comments(self) -> str:
        return parse.comments_of(self._body, self._type) if self._media is Media.HTML else ""

    @cached_property
    def fates(self) -> list[BlockFate]:
        return fates(parse.found_in(self._body, self._type)) if self._media is Media.HTML else []

    @cached_property
    def _framed(self) -> FramedText:
        return parse.framed_text(self._body, self._type, self._frame)

    @property
    def blocks(self) -> Sequence[Block]:
        return self._framed.blocks

    @property
    def left_out(self) -> int:
        return self._framed.left_out

    @cached_property
    def links(self) -> list[Link]:
        return [Link(one.request_url, one.anchor) for one in self._read(_WITH_ANCHORS).links]

    @cached_property
    def targets(self) -> list[str]:
        return list(substance(self._body, self._type, self._url).targets)

    @cached_property
    def markdown(self) -> str:
        if self._media is Media.HTML:
            return markdown.markdown(self._body, self._type, self._url, self._frame)
        if self._held is None:
            return ""
        if self._held.blocks:
            return markdown.of_html(contents.as_html(self._held.blocks))
        return self._held.markdown[: markdown.MAX_CHARS]

    @cached_property
    def html(self) -> str:
        if self._held is None:
            return parse.main_html(self._body, self._type, self._url, self._frame)
        return contents.as_html(self._held.blocks)[:MAX_TEXT] if self._held.blocks else ""

    @cached_property
    def source(self) -> str:
        if self._media in TEXTS:
            return plain.decoded(self._body, self._type)
        return parse.source_of(self._body, self._type)

    @cached_property
    def data(self) -> Data:
        return parse.data_of(self._body, self._type)
