"""Reports on a run whose rows were put there by hand, compared with what they must say."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.model import Counters, Kind, Reason, RunInfo, RunState, Seed, Source, State
from inchworm.ports import Commit, NewFrontierRow, RowState, VisitRow
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.read.reports import MOST_HOPS, Hop, Linking, Reports
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

SEED = Seed(0, "http://a.test/", "a.test", "/")
RUN = RunInfo(1, 0, "baseline", None, RunState.IN_PROGRESS, 0, {}, Counters(), (SEED,), "", 10, None)


class Book:
    """A run, and short ways to put URLs and visits into it."""

    def __init__(self, folder: Path) -> None:
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")
        self.token = self.store.take(Life(4711, "a machine", "a boot", 1))
        self.store.runs.create(self.token, RUN, Commit(1, 0, seeds=(SEED,)))
        self.ids: dict[str, int] = {}
        self.seq = 0

    def close(self) -> None:
        self.store.close()

    def write(self, **changes: object) -> None:
        with self.store.commits.committing(self.token):
            self.store.commits.write(Commit(1, 1, seeds=(SEED,), seq=self.seq, **changes))

    def url(self, path: str, kind: Kind = Kind.PAGE, state: State = State.PENDING, reason: Reason | None = None) -> int:
        if path not in self.ids:
            url_id = self.ids[path] = len(self.ids) + 1
            address = f"http://a.test/{path}"
            standing = RowState(state, reason, 0, 0, 0, 1, 0, url_id, None, 0, 0, 0, None, None)
            entry = NewFrontierRow(url_id, kind, Source.SPIDER, 0, None, None, standing)
            self.write(urls=[(url_id, hash64(address), address)], entries=[entry])
        return self.ids[path]

    def visit(self, path: str, outcome: str = "page", links: tuple[str, ...] = (), **values: object) -> None:
        kind = Kind(values.pop("kind", "page"))
        settles = values.pop("settles", True)
        url_id, targets = self.url(path, kind), tuple(self.url(link) for link in links)
        if (target := values.pop("to", None)) is not None:
            values["redirect"] = self.url(str(target))
        self.seq += 1
        row = dict.fromkeys(VisitRow._fields) | {"kind": kind, "at_ms": 1, "requested": 1, "status": 200, "millis": 5}
        row |= {"size": 7, "revisit": 0, "missing": 0, "seq": self.seq, "url_id": url_id, "links": targets}
        row |= {"outcome": outcome, "title": f"Title of {path}"}
        settled = [(State.DONE, None, self.seq, url_id)] if settles else []
        self.write(visits=[VisitRow(**{**row, **values})], settled=settled)

    @property
    def reports(self) -> Reports:
        return Reports(self.store, 1)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path)
    yield made
    made.close()


def at(path: str) -> str:
    return f"http://a.test/{path}"


# ---- broken links


def test_broken_links_name_all_pages_that_lead_there(book: Book) -> None:
    book.visit("a", links=("gone", "old", "fine"))
    book.visit("b", "duplicate", links=("gone",))
    book.visit("fine")
    book.visit("gone", "failed", failure="http_4xx", status=404, message="the server answered 404", title=None)
    book.visit("old", "redirect", status=301, to="older")
    book.visit("older", "redirect", status=302, to="gone")
    total, (one,) = book.reports.broken_links()
    assert total == 1
    assert (one.url, one.status, one.kind, one.message) == (at("gone"), 404, "http_4xx", "the server answered 404")
    assert one.linked_from == [
        Linking(at("a"), "Title of a"),
        Linking(at("b"), "Title of b"),
        Linking(at("a"), "Title of a", at("old")),
    ]


def test_the_most_linked_come_first_and_limits_keep_them(book: Book) -> None:
    book.visit("a", links=("one", "two"))
    book.visit("b", links=("two",))
    for path in ("none", "one", "two"):
        book.visit(path, "failed", failure="dns", status=0)
    assert [one.url for one in book.reports.broken_links()[1]] == [at("two"), at("one"), at("none")]
    total, shown = book.reports.broken_links(1)
    assert (total, [one.url for one in shown]) == (3, [at("two")])


def test_only_what_is_settled_counts(book: Book) -> None:
    book.visit("later", "retry", failure="timeout", settles=False)
    book.visit("twice", "failed", failure="timeout", settles=False)
    book.visit("twice", "page")
    book.visit("was here", "deleted", status=410)
    book.visit("moved", "redirect", status=301, to="twice", change="deleted")
    assert [(one.url, one.kind) for one in book.reports.broken_links()[1]] == [(at("was here"), "deleted")]


def test_sitemaps_are_named_by_their_address(book: Book) -> None:
    book.visit("s", "control", links=("gone",), kind="sitemap", request_url="http://a.test/sitemap.xml", title=None)
    book.visit("gone", "failed", failure="http_4xx", status=404)
    (one,) = book.reports.broken_links()[1]
    assert one.linked_from == [Linking("http://a.test/sitemap.xml", "")]


_GRAPH = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(
        st.sampled_from(["page", "duplicate", "failed", "deleted", "redirect"]), st.sets(st.sampled_from("abcdefgh"))
    ),
    min_size=1,
)


@given(_GRAPH)
@settings(max_examples=40)
def test_links_are_found_as_by_looking_at_every_page(graph: dict[str, tuple[str, set[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Book(Path(folder))) as book:
        target = {path: min(links) for path, (outcome, links) in graph.items() if outcome == "redirect" and links}
        for path, (outcome, links) in graph.items():
            to = {"to": target[path]} if path in target else {}
            book.visit(path, outcome, tuple(sorted(links)) if outcome in ("page", "duplicate") else (), **to)

        def end(path: str) -> str:
            for _ in graph:
                path = target.get(path, path)
            return path

        pages = {path: links for path, (outcome, links) in graph.items() if outcome in ("page", "duplicate")}
        expected = {
            at(path): sorted((at(page), "" if link == path else at(link)) for page, links in pages.items()
                             for link in links if end(link) == path and link in graph)
            for path, (outcome, _) in graph.items()
            if outcome in ("failed", "deleted")
        }  # fmt: skip
        _, found = book.reports.broken_links()
        assert {one.url: sorted((page.url, page.through) for page in one.linked_from) for one in found} == expected


# ---- redirects


def test_a_chain_is_told_from_its_beginning_to_its_end(book: Book) -> None:
    book.visit("a", links=("old",))
    book.visit("b", links=("old", "new"))
    book.visit("old", "redirect", status=301, to="mid")
    book.visit("mid", "redirect", status=308, to="new")
    book.visit("new")
    total, (one,) = book.reports.redirects()
    assert total == 1
    assert one.hops == [Hop(at("old"), 301), Hop(at("mid"), 308)]
    assert (one.final_url, one.final_status, one.final_outcome) == (at("new"), 200, "page")
    assert (one.is_permanent, one.trouble, one.pages) == (True, "", 2)


def test_a_hop_that_pages_link_to_is_a_chain_of_its_own(book: Book) -> None:
    book.visit("a", links=("old", "mid"))
    book.visit("b", links=("mid",))
    book.visit("old", "redirect", status=302, to="mid")
    book.visit("mid", "redirect", status=301, to="new")
    book.visit("new", "failed", failure="http_5xx", status=500)
    _, chains = book.reports.redirects()
    assert [(len(one.hops), one.pages, one.is_permanent) for one in chains] == [(1, 2, True), (2, 1, False)]
    assert {one.final_outcome for one in chains} == {"http_5xx"}


def test_loops_and_endless_chains_are_flagged(book: Book) -> None:
    book.visit("a", "redirect", status=302, to="b")
    book.visit("b", "failed", failure="redirect_loop", status=302)
    book.visit("self", "failed", failure="redirect_loop", status=301)
    book.visit("far", "redirect", status=301, to="further")
    book.visit("further", "failed", failure="too_many_redirects", status=301)
    book.visit("nowhere", "failed", failure="bad_redirect", status=302)
    _, chains = book.reports.redirects()
    assert [([hop.url for hop in one.hops], one.final_url, one.trouble) for one in chains] == [
        ([at("a")], at("b"), "redirect_loop"),
        ([at("far")], at("further"), "too_many_redirects"),
        ([at("self")], at("self"), "redirect_loop"),
        ([at("nowhere")], at("nowhere"), "bad_redirect"),
    ]


def test_where_a_chain_leaves_the_crawl(book: Book) -> None:
    book.url("outside", state=State.REFUSED, reason=Reason.OUT_OF_SCOPE)
    book.visit("a", "redirect", status=302, to="outside")
    book.visit("b", "redirect", status=302, to="not yet")
    _, chains = book.reports.redirects()
    assert [(one.final_url, one.final_status, one.final_outcome) for one in chains] == [
        (at("outside"), 0, "out_of_scope"),
        (at("not yet"), 0, "pending"),
    ]


def test_an_address_that_only_changes_its_form(book: Book) -> None:
    book.visit("a", "redirect", status=301, to="a", request_url=at("a?x="), settles=False)
    book.visit("a", "page", request_url=at("a?x"))
    _, (one,) = book.reports.redirects()
    assert (one.hops, one.final_url, one.final_outcome) == ([Hop(at("a?x="), 301)], at("a?x"), "page")


def test_a_circle_that_nobody_noticed_ends(book: Book) -> None:
    """It cannot be, but a report must not hang on it."""
    book.visit("page", links=("a",))
    for path, target in (("a", "b"), ("b", "c"), ("c", "a")):
        book.visit(path, "redirect", status=302, to=target)
    _, (one,) = book.reports.redirects()
    assert len(one.hops) == 3
    for number in range(2 * MOST_HOPS):
        book.visit(f"n{number}", "redirect", status=302, to=f"n{number + 1}")
    _, chains = book.reports.redirects()
    assert len(chains[-1].hops) == MOST_HOPS


# ---- duplicates


def test_duplicates_in_groups_with_the_primary_one_first(book: Book) -> None:
    for path, outcome, text in (
        ("a", "page", b"1"),
        ("b", "page", b"2"),
        ("c", "duplicate", b"2"),
        ("d", "page", b"3"),
    ):
        book.visit(path, outcome, text_hash=text)
    book.visit("e", "duplicate", text_hash=b"2")
    book.visit("f", "duplicate", text_hash=b"3")
    book.visit("g", "failed", text_hash=b"1")
    book.visit("h", "page", text_hash=None)
    book.visit("i", "page", text_hash=None)
    total, groups = book.reports.duplicates()
    assert total == 2
    assert [one.urls for one in groups] == [[at("b"), at("c"), at("e")], [at("d"), at("f")]]
    assert [(one.title, one.size) for one in groups] == [("Title of b", 7), ("Title of d", 7)]
    total, groups = book.reports.duplicates(1)
    assert (total, len(groups)) == (2, 1)


# ---- errors


def test_errors_by_kind_and_status(book: Book) -> None:
    for number in range(4):
        book.visit(f"n{number}", "failed", failure="http_4xx", status=404)
    book.visit("forbidden", "failed", failure="http_4xx", status=403)
    book.visit("name", "failed", failure="dns", status=0)
    book.visit("was", "deleted", status=410)
    book.visit("image", "failed", failure="timeout", status=0, kind="resource")
    book.visit("robots", "control", failure="timeout", status=0, kind="robots")
    found = [(one.kind, one.status, one.urls, one.examples) for one in book.reports.errors(2)]
    assert found == [
        ("http_4xx", 404, 4, [at("n0"), at("n1")]),
        ("deleted", 410, 1, [at("was")]),
        ("dns", 0, 1, [at("name")]),
        ("http_4xx", 403, 1, [at("forbidden")]),
        ("timeout", 0, 1, [at("image")]),
    ]


# ---- what is slow


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=60))
@settings(max_examples=25)
def test_percentiles_are_those_of_the_sorted_list(millis: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Book(Path(folder))) as book:
        for number, one in enumerate(millis):
            book.visit(str(number), millis=one)
        count, found = book.reports.percentiles((50, 90, 99, 100))
    assert count == len(millis)
    assert found[100] == max(millis)
    for percent, at_most in found.items():
        assert at_most in millis
        assert sum(one <= at_most for one in millis) * 100 >= percent * count
        assert sum(one < at_most for one in millis) * 100 < percent * count


def test_the_slowest_and_the_largest(book: Book) -> None:
    for path, millis, size in (("a", 10, 300), ("b", 30, 100), ("c", 20, 200)):
        book.visit(path, millis=millis, size=size)
    book.visit("reused", millis=900, size=900, requested=0)
    book.visit("failed", "failed", millis=900, size=900, failure="timeout")
    assert [(one.url, one.millis) for one in book.reports.slowest(2)] == [(at("b"), 30), (at("c"), 20)]
    assert [(one.url, one.size) for one in book.reports.largest(9)] == [(at("a"), 300), (at("c"), 200), (at("b"), 100)]


def test_an_empty_run_has_nothing_to_report(book: Book) -> None:
    reports = book.reports
    with reports.snapshot():
        assert reports.broken_links() == reports.redirects() == reports.duplicates() == (0, [])
        assert reports.errors(3) == reports.slowest(3) == reports.largest(3) == []
        assert reports.percentiles((50, 90)) == (0, {})


# ---- cost


def _steps(book: Book, ask: Callable[[Reports], object]) -> int:
    """How much the database works for a question."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    book.store.db._connection.set_progress_handler(count, 50)
    try:
        ask(book.reports)
    finally:
        book.store.db._connection.set_progress_handler(None, 0)
    return counted[0]


def test_a_report_costs_as_much_as_the_run_is_long(book: Book) -> None:
    """Twice the pages, twice the work, and not four times."""
    questions = {
        "broken links": lambda reports: reports.broken_links(10),
        "redirects": lambda reports: reports.redirects(10),
        "duplicates": lambda reports: reports.duplicates(10),
        "errors": lambda reports: reports.errors(3),
        "slow": lambda reports: (reports.slowest(10), reports.largest(10), reports.percentiles((50, 90))),
    }
    cost: dict[str, list[int]] = {name: [] for name in questions}
    for first in (0, 200):
        for number in range(first, first + 200, 5):
            book.visit(f"p{number}", links=(f"p{number + 1}", f"p{number + 2}"))
            book.visit(f"p{number + 1}", "redirect", status=301, to=f"p{number}")
            book.visit(f"p{number + 2}", "failed", failure="redirect_loop", status=302)
            book.visit(f"p{number + 3}", "failed", failure="timeout", status=0)
            book.visit(f"p{number + 4}", "duplicate", text_hash=b"same")
        for name, ask in questions.items():
            cost[name].append(_steps(book, ask))
    assert {name: more / less for name, (less, more) in cost.items() if more > 3 * less} == {}
