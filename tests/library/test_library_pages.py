"""Pages from the archive: what they hold, their earlier versions, and how long they can be asked."""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import page as made

from inchworm import Crawl, Page
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.sink.columns import KNOWN
from inchworm.testing import Page as Answer
from inchworm.testing import Served, Site

Pages = dict[str, Any]


@pytest.fixture
def pages() -> Pages:
    return {
        "/": made("home", "/a", "/b", "/c"),
        "/a": made("a"),
        "/b": made("b"),
        "/c": made("c"),
    }


@pytest.fixture
def served(pages: Pages) -> Iterator[Served]:
    with Site(pages, validators=True).serve() as serving:
        yield serving


@pytest.fixture
def crawl(tmp_path: Path, served: Served) -> Crawl:
    return Crawl(served.url("/"), home=tmp_path / "home", delay=0, sitemap=False)


def names(found: Iterator[Page]) -> dict[str, str | None]:
    return {page.url.rpartition("/")[2]: page.change for page in found}


def open_files() -> set[str]:
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(link.readlink()))
    return found


def of_home(crawl_home: Path) -> set[str]:
    return {name for name in open_files() if name.startswith(str(crawl_home))}


# What they hold


def test_pages_come_from_the_archive_with_all_that_they_hold(crawl: Crawl, served: Served, pages: Pages) -> None:
    pages["/a"] = made(
        "a", head='<script type="application/ld+json">{"@type": "Thing"}</script>', body="<p>A <b>bold</b> word."
    )
    crawl.run_sync()
    asked = len(served.log)
    found = {page.url: page for page in crawl.pages()}
    assert list(found) == [served.url(path) for path in ("/", "/a", "/b", "/c")]
    page = found[served.url("/a")]
    assert (page.title, page.change, page.previous, page.status, page.outcome) == ("a", None, None, 200, "page")
    assert page.text.startswith("This is what a says in sentence 0.")
    assert "**bold**" in page.markdown
    assert "<b>bold</b>" in page.html
    assert page.raw_html == pages["/a"]
    assert page.data == {"json_ld": [{"@type": "Thing"}]}
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert len(served.log) == asked, "nothing is asked for again"


def test_a_page_has_the_names_of_an_export(crawl: Crawl, pages: Pages) -> None:
    pages["/b"] = pages["/a"]
    crawl.run_sync()
    for page in crawl.pages():
        for column in KNOWN:
            value = column.get(page)
            if column.name == "fetched_at":
                value = datetime.fromtimestamp(value / 1000, UTC)
            own: Any = page
            for name in column.name.split("."):
                own = getattr(own, name)
            assert own == value or (column.name == "meta" and dict(own) == value), column.name
    copy = crawl.page(next(iter(crawl.pages())).url + "b")
    assert copy.outcome == "duplicate"
    assert (copy.alternate_of or "").endswith("/a")
    assert [page.title for page in crawl.pages(unique=True)] == ["home", "a", "c"]


def test_elements_are_picked_by_selectors(crawl: Crawl, served: Served, pages: Pages) -> None:
    rows = "".join(
        f"<tr class='row odd'><td>Worm {n}</td><td data-price={n}.50><a href='w{n}?x'>  buy\n it</a></td>"
        for n in (1, 2)
    )
    pages["/a"] = made("a", body=f"<table>{rows}</table><img src='/i.png' alt='an image'>")
    crawl.run_sync()
    page = crawl.page(served.url("/a"))
    found = page.css("tr.row")
    assert [[cell.text for cell in row.css("td")] for row in found] == [["Worm 1", "buy it"], ["Worm 2", "buy it"]]
    assert (found[0].tag, found[0].attributes) == ("tr", {"class": "row odd"})
    cell = found[1].css("td[data-price]")[0]
    assert (cell.get("data-price"), cell.get("absent"), cell.get("absent", "?")) == ("2.50", "", "?")
    assert cell.css("a")[0].url == served.url("/w2?x")
    assert cell.css("a")[0].html == '<a href="w2?x">  buy\n it</a>'
    assert [one.url for one in page.css("img, p")][-1] == served.url("/i.png")
    assert page.css("video") == []


def test_xpath_finds_elements_texts_and_numbers(crawl: Crawl, served: Served, pages: Pages) -> None:
    pages["/a"] = made("a", body="<ul><li><a href='one'>1 &lt; 2</a><li>two</ul>")
    crawl.run_sync()
    page = crawl.page(served.url("/a"))
    first, second = page.xpath("//li")[:2]
    assert (first.tag, first.text, second.text) == ("li", "1 < 2", "two")
    assert [one.text for one in first.xpath("./a")] == ["1 < 2"]
    assert [(one.tag, one.text, one.url) for one in page.xpath("//li/a/@href")] == [("", "one", served.url("/one"))]
    words = page.xpath("//li/a/text()")[0]
    assert (words.text, words.html, words.attributes, words.css("a"), words.xpath(".")) == (
        "1 < 2",
        "1 &lt; 2",
        {},
        [],
        [],
    )
    assert [one.text for one in page.xpath("count(//main//li)")] == ["2"]
    assert [one.text for one in page.xpath("1 = 1")] == ["true"]


@pytest.mark.parametrize(
    ("method", "wrong"), [("css", "p["), ("css", "::nonsense"), ("xpath", "//p["), ("xpath", "$x")]
)
def test_a_wrong_selector_is_a_clear_error(crawl: Crawl, method: str, wrong: str) -> None:
    crawl.run_sync()
    page = next(iter(crawl.pages()))
    with pytest.raises(WrongUse) as raised:
        getattr(page, method)(wrong)
    assert repr(wrong) in raised.value.message
    assert raised.value.hint


def test_what_is_no_html_has_no_elements(crawl: Crawl, served: Served, pages: Pages) -> None:
    pages["/a"] = Answer(b"%PDF-1.4 nothing", headers={"Content-Type": "application/pdf"})
    crawl.run_sync()
    assert crawl.page(served.url("/a")).css("*") == []


# Earlier versions


def changed_site(pages: Pages) -> None:
    pages["/"] = made("home", "/a", "/b", "/d")
    pages["/a"] = made("a", body="<p>A sentence that was not there before.</p>")
    del pages["/c"]
    pages["/d"] = made("d")


def test_a_page_knows_what_it_was_before(crawl: Crawl, served: Served, pages: Pages) -> None:
    crawl.run_sync()
    changed_site(pages)
    crawl.run_sync()
    found = {page.title: page for page in crawl.pages()}
    assert {title: page.change for title, page in found.items()} == {
        "home": "unchanged",
        "a": "modified",
        "b": "unchanged",
        "d": "new",
    }
    previous = found["a"].previous
    assert previous is not None
    assert (previous.run, previous.previous) == (0, None)
    assert "not there before" not in previous.text
    added = [line for line in found["a"].diff() if line.startswith("+") and line.strip("+ now")]
    assert added == ["+A sentence that was not there before."]
    assert found["d"].previous is None
    assert all(line.startswith(("+", "@@", "---")) for line in found["d"].diff())
    unchanged = found["b"]
    assert unchanged.status == 304, "which has no body of its own"
    assert unchanged.text == (unchanged.previous and unchanged.previous.text) != ""
    assert unchanged.diff() == []


def test_a_deleted_page_has_nothing_but_what_it_was(crawl: Crawl, served: Served, pages: Pages) -> None:
    crawl.run_sync()
    changed_site(pages)
    crawl.run_sync()
    assert names(crawl.pages(only="deleted")) == {"c": "deleted"}
    gone = next(iter(crawl.pages(only=["deleted"])))
    assert (gone.is_gone, gone.text, gone.markdown, gone.html, gone.raw_html, gone.links) == (True, "", "", "", "", [])
    assert (gone.data, gone.css("*"), gone.lines()) == ({}, [], [])
    assert (gone.status, gone.body) == (404, b"not found"), "as it was served"
    assert gone.previous is not None
    assert "This is what c says" in gone.previous.text
    assert any("-This is what c says" in line for line in gone.diff())
    assert "c" not in names(crawl.pages())
    pages["/c"] = made("c")
    pages["/"] = made("home", "/a", "/b", "/c", "/d")
    crawl.run_sync()
    back = crawl.page(served.url("/c"))
    assert back.change == "new"
    assert "back" in (back.note or "")
    assert back.previous is not None
    assert back.previous.run == 0


def test_since_tells_what_a_page_was_then(crawl: Crawl, served: Served, pages: Pages) -> None:
    crawl.run_sync()
    for version in (1, 2, 3):
        pages["/a"] = made("a", body=f"<p>Version {version} of it.</p>")
        crawl.run_sync()
    (page,) = crawl.pages(since=1)
    assert page.run == 3
    assert page.previous is not None
    assert page.previous.run == 1
    assert [line for line in page.diff() if line.startswith(("-V", "+V"))] == [
        "-Version 1 of it.",
        "+Version 3 of it.",
    ]
    assert crawl.page(page.url, run=2).previous.run == 1
    assert names(crawl.pages(since="1", only=("new", "deleted"))) == {}
    assert [one.url for one in crawl.pages(run=3, only="modified")] == [page.url]
    tomorrow = datetime.now(UTC).date() + timedelta(days=2)
    assert list(crawl.pages(since=tomorrow)) == []
    assert len(list(crawl.pages(since=datetime.now(UTC) - timedelta(days=1)))) == 4


def test_a_branch_has_the_versions_before_its_line(crawl: Crawl, served: Served, pages: Pages) -> None:
    crawl.run_sync()
    pages["/a"] = made("a", body="<p>Version 1 of it.</p>")
    Crawl(served.url("/"), home=crawl._home, delay=0, sitemap=False, budget=1).run_sync()
    branch = crawl.branch(max_depth=1)
    branch.run_sync()
    page = branch.page(served.url("/a"), run=2)
    assert page.change == "modified"
    assert page.previous is not None
    assert (page.previous.run, "Version 1" in page.previous.text) == (0, False)


def test_what_a_cancelled_run_saw_is_no_version_of_it(crawl: Crawl, served: Served, pages: Pages) -> None:
    crawl.run_sync()
    pages["/a"] = made("a", body="<p>Version 1 of it.</p>")
    limited = Crawl(served.url("/"), home=crawl._home, delay=0, sitemap=False, budget=3)
    limited.run_sync()
    assert limited.cancel() == "cancelled"
    crawl.run_sync()
    page = crawl.page(served.url("/a"))
    assert (page.run, page.change) == (2, "modified")
    assert page.previous is not None
    assert page.previous.run == 0


# One page


def test_one_page_by_its_address(crawl: Crawl, served: Served, pages: Pages) -> None:
    pages["/"] = made("home", "/a", "/b", "/c", "/broken", "http://elsewhere.example/")
    pages["/broken"] = Answer("no", 500)
    crawl = Crawl(served.url("/"), home=crawl._home, delay=0, sitemap=False, max_retries=0)
    crawl.run_sync()
    assert crawl.page(served.url("/a#part")).title == "a", "whatever form of its address"
    broken = crawl.page(served.url("/broken"))
    assert (broken.is_gone, broken.failure, broken.text) == (True, "http_5xx", "")
    for unknown in ("http://elsewhere.example/", served.url("/nowhere")):
        with pytest.raises(Unknown, match="has no page"):
            crawl.page(unknown)
    with pytest.raises(Unknown, match="no run 7"):
        crawl.page(served.url("/a"), run=7)
    with pytest.raises(WrongUse, match="not a web address"):
        crawl.page("nonsense")
    pages["/a"] = Answer("no", 500)
    crawl.run_sync()
    assert crawl.page(served.url("/a")).text, "what it was when it was last there"
    assert crawl.page(served.url("/a"), run=1).failure == "http_5xx"


# How long they can be asked


def test_pages_can_be_kept(crawl: Crawl, served: Served) -> None:
    """While others are taken, and when nothing is open any more."""
    crawl.run_sync()
    crawl.run_sync()
    kept = []
    for page in crawl.pages():
        kept.append(page)
        assert kept[0].text
    gc.collect()
    assert of_home(Path(str(crawl._home))) == set()
    assert [page.text.split()[3] for page in kept] == ["home", "a", "b", "c"]
    assert all(page.previous and page.previous.text == page.text for page in kept)
    assert {page.headers["etag"] for page in kept} == {page.etag for page in kept}
    assert of_home(Path(str(crawl._home))) == set()


def test_pages_can_be_asked_in_another_thread(crawl: Crawl) -> None:
    crawl.run_sync()
    texts: list[str] = []
    iterator = crawl.pages()
    page = next(iterator)
    for one in (page, next(iterator)):
        thread = threading.Thread(target=lambda one=one: texts.append(one.text))
        thread.start()
        thread.join()
    assert len(list(filter(None, texts))) == 2


def test_a_page_of_a_crawl_that_was_deleted_is_lost(crawl: Crawl) -> None:
    crawl.run_sync()
    page, other = list(crawl.pages())[:2]
    assert page.text
    crawl.delete()
    assert page.text, "what was read stays"
    assert (other.is_lost, other.text, other.body, dict(other.headers), other.previous) == (True, "", b"", {}, None)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_nothing_stays_open_when_an_iterator_is_dropped(crawl: Crawl, taken: int) -> None:
    crawl.run_sync()
    home = Path(str(crawl._home))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iterator = crawl.pages(unique=True)
        kept = [next(iterator) for _ in range(taken)]
        assert bool(of_home(home)) == bool(taken)
        del iterator
        gc.collect()
    assert of_home(home) == set()
    assert all(page.text for page in kept)


def test_what_is_wrong_is_said_before_the_first_page(crawl: Crawl) -> None:
    with pytest.raises(Unknown, match="has not been crawled"):
        crawl.pages()
    crawl.run_sync()
    with pytest.raises(WrongUse, match="no change 'moddified'"):
        crawl.pages(only="moddified")
    with pytest.raises(Unknown, match="no run 5"):
        crawl.pages(run=5)
    with pytest.raises(WrongUse, match="is no run and no date"):
        crawl.pages(since="whenever")
    with pytest.raises(WrongUse, match="do not go together"):
        crawl.pages(since=0, run=0)
    with pytest.raises(TypeError, match="no argument 'colums'"):
        crawl.to_arrow(colums="url")
    with pytest.raises(TypeError, match="no argument 'columns'"):
        crawl.pages(columns="url")
    Crawl(*crawl._start.seeds, home=crawl._home, delay=0, sitemap=False, budget=1).run_sync()
    with pytest.raises(NotNow, match="is not over"):
        crawl.pages(since=1)


# What a page says of itself


def test_the_title_of_a_page_is_without_its_sites_name_wherever_people_see_it(
    crawl: Crawl, served: Served, pages: Pages, tmp_path: Path
) -> None:
    pages["/a"] = "<title>How worms walk | Soil</title><main><h1>How worms walk</h1><p>They arch their back.</p></main>"
    crawl.run_sync()
    url = served.url("/a")
    page = crawl.page(url)
    assert (page.title, page.full_title) == ("How worms walk", "How worms walk | Soil")
    told = [{"title": page.title, "full_title": page.full_title}]
    rows = crawl.to_arrow(columns="url,title,full_title").to_pylist()
    assert [{name: row[name] for name in ("title", "full_title")} for row in rows if row["url"] == url] == told
    visits = [visit for visit in crawl.visits() if visit["url"] == url]
    assert [{name: visit[name] for name in ("title", "full_title")} for visit in visits] == told
    crawl.export("markdown", str(tmp_path / "pages"))
    (file,) = (tmp_path / "pages").rglob("a.md")
    assert 'title: "How worms walk"\n' in file.read_text()


def test_a_title_that_changed_for_the_sites_name_alone_is_a_change(crawl: Crawl, served: Served, pages: Pages) -> None:
    body = "<title>How worms walk | {}</title><main><h1>How worms walk</h1><p>They arch their back.</p></main>"
    pages["/a"] = body.format("Soil")
    crawl.run_sync()
    pages["/a"] = body.format("Earth")
    crawl.run_sync()
    page = crawl.page(served.url("/a"))
    assert page.change == "modified"
    assert {"-title: How worms walk | Soil", "+title: How worms walk | Earth"} <= set(page.diff())
