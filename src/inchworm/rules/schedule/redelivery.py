"""How long a delivery is tried: when its next try comes, and when nobody tries any more.

A receiver that is down, does not answer or asks for quiet is tried again for three days, after 5 seconds at first and
twice as long each time, up to an hour. One that refuses may not be set up yet, so it gets five tries; only `410 Gone`
is taken at its word. Three days pass while nobody is there to try, too, so they count only after five tries.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

FIRST_MS = 5_000
LONGEST_MS = 3_600_000
GIVEN_UP_MS = 3 * 86_400_000
FEWEST_TRIES = 5
_MOST_DOUBLINGS = 16
_SPREAD = 0.2
_GONE = 410
_PASSING = (408, 425, 429)


class DeliveryTry(NamedTuple):
    """What came of one try at one address. No `trouble`: it arrived. `status` 0: there was no answer."""

    status: int
    trouble: str = ""
    retry_after_s: float | None = None

    @property
    def has_arrived(self) -> bool:
        return not self.trouble


class TriedDelivery(NamedTuple):
    """What a delivery has been through since it began to wait: the statuses of its tries, oldest first."""

    delivery_id: int
    since_ms: int
    statuses: tuple[int, ...] = ()


def may_pass(status: int) -> bool:
    """Whether another try may go better although nobody changes anything."""
    return status == 0 or status in _PASSING or status >= 500


def next_ms(tried: TriedDelivery, result: DeliveryTry, now_ms: int) -> int | None:
    """When a delivery is tried again whose last try came to this; None: never."""
    statuses = (*tried.statuses, result.status)
    if result.status == _GONE or sum(not may_pass(status) for status in statuses) >= FEWEST_TRIES:
        return None
    if len(statuses) >= FEWEST_TRIES and now_ms - tried.since_ms >= GIVEN_UP_MS:
        return None
    asked_ms = min(round((result.retry_after_s or 0) * 1000), LONGEST_MS)
    return now_ms + max(asked_ms, wait_ms(tried.delivery_id, len(statuses)))


def wait_ms(delivery_id: int, tries: int) -> int:
    """How long to wait after so many tries. Each delivery waits up to a fifth less, by its id: those that failed
    together do not come back together."""
    longest: int = min(FIRST_MS * 2 ** min(max(0, tries - 1), _MOST_DOUBLINGS), LONGEST_MS)
    share = zlib.crc32(f"{delivery_id} {tries}".encode()) / 2**32
    return round(longest * (1 - _SPREAD * share))
