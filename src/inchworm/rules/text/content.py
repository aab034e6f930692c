"""When two pages are the same content, and which reader said so."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from xxhash import xxh3_64_digest

if TYPE_CHECKING:  # whoever only reads a page does not wait for it
    from inchworm.settings import Settings

READER = "5"
"""Raised whenever the links or the text that we read out of the same bytes change."""

MIN_TEXT = 64
LARGE_BYTES = 1_000_000
LARGE_TAGS = 50_000


def text_hash(title: str, words: str, body: bytes) -> bytes:
    """SHA-256 of title and main text, with the white space that shows; of the body where there is next to no text."""
    data = words.encode("utf-8", "surrogatepass")
    if len(data) - data.count(b" ") - data.count(b"\n") - data.count(b"\t") < MIN_TEXT:
        return hashlib.sha256(body).digest()
    return hashlib.sha256(title.encode("utf-8", "surrogatepass") + b"\n" + data).digest()


def as_written(text: str) -> str:
    """A text whose lines are shown as they were written, without white space that nobody can see."""
    return "\n".join(map(str.rstrip, text.rstrip().split("\n")))


def is_large(body: bytes) -> bool:
    """Whether reading this may take long enough to matter: a megabyte, or tags without end."""
    return len(body) > LARGE_BYTES or (len(body) > 2 * LARGE_TAGS and body.count(b"<") > LARGE_TAGS)


def link_hash(hrefs: str) -> bytes:
    """Tells whether the links of a page are written as they were."""
    return xxh3_64_digest(hrefs.encode("utf-8", "surrogatepass"))


def text_reader(values: Settings) -> str:
    """Names what reads texts, and by which rules."""
    import turbohtml  # takes long to load, and most who know of pages never read one

    return f"{READER} turbohtml={turbohtml.__version__}{_told(values, 'text')}"


def reads_texts_alike(one: str, other: str) -> bool:
    """Whether two readers, by their names or fingerprints, find the same text in the same page."""
    return _BEHIND_TEXT.split(one, 1)[0] == _BEHIND_TEXT.split(other, 1)[0]


def fingerprint(values: Settings) -> str:
    """Names what reads pages and how. Readings of different fingerprints cannot be compared."""
    return f"{text_reader(values)} links{_told(values, 'links')}"


def _told(values: Settings, what: str) -> str:
    from inchworm import settings

    told = settings.of_reading(values, what).items()
    return "".join(f" {name}={xxh3_64_digest(repr(value).encode()).hex()}" for name, value in told)


_BEHIND_TEXT = re.compile(r" (?:links|again)\b")
