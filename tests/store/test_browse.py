"""Looking around in a run whose rows were put there by hand; the index, for as long as somebody waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.test_reports import Book, at

from inchworm.app.read.content.pages import MOST_ALTERNATES
from inchworm.app.read.content.site import FolderCount, FolderSum, folder_of
from inchworm.app.read.content.snippet import pieces
from inchworm.model import Reason, State
from inchworm.rules.text.recurring import Frame
from inchworm.store.crawl.read import copies
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.urls import TREE_STEP, LinkReader, UrlReader
from inchworm.store.follow import search, timed
from inchworm.store.follow.framed import ReadText
from inchworm.store.follow.log import LoggedPage


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path)
    yield made
    made.close()


# One page


def test_links_are_found_again_from_both_ends(book: Book) -> None:
    book.visit("", links=("a", "b", "a"))
    book.visit("a", links=("b",))
    book.visit("b")
    links = LinkReader(book.store)
    assert links.found_by(1, 1) == [book.ids["a"], book.ids["b"]]
    assert links.leading_to(1, book.ids["b"], 0, 10) == [(1, book.ids[""]), (2, book.ids["a"])]
    assert links.leading_to(1, book.ids["b"], 1, 10) == [(2, book.ids["a"])]
    assert links.leading_to(1, book.ids["b"], 0, 1) == [(1, book.ids[""])]


def test_the_end_of_one_link_and_the_beginning_of_the_next_are_no_link(book: Book) -> None:
    for number in range(1, 258):
        book.url(str(number))
    # 01 00 00 00 | 01 00 00 00 has 256 in the middle: 00 01 00 00 is 256 from the fourth byte on.
    book.visit("1", links=("1", "1"))
    links = LinkReader(book.store)
    assert links.leading_to(1, 256, 0, 10) == []
    assert links.leading_to(1, 1, 0, 10) == [(1, 1)]


def test_how_urls_stand_comes_in_the_order_that_was_asked_for(book: Book) -> None:
    book.visit("a", "failed", failure="http_4xx", status=404)
    book.url("b", state=State.REFUSED, reason=Reason.ROBOTS)
    book.url("c")
    ids = [book.ids[name] for name in ("c", "b", "a")]
    rows = UrlReader(book.store).states(1, [*ids, 99])
    assert [(row.url, row.state, row.outcome, row.reason) for row in rows] == [
        (at("c"), "pending", None, None),
        (at("b"), "refused", None, "robots"),
        (at("a"), "done", "failed", None),
    ]


def test_alternates_have_the_primary_first_and_do_not_end_in_thousands(book: Book) -> None:
    book.visit("first", text_hash=b"same")
    for number in range(MOST_ALTERNATES + 5):
        book.visit(f"copy-{number}", "duplicate", text_hash=b"same")
    found = Copies(book.store).of(1, b"same".hex(), MOST_ALTERNATES)
    assert found[0] == at("first") and len(found) == MOST_ALTERNATES + 1


@pytest.mark.parametrize(("outcome", "index"), [("duplicate", "visit_alternate"), ("page", "visit_content")])
def test_one_url_is_found_without_reading_its_run(book: Book, outcome: str, index: str) -> None:
    query = copies._SAME.format(outcome)
    plan = book.store.db.execute(f"EXPLAIN QUERY PLAN {query}", (1, [b"x", b"y", b"z"], 1, 1)).fetchall()
    assert any(index in row[3] for row in plan), plan
    assert all(row[3].startswith(("SEARCH", "LIST SUBQUERY")) for row in plan), plan


def test_the_history_has_every_run_that_knows_a_url(book: Book) -> None:
    book.visit("a")
    assert [(row.run, row.outcome) for row in UrlReader(book.store).history(book.ids["a"], 10)] == [(0, "page")]
    assert UrlReader(book.store).history(99, 10) == []


# The site by folders


def counted(book: Book) -> FolderCount:
    count = FolderCount((0,))
    count.go_on(UrlReader(book.store), 1, 60.0)
    assert count.is_complete
    return count


def test_a_site_is_counted_by_folders(book: Book) -> None:
    book.visit("")
    book.visit("docs/a", size=10, change="new")
    book.visit("docs/b?x=/y/", "duplicate", size=5)
    book.visit("docs/deep/er/c", "failed", size=0)
    book.visit("docs/old", "redirect", size=1)
    book.url("docs/later")
    book.url("away", state=State.REFUSED, reason=Reason.ROBOTS)
    count = counted(book)
    root = "http://a.test/"
    assert count.below("")[1] == [FolderSum(root, 2, 1, 1, 1, 2, 23, 1)]
    whole, folders = count.below(root)
    assert whole == FolderSum(root, 2, 1, 1, 1, 2, 23, 1)
    assert folders == [FolderSum(f"{root}docs/", 1, 1, 1, 0, 2, 16, 1)]
    assert [one.name for one in count.below(f"{root}docs/")[1]] == [f"{root}docs/deep/"]
    assert list(count.inside(f"{root}docs/")) == [
        book.ids[n] for n in ("docs/a", "docs/b?x=/y/", "docs/old", "docs/later")
    ]
    assert count.below(f"{root}nowhere/") == (FolderSum(f"{root}nowhere/"), [])


def test_what_a_refused_url_was_found_on_adds_nothing_to_it(book: Book) -> None:
    book.visit("a", size=1000)
    book.url("b", state=State.REFUSED, reason=Reason.OUT_OF_SCOPE)
    book.write(settled=[(State.REFUSED, Reason.OUT_OF_SCOPE, 1, book.ids["b"])])
    assert counted(book).below("")[0].bytes == 1000


def test_a_count_goes_on_where_it_was_left(book: Book) -> None:
    book.visit("a")
    count = FolderCount((0,))
    count.go_on(UrlReader(book.store), 1, 0.0)
    assert not count.is_complete and count.counted == 0
    count.go_on(UrlReader(book.store), 1, 60.0)
    assert count.is_complete and count.counted == 1
    count.go_on(UrlReader(book.store), 1, 60.0)
    assert count.counted == 1
    assert TREE_STEP > 1


def test_a_change_gives_another_stamp(book: Book) -> None:
    before = UrlReader(book.store).stamp(1)
    book.visit("a")
    assert UrlReader(book.store).stamp(1) != before
    assert UrlReader(book.store).stamp(99) == (0, 0, 0)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("http://a.test/", "http://a.test/"),
        ("http://a.test/x", "http://a.test/"),
        ("http://a.test/x/y?z=/w/", "http://a.test/x/"),
        ("http://a.test/?q", "http://a.test/"),
    ],
)
def test_where_a_url_lies(url: str, folder: str) -> None:
    assert folder_of(url) == folder


# Full text


def page_text(page: LoggedPage, _: Frame) -> ReadText:
    return ReadText(f"worm number {page.url_id}")


def asked(book: Book, folder: Path, seconds: float) -> tuple[search.FoundContents, int]:
    question = search.SearchQuestion(search.parsed("worm"), 5)
    return timed.search(folder / "search.db", search.SearchSource(book.store, page_text), question, seconds)


def test_a_search_answers_when_its_time_is_over_and_goes_on_with_the_next(book: Book, tmp_path: Path) -> None:
    for number in range(1200):
        book.visit(f"p{number}", text_hash=b"%d" % number)
    left = []
    while not left or left[-1]:
        found, missing = asked(book, tmp_path, 0.0)
        # As long as frames are looked for, nobody knows what has to be read again.
        assert found.total == 1200 - missing or (found.total, missing) == (1200, 1)
        left.append(missing)
    # Each time something is done, however little time there is.
    assert len(left) > 1 and left == sorted(set(left), reverse=True)
    assert asked(book, tmp_path, 60.0)[0].total == 1200


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("", []),
        ("nothing here", [("nothing here", False)]),
        ("a «hit» and «two»", [("a ", False), ("hit", True), (" and ", False), ("two", True)]),
        ("«all»", [("all", True)]),
    ],
)
def test_a_snippet_in_pieces(marked: str, expected: list[tuple[str, bool]]) -> None:
    assert pieces(marked) == expected
