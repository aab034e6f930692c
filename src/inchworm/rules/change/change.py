"""What a run finds out about a page that earlier runs know: new, modified, unchanged, or nothing certain.

Modified means that the title, the main text or the targets of its links changed. Whatever else differs in the bytes is
noted and no more. Nothing is ever called deleted without evidence: a page that could not be reached is unknown.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from inchworm.model import Change, ChangeVerdict, Note, Substance, Version
from inchworm.rules.web.url import path_of

GONE = (404, 410)
PERMANENT = (301, 308)
MISSING_RUNS = 3
"""A page that was not found is asked for again in so many runs; should it come back, it is the same page."""

UNLINKED_RUNS = 3
"""A page that nobody links to is asked for in so many runs."""

_LOGIN = re.compile(r"(?:^|[/._-])(?:log[-_]?in|log[-_]?on|sign[-_]?in|sso|auth|oauth2?)(?:$|[/._-])", re.IGNORECASE)


class Print(NamedTuple):
    """What tells two answers for one URL apart without reading them again. Only equal readers can be compared."""

    payload: bytes | None
    text_hash: bytes
    link_hash: bytes
    reader: str


def print_of(version: Version) -> Print:
    return Print(version.payload, version.text_hash, version.link_hash, version.reader)


def by_print(old: Print, new: Print, by_bytes: bool) -> ChangeVerdict | None:
    """The verdict where hashes are enough for one; None where both pages have to be read."""
    if old.payload == new.payload:
        return ChangeVerdict(Change.UNCHANGED)
    if by_bytes:
        return ChangeVerdict(Change.MODIFIED)
    if old[1:] == new[1:] and old.text_hash:
        return ChangeVerdict(Change.UNCHANGED, (Note.BYTES,))
    return None


def by_print_alone(old: Print, new: Print) -> ChangeVerdict:
    """The verdict where the old page is lost or cannot be read: nothing certain, unless one reader read two texts."""
    if old.reader == new.reader and old.text_hash and old.text_hash != new.text_hash:
        return ChangeVerdict(Change.MODIFIED)
    return ChangeVerdict(Change.UNKNOWN, (Note.LOST,))


def by_substance(old: Substance, new: Substance, url: str = "") -> ChangeVerdict:
    """The verdict on two versions of the page at this URL that were read side by side."""
    from inchworm.rules.change import alike, stamps  # only where something differs

    if not (old.text or old.title or new.text or new.title):
        return ChangeVerdict(Change.MODIFIED)
    differences = stamps.differences(old, new)
    if differences == ():
        return ChangeVerdict(Change.UNCHANGED, (Note.BYTES,))
    number = alike.number(alike.passages(old, new), url)
    return ChangeVerdict(Change.MODIFIED, (), differences, stamps.describe(old, new), number)


def of_redirect(is_permanent: bool, text: bytes, target: bytes, is_login: bool) -> ChangeVerdict:
    """What a known page that redirects now came to: moved, gone, or who knows. `target` is empty where none was read"""
    if is_login:
        return ChangeVerdict(Change.UNKNOWN, (Note.LOGIN,))
    if text and text == target:
        return ChangeVerdict(Change.UNCHANGED, (Note.MOVED,))
    if is_permanent and target:
        return ChangeVerdict(Change.DELETED, (Note.MOVED,))
    return ChangeVerdict(Change.UNKNOWN, (Note.MOVED,))


def is_login(url: str) -> bool:
    """Whether an address is one where people are asked who they are."""
    return _LOGIN.search(path_of(url)) is not None


def is_as_before(change: Change, notes: str) -> bool:
    """Whether a page is what it was when it was last there. One that came back is new, whatever it was before; that it
    is the same again is told by what is noted of pages that were asked for in full and proved to be unchanged."""
    if change is not Change.NEW:
        return change is Change.UNCHANGED
    words = notes.split()
    return Note.BACK in words and (Note.NO_VALIDATORS in words or Note.ASKED_IN_FULL in words)


def alarm(deleted: int, known: int) -> str:
    """What to say loudly when most of a crawl would be gone."""
    if deleted * 2 <= known:
        return ""
    return f"{deleted:,} of {known:,} known pages are gone. Is that so, or does the site answer us differently now?"
