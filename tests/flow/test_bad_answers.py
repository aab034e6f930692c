"""Answers that cannot be used: each has a name, what came is in the archive, and nothing of it is taken for a page."""

import gzip
import io
from pathlib import Path

import pytest
from tests.flow.crawling import Home
from warcio.archiveiterator import ArchiveIterator

from inchworm.testing import Page, Site

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
TEXT = b"<title>bad</title><a href=/never>never</a>" + b"word " * 50


def raw(*fields: str, body: bytes = TEXT) -> Page:
    lines = "".join(f"{field}\r\n" for field in fields).encode()
    return Page(raw=HEAD + lines + b"\r\n" + body)


ANSWERS = {
    "plain labelled gzip (N13)": (raw("Content-Encoding: gzip", f"Content-Length: {len(TEXT)}"), "decode_error", None),
    "unknown coding (N13)": (raw("Content-Encoding: rot13", f"Content-Length: {len(TEXT)}"), "decode_error", None),
    "closed too early (N2)": (raw("Content-Length: 30000"), "truncated", "disconnect"),
    "cut gzip (N14)": (raw("Content-Encoding: gzip", body=gzip.compress(TEXT * 50)[:-20]), "truncated", None),
    "too large (N5)": (raw("Content-Length: 50000", body=b"x" * 50_000), "too_large", "length"),
    "a bomb (B1)": (raw("Content-Encoding: gzip", body=gzip.compress(bytes(10_000_000))), "too_large", None),
    "not modified, on a first visit": (Page(raw=b"HTTP/1.1 304 Not Modified\r\n\r\n"), "protocol_error", None),
    "a part nobody asked for (N21)": (
        Page(
            raw=b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/99\r\nContent-Length: 10\r\n\r\n0123456789"
        ),
        "truncated",
        "disconnect",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_it_is_named_and_archived(home: Home, name: str) -> None:
    answer, kind, cut = ANSWERS[name]
    good = "<title>home</title><a href=/bad>bad</a> <a href=/good>good</a>" + "some text " * 20
    with Site({"/": good, "/bad": answer, "/good": good.replace("home", "good")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_retries=0, max_body=40_000)
        assert (ended.pages, ended.failed, ended.known) == (2, 1, 3), "no link of a broken page is followed"
        (visit,) = home.show(served.url("/bad"))["visits"]
        assert (visit["outcome"], visit["failure"], visit["text_hash"]) == ("failed", kind, None)
        records = {
            record.rec_headers["WARC-Target-URI"]: record.rec_headers.get("WARC-Truncated")
            for record in ArchiveIterator(io.BytesIO(home.export("warc")))
            if record.rec_type == "response"
        }
        assert records[served.url("/bad")] == cut


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(raw(f"Content-Length: {len(TEXT) + 10}"), id="cut short"),
        pytest.param(raw("Content-Encoding: gzip", f"Content-Length: {len(TEXT)}"), id="wrongly labelled"),
    ],
)
def test_the_same_bytes_in_a_good_answer_are_a_page_that_can_be_read_again(
    fast: Home, tmp_path: Path, first: Page
) -> None:
    good = raw(f"Content-Length: {len(TEXT)}")
    links = "<title>home</title><a href=/bad>bad</a> <a href=/good>good</a>" + "some text " * 20
    answers = iter((first, good))
    with Site({"/": links, "/bad": lambda _: next(answers, good), "/good": good, "/never": ""}).serve() as served:
        fast.crawl(served.url("/"), sitemap=False, max_retries=1, workers=1)
        written = fast.app.export.to_folder(fast.word, "files", tmp_path / "files")
        assert written.skipped == 0
        assert "bad" in [found["title"] for found in fast.ask("search", fast.word, "word")["results"]]


def test_a_page_without_a_byte_is_not_lost(home: Home, tmp_path: Path) -> None:
    nothing = {"/a": Page(""), "/b": Page("", 206, {"Content-Range": "bytes 0-0/1"})}
    with Site(
        {"/": "<title>home</title><a href=/a>a</a><a href=/b>b</a>" + "some text " * 20, **nothing}
    ).serve() as served:
        home.crawl(served.url("/"), sitemap=False, max_retries=0, workers=1)
        written = home.app.export.to_folder(home.word, "files", tmp_path / "files")
        assert (written.files, written.skipped) == (2, 0)
