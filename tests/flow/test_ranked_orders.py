"""Orders that go by rank: what promises most for a query, and what most likely changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page

from inchworm.app.read.checkpoints import Back
from inchworm.errors import WrongUse
from inchworm.testing import Served, Site, linked_site

Record = list[tuple[str, str]]
HomeMaker = Callable[[str], Home]


@pytest.fixture
def homes(tmp_path: Path) -> HomeMaker:
    return lambda name: Home(tmp_path / name)


def about(pages: int = 150) -> dict[str, str]:
    """A site where every seventh page is about gardens, and says so where it is linked."""
    site = dict(linked_site(pages))
    for number in range(7, pages, 7):
        path = f"/p{number}"
        site[path] = site[path].replace("<p>", "<p>A garden in spring. ", 1)
        site = {key: page.replace(f'href="{path}">', f'href="{path}">garden ') for key, page in site.items()}
    return site


def record(home: Home, run: int = 0) -> Record:
    return [(visit.canonical_url.partition("/p")[2], visit.outcome) for visit in home.app.pages.visits(home.word, run)]


def test_what_promises_most_comes_first(homes: HomeMaker) -> None:
    with Site(about()).serve() as served:
        breadth, best = homes("breadth"), homes("best")
        breadth.crawl(served.url("/"))
        summary = best.crawl(served.url("/"), query="garden")
        assert (summary.pages, summary.order) == (150, "exact")
    gardens = {str(number) for number in range(7, 150, 7)}

    def last(home: Home) -> int:
        return max(at for at, (path, _) in enumerate(record(home)) if path in gardens)

    assert sorted(record(best)) == sorted(record(breadth))
    assert last(best) < last(breadth) * 2 / 3


def test_a_url_that_waits_rises_with_every_good_page_that_links_to_it(homes: HomeMaker) -> None:
    """Of 120 pages that look alike from where they are found, those come first that the pages about gardens link to,
    though they were found last."""
    wanted = [f"/p{number}" for number in range(210, 220)]
    alike = [f"/p{number}" for number in range(100, 220)]
    gardens = [f"/garden{number}" for number in range(40)]
    pages = {"/": page("start", *alike, *gardens)}
    pages |= {path: page(f"nothing {path}") for path in alike}
    pages |= {path: page(f"a garden: garden after garden {path}", *wanted) for path in gardens}
    with Site(pages).serve() as served:
        one, other = homes("one"), homes("other")
        one.crawl(served.url("/"), query="garden", workers=1, sitemap=False)
        other.crawl(served.url("/"), query="garden", workers=16, sitemap=False)
    assert record(one) == record(other)
    order = [url.partition("/p")[2] for url in one.urls()]
    places = sorted(order.index(path.removeprefix("/p")) for path in wanted)
    assert places[-1] < len(gardens) + 64, "as soon as the votes of the first block of gardens are counted"


@pytest.mark.parametrize("workers", [1, 16])
@pytest.mark.parametrize("given", [{"query": "garden"}, {"order": "freshness"}], ids=["best", "freshness"])
def test_limits_are_exact(homes: HomeMaker, given: dict[str, str], workers: int) -> None:
    home = homes("home")
    with Site(about(60)).serve() as served:
        named = {"page_limit": 30, "workers": workers, "sitemap": False, **given}
        summary = home.crawl(served.url("/"), budget=12, **named)
        assert (summary.ended_by, summary.pages, asked(served)) == ("budget", 12, 12)
        summary = home.crawl(served.url("/"), budget=0, **named)
        assert (summary.run_state, summary.pages, asked(served)) == ("completed", 30, 30)


def asked(served: Served) -> int:
    """For how many pages the server was asked."""
    return sum("robots" not in hit.path for hit in served.log)


@pytest.mark.parametrize("given", [{"workers": 16}, {"budget": 37, "workers": 3}], ids=["16 workers", "sessions"])
def test_the_best_are_the_same_at_any_number_of_workers(homes: HomeMaker, given: dict[str, int]) -> None:
    with Site(about(), latency=(0.0, 0.01)).serve() as served:
        one, other = homes("one"), homes("other")
        one.crawl(served.url("/"), query="garden spring", workers=1)
        while other.crawl(served.url("/"), query="garden spring", **given).run_state != "completed":
            pass
    assert record(other) == record(one)


def test_the_best_of_the_news_are_the_same_however_a_run_is_cut(homes: HomeMaker) -> None:
    """A second run under a full page limit takes new pages first."""
    site = Site(about(100))
    with site.serve() as served:
        one, other = homes("one"), homes("other")
        named = {"query": "garden", "page_limit": 60, "sitemap": False}
        for home in (one, other):
            home.crawl(served.url("/"), **named)
        news = [f"/new{number}" for number in range(12)]
        site.pages |= {path: page(f"a garden that is new {path}") for path in news}
        for number in (0, 3, 5):
            path = f"/p{number}" if number else "/"
            site.pages[path] = str(site.pages[path]).replace("</ul>", _items(news[number : number + 4]) + "</ul>")
        one.crawl(served.url("/"), workers=1, **named)
        while other.crawl(served.url("/"), workers=16, budget=7, **named).run_state != "completed":
            pass
    assert record(one, 1) == record(other, 1)


def _items(paths: list[str]) -> str:
    return "".join(f'<li><a href="{path}">garden</a></li>' for path in paths)


def test_a_branch_that_goes_by_a_query_leaves_nothing_of_a_run_that_did_not(homes: HomeMaker) -> None:
    home = homes("branch")
    with Site(about()).serve() as served:
        home.crawl(served.url("/"), budget=60, sitemap=False)
        named = {"delay": 0, "allow_private": True, "budget": 0, "query": "garden"}
        summary = asyncio.run(
            home.app.sessions.work(home.app.plan.continue_from(home.word, Back(None, True, True), named))
        )
    assert (summary.run_state, summary.pending, summary.pages) == ("completed", 0, 150)
    with home.app.workspace.reading(home.app.workspace.find(home.word)) as store:
        assert [run.settings["order"] for run in store.runs.list()] == ["breadth", "best"]
    assert not home.faults()


def test_best_goes_by_a_query(homes: HomeMaker) -> None:
    with pytest.raises(WrongUse, match="Best for what"):
        homes("x").crawl("http://127.0.0.1:9/", order="best")
    with pytest.raises(WrongUse):
        homes("y").crawl("http://127.0.0.1:9/", query="?!")


CHANGING = ("/p60", "/p61", "/p62", "/p63")


def change(site: Site, number: int) -> None:
    for path in CHANGING:
        before = site.pages[path].partition("<p>News")[0].partition("</main>")[0]
        site.pages[path] = f"{before}<p>News of day {number}, and more to come.</p></main>"


def freshness_runs(home: Home, site: Site, url: str, workers: int = 5) -> list[int]:
    """How many changed pages each of some runs found that may ask for a tenth of the pages."""
    home.crawl(url)
    found = []
    for number in range(1, 13):
        change(site, number)
        summary = home.recrawl(order="freshness", budget=12, workers=workers)
        found.append(summary.modified)
    return found


def test_what_changes_often_is_asked_for_first(homes: HomeMaker) -> None:
    site = Site(dict(linked_site(100)), validators=True)
    with site.serve() as served:
        found = freshness_runs(homes("home"), site, served.url("/"))
    assert max(found[-3:]) == len(CHANGING), found


def test_freshness_is_the_same_at_any_number_of_workers(homes: HomeMaker) -> None:
    records = []
    for workers in (1, 16):
        site = Site(dict(linked_site(60)), validators=True, latency=(0.0, 0.01))
        home = homes(f"with-{workers}")
        with site.serve() as served:
            home.crawl(served.url("/"))
            site.pages["/p7"] = site.pages["/p7"].replace("</main>", '<p>News.</p><a href="/new">new</a></main>')
            site.pages["/new"] = "<title>New</title>" + "<p>Something that was not there before.</p>" * 3
            home.recrawl(order="freshness", workers=workers)
        records.append(record(home, 1))
    assert records[0] == records[1]
    assert len(records[0]) == 61


def test_a_fifth_of_the_requests_is_for_new_urls(homes: HomeMaker) -> None:
    site, home = Site(dict(linked_site(200)), validators=True), homes("home")
    with site.serve() as served:
        home.crawl(served.url("/"))
        links = "".join(f'<a href="/new/{number}">n</a>' for number in range(40))
        site.pages["/"] = f"{site.pages['/']}<p>So much that is new.</p>{links}"
        for number in range(40):
            site.pages[f"/new/{number}"] = f"<title>New</title><p>{'Nobody has seen this before: ' * 3}{number}</p>"
        summary = home.recrawl(order="freshness", budget=150)
    assert summary.new >= 150 / 5 - 10


def test_a_sitemap_that_announces_a_change_is_believed_first(homes: HomeMaker) -> None:
    site, home = Site(dict(linked_site(100)), validators=True), homes("home")
    with site.serve() as served:
        home.crawl(served.url("/"))
        site.pages["/p88"] = site.pages["/p88"].replace("</main>", "<p>News of today.</p></main>")
        entry = f"<url><loc>{served.url('/p88')}</loc><lastmod>{tomorrow()}</lastmod></url>"
        site.pages["/sitemap.xml"] = f"<urlset>{entry}</urlset>"
        summary = home.recrawl(order="freshness", budget=8)
    assert summary.modified == 1


def tomorrow() -> str:
    return (datetime.now(UTC) + timedelta(hours=12)).date().isoformat()


def test_the_budget_of_one_run_is_not_that_of_the_next(homes: HomeMaker) -> None:
    home = homes("home")
    with Site(dict(linked_site(30)), validators=True).serve() as served:
        home.crawl(served.url("/"))
        assert home.recrawl(budget=5).ended_by == "budget"
        assert home.recrawl().ended_by == "finished"
