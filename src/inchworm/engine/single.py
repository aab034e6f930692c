"""Single pages without a crawl: asked for as politely as by a crawl, read as by one, and nothing is kept."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from inchworm.engine import run
from inchworm.engine.fetching import fetching
from inchworm.engine.ledger import rows
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.engine.visit import Tools, unreadable_robots, visit
from inchworm.model import FinishedVisit, FoundUrl, FrontierEntry, Kind, Outcome, Reply, Request, Response
from inchworm.ports import Clock, Fetcher
from inchworm.reader import DocumentReader
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.settings import Settings

ROBOTS_SECONDS = 3600.0
"""How long a robots.txt holds for whoever asks for single pages."""

_MOST_ORIGINS = 10_000
_MOST_SITEMAPS = 100


class PoliteHosts:
    """What hosts allow, and when each may be asked again. All who ask for single pages in one process share it."""

    def __init__(self, values: Settings, clock: Clock) -> None:
        self._values, self._clock = values, clock
        self._hosts = Hosts(values, RobotsVerdicts(values, ()))
        self._learned = 0
        self._mutex = threading.Lock()

    def needs_robots(self, url: str) -> bool:
        """Whether a robots.txt has to be read before this URL may be asked for."""
        with self._mutex:
            robots = self._hosts.robots
            is_current = robots.is_known(url) and not robots.is_outdated(url, self._clock.monotonic())
            return not is_current or bool(robots.trouble(url))

    def learn(self, origin: str, verdict: str, said: bytes | None) -> None:
        with self._mutex:
            self._learned += 1
            if self._learned > _MOST_ORIGINS:
                self._hosts, self._learned = Hosts(self._values, RobotsVerdicts(self._values, ())), 1
            self._hosts.robots.learn([(origin, verdict, said)], self._clock.monotonic() + ROBOTS_SECONDS)

    def trouble(self, url: str) -> str:
        with self._mutex:
            return self._hosts.robots.trouble(url)

    def allows(self, url: str) -> bool:
        with self._mutex:
            return not self._hosts.robots.is_known(url) or self._hosts.robots.allows(url)

    def turn(self, url: str) -> float:
        """In how many seconds this URL's host may be asked. Whoever asks this has that turn."""
        with self._mutex:
            return self._hosts.take_turn(url, self._clock.monotonic())

    def keep_quiet(self, url: str, seconds: float) -> None:
        with self._mutex:
            self._hosts.keep_quiet(urls.host_of(url), self._clock.monotonic() + seconds)


class SinglePage(NamedTuple):
    """What came of asking for one page, and the answer, if one came."""

    visit: FinishedVisit
    response: Response | None


class SiteUrls(NamedTuple):
    """The URLs that a site names: those of its sitemaps, and those of one page. `notes`: what could not be read."""

    urls: list[FoundUrl]
    is_cut: bool
    notes: list[str]


@contextlib.asynccontextmanager
async def asker_for(
    text: str, values: Settings, hosts: PoliteHosts, clock: Clock, allow_private: bool
) -> AsyncIterator[Asker]:
    """Somebody who asks for the page that this text names. `allow_private`: it may lie in a private network,
    for whoever wrote it may go there."""
    reader = DocumentReader()
    async with fetching((text,) if allow_private else (), values, run.credentials([text])) as fetcher:
        remembering = _Remembering(fetcher)
        bare = run.bare_seeds([text])
        tools = Tools(values, remembering, reader, clock, _NoMark(), random.random, {}, bare, may_probe=_never)
        try:
            yield Asker(tools, hosts, remembering)
        finally:
            await reader.close()


class Asker:
    """Asks for single pages, one request after the other: robots.txt first, then in turn."""

    def __init__(self, tools: Tools, hosts: PoliteHosts, answers: _Remembering) -> None:
        self._tools, self._polite, self._answers = tools, hosts, answers

    async def page(self, found: FoundUrl) -> SinglePage:
        """Ask for a page, wherever it leads."""
        made = await self._visit(_entry(found))
        while made.redirect is not None:
            made = await self._visit(_entry(made.redirect, made.entry.chain + 1))
        return SinglePage(made, self._answers.last if made.requested else None)

    async def map(
        self, found: FoundUrl, limit: int, progress: Callable[[int, int], None]
    ) -> tuple[SinglePage, SiteUrls]:
        """A page, and the URLs that its site's sitemaps and the page itself name. `progress` is told how many files
        were read, of how many."""
        single = await self.page(found)
        origin = urls.origin_of(single.visit.entry.request_url)
        named, notes = await self._named_by_sitemaps(origin, limit, progress)
        for one in single.visit.reading.links:
            named.setdefault(one.url, one)
        listed = list(named.values())
        return single, SiteUrls(listed[:limit], len(listed) > limit, notes)

    async def _named_by_sitemaps(
        self, origin: str, limit: int, progress: Callable[[int, int], None]
    ) -> tuple[dict[str, FoundUrl], list[str]]:
        robots = await self._robots(origin)
        files, named, notes = deque(robots.reading.links), dict[str, FoundUrl](), list[str]()
        met = {file.url for file in files}
        for done in range(_MOST_SITEMAPS):
            if not files or len(named) > limit:
                break
            progress(done, done + len(files))
            made = await self._visit(_entry(files.popleft()))
            # Nobody promised that there is one at the usual place.
            if made.failure and (made.status != 404 or done):
                notes.append(f"{made.entry.request_url}: {made.message}")
            for one in made.reading.links:
                if one.kind is not Kind.SITEMAP:
                    named.setdefault(one.url, one)
                elif one.url not in met:
                    met.add(one.url)
                    files.append(one)
        if files:
            notes.append(f"{len(files)} more sitemaps were not read")
        return named, notes

    async def _visit(self, entry: FrontierEntry) -> FinishedVisit:
        """A visit that robots.txt allows, or a failure that says why not."""
        url = entry.request_url
        if self._polite.needs_robots(url):
            await self._robots(urls.origin_of(url))
        if trouble := self._polite.trouble(url):
            return unreadable_robots(entry, trouble, self._tools)
        if not self._polite.allows(url):
            refused = FinishedVisit(entry, self._tools.clock.now_ms(), Outcome.FAILED, requested=False)
            return refused._replace(failure="robots", message="robots.txt does not allow it")
        return await self._visit_politely(entry)

    async def _robots(self, origin: str) -> FinishedVisit:
        made = await self._visit_politely(_entry(control.robots_file(origin)))
        self._polite.learn(origin, *rows.robots_verdict(made))
        return made

    async def _visit_politely(self, entry: FrontierEntry) -> FinishedVisit:
        await asyncio.sleep(self._polite.turn(entry.request_url))
        made = await visit(entry, self._tools)
        assert isinstance(made, FinishedVisit), "nobody told it that the host has answered before"
        for cookie in made.cookies:
            self._tools.jar.put(cookie)
        if made.quiet_ms:
            self._polite.keep_quiet(entry.request_url, made.quiet_ms / 1000)
        return made


def _entry(found: FoundUrl, chain: int = 0) -> FrontierEntry:
    return FrontierEntry(0, found.url, found.request_url, found.kind, found.source, 0, 0, 0, 0, (0, 0), chain=chain)


async def _never(_: str) -> bool:
    return False


class _NoMark:
    """Nobody takes over from us should we die."""

    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...


class _Remembering:
    """A fetcher that keeps its last answer at hand."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.last: Response | None = None

    async def fetch(self, request: Request) -> Reply:
        reply = await self._fetcher.fetch(request)
        self.last = reply if isinstance(reply, Response) else None
        return reply

    async def close(self) -> None:
        await self._fetcher.close()
