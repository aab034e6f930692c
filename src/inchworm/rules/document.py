"""A document that is open: each part of what it holds is read when it is asked for, and then once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from inchworm.rules import markdown, parse
from inchworm.rules.data import Data

_WITH_TEXT = parse.How(text=True)
_WITH_ANCHORS = parse.How(anchors=True)


class Link(NamedTuple):
    """Where a link of a page leads, and what it says."""

    url: str
    text: str


class Said(NamedTuple):
    """What a document says: its title, its main text laid out, its language, and what it says of itself."""

    title: str = ""
    text: str = ""
    language: str = ""
    meta: Mapping[str, Any] = {}


class Parts(Protocol):
    """What a document holds. Every part is a value that JSON can carry."""

    @property
    def said(self) -> Said: ...

    @property
    def links(self) -> list[Link]:
        """Every link of the document, each once."""
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


class OpenDocument:
    """`Parts` that are read here and now."""

    def __init__(self, body: bytes, content_type: str, url: str) -> None:
        self._body, self._type, self._url = body, content_type, url

    @cached_property
    def said(self) -> Said:
        reading = parse.read(self._body, self._type, self._url, _WITH_TEXT)
        return Said(reading.title, reading.text, reading.language, reading.meta)

    @cached_property
    def links(self) -> list[Link]:
        found = parse.read(self._body, self._type, self._url, _WITH_ANCHORS).links
        return [Link(one.request_url, one.anchor) for one in found]

    @cached_property
    def markdown(self) -> str:
        return markdown.markdown(self._body, self._type, self._url)

    @cached_property
    def html(self) -> str:
        return parse.main_html(self._body, self._type, self._url)

    @cached_property
    def source(self) -> str:
        return parse.source_of(self._body, self._type)

    @cached_property
    def data(self) -> Data:
        return parse.data_of(self._body, self._type)
