"""Opening a session: its adapters, its tools, its ledger and its loop, made of what the session is given."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from typing import NamedTuple

from inchworm.archive import warc
from inchworm.engine import run
from inchworm.engine.caller import Hooks
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.earlier import EarlierRuns
from inchworm.engine.own.inbox import Inbox
from inchworm.engine.own.owner import CrawlOwner
from inchworm.engine.own.rehash import Rehash
from inchworm.engine.session.loop import Loop, Watch
from inchworm.engine.visit import Tools
from inchworm.model import CrawlInfo, EndedBy, Mode, RunInfo
from inchworm.ports import Clock, Fetcher
from inchworm.reader import DocumentReader
from inchworm.rules.order import order
from inchworm.rules.text import content
from inchworm.rules.web import url as urls
from inchworm.rules.web.cookies import Jar
from inchworm.settings import Settings
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.home.inbox import OwnerRequests


class SessionStart(NamedTuple):
    """What a session is given: the crawl and its owner, the run that it works on, its number in that run, its settings,
    and what others ask of owners."""

    crawl: CrawlInfo
    owner: CrawlOwner
    run: RunInfo
    number: int
    settings: Settings
    requests: OwnerRequests
    clock: Clock


class OpenSession(NamedTuple):
    """A session that can be worked, and what it does first."""

    rehash: Rehash
    loop: Loop
    ledger: Ledger
    reader: DocumentReader


@contextlib.asynccontextmanager
async def opened(start: SessionStart, fetcher: Fetcher, hooks: Hooks) -> AsyncIterator[OpenSession]:
    """A session, with its adapters open for as long as it is worked."""
    owner, settings = start.owner, start.settings
    archive = _archive_writer(start)
    # `owner.store` belongs to commits, wherever they run; the window reads through a connection of its own.
    reading = owner.place.open()
    # Only somebody who is shown the pages wants their text laid out.
    query = settings.query if settings.order == order.BEST else ""
    wants_text = hooks.visited is not None
    reader = DocumentReader(settings.resources, settings.drop_params, wants_text, query, settings.ignore_text)
    try:
        ledger = Ledger(owner.store, archive, start.run, Author(start.number, owner.token), settings)
        inbox = Inbox(start.requests, start.crawl.crawl_id, owner, ledger, start.clock)
        inbox.drop_old_orders(reading.runs.carried_out(start.run.run_id))
        watch = Watch(hooks.progress or (lambda _: None), hooks.visited)
        loop = Loop(start.run, reading, ledger, _tools(start, fetcher, reader, reading), inbox, watch)
        loop.hosts.rest_from(_last_request(start))
        rehash = Rehash(owner.store, owner.archive, owner.token, start.run, settings, start.clock)
        yield OpenSession(rehash, loop, ledger, reader)
    finally:
        await reader.close()
        reading.close()
        archive.close()


def _tools(start: SessionStart, fetcher: Fetcher, reader: DocumentReader, store: CrawlStore) -> Tools:
    settings, run_id, owner = start.settings, start.run.run_id, start.owner
    return Tools(
        settings,
        fetcher,
        reader,
        start.clock,
        owner.mark,
        chance=random.random,
        deaths=store.sessions.suspects(run_id),
        bare_seeds=run.bare_seeds(start.crawl.seeds),
        canonicalizer=urls.canonicalizer(settings.drop_params),
        fingerprint=content.fingerprint(settings),
        how=reader.how,
        ignored=reader.ignored,
        jar=Jar(store.hosts.cookies(run_id)),
        earlier=EarlierRuns(store, start.run, settings, owner.archive) if start.run.number else None,
        compares=start.run.mode != Mode.BASELINE,
        probes={probe.directory: probe for probe in store.hosts.probes(run_id)},
    )


def _last_request(start: SessionStart) -> float:
    """The latest moment, on the monotonic clock, at which an earlier session may have asked for something."""
    before = [one for one in start.owner.store.sessions.all() if one.token != start.owner.token]
    if not before:
        return float("-inf")
    now, last = start.clock.monotonic(), before[-1]
    if last.ended_by is EndedBy.CRASHED or last.ended_ms is None:
        return now
    return now - max(0.0, (start.clock.now_ms() - last.ended_ms) / 1000)


def _archive_writer(start: SessionStart) -> warc.WarcWriter:
    info = {
        "software": "inchworm",
        "format": "WARC File Format 1.1",
        "isPartOf": start.crawl.name,
        "http-header-user-agent": start.settings.user_agent,
        "robots": "obeyed" if start.settings.robots else "ignored",
    }
    return warc.WarcWriter(start.owner.archive, f"run{start.run.number:04}-t{start.owner.token:06}", info)
