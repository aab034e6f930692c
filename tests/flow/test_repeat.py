"""Repeating a crawl: when its runs are made, what survives, who is told, and what it cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import PATIENCE, Home, page, wait_until
from tests.sink.test_notify import Hook

from inchworm.app import App, Hooks, Start, Summary, SystemClock
from inchworm.app.act.repeat import Ending, Listener, Repetition
from inchworm.app.read.runs import RunOutcome
from inchworm.errors import InchwormError, Owned, Unknown, WrongUse
from inchworm.rules.schedule.repetition import Stop
from inchworm.rules.words.json_form import json_object
from inchworm.sink.servers.notify import signature
from inchworm.store.home.outbox import RunPromises
from inchworm.testing import Page, Site, linked_site

SOON = 0.3
"""An interval that tests can wait for."""

QUIET = {"delay": 0, "allow_private": True}


def site(text: str = "first") -> dict[str, Any]:
    return {"/": page("home", "/a", "/b"), "/a": page("a", body=f"<p>{text}</p>"), "/b": page("b")}


class Tale(Listener):
    """Remembers all that happens in a repetition, as words and numbers."""

    def __init__(self, during: Callable[[str], object] = lambda _: None) -> None:
        self.told: list[str] = []
        self.runs: list[dict[str, Any]] = []
        self.waited: list[float] = []
        self.errors: list[InchwormError] = []

        def tell(word: str) -> None:
            self.told.append(word)
            during(word)

        def ran(found: RunOutcome, _: Summary) -> None:
            self.runs.append(json_object(found))
            tell(f"run {found.line.run} {found.line.state}")

        def waits(_: int, seconds: float) -> None:
            self.waited.append(seconds)
            tell("waits")

        def failed(error: InchwormError) -> None:
            self.errors.append(error)
            tell("failed")

        super().__init__(ran=ran, waits=waits, failed=failed, said=tell)

    @property
    def done(self) -> list[str]:
        """What happened but for the waits, which a slow machine may not have the time for."""
        return [word for word in self.told if word != "waits"]


def repeat(home: Home, tale: Listener | None = None, **wanted: Any) -> Ending:
    wanted = {"given": QUIET, **wanted}
    ended = asyncio.run(asyncio.wait_for(home.app.repeat.repeat(Repetition(home.word, **wanted), tale), PATIENCE))
    faults = home.faults()
    assert not faults, faults
    return ended


def command(home: Home, *more: str) -> tuple[str, ...]:
    return ("repeat", home.word, "--delay", "0", "--json", *more)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


# Which runs are made


def test_without_an_interval_it_is_one_run(home: Home) -> None:
    with Site(site(), validators=True).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        assert repeat(home, tale) == Ending(Stop.ONCE, 1)
        assert tale.told == ["run 1 completed"]
        assert repeat(home, mode="full").iterations == 2
        assert [one.mode for one in home.runs()] == [
            "baseline",
            "incremental",
            "full",
        ]


def test_as_many_runs_as_wanted_in_all(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        repeat(home)
        tale = Tale()
        assert repeat(home, tale, every=SOON, max_iterations=3) == Ending(Stop.ENOUGH, 3)
        assert tale.done == ["run 2 completed", "run 3 completed"]
        asked = len(served.log)
        again = Tale()
        assert repeat(home, again, every=SOON, max_iterations=3) == Ending(Stop.ENOUGH, 3)
        assert repeat(home, again, max_iterations=2) == Ending(Stop.ENOUGH, 3)
        assert (again.told, len(served.log)) == ([], asked)


def test_after_the_baseline_nobody_waits(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        repeat(home, tale, every=3600, max_iterations=1)
        assert tale.told == ["run 1 completed"]


def test_a_crawl_that_never_started_gets_its_baseline_first(home: Home) -> None:
    with Site(site()).serve() as served:
        home.app.plan.find_or_make(Start((served.url("/"),)))
        tale = Tale()
        assert repeat(home, tale, every=SOON, max_iterations=1) == Ending(Stop.ENOUGH, 1)
        assert tale.done == ["run 0 completed", "run 1 completed"]
        assert (tale.runs[0]["has_changes"], tale.runs[0]["parent"]) == (False, None)


@pytest.mark.parametrize("mode", ["", "full", "incremental"])
def test_an_open_run_comes_first_whatever_its_mode(home: Home, mode: str) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"), budget=1)
        tale = Tale()
        repeat(home, tale, every=SOON, max_iterations=1, mode=mode, given={**QUIET, "budget": 0})
        assert tale.done == ["run 0 completed", "run 1 completed"]
        assert tale.runs[1]["mode"] == (mode or "incremental")


def test_a_budget_for_each_interval(home: Home) -> None:
    """A run that stopped at a limit goes on an interval later, and counts once."""
    with Site(linked_site(7)).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        repeat(home, tale, every=SOON, max_iterations=1, given={**QUIET, "budget": 3})
        assert tale.done == ["run 1 paused", "run 1 paused", "run 1 completed"]
        assert [one["ended_by"] for one in tale.runs] == ["budget", "budget", "finished"]


def test_until_nothing_changes(home: Home) -> None:
    pages = site()
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))

        def during(word: str) -> None:
            if word == "run 1 completed":
                pages["/a"] = page("a", body="<p>second</p>")

        pages["/c"], pages["/"] = page("c"), page("home", "/a", "/b", "/c")
        tale = Tale(during)
        assert repeat(home, tale, every=SOON, stop_if_no_changes=True) == Ending(Stop.NO_CHANGES, 3)
        assert [(one["new"], one["modified"], one["has_changes"]) for one in tale.runs] == [
            (1, 0, True),
            (0, 1, True),
            (0, 0, False),
        ]
        again = Tale()
        repeat(home, again, every=SOON, stop_if_no_changes=True)
        assert again.done == ["run 4 completed"], "who starts it again wants to look again"


def test_a_server_that_is_down_is_no_sign_that_nothing_changed(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
    revived: list[Any] = []

    def during(word: str) -> None:
        if not revived:
            revived.append(Site(site()).serve(served.port))
            revived[0].__enter__()

    tale = Tale(during)
    given = {**QUIET, "max_wait": 0.1}
    ended = repeat(home, tale, every=SOON, stop_if_no_changes=True, given=given)
    revived[0].__exit__(None, None, None)
    assert tale.told[0] == "run 1 paused", tale.told
    assert ended.why is Stop.NO_CHANGES
    assert (tale.runs[-1]["unchanged"], tale.runs[-1]["unknown"]) == (3, 0)


def test_a_run_that_takes_longer_than_the_interval_is_followed_at_once(home: Home) -> None:
    with Site(site(), latency=(0.05, 0.06)).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        repeat(home, tale, every=0.05, max_iterations=3)
        assert tale.told == ["run 1 completed", "run 2 completed", "run 3 completed"]


# Going on


def test_started_again_it_waits_for_the_rest(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        repeat(home)
        with home.running(*command(home, "--every", "1h")) as process:
            said = read_until(process, "Next run at")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        found = re.search(r"Next run at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+, in (\d+)m\d\ds\.", said)
        assert found and 50 <= int(found[1]) < 60
        assert process.returncode == 143
        assert len(home.runs()) == 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_a_signal_ends_the_wait_at_once(home: Home, number: signal.Signals, code: int) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        with home.running(*command(home, "--every", "1h")) as process:
            read_until(process, "Next run at")
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        assert [one["run"] for one in lines(out)] == [1]
        assert "The same command goes on" in err
        assert "Traceback" not in err
        assert (home.status()["run_state"], home.faults()) == ("completed", [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_pauses_the_run_and_the_same_command_goes_on(home: Home, number: signal.Signals, code: int) -> None:
    web = Site(linked_site(60))
    with web.serve() as served:
        home.crawl(served.url("/"))
        before, web.latency = len(served.log), (0.05, 0.1)
        with home.running(*command(home, "--every", "1h", "--max-runs", "1")) as process:
            wait_until(lambda: len(served.log) >= before + 10)
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        assert [(one["run"], one["state"]) for one in lines(out)] == [(1, "paused")]
        web.latency = (0.0, 0.0)
        done = home.process(*command(home, "--every", "1h", "--max-runs", "1"))
        assert [(one["run"], one["state"], one["unchanged"]) for one in lines(done.stdout)] == [(1, "completed", 60)]
        assert home.faults() == []


def test_a_killed_run_goes_on_and_counts_from_its_beginning(home: Home) -> None:
    web = Site(linked_site(60))
    with web.serve() as served:
        home.crawl(served.url("/"))
        before, web.latency = len(served.log), (0.05, 0.1)
        with home.running(*command(home, "--every", "1h")) as process:
            wait_until(lambda: len(served.log) >= before + 10)
            process.kill()
            process.wait()
        began = home.runs()[-1].started_at
        web.latency = (0.0, 0.0)
        with home.running(*command(home, "--every", "1h")) as process:
            read_until(process, "Next run at")
            process.kill()
            out, _ = process.communicate()
        (line,) = lines(out)
        assert (line["run"], line["state"], line["unchanged"], line["started_at"]) == (1, "completed", 60, began)
        tale = Tale()
        with pytest.raises(Enough):
            repeat(home, stopping(tale), every=3600)
        assert tale.waited[0] < 3600
        assert home.faults() == []


def test_killed_while_it_waits_nothing_is_lost(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        with home.running(*command(home, "--every", "1h")) as process:
            read_until(process, "Next run at")
            process.kill()
            process.wait()
        assert repeat(home, every=SOON, max_iterations=3) == Ending(Stop.ENOUGH, 3)


class Enough(Exception):
    """Ends a repetition in a test."""


def stopping(tale: Tale) -> Tale:
    """A tale that ends when it comes to a wait."""
    waits = tale.waits

    def end(until_ms: int, seconds: float) -> None:
        waits(until_ms, seconds)
        raise Enough

    tale.waits = end
    return tale


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Standard error up to the line that has these words."""
    assert process.stderr
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


# Clocks


class WrongClock(SystemClock):
    """The wall clock may be set; the monotonic one may not."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.mark.parametrize("days", [-1000, 1000], ids=["back", "forward"])
def test_the_wall_clock_is_set_while_it_waits(home: Home, days: int) -> None:
    clock = WrongClock()
    home.app.workspace.clock = clock

    def during(word: str) -> None:
        if word == "waits":
            clock.ahead_ms += days * 86_400_000

    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale(during)
        repeat(home, tale, every=SOON, max_iterations=3)
    assert tale.done == ["run 1 completed", "run 2 completed", "run 3 completed"]
    assert all(0 < seconds <= SOON for seconds in tale.waited)


@pytest.mark.parametrize(("days", "first"), [(-1000, "waits"), (1000, "run 2 completed")], ids=["back", "forward"])
def test_the_wall_clock_is_set_before_it_starts(home: Home, days: int, first: str) -> None:
    clock = WrongClock()
    home.app.workspace.clock = clock
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        repeat(home)
        clock.ahead_ms = days * 86_400_000
        tale = Tale()
        repeat(home, tale, every=SOON, max_iterations=3)
    assert tale.done == ["run 2 completed", "run 3 completed"]
    assert tale.told[0] == first
    assert all(0 < seconds <= SOON for seconds in tale.waited)


# Others


def test_somebody_else_works_on_it(home: Home) -> None:
    web = Site(linked_site(200))
    with web.serve() as served:
        home.crawl(served.url("/"))
        web.latency = (0.05, 0.1)
        before = len(served.log)
        with home.running("recrawl", home.word, "--delay", "0") as process:
            wait_until(lambda: len(served.log) > before + 5)
            with pytest.raises(Owned):
                repeat(home, every=SOON)
            assert f"process {process.pid} " in home.cli(*command(home, "--every", "1h"), code=3).stderr
            assert f"process {process.pid} " in home.cli(*command(home), code=3).stderr


@pytest.mark.parametrize("most", [2, 3])
def test_what_somebody_else_did_meanwhile_puts_the_next_run_off(home: Home, most: int) -> None:
    def recrawl() -> None:
        other = App(home.folder)
        asyncio.run(other.sessions.work(other.plan.recrawl(home.word, "", QUIET)))
        other.close()

    def during(word: str) -> None:
        if word == "waits" and not others:
            others.append(threading.Thread(target=recrawl))
            others[0].start()
            others[0].join()

    others: list[threading.Thread] = []
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale(during)
        assert repeat(home, tale, every=2.0, max_iterations=most) == Ending(Stop.ENOUGH, most)
    assert tale.done == ["run 1 completed", "run 3 completed"][: most - 1]
    assert all(0 < seconds <= 2.0 for seconds in tale.waited)


def test_somebody_else_works_on_it_when_the_next_run_is_due(home: Home) -> None:
    """By then it is as with any other error: told, and tried again an interval later."""
    with Site(site()).serve() as served, contextlib.ExitStack() as stack:
        home.crawl(served.url("/"))

        def during(word: str) -> None:
            if word == "run 1 completed":
                stack.enter_context(home.app.workspace.owning(home.app.workspace.find(home.word), 60))
            if word == "failed":
                stack.close()

        tale = Tale(during)
        repeat(home, tale, every=SOON, max_iterations=2)
    assert tale.done == ["run 1 completed", "failed", "run 2 completed"]
    assert isinstance(tale.errors[0], Owned)


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_an_order_from_outside_ends_the_repetition(home: Home, verb: str) -> None:
    web = Site(linked_site(200))
    with web.serve() as served:
        home.crawl(served.url("/"))
        before, web.latency = len(served.log), (0.05, 0.1)
        with home.running(*command(home, "--every", "1h")) as process:
            wait_until(lambda: len(served.log) >= before + 5)
            home.ask(verb, home.word)
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert [one["ended_by"] for one in lines(out)] == ["paused" if verb == "pause" else "cancelled"]
        assert "and so is the repetition" in err


def test_an_error_of_one_run_is_told_and_the_next_interval_tries_again(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        archive = home.folder / "crawls" / home.word / "archive"

        def during(word: str) -> None:
            if word == "run 1 completed":
                archive.rename(archive.with_name("away"))
                archive.touch()
            if word == "failed":
                archive.unlink()
                archive.with_name("away").rename(archive)

        tale = Tale(during)
        assert repeat(home, tale, every=SOON, max_iterations=2).why is Stop.ENOUGH
        assert tale.done == ["run 1 completed", "failed", "run 2 completed"]
        assert tale.errors[0].message


def test_a_crash_of_a_session_is_told_and_the_next_interval_tries_again(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        crashes = iter([True, False])

        class Broken:
            def __enter__(self) -> Hooks:
                def started(*_: Any) -> None:
                    if next(crashes, False):
                        raise ZeroDivisionError("oh dear")

                return Hooks(started)

            def __exit__(self, *_: Any) -> None: ...

        tale.session = Broken
        assert repeat(home, tale, every=SOON, max_iterations=1).why is Stop.ENOUGH
        assert tale.done == ["failed", "run 1 completed"]
        assert "ZeroDivisionError('oh dear')" in tale.errors[0].message
        crashes = iter([True])
        with pytest.raises(ZeroDivisionError):
            repeat(home, tale)
        assert repeat(home).iterations == 2


def test_a_crawl_that_is_deleted_meanwhile_ends_it(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale(lambda word: home.app.configure.delete(home.word) if word == "waits" else None)
        with pytest.raises(Unknown):
            repeat(home, tale, every=SOON)
        assert (tale.told[0], tale.told[-1]) == ("run 1 completed", "waits")


# The command line


def test_a_line_for_each_run(home: Home) -> None:
    pages = site()
    with Site(pages, validators=True).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"], pages["/c"] = page("a", body="<p>second</p>"), page("c")
        pages["/"] = page("home", "/a", "/c", "/gone")
        del pages["/b"]
        done = home.cli("repeat", home.word, "--delay", "0", "--every", str(SOON), "--max-runs", "2")
        first, second = done.stdout.splitlines()
        assert re.fullmatch(
            r"Run 1: 1 new, 1 modified, 1 deleted, 0 unknown; \d+ requests, [\d.]+ k?B, \d+ B saved\.", first
        )
        assert re.fullmatch(
            r"Run 2: 0 new, 0 modified, 0 deleted, 0 unknown; \d+ requests, [\d.]+ k?B, \d+ B saved\.", second
        )
        assert "has made 2 runs after its first one" in done.stderr


def test_an_object_for_each_run(home: Home) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        done = home.process(*command(home, "--every", str(SOON), "--max-runs", "2", "--mode", "full"))
        found = lines(done.stdout)
        assert [(one["run"], one["mode"], one["word"], one["has_changes"]) for one in found] == [
            (1, "full", "completed", False),
            (2, "full", "completed", False),
        ]
        assert {"crawl_id", "requests", "bytes", "saved_bytes", "seconds", "ended_by", "summary"} <= set(found[0])
        assert "{" not in done.stderr


WRONG = {
    "no duration": ("--every", "soon"),
    "no time": ("--every", "0"),
    "a million years": ("--every", "365000000d"),
    "no runs": ("--max-runs", "0"),
    "a setting": ("--every", "1h", "--workers", "none"),
    "an address": ("--every", "1h", "--notify", "XXXX"),
    "a secret": ("--every", "1h", "--notify", "http://h/XXXX", "--notify-secret-file", "/nowhere/at/all"),
    "a condition": ("--every", "1h", "--notify-if", "when it rains"),
    "an occasion": ("--every", "1h", "--notify-on", "weddings"),
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_wrong_use_is_found_out_before_anything_runs(home: Home, options: tuple[str, ...]) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        asked = len(served.log)
        refused = home.cli("repeat", home.word, *options, code=2)
        assert (refused.stdout, len(served.log)) == ("", asked)
        assert refused.stderr
        assert "XXXX" not in refused.stderr


def test_a_crawl_that_nobody_knows(home: Home) -> None:
    assert "There is no crawl called 'nothing'" in home.cli("repeat", "nothing", code=2).stderr
    with pytest.raises(WrongUse):
        asyncio.run(home.app.repeat.repeat(Repetition("nothing", notify_on="weddings")))


# Telling


def test_a_web_hook_is_told_of_changes(home: Home, hook: Hook, tmp_path: Path) -> None:
    pages = site()
    secret = tmp_path / "secret"
    secret.write_text("hush hush\n")
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"], pages["/c"] = page("a", body="<p>second</p>"), page("c")
        pages["/"] = page("home", "/a", "/c")
        del pages["/b"]
        tale = Tale()
        wanted = {"notify": (hook.url("/XXXX"),), "secret_file": secret}
        repeat(home, tale, every=SOON, max_iterations=2, **wanted)
        assert tale.done == ["run 1 completed", "run 2 completed"]
    (got,) = hook.got
    body = json.loads(got.body)
    assert got.headers["X-Inchworm-Signature"] == signature(b"hush hush", got.headers["X-Inchworm-Timestamp"], got.body)
    assert body["delivery_id"] == got.headers["X-Inchworm-Delivery"]
    assert (body["event"], body["crawl_id"], body["name"]) == ("run_completed", home.word, tale.runs[0]["name"])
    assert (body["run"], body["state"], body["word"]) == (1, "completed", "completed")
    counts = {kind: body["counts"][kind] for kind in ("new", "modified", "deleted", "unknown")}
    assert counts == {"new": 1, "modified": 1, "deleted": 1, "unknown": 0}
    assert {kind: len(urls) for kind, urls in body["changes"].items()} == counts
    assert body["changes"]["new"] == [served.url("/c")]
    assert body["changes"]["deleted"] == [served.url("/b")]
    assert body["modified_groups"] == [
        {
            "pages": 1,
            "urls": [served.url("/a")],
            "difference": [{"where": "text", "before": "first", "after": "second"}],
            "difference_is_cut": False,
            "note": '"first" → "second"',
        }
    ]
    assert body["summary"] == tale.runs[0]["summary"]
    assert "1 new, 1 modified, 1 deleted" in body["summary"]
    assert body["finished_at"] == tale.runs[0]["ended_at"]


CONDITIONS = {
    "enough pages": (("20%",), True),
    "too few pages": (("50%",), False),
    "what came": (("text:now it says * fifty",), True),
    "what went": (("text:first",), True),
    "what stands on a new page": (("text:this is what c says",), False),
    "on a new page": (("text:This is what c says",), True),
    "what was there before": (("text:what b says",), False),
    "one of several": (("90%", "text:re:nothing", "text:re:fif(ty|teen)"), True),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_others_are_told_only_if_a_condition_holds(home: Home, hook: Hook, name: str) -> None:
    conditions, is_told = CONDITIONS[name]
    pages = site()
    pages |= {f"/{number}": page(str(number)) for number in range(3)}
    pages["/"] = page("home", *pages, "/c")
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"], pages["/c"] = (
            page("a", body="<p>now it says, as it did: fifty.</p>"),
            page("c"),
        )
        repeat(home, Tale(), notify=(hook.url(),), notify_if=conditions)
    assert len(hook.got) == is_told


def test_a_page_that_is_back_is_told_of_and_no_reason_to_stop(home: Home, hook: Hook) -> None:
    pages = site()
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        away = pages.pop("/a")
        repeat(home, Tale())
        pages["/a"] = away
        wanted = {"notify": (hook.url(),), "stop_if_no_changes": True}
        assert repeat(home, Tale(), every=SOON, max_iterations=5, **wanted) == Ending(Stop.NO_CHANGES, 3)
    (got,) = hook.got
    assert json.loads(got.body)["changes"]["new"] == [served.url("/a")]


def test_a_web_hook_is_told_of_every_run(home: Home, hook: Hook) -> None:
    with Site(site()).serve() as served:
        home.crawl(served.url("/"), budget=1)
        tale = Tale()
        wanted = {"notify": (hook.url(),), "notify_on": "completion", "given": {**QUIET, "budget": 2}}
        repeat(home, tale, every=SOON, max_iterations=1, **wanted)
    told = [(json.loads(got.body)["run"], json.loads(got.body)["has_changes"]) for got in hook.got]
    assert told == [(0, False), (1, False)], "only when they are complete"
    assert len([word for word in tale.told if "not signed" in word]) == 1
    assert "X-Inchworm-Signature" not in hook.got[0].headers


def test_a_notification_that_fails_changes_nothing(home: Home, hook: Hook) -> None:
    hook.statuses = (404,)
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        options = ("--every", str(SOON), "--max-runs", "2", "--notify", hook.url("/XXXX?key=XXXX"))
        done = home.process(*command(home, *options, "--notify-on", "completion"), INCHWORM_NOTIFY_SECRET="hush")
    assert [one["state"] for one in lines(done.stdout)] == ["completed", "completed"]
    said = f"The notification to http://127.0.0.1:{hook.port}/… did not arrive: it answered 404."
    # On a machine that takes seconds for a run, the first one is tried again meanwhile.
    assert done.stderr.count(said) >= 2
    assert "XXXX" not in done.stderr
    assert "hush" not in done.stderr + done.stdout
    assert "not signed" not in done.stderr
    assert len({got.headers["X-Inchworm-Delivery"] for got in hook.got}) == 2


def test_a_signal_does_not_wait_for_a_web_hook(home: Home, hook: Hook) -> None:
    hook.hangs = True
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        options = ("--every", "1h", "--notify", hook.url(), "--notify-on", "completion")
        with home.running(*command(home, *options)) as process:
            wait_until(lambda: hook.got)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 143, err
        assert [one["state"] for one in lines(out)] == ["completed"]
        assert "before all notifications were delivered" in err


# Telling that is not lost


def test_killed_between_the_end_of_a_run_and_its_notification(home: Home, hook: Hook) -> None:
    """The same command tells of it, once."""
    pages = site()
    options = ("--notify", hook.url("/XXXX"))
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"] = page("a", body="<p>second</p>")
        home.process(*command(home, *options), code=-signal.SIGKILL, INCHWORM_FAULT="before_telling")
        assert ([one.state for one in home.runs()], hook.got) == (
            ["completed", "completed"],
            [],
        )
        for _ in range(2):
            home.process(*command(home, *options, "--max-runs", "1"))
    (got,) = hook.got
    body = json.loads(got.body)
    assert (body["run"], body["word"], body["ended_by"], body["has_changes"]) == (1, "completed", "finished", True)
    assert body["changes"]["modified"] == [served.url("/a")]
    assert home.app.notifications.listed()[0].event_id == got.headers["X-Inchworm-Delivery"]


def test_killed_before_the_notification_and_others_went_on(home: Home, hook: Hook) -> None:
    """What was promised is told, and nothing else."""
    pages = site()
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"] = page("a", body="<p>second</p>")
        done = command(home, "--notify", hook.url())
        home.process(*done, code=-signal.SIGKILL, INCHWORM_FAULT="before_telling")
        pages["/a"] = page("a", body="<p>third</p>")
        home.recrawl()
        repeat(home, max_iterations=2, notify=(hook.url(), hook.url("/other")))
        assert [(json.loads(got.body)["run"], got.path) for got in hook.got] == [(1, "/hook")]
        repeat(home, notify=(hook.url(), hook.url("/other")))
    assert len(hook.got) == 1, "run 3 found no changes"
    assert RunPromises(home.app.home).of_crawl(home.word) == []


def test_killed_in_the_middle_of_a_run_that_somebody_else_ends(home: Home, hook: Hook) -> None:
    web = Site(linked_site(60))
    with web.serve() as served:
        home.crawl(served.url("/"))
        before, web.latency = len(served.log), (0.05, 0.1)
        options = ("--notify", hook.url(), "--notify-on", "completion", "--max-runs", "1")
        with home.running(*command(home, *options)) as process:
            wait_until(lambda: len(served.log) >= before + 10)
            process.kill()
            process.wait()
        web.latency = (0.0, 0.0)
        home.process(*command(home, *options[:4], "--budget", "5"))
        assert hook.got == [], "it is not complete yet"
        home.resume(budget=0)
        home.process(*command(home, *options))
    assert [json.loads(got.body)["run"] for got in hook.got] == [1]


def test_who_has_not_been_told_yet_is_told_by_the_next_one(home: Home, hook: Hook) -> None:
    hook.statuses = (404, 200)
    wanted: dict[str, Any] = {"notify": (hook.url("/XXXX"),), "notify_on": "completion", "max_iterations": 1}
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        repeat(home, tale, **wanted)
        (waiting,) = home.app.notifications.listed(home.word)
        assert (waiting.state, waiting.tries) == ("waiting", 1)
        home.app.deliver.replay(waiting.id)
        again = Tale()
        assert repeat(home, again, **wanted) == Ending(Stop.ENOUGH, 1)
    told = " ".join(tale.told + again.told)
    assert "did not arrive: it answered 404. It will be tried again" in told
    assert "has arrived now" in again.told[-1]
    assert "XXXX" not in told
    assert len({(got.body, got.headers["X-Inchworm-Delivery"]) for got in hook.got}) == 1
    assert len(hook.got) == 2


def test_others_sign_as_it_would_have(home: Home, hook: Hook, tmp_path: Path) -> None:
    hook.statuses = (404, 200)
    (tmp_path / "secret").write_text("hush hush")
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        wanted: dict[str, Any] = {"notify": (hook.url(),), "notify_on": "completion"}
        repeat(home, secret_file=tmp_path / "secret", **wanted)
    home.app.deliver.replay(home.app.notifications.listed()[0].id)
    assert home.cli("notifications", "--deliver").stdout.endswith("1 of 1 arrived.\n")
    for got in hook.got:
        made = signature(b"hush hush", got.headers["X-Inchworm-Timestamp"], got.body)
        assert got.headers["X-Inchworm-Signature"] == made


def test_one_who_comes_back_soon_is_waited_for(home: Home, hook: Hook) -> None:
    hook.statuses = (503, 200)
    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        tale = Tale()
        assert repeat(home, tale, notify=(hook.url(),), notify_on="completion") == Ending(Stop.ONCE, 1)
    assert len(hook.got) == 2
    assert home.app.notifications.listed()[0].state == "delivered"
    assert not [word for word in tale.told if "did not arrive" in word]


def test_while_it_waits_it_tries_again(home: Home, hook: Hook) -> None:
    hook.statuses = (404, 200)
    clock = WrongClock()
    home.app.workspace.clock = clock

    def during(word: str) -> None:
        if word == "waits":
            clock.ahead_ms += 60_000
        if "has arrived now" in word:
            raise Enough

    with Site(site()).serve() as served:
        home.crawl(served.url("/"))
        with pytest.raises(Enough):
            repeat(home, Tale(during), every=3600, notify=(hook.url(),), notify_on="completion")
    assert len(hook.got) == 2


def test_a_run_that_is_completed_once_more_is_another_event(home: Home, hook: Hook) -> None:
    pages = site()
    wanted: dict[str, Any] = {"notify": (hook.url(),), "notify_on": "completion", "given": {**QUIET, "max_retries": 0}}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"))
        pages["/b"] = Page("no", 500)
        repeat(home, **wanted)
        assert home.app.queue.retry(home.word) == 1
        repeat(home, **wanted)
    told = [(json.loads(got.body)["run"], got.headers["X-Inchworm-Delivery"]) for got in hook.got]
    assert [number for number, _ in told] == [1, 1]
    assert len(set(told)) == 2


# What it cost


def test_statistics(home: Home) -> None:
    pages = site()
    with Site(pages, validators=True).serve() as served:
        home.crawl(served.url("/"))
        pages["/a"] = page("a", body="<p>second</p>")
        repeat(home)
        repeat(home, mode="full")
        home.crawl(served.url("/"), max_age="1h")
        found = json_object(home.app.iterations.costs(home.app.workspace.find(home.word)))
        runs = home.runs()
    assert (found["runs"], found["iterations"], found["crawl_id"]) == (4, 3, home.word)
    baseline, again, full, reusing = found["per_run"]
    for line, listed in zip(found["per_run"], runs, strict=True):
        assert {name: line[name] for name in ("run", "mode", "state", "requests", "bytes")} == {
            name: getattr(listed, name) for name in ("run", "mode", "state", "requests", "bytes")
        }
    assert (baseline["seconds_saved_estimate"], baseline["share_changed"], baseline["new"]) == (None, None, 0)
    assert (again["modified"], again["unchanged"], again["share_changed"]) == (1, 2, 0.3333)
    assert (again["requests_saved"], again["bytes_saved"]) == (0, runs[1].saved_bytes)
    assert (full["bytes_saved"], full["share_changed"]) == (0, 0.0)
    assert reusing["requests_saved"] == 3
    assert isinstance(reusing["seconds_saved_estimate"], float)
    totals = found["totals"]
    assert totals["requests"] == sum(one.requests for one in runs)
    assert totals["bytes_saved"] == sum(one.saved_bytes for one in runs)
    assert (totals["requests_saved"], totals["modified"], totals["share_changed"]) == (3, 1, 0.1111)


def test_statistics_of_a_crawl_that_was_killed(home: Home) -> None:
    """Nobody knows how long a session worked that crashed, least of all by the time the next one started."""
    with Site(linked_site(60), latency=(0.02, 0.03)).serve() as served:
        with home.running("crawl", served.url("/"), "--delay", "0") as process:
            wait_until(lambda: len(served.log) > 20)
            process.kill()
            process.wait()
        home.crawl(served.url("/"))
        (line,) = home.app.iterations.costs(home.app.workspace.find(home.word)).per_run
        sessions = home.status()["sessions"]
    assert [one["ended_by"] for one in sessions] == ["crashed", "finished"]
    assert line.requests == sum(one["requests"] for one in sessions)
    assert 0 < line.seconds < PATIENCE
