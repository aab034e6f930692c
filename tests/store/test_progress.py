"""How a run goes, asked of rows that were put there by hand; and that no question reads a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inchworm.model import CheckpointType, Counters, Kind, RunInfo, RunState, Seed, Source, State, Substate
from inchworm.ports import Commit, NewCheckpoint, NewFrontierRow, RowState, VisitRow
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.history import History
from inchworm.store.crawl.read.compare import ComparisonReader, Tally
from inchworm.store.crawl.read.progress import ChangedPage, Moment, ProgressReader, Waiting, Whole
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

SEED = Seed(0, "http://a.test/", "a.test", "/")
RUN = RunInfo(1, 0, "baseline", None, RunState.COMPLETED, 0, {}, Counters(), (SEED,), "", 10, 20)


class Book:
    """Runs of one crawl. A page is a number; its visit takes place at that many hundred milliseconds of its seq."""

    def __init__(self, folder: Path) -> None:
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")
        self.token = self.store.take(Life(4711, "a machine", "a boot", 1))
        self.runs: list[RunInfo] = []
        self.urls: set[int] = set()

    def begin(self) -> RunInfo:
        number = len(self.runs)
        made = replace(RUN, run_id=number + 1, number=number, parent=number - 1 if number else None, horizon=number + 1)
        self.runs.append(made)
        self.store.runs.create(self.token, made, Commit(made.run_id, 0, seeds=(SEED,)))
        return made

    def visit(self, page: int, seq: int, outcome: str = "page", settles: bool = True, **values: object) -> None:
        run_id = self.runs[-1].run_id
        changes = Commit(run_id, 1, seq=seq, seeds=(SEED,))
        if page not in self.urls:
            self.urls.add(page)
            changes.urls.append((page, hash64(address(page)), address(page)))
        if not self._has(run_id, page):
            changes.entries.append(NewFrontierRow(page, Kind.PAGE, Source.SPIDER, 0, None, None, standing(page)))
        if settles:
            changes.settled.append((State.DONE, None, seq, page))
        row = dict.fromkeys(VisitRow._fields) | {"seq": seq, "url_id": page, "kind": "page", "at_ms": 100 * seq}
        row |= {"requested": 1, "status": 200, "millis": 5, "size": 7, "links": (), "revisit": 0, "missing": 0}
        row |= {"outcome": outcome, "title": f"Title {page}" if outcome == "page" else None}
        changes.visits.append(VisitRow(**{**row, **values}))
        self.write(changes)

    def _has(self, run_id: int, page: int) -> bool:
        found = self.store.db.execute("SELECT 1 FROM frontier WHERE run_id = ? AND url_id = ?", (run_id, page))
        return found.fetchone() is not None

    def write(self, changes: Commit) -> None:
        with self.store.commits.committing(self.token):
            self.store.commits.write(changes)

    @property
    def progress(self) -> ProgressReader:
        return ProgressReader(self.store, self.runs[-1].run_id)


def address(page: int) -> str:
    return f"http://a.test/{page}"


def standing(page: int) -> RowState:
    return RowState(State.PENDING, None, 0, 0, 0, 1, 0, page, None, 0, 0, 0, None, None)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path)
    made.begin()
    yield made
    made.store.close()


# Time


def test_a_sample_takes_the_next_visit_where_a_step_is_none(book):
    for seq in (1, 2, 5, 9):
        book.visit(seq, seq)
    assert book.progress.moments([1, 3, 9, 10]) == [Moment(1, 100, 1), Moment(5, 500, 1), Moment(9, 900, 1)]
    assert book.progress.last_before(8) == Moment(5, 500, 1)
    assert book.progress.last_before(0) is None


@pytest.mark.parametrize(("at_ms", "count"), [(0, 20), (100, 20), (1050, 10), (2000, 1), (2001, 0)])
def test_what_was_done_since_a_time_is_found_by_halving(book, at_ms, count):
    for seq in range(1, 21):
        book.visit(seq, seq)
    assert book.progress.since(at_ms, 1, 20) == count


def test_nothing_was_done_in_a_session_that_has_just_begun(book):
    assert book.progress.since(0, 1, 0) == 0


# Failures and hosts


def test_failures_count_by_kind_and_those_tried_again_only_where_they_stand(book):
    book.visit(1, 1, "failed", failure="timeout")
    book.visit(2, 2, "failed", failure="http_4xx")
    book.visit(3, 3, "failed", failure="timeout", settles=False)
    book.visit(3, 4, "failed", failure="timeout")
    assert book.progress.failures() == {"http_4xx": 1, "timeout": 3}
    assert book.progress.lasting_failures() == {"http_4xx": 1, "timeout": 2}


def test_hosts_with_the_most_pending_come_first(book):
    changes = Commit(1, 1, seeds=(SEED,), hosts=[(1, "a.test"), (2, "b.test"), (3, "c.test")])
    changes.lanes, changes.quiet = {1: 5, 2: 9, 3: 1}, [(77, 10, 2)]
    book.write(changes)
    book.write(Commit(1, 1, seeds=(SEED,), lanes={3: -1}))
    assert book.progress.hosts() == (3, 2)
    assert book.progress.waiting(10) == [Waiting("b.test", 9, 77), Waiting("a.test", 5, 0)]
    assert book.progress.waiting(1) == [Waiting("b.test", 9, 77)]


# What changed


def test_changes_are_listed_in_order_from_behind_a_step_on(book):
    for page in (1, 2, 3, 4):
        book.visit(page, page)
    second = book.begin()
    book.visit(1, 1, change="modified", note="bytes")
    book.visit(2, 2, "deleted", change="deleted")
    book.visit(3, 3, change="modified", settles=False)
    book.visit(3, 4, change="modified")
    book.visit(4, 5, change="unchanged")
    found = book.progress.changed("modified", 1, 0, 10)
    assert found == [ChangedPage(1, address(1), "Title 1", "bytes", 1), ChangedPage(4, address(3), "Title 3", "", 3)]
    assert book.progress.changed("modified", 1, 1, 10) == found[1:]
    assert book.progress.changed("modified", 1, 0, 1) == found[:1]
    assert book.progress.changed("deleted", 1, 0, 10) == [ChangedPage(2, address(2), "Title 2", "", 2)]
    assert [one.number for one in book.progress.changed("unchanged", 1, 0, 10)] == [5]
    assert Whole(book.store).titled([2, 4], (1, second.run_id)) == [
        ChangedPage(2, address(2), "Title 2", "", 2),
        ChangedPage(4, address(4), "Title 4", "", 4),
    ]


def test_counting_bit_by_bit_gives_what_comparing_at_once_does(book):
    for page in range(1, 31):
        book.visit(page, page, payload=b"1", text_hash=b"1")
    book.begin()
    for page in range(6, 41):
        was = b"2" if page % 7 == 0 else b"1"
        outcome = "deleted" if page % 11 == 0 else "page"
        book.visit(page, page - 5, outcome, payload=was, text_hash=was, change="new" if page > 30 else "modified")
    comparison = ComparisonReader(book.store, *book.runs)
    whole = {one.url: one for one in comparison}
    steps = [one for start in range(0, 40, 7) for one in comparison.part(start, start + 7)]
    assert [url_id for url_id, _ in steps] == sorted(url_id for url_id, _ in steps)
    assert {one.url: one for _, one in steps} == whole
    tally = Tally(is_backwards=False)
    tally.count(comparison, Whole(book.store).last_url(), 60)
    counts = tally.counts()
    assert counts == {change: sum(one.change == change for one in whole.values()) for change in counts}
    assert sum(counts.values()) == len(whole)
    listed = tally.listed("unknown", 0, 100)
    assert listed == [url_id for url_id, one in steps if one.change == "unknown"]
    assert tally.listed("unknown", listed[1], 2) == listed[2:4]
    alike, more = comparison.unchanged(0, 40, 5)
    assert len(alike) == 5
    assert more == alike[-1]
    assert comparison.unchanged(more, 40, 100) == ([one for one in unchanged(steps) if one > more], None)


def unchanged(steps: list) -> list[int]:
    return [url_id for url_id, one in steps if one.change == "unchanged"]


def test_a_tally_without_time_counts_nothing_yet(book):
    book.visit(1, 1)
    tally = Tally(is_backwards=True)
    tally.count(ComparisonReader(book.store, RUN, RUN), 1, 0)
    assert (tally.looked_at, sum(tally.counts().values())) == (0, 0)


# Checkpoints


def test_checkpoints_come_in_parts_and_in_numbers(book):
    changes = Commit(1, 1, seq=30, seeds=(SEED,))
    for seq in (10, 20, 30):
        kind = CheckpointType.PAUSE if seq == 30 else CheckpointType.AUTO
        changes.checkpoints.append(NewCheckpoint(seq, kind, Substate.DOWNLOADING_PAGES, seq, Counters(), ""))
    book.write(changes)
    whole, history = Whole(book.store), History(book.store)
    assert book.progress.marks() == [(0, 10), (1, 20), (2, 30)]
    assert whole.checkpoints(1 << 62, 2) == [2, 1]
    assert whole.checkpoints(1, 2) == [0]
    sizes = [point.size for point in history.checkpoints()]
    assert whole.checkpoint_types() == {"auto": (2, sum(sizes[:2])), "pause": (1, sizes[2])}
    history.forget(book.token, [1])
    assert book.progress.marks() == [(0, 10), (2, 30)]
    assert whole.checkpoints(1 << 62, 5) == [2, 0]


# What it costs

_PLANS = {
    "failures": ("visit_failed (run_id=?)", lambda one: one.failures()),
    "lasting": ("visit_failed (run_id=?)", lambda one: one.lasting_failures()),
    "modified": ("visit_changed (run_id=? AND change=? AND seq>?)", lambda one: one.changed("modified", 1, 0, 50)),
    "unchanged": ("visit_seq (run_id=? AND seq>?)", lambda one: one.changed("unchanged", 1, 0, 50)),
    "moments": ("visit_seq (run_id=? AND seq>?)", lambda one: one.moments([5])),
    "last": ("visit_seq (run_id=? AND seq<?)", lambda one: one.last_before(5)),
    "marks": ("checkpoint_seq (run_id=?)", lambda one: one.marks()),
}


@pytest.mark.parametrize("name", _PLANS)
def test_no_question_reads_a_whole_run(book, name):
    wanted, ask = _PLANS[name]
    asked: list[str] = []
    book.store.db._connection.set_trace_callback(asked.append)
    ask(book.progress)
    book.store.db._connection.set_trace_callback(None)
    plan = " ".join(row[3] for row in book.store.db.execute(f"EXPLAIN QUERY PLAN {asked[0]}"))
    assert wanted in plan
    assert "SCAN" not in plan
