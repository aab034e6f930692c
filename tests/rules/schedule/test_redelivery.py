"""When the next try of a delivery comes, and when nobody tries any more."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.rules.schedule import redelivery
from inchworm.rules.schedule.redelivery import FEWEST_TRIES, GIVEN_UP_MS, LONGEST_MS, DeliveryTry, TriedDelivery

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR

MAY_PASS = {0: True, 408: True, 425: True, 429: True, 500: True, 502: True, 503: True, 599: True}
WILL_NOT = {301: False, 302: False, 308: False, 400: False, 401: False, 403: False, 404: False, 410: False, 422: False}


@pytest.mark.parametrize(("status", "may"), {**MAY_PASS, **WILL_NOT}.items())
def test_what_may_pass(status: int, may: bool) -> None:
    assert redelivery.may_pass(status) is may


def lived(statuses: list[int], every_ms: int = 0) -> tuple[int, int | None]:
    """How many tries a delivery gets that is answered so, and when the next one would come."""
    tried, now_ms = TriedDelivery(7, NOW), NOW
    due_ms: int | None = NOW
    for number, status in enumerate(statuses, 1):
        due_ms = redelivery.next_ms(tried, DeliveryTry(status, "trouble"), now_ms)
        if due_ms is None:
            return number, None
        tried = tried._replace(statuses=(*tried.statuses, status))
        now_ms = max(due_ms, now_ms + every_ms)
    return len(statuses), due_ms


def test_waits_double_from_seconds_to_an_hour() -> None:
    waits = [redelivery.wait_ms(1, tries) for tries in range(1, 40)]
    assert 4_000 <= waits[0] <= 5_000
    assert 8_000 <= waits[1] <= 10_000
    assert all(0.8 * LONGEST_MS <= wait <= LONGEST_MS for wait in waits[10:])
    assert all(later > earlier for earlier, later in pairwise(waits[:10]))


@given(st.integers(0, 2**62), st.integers(0, 10**6))
def test_a_wait_is_always_within_bounds_and_always_the_same(delivery_id: int, tries: int) -> None:
    wait = redelivery.wait_ms(delivery_id, tries)
    assert 4_000 <= wait <= LONGEST_MS
    assert wait == redelivery.wait_ms(delivery_id, tries)


def test_those_that_failed_together_do_not_come_back_together() -> None:
    waits = {redelivery.wait_ms(delivery_id, 12) for delivery_id in range(100)}
    assert len(waits) > 90
    assert max(waits) - min(waits) > 0.15 * LONGEST_MS


def test_who_is_down_is_tried_for_three_days() -> None:
    tries, due_ms = lived([0] * 1000)
    assert due_ms is None
    assert 72 <= tries <= 110
    last_ms = sum(redelivery.wait_ms(7, number) for number in range(1, tries))
    assert GIVEN_UP_MS <= last_ms < GIVEN_UP_MS + HOUR


def test_who_is_down_for_a_day_is_not_given_up() -> None:
    _, due_ms = lived([503] * 40)
    assert due_ms is not None
    assert due_ms - NOW > DAY


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404])
def test_who_refuses_gets_five_tries(status: int) -> None:
    assert lived([status] * 9) == (FEWEST_TRIES, None)


def test_what_is_gone_is_gone() -> None:
    assert lived([410]) == (1, None)
    assert lived([0, 0, 410]) == (3, None)


def test_refusals_are_counted_apart() -> None:
    """A receiver that comes back after an hour may still have to be set up."""
    assert lived([0] * 12 + [404] * 9) == (17, None)
    assert lived([404, 0, 404, 503, 404, 404])[1] is not None


def test_days_on_which_nobody_tried_are_no_reason_to_give_up() -> None:
    assert lived([0] * 9, every_ms=7 * DAY) == (FEWEST_TRIES, None)


ASKED = {
    "nothing": (None, 4_000, 5_000),
    "less than we wait anyway": (1.0, 4_000, 5_000),
    "a minute": (60.0, 60_000, 60_000),
    "an hour": (3600.0, HOUR, HOUR),
    "a day": (86_400.0, HOUR, HOUR),
}


@pytest.mark.parametrize(("seconds", "least", "most"), ASKED.values(), ids=ASKED)
def test_who_asks_for_quiet_gets_it_up_to_an_hour(seconds: float | None, least: int, most: int) -> None:
    due_ms = redelivery.next_ms(TriedDelivery(1, NOW), DeliveryTry(429, "it answered 429", seconds), NOW)
    assert due_ms is not None
    assert least <= due_ms - NOW <= most


def test_without_trouble_it_has_arrived() -> None:
    assert DeliveryTry(200).has_arrived
    assert DeliveryTry(0).has_arrived, "a chat has no status"
    assert not DeliveryTry(200, "trouble").has_arrived
