"""Stopping when the pages that come bring too little."""

from __future__ import annotations

import pytest
from tests.flow.crawling import Home, page

from inchworm.testing import Site

TEXT = "This is a page of ordinary length that says something which no other page says, namely its own number: "


def with_twins(pages: int, twins: int) -> dict[str, str]:
    """Pages that link to the next one; from a certain one on all have the same text."""
    site = {}
    for number in range(pages + twins):
        text = TEXT + str(min(number, pages))
        path = "/" if not number else f"/{number}"
        site[path] = f"<title>One</title><p>{text}</p><a href='/{number + 1}'>next</a>"
    return site


def test_a_session_stops_when_nothing_new_comes_any_more(home: Home) -> None:
    with Site(with_twins(30, 200)).serve() as served:
        summary = home.crawl(served.url("/"), stop_below=0.2, stop_window=10)
        assert (summary.ended_by, summary.run_state, summary.session_state) == ("quality", "paused", "completed")
        assert summary.pages == 31
        assert 8 <= summary.duplicates <= 20
        summary = home.crawl(served.url("/"))
        assert (summary.ended_by, summary.pages, summary.duplicates) == ("finished", 31, 199)


def test_a_session_goes_on_while_new_pages_come(home: Home) -> None:
    with Site(with_twins(60, 1)).serve() as served:
        assert home.crawl(served.url("/"), stop_below=0.5, stop_window=10).ended_by == "finished"


def test_with_a_query_pages_that_match_count(home: Home) -> None:
    site = with_twins(100, 1)
    for number in range(20):
        path = "/" if not number else f"/{number}"
        site[path] = site[path].replace("ordinary", "wonderful")
    with Site(site).serve() as served:
        summary = home.crawl(served.url("/"), query="wonderful", stop_below=0.3, stop_window=10)
        assert summary.ended_by == "quality"
        assert 20 <= summary.pages < 60


@pytest.mark.parametrize("workers", [1, 8, 40])
def test_it_stops_at_the_same_page_at_any_number_of_workers(home: Home, workers: int) -> None:
    """Nothing is asked for that would come after the end."""
    same = "<title>One</title><p>Whatever the number, this is what it says.</p>"
    leaves = [f"/{number}" for number in range(60)]
    with Site({"/": page("home", *leaves), **dict.fromkeys(leaves, same)}, latency=(0, 0.01)).serve() as served:
        summary = home.crawl(served.url("/"), stop_below=0.2, stop_window=10, sitemap=False, workers=workers)
        assert (summary.ended_by, summary.fetched, summary.pages, summary.duplicates) == ("quality", 11, 2, 9)
        assert len(served.paths()) == 12, "and the robots.txt"
        assert home.crawl(served.url("/")).run_state == "completed"


def test_a_run_with_nothing_left_is_complete_however_little_the_last_pages_brought(home: Home) -> None:
    same = "<title>One</title><p>Whatever the number, this is what it says.</p>"
    leaves = [f"/{number}" for number in range(10)]
    with Site({"/": page("home", *leaves), **dict.fromkeys(leaves, same)}).serve() as served:
        summary = home.crawl(served.url("/"), stop_below=0.2, stop_window=10, sitemap=False, workers=8)
    assert (summary.ended_by, summary.run_state, summary.pending) == ("finished", "completed", 0)
