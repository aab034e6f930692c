"""Inputs that end just before, at or just behind the border at which we stop reading: none is taken for another."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page
from tests.flow.hostile import sound

from inchworm.engine import visit
from inchworm.model import Kind
from inchworm.rules.web import robots, scope, sitemap
from inchworm.testing import Answer, Page, Site

# robots.txt

START = b"User-agent: *\nDisallow: /early\n"
MOST = robots.MAX_BYTES
PACKED = {"Content-Encoding": "gzip"}
PAGES: dict[str, Answer] = {
    "/": page("home", "/early", "/private", "/priv", "/public"),
    **{path: page(path) for path in ("/early", "/private", "/priv", "/public")},
}


def rules(border: int, before: bytes, behind: bytes = b"") -> bytes:
    """A robots.txt with this at its border."""
    return START + b"#" * (border - len(START) - len(before) - 1) + b"\n" + before + behind


def packed_rules() -> bytes:
    """Packed without getting smaller: what is cut is the packed file, and what comes out of it is below the limit."""
    size = len(zlib.decompressobj(31).decompress(gzip.compress(bytes(2 * MOST), 0)[: MOST + 1]))
    assert size < MOST
    return gzip.compress(rules(size, b"Disallow: /", b"private\n" + b"#" * MOST), 0)


ROBOTS = {
    "one byte less": (rules(MOST - 1, b"Disallow: /private"), {}, {"/early", "/private"}),
    "the limit": (rules(MOST, b"Disallow: /private"), {}, {"/early", "/private"}),
    "one byte more": (rules(MOST, b"Disallow: /privat", b"e"), {}, {"/early"}),
    "behind the slash": (rules(MOST, b"Disallow: /", b"private\n"), {}, {"/early"}),
    "behind the slash, and one byte": (rules(MOST + 1, b"Disallow: /", b"private\n"), {}, {"/early"}),
    "one line end more": (rules(MOST, b"Disallow: /private", b"\n"), {}, {"/early", "/private"}),
    "behind the line": (rules(MOST, b"Disallow: /private\n", b"Disallow: /\n"), {}, {"/early", "/private"}),
    "packed": (gzip.compress(rules(MOST, b"Disallow: /", b"private\n")), PACKED, {"/early"}),
    "packed, and as large": (packed_rules(), PACKED, {"/early"}),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_r6_a_rule_that_is_cut_in_the_middle_forbids_nothing(homes: list[Home], tmp_path: Path, name: str) -> None:
    """`Disallow: /private` cut to `Disallow: /` would forbid the whole site. An archive says the same once more."""
    body, headers, forbidden = ROBOTS[name]
    file = Page(body, headers={"Content-Type": "text/plain", **headers})
    with Site({**PAGES, "/robots.txt": file}).serve() as served:
        ended = homes[0].crawl(served.url("/"), sitemap=False)
        assert set(PAGES) - set(served.paths()) == forbidden
        assert (ended.run_state, ended.failed) == ("completed", 0)
        note = "more than 500 KiB: only those were read" in str(homes[0].show(served.url("/robots.txt")))
        assert note is (len(body) > MOST or bool(headers))
        sound(homes[0])
        archive = tmp_path / "crawl.warc.gz"
        archive.write_bytes(homes[0].export("warc"))
        homes[1].crawl(served.url("/"), sitemap=False, replay=(str(archive),))
        assert homes[1].outcomes() == homes[0].outcomes()


# Sitemaps

MAPPED = {f"/{path}": page(path) for path in ("first", "last", "last-of-all")}


@pytest.mark.parametrize("pack", [0, 9], ids=["packed without getting smaller", "packed"])
def test_x5_a_url_that_is_cut_in_the_middle_is_not_asked_for(
    home: Home, monkeypatch: pytest.MonkeyPatch, pack: int
) -> None:
    """`/last-of-all` cut to `/last` would be another page."""
    monkeypatch.setattr(sitemap, "MAX_BYTES", 5_000)
    monkeypatch.setitem(visit._MOST, Kind.SITEMAP, 5_001)
    border = 5_000 if pack else len(zlib.decompressobj(31).decompress(gzip.compress(bytes(9_000), 0)[:5_001]))
    pages: dict[str, Answer] = {"/": page("home"), **MAPPED}
    with Site(pages).serve() as served:
        first, last = served.url("/first").encode(), served.url("/last").encode()
        text = first + b"\n" * (border - len(first) - len(last)) + last + b"-of-all" + b"\n" * 5_000
        pages["/sitemap.xml"] = Page(gzip.compress(text, pack), headers=PACKED)
        home.crawl(served.url("/"))
        assert home.paths() == ["/", "/first"]
        assert "more than" in str(home.show(served.url("/sitemap.xml")))


# URLs


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_u2_the_longest_url_is_asked_for_as_it_is(home: Home, more: int) -> None:
    pages: dict[str, Answer] = {}
    with Site(pages).serve() as served:
        path = "/" + "a" * (scope.MAX_URL_LENGTH + more - len(served.url("/")))
        pages |= {"/": page("home", path), path: page("long")}
        home.crawl(served.url("/"))
        assert (path in served.paths()) is (more < 1)
        assert home.reason(served.url(path)) == ("url_too_long" if more > 0 else None)
