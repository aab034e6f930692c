"""The window over the durable frontier: what is in it, what has left it, and what is being committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.engine.session.window import Slot, Window
from inchworm.model import Entry, Mode, Outcome, RunInfo, Visit
from inchworm.settings import RUN, Settings, to_json
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.lock import Life

VALUES = Settings(robots=False, sitemap=False)
SEEDS = tuple(f"http://h.test/{number}" for number in range(6))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    with closing(CrawlStore(tmp_path / "crawl.db")) as made:
        yield made


@pytest.fixture
def begun(store: CrawlStore) -> tuple[RunInfo, Ledger]:
    """A run with six pages that wait, and who commits what comes of them."""
    token = store.take(Life.of_this_process())
    seeds = run.seeds_of(SEEDS)
    new = run.with_seeds(run.next_run([], Mode.BASELINE, to_json(VALUES, RUN), 0), seeds)
    changes = Ledger(store, NoArchive(), new, Author(0, token), VALUES).seed(seeds)
    store.create_run(token, new, changes)
    made = store.run(0)
    assert made is not None
    store.start_session(token, made, "{}", 0)
    return made, Ledger(store, NoArchive(), made, Author(1, token), VALUES)


def fill(window: Window) -> list[Slot]:
    (lane,) = window.lanes()
    window.fill(lane)
    return list(lane.slots)


def failed(entry: Entry) -> Visit:
    return Visit(entry, 0, Outcome.FAILED, "connect", "nobody was there")


def test_what_is_being_committed_is_not_loaded_again(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    """It is pending in the store until its commit is over, and has left the window all the same."""
    current, ledger = begun
    window = Window(store, current.run_id, current.seq)
    slots = fill(window)
    assert [slot.entry.url for slot in slots] == list(SEEDS)
    for slot in slots[:2]:
        slot.turn = failed(slot.entry)
    turns = list(window.retire())
    assert [turn.entry.url for turn in turns] == list(SEEDS[:2])
    window.refresh()
    assert [slot.entry.url for slot in fill(window)] == list(SEEDS[2:])
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)
    window.refresh()
    assert [slot.entry.url for slot in fill(window)] == list(SEEDS[2:])


def test_turns_leave_in_the_order_of_their_places(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    current, _ = begun
    window = Window(store, current.run_id, current.seq)
    slots = fill(window)
    slots[1].turn = failed(slots[1].entry)
    assert list(window.retire()) == []
    slots[0].turn = failed(slots[0].entry)
    assert [turn.entry.url for turn in window.retire()] == list(SEEDS[:2])


def test_what_came_to_nothing_is_sent_again_in_its_old_place(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    current, _ = begun
    window = Window(store, current.run_id, current.seq)
    slots = fill(window)
    (lane,) = window.lanes()
    sent = [lane.todo.popleft() for _ in range(4)]
    for slot in (sent[2], sent[0]):
        lane.put_back(slot)
    assert [slot.entry.url for slot in lane.todo] == [SEEDS[0], SEEDS[2], SEEDS[4], SEEDS[5]]
    assert list(lane.slots) == slots


def test_what_is_tried_again_is_loaded_at_its_new_place(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    """Also where its lane was read again while it was in the window."""
    current, ledger = begun
    window = Window(store, current.run_id, current.seq)
    first, *others = fill(window)
    window.refresh()
    first.turn = failed(first.entry)._replace(outcome=Outcome.RETRY)
    turns = list(window.retire())
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)
    assert [slot.entry.url for slot in fill(window)] == [*(slot.entry.url for slot in others), first.entry.url]


def test_nothing_pending_means_nothing_to_wait_for(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    current, ledger = begun
    window = Window(store, current.run_id, current.seq)
    for slot in fill(window):
        slot.turn = failed(slot.entry)
    turns = list(window.retire())
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)
    assert not window.refresh()
