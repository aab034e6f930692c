"""What changed between two versions of a manual, found without any code of ours: by the parser of the standard library,
and by knowing where the manual has its text.

A page is its title, the text of one element with its white space as it shows, and where the links in it lead.
"""

from __future__ import annotations

import re
from enum import StrEnum
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin

_BLOCKS = "address article aside blockquote body br caption center dd details dir div dl dt fieldset figcaption figure"
_BLOCKS += (
    " footer form h1 h2 h3 h4 h5 h6 header hr legend li main menu nav ol option p pre section summary table tbody"
)
_BLOCKS += " td tfoot th thead tr ul"
BLOCKS = frozenset(_BLOCKS.split())
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
UNSEEN = {"script", "style", "template", "noscript"}
DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}, \d{4}"
    r"|\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}"
)


class Where(NamedTuple):
    """Where a manual has its text: in the first element with this attribute, or the body, but for elements with these
    classes."""

    tag: str
    name: str
    value: str
    without: frozenset[str] = frozenset()


class Page(NamedTuple):
    title: str
    text: str
    links: tuple[str, ...]


class Truth(StrEnum):
    SAME = "same"
    STAMP = "stamp"
    CHANGED = "changed"


class _Reader(HTMLParser):
    def __init__(self, where: Where, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.where, self.url = where, url
        self.open: list[tuple[str, bool]] = []  # tags inside the text, and whether they are left out
        self.title: list[str] = []
        self.parts: list[str] = []
        self.links: list[str] = []
        self.in_title = self.is_over = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        self.in_title = tag == "title" and not self.title
        if not self.open:
            found = tag == self.where.tag and self.where.value in [*said.get(self.where.name, "").split(), ""]
            if found and not self.is_over:
                self.open.append((tag, False))
            return
        is_out = self.open[-1][1] or tag in UNSEEN or not self.where.without.isdisjoint(said.get("class", "").split())
        if not is_out:
            self._boundary(tag)
            href = said.get("href", "")
            if tag == "a" and href and not href.startswith("#"):
                self.links.append(urldefrag(urljoin(self.url, href)).url)
        if tag not in VOID:
            self.open.append((tag, is_out))

    def handle_endtag(self, tag: str) -> None:
        self.in_title = False
        if not any(name == tag for name, _ in self.open):
            return
        while self.open:
            name, is_out = self.open.pop()
            if not is_out:
                self._boundary(name)
            if name == tag:
                break
        self.is_over = self.is_over or not self.open

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title.append(data)
        elif self.open and not self.open[-1][1]:
            is_written = any(name == "pre" for name, _ in self.open)
            self.parts.append(data.replace("\n", "\x02").replace(" ", "\x01") if is_written else data)

    def _boundary(self, tag: str) -> None:
        if tag in BLOCKS:
            self.parts.append(" ")


def _read(html: str, where: Where, url: str) -> _Reader:
    reader = _Reader(where, url)
    reader.feed(html)
    reader.close()
    return reader


def read(html: str, where: Where, url: str) -> Page:
    reader = _read(html, where, url)
    if not "".join(reader.parts).split():
        reader = _read(html, Where("body", "", ""), url)
    text = " ".join("".join(reader.parts).split())
    text = re.sub("\x01+(?=\x02|$| )", "", text)
    text = re.sub("\x02+(?= |$)", "", text)
    title = " ".join("".join(reader.title).split())
    return Page(title, text.replace("\x02", "\n").replace("\x01", " "), tuple(reader.links))


def compare(old: Page, new: Page, versions: tuple[str, str]) -> Truth:
    if old == new:
        return Truth.SAME
    stampless = [
        (_stampless(page.title, version), _stampless(page.text, version), page.links)
        for page, version in zip((old, new), versions, strict=True)
    ]
    return Truth.STAMP if stampless[0] == stampless[1] else Truth.CHANGED


def _stampless(text: str, version: str) -> str:
    return DATE.sub("<date>", text.replace(version, "<version>") if version else text)
