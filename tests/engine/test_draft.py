"""What the next commit will write: decisions see it, and whether it is written by then is no concern of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.own.owner import NoArchive
from inchworm.model import Counters, Mode, Reason, RunInfo, State
from inchworm.settings import RUN, Settings, to_json
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

VALUES = Settings(robots=False, sitemap=False)
FIRST, SECOND = "http://a.test/1", "http://b.test/2"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    with closing(CrawlStore(tmp_path / "crawl.db")) as made:
        yield made


@pytest.fixture
def begun(store: CrawlStore) -> RunInfo:
    """A run with two pages that wait, each in a lane of its own."""
    token = store.take(Life.of_this_process())
    seeds = run.seeds_of((FIRST, SECOND))
    new = run.with_seeds(run.next_run([], Mode.BASELINE, to_json(VALUES, RUN), 0), seeds)
    store.runs.create(token, new, Ledger(store, NoArchive(), new, Author(0, token), VALUES).seed(seeds))
    made = store.runs.get(0)
    assert made is not None
    store.sessions.start(token, made, "{}", 0)
    return made


def changed(store: CrawlStore) -> int:
    """How many rows were written so far."""
    return int(store.db.execute("SELECT total_changes()").fetchone()[0])


def lanes(store: CrawlStore) -> list[tuple[int, int]]:
    return store.db.execute("SELECT lane, pending FROM lane ORDER BY lane").fetchall()


def test_a_row_is_seen_as_it_stands_by_then(store: CrawlStore, begun: RunInfo) -> None:
    draft = Draft(store, begun, 1)
    with store.commits.committing(1):
        (row,) = draft.rows([1])
        draft.frontier.move(row, row.standing._replace(state=State.REFUSED, reason=Reason.CLEARED))
        (now,) = draft.rows([1])
    assert (now.standing.state, now.standing.reason) == (State.REFUSED, Reason.CLEARED)


def test_only_rows_that_changed_are_written_before_they_are_read(store: CrawlStore, begun: RunInfo) -> None:
    draft = Draft(store, begun, 1)
    with store.commits.committing(1):
        (first, _) = draft.rows([1, 2])
        draft.frontier.move(first, first.standing._replace(depth=7))
        written = changed(store)
        draft.rows([2])
        assert draft.visit_of(2) is None
        assert changed(store) == written
        assert [row.standing.depth for row in draft.rows([1, 2])] == [7, 0]
        written = changed(store)
        assert draft.visit_of(1) is None
        assert changed(store) == written, "once is enough"


def test_lanes_follow_their_rows(store: CrawlStore, begun: RunInfo) -> None:
    """Whoever moves a row does not count: refused, opened again, and put into another lane."""
    draft = Draft(store, begun, 1)
    (first, second) = (row.standing.lane for row in draft.rows([1, 2]))
    assert lanes(store) == [(first, 1), (second, 1)]
    with store.commits.committing(1):
        (row,) = draft.rows([1])
        draft.frontier.move(row, row.standing._replace(state=State.REFUSED, reason=Reason.CLEARED))
        draft.write()
        assert lanes(store) == [(first, 0), (second, 1)]
        (row,) = draft.rows([1])
        draft.frontier.reopen(row, row.standing, draft.steps.place_behind())
        draft.write()
        assert lanes(store) == [(first, 1), (second, 1)]
        (row,) = draft.rows([1])
        draft.frontier.move(row, row.standing._replace(lane=second))
        draft.write()
    assert lanes(store) == [(first, 0), (second, 2)]
    assert draft.frontier.lanes() == {first, second}


def test_a_commit_begins_with_nothing_but_totals(store: CrawlStore, begun: RunInfo) -> None:
    draft = Draft(store, begun, 1)
    draft.begin(inbox_id=3)
    draft.totals.add(pages=1)
    draft.learned.robots("http://a.test", "allow", None)
    (row,) = draft.rows([1])
    draft.frontier.move(row, row.standing)
    assert draft.changes().inbox_id == 3
    draft.begin()
    changes = draft.changes()
    assert (changes.inbox_id, changes.moved, changes.undo, changes.robots) == (0, [], [], [])
    assert changes.counters == Counters(known=2, pending=2, pages=1)
    committed = draft.committed()
    assert (committed.lanes, committed.robots, committed.ahead) == (frozenset(), (), frozenset())
