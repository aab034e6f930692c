"""When turns are worth a commit, when the loop goes on, and what may lie in memory until then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_window import begin, fill, leave

from inchworm.engine.session.commits import BATCH_PAGES, BATCH_SECONDS, Commits
from inchworm.engine.session.flight import Flight
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.session.window.lane import Lane, Slot
from inchworm.engine.session.window.window import Window
from inchworm.engine.visit import Tools
from inchworm.model import FrontierEntry, Kind, Source, Turn
from inchworm.settings import make
from inchworm.store.crawl.store import CrawlStore
from inchworm.testing import ManualClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    with closing(CrawlStore(tmp_path / "crawl.db")) as made:
        yield made


class Desk:
    """Turns that are to be committed, and who does it."""

    def __init__(self, store: CrawlStore) -> None:
        current, self.ledger = begin(store, 2 * BATCH_PAGES, robots=False)
        window = Window(store.queue, current.run_id, current.seq)
        self.turns: list[Turn] = leave(window, fill(window))
        self.clock = ManualClock()
        self.wake_up = WakeUp(self.clock)

    def commits(self) -> Commits:
        return Commits(self.ledger, self.clock, self.wake_up)


@pytest.mark.parametrize(
    ("turns", "waited", "is_idle", "is_worth_it"),
    [
        (1, 0.0, True, True),
        (1, 0.0, False, False),
        (1, BATCH_SECONDS - 0.1, False, False),
        (1, BATCH_SECONDS, False, True),
        (BATCH_PAGES - 1, 0.0, False, False),
        (BATCH_PAGES, 0.0, False, True),
    ],
)
def test_turns_are_committed_when_they_are_many_or_old_or_nobody_has_anything_else_to_do(
    store: CrawlStore, turns: int, waited: float, is_idle: bool, is_worth_it: bool
) -> None:
    desk = Desk(store)

    async def work() -> None:
        commits = desk.commits()
        desk.clock.advance(100.0)
        commits.add([])
        desk.clock.advance(100.0)
        commits.add(desk.turns[:1])
        desk.clock.advance(waited)
        commits.add(desk.turns[1:turns])
        desk.wake_up.begin_round()
        assert (commits.has_batch(), commits.is_under_way(), commits.is_busy()) == (True, False, True)
        commits.start_batch(is_idle)
        assert (commits.has_batch(), commits.is_under_way()) == (not is_worth_it, is_worth_it)
        assert desk.wake_up.at == (float("inf") if is_worth_it else 200.0 + BATCH_SECONDS), "it gets older"
        await commits.close()
        committed = commits.take()
        assert (committed is not None) is is_worth_it
        if committed is not None:
            assert [turn for turn, _ in committed.outcomes] == desk.turns[:turns]
            assert not commits.is_busy()
            assert commits.take() is None, "once"

    asyncio.run(work())


@pytest.mark.parametrize("is_heavy", [False, True])
def test_what_is_heavy_is_committed_like_everything_else(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch, is_heavy: bool
) -> None:
    monkeypatch.setattr("inchworm.engine.session.commits.HEAVY_BYTES", -1 if is_heavy else 1_000_000)
    desk = Desk(store)

    async def work() -> None:
        commits = desk.commits()
        commits.add(desk.turns)
        commits.start_batch(is_idle=True)
        await commits.close()
        committed = commits.take()
        assert committed is not None and committed.counters.pending == 0

    asyncio.run(work())


# When the loop goes on


async def slept(wake_up: WakeUp, until: float = float("inf"), most: float = 20.0) -> float:
    began = time.monotonic()
    await asyncio.wait_for(wake_up.sleep(until, most), 30)
    return time.monotonic() - began


def test_the_loop_sleeps_until_the_earliest_of_what_it_waits_for() -> None:
    async def sleep() -> None:
        clock = ManualClock()
        wake_up = WakeUp(clock)
        wake_up.begin_round()
        for moment in (300.0, 0.3, 200.0):
            wake_up.by(moment)
        assert wake_up.at == 0.3
        assert 0.25 < await slept(wake_up) < 15
        wake_up.begin_round()
        assert wake_up.at == float("inf")
        assert 0.15 < await slept(wake_up, until=0.2) < 15
        wake_up.begin_round()
        assert 0.15 < await slept(wake_up, most=0.2) < 15, "and never for longer than so"
        clock.advance(1000.0)
        wake_up.begin_round()
        wake_up.by(0.3)
        assert await slept(wake_up) < 15, "that is over"
        wake_up.begin_round()
        wake_up.now()
        assert await slept(wake_up) < 15, "something happened"

    asyncio.run(sleep())


# What lies in memory


def entry(number: int) -> FrontierEntry:
    url = f"http://h.test/{number}"
    return FrontierEntry(number, url, url, Kind.PAGE, Source.SPIDER, 0, 1, 0, 0, (1, number))


def requests(new_first: bool) -> Flight:
    clock, nothing = ManualClock(), None
    anything: Any = nothing
    values = make({"workers": 2})
    tools = Tools(values, anything, anything, clock, anything, lambda: 0.0, {})
    return Flight(tools, anything, anything, anything, WakeUp(clock), new_first)


def lane(waiting: int, leaving: int = 0) -> Lane:
    """Five entries, of which so many wait to be sent and others were sent before them."""
    made = Lane(1, leaving=leaving)
    made.slots.extend(Slot(entry(number)) for number in range(5))
    made.todo.extend(list(made.slots)[5 - waiting :])
    return made


@pytest.mark.parametrize(
    ("new_first", "one", "has_room"),
    [
        (False, lane(5), True),
        (False, lane(4), True),
        (False, lane(4, leaving=1), True),
        (True, lane(5), True),
        (True, lane(4), False),
        (True, lane(5, leaving=1), False),
    ],
)
def test_where_new_comes_first_one_goes_after_the_other(new_first: bool, one: Lane, has_room: bool) -> None:
    """What was sent before may bring something that goes ahead of what is next."""
    assert requests(new_first).has_room(one) is has_room
