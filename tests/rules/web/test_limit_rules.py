"""When a seed has had enough, and when it may send for one more page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.model import Change, FinishedVisit, FrontierEntry, Kind, Outcome, Reason, Seed, Source
from inchworm.rules.web.limits import (
    REQUEST_FACTOR,
    before_too_little,
    exhausted,
    is_too_little,
    is_worth_it,
    may_reserve,
)


def seed(kept: int = 0, requests: int = 0) -> Seed:
    return Seed(0, "http://a.test/", "a.test", "/", kept, requests)


@pytest.mark.parametrize(
    ("kept", "requests", "limit", "reason"),
    [
        (0, 0, 0, None),
        (10**6, 10**9, 0, None),
        (0, 0, 1, None),
        (2, 2, 3, None),
        (3, 3, 3, Reason.PAGE_LIMIT),
        (4, 9, 3, Reason.PAGE_LIMIT),
        (2, 29, 3, None),
        (2, 30, 3, Reason.MOSTLY_DUPLICATES),
        (0, 10, 1, Reason.MOSTLY_DUPLICATES),
        (3, 30, 3, Reason.PAGE_LIMIT),
    ],
)
def test_why_a_seed_may_have_no_other_page(kept, requests, limit, reason):
    assert exhausted(seed(kept, requests), limit) is reason


@pytest.mark.parametrize(
    ("kept", "requests", "reserved", "limit", "may"),
    [
        (0, 0, 10**6, 0, True),
        (0, 0, 0, 1, True),
        (0, 0, 1, 1, False),
        (2, 5, 0, 3, True),
        (2, 5, 1, 3, False),
        (3, 5, 0, 3, False),
        (0, 29, 0, 3, True),
        (0, 29, 1, 3, False),
        (0, 30, 0, 3, False),
    ],
)
def test_a_page_is_sent_for_only_if_it_could_be_kept(kept, requests, reserved, limit, may):
    assert may_reserve(seed(kept, requests), reserved, limit) is may


@effort(max_examples=200, database=None)
@given(limit=st.integers(1, 20), outcomes=st.lists(st.booleans(), max_size=300), workers=st.integers(1, 50))
def test_limits_are_exact_at_any_number_of_workers(limit, outcomes, workers):
    """Whatever is under way when, the limit is reached if it can be and never passed, by pages or by requests."""
    now, reserved, queue = seed(), 0, list(outcomes)
    while True:
        while queue[reserved:] and reserved < workers and may_reserve(now, reserved, limit):
            reserved += 1
        if not reserved:
            break
        reserved -= 1
        now = seed(now.kept + queue.pop(0), now.requests + 1)
    assert now.kept == min(limit, sum(outcomes[: now.requests]))
    assert now.requests <= REQUEST_FACTOR * limit
    assert not queue or exhausted(now, limit)


# Whether it is worth it


def visit(change: Change | None = None, matches: bool = False) -> FinishedVisit:
    url = "http://a.test/1"
    entry = FrontierEntry(1, url, url, Kind.PAGE, Source.SPIDER, 0, 1, 0, 0, (1, 0))
    return FinishedVisit(entry, 0, Outcome.PAGE, change=change, matches=matches)


@pytest.mark.parametrize(
    ("outcome", "change", "worth"),
    [
        (Outcome.PAGE, None, True),
        (Outcome.PAGE, Change.NEW, True),
        (Outcome.PAGE, Change.MODIFIED, True),
        (Outcome.PAGE, Change.UNCHANGED, False),
        (Outcome.DUPLICATE, None, False),
        (Outcome.DUPLICATE, Change.NEW, False),
        (Outcome.REDIRECT, None, None),
        (Outcome.FAILED, None, None),
        (Outcome.RETRY, None, None),
        (Outcome.CONTROL, None, None),
        (Outcome.RESOURCE, None, None),
    ],
)
def test_a_page_is_worth_it_that_is_there_once_and_is_news(outcome, change, worth):
    assert is_worth_it(visit(change), outcome, has_query=False) is worth


@pytest.mark.parametrize(
    ("outcome", "change", "matches", "worth"),
    [
        (Outcome.PAGE, Change.UNCHANGED, True, True),
        (Outcome.DUPLICATE, None, True, True),
        (Outcome.PAGE, Change.NEW, False, False),
        (Outcome.REDIRECT, None, True, None),
    ],
)
def test_with_a_query_a_page_is_worth_it_that_matches(outcome, change, matches, worth):
    assert is_worth_it(visit(change, matches), outcome, has_query=True) is worth


YES, NO = True, False


@pytest.mark.parametrize(
    ("worth", "window", "below", "is_too_little_"),
    [
        ([NO, NO, NO], 4, 0.5, False),
        ([NO, NO, NO, NO], 4, 0.5, True),
        ([YES, NO, NO, NO], 4, 0.5, True),
        ([YES, NO, YES, NO], 4, 0.5, False),
        ([NO, NO, NO, NO], 4, 0.0, False),
    ],
)
def test_it_is_too_little_when_a_whole_window_brought_less_than_wanted(worth, window, below, is_too_little_):
    assert is_too_little(worth, window, below) is is_too_little_


@pytest.mark.parametrize(
    ("worth", "window", "below", "pages"),
    [
        ([], 4, 0.5, 4),
        ([NO, NO, NO], 4, 0.5, 1),
        ([YES, YES, YES, YES], 4, 0.5, 3),
        ([NO, NO, YES, YES], 4, 0.5, 3),
        ([YES, YES, NO, NO], 4, 0.5, 1),
        ([NO, NO, NO, NO], 4, 0.5, 0),
    ],
)
def test_so_many_pages_come_before_it_can_be_too_little(worth, window, below, pages):
    """Whatever they bring: with fewer that brought nothing it is not time to stop, with so many it is."""
    assert before_too_little(worth, window, below) == pages
    last = (worth + [NO] * pages)[-window:]
    assert is_too_little(last, window, below)
    assert worth == worth[-window:], "it is only asked, and nothing is added"
