"""When a seed has had enough, and when it may send for one more page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.model import Reason, Seed
from inchworm.rules.web.limits import REQUEST_FACTOR, exhausted, may_reserve


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


@effort(max_examples=200, deadline=None, database=None)
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
