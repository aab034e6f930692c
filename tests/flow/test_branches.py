"""Branches: a run that goes on from a checkpoint of another one, by settings of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, page, path_of
from tests.flow.test_checkpoints import (
    AT_ONCE,
    Pages,
    assert_same,
    checkpoints,
    copied,
    exported,
    go_on,
    plain_site,
    seeds_of,
    varied_site,
    written,
)

from inchworm.app import Summary
from inchworm.archive import reader
from inchworm.errors import Frozen, NotNow
from inchworm.testing import Page, Site, redirect

SHARED = ("url", "archive", "checkpoint", "visit")
"""Where a branch differs from its origin although it says the same: what both have is archived once."""


def branch(home: Home, number: int | None = None, **given: Any) -> Summary:
    return go_on(home, number, as_new_run=True, **given)


def assert_says_the_same(home: Home, run: int, origin: int = 0) -> None:
    """A run came to the same as another one; what it calls new is a matter of its own."""
    ours, theirs = written(home, run), written(home, origin)
    for found in (ours, theirs):
        found["run"] = [{**row, "new": 0} for row in found["run"]]
    assert_same(ours, theirs, *SHARED)
    assert _unjudged(home.story(run)) == _unjudged(home.story(origin))
    assert home.export("urls", run) == home.export("urls", origin)


def _unjudged(story: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**visit, "change": None} for visit in story]


def ends(home: Home, run: int) -> dict[str, str]:
    """How every page of a run ended: an outcome, or the reason of a refusal."""
    with copied(home) as db:
        query = (
            "SELECT u.url, COALESCE(f.reason, v.outcome, f.state) FROM run r JOIN frontier f USING (run_id)"
            " JOIN url u USING (url_id) LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " WHERE r.number = ? AND f.kind = 'page'"
        )
        return {path_of(url): end for url, end in db.execute(query, (run,))}


def record_until(home: Home, run: int, seq: int) -> list[dict[str, Any]]:
    """The story of a run up to a seq; later changes of a row's depth are not part of it."""
    return [{**visit, "depth": 0} for visit in home.story(run)[: sum(v["seq"] <= seq for v in home.record(run))]]


@pytest.fixture
def crawled(home: Home) -> Iterator[Home]:
    """A crawl that is complete, with a checkpoint every ten pages, and with its site still there."""
    with Site(plain_site(60)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10)
        yield home


# The same settings


def test_with_the_same_settings_it_is_the_same_crawl(home: Home) -> None:
    with Site(varied_site(200)).serve() as served:
        home.crawl(*seeds_of(served), checkpoint_every=20, max_retries=1, max_time=AT_ONCE)
        home.resume(max_time=0, checkpoint_every=20, max_retries=1)
        origin = written(home)
        for run, number in enumerate((5, 0), 1):
            before, point = len(served.log), home.checkpoints()[number]
            assert branch(home, number, checkpoint_every=20, max_retries=1).run == run
            assert_says_the_same(home, run)
            assert len(served.log) - before == sum(visit["seq"] > point["seq"] for visit in origin["visit"])
            assert _totals(written(home, run)) == [one for one in _totals(origin) if one[0] > point["seq"]]
        assert_same(written(home), origin)


def _totals(found: dict[str, list[Any]]) -> list[Any]:
    return [(seq, {**totals, "new": 0}) for seq, totals in found["checkpoint"]]


def test_what_was_learned_is_taken_along(home: Home) -> None:
    site: Pages = plain_site(40)
    site["/"] = Page(str(site["/"]), headers={"Set-Cookie": "a=1"})
    with Site(site).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10)
        before = len(served.log)
        branch(home, 1)
        asked = served.log[before:]
    assert "/robots.txt" not in {hit.path for hit in asked}
    assert {hit.headers.get("cookie") for hit in asked} == {"a=1"}
    assert not any(hit.path.startswith("/private/") for hit in asked)


def test_it_says_where_it_comes_from(crawled: Home) -> None:
    branch(crawled, 2)
    with copied(crawled) as db:
        seq = dict(checkpoints(crawled))[2]
        assert db.execute("SELECT number, origin, origin_seq FROM run").fetchall() == [(0, None, None), (1, 0, seq)]


def test_without_a_number_it_starts_where_the_run_stands(home: Home) -> None:
    with Site(plain_site(60)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10, budget=25)
        assert branch(home, exclude=("*p59",)).run_state == "completed"
        assert home.app.crawls.status(home.app.workspace.find(home.word)).run == 0, "a branch is beside the line"
    assert ends(home, 1)["/p59"] == "excluded"
    assert len(home.record(0)) == 25, "the run that it left is as it was"
    assert checkpoints(home, "manual") == [], "it needs none"


def test_what_was_cleared_stays_so(home: Home) -> None:
    """It was somebody's word, and no setting takes it back."""
    with Site(plain_site(30)).serve() as served:
        home.crawl(served.url("/"), budget=5, max_depth=3)
        taken = home.ask("queue", home.word, "--list", "--state", "pending")["entries"][-1]["url"]
        home.cli("queue", home.word, "--take-out", taken)
        assert branch(home, max_depth=9).run_state == "completed"
        assert taken not in {f"http://{hit.host}{hit.path}" for hit in served.log}
    assert ends(home, 1)[path_of(taken)] == "cleared"


# Other settings


def two_folders(pages: int = 40) -> Pages:
    """Pages below /a/, some of which link to pages below /b/."""
    site: Pages = {}
    for number in range(pages):
        links = [f"/a/{number * 3 + step}" for step in (1, 2, 3)] + ([f"/b/{number}"] if number % 4 == 0 else [])
        site[f"/a/{number}"] = page(f"a {number}", *(one for one in links if int(one[3:]) < pages))
        site[f"/b/{number}"] = page(f"b {number}", f"/b/{number + 1}")
    return {**site, "/a/": page("home", "/a/0", "/b/0"), "/b/40": page("the last")}


WIDER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "scope": ({}, {"scope": "host"}),
    "page limit": ({"page_limit": 12}, {"page_limit": 33}),
    "depth": ({"max_depth": 3}, {"max_depth": 4}),
    "hops": ({}, {"external_hops": 2}),
    "include": ({"include": ("*[05]", "*/a/?")}, {"include": ("*",)}),
}


@pytest.mark.parametrize("change", WIDER)
def test_what_was_refused_before_is_crawled_when_it_is_allowed(homes: list[Home], change: str) -> None:
    fresh, ours, *_ = homes
    before, after = WIDER[change]
    with Site(two_folders()).serve() as served:
        ours.crawl(served.url("/a/"), checkpoint_every=4, sitemap=False, **before)
        origin, seq = written(ours), dict(checkpoints(ours))[2]
        ended = branch(ours, 2, **after)
        fresh.crawl(served.url("/a/"), sitemap=False, **after)
    assert ended.run_state == "completed" and ended.pages > len(ours.record(0))
    if change == "page limit":
        assert ended.pages == 33
    else:
        assert ends(ours, 1) == ends(fresh, 0)
    assert record_until(ours, 1, seq) == record_until(ours, 0, seq)
    assert_same(written(ours), origin, "url")


NARROWER: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "scope": ({"scope": "host"}, {"scope": "path"}, "out_of_scope"),
    "exclude": ({}, {"exclude": ("*/a/*[13579]",)}, "excluded"),
    "include": ({}, {"include": ("*/a/?", "*/b/*")}, "not_included"),
    "page limit": ({}, {"page_limit": 16, "exclude": ("*/a/13",)}, "page_limit"),
    "page limit reached": ({}, {"page_limit": 5}, "page_limit"),
    "depth": ({}, {"max_depth": 2}, "max_depth"),
}


@pytest.mark.parametrize("change", NARROWER)
def test_what_is_pending_and_not_allowed_any_more_is_refused(home: Home, change: str) -> None:
    before, after, reason = NARROWER[change]
    with Site(two_folders()).serve() as served:
        home.crawl(served.url("/a/"), checkpoint_every=4, sitemap=False, **before)
        origin, seq = written(home), dict(checkpoints(home))[2]
        asked = len(served.log)
        ended = branch(home, 2, **after)
        asked_for = set(served.paths()[asked:])
    assert ended.run_state == "completed"
    state, came = exported(home, 2), ends(home, 1)
    refused = {path for path, end in came.items() if end == reason}
    assert refused & set(map(path_of, state["queued_urls"])), "some were pending"
    assert not refused & asked_for
    assert refused & {path for path, end in ends(home, 0).items() if end == "page"}
    assert record_until(home, 1, seq) == record_until(home, 0, seq), "what is done stays"
    assert_same(written(home), origin, "url")


def test_a_branch_keeps_its_settings(crawled: Home) -> None:
    branch(crawled, 2, exclude=("*p59",), budget=3)
    with pytest.raises(Frozen):
        crawled.resume(budget=0, exclude=("*p58",))
    assert crawled.resume(budget=0).run_state == "completed"
    assert (exported(crawled, 2)["config"]["exclude"], exported(crawled, 6)["config"]["exclude"]) == ([], ["*p59"])


# A branch is a run like any other


def test_it_can_be_paused_killed_and_resumed(crawled: Home) -> None:
    branch(crawled, 2, budget=7)
    named = ("resume", crawled.word, "--delay", "0", "--budget", "0")
    crawled.process(*named, code=-signal.SIGKILL, INCHWORM_FAULT="after_fetch:9")
    assert crawled.process(*named, "--workers", "1").returncode == 0
    assert_says_the_same(crawled, 1)
    assert "error" in {one["checkpoint_type"] for one in crawled.checkpoints() if one["run"] == 1}


@pytest.mark.parametrize("given", [{}, {"exclude": ("*p4?", "*p59")}], ids=["same settings", "others"])
def test_going_back_within_a_branch(crawled: Home, given: dict[str, Any]) -> None:
    origin = written(crawled)
    branch(crawled, 2, budget=1, checkpoint_every=10, **given)
    first = checkpoints(crawled)[-1][0]
    crawled.resume(budget=0)
    whole = written(crawled, 1)
    assert own_checkpoints(crawled)[0] == first and len(own_checkpoints(crawled)) > 2
    for index in (-1, 0, 1):
        assert go_on(crawled, own_checkpoints(crawled)[index], checkpoint_every=10).run == 1
        assert_same(written(crawled, 1), whole)
    assert_same(written(crawled), origin)


def own_checkpoints(home: Home) -> list[int]:
    """Those of the branch itself."""
    return [one["checkpoint_number"] for one in home.checkpoints() if one["run"] == 1]


def test_going_back_below_the_branching_point_takes_another_branch(crawled: Home) -> None:
    branch(crawled, 3)
    with pytest.raises(NotNow, match="Run 1 builds on run 0"):
        go_on(crawled, 2)
    assert branch(crawled, 2).run == 2
    for run in (1, 2):
        assert_says_the_same(crawled, run)


def test_a_branch_of_a_branch(crawled: Home) -> None:
    branch(crawled, 1, exclude=("*p59",), checkpoint_every=10)
    own = own_checkpoints(crawled)
    branch(crawled, own[0], exclude=("*p57", "*p59"), checkpoint_every=10)
    assert (ends(crawled, 2)["/p57"], ends(crawled, 2)["/p59"]) == ("excluded", "excluded")
    branch(crawled, own[1])
    assert_says_the_same(crawled, 3, 1)


def test_a_later_run_is_no_obstacle(crawled: Home) -> None:
    crawled.crawl(*crawled.status()["seeds"])
    named = ("continue", crawled.word, "--checkpoint", "2", "--as-new-run", "--exclude", "*p59", "--delay", "0")
    ended = crawled.ask(*named)
    assert (ended["run"], ended["run_state"]) == (2, "completed")
    assert ends(crawled, 2) == {**ends(crawled, 0), "/p59": "excluded"}
    assert crawled.crawl(*crawled.status()["seeds"]).run == 3


def test_a_branch_from_before_the_first_fetch(home: Home) -> None:
    with Site(plain_site(30)).serve() as served:
        home.crawl(served.url("/"), max_time=AT_ONCE)
        home.resume(max_time=0)
        branch(home, 0)
    assert_says_the_same(home, 1)


def test_the_archive_of_a_branch_can_be_exported(crawled: Home, tmp_path: Path) -> None:
    branch(crawled, 3)
    out = tmp_path / "branch.warc.gz"
    crawled.cli("export", crawled.word, "--format", "warc", "--run", "1", "-o", str(out))
    found = {record.headers.get("warc-target-uri") for record in reader.records(out)}
    assert found >= {visit["url"] for visit in crawled.record(1)}


@pytest.mark.parametrize("given", [{}, {"exclude": ("*p59",)}], ids=["same settings", "others"])
def test_a_second_branch_after_one_that_paused_without_progress(crawled: Home, given: dict[str, Any]) -> None:
    """Whoever was told of a branch and asks for one again wants another; only a crash makes it a second try."""
    first = branch(crawled, 2, max_time=AT_ONCE, **given)
    assert (first.run, first.run_state, first.fetched) == (1, "paused", 0)
    second = branch(crawled, 2, max_time=0, **given)
    assert (second.run, second.run_state) == (2, "completed")
    assert [one.branch_of for one in crawled.runs()] == [None, 0, 0]
    assert crawled.runs()[1].state == "paused"


# Mistakes


def test_a_branch_of_a_baseline_compares_with_nothing(crawled: Home) -> None:
    branch(crawled, 2)
    assert crawled.story(1) == crawled.story(0)


def test_a_setting_that_changes_no_verdict_leaves_no_gap(crawled: Home) -> None:
    branch(crawled, 2, user_agent="somebody else")


@pytest.mark.parametrize("kind", ["shorter way", "nofollow"])
def test_a_better_way_found_later_still_counts(home: Home, kind: str) -> None:
    """/far was refused when /first linked to it, and then allowed because of /second."""
    nofollow = '<meta name="robots" content="nofollow">' if kind == "nofollow" else ""
    site: Pages = {
        "/": page("home", *(("/first", "/second") if nofollow else ("/longer", "/to"))),
        "/longer": page("longer", "/first"),
        "/first": page("first", "/far", head=nofollow),
        "/to": redirect("/second"),
        "/second": page("second", "/far", "/excluded"),
        "/far": page("far"),
        "/excluded": page("excluded"),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"), sitemap=False, checkpoint_every=1, max_depth=0 if nofollow else 2)
        number = next(
            number for number, _ in checkpoints(home) if served.url("/far") in exported(home, number)["queued_urls"]
        )
        branch(home, number, exclude=("*/excluded",))
    assert ends(home, 1) == {**ends(home, 0), "/excluded": "excluded"}


def test_robots_can_be_ignored_from_here_on(crawled: Home) -> None:
    branch(crawled, 5, robots=False, exclude=("*p59",))
    assert "robots" not in ends(crawled, 1).values()


def test_robots_can_be_obeyed_from_here_on(home: Home) -> None:
    with Site(plain_site(30)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10, robots=False)
        assert branch(home, 1, robots=True, exclude=("*p2?",), max_time=1).ended_by == "finished"


def test_one_order_over_all_from_here_on(crawled: Home) -> None:
    """What was on record before is as it was: each host in its order. From here on there is one lane."""
    summary = branch(crawled, 2, strict_order=True, exclude=("*p59",))
    assert (summary.run_state, summary.order) == ("completed", "per host")
    with crawled.app.workspace.reading(crawled.app.workspace.find(crawled.word)) as store:
        branched = store.runs.get(1)
        later = store.db.execute("SELECT lane FROM frontier WHERE run_id = 2 AND found > ?", (branched.origin_seq,))
        assert {lane for (lane,) in later} <= {0}
