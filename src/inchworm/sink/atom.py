"""A feed of what changed (Atom, RFC 4287): an entry for each run that found changes, with what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from inchworm.rules.change.groups import ModifiedGroup, Passage
from inchworm.rules.words.times import iso

TYPE = "application/atom+xml; charset=utf-8"
_SIGNS = (("del", "−"), ("ins", "+"))
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class FeedEntry(NamedTuple):
    """What one run found. `link`: where people look at it, or nothing. Of new and deleted pages the first ones are
    listed; `new_pages` and `deleted_pages` count all."""

    id: str
    title: str
    at_ms: int
    link: str
    groups: Sequence[ModifiedGroup]
    modified_pages: int
    new: Sequence[str]
    new_pages: int
    deleted: Sequence[str]
    deleted_pages: int


class ChangeFeed(NamedTuple):
    """The feed of a crawl. Its ids and those of its entries are the same whenever and wherever it is made."""

    id: str
    title: str
    updated_ms: int
    entries: Sequence[FeedEntry]


def written(feed: ChangeFeed, address: str = "") -> bytes:
    """The feed as XML; `address`: where it is to be had."""
    link = [f'<link rel="self" type="application/atom+xml" href="{_text(address)}"/>'] if address else []
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{_text(feed.id)}</id>",
        f"<title>{_text(feed.title)}</title>",
        f"<updated>{iso(feed.updated_ms)}</updated>",
        "<author><name>inchworm</name></author>",
        "<generator>inchworm</generator>",
        *link,
        *(line for entry in feed.entries for line in _entry(entry)),
        "</feed>",
    ]
    return "\n".join(lines).encode() + b"\n"


def _entry(entry: FeedEntry) -> Iterator[str]:
    yield "<entry>"
    yield f"<id>{_text(entry.id)}</id>"
    yield f"<title>{_text(entry.title)}</title>"
    yield f"<updated>{iso(entry.at_ms)}</updated>"
    if entry.link:
        yield f'<link rel="alternate" type="text/html" href="{_text(entry.link)}"/>'
    # HTML within XML: what pages say is escaped twice.
    yield f'<content type="html">{_text("".join(_content(entry)))}</content>'
    yield "</entry>"


def _content(entry: FeedEntry) -> Iterator[str]:
    if entry.modified_pages:
        yield f"<h3>{entry.modified_pages:,} modified</h3><ul>"
        for group in entry.groups:
            more = f" and {group.pages - 1:,} more" if group.pages > 1 else ""
            passages = "".join(map(_passage, group.difference)) or f"<br>{escape(group.note)}"
            yield f"<li>{_page(group.urls[0])}{more}{passages}{' …' if group.difference_is_cut else ''}</li>"
        yield _rest(entry.modified_pages - sum(group.pages for group in entry.groups))
        yield "</ul>"
    for word, urls, count in (
        ("new", entry.new, entry.new_pages),
        ("deleted", entry.deleted, entry.deleted_pages),
    ):
        if count:
            yield f"<h3>{count:,} {word}</h3><ul>"
            yield from (f"<li>{_page(url)}</li>" for url in urls)
            yield _rest(count - len(urls))
            yield "</ul>"


def _passage(one: Passage) -> str:
    where = "" if one.where == "text" else f"{one.where} "
    sides = zip(_SIGNS, (one.before, one.after), strict=True)
    return "".join(f"<br>{where}{sign} <{tag}>{escape(said)}</{tag}>" for (tag, sign), said in sides if said)


def _page(url: str) -> str:
    """Only what leads to the web is a link: a crawl may have met anything."""
    shown = escape(url)
    return f'<a href="{shown}">{shown}</a>' if url.startswith(("http://", "https://")) else shown


def _rest(pages: int) -> str:
    return f"<li>… and {pages:,} more</li>" if pages > 0 else ""


def _text(text: str) -> str:
    """As XML has it: some characters cannot be written in it at all."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))
