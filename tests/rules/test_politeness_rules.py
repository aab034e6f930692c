"""How long to wait: between two requests to one host, and before trying again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.politeness import BASE_SECONDS, CAP_SECONDS, backoff, delay


@pytest.mark.parametrize(
    ("ours", "theirs", "cap", "seconds"),
    [
        (0.5, None, 60, 0.5),
        (0.5, 0, 60, 0.5),
        (0.5, 0.2, 60, 0.5),
        (0.5, 10, 60, 10),
        (0.5, 3600, 60, 60),
        (90, 3600, 60, 90),
        (0, 5, 0, 0),
        (0, None, 60, 0),
    ],
)
def test_the_longer_pause_counts_and_a_site_may_not_stop_us(ours, theirs, cap, seconds):
    assert delay(ours, theirs, cap) == seconds


@pytest.mark.parametrize(
    ("attempts", "longest"), [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (7, 60), (100, 60), (10**9, 60)]
)
def test_pauses_double_up_to_a_cap(attempts, longest):
    assert backoff(attempts, 0.0) == longest / 2
    assert backoff(attempts, 0.999999) == pytest.approx(longest, rel=1e-5)


@effort(max_examples=200, deadline=None, database=None)
@given(attempts=st.integers(0, 1000), chance=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_spread_over_the_upper_half(attempts, chance):
    seconds = backoff(attempts, chance)
    assert BASE_SECONDS / 2 <= seconds <= CAP_SECONDS
    assert backoff(attempts, 0.0) <= seconds <= 2 * backoff(attempts, 0.0)
    assert backoff(attempts + 1, chance) >= seconds
