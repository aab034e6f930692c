"""Two runs side by side, on rows that were put there by hand: what each page must be said to have come to."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from inchworm.app import App, Start
from inchworm.model import Counters, Kind, Reason, RunInfo, RunState, Seed, Source, State
from inchworm.ports import Commit, NewFrontierRow, RowState, VisitRow
from inchworm.rules.web.url import hash64
from inchworm.rules.words.json_form import json_form
from inchworm.store.crawl.read.compare import ComparisonReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

SEED = Seed(0, "http://a.test/", "a.test", "/")
RUN = RunInfo(1, 0, "baseline", None, RunState.COMPLETED, 0, {}, Counters(), (SEED,), "", 10, 20)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run has of a page: a state of its row, and the visit that settled it."""

    outcome: str = "page"
    text: str = ""
    bytes: str = ""
    links: str = ""
    reader: str = "r1"
    change: str | None = None
    note: str | None = None
    failure: str | None = None
    reason: Reason | None = None
    kind: Kind = Kind.PAGE


def read(text: str, change: str | None = None, bytes: str = "", links: str = "", reader: str = "r1") -> Seen:  # noqa: A002
    """A page with this text; its bytes are told apart where that is said."""
    return Seen("page", text, bytes or text, links, reader, change)


def redirected(change: str | None, note: str = "") -> Seen:
    return Seen("redirect", change=change, note=note or None)


def refused(reason: Reason) -> Seen:
    return Seen("refused", reason=reason)


def back(text: str, note: str = "back", reader: str = "r1") -> Seen:
    """A page that is there again."""
    return replace(read(text, "new", reader=reader), note=note)


GONE = Seen("deleted", change="deleted")
SAME = "bytes no_validators back"
STILL_GONE = Seen("deleted")
LATE = Seen("failed", failure="timeout")
PENDING = Seen("pending")
EXCLUDED = refused(Reason.EXCLUDED)

Step = Seen | None
"""None: the run never met the URL."""


class Book:
    """Runs of one page at /page, found on the home page, which is always there and always the same."""

    def __init__(self, folder: Path) -> None:
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")
        self.token = self.store.take(Life(4711, "a machine", "a boot", 1))
        self.runs: list[RunInfo] = []

    def run(self, seen: Step, horizon: int = 0) -> RunInfo:
        """The next run, which came to this."""
        number = len(self.runs)
        horizon = horizon or number + 1
        run = replace(RUN, run_id=number + 1, number=number, horizon=horizon, follows=horizon - 1 or None)
        self.runs.append(run)
        self.store.runs.create(self.token, run, Commit(run.run_id, 0, seeds=(SEED,)))
        urls = {1: "http://a.test/", 2: "http://a.test/page"}
        changes = Commit(run.run_id, 1, seeds=(SEED,))
        if not number:
            changes.urls += [(url_id, hash64(url), url) for url_id, url in urls.items()]
        self._add(changes, 1, 1, read("home"))
        if seen is not None:
            self._add(changes, 2, 2, seen)
        with self.store.commits.committing(self.token):
            self.store.commits.write(changes)
        return run

    def _add(self, changes: Commit, url_id: int, seq: int, seen: Seen) -> None:
        states = {"refused": State.REFUSED, "pending": State.PENDING}
        state = states.get(seen.outcome, State.DONE)
        # What is refused when it is found is settled by the visit that found it.
        done = None if state is State.PENDING else 1 if state is State.REFUSED else seq
        standing = RowState(state, seen.reason, 0, 0, 0, 1, 0, seq, None, 0, 0, 0, None, done)
        changes.entries.append(NewFrontierRow(url_id, seen.kind, Source.SPIDER, 0, None, None, standing))
        if state is State.DONE:
            changes.visits.append(_visit(seq, url_id, seen))
            changes.seq = seq

    def compare(self, first: RunInfo, second: RunInfo) -> tuple[str, str] | None:
        """What became of the page, and why nothing is known of it."""
        found = {one.url: one for one in ComparisonReader(self.store, first, second)}
        assert found["http://a.test/"].change == "unchanged"
        one = found.get("http://a.test/page")
        return (one.change.value, one.why) if one else None


def _visit(seq: int, url_id: int, seen: Seen) -> VisitRow:
    is_page = seen.outcome in ("page", "duplicate", "resource")
    hashes = {"payload": seen.bytes.encode(), "text_hash": seen.text.encode(), "link_hash": seen.links.encode()}
    row = dict.fromkeys(VisitRow._fields) | {"seq": seq, "url_id": url_id, "kind": seen.kind, "at_ms": 1, "status": 200}
    row |= {"requested": 1, "millis": 5, "size": 7, "revisit": 0, "missing": 0, "links": ()}
    row |= {"outcome": seen.outcome, "failure": seen.failure, "change": seen.change, "note": seen.note}
    return VisitRow(**{**row, "reader": seen.reader, **(hashes if is_page else {})})


Compare = Callable[..., tuple[str, str] | None]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def compare(book: Book) -> Compare:
    """The first and the last of some runs side by side."""

    def made(*seen: Step) -> tuple[str, str] | None:
        runs = [book.run(one) for one in seen]
        return book.compare(runs[0], runs[-1])

    return made


TWO: dict[str, tuple[Step, Step, tuple[str, str] | None]] = {
    "same": (read("A"), read("A"), ("unchanged", "")),
    "text": (read("A"), read("B"), ("modified", "")),
    "links": (read("A", bytes="1", links="x"), read("A", bytes="2", links="y"), ("modified", "")),
    "bytes": (read("A", bytes="1"), read("A", bytes="2"), ("unchanged", "")),
    "reader": (read("A", bytes="1"), read("B", bytes="1", reader="r2"), ("unchanged", "")),
    "reader-and-bytes": (read("A", bytes="1"), read("B", "unchanged", "2", reader="r2"), ("unchanged", "")),
    "stamp": (read("A"), read("A'", "unchanged"), ("unchanged", "")),
    "duplicate": (read("A"), replace(read("A"), outcome="duplicate"), ("unchanged", "")),
    "was-duplicate": (replace(read("A"), outcome="duplicate"), read("B", "modified"), ("modified", "")),
    "new": (None, read("A", "new"), ("new", "")),
    "in-neither": (None, None, None),
    "failed-in-both": (LATE, LATE, None),
    "gone": (read("A"), GONE, ("deleted", "")),
    "failed": (read("A"), LATE, ("unknown", "timeout")),
    "not-met": (read("A"), None, ("unknown", "not_reached")),
    "pending": (read("A"), PENDING, ("unknown", "pending")),
    "excluded": (read("A"), EXCLUDED, ("unknown", "excluded")),
    "moved": (read("A"), redirected("unchanged", "moved"), ("unchanged", "moved")),
    "gave-way": (read("A"), redirected("deleted", "moved"), ("deleted", "moved")),
    "login": (read("A"), redirected("unknown", "login"), ("unknown", "login")),
    "redirect-in-an-open-run": (read("A"), redirected(None), ("unknown", "redirect")),
    "redirect-became-a-page": (redirected(None), read("A", "new"), ("new", "")),
}


@pytest.mark.parametrize("name", list(TWO))
def test_two_runs(compare: Compare, name: str) -> None:
    first, second, wanted = TWO[name]
    assert compare(first, second) == wanted


THREE: dict[str, tuple[Step, Step, Step, tuple[str, str]]] = {
    "gone-and-not-asked-for-again": (read("A"), GONE, None, ("deleted", "")),
    "gone-and-still-gone": (read("A"), GONE, STILL_GONE, ("deleted", "")),
    "gone-and-failed": (read("A"), GONE, LATE, ("deleted", "")),
    "gone-and-back": (read("A"), GONE, back("A", SAME), ("unchanged", "")),
    "gone-and-back-with-other-text": (read("A"), GONE, back("B"), ("modified", "")),
    "gone-and-back-and-read-otherwise": (read("A"), GONE, back("A'", SAME, reader="r2"), ("unchanged", "")),
    "gave-way-and-still-does": (read("A"), redirected("deleted", "moved"), redirected(None), ("deleted", "")),
    "gave-way-and-failed": (read("A"), redirected("deleted", "moved"), LATE, ("deleted", "")),
    "gave-way-for-a-while": (read("A"), redirected("unknown", "moved"), redirected(None), ("unknown", "redirect")),
    "there-and-not-met": (read("A"), read("A", "unchanged"), None, ("unknown", "not_reached")),
    "modified-and-not-met": (read("A"), read("B", "modified"), None, ("unknown", "not_reached")),
    "changed-and-back": (read("A"), read("B", "modified"), read("A", "modified"), ("unchanged", "")),
    "changed-once": (read("A"), read("B", "modified"), read("B", "unchanged"), ("modified", "")),
    "changed-before-a-stamp": (read("A"), read("B", "modified"), read("B'", "unchanged"), ("modified", "")),
    "two-stamps": (read("A"), read("A'", "unchanged"), read("A''", "unchanged"), ("unchanged", "")),
    "failed-between": (read("A"), LATE, read("A'", "unchanged"), ("unchanged", "")),
    "away-for-a-while": (
        read("A"),
        redirected("unknown", "moved"),
        read("A'", "unchanged"),
        ("unchanged", ""),
    ),
    "gone-for-a-while-and-stamped": (read("A"), GONE, read("A'", "unchanged"), ("unchanged", "")),
    "changed-and-then-moved": (read("A"), read("B", "modified"), redirected("unchanged", "moved"), ("modified", "")),
}


@pytest.mark.parametrize("name", list(THREE))
def test_the_first_and_the_last_of_three_runs(compare: Compare, name: str) -> None:
    *seen, wanted = THREE[name]
    found = compare(*seen)
    assert found is not None
    assert found[0] == wanted[0]
    assert found[1] == wanted[1] or wanted[0] != "unknown"


def test_gone_and_back_and_not_met_is_unknown(compare: Compare) -> None:
    assert compare(read("A"), GONE, back("A", SAME), None) == ("unknown", "not_reached")


GONE_FROM = {"gone": GONE, "gave-way": redirected("deleted", "moved")}


@pytest.mark.parametrize("gone", GONE_FROM)
@pytest.mark.parametrize("seen", [back("A", SAME), back("B"), read("A", "unchanged"), read("B", "modified")])
def test_a_page_that_is_back_is_new_since_it_was_gone(book: Book, gone: str, seen: Seen) -> None:
    """Runs of earlier versions called it unchanged or modified, and said `back` beside it."""
    book.run(read("A"))
    first, second = book.run(GONE_FROM[gone]), book.run(seen)
    assert book.compare(first, second) == ("new", "")


@pytest.mark.parametrize(("seen", "change"), [(back("A", SAME), "unchanged"), (back("B"), "modified")])
def test_a_page_that_was_gone_only_for_a_while_is_not_new(book: Book, seen: Seen, change: str) -> None:
    book.run(read("A"))
    first = book.run(LATE)
    book.run(GONE)
    assert book.compare(first, book.run(seen)) == (change, "")


@pytest.mark.parametrize("seen", [read("A"), GONE, LATE, EXCLUDED, redirected("unknown"), None])
def test_a_run_beside_itself_is_unchanged(book: Book, seen: Step) -> None:
    run = book.run(seen)
    is_page = seen is not None and seen.outcome == "page"
    assert book.compare(run, run) == (("unchanged", "") if is_page else None)


def test_resources_are_left_out(compare: Compare) -> None:
    first, second = (Seen("resource", text, text, kind=Kind.RESOURCE) for text in "AB")
    assert compare(first, second) is None


def test_what_was_found_out_before_the_first_run_does_not_count(book: Book) -> None:
    for seen in (read("A"), GONE):
        book.run(seen)
    first, second = book.run(read("A'", "unchanged")), book.run(None)
    assert book.compare(first, second) == ("unknown", "not_reached")


def test_a_branch_is_compared_with_what_came_before_its_origin(book: Book) -> None:
    first = book.run(read("A"))
    origin = book.run(read("A'", "unchanged"))
    branch = book.run(read("A''", "unchanged"), horizon=origin.run_id)
    assert book.compare(first, branch) == ("unchanged", "")
    # Its origin is no run before it: nothing was found out between the two.
    assert book.compare(origin, branch) == ("modified", "")


@pytest.mark.parametrize("missed", [LATE, None], ids=["failed", "not-met"])
def test_a_page_that_the_first_run_did_not_reach_is_not_new(book: Book, missed: Step) -> None:
    book.run(read("A"))
    first, second = book.run(missed), book.run(read("A", "unchanged"))
    assert book.compare(first, second) != ("new", "")


def test_comparing_takes_little_memory_however_much_there_is(tmp_path: Path) -> None:
    count = 8_000
    with contextlib.closing(App(tmp_path / "home")) as app:
        crawl = app.plan.find_or_make(Start(("http://a.test/",)))
        folder = app.workspace.place(crawl).folder
        folder.mkdir(parents=True)
        book = Book(folder)
        _fill(book, count)
        book.store.close()
        whole = app.changes.compare(crawl.crawl_id)
        tracemalloc.start()
        try:
            with (tmp_path / "out").open("wb") as out:
                app.changes.write_comparison(crawl.crawl_id, None, None, out)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    written = (tmp_path / "out").read_bytes()
    assert json.loads(written) == json_form(whole)
    assert whole.counts.summary.startswith(f"Iteration 1 vs 0: 0 new, {count // 2} modified")
    assert len(written) > 5_000_000 > peak, peak


def _fill(book: Book, count: int) -> None:
    """Two runs of so many pages, of which every other one is modified."""
    for number in range(2):
        run = replace(RUN, run_id=number + 1, number=number, horizon=number + 1, parent=0 if number else None)
        book.store.runs.create(book.token, run, Commit(run.run_id, 0, seeds=(SEED,)))
        changes = Commit(run.run_id, 1, seeds=(SEED,))
        for url_id in range(1, count + 1):
            url = f"http://a.test/{url_id:0900}"
            if not number:
                changes.urls.append((url_id, hash64(url), url))
            book._add(changes, url_id, url_id, read(f"text {number * (url_id % 2)}", "modified" if number else None))
        with book.store.commits.committing(book.token):
            book.store.commits.write(changes)
