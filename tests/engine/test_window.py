"""The window over the durable frontier: what is in it, what has left it, and what is being committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.engine.session.window.lane import Slot
from inchworm.engine.session.window.window import Window
from inchworm.model import (
    FinishedVisit,
    FoundUrl,
    FrontierEntry,
    Kind,
    Mode,
    Outcome,
    Reading,
    RunInfo,
    Source,
    Turn,
)
from inchworm.ports import Unreached
from inchworm.rules.order.order import LAG, NEWS
from inchworm.settings import RUN, make, to_json
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

SEEDS = tuple(f"http://h.test/{number}" for number in range(6))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    with closing(CrawlStore(tmp_path / "crawl.db")) as made:
        yield made


def begin(store: CrawlStore, seeds: int, known: Sequence[Unreached] = (), **given: object) -> tuple[RunInfo, Ledger]:
    """A run with so many pages of one host that wait, and who commits what comes of them."""
    values, token = make({"sitemap": False, **given}), store.take(Life.of_this_process())
    typed = run.seeds_of(tuple(f"http://h.test/{number}" for number in range(seeds)))
    new = run.with_seeds(run.next_run([], Mode.BASELINE, to_json(values, RUN), 0), typed)
    store.runs.create(token, new, Ledger(store, NoArchive(), new, Author(0, token), values).seed(typed, known))
    made = store.runs.get(0)
    assert made is not None
    store.sessions.start(token, made, "{}", 0)
    return made, Ledger(store, NoArchive(), made, Author(1, token), values)


@pytest.fixture
def begun(store: CrawlStore) -> tuple[RunInfo, Ledger]:
    return begin(store, len(SEEDS), robots=False)


def leave(window: Window, slots: Iterable[Slot]) -> list[Turn]:
    """These are done, and leave the window."""
    for slot in slots:
        slot.turn = failed(slot.entry) if slot.entry.kind is Kind.PAGE else without_rules(slot.entry)
    return list(window.retire())


def commit(window: Window, ledger: Ledger, turns: list[Turn]) -> None:
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)


def fill(window: Window) -> list[Slot]:
    (lane,) = window.lanes()
    window.fill(lane)
    return list(lane.slots)


def failed(entry: FrontierEntry) -> FinishedVisit:
    return FinishedVisit(entry, 0, Outcome.FAILED, "connect", "nobody was there")


def without_rules(entry: FrontierEntry) -> FinishedVisit:
    return FinishedVisit(entry, 0, Outcome.CONTROL, status=404, robots=b"")


def test_what_is_being_committed_is_not_loaded_again(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    """It is pending in the store until its commit is over, and has left the window all the same."""
    current, ledger = begun
    window = Window(store.queue, current.run_id, current.seq)
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
    window = Window(store.queue, current.run_id, current.seq)
    slots = fill(window)
    slots[1].turn = failed(slots[1].entry)
    assert list(window.retire()) == []
    slots[0].turn = failed(slots[0].entry)
    assert [turn.entry.url for turn in window.retire()] == list(SEEDS[:2])


def test_what_came_to_nothing_is_sent_again_in_its_old_place(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    current, _ = begun
    window = Window(store.queue, current.run_id, current.seq)
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
    window = Window(store.queue, current.run_id, current.seq)
    first, *others = fill(window)
    window.refresh()
    first.turn = failed(first.entry)._replace(outcome=Outcome.RETRY)
    turns = list(window.retire())
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)
    assert [slot.entry.url for slot in fill(window)] == [*(slot.entry.url for slot in others), first.entry.url]


def test_nothing_pending_means_nothing_to_wait_for(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    current, ledger = begun
    window = Window(store.queue, current.run_id, current.seq)
    for slot in fill(window):
        slot.turn = failed(slot.entry)
    turns = list(window.retire())
    committed = ledger.commit(turns)
    window.committed([turn.entry for turn in turns], committed.lanes, committed.seq)
    assert not window.refresh()


def test_what_is_behind_one_that_is_being_committed_is_read_after_it(
    store: CrawlStore, begun: tuple[RunInfo, Ledger]
) -> None:
    """Its commit may put it elsewhere, so the order of what follows is not known before."""
    current, ledger = begun
    window = Window(store.queue, current.run_id, current.seq)
    turns = leave(window, fill(window)[:3])
    window.refresh()
    (lane,) = window.lanes()
    assert lane.has_more, "the commit under way tells what is next"
    commit(window, ledger, turns)
    assert [slot.entry.url for slot in fill(window)] == list(SEEDS[3:])


def test_a_lane_that_is_read_again_is_looked_at_at_once(store: CrawlStore, begun: tuple[RunInfo, Ledger]) -> None:
    """It may sleep for a host that is down, and what was put ahead may be another's."""
    current, _ = begun
    window = Window(store.queue, current.run_id, current.seq)
    fill(window)
    (lane,) = window.lanes()
    lane.asleep_until = float("inf")
    window.read_again([lane.number])
    assert lane.asleep_until == 0.0


def test_answers_that_wait_for_one_before_them_are_bounded(store: CrawlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many were sent already: all of them lie in memory until the first is there."""
    monkeypatch.setattr("inchworm.engine.session.window.places.LOOK_AHEAD", 600)
    current, _ = begin(store, 2000, robots=False)
    window = Window(store.queue, current.run_id, current.seq)
    for _ in range(5):
        fill(window)
        (lane,) = window.lanes()
        lane.todo.clear()
    assert 600 <= len(lane.slots) < 600 + 512


def test_no_more_are_chosen_by_rank_than_may_be_under_way(store: CrawlStore) -> None:
    """What left the window is under way until it is committed."""
    current, ledger = begin(store, 100, order="freshness")
    window = Window(store.queue, current.run_id, current.seq, "freshness")
    commit(window, ledger, leave(window, fill(window)))
    slots = fill(window)
    assert len(slots) == LAG
    turns = leave(window, slots[:10])
    assert len(fill(window)) == LAG - 10
    commit(window, ledger, turns)
    assert len(fill(window)) == LAG


def test_nothing_is_chosen_behind_a_robots_txt_that_is_asked_for_again(store: CrawlStore) -> None:
    """Not even when pages that left before it are committed meanwhile."""
    current, ledger = begin(store, 100, order="freshness")
    window = Window(store.queue, current.run_id, current.seq, "freshness")
    commit(window, ledger, leave(window, fill(window)))
    turns = leave(window, fill(window)[:10])
    under_way = ledger.commit(turns)
    refreshed = ledger.refresh_robots(["http://h.test"])
    assert refreshed is not None
    window.read_again(refreshed.lanes)
    window.committed([turn.entry for turn in turns], under_way.lanes, under_way.seq)
    slots = fill(window)
    assert (slots[0].entry.kind, len(slots)) == (Kind.ROBOTS, LAG - 10 + 1)
    commit(window, ledger, leave(window, slots[:1]))
    assert len(fill(window)) == LAG


def test_a_robots_txt_that_is_in_the_window_is_not_put_there_again(store: CrawlStore) -> None:
    """However often its lane is read again while it is under way."""
    current, ledger = begin(store, 100, order="freshness")
    window = Window(store.queue, current.run_id, current.seq, "freshness")
    commit(window, ledger, leave(window, fill(window)))
    fill(window)
    refreshed = ledger.refresh_robots(["http://h.test"])
    assert refreshed is not None
    for _ in range(2):
        window.read_again(refreshed.lanes)
    kinds = [slot.entry.kind for slot in fill(window)]
    assert (kinds[0], kinds.count(Kind.ROBOTS)) == (Kind.ROBOTS, 1)


def test_news_have_turns_of_their_own_among_pages_that_may_have_changed(store: CrawlStore) -> None:
    """Every fifth one, from when what was on record so many turns before it tells of them."""
    old = [f"http://h.test/old{number}" for number in range(100)]
    known = [Unreached(number, url, url, Source.SPIDER, 1, None, False, 0) for number, url in enumerate(old, 1000)]
    current, ledger = begin(store, 1, known, order="freshness", robots=False, scope="any")
    window = Window(store.queue, current.run_id, current.seq, "freshness")
    new = [f"http://h.test/new{number}" for number in range(3)]
    news = Reading(links=tuple(FoundUrl(url, url, Kind.PAGE, Source.SPIDER) for url in new))
    taken: list[str] = []
    for turn in range(1, 3 * LAG):
        slot = fill(window)[0]
        taken.append(slot.entry.url)
        slot.turn = FinishedVisit(slot.entry, 0, Outcome.PAGE, reading=news if turn == 1 else Reading())
        commit(window, ledger, list(window.retire()))
    told = range(LAG + 2, 3 * LAG)
    assert [taken.index(url) + 1 for url in new] == [turn for turn in told if turn % NEWS == 0][:3]
