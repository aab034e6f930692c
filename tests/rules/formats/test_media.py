"""What a document is: the label is believed, unless the body is plainly something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents import DOCX, ODS, ODT, PPTX, XLSX, docx, odf, packed, paragraph, pdf, pptx, shape, xlsx

from inchworm.rules.formats.media import Media, is_risky, may_have_text, media_of

A_PDF = pdf("text")
A_DOCX = docx(paragraph("text"))
A_PPTX = pptx(shape("text"))
A_XLSX = xlsx({"one": ""})
AN_ODT = odf("")
A_ZIP = packed({"readme.txt": "text"})
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/html", Media.HTML),
        ("application/xhtml+xml; charset=utf-8", Media.HTML),
        ("TEXT/Plain", Media.TEXT),
        ("text/x-python", Media.TEXT),
        ("application/x-yaml", Media.TEXT),
        ("text/markdown; variant=GFM", Media.MARKDOWN),
        ("application/json", Media.JSON),
        ("application/ld+json", Media.JSON),
        ("application/xml", Media.XML),
        ("application/rss+xml", Media.XML),
        ("text/csv", Media.CSV),
        ("text/css", Media.CSS),
        ("text/javascript", Media.OTHER),
        ("application/javascript", Media.OTHER),
        ("image/svg+xml", Media.OTHER),
        ("text/rtf", Media.OTHER),
        ("video/mp4", Media.OTHER),
        ("nonsense", Media.OTHER),
        ("application/pdf", Media.PDF),
        (DOCX, Media.DOCX),
        (PPTX, Media.PPTX),
        (XLSX, Media.XLSX),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", Media.XLSX),
        (ODT, Media.ODF),
        (ODS, Media.ODF),
        ("", Media.TEXT),
        ("application/octet-stream", Media.TEXT),
    ],
)
def test_labels_are_believed(content_type: str, expected: Media) -> None:
    assert media_of(b"some words", content_type) is expected


UNLABELLED = {
    "pdf": (A_PDF, Media.PDF),
    "pdf after a blank": (b"\r\n" + A_PDF, Media.PDF),
    "docx": (A_DOCX, Media.DOCX),
    "pptx": (A_PPTX, Media.PPTX),
    "xlsx": (A_XLSX, Media.XLSX),
    "odt": (AN_ODT, Media.ODF),
    "zip": (A_ZIP, Media.OTHER),
    "epub": (packed({"mimetype": "application/epub+zip", "content.xml": "x"}), Media.OTHER),
    "png": (PNG, Media.OTHER),
    "html": (b"<!doctype html><p>x", Media.HTML),
    "xml": (b'<?xml version="1.0"?><a/>', Media.XML),
    "xml in utf-16": ('<?xml version="1.0"?><a/>'.encode("utf-16-le"), Media.TEXT),
    "text": (b"plain words\n", Media.TEXT),
    "text with a mark": ("words".encode("utf-16"), Media.TEXT),
    "noise": (bytes(range(256)), Media.OTHER),
    "nothing": (b"", Media.OTHER),
    "a word about PDF": (b"A file that begins with %PDF- is one.", Media.TEXT),
}


@pytest.mark.parametrize(("body", "expected"), UNLABELLED.values(), ids=UNLABELLED)
@pytest.mark.parametrize("content_type", ["", "application/octet-stream", "unknown/unknown"])
def test_without_a_label_the_body_decides(content_type: str, body: bytes, expected: Media) -> None:
    assert media_of(body, content_type) is expected


WRONG = {
    "a PDF called HTML (M6)": (A_PDF, "text/html", Media.PDF),
    "a PDF called text": (A_PDF, "text/plain", Media.PDF),
    "a PDF called a document": (A_PDF, DOCX, Media.PDF),
    "a document called PDF": (A_DOCX, "application/pdf", Media.DOCX),
    "a document called HTML": (A_DOCX, "text/html", Media.DOCX),
    "a document called ZIP": (A_DOCX, "application/zip", Media.DOCX),
    "a sheet called by its old name": (A_XLSX, "application/vnd.ms-excel", Media.XLSX),
    "a sheet called a text": (A_XLSX, DOCX, Media.XLSX),
    "ZIP called a document": (A_ZIP, DOCX, Media.DOCX),
    "ZIP called HTML": (A_ZIP, "text/html", Media.OTHER),
    "noise called text": (bytes(range(256)), "text/plain; charset=utf-8", Media.OTHER),
    "a picture called JSON": (PNG, "application/json", Media.OTHER),
    "wide text without a mark": ("wide".encode("utf-16-le"), "text/plain; charset=UTF-16LE", Media.TEXT),
    "wide XML without a mark": ("<a/>".encode("utf-16-be"), "text/xml", Media.XML),
    "HTML called text": (b"<!doctype html>", "text/plain", Media.TEXT),
    "HTML called PDF": (b"<!doctype html>", "application/pdf", Media.PDF),
    "JSON called HTML": (b"{}", "text/html", Media.HTML),
}


@pytest.mark.parametrize(("body", "content_type", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_labels(body: bytes, content_type: str, expected: Media) -> None:
    assert media_of(body, content_type) is expected


def test_what_hides_its_content_is_risky_and_so_is_what_is_large() -> None:
    assert all(is_risky(body, "") for body in (A_PDF, A_DOCX, A_PPTX, A_XLSX, AN_ODT))
    assert is_risky(b"word " * 300_000, "text/plain")
    assert is_risky(b"", "application/pdf")
    assert not any(is_risky(body, "") for body in (A_ZIP, PNG, b"", b"words", b"<html>"))
    assert not is_risky(b"{}", "application/json")


def test_what_may_have_text() -> None:
    assert all(map(may_have_text, ("", "text/html", "application/pdf", DOCX, "text/plain", "application/json")))
    assert not any(map(may_have_text, ("text/css", "image/png", "video/mp4", "application/zip")))


@given(st.binary(max_size=200), st.text(max_size=30))
def test_anything_is_something(body: bytes, content_type: str) -> None:
    assert media_of(body, content_type) in Media
    assert is_risky(body, content_type) in (True, False)
