"""The line: the runs that later ones build on, and branches beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, page, path_of
from tests.flow.test_branches import branch, two_folders
from tests.flow.test_checkpoints import checkpoints, go_on, plain_site

from inchworm.archive import reader
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.testing import Served, Site


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(plain_site(40)).serve() as served:
        yield served


@pytest.fixture
def crawled(home: Home, served: Served) -> Home:
    """A crawl whose first run is complete."""
    home.crawl(served.url("/"), checkpoint_every=10)
    return home


def parents(home: Home) -> list[int | None]:
    return [one.parent for one in home.runs()]


def on_line(home: Home) -> list[int]:
    return [one.run for one in home.runs() if one.on_line]


def state_of(home: Home, number: int) -> str:
    return str(home.runs()[number].state)


def settings_of(home: Home, number: int) -> dict[str, Any]:
    with home.app.workspace.reading(home.app.workspace.find(home.word)) as store:
        return dict(home.app.workspace.run_of(home.app.workspace.find(home.word), store, number).settings)


def changes_of(home: Home, run: int) -> dict[str, str]:
    return {path_of(one["url"]): one["change"] for one in home.record(run) if one["change"]}


# A branch is beside the line


def test_a_branch_does_not_take_over_the_crawl(crawled: Home, served: Served) -> None:
    assert branch(crawled, 0, page_limit=12).pages == 12
    again = crawled.crawl(served.url("/"))
    assert (again.run, again.parent, again.pages) == (2, 0, 40)
    assert (again.new, again.modified, again.unknown) == (0, 0, 0)
    assert settings_of(crawled, 2) == settings_of(crawled, 0)
    assert on_line(crawled) == [0, 2]


def test_what_a_branch_saw_is_news_to_the_line(home: Home) -> None:
    site = Site(two_folders())
    with site.serve() as served:
        home.crawl(served.url("/a/"), checkpoint_every=4, sitemap=False)
        site.pages["/a/30"] = page("a 30, as the branch saw it")
        site.pages["/a/39"] = page("a 39, as both saw it")
        branch(home, 2, scope="host")
        site.pages["/a/30"] = page("a 30")
        site.pages["/a/0"] = page("a 0", "/a/1", "/a/2", "/a/3", "/b/0", "/a/fresh")
        site.pages["/a/fresh"] = page("fresh")
        home.crawl(served.url("/a/"))
    found = changes_of(home, 2)
    assert found["/a/39"] == "modified", "run 0 had the old one"
    assert found["/a/fresh"] == "new"
    assert not any(path.startswith("/b/") for path in found), "only the branch knows those"
    assert home.runs()[2].unknown == 0


def test_the_open_run_of_the_line_goes_on_when_the_branch_is_complete(home: Home, served: Served) -> None:
    home.crawl(served.url("/"), budget=15)
    assert branch(home, exclude=("*p39",), budget=0).run_state == "completed"
    assert home.status()["run"] == 0
    ended = home.crawl(served.url("/"))
    assert (ended.run, ended.run_state, ended.pages) == (0, "completed", 40)
    assert home.crawl(served.url("/")).parent == 0


def test_a_branch_that_is_open_is_resumed_and_it_is_said(crawled: Home, served: Served) -> None:
    branch(crawled, 0, page_limit=30, budget=3)
    assert (crawled.status()["run"], crawled.status()["on_line"], crawled.status()["line_end"]) == (1, False, 0)
    assert "later runs do not build on it but on run 0" in crawled.cli("status", crawled.word).stdout
    said = crawled.cli("crawl", served.url("/"), "--delay", "0", "--allow-private", "--budget", "2").stderr
    assert "Resuming" in said and "run 1" in said
    assert "It is a branch of run 0: later runs do not build on it." in said
    said = crawled.cli("crawl", served.url("/"), "--delay", "0", "--allow-private").stderr
    assert state_of(crawled, 1) == "completed"
    assert "--make-line 1" in said and "compare" in said
    said = crawled.cli("crawl", served.url("/"), "--delay", "0", "--allow-private").stderr
    assert "what changed since run 0" in said
    assert parents(crawled) == [None, None, 0]


def test_a_branch_that_was_left_open_keeps_nobody_from_crawling_again(crawled: Home) -> None:
    branch(crawled, 0, page_limit=30, budget=3)
    again = crawled.recrawl()
    assert (again.run, again.parent) == (2, 0)
    assert (state_of(crawled, 1), crawled.status()["run"]) == ("paused", 2)
    pause = checkpoints(crawled, "pause")[-1][0]
    assert go_on(crawled, pause).run == 1, "it can still go on from its last checkpoint"
    assert state_of(crawled, 1) == "completed"


def test_starting_over_ends_everything_that_is_open(home: Home, served: Served) -> None:
    home.crawl(served.url("/"), budget=15)
    branch(home, exclude=("*p39",), budget=3)
    assert home.crawl(served.url("/"), fresh=True, budget=0).run == 2
    assert [state_of(home, number) for number in range(3)] == ["cancelled", "cancelled", "completed"]
    assert {one["run"] for one in home.checkpoints() if one["checkpoint_type"] == "pause"} == {0, 1}


def test_whoever_repeats_a_crawl_goes_on_with_the_line(crawled: Home) -> None:
    branch(crawled, 0, page_limit=30, budget=3)
    told = crawled.process("repeat", crawled.word, "--delay", "0", "--allow-private")
    assert "since run 0" in told.stdout + told.stderr
    assert (parents(crawled)[2], state_of(crawled, 1), state_of(crawled, 2)) == (0, "paused", "completed")


def test_what_is_meant_when_no_run_is_named(crawled: Home, tmp_path: Path) -> None:
    branch(crawled, 0, page_limit=12)
    assert crawled.status()["run"] == 0
    assert crawled.urls() == crawled.urls(0) != crawled.urls(1)
    assert crawled.app.changes.compare(crawled.word) == crawled.app.changes.compare(crawled.word, 0, 1), (
        "it builds on no other"
    )
    out = tmp_path / "branch.warc.gz"
    crawled.cli("export", crawled.word, "--format", "warc", "--run", "1", "-o", str(out))
    assert {visit["url"] for visit in crawled.record(1)} <= {
        record.headers.get("warc-target-uri") for record in reader.records(out)
    }


def test_a_branch_and_a_later_run_of_the_line_are_compared_by_what_they_hold(home: Home) -> None:
    site = Site(plain_site(20))
    with site.serve() as served:
        home.crawl(served.url("/"), checkpoint_every=5)
        site.pages["/p19"] = page("p19, only while the branch ran")
        branch(home, 1)
        site.pages["/p19"] = plain_site(20)["/p19"]
        home.crawl(served.url("/"))
        found = home.app.changes.compare(home.word, 1, 2)
        last = served.url("/p19")
    assert found.modified_documents == [last]
    assert home.app.changes.compare(home.word, 0, 2).modified_documents == []


# Making a run the line


def test_later_runs_build_on_a_branch_that_was_made_the_line(crawled: Home, served: Served) -> None:
    branch(crawled, 0, exclude=("*p3?",))
    told = crawled.cli("runs", crawled.word, "--make-line", "1")
    assert "run 1" in told.stdout
    assert (on_line(crawled), crawled.status()["run"]) == ([1], 1)
    again = crawled.crawl(served.url("/"))
    assert (again.run, again.parent, again.pages) == (2, 1, 30)
    assert settings_of(crawled, 2) == settings_of(crawled, 1)
    assert (again.unknown, again.new) == (0, 0), "what only run 0 had is not on this line"
    assert "beside the line" in crawled.cli("runs", crawled.word).stdout


def test_the_old_line_can_be_made_the_line_again(crawled: Home, served: Served) -> None:
    branch(crawled, 0, page_limit=12)
    crawled.crawl(served.url("/"))
    before = settings_of(crawled, 2)
    crawled.app.steer.make_line(crawled.word, 1)
    assert crawled.app.steer.make_line(crawled.word, 2).before == 1
    assert on_line(crawled) == [0, 2]
    assert crawled.crawl(served.url("/")).parent == 2
    assert settings_of(crawled, 3) == before


def test_an_earlier_run_can_be_the_end_of_the_line(crawled: Home, served: Served) -> None:
    crawled.crawl(served.url("/"))
    crawled.crawl(served.url("/"))
    assert crawled.ask("runs", crawled.word, "--make-line", "1")["line"] == 1
    assert (on_line(crawled), crawled.crawl(served.url("/")).parent) == ([0, 1], 1)
    assert on_line(crawled) == [0, 1, 3]


def test_only_a_complete_run_can_be_the_line(crawled: Home) -> None:
    branch(crawled, 0, exclude=("*p3",), budget=3)
    with pytest.raises(NotNow, match="Run 1 is paused"):
        crawled.app.steer.make_line(crawled.word, 1)
    with pytest.raises(Unknown):
        crawled.app.steer.make_line(crawled.word, 7)
    assert on_line(crawled) == [0]


# Going back, where runs lie beside each other


def test_a_run_goes_back_as_long_as_no_other_was_worked_on_since(home: Home, served: Served) -> None:
    home.crawl(served.url("/"), budget=15, checkpoint_every=5)
    branch(home, exclude=("*p39",), budget=5, checkpoint_every=5)
    own = [one["checkpoint_number"] for one in home.checkpoints() if one["run"] == 1]
    assert home.crawl(served.url("/"), budget=1).run == 1, "the branch was worked on last"
    home.app.steer.cancel(home.word)
    assert home.crawl(served.url("/"), budget=10, checkpoint_every=5).run == 0
    with pytest.raises(NotNow, match="Run 0 builds on run 1"):
        go_on(home, own[0])
    with pytest.raises(NotNow, match="Run 1 builds on run 0"):
        go_on(home, 0)
    late = [one["checkpoint_number"] for one in home.checkpoints() if one["run"] == 0][-1]
    assert go_on(home, late, budget=0).run_state == "completed"
    assert len({one["url"] for one in home.record(0) if one["outcome"] == "page"}) == 40


def test_a_branch_is_resumed_as_it_was_worked_on_and_the_line_as_it_was(home: Home, served: Served) -> None:
    home.crawl(served.url("/"), budget=7)
    branch(home, exclude=("*p39",), budget=3)
    assert home.resume().fetched == 3
    home.app.steer.cancel(home.word)
    assert home.resume().fetched == 7


def test_a_proxy_that_only_a_branch_had_is_asked_for_again(home: Home, served: Served) -> None:
    home.crawl(served.url("/"), budget=7)
    through = (f"http://me:secret@{served.url('/')[7:].rstrip('/')}",)
    branch(home, exclude=("*p39",), budget=1, proxies=through)
    with pytest.raises(WrongUse, match="proxy with a password"):
        home.resume()
