"""PDF documents: their text page by page, their links, and what they say of themselves.

The library that reads them, pypdfium2, need not be there; then nothing is read, and the document says what it needs. It
is written in C++ and reads what strangers wrote, so it is only ever loaded in a process that may die (`media.APART`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from inchworm.rules.formats.contents import MAX_LINKS, MAX_TEXT, Contents, TextRun, about
from inchworm.rules.text.content import MIN_TEXT

NEEDED = "inchworm[pdf]"
MAX_PAGES = 5_000

_MAX_ADDRESS_BYTES = 8_192
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?", re.ASCII)
# What no text has. pdfium puts \2 where it joined a word that a hyphen had cut at the end of a line.
_NO_TEXT = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127, 0xFFFE, 0xFFFF])
_FIELDS = {"description": "Subject", "author": "Author", "keywords": "Keywords"}
_DATES = {"published": "CreationDate", "modified": "ModDate"}


def is_readable() -> bool:
    """Whether there is something to read PDF documents with."""
    return find_spec("pypdfium2") is not None


def contents(body: bytes) -> Contents:
    """What a PDF holds. One that is locked or broken holds what could be had of it, and says so."""
    try:
        import pypdfium2
    except (ImportError, OSError):
        return Contents(meta={"needs": NEEDED})
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        is_locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        return Contents(meta={"encrypted" if is_locked else "broken": True})
    try:
        return _read(document)
    finally:
        document.close()


def _read(document: Any) -> Contents:
    count = len(document)
    texts: list[str] = []
    links: dict[str, TextRun] = {}
    size = 0
    for page in _pages(document, count):
        text = _tidy(_text(page))
        texts.append(text)
        size += len(text)
        for href in _hrefs(document, page):
            links.setdefault(href, TextRun("", href))
        if size > MAX_TEXT or len(links) > MAX_LINKS:
            break
    text = "\n\n".join(filter(None, texts))
    fields = {name: _said(document, key) for name, key in _FIELDS.items()}
    fields |= {name: _date(_said(document, key)) for name, key in _DATES.items()}
    meta = {**about(fields), "pages": count}
    if count > len(texts):
        meta["text_capped"] = True
    if not text:
        meta["no_text"] = True
    # A stamp on each page of a scan is the same on many scans.
    is_thin = len(text) < MIN_TEXT * count
    return Contents(_said(document, "Title"), text, text, "", meta, tuple(links.values()), is_thin=is_thin)


def _said(document: Any, key: str) -> str:
    with suppress(UnicodeDecodeError):
        text: str = document.get_metadata_value(key)
        return text.translate(_NO_TEXT)
    return ""


def _pages(document: Any, count: int) -> Iterator[Any]:
    """The pages, one at a time; None for one that is broken."""
    from pypdfium2 import PdfiumError

    for number in range(min(count, MAX_PAGES)):
        try:
            page = document[number]
        except PdfiumError:
            yield None
            continue
        try:
            yield page
        finally:
            page.close()


def _text(page: Any) -> str:
    from pypdfium2 import PdfiumError

    if page is None:
        return ""
    try:
        read = page.get_textpage()
    except PdfiumError:
        return ""
    try:
        text: str = read.get_text_bounded()
        return text
    finally:
        read.close()


def _tidy(text: str) -> str:
    lines = text.replace("\r", "\n").translate(_NO_TEXT).split("\n")
    return "\n".join(filter(None, (line.rstrip() for line in lines))).strip()


def _hrefs(document: Any, page: Any) -> Iterator[str]:
    """The addresses that a page leads to."""
    if page is None:
        return
    import ctypes

    import pypdfium2.raw as pdfium

    at, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    for _ in range(MAX_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, at, link):
            return
        action = pdfium.FPDFLink_GetAction(link)
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        size = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
        if 1 < size <= _MAX_ADDRESS_BYTES:
            buffer = ctypes.create_string_buffer(size)
            pdfium.FPDFAction_GetURIPath(document, action, buffer, size)
            yield buffer.value.decode("utf-8", "replace")


def _date(text: str) -> str:
    """A date as PDFs write it, as ISO 8601; empty when it is none."""
    written = _DATE.match(text.strip())
    if written is None:
        return ""
    year, month, day, hour, minute, second, is_utc, sign, hours, minutes = written.groups()
    date = "-".join(filter(None, (year, month, day)))
    if hour is None or day is None:
        return date
    zone = "Z" if is_utc else f"{sign}{hours}:{minutes or '00'}" if sign else ""
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}{zone}"
