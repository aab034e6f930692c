"""How long to wait: between two requests to one host, and before trying again."""

from __future__ import annotations

BASE_SECONDS = 1.0
CAP_SECONDS = 60.0


def delay(wanted: float, crawl_delay: float | None, cap: float) -> float:
    """Seconds between two request starts to a host: the longer of ours and the site's, the site's up to a cap."""
    return max(wanted, min(crawl_delay or 0.0, cap))


def backoff(attempts: int, chance: float) -> float:
    """Seconds before try number `attempts` + 1: doubling, capped, and spread by a `chance` in [0, 1)."""
    return longest_backoff(attempts) * (0.5 + chance / 2)


def longest_backoff(attempts: int) -> float:
    """What `backoff` can give at most; a longer wait on the wall clock means that somebody set the clock."""
    return min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(attempts, 16))
