"""A session put together: the owner of a crawl, the adapters it works with, its first fetch and its last word."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from inchworm.archive import warc
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.own.earlier import EarlierRuns
from inchworm.engine.own.owner import CrawlOwner
from inchworm.engine.session.ending import SessionEnd
from inchworm.engine.session.loop import Loop, Watch
from inchworm.engine.signals import stopping
from inchworm.engine.visit import Tools
from inchworm.errors import InchwormError, Lost
from inchworm.model import (
    CheckpointType,
    Counters,
    CrawlInfo,
    EndedBy,
    FoundUrl,
    Kind,
    LiveProgress,
    Mode,
    Reason,
    RunInfo,
    RunState,
    SessionInfo,
    Source,
)
from inchworm.ports import Clock, Fetcher
from inchworm.reader import DocumentReader
from inchworm.rules.formats import pdf
from inchworm.rules.order import order
from inchworm.rules.text import content
from inchworm.rules.web import scope
from inchworm.rules.web import url as urls
from inchworm.rules.web.cookies import Jar
from inchworm.rules.words import failures
from inchworm.settings import Settings
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.failures import FailureReader
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.home.inbox import OwnerRequests

_ENDING = {"pause": EndedBy.PAUSED, "cancel": EndedBy.CANCELLED}


class Inbox:
    """What other processes ask of this session."""

    def __init__(self, requests: OwnerRequests, crawl_id: str, owner: CrawlOwner, ledger: Ledger, clock: Clock) -> None:
        self._requests = requests
        self._crawl_id = crawl_id
        self._owner = owner
        self._ledger = ledger
        self._clock = clock

    def drop_old_orders(self, carried_out: int) -> None:
        """Whoever asked an earlier session to stop did not mean this one; and a retry that was committed is done."""
        for asked in self._requests.unanswered(self._crawl_id):
            if asked.verb in _ENDING or asked.inbox_id <= carried_out:
                self._requests.answer(asked.inbox_id, "nothing is left to do", self._clock.now_ms())

    def poll(self) -> EndedBy | Callable[[], Committed | None] | None:
        for asked in self._requests.unanswered(self._crawl_id):
            if asked.verb in _ENDING:
                self._requests.answer(asked.inbox_id, "stopping", self._clock.now_ms())
                return _ENDING[asked.verb]
            orders = {"retry": self._retry, "add": self._add, "checkpoint": self._checkpoint}
            return functools.partial(orders[asked.verb], asked.inbox_id, asked.argument)
        return None

    def _retry(self, inbox_id: int, argument: Mapping[str, Any]) -> Committed:
        committed = self._ledger.edits.reopen(argument.get("kind"), argument.get("url"), inbox_id)
        self._requests.answer(inbox_id, "reopened", self._clock.now_ms())
        return committed

    def _add(self, inbox_id: int, argument: Mapping[str, Any]) -> Committed:
        found = FoundUrl(argument["url"], argument["request_url"], Kind.PAGE, Source.MANUAL)
        committed = self._ledger.edits.add(found, argument["depth"], inbox_id)
        self._requests.answer(inbox_id, "added", self._clock.now_ms())
        return committed

    def _checkpoint(self, inbox_id: int, _: Mapping[str, Any]) -> None:
        made = self._owner.checkpoint(CheckpointType.MANUAL, self._clock.now_ms())
        self._requests.answer(inbox_id, str(made.number), self._clock.now_ms())


class CrawlSession:
    """One session with everything it needs, from its first fetch to its last word."""

    def __init__(
        self,
        requests: OwnerRequests,
        clock: Clock,
        owner: CrawlOwner,
        crawl: CrawlInfo,
        current: RunInfo,
        values: Settings,
        number: int,
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._crawl = crawl
        self._owner = owner
        self._run = current
        self._values = values
        self._number = number
        self._signal = 0

    async def work(self, fetcher: Fetcher, hooks: Hooks) -> Summary:
        owner, clock = self._owner, self._clock
        writer = self._archive_writer()
        # `owner.store` belongs to commits, wherever they run; the window reads through a connection of its own.
        reading = CrawlStore(owner.store.path, read_only=True)
        # Only somebody who is shown the pages wants their text laid out.
        reader = DocumentReader(
            self._values.resources,
            self._values.drop_params,
            hooks.visited is not None,
            self._values.query if self._values.order == order.BEST else "",
        )
        started = clock.monotonic()
        try:
            ledger = Ledger(owner.store, writer, self._run, Author(self._number, owner.token), self._values)
            tools = Tools(
                self._values,
                fetcher,
                reader,
                clock,
                owner.mark,
                random.random,
                reading.suspects(self._run.run_id),
                run.bare_seeds(self._crawl.seeds),
                urls.canonicalizer(self._values.drop_params),
                content.fingerprint(self._values.resources, self._values.drop_params),
                reader.how,
                Jar(reading.cookies(self._run.run_id)),
                EarlierRuns(reading, self._run, self._values, owner.archive) if self._run.number else None,
                self._run.mode != Mode.BASELINE,
                probes={probe.directory: probe for probe in reading.probes(self._run.run_id)},
            )
            watch = Watch(hooks.progress or (lambda _: None), hooks.visited)
            inbox = Inbox(self._requests, self._crawl.crawl_id, owner, ledger, clock)
            inbox.drop_old_orders(reading.carried_out(self._run.run_id))
            session = Loop(self._run, reading, ledger, tools, inbox, watch)
            session.hosts.rest_from(self._last_request())
            with self._stopped_by_signals(session, hooks.signals):
                ended, is_cancelled = await _worked(session)
            if ended.by is EndedBy.FINISHED and _has_nothing(session.progress().counters):
                ended = self._open_again(ledger)
        finally:
            await reader.close()
            reading.close()
            writer.close()
        try:
            summary = self._close(ended, session, clock.monotonic() - started)
        finally:
            watch.progress(session.progress())
        if is_cancelled:
            raise asyncio.CancelledError
        return dataclasses.replace(summary, note=_about_unread(reader.unread))

    def _open_again(self, ledger: Ledger) -> SessionEnd:
        """Nothing could be fetched: the run is not complete but has not really begun, and whoever starts it again means
        that it be tried again."""
        first = FailureReader(self._owner.store).first(self._run.run_id)
        assert first is not None, "something failed"
        ledger.edits.reopen()
        cause = failures.cause(urls.host_of(first.url), first.kind, first.message)
        return SessionEnd(EndedBy.ERROR, f"Nothing could be fetched. {cause}")

    def _last_request(self) -> float:
        """The latest moment, on the monotonic clock, at which an earlier session may have asked for something."""
        before = [one for one in self._owner.store.all_sessions() if one.token != self._owner.token]
        if not before:
            return float("-inf")
        now, last = self._clock.monotonic(), before[-1]
        if last.ended_by is EndedBy.CRASHED or last.ended_ms is None:
            return now
        return now - max(0.0, (self._clock.now_ms() - last.ended_ms) / 1000)

    def _archive_writer(self) -> warc.WarcWriter:
        prefix = f"run{self._run.number:04}-t{self._owner.token:06}"
        info = {
            "software": "inchworm",
            "format": "WARC File Format 1.1",
            "isPartOf": self._crawl.name,
            "http-header-user-agent": self._values.user_agent,
            "robots": "obeyed" if self._values.robots else "ignored",
        }
        return warc.WarcWriter(self._owner.archive, prefix, info)

    @contextlib.contextmanager
    def _stopped_by_signals(self, session: Loop, wanted: bool) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = stopping() if wanted else []

        def stop(number: int) -> None:
            self._signal = self._signal or number
            session.stop(EndedBy.PAUSED)

        for number in numbers:
            loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _close(self, ended: SessionEnd, session: Loop, seconds: float) -> Summary:
        store, token = self._owner.store, self._owner.token
        progress = session.progress()
        by = ended.by
        if by is EndedBy.FINISHED and CountReader(store).has_refused(self._run.run_id, Reason.PAGE_LIMIT):
            by = EndedBy.PAGE_LIMIT
        run_state, session_state = run.states_after(by)
        if isinstance(ended.error, Lost):
            raise ended.error
        info = SessionInfo(
            self._run.run_id,
            self._number,
            token,
            session_state,
            by,
            0,
            self._clock.now_ms(),
            progress.requests,
            progress.size,
            ended.message,
            progress.unanswered,
        )
        with contextlib.suppress(InchwormError) if ended.error else contextlib.nullcontext():
            if run_state is not RunState.COMPLETED:
                kind = CheckpointType.ERROR if by is EndedBy.ERROR else CheckpointType.PAUSE
                self._owner.checkpoint(kind, self._clock.now_ms())
            store.end_session(token, info, run_state)
        if ended.error:
            raise ended.error
        return self._summary(info, run_state, progress, seconds)

    def _summary(self, info: SessionInfo, run_state: RunState, progress: LiveProgress, seconds: float) -> Summary:
        counters = progress.counters
        return Summary(
            self._crawl.crawl_id,
            self._crawl.name,
            self._run.number,
            self._number,
            run_state,
            info.state,
            str(info.ended_by),
            progress.requests,
            progress.size,
            round(seconds, 3),
            counters.pages,
            counters.duplicates,
            counters.unchanged,
            counters.failed,
            counters.refused,
            counters.pending,
            counters.known,
            progress.order,
            run.word_for(dataclasses.replace(self._run, state=run_state, counters=counters)),
            info.message,
            progress.seeds,
            self._signal,
            mostly_duplicates=CountReader(self._owner.store).has_refused(self._run.run_id, Reason.MOSTLY_DUPLICATES),
            **self._changes(),
            unanswered=progress.unanswered,
            down=progress.down,
            blocked=FailureReader(self._owner.store).count(self._run.run_id, "blocked") if counters.failed else 0,
        )

    def _changes(self) -> dict[str, Any]:
        """Where its seeds went, and what is to be told of a run that builds on others."""
        current = self._owner.store.run(self._run.number)
        assert current is not None
        counters = current.counters
        moved = tuple(filter(None, map(scope.said_of_move, current.seeds)))
        told: dict[str, Any] = {"mode": current.mode, "parent": current.parent, "moved": moved}
        told |= {"branch_of": current.origin, "on_line": not current.beside}
        if current.mode == Mode.BASELINE:
            return told
        told |= {name: getattr(counters, name) for name in ("new", "modified", "deleted", "unknown")}
        why = CountReader(self._owner.store).why_downloaded(current.run_id)
        return told | {"saved_bytes": counters.saved, "downloaded": why, "alarm": current.alarm}


async def _worked(session: Loop) -> tuple[SessionEnd, bool]:
    """How a session ended, and whether somebody cancelled it. To cancel is to pause: what is under way may finish, what
    was found is committed, and only then the one who cancelled goes on."""
    working, is_cancelled = asyncio.ensure_future(session.work()), False
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            is_cancelled = True
            session.stop(EndedBy.PAUSED)
    return working.result(), is_cancelled


def _about_unread(count: int) -> str:
    """What to say of documents whose text would be there if the one thing that reads them were."""
    if not count:
        return ""
    documents = "1 PDF document has" if count == 1 else f"{count:,} PDF documents have"
    return f"{documents} no text, because pypdfium2 is missing. Install it: pip install '{pdf.NEEDED}'"


def _has_nothing(counters: Counters) -> bool:
    """Whether a run failed in all that it tried."""
    return bool(counters.failed) and not (
        counters.pages or counters.duplicates or counters.resources or counters.deleted
    )
