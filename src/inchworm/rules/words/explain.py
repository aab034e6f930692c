"""Why a URL was or was not crawled, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inchworm.model import Outcome, State
from inchworm.rules.web.url import shorten
from inchworm.rules.words import failures

NOT_MODIFIED = 304
LONGEST = 2000
"""An address longer than this is shown with its middle left out."""

REASONS: Mapping[str, str] = {
    "out_of_scope": "it lies outside the crawl's scope",
    "not_included": "no pattern of `include` matches it",
    "excluded": "a pattern of `exclude` matches it",
    "max_depth": "it lies deeper than `max_depth`",
    "hops": "it lies further outside the scope than `external_hops`",
    "nofollow": "the pages that link to it say 'nofollow'",
    "robots": "the site's robots.txt forbids it",
    "page_limit": "its seed has all the pages that `page_limit` allows",
    "mostly_duplicates": "its seed used ten requests per page of its limit and found mostly duplicates",
    "url_too_long": "the URL is too long",
    "trap": "it looks like a trap: its path repeats itself, or it only counts on, `trap_depth` links from a seed",
    "unlinked": "no page has led to it for three runs",
    "cleared": "somebody took it out of the queue",
}

DOWNLOADED: Mapping[str, str] = {
    "no_validators": "the server sends neither ETag nor Last-Modified",
    "validators_changed": "their ETag or Last-Modified changed, though they did not",
    "distrusted": "the server's ETags or dates do not change with its pages, so all are asked for in full",
    "shared_validators": "most pages have one and the same date, so all are asked for in full until it moves with one",
    "sampled": "to see whether the server tells the truth",
    "reader_changed": "they are read in another way now",
    "asked_in_full": "they were asked for in full",
}
"""Why pages that turned out to be unchanged were downloaded."""
"""Why a URL is not crawled, in words."""


def prospect(reason: str | None, is_robots_known: bool = True) -> str:
    """What would become of a URL that nobody has found yet, in a sentence."""
    if reason is not None:
        return f"If one did, it would be refused ({reason}): {REASONS[reason]}."
    unless = "" if is_robots_known else ", unless the robots.txt of its host forbids it, which has not been read"
    return f"If one did, it would be crawled{unless}."


class FrontierState(NamedTuple):
    """How a row of the frontier stands."""

    state: str
    reason: str | None
    kind: str
    attempts: int


class LastVisit(NamedTuple):
    """What the last visit to its URL came to. `original`: the first page that has the same text."""

    outcome: str
    seq: int
    status: int | None = None
    failure: str | None = None
    message: str | None = None
    redirect: str | None = None
    original: str | None = None


def explanation(row: FrontierState, visit: LastVisit | None) -> str:
    """How a row of the frontier came to stand as it does, in a sentence."""
    if row.state == State.REFUSED:
        return f"refused ({row.reason}): {REASONS.get(row.reason or '', row.reason)}."
    if row.state == State.PENDING:
        tries = f"{row.attempts} failed tries, it waits to be tried again." if row.attempts else ""
        return f"pending: {tries or 'it waits for its turn.'}"
    return f"done{_outcome(visit, row.kind)}." if visit else "done."


def _outcome(visit: LastVisit, kind: str) -> str:
    if visit.outcome == Outcome.FAILED:
        row = failures.KINDS.get(visit.failure or "")
        return f", and failed ({visit.failure}): {visit.message}" + (f". {row.advice[:-1]}" if row else "")
    said: dict[str, str] = {
        Outcome.REDIRECT: f"it redirects to {shorten(visit.redirect or '', LONGEST)}",
        Outcome.DUPLICATE: f"it was fetched, and its text is that of {visit.original or 'another'}",
        Outcome.CONTROL: f"it was read as a {kind} file{_noted(visit)}",
        Outcome.DELETED: f"it is gone, {visit.message}",
    }
    if visit.outcome not in said and visit.status == NOT_MODIFIED:
        return ": the server says that it is what it was"
    fetched = f"it was fetched as {visit.outcome} number {visit.seq} of the record"
    return f": {said.get(visit.outcome, fetched)}"


def _noted(visit: LastVisit) -> str:
    return f". {visit.failure or 'note'}: {visit.message}" if visit.message else ""
