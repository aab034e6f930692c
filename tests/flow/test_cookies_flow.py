"""Cookies and passwords reach those who gave them, also after a kill, and nobody else."""

from __future__ import annotations

import sqlite3
from base64 import b64encode

import pytest
from tests.flow.crawling import Home, page

from inchworm.testing import Hit, Page, Served, Site, redirect

LEAVES = [f"/p{number}" for number in range(8)]


def sent(served: Served, path: str) -> list[str]:
    """The Cookie headers that came with the requests for a path."""
    return [hit.headers.get("cookie", "") for hit in served.log if hit.path == path]


def gives(name: str, cookie: str, *links: str) -> Page:
    return Page(page(name, *links), headers={"Set-Cookie": cookie})


def test_a_cookie_comes_back_to_its_own_path_only(home: Home) -> None:
    site = Site({"/": gives("home", "a=1; Path=/in", "/in/x", "/out"), "/in/x": page("in"), "/out": page("out")})
    with site.serve() as served:
        home.crawl(served.url("/"), sitemap=False)
    assert (sent(served, "/in/x"), sent(served, "/out")) == (["a=1"], [""])


def test_without_cookies_none_are_kept(home: Home) -> None:
    with Site({"/": gives("home", "a=1", "/x"), "/x": page("x")}).serve() as served:
        home.crawl(served.url("/"), sitemap=False, cookies=False)
    assert sent(served, "/x") == [""]


# C1, C2


@pytest.mark.parametrize("target", ["b.localhost", "sub.a.localhost", "localhost"])
def test_c1_a_redirect_elsewhere_takes_no_cookie_and_no_password(home: Home, target: str) -> None:
    def go(hit: Hit) -> Page:
        port = hit.host.partition(":")[2]
        location = f"http://{target}:{port}/landing"
        return Page(status=302, headers={"Location": location, "Set-Cookie": "token=secret; Path=/"})

    hosts = {"a.localhost": {"/": page("home", "/go"), "/go": go}, target: {"/landing": page("landed")}}
    with Site({}, hosts).serve() as served:
        seed = served.url("/", "a.localhost").replace("://", "://me:pw@")
        home.crawl(seed, scope="any", sitemap=False)
    there = [hit for hit in served.log if hit.host.startswith(f"{target}:")]
    assert "/landing" in {hit.path for hit in there}
    assert all("cookie" not in hit.headers and "authorization" not in hit.headers for hit in there)


def test_c1_another_port_gets_no_password(home: Home) -> None:
    with Site({"*": page("other")}).serve() as other:
        pages = {"/": page("home", "/go"), "/go": redirect(other.url("/landing"))}
        with Site(pages).serve() as served:
            home.crawl(served.url("/").replace("://", "://me:pw@"), scope="any", sitemap=False)
    assert {hit.path for hit in other.log} >= {"/landing", "/robots.txt"}
    assert all("authorization" not in hit.headers for hit in other.log)


def test_c2_robots_and_sitemaps_of_others_get_nothing(home: Home) -> None:
    hosts = {
        "a.localhost": {
            "/": gives("home", "token=secret; Path=/"),
            "/robots.txt": lambda hit: f"Sitemap: http://b.localhost:{hit.host.partition(':')[2]}/sitemap.xml",
        },
        "b.localhost": {"/sitemap.xml": "<urlset/>", "/robots.txt": ""},
    }
    with Site({}, hosts).serve() as served:
        home.crawl(served.url("/", "a.localhost").replace("://", "://me:pw@"), scope="any")
    there = [hit for hit in served.log if hit.host.startswith("b.")]
    assert "/sitemap.xml" in {hit.path for hit in there}
    assert all("cookie" not in hit.headers and "authorization" not in hit.headers for hit in there)


# C6


def test_c6_cookies_survive_a_kill(home: Home) -> None:
    pages = {path: page(path) for path in LEAVES}
    with Site({**pages, "/": gives("home", "session=s3; Path=/", *LEAVES)}).serve() as served:
        flags = ["--delay", "0", "--no-sitemap", "--workers", "1"]
        home.process("crawl", served.url("/"), *flags, code=-9, INCHWORM_FAULT="after_fetch:4")
        before = len(served.log)
        home.process("crawl", served.url("/"), *flags)
    later = [hit for hit in served.log[before:] if hit.path in LEAVES]
    assert len(later) >= len(LEAVES) - 3
    assert {hit.headers.get("cookie") for hit in later} == {"session=s3"}


def test_c6_the_jar_is_plain_rows(home: Home) -> None:
    with Site({"/": gives("home", "a=1; Path=/docs; Max-Age=3600")}).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
    rows = sqlite3.connect(home.app.workspace.place(home.app.workspace.find(home.word)).folder / "crawl.db").execute(
        "SELECT domain, path, name, value, host_only, secure, seq FROM cookie"
    )
    assert rows.fetchall() == [("127.0.0.1", "/docs", "a", "1", 1, 0, 2)]


def test_a_cookie_that_stays_the_same_is_written_once(home: Home) -> None:
    pages = {path: gives(path, "a=1; Path=/; Max-Age=36000") for path in LEAVES}
    with Site({**pages, "/": page("home", *LEAVES)}).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
    db = sqlite3.connect(home.app.workspace.place(home.app.workspace.find(home.word)).folder / "crawl.db")
    assert db.execute("SELECT COUNT(*) <= 2 FROM cookie").fetchone() == (1,)


# C7


def test_c7_a_password_is_used_and_found_nowhere(home: Home) -> None:
    wanted = "Basic " + b64encode(b"me:s3cret/pw").decode()

    def answer(hit: Hit) -> Page | str:
        if hit.headers.get("authorization") != wanted:
            return Page("who are you?", 401)
        return page(hit.path, "/x", f"http://other:w0rd@{hit.host}/y")

    with Site({"/robots.txt": "", "*": answer}).serve() as served:
        seed = served.url("/").replace("://", "://me:s3cret%2Fpw@")
        done = home.process("crawl", seed, "--delay", "0", "--no-sitemap")
        shown = [home.cli(*verb).output for verb in (("list",), ("status", seed), ("show", seed, seed))]
    assert {hit.path for hit in served.log if hit.status == 200} >= {"/", "/x", "/y"}
    files = [path for path in home.folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    for secret in (b"s3cret", b"w0rd", b64encode(b"me:s3cret/pw")):
        assert not [path for path in files if secret in path.read_bytes()]
        assert secret.decode() not in "".join([done.stdout, done.stderr, *shown])
    for line in home.export("warc").split(b"\r\n"):
        assert b"s3cret" not in line


def test_c7_the_same_command_again_brings_the_password_again(home: Home) -> None:
    def answer(hit: Hit) -> Page | str:
        return page(hit.path, *LEAVES) if "authorization" in hit.headers else Page("", 401)

    with Site({"*": answer}).serve() as served:
        seed = served.url("/").replace("://", "://me:pw@")
        assert home.crawl(seed, sitemap=False, robots=False, budget=3).run_state == "paused"
        ended = home.crawl(seed, sitemap=False, robots=False)
    assert (ended.run, ended.pages, ended.failed) == (0, 9, 0)


# A wall that wants a cookie


def wall(hit: Hit) -> Page | str:
    if "seen=1" in hit.headers.get("cookie", ""):
        return page(hit.path, *LEAVES)
    return Page(status=302, headers={"Location": hit.path, "Set-Cookie": "seen=1; Path=/"})


@pytest.mark.parametrize("workers", [1, 8])
def test_a_page_that_redirects_to_itself_for_a_cookie_is_read(home: Home, workers: int) -> None:
    with Site({"*": wall}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, robots=False, workers=workers)
    assert (ended.pages, ended.failed) == (1 + len(LEAVES), 0)


@pytest.mark.parametrize("workers", [1, 8])
def test_a_detour_that_gives_a_cookie_leads_back(home: Home, workers: int) -> None:
    def gate(hit: Hit) -> Page:
        back = hit.path.partition("=")[2]
        return Page(status=302, headers={"Location": back, "Set-Cookie": "seen=1; Path=/"})

    def guarded(hit: Hit) -> Page | str:
        return page(hit.path, *LEAVES) if "cookie" in hit.headers else redirect(f"/gate?back={hit.path}")

    with Site({"/gate": gate, "*": guarded}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, robots=False, workers=workers)
    assert (ended.pages, ended.failed) == (1 + len(LEAVES), 0)


def test_without_a_new_cookie_it_is_a_loop(home: Home) -> None:
    def again(hit: Hit) -> Page:
        return Page(status=302, headers={"Location": hit.path, "Set-Cookie": "seen=1; Path=/"})

    with Site({"/": page("home", "/again"), "/again": again}).serve() as served:
        home.crawl(served.url("/"), sitemap=False, robots=False)
    assert ("/again", "redirect_loop") in home.outcomes()
    assert len(sent(served, "/again")) == 2


def test_u10_a_new_cookie_each_time_ends_too(home: Home) -> None:
    count = iter(range(10_000))

    def trap(hit: Hit) -> Page:
        return Page(status=302, headers={"Location": hit.path, "Set-Cookie": f"n{next(count)}=1; Path=/"})

    with Site({"/": page("home", "/trap"), "/trap": trap}).serve() as served:
        home.crawl(served.url("/"), sitemap=False, robots=False)
    assert home.outcomes()[-1] == ("/trap", "too_many_redirects")
    assert len(sent(served, "/trap")) == 11
