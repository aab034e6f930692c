"""What a document is, by what its server says and by how it begins.

A label is believed unless the body is plainly something else: servers that do not know a file call it by any name, and
a browser that went by the name alone would show noise. Where there is no label the body decides.
"""

from __future__ import annotations

import codecs
import re
from enum import Enum
from functools import lru_cache

from inchworm.rules.text import content


class Media(Enum):
    """The ways to read there are."""

    HTML = "html"
    CSS = "css"
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    ODF = "odf"
    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    XML = "xml"
    CSV = "csv"
    OTHER = "other"


OFFICE = frozenset({Media.DOCX, Media.PPTX, Media.XLSX, Media.ODF})
TEXTS = frozenset({Media.TEXT, Media.MARKDOWN, Media.JSON, Media.XML, Media.CSV})
APART = OFFICE | {Media.PDF}
"""What is packed, or read by a library in C that others have broken before: never read in a process that matters."""


def media_of(body: bytes, content_type: str) -> Media:
    """What to read a body as."""
    said = said_by(content_type)
    if said is Media.HTML and not _BINARY.match(body):
        return said
    if _PDF.match(body):
        return Media.PDF
    if body.startswith(_ZIP):
        return _in_zip(body) or (said if said in OFFICE else Media.OTHER)
    if said is None:
        return _without_label(body)
    if said is Media.HTML or (said in TEXTS and (_BINARY.match(body) or not _is_text(body, content_type))):
        return Media.OTHER
    return said


def is_risky(body: bytes, content_type: str) -> bool:
    """Whether a document is to be read in a process of its own: it is large, or of a kind that hides what is in it."""
    return content.is_large(body) or media_of(body, content_type) in APART


def may_have_text(content_type: str) -> bool:
    """Whether there may be text in what bears this label."""
    return said_by(content_type) not in (Media.CSS, Media.OTHER)


# ---- by the label

_TYPES = {
    "text/html": Media.HTML,
    "application/xhtml+xml": Media.HTML,
    "text/css": Media.CSS,
    "application/pdf": Media.PDF,
    "application/x-pdf": Media.PDF,
    "text/pdf": Media.PDF,
    "text/markdown": Media.MARKDOWN,
    "text/x-markdown": Media.MARKDOWN,
    "application/json": Media.JSON,
    "text/json": Media.JSON,
    "application/xml": Media.XML,
    "text/xml": Media.XML,
    "text/csv": Media.CSV,
    "application/csv": Media.CSV,
    "text/tab-separated-values": Media.CSV,
    # Programs for browsers, and a text that is mostly marks.
    "text/javascript": Media.OTHER,
    "text/ecmascript": Media.OTHER,
    "text/rtf": Media.OTHER,
    "image/svg+xml": Media.OTHER,
}
_UNKNOWN_TYPES = frozenset(
    {
        "",
        "*/*",
        "application/octet-stream",
        "application/unknown",
        "application/x-unknown-content-type",
        "binary/octet-stream",
        "unknown/unknown",
    }
)
_TEXT_NAMES = frozenset(("json-seq", "jsonl", "sql", "toml", "x-ndjson", "x-sh", "x-tex", "x-yaml", "yaml"))
_OFFICE_TYPES = (
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.", Media.DOCX),
    ("application/vnd.openxmlformats-officedocument.presentationml.", Media.PPTX),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.", Media.XLSX),
    ("application/vnd.ms-word.", Media.DOCX),
    ("application/vnd.ms-powerpoint.", Media.PPTX),
    ("application/vnd.ms-excel.", Media.XLSX),
    ("application/vnd.oasis.opendocument.", Media.ODF),
)


@lru_cache(maxsize=1024)
def said_by(content_type: str) -> Media | None:
    """What a label says; None: nothing."""
    whole = content_type.partition(";")[0].strip().lower()
    if whole in _UNKNOWN_TYPES:
        return None
    if whole in _TYPES:
        return _TYPES[whole]
    for beginning, media in _OFFICE_TYPES:
        if whole.startswith(beginning):
            return media
    if whole.endswith("+json"):
        return Media.JSON
    if whole.endswith("+xml"):
        return Media.XML
    family, _, name = whole.partition("/")
    return Media.TEXT if family == "text" or (family == "application" and name in _TEXT_NAMES) else Media.OTHER


# ---- by the body

_ZIP = b"PK\x03\x04"
_PDF = re.compile(rb"(?:\xef\xbb\xbf)?[\0\t\n\f\r ]{0,64}%PDF-")
# What a browser takes for HTML without being told (MIME Sniffing, 7.1), and what nobody should.
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a"
    rb"|style|title|b|body|br|p)[ >\t\n\f\r])",
    re.IGNORECASE,
)
_LOOKS_LIKE_XML = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<\?xml[ \t\n\r]")
_BINARY = re.compile(
    rb"%PDF-|PK\x03\x04|PK\x05\x06|\x1f\x8b|\x89PNG|\xff\xd8\xff|GIF8[79]a|....ftyp"
    rb"|RIFF....(?:WEBP|AVI |WAVE)|\x1aE\xdf\xa3|OggS\0|ID3[\x02-\x04]|Rar!\x1a|7z\xbc\xaf|BZh[1-9]1AY"
    rb"|\xfd7zXZ|\x28\xb5\x2f\xfd|wOF[F2]|\x7fELF|\0\0\x01\0",
    re.DOTALL,
)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")
_WIDE = re.compile(r";\s*charset\s*=\s*[\"']?utf-?16", re.IGNORECASE)
# Bytes that no text has, in as much of a body as browsers look at (MIME Sniffing, 7.2).
_NO_TEXT = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_LOOK_BYTES = 1445
_LIST_BYTES = 65_536
_PARTS = ((b"word/document", Media.DOCX), (b"ppt/presentation", Media.PPTX), (b"xl/workbook", Media.XLSX))


def _without_label(body: bytes) -> Media:
    if _LOOKS_LIKE_HTML.match(body):
        return Media.HTML
    if not body or _BINARY.match(body) or not _is_text(body, ""):
        return Media.OTHER
    return Media.XML if _LOOKS_LIKE_XML.match(body) else Media.TEXT


def _is_text(body: bytes, content_type: str) -> bool:
    wide = body.startswith(_MARKS) or _WIDE.search(content_type)
    return bool(wide) or _NO_TEXT.search(body, 0, _LOOK_BYTES) is None


def _in_zip(body: bytes) -> Media | None:
    """What a ZIP file holds, by the names of its members, which stand before each and once more at the end."""
    head, tail = body[:_LIST_BYTES], body[-_LIST_BYTES:]
    if head[30:38] == b"mimetype":
        return Media.ODF if b"application/vnd.oasis.opendocument." in head[:256] else Media.OTHER
    if b"[Content_Types].xml" in head or b"[Content_Types].xml" in tail:
        return next((media for name, media in _PARTS if name in head or name in tail), None)
    return None
