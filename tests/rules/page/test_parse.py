"""Reading pages: what browsers would find, whatever the bytes are."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.model import Kind, Reading, Source, Substance
from inchworm.rules.formats.media import Media, media_of
from inchworm.rules.metadata import describe
from inchworm.rules.page import parse
from inchworm.rules.page.links import MAX_LINK_CHARS, Resolver
from inchworm.rules.page.parse import How, read, substance
from inchworm.rules.web.url import Canonicalizer

URL = "http://site.test/docs/page.html?v=1"
HTML = "text/html; charset=utf-8"


def html(markup: str | bytes, url: str = URL, resources: bool = False, content_type: str = HTML) -> Reading:
    body = markup.encode() if isinstance(markup, str) else markup
    return read(body, content_type, url, How(resources, text=True))


def links(markup: str | bytes, url: str = URL, resources: bool = False) -> list[str]:
    return [link.request_url for link in html(markup, url, resources).links]


def resources(markup: str) -> list[str]:
    found = html(markup, resources=True).links
    assert all(link.source is Source.RESOURCE for link in found if link.kind is Kind.RESOURCE)
    return [link.request_url.removeprefix("http://site.test") for link in found if link.kind is Kind.RESOURCE]


# ---- links


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=a.html>", ["http://site.test/docs/a.html"]),
        ("<a href=/a>", ["http://site.test/a"]),
        ("<a href=../a>", ["http://site.test/a"]),
        ("<a href=//other.test/a>", ["http://other.test/a"]),
        ("<a href='https://other.test'>", ["https://other.test/"]),
        ("<a href=' \n/a\t'>", ["http://site.test/a"]),
        ("<a href='/a\nb'>", ["http://site.test/ab"]),
        ("<a href='\x01/a\x1f'>", ["http://site.test/a"]),
        (r"<a href='\a\b'>", ["http://site.test/a/b"]),
        ("<a href='/a b?ä#c'>", ["http://site.test/a%20b?%C3%A4"]),
        ("<a href='/?a=1&amp;b=2'>", ["http://site.test/?a=1&b=2"]),
        ("<a href=?page=2>", ["http://site.test/docs/page.html?page=2"]),
        ("<a href=http:?page=2>", ["http://site.test/docs/page.html?page=2"]),
        ("<a href='h\nttp:b.html'>", ["http://site.test/docs/b.html"]),
        ("<a href='#top'>", []),
        ("<a href=''>", []),
        ("<a name=x>", []),
        (
            "<a href=mailto:a@b.test><a href=javascript:void(0)><a href='data:text/html,x'><a href=ftp://x/>",
            [],
        ),
        ("<a href='http://'><a href='http://a b/'><a href='http://h:65536/'>", []),
        ("<a href='http://me:secret@site.test/a'>", ["http://site.test/a"]),
        ("<map><area href=/area></map>", ["http://site.test/area"]),
        ("<iframe src=/frame></iframe>", ["http://site.test/frame"]),
        ("<frameset><frame src=/frame></frameset>", ["http://site.test/frame"]),
        ("<link rel=NEXT href=/2><link rel='x prev' href=/0>", ["http://site.test/2", "http://site.test/0"]),
        ("<link rel=stylesheet href=/s.css><img src=/i.png><script src=/s.js></script>", []),
        ("<svg><a href=/s1></a><a xlink:href=/s2></a></svg>", ["http://site.test/s1", "http://site.test/s2"]),
        ("<noscript><a href=/n></a></noscript>", ["http://site.test/n"]),
        ("<div><template shadowrootmode=open><a href=/s></a></template></div>", ["http://site.test/s"]),
        ("<!-- <a href=/no> --><script>'<a href=/no>'</script>", []),
        ("<a href=/b><a href=/a><a href=/b#x><a href=/c>", [f"http://site.test/{c}" for c in "bac"]),
    ],
)
def test_links_are_those_of_a_browser(markup: str, expected: list[str]) -> None:
    assert links(markup) == expected


def test_a_link_has_two_forms_and_the_first_of_equals_wins() -> None:
    (link,) = html("<a href='/a/?b=2&a=1#x' rel=nofollow><a href=/a?a=1&b=2>").links
    assert (link.url, link.request_url) == ("http://site.test/a?a=1&b=2", "http://site.test/a/?b=2&a=1")
    assert (link.kind, link.source, link.nofollow) == (Kind.PAGE, Source.SPIDER, False)


def test_links_do_not_depend_on_what_was_read_before() -> None:
    """What a resolver remembers about one page of a directory holds on the others, or is not remembered."""
    markup = "<a href=x><a href=?q><a href=http:#f><a href='\t?r'><a href=..>" + f"<a href={'y' * 300}>"
    pages = [f"http://site.test/{path}" for path in ("a/1", "a/2", "a/", "b/1?x#y", "a/1/")]
    resolver = Resolver()
    for url in pages * 2:
        fresh = read(markup.encode(), HTML, url, How(resolver=Resolver()))
        assert read(markup.encode(), HTML, url, How(resolver=resolver)) == fresh


def test_a_resolver_tells_urls_apart_as_it_was_told() -> None:
    body = b"<a href=/a?sid=1><a href=/a?sid=2>"
    assert len(read(body, HTML, URL).links) == 2
    assert len(read(body, HTML, URL, How(resolver=Resolver(Canonicalizer(frozenset({"sid"}))))).links) == 1


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<base href=/b/><a href=x>", "http://site.test/b/x"),
        ("<a href=x><base href=/b/>", "http://site.test/b/x"),
        ("<base href='http://other.test/b/c?d'><a href=x>", "http://other.test/b/x"),
        ("<base target=_top><base href=/b/><a href=x>", "http://site.test/b/x"),
        ("<base href=/one/><base href=/two/><a href=x>", "http://site.test/one/x"),
        ("<base href='http://'><base href=/two/><a href=x>", "http://site.test/docs/x"),
        ("<base href='data:text/html,x'><a href=x>", "http://site.test/docs/x"),
        ("<base href='javascript:x'><a href=x>", "http://site.test/docs/x"),
        ("<base href=' \n/b/ '><a href=x>", "http://site.test/b/x"),
        ("<base href=''><a href=?x>", "http://site.test/docs/page.html?x"),
        ("<base href=/b/><a href=?x>", "http://site.test/b/?x"),
        ("<base href=/b/><a href='#x'>", "http://site.test/b/"),
        ("<base href=file:///C:/><a href=x><a href=http://a.test/>", "http://a.test/"),
        ("<template><base href=/t/></template><a href=x>", "http://site.test/docs/x"),
    ],
)
def test_base_u13(markup: str, expected: str) -> None:
    assert links(markup) == [expected]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=/a", ["http://site.test/a"]),
        ("5; URL='/a'", ["http://site.test/a"]),
        (".5, /a", ["http://site.test/a"]),
        ("0; a", ["http://site.test/docs/a"]),
        ("0;url=page.html?v=1", [URL]),
        ("30", []),
        ("0;url=", []),
        ("soon;url=/a", []),
        ("0;url=javascript:alert(1)", []),
        ("0;url=file:///etc/passwd", []),
    ],
)
def test_meta_refresh_u12(content: str, expected: list[str]) -> None:
    assert links(f'<meta http-equiv=Refresh content="{content}">') == expected


def test_meta_refresh_minds_the_base_and_comes_in_its_place() -> None:
    markup = "<base href=/b/><link rel=next href=1><meta http-equiv=refresh content='0;url=2'><a href=3>"
    assert links(markup) == [f"http://site.test/b/{n}" for n in (1, 2, 3)]


def test_a_page_without_a_usable_address_has_absolute_links_only() -> None:
    assert links("<a href=x><a href=http://a.test/>", url="not a url") == ["http://a.test/"]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<img src=/a.png srcset='/b.png 1x, /c,d.png 2x'>", ["/a.png", "/b.png", "/c,d.png"]),
        ("<img src=''><img src='data:image/png;base64,x'>", []),
        ("<picture><source srcset='/a.webp 1x'></picture>", ["/a.webp"]),
        ("<video src=/v poster=/p><source src=/s><track src=/t></video>", ["/v", "/p", "/s", "/t"]),
        ("<audio src=/a></audio><embed src=/e><object data=/o></object>", ["/a", "/e", "/o"]),
        ("<script src=/s.js></script>", ["/s.js"]),
        ("<link rel='shortcut ICON' href=/i><link rel=stylesheet href=/s>", ["/i", "/s"]),
        ("<link rel=preload href=/p><link rel=manifest href=/m>", ["/p", "/m"]),
        ("<link rel=canonical href=/c><link rel=alternate href=/x>", []),
        (
            "<style>@import '/a.css'; p { background: url(/b.png) } /* url(/no) */</style>",
            ["/a.css", "/b.png"],
        ),
        ("<p style='background: url(\"/a.png\")'>", ["/a.png"]),
        ("<body background=/a.png>", ["/a.png"]),
        ("<input type=IMAGE src=/a.png><input type=text src=/no>", ["/a.png"]),
        ("<svg><image href=/a /><use xlink:href=/b#c /><use href=#c /></svg>", ["/a", "/b"]),
        ("<form action=/f></form><blockquote cite=/c></blockquote><a ping=/p>", []),
    ],
)
def test_resources(markup: str, expected: list[str]) -> None:
    assert resources(markup) == expected
    assert not any(link.kind is Kind.RESOURCE for link in html(markup).links)


def test_pages_come_before_resources_and_do_not_change_with_them() -> None:
    markup = "<img src=/i.png><a href=/a><a href=/b.png><img src=/b.png>"
    found = html(markup, resources=True).links
    assert [link.request_url[17:] for link in found] == ["a", "b.png", "i.png"]
    assert found[:2] == html(markup).links


def test_links_of_a_style_sheet() -> None:
    body = b"\xef\xbb\xbf@import url(a.css);\np{background:url('../b.png')}</style><img src=no>"
    found = read(body, "text/css", "http://site.test/css/main.css", How(True, text=True)).links
    assert [link.url for link in found] == ["http://site.test/css/a.css", "http://site.test/b.png"]
    assert {link.kind for link in found} == {Kind.RESOURCE}
    assert read(body, "text/css", "http://site.test/css/main.css") == Reading()


# ---- what a page says about itself


def test_title_language_canonical() -> None:
    reading = html(
        "<html lang=' de-CH '><svg><title>no</title></svg><title> A\n  <b> &amp; B </title><title>C</title>"
        "<link rel=canonical href=../c?x#y><link rel=canonical href=/second>"
    )
    assert reading.title == "A <b> & B"
    assert reading.language == "de-CH"
    assert reading.canonical == "http://site.test/c?x#y"


def test_nothing_said_is_nothing_found() -> None:
    assert html("") == Reading()
    assert html("<link rel=canonical href='mailto:x'>") == Reading()


@pytest.mark.parametrize(
    ("markup", "nofollow", "noindex"),
    [
        ("<meta name=robots content=nofollow>", True, False),
        ("<meta name=ROBOTS content='NoIndex,Follow'>", False, True),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=inchworm content='noindex, nofollow'>", True, True),
        ("<meta name=googlebot content=none>", False, False),
        ("<meta name=robots content='index, follow'><a rel=nofollow href=/a>", False, False),
    ],
)
def test_meta_robots(markup: str, nofollow: bool, noindex: bool) -> None:
    reading = html(markup)
    assert (reading.nofollow, reading.noindex) == (nofollow, noindex)


def test_main_text_is_without_the_frame() -> None:
    text = "The engine of the harbor crane was repaired in the winter, after a long search for the parts. " * 3
    reading = html(f"<nav><a href=/>Home</a> <a href=/b>Imprint</a></nav><main><h1>Cranes</h1><p>{text}</main>")
    assert "engine of the harbor crane" in reading.text
    assert "Imprint" not in reading.text


def json_ld(value: object) -> str:
    return f"<script type=application/ld+json>{json.dumps(value)}</script>"


def test_meta_from_plain_metas_and_open_graph() -> None:
    meta = html(
        "<meta name=Description content=' a  b '><meta name=author content=Ann>"
        "<meta name=keywords content='x, y,,x'><meta property=og:site_name content=Site>"
        "<meta property=og:image content=/i.png><meta property=og:type content=article>"
        "<meta property=article:published_time content=2024-01-02><meta name=viewport content=x>"
        "<link rel=alternate type=application/rss+xml href=/rss><link rel=alternate hreflang=de href=/de>"
    ).meta
    assert meta == {
        "description": "a b",
        "author": "Ann",
        "published": "2024-01-02",
        "site_name": "Site",
        "image": "http://site.test/i.png",
        "type": "article",
        "keywords": ["x", "y"],
        "feeds": ["http://site.test/rss"],
    }


def test_meta_from_json_ld_comes_first() -> None:
    graph = [
        {"@type": "WebSite", "description": "of the site"},
        {"@type": "Person", "@id": "#ann", "name": "Ann", "image": "/ann.png"},
        {"@type": ["NewsArticle", "Article"], "author": [{"@id": "#ann"}, {"name": "Bob"}, "Cy"]},
        {"@type": "WebPage", "datePublished": "2024", "dateModified": 2025, "image": {"url": "/p.png"}},
        {"@type": "WebPage", "publisher": {"name": "Pub"}, "keywords": ["k", {"name": "l"}]},
    ]
    meta = html(json_ld({"@graph": graph}) + "<meta name=author content=No><meta name=description content=D>").meta
    assert meta == {
        "description": "D",
        "author": "Ann, Bob, Cy",
        "published": "2024",
        "publisher": "Pub",
        "image": "http://site.test/p.png",
        "type": "NewsArticle",
        "keywords": ["k", "l"],
    }


@pytest.mark.parametrize(
    "block",
    [
        "",
        "{",
        "[" * 100_000,
        "9" * 5_000,
        "NaN",
        "null",
        '"x"',
        '[[{"author": "x"}], 1]',
        '{"author": {"name": {}}}',
    ],
)
def test_broken_json_ld_says_nothing(block: str) -> None:
    assert html(f"<script type=application/ld+json>{block}</script>").meta == {}


def test_meta_values_can_be_stored_u17() -> None:
    block = r'<script type=application/ld+json>{"author": "a\ud800\u0000b", "keywords": "\udfff"}</script>'
    assert html(block).meta == {"author": "a?b", "keywords": ["?"]}


# ---- bytes


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"plain words", True),
        ("TEXT/HTML ; charset=x", b"", True),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html/>", True),
        ("", b"\n <!DOCTYPE html>", True),
        ("application/octet-stream", b"\xef\xbb\xbf<HTML>", True),
        ("", b"<!-- x", True),
        ("", b"<p>", True),
        ("", b"<pre>", False),
        ("", b"words <html>", False),
        ("text/plain", b"<html>", False),
        ("application/pdf", b"<html>", False),
        ("text/html", b"%PDF-1.7", False),
        ("text/html", b"PK\x03\x04", False),
        ("text/html", b"\x1f\x8b\x08", False),
        ("text/html", b"\x89PNG\r\n\x1a\n", False),
        ("text/html", b"\xff\xd8\xff\xe0", False),
        ("text/html", b"GIF89a", False),
        ("text/html", b"\x00\x00\x00\x18ftypmp42", False),
        ("text/html", b"\x1aE\xdf\xa3", False),
        ("text/html", b"RIFF\x00\n\x00\x00WEBPVP8", False),
    ],
)
def test_what_is_html_m6(content_type: str, body: bytes, expected: bool) -> None:
    assert (media_of(body, content_type) is Media.HTML) is expected
    if not expected:
        assert read(body + b"<a href=/a>x</a>", content_type, URL) == Reading()


PADDING = "<!--" + "x" * 2_000 + "-->"
CHINESE = "中文网页的标题在这里写下来"


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("text/html", "<title>café".encode(), "café"),
        ("text/html", "<title>café".encode("latin-1"), "café"),
        ("text/html; charset=ISO-8859-1", b"<title>caf\xe9 \x80", "café €"),
        ('text/html; charset="utf-8"', "<meta charset=latin1><title>café".encode(), "café"),
        ("text/html; charset=latin1", b"\xef\xbb\xbf<title>caf\xc3\xa9", "café"),
        ("text/html; charset=utf-8", b"<title>caf\xe9", "caf\ufffd"),
        ("text/html", "<meta charset=shift_jis><title>日本".encode("shift_jis"), "日本"),
        ("text/html", f"{PADDING}<meta charset=koi8-r><title>Привет".encode("koi8-r"), "Привет"),
        ("text/html; charset=gb18030", f"<title>{CHINESE}".encode("gb18030"), CHINESE),
        ("text/html", f"<title>{CHINESE}".encode("gb18030"), CHINESE),
        ("text/html", "<title>café".encode("utf-16"), "café"),
        ("text/html; charset=utf-16le", "<title>a\ud800b".encode("utf-16-le", "surrogatepass"), "a\ufffdb"),
        ("text/html; charset=utf-8", b"<title>a\xed\xa0\x80b&#xd800;", "a\ufffd\ufffd\ufffdb\ufffd"),
        ("text/html; charset=os.system", "<title>café".encode(), "café"),
        ("text/html; charset=rot13", b"<title>abc", "abc"),
        ("text/html; charset=utf-7", b"<title>+AGE-", "+AGE-"),
        ("text/html; charset=utf-8\0x", "<title>café".encode(), "café"),
        ("text/html; charset=\ud800", b"<title>abc", "abc"),
        ("text/html; charset=", b"<title>abc", "abc"),
    ],
)
def test_encodings_u17(content_type: str, body: bytes, title: str) -> None:
    assert html(body, content_type=content_type).title == title


def test_utf16_without_a_mark_is_read_as_browsers_do_u17() -> None:
    reading = html("<title>abc</title>".encode("utf-16-le"), content_type="text/html")
    assert (reading.title, reading.links) == ("", ())


# ---- too much of everything


def test_deep_and_wide_trees_m3() -> None:
    assert links(b"<div>" * 100_000 + b"<a href=/a>x") == ["http://site.test/a"]
    assert links(b"<b><i>" * 20_000 + b"<svg>" * 20_000 + b"<template>" * 20_000) == []
    assert html(b"<div>" * 2_000_000).links == ()


def test_long_fields_are_cut_and_flagged_m5(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = html("<title>" + "t " * 500_000 + "</title>")
    assert len(reading.title) == parse.MAX_TITLE
    assert reading.meta == {"title_capped": True}
    monkeypatch.setattr(parse, "MAX_TEXT", 1_000)
    reading = html("<main><p>" + "one long sentence, " * 1_000)
    assert len(reading.text) == 1_000
    assert reading.meta["text_capped"] is True


def test_long_attributes_m5() -> None:
    long = "x" * 10_000_000
    assert [len(url) for url in links(f"<a href=/{long}>")] == [len("http://site.test/") + len(long)]
    long = "x" * 100_000
    meta = html(f"<meta name=author content={long}><meta property=og:image content={long}>").meta
    assert meta == {"author": "x" * describe.MAX_FIELD}
    assert html(f"<link rel=canonical href=/{long}><html lang={long}>").canonical == ""


def test_links_are_capped_m2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inchworm.rules.page.links.MAX_LINKS", 10)
    many = "".join(f"<a href={number}>" for number in range(11))
    assert len(html(many).links) == 10
    assert html(many).meta == {"links_capped": True}
    assert html(many.replace("<a href=10>", "<a href=9>")).meta == {}
    assert html(many.replace("<a href=10>", "<img src=10>"), resources=True).meta == {"links_capped": True}


def test_a_huge_base_is_not_multiplied() -> None:
    hrefs = "".join(f"<a href={number}>" for number in range(1_000))
    reading = html(f"<base href=/{'x' * 1_000_000}/>{hrefs}")
    assert sum(len(link.url) for link in reading.links) < MAX_LINK_CHARS
    assert reading.meta == {"links_capped": True}


@pytest.mark.parametrize(
    "body",
    [
        b"@" * 100_000,
        b"<" * 100_000,
        b"<a href=http://" + b"x" * 100_000 + b".test/>",
        b"<a href=http://" + "ä".encode() * 50_000 + b".test/>",
        b"<a href='" + b"../" * 100_000 + b"'>",
        b"<meta http-equiv=refresh content='0" + b" " * 100_000 + b"x'>",
        b"<meta name=robots content='" + b", " * 100_000 + b"'>",
        b"<meta name=keywords content='" + b"a," * 100_000 + b"'>",
        b"<img srcset='" + b"a , " * 50_000 + b"'>",
        b"<style>" + b"url(" * 50_000 + b"</style>",
        b"<style>" + b"/*" * 50_000 + b"</style>",
    ],
)
def test_slow_inputs_m7(body: bytes) -> None:
    started = process_time()
    read(body, HTML, URL, How(True, text=True))
    read(b"", "text/html;" + " " * 100_000 + ";charset" * 10_000, URL)
    assert process_time() - started < 1


TAGS = [
    "<a href=",
    "<img src=",
    "<base href=",
    "<link rel=next href=",
    "<meta http-equiv=refresh content='0;",
]
TAGS += ["<title>", "<style>@import ", "<svg>", "<iframe src=", "<script type=application/ld+json>", "<!--"]
BITS = [
    "'",
    '"',
    ">",
    "/",
    "//",
    "\\",
    "#",
    "?",
    ":",
    "http:",
    "https:",
    "file:",
    "javascript:",
    "x",
    ".test",
]
PIECES = st.lists(st.sampled_from([*TAGS, *BITS, "&#xd800;", "\0", "\n"]) | st.text(max_size=5)).map("".join)


@settings(max_examples=100)
@given(
    st.binary() | PIECES.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(["", "text/html", HTML, "text/html; charset=utf-16", "text/css", "text/html; charset=gbk"]),
    st.sampled_from([URL, "https://h/", ""]) | st.text(),
    st.booleans(),
)
def test_read_takes_anything(body: bytes, content_type: str, url: str, with_resources: bool) -> None:
    reading = read(body, content_type, url, How(with_resources, text=True))
    for link in reading.links:
        assert link.url.startswith(("http://", "https://"))
        assert link.request_url.startswith(("http://", "https://"))
        assert "#" not in link.request_url
    texts = (reading.title, reading.text, reading.language, reading.canonical, str(reading.meta))
    "".join(texts).encode("utf-8")
    assert len({link.url for link in reading.links}) == len(reading.links)
    assert read(body, content_type, url, How(with_resources, text=True)) == reading


def test_pages_that_share_one_cell_have_other_texts() -> None:
    cell = "A long description, with commas, of one column that many tables of a manual have in common. "
    page = (
        "<div class=sect><h1>{0}</h1><p>The view {0} shows what {0} is about, and for whom, in a text of its own.</p>"
        "<table><tr><td>{1}</table></div>"
    )
    one, other = (html(page.format(name, cell)) for name in ("pg_user", "pg_shadow"))
    assert one.text != other.text
    assert "pg_user" in one.text


def test_the_frame_is_left_out_where_the_page_says_what_is_main() -> None:
    reading = html("<nav><a href=/a>Menu</a></nav><main><p>The story.</p></main><footer>Built today</footer>")
    assert reading.text.strip() == "The story."


def test_a_frame_inside_a_template_that_nobody_sees_is_passed_over() -> None:
    found = read(b"<template><nav>a</nav><nav>b</nav></template><p>Short", "text/html", "http://h/")
    assert found.words.split() == ["Short"]


def test_a_shadow_that_the_parser_puts_outside_of_the_page_is_passed_over() -> None:
    body = b"<p>Text</p><svg><template><title><e></template><template shadowrootmode=open><a href=/a>A</a><b>B</b>"
    found = read(body, "text/html", "http://h/")
    assert "Text" in found.words
    assert [link.url for link in found.links] == ["http://h/a"]


def test_shadows_in_shadows_are_shown() -> None:
    shadow = "<template shadowrootmode=open>"
    assert html(f"<div>{shadow}<p>One {shadow}two</template></template></div>").words.split() == ["One", "two"]


def test_the_words_are_the_main_text_without_code_and_layout() -> None:
    reading = html(
        "<nav>menu</nav><main><h1>One</h1><script>nonce(1)</script><style>p{}</style><p>two  three</p></main>"
    )
    assert "".join(reading.words.split()) == "Onetwothree"
    assert reading.text.split() == ["One", "two", "three"]


def test_the_text_is_laid_out_only_for_who_wants_it() -> None:
    assert read(b"<main><p>one</main>", HTML, URL, How()).text == ""
    assert read(b"<main><p>one</main>", HTML, URL).text == "one"


# ---- the links of the main part


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<main><a href=b>B</a><a href='/a?x=1&amp;y'>A</a><a href=b>again</a></main>", "b\n/a?x=1&y\nb"),
        ("<a href=/out>out</a><main><p><a href=in>in</a></main>", "in"),
        ("<main><nav><a href=/n>n</a></nav>The main text that is left has a link to <a href=in>in</a></main>", "in"),
        ("<main><a href='#top'>up</a><a href=''>self</a><a name=x>here</a></main>", ""),
        ("<main><map><area href=a></map><svg><a xlink:href=b>x</a></svg></main>", "a\nb"),
        ("<main>no link</main>", ""),
        ("", ""),
    ],
)
def test_hrefs_are_those_of_the_main_part_as_they_are_written(markup: str, expected: str) -> None:
    assert html(markup).hrefs == expected
    assert read(markup.encode(), HTML, URL, How()).hrefs == expected


# ---- what links are called


def anchors(markup: str) -> dict[str, str]:
    found = read(markup.encode(), HTML, URL, How(anchors=True)).links
    return {link.request_url.removeprefix("http://site.test"): link.anchor for link in found}


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=/a> one\n <b>two</b> </a>", {"/a": "one two"}),
        ("<a href=/a></a><a href=/a>second</a><a href=/a>third</a>", {"/a": "second"}),
        ("<a href=/a#x>one</a><a href=/a>two</a>", {"/a": "one"}),
        ("<a href=/a><img alt=''><img alt=' a  cat '></a>", {"/a": "a cat"}),
        ("<a href=/a>text<img alt=cat></a>", {"/a": "text"}),
        ("<map><area href=/a alt=north></map>", {"/a": "north"}),
        ("<svg><a xlink:href=/a>in svg</a></svg>", {"/a": "in svg"}),
        ("<iframe src=/a></iframe><a href=/b></a>", {"/a": "", "/b": ""}),
        ("<nav><a href=/a>also in the frame</a></nav>", {"/a": "also in the frame"}),
        ("<base href=/d/><a href=a>x</a><a href='#f'>y</a>", {"/d/a": "x", "/d/": "y"}),
        ("<a href=/a>" + "long " * 100 + "</a>", {"/a": "long " * 39 + "long"}),
    ],
)
def test_anchors(markup: str, expected: dict[str, str]) -> None:
    assert anchors(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=/a>x</a><a href=/a>y</a>", {"/a": 1}),
        ("<a href=/a#x>x</a>", {"/a": 1}),
        ("<a href=/a#x>x</a><a href=/b></a><a href=/a#y>y</a><a href=/a#x>z</a>", {"/a": 2, "/b": 1}),
        ("<a href=/a>x</a><a href=/a#>x</a><a href=/a#y>y</a>", {"/a": 2}),
        ("<a href=/a#x></a><iframe src=/a#y></iframe><area href=/a#z>", {"/a": 2}),
        ("".join(f"<a href=/a#{number}>x</a>" for number in range(1000)), {"/a": 100}),
    ],
)
def test_to_how_many_places_of_a_page_links_lead(markup: str, expected: dict[str, int]) -> None:
    found = read(markup.encode(), HTML, URL, How(anchors=True)).links
    assert {link.request_url.removeprefix("http://site.test"): link.parts for link in found} == expected


def test_places_are_counted_though_there_is_no_room_for_anchors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_TEXT", 10)
    markup = b"<a href=/a>a long text</a><a href=/b#x>b</a><a href=/b#y>b</a>"
    found = read(markup, HTML, URL, How(anchors=True)).links
    assert [(link.anchor, link.parts) for link in found] == [("a long text", 1), ("", 2)]


def test_anchors_are_there_only_for_who_wants_them() -> None:
    body = b"<a href=/a#x>one</a><a href=/a#y>two</a><img src=/i>"
    assert {(link.anchor, link.parts) for link in read(body, HTML, URL, How(True)).links} == {("", 1)}
    wanted = read(body, HTML, URL, How(True, anchors=True))
    assert [(link.anchor, link.parts) for link in wanted.links] == [("one", 2), ("", 1)]
    without = tuple(link._replace(anchor="", parts=1) for link in wanted.links)
    assert wanted._replace(links=without) == read(body, HTML, URL, How(True))


def test_an_anchor_of_one_page_is_not_that_of_the_next() -> None:
    how = How(anchors=True)
    texts = [read(f"<a href=/a>{text}</a>".encode(), HTML, URL, how).links[0].anchor for text in ("one", "", "two")]
    assert texts == ["one", "", "two"]


def test_links_in_links_without_end_have_anchors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_TEXT", 100_000)
    markup = "<svg>" + "".join(f"<a href=/{number}>x" for number in range(5_000))
    assert len(anchors(markup)) == 5_000


# ---- what makes a page what it is


def test_substance_is_title_words_and_where_links_lead() -> None:
    markup = (
        "<title> A\n title </title><nav><a href=/n>menu</a></nav><main><h1>Cranes</h1><p>They lift."
        "<a href=b?utm_source=x>b</a><a href='#c'>c</a><a href=/a/>a</a><a href=mailto:x@y.test>m</a>"
        "<a href=b#d>b</a></main>"
    )
    found = substance(markup.encode(), HTML, URL)
    assert found.title == "A title"
    assert found.text == html(markup).words
    assert found.targets == ("http://site.test/docs/b", "http://site.test/a", "http://site.test/docs/b")


def test_substance_goes_by_base_and_by_what_urls_are_one() -> None:
    body = b"<base href=/b/><main><a href=x?sid=1>x</a></main>"
    assert substance(body, HTML, URL).targets == ("http://site.test/b/x?sid=1",)
    how = How(resolver=Resolver(Canonicalizer(frozenset({"sid"}))))
    assert substance(body, HTML, URL, how).targets == ("http://site.test/b/x",)


@pytest.mark.parametrize("content_type", ["text/css", "text/plain", "application/pdf", "image/png"])
def test_only_html_has_substance(content_type: str) -> None:
    assert substance(b"<title>x</title><a href=/a>", content_type, URL) == Substance("", "", ())


def test_substance_is_cut_like_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_TEXT", 50)
    monkeypatch.setattr(parse, "MAX_TITLE", 5)
    monkeypatch.setattr("inchworm.rules.page.links.MAX_LINKS", 2)
    markup = "<title>long title</title><main>" + "<a href=/a>word</a> " * 100
    found, reading = substance(markup.encode(), HTML, URL), html(markup)
    assert (found.title, found.text) == (reading.title, reading.words)
    assert len(found.targets) == 2


@settings(max_examples=50)
@given(st.binary() | PIECES.map(lambda text: text.encode("utf-8", "surrogatepass")), st.sampled_from([URL, ""]))
def test_substance_takes_anything(body: bytes, url: str) -> None:
    found, reading = substance(body, "text/html", url), read(body, "text/html", url, How(anchors=True))
    assert (found.title, found.text) == (reading.title, reading.words)
    assert set(found.targets) <= {link.url for link in reading.links}
