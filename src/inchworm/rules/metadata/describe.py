"""What a page says about itself: its metas, Open Graph and JSON-LD, the best word for each field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import chain

from inchworm.rules.web import url as urls

MAX_FIELD = 1_000
MAX_ADDRESS = 8_192
MAX_ITEMS = 50
MAX_JSON = 1_000_000


@dataclass(slots=True)
class PageMetadata:
    """What was met on a page, as it was written there."""

    metas: dict[str, str] = field(default_factory=dict)
    feeds: list[str] = field(default_factory=list)
    json_ld: list[str] = field(default_factory=list)


Json = Mapping[str, object]

_PUBLISHED = """
article:published_time og:article:published_time og:publish_date datepublished datecreated publisheddate publish_date
publish-date date pubdate dc.date dc.date.issued dcterms.date dcterms.issued dcterms.created citation_publication_date
citation_date parsely-pub-date sailthru.date
"""
_MODIFIED = """
article:modified_time og:article:modified_time og:updated_time datemodified last-modified dc.date.modified
dcterms.modified
"""
_AUTHORS = """
author article:author og:author dc.creator dcterms.creator creator citation_author parsely-author sailthru.author byl
"""
# field: the JSON-LD properties, then the metas that stand in for them, best first.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "description": (
        ("description",),
        ("og:description", "description", "twitter:description", "dc.description", "dcterms.description"),
    ),
    "published": (("datePublished", "dateCreated"), tuple(_PUBLISHED.split())),
    "modified": (("dateModified",), tuple(_MODIFIED.split())),
    "publisher": (("publisher",), ("publisher", "article:publisher", "dc.publisher", "dcterms.publisher")),
    "site_name": ((), ("og:site_name", "application-name")),
    "image": (("image",), ("og:image", "og:image:url", "twitter:image", "twitter:image:src")),
    "type": (("@type",), ("og:type",)),
}
# What a card for sharing has to say, and under which words: an author, or how long it takes to read.
_CARDS = (("twitter:label1", "twitter:data1"), ("twitter:label2", "twitter:data2"))
_KEYWORDS = ("keywords", "news_keywords")
_KEYWORD_CHARS = 10 * MAX_FIELD
WANTED = frozenset(name for _, names in _FIELDS.values() for name in names)
WANTED |= {*_AUTHORS.split(), *_KEYWORDS, "og:title", "generator"}.union(*_CARDS)
_TELLING = WANTED - {"og:title", "generator"}
_WRITTEN_BY = re.compile(
    r"written|author|verfasst|geschr|écrit|aut[eo]u?r|escrit|scritt|skrevet|skriv|napisan|написан", re.IGNORECASE
)
_ADDRESS = re.compile(r"https?:|//|www\.|@", re.IGNORECASE)
# These describe the site or its makers, not the page.
_ASIDE = frozenset({"BreadcrumbList", "ImageObject", "Organization", "Person", "SearchAction", "WebSite"})


def describe(said: PageMetadata, base: str) -> dict[str, object]:
    """The fields that are there. Addresses are made absolute, texts are made fit to be stored."""
    if not said.json_ld and not said.feeds and _TELLING.isdisjoint(said.metas):
        return {}
    nodes = [node for text in said.json_ld for node in _nodes(text)]
    by_id = {name: node for node in nodes if isinstance(name := node.get("@id"), str)}
    works = [node for node in nodes if not _ASIDE.intersection(_strings(node.get("@type"), by_id, ""))]
    fields: dict[str, object] = {}
    for name, (keys, metas) in _FIELDS.items():
        wanted = "url" if name == "image" else "name"
        texts = (
            _first(_strings(node.get(key), by_id, wanted) for key in keys for node in works)
            or [said.metas[meta] for meta in metas if meta in said.metas][:1]
        )
        text = "".join(texts[:1])
        if text := address(text, base) if name == "image" else clean(text):
            fields[name] = text
    if authors := _authors(works, by_id, said.metas):
        fields["author"] = clean(", ".join(authors))
    if "site_name" not in fields and (name := _site_name(nodes)):
        fields["site_name"] = name
    if keywords := _keywords(works, by_id, said.metas):
        fields["keywords"] = keywords
    if feeds := _unique(address(href, base) for href in said.feeds):
        fields["feeds"] = feeds
    return fields


def product_described(json_ld: Iterable[str]) -> str:
    """How a page describes the product that it is about, for machines; nothing where it names several."""
    nodes = [node for text in json_ld if _PRODUCT in text for node in _nodes(text)]
    goods = [node for node in nodes if not _GOODS.isdisjoint(_strings(node.get("@type"), {}, ""))]
    texts = [text for node in goods[:1] for text in _strings(node.get("description"), {}, "")]
    return squeeze(_TAG.sub(" ", unescape(unescape(texts[0][:_LONGEST_DESCRIPTION])))) if texts else ""


_PRODUCT = "Product"
_GOODS = frozenset({"Product", "ProductGroup"})
_LONGEST_DESCRIPTION = 20_000
_TAG = re.compile(r"<[^<>]*>")


def _authors(works: list[Json], by_id: Mapping[str, Json], metas: Mapping[str, str]) -> list[str]:
    """Who is said to have written it, by name: some give an address instead, of a profile or of the site's owner."""
    said = (_names(_strings(node.get("author"), by_id, "name")) for node in works)
    named = (_names([metas[name]]) for name in _AUTHORS.split() if name in metas)
    on_cards = (_names([metas.get(data, "")]) for label, data in _CARDS if _WRITTEN_BY.search(metas.get(label, "")))
    return _first(chain(said, named, on_cards))


def _names(texts: list[str]) -> list[str]:
    return _unique(name for text in texts if not _ADDRESS.match(name := clean(unescape(text))))


def _keywords(works: list[Json], by_id: Mapping[str, Json], metas: Mapping[str, str]) -> list[str]:
    texts = _first(_strings(node.get("keywords"), by_id, "name") for node in works) or _first(
        [metas[name]] for name in _KEYWORDS if name in metas
    )
    return _unique(clean(word) for text in texts for word in text[:_KEYWORD_CHARS].split(","))


def _site_name(nodes: list[Json]) -> str:
    sites = (node.get("name") for node in nodes if "WebSite" in _strings(node.get("@type"), {}, ""))
    return next((clean(name) for name in sites if isinstance(name, str)), "")


def _nodes(text: str) -> list[Json]:
    """The objects of one JSON-LD block, a list or a @graph opened, and what they say to be the main thing on the page.
    Broken or absurd ones have none."""
    if len(text) > MAX_JSON:
        return []
    try:
        found = json.loads(text, strict=False)  # many have line breaks in their texts
    except (ValueError, RecursionError):
        return []
    if isinstance(found, dict) and isinstance(found.get("@graph"), list):
        found = found["@graph"]
    items = found if isinstance(found, list) else [found]
    nodes = [item for item in items[: 10 * MAX_ITEMS] if isinstance(item, dict)]
    return [*nodes, *(thing for node in nodes if isinstance(thing := node.get("mainEntity"), dict))]


def _strings(value: object, by_id: Mapping[str, Json], key: str) -> list[str]:
    """The texts in a JSON-LD value: a text, an object with a name, a reference to one, or a list of those."""
    texts = []
    for item in value[:MAX_ITEMS] if isinstance(value, list) else [value]:
        text = item
        if isinstance(item, dict):
            name = item.get("@id")
            text = item.get(key) or (by_id[name].get(key) if isinstance(name, str) and name in by_id else "")
        if isinstance(text, str) and text.strip():
            texts.append(text)
    return texts


def _first(candidates: Iterable[list[str]]) -> list[str]:
    return next((texts for texts in candidates if texts), [])


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))[:MAX_ITEMS]


def clean(text: str) -> str:
    """A text made fit to be stored as one field."""
    # JSON can spell what no database takes: a NUL and half a surrogate pair.
    text = squeeze(text[: 4 * MAX_FIELD])[:MAX_FIELD].replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")


def address(href: str, base: str) -> str:
    """An address to be shown, not followed. One cut short would be another, so a huge one is left out."""
    target = urls.parse(href, base or None) if href else None
    return target if target and len(target) <= MAX_ADDRESS else ""


def squeeze(text: str) -> str:
    """The text with single spaces between its words."""
    return " ".join(text.split())
