"""Sitemaps of every kind, and what hostile or broken ones must not do."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.rules.web import sitemap
from inchworm.rules.web.sitemap import Located, read

URL = "https://h/sitemap.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def urls_of(data: bytes | str) -> list[str]:
    return [page.url for page in read(data.encode() if isinstance(data, str) else data, URL).pages]


def entries(count: int) -> bytes:
    return b"".join(b"<url><loc>https://h/%d</loc></url>" % number for number in range(count))


def test_urlset():
    found = read(
        f"""{HEAD}
        <url><loc> https://h/a?b=1&amp;c=2 </loc><lastmod>2024-05-06</lastmod><priority>1</priority></url>
        <url><lastmod>2024-05-06T07:08:09+02:00</lastmod><loc><![CDATA[https://h/é]]></loc></url>
        <url><loc>/relative</loc></url>
        <url><loc>https://h/a?b=1&amp;c=2</loc></url>
        <url><loc>ftp://h/no</loc></url><url><loc/></url><url/>
        </urlset>""".encode(),
        URL,
    )
    assert found.pages == (
        Located("https://h/a?b=1&c=2", "2024-05-06"),
        Located("https://h/%C3%A9", "2024-05-06T07:08:09+02:00"),
        Located("https://h/relative"),
    )
    assert (found.sitemaps, found.note) == ((), "")


def test_index():
    found = read(
        b"""<sitemapindex><sitemap><loc>https://h/1.xml.gz</loc><lastmod>2024-01-01</lastmod></sitemap>
        <sitemap><loc>https://h/sitemap.xml</loc></sitemap><sitemap><loc>https://h/1.xml.gz</loc></sitemap>
        </sitemapindex>""",
        URL,
    )
    assert (found.pages, found.sitemaps) == ((), ("https://h/1.xml.gz", "https://h/sitemap.xml"))


def test_extensions_are_not_pages():
    assert urls_of(
        f"""{HEAD}<url><loc>https://h/a</loc>
        <image:image><image:loc>https://h/i.png</image:loc></image:image><image:loc>https://h/j.png</image:loc>
        <xhtml:link rel="alternate" hreflang="de" href="https://h/de"/>
        <video:video><video:player_loc>https://h/v</video:player_loc></video:video></url></urlset>"""
    ) == ["https://h/a"]


def test_prefixed_names():
    assert urls_of('<s:urlset xmlns:s="x"><s:url><s:loc>https://h/a</s:loc></s:url></s:urlset>') == ["https://h/a"]


def test_rss_as_sitemap_x5():
    assert urls_of(
        """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>https://h/</link>
        <atom:link href="https://h/feed" rel="self"/>
        <item><title>x</title><link>https://h/1</link><pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate></item>
        <image><url>https://h/no.png</url><link>https://h/no</link></image>
        <item><url>x</url><atom:link href="https://h/no"/><link>https://h/2</link></item></channel></rss>"""
    ) == ["https://h/1", "https://h/2"]


def test_atom_as_sitemap_x5():
    found = read(
        b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://h/"/><updated>2020-01-01</updated>
        <entry><link rel="edit" href="https://h/no"/><link href="/1"/><updated>2024-05-06T07:08Z</updated></entry>
        <entry><link rel="alternate" href="https://h/2"/><link rel="alternate" href="https://h/de/2"/></entry>
        </feed>""",
        URL,
    )
    assert found.pages == (Located("https://h/1", "2024-05-06T07:08Z"), Located("https://h/2"))


def test_rdf_as_sitemap():
    assert urls_of(
        '<rdf:RDF xmlns:rdf="x"><channel><link>https://h/</link></channel>'
        "<item><link>https://h/1</link></item></rdf:RDF>"
    ) == ["https://h/1"]


def test_plain_text_x5():
    text = "\ufeffhttps://h/a\r\n  HTTP://h/b  \n\nhttps://h/c d\nnot a url\n/relative\nhttps://h/a\rhttps://h/last"
    assert urls_of(text) == ["https://h/a", "http://h/b", "https://h/last"]
    assert urls_of("https://h/ü".encode("utf-16")) == ["https://h/%C3%BC"]


def test_gzip_whatever_its_name():
    assert urls_of(gzip.compress(f"{HEAD}<url><loc>https://h/a</loc></url></urlset>".encode())) == ["https://h/a"]
    assert urls_of(gzip.compress(b"https://h/a") + bytes(999)) == ["https://h/a"]
    assert urls_of(gzip.compress(b"https://h/a\n") + gzip.compress(b"https://h/b")) == [
        "https://h/a",
        "https://h/b",
    ]


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_torn_gzip_keeps_what_came(cut):
    packed = gzip.compress(b"https://h/a\n" + zlib.compress(bytes(range(256)) * 999), 1)
    found = read(packed[:-cut], URL)
    assert found.pages == (Located("https://h/a"),)
    assert "gzip" in found.note


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><body><a href='https://h/x'>x</a>",
        "\n\n<HTML><p>Not found",
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x"><html><link>https://h/x</link></html>',
    ],
)
def test_an_error_page_gives_nothing_and_a_note_x5(page):
    found = read(page.encode(), URL)
    assert (found.pages, found.sitemaps, found.note) == ((), (), "an HTML page, not a sitemap")


@pytest.mark.parametrize("data", [b"", b"   ", b"nothing here", b"%PDF-1.7\x00\xff", b"{}", b"<urlset/>"])
def test_nothing_found_is_noted(data):
    assert read(data, URL) == sitemap.Sitemap(note="no URLs in it")


def test_other_xml_is_noted():
    assert read(b"<svg><url><loc>https://h/x</loc></url></svg>", URL).note == "XML, but not a sitemap"


@pytest.mark.parametrize(
    "broken",
    [
        "<url><loc>https://h/b?x=1&y=2</loc></url></urlset>",
        "<url><loc>https://h/b</locc></url></urlset>",
        "<url><loc>https://h/b",
        "<url>\x00",
        "",
        "<url>&nbsp;</url>",
    ],
)
def test_broken_xml_keeps_what_was_read(broken):
    found = read(f"\n {HEAD}<url><loc>https://h/a</loc></url>{broken}".encode(), URL)
    assert found.pages == (Located("https://h/a"),)
    assert found.note.startswith("broken XML")


def test_an_entry_that_breaks_after_its_place_is_kept():
    assert urls_of(f"{HEAD}<url><loc>https://h/a</loc><lastmod>2024</lastmod") == ["https://h/a"]


@pytest.mark.parametrize(
    ("data", "url"),
    [
        ('<?xml version="1.0" encoding="UTF-7"?><urlset><url><loc>https://h/+AGE-</loc></url></urlset>', "https://h/+AGE-"),
        ('<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>https://h/é</loc></url></urlset>', "https://h/%C3%A9"),
        ('<?xml version="1.0" encoding="rot13"?><urlset><url><loc>https://h/a</loc></url></urlset>', "https://h/a"),
        ('<?xml version="1.0" encoding="os.system"?><urlset><url><loc>https://h/a</loc></url></urlset>', "https://h/a"),
    ],
)  # fmt: skip
def test_a_wrong_encoding_is_ignored_x3(data, url):
    assert urls_of(data) == [url]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_unicode_encodings(encoding):
    assert urls_of("<urlset><url><loc>https://h/ü</loc></url></urlset>".encode(encoding)) == ["https://h/%C3%BC"]


def test_old_encodings_and_wrong_bytes():
    old = '<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>https://h/ü</loc></url></urlset>'
    assert urls_of(old.encode("latin-1")) == ["https://h/%C3%BC"]
    assert urls_of(b"<urlset><url><loc>https://h/\xfc</loc></url></urlset>") == ["https://h/%EF%BF%BD"]


LAUGHS = '<!DOCTYPE urlset [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY a{n + 1} "{f"&a{n or str()};" * 10}">' for n in range(10)
)


@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS + "]>",
        '<!DOCTYPE urlset [<!ENTITY a "' + "b" * 100_000 + '">]>',
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "http://127.0.0.1/">]>',
        '<!DOCTYPE urlset [<!ENTITY % p SYSTEM "http://127.0.0.1/x.dtd"> %p;]>',
    ],
)
def test_entities_are_refused_x1_x2(doctype):
    start = time.process_time()
    found = read(f"{doctype}<urlset><url><loc>https://h/&x;&a10;</loc></url></urlset>".encode(), URL)
    assert (found.pages, found.note) == ((), "XML with entities of its own, which are refused")
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("doctype", ['<!DOCTYPE urlset SYSTEM "http://127.0.0.1/x.dtd">', "<!DOCTYPE urlset>"])
def test_a_dtd_is_ignored_x3(doctype):
    include = '<xi:include href="file:///etc/passwd" parse="text" xmlns:xi="http://www.w3.org/2001/XInclude"/>'
    data = f"{doctype}<urlset><url><loc>https://h/a{include}</loc></url></urlset>"
    assert [url for url in urls_of(data) if "root:" in url] == []
    assert urls_of(f"{doctype}<urlset><url><loc>https://h/a</loc></url></urlset>") == ["https://h/a"]


def test_only_50_000_urls_x5():
    found = read(b"<urlset>" + entries(60_000) + b"</urlset>", URL)
    assert len(found.pages) == 50_000
    assert found.pages[-1].url == "https://h/49999"
    assert found.note == "more than 50000 URLs: only the first were kept"
    assert read(b"<urlset>" + entries(50_000) + b"</urlset>", URL).note == ""


def test_only_50_000_sitemaps_x4():
    children = b"".join(b"<sitemap><loc>https://h/%d</loc></sitemap>" % n for n in range(50_001))
    found = read(b"<sitemapindex>" + children + b"</sitemapindex>", URL)
    assert len(found.sitemaps) == 50_000


def test_only_50_mb_and_memory_stays_flat_x5():
    late = b"<url><loc>https://h/late</loc></url></urlset>"
    packed = gzip.compress(b"<urlset>" + entries(10) + b" " * (60 * 1024 * 1024) + late, 1)
    tracemalloc.start()
    start = time.process_time()
    found = read(packed, URL)
    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.pages), found.note) == (10, "more than 50 MB: only those were read")
    assert peak < 8 * 1024 * 1024
    assert seconds < 5


def test_the_limit_is_exact(monkeypatch):
    data = b"https://h/a\nhttps://h/b\n"
    monkeypatch.setattr(sitemap, "MAX_BYTES", len(data))
    assert read(data, URL).note == ""
    assert read(data + b"x", URL).note.startswith("more than")
    assert read(gzip.compress(data), URL).note == ""


ATTACKS = {
    "text node": b"<urlset><url><loc>" + b"a" * 6_000_000 + b"</loc></url></urlset>",
    "comment": b"<urlset><!--" + b"a" * 6_000_000,
    "comment before": b"<!--" + b"a" * 6_000_000,
    "attribute": b'<urlset a="' + b"a" * 6_000_000,
    "attributes": b"<urlset " + b" ".join(b'a%d=""' % n for n in range(200_000)),
    "name": b"<" + b"a" * 6_000_000,
    "doctype": b"<!DOCTYPE " + b"a" * 6_000_000,
    "nesting": b"<urlset>" + b"<a>" * 3_000_000,
    "blanks": b" " * 6_000_000,
    "one line": b"https://h/" + b"a" * 6_000_000,
    "empty members": gzip.compress(b"") * 60_000,
    "bomb": gzip.compress(gzip.compress(bytes(6_000_000))),
    "no urls": b"<urlset>" + b"<url><loc>x:y</loc></url>" * 60_000,
    "same url": b"<urlset>" + b"<url><loc>https://h/</loc></url>" * 60_000,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_files_take_no_time_x1(name):
    start = time.process_time()
    found = read(ATTACKS[name], URL)
    assert time.process_time() - start < 3
    assert len(found.pages) <= 1
    assert found.note


POSSIBLE = """
2024 2024-05 2024-05-06 2024-02-29 2024-05-06T07:08Z 2024-05-06T07:08:09Z 1999-12-31 2024-06-02
2024-05-06T07:08:09.123+02:00 2024-05-06T07:08:09-11:30 2024-05-06T07:08:09
"""
IMPOSSIBLE = """
2024-06-03 2025 9999-12-31 0001-01-01 0000-00-00 1970-01-01 2024-02-30 2023-02-29 2024-13-01 2024-05-06T24:00Z
2024-05-06T07:60Z 06.05.2024 yesterday 2024-5-6 ٢٠٢٤ 2024-05-06x 1715000000 2024-05-06T07:08:09+2
"""


@pytest.mark.parametrize("lastmod", POSSIBLE.split())
def test_dates_that_can_be(lastmod):
    data = f"<urlset><url><loc>/a</loc><lastmod> {lastmod} </lastmod></url></urlset>".encode()
    assert read(data, URL, date(2024, 6, 1)).pages == (Located("https://h/a", lastmod),)


@pytest.mark.parametrize("lastmod", [*IMPOSSIBLE.split(), "", "Mon, 06 May 2024 07:08:09 GMT"])
def test_dates_that_cannot_be_x7(lastmod):
    data = f"<urlset><url><loc>/a</loc><lastmod>{lastmod}</lastmod></url></urlset>".encode()
    assert read(data, URL, date(2024, 6, 1)).pages == (Located("https://h/a"),)


def test_without_a_clock_the_future_is_not_judged():
    data = b"<urlset><url><loc>/a</loc><lastmod>2999-01-01</lastmod></url></urlset>"
    assert read(data, URL).pages == (Located("https://h/a", "2999-01-01"),)


PARTS = b"""
<urlset> </urlset> <url> </url> <loc> </loc> <lastmod> 2024-01-01 https://h/ <sitemapindex> <sitemap>
</sitemap> <rss> <item> <link> <feed> <entry> <link/> &amp; &x; <![CDATA[ ]]> <!-- --> <!DOCTYPE ]> <?xml?> a </a:b>
""".split()
BINARY = [
    b"\n",
    b"\0",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\xef\xbb\xbf",
    b'<link href="x"/>',
    b'<!ENTITY a "b">',
    b" x [",
]
FILES = st.one_of(st.binary(), st.lists(st.sampled_from([*PARTS, *BINARY]), max_size=30).map(b"".join))


@given(FILES, st.booleans(), st.text(max_size=9))
@settings(max_examples=400)
def test_anything_can_be_read_x8(data, pack, url):
    found = read(gzip.compress(data) if pack else data, url, date(2024, 6, 1))
    assert all(page.url.startswith("http") for page in found.pages)
    assert all(child.startswith("http") for child in found.sitemaps)
    assert found.pages or found.sitemaps or found.note
