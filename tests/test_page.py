"""Reading a document without a crawl."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inchworm
from inchworm import Link, apart, read
from inchworm.page import Page
from inchworm.rules.page.document import OpenDocument

ARTICLE = b"""<!doctype html><html lang=en><head><title>How worms walk</title>
<meta name=author content="Ada Worm"><meta name=description content="On walking.">
<meta property="article:published_time" content="2026-01-02"><meta property="og:title" content="Worms">
<script type="application/ld+json">{"@type": "Article", "dateModified": "2026-02-03"}</script>
<script type="application/ld+json">{"broken": NaN}</script></head>
<body><nav><a href="/home">Home</a></nav>
<main><h1>How worms walk</h1><p>They arch their <b>back</b> and stretch. <a href="more.html#top">More</a> about that
is written elsewhere, and in far more words than these.</p><img src=worm.png alt="a worm">
<div itemscope itemtype="https://schema.org/Animal"><span itemprop=name>Worm</span></div></main>
<footer>All rights reserved</footer></body></html>"""
URL = "https://example.org/animals/worms.html"


def test_a_document_is_read_without_a_crawl() -> None:
    page = read(ARTICLE, URL, "text/html; charset=utf-8")
    assert page.title == "How worms walk"
    assert page.text.startswith("How worms walk")
    assert "arch their back" in page.text
    assert "Home" not in page.text
    assert "rights reserved" not in page.text
    assert "**back**" in page.markdown
    assert "](https://example.org/animals/more.html#top)" in page.markdown
    assert page.html.startswith("<main>")
    assert 'href="https://example.org/animals/more.html#top"' in page.html
    assert 'src="https://example.org/animals/worm.png"' in page.html
    assert page.raw_html == ARTICLE.decode()
    assert (page.author, page.description) == ("Ada Worm", "On walking.")
    assert (page.published, page.modified) == ("2026-01-02", "2026-02-03")
    assert page.language == "en"
    assert page.links == [
        Link("https://example.org/home", "Home"),
        Link("https://example.org/animals/more.html", "More"),
    ]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(ARTICLE, "text/html"), (b"a title\n\nand a text", "text/plain"), (b"p { color: red }", "text/css")],
)
def test_of_a_page_that_a_crawl_noted_the_text_alone_is_read(body: bytes, content_type: str) -> None:
    noted = {"title": "As noted", "language": "de", "meta": {"author": "Noted"}}
    page = Page(URL, content_type, lambda: body, noted)
    assert page.text == read(body, URL, content_type).text
    assert (page.full_title, page.language, page.author) == ("As noted", "de", "Noted")


def test_what_the_reader_cannot_tell_is_none() -> None:
    page = read(b"<p>hello</p>")
    assert page.text == "hello"
    said = (page.author, page.published, page.modified, page.language, page.description)
    seen = (page.change, page.status, page.fetched_at)
    assert {*said, *seen} == {None}
    assert page.comments == ""
    assert (read(b"plain words").kind, read(b"plain words").confidence) == (None, None)


def test_its_kind_how_sure_its_text_is_and_what_readers_wrote() -> None:
    story = "<p>The lighthouse at Whitby was built of granite in 1842, and lit every night but one.</p>" * 9
    said = "<meta property=og:type content=article>"
    page = read(
        f"{said}<main><h1>Whitby</h1>{story}<div class=comments>I saw it.</div></main>".encode(), URL, "text/html"
    )
    assert (page.kind, page.comments) == ("article", "I saw it.")
    assert (page.confidence or 0) > 0.8
    assert [block.why for block in page.blocks if not block.kept] == ["readers wrote it: see the comments of the page"]


def test_data_for_machines_comes_as_it_stands() -> None:
    assert read(ARTICLE, URL, "text/html").data == {
        "json_ld": [{"@type": "Article", "dateModified": "2026-02-03"}],
        "microdata": [{"type": "https://schema.org/Animal", "properties": {"name": ["Worm"]}}],
        "open_graph": {"article:published_time": "2026-01-02", "og:title": "Worms"},
    }


@pytest.mark.parametrize(
    "block",
    [
        b"[" * 100_000,
        b"[" * 60 + b"]" * 60,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"nonsense",
        b"",
        b'"' + b"x" * 2_000_000 + b'"',
    ],
)
def test_data_that_nobody_could_use_is_left_out(block: bytes) -> None:
    assert read(b"<script type='application/ld+json'>" + block + b"</script>", URL, "text/html").data == {}


def test_items_that_hold_themselves_do_not_go_round_for_ever() -> None:
    loop = b"<div itemscope itemref=a><p id=a itemprop=y itemscope itemref=b><p id=b itemprop=x itemscope itemref=a>"
    deep = b"<div itemprop=x itemscope>" * 2_000
    assert len(str(read(loop, URL, "text/html").data)) < 1_000
    assert read(b"<div itemscope>" + deep, URL, "text/html").data == {}


def test_a_source_is_decoded_as_a_browser_would() -> None:
    text = "<html><p>Привет, мир"
    assert read(text.encode("koi8-r"), "", "text/html; charset=koi8-r").raw_html == text
    assert read(b"\xef\xbb\xbf" + text.encode(), "", "text/html").raw_html == text


def test_the_lines_of_two_versions_are_compared() -> None:
    page = inchworm.Page(URL, "text/html", lambda: b"<p>new", earlier=lambda: read(b"<p>old", URL, "text/html"))
    assert page.previous is not None
    assert page.diff()[-2:] == ["-old", "+new"]
    assert read(b"<p>old", URL, "text/html").previous is None


@given(
    st.binary(max_size=300), st.sampled_from(["", "text/html", "text/plain", "application/pdf", "nonsense", "a/b;c"])
)
def test_whatever_it_is_reading_it_raises_nothing(body: bytes, content_type: str) -> None:
    page = read(body, URL, content_type)
    for name in ("title", "text", "markdown", "html", "raw_html", "links", "data", "author", "meta"):
        getattr(page, name)


def test_reading_does_not_load_the_engine() -> None:
    code = "import sys, inchworm; inchworm.read(b'<p>x').text; print(list(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'inchworm.rules.page.parse'" in loaded
    assert "'inchworm.app'" not in loaded
    assert "'inchworm.store'" not in loaded


def test_a_large_document_is_read_apart_and_as_here() -> None:
    body = b"<title>Large</title><main><p>" + b"Many words. " * 100_000 + b"<a href=/next>Next</a></main>"
    large, small = read(body, URL, "text/html"), OpenDocument(body, "text/html", URL)
    assert (large.title, large.text) == ("Large", small.said.text)
    assert large.links == [Link("https://example.org/next", "Next")]
    assert (large.markdown, large.html, large.raw_html) == (small.markdown, small.html, small.source)
    assert (large.data, large.unreadable) == ({}, None)


def test_a_document_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 0.01)
    body = b"<p>word</p>" * 200_000
    page = read(body, URL, "text/html")
    assert page.text == ""
    assert "took longer" in (page.unreadable or "")
    monkeypatch.undo()
    # It is not tried again for each part of it.
    assert page.markdown == ""
    assert read(body, URL, "text/html").text.startswith("word")
