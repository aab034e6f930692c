"""Pages that no crawl has: one is read, or mapped, on the spot, and nothing is stored."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from inchworm.app.refuse import refuse_private
from inchworm.engine import run
from inchworm.engine.own.owner import SystemClock
from inchworm.errors import WrongUse
from inchworm.model import Found
from inchworm.page import Page
from inchworm.ports import Clock
from inchworm.rules.web import url as urls
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.sink import columns

PARTS = tuple(column.name for column in columns.CONTENT)
USUAL_PARTS = ("text", "markdown", "html", "links", "data")
MOST_URLS = 100_000
T = TypeVar("T")


class SiteMap(NamedTuple):
    """The URLs that a site names. `failure`: why the page itself could not be read, in words; `notes`: what else could
    not be."""

    url: str
    urls: list[dict[str, Any]]
    is_cut: bool
    failure: str | None
    notes: list[str]


class SinglePages:
    """Asks for single pages, politely: robots.txt is obeyed, and a host has its pauses whoever asks."""

    def __init__(self, values: Settings, clock: Clock | None = None) -> None:
        from inchworm.engine.single import Manners  # whoever never asks does not wait for curl and parsers

        # Whoever wants one page would rather know that it failed than wait.
        self._values = dataclasses.replace(values, max_retries=0, sitemap=True, replay=())
        self._clock = clock or SystemClock()
        self._manners = Manners(self._values, self._clock)

    def read(self, text: str, guarded: bool = False) -> Page:
        """The page that somebody typed. Where it could not be had, its record says why."""
        from inchworm.engine.single import Single, asking

        found = _found(text, guarded)

        async def work() -> Single:
            async with asking(text, self._values, self._manners, self._clock, guarded) as asker:
                return await asker.page(found)

        return _page(_awaited(work()))

    def map(
        self,
        text: str,
        limit: int = MOST_URLS,
        guarded: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> SiteMap:
        """The URLs that robots.txt, sitemaps and the page itself name, each once, with where they were found."""
        from inchworm.engine.single import Mapped, Single, asking

        found = _found(text, guarded)

        async def work() -> tuple[Single, Mapped]:
            async with asking(text, self._values, self._manners, self._clock, guarded) as asker:
                return await asker.map(found, limit, progress)

        single, mapped = _awaited(work())
        page = _page(single)
        listed = [_url_json(one) for one in mapped.urls]
        return SiteMap(page.url, listed, mapped.is_cut, page.record["message"] if page.is_gone else None, mapped.notes)


def _found(text: str, guarded: bool) -> Found:
    run.refuse_words([text])
    (found,) = run.seeds_of([text])
    if guarded:
        for form in urls.seed(text) or ():
            refuse_private(form, run.shown(text))
    return found


def _awaited(work: Coroutine[Any, Any, T]) -> T:
    """What comes of it, also for a caller who has an event loop running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _page(single: Any) -> Page:
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


def _url_json(found: Found) -> dict[str, Any]:
    return {
        "url": found.request_url,
        "canonical_url": found.url,
        "source": str(found.source),
        "lastmod": found.lastmod or None,
    }


_TOLD = (
    *("url", "status", "failure", "message", "fetched_at", "content_type", "title"),
    *("author", "published", "modified", "language", "description", "kind", "confidence", "comments"),
)


def refuse_unknown_parts(parts: Sequence[str]) -> None:
    if unknown := [name for name in parts if name not in PARTS]:
        raise WrongUse(f"A page has no part {unknown[0]!r}.", f"Known ones: {', '.join(PARTS)}.")


def page_json(page: Page, parts: Sequence[str] = USUAL_PARTS) -> dict[str, Any]:
    """A page with these parts of what it holds."""
    told = {name: page.record.get(name) for name in ("failure", "message")}
    told |= {name: getattr(page, name) for name in _TOLD if name not in told}
    at_ms = page.record.get("at_ms")
    told["fetched_at"] = None if at_ms is None else iso(at_ms)
    return {name: told[name] for name in _TOLD} | parts_json(page, parts)


def parts_json(page: Page, parts: Sequence[str]) -> dict[str, Any]:
    """Parts of what a page holds."""
    return {column.name: column.json(page) for column in columns.CONTENT if column.name in parts}
