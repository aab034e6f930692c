"""robots.txt as servers really send it: what it forbids is left alone, and what cannot be read forbids all."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.fetch.server import Handler, message, ok, send_and_close, send_and_reset, silence
from tests.flow.crawling import Home, is_control, page
from tests.flow.hostile import again, door, html, knows, names, paths_asked, secret_file, serving, sound
from tests.gaps import gaps

from inchworm.testing import Answer, Page, Served, Site, redirect

SLACK = 0.08
"""Seconds by which a request may seem early to the server, because the one before was late in coming in."""

DISALLOW_A = "User-agent: *\nDisallow: /a\n"
PAGES: dict[str, Answer] = {"/": page("home", "/a", "/b"), "/a": page("a"), "/b": page("b")}


def pages_asked(served: Served) -> list[str]:
    return [hit.path for hit in served.log if hit.path in PAGES]


# R1: the rules of RFC 9309

EXAMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
PATHS = ("/page", "/x.gif", "/example/page.html", "/example/allowed.gif", "/example/other", "/publications/x")
ALLOWED = {
    "unknownbot/1.0": {"/page", "/publications/x"},
    "foobot": {"/example/page.html", "/example/allowed.gif"},
    "FooBot/2.1 (+https://foo.test/bot)": {"/example/page.html", "/example/allowed.gif"},
    "barbot": {*PATHS} - {"/example/page.html"},
    "BAZBOT/7": {*PATHS} - {"/example/page.html"},
    "quxbot": {*PATHS},
}


@pytest.mark.parametrize("agent", ALLOWED)
def test_r1_the_example_of_the_rfc(home: Home, agent: str) -> None:
    allowed = ALLOWED[agent]
    pages: dict[str, Answer] = {path: page(path) for path in PATHS}
    with Site({**pages, "/robots.txt": EXAMPLE}).serve() as served:
        ended = home.crawl(*map(served.url, PATHS), sitemap=False, user_agent=agent)
        assert {hit.path for hit in served.log if hit.path != "/robots.txt"} == allowed
        assert (ended.pages, ended.refused, ended.failed) == (len(allowed), len(PATHS) - len(allowed), 0)
        assert {path for path in PATHS if home.reason(served.url(path)) == "robots"} == {*PATHS} - allowed
        assert {hit.headers["user-agent"] for hit in served.log} == {agent}


RULES = {
    "the longest rule counts": ("Allow: /p\nDisallow: /", {"/page"}, {"/folder"}),
    "allow wins a tie": ("Allow: /folder\nDisallow: /folder", {"/folder/page"}, set()),
    "a dollar is the end": ("Disallow: /*.php$", {"/x.php?a", "/x.php5"}, {"/x.php", "/d/x.php"}),
    "escapes are compared as such": ("Disallow: /a%3cd\nDisallow: /ツ", {"/a%3Ce"}, {"/a%3Cd", "/%E3%83%84"}),
    "the query counts": ("Disallow: /*?print", {"/x?page=1"}, {"/x?print=1"}),
    "case counts": ("Disallow: /Big", {"/big"}, {"/Big"}),
    "an empty rule forbids nothing": ("Disallow:", {"/x"}, set()),
}


@pytest.mark.parametrize("name", RULES)
def test_r1_rules(home: Home, name: str) -> None:
    rules, allowed, forbidden = RULES[name]
    pages: dict[str, Answer] = {"*": lambda hit: page(hit.path)}  # type: ignore[dict-item]
    with Site({**pages, "/robots.txt": f"User-agent: *\n{rules}\n"}).serve() as served:
        home.crawl(*map(served.url, sorted(allowed | forbidden)), sitemap=False)
        assert set(served.paths()) == {"/robots.txt", *allowed}
        assert {path for path in forbidden if home.reason(served.url(path)) == "robots"} == forbidden


# R2 to R4: answers that are no rules


@pytest.mark.parametrize("status", [400, 401, 451])
def test_r2_no_robots_allows_all(home: Home, status: int) -> None:
    with Site({**PAGES, "/robots.txt": Page("User-agent: *\nDisallow: /", status)}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.failed, served.paths().count("/robots.txt")) == (3, 0, 1)


UNREADABLE: dict[str, Handler] = {
    "R3 500": ok(b"oops", status="500 Oops"),
    "R3 503": ok(b"oops", status="503 Not Now"),
    "R3 silence": silence(),
    "R3 silence after the head": silence(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nUser-agent: *\n"),
    "R3 reset": send_and_reset(b""),
    "R3 reset half way": send_and_reset(message(DISALLOW_A.encode())[:-10]),
    "R3 closed half way": send_and_close(message(DISALLOW_A.encode())[:-10]),
    "R3 no HTTP": send_and_close(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "R4 429 for ever": ok(b"slow down", status="429 Too Many Requests"),
}
HURRY: dict[str, Any] = {"sitemap": False, "timeout": 0.5, "first_byte_timeout": 0.3}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_forbids_all_until_it_can(home: Home, name: str) -> None:
    routes = {path: html(path, *(["/a", "/b"] if path == "/" else [])) for path in PAGES}
    with serving({**routes, "/robots.txt": UNREADABLE[name]}) as server:
        ended = home.crawl(server.url("/"), max_retries=0, **HURRY)
        assert (ended.run_state, ended.ended_by, ended.pages) == ("paused", "error", 0)
        assert set(paths_asked(server)) == {"/robots.txt"}, "never a page"
        assert "robots.txt could not be read" in ended.message
        sound(home)

        assert isinstance(server.routes, dict)
        server.routes["/robots.txt"] = ok(DISALLOW_A.encode())
        ended = home.resume(**HURRY)
        assert (ended.pages, ended.refused, ended.failed) == (2, 1, 0), "and then it is obeyed"
        assert "/a" not in paths_asked(server)


def test_r3_a_host_whose_name_is_unknown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its name cannot be looked up, nothing is asked for; the other host goes on."""
    table: dict[str, list[str]] = {}
    names(table, monkeypatch)
    pages: dict[str, Answer] = {"/": page("home"), "/there": page("there"), "/robots.txt": ""}
    with Site(pages).serve() as served:
        lost = served.url("/there", "lost.test")
        pages["/"] = page("home", lost)
        settings: dict[str, Any] = {"sitemap": False, "scope": "any", "max_retries": 0}
        ended = home.crawl(served.url("/"), **settings)
        assert (ended.pages, ended.failed) == (1, 1)
        said = home.ask("why", home.word, lost)["why"]
        assert "name not found" in said
        assert "robots" not in said
        assert "/there" not in served.paths()
        table["lost.test"] = ["127.0.0.1"]
        home.app.queue.retry(home.word)
        assert (home.resume().pages, "/there" in served.paths()) == (2, True)


@pytest.mark.parametrize("status", [429, 503])
def test_r4_robots_that_ask_for_a_pause_get_it_and_are_then_obeyed(home: Home, status: int) -> None:
    answers = [Page("slow down", status, {"Retry-After": "1"}), Page(DISALLOW_A)]
    with Site({**PAGES, "/robots.txt": lambda _: answers.pop(0)}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.refused, ended.failed) == (2, 1, 0)
        assert served.paths() == ["/robots.txt", "/robots.txt", "/", "/b"]
        assert gaps([hit.time for hit in served.log])[0] >= 1 - SLACK


# R5: redirects

CHAINS = {
    "R5 five redirects": (5, ["/", "/b"]),
    "R5 six redirects": (6, ["/", "/a", "/b"]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_five_redirects_are_followed(home: Home, name: str) -> None:
    """After more of them it counts as not there."""
    length, allowed = CHAINS[name]
    chain: dict[str, Answer] = {f"/r{number}": redirect(f"/r{number + 1}") for number in range(1, length)}
    chain |= {"/robots.txt": redirect("/r1"), f"/r{length}": DISALLOW_A}
    with Site({**PAGES, **chain}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert sorted(set(pages_asked(served))) == allowed
        assert (ended.run_state, ended.failed) == ("completed", 0)
        assert len(served.log) - len(pages_asked(served)) == 6, "one request and five redirects, not more"
        sound(home)


def test_r5_a_loop_ends(home: Home) -> None:
    with Site({**PAGES, "/robots.txt": redirect("/r"), "/r": redirect("/robots.txt")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, len(served.log)) == ("completed", 3, 6 + 3)


def test_r5_the_rules_of_another_host_count_where_they_were_asked_for(home: Home) -> None:
    other: dict[str, Answer] = {"/rules.txt": DISALLOW_A, "/a": page("other a")}
    first: dict[str, Answer] = dict(PAGES)
    with Site({}, {"first.localhost": first, "other.localhost": other}).serve() as served:
        first["/robots.txt"] = redirect(served.url("/rules.txt", "other.localhost"))
        first["/b"] = page("b", served.url("/a", "other.localhost"))
        home.crawl(served.url("/", "first.localhost"), scope="any", sitemap=False)
        assert home.reason(served.url("/a", "first.localhost")) == "robots"
        assert home.show(served.url("/a", "other.localhost"))["state"] == "done", "that host has no rules itself"
        sound(home)


def test_r5_a_redirect_to_a_file_is_not_followed(home: Home, tmp_path: Path) -> None:
    file, word = secret_file(tmp_path)
    with Site({**PAGES, "/robots.txt": redirect(file)}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 3, 0)
        assert not knows(home, word)


def test_r5_a_redirect_to_a_private_address_is_not_followed(home: Home) -> None:
    with door() as inside:
        site: dict[str, Answer] = {**PAGES, "/robots.txt": redirect(f"http://127.0.0.1:{inside.port}/robots.txt")}
        with Site(site).serve() as served:
            ended = home.crawl(served.url("/"), sitemap=False, allow_private=False)
            assert (ended.run_state, inside.count()) == ("completed", 0)


# R7: what is hardly a robots.txt

ODD: dict[str, tuple[bytes, list[str]]] = {
    "R7 an HTML page": (b"<!doctype html><title>Not found</title>\nUser-agent: *\nDisallow: /\n", ["/", "/a", "/b"]),
    "R7 UTF-16": (DISALLOW_A.encode("utf-16"), ["/", "/a", "/b"]),
    "R7 UTF-8 with BOM": (b"\xef\xbb\xbf" + DISALLOW_A.encode(), ["/", "/b"]),
    "R7 CR alone": (DISALLOW_A.replace("\n", "\r").encode(), ["/", "/b"]),
    "R7 NUL in a line": (b"User-agent: *\nDisallow: /x\0y\nDisallow: /a\n", ["/", "/b"]),
    "R7 NUL everywhere": (bytes(10_000), ["/", "/a", "/b"]),
    "R7 random bytes": (bytes(range(256)) * 4 + b"\n" + DISALLOW_A.encode(), ["/", "/b"]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_read_without_a_fuss(home: Home, name: str) -> None:
    body, allowed = ODD[name]
    with Site({**PAGES, "/robots.txt": Page(body, headers={"Content-Type": "text/plain"})}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.failed, pages_asked(served)) == ("completed", 0, allowed)
        again(home, served.url("/"), sitemap=False)


def test_r7_of_a_bomb_the_beginning_counts(home: Home) -> None:
    """No more of it is unpacked than is read, and what is read has a rule in it."""
    bomb = Page(gzip.compress(DISALLOW_A.encode() + bytes(50_000_000)), headers={"Content-Encoding": "gzip"})
    with Site({**PAGES, "/robots.txt": bomb}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_retries=0)
        assert (ended.run_state, ended.failed, pages_asked(served)) == ("completed", 0, ["/", "/b"])
        sound(home)


# R9: Crawl-delay

DELAYS = {
    "R9 0.1": ("0.1", 0.1),
    "R9 30, capped": ("30", 0.25),
    "R9 86400, capped": ("86400", 0.25),
    "R9 -1": ("-1", 0.0),
    "R9 abc": ("abc", 0.0),
    "R9 more digits than a number has": ("9" * 500, 0.0),
}


@pytest.mark.parametrize("name", DELAYS)
def test_a_delay_is_obeyed_up_to_the_cap_and_no_host_is_dropped(home: Home, name: str) -> None:
    wanted, least = DELAYS[name]
    robots = f"User-agent: *\nCrawl-delay: {wanted}\nDisallow: /a\n"
    with Site({**PAGES, "/robots.txt": robots}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_delay=0.25, workers=4)
        assert (ended.run_state, ended.pages, ended.refused) == ("completed", 2, 1), "its other rules count as well"
        times = [hit.time for hit in served.log if not is_control(hit.path)]
        assert min(gaps(times)) >= least - SLACK
