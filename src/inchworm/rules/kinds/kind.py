"""What kind of page this is: an article, a product, a forum, …, by its structure and by what it says of itself.

Every sign speaks for some kinds and against others, by so much; the kind with the highest sum is the one. What pages
say of themselves is often what their software says of all pages, so it decides alone only where that is right as often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

ARTICLE, COLLECTION, DOCUMENTATION, FORUM = "article", "collection", "documentation", "forum"
LISTING, PRODUCT, SERVICE = "listing", "product", "service"
KINDS = (ARTICLE, COLLECTION, DOCUMENTATION, FORUM, LISTING, PRODUCT, SERVICE)

_TYPE = re.compile(r'"@type"\s*:\s*(?:\[\s*)?"(?:https?://schema\.org/)?(\w{1,40})"')
_MONEY = ("$", "€", "£", "¥", "₹", "zł", "Kč", "₽", " kr", "EUR", "USD")
# One character is found thirty times faster than two, if it is one that few texts have.
_MONEY_WITH_RAREST = tuple((sign, next(filter("łč".__contains__, sign), sign)) for sign in _MONEY)
_MOST_PRICES = 100
_OFFERS = """
add to cart; add to bag; add to basket; buy now; buy it now; in den warenkorb; ajouter au panier; añadir al carrito;
aggiungi al carrello; in winkelwagen; do koszyka; в корзину
"""
_TO_BUY = tuple(" ".join(offer.split()) for offer in _OFFERS.split(";"))
_SAYS_FORUM = re.compile(
    r"discourse|vbulletin|phpbb|xenforo|mybb|invision|nodebb|vanilla|flarum|simple machines", re.IGNORECASE
)
_SAYS_MANUAL = re.compile(
    r"docutils|sphinx|docusaurus|mkdocs|rustdoc|javadoc|doxygen|hugo|gatsby|mediawiki|bookdown|docbook|asciidoc|"
    r"vitepress|starlight|gitbook|mdbook|jekyll",
    re.IGNORECASE,
)
_LONGEST_TYPES = 200_000
_LONGEST_GENERATOR = 1_000
_ARTICLES = frozenset({"article", "newsarticle", "blogposting", "reportagenewsarticle", "blog"})
THREADS = frozenset({"discussionforumposting", "qapage", "forum"})
_GOODS = frozenset({"product", "productgroup", "product.item", "ebay-objects:item", "og:product"})
_LISTS = frozenset({"itemlist", "collectionpage", "product.group"})
_FIRMS = frozenset({"service", "localbusiness", "professionalservice", "faqpage"})
_MANUALS = frozenset({"manual", "techarticle"})
_SPEAK_AGAINST = _GOODS | _LISTS | _FIRMS


class Counted(NamedTuple):
    """What was counted in the page without its frame. Sizes are in characters."""

    text: int
    prose: int
    links: int
    posts: int
    code: int
    cards: int
    prices: int
    buys: int
    times: int


def types_said(metas: Mapping[str, str], json_ld: Iterable[str]) -> frozenset[str]:
    """What a page says it is, in lower case, in its metas and in its data for machines."""
    said = {metas["og:type"].strip().lower()} if "og:type" in metas else set()
    for text in json_ld:
        said.update(name.lower() for name in _TYPE.findall(text[:_LONGEST_TYPES]))
    return (
        _types_made_by(metas["generator"][:_LONGEST_GENERATOR]).union(said) if "generator" in metas else frozenset(said)
    )


@lru_cache(maxsize=256)
def _types_made_by(generator: str) -> frozenset[str]:
    """What the software that made a page makes: the pages of a site name the same."""
    looks = (("forum", _SAYS_FORUM), ("manual", _SAYS_MANUAL))
    return frozenset(name for name, look in looks if look.search(generator))


def prices_in(text: str) -> int:
    """How many amounts of money there are, about: a sign for it with a digit before or behind it."""
    # Most pages have none, and an expression that looks for one at every place takes longer than all else here.
    count = 0
    for sign, rarest in _MONEY_WITH_RAREST:
        if rarest in text and sign in text:
            count += _amounts(text, sign)
    return count


def _amounts(text: str, sign: str) -> int:
    count, at = 0, text.find(sign)
    while at >= 0 and count < _MOST_PRICES:
        before, behind = text[max(0, at - 2) : at].strip(), text[at + len(sign) : at + len(sign) + 2].strip()
        count += before[-1:].isdigit() or behind[:1].isdigit()
        at = text.find(sign, at + len(sign))
    return count


def buys_in(text: str) -> int:
    """How often a text offers to buy something."""
    said = text.lower()
    return sum(said.count(offer) for offer in _TO_BUY)


def signs(types: frozenset[str], counted: Counted) -> list[str]:
    """The signs that a page has."""
    size = max(1, counted.text)
    prose, links = counted.prose / size, counted.links / size
    found = {
        "says article": not _ARTICLES.isdisjoint(types),
        "says thread": not THREADS.isdisjoint(types),
        "says product": not _GOODS.isdisjoint(types),
        "says list": not _LISTS.isdisjoint(types),
        "says firm": not _FIRMS.isdisjoint(types),
        "says manual": not _MANUALS.isdisjoint(types),
        "says website": "website" in types,
        "posts": counted.posts >= 3,
        "many posts": counted.posts >= 12,
        "code": counted.code >= 2,
        "much code": counted.code >= 8,
        "cards": counted.cards >= 6,
        "many cards": counted.cards >= 15,
        "price": counted.prices >= 1,
        "prices": counted.prices >= 6,
        "many prices": counted.prices >= 20,
        "to buy": counted.buys >= 1,
        "much to buy": counted.buys >= 4,
        "times": counted.times >= 5,
        "little prose": prose < 0.2,
        "some prose": prose >= 0.4,
        "mostly prose": prose >= 0.65,
        "long": counted.prose >= 3_000,
        "very long": counted.prose >= 10_000,
        "short": counted.text < 2_000,
        "links": links >= 0.25,
        "mostly links": links >= 0.5,
    }
    return [name for name, has in found.items() if has]


def judge(types: frozenset[str], count: Callable[[], Counted]) -> str:
    """The kind of a page. Counting takes long, and what most manuals, threads and articles say of themselves decides
    as well without."""
    return _said(types) or _kind_with(tuple(signs(types, count())))


@lru_cache(maxsize=4_096)
def _said(types: frozenset[str]) -> str:
    if not _MANUALS.isdisjoint(types):
        return DOCUMENTATION
    if not THREADS.isdisjoint(types):
        return FORUM
    return ARTICLE if not _ARTICLES.isdisjoint(types) and _SPEAK_AGAINST.isdisjoint(types) else ""


@lru_cache(maxsize=4_096)
def _kind_with(found: tuple[str, ...]) -> str:
    # The pages of a site have the same few signs.
    sums = dict.fromkeys(KINDS, 0.0) | _BEFORE
    for sign in found:
        for kind, weight in _SPEAKS[sign].items():
            sums[kind] += weight
    return max(KINDS, key=lambda kind: sums[kind])


# How much a sign speaks for a kind, found by a regression over 714 pages whose kind people told, and rounded to halves.
_BEFORE: dict[str, float] = {COLLECTION: 0.5, DOCUMENTATION: -0.5, FORUM: -1.5, PRODUCT: 0.5, SERVICE: 1.0}
_SPEAKS: dict[str, dict[str, float]] = {
    "cards": {DOCUMENTATION: 0.5, LISTING: 0.5, PRODUCT: -0.5},
    "code": {DOCUMENTATION: 1.0, LISTING: -0.5, SERVICE: -0.5},
    "links": {ARTICLE: -1.0, COLLECTION: 1.0, LISTING: 1.0, PRODUCT: -0.5, SERVICE: -0.5},
    "little prose": {FORUM: 0.5, LISTING: 1.0, PRODUCT: -0.5, SERVICE: -0.5},
    "long": {ARTICLE: 0.5, LISTING: -0.5, PRODUCT: -0.5},
    "many cards": {ARTICLE: -0.5, COLLECTION: 0.5, LISTING: 1.0, PRODUCT: -0.5, SERVICE: -0.5},
    "many posts": {ARTICLE: -0.5, COLLECTION: -0.5, DOCUMENTATION: -0.5, FORUM: 1.5, SERVICE: -0.5},
    "many prices": {COLLECTION: 1.0, LISTING: -0.5, PRODUCT: -0.5},
    "mostly links": {ARTICLE: -0.5},
    "mostly prose": {ARTICLE: 0.5, COLLECTION: -0.5, FORUM: 0.5, PRODUCT: -0.5},
    "much code": {ARTICLE: -0.5, DOCUMENTATION: 1.0},
    "much to buy": {COLLECTION: 0.5},
    "posts": {COLLECTION: -0.5, DOCUMENTATION: -0.5, FORUM: 1.0, LISTING: 0.5, SERVICE: -0.5},
    "price": {ARTICLE: -0.5, COLLECTION: 0.5, DOCUMENTATION: -1.0, FORUM: -0.5, PRODUCT: 0.5},
    "prices": {COLLECTION: 0.5, DOCUMENTATION: -0.5},
    "says article": {ARTICLE: 1.5, COLLECTION: -0.5, FORUM: -0.5, PRODUCT: -0.5},
    "says firm": {ARTICLE: -0.5, DOCUMENTATION: -0.5, FORUM: -0.5, SERVICE: 1.0},
    "says list": {ARTICLE: -0.5, COLLECTION: 1.0, LISTING: 0.5, PRODUCT: -0.5, SERVICE: -0.5},
    "says manual": {ARTICLE: -0.5, COLLECTION: -0.5, DOCUMENTATION: 1.5, SERVICE: -0.5},
    "says product": {ARTICLE: -1.0, DOCUMENTATION: -0.5, FORUM: -0.5, LISTING: -0.5, PRODUCT: 2.5},
    "says thread": {ARTICLE: -0.5, COLLECTION: -0.5, FORUM: 2.5, LISTING: -0.5, SERVICE: -0.5},
    "says website": {COLLECTION: -0.5, SERVICE: 0.5},
    "short": {ARTICLE: -0.5, FORUM: 1.0, SERVICE: -0.5},
    "some prose": {
        ARTICLE: 0.5,
        COLLECTION: -0.5,
        DOCUMENTATION: 0.5,
        FORUM: 0.5,
        LISTING: -0.5,
        PRODUCT: -0.5,
        SERVICE: 0.5,
    },
    "times": {ARTICLE: -0.5, FORUM: 1.0, SERVICE: -0.5},
    "to buy": {ARTICLE: -0.5, COLLECTION: 0.5, FORUM: -0.5, LISTING: -0.5, PRODUCT: 1.5, SERVICE: -0.5},
    "very long": {ARTICLE: 0.5, DOCUMENTATION: 0.5, PRODUCT: -0.5, SERVICE: -0.5},
}
