"""Data for machines in a page, as it stands there: JSON-LD, microdata, Open Graph."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from turbohtml import Document, MicrodataItem

from inchworm.rules.metadata.describe import MAX_ITEMS, MAX_JSON

MAX_DEPTH = 50
_JSON_LD = "application/ld+json"

Data = dict[str, Any]
"""`json_ld`: the blocks, parsed. `microdata`: items with `type`, `id` and `properties`. `open_graph`: texts by name.
Only what is there."""


def data_of(document: Document) -> Data:
    """What a page has of it. Broken blocks, and more than anybody would write, are left out."""
    found = {"json_ld": _json_ld(document), "microdata": _microdata(document), "open_graph": _open_graph(document)}
    return {name: value for name, value in found.items() if value}


def _json_ld(document: Document) -> list[Any]:
    blocks: list[Any] = []
    for script in document.iter_elements("script"):
        if (script.attr("type") or "").partition(";")[0].strip().lower() == _JSON_LD and len(blocks) < MAX_ITEMS:
            text = script.text
            with suppress(ValueError, RecursionError):
                if len(text) <= MAX_JSON and depth_is_fair(value := json.loads(text, parse_constant=_no_constant)):
                    blocks.append(value)
    return blocks


def _no_constant(name: str) -> None:
    """NaN and Infinity are no JSON, though Python reads them."""
    raise ValueError(name)


def depth_is_fair(value: Any) -> bool:
    """Whether others can write it again: many programs give up on deep nesting."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        children = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level, depth = [child for group in children for child in group], depth + 1
    return depth <= MAX_DEPTH


def _microdata(document: Document) -> list[Any]:
    # It raises where items nest without end, or in a circle.
    with suppress(RecursionError, ValueError):
        items = [_item(item, 0) for item in document.microdata()[:MAX_ITEMS]]
        return [item for item in items if depth_is_fair(item)]
    return []


def _item(item: MicrodataItem, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise RecursionError
    properties = {
        name: [_item(value, depth + 1) if isinstance(value, MicrodataItem) else value for value in values]
        for name, values in item.properties.items()
    }
    told = {"type": item.type, "id": item.id, "properties": properties}
    return {name: value for name, value in told.items() if value}


def _open_graph(document: Document) -> dict[str, str]:
    """The first word on each property, by its whole name: `og:title`, `article:author`, `twitter:card`."""
    found: dict[str, str] = {}
    for meta in document.iter_elements("meta"):
        name = (meta.attr("property") or meta.attr("name") or "").strip().lower()
        if ":" in name and name.partition(":")[0] in _VOCABULARIES and len(found) < 10 * MAX_ITEMS:
            found.setdefault(name, meta.attr("content") or "")
    return found


_VOCABULARIES = frozenset({"og", "article", "book", "product", "profile", "music", "video", "twitter", "fb"})
