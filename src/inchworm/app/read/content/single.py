"""Pages that no crawl has: one is read, or mapped, on the spot, and nothing is stored."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from inchworm.app.refuse import refuse_private
from inchworm.engine import run
from inchworm.engine.clock import SystemClock
from inchworm.errors import WrongUse
from inchworm.model import FoundUrl, Json
from inchworm.page import Page
from inchworm.ports import Clock
from inchworm.rules.web import url as urls
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.sink import columns

if TYPE_CHECKING:
    from inchworm.engine.single import SinglePage

PARTS = tuple(column.name for column in columns.CONTENT)
USUAL_PARTS = ("text", "markdown", "html", "links", "data")
MOST_URLS = 100_000
T = TypeVar("T")


class SiteUrl(NamedTuple):
    """A URL that a site names, and where it was found."""

    url: str
    canonical_url: str
    source: str
    lastmod: str | None


class SiteMap(NamedTuple):
    """The URLs that a site names. `failure`: why the page itself could not be read, in words; `notes`: what else could
    not be."""

    url: str
    urls: Sequence[SiteUrl]
    is_cut: bool
    failure: str | None
    notes: Sequence[str]


class SinglePages:
    """Asks for single pages, politely: robots.txt is obeyed, and a host has its pauses whoever asks."""

    def __init__(self, values: Settings, clock: Clock | None = None) -> None:
        from inchworm.engine.single import PoliteHosts  # whoever never asks does not wait for curl and parsers

        # Whoever wants one page would rather know that it failed than wait.
        self._values = dataclasses.replace(values, max_retries=0, sitemap=True, replay=())
        self._clock = clock or SystemClock()
        self._hosts = PoliteHosts(self._values, self._clock)

    def read(self, text: str, allow_private: bool = True) -> Page:
        """The page that somebody typed. Where it could not be had, its record says why."""
        from inchworm.engine.single import asker_for

        found = _found(text, allow_private)

        async def work() -> SinglePage:
            async with asker_for(text, self._values, self._hosts, self._clock, allow_private) as asker:
                return await asker.page(found)

        return _page(_awaited(work()))

    def map(
        self,
        text: str,
        limit: int = MOST_URLS,
        allow_private: bool = True,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> SiteMap:
        """The URLs that robots.txt, sitemaps and the page itself name, each once, with where they were found."""
        from inchworm.engine.single import SiteUrls, asker_for

        found = _found(text, allow_private)

        async def work() -> tuple[SinglePage, SiteUrls]:
            async with asker_for(text, self._values, self._hosts, self._clock, allow_private) as asker:
                return await asker.map(found, limit, progress)

        single, mapped = _awaited(work())
        page = _page(single)
        listed = [_site_url(one) for one in mapped.urls]
        return SiteMap(page.url, listed, mapped.is_cut, page.record["message"] if page.is_gone else None, mapped.notes)


def _found(text: str, allow_private: bool) -> FoundUrl:
    run.refuse_words([text])
    (found,) = run.seeds_of([text])
    if not allow_private:
        for form in urls.seed(text) or ():
            refuse_private(form, run.shown(text))
    return found


def _awaited(work: Coroutine[object, object, T]) -> T:
    """What comes of it, also for a caller who has an event loop running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _page(single: SinglePage) -> Page:
    """What was answered, as a page; its record has the names that a crawl's has."""
    visit, response = single
    reading, url = visit.reading, visit.entry.request_url
    record = {
        "url": url,
        "canonical_url": visit.entry.url,
        "outcome": str(visit.outcome),
        "failure": visit.failure or None,
        "message": visit.message or None,
        "status": visit.status or None,
        "at_ms": visit.at_ms,
        "millis": visit.millis,
        "size": visit.size,
        "content_type": visit.content_type or None,
        "etag": visit.etag or None,
        "last_modified": visit.last_modified or None,
        "title": reading.title,
        "language": reading.language or None,
        "canonical": reading.canonical or None,
        "meta": reading.meta,
    }
    body, headers = (response.body, response.headers) if response else (b"", {})
    return Page(url, visit.content_type, lambda: body, record, load_headers=lambda: headers)


def _site_url(found: FoundUrl) -> SiteUrl:
    return SiteUrl(found.request_url, found.url, str(found.source), found.lastmod or None)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """A page that was read: what it says of itself, why it could not be had, and some of its parts."""

    url: str
    status: int | None
    failure: str | None
    message: str | None
    fetched_at: str | None
    content_type: str
    title: str
    author: str | None
    published: str | None
    modified: str | None
    language: str | None
    description: str | None
    kind: str | None
    confidence: float | None
    comments: str | None
    left_out: int
    parts: Mapping[str, Json] = field(metadata=FLAT)


def refuse_unknown_parts(parts: Sequence[str]) -> None:
    if unknown := [name for name in parts if name not in PARTS]:
        raise WrongUse(f"A page has no part {unknown[0]!r}.", f"Known ones: {', '.join(PARTS)}.")


def page_facts(page: Page, parts: Sequence[str] = USUAL_PARTS) -> PageFacts:
    """A page with these parts of what it holds."""
    at_ms = page.record.get("at_ms")
    return PageFacts(
        page.url,
        page.status,
        page.record.get("failure"),
        page.record.get("message"),
        None if at_ms is None else iso(at_ms),
        page.content_type,
        page.title,
        page.author,
        page.published,
        page.modified,
        page.language,
        page.description,
        page.kind,
        page.confidence,
        page.comments,
        page.left_out,
        parts_of(page, parts),
    )


def parts_of(page: Page, parts: Sequence[str]) -> dict[str, Json]:
    """Parts of what a page holds, by their names."""
    return {column.name: column.json(page) for column in columns.CONTENT if column.name in parts}
