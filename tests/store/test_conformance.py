"""One suite for every store: what each method of the port promises, and what people may ask of a run.

A store joins by a line in `STORES`. Nothing here knows what lies under it, except that `db.execute` takes SQL.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from inchworm.errors import Broken, Lost
from inchworm.model import (
    Counters,
    EndedBy,
    FrontierEntry,
    Kind,
    Reason,
    RunInfo,
    RunState,
    Seed,
    SessionInfo,
    SessionState,
    Source,
    State,
)
from inchworm.ports import Commit, Known, NewFrontierRow, Original, RowState, VisitRow
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.read.archive import RecordReader
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.frontier import FrontierReader
from inchworm.store.crawl.read.visits import VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life


def sqlite(folder: Path) -> CrawlStore:
    store = CrawlStore(folder / "crawl.db")
    store.db.execute("PRAGMA synchronous = OFF")  # Power cuts are tested elsewhere.
    return store


STORES: dict[str, Callable[[Path], CrawlStore]] = {"sqlite": sqlite}

A = "http://a.test"
SOMEBODY = Life(4711, "a machine", "a boot", 1)
SEED = Seed(0, f"{A}/", "a.test", "/")
FIRST = RunInfo(1, 0, "baseline", None, RunState.IN_PROGRESS, 0, {"scope": "host"}, Counters(), (SEED,), "", 10, None)
SECOND = replace(FIRST, run_id=2, number=1, mode="full", parent=0, follows=1)


@pytest.fixture(params=STORES)
def opened(request, tmp_path):
    """Opens the crawl once more, as another process would."""
    made: list[CrawlStore] = []

    def open_again() -> CrawlStore:
        made.append(STORES[request.param](tmp_path))
        return made[-1]

    yield open_again
    for one in made:
        one.close()


@pytest.fixture
def store(opened):
    return opened()


@pytest.fixture
def book(store):
    return Book(store)


class Book:
    """A store with two runs, and short ways to put rows into it."""

    def __init__(self, store: CrawlStore) -> None:
        self.store = store
        self.token = store.take(SOMEBODY)
        for one in (FIRST, SECOND):
            store.runs.create(self.token, one, Commit(one.run_id, 0, seeds=one.seeds))
        self.next_id = 1

    def write(self, run_id: int = 1, **changes: object) -> None:
        with self.store.commits.committing(self.token):
            self.store.commits.write(Commit(run_id, 1, seeds=FIRST.seeds, **changes))

    def url(self, address: str) -> int:
        """A URL that no run has met yet."""
        self.next_id += 1
        self.write(urls=[(self.next_id, hash64(address), address)])
        return self.next_id

    def add(self, address: str | int, run_id: int = 1, **values: object) -> int:
        """A frontier row; the URL is made unless its id is given."""
        url_id = address if isinstance(address, int) else self.url(address)
        entry = new_entry(url_id, **values)
        lanes = {entry.standing.lane: 1} if entry.standing.state is State.PENDING else {}
        self.write(run_id, entries=[entry], lanes=lanes)
        return url_id

    def visit(self, seq: int, url_id: int, run_id: int = 1, settles: bool = True, **values: object) -> None:
        """A visit, which settles its row unless told otherwise."""
        settled = [(State.DONE, None, seq, url_id)] if settles else []
        self.write(run_id, seq=seq, visits=[visit_row(seq, url_id, **values)], settled=settled)


def standing(**values: object) -> RowState:
    return RowState(State.PENDING, None, 0, 0, 0, 1, 0, 0, None, 0, 0, 0, None, None)._replace(**values)


def new_entry(url_id: int, **values: object) -> NewFrontierRow:
    own = {name: values.pop(name) for name in list(values) if name in NewFrontierRow._fields}
    return NewFrontierRow(url_id, Kind.PAGE, Source.SPIDER, 0, None, None, standing(**values))._replace(**own)


def visit_row(seq: int, url_id: int, **values: object) -> VisitRow:
    empty = dict.fromkeys(VisitRow._fields)
    usual = {"kind": Kind.PAGE, "at_ms": 1000 + seq, "outcome": "page", "requested": 1, "status": 200, "links": ()}
    usual |= {"millis": 5, "size": 7, "revisit": 0, "missing": 0}
    return VisitRow(**{**empty, **usual, "seq": seq, "url_id": url_id, **values})


def refused(reason: Reason, **values: object) -> dict[str, object]:
    return {"state": State.REFUSED, "reason": reason, "lane": 0, **values}


def ids(rows: Iterable[object]) -> list[int]:
    return [row.url_id for row in rows]


# Lanes and their rows


def test_lanes_with_pending_rows_in_the_order_their_hosts_were_met(book):
    for lane in (3, 1, 2, 1):
        book.add(f"{A}/{lane}/{book.next_id}", lane=lane)
    book.add(f"{A}/elsewhere", run_id=2, lane=9)
    book.write(lanes={2: -1})
    assert book.store.queue.lanes(1) == [1, 3]
    assert book.store.queue.lanes(2) == [9]


def test_a_run_has_several_lanes_once_it_met_two(book):
    book.add(f"{A}/1", lane=1)
    assert not book.store.queue.has_several_lanes(1)
    book.add(f"{A}/2", lane=2)
    book.write(lanes={2: -1})
    assert book.store.queue.has_several_lanes(1)
    assert not book.store.queue.has_several_lanes(2)


def test_pending_rows_come_in_the_order_of_their_places(book):
    places = [(2, 0), (0, 1), (0, -2), (1, 1 << 20), (1, 0), (0, 0)]
    for place_seq, place_idx in places:
        book.add(f"{A}/{place_seq}/{place_idx}", place_seq=place_seq, place_idx=place_idx)
    book.add(f"{A}/other-lane", lane=2)
    book.add(f"{A}/other-run", run_id=2)
    book.add(f"{A}/done", state=State.DONE, done=1)
    book.add(f"{A}/no", **refused(Reason.ROBOTS, lane=1))
    assert [entry.place for entry in book.store.queue.pending(1, 1, None, 100)] == sorted(places)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_pending_rows_neither_skip_nor_repeat_even_at_equal_places(book, limit):
    added = [book.add(f"{A}/{number}", place_seq=number // 4, place_idx=0) for number in range(10)]
    seen: list[int] = []
    last: FrontierEntry | None = None
    while page := book.store.queue.pending(1, 1, last, limit):
        assert len(page) <= limit
        seen += ids(page)
        last = page[-1]
    assert seen == added


def test_pending_goes_on_after_an_entry_that_is_gone(book):
    first, second = book.add(f"{A}/1", place_idx=0), book.add(f"{A}/2", place_idx=1)
    entry = book.store.queue.pending(1, 1, None, 1)[0]
    book.write(settled=[(State.DONE, None, 1, first)])
    assert ids(book.store.queue.pending(1, 1, entry, 10)) == [second]


def test_a_pending_row_has_all_that_dispatching_needs(book):
    book.add(
        f"{A}/x", kind=Kind.RESOURCE, source=Source.REDIRECT, seed=0, depth=3, hops=1, lane=5, place_seq=7, place_idx=8,
        request_url=f"{A}/x/", attempts=2, not_before_ms=99, chain=1, tried=f'["{A}/w"]',
    )  # fmt: skip
    (entry,) = book.store.queue.pending(1, 5, None, 10)
    assert entry == FrontierEntry(
        entry.url_id, f"{A}/x", f"{A}/x/", Kind.RESOURCE, Source.REDIRECT, 0, 3, 1, 5, (7, 8), 2, 99, 1, (f"{A}/w",)
    )  # fmt: skip
    book.add(f"{A}/y", lane=6)
    assert book.store.queue.pending(1, 6, None, 10)[0].request_url == f"{A}/y"


# What is known


def test_known_tells_new_urls_those_of_other_runs_and_those_of_this_one(book):
    here = book.add(f"{A}/here", depth=2, hops=1)
    no = book.add(f"{A}/no", **refused(Reason.MAX_DEPTH, depth=9))
    there = book.add(f"{A}/there", run_id=2)
    found = book.store.frontier.known(1, [f"{A}/{name}" for name in ("here", "no", "there", "nowhere")])
    assert found.keys() == {f"{A}/here", f"{A}/no", f"{A}/there"}
    assert found[f"{A}/here"] == Known(here, True, State.PENDING, None, 2, 1)
    assert found[f"{A}/no"] == Known(no, True, State.REFUSED, Reason.MAX_DEPTH, 9, 0)
    assert found[f"{A}/there"][:2] == (there, False)


@pytest.mark.parametrize("ask", [list, tuple, set, iter])
def test_equal_hashes_never_mix_urls_up(book, monkeypatch, ask):
    monkeypatch.setattr("inchworm.store.crawl.frontier.hash64", lambda url: 42)
    added = {}
    for number in range(3):
        book.next_id += 1
        added[f"{A}/{number}"] = book.next_id
        book.write(urls=[(book.next_id, 42, f"{A}/{number}")], entries=[new_entry(book.next_id, depth=number)])
    for url, url_id in added.items():
        assert book.store.frontier.known(1, ask([url])) == {
            url: Known(url_id, True, State.PENDING, None, int(url[-1]), 0)
        }
    assert book.store.frontier.known(1, ask([f"{A}/new"])) == {}
    found = book.store.frontier.known(1, ask([*added, f"{A}/new"]))
    assert {url: known.url_id for url, known in found.items()} == added


def test_known_takes_any_number_of_urls(book):
    urls = [f"{A}/{number}" for number in range(1000)]
    book.write(
        urls=[(number + 10, hash64(url), url) for number, url in enumerate(urls)],
        entries=[new_entry(number + 10) for number in range(1000)],
    )
    found = book.store.frontier.known(1, urls)
    assert [found[url].url_id for url in urls] == list(range(10, 1010))
    assert book.store.frontier.known(1, []) == {}


def test_rows_of_a_run_by_id(book):
    values = {
        "seed": 0, "depth": 3, "hops": 1, "lane": 5, "place_seq": 7, "place_idx": 8, "request_url": f"{A}/x/",
        "attempts": 2, "not_before_ms": 99, "chain": 1, "tried": "[]",
    }  # fmt: skip
    one = book.add(f"{A}/x", kind=Kind.RESOURCE, source=Source.RESOURCE, **values)
    other = book.add(f"{A}/y", run_id=2)
    (row,) = book.store.frontier.rows(1, [one, other, 4711])
    assert row == (one, f"{A}/x", Kind.RESOURCE, Source.RESOURCE, None, standing(**values))
    assert isinstance(row.standing.state, State)
    many = [book.add(f"{A}/many/{number}") for number in range(300)]
    assert sorted(ids(book.store.frontier.rows(1, many))) == many


def test_the_visit_that_settled_a_done_row(book):
    page = book.add(f"{A}/")
    book.visit(1, page, settles=False, outcome="retry", links=(7,))
    assert book.store.visits.of(1, page) is None
    book.visit(2, page, title="A title", links=(5, 3, 5, 4_000_000_000), redirect=3, meta='{"a": 1}')
    expected = visit_row(2, page, title="A title", links=(5, 3, 5, 4_000_000_000), redirect=3, meta='{"a": 1}')
    assert book.store.visits.of(1, page) == expected
    assert book.store.visits.of(2, page) is None
    no = book.add(f"{A}/no", **refused(Reason.ROBOTS, done=2))
    assert book.store.visits.of(1, no) is None


def test_rows_outside_the_scope_in_any_state_in_the_order_of_their_places(book):
    late = book.add(f"{A}/late", hops=1, place_seq=9, **refused(Reason.OUT_OF_SCOPE))
    second = book.add(f"{A}/second", hops=2, place_seq=2, place_idx=1)
    first = book.add(f"{A}/first", hops=1, place_seq=2, place_idx=-1, state=State.DONE, done=5)
    tie = book.add(f"{A}/tie", hops=1, place_seq=2, place_idx=1)
    book.add(f"{A}/inside")
    book.add(f"{A}/elsewhere", run_id=2, hops=1)
    assert ids(book.store.frontier.outside(1)) == [first, second, tie, late]


def test_failed_rows_by_kind_and_url_in_the_order_of_record(book):
    names = ("mended", "late", "early", "resource", "robots", "good")
    kinds = {"resource": Kind.RESOURCE, "robots": Kind.ROBOTS}
    row = {name: book.add(f"{A}/{name}", kind=kinds.get(name, Kind.PAGE)) for name in names}
    book.visit(1, row["mended"], settles=False, outcome="failed", failure="dns")
    book.visit(2, row["early"], outcome="failed", failure="dns")
    book.visit(3, row["mended"])
    book.visit(4, row["late"], outcome="failed", failure="http_5xx")
    book.visit(5, row["resource"], kind=Kind.RESOURCE, outcome="failed", failure="dns")
    book.visit(6, row["robots"], kind=Kind.ROBOTS, outcome="control", failure="dns")
    book.visit(7, row["good"])
    store = book.store
    assert ids(store.frontier.failed(1)) == [row["early"], row["late"], row["resource"]]
    assert ids(store.frontier.failed(1, "dns")) == [row["early"], row["resource"]]
    assert ids(store.frontier.failed(1, url=f"{A}/late")) == [row["late"]]
    assert ids(store.frontier.failed(1, "dns", f"{A}/late")) == []
    assert ids(store.frontier.failed(2)) == []


def test_owners_of_contents_are_the_pages_that_the_run_kept(book):
    kept, again, failed, elsewhere = (book.add(f"{A}/{number}") for number in range(4))
    book.visit(1, kept, text_hash=b"kept")
    book.visit(2, again, outcome="duplicate", text_hash=b"again")
    book.visit(3, failed, outcome="failed", failure="dns", text_hash=b"failed")
    book.visit(1, elsewhere, run_id=2, text_hash=b"elsewhere")
    wanted = {b"kept", b"again", b"failed", b"elsewhere", b"new"}
    assert book.store.visits.owners_of(1, wanted) == {b"kept"}
    many = {str(number).encode() for number in range(500)} | {b"kept"}
    assert book.store.visits.owners_of(1, iter(many)) == {b"kept"}
    assert book.store.visits.owners_of(1, ()) == set()


def test_originals_are_records_in_the_archive_of_any_run(book):
    stored, revisit, unstored = (book.add(f"{A}/{number}") for number in range(3))
    slash = book.add(f"{A}/slash", run_id=2)
    book.write(files={"one.warc.gz": (1, 18)})
    book.write(run_id=2, files={"two.warc.gz": (2, 9)})
    book.visit(1, stored, payload=b"stored", file_id=1, offset=0, length=9)
    book.visit(2, revisit, payload=b"revisit", file_id=1, offset=9, length=9, revisit=1)
    book.visit(3, unstored, payload=b"unstored")
    book.visit(1, slash, run_id=2, payload=b"slash", file_id=2, offset=0, length=9, request_url=f"{A}/slash/")
    found = book.store.visits.originals(iter([b"stored", b"revisit", b"unstored", b"slash", b"new"]))
    assert found == {
        b"stored": Original(f"{A}/0", 1001, file="one.warc.gz"),
        b"slash": Original(f"{A}/slash/", 1001, file="two.warc.gz"),
    }
    assert book.store.visits.originals(()) == {}


def test_the_last_good_answer_of_earlier_runs(book):
    page, style = book.add(f"{A}/page"), book.add(f"{A}/s.css", kind=Kind.RESOURCE, source=Source.RESOURCE)
    slash = book.add(f"{A}/slash", request_url=f"{A}/slash/")
    book.visit(1, page, at_ms=1000, links=(slash,))
    book.visit(2, page, at_ms=2000, title="new", links=(slash, style), etag='"2"', payload=b"p", meta="{}")
    book.visit(3, page, at_ms=3000, outcome="failed", failure="dns")
    version = book.store.earlier.version(page, 2)
    assert (version.run_id, version.seq, version.at_ms, version.title, version.etag) == (1, 2, 2000, "new", '"2"')
    assert (version.links, version.payload, version.meta, version.missing) == ((slash, style), b"p", "{}", 0)
    assert book.store.earlier.version(page, 1) is None, "only runs before the horizon count"
    assert book.store.earlier.version(slash, 2) is None
    book.visit(4, page, at_ms=4000, outcome="deleted", status=404, missing=2)
    assert book.store.earlier.version(page, 2)._replace(missing=0) == version
    assert book.store.earlier.version(page, 2).missing == 2


def test_many_versions_at_once_are_those_that_one_by_one_would_be(book):
    pages = [book.add(f"{A}/{number}") for number in range(450)]
    for seq, page in enumerate(pages[:-1], 1):
        book.visit(seq, page, title=f"title {seq}")
    book.visit(450, pages[0], outcome="deleted", status=404, missing=3)
    book.visit(451, pages[1], outcome="failed", failure="dns")
    found = book.store.earlier.versions(pages, 2)
    assert set(found) == set(pages[:-1])
    assert found == {page: book.store.earlier.version(page, 2) for page in pages[:-1]}
    assert (found[pages[0]].missing, found[pages[0]].title, found[pages[1]].seq) == (3, "title 1", 2)
    assert book.store.earlier.versions(pages, 1) == book.store.earlier.versions((), 2) == {}


def test_where_bodies_lie(book):
    first, second = book.add(f"{A}/1"), book.add(f"{A}/2")
    book.write(files={"one.warc.gz": (1, 30), "two.warc.gz": (2, 9)})
    book.visit(1, first, payload=b"lost", file_id=1, offset=3, length=9)
    book.visit(2, second, payload=b"there", file_id=1, offset=12, length=9)
    book.visit(3, first, payload=b"again", file_id=1, offset=21, length=9, revisit=1)
    book.visit(4, first, payload=b"lost", file_id=2, offset=0, length=9)
    spots = {b"lost": ("two.warc.gz", 0, 9), b"there": ("one.warc.gz", 12, 9)}
    assert book.store.archive.spots({b"lost", b"there", b"again", b"never"}) == spots
    assert book.store.archive.spot(b"there") == ("one.warc.gz", 12, 9)
    assert book.store.archive.spot(b"again") is None


def test_links_of_an_earlier_run_and_what_is_known_of_them(book):
    style = book.add(f"{A}/s.css", kind=Kind.RESOURCE, source=Source.RESOURCE)
    slash = book.add(f"{A}/slash", request_url=f"{A}/slash/")
    elsewhere = book.add(f"{A}/elsewhere", run_id=2)
    book.add(slash, run_id=2, depth=7)
    links = {
        known.url_id: (found[:4], known) for found, known in book.store.frontier.links(2, 1, (style, slash, elsewhere))
    }
    assert links == {
        style: ((f"{A}/s.css", f"{A}/s.css", Kind.RESOURCE, Source.RESOURCE), links[style][1]),
        slash: ((f"{A}/slash", f"{A}/slash/", Kind.PAGE, Source.SPIDER), links[slash][1]),
    }
    assert (links[style][1].in_run, links[slash][1].in_run, links[slash][1].depth) == (False, True, 7)


def test_robots_files_of_a_run(book):
    book.write(robots=[("http://a.test", 1, "rules", b"User-agent: *"), ("http://b.test", 2, "unreadable", b"503")])
    book.write(run_id=2, robots=[("http://a.test", 1, "allow", None)])
    book.write(robots=[("http://b.test", 5, "allow", None)])
    told = [("http://a.test", "rules", b"User-agent: *"), ("http://b.test", "allow", None)]
    assert sorted(book.store.hosts.robots(1)) == told
    assert book.store.hosts.robots(2) == [("http://a.test", "allow", None)]


def test_the_next_free_numbers_and_every_host_by_name(book):
    assert book.store.commits.next_ids() == (1, 1, 1)
    book.write(urls=[(7, 1, f"{A}/")], hosts=[(1, "a.test"), (4, "b.test")], files={"x.warc.gz": (3, 100)})
    assert book.store.commits.next_ids() == (8, 5, 4)
    assert book.store.hosts.all() == {"a.test": 1, "b.test": 4}


# All or nothing


def everything(store: CrawlStore) -> tuple[object, ...]:
    rows = store.frontier.rows(1, range(50))
    return (
        store.runs.list(),
        rows,
        store.queue.lanes(1),
        store.hosts.all(),
        store.archive.files(),
        store.hosts.robots(1),
        store.sessions.of(1),
    )


FULL = {
    "seq": 1,
    "disturbed": "disturbed at 1 by dns",
    "counters": Counters(known=2, pages=1),
    "requests": 3,
    "size": 4,
    "urls": [(30, 1, f"{A}/30")],
    "hosts": [(1, "a.test")],
    "entries": [new_entry(30)],
    "visits": [visit_row(1, 30)],
    "lanes": {1: 1},
    "robots": [(A, 1, "allow", None)],
    "files": {"x.warc.gz": (1, 100)},
}


def test_reads_in_a_transaction_see_its_rows_and_others_do_not(book, opened):
    other = opened()
    book.store.sessions.start(book.token, FIRST, "{}", 1)
    before = everything(other)
    with book.store.commits.committing(book.token):
        book.store.commits.write(Commit(1, 1, seeds=(SEED._replace(kept=1, requests=1, host="b.test"),), **FULL))
        assert ids(book.store.queue.pending(1, 1, None, 10)) == [30]
        assert book.store.runs.get(0).seq == 1
        assert everything(other) == before
    assert everything(other) == everything(book.store) != before
    run = other.runs.get(0)
    assert (run.seq, run.counters, run.disturbed) == (1, FULL["counters"], FULL["disturbed"])
    assert run.seeds == (Seed(0, f"{A}/", "b.test", "/", 1, 1),)
    assert [(one.requests, one.size) for one in other.sessions.of(1)] == [(3, 4)]


def test_several_writes_are_one_transaction(book):
    before = everything(book.store)

    def write_twice_and_fail() -> None:
        with book.store.commits.committing(book.token):
            book.store.commits.write(Commit(1, 1, seeds=FIRST.seeds, **FULL))
            book.store.commits.write(Commit(1, 1, urls=[(31, 1, f"{A}/31")], entries=[new_entry(31)], lanes={2: 1}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_twice_and_fail()
    assert everything(book.store) == before
    assert book.store.frontier.known(1, [f"{A}/30", f"{A}/31"]) == {}
    # The store can be used as before.
    book.write(**FULL)
    assert book.store.runs.get(0).seq == 1


def test_a_write_that_the_store_refuses_is_broken_and_leaves_nothing(book):
    before = everything(book.store)
    with pytest.raises(Broken) as raised:
        book.write(entries=[new_entry(30), new_entry(30)], robots=FULL["robots"])
    assert raised.value.hint
    assert everything(book.store) == before


def test_rows_change_in_place_and_lanes_add_up(book):
    one, two = book.add(f"{A}/1"), book.add(f"{A}/2")
    moved = standing(place_seq=5, depth=2, attempts=1, lane=1)
    book.write(settled=[(State.REFUSED, Reason.ROBOTS, 3, one)], moved=[(two, moved)], lanes={1: -1})
    rows = {row.url_id: row.standing for row in book.store.frontier.rows(1, [one, two])}
    assert rows == {one: standing(state=State.REFUSED, reason=Reason.ROBOTS, done=3), two: moved}
    assert book.store.queue.lanes(1) == [1]
    book.write(settled=[(State.DONE, None, 4, two)], lanes={1: -1})
    assert book.store.queue.lanes(1) == []


# Who may write


def test_every_taker_gets_a_newer_token_and_is_the_owner(book, opened):
    other = opened()
    me = Life(7, "another machine", "another boot", 8)
    assert other.take(me) == book.token + 1
    assert book.store.owner.life() == me


def test_a_heartbeat_is_a_newer_sign_of_life(book):
    book.store.owner.beat(book.token)
    assert book.store.owner.life().beat_ms > SOMEBODY.beat_ms
    assert book.store.owner.life().pid == SOMEBODY.pid


@pytest.mark.parametrize(
    "act",
    [
        lambda store, old: store.owner.beat(old),
        lambda store, old: store.runs.create(old, replace(FIRST, run_id=3, number=2), Commit(3, 0)),
        lambda store, old: store.runs.set_state(old, 1, RunState.CANCELLED, 1),
        lambda store, old: store.sessions.start(old, FIRST, "{}", 1),
        lambda store, old: store.sessions.end(old, ended(EndedBy.PAUSED), RunState.PAUSED),
        lambda store, old: store.sessions.blame(old, 1, [1]),
        lambda store, old: store.archive.rename(old, 1, "stolen.warc.gz"),
    ],
    ids=["beat", "create_run", "set_run_state", "start_session", "end_session", "blame", "rename_file"],
)
def test_a_lost_owner_can_change_nothing(book, opened, act):
    book.store.sessions.start(book.token, FIRST, "{}", 1)
    book.write(**FULL)
    opened().take(Life(7, "another machine", "another boot", 8))
    before = everything(book.store), book.store.owner.life(), book.store.sessions.suspects(1)
    with pytest.raises(Lost) as raised:
        act(book.store, book.token)
    assert "7" in raised.value.message
    assert "another machine" in raised.value.message
    assert raised.value.hint
    assert (everything(book.store), book.store.owner.life(), book.store.sessions.suspects(1)) == before


def test_a_lost_owner_cannot_even_begin_a_commit(book, opened):
    opened().take(SOMEBODY)
    reached = False
    with pytest.raises(Lost), book.store.commits.committing(book.token):
        reached = True
    assert not reached


# Runs and sessions


def test_a_run_and_its_seeds_are_made_together_or_not_at_all(store):
    token = store.take(SOMEBODY)
    twice = Commit(1, 0, seeds=FIRST.seeds, entries=[new_entry(1), new_entry(1)])
    with pytest.raises(Broken):
        store.runs.create(token, FIRST, twice)
    assert (store.runs.list(), store.runs.get()) == ([], None)
    rows = Commit(1, 0, seeds=FIRST.seeds, urls=[(1, 1, f"{A}/")], entries=[new_entry(1)], lanes={1: 1})
    store.runs.create(token, FIRST, rows)
    assert (store.runs.list(), ids(store.queue.pending(1, 1, None, 10))) == ([FIRST], [1])


def test_runs_by_number_and_the_last_one(book):
    assert book.store.runs.list() == [FIRST, SECOND]
    assert (book.store.runs.get(), book.store.runs.get(0), book.store.runs.get(7)) == (SECOND, FIRST, None)


@pytest.mark.parametrize(
    ("state", "ended_ms"),
    [(RunState.PAUSED, None), (RunState.IN_PROGRESS, None), (RunState.COMPLETED, 77), (RunState.CANCELLED, 77)],
)
def test_a_run_has_an_end_when_it_is_over(book, state, ended_ms):
    book.store.runs.set_state(book.token, 1, state, 77)
    run = book.store.runs.get(0)
    assert (run.state, run.ended_ms, book.store.runs.get(1).state) == (state, ended_ms, RunState.IN_PROGRESS)


def ended(by: EndedBy, number: int = 1, message: str = "") -> SessionInfo:
    return SessionInfo(1, number, 1, SessionState.COMPLETED, by, 0, 99, 0, 0, message)


def test_a_session_is_started_and_ended_together_with_its_run(book):
    store = book.store
    store.runs.set_state(book.token, 1, RunState.COMPLETED, 5)
    assert store.sessions.start(book.token, FIRST, "{}", 50) == 1
    assert (store.runs.get(0).state, store.runs.get(0).ended_ms) == (RunState.IN_PROGRESS, None)
    assert store.sessions.of(1) == [SessionInfo(1, 1, book.token, SessionState.IN_PROGRESS, None, 50, None, 0, 0)]
    store.sessions.end(book.token, ended(EndedBy.BUDGET, message="enough"), RunState.PAUSED)
    (one,) = store.sessions.of(1)
    assert (one.state, one.ended_by, one.ended_ms, one.message) == (
        SessionState.COMPLETED,
        EndedBy.BUDGET,
        99,
        "enough",
    )
    assert (store.runs.get(0).state, store.runs.get(0).ended_ms) == (RunState.PAUSED, None)
    assert store.sessions.start(book.token, FIRST, "{}", 60) == 2
    store.sessions.end(book.token, ended(EndedBy.FINISHED, 2), RunState.COMPLETED)
    assert (store.runs.get(0).state, store.runs.get(0).ended_ms) == (RunState.COMPLETED, 99)
    assert store.sessions.of(2) == []


def test_sessions_that_nobody_ended_are_found_crashed_by_the_next_start(book):
    store = book.store
    store.sessions.start(book.token, FIRST, "{}", 50)
    store.sessions.end(book.token, ended(EndedBy.PAUSED), RunState.PAUSED)
    store.sessions.start(book.token, FIRST, "{}", 60)
    store.sessions.start(book.token, SECOND, "{}", 70)
    assert store.sessions.start(book.token, FIRST, "{}", 80) == 3
    told = [(one.state, one.ended_by, one.ended_ms) for one in (*store.sessions.of(1), *store.sessions.of(2))]
    assert told == [
        (SessionState.COMPLETED, EndedBy.PAUSED, 99),
        (SessionState.FAILED, EndedBy.CRASHED, 70),
        (SessionState.IN_PROGRESS, None, None),
        (SessionState.FAILED, EndedBy.CRASHED, 80),
    ]


def test_all_sessions_in_the_order_of_their_owners(book, opened):
    book.store.sessions.start(book.token, SECOND, "{}", 50)
    other = opened()
    token = other.take(SOMEBODY)
    other.sessions.start(token, FIRST, "{}", 40)
    assert [(one.run_id, one.token) for one in other.sessions.all()] == [(2, book.token), (1, token)]


def test_suspects_are_counted_per_run(book):
    book.store.sessions.blame(book.token, 1, [5, 6])
    book.store.sessions.blame(book.token, 1, [5])
    book.store.sessions.blame(book.token, 2, [5])
    assert book.store.sessions.suspects(1) == {5: 2, 6: 1}
    assert book.store.sessions.suspects(2) == {5: 1}


def test_archive_files_know_their_token_and_committed_length(book, opened):
    book.write(files={"one.warc.gz": (1, 100)})
    book.write(files={"one.warc.gz": (1, 250), "two.warc.gz": (2, 10)})
    other = opened()
    token = other.take(SOMEBODY)
    assert other.archive.files() == [(1, book.token, "one.warc.gz", 250), (2, book.token, "two.warc.gz", 10)]
    other.archive.rename(token, 2, "copy.warc.gz")
    assert other.archive.files() == [(1, book.token, "one.warc.gz", 250), (2, token, "copy.warc.gz", 10)]


def test_the_log_goes_on_where_the_last_owner_stopped(book, opened):
    book.visit(1, book.add(f"{A}/1"))
    book.visit(2, book.add(f"{A}/2"))
    other = opened()
    book.store, book.token = other, other.take(SOMEBODY)
    book.visit(3, book.add(f"{A}/3"))
    assert other.db.execute("SELECT log_id FROM visit ORDER BY seq").fetchall() == [(1,), (2,), (3,)]


# What people ask


@pytest.fixture
def crawled(book):
    """A run with one of everything, healthy by every check."""
    store, token = book.store, book.token
    store.sessions.start(token, FIRST, "{}", 1)
    row = {
        "robots": book.add(f"robots:{A}/robots.txt", kind=Kind.ROBOTS, source=Source.INITIAL, place_idx=-1),
        "home": book.add(f"{A}/", source=Source.INITIAL),
    }
    names = ("page", "twin", "style", "old", "gone", "flaky", "waiting", "no")
    kinds = {"style": (Kind.RESOURCE, Source.RESOURCE)}
    for index, name in enumerate(names):
        kind, source = kinds.get(name, (Kind.PAGE, Source.SPIDER))
        no = refused(Reason.EXCLUDED, done=2) if name == "no" else {}
        row[name] = book.add(
            f"{A}/{name}", kind=kind, source=source, found=2, found_on=row["home"], place_seq=2, place_idx=index,
            depth=1, request_url=f"{A}/page/" if name == "page" else None, lastmod="2026" if name == "page" else None,
            **no,
        )  # fmt: skip
    book.write(files={"run0.warc.gz": (1, 90)})
    stored = {"file_id": 1, "offset": 10, "length": 80, "payload": b"\x01", "text_hash": b"\xab"}
    links = tuple(row[name] for name in names)
    book.visit(1, row["robots"], kind=Kind.ROBOTS, outcome="control")
    book.visit(2, row["home"], links=links, title="Home", meta='{"author": "A"}', text_hash=b"\x02")
    book.visit(3, row["page"], request_url=f"{A}/page/", **stored)
    book.visit(4, row["twin"], outcome="duplicate", text_hash=b"\xab", requested=0)
    book.visit(5, row["style"], kind=Kind.RESOURCE, outcome="resource")
    book.visit(6, row["old"], outcome="redirect", status=301, redirect=row["page"])
    book.visit(7, row["gone"], outcome="failed", failure="http_4xx", message="404", status=404)
    book.visit(8, row["flaky"], settles=False, outcome="retry", failure="timeout", status=0)
    book.visit(9, row["flaky"], outcome="failed", failure="timeout", status=0)
    counters = Counters(9, 1, 2, 1, 0, 1, 1, 2, 1, 7, 49, saved=7)
    book.write(seq=9, counters=counters, lanes={1: -8})
    return store


def test_all_that_a_run_knows_of_one_url(crawled):
    frontier, visits = FrontierReader(crawled, 1), VisitReader(crawled)
    page = frontier.find(f"{A}/page")
    told = ("state", "reason", "kind", "source", "seed_url", "depth", "found", "found_on", "lastmod")
    assert [getattr(page.facts, name) for name in told] == [
        "done", None, "page", "spider", f"{A}/", 1, 2, f"{A}/", "2026",
    ]  # fmt: skip
    assert page.request_url == f"{A}/page/"
    (visit,) = visits.of_url(1, page.url_id)
    assert Copies(crawled).of(1, visit.text_hash) == [f"{A}/page", f"{A}/twin"]
    assert (visit.file, visit.offset, visit.length) == ("run0.warc.gz", 10, 80)
    assert frontier.find(f"{A}/no").facts.reason == "excluded"
    flaky = frontier.find(f"{A}/flaky").url_id
    assert [visit.outcome for visit in visits.of_url(1, flaky)] == ["retry", "failed"]
    assert visits.newest(1, flaky).outcome == "failed"
    assert (frontier.find(f"{A}/never"), FrontierReader(crawled, 2).find(f"{A}/page")) == (None, None)


def test_every_url_with_a_text_the_primary_one_first(crawled):
    copies = Copies(crawled)
    assert copies.of(1, "ab") == [f"{A}/page", f"{A}/twin"]
    assert (copies.of(1, "cd"), copies.of(1, None), copies.of(2, "ab")) == ([], [], [])


def test_the_record_in_order_up_to_a_position(crawled):
    visits = VisitReader(crawled)
    record = list(visits.of_run(1, 9))
    assert [visit.seq for visit in record] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert [visit.seq for visit in visits.of_run(1, 4)] == [2, 3, 4]
    assert list(visits.of_run(1, 0)) == list(visits.of_run(2, 9)) == []
    home, page, *_, old, gone, _, _ = record
    assert (home.title, home.meta, home.links, home.found_on) == ("Home", {"author": "A"}, 8, None)
    assert (page.request_url, page.payload, page.text_hash, page.links) == (f"{A}/page/", "01", "ab", 0)
    assert (old.redirect, gone.failure, gone.message) == (f"{A}/page", "http_4xx", "404")


def test_a_long_record_is_read_in_steps_without_a_gap(book):
    many = 1203
    page = book.add(f"{A}/")
    book.write(seq=many, visits=[visit_row(seq, page) for seq in range(1, many + 1)])
    assert [visit.seq for visit in VisitReader(book.store).of_run(1, many - 1)] == list(range(1, many))


def test_every_url_requested_once_as_it_was_requested(crawled):
    visits = VisitReader(crawled)
    names = ["", "page/", "style", "old", "gone", "flaky"]
    assert list(visits.requested_urls(1, 9)) == [f"{A}/{name}" for name in names]
    assert list(visits.requested_urls(1, 5)) == [f"{A}/{name}" for name in names[:3]]


def test_an_address_that_was_requested_again_much_later_is_told_once(book):
    page, other = book.add(f"{A}/"), book.add(f"{A}/other")
    again = {600: {"request_url": f"{A}/?"}, 1_100: {"request_url": f"{A}/?"}, 1_150: {}, 1_200: {"requested": 0}}
    book.write(seq=1_200, visits=[visit_row(1, page), *(visit_row(seq, page, **said) for seq, said in again.items())])
    book.write(seq=1_201, visits=[visit_row(1_201, other)])
    assert list(VisitReader(book.store).requested_urls(1, 1_201)) == [f"{A}/", f"{A}/?", f"{A}/other"]


def test_listing_what_was_requested_takes_as_little_memory_for_many_as_for_few(book):
    def peak(until: int) -> int:
        tracemalloc.start()
        try:
            assert sum(1 for _ in VisitReader(book.store).requested_urls(1, until)) == until
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    addresses = [(number, f"{A}/{number:0200}") for number in range(1, 12_001)]
    book.write(seq=12_000, urls=[(number, hash64(url), url) for number, url in addresses])
    book.write(seq=12_000, visits=[visit_row(number, number) for number, _ in addresses])
    peak(1_000)  # what is kept for every statement is kept by now
    assert peak(12_000) < peak(2_000) + 300_000


def test_failures_that_stand_by_kind(crawled):
    visits = VisitReader(crawled)
    assert [(visit.url, visit.seq) for visit in visits.that_failed(1, None)] == [(f"{A}/gone", 7), (f"{A}/flaky", 9)]
    assert [visit.url for visit in visits.that_failed(1, "timeout")] == [f"{A}/flaky"]
    assert list(visits.that_failed(1, "dns")) == []


def test_the_queue_by_source_state_and_reason(crawled):
    counts = {(row.source, row.state, row.reason): row.rows for row in CountReader(crawled).rows_by_state(1)}
    assert counts == {
        ("initial", "done", None): 1,
        ("resource", "done", None): 1,
        ("spider", "done", None): 5,
        ("spider", "pending", None): 1,
        ("spider", "refused", "excluded"): 1,
    }


def test_small_questions(crawled):
    counts, records = CountReader(crawled), RecordReader(crawled)
    assert counts.has_refused(1, Reason.EXCLUDED)
    assert not counts.has_refused(1, Reason.ROBOTS)
    assert not counts.has_refused(2, Reason.EXCLUDED)
    assert {file for file, *_ in records.of_run(1, 99)} == {"run0.warc.gz"}
    assert list(records.of_run(2, 99)) == []
    assert RecordChecks(crawled).integrity() == "ok"


def test_counted_numbers_equal_kept_ones(crawled):
    kept = crawled.runs.get(0).counters
    counted = RecordChecks(crawled).recount(1)
    assert counted == {name: getattr(kept, name) for name in counted}
    assert set(counted) == set(Counters.__slots__) - {"unknown"}


def test_a_healthy_run_has_no_faults(crawled):
    assert RecordChecks(crawled).faults(1) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("DELETE FROM frontier WHERE state = 'done' AND kind = 'resource'", "does not know"),
        ("UPDATE frontier SET done = 99 WHERE state = 'done' AND kind = 'resource'", "done URLs without a visit"),
        ("UPDATE frontier SET done = NULL WHERE state = 'done' AND kind = 'resource'", "done URLs without a visit"),
        ("UPDATE frontier SET done = 3 WHERE state = 'done' AND kind = 'resource'", "done URLs without a visit"),
        ("UPDATE visit SET outcome = 'page' WHERE seq IN (8, 9)", "pages recorded twice"),
        ("UPDATE frontier SET found = 10 WHERE state = 'pending'", "found after the end"),
        ("DELETE FROM visit WHERE seq = 8", "gaps in the record"),
        ("UPDATE visit SET seq = 99 WHERE seq = 8", "gaps in the record"),
        ("UPDATE run SET seq = 10 WHERE run_id = 1", "gaps in the record"),
        ("UPDATE lane SET pending = 5", "lanes with a wrong count"),
        ("DELETE FROM lane", "pending URLs in no lane"),
        ("UPDATE frontier SET lane = 7 WHERE state = 'pending'", "lanes with a wrong count"),
    ],
)
def test_every_fault_is_found(crawled, damage, words):
    crawled.db.execute(damage)
    assert any(words in fault for fault in RecordChecks(crawled).faults(1))


def test_what_is_known_can_be_asked_without_its_rows(store):
    token = store.take(SOMEBODY)
    store.runs.create(token, FIRST, Commit(1, 0, seeds=FIRST.seeds))
    with store.commits.committing(token):
        entry = new_entry(2, state=State.REFUSED, reason=Reason.NOFOLLOW, depth=3)
        store.commits.write(
            Commit(1, 1, seeds=FIRST.seeds, urls=[(2, hash64("http://a.test/x"), "http://a.test/x")], entries=[entry])
        )
    wanted = ["http://a.test/x", "http://a.test/y"]
    assert store.frontier.known(1, wanted, rows=False) == {"http://a.test/x": Known(2, True, State.PENDING, None, 0, 0)}
    assert store.frontier.known(1, wanted)["http://a.test/x"].reason is Reason.NOFOLLOW


def test_equal_hashes_do_not_mix_up_what_is_asked_without_rows(book, monkeypatch):
    monkeypatch.setattr("inchworm.store.crawl.frontier.hash64", lambda url: 7)
    ids = {}
    for url in ("http://a.test/1", "http://a.test/2"):
        book.next_id += 1
        book.write(urls=[(book.next_id, 7, url)])
        ids[url] = book.next_id
    found = book.store.frontier.known(1, [*ids, "http://a.test/3"], rows=False)
    assert {url: known.url_id for url, known in found.items()} == ids


def test_a_run_remembers_that_it_met_nofollow(book):
    assert not book.store.runs.has_nofollow(1)
    book.write(nofollow=True)
    book.write(nofollow=False)
    assert book.store.runs.has_nofollow(1)
    assert not book.store.runs.has_nofollow(2)
    assert not book.store.runs.has_nofollow(9)


def test_the_only_run(store):
    token = store.take(SOMEBODY)
    assert store.runs.is_only(1)
    store.runs.create(token, FIRST, Commit(1, 0, seeds=FIRST.seeds))
    assert store.runs.is_only(1)
    store.runs.create(token, SECOND, Commit(2, 0, seeds=SECOND.seeds))
    assert not store.runs.is_only(1)
