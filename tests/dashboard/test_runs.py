"""The pages about runs: one run, two of them side by side, one text in both, and checkpoints."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flow.crawling import page
from tests.service.in_process import Api, HeldPages, serving, wait_for

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.read import comparisons, progress
from inchworm.app.read.runs import SessionLine
from inchworm.errors import NotNow, Unknown
from inchworm.job import Task
from inchworm.model import Counters, EndedBy, RunState, SessionState
from inchworm.rules.change import words as line_words
from inchworm.service.dashboard import comparing, runs
from inchworm.testing import Page, Served, Site

EVIL = "<script>alert(1)</script>\"'&"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MANY = 60


class Pages(HeldPages):
    """Many pages, of which some change, one is gone later and one comes."""

    def __init__(self) -> None:
        names = [f"/p{number}" for number in range(MANY)]
        super().__init__({name: page(f"p{number}", "/") for number, name in enumerate(names)})
        self["/"] = page("start", *names, "/evil", "/gone", "/missing", "/broken", "/away?<b>")
        self["/evil"] = page(EVIL.replace("<", "&lt;"), "/")
        self["/gone"] = page("gone", "/")
        self["/missing"] = Page("not here", status=404)
        self["/broken"] = Page("oh", status=500)

    def change(self) -> None:
        for number in range(3):
            self[f"/p{number}"] = page(f"p{number}", "/", body="<p>A sentence more.</p>")
        self["/evil"] = page(EVIL.replace("<", "&lt;"), "/", body="<p>&lt;img src=x onerror=alert(2)&gt;</p>")
        self["/gone"] = Page("gone for good", status=410)
        self["/new"] = page("new", "/")
        self["/"] = page("start", *(name for name in self if name not in ("/", "/gone")))


@dataclass
class World:
    """A crawl with a baseline of two sessions and a run that found changes, and one whose only run is paused."""

    api: Api
    site: Served
    pages: Pages
    done: str
    paused: str

    def url(self, path: str) -> str:
        return self.site.url(path)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pages = Pages()
    with Site(pages).serve() as site, serving(tmp_path_factory.mktemp("home")) as api:
        done = api.crawled(site.url("/"), budget=30, checkpoint_every=20, max_retries=0)
        api.run_once(done, Task("resume", settings={"budget": 0}))
        pages.change()
        api.run_once(done, Task("recrawl"))
        paused = api.crawled(site.url("/?paused"), budget=8, checkpoint_every=3, max_retries=0)
        yield World(api, site, pages, done, paused)


def get(api: Api, path: str, status: int = 200) -> str:
    answer = api.request("GET", f"http://inchworm.test{path}")
    assert answer.status_code == status, answer.text[:3000]
    assert answer.headers["content-type"].startswith("text/html")
    assert len(answer.content) < 200_000
    assert "<script>alert" not in answer.text
    assert " style=" not in answer.text
    return answer.text


def post(api: Api, path: str, **fields: str) -> httpx.Response:
    return api.request("POST", f"http://inchworm.test{path}", content=urlencode(fields), headers=FORM)


def do(api: Api, path: str, **fields: str) -> str:
    """Press a button, and read the page that follows."""
    answer = post(api, path, **fields)
    assert answer.status_code == 303, answer.text[:3000]
    return get(api, answer.headers["location"])


def said(text: str) -> str:
    found = re.search(r'<p class="said[^>]*>(.*?)</p>', text, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", found[1])) if found else ""


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def hrefs(text: str, part: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'href="([^"]*)"', text) if part in one]


def kept(api: Api, crawl_id: str) -> int:
    """How many pages a run has that is about to begin, or at work."""
    with suppress(NotNow, Unknown):
        return int(api.status(crawl_id)["pages"])
    return 0


# One run


def test_a_run_says_how_it_went(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/runs/0")
    shown = plain(text)
    assert "Complete: nothing is left to crawl." in shown
    assert "Session 2" in shown and "budget" in shown and "finished" in shown
    assert "http_4xx" in shown and "http_5xx" in shown
    assert "The server failed." in shown
    assert 'rel="next"' in text and 'rel="prev"' not in text
    assert "compares with none before it" in shown
    assert '<path class="stroke"' in text


def test_of_an_older_run_nothing_is_tried_again_and_nobody_watches_it(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/runs/0")
    assert "/retry" not in text
    assert "data-view" not in text
    assert "Branch from here" in text
    assert "Continue from here" not in text


def test_the_last_run_says_what_changed_and_is_watched(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/runs/1")
    shown = plain(text)
    assert f'data-view="run:{world.done}:1"' in text
    assert "1 new" in shown and "4 modified" in shown and "1 deleted" in shown
    assert f"/crawls/{world.done}/compare?baseline=0&current=1" in hrefs(text, "compare")
    assert "Why unchanged pages were downloaded" in shown
    assert "neither ETag nor Last-Modified" in shown
    assert "Try again" in shown and "Try all again" in shown


def test_failed_pages_are_one_link_away(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/runs/1")
    assert f"/crawls/{world.done}/pages?run=1&outcome=failed&kind=http_4xx" in hrefs(text, "/pages")


def test_what_is_renewed_is_what_the_page_shows(world: World) -> None:
    text = get(world.api, f"/crawls/{world.paused}/runs/0")
    parts = runs.run_parts(world.api.app, f"{world.paused}:0")
    assert set(parts) == {f"run-{name}" for name in runs._PARTS}
    for name, part in parts.items():
        assert f'id="{name}"' in text
        assert "form_key" not in part and 'name="key"' not in part
    assert parts["run-failures"] in text
    assert parts["run-state"] in text


@pytest.mark.parametrize("name", ["nowhere:0", "nowhere", "", "x:y", "x:1:2", "x:-1", f"x:{'9' * 30}"])
def test_a_view_that_is_none_is_gone(world: World, name: str) -> None:
    with pytest.raises(Unknown):
        runs.run_parts(world.api.app, name)


def test_a_paused_run_can_go_on(world: World) -> None:
    text = get(world.api, f"/crawls/{world.paused}/runs/0")
    assert "Paused: the last session has used up its budget." in plain(text)
    assert f'formaction="/crawls/{world.paused}/resume"' in text
    assert f'formaction="/crawls/{world.paused}/cancel"' in text


@pytest.mark.parametrize("path", ["runs/7", "runs/x", "runs/-1", f"runs/{10**20}", "runs/1.5"])
def test_a_run_that_is_not_there(world: World, path: str) -> None:
    status = 404 if path == "runs/7" else 422
    assert "Something" not in get(world.api, f"/crawls/{world.done}/{path}", status)


@pytest.mark.parametrize("path", ["runs/0", "compare", "checkpoints", "diff?url=http://a.test/"])
def test_a_crawl_that_is_not_there(world: World, path: str) -> None:
    assert "There is no crawl" in plain(get(world.api, f"/crawls/nowhere/{path}", 404))


def test_an_alarm_stands_out_and_is_harmless(world: World) -> None:
    database = world.api.folder / "crawls" / world.done / "crawl.db"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE run SET alarm = ? WHERE number = 1", (EVIL,))
        db.execute("UPDATE session SET message = ? WHERE run_id = 2", (EVIL,))
    try:
        text = get(world.api, f"/crawls/{world.done}/runs/1")
        assert 'class="card alarm"' in text
        assert text.count(ESCAPED) >= 2
    finally:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("UPDATE run SET alarm = '' WHERE number = 1")
            db.execute("UPDATE session SET message = ''")


def test_a_run_that_goes_on_shows_its_pace(world: World, tmp_path: Path) -> None:
    pages = Pages()
    for number in range(5, MANY):
        pages.hold(f"/p{number}")
    with Site(pages).serve() as site, serving(tmp_path / "home") as api:
        crawl_id = api.make(site.url("/"), workers=2)
        crawl = api.app.workspace.find(crawl_id)
        api.app.schedule.add(WantedJob(crawl=crawl, task=Task()))
        wait_for(lambda: kept(api, crawl_id) >= 4, "some pages")
        text = get(api, f"/crawls/{crawl_id}/runs/0")
        assert "Session 1 is at work." in text
        assert f'formaction="/crawls/{crawl_id}/pause"' in text
        found = api.app.progress.of(crawl, 0)
        assert (found.pace.lately or 0) > 0
        assert (found.pace.seconds_left or 0) > 0
        assert "at work" in plain(runs.run_parts(api.app, f"{crawl_id}:0")["run-line"])
        pages.is_open = True


def test_runs_with_several_hosts_show_what_waits(world: World) -> None:
    database = world.api.folder / "crawls" / world.paused / "crawl.db"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("INSERT INTO host (host_id, name, wait_until_ms) VALUES (99, ?, 99999999999999)", (EVIL,))
        db.execute("INSERT INTO lane (run_id, lane, pending) VALUES (1, 99, 7)")
    try:
        text = get(world.api, f"/crawls/{world.paused}/runs/0")
        assert "2 hosts" in plain(text)
        assert ESCAPED in text and "as it asked" in text
    finally:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("DELETE FROM lane WHERE lane = 99")
            db.execute("DELETE FROM host WHERE host_id = 99")


def session(ended_by: str | None) -> SessionLine:
    state = SessionState.COMPLETED if ended_by else SessionState.IN_PROGRESS
    return SessionLine(3, state, EndedBy(ended_by) if ended_by else None, 0, 0, 0, "", None, "")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"state": "in_progress", "is_running": True, "sessions": [session(None)]}, "Session 3 is at work."),
        ({"state": "in_progress", "is_running": True, "sessions": []}, "It is about to begin."),
        ({"state": "paused", "sessions": []}, "No session has worked on it yet."),
        ({"state": "paused", "sessions": [session("crashed")]}, "crashed"),
        ({"state": "paused", "sessions": [session("finished")]}, "Open again"),
        ({"state": "completed", "sessions": [session("budget")]}, "given up"),
        ({"state": "cancelled", "sessions": [session("paused")]}, "Cancelled."),
        ({"state": "completed", "sessions": [session("finished")], "failed": 1}, "nothing could be fetched"),
    ],
)
def test_how_a_run_stands_in_words(found: dict[str, Any], words: str) -> None:
    state, counters = RunState(found["state"]), Counters(failed=found.get("failed", 0))
    assert words in runs.in_words(state, counters, found["sessions"], found.get("is_running", False))


# Sessions on a line


def test_steps_belong_to_the_session_that_took_them_last(world: World) -> None:
    """A run that went back: the steps that were undone are those of the later session now."""
    database = world.api.folder / "crawls" / world.paused / "crawl.db"
    crawl = world.api.app.workspace.find(world.paused)
    with closing(sqlite3.connect(database)) as db, db:
        seq = db.execute("SELECT seq FROM run").fetchone()[0]
        for number, start in ((2, seq - 1), (3, 4)):
            db.execute(
                "INSERT INTO session (run_id, number, token, state, ended_by, settings, start_seq, started_ms,"
                " ended_ms) VALUES (1, ?, 0, 'failed', 'crashed', '{}', ?, 1000, 2000)",
                (number, start),
            )
    try:
        sessions = world.api.app.progress.of(crawl, 0).sessions
        assert [(one.first, one.last) for one in sessions] == [(0, 4), (4, 4), (4, seq)]
        assert sessions[1].seconds == 0, "one that crashed before its first visit"
        assert "none" in plain(get(world.api, f"/crawls/{world.paused}/runs/0"))
    finally:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("DELETE FROM session WHERE number > 1")


def test_a_sample_is_small_and_stays_while_the_run_grows() -> None:
    assert progress._sample(0) == []
    assert progress._sample(3) == [1, 2, 3]
    for seq in (120, 121, 5000, 100_000):
        assert len(progress._sample(seq)) <= progress.SAMPLES
        assert progress._sample(seq)[-1] == seq
    assert set(progress._sample(100_000)[:-1]) <= set(progress._sample(100_500))


# Two runs


def test_comparing_shows_the_modified_pages_of_the_last_run_first(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/compare")
    shown = plain(text)
    assert "From run 0 to run 1" in shown
    assert "4 modified" in shown and "1 new" in shown and "1 deleted" in shown
    assert "Modified pages" in shown and "p0" in shown and ESCAPED in text
    assert "data-view" not in text, "all of it is on record"
    assert f"/crawls/{world.done}/diff?url={quote(world.url('/p0'), safe='')}&baseline=0&current=1" in hrefs(text, "p0")
    assert f"/crawls/{world.done}/page?url={quote(world.url('/p0'), safe='')}&run=1" in hrefs(text, "p0")


@pytest.mark.parametrize("pair", ["baseline=0&current=1", "baseline=1&current=0"])
def test_pages_that_changed_in_the_same_way_are_one_row(world: World, pair: str) -> None:
    """The difference is shown once, whether the run noted it down or both runs have to be looked at."""
    path = f"/crawls/{world.done}/compare?{pair}&change=modified"
    text = get(world.api, path)
    assert plain(text).count("A sentence more.") == 1
    assert "alert(2)&gt;" in text
    (group,) = [one for one in hrefs(text, "alike=") if re.search(r"alike=-?\d", one)]
    assert "All 3 pages that changed like this" in plain(text)
    pages = get(world.api, group)
    assert [len(hrefs(pages, f"{quote(world.url(name), safe='')}&")) for name in ("/p0", "/p1", "/p2")] == [2, 2, 2]
    assert "evil" not in plain(pages)
    # One group at a time.
    first = get(world.api, f"{path}&limit=1")
    assert "alert(2)" not in first
    (more,) = [one for one in hrefs(first, "cursor=") if not one.endswith("cursor=")]
    second = get(world.api, more.replace("&cursor", "&limit=1&cursor"))
    assert "alert(2)&gt;" in second and "A sentence more." not in plain(second)


@pytest.mark.parametrize(
    ("change", "path", "run"), [("new", "/new", 1), ("deleted", "/gone", 0), ("unchanged", "/p9", 1)]
)
def test_every_change_has_its_list(world: World, change: str, path: str, run: int) -> None:
    text = get(world.api, f"/crawls/{world.done}/compare?baseline=0&current=1&change={change}")
    assert f"/crawls/{world.done}/page?url={quote(world.url(path), safe='')}&run={run}" in hrefs(text, "/page?")


def test_backwards_in_time_what_came_is_gone(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/compare?baseline=1&current=0&change=deleted")
    assert quote(world.url("/new"), safe="") in text
    there = world.api.app.changes.compare(world.done, 1, 0)
    shown = plain(text)
    for change in ("new", "modified", "deleted", "unchanged", "unknown"):
        assert f"{len(getattr(there, f'{change}_documents'))} {change}" in shown


def test_a_run_beside_itself_is_unchanged(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/compare?baseline=0&current=0")
    assert "0 modified" in plain(text) and "Nothing changed: all 63 pages" in text


def test_a_long_list_comes_in_parts(world: World) -> None:
    """By the record, and by looking at both runs."""
    for pair in ("baseline=0&current=1", "baseline=1&current=0"):
        first = get(world.api, f"/crawls/{world.done}/compare?{pair}&change=unchanged&limit=25")
        seen: list[str] = []
        text = first
        for _ in range(10):
            seen += hrefs(text, "/page?")
            more = re.search(r'<a class="button" href="([^"]+)" rel="next"', text)
            if more is None:
                break
            text = get(world.api, html.unescape(more[1]) + "&limit=25")
        assert len(seen) == len(set(seen)) == MANY - 2
        assert "From the beginning" in text


def test_pages_are_found_by_a_part_of_their_address(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/compare?change=unchanged&q=P1")
    assert len(hrefs(text, "/page?")) == 10
    assert "None of them has that" in get(world.api, f"/crawls/{world.done}/compare?q=nothing")
    assert ESCAPED in get(world.api, f"/crawls/{world.done}/compare?q={quote(EVIL)}")


def test_what_is_unknown_says_why(world: World) -> None:
    crawl_id = world.api.crawled(world.url("/?unknown"), max_retries=0)
    world.pages["/p7"] = Page("oh", status=500)
    world.api.run_once(crawl_id, Task("recrawl"))
    world.pages["/p7"] = page("p7", "/")
    text = get(world.api, f"/crawls/{crawl_id}/compare?change=unknown")
    assert "The server failed." in text
    assert f"/crawls/{crawl_id}/page?url={quote(world.url('/p7'), safe='')}&run=0" in hrefs(text, "/page?")


def test_what_takes_long_to_count_is_counted_bit_by_bit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "COUNT_SECONDS", 0.0)
    monkeypatch.setattr(comparisons, "_TALLIES", comparisons.Memory(8))
    path = f"/crawls/{world.done}/compare?baseline=1&current=0"
    text = get(world.api, path)
    assert f'data-view="compare:{world.done}:1:0:modified:"' in text
    assert "Still counting" in text
    monkeypatch.setattr(comparisons, "COUNT_SECONDS", 60.0)
    parts = comparing.compare_parts(world.api.app, f"{world.done}:1:0:modified:/p")
    assert "4 modified" in plain(parts["compare-counts"])
    assert "Still counting" not in parts["compare-counts"]
    assert len(hrefs(parts["compare-pages"], "/page?")) == 3
    assert "data-view" not in get(world.api, path)


def test_a_comparison_that_is_none_is_gone(world: World) -> None:
    for name in ("", "x", "x:1", f"{world.done}:a:b:new:", f"{world.done}:0:99:new:"):
        with pytest.raises(Unknown):
            comparing.compare_parts(world.api.app, name)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("baseline=9", 404),
        ("current=9", 404),
        ("baseline=x", 422),
        ("baseline=-1", 422),
        ("change=other", 422),
        ("cursor=%00", 400),
        ("cursor=WyJ4Il0", 400),
        (f"q={'x' * 501}", 422),
        ("baseline=&current=&change=&q=&cursor=", 200),
    ],
)
def test_what_cannot_be_compared(world: World, query: str, status: int) -> None:
    get(world.api, f"/crawls/{world.done}/compare?{query}", status)


def test_one_run_alone_has_nothing_to_be_compared_with(world: World) -> None:
    assert "There is nothing to compare yet" in get(world.api, f"/crawls/{world.paused}/compare")
    never = world.api.make(world.url("/?never"))
    assert "There is nothing to compare yet" in get(world.api, f"/crawls/{never}/compare")


# One page in both


def test_a_text_stands_side_by_side_with_itself(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/diff?url={quote(world.url('/p0'))}")
    assert "<ins>A sentence more.</ins>" in text
    assert "Run 0" in text and "Run 1" in text


def test_hostile_texts_are_harmless(world: World) -> None:
    text = get(world.api, f"/crawls/{world.done}/diff?url={quote(world.url('/evil'))}&baseline=0&current=1")
    assert "<img" not in text.replace('<img src="/static/inchworm.svg"', "")
    assert "onerror=alert(2)" in text


def test_a_page_that_one_run_does_not_have(world: World) -> None:
    gone = get(world.api, f"/crawls/{world.done}/diff?url={quote(world.url('/gone'))}")
    assert "Run 1 does not have this page." in gone and "<del>" in gone
    same = get(world.api, f"/crawls/{world.done}/diff?url={quote(world.url('/p9'))}")
    assert "are the same in both runs" in same
    get(world.api, f"/crawls/{world.done}/diff?url={quote(world.url('/nothing'))}", 404)
    get(world.api, f"/crawls/{world.done}/diff?url=javascript:alert(1)", 422)
    get(world.api, f"/crawls/{world.done}/diff", 422)
    get(world.api, f"/crawls/{world.paused}/diff?url={quote(world.url('/'))}", 409)


def sides(before: str, after: str) -> list[comparing.PairedLine]:
    return comparing.side_by_side(before.split(), after.split())


def test_what_is_the_same_is_folded_to_a_few_lines() -> None:
    lines = [str(number) for number in range(40)]
    rows = comparing.side_by_side(lines, [*lines[:20], "x", *lines[21:]])
    assert [row.folded for row in rows if row.folded] == [17, 16]
    assert len(rows) == 2 + 3 + 1 + 3
    changed = next(row for row in rows if not row.is_same and not row.folded)
    assert changed.left is not None and changed.right is not None
    assert (changed.left.number, changed.right.number) == (21, 21)


def test_lines_that_are_alike_stand_beside_each_other() -> None:
    """Also where something new was put before them."""
    before = ["It has 43 sorts of apples, and all of them are sweet.", "Pears come next."]
    after = [
        "Something new, of which nobody had heard.",
        before[0].replace("43", "46"),
        "And more.",
        "Pears come next!",
    ]
    assert line_words.beside(before, after) == [(None, 0), (0, 1), (None, 2), (1, 3)]
    assert line_words.beside([], after[:2]) == [(None, 0), (None, 1)]
    assert line_words.beside(["one thing"], ["quite another", "and more"]) == [(0, 0), (None, 1)]
    (_, row, _, _) = comparing.side_by_side(before, after)
    assert [piece.text.strip() for piece in row.right.pieces if piece.is_marked] == ["46"]


@given(st.lists(st.sampled_from("abcd"), max_size=9), st.lists(st.sampled_from("abcd"), max_size=9))
def test_every_line_stands_somewhere_once_and_in_order(before: list[str], after: list[str]) -> None:
    found = line_words.beside(before, after)
    assert [i for i, _ in found if i is not None] == list(range(len(before)))
    assert [j for _, j in found if j is not None] == list(range(len(after)))


def test_lines_that_are_only_on_one_side_have_nothing_beside_them() -> None:
    rows = sides("a b", "a b c")
    assert rows[-1] == comparing.PairedLine(right=comparing.Side(3, (line_words.Piece("c", True),)))
    assert sides("", "") == []


def test_words_that_differ_are_marked() -> None:
    old, new = line_words.words("the red house on the hill", "the blue house on the hill")
    assert [piece.text for piece in old if piece.is_marked] == ["red "]
    assert [piece.text for piece in new if piece.is_marked] == ["blue "]
    assert "".join(piece.text for piece in new) == "the blue house on the hill"
    assert line_words.words("one two", "x y z")[0] == (line_words.Piece("one two", True),)


def test_every_line_of_both_texts_is_shown_or_folded() -> None:
    before, after = [f"line {n}" for n in range(50)], [f"line {n}" for n in range(10, 70) if n % 9]
    rows = comparing.side_by_side(before, after)
    folded = sum(row.folded for row in rows)
    assert sum(row.left is not None for row in rows) + folded == len(before)
    assert sum(row.right is not None for row in rows) + folded == len(after)


def test_a_hostile_text_does_not_keep_us_thinking() -> None:
    chance = random.Random(1)
    before, after = ([" ".join(chance.choices("ab", k=100)) for _ in range(2000)] for _ in range(2))
    rows = comparing.side_by_side(before, after)
    assert len(rows) == comparing.ROWS + 1
    assert comparing.fitting(rows) < comparing.ROWS
    assert rows[-1].left == comparing.Side(comparing.ROWS + 1, (line_words.Piece(before[comparing.ROWS], True),))


def test_large_texts_are_cut(world: World) -> None:
    for version in ("a", "b"):
        text = "".join(f"<p>{version} paragraph {number} {'word ' * 300}</p>" for number in range(900))
        world.pages["/?large"] = page("large", "/p0", body=text)
        if version == "a":
            crawl_id = world.api.crawled(world.url("/?large"), page_limit=1)
        else:
            world.api.run_once(crawl_id, Task("recrawl"))
    answer = world.api.request("GET", f"http://inchworm.test/crawls/{crawl_id}/diff?url={quote(world.url('/?large'))}")
    assert answer.status_code == 200
    assert "This page is large" in answer.text
    assert len(answer.content) < 200_000


# Checkpoints


def test_checkpoints_are_listed_newest_first_in_parts(world: World) -> None:
    there = [one["checkpoint_number"] for one in world.api.checkpoints(world.done)]
    text = get(world.api, f"/crawls/{world.done}/checkpoints?limit=3")
    seen: list[int] = []
    while True:
        seen += [int(one) for one in re.findall(r'<th scope="row">(\d+) ', text)]
        more = re.search(r'<a class="button" href="([^"]+)" rel="next"', text)
        if more is None:
            break
        text = get(world.api, html.unescape(more[1]) + "&limit=3")
    assert seen == there[::-1]
    assert f"Checkpoints {len(there)}" in plain(get(world.api, f"/crawls/{world.done}/checkpoints"))


def test_a_checkpoint_is_exported(world: World) -> None:
    number = world.api.checkpoints(world.done)[-1]["checkpoint_number"]
    path = f"/api/v1/crawl/{world.done}/checkpoints/{number}/export"
    assert path in get(world.api, f"/crawls/{world.done}/checkpoints")
    answer = world.api.request("GET", f"http://inchworm.test{path}")
    assert answer.headers["content-disposition"] == f'attachment; filename="{world.done}-checkpoint{number}.json.gz"'
    assert json.loads(gzip.decompress(answer.content))["crawled_urls"]
    missing = f"http://inchworm.test/api/v1/crawl/{world.done}/checkpoints/99999/export"
    assert world.api.request("GET", missing).status_code == 404


def test_a_crawl_without_checkpoints_says_what_they_are(world: World) -> None:
    never = world.api.make(world.url("/?without"))
    text = get(world.api, f"/crawls/{never}/checkpoints")
    assert "No checkpoints" in text and "Start the crawl" in text


def test_going_back_is_asked_for_once_more_and_then_done(world: World) -> None:
    crawl_id = world.api.crawled(world.url("/?back"), budget=12, checkpoint_every=3, max_retries=0)
    before = world.api.checkpoints(crawl_id)
    at = f"/crawls/{crawl_id}/checkpoints/{before[1]['checkpoint_number']}"
    text = get(world.api, f"/crawls/{crawl_id}/checkpoints")
    undone = world.api.app.progress.of(world.api.app.workspace.find(crawl_id), 0).seq - before[1]["seq"]
    assert f"Yes, undo {undone} steps" in text
    refused = post(world.api, f"{at}/continue", back=f"/crawls/{crawl_id}/checkpoints")
    assert "asked for once more" in said(get(world.api, refused.headers["location"]))
    assert world.api.checkpoints(crawl_id) == before
    assert f"Run 0 goes on from checkpoint {before[1]['checkpoint_number']}." in said(
        do(world.api, f"{at}/continue", sure="yes")
    )
    wait_for(lambda: not world.api.is_running(crawl_id), "the session to end")
    assert world.api.faults(crawl_id) == []


def test_branching_off_makes_a_run_of_its_own(world: World) -> None:
    crawl_id = world.api.crawled(world.url("/?branch"), budget=12, checkpoint_every=3, max_retries=0)
    text = do(world.api, f"/crawls/{crawl_id}/checkpoints/0/branch")
    assert said(text).startswith("Run 1 has branched off from checkpoint 0.")
    wait_for(lambda: not world.api.is_running(crawl_id), "the session to end")
    shown = plain(get(world.api, f"/crawls/{crawl_id}/runs/1"))
    assert "branched off from run 0 at step" in shown
    assert "beside the line: later runs build on run 0" in shown
    get(world.api, f"/crawls/{crawl_id}/compare")
    refused = post(world.api, f"/crawls/{crawl_id}/checkpoints/0/continue", back=f"/crawls/{crawl_id}", sure="yes")
    assert "cannot go back any more" in said(get(world.api, refused.headers["location"]))
    world.api.run_once(crawl_id, Task("resume", settings={"budget": 0}))
    at = f"/crawls/{crawl_id}/runs/1"
    assert f'action="{at}/make-line"' in get(world.api, at)
    assert "asked for once more" in said(do(world.api, f"{at}/make-line", back=at))
    text = do(world.api, f"{at}/make-line", sure="yes")
    assert said(text).startswith("Later runs build on run 1.")
    assert "beside the line" not in plain(text) and "/make-line" not in text
    assert "beside the line" in plain(get(world.api, f"/crawls/{crawl_id}"))


def test_checkpoints_are_deleted_one_by_one_and_all_but_the_last(world: World) -> None:
    crawl_id = world.api.crawled(world.url("/?clean"), budget=20, checkpoint_every=3, max_retries=0)
    numbers = [one["checkpoint_number"] for one in world.api.checkpoints(crawl_id)]
    at = f"/crawls/{crawl_id}/checkpoints"
    assert "Checkpoint 1 is deleted." in said(do(world.api, f"{at}/1/delete"))
    assert f"{len(numbers) - 3} checkpoints are deleted." in said(do(world.api, f"{at}/cleanup", keep="2"))
    assert [one["checkpoint_number"] for one in world.api.checkpoints(crawl_id)] == numbers[-2:]
    assert "nothing to delete" in said(do(world.api, f"{at}/cleanup", keep="2"))
    for keep in ("", "x", "-1", "9" * 30):
        refused = post(world.api, f"{at}/cleanup", keep=keep, back=at)
        assert "cannot be kept" in said(get(world.api, refused.headers["location"]))
    refused = post(world.api, f"{at}/999/delete", back=at)
    assert "has no checkpoint" in said(get(world.api, refused.headers["location"]))


def test_while_a_session_works_nothing_goes_back(tmp_path: Path) -> None:
    pages = Pages()
    for number in range(20, MANY):
        pages.hold(f"/p{number}")
    with Site(pages).serve() as site, serving(tmp_path / "home") as api:
        crawl_id = api.make(site.url("/"), workers=2, checkpoint_every=3)
        api.app.schedule.add(WantedJob(crawl=api.app.workspace.find(crawl_id), task=Task()))
        wait_for(lambda: api.is_running(crawl_id) and len(api.checkpoints(crawl_id)) > 2, "some checkpoints")
        at = f"/crawls/{crawl_id}/checkpoints"
        text = get(api, at)
        assert "Pause it to go back" in text and "Continue from here" not in text
        for act in ("0/continue", "0/branch", "0/delete"):
            answer = post(api, f"{at}/{act}", back=at, sure="yes")
            assert answer.status_code == 303
            assert re.search(r"worked on|owner|process", said(get(api, answer.headers["location"])))
        pages.is_open = True
