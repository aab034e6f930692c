"""Reading a page: one parse gives its links, title, text and what it says about itself.

This is the hottest path there is, so the tree is walked once for everything that lies in tags, and an href
is resolved once per directory and not once per page: most links of a site are the same few thousand.
Nothing is judged here. Links come out all of them, in document order, those of pages before those of
resources, so that asking for resources does not change the order of the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import turbohtml
from turbohtml import Document, Element, Namespace, Node

from inchworm.model import Found, Kind, Reading, Source
from inchworm.rules import url as urls

MAX_LINKS = 100_000
MAX_LINK_CHARS = 64_000_000
MAX_TITLE = 1_000
MAX_TEXT = 10_000_000
MAX_FIELD = 1_000
MAX_ADDRESS = 8_192
MAX_ITEMS = 50
MAX_JSON = 1_000_000

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset(
    {
        "",
        "*/*",
        "application/octet-stream",
        "application/unknown",
        "application/x-unknown-content-type",
        "binary/octet-stream",
        "unknown/unknown",
    }
)
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([a-z0-9_.:()+-]+)', re.ASCII | re.IGNORECASE)
# What a browser takes for HTML without being told (MIME Sniffing, 7.1), and what nobody should.
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a"
    rb"|style|title|b|body|br|p)[ >\t\n\f\r])",
    re.IGNORECASE,
)
_BINARY = re.compile(
    rb"%PDF-|PK\x03\x04|PK\x05\x06|\x1f\x8b|\x89PNG|\xff\xd8\xff|GIF8[79]a|....ftyp"
    rb"|RIFF....(?:WEBP|AVI |WAVE)|\x1aE\xdf\xa3|OggS\0|ID3[\x02-\x04]|Rar!\x1a|7z\xbc\xaf|BZh[1-9]1AY"
    rb"|\xfd7zXZ|\x28\xb5\x2f\xfd|wOF[F2]|\x7fELF|\0\0\x01\0",
    re.DOTALL,
)


def read(body: bytes, content_type: str, url: str, how: How | None = None) -> Reading:
    """What the answer to `url` says: everything for HTML, links for CSS, nothing for the rest."""
    how = how or _USUAL
    resources, resolver = how.resources, how.resolver
    if is_html(content_type, body):
        return _read_html(_document(body, content_type), url, how)
    if resources and _essence(content_type) == "text/css":
        return _read_css(body, content_type, url, resolver)
    return Reading()


def is_html(content_type: str, body: bytes) -> bool:
    """Whether to parse this as HTML. A label is believed unless the body is plainly something else."""
    essence = _essence(content_type)
    if essence in _HTML_TYPES:
        return not _BINARY.match(body)
    return essence in _UNKNOWN_TYPES and bool(_LOOKS_LIKE_HTML.match(body))


def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _document(body: bytes, content_type: str) -> Document:
    """Decode as browsers do: byte order mark, then the label if it is a known one, then a look inside.

    Shadow roots stay plain templates, because the links in them count like any other.
    """
    if label := _CHARSET.search(content_type):
        with suppress(LookupError):
            return turbohtml.parse(body, encoding=label[1], positions=False, allow_declarative_shadow_roots=False)
    return turbohtml.parse(body, detect_encoding=True, positions=False, allow_declarative_shadow_roots=False)


# ---- the pass over the elements


@dataclass(slots=True)
class _Page:
    """What the pass gathers. Nothing is resolved yet: a <base> may stand after the links it governs."""

    document: Document
    hrefs: list[str] = field(default_factory=list)
    not_prose: int = 0
    base: str | None = None
    title: str | None = None
    canonical: str = ""
    refresh: bool = False
    robots: set[str] = field(default_factory=set)
    metas: dict[str, str] = field(default_factory=dict)
    feeds: list[str] = field(default_factory=list)
    json_ld: list[str] = field(default_factory=list)
    mains: list[Element] = field(default_factory=list)
    articles: list[Element] = field(default_factory=list)


def _gather(document: Document) -> _Page:
    page = _Page(document)
    add = page.hrefs.append
    for element in document.iter_elements(_TAGS):
        if (tag := element.tag) == "a":
            page.not_prose += len(element.text)
            href = element.attr("href")
            if href is None:
                href = element.attr("xlink:href")
            if href is not None:
                add(href)
        else:
            _HANDLERS[tag](page, element)
    return page


def _on_area(page: _Page, element: Element) -> None:
    if (href := element.attr("href")) is not None:
        page.hrefs.append(href)


def _on_frame(page: _Page, element: Element) -> None:
    if src := element.attr("src"):
        page.hrefs.append(src)


def _on_base(page: _Page, element: Element) -> None:
    # Only the first base with an href counts, even when it turns out to be no use.
    if page.base is None and (href := element.attr("href")) is not None and not element.closest("template"):
        page.base = href


def _on_title(page: _Page, element: Element) -> None:
    if page.title is None and element.namespace is Namespace.HTML:
        page.title = element.text


def _on_link(page: _Page, element: Element) -> None:
    href = element.attr("href")
    if not href:
        return
    rel = _tokens(element, "rel")
    if "canonical" in rel:
        page.canonical = page.canonical or href
    if not rel.isdisjoint(_PAGE_RELS):
        page.hrefs.append(href)
    if "alternate" in rel and len(page.feeds) < MAX_ITEMS and _type(element) in _FEED_TYPES:
        page.feeds.append(href)


def _on_meta(page: _Page, element: Element) -> None:
    if not (content := element.attr("content")):
        return
    name = element.attr("name") or element.attr("property") or element.attr("itemprop") or ""
    name = name.strip().lower()
    if name in _WANTED:
        page.metas.setdefault(name, content)
    elif name in _ROBOTS:
        page.robots.update(content.lower().replace(",", " ").split())
    elif not page.refresh and (element.attr("http-equiv") or "").lower() == "refresh":
        page.refresh = True
        if (refresh := page.document.meta_refresh()) and refresh[1]:
            page.hrefs.append(refresh[1])


def _on_script(page: _Page, element: Element) -> None:
    page.not_prose += len(element.text)
    if _type(element) == "application/ld+json" and len(page.json_ld) < MAX_ITEMS:
        page.json_ld.append(element.text)


def _on_style(page: _Page, element: Element) -> None:
    page.not_prose += len(element.text)


def _on_main(page: _Page, element: Element) -> None:
    page.mains.append(element)


def _on_article(page: _Page, element: Element) -> None:
    page.articles.append(element)


def _type(element: Element) -> str:
    return (element.attr("type") or "").strip().lower()


def _tokens(element: Element, attribute: str) -> set[str]:
    return set((element.attr(attribute) or "").lower().split())


_HANDLERS: dict[str, Callable[[_Page, Element], None]] = {
    "area": _on_area,
    "article": _on_article,
    "base": _on_base,
    "frame": _on_frame,
    "iframe": _on_frame,
    "link": _on_link,
    "main": _on_main,
    "meta": _on_meta,
    "script": _on_script,
    "style": _on_style,
    "title": _on_title,
}
_TAGS = ("a", *_HANDLERS)
_PAGE_RELS = frozenset({"next", "prev"})
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_ROBOTS = frozenset({"robots", "inchworm"})


# ---- what comes of it


def _read_html(document: Document, url: str, how: How) -> Reading:
    page, resources, resolver = _gather(document), how.resources, how.resolver
    base = _base(url, page.base)
    links: dict[str, Found] = {}
    capped = resolver.add(links, page.hrefs, base, False)
    if resources and not capped:
        capped = resolver.add(links, _resources(document), base, True)
    title = _squeeze(page.title or "")
    main = _main_part(page)
    words = _words(main)
    meta = _describe(page, base.url) if page.metas or page.json_ld or page.feeds else {}
    flags = {
        "nofollow": not page.robots.isdisjoint(("nofollow", "none")),
        "noindex": not page.robots.isdisjoint(("noindex", "none")),
        "links_capped": capped,
        "title_capped": len(title) > MAX_TITLE,
        "text_capped": len(words) > MAX_TEXT,
    }
    meta.update((flag, True) for flag, is_set in flags.items() if is_set)
    return Reading(
        links=tuple(links.values()),
        title=title[:MAX_TITLE],
        words=words[:MAX_TEXT],
        text=main.to_text()[:MAX_TEXT] if how.text else "",
        language=_language(document.root),
        canonical=_address(page.canonical, base.url),
        nofollow=flags["nofollow"],
        noindex=flags["noindex"],
        meta=meta,
    )


_MOST = 0.85
_NOT_PROSE = ("a", "script", "style")
_CODE = ("script", "style")


def _main_part(page: _Page) -> Node:
    """The part that holds the text, without the frame around it.

    A page that says which part is its main one is believed. Otherwise scoring finds the densest element, which on a
    page of tables may be a single cell; from there we climb until most of the page's prose (text that is not a link)
    is inside, because two pages that share a cell are not the same page.
    """
    said = page.mains or page.articles
    if len(said) == 1:
        return said[0]
    document = page.document
    element: Element | None = document.main_content()
    enough = _MOST * (len(document.text) - page.not_prose)
    # A page can be nested deeper than anybody would write; climbing all of that would cost more than it tells.
    for _ in range(50):
        # What has too little text at all needs no closer look.
        if element is None or (len(element.text) >= enough and _prose(element) >= enough):
            break
        element = element.parent if isinstance(element.parent, Element) else None
    return element or document.find("body") or document


def _words(part: Node) -> str:
    """The text as it stands in the source. Laying it out would take four times as long, and tell no more apart."""
    text = part.text
    for code in part.iter_elements(_CODE):
        text = text.replace(code.text, "", 1)
    return text


def _prose(node: Node) -> int:
    return len(node.text) - sum(len(element.text) for element in node.iter_elements(_NOT_PROSE))


def _read_css(body: bytes, content_type: str, url: str, resolver: Resolver) -> Reading:
    # Inside a <style> the parser finds the links of a sheet, comments and imports minded.
    document = _document(b"<style>" + body.removeprefix(b"\xef\xbb\xbf"), content_type)
    links: dict[str, Found] = {}
    hrefs = (link.url for link in document.links() if link.attribute is None)
    capped = resolver.add(links, hrefs, _base(url, None), True)
    return Reading(links=tuple(links.values()), meta={"links_capped": True} if capped else {})


def _language(root: Element | None) -> str:
    if root is None:
        return ""
    return _squeeze(root.attr("lang") or root.attr("xml:lang") or "")[:35]


def _address(href: str, base: str) -> str:
    """An address to be shown, not followed. One cut short would be another, so a huge one is left out."""
    target = urls.parse(href, base or None) if href else None
    return target if target and len(target) <= MAX_ADDRESS else ""


def _squeeze(text: str) -> str:
    return " ".join(text.split())


# ---- links

_SHARED_CHARS = 256
_SCHEME = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_EXTENDS_PAGE = re.compile(r"(?:https?:)?(?:[?#]|\Z)", re.IGNORECASE)
_C0_AND_SPACE = "".join(map(chr, range(33)))
_WITHOUT_BREAKS = str.maketrans("", "", "\t\n\r")
_ASK_WITH_PAGE = Found("", "")


@dataclass(frozen=True, slots=True)
class _Base:
    """What the links of a page are relative to. Without a URL only absolute links lead anywhere."""

    url: str
    directory: str
    is_page: bool

    @property
    def max_links(self) -> int:
        # A short href becomes as long as its base: a huge base must not be multiplied by 100,000.
        return min(MAX_LINKS, MAX_LINK_CHARS // (len(self.url) + 1))


def _base(url: str, declared: str | None) -> _Base:
    """The document's base URL as browsers find it: a declared one, unless it is invalid or runs code."""
    own = urls.parse(url) or ""
    base = own
    if declared is not None and not (base := urls.parse(declared, own or None) or ""):
        scheme = _SCHEME.match(declared)
        leaves_the_web = scheme and scheme[1].lower() not in {"http", "https", "data", "javascript"}
        base = "" if leaves_the_web else own
    path = base.partition("#")[0].partition("?")[0]
    return _Base(base, path[: path.rfind("/") + 1], base == own)


class Resolver:
    """Finds where hrefs lead, and remembers those that lead to the same place from a whole directory.

    One per way of telling URLs apart. What it remembers saves time and never changes an answer.
    """

    def __init__(self, canonicalizer: urls.Canonicalizer | None = None) -> None:
        self._identity = (canonicalizer or urls.Canonicalizer()).identity
        self._shared = lru_cache(maxsize=65_536)(self._from_directory)

    def add(self, links: dict[str, Found], hrefs: Iterable[str], base: _Base, resource: bool) -> bool:
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

    def _from_directory(self, directory: str, href: str, resource: bool) -> Found | None:
        # The few that extend the page's own address ("?page=2") are told apart here, where it is paid once.
        if _EXTENDS_PAGE.match(href.strip(_C0_AND_SPACE).translate(_WITHOUT_BREAKS)):
            return _ASK_WITH_PAGE
        return self._resolve(directory, href, resource)

    def _resolve(self, base: str, href: str, resource: bool) -> Found | None:
        if (target := urls.parse(href, base or None)) is None:
            return None
        url, request = self._identity(target), urls.request_form(target)
        return Found(url, request, Kind.RESOURCE, Source.RESOURCE) if resource else Found(url, request)


@dataclass(frozen=True, slots=True)
class How:
    """How a run reads: with resources or without, which URLs are one, and whether the text is wanted laid out."""

    resources: bool = False
    resolver: Resolver = field(default_factory=Resolver)
    text: bool = False


_USUAL = How(text=True)

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


def _resources(document: Document) -> Iterator[str]:
    for element, attribute, href in document.links():
        if href and _is_resource(element, attribute):
            yield href


def _is_resource(element: Element, attribute: str | None) -> bool:
    if attribute in (None, "background", "imagesrcset", "style"):
        return True
    tag = element.tag
    if tag == "link":
        return not _tokens(element, "rel").isdisjoint(_RESOURCE_RELS)
    if tag == "input":
        return _type(element) == "image"
    return (tag, attribute) in _RESOURCES


# ---- what a page says about itself

Json = Mapping[str, object]

# field: the JSON-LD property, then the metas that stand in for it, best first.
_FIELDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "description": (
        "description",
        ("og:description", "description", "twitter:description", "dc.description", "dcterms.description"),
    ),
    "author": ("author", ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author")),
    "published": (
        "datePublished",
        ("article:published_time", "datepublished", "date", "pubdate", "dc.date", "dcterms.issued"),
    ),
    "modified": (
        "dateModified",
        ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified"),
    ),
    "publisher": ("publisher", ("publisher", "article:publisher", "dc.publisher", "dcterms.publisher")),
    "site_name": ("", ("og:site_name", "application-name")),
    "image": ("image", ("og:image", "og:image:url", "twitter:image", "twitter:image:src")),
    "type": ("@type", ("og:type",)),
}
_KEYWORDS = ("keywords", "news_keywords")
_KEYWORD_CHARS = 10 * MAX_FIELD
_WANTED = frozenset(name for _, names in _FIELDS.values() for name in names).union(_KEYWORDS)
# These describe the site or its makers, not the page.
_ASIDE = frozenset({"BreadcrumbList", "ImageObject", "Organization", "Person", "SearchAction", "WebSite"})


def _describe(page: _Page, base: str) -> dict[str, object]:
    nodes = [node for text in page.json_ld for node in _nodes(text)]
    by_id = {name: node for node in nodes if isinstance(name := node.get("@id"), str)}
    works = [node for node in nodes if not _ASIDE.intersection(_strings(node.get("@type"), by_id, ""))]
    fields: dict[str, object] = {}
    for name, (key, metas) in _FIELDS.items():
        wanted = "url" if name == "image" else "name"
        texts = (
            _first(_strings(node.get(key), by_id, wanted) for node in works)
            or [page.metas[meta] for meta in metas if meta in page.metas][:1]
        )
        text = ", ".join(texts) if name == "author" else "".join(texts[:1])
        if text := _address(text, base) if name == "image" else _clean(text):
            fields[name] = text
    if keywords := _keywords(works, by_id, page.metas):
        fields["keywords"] = keywords
    if feeds := _unique(_address(href, base) for href in page.feeds):
        fields["feeds"] = feeds
    return fields


def _keywords(works: list[Json], by_id: Mapping[str, Json], metas: Mapping[str, str]) -> list[str]:
    texts = _first(_strings(node.get("keywords"), by_id, "name") for node in works) or _first(
        [metas[name]] for name in _KEYWORDS if name in metas
    )
    return _unique(_clean(word) for text in texts for word in text[:_KEYWORD_CHARS].split(","))


def _nodes(text: str) -> list[Json]:
    """The objects of one JSON-LD block, a list or a @graph opened. Broken or absurd ones have none."""
    if len(text) > MAX_JSON:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(found, dict) and isinstance(found.get("@graph"), list):
        found = found["@graph"]
    items = found if isinstance(found, list) else [found]
    return [item for item in items[: 10 * MAX_ITEMS] if isinstance(item, dict)]


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


def _clean(text: str) -> str:
    # JSON can spell what no database takes: a NUL and half a surrogate pair.
    text = _squeeze(text[: 4 * MAX_FIELD])[:MAX_FIELD].replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")
