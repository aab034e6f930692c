"""The life of one URL, top to bottom: ask, read, judge. READ THIS FIRST.

`visit` turns a frontier entry into a `Visit`: a value that says what came of one request and what it found.
Nothing is written here. The session hands visits to `checkpoint` in the order of their places, and only there
do they become part of the record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from inchworm import fault
from inchworm.model import (
    Entry,
    Failure,
    Found,
    Kind,
    Outcome,
    Reading,
    Record,
    Reply,
    Request,
    Response,
    Source,
    Visit,
)
from inchworm.ports import Clock, Fetcher
from inchworm.rules import content, failures, parse, politeness, robots, sitemap
from inchworm.rules import url as urls
from inchworm.rules.control import sitemap_file
from inchworm.settings import Settings

DEATHS = 3
"""A page during whose reading the process died this often is set aside."""

PUSHING_BACK = (429, 503)
UNREACHABLE = ("connect", "tls", "timeout")

ROBOTS_REDIRECTS = 5
ROBOTS_BYTES = 5_000_000
SITEMAP_BYTES = 60_000_000


class Mark(Protocol):
    """Notes which URL is being read, where it survives the death of the process."""

    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What a visit works with."""

    settings: Settings
    fetcher: Fetcher
    clock: Clock
    mark: Mark
    chance: Callable[[], float]
    deaths: Mapping[int, int]
    bare_seeds: frozenset[str] = frozenset()
    canonicalizer: urls.Canonicalizer = field(default_factory=urls.Canonicalizer)
    resolver: parse.Resolver | None = None


async def visit(entry: Entry, tools: Tools) -> Visit:
    """Ask for a URL and make sense of the answer. Failures of the web are outcomes like any other."""
    if tools.deaths.get(entry.url_id, 0) >= DEATHS:
        made = Visit(entry, tools.clock.now_ms(), Outcome.FAILED, requested=False)
        return _tried(made, "reader_crashed", f"the process died {DEATHS} times while reading it", tools)
    if entry.kind is Kind.ROBOTS:
        return await _visit_robots(entry, tools)
    fault.point("before_fetch")
    at_ms = tools.clock.now_ms()
    reply = await tools.fetcher.fetch(_request(entry, tools.settings))
    fault.point("after_fetch")
    if isinstance(reply, Failure):
        return _failed(entry, at_ms, reply, tools)
    made = _answered(entry, at_ms, reply)
    if 300 <= reply.status < 400:
        return _redirected(made, reply, tools)
    if kind := failures.for_status(reply.status):
        return _tried(_asked_for_quiet(made, reply, tools), kind, f"the server answered {reply.status}", tools)
    tools.mark.set(entry.url_id)
    fault.point("while_reading")
    read = _read_sitemap(made, reply, tools) if entry.kind is Kind.SITEMAP else _read(made, reply, tools)
    tools.mark.clear()
    return read


def _request(entry: Entry, settings: Settings) -> Request:
    limit = SITEMAP_BYTES if entry.kind is Kind.SITEMAP else settings.max_body
    return Request(entry.request_url, max_body_bytes=limit, timeout_seconds=settings.timeout)


def _answered(entry: Entry, at_ms: int, reply: Response, address: str = "") -> Visit:
    """The part that every answer has: what the server said, and the record for the archive."""
    digest = hashlib.sha256(reply.payload).digest()
    headers = reply.headers
    return Visit(
        entry,
        at_ms,
        Outcome.PAGE,
        status=reply.status,
        millis=round(reply.seconds * 1000),
        size=len(reply.payload),
        content_type=headers.get("content-type", ""),
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        record=Record(address or entry.request_url, reply.head, reply.payload, digest, reply.truncated),
    )


def _read(made: Visit, reply: Response, tools: Tools) -> Visit:
    """A page: its links, its title, its text."""
    entry, settings = made.entry, tools.settings
    reading = parse.read(reply.body, made.content_type, entry.request_url, settings.resources, tools.resolver)
    if reading.nofollow and settings.robots:
        reading = replace(reading, links=tuple(replace(link, nofollow=True) for link in reading.links))
    if entry.kind is Kind.RESOURCE:
        return replace(made, outcome=Outcome.RESOURCE, reading=reading)
    return replace(made, reading=reading, text_hash=content.text_hash(reading.title, reading.text, reply.body))


def _read_sitemap(made: Visit, reply: Response, tools: Tools) -> Visit:
    listing = sitemap.read(reply.body, made.entry.request_url)
    pages = [
        Found(canonical, urls.request_form(page.url), Kind.PAGE, Source.SITEMAP, lastmod=page.lastmod)
        for page in listing.pages
        if (canonical := tools.canonicalizer.canonicalize(page.url))
    ]
    found = (*(sitemap_file(child) for child in listing.sitemaps), *pages)
    return replace(made, outcome=Outcome.CONTROL, message=listing.note, reading=Reading(links=found))


def _redirected(made: Visit, reply: Response, tools: Tools) -> Visit:
    """A hop: the target becomes an entry of its own, so that nothing is followed out of sight."""
    entry = made.entry
    location = reply.headers.get("location", "")
    address = urls.parse(location, entry.request_url) if location else None
    canonical = tools.canonicalizer.canonicalize(address) if address else None
    if address is None or canonical is None:
        said = f"the server answered {reply.status} and named no page to go to"
        return _tried(made, "bad_redirect", said, tools)
    request_url = urls.request_form(address)
    if entry.kind is Kind.SITEMAP:
        return replace(made, outcome=Outcome.CONTROL, reading=Reading(links=(sitemap_file(request_url),)))
    if request_url == entry.request_url or request_url in entry.tried:
        return _tried(made, "redirect_loop", f"it leads back to {request_url}", tools)
    if entry.chain >= tools.settings.max_redirects:
        return _tried(made, "too_many_redirects", f"more than {tools.settings.max_redirects} redirects in a row", tools)
    target = Found(canonical, request_url, entry.kind, Source.REDIRECT)
    return replace(made, outcome=Outcome.REDIRECT, redirect=target)


def _failed(entry: Entry, at_ms: int, failure: Failure, tools: Tools) -> Visit:
    made = Visit(entry, at_ms, Outcome.FAILED, millis=round(failure.seconds * 1000))
    if failure.answer is not None:
        made = replace(_answered(entry, at_ms, failure.answer), outcome=Outcome.FAILED)
    if entry.request_url in tools.bare_seeds and failure.kind in UNREACHABLE:
        return _by_http(made, tools)
    return _tried(made, failure.kind, failure.message, tools)


def _by_http(made: Visit, tools: Tools) -> Visit:
    """The user typed a host without a scheme: https came first, http comes when it cannot be reached."""
    address = "http" + made.entry.request_url.removeprefix("https")
    target = Found(tools.canonicalizer.identity(address), address, made.entry.kind, Source.REDIRECT)
    return replace(made, outcome=Outcome.REDIRECT, redirect=target, message="https did not answer, http is tried")


def unreadable_robots(entry: Entry, trouble: str, tools: Tools) -> Visit:
    """Where a robots.txt cannot be read nothing may be asked for; that is a failure, and can be tried again."""
    made = Visit(entry, tools.clock.now_ms(), Outcome.FAILED, "robots", trouble, requested=False)
    if entry.request_url in tools.bare_seeds and trouble.partition(":")[0] in UNREACHABLE:
        return _by_http(replace(made, failure=""), tools)
    return made


def _asked_for_quiet(made: Visit, reply: Response, tools: Tools) -> Visit:
    """A server that is asked too much may say for how long it wants to be left alone; the whole host is meant."""
    if reply.status not in PUSHING_BACK:
        return made
    seconds = politeness.retry_after(reply.headers.get("retry-after", ""), tools.clock.now_ms())
    return replace(made, quiet_ms=round(1000 * (seconds or 0.0)))


def _tried(made: Visit, kind: str, message: str, tools: Tools) -> Visit:
    """A failed try: to be repeated later when that may help, final otherwise."""
    entry = made.entry
    again = failures.is_transient(kind, made.status) and entry.attempts < tools.settings.max_retries
    if again:
        wait_ms = max(round(1000 * politeness.backoff(entry.attempts, tools.chance())), made.quiet_ms)
        retry_at_ms = tools.clock.now_ms() + wait_ms
        return replace(made, outcome=Outcome.RETRY, failure=kind, message=message, retry_at_ms=retry_at_ms)
    outcome = Outcome.CONTROL if entry.kind in (Kind.ROBOTS, Kind.SITEMAP) else Outcome.FAILED
    return replace(made, outcome=outcome, failure=kind, message=message)


async def _visit_robots(entry: Entry, tools: Tools) -> Visit:
    """A robots.txt: up to five redirects, then a verdict. What cannot be read forbids everything."""
    at_ms = tools.clock.now_ms()
    address = entry.request_url
    reply: Reply = Failure("bad_redirect", f"more than {ROBOTS_REDIRECTS} redirects")
    for _ in range(1 + ROBOTS_REDIRECTS):
        reply = await tools.fetcher.fetch(Request(address, (), ROBOTS_BYTES, tools.settings.timeout))
        location = reply.headers.get("location") if isinstance(reply, Response) and 300 <= reply.status < 400 else None
        target = urls.parse(location, address) if location else None
        if target is None:
            break
        address = urls.request_form(target)
    if isinstance(reply, Failure):
        made = Visit(entry, at_ms, Outcome.CONTROL)
        # Nobody is there to be polite to: the pages fail by themselves, under their own name.
        if reply.kind in ("address_refused", "not_in_archive"):
            return replace(made, failure=reply.kind, message=reply.message, robots=b"")
        return _tried(made, reply.kind, reply.message, tools)
    made = replace(_answered(entry, at_ms, reply, address), outcome=Outcome.CONTROL)
    if reply.status >= 500 or reply.status == 429:
        made = _asked_for_quiet(made, reply, tools)
        return _tried(made, failures.for_status(reply.status) or "", f"the server answered {reply.status}", tools)
    rules = reply.body if 200 <= reply.status < 300 else b""
    named = robots.parse(rules).sitemaps or (f"{urls.origin_of(entry.request_url)}/sitemap.xml",)
    found = tuple(sitemap_file(one) for one in named) if tools.settings.sitemap else ()
    return replace(made, robots=rules, reading=Reading(links=found))
