"""Turns on their way into the record: gathered until they are worth a commit, and committed one batch after the other.

A commit has three steps: the first (locks) and the last (syncing) wait and are a thread's, the one between is work and
is the loop's. Work in two threads at a time would cost a third more and be slower, for only one of them can run Python.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.session.wakeup import WakeUp
from inchworm.model import FinishedVisit, Turn
from inchworm.ports import Clock

BATCH_PAGES = 64
BATCH_SECONDS = 0.5
HEAVY_LINKS = 20_000
HEAVY_BYTES = 8_000_000
"""A batch over these would hold up the loop for too long: it goes to the thread as a whole."""

T = TypeVar("T")


class Commits:
    """The commits of one session. At most one is under way."""

    def __init__(self, ledger: Ledger, clock: Clock, wake_up: WakeUp) -> None:
        self._ledger = ledger
        self._clock = clock
        self._wake_up = wake_up
        self._batch: list[Turn] = []
        self._batch_since = 0.0
        self._under_way: asyncio.Task[Committed] | None = None
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "inchworm-writer")

    def add(self, turns: Iterable[Turn]) -> None:
        """These are to be committed next, in this order."""
        if not self._batch:
            self._batch_since = self._clock.monotonic()
        self._batch.extend(turns)

    def has_batch(self) -> bool:
        """Whether there are turns to be committed."""
        return bool(self._batch)

    def is_under_way(self) -> bool:
        """Whether a commit was started whose result nobody has taken yet."""
        return self._under_way is not None

    def is_busy(self) -> bool:
        """Whether anything is being committed or is to be."""
        return self._under_way is not None or bool(self._batch) or self._writing.locked()

    def start_batch(self, is_idle: bool) -> None:
        """Commit the batch if it is large or old enough, or if there is nothing better to do."""
        due = self._batch_since + BATCH_SECONDS
        if is_idle or len(self._batch) >= BATCH_PAGES or self._clock.monotonic() >= due:
            self._start(self._commit(self._batch))
            self._batch = []
        else:
            self._wake_up.by(due)

    def start(self, work: Callable[[], Committed]) -> None:
        """Start a commit that is made of something else than turns."""
        self._start(self.in_between(work))

    def take(self) -> Committed | None:
        """What the last commit came to, once it is over."""
        if self._under_way is None or not self._under_way.done():
            return None
        committed, self._under_way = self._under_way.result(), None
        return committed

    async def in_between(self, work: Callable[[], T]) -> T:
        """Have something done by the thread, when nothing is being committed."""
        async with self._writing:
            return await self._in_thread(work)

    async def close(self) -> None:
        """Wait until the commit that is under way is over, whatever comes of it."""
        if self._under_way is not None:
            await asyncio.gather(self._under_way, return_exceptions=True)
        self._thread.shutdown()

    def _start(self, commit: Coroutine[object, object, Committed]) -> None:
        self._under_way = asyncio.create_task(commit)
        self._under_way.add_done_callback(lambda _: self._wake_up.now())

    async def _commit(self, batch: list[Turn]) -> Committed:
        ledger = self._ledger
        async with self._writing:
            await self._in_thread(ledger.begin)
            decide = functools.partial(ledger.apply, batch)
            outcomes = await self._in_thread(decide) if _is_heavy(batch) else decide()
            return await self._in_thread(functools.partial(ledger.finish, outcomes))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _is_heavy(batch: list[Turn]) -> bool:
    visits = [turn for turn in batch if isinstance(turn, FinishedVisit)]
    links = sum(len(visit.reading.links) for visit in visits)
    size = sum((len(visit.record.payload) if visit.record else 0) + len(visit.reading.text) for visit in visits)
    return links > HEAVY_LINKS or size > HEAVY_BYTES
