"""Pages made to be hard to read cost their own URL and nothing else."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page, wait_until

from inchworm import reader
from inchworm.testing import Page, Site

MB = 1_000_000
HOME = page("home", "/heavy", "/after")
TITLE = b"<title>heavy</title>"


def html(body: bytes) -> Page:
    return Page(body, headers={"Content-Type": "text/html"})


def told(heavy: dict[str, object]) -> dict[str, object]:
    """What is told of a page, but for what every page has."""
    meta = heavy["meta"]
    assert isinstance(meta, dict)
    return {name: value for name, value in meta.items() if name not in ("kind", "confidence")}


def read(home: Home, heavy: Page, **given: object) -> dict[str, object]:
    """The record of /heavy, and proof that the rest of the site did not suffer."""
    with Site({"/": HOME, "/heavy": heavy, "/after": page("after")}).serve() as served:
        home.crawl(served.url("/"), sitemap=False, robots=False, max_depth=1, **given)
    record = {visit["url"].removeprefix(served.url("")): visit for visit in home.record()}
    assert record["/after"]["outcome"] == "page"
    found: dict[str, object] = record["/heavy"]
    return found


def test_m2_a_million_links(home: Home) -> None:
    body = TITLE + b"".join(b"<a href=/%d>" % number for number in range(1_000_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    heavy = read(home, html(body))
    assert (heavy["outcome"], heavy["link_count"]) == ("page", 100_000)
    assert told(heavy) == {"links_capped": True}
    assert home.reasons() == {"max_depth": 100_000}
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 5 * 20 + 64 + 100


@pytest.mark.parametrize(
    ("body", "title", "flags"),
    [
        pytest.param(TITLE + b"<div>" * 100_000 + b"bottom", "heavy", {}, id="M3 100,000 levels"),
        pytest.param(TITLE + b"<div>" * 2_000_000, "heavy", {}, id="M3 10 MB of div"),
        pytest.param(TITLE + b"<p>" + b"word " * 2_400_000, "heavy", {"text_capped": True}, id="M5 text"),
        pytest.param(TITLE + b"<a title='" + b"x" * (10 * MB) + b"'>a</a>", "heavy", {}, id="M5 attribute"),
        pytest.param(b"<title>" + b"long " * 200_000, "long " * 200, {"title_capped": True}, id="M5 title"),
        pytest.param(TITLE + b"@" * 100_000, "heavy", {}, id="M7 at signs"),
        pytest.param(TITLE + b"<" * 2 * MB, "heavy", {}, id="M7 open brackets"),
        pytest.param(TITLE + b"<a href='http://" + b"\xc3\xa4" * 100_000 + b".test/'>", "heavy", {}, id="M7 label"),
        pytest.param(TITLE + b"<a><b><i><u>" * 50_000, "heavy", {}, id="M7 formatting"),
    ],
)
def test_what_is_hard_to_read_is_read(home: Home, body: bytes, title: str, flags: dict[str, bool]) -> None:
    heavy = read(home, html(body))
    assert heavy["outcome"] == "page"
    assert str(heavy["title"]).strip() == title.strip()
    assert told(heavy) == flags


@pytest.mark.parametrize(
    "body", [b"%PDF-1.7\n<a href='/no'>", b"PK\x03\x04<a href='/no'>", b"\0\0\0\x18ftypmp42<a href='/no'>"]
)
def test_m6_what_is_no_html_is_not_read_as_html(home: Home, body: bytes) -> None:
    heavy = read(home, html(body + bytes(range(256)) * 10))
    assert (heavy["outcome"], heavy["link_count"], heavy["title"]) == ("page", 0, None)


def test_a_page_that_takes_more_memory_than_it_may_is_set_aside(home: Home) -> None:
    heavy = read(home, html(b"<b>" * 20_000_000), max_body=100 * MB)
    assert heavy["failure"] == "reader_crashed"
    assert "memory" in str(heavy["message"])


def test_a_page_that_takes_too_long_is_set_aside_and_can_be_tried_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(reader, "SECONDS", 0.001)
        heavy = read(home, html(TITLE + b"<p>some text" * 200_000))
    assert heavy["failure"] == "reader_crashed"
    assert home.app.queue.retry(home.word, kind="reader_crashed") == 1


def children_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def children() -> set[str]:
    return set(children_of(os.getpid()).read_text().split())


def test_no_reader_is_left_behind(home: Home) -> None:
    before = children()
    read(home, html(TITLE + b"<p>some text" * 200_000))
    assert children() == before


def test_a_reader_whose_crawl_was_killed_ends_too(home: Home) -> None:
    body = TITLE + b"".join(b"<a href=/%d>link</a>" % number for number in range(700_000))
    with Site({"/": html(body)}).serve() as served:
        with home.running("crawl", served.url("/"), "--ignore-robots", "--no-sitemap") as process:
            wait_until(children_of(process.pid).read_text)
            (child,) = children_of(process.pid).read_text().split()
            process.send_signal(signal.SIGKILL)
            process.wait()
        wait_until(lambda: not Path(f"/proc/{child}").exists())
