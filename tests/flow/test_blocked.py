"""A bot wall is no broken page: it has a kind of its own, slows its host down, and says nothing of what changed."""

from __future__ import annotations

import pytest
from tests.flow.crawling import Home, page

from inchworm.testing import Page, Site

CHALLENGE = Page("<title>Just a moment...</title><script>window._cf_chl_opt={}</script>", 403)
CAPTCHA = "<title>Are you a robot?</title><div class=g-recaptcha></div><p>Please confirm."


@pytest.mark.parametrize("wall", [CHALLENGE, CAPTCHA, Page("", 429, {"x-vercel-mitigated": "challenge"})])
def test_it_is_a_failure_of_its_own_and_can_be_opened_again(home: Home, wall: Page | str) -> None:
    pages = {"/": page("home", "/a", "/b"), "/a": page("a"), "/b": wall}
    with Site(pages).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.failed, ended.blocked, ended.word) == (2, 1, 1, "completed_with_errors")
        assert home.outcomes()[-1] == ("/b", "blocked")
        assert home.status()["blocked"] == 1
        assert "1 page by a challenge" in home.cli("status", home.word).stdout
        pages["/b"] = page("b")
        assert home.app.queue.retry(home.word, kind="blocked") == 1
        assert home.resume().pages == 3


@pytest.mark.parametrize("wall", [CHALLENGE, CAPTCHA])
def test_it_is_neither_a_change_nor_a_deletion(home: Home, wall: Page | str) -> None:
    pages = {"/": page("home", "/a", "/b"), "/a": page("a"), "/b": page("b")}
    with Site(pages, validators=True).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        before, pages["/b"] = pages["/b"], wall
        ended = home.crawl(served.url("/"))
        assert (ended.new, ended.modified, ended.deleted, ended.unchanged, ended.unknown) == (0, 0, 0, 2, 1)
        pages["/b"] = before
        ended = home.crawl(served.url("/"))
        assert (ended.modified, ended.deleted, ended.unchanged) == (0, 0, 3)


def test_it_slows_its_host_down(home: Home) -> None:
    """As a server that asks for less: later requests keep a distance that the first ones did not."""
    leaves = [f"/p{number}" for number in range(8)]
    pages = {"/": page("home", *leaves), **{path: page(path) for path in leaves}, "/p2": CHALLENGE}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False, workers=1)
        times = {hit.path: hit.time for hit in served.log}
    assert times["/p5"] - times["/p3"] > 0.8
