"""When a host that cannot be reached is down, when to look whether it is back, and when to give it up.

A request that could not even be sent says nothing of its URL: any other would have gone the same way. So it is the host
that is down, and only one that has answered before can be; of another nobody knows whether it is there at all.
"""

from __future__ import annotations

from inchworm.model import DownHost
from inchworm.rules.words.times import iso

DOWN_AFTER = 3
"""A host is down after so many requests in a row that could not be sent. One may be bad luck."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
SESSIONS = 3
"""In so many sessions a host must have been down before its URLs fail."""


def pause(looks: int) -> float:
    """Seconds until somebody looks again, after so many looks in vain."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(looks, 16)))


def is_hopeless(down: DownHost, now_ms: int, patience: float) -> bool:
    """Whether a host has been down for so long, in time and in sessions, that its URLs fail."""
    return down.sessions >= SESSIONS and now_ms - down.since_ms >= patience * 1000


def sentence(down: DownHost) -> str:
    """One host, why it cannot be reached and since when."""
    return f"{down.origin} has not answered since {iso(down.since_ms)}: {down.message}"
