"""When a seed has had enough, and when it may send for one more page."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from inchworm.model import Change, FinishedVisit, Outcome, Reason, Seed

REQUEST_FACTOR = 10
"""A seed may use this many requests per page of its limit; after that it is mostly duplicates."""


def exhausted(seed: Seed, page_limit: int) -> Reason | None:
    """Why a seed may not have another page, whatever happens."""
    if page_limit and seed.kept >= page_limit:
        return Reason.PAGE_LIMIT
    if page_limit and seed.requests >= REQUEST_FACTOR * page_limit:
        return Reason.MOSTLY_DUPLICATES
    return None


def is_worth_it(visit: FinishedVisit, outcome: Outcome, has_query: bool) -> bool | None:
    """Whether a visit brought something: a page that matches the query, or one that is new. None: it is no page."""
    if outcome not in (Outcome.PAGE, Outcome.DUPLICATE):
        return None
    if has_query:
        return visit.matches
    return outcome is Outcome.PAGE and visit.change in (None, Change.NEW, Change.MODIFIED)


def is_too_little(worth: Sequence[bool], window: int, below: float) -> bool:
    """Whether so few of the last pages brought something that it is time to stop."""
    return bool(below) and len(worth) == window and sum(worth) / window < below


def before_too_little(worth: Sequence[bool], window: int, below: float) -> int:
    """How many pages have to come, at the least, before it can be time to stop. As many may be asked for at once."""
    last, pages = deque(worth, window), 0
    while not is_too_little(last, window, below):
        last.append(False)
        pages += 1
    return pages


def may_reserve(seed: Seed, reserved: int, page_limit: int) -> bool:
    """Whether one more page could be kept even if every page under way is kept too."""
    if not page_limit:
        return True
    return seed.kept + reserved < page_limit and seed.requests + reserved < REQUEST_FACTOR * page_limit
