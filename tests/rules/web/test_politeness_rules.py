"""How long to wait: between two requests to one host, and before trying again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.web import politeness
from inchworm.rules.web.politeness import BASE_SECONDS, CAP_SECONDS, backoff, delay


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


@effort(max_examples=200, database=None)
@given(attempts=st.integers(0, 1000), chance=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_spread_over_the_upper_half(attempts, chance):
    seconds = backoff(attempts, chance)
    assert BASE_SECONDS / 2 <= seconds <= CAP_SECONDS
    assert backoff(attempts, 0.0) <= seconds <= 2 * backoff(attempts, 0.0)
    assert backoff(attempts + 1, chance) >= seconds


NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("5, 7", 5.0),
        ("1000000000000", 86_400.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 86_400.0),
        ("-5", None),
        ("soon", None),
        ("1e3", None),
        ("", None),
        ("٥", None),
    ],
)
def test_retry_after(value, seconds):
    assert politeness.retry_after(value, NOW_MS) == seconds


@given(st.text())
def test_any_retry_after_is_read_without_a_fuss(value):
    found = politeness.retry_after(value, NOW_MS)
    assert found is None or 0 <= found <= 86_400


def test_a_push_back_slows_down_and_good_answers_take_it_back():
    pace = politeness.Pace()
    for number, expected in enumerate((0.5, 0.75, 1.125)):
        pace = politeness.pushed_back(pace, number, number)
        assert politeness.extra_delay(pace) == expected
    for _ in range(40):
        pace = politeness.answered(pace, 0.1)
    assert politeness.extra_delay(pace) == 0.0


def test_a_few_pages_that_always_push_back_do_not_stop_a_crawl():
    pace, waited = politeness.Pace(), 0.0
    for number in range(1000):
        pace = politeness.pushed_back(pace, number, number) if number % 20 == 0 else politeness.answered(pace, 0.1)
        waited += politeness.extra_delay(pace)
    assert waited < 250


def test_it_never_slows_down_for_ever():
    pace = politeness.Pace()
    for number in range(100):
        pace = politeness.pushed_back(pace, number, number)
    assert politeness.extra_delay(pace) == politeness.MAX_EXTRA_SECONDS


def test_one_page_that_hangs_says_nothing_about_its_host():
    pace = politeness.Pace()
    for number in range(300):
        pace = politeness.answered(pace, 30.0 if number % 100 == 99 else 0.05)
        assert politeness.extra_delay(pace) == 0.0


def test_a_host_that_gets_slow_is_asked_less():
    pace = politeness.Pace()
    for _ in range(50):
        pace = politeness.answered(pace, 0.05)
    for _ in range(6):
        pace = politeness.answered(pace, 2.0)
    assert politeness.extra_delay(pace) == 2.0
    pace = politeness.answered(pace, 0.05)
    assert politeness.extra_delay(pace) == 0.0


def test_one_page_that_hangs_does_not_hide_that_its_host_gets_slow():
    pace = politeness.Pace()
    for seconds in (*[0.05] * 50, 60.0, *[2.0] * 6):
        pace = politeness.answered(pace, seconds)
    assert politeness.extra_delay(pace) == 2.0


def test_what_was_under_way_at_a_push_back_says_nothing_new():
    pace = politeness.pushed_back(politeness.Pace(), sent_at=1.0, now=2.0)
    assert politeness.pushed_back(pace, sent_at=1.5, now=2.1) == pace
    assert politeness.pushed_back(pace, sent_at=2.5, now=2.6).extra == 0.75


def test_a_host_is_struggling_when_five_answers_in_a_row_take_far_longer_than_usual():
    pace = politeness.Pace()
    for _ in range(20):
        pace = politeness.answered(pace, 1.0)
    waits = []
    for _ in range(7):
        pace = politeness.answered(pace, 20.0)
        waits.append(politeness.extra_delay(pace))
    assert waits == [0.0] * 4 + [politeness.MAX_EXTRA_SECONDS] * 3
    assert pace.usual == pytest.approx(1.05**7, rel=1e-9), "a slow answer counts as twice as slow as usual at most"


@pytest.mark.parametrize(("seconds", "is_slow"), [(3.0, False), (3.44, False), (3.46, True)])
def test_far_longer_than_usual_is_three_times_and_a_bit(seconds, is_slow):
    """Of what is usual by then; the bit is for hosts that usually answer at once."""
    pace = politeness.Pace(usual=1.0)
    assert bool(politeness.answered(pace, seconds).slow) is is_slow
    assert not politeness.answered(politeness.Pace(usual=0.001), 0.3).slow
    assert politeness.answered(politeness.Pace(usual=0.001), 0.31).slow


def test_the_first_answer_is_as_usual():
    assert politeness.answered(politeness.Pace(), 7.0) == politeness.Pace(usual=7.0, latest=7.0)


def test_what_a_push_back_adds_goes_by_tenths_and_in_the_end_at_once():
    pace = politeness.answered(politeness.Pace(extra=1.0, usual=0.1), 0.1)
    assert pace.extra == 0.9
    assert politeness.answered(pace._replace(extra=0.06), 0.1).extra == pytest.approx(0.054)
    assert politeness.answered(pace._replace(extra=0.05), 0.1).extra == 0.0


def test_a_push_back_to_what_was_sent_as_we_slowed_down_counts():
    pace = politeness.pushed_back(politeness.Pace(), sent_at=1.0, now=2.0)
    assert politeness.pushed_back(pace, sent_at=2.0, now=3.0).extra == 0.75


def test_every_common_browser_is_named_in_every_version_and_always_in_the_same_way():
    names = [politeness.browser_name(number) for number in range(20)]
    assert len(set(names)) == 20
    assert all(name.startswith("Mozilla/5.0 (") and "{" not in name for name in names)
    versions = {version for version in range(130, 150) if any(f"{version}.0" in name for name in names)}
    assert versions == {140, 141, 142, 143}
    assert [politeness.browser_name(number + 20) for number in range(20)] == names
