"""Validators: what a server lets us ask it by, and how far that is to be believed.

An entity tag or a date of last change is sent back as it came, or not at all. Only one of them is sent: a server that
is given both may answer by the one that says less. A few pages are asked for without any, so that a server whose
validators lie is found out. What most pages of a host have in common says nothing about one of them, until it was seen
to move together with every page that changed.
"""

from __future__ import annotations

import re

from inchworm.model import Version
from inchworm.rules.web.url import hash64

ETAG = "etag"
LAST_MODIFIED = "last_modified"
SHARED = "shared"

SAMPLE = 128
"""One page in so many is asked for in full, though its validators are believed."""

USELESS = 3
FORGIVEN = 5
"""Entity tags that changed on so many pages without the pages, in two runs one after the other, are of no use; after so
many runs they are tried again."""

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,1000}"')
# One comma at most: two dates in one would be another date.
_DATE = re.compile(r"[\x20-\x2b\x2d-\x7e]{1,20},?[\x20-\x2b\x2d-\x7e]{0,60}")


def usable(version: Version) -> str:
    """Which validator of a version can be sent back: the better one, or none."""
    if _ETAG.fullmatch(version.etag):
        return ETAG
    return LAST_MODIFIED if _DATE.fullmatch(version.last_modified) else ""


def kind_of(etag: str) -> str:
    """By which validator an answer with this entity tag would be asked for again."""
    return ETAG if _ETAG.fullmatch(etag) else LAST_MODIFIED


def headers(version: Version) -> tuple[tuple[str, str], ...]:
    """The condition under which an answer is wanted."""
    which = usable(version)
    if which == ETAG:
        return (("If-None-Match", version.etag),)
    return (("If-Modified-Since", version.last_modified),) if which else ()


def is_sampled(url: str, run: int) -> bool:
    """Whether this run asks for a page in full to see whether its server tells the truth. Another lot in every run."""
    return hash64(f"{run} {url}") % SAMPLE == 0


def same(version: Version, etag: str, last_modified: str) -> str:
    """The validator by which an answer claims to be the version that we have, if it does."""
    which = usable(version)
    if which == ETAG:
        return ETAG if version.etag == etag else ""
    is_same = version.last_modified == last_modified and not _ETAG.fullmatch(etag)
    return LAST_MODIFIED if which and is_same else ""


def shared(pages: int, most_common: int) -> bool:
    """Whether a validator that so many of a host's pages have in common says nothing about one of them."""
    return most_common > max(2, pages // 2)


def has_proven_itself(moved: int, stayed: int) -> bool:
    """Whether one that most pages share can be believed all the same: on how many pages that changed, in a run that
    asked for all of them in full, it moved along, and on how many it did not."""
    return moved > 0 and not stayed
