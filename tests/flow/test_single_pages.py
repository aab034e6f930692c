"""One page without a crawl: asked for politely, read, and nothing is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gaps import gap_but_one

from inchworm.testing import Page, Served, Site

XML = {"Content-Type": "application/xml"}
ARTICLE = "<title>Worms</title><main><h1>Worms</h1><p>They walk by arching their <b>back</b> again and again.</main>"


def sitemap(*urls: str) -> Page:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>2026-01-02</lastmod></url>" for url in urls)
    return Page(f"<urlset>{entries}</urlset>", headers=XML)


@pytest.fixture
def served() -> Iterator[Served]:
    pages: dict[str, Any] = {
        "/": "<title>Home</title><main><a href=/worms>worms</a> <a href=/private/x>no</a></main>",
        "/worms": ARTICLE,
        "/old": Page("", status=301, headers={"Location": "/older"}),
        "/older": Page("", status=302, headers={"Location": "/worms"}),
        "/round": Page("", status=302, headers={"Location": "/round"}),
        "/private/x": "<p>secret",
        "/wall": Page("<title>Just a moment...</title>", status=403, headers={"cf-mitigated": "challenge"}),
        "/busy": Page("busy", status=503),
        "/away": Page("", status=302, headers={"Location": "http://127.0.0.2:1/"}),
    }
    with Site(pages).serve() as made:
        rules = f"User-agent: *\nDisallow: /private\nSitemap: {made.url('/index.xml')}\n"
        pages["/robots.txt"] = Page(rules, headers={"Content-Type": "text/plain"})
        parts = "".join(f"<sitemap><loc>{made.url(path)}</loc></sitemap>" for path in ("/a.xml", "/gone.xml"))
        pages["/index.xml"] = Page(f"<sitemapindex>{parts}</sitemapindex>", headers=XML)
        pages["/a.xml"] = sitemap(made.url("/worms"), made.url("/hidden"))
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "inchworm", *arguments]
    environment = {"INCHWORM_HOME": str(home), "PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}
    done = subprocess.run(command, check=False, input=given, capture_output=True, env=environment, timeout=120)
    assert not home.exists(), "something was stored"
    return done


def told(home: Path, *arguments: str, given: bytes = b"") -> str:
    done = run(home, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_page_is_read_and_nothing_is_stored(home: Path, served: Served) -> None:
    assert "arching their back" in told(home, "read", served.url("/worms"))
    assert served.paths() == ["/robots.txt", "/worms"]
    assert "**back**" in told(home, "read", served.url("/worms"), "--markdown")
    assert told(home, "read", served.url("/worms"), "--raw-html").strip() == ARTICLE


def test_it_is_polite(home: Path, served: Served) -> None:
    told(home, "read", served.url("/old"))
    assert served.paths() == ["/robots.txt", "/old", "/older", "/worms"]
    assert gap_but_one([hit.time for hit in served.log]) > 0.4


def test_json_has_what_a_page_says(home: Path, served: Served) -> None:
    page = json.loads(told(home, "read", served.url("/old"), "--json"))
    assert (page["url"], page["status"], page["title"]) == (served.url("/worms"), 200, "Worms")
    assert {"text", "markdown", "html", "links", "data", "author", "kind", "fetched_at"} <= page.keys()
    some = json.loads(told(home, "read", served.url("/worms"), "--json", "--with", "headers"))
    assert some["headers"]["content-type"].startswith("text/html")
    assert "text" not in some


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("/private/x", "robots", "robots.txt does not allow it"),
        ("/none", "http_4xx", "the server answered 404"),
        ("/round", "too_many_redirects", "more than 10 redirects"),
        ("/wall", "blocked", "captcha"),
        ("/busy", "http_5xx", "503"),
    ],
)
def test_what_cannot_be_had_says_why(home: Path, served: Served, path: str, kind: str, said: str) -> None:
    done = run(home, "read", served.url(path), "--json")
    page = json.loads(done.stdout)
    assert (done.returncode, page["failure"], page["text"]) == (1, kind, None)
    assert said in page["message"]


def test_a_dead_host_is_named_with_its_cause(home: Path) -> None:
    done = run(home, "read", "http://127.0.0.1:1/", "--timeout", "5")
    assert done.returncode == 1
    assert b"http://127.0.0.1:1/ could not be read: " in done.stderr


def test_nobody_is_sent_into_a_private_network(home: Path, served: Served) -> None:
    page = json.loads(run(home, "read", served.url("/away"), "--json").stdout)
    assert page["failure"] == "address_refused"


def test_robots_can_be_ignored_on_purpose(home: Path, served: Served) -> None:
    assert told(home, "read", served.url("/private/x"), "--ignore-robots") == "secret\n"


def test_files_and_standard_input_are_read(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "worms.html"
    path.write_text(ARTICLE + "<a href=more>more</a>")
    assert "arching" in told(home, "read", str(path))
    page = json.loads(told(home, "read", str(path), "--url", "https://example.org/a/", "--json"))
    assert page["links"] == [{"url": "https://example.org/a/more", "text": "more"}]
    assert "arching" in told(home, "read", "-", given=ARTICLE.encode())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("read", "./none.html"), "no file ./none.html"),
        (("read", "word"), "not the address of a site"),
        (("map", "word"), "not the address of a site"),
        (("read", "-", "--json", "--with", "nonsense"), "no part 'nonsense'"),
        (("read", "ftp://example.org/"), "not a web address"),
    ],
)
def test_mistakes_are_told(home: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run(home, *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_a_site_is_mapped(home: Path, served: Served) -> None:
    lines = told(home, "map", served.url("/")).splitlines()
    assert [tuple(line.split("\t")) for line in lines] == [
        (served.url("/worms"), "sitemap", "2026-01-02"),
        (served.url("/hidden"), "sitemap", "2026-01-02"),
        (served.url("/private/x"), "spider"),
    ]
    done = run(home, "map", served.url("/"), "--json", "--limit", "2")
    found = json.loads(done.stdout)
    assert (len(found["urls"]), found["is_cut"]) == (2, True)
    assert found["notes"] == [f"{served.url('/gone.xml')}: the server answered 404"]


def test_a_site_without_sitemaps_is_mapped_by_its_page(home: Path) -> None:
    with Site({"/": "<a href=/b>b</a>", "/b": "b"}).serve() as served:
        done = run(home, "map", served.url("/"))
        assert (done.stdout.decode(), done.stderr) == (f"{served.url('/b')}\tspider\n", b"")


def test_a_site_that_is_not_there_has_no_map(home: Path) -> None:
    done = run(home, "map", "http://127.0.0.1:1/")
    assert done.returncode == 1
    assert b"could not be read" in done.stderr
