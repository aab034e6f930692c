"""Fields of a crawl's pages: by which rules, and how they are taken out of what the archive has."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from inchworm import settings
from inchworm.apart import Unreadable, shared
from inchworm.app.refuse import refuse_fields
from inchworm.app.workspace import Workspace, defaults_of
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.own.bodies import Bodies
from inchworm.errors import Broken, InchwormError
from inchworm.model import CrawlInfo, JsonObject
from inchworm.page import Page
from inchworm.rules.fields.selectors import Rules, parsed, to_json
from inchworm.settings import NamedSettings
from inchworm.sink.columns import Column
from inchworm.sink.fields import OWN, ROW, TAKEN, FieldRows, columns_of, spread, told
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import fields as stored
from inchworm.store.follow import follower
from inchworm.store.follow.log import LoggedPage as FollowedPage

FILE = "fields.db"

NAMES = ("extract", "each")
"""The settings that say what to take."""

PATIENCE_SECONDS = 120.0
"""So long pages may be tried in vain, one after the other."""

Function = Callable[[Page], Mapping[str, object] | Sequence[Mapping[str, object]]]
"""What a caller takes out of a page: its fields, or a row for each of something."""


# ---- rules


def rules_of(workspace: Workspace, crawl: CrawlInfo, given: NamedSettings | None = None) -> Rules | None:
    """The rules that hold for a crawl, with what was given for it last; None when nothing is to be taken."""
    levels = {**workspace.base_settings(), **defaults_of(crawl), **crawl.settings, **(given or {})}
    extract, each = settings.texts(levels, "extract"), str(settings.check("each", levels.get("each", "")))
    return parsed(extract, each, TAKEN) if extract or each else None


# ---- taking


class Taker:
    """Takes rows out of documents by rules, in a process that may die of it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._wasted = 0.0

    def take(self, body: bytes | None, content_type: str, url: str) -> stored.ExtractedRows:
        if body is None:
            return stored.LOST
        began = time.monotonic()
        try:
            rows = shared().fields(self._rules, body, content_type, url)
        except Unreadable as error:
            self._wasted += time.monotonic() - began
            if self._wasted > PATIENCE_SECONDS:
                raise Broken(
                    f"One page after the other cannot be read by these fields, the last because {error}.",
                    "Simplify the selectors, and try them on one page first: inchworm extract CRAWL URL",
                ) from None
            return stored.ExtractedRows(None, str(error))
        self._wasted = 0.0
        return stored.ExtractedRows(rows)


@dataclass(frozen=True, slots=True)
class CrawlFields:
    """Where the fields of a crawl are, and what they are taken from."""

    store: CrawlStore
    place: CrawlPlace
    rules: Rules

    @property
    def path(self) -> Path:
        return self.place.folder / FILE

    def source(
        self, progress: follower.Progress = lambda _done, _total: None, is_over: Callable[[], bool] = lambda: False
    ) -> stored.FieldSource:
        """`is_over`: whether nobody wants them any more."""
        bodies, taker = Bodies(self.store, self.place.archive), Taker(self.rules)

        def take(page: FollowedPage) -> stored.ExtractedRows:
            if is_over():
                raise asyncio.CancelledError
            response = bodies.of(page.payload)
            return taker.take(None if response is None else response.body, page.content_type, page.request_url)

        return stored.FieldSource(self.store, take, self.rules.digest, progress)

    def catch_up(self, progress: follower.Progress = lambda _done, _total: None) -> None:
        stored.catch_up(self.path, self.source(progress))

    def counts(self, run_id: int, source: stored.FieldSource | None = None) -> stored.FieldCounts:
        """What came of the pages of a run, brought up to date."""
        return stored.counts(self.path, source or self.source(), run_id)

    @contextlib.contextmanager
    def looking(self) -> Iterator[Callable[[Page], stored.ExtractedRows]]:
        """A way to get at the rows of pages: those that were taken, and what is newer than those on the spot."""
        taker = Taker(self.rules)
        with stored.lookup(self.path, self.rules.digest) as look:

            def taken(page: Page) -> stored.ExtractedRows:
                known = look(page.record["log_id"]) if "log_id" in page.record else None
                return known or taker.take(None if page.is_lost else page.body, page.content_type, page.url)

            yield taken


def unmatched(rules: Rules, counts: stored.FieldCounts) -> tuple[str, ...]:
    """The fields that no page of a run has; none when there are no pages."""
    if not counts.pages:
        return ()
    return tuple(name for number, name in enumerate(rules.names) if not counts.matched.get(number))


# ---- as columns


class OwnFields:
    """A function of the caller's that takes fields out of pages. What it does wrong costs a page its fields."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.failed = 0
        self.error: Exception | None = None
        """What went wrong last."""

    def rows(self, page: Page) -> FieldRows:
        if page.is_gone:
            return FieldRows()
        try:
            found = self.function(page)
            rows = [found] if isinstance(found, Mapping) else list(found)
            json.dumps([dict(row) for row in rows])
        except Exception as error:
            self.failed += 1
            self.error = error
            return FieldRows()
        return FieldRows(rows, not isinstance(found, Mapping))


class FieldRequest(NamedTuple):
    """What a caller asks for himself: rules in the place of the crawl's own, as settings, or a function instead."""

    given: NamedSettings = MappingProxyType({})
    own: OwnFields | None = None


def asked_rules(workspace: Workspace, crawl: CrawlInfo, asked: FieldRequest) -> Rules | None:
    """The rules by which a caller wants fields to be taken, seen to be usable where they are his own; None: none."""
    rules = None if asked.own else rules_of(workspace, crawl, asked.given)
    if rules is not None and asked.given:
        refuse_fields(**to_json(rules))
    return rules


class FieldColumns:
    """Fields as columns of an export: by a function of the caller's, or else by rules."""

    def __init__(self, place: CrawlFields | None, own: OwnFields | None) -> None:
        self._place, self._own = place, own
        self.columns: tuple[Column, ...] = (ROW, OWN) if own else columns_of(place.rules) if place else ()

    @contextlib.contextmanager
    def rows(self, pages: Iterable[Page], keeps_all: bool) -> Iterator[Iterator[Page]]:
        """These pages with their fields, a page for each row. `keeps_all`: also those without any."""
        if self._own is not None:
            yield spread(pages, self._own.rows, keeps_all)
        elif self._place is not None:
            self._place.catch_up()
            with self._place.looking() as taken:
                yield spread(pages, _by_rules(self._place.rules, taken), keeps_all)
        else:
            yield iter(pages)

    def values(self, page: Page) -> JsonObject:
        """The fields of one of these pages, as JSON has them."""
        if not self._own:
            return {column.name: column.json(page) for column in self.columns}
        own = OWN.get(page)
        return dict(own) if isinstance(own, Mapping) else {}


def rows_on_the_spot(
    workspace: Workspace, crawl: CrawlInfo, asked: FieldRequest
) -> Callable[[Page], Sequence[Mapping[str, object]]]:
    """How to take the rows of one page after the other, without looking whether they are known."""
    own, rules = asked.own, asked_rules(workspace, crawl, asked)
    if own is not None:
        return lambda page: own.rows(page).values
    if rules is None:
        return lambda _: ()
    taker = Taker(rules)

    def rows_of(page: Page) -> Sequence[Mapping[str, object]]:
        body = None if page.is_gone or page.is_lost else page.body
        return [told(rules, row) for row in taker.take(body, page.content_type, page.url).rows or ()]

    return rows_of


def _by_rules(rules: Rules, taken: Callable[[Page], stored.ExtractedRows]) -> Callable[[Page], FieldRows]:
    def rows_of(page: Page) -> FieldRows:
        rows = None if page.is_gone else taken(page).rows
        return FieldRows([dict(zip(rules.names, row, strict=True)) for row in rows or ()], rules.each is not None)

    return rows_of


# ---- at the end of a session


async def after_session(
    workspace: Workspace, crawl: CrawlInfo, rules: Rules, summary: Summary, hooks: Hooks
) -> Summary:
    """Take the fields of what a session has brought. Whatever goes wrong becomes a note, and is made good the next
    time; who wants the process to end does not wait for it."""
    later = f"inchworm extract {crawl.crawl_id}"
    if summary.signal:
        return _noted(summary, f"The fields are not up to date: {later} takes what is missing.")
    over = threading.Event()
    try:
        counts = await asyncio.to_thread(_brought_up, workspace, crawl, rules, summary.run, hooks, over)
    except (InchwormError, OSError) as error:
        why = error.message if isinstance(error, InchwormError) else error.strerror
        return _noted(summary, f"The fields are not up to date: {why} Try again: {later}")
    finally:
        over.set()
    missing = unmatched(rules, counts)
    summary = dataclasses.replace(summary, fields=dict(zip(rules.names, _matched(rules, counts), strict=True)))
    if counts.failed:
        pages = "1 page has" if counts.failed == 1 else f"{counts.failed:,} pages have"
        summary = _noted(summary, f"{pages} no fields: they could not be read.")
    return dataclasses.replace(summary, unmatched_fields=missing)


def _brought_up(
    workspace: Workspace, crawl: CrawlInfo, rules: Rules, number: int, hooks: Hooks, over: threading.Event
) -> stored.FieldCounts:
    with workspace.reading(crawl) as store:
        place = CrawlFields(store, workspace.place(crawl), rules)
        progress = hooks.extracting or (lambda _done, _total: None)
        return place.counts(workspace.run_of(crawl, store, number).run_id, place.source(progress, over.is_set))


def _matched(rules: Rules, counts: stored.FieldCounts) -> list[int]:
    return [counts.matched.get(number, 0) for number in range(len(rules.fields))]


def _noted(summary: Summary, text: str) -> Summary:
    return dataclasses.replace(summary, note=" ".join(filter(None, (summary.note, text))))
