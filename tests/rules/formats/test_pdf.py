"""PDF documents, read by pdfium: here in the process of the tests, because they are our own."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents import LOREM, assembled, pdf

from inchworm.rules.formats import pdf as module
from inchworm.rules.formats.pdf import contents, is_readable
from inchworm.rules.page.document import Link, OpenDocument, read
from inchworm.rules.page.parse import How

URL = "http://h.test/paper.pdf"


def test_a_document_says_what_it_is_about() -> None:
    document = OpenDocument(pdf("first line\nsecond line", "another page", title="On  worms"), "", URL)
    assert is_readable()
    assert document.said.title == "On worms"
    assert document.said.text == document.markdown == "first line\nsecond line\n\nanother page"
    assert document.said.meta == {
        "author": "Ada Worm",
        "published": "2026-01-02T03:04:05+01:00",
        "modified": "2026-01-02T03:04:05+01:00",
        "pages": 2,
    }
    assert (document.html, document.source, document.data) == ("", "", {})


def test_links_are_whole_addresses_on_the_web() -> None:
    links = ("https://h.test/a", "HTTP://h.test/b", "https://h.test/a", "c.html", "mailto:a@h.test", "javascript:x()")
    document = OpenDocument(pdf("x", links=links), "", URL)
    assert document.links == [Link("https://h.test/a", ""), Link("http://h.test/b", "")]
    assert [link.url for link in read(pdf("x", links=links), "", URL, How()).links] == [
        "https://h.test/a",
        "http://h.test/b",
    ]


def test_a_scan_says_that_it_has_no_text() -> None:
    assert contents(pdf("", "")).meta["no_text"] is True
    assert "no_text" not in contents(pdf("x")).meta


def test_a_stamp_on_each_page_does_not_tell_a_document_from_others() -> None:
    assert read(pdf(*["Page of the archive"] * 9), "", URL, How()).words == ""
    assert read(pdf(LOREM, LOREM), "", URL, How()).words


def test_one_that_is_locked_says_so() -> None:
    locked = "/Encrypt<</Filter/Standard/V 1/R 2/O<" + "00" * 32 + ">/U<" + "00" * 32 + ">/P -4>>/ID[<00><00>]"
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>"]
    assert contents(assembled(objects, trailer=locked)).meta == {"encrypted": True}


@pytest.mark.parametrize("body", [b"", b"%PDF-", b"%PDF-1.7\n<a href='/no'>", pdf("x")[:60], b"<html>"])
def test_one_that_is_broken_says_so(body: bytes) -> None:
    assert contents(body).meta == {"broken": True}
    assert contents(body).text == ""


def test_a_broken_page_costs_that_page() -> None:
    body = pdf("one", "two").replace(b"/Type/Page/Parent 2 0 R", b"/Type/Nope/Parent 2 0", 1)
    assert contents(body).text.endswith("two")


def test_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 2)
    held = contents(pdf("one", "two", "three"))
    assert (held.text, held.meta["pages"], held.meta["text_capped"]) == ("one\n\ntwo", 3, True)
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAX_TEXT", 2)
    assert contents(pdf("one", "two")).text == "one"


def test_without_the_library_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert contents(pdf("x")).meta == {"needs": "inchworm[pdf]"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D:20260102030405Z", "2026-01-02T03:04:05Z"),
        ("D:20260102030405-08'30'", "2026-01-02T03:04:05-08:30"),
        ("20260102030405+01", "2026-01-02T03:04:05+01:00"),
        ("D:202601020304", "2026-01-02T03:04:00"),
        ("D:20260102", "2026-01-02"),
        ("D:202601", "2026-01"),
        ("D:2026", "2026"),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates(text: str, expected: str) -> None:
    assert module._date(text) == expected


@given(st.text(st.characters(codec="latin-1", exclude_categories=["C"]), max_size=60))
def test_any_title_can_be_stored(title: str) -> None:
    OpenDocument(pdf("x", title=title), "", URL).said.title.encode()
