"""Taking fields out of a document, by rules. Only where a selector that breaks the parser does no harm (`apart`)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import turbohtml
from turbohtml import Document, Element, Node, Text, XPathString

from inchworm.rules.fields import convert
from inchworm.rules.fields.selectors import EACH, ElementPart, Field, Rules, Selector, ValueType, pattern
from inchworm.rules.metadata.data import depth_is_fair
from inchworm.rules.metadata.describe import squeeze
from inchworm.rules.page import parse
from inchworm.rules.web import url as urls

MAX_ROWS = 100_000
MAX_CHARS = 10_000_000
"""Of one page. Whoever finds more than this has the wrong selector."""

Row = list[Any]
"""The values of the fields, in their order; None where there is none."""

_ADDRESSES = frozenset(
    ("href", "src", "action", "formaction", "poster", "cite", "data", "background", "longdesc", "xlink:href")
)
_UNSEEN = frozenset(("script", "style", "template", "noscript"))
_IN_LINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em"),
        *("font", "i", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small"),
        *("span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    )
)
_SAMPLE = "<!doctype html><title>A</title><ul id=b class=b><li class=g><a href='/c' title=d>e</a> 1<li>f</ul>"


class TooMuch(Exception):
    """More than anybody wants of one page."""


class _Found(NamedTuple):
    """A text that a selector found, and whether it is an address relative to its page."""

    text: str
    is_address: bool = False


def rows(rules: Rules, body: bytes, content_type: str, url: str) -> list[Row]:
    """The rows of a page. Without `each` it is one, also of what is no HTML; with it as many as there are matches."""
    tree = parse.tree(body, content_type, url)
    if tree is None:
        return [] if rules.each else [[None] * len(rules.fields)]
    document, base = tree
    taken: list[Row] = []
    chars = 0
    for element in _elements(rules.each, document) if rules.each else (document,):
        row = [_value(field, element, base) for field in rules.fields]
        chars += sum(map(_length, row))
        taken.append(row)
        if len(taken) > MAX_ROWS or chars > MAX_CHARS:
            raise TooMuch(f"more than {MAX_ROWS:,} rows or {MAX_CHARS:,} characters")
    return taken


def faults(rules: Rules) -> list[tuple[str, str]]:
    """The fields whose selectors cannot be used, and why."""
    document = turbohtml.parse(_SAMPLE)
    element = document.root
    assert element is not None
    looks: list[tuple[str, Callable[[], object]]] = [(field.name, _look(field, element)) for field in rules.fields]
    if (each := rules.each) is not None:
        looks.append((EACH, lambda: list(_elements(each, document))))
    return [(name, why) for name, look in looks if (why := _fault(look))]


def _look(field: Field, element: Element) -> Callable[[], object]:
    return lambda: _value(field, element, "")


def _fault(look: Callable[[], object]) -> str:
    try:
        look()
    except (ValueError, TypeError) as error:
        return str(error) or repr(error)
    return ""


def _elements(selector: Selector, document: Document) -> Iterator[Element]:
    found = document.xpath(selector.text) if selector.is_xpath else document.select(selector.text)
    for one in found if isinstance(found, list) else [found]:
        if not isinstance(one, Element):
            raise ValueError("it finds no elements but texts or numbers, and those are no rows")
        yield one


# ---- one value


def _value(field: Field, element: Node, base: str) -> Any:
    found = _matches(field, element)
    if not field.is_list:
        first = next(found, None)
        return _converted(field, first, base) if first is not None else None
    values = (_converted(field, one, base) for one in found)
    return [value for value in values if value is not None]


def _matches(field: Field, element: Node) -> Iterator[_Found]:
    """What the selector of a field finds, in the order of the document."""
    selector = field.selector
    if selector.is_xpath:
        yield from _xpath_matches(selector, element)
        return
    if not selector.text:
        own = element.root if isinstance(element, Document) else element
        chosen = [own] if isinstance(own, Element) else []
    elif field.is_list:
        chosen = element.select(selector.text)
    else:
        one = element.select_one(selector.text)
        chosen = [one] if one is not None else []
    for match in chosen:
        if (text := _part(selector, match)) is not None:
            yield _Found(text, selector.attribute in _ADDRESSES)


def _xpath_matches(selector: Selector, element: Node) -> Iterator[_Found]:
    result = element.xpath(selector.text, smart_strings=True)
    for one in result if isinstance(result, list) else [result]:
        if isinstance(one, Element):
            yield _Found(text_of(one))
        elif isinstance(one, XPathString):
            yield _Found(str(one), one.attrname in _ADDRESSES)
        elif isinstance(one, bool):
            yield _Found("true" if one else "false")
        elif isinstance(one, float):
            if math.isfinite(one):
                yield _Found(str(int(one)) if one.is_integer() else repr(one))
        else:
            yield _Found(str(one))


def _part(selector: Selector, element: Element) -> str | None:
    if selector.part is ElementPart.ATTRIBUTE:
        return element.attr(selector.attribute)
    if selector.part is ElementPart.HTML:
        return element.html
    if selector.part is ElementPart.OWN_TEXT:
        return "".join(child.data for child in element.children if isinstance(child, Text))
    return text_of(element)


def text_of(element: Element) -> str:
    """The text of an element as people see it: words of two paragraphs or cells do not run together, and what is
    written for machines does not count, unless it is the element itself."""
    children = element.children
    if all(isinstance(child, Text) for child in children):
        return element.text
    texts: list[str] = []
    waiting: list[Node | str] = list(reversed(children))
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            texts.append(node)
        elif isinstance(node, Text):
            texts.append(node.data)
        elif isinstance(node, Element) and node.tag not in _UNSEEN:
            gap = "" if node.tag in _IN_LINE else " "
            waiting += (gap, *reversed(node.children), gap)
    return "".join(texts)


# ---- what is made of it


def _matched(one: str, text: str) -> str | None:
    """What the first group of a pattern finds in a text, or all of it where there is none."""
    compiled = pattern(one)
    # What UTF-8 cannot hold no pattern can be asked about.
    match = compiled.search(text if text.isascii() else text.encode("utf-8", "replace").decode())
    return match.group(1 if compiled.groups else 0) if match else None


def _converted(field: Field, found: _Found, base: str) -> Any:
    text: str | None = found.text
    is_raw = field.kind is ValueType.JSON or field.selector.part is ElementPart.HTML
    if field.patterns and not is_raw:
        text = squeeze(found.text)
    for one in field.patterns:
        text = _matched(one, text or "")
    if not text or text.isspace():
        return None
    if field.kind is not None:
        return _CONVERT[field.kind](text, field.form, base)
    if is_raw:
        return text.strip()
    return (found.is_address and not field.patterns and urls.parse(text, base or None)) or squeeze(text)


def _json(text: str, *_: str) -> Any:
    with suppress(ValueError, RecursionError):
        value = json.loads(text, parse_constant=lambda _: None)
        return value if depth_is_fair(value) else None
    return None


_CONVERT: dict[ValueType, Callable[[str, str, str], Any]] = {
    ValueType.TEXT: lambda text, *_: squeeze(text),
    ValueType.NUMBER: lambda text, form, _: convert.number(text, form),
    ValueType.INTEGER: lambda text, form, _: convert.integer(text, form),
    ValueType.DATE: lambda text, form, _: convert.moment(text, form),
    ValueType.URL: lambda text, _, base: urls.parse(text, base or None),
    ValueType.JSON: _json,
}


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return len(json.dumps(value)) if isinstance(value, list | dict) else 1
