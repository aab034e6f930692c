"""Exports of Markdown: which pages get a file of which name, what is left out, and the images that go with them.

Pages are gone through twice. First each that will be written gets its name, so that the links of all others can lead
to it; then they are written, one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from inchworm.app.act.content.selection import Selection, read_ahead
from inchworm.page import Page
from inchworm.sink import columns, export
from inchworm.sink.documents import COPY, LOST, UNREADABLE, WITHOUT_TEXT, LeftOut
from inchworm.sink.files.folder import Files, opened
from inchworm.sink.files.names import wish
from inchworm.sink.markdown import Others, image_name, text_of
from inchworm.store.scratch import Place, Places

_THERE = ("page", "duplicate")
Canonical = Callable[[str], str | None]


def markdown(selection: Selection, canonical: Canonical, into: Path | BinaryIO, with_images: bool) -> export.Written:
    """Write the pages of a selection that have a text, each content once."""
    left_out = LeftOut()
    with Places() as places, opened(into) as files:
        _find_places(selection, places, left_out)
        images = _Images(selection, places, files)
        others = Others(canonical, places.names, images if with_images else lambda _urls: {})
        count = export.markdown(_named(selection, places, left_out), others, files)
    return left_out.after(count)


def _find_places(selection: Selection, places: Places, left_out: LeftOut) -> None:
    for page, first in selection.with_first(selection.pages(is_first_look=True)):
        url = page.record["canonical_url"]
        if page.record["outcome"] not in _THERE:
            continue
        if first != url:
            left_out.add(COPY, page.url)
            places.add_copy(url, first)
        elif reason := _why_not(page):
            left_out.add(reason, page.url)
        else:
            places.add(Place(url, *wish(url, page.url)))


def _why_not(page: Page) -> str:
    """Why a page cannot be written; empty if it can."""
    if page.is_lost:
        return LOST
    # Where there is next to no text it is the body that was hashed, and only then it has to be read to be sure.
    has_text = hashlib.sha256(page.body).hexdigest() != page.record.get("text_hash")
    return "" if has_text else _why_empty(page)


def _why_empty(page: Page) -> str:
    if text_of(page).strip():
        return ""
    return UNREADABLE if page.unreadable else WITHOUT_TEXT


def _named(selection: Selection, places: Places, left_out: LeftOut) -> Iterator[tuple[Page, str]]:
    pages = (page for page in selection.pages() if places.has_own(page.record["canonical_url"]))
    for page in read_ahead(pages, columns.chosen(["markdown"])):
        url = page.record["canonical_url"]
        if reason := _why_empty(page):
            # The crawl could read it, and now nobody can.
            left_out.add(reason, page.url)
            places.remove(url)
        else:
            yield page, places.names([url])[url]


class _Images:
    """Writes the images that pages show, each once."""

    def __init__(self, selection: Selection, places: Places, files: Files) -> None:
        self._selection, self._places, self._files = selection, places, files

    def __call__(self, urls: Iterable[str]) -> dict[str, str]:
        """The files of images, of those that the crawl has."""
        wanted = set(urls)
        found = self._places.images(wanted)
        new: dict[str, str | None] = dict.fromkeys(sorted(wanted - found.keys()))
        for page in self._selection.there(new):
            url = page.record["canonical_url"]
            if not page.is_lost and (name := image_name(url, page.content_type)):
                self._files.write(name, page.body)
                new[url] = name
        self._places.add_images(new)
        return {url: name for url, name in (found | new).items() if name}
