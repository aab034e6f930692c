"""The past of a run in its store: checkpoints as rows, going back, branching off, and the state at a position."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.flow.test_checkpoints import assert_same, tables_of
from tests.store.test_ledger import RUN_ID, A, B, Desk, failed, hop, record

from inchworm.errors import Lost
from inchworm.model import (
    CheckpointInfo,
    CheckpointType,
    Cookie,
    FinishedVisit,
    FrontierEntry,
    Kind,
    Outcome,
    Reason,
    RefusedEntry,
    RunState,
    Turn,
)
from inchworm.rules.web.limits import exhausted
from inchworm.store.crawl.history import History
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.lock import Life

MANUAL = CheckpointType.MANUAL


class Past(Desk):
    """A run on a real store that can go back."""

    @property
    def history(self) -> History:
        return History(self.store)

    def point(self, kind: CheckpointType = MANUAL) -> CheckpointInfo:
        return self.history.add(self.token, self.info, kind, 5)

    def back(self, point: CheckpointInfo) -> None:
        """Go back, and begin a new session there."""
        self.history.go_back(self.token, self.info, point, 0)
        self.sit()

    def dump(self, run_id: int = RUN_ID) -> dict[str, list[object]]:
        return tables_of(self.store.db, run_id)

    def rows_of(self, query: str, *arguments: object) -> list[tuple[object, ...]]:
        return self.store.db.execute(query, arguments).fetchall()


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    made = Past(tmp_path, (f"{A}/",), scope="any")
    yield made
    made.store.close()


# Checkpoints are rows


def test_a_checkpoint_is_the_position_and_the_totals(past: Past) -> None:
    past.commit(past.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    made = past.point()
    past.commit(f"{A}/x")
    assert (made.number, made.run, made.seq, made.type, made.state) == (0, 0, 1, MANUAL, "crawling")
    assert (made.counters.pages, made.counters.pending, made.counters.known) == (1, 2, 3)
    assert past.history.checkpoint(0) == made
    assert past.history.checkpoints() == [made]
    assert past.history.checkpoint(1) is None


def test_at_one_place_there_is_one_of_each_type(past: Past) -> None:
    first = past.point()
    assert past.point() == first
    assert past.point(CheckpointType.PAUSE).number == 1
    past.commit(f"{A}/")
    assert past.point().number == 2


def test_numbers_of_deleted_ones_are_not_given_again(past: Past) -> None:
    for kind in (MANUAL, CheckpointType.PAUSE, CheckpointType.ERROR):
        past.point(kind)
    past.history.forget(past.token, [1, 2])
    assert [one.number for one in past.history.checkpoints()] == [0]
    assert past.history.checkpoint(2) is None
    assert past.point(CheckpointType.PAUSE).number == 3


@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_one_of_a_run_that_is_over_cannot_be_resumed(past: Past, state: str) -> None:
    assert past.point().can_resume
    past.store.runs.set_state(past.token, RUN_ID, RunState(state), 9)
    made = past.point()
    assert (made.state, made.can_resume, made.number) == (state, False, 1)


def test_what_the_run_was_busy_with(tmp_path: Path) -> None:
    past = Past(tmp_path, (f"{A}/",), robots=True)
    assert past.point().substate == "seeding"
    (entry,) = (one for one in past.pending() if one.kind is Kind.ROBOTS)
    past.commit(past.visit(entry, robots=b""))
    assert past.point().substate == "sitemaps"
    past.commit(past.visit(f"{A}/", f"{A}/1"))
    assert past.point().substate == "downloading_pages"
    past.commit(f"{A}/1")
    assert past.point().substate == "finishing", "nothing is left to download"
    past.store.close()


def test_automatic_ones_come_in_the_commit_of_their_page(tmp_path: Path) -> None:
    past = Past(tmp_path, (f"{A}/",), checkpoint_every=2)
    past.commit(past.visit(f"{A}/", *(f"{A}/{number}" for number in range(7))))
    past.commit(
        *(past.visit(f"{A}/{number}", text="the same" if number % 2 else "") for number in range(3)),
        past.visit(f"{A}/3", **failed()),
    )
    past.commit(*(f"{A}/{number}" for number in (4, 5, 6)))
    assert [(one.seq, one.counters.pages) for one in past.history.checkpoints()] == [(2, 2), (4, 4), (7, 6)]
    past.store.close()


# Going back


def test_all_that_came_later_is_gone(past: Past) -> None:
    past.commit(past.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    point, before = past.point(), past.dump()
    cookie = Cookie("a.test", "/", "name", "value", True, False, 0)
    past.commit(past.visit(f"{A}/x", f"{A}/new", f"{B}/", cookies=(cookie,)), past.visit(f"{A}/y", **failed()))
    past.commit(RefusedEntry(past.entry(f"{A}/new"), Reason.ROBOTS))
    past.ledger.edits.reopen()
    later = past.point()
    past.back(point)
    past.store.runs.set_state(past.token, RUN_ID, RunState.IN_PROGRESS, 0)
    assert_same(past.dump(), before)
    assert past.history.checkpoint(later.number) is None
    assert past.rows_of("SELECT from_seq, to_seq FROM undone") == [(2, 5)]
    assert RecordChecks(past.store).faults(RUN_ID) == []


def test_log_numbers_go_on(past: Past) -> None:
    past.commit(past.visit(f"{A}/", f"{A}/x"))
    point = past.point()
    past.commit(f"{A}/x")
    past.back(point)
    past.commit(f"{A}/x")
    assert past.rows_of("SELECT log_id FROM visit ORDER BY seq") == [(1,), (4,)]
    assert past.rows_of("SELECT log_id FROM undone") == [(3,)]


def test_only_the_owner_goes_back(past: Past) -> None:
    point = past.point()
    past.commit(past.visit(f"{A}/", f"{A}/x"))
    before = past.dump()
    past.store.take(Life.of_this_process())
    with pytest.raises(Lost):
        past.history.go_back(past.token, past.info, point, 0)
    assert_same(past.dump(), before)
    assert past.rows_of("SELECT * FROM undone") == []


def test_the_archive_ends_with_the_last_record_that_stays(past: Past) -> None:
    def kept(url: str, *links: str) -> FinishedVisit:
        return past.visit(url, *links, record=record(url, url.encode()))

    past.commit(kept(f"{A}/", f"{A}/1", f"{A}/2", f"{A}/3"))
    past.commit(kept(f"{A}/1"))
    point = past.point()
    past.commit(kept(f"{A}/2"))
    past.sit()
    past.commit(kept(f"{A}/3"))
    files = "SELECT name, length FROM archive ORDER BY file_id"
    assert past.rows_of(files) == [("session-1.warc.gz", 30), ("session-2.warc.gz", 40)]
    past.back(point)
    assert past.rows_of(files) == [("session-1.warc.gz", 20)]
    past.back(replace_seq(point, 0))
    assert past.rows_of(files) == []


def replace_seq(point: CheckpointInfo, seq: int) -> CheckpointInfo:
    """The beginning of the run, where nothing was counted yet but its seed."""
    counters = replace(point.counters, pages=0, pending=1, known=1, requests=0, size=0)
    return point._replace(seq=seq, counters=counters)


def test_another_url_is_not_blamed_for_a_death(past: Past) -> None:
    point = past.point()
    past.commit(past.visit(f"{A}/", f"{A}/deadly"))
    past.store.sessions.blame(past.token, RUN_ID, [past.row(f"{A}/deadly").url_id])
    past.back(point)
    past.commit(past.visit(f"{A}/", f"{A}/harmless"))
    assert past.row(f"{A}/harmless").url_id not in past.store.sessions.suspects(RUN_ID)


# The state at a position


def test_the_state_at_a_position_is_not_touched_by_what_came_later(past: Past) -> None:
    past.commit(past.visit(f"{A}/", f"{A}/bad", f"{A}/old", f"{A}/x"))
    past.commit(past.visit(f"{A}/bad", **failed()), past.visit(f"{A}/old", **hop(f"{A}/target")))
    point = past.point()
    wanted = {
        f"{A}/": ("done", "page"),
        f"{A}/bad": ("done", "failed"),
        f"{A}/old": ("done", "redirect"),
        f"{A}/x": ("pending", ""),
        f"{A}/target": ("pending", ""),
    }
    assert {url: (state, outcome) for url, state, outcome in past.history.state_at(point)} == wanted
    past.ledger.edits.reopen()
    past.commit(past.visit(f"{A}/x", f"{A}/new"), past.visit(f"{A}/bad"), past.visit(f"{A}/target", **failed()))
    past.ledger.edits.reopen()
    assert {url: (state, outcome) for url, state, outcome in past.history.state_at(point)} == wanted


def test_going_back_to_before_a_robots_txt_was_asked_for_again_takes_that_back(tmp_path: Path) -> None:
    """Asking again is a step of its own, though no visit."""
    past = Past(tmp_path, (f"{A}/",), robots=True)
    past.commit(past.visit(next(one for one in past.pending() if one.kind is Kind.ROBOTS), robots=b""))
    past.commit(past.visit(f"{A}/", f"{A}/1"))
    before, point = past.dump(), past.point()
    past.ledger.refresh_robots([A])
    assert [one.kind for one in past.pending()] == [Kind.ROBOTS, Kind.PAGE]
    past.back(point)
    assert [one.kind for one in past.pending()] == [Kind.PAGE]
    assert past.store.hosts.robots(RUN_ID) == [(A, "allow", None)]
    assert_same(past.dump(), before)
    past.store.close()


# Anything, in any order

Shape = list[tuple[str, int, int, int]]

KINDS = ("page", "page", "page", "copy", "redirect", "failed", "again", "cookie", "nofollow", "forbidden")
SITES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)),
    min_size=3,
    max_size=24,
)
SETTINGS = st.fixed_dictionaries(
    {
        "max_depth": st.sampled_from([0, 0, 3]),
        "page_limit": st.sampled_from([0, 0, 5]),
        "external_hops": st.sampled_from([0, 1]),
        "scope": st.sampled_from(["path", "host", "any"]),
        "robots": st.booleans(),
        "strict_order": st.booleans(),
    }
)
VERBS = ("turns", "turns", "turns", "point", "back", "back", "retry", "refresh", "clear", "sit")
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 9)), max_size=14)


class World(Past):
    """A run over a made-up site: what every URL answers follows from its number, and from how often it was tried."""

    def __init__(self, folder: Path, shape: Shape, **given: object) -> None:
        self.shape = shape
        self.urls = [f"{B if number % 5 == 4 else A}/{'in/' * (number % 2)}{number}" for number in range(len(shape))]
        super().__init__(folder, self.urls[:2], checkpoint_every=2, **given)

    def turn(self, entry: FrontierEntry) -> Turn:
        """What comes of an entry when its turn has come."""
        if entry.kind is Kind.ROBOTS:
            return self.visit(entry, robots=b"")
        number = self.urls.index(entry.url)
        kind, *targets = self.shape[number]
        links = [self.urls[target % len(self.urls)] for target in (number + 1, *targets)]
        if reason := exhausted(self.info.seeds[entry.seed], self.settings.page_limit):
            return RefusedEntry(entry, reason)
        if kind == "forbidden" and number > 1:
            return RefusedEntry(entry, Reason.ROBOTS)
        if kind == "failed" or (kind == "again" and not entry.attempts):
            return self.visit(entry, **failed(Outcome.RETRY if kind == "again" else Outcome.FAILED))
        if kind == "redirect" and links[1] not in (entry.url, *entry.tried):
            return self.visit(entry, **hop(links[1]))
        if kind == "nofollow":
            return self.nofollow(entry.url, *links)
        cookies = (Cookie("a.test", "/", f"c{number % 3}", str(number), True, False, 0),) if kind == "cookie" else ()
        return self.visit(entry, *links, text=f"copy {number % 2}" if kind == "copy" else "", cookies=cookies)

    def turns(self, count: int, together: bool) -> None:
        """So many turns, each in a commit of its own, or several in one where that does not change their order."""
        while count > 0 and (waiting := self.pending()):
            may_batch = together and self.settings.strict_order and not self.settings.page_limit
            batch = waiting[: min(count, 3) if may_batch else 1]
            self.commit(*map(self.turn, batch))
            count -= len(batch)

    def order(self, verb: str) -> bool:
        """Carry out what somebody asks for; whether there was anything to do."""
        origins = [origin for origin, verdict, _ in self.store.hosts.robots(RUN_ID) if verdict == "allow"]
        if verb == "retry" and self.store.frontier.failed(RUN_ID):
            self.ledger.edits.reopen()
        elif verb == "refresh" and origins:
            self.ledger.refresh_robots(origins)
        elif verb == "clear" and self.pending():
            self.ledger.edits.clear()
        else:
            return False
        assert RecordChecks(self.store).faults(RUN_ID) == []
        return True

    def back_to(self, number: int) -> int:
        """Go back to one of the checkpoints; its seq."""
        points = self.history.checkpoints()
        point = points[number % len(points)]
        self.back(point)
        assert RecordChecks(self.store).faults(RUN_ID) == []
        kept, counted = self.info.counters, RecordChecks(self.store).recount(RUN_ID)
        assert counted == {name: getattr(kept, name) for name in counted}
        return point.seq


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(SITES, SETTINGS, STEPS)
def test_whatever_was_done_and_undone_the_record_is_the_same(
    shape: Shape, given: dict[str, object], steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        world, calm = World(Path(ours), shape, **given), World(Path(theirs), shape, **given)
        orders: dict[int, str] = {}
        world.point()
        for verb, number in [*steps, ("turns", 1000)]:
            if verb == "turns":
                world.turns(number + 1, together=number % 2 == 1)
            elif verb == "point":
                world.point()
            elif verb == "sit":
                world.sit()
            elif verb == "back":
                seq = world.back_to(number)
                orders = {at: order for at, order in orders.items() if at <= seq}
            elif world.order(verb):
                orders[world.info.seq] = verb
        for at, order in orders.items():
            calm.turns(at - 1 - calm.info.seq, together=False)
            assert calm.order(order)
        calm.turns(1000, together=False)
        assert_same(world.dump(), calm.dump())
        for one in (world, calm):
            one.store.close()
