"""Proxies: taken in turn, for this crawl only, and their passwords kept nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.flow.crawling import Home, page

from inchworm.errors import WrongUse
from inchworm.testing import Hit, Page, Served, Site

LEAVES = [f"/p{number}" for number in range(5)]


def site_behind(hit: Hit) -> Page | str:
    """What a proxy is asked for is a whole URL."""
    path = hit.path.removeprefix("http://site.test")
    if path == "/":
        return page("home", *LEAVES)
    return page(path) if path in LEAVES else Page("", 404)


@contextmanager
def proxies(count: int) -> Iterator[list[Served]]:
    with Site({"*": site_behind}).serve() as first:
        if count == 1:
            yield [first]
            return
        with proxies(count - 1) as others:
            yield [first, *others]


def address(proxy: Served) -> str:
    return proxy.url("").rstrip("/")


def test_several_are_taken_in_turn(home: Home) -> None:
    with proxies(3) as ways:
        ended = home.crawl("http://site.test/", proxies=[address(way) for way in ways], workers=1)
    assert (ended.pages, ended.failed) == (6, 0)
    counts = [len(way.log) for way in ways]
    assert max(counts) - min(counts) <= 1
    assert {hit.path for way in ways for hit in way.log} >= {f"http://site.test{path}" for path in ["/", *LEAVES]}


def test_the_environment_may_name_them(home: Home) -> None:
    with proxies(1) as (way,):
        home.process(
            "crawl",
            "http://site.test/",
            "--delay",
            "0",
            CRAWLER_PROXIES_ENABLED="true",
            CRAWLER_PROXY_URLS=address(way),
        )
    assert way.log


def test_a_password_reaches_its_proxy_and_no_file(home: Home) -> None:
    with proxies(2) as (first, second):
        secret = address(first).replace("://", "://me:s3cret@")
        home.crawl("http://site.test/", proxies=[secret, address(second)], workers=1)
    assert all("proxy-authorization" in hit.headers for hit in first.log)
    assert not any("proxy-authorization" in hit.headers for hit in second.log)
    files = [path for path in home.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"s3cret" in path.read_bytes()]
    shown = address(first).replace("://", "://…@")
    assert home.app.crawls.settings_of(home.app.workspace.find(home.word))["proxies"] == [shown, address(second)]


def test_a_resume_does_not_go_out_without_the_proxy_that_had_a_password(home: Home) -> None:
    with proxies(1) as (way,):
        secret = address(way).replace("://", "://me:s3cret@")
        home.crawl("http://site.test/", proxies=[secret], workers=1, budget=2)
        with pytest.raises(WrongUse, match="proxy with a password"):
            home.resume()
        before = len(way.log)
        assert home.resume(proxies=[secret], budget=0).run_state == "completed"
        assert len(way.log) > before


def test_no_later_start_goes_out_without_the_proxy_that_the_crawl_was_made_with(home: Home) -> None:
    with proxies(1) as (way,):
        home.crawl("http://site.test/", proxies=[address(way)])
        before = len(way.log)
        assert home.crawl("http://site.test/").run == 1
        assert len(way.log) > before
        secret = address(way).replace("://", "://me:s3cret@")
        home.crawl("http://other.test/", proxies=[secret])
        with pytest.raises(WrongUse, match="proxy with a password"):
            home.crawl("http://other.test/")
        assert b"s3cret" not in (home.folder / "home.db").read_bytes()


@pytest.mark.parametrize("text", ["ftp://h:1", "http://", "http://h:99999", "socks5://u:s3cret@:1"])
def test_what_is_no_proxy_is_named(home: Home, text: str) -> None:
    with pytest.raises(WrongUse) as raised:
        home.crawl("http://site.test/", proxies=[text])
    assert "proxy" in raised.value.message
    assert "s3cret" not in raised.value.message


def test_names_of_browsers_in_turn_and_our_own_for_robots(home: Home) -> None:
    pages = {path: page(path) for path in LEAVES}
    with Site({"/": page("home", *LEAVES), **pages}).serve() as served:
        home.crawl(served.url("/"), rotate_user_agent=True)
    names = {hit.path: hit.headers["user-agent"] for hit in served.log}
    assert names["/robots.txt"].startswith("inchworm/")
    assert len({names[path] for path in ["/", *LEAVES]}) > 1
    assert all(names[path].startswith("Mozilla/5.0") for path in ["/", *LEAVES])
