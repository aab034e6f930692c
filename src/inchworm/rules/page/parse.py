"""Reading an HTML page: one parse gives its links, title, text and what it says about itself.

This is the hottest path there is, so the tree is walked once for everything that lies in tags. Where links lead is the
business of `links`; where the text is, and what is only frame around it, that of `main_text`.
Nothing is judged here. Links come out all of them, in document order, those of pages before those of
resources, so that asking for resources does not change the order of the pages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import turbohtml
from turbohtml import Document, Element, Namespace, Node

from inchworm.model import FoundUrl, Reading, Substance
from inchworm.rules.formats.contents import MAX_TEXT, MAX_TITLE
from inchworm.rules.formats.media import Media, media_of
from inchworm.rules.kinds.kind import types_said
from inchworm.rules.metadata import byline, data
from inchworm.rules.metadata.data import Data
from inchworm.rules.metadata.describe import (
    MAX_ITEMS,
    WANTED,
    PageMetadata,
    address,
    describe,
    product_described,
    squeeze,
)
from inchworm.rules.metadata.title import MAX_HEADINGS, seen
from inchworm.rules.page import frame, main_text
from inchworm.rules.page.disguise import has_password_field as has_password_field
from inchworm.rules.page.disguise import looks_missing as looks_missing
from inchworm.rules.page.links import Base, Resolver, base_of, resources_of, short, tokens, type_of
from inchworm.rules.page.shown import laid_out, shown
from inchworm.rules.text import blocks
from inchworm.rules.text.recurring import NO_FRAME, Block, Frame

MAX_PARTS = 100

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([a-z0-9_.:()+-]+)', re.ASCII | re.IGNORECASE)


def read(body: bytes, content_type: str, url: str, how: How | None = None) -> Reading:
    """What the answer to `url` says: everything for HTML, links for CSS, nothing for the rest."""
    how = how or _USUAL
    resources, resolver = how.resources, how.resolver
    media = media_of(body, content_type)
    if media is Media.HTML:
        return _read_html(_document(body, content_type), url, how)
    if resources and media is Media.CSS:
        return _read_css(body, content_type, url, resolver)
    return Reading()


def substance(body: bytes, content_type: str, url: str, how: How | None = None) -> Substance:
    """What makes this answer the page it is, to be compared with another version of it. Only HTML has any."""
    if media_of(body, content_type) is not Media.HTML:
        return Substance("", "")
    resolver, page = (how or _USUAL).resolver, _gather(_document(body, content_type))
    base, title = base_of(url, page.base), squeeze(page.title or "")
    main = main_text.find(page.document, page.marks, title).node
    targets = (resolver.target(href, base) for href in _hrefs(main)[: base.max_links])
    found = tuple(target for target in targets if target)
    return Substance(title[:MAX_TITLE], shown(main)[:MAX_TEXT], found)


def substance_of(reading: Reading, url: str, how: How | None = None) -> Substance:
    """The same of a page that was read just now."""
    resolver, base = (how or _USUAL).resolver, base_of(url, reading.base)
    hrefs = reading.hrefs.split("\n")[: base.max_links] if reading.hrefs else ()
    targets = (resolver.target(href, base) for href in hrefs)
    return Substance(reading.title, reading.words, tuple(target for target in targets if target))


def text_of(body: bytes, content_type: str) -> str:
    """The main text of an HTML page, laid out, and nothing else: no link is resolved. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return ""
    page = _gather(_document(body, content_type))
    main = main_text.find(page.document, page.marks, squeeze(page.title or ""))
    return laid_out(main.node)[:MAX_TEXT]


def comments_of(body: bytes, content_type: str) -> str:
    """What readers wrote below the text of an HTML page, laid out. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return ""
    return main_text.comments(found_in(body, content_type))[:MAX_TEXT]


def found_in(body: bytes, content_type: str) -> main_text.MainPart:
    """The main part of an HTML page, with what was found on the way there."""
    page = _gather(_document(body, content_type))
    return main_text.find(page.document, page.marks, squeeze(page.title or ""))


class FramedText(NamedTuple):
    """The main text of a page without the frame of its host, laid out; all its blocks, and how many were left out."""

    text: str = ""
    blocks: Sequence[Block] = ()
    left_out: int = 0


def framed_text(body: bytes, content_type: str, frame: Frame) -> FramedText:
    """The main text of an HTML page without the frame of its host. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return FramedText()
    main, _ = main_of(body, content_type, "")
    cut = blocks.leave_out(main, frame)
    return FramedText(laid_out(main)[:MAX_TEXT], *cut)


def main_of(body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> tuple[Node, str]:
    """The main part of an HTML page without the frame of its host, and what its links are relative to."""
    page = _gather(_document(body, content_type))
    main = main_text.find(page.document, page.marks, squeeze(page.title or ""))
    if frame:
        blocks.leave_out(main.node, frame)
    return main.node, base_of(url, page.base).url


def tree(body: bytes, content_type: str, url: str) -> tuple[Document, str] | None:
    """An HTML page as it stands, and what its links are relative to. None for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return None
    page = _gather(_document(body, content_type))
    return page.document, base_of(url, page.base).url


def main_html(body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> str:
    """The main part of an HTML page as HTML whose links are absolute. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return ""
    main, base = main_of(body, content_type, url, frame)
    for element in main.iter_elements(_WITH_ADDRESS, include_self=True):
        for name in ("href", "src", "poster"):
            if (href := element.attr(name)) and (target := address(href, base)):
                element.attrs[name] = target
    return main.html[:MAX_TEXT]


_WITH_ADDRESS = ("a", "area", "audio", "img", "iframe", "source", "track", "video")


def data_of(body: bytes, content_type: str) -> Data:
    """What an HTML page says for machines. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return {}
    return data.data_of(_document(body, content_type))


def source_of(body: bytes, content_type: str) -> str:
    """The source of an HTML page, decoded as a browser would. Nothing for the rest."""
    if media_of(body, content_type) is not Media.HTML:
        return ""
    document = _document(body, content_type)
    try:
        return body.decode(document.encoding or "utf-8", "replace").removeprefix("\ufeff")
    except LookupError:
        return document.html


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
    base: str | None = None
    title: str | None = None
    canonical: str = ""
    refresh: bool = False
    robots: set[str] = field(default_factory=set)
    said: PageMetadata = field(default_factory=PageMetadata)
    headings: list[Element] = field(default_factory=list)
    marks: frame.Marks = field(default_factory=frame.Marks)


def _gather(document: Document) -> _Page:
    page = _Page(document)
    add = page.hrefs.append
    for element in document.iter_elements(_TAGS):
        if (tag := element.tag) == "a":
            href = element.attr("href")
            if href is None:
                href = element.attr("xlink:href")
            if href is not None:
                add(href)
        else:
            _HANDLERS[tag](page, element)
    page.marks.types = types_said(page.said.metas, page.said.json_ld)
    if "product" in page.marks.types:
        page.marks.described = product_described(page.said.json_ld)
    return page


def _on_area(page: _Page, element: Element) -> None:
    if (href := element.attr("href")) is not None:
        page.hrefs.append(href)


def _on_frame(page: _Page, element: Element) -> None:
    if src := element.attr("src"):
        page.hrefs.append(src)
    page.marks.unseen.append(element)


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
    rel = tokens(element, "rel")
    if "canonical" in rel:
        page.canonical = page.canonical or href
    if not rel.isdisjoint(_PAGE_RELS):
        page.hrefs.append(href)
    if "alternate" in rel and len(page.said.feeds) < MAX_ITEMS and type_of(element) in _FEED_TYPES:
        page.said.feeds.append(href)


def _on_meta(page: _Page, element: Element) -> None:
    if not (content := element.attr("content")):
        return
    name = element.attr("name") or element.attr("property") or element.attr("itemprop") or ""
    name = name.strip().lower()
    if name in WANTED:
        page.said.metas.setdefault(name, content)
    elif name in _ROBOTS:
        page.robots.update(content.lower().replace(",", " ").split())
    elif not page.refresh and (element.attr("http-equiv") or "").lower() == "refresh":
        page.refresh = True
        # The parser looks at the address more closely than it has to, and raises where it is none.
        with suppress(ValueError):
            if (refresh := page.document.meta_refresh()) and refresh[1]:
                page.hrefs.append(refresh[1])


def _on_script(page: _Page, element: Element) -> None:
    page.marks.unseen.append(element)
    if type_of(element) == "application/ld+json" and len(page.said.json_ld) < MAX_ITEMS:
        page.said.json_ld.append(element.text)


def _on_unseen(page: _Page, element: Element) -> None:
    page.marks.unseen.append(element)


def _on_main(page: _Page, element: Element) -> None:
    page.marks.mains.append(element)


def _on_article(page: _Page, element: Element) -> None:
    page.marks.articles.append(element)
    _note_names(page, element)


def _on_heading(page: _Page, element: Element) -> None:
    if len(page.headings) < MAX_HEADINGS:
        page.headings.append(element)
    page.marks.heading = element


def _on_frame_tag(page: _Page, element: Element) -> None:
    page.marks.frames.append(element)
    _note_names(page, element)


def _on_form(page: _Page, element: Element) -> None:
    if frame.is_search(element):
        page.marks.named.append(element)
    _note_names(page, element)


def _on_block(page: _Page, element: Element) -> None:
    if _note_names(page, element):
        page.marks.named.append(element)


def _note_names(page: _Page, element: Element) -> bool:
    """Note what an element is called, if that tells something; whether it is called as frames are."""
    name = element.attr("id")
    found = frame.names_of(names) if (names := element.attr("class")) else frame.TELLS_NOTHING
    if found is frame.TELLS_NOTHING and not name:
        return False
    is_frame, words, is_post, is_veiled = found
    if is_veiled:
        page.marks.veiled.append(element)
    if name:
        of_id = frame.names_of(name)
        is_frame = is_frame or of_id.is_frame
        # Chapters are often called by their headings: "real-time-monitoring" tells of what is in them.
        if element.tag != "section" and name.count("-") < _MOST_WORDS:
            words |= _beside_its_heading(of_id.words, element)
    if is_post:
        page.marks.posts.append(element)
    if words:
        page.marks.small.append((element, words))
    return is_frame


def _beside_its_heading(words: frozenset[str], element: Element) -> frozenset[str]:
    """What the id of an element tells that is not just its heading: sections of manuals are named by theirs."""
    heading = next(element.iter_elements(_HEADINGS), None) if words else None
    return words if heading is None else words.difference(heading.text.lower().split())


_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MOST_WORDS = 3


_HANDLERS: dict[str, Callable[[_Page, Element], None]] = {
    "area": _on_area,
    "article": _on_article,
    "base": _on_base,
    "form": _on_form,
    "frame": _on_frame,
    "h1": _on_heading,
    "iframe": _on_frame,
    "link": _on_link,
    "main": _on_main,
    "meta": _on_meta,
    "title": _on_title,
    **dict.fromkeys(frame.FRAME_TAGS, _on_frame_tag),
    **dict.fromkeys(("div", "ol", "section", "table", "ul"), _on_block),
    **dict.fromkeys(frame.UNSEEN_TAGS, _on_unseen),
    "script": _on_script,
}
_TAGS = ("a", *_HANDLERS)
_PAGE_RELS = frozenset({"next", "prev"})
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_ROBOTS = frozenset({"robots", "inchworm"})


# ---- what comes of it


def _read_html(document: Document, url: str, how: How) -> Reading:
    page, resources, resolver = _gather(document), how.resources, how.resolver
    base = base_of(url, page.base)
    links: dict[str, FoundUrl] = {}
    capped = resolver.add(links, page.hrefs, base, False)
    if resources and not capped:
        capped = resolver.add(links, resources_of(document), base, True)
    if how.anchors:
        _add_anchors(links, document, base, resolver)
    title = squeeze(page.title or "")
    meta = describe(page.said, base.url) if page.said != _NOTHING_SAID else {}
    if byline.may_show(document, (words for _, words in page.marks.small)):
        _add_what_shows(meta, document, base.url)
    if (shared := page.said.metas.get("og:title", "")) or page.headings:
        # A line break in a heading is no reason to write two words as one.
        meta.update(seen(title, (element.to_text() for element in page.headings), shared))
    found = main_text.find(document, page.marks, title)
    main = found.node
    hrefs = "\n".join(href.replace("\n", "") for href in _hrefs(main))
    text = laid_out(main) if how.text else ""
    words = shown(main)
    flags = {
        "nofollow": not page.robots.isdisjoint(("nofollow", "none")),
        "noindex": not page.robots.isdisjoint(("noindex", "none")),
        "links_capped": capped,
        "title_capped": len(title) > MAX_TITLE,
        "text_capped": max(len(words), len(text)) > MAX_TEXT,
    }
    if words:
        meta.update(kind=found.kind, confidence=found.confidence)
    meta.update((flag, True) for flag, is_set in flags.items() if is_set)
    return Reading(
        links=tuple(links.values()),
        title=title[:MAX_TITLE],
        words=words[:MAX_TEXT],
        hrefs=hrefs,
        base=page.base,
        text=text[:MAX_TEXT],
        language=_language(document.root),
        canonical=address(page.canonical, base.url),
        nofollow=flags["nofollow"],
        noindex=flags["noindex"],
        meta=meta,
    )


_NOTHING_SAID = PageMetadata()


def _add_what_shows(meta: dict[str, object], document: Document, url: str) -> None:
    """What a page does not say for machines, people may see."""
    if "author" not in meta and (name := byline.author(document)):
        meta["author"] = name
    if "published" not in meta and (day := byline.published(document, url)):
        meta["published"] = day


def _hrefs(part: Node) -> list[str]:
    """The links of a part as they are written, but for those to another place of the same page."""
    found = [element.attr("href") or element.attr("xlink:href") for element in part.iter_elements(_LINKS)]
    return [href for href in found if href and href[0] != "#"]


def _add_anchors(links: dict[str, FoundUrl], document: Document, base: Base, resolver: Resolver) -> None:
    """Give each link the first text that leads to it, and the number of places in the page that links lead to."""
    # Links can lie in links, and each look at one costs all that is in it.
    room, places = MAX_TEXT, defaultdict[str, set[str]](set)
    for element in document.iter_elements(_LINKS):
        href = element.attr("href") or element.attr("xlink:href") or ""
        url = resolver.target(href, base)
        if url not in links:
            continue
        if len(places[url]) < MAX_PARTS:
            places[url].add(href.partition("#")[2])
        if room >= 0 and not links[url].anchor:
            text = element.text
            room -= len(text)
            links[url] = links[url]._replace(anchor=short(text) or _alt(element))
    for url, found in places.items():
        if len(found) > 1:
            links[url] = links[url]._replace(parts=len(found))


def _alt(link: Element) -> str:
    alts = (short(element.attr("alt") or "") for element in link.iter_elements(("area", "img"), include_self=True))
    return next(filter(None, alts), "")


_LINKS = ("a", "area")


def _read_css(body: bytes, content_type: str, url: str, resolver: Resolver) -> Reading:
    # Inside a <style> the parser finds the links of a sheet, comments and imports minded.
    document = _document(b"<style>" + body.removeprefix(b"\xef\xbb\xbf"), content_type)
    links: dict[str, FoundUrl] = {}
    hrefs = (link.url for link in document.links() if link.attribute is None)
    capped = resolver.add(links, hrefs, base_of(url, None), True)
    return Reading(links=tuple(links.values()), meta={"links_capped": True} if capped else {})


def _language(root: Element | None) -> str:
    if root is None:
        return ""
    return squeeze(root.attr("lang") or root.attr("xml:lang") or "")[:35]


# ---- how it is read


@dataclass(frozen=True, slots=True)
class How:
    """How a run reads: with resources or without, which URLs are one, and whether the text is wanted laid out and links
    with what they are called."""

    resources: bool = False
    resolver: Resolver = field(default_factory=Resolver)
    text: bool = False
    anchors: bool = False


_USUAL = How(text=True)
