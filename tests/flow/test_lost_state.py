"""The state of a known crawl is missing: that is said, with the way to start again, and nothing begins by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flow.crawling import Home, chain

from inchworm.app import Start
from inchworm.errors import Broken, NotNow
from inchworm.testing import Served, Site

LOST = ["a file", "an empty file", "the folder"]


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(6)).serve() as served:
        yield served


@pytest.fixture
def crawled(home: Home, served: Served) -> Home:
    home.crawl(served.url("/c0"), scope="host", budget=3)
    return home


def folder_of(home: Home) -> Path:
    return home.app.workspace.place(home.app.workspace.find(home.word)).folder


def lose(home: Home, what: str) -> None:
    folder = folder_of(home)
    if what == "the folder":
        shutil.rmtree(folder)
        return
    shutil.rmtree(folder / "archive")
    for path in folder.glob("crawl.db*"):
        path.unlink()
    if what == "an empty file":
        (folder / "crawl.db").touch()


@pytest.mark.parametrize("what", LOST)
def test_a_crawl_whose_record_is_gone_says_so_and_does_not_begin_anew(crawled: Home, served: Served, what: str) -> None:
    lose(crawled, what)
    asked = len(served.log)
    for command in (("crawl", served.url("/c0")), ("resume",), ("status",), ("runs",), ("recrawl",), ("export",)):
        word = () if command[0] == "crawl" else (crawled.word,)
        more = ("--format", "urls") if command[0] == "export" else ()
        said = crawled.cli(*command, *word, *more, code=1).stderr
        assert "is gone" in said and "crawl.db" in said
        assert f"inchworm crawl {served.url('/c0')} --fresh" in said
    assert len(served.log) == asked
    assert "is gone" in crawled.cli("doctor", code=1).stdout
    assert "is gone" in crawled.cli("list").stdout
    if what == "the folder":
        assert not folder_of(crawled).exists(), "looking makes nothing"


@pytest.mark.parametrize("what", LOST)
def test_it_starts_again_from_its_seeds_when_that_is_wanted(crawled: Home, served: Served, what: str) -> None:
    lose(crawled, what)
    ended = crawled.crawl(served.url("/c0"), fresh=True)
    assert (ended.run, ended.run_state, ended.pages) == (0, "completed", 6)
    assert crawled.crawl(served.url("/c0")).run == 1


def test_an_archive_without_its_record_is_never_swept_away(crawled: Home, served: Served) -> None:
    folder = folder_of(crawled)
    for path in folder.glob("crawl.db*"):
        path.unlink()
    archive = {path: path.read_bytes() for path in (folder / "archive").iterdir()}
    for fresh in (False, True):
        with pytest.raises(Broken, match="missing or empty"):
            crawled.crawl(served.url("/c0"), fresh=fresh)
    assert {path: path.read_bytes() for path in (folder / "archive").iterdir()} == archive


def test_it_can_be_deleted(crawled: Home) -> None:
    lose(crawled, "the folder")
    crawled.cli("delete", crawled.word, "--yes")
    assert crawled.app.workspace.crawls.all() == []


def test_an_archive_that_is_gone_is_told_and_the_crawl_goes_on(crawled: Home, served: Served) -> None:
    shutil.rmtree(folder_of(crawled) / "archive")
    assert "missing" in crawled.cli("status", crawled.word).stdout
    said = crawled.cli("crawl", served.url("/c0"), "--delay", "0").stderr
    assert "ATTENTION: 1 file of the archive is missing" in said and "--fresh" in said
    assert crawled.status()["run_state"] == "completed"
    assert "has lost" in crawled.cli("doctor", code=1).stdout
    again = crawled.app.crawls.status(crawled.app.workspace.find(crawled.word)).lost_files
    assert len(again) == 1


def test_one_that_never_started_is_no_loss(home: Home) -> None:
    crawl = home.app.plan.find_or_make(Start(("http://127.0.0.1:9/",)))
    with pytest.raises(NotNow, match="has not started yet"):
        home.app.crawls.status(crawl)
