"""Where the links of a document lead.

An href is resolved once per directory and not once per page: most links of a site are the same few thousand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from turbohtml import Document, Element

from inchworm.model import FoundUrl, Kind, Source
from inchworm.rules.formats.contents import MAX_LINKS
from inchworm.rules.metadata.describe import squeeze
from inchworm.rules.web import url as urls

MAX_LINK_CHARS = 64_000_000
MAX_ANCHOR = 200

_SHARED_CHARS = 256
_SCHEME = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_EXTENDS_PAGE = re.compile(r"(?:https?:)?(?:[?#]|\Z)", re.IGNORECASE)
_C0_AND_SPACE = "".join(map(chr, range(33)))
_WITHOUT_BREAKS = str.maketrans("", "", "\t\n\r")
_ASK_WITH_PAGE = FoundUrl("", "")


class Base(NamedTuple):
    """What the links of a page are relative to. Without a URL only absolute links lead anywhere."""

    url: str
    directory: str
    is_page: bool

    @property
    def max_links(self) -> int:
        # A short href becomes as long as its base: a huge base must not be multiplied by 100,000.
        return min(MAX_LINKS, MAX_LINK_CHARS // (len(self.url) + 1))


def base_of(url: str, declared: str | None) -> Base:
    """The document's base URL as browsers find it: a declared one, unless it is invalid or runs code."""
    own = urls.parse(url) or ""
    base = own
    if declared is not None and not (base := urls.parse(declared, own or None) or ""):
        scheme = _SCHEME.match(declared)
        leaves_the_web = scheme and scheme[1].lower() not in {"http", "https", "data", "javascript"}
        base = "" if leaves_the_web else own
    path = base.partition("#")[0].partition("?")[0]
    return Base(base, path[: path.rfind("/") + 1], base == own)


class Resolver:
    """Finds where hrefs lead, and remembers those that lead to the same place from a whole directory.

    One per way of telling URLs apart. What it remembers saves time and never changes an answer.
    """

    def __init__(self, canonicalizer: urls.Canonicalizer | None = None) -> None:
        self._identity = (canonicalizer or urls.Canonicalizer()).identity
        self._shared = lru_cache(maxsize=65_536)(self._from_directory)

    def add(self, links: dict[str, FoundUrl], hrefs: Iterable[str], base: Base, resource: bool) -> bool:
        """Add what the hrefs lead to, the first of equals only. True when there was more than may be kept."""
        url, directory, is_page, most = base.url, base.directory, base.is_page, base.max_links
        room = _SHARED_CHARS - len(directory)
        shared = self._shared
        for href in hrefs:
            if is_page and (not href or href[0] == "#"):
                continue
            found = shared(directory, href, resource) if len(href) <= room else _ASK_WITH_PAGE
            if found is _ASK_WITH_PAGE:
                found = self._resolve(url, href, resource)
            if found is None or found.url in links:
                continue
            if len(links) == most:
                return True
            links[found.url] = found
        return False

    def target(self, href: str, base: Base) -> str:
        """The URL that one href of a page leads to; empty when it leads nowhere else."""
        if base.is_page and (not href or href[0] == "#"):
            return ""
        is_short = len(base.directory) + len(href) <= _SHARED_CHARS
        found = self._shared(base.directory, href, False) if is_short else _ASK_WITH_PAGE
        if found is _ASK_WITH_PAGE:
            found = self._resolve(base.url, href, False)
        return found.url if found else ""

    def _from_directory(self, directory: str, href: str, resource: bool) -> FoundUrl | None:
        # The few that extend the page's own address ("?page=2") are told apart here, where it is paid once.
        if _EXTENDS_PAGE.match(href.strip(_C0_AND_SPACE).translate(_WITHOUT_BREAKS)):
            return _ASK_WITH_PAGE
        return self._resolve(directory, href, resource)

    def _resolve(self, base: str, href: str, resource: bool) -> FoundUrl | None:
        if (target := urls.parse(href, base or None)) is None:
            return None
        url, request = self._identity(target), urls.request_form(target)
        return FoundUrl(url, request, Kind.RESOURCE, Source.RESOURCE) if resource else FoundUrl(url, request)


# ---- links without markup


def named_links(
    named: Iterable[tuple[str, str]], url: str, resolver: Resolver, anchors: bool
) -> tuple[tuple[FoundUrl, ...], bool]:
    """Links that a document without markup names, as whole addresses, each with what it says; and whether there were
    more than may be kept. What is relative is left out: nobody can tell to what."""
    links: dict[str, FoundUrl] = {}
    base = base_of(url, None)
    is_capped = False
    for address_, text in named:
        if not _WHOLE.match(address_):
            continue
        count = len(links)
        if resolver.add(links, (address_,), base, False):
            is_capped = True
            break
        if anchors and len(links) > count:
            last = next(reversed(links))
            links[last] = links[last]._replace(anchor=short(text))
    return tuple(links.values()), is_capped


_WHOLE = re.compile(r"[\x00-\x20]*https?://", re.IGNORECASE)


def short(text: str) -> str:
    """What a link is called."""
    return squeeze(text)[:MAX_ANCHOR].rstrip()


# ---- resources

_RESOURCES = frozenset(
    {
        ("audio", "src"),
        ("embed", "src"),
        ("image", "href"),
        ("image", "xlink:href"),
        ("img", "src"),
        ("img", "srcset"),
        ("object", "data"),
        ("script", "href"),
        ("script", "src"),
        ("source", "src"),
        ("source", "srcset"),
        ("track", "src"),
        ("use", "href"),
        ("use", "xlink:href"),
        ("video", "poster"),
        ("video", "src"),
    }
)
_RESOURCE_RELS = frozenset(
    {
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "icon",
        "manifest",
        "mask-icon",
        "modulepreload",
        "preload",
        "stylesheet",
    }
)


def resources_of(document: Document) -> Iterator[str]:
    """What a page needs to be shown, as it is written."""
    for element, attribute, href in document.links():
        if href and _is_resource(element, attribute):
            yield href


def _is_resource(element: Element, attribute: str | None) -> bool:
    if attribute in (None, "background", "imagesrcset", "style"):
        return True
    tag = element.tag
    if tag == "link":
        return not tokens(element, "rel").isdisjoint(_RESOURCE_RELS)
    if tag == "input":
        return type_of(element) == "image"
    return (tag, attribute) in _RESOURCES


def tokens(element: Element, attribute: str) -> set[str]:
    """The words of an attribute."""
    return set((element.attr(attribute) or "").lower().split())


def type_of(element: Element) -> str:
    """The type an element says it has."""
    return (element.attr("type") or "").strip().lower()
