"""Stopping and going on: from the keyboard, from another process, by death; and what can be done with a run then."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from tests.flow.crawling import Home, asked, chain, page, wait_until

from inchworm.app import App, SystemClock
from inchworm.errors import Frozen, InchwormError, NotNow, Unknown
from inchworm.testing import Answer, Page, Served, Site, linked_site, redirect

SLOWLY = (0.05, 0.1)
"""Latency of a site that is still being crawled when a test stops the crawl."""


def summary_of(process: Popen[str]) -> dict[str, Any]:
    """The last line of what a crawl printed, once it ended."""
    out, err = process.communicate(timeout=20)
    assert out, err
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def crawl(served: Served, *more: str, path: str = "/") -> tuple[str, ...]:
    return ("crawl", served.url(path), "--delay", "0", "--json", *more)


def started(served: Served, count: int = 12) -> None:
    """Wait until a crawl is well under way."""
    wait_until(lambda: len(served.log) >= count)


# From the keyboard, and by signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_pauses_and_the_same_command_goes_on(homes: list[Home], number: signal.Signals, code: int) -> None:
    home, whole, *_ = homes
    site = Site(linked_site(80), latency=SLOWLY)
    with site.serve() as served:
        with home.running(*crawl(served)) as process:
            started(served)
            process.send_signal(number)
            ended = summary_of(process)
        assert process.returncode == code
        assert (ended["ended_by"], ended["run_state"], ended["session_state"]) == ("paused", "paused", "completed")
        assert 0 < ended["pages"] < 80
        assert ended["pending"] > 0
        assert (home.status()["run_state"], home.faults()) == ("paused", [])

        site.latency = (0.0, 0.0)
        done = json.loads(home.process(*crawl(served)).stdout)
        assert (done["run"], done["session"], done["run_state"], done["pages"]) == (0, 2, "completed", 80)
        assert max(Counter(asked(served)).values()) == 1, "what was under way could finish and is not asked for again"
        whole.crawl(served.url("/"))
    assert home.export("urls") == whole.export("urls")
    assert home.story() == whole.story()


def test_a_crawl_in_the_background_of_a_script_does_not_hear_ctrl_c(home: Home) -> None:
    """A shell starts it with SIGINT ignored, as nohup does with SIGHUP: it is not the one that is meant."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Site(linked_site(200), latency=SLOWLY).serve() as served, home.running(*crawl(served)) as process:
            started(served)
            process.send_signal(signal.SIGINT)
            count = len(served.log)
            wait_until(lambda: len(served.log) > count + 10)
            process.send_signal(signal.SIGTERM)
            ended = summary_of(process)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (process.returncode, ended["run_state"]) == (143, "paused")


def test_what_hangs_gets_the_grace_time(home: Home) -> None:
    site = {"/": page("home", "/hangs", "/a"), "/a": page("a"), "/hangs": Page("late", delay=30)}
    with Site(site).serve() as served:
        with home.running(*crawl(served, "--grace", "0.5")) as process:
            wait_until(lambda: "/hangs" in served.paths())
            asked_at = time.monotonic()
            process.send_signal(signal.SIGINT)
            ended = summary_of(process)
        assert 0.5 <= time.monotonic() - asked_at < 5
        assert (process.returncode, ended["run_state"]) == (130, "paused")
        assert home.show(served.url("/hangs"))["state"] == "pending"


def test_a_second_ctrl_c_waits_for_nothing(home: Home) -> None:
    with Site({"/": page("home", "/hangs"), "/hangs": Page("late", delay=30)}).serve() as served:
        with home.running(*crawl(served, "--grace", "25")) as process:
            wait_until(lambda: "/hangs" in served.paths())
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            ended = summary_of(process)
        assert (process.returncode, ended["run_state"], ended["pending"]) == (130, "paused", 1)


# From another process


def test_pause_and_status_from_another_process(home: Home) -> None:
    site = Site(linked_site(200), latency=SLOWLY)
    with site.serve() as served:
        with home.running(*crawl(served)) as process:
            started(served)
            status = home.ask("status", served.url("/"))
            assert (status["run_state"], status["owner"]["pid"]) == ("in_progress", process.pid)
            assert status["sessions"][-1]["state"] == "in_progress"
            assert home.ask("pause", served.url("/")) == {"run_state": "paused"}
            ended = summary_of(process)
        assert (process.returncode, ended["ended_by"], ended["run_state"]) == (0, "paused", "paused")
        assert home.status()["owner"] is None
        site.latency = (0.0, 0.0)
        assert json.loads(home.cli("resume", home.word, "--json").stdout)["pages"] == 200
        nothing = home.cli("pause", home.word, code=1)
        assert "nothing running to pause" in nothing.stderr


def test_cancel_from_another_process(home: Home) -> None:
    site = Site(linked_site(200), latency=SLOWLY)
    with site.serve() as served:
        with home.running(*crawl(served)) as process:
            started(served)
            assert home.ask("cancel", served.url("/")) == {"run_state": "cancelled"}
            ended = summary_of(process)
        assert (ended["ended_by"], ended["run_state"], ended["session_state"]) == ("cancelled", "cancelled", "failed")
        assert home.faults() == []
        with pytest.raises(NotNow, match="no paused run to resume"):
            home.resume()
        site.latency = (0.0, 0.0)
        again = home.crawl(served.url("/"))
        assert (again.run, again.run_state, again.pages) == (1, "completed", 200)
        assert 0 < len(home.urls(run=0)) < 200, "what the cancelled run has stays"


def test_cancel_a_paused_run(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"), budget=5)
        assert home.app.steer.cancel(home.word) == "cancelled"
        with pytest.raises(NotNow, match="no open run to cancel"):
            home.app.steer.cancel(home.word)
        assert home.crawl(served.url("/")).run == 1


def test_one_owner(home: Home) -> None:
    """Whoever else wants to work on the crawl is told who does, and nothing happens to it."""
    with Site(linked_site(500), latency=SLOWLY).serve() as served:
        with home.running(*crawl(served)) as process:
            started(served)
            assert f"process {process.pid} " in home.process(*crawl(served), code=3).stderr
            for refused in (
                crawl(served, "--fresh"),
                ("resume", served.url("/")),
                ("queue", served.url("/"), "--clear"),
                ("delete", served.url("/"), "--yes"),
            ):
                assert f"process {process.pid} " in home.cli(*refused, code=3).stderr
            process.send_signal(signal.SIGINT)
            assert summary_of(process)["session"] == 1
        assert [one["session"] for one in home.status()["sessions"]] == [1]
        assert home.faults() == []


def test_two_crawls_at_once_in_one_home(home: Home) -> None:
    sites = [Site(linked_site(60, seed=number), latency=(0.0, 0.02)) for number in (1, 2)]
    with sites[0].serve() as one, sites[1].serve() as two:
        with home.running(*crawl(one)) as first, home.running(*crawl(two)) as second:
            ended = [summary_of(first), summary_of(second)]
        assert [(end["pages"], end["run_state"]) for end in ended] == [(60, "completed")] * 2
        assert len(home.ask("list")["crawls"]) == 2
        assert home.faults() == []


def test_looking_at_a_crawl_does_not_lock_it(home: Home) -> None:
    """Somebody asks all the time whether it runs; sessions start all the same."""
    with Site(linked_site(80)).serve() as served:
        home.crawl(served.url("/"), budget=1)
        found, done = home.app.workspace.find(home.word), threading.Event()

        def look() -> None:
            watching = App(home.folder)
            while not done.is_set():
                watching.workspace.is_running(found)
            watching.close()

        watchers = [threading.Thread(target=look) for _ in range(2)]
        for watcher in watchers:
            watcher.start()
        try:
            for _ in range(12):
                assert home.resume(budget=1).fetched == 1
        finally:
            done.set()
            for watcher in watchers:
                watcher.join()


# Death


def test_a_dead_owner_means_paused(home: Home) -> None:
    site = Site(linked_site(80), latency=SLOWLY)
    with site.serve() as served:
        with home.running(*crawl(served)) as process:
            started(served)
            process.kill()
            process.wait()
        status = home.ask("status", served.url("/"))
        assert (status["run_state"], status["owner"], status["word"]) == ("paused", None, "interrupted")
        assert (status["sessions"][0]["state"], status["sessions"][0]["ended_by"]) == ("failed", "crashed")
        assert home.ask("list")["crawls"][0]["run_state"] == "paused"
        assert home.ask("queue", served.url("/"))["can_resume"]
        site.latency = (0.0, 0.0)
        ended = home.crawl(served.url("/"))
        assert (ended.session, ended.run_state, ended.pages) == (2, "completed", 80)
        assert [one["ended_by"] for one in home.status()["sessions"]] == ["crashed", "finished"]


@pytest.mark.parametrize("point", ["before_fetch", "in_recovery", "after_recovery"])
def test_death_before_the_first_page_ends_nothing(home: Home, point: str) -> None:
    """A run that has its seeds and nothing else is not a run that is complete."""
    with Site(linked_site(5)).serve() as served:
        home.process(*crawl(served), code=-signal.SIGKILL, INCHWORM_FAULT=point)
        ended = home.crawl(served.url("/"))
        assert (ended.run, ended.run_state, ended.pages) == (0, "completed", 5)


# Resuming


def test_resume_needs_a_paused_run(home: Home) -> None:
    with Site(linked_site(4)).serve() as served:
        with pytest.raises(Unknown, match="no crawl called"):
            home.app.workspace.find("nothing")
        home.crawl(served.url("/"))
        refused = home.cli("resume", home.word, code=1)
        assert "no paused run to resume" in refused.stderr
        assert "starts its next run" in refused.stderr
        assert home.status()["run"] == 0
        assert home.cli("resume", "nothing", code=2).stderr.startswith("inchworm: There is no crawl called 'nothing'")


def test_resume_with_nothing_pending_completes(home: Home) -> None:
    """As after a death between the last commit and the end of the session."""
    with Site(linked_site(4)).serve() as served:
        home.crawl(served.url("/"))
        with sqlite3.connect(home.folder / "crawls" / home.word / "crawl.db") as database:
            database.execute("UPDATE run SET state = 'in_progress', ended_ms = NULL")
            database.execute("UPDATE session SET state = 'in_progress', ended_by = NULL, ended_ms = NULL")
        database.close()
        assert home.status()["run_state"] == "paused"
        requests = len(served.log)
        done = home.cli("resume", home.word, "--json")
        ended = json.loads(done.stdout)
        assert (ended["run_state"], ended["ended_by"], ended["fetched"]) == ("completed", "finished", 0)
        assert "nothing is left to crawl" in done.stderr
        assert len(served.log) == requests


def test_settings_of_a_run_are_frozen(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        seed = served.url("/")
        home.crawl(seed, budget=3, exclude="*.zip")
        for name, value, flag in (
            ("scope", "host", "--scope"),
            ("max_depth", "3", "--max-depth"),
            ("robots", False, "--ignore-robots"),
            ("exclude", "*.pdf", "--exclude"),
        ):
            with pytest.raises(Frozen, match=f"^{name} is ") as refused:
                home.crawl(seed, **{name: value})
            assert flag in refused.value.hint
            assert "--fresh" in refused.value.hint
        assert "--fresh" in home.cli("crawl", seed, "--scope", "host", code=2).stderr
        same = home.crawl(seed, budget=3, exclude="*.zip", scope="path", workers=2, timeout=9)
        assert (same.run, same.session, same.fetched) == (0, 2, 3)

        assert home.crawl(seed).run_state == "completed"
        kept = home.app.crawls.settings_of(home.app.workspace.find(home.word))
        assert (kept["scope"], kept["max_depth"], kept["robots"], kept["exclude"]) == ("path", 0, True, ["*.zip"])


def test_fresh_starts_over(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"), budget=3)
        again = home.crawl(served.url("/"), fresh=True, scope="host")
        assert (again.run, again.session, again.pages, again.run_state) == (1, 1, 20, "completed")
        assert len(home.urls(run=0)) == 3
        assert home.app.crawls.settings_of(home.app.workspace.find(home.word))["scope"] == "host"


def test_fresh_with_a_mistake_gives_nothing_up(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"), budget=3)
        with pytest.raises(InchwormError):
            home.crawl(served.url("/"), fresh=True, include="re:(")
        ended = home.resume(budget=0)
        assert (ended.run, ended.session, ended.pages) == (0, 2, 20)


def test_the_next_run_after_a_complete_one(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"))
        done = home.cli(*crawl(served))
        ended = json.loads(done.stdout)
        assert (ended["run"], ended["session"], ended["pages"], ended["fetched"]) == (1, 1, 20, 20)
        assert "The last run" in done.stderr
        assert "complete" in done.stderr
        assert home.urls(run=0) == home.urls(run=1)


def test_the_same_seeds_are_the_same_crawl(home: Home) -> None:
    with Site({**chain(4, "/a/"), **chain(4, "/b/")}).serve() as served:
        one, two = served.url("/a/0"), served.url("/b/0")
        first = home.crawl(one, two, scope="host", budget=2)
        again = home.crawl(two, one, one, budget=2)
        assert (again.crawl_id, again.session) == (first.crawl_id, 2)
        other = home.crawl(one, name="mine", scope="host")
        assert (other.name, other.session, other.run) == ("mine", 1, 0)
        assert other.crawl_id != first.crawl_id


# Failures


def mendable() -> dict[str, Answer]:
    site: dict[str, Answer] = {"/": page("home", "/broken", "/gone", "/fine"), "/fine": page("fine")}
    return {**site, "/broken": Page("oops", 500), "/gone": Page("no", 404)}


def test_failed_urls_can_be_opened_again(home: Home) -> None:
    site = mendable()
    with Site(site).serve() as served:
        home.crawl(served.url("/"), max_retries=0)
        word = home.word
        assert [one["failure"] for one in home.ask("failed", word)["failed"]] == ["http_5xx", "http_4xx"]
        assert len(home.ask("failed", word, "--kind", "http_4xx")["failed"]) == 1
        assert home.ask("retry", word, "--kind", "timeout") == {"reopened": 0}
        assert home.ask("retry", word, "--url", served.url("/fine")) == {"reopened": 0}
        assert home.status()["run_state"] == "completed"

        site |= {"/broken": page("mended", "/new"), "/new": page("new"), "/gone": page("found")}
        assert home.ask("retry", word, "--kind", "http_5xx") == {"reopened": 1}
        assert (home.status()["run_state"], home.faults()) == ("paused", [])
        ended = home.resume()
        assert (ended.run, ended.run_state, ended.pages, ended.failed) == (0, "completed", 4, 1)

        assert home.app.queue.retry(word, url=served.url("/gone")) == 1
        ended = home.resume()
        assert (ended.pages, ended.failed, ended.word) == (5, 0, "completed")
        ends = [(path, end) for path, end in home.outcomes() if path in ("/broken", "/gone", "/new")]
        assert ends == [
            ("/broken", "http_5xx"),
            ("/gone", "http_4xx"),
            ("/broken", "page"),
            ("/new", "page"),
            ("/gone", "page"),
        ]


def test_failed_urls_can_be_opened_again_while_it_runs(home: Home) -> None:
    """The owner does it, between two commits, and goes on with them."""
    site = {**chain(30), **mendable(), "/": page("home", "/broken", "/gone", "/c0")}
    with Site(site, latency=SLOWLY).serve() as served:
        with home.running(*crawl(served, "--max-retries", "0")) as process:
            wait_until(lambda: "/c3" in served.paths())
            site["/broken"] = page("mended")
            assert home.ask("retry", served.url("/"), "--kind", "http_5xx") == {"reopened": 1}
            ended = summary_of(process)
        assert (ended["run_state"], ended["pages"], ended["failed"]) == ("completed", 32, 1)
        assert served.paths().count("/broken") == 2
        assert served.paths().index("/c29") > len(served.paths()) - 1 - served.paths()[::-1].index("/broken")
        assert home.faults() == []


def test_a_transient_failure_disturbs_the_order_and_says_so(fast: Home) -> None:
    answers: list[Answer] = [Page("not now", 503), Page("not now", 503)]
    site: dict[str, Any] = {"/": page("home", "/flaky", "/a"), "/a": page("a")}
    site["/flaky"] = lambda _: answers.pop() if answers else page("at last")
    with Site(site).serve() as served:
        ended = fast.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.failed, ended.order) == (3, 0, "disturbed at 3 by http_5xx")
        assert fast.outcomes() == [
            ("/", "page"),
            ("/flaky", "http_5xx"),
            ("/a", "page"),
            ("/flaky", "http_5xx"),
            ("/flaky", "page"),
        ]
        assert fast.status()["order"] == "disturbed at 3 by http_5xx"


# The queue, and the crawl as a whole


def test_queue_and_clearing_it(home: Home) -> None:
    with Site(linked_site(30)).serve() as served:
        ended = home.crawl(served.url("/"), budget=5)
        queue = home.ask("queue", home.word)
        assert (queue["has_queue"], queue["can_resume"], queue["run_state"]) == (True, True, "paused")
        assert (queue["visited"], queue["pending"], queue["total"]) == (5, ended.pending, 5 + ended.pending)
        assert (queue["current_run"], queue["sessions"]) == (0, [1])
        assert {"source": "initial", "state": "done", "reason": None, "count": 1} in queue["counts"]

        cleared = home.ask("queue", home.word, "--clear")
        assert (cleared["cleared"], cleared["pending"], cleared["run_state"]) == (ended.pending, 0, "completed")
        assert not cleared["can_resume"]
        assert home.reasons() == {"cleared": ended.pending}
        assert (len(home.urls()), home.faults()) == (5, [])
        again = home.crawl(served.url("/"))
        assert (again.run, again.pages) == (1, 30)


def test_list_and_delete(home: Home) -> None:
    with Site(linked_site(5)).serve() as served:
        assert "No crawls yet" in home.cli("list").stdout
        home.crawl(served.url("/"), name="mine", budget=2)
        home.crawl(served.url("/p1"), scope="host")
        listed = {one["name"]: (one["run_state"], one["pages"]) for one in home.ask("list")["crawls"]}
        assert listed == {"mine": ("paused", 2), f"127.0.0.1:{served.port}/p1": ("completed", 5)}
        folder = home.folder / "crawls" / home.app.workspace.find("mine").crawl_id
        assert folder.exists()
        home.cli("delete", "mine", "--yes")
        assert not folder.exists()
        assert [one["name"] for one in home.ask("list")["crawls"]] == [f"127.0.0.1:{served.port}/p1"]
        home.cli("status", "mine", code=2)


def test_show_settings(home: Home) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"), budget=2, scope="host", exclude=("*.zip", "re:[?]"), max_age="1h30m")
        shown = home.ask("show-settings", home.word)
        assert (shown["scope"], shown["exclude"], shown["budget"]) == ("host", ["*.zip", "re:[?]"], 2)
        assert (shown["delay"], shown["max_age"], shown["page_limit"]) == (0.0, 5400.0, 0)
        assert "host" in home.cli("show-settings", home.word).stdout


# Reusing what is there


def reusable() -> dict[str, Answer]:
    quiet = page("quiet", "/secret", head='<meta name="robots" content="nofollow">')
    site: dict[str, Answer] = {**linked_site(20, duplicates=3), "/quiet": quiet, "/secret": page("secret")}
    site["/p19"] = page("page 19", "/quiet", "/gone")
    return site


class Later(SystemClock):
    """A clock that is an hour ahead."""

    def now_ms(self) -> int:
        return super().now_ms() + 3_600_000


def test_young_pages_are_reused_without_a_request(home: Home) -> None:
    with Site(reusable()).serve() as served:
        seed = served.url("/")
        first = home.crawl(seed, robots=True, sitemap=False)
        requests = len(served.log)
        again = home.crawl(seed, max_age="1h")
        assert served.paths()[requests:] == ["/robots.txt", "/gone"], "only what has no page is asked for"
        assert (again.run, again.fetched, again.run_state) == (1, 1, "completed")
        assert (again.pages, again.duplicates, again.known) == (first.pages, first.duplicates, first.known)
        same = ("url", "outcome", "seq", "depth", "found_on", "title", "link_count", "content_hash", "alternate_urls")
        for name in same:
            assert [one[name] for one in home.record(1)] == [one[name] for one in home.record(0)]
        assert home.reason(served.url("/secret")) == "nofollow"

        assert home.crawl(seed, max_age="1h", skip_cache=True).fetched == first.fetched
        later = App(home.folder, Later())
        home.app, now = later, home.app
        assert home.crawl(seed, max_age="30m").fetched == first.fetched
        later.close()
        home.app = now


def test_reuse_keeps_to_the_page_limit(home: Home) -> None:
    with Site(linked_site(30, duplicates=10)).serve() as served:
        home.crawl(served.url("/"))
        again = home.crawl(served.url("/"), max_age="1h", page_limit=7, workers=16)
        assert (again.pages, again.fetched, again.ended_by) == (7, 0, "page_limit")


def test_a_crawl_from_its_archive(homes: list[Home], tmp_path: Path) -> None:
    """The server is gone; the WARC file answers in its place, and the record is the same."""
    live, again, *_ = homes
    site: dict[str, Answer] = {**linked_site(40, duplicates=6), "/robots.txt": "User-agent: *\nDisallow: /no\n"}
    site["/"] = page("home", "/p1", "/dir", "/to", "/gone", "/no", "/packed")
    site |= {"/dir": redirect("/dir/", 301), "/dir/": page("dir"), "/to": redirect("/p39")}
    site["/packed"] = Page(page("packed", "/p38"), gzip=True)
    with Site(site).serve() as served:
        live.crawl(served.url("/"), budget=20)
        live.crawl(served.url("/"))
        requests = len(served.log)
    path = tmp_path / "crawl.warc.gz"
    live.cli("export", live.word, "--format", "warc", "-o", str(path))
    assert path.stat().st_size > 0
    shutil.rmtree(live.folder / "crawls" / live.word / "archive")

    ended = again.crawl(served.url("/"), replay=str(path), workers=16)
    assert (ended.run_state, len(served.log)) == ("completed", requests)
    assert live.export("urls") == again.export("urls")
    assert live.story() == again.story()


@pytest.mark.parametrize(
    "given", [{"scope": "moon"}, {"include": "re:("}, {"workers": 0}, {"replay": "/nowhere.warc.gz"}], ids=str
)
def test_a_mistake_does_not_stay_with_the_crawl(home: Home, given: dict[str, Any]) -> None:
    """The command is refused; the same one without the mistake works, before there is a run and after."""
    with Site(linked_site(3)).serve() as served:
        for run in range(2):
            with pytest.raises(InchwormError):
                home.crawl(served.url("/"), **given)
            ended = home.crawl(served.url("/"))
            assert (ended.run, ended.session, ended.pages) == (run, 1, 3)
