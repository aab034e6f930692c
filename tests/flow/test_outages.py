"""A host that stops answering is a state of the host, not of its URLs: they keep their places and their tries."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.flow.crawling import Home, page, wait_until

from inchworm.testing import Answer, Page, Site, redirect


def wide(number: int, name: str = "site") -> dict[str, Answer]:
    """A home page, and so many pages that it links to."""
    leaves = [f"/p{one}" for one in range(number)]
    return {"/": page(f"home of {name}", *leaves), **{path: page(f"{name} {path}") for path in leaves}}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Flickering:
    """A site on a port of its own that is taken away after so many requests, and comes back after a while."""

    def __init__(self, pages: dict[str, Answer], after: int, seconds: float) -> None:
        self.site = Site(pages, latency=(0.001, 0.003))
        # Kept while the site is away, so that nobody else gets its port.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port = int(self._place.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.paths: list[str] = []
        self._after = after
        self._seconds = seconds
        self._enough = threading.Event()
        self._over = threading.Event()

    @contextmanager
    def serve(self) -> Iterator[None]:
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._enough.set()
            thread.join()
            self._place.close()

    def _serve(self) -> None:
        with self.site.serve(self.port, lambda hit: self._note(hit.path)):
            self._enough.wait()
        if not self._over.wait(self._seconds):
            with self.site.serve(self.port, lambda hit: self.paths.append(hit.path)):
                self._over.wait()

    def _note(self, path: str) -> None:
        self.paths.append(path)
        if len(self.paths) == self._after:
            self._enough.set()


@pytest.mark.parametrize("workers", [1, 8, 40])
def test_an_outage_costs_no_page(home: Home, workers: int) -> None:
    site = Flickering(wide(120), after=60, seconds=2.5)
    with site.serve():
        ended = home.crawl(f"{site.url}/", workers=workers, sitemap=False)
    assert (ended.pages, ended.failed, ended.run_state) == (121, 0, "completed")
    assert ended.unanswered >= 1 and ended.down == ()
    assert not home.status()["down"]


FOR_EVER = 3600.0


def test_the_budget_counts_what_nobody_answered(home: Home) -> None:
    site = Flickering(wide(60), after=20, seconds=1.5)
    with site.serve():
        sessions = 0
        while (ended := home.crawl(f"{site.url}/", workers=8, sitemap=False, budget=10)).run_state != "completed":
            assert ended.ended_by == "budget"
            assert ended.fetched + ended.unanswered == 10
            sessions += 1
        assert (ended.pages, ended.failed) == (61, 0)
    told = home.status()["sessions"]
    assert sum(one["requests"] for one in told) + sum(one["unanswered"] for one in told) > 61


def test_a_page_limit_stays_exact_through_an_outage(home: Home) -> None:
    site = Flickering(wide(60), after=20, seconds=1.5)
    with site.serve():
        ended = home.crawl(f"{site.url}/", workers=16, sitemap=False, page_limit=40)
    assert (ended.pages, ended.failed, ended.run_state) == (40, 0, "completed")
    assert len([path for path in site.paths if path != "/robots.txt"]) <= 40 + 16, (
        "only what was cut off is asked twice"
    )


def test_a_host_whose_robots_txt_leads_to_one_that_is_down_is_not_down_itself(home: Home) -> None:
    pages = wide(2, "near")
    far = Flickering(wide(2, "far"), after=10_000, seconds=FOR_EVER)
    with Site(pages).serve() as near:
        with far.serve():
            assert home.crawl(near.url("/"), f"{far.url}/", sitemap=False).pages == 6
        pages["/robots.txt"] = redirect(f"{far.url}/robots.txt")
        ended = home.crawl(near.url("/"), f"{far.url}/", sitemap=False, max_wait=0.2, max_retries=0)
    assert (ended.run_state, ended.ended_by) == ("paused", "waiting")
    assert [one.origin for one in ended.down] == [far.url]
    assert home.show(near.url("/"))["state"] == "done"


def test_pages_that_take_too_long_are_no_outage(home: Home) -> None:
    leaves = [f"/slow{number}" for number in range(6)]
    pages = {"/": page("home", *leaves, "/good"), "/good": page("good")}
    pages |= {path: Page("late", delay=30.0) for path in leaves}
    with Site(pages).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_retries=0, timeout=1.0)
    assert (ended.pages, ended.failed, ended.unanswered, ended.run_state) == (2, 6, 0, "completed")


@pytest.mark.parametrize("strict", [False, True])
def test_other_hosts_go_on(home: Home, strict: bool) -> None:
    sites = [
        Flickering(wide(15, f"site {number}"), after=9 if number == 2 else 10_000, seconds=2.0) for number in range(6)
    ]
    with ExitStack() as serving:
        for site in sites:
            serving.enter_context(site.serve())
        seeds = [f"{site.url}/" for site in sites]
        ended = home.crawl(*seeds, workers=12, sitemap=False, strict_order=strict)
    assert (ended.pages, ended.failed, ended.run_state) == (6 * 16, 0, "completed")


def test_a_run_whose_hosts_are_all_down_pauses_and_names_them(home: Home) -> None:
    site = Flickering(wide(40), after=20, seconds=FOR_EVER)
    with site.serve():
        ended = home.crawl(f"{site.url}/", workers=4, sitemap=False, max_wait=0.5)
    assert (ended.run_state, ended.ended_by, ended.failed) == ("paused", "waiting", 0)
    assert site.url in ended.message and "connection refused" in ended.message and "since 2" in ended.message
    (down,) = home.status()["down"]
    assert (down["host"], down["kind"], down["sessions"]) == (site.url, "connect", 1)
    assert "connection refused" in home.cli("status", home.word).stdout
    with site.site.serve(site.port):
        ended = home.resume()
    assert (ended.pages, ended.failed, ended.run_state) == (41, 0, "completed")
    assert not home.status()["down"]


def test_a_kill_forgets_no_outage(home: Home) -> None:
    site = Flickering(wide(40), after=20, seconds=FOR_EVER)
    words = ("crawl", f"{site.url}/", "--delay", "0", "--no-sitemap", "--json")
    with site.serve(), home.running(*words) as process:
        wait_until(lambda: len(site.paths) >= 20 and home.status()["down"])
        process.send_signal(signal.SIGKILL)
        process.wait()
    (down,) = home.status()["down"]
    assert down["host"] == site.url
    with site.site.serve(site.port):
        assert json.loads(home.process(*words).stdout)["pages"] == 41
    assert not home.faults()


def test_after_three_sessions_and_all_patience_its_urls_fail_and_can_be_opened_again(home: Home) -> None:
    site = Flickering(wide(20), after=10, seconds=FOR_EVER)
    with site.serve():
        home.crawl(f"{site.url}/", workers=2, sitemap=False, max_wait=0.2, host_patience=0)
    for _ in range(2):
        assert home.status()["failed"] == 0
        ended = home.resume(max_wait=0.2, host_patience=0)
    assert (ended.run_state, ended.word) == ("completed", "completed_with_errors")
    assert ended.failed == 21 - ended.pages > 0
    assert {one.record.failure for one in home.app.pages.failed(home.word)} == {"connect"}
    assert home.app.queue.retry(home.word) == ended.failed
    with site.site.serve(site.port):
        ended = home.resume()
    assert (ended.pages, ended.failed, ended.run_state) == (21, 0, "completed")


def test_three_sessions_are_not_enough_without_the_time(home: Home) -> None:
    site = Flickering(wide(20), after=10, seconds=FOR_EVER)
    with site.serve():
        home.crawl(f"{site.url}/", workers=2, sitemap=False, max_wait=0.1)
    for _ in range(4):
        ended = home.resume(max_wait=0.1)
        assert (ended.run_state, ended.ended_by, ended.failed) == ("paused", "waiting", 0)


def test_the_next_run_of_a_site_that_is_down_waits_too(home: Home) -> None:
    """Its robots.txt is the first thing asked for, and that host has answered before."""
    site = Flickering(wide(5), after=10_000, seconds=FOR_EVER)
    with site.serve():
        home.crawl(f"{site.url}/", sitemap=False)
    ended = home.crawl(f"{site.url}/", sitemap=False, max_wait=0.2)
    assert (ended.run, ended.run_state, ended.ended_by, ended.failed) == (1, "paused", "waiting", 0)
    assert ended.unanswered == 0, "no budget counts a robots.txt"
    with site.site.serve(site.port):
        ended = home.resume()
    assert (ended.unchanged, ended.deleted, ended.unknown, ended.run_state) == (6, 0, 0, "completed")


@pytest.mark.parametrize("bad", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"], ids=["empty", "cut"])
def test_a_connection_that_breaks_may_be_one_urls_fault(home: Home, bad: bytes) -> None:
    pages = {"/": page("home", "/bad", "/good"), "/bad": Page(raw=bad), "/good": page("good")}
    with Site(pages).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_retries=0)
    assert (ended.pages, ended.failed, ended.unanswered) == (2, 1, 0)


# ---- a host that never answered


def test_a_dead_host_is_an_error_with_its_cause_and_the_same_command_tries_again(home: Home) -> None:
    site = Flickering(wide(3), after=10_000, seconds=FOR_EVER)
    words = ("crawl", f"{site.url}/", "--delay", "0", "--no-sitemap", "--max-retries", "0")
    for _ in range(2):
        told = home.process(*words, code=1)
        assert f"127.0.0.1:{site.port}: connection refused" in told.stderr + told.stdout
        assert "robots" not in told.stderr + told.stdout
        status = home.status()
        assert (status["run"], status["run_state"], status["ended_by"]) == (0, "paused", "error")
    with site.serve():
        done = json.loads(home.process(*words, "--json").stdout)
    assert (done["run"], done["pages"], done["run_state"]) == (0, 4, "completed")


def test_a_name_that_is_not_there_is_an_error_within_seconds(home: Home) -> None:
    told = home.process("crawl", "http://no-such-host.invalid/", code=1)
    assert "no-such-host.invalid: name not found" in told.stderr + told.stdout


def test_an_unreadable_robots_txt_on_the_only_host_is_an_error(home: Home) -> None:
    pages = {**wide(2), "/robots.txt": Page("broken", 500)}
    with Site(pages).serve() as served:
        told = home.process("crawl", served.url("/"), "--delay", "0", "--max-retries", "0", code=1)
        assert "robots.txt could not be read" in told.stderr + told.stdout
        pages["/robots.txt"] = Page("", 404)
        assert home.crawl(served.url("/")).pages == 3


def test_a_dead_proxy_is_an_error_that_names_it_as_the_cause(home: Home) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    with Site(wide(2)).serve() as served:
        told = home.process("crawl", served.url("/"), "--proxy", proxy, "--max-retries", "0", code=1)
        assert "connection refused" in told.stderr + told.stdout
        assert served.log == []
