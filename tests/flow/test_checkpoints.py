"""Checkpoints: a crawl that goes back to one and on again writes down what an undisturbed one does."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.crash import checker
from tests.flow.crawling import PATIENCE, Home, page, path_of, wait_until

from inchworm.app import App, Hooks, Summary, SystemClock
from inchworm.app.read.checkpoints import Back
from inchworm.archive import reader
from inchworm.errors import Broken, NotNow, Owned, Unknown
from inchworm.model import FinishedVisit
from inchworm.rules.order.order import counted
from inchworm.store.crawl import votes
from inchworm.store.sqlite import SqliteDatabase
from inchworm.testing import Answer, Hit, Page, Served, Site, linked_site, redirect

EVERY = 50
AT_ONCE = 1e-9
"""A time limit that is over before the first fetch."""

Pages = dict[str, Answer | Callable[[Hit], Answer]]


# Going back


def sit(home: Home, session: Coroutine[Any, Any, Summary]) -> Summary:
    """One session, after which all is as it should be."""
    summary = asyncio.run(asyncio.wait_for(session, PATIENCE))
    assert not (found := unsound(home)), found
    return summary


def go_on(
    home: Home, number: int | None = None, as_new_run: bool = False, validate: bool = True, **given: Any
) -> Summary:
    """`inchworm continue`, with none of the limits of earlier sessions."""
    named = {"delay": 0, "allow_private": True, "budget": 0, "max_time": 0, **given}
    return sit(
        home, home.app.sessions.work(home.app.plan.continue_from(home.word, Back(number, as_new_run, validate), named))
    )


def checkpoints(home: Home, kind: str = "") -> list[tuple[int, int]]:
    """Number and seq of every checkpoint (of this type)."""
    listed = home.checkpoints()
    return [(one["checkpoint_number"], one["seq"]) for one in listed if kind in ("", one["checkpoint_type"])]


def places(home: Home) -> list[int]:
    """The seq of every checkpoint: after going back, the same places have other numbers."""
    return [seq for _, seq in checkpoints(home)]


def exported(home: Home, number: int) -> dict[str, Any]:
    """The whole state at a checkpoint."""
    out = io.BytesIO()
    home.app.checkpoints.export(home.app.workspace.find(home.word), number, out)
    found: dict[str, Any] = json.loads(gzip.decompress(out.getvalue()))
    return found


# What a crawl wrote down


def folder_of(home: Home) -> Path:
    return home.app.workspace.place(home.app.workspace.find(home.word)).folder


@contextmanager
def copied(home: Home) -> Iterator[sqlite3.Connection]:
    """A copy of the store of the newest crawl."""
    with tempfile.TemporaryDirectory() as scratch:
        db = checker.copy_store(folder_of(home), Path(scratch))
        assert db is not None
        with closing(db):
            yield db


_PASSING = {"log_id", "undo_id", "session", "file_id", "offset", "length", "inbox_id", "millis", "idx"}
_OF_THE_RUN = {"run_id", "number", "parent", "origin", "origin_seq", "settings", "nofollow"}
_OF_THE_RUN |= {"follows", "beside", "token"}
"""Names and origins of a run; and `nofollow`, which only says where it is worth looking."""


def _rows(db: sqlite3.Connection, table: str, where: str) -> list[dict[str, Any]]:
    """Whole rows, without times and without where in the files things lie."""
    gone = _PASSING | (_OF_THE_RUN if table == "run" else {"run_id"})
    return [
        {name: value for name, value in row.items() if name not in gone and not name.endswith("_ms")}
        for row in checker.rows(db, f"SELECT * FROM {table} WHERE {where}")
    ]


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    """An entry of `undo`, what it keeps of a row without times either, nor a rank, which follows the votes."""
    kept = json.loads(row["before"])
    return {**row, "before": {name: kept[name] for name in kept if not name.endswith("_ms") and name != "rank"}}


def written(home: Home, run: int = 0) -> dict[str, list[Any]]:
    """All that a run wrote down, in all of its tables and in the archive, without what depends on time."""
    with copied(home) as db:
        run_id = checker.value(db, "SELECT run_id FROM run WHERE number = ?", run)
        # Votes are counted when they are needed, which depends on how far one looked ahead.
        book = SqliteDatabase(db, home.folder, "crawl")
        votes.count(book, run_id, counted(checker.value(db, "SELECT seq FROM run WHERE run_id = ?", run_id) + 1))
        found = tables_of(db, run_id)
        names = "SELECT name FROM archive WHERE run_id = ? ORDER BY file_id"
        found["archive"] = [one for (name,) in db.execute(names, (run_id,)) for one in _archived(home, name)]
    return found


def tables_of(db: sqlite3.Connection, run_id: int) -> dict[str, list[Any]]:
    tables = ("run", "seed", "frontier", "visit", "lane", "robots", "cookie", "undo", "promise")
    found: dict[str, list[Any]] = {table: _rows(db, table, f"run_id = {run_id}") for table in tables}
    found["undo"] = [_timeless(row) for row in found["undo"]]
    for rows in found.values():
        rows.sort(key=repr)
    found["visit"].sort(key=lambda visit: visit["seq"])
    found["url"] = sorted(checker.urls_by_id(db).items())
    autos = "SELECT seq, totals FROM checkpoint WHERE run_id = ? AND type = 'auto' AND deleted = 0 ORDER BY number"
    found["checkpoint"] = [(seq, json.loads(totals)) for seq, totals in db.execute(autos, (run_id,))]
    return found


def _archived(home: Home, name: str) -> Iterator[tuple[str, str, str]]:
    for record in reader.records(folder_of(home) / "archive" / name):
        fields = [record.headers.get(f"warc-{key}", "") for key in ("type", "target-uri", "payload-digest")]
        if fields[0] != "warcinfo":
            yield fields[0], fields[1], fields[2]


def assert_same(ours: Mapping[str, list[Any]], theirs: Mapping[str, list[Any]], *left_out: str) -> None:
    """Equal in everything but these tables; of all others that differ, the first row that does."""
    wrong = [name for name in theirs if name not in left_out and ours[name] != theirs[name]]
    said = [f"{name}: {_first_difference(ours[name], theirs[name])}" for name in wrong]
    assert not said, "\n".join(said)


def _first_difference(ours: list[Any], theirs: list[Any]) -> str:
    pairs = zip_longest(ours, theirs)
    return next(f"row {index} is {a}\n  instead of {b}" for index, (a, b) in enumerate(pairs) if a != b)


def unsound(home: Home, ended: bool = True) -> list[str]:
    """What `doctor` and the checker find wrong with a crawl; after a kill its files may be longer than the record."""
    with copied(home) as db:
        has_undone = checker.value(db, "SELECT COUNT(*) FROM undone") > 0
        has_branch = checker.value(db, "SELECT COUNT(*) FROM run WHERE origin IS NOT NULL") > 0
        found = [text for text in checker.store_problems(db) if not _is_past(text, has_undone, has_branch)]
        # A branch shares the records that it began with; whoever wrote them owns them.
        db.execute("UPDATE visit SET requested = 0 WHERE session = 0")
        found += checker.archive_problems(db, folder_of(home), ended)
    return [*home.faults(), *found]


def _is_past(text: str, has_undone: bool, has_branch: bool) -> bool:
    """Whether it is no fault, but what going back means: log numbers are not given again, and a session did what it
    did although its visits are undone; or what branching means: records are shared."""
    undone = text.startswith(("log_id has gaps", "session "))
    return (has_undone and undone) or (has_branch and "two visits that own one record" in text)


# A site with a bit of everything

HOPS = ("/m/n/start", "/m/n/hop/1", "/m/n/hop/2", "/m/n/hop/3", "/m/o/hop", "/t/end")
"""Where a seed leads: its scope is /m/n, then /m, then everything. A hop comes after all that is pending, so these lie
far apart in the record: around 3, 15, 60, 250, 590 and at the end of one with 500 pages."""


class Building:
    """A site below /s/ in the making."""

    def __init__(self, pages: int) -> None:
        linked = linked_site(pages, duplicates=pages // 12)
        self.pages: Pages = {"/s" + path: text.replace('href="/', 'href="/s/') for path, text in linked.items()}

    def link(self, number: int, *paths: str) -> None:
        """Link these from page number so and so."""
        name = f"/s/p{number}" if number else "/s/"
        items = "".join(f'<li><a href="{path}">more</a></li>' for path in paths)
        self.pages[name] = str(self.pages[name]).replace("</ul>", f"{items}</ul>")

    def chain(self, *paths: str, to: Answer) -> None:
        """Each of these redirects to the next one; the last is this page."""
        self.pages |= {path: redirect(after) for path, after in pairwise(paths)}
        self.pages[paths[-1]] = to


def varied_site(pages: int) -> Pages:
    """Copies, dead links, redirects, passing failures, refusals, cookies, a sitemap, a nofollow that is overruled,
    ways that turn out shorter later, and things out of scope until a seed's redirects move its scope there."""
    made = Building(pages)
    for number in range(5, pages, 20):
        made.link(number, f"/s/gone/{number}", f"/s/old/{number}", f"/s/private/{number}")
        made.pages[f"/s/old/{number}"] = redirect(f"/s/p{pages - number}", 301)
    made.link(0, "/s/way/1", "/s/long/1", "/s/quiet")
    made.link(3, "/s/broken/0", "http://elsewhere.invalid/")
    made.link(10, "/m/o/x", "/t/y")
    made.link(pages // 10, "/s/c/echo", "/s/broken/1")
    made.link(pages // 7, "/s/give", "/s/hidden")
    made.pages |= {"/s/broken/0": Page("broken", 500), "/s/broken/1": Page("broken", 500)}
    made.chain(*HOPS, to=page("the end", "/t/y", "/u/z"))
    made.chain(*(f"/s/way/{number}" for number in range(1, 6)), to=page("the way", "/s/far"))
    made.pages |= {f"/s/long/{number}": page(f"long {number}", f"/s/long/{number + 1}") for number in (1, 2)}
    made.pages |= {f"/s/far/{number}": page(f"far {number}", f"/s/far/{number + 1}") for number in range(1, 6)}
    made.pages |= {path: page(path) for path in ("/m/o/x", "/t/y", "/u/z", "/s/far/6", "/s/hidden", "/s/listed")}
    made.pages["/s/long/3"] = page("long 3", "/s/far")
    made.pages["/s/far"] = page("far", "/s/far/1")
    made.pages["/s/quiet"] = page("quiet", "/s/hidden", head='<meta name="robots" content="nofollow">')
    made.pages["/s/give"] = Page(page("give", "/s/c/taken"), headers={"Set-Cookie": "late=1; Path=/s/c"})
    made.pages["/s/c/taken"] = lambda hit: page(f"taken with {hit.headers.get('cookie')}")
    made.pages["/s/c/echo"] = lambda hit: page(f"echo of {hit.headers.get('cookie')}")
    made.pages["/s/"] = Page(str(made.pages["/s/"]), headers={"Set-Cookie": "first=1; Path=/s"})
    made.pages["/robots.txt"] = lambda hit: (
        f"User-agent: *\nDisallow: /s/private/\nSitemap: http://{hit.host}/map.xml\n"
    )
    made.pages["/map.xml"] = lambda hit: f"<urlset><url><loc>http://{hit.host}/s/listed</loc></url></urlset>"
    return made.pages


def seeds_of(served: Served) -> list[str]:
    return [served.url("/s/"), served.url("/m/n/start")]


# Back and forth

VARIANTS: dict[str, tuple[int, dict[str, Any]]] = {
    "everything": (500, {}),
    "page limit": (400, {"page_limit": 240}),
    "max depth": (300, {"max_depth": 4}),
    "query": (300, {"query": "castle candle"}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_back_and_forth(homes: list[Home], variant: str) -> None:
    whole, ours, cut, _ = homes
    pages, limits = VARIANTS[variant]
    given = {"checkpoint_every": EVERY, "max_retries": 1, **limits}
    with Site(varied_site(pages)).serve() as served:
        whole.crawl(*seeds_of(served), workers=1, **given)
        ours.crawl(*seeds_of(served), workers=8, **given)
        undisturbed = written(whole)
        assert_same(written(ours), undisturbed)

        for number in (4, 4, 0) if variant == "everything" else (4,):
            ended = go_on(ours, number, workers=8, **given)
            assert ended.run_state == "completed"
            assert_same(written(ours), undisturbed)
            assert places(ours) == places(whole)

        number = checkpoints(ours)[4][0]
        requests = exported(ours, number)["metrics"]["requests"]
        assert cut.crawl(*seeds_of(served), budget=requests, **given).ended_by == "budget"
        assert go_on(ours, number, max_time=AT_ONCE, **given).fetched == 0
        assert_same(written(ours), written(cut))
        for home in (cut, ours):
            home.resume(budget=0, max_time=0)
            assert_same(written(home), undisturbed)
    assert ours.story() == whole.story()
    assert ours.export("urls") == whole.export("urls")
    assert set(whole.reasons()) > {"robots", "out_of_scope"} or variant in ("everything", "query")
    assert {kind for _, kind in whole.outcomes()} == {"page", "duplicate", "redirect", "http_4xx", "http_5xx"}


def plain_site(pages: int) -> Pages:
    """A small site with copies, dead links and forbidden pages."""
    site: Pages = dict(linked_site(pages, duplicates=pages // 10))
    for number in range(0, pages, 7):
        path = f"/p{number}" if number else "/"
        more = "".join(f'<li><a href="/{name}/{number}">x</a></li>' for name in ("gone", "private"))
        site[path] = str(site[path]).replace("</ul>", f"{more}</ul>")
    return {**site, "/robots.txt": "User-agent: *\nDisallow: /private/\n"}


def test_from_before_the_first_fetch(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    with Site(plain_site(60)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        assert ours.crawl(served.url("/"), checkpoint_every=10, max_time=AT_ONCE).fetched == 0
        made = ours.app.steer.checkpoint(ours.word)
        assert (made.checkpoint_number, made.seq, made.current_substate) == (1, 0, "seeding")
        ours.resume(max_time=0)
        for number in (1, 0):
            before = len(served.log)
            assert go_on(ours, number).run_state == "completed"
            assert len(served.log) - before == len(set(served.paths())), "everything is asked for again"
            assert_same(written(ours), written(whole))
    assert checkpoints(ours, "pause") == [(0, 0)]
    assert checkpoints(ours, "manual") == [(1, 0)]


@pytest.mark.parametrize("workers", [1, 16])
def test_automatic_checkpoints_are_the_same_however_a_run_is_cut(homes: list[Home], workers: int) -> None:
    whole, cut, *_ = homes
    with Site(plain_site(90)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        while cut.crawl(served.url("/"), checkpoint_every=10, budget=23, workers=workers).run_state == "paused":
            pass
    made = [one["progress"] for one in whole.checkpoints()]
    assert [one["pages"] for one in made] == sorted(one["pages"] for one in made) and len(made) == 9
    assert_same(written(cut), written(whole))
    assert len(checkpoints(cut, "pause")) == 4


def test_no_automatic_checkpoints_when_none_are_wanted(home: Home) -> None:
    with Site(plain_site(30)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=0)
    assert checkpoints(home) == []
    assert "No checkpoints yet." in home.cli("checkpoints", home.word).stdout


def test_several_hosts_each_keep_their_order(homes: list[Home]) -> None:
    """A host that was met after the checkpoint has no lane any more."""
    whole, ours, *_ = homes
    names = [f"a{number}.localhost" for number in range(4)]
    hosts: dict[str, Pages] = {name: dict(linked_site(25, seed=number)) for number, name in enumerate(names)}
    for here, there in pairwise(names):
        text = str(hosts[here]["/p12"])
        hosts[here]["/p12"] = lambda hit, text=text, there=there: text.replace(  # type: ignore[misc]
            "</ul>", f'<li><a href="http://{there}:{hit.host.partition(":")[2]}/">over</a></li></ul>'
        )
    with Site({}, hosts).serve() as served:
        given: dict[str, Any] = {"scope": "any", "checkpoint_every": 5}
        whole.crawl(served.url("/", names[0]), **given)
        ours.crawl(served.url("/", names[0]), **given)
        assert go_on(ours, 0, max_time=AT_ONCE, scope="any").order == "exact", "one host is known"
        for index in (0, 3, 9):
            assert go_on(ours, checkpoints(ours)[index][0], workers=3).pages == 100
            for name in names:
                assert _of_host(ours, name) == _of_host(whole, name)


def _of_host(home: Home, name: str) -> list[str]:
    return [url for url in home.urls() if url.startswith(f"http://{name}:")]


@pytest.mark.parametrize("lost", [False, True], ids=["all reached", "some lost"])
def test_a_run_that_builds_on_another(homes: list[Home], lost: bool) -> None:
    """Going back in the second run leaves the first one alone; `lost` are pages that no link leads to any more."""
    whole, ours, *_ = homes
    site = plain_site(60)
    with Site(site).serve() as served:
        for home in (whole, ours):
            home.crawl(served.url("/"), checkpoint_every=10)
        first = written(ours)
        text = page("changed", "/p16") if lost else str(site["/p3"])
        site["/p3"] = text.replace("</ul>", '<li><a href="/only/new">new</a></li></ul>')
        site["/only/new"] = page("new")
        for home in (whole, ours):
            assert home.crawl(served.url("/"), checkpoint_every=10).run == 1
        for number in (9, 7):
            go_on(ours, number)
            assert_same(written(ours, 1), written(whole, 1))
            assert_same(written(ours, 0), first, "url")
    assert places(ours) == places(whole)


# Orders are undone too


class JumpingClock(SystemClock):
    """The real clock, and what a test adds to it."""

    ahead = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + round(1000 * self.ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.mark.parametrize("order", ["retry", "clear"])
def test_an_order_is_undone(homes: list[Home], order: str) -> None:
    whole, ours, *_ = homes
    with Site(plain_site(90)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        ours.crawl(served.url("/"), checkpoint_every=10, budget=70)
        number = checkpoints(ours, "auto")[-2][0]
        if order == "retry":
            assert ours.app.queue.retry(ours.word) == 2
            ours.resume(budget=20)
        else:
            assert ours.app.queue.clear(ours.word) > 20
            assert ours.status()["run_state"] == "completed"
        go_on(ours, number)
    assert_same(written(ours), written(whole))


def test_a_robots_file_that_was_read_again_is_what_it_was(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    clock, site = JumpingClock(), plain_site(60)
    ours.app.close()
    ours.app = App(ours.folder, clock)
    with Site(site).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10, sitemap=False)
        ours.crawl(served.url("/"), checkpoint_every=10, sitemap=False, budget=35)
        clock.ahead, site["/robots.txt"] = 86_500.0, "User-agent: *\nDisallow: /p\n"
        assert ours.resume(budget=0).pages < 35
        assert served.paths().count("/robots.txt") == 3
        clock.ahead = 0.0
        go_on(ours, 1)
        assert served.paths().count("/robots.txt") == 3, "what it said before holds again"
    assert_same(written(ours), written(whole))


def test_followers_are_told(home: Home) -> None:
    with Site(plain_site(40)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10)
        with copied(home) as db:
            log, seq = checker.value(db, "SELECT MAX(log_id) FROM visit"), checker.value(db, "SELECT seq FROM run")
        start = dict(checkpoints(home))[1]
        go_on(home, 1, budget=5)
        with copied(home) as db:
            assert db.execute("SELECT run_id, from_seq, to_seq, log_id FROM undone").fetchall() == [
                (1, start + 1, seq, log + 1)
            ]
            again = db.execute("SELECT seq, log_id FROM visit WHERE seq > ? ORDER BY seq", (start,)).fetchall()
    assert [number for _, number in again] == list(range(log + 2, log + 2 + len(again)))


# Which checkpoints there are


def test_every_stop_that_leaves_a_run_open_leaves_a_checkpoint(home: Home) -> None:
    with Site(linked_site(400), latency=(0.01, 0.02)).serve() as served:
        stops: list[Callable[[], object]] = [
            lambda: home.crawl(served.url("/"), budget=5, checkpoint_every=0),
            lambda: home.resume(budget=0, max_time=0.3, checkpoint_every=0),
            lambda: _stopped(home, served, "pause"),
            lambda: _stopped(home, served, "cancel"),
        ]
        for count, stop in enumerate(stops, 1):
            stop()
            made = home.checkpoints()
            assert [one["checkpoint_type"] for one in made] == ["pause"] * count
            assert made[-1]["progress"]["urls"]["pending"] == home.status()["pending"] > 0
            assert made[-1]["can_resume"]
        assert home.status()["run_state"] == "cancelled"
        assert go_on(home, 3, max_time=AT_ONCE).run_state == "paused"
        assert home.app.steer.cancel(home.word) == "cancelled"
        assert len(checkpoints(home)) == 4, "there is one at this place already"


def _stopped(home: Home, served: Served, verb: str) -> None:
    """A session in another process, stopped by this command."""
    asked = len(served.log) + 5
    with home.running("resume", home.word, "--delay", "0", "--max-time", "0", "--checkpoint-every", "0") as process:
        wait_until(lambda: len(served.log) > asked)
        home.cli(verb, home.word)
        process.communicate(timeout=PATIENCE)


def test_an_error_leaves_a_checkpoint(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    seen: list[FinishedVisit] = []

    def fail(visit: FinishedVisit) -> None:
        seen.append(visit)
        if len(seen) == 20:
            raise Broken("The disk is full.")

    with Site(plain_site(60)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        with pytest.raises(Broken):
            ours.crawl(served.url("/"), hooks=Hooks(visited=fail), checkpoint_every=10)
        made = ours.checkpoints()[-1]
        assert (made["checkpoint_type"], made["can_resume"]) == ("error", True)
        ours.resume()
        assert_same(written(ours), written(whole))
        go_on(ours, made["checkpoint_number"])
    assert_same(written(ours), written(whole))


@pytest.mark.parametrize("stop", ["finished", "cancelled"])
def test_a_run_that_is_over_is_opened_again(homes: list[Home], stop: str) -> None:
    whole, ours, *_ = homes
    with Site(plain_site(60)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        ours.crawl(served.url("/"), checkpoint_every=10, budget=0 if stop == "finished" else 45)
        if stop == "cancelled":
            ours.app.steer.cancel(ours.word)
        with pytest.raises(NotNow, match="no paused run"):
            ours.resume()
        assert go_on(ours, 2, budget=5).run_state == "paused"
        ours.resume(budget=0)
    assert_same(written(ours), written(whole))
    assert ours.status()["run_state"] == "completed"


def test_a_checkpoint_made_while_another_process_crawls(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    site = Site(plain_site(150), latency=(0.03, 0.05))
    with site.serve() as served:
        with ours.running("crawl", served.url("/"), "--delay", "0", "--checkpoint-every", "0") as process:
            wait_until(lambda: len(served.log) > 20)
            made = ours.ask("checkpoint", ours.word)
            with pytest.raises(Owned):
                ours.app.steer.delete_checkpoint(ours.word, made["checkpoint_number"])
            process.communicate(timeout=PATIENCE)
        assert (made["checkpoint_type"], made["can_resume"], made["run"]) == ("manual", True, 0)
        assert made["seq"] > 5
        assert checkpoints(ours) == [(0, made["seq"])]
        site.latency = (0.0, 0.0)
        whole.crawl(served.url("/"), checkpoint_every=0)
        go_on(ours, 0)
    assert_same(written(ours), written(whole))


def test_without_a_checkpoint_it_simply_goes_on(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    with Site(plain_site(60)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        ours.crawl(served.url("/"), checkpoint_every=10, budget=25)
        assert ours.ask("continue", ours.word, "--delay", "0", "--budget", "0")["run_state"] == "completed"
        assert "no paused run" in ours.cli("continue", ours.word, code=1).stderr
    assert_same(written(ours), written(whole))
    with copied(ours) as db:
        assert checker.value(db, "SELECT COUNT(*) FROM undone") == 0


# What is refused


@pytest.fixture
def crawled(home: Home) -> Iterator[Home]:
    """A crawl of sixty pages that is complete, with a checkpoint every ten, and with its site still there."""
    with Site(plain_site(60)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10)
        yield home


def test_a_later_run_is_in_the_way(crawled: Home) -> None:
    before = written(crawled)
    crawled.crawl(*crawled.status()["seeds"])
    said = crawled.cli("continue", crawled.word, "--checkpoint", "2", code=1).stderr
    assert "Run 1 builds on run 0" in said and "--as-new-run" in said
    assert_same(written(crawled), before, "url")
    assert crawled.status()["run"] == 1


def test_a_checkpoint_of_a_run_that_was_over(crawled: Home) -> None:
    before = written(crawled)
    made = crawled.ask("checkpoint", crawled.word)
    assert (made["current_state"], made["can_resume"]) == ("completed", False)
    for more in ((), ("--as-new-run",)):
        number = str(made["checkpoint_number"])
        said = crawled.cli("continue", crawled.word, "--checkpoint", number, *more, code=1).stderr
        assert "cannot resume from terminal state" in said and "completed" in said
    assert_same(written(crawled), before)


@pytest.mark.parametrize("text", ["99", "x", "-1", "", "1.5", "_ckpt_", "{}_ckpt_99", "{}_ckpt_"])
def test_ids_that_mean_nothing(crawled: Home, text: str) -> None:
    before = written(crawled)
    name = text.format(crawled.word)
    for command in ("continue", "--checkpoint"), ("checkpoints", "--delete"), ("checkpoints", "--export"):
        said = crawled.cli(command[0], crawled.word, f"{command[1]}={name}", code=2).stderr
        assert "checkpoint" in said and "inchworm checkpoints" in said
    assert_same(written(crawled), before)


def test_an_id_in_its_long_form(crawled: Home) -> None:
    before = written(crawled)
    name = crawled.checkpoints()[3]["checkpoint_id"]
    assert name == f"{crawled.word}_ckpt_3"
    assert crawled.ask("continue", crawled.word, "--checkpoint", name, "--delay", "0")["run_state"] == "completed"
    assert_same(written(crawled), before)


def test_settings_of_the_run_cannot_change_on_the_way_back(crawled: Home) -> None:
    before = written(crawled)
    said = crawled.cli("continue", crawled.word, "--checkpoint", "1", "--max-depth", "3", code=2).stderr
    assert "max_depth" in said
    assert_same(written(crawled), before)


# Looking after checkpoints


def test_deleting(crawled: Home) -> None:
    numbers = [number for number, _ in checkpoints(crawled)]
    assert numbers == [0, 1, 2, 3, 4, 5]
    crawled.cli("checkpoints", crawled.word, "--delete", "5")
    assert crawled.ask("checkpoints", crawled.word, "--delete", "2") == {"deleted": 2}
    crawled.cli("checkpoints", crawled.word, "--delete", "2", code=2)
    crawled.cli("continue", crawled.word, "--checkpoint", "2", code=2)
    assert [number for number, _ in checkpoints(crawled)] == [0, 1, 3, 4]
    assert crawled.ask("checkpoint", crawled.word)["checkpoint_number"] == 6, "a number is not given again"
    assert not unsound(crawled)


@pytest.mark.parametrize(("kept", "left"), [("0", []), ("2", [4, 5]), ("6", [0, 1, 2, 3, 4, 5])])
def test_keeping_the_last(crawled: Home, kept: str, left: list[int]) -> None:
    assert crawled.ask("checkpoints", crawled.word, "--keep-last", kept) == {"deleted": 6 - len(left)}
    assert [number for number, _ in checkpoints(crawled)] == left
    crawled.cli("checkpoints", crawled.word, "--keep-last", "-1", code=2)


def test_keeping_more_than_there_are(crawled: Home) -> None:
    assert crawled.app.steer.keep_checkpoints(crawled.word, 8) == 0
    assert len(checkpoints(crawled)) == 6


def test_a_number_never_means_another_checkpoint(crawled: Home) -> None:
    """Whoever noted a number before somebody else went back must not go to another place by it."""
    before = dict(checkpoints(crawled))
    go_on(crawled, 2)
    after = dict(checkpoints(crawled))
    assert list(after) == [0, 1, 2, 6, 7, 8]
    assert list(after.values()) == list(before.values()), "the same places"
    with pytest.raises(Unknown, match="no checkpoint '4'"):
        go_on(crawled, 4)


def test_what_was_kept_still_works(crawled: Home) -> None:
    before = written(crawled)
    crawled.cli("checkpoints", crawled.word, "--keep-last", "3")
    go_on(crawled, 3)
    assert_same(written(crawled), before, "checkpoint")


def test_stats(crawled: Home) -> None:
    crawled.cli("checkpoint", crawled.word)
    found = crawled.ask("checkpoints", crawled.word, "--stats")
    listed = crawled.ask("checkpoints", crawled.word)["checkpoints"]
    assert found.pop("total_size_bytes") == sum(one["file_size_bytes"] for one in listed) > 0
    assert found == {
        "crawl_id": crawled.word,
        "total_checkpoints": 7,
        "latest_checkpoint_id": f"{crawled.word}_ckpt_6",
        "latest_checkpoint_created": listed[-1]["created_at"],
        "latest_checkpoint_state": "completed",
        "can_resume": False,
        "checkpoint_types": {"auto": 6, "manual": 1, "pause": 0, "error": 0},
    }
    assert "total checkpoints" in crawled.cli("checkpoints", crawled.word, "--stats").stdout
    table = crawled.cli("checkpoints", crawled.word).stdout.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [[str(n), "auto"] for n in range(6)] + [["6", "manual"]]


def test_an_empty_list_has_stats_too(home: Home) -> None:
    with Site(plain_site(10)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=0)
    found = home.ask("checkpoints", home.word, "--stats")
    assert (found["total_checkpoints"], found["latest_checkpoint_id"], found["can_resume"]) == (0, None, False)


# The state at a checkpoint


def test_the_exported_state_is_that_of_its_position(home: Home, tmp_path: Path) -> None:
    site = plain_site(90)
    with Site(site).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10, budget=50)
        (number, _), progress = checkpoints(home, "pause")[0], home.status()
        standing, ends = _standing(home), dict(home.outcomes())
        there = exported(home, number)
        home.app.queue.retry(home.word)
        site["/gone/7"] = page("back again")
        home.resume(budget=0)
        home.app.queue.retry(home.word)
        out = tmp_path / "state.json.gz"
        told = home.ask("checkpoints", home.word, "--export", str(number), "-o", str(out))
    state = json.loads(gzip.decompress(out.read_bytes()))
    assert set(state) == {
        *("checkpoint_id", "crawl_id", "created_at", "current_state", "current_substate"),
        *("crawled_urls", "queued_urls", "failed_urls", "downloaded_documents", "progress", "metrics", "config"),
    }
    assert told == {
        "path": str(out),
        "count": sum(len(state[f"{name}_urls"]) for name in ("crawled", "queued", "failed")),
    }
    for name in ("crawled_urls", "queued_urls", "failed_urls", "downloaded_documents"):
        assert sorted(state[name]) == sorted(there[name])
    assert sorted(state["queued_urls"]) == sorted(url for url, word in standing.items() if word == "pending")
    done = {path: ends[path] for url, word in standing.items() if word == "done" and (path := path_of(url))}
    assert sorted(map(path_of, state["failed_urls"])) == sorted(path for path, end in done.items() if end == "http_4xx")
    assert sorted(map(path_of, state["crawled_urls"])) == sorted(
        path for path, end in done.items() if end != "http_4xx"
    )
    assert sorted(map(path_of, state["downloaded_documents"])) == sorted(p for p, end in done.items() if end == "page")
    assert (state["metrics"]["pages"], state["metrics"]["pending"]) == (progress["pages"], progress["pending"])
    assert (state["current_state"], state["current_substate"]) == ("crawling", "downloading_pages")
    assert state["config"]["scope"] == "path"


def _standing(home: Home) -> dict[str, str]:
    """Where each page stands."""
    with copied(home) as db:
        query = "SELECT url, state FROM frontier JOIN url USING (url_id) WHERE kind IN ('page', 'resource')"
        return dict(db.execute(query))


def test_what_was_refused_is_not_exported_as_crawled(home: Home) -> None:
    pages = {"/": page("home", "/a", "http://elsewhere.invalid/"), "/a": page("a")}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=1)
    state = exported(home, 0)
    assert state["crawled_urls"] == state["downloaded_documents"] == [served.url("/")]


def test_the_exported_queue_is_in_the_order_it_had(home: Home) -> None:
    with Site({"/": page("home", "/a", "/b"), "/a": Page("gone", 410), "/b": page("b")}).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=1)
        before = exported(home, 0)["queued_urls"]
        home.app.queue.retry(home.word)
    assert exported(home, 0)["queued_urls"] == before == [served.url("/a"), served.url("/b")]


# Is the archive still there?


def _spot(home: Home, seq: int) -> tuple[Path, int, int]:
    """Where the record of a visit lies: its file, its place and its length."""
    with copied(home) as db:
        query = 'SELECT a.name, v."offset", v.length FROM visit v JOIN archive a USING (file_id) WHERE v.seq = ?'
        name, offset, length = db.execute(query, (seq,)).fetchone()
    return folder_of(home) / "archive" / name, offset, length


def _flip(home: Home, seq: int) -> Path:
    """Change one byte in the middle of a record."""
    path, offset, length = _spot(home, seq)
    data = bytearray(path.read_bytes())
    data[offset + length // 2] ^= 0xFF
    path.write_bytes(data)
    return path


def _remove(home: Home, seq: int) -> Path:
    path, _, _ = _spot(home, seq)
    path.unlink()
    return path


@pytest.mark.parametrize("more", [(), ("--as-new-run",)], ids=["back", "branch"])
@pytest.mark.parametrize("damage", [_flip, _remove], ids=["a byte", "a file"])
def test_a_damaged_archive_is_noticed(
    crawled: Home, damage: Callable[[Home, int], Path], more: tuple[str, ...]
) -> None:
    seq, before = dict(checkpoints(crawled))[3], written(crawled)
    path = damage(crawled, seq - 10)
    files = {one: one.read_bytes() for one in path.parent.iterdir()}
    named = ("continue", crawled.word, "--checkpoint", "3", "--delay", "0", *more)
    said = crawled.cli(*named, code=1).stderr
    assert path.name in said and "--no-validate" in said and "doctor" in said
    assert {one: one.read_bytes() for one in path.parent.iterdir()} == files
    with copied(crawled) as db:
        assert checker.value(db, "SELECT COUNT(*) FROM undone") == 0
        assert checker.value(db, "SELECT COUNT(*) FROM run WHERE state = 'completed' AND ended_ms > 0") == 1
        assert [visit["seq"] for visit in before["visit"]] == [
            n for (n,) in db.execute("SELECT seq FROM visit ORDER BY 1")
        ]
    crawled.cli(*named, "--no-validate")
    assert crawled.status()["run_state"] == "completed"
    assert crawled.runs()[-1].state == "completed"


def test_damage_after_the_checkpoint_does_not_matter(crawled: Home) -> None:
    before = written(crawled)
    _flip(crawled, dict(checkpoints(crawled))[3] + 1)
    go_on(crawled, 3)
    assert_same(written(crawled), before)


def test_a_file_of_long_ago_that_is_missing_is_noticed(home: Home) -> None:
    with Site(plain_site(90)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=10, budget=15)
        home.crawl(served.url("/"), checkpoint_every=10)
        path = _remove(home, 2)
        said = home.cli("continue", home.word, "--checkpoint", "8", "--delay", "0", code=1).stderr
    assert path.name in said


# Mistakes


def test_a_number_beyond_all_numbers(crawled: Home) -> None:
    crawled.cli("continue", crawled.word, "--checkpoint", "9" * 30, code=2)


def test_an_id_of_another_crawl(crawled: Home) -> None:
    crawled.cli("checkpoints", crawled.word, "--delete", "0123456789_ckpt_3", code=2)


@pytest.mark.parametrize(
    "more", [("--proxy", "ftp://x"), ("--as-new-run", "--replay", "missing.warc.gz")], ids=["proxy", "replay"]
)
def test_a_wrong_setting_changes_nothing(crawled: Home, more: tuple[str, ...]) -> None:
    before = written(crawled)
    crawled.cli("continue", crawled.word, "--checkpoint", "1", *more, code=2)
    assert (crawled.status()["run"], crawled.status()["run_state"]) == (0, "completed")
    assert_same(written(crawled), before)


def test_going_back_after_a_crash_leaves_no_error_behind(homes: list[Home]) -> None:
    whole, ours, *_ = homes
    with Site(plain_site(60)).serve() as served:
        whole.crawl(served.url("/"), checkpoint_every=10)
        named = ("crawl", served.url("/"), "--delay", "0", "--checkpoint-every", "10")
        ours.process(*named, code=-signal.SIGKILL, INCHWORM_FAULT="after_fetch:45")
        go_on(ours, 1)
    assert_same(written(ours), written(whole))
    assert places(ours) == places(whole)


def test_two_orders_to_retry_at_once(home: Home) -> None:
    with Site({**linked_site(30), "/p1": Page("gone", 410)}).serve() as served:
        home.crawl(served.url("/"), budget=10)
        for _ in range(2):
            home.app.workspace.requests.ask(home.word, "retry", {"kind": None, "url": None}, 1)
        home.crawl(served.url("/"), delay=0.05)


def test_an_export_that_fails_leaves_no_file(crawled: Home, tmp_path: Path) -> None:
    out = tmp_path / "out" / "state.json.gz"
    out.parent.mkdir()
    crawled.cli("checkpoints", crawled.word, "--export", "99", "-o", str(out), code=2)
    assert list(out.parent.iterdir()) == []


def test_a_branch_that_is_refused_leaves_no_checkpoint(crawled: Home) -> None:
    before = checkpoints(crawled)
    crawled.cli("continue", crawled.word, "--as-new-run", code=1)
    assert checkpoints(crawled) == before


# Anything, in any order


def small_site(shape: list[tuple[int, int, int]]) -> Pages:
    """One URL per triple: what kind of thing it is, and two URLs that it links or leads to."""
    names = ["/", *(f"/u{number}" for number in range(1, len(shape)))]
    site: Pages = {"/robots.txt": "User-agent: *\nDisallow: /u3\n"}
    for number, (kind, one, other) in enumerate(shape):
        # Each page links to the next one as well, so that little is out of reach.
        links = [names[(number + 1) % len(names)], names[one % len(names)], names[other % len(names)]]
        answers: list[Answer] = [
            page(f"page {number}", *links),
            page(f"page {number // 4}", *links),
            redirect(links[1]),
            Page("gone", 410),
        ]
        site[names[number]] = answers[kind if number else 0]
    return site


SITES = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 2, 3]), st.integers(0, 30), st.integers(0, 30)), min_size=4, max_size=25
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["crawl", "crawl", "back", "back", "retry", "checkpoint"]), st.integers(0, 9)), max_size=8
)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SITES, STEPS)
def test_whatever_was_done_the_record_is_that_of_an_undisturbed_crawl(
    tmp_path: Path, shape: list[tuple[int, int, int]], steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, Site(small_site(shape)).serve() as served:
        ours, calm = Home(Path(folder) / "ours"), Home(Path(folder) / "calm")
        named: dict[str, Any] = {"sitemap": False, "checkpoint_every": 2}
        orders: dict[int, int] = {}
        ours.crawl(served.url("/"), max_time=AT_ONCE, **named)
        for verb, number in [*steps, ("crawl", -1)]:
            if verb in ("crawl", "retry") and ours.status()["run_state"] == "paused":
                ours.crawl(served.url("/"), budget=number + 1, **named)
            if verb == "retry" and ours.app.queue.retry(ours.word):
                orders[_seq(ours)] = ours.status()["requests"]
            if verb == "checkpoint":
                ours.app.steer.checkpoint(ours.word)
            if verb == "back":
                points = [one for one in ours.checkpoints() if one["can_resume"]]
                point = points[number % len(points)]
                go_on(ours, point["checkpoint_number"], max_time=AT_ONCE)
                orders = {seq: requests for seq, requests in orders.items() if seq <= point["seq"]}
        calm.crawl(served.url("/"), max_time=AT_ONCE, **named)
        for requests in orders.values():
            calm.crawl(served.url("/"), budget=requests - calm.status()["requests"], **named)
            assert calm.app.queue.retry(calm.word)
        calm.crawl(served.url("/"), **named)
        assert_same(written(ours), written(calm))
        assert not unsound(ours)
        for home in (ours, calm):
            home.app.close()


def _seq(home: Home) -> int:
    with copied(home) as db:
        return int(checker.value(db, "SELECT seq FROM run"))
