"""Elements of an HTML page, for whoever picks them by a selector of his own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import turbohtml
from turbohtml import Document

from inchworm.errors import WrongUse
from inchworm.rules.metadata.describe import address, squeeze
from inchworm.rules.page import parse

_ADDRESSES = ("href", "src", "action", "data", "poster", "xlink:href")
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Element:
    """A part of an HTML page. What an XPath expression finds besides elements (a text, an attribute, a number) is one
    without a tag."""

    __slots__ = ("_base", "_node")

    def __init__(self, node: Document | turbohtml.Element | str, base: str) -> None:
        self._node = node
        self._base = base

    def __repr__(self) -> str:
        return f"<{self.tag or 'text'} {self.text[:60]!r}>"

    @property
    def tag(self) -> str:
        """Its name in lower case; empty for what is no element."""
        return self._node.tag if isinstance(self._node, turbohtml.Element) else ""

    @property
    def text(self) -> str:
        """All text in it, with single spaces between the words."""
        return squeeze(self._node if isinstance(self._node, str) else self._node.text)

    @property
    def html(self) -> str:
        """The element itself and all in it."""
        return turbohtml.escape(self._node) if isinstance(self._node, str) else self._node.html

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as they stand in the page."""
        if not isinstance(self._node, turbohtml.Element):
            return _NO_ATTRIBUTES
        return {name: self._node.attr(name) or "" for name in self._node.attrs}

    def get(self, name: str, default: str = "") -> str:
        """One of its attributes."""
        return self.attributes.get(name, default)

    @property
    def url(self) -> str:
        """Where it leads, or what it shows, as a whole address: its href, src, action, data or poster."""
        if isinstance(self._node, str):
            return address(self._node.strip(), self._base)
        found = self.attributes
        return next((address(found[name], self._base) for name in _ADDRESSES if name in found), "")

    def css(self, selector: str) -> list[Element]:
        """The elements in it that a CSS selector finds, in the order of the page."""
        if isinstance(self._node, str):
            return []
        try:
            return [Element(one, self._base) for one in self._node.select(selector)]
        except ValueError as error:
            raise _wrong(selector, "CSS selector", "a.more or table > tr:first-child", error) from None

    def xpath(self, expression: str) -> list[Element]:
        """What an XPath expression finds from here on."""
        if isinstance(self._node, str):
            return []
        try:
            found = self._node.xpath(expression)
        except ValueError as error:
            raise _wrong(expression, "XPath expression", "//a[@rel='next'] or .//td[2]/text()", error) from None
        return [Element(_plain(one), self._base) for one in (found if isinstance(found, list) else [found])]


def whole(body: bytes, content_type: str, url: str) -> Element:
    """The page as one element. What is no HTML has nothing in it."""
    tree = parse.tree(body, content_type, url) if body else None
    return Element(*tree) if tree is not None else Element("", "")


def _plain(value: object) -> Document | turbohtml.Element | str:
    """A value of XPath. Numbers and truths are written as XPath writes them."""
    if isinstance(value, (Document, turbohtml.Element)):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(getattr(value, "text", value))


def _wrong(text: str, kind: str, example: str, error: ValueError) -> WrongUse:
    return WrongUse(f"{text!r} is no {kind}: {error}.", f"Give one such as {example}.")
