"""Sitemaps that attack, lie, go round in circles or never end: what is good in them is used, the rest does no harm."""

from __future__ import annotations

import gzip
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page
from tests.flow.hostile import again, door, knows, secret_file, sound

from inchworm.testing import Answer, Page, Served, Site

PAGES: dict[str, Answer] = {
    "/": page("home", "/linked"),
    "/linked": page("linked"),
    "/before": page("only in the map"),
    "/after": page("only in the map, behind the trouble"),
}


def urlset(*locations: str, start: str = "", more: str = "") -> str:
    entries = "".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return f'{start}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}{more}</urlset>'


def index(*locations: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{one}</loc></sitemap>' for one in locations)}</sitemapindex>"


# X1 to X3: XML that attacks

LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 11))
XINCLUDE = 'xmlns:xi="http://www.w3.org/2001/XInclude"'
ATTACKS: dict[str, tuple[str, set[str]]] = {
    "X1 billion laughs": (
        urlset("/before", start=f'<!DOCTYPE urlset [<!ENTITY a0 "ha">{LAUGHS}]>', more="<url><loc>/&a10;</loc></url>"),
        set(),
    ),
    "X1 quadratic blow-up": (
        urlset(
            "/before",
            start=f'<!DOCTYPE urlset [<!ENTITY a "{"b" * 100_000}">]>',
            more=f"<url><loc>/{'&a;' * 10_000}</loc></url>",
        ),
        set(),
    ),
    "X1 an attribute without end": (f"<urlset a='{'a' * 5_000_000}", set()),
    "X1 nested without end": (urlset("/before", more="<a>" * 1_000_000), {"/before"}),
    "X3 a DTD": (urlset("/before", start='<!DOCTYPE urlset SYSTEM "http://127.0.0.1:DOOR/x.dtd">'), {"/before"}),
    "X3 a DTD in a file": (urlset("/before", start='<!DOCTYPE urlset SYSTEM "FILE">'), {"/before"}),
    "X3 a public DTD": (
        urlset("/before", start='<!DOCTYPE urlset PUBLIC "-//x" "http://127.0.0.1:DOOR/">'),
        {"/before"},
    ),
    "X3 XInclude": (
        urlset(
            "/before",
            more=f'<url><loc><xi:include {XINCLUDE} href="FILE" parse="text"/></loc></url>'
            f'<xi:include {XINCLUDE} href="http://127.0.0.1:DOOR/"/>',
        ),
        {"/before"},
    ),
    "X3 a style sheet": (
        urlset("/before", start='<?xml-stylesheet type="text/xsl" href="http://127.0.0.1:DOOR/x.xsl"?>'),
        {"/before"},
    ),
    "X3 a schema": (
        urlset("/before").replace("<urlset", '<urlset xsi:schemaLocation="x http://127.0.0.1:DOOR/x.xsd"', 1),
        {"/before"},
    ),
    "X3 called UTF-7": (urlset("/before", start='<?xml version="1.0" encoding="UTF-7"?>'), {"/before"}),
    "X3 called UTF-16 and is not": (urlset("/before", start='<?xml version="1.0" encoding="UTF-16"?>'), {"/before"}),
    "X3 called something": (urlset("/before", start='<?xml version="1.0" encoding="os.system"?>'), {"/before"}),
    "X2 an entity from a file": (
        urlset("/before", start='<!DOCTYPE urlset [<!ENTITY x SYSTEM "FILE">]>', more="<url><loc>/&x;</loc></url>"),
        set(),
    ),
    "X2 an entity from the web": (
        urlset(
            "/before",
            start='<!DOCTYPE urlset [<!ENTITY x SYSTEM "http://127.0.0.1:DOOR/">]>',
            more="<url><loc>/&x;</loc></url>",
        ),
        set(),
    ),
    "X2 a parameter entity": (
        urlset("/before", start='<!DOCTYPE urlset [<!ENTITY % x SYSTEM "http://127.0.0.1:DOOR/x.dtd"> %x;]>'),
        set(),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_xml_that_attacks_does_no_harm(home: Home, tmp_path: Path, name: str) -> None:
    """No file is read, no request is made for it, it takes no time, and the crawl is otherwise complete."""
    text, used = ATTACKS[name]
    with door() as inside:
        file, word = secret_file(tmp_path)
        text = text.replace("DOOR", str(inside.port)).replace("FILE", file)
        with Site({**PAGES, "/sitemap.xml": Page(text)}).serve() as served:
            began = time.process_time()
            ended = home.crawl(served.url("/"))
            assert time.process_time() - began < 5
            assert set(home.paths()) == {"/", "/linked", *used}
            assert (ended.run_state, ended.failed) == ("completed", 0)
            assert (inside.count(), knows(home, word)) == (0, False)
            sound(home)
            again(home, served.url("/"))


def test_x1_a_text_of_a_gigabyte(home: Home) -> None:
    """What came before it is used. The gigabyte is sent packed, for a plain one would not be let in."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = packer.compress(urlset("/before").removesuffix("</urlset>").encode() + b"<url><loc>/")
    data += packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(b"a" * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    data += piece * 100 + packer.compress(b"</loc></url></urlset>") + packer.flush()
    with Site({**PAGES, "/sitemap.xml": data}).serve() as served:
        ended = home.crawl(served.url("/"))
        assert (set(home.paths()), ended.known) == ({"/", "/linked", "/before"}, 3)
        sound(home)


# X4: sitemaps of sitemaps


def sitemaps_asked(served: Served) -> list[str]:
    return [hit.path for hit in served.log if "sitemap" in hit.path]


def test_x4_circles_are_walked_once(home: Home) -> None:
    """One that lists itself, and three that list each other."""
    circles: dict[str, Answer] = {
        "/sitemap.xml": index("/sitemap.xml", "/sitemap-a.xml"),
        "/sitemap-a.xml": index("/sitemap-b.xml"),
        "/sitemap-b.xml": index("/sitemap-a.xml", "/sitemap.xml", "/sitemap-c.xml"),
        "/sitemap-c.xml": urlset("/before"),
    }
    with Site({**PAGES, **circles}).serve() as served:
        ended = home.crawl(served.url("/"))
        assert sorted(sitemaps_asked(served)) == sorted(circles)
        assert (ended.run_state, set(home.paths())) == ("completed", {"/", "/linked", "/before"})
        again(home, served.url("/"))


def test_x4_ten_deep_is_too_deep(home: Home) -> None:
    deep: dict[str, Answer] = {f"/sitemap-{n}.xml": index(f"/sitemap-{n + 1}.xml") for n in range(1, 10)}
    deep |= {"/sitemap.xml": index("/sitemap-1.xml"), "/sitemap-10.xml": urlset("/after")}
    with Site({**PAGES, **deep}).serve() as served:
        ended = home.crawl(served.url("/"))
        asked = sitemaps_asked(served)
        assert asked == ["/sitemap.xml", *(f"/sitemap-{n}.xml" for n in range(1, len(asked)))]
        assert len(asked) < 10
        assert (ended.run_state, set(home.paths())) == ("completed", {"/", "/linked"})


def test_x4_fifty_thousand_children(home: Home) -> None:
    """Three hundred of them are there, each is read once. The others are forbidden, or the test would take minutes."""
    children = [f"/open/sitemap-{n}.xml" for n in range(300)] + [f"/shut/sitemap-{n}.xml" for n in range(60_000)]
    site: dict[str, Answer] = {
        **PAGES,
        "/robots.txt": "User-agent: *\nDisallow: /shut",
        "/sitemap.xml": index(*children),
    }
    site |= {path: urlset("/before", "/after") for path in children[:300]}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), workers=16)
        assert sorted(sitemaps_asked(served)) == sorted(["/sitemap.xml", *children[:300]])
        assert (ended.run_state, ended.pages, ended.failed, ended.pending) == ("completed", 4, 0, 0)
        sound(home)


# X5: files of the wrong size or kind


def test_x5_of_sixty_thousand_urls_the_first_fifty_thousand_are_kept(home: Home) -> None:
    """They lie outside the scope, so that nobody has to wait for them; known they are."""
    locations = [f"/other/{number}" for number in range(60_000)]
    with Site(
        {"/docs/": page("docs"), "/sitemap.xml": urlset("/docs/x", *locations), "/docs/x": page("x")}
    ).serve() as served:
        ended = home.crawl(served.url("/docs/"))
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 2, 0)
        assert home.reasons() == {"out_of_scope": 49_999}
        assert home.reason(served.url("/other/49998")) == "out_of_scope"
        home.cli("why", home.word, served.url("/other/49999"), code=2)
        sound(home)


def megabytes(count: int) -> bytes:
    """A sitemap of this size, with a page before and a page behind its filling."""
    filling = f"<!--{'x' * 993}-->" * (count * 1000)
    return urlset("/before", more=filling + "<url><loc>/after</loc></url>").encode()


@pytest.mark.parametrize(
    ("count", "packed"),
    [
        pytest.param(60, True, id="X5 60 MB, packed"),
        pytest.param(63, False, id="X5 63 MB, which is 60 MiB"),
    ],
)
def test_of_a_file_that_is_too_large_the_beginning_is_read(home: Home, count: int, packed: bool) -> None:
    body = megabytes(count)
    with Site({**PAGES, "/sitemap.xml": gzip.compress(body, 1) if packed else body}).serve() as served:
        ended = home.crawl(served.url("/"), max_retries=0)
        assert (ended.run_state, set(home.paths())) == ("completed", {"/", "/linked", "/before"})


RSS = '<rss version="2.0"><channel><link>/channel</link><item><link>/before</link></item><item/></channel></rss>'
KINDS: dict[str, tuple[Answer, set[str]]] = {
    "X5 plain text": ("HOST/before\nnot a URL\nHOST/after\n", {"/before", "/after"}),
    "X5 RSS": (RSS, {"/before"}),
    "X5 an HTML page": (page("not found", "/before"), set()),
    "X5 an HTML page with 404": (Page(page("not found", "/before"), 404), set()),
    "X5 XML that breaks off": (urlset("/before")[:-9] + "<url><loc>/aft", {"/before"}),
    "X5 gzip that is none": (Page(b"\x1f\x8b nonsense"), set()),
    "X5 gzip that breaks off": (Page(gzip.compress(urlset("/before", *map(str, range(9))).encode())[:-9]), {"/before"}),
    "X5 nothing": (Page(b""), set()),
    "X5 an image": (Page(b"\x89PNG\r\n\x1a\n" + bytes(1000)), set()),
    "X5 500": (Page("oops", 500), set()),
}


@pytest.mark.parametrize("name", KINDS)
def test_of_whatever_is_no_sitemap_the_urls_are_used(home: Home, name: str) -> None:
    answer, used = KINDS[name]
    site: dict[str, Answer] = {**PAGES, "/sitemap.xml": answer}
    with Site(site).serve() as served:
        if isinstance(answer, str):
            site["/sitemap.xml"] = answer.replace("HOST", served.url("").rstrip("/"))
        ended = home.crawl(served.url("/"), max_retries=0)
        paths = {path for path in home.paths() if path in PAGES}
        assert paths == {"/", "/linked", *used}
        assert ended.run_state == "completed"
        sound(home)


@pytest.mark.parametrize(
    ("name", "word"), [("X5 an HTML page", "HTML"), ("X5 gzip that is none", "gzip"), ("X5 500", "500")]
)
def test_x5_what_was_wrong_with_a_sitemap_is_reported(home: Home, name: str, word: str) -> None:
    with Site({**PAGES, "/sitemap.xml": KINDS[name][0]}).serve() as served:
        home.crawl(served.url("/"), max_retries=0)
        told = home.cli("why", home.word, served.url("/sitemap.xml")).stdout
        assert word in told


# X6 and X7: what its entries say


def test_x6_foreign_hosts_are_subject_to_the_scope(home: Home) -> None:
    site: dict[str, Answer] = dict(PAGES)
    with Site(site, {"foreign.localhost": {"/x": page("x")}}).serve() as served:
        foreign = served.url("/x", "foreign.localhost")
        site["/sitemap.xml"] = urlset(foreign, "/before")
        site["/robots.txt"] = (
            f"Sitemap: {served.url('/sitemap.xml')}\nSitemap: {served.url('/s.xml', 'foreign.localhost')}"
        )
        home.crawl(served.url("/"))
        assert home.reason(foreign) == "out_of_scope"
        assert set(home.paths()) == {"/", "/linked", "/before"}
        assert not [hit for hit in served.log if hit.host.startswith("foreign")]


def test_x6_where_the_scope_takes_them_they_are_crawled(home: Home) -> None:
    site: dict[str, Answer] = dict(PAGES)
    with Site(site, {"foreign.localhost": {"/x": page("x")}}).serve() as served:
        site["/sitemap.xml"] = urlset(served.url("/x", "foreign.localhost"))
        home.crawl(served.url("/"), scope="any")
        assert home.show(served.url("/x", "foreign.localhost"))["source"] == "sitemap"
        assert set(home.paths()) == {"/", "/linked", "/x"}


def test_x6_one_on_a_host_whose_rules_cannot_be_read_is_no_page_that_failed(home: Home) -> None:
    """It is not asked for, and the counters of pages know nothing of it."""
    site: dict[str, Answer] = dict(PAGES)
    with Site(site, {"foreign.localhost": {"/robots.txt": Page("busy", 500)}}).serve() as served:
        site["/robots.txt"] = f"Sitemap: {served.url('/sitemap.xml', 'foreign.localhost')}"
        ended = home.crawl(served.url("/"), scope="any", max_retries=0)
        assert (ended.pages, ended.failed, ended.run_state) == (2, 0, "completed")
        assert "/sitemap.xml" not in served.paths()


def dated(lastmod: str) -> str:
    return urlset(more=f"<url><loc>/before</loc><lastmod>{lastmod}</lastmod></url>")


LATER = (datetime.now(UTC) + timedelta(days=400)).date().isoformat()


@pytest.mark.parametrize(
    "lastmod",
    [
        pytest.param(LATER, id="X7 of the future"),
        pytest.param("9999-12-31", id="X7 year 9999"),
        pytest.param("0001-01-01", id="X7 year 1"),
        pytest.param("2024-02-30", id="X7 no such day"),
        pytest.param("yesterday", id="X7 not a date"),
        pytest.param("9" * 10_000, id="X7 a long number"),
        pytest.param("&#0;", id="X7 what no XML may hold"),
        pytest.param("", id="X7 empty"),
    ],
)
def test_a_date_that_cannot_be_is_no_hint_and_its_page_is_visited(home: Home, lastmod: str) -> None:
    with Site({**PAGES, "/sitemap.xml": dated(lastmod)}).serve() as served:
        ended = home.crawl(served.url("/"))
        assert (ended.run_state, set(home.paths())) == ("completed", {"/", "/linked", "/before"})
        assert home.show(served.url("/before"))["lastmod"] is None


def test_x7_a_date_that_can_be_is_kept(home: Home) -> None:
    with Site({**PAGES, "/sitemap.xml": dated("2024-02-29")}).serve() as served:
        home.crawl(served.url("/"))
        assert home.show(served.url("/before"))["lastmod"] == "2024-02-29"
