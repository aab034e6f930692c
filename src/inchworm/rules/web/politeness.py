"""How long to wait: between two requests to one host, before trying again, and when a host asks for quiet."""

from __future__ import annotations

import re
from typing import NamedTuple

BASE_SECONDS = 1.0
CAP_SECONDS = 60.0
MAX_RETRY_AFTER_SECONDS = 86_400.0
MAX_EXTRA_SECONDS = 5.0
_SLOW_ANSWERS = 5


def delay(wanted: float, crawl_delay: float | None, cap: float) -> float:
    """Seconds between two request starts to a host: the longer of ours and the site's, the site's up to a cap."""
    return max(wanted, min(crawl_delay or 0.0, cap))


def backoff(attempts: int, chance: float) -> float:
    """Seconds before try number `attempts` + 1: doubling, capped, and spread by a `chance` in [0, 1)."""
    return longest_backoff(attempts) * (0.5 + chance / 2)


def longest_backoff(attempts: int) -> float:
    """What `backoff` can give at most; a longer wait on the wall clock means that somebody set the clock."""
    return min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(attempts, 16))


def retry_after(value: str, now_ms: int) -> float | None:
    """The seconds that a Retry-After header asks for, at most a day; None where it says nothing sensible."""
    first = value.partition(",")[0].strip()
    if re.fullmatch(r"[0-9]{1,30}", first):
        return min(float(first), MAX_RETRY_AFTER_SECONDS)
    from email.utils import parsedate_to_datetime  # few servers ask for quiet

    try:
        moment = parsedate_to_datetime(value.strip()).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, moment - now_ms / 1000), MAX_RETRY_AFTER_SECONDS)


class Pace(NamedTuple):
    """How a host bears us. `extra` seconds come on top of its delay after it pushed back; they go again by and by."""

    extra: float = 0.0
    usual: float = 0.0
    slow: int = 0
    latest: float = 0.0
    changed_at: float = float("-inf")


def pushed_back(pace: Pace, sent_at: float, now: float) -> Pace:
    """The host said that it is too much (429, 503): half as slow again from now on.

    Requests that were under way when we slowed down last say nothing new. And a site on which a few pages always
    answer so must not come to a halt: what one push back adds, a handful of good answers takes away.
    """
    if sent_at < pace.changed_at:
        return pace
    return pace._replace(extra=min(MAX_EXTRA_SECONDS, max(0.5, 1.5 * pace.extra)), changed_at=now)


def answered(pace: Pace, seconds: float) -> Pace:
    """The host answered in this time, which takes a tenth of the extra seconds back.

    One slow page says nothing about a host; several in a row, each far slower than usual, do.
    """
    usual = seconds if not pace.usual else pace.usual + 0.05 * (min(seconds, 2 * pace.usual) - pace.usual)
    slow = pace.slow + 1 if seconds > 3 * usual + 0.3 else 0
    extra = 0.9 * pace.extra if pace.extra > 0.05 else 0.0
    return Pace(extra, usual, slow, seconds, pace.changed_at)


def extra_delay(pace: Pace) -> float:
    """Seconds on top of a host's delay: what it asked for, or what it takes to answer when it is struggling."""
    struggling = min(pace.latest, MAX_EXTRA_SECONDS) if pace.slow >= _SLOW_ANSWERS else 0.0
    return max(pace.extra, struggling)


_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{n}.0.0.0 Safari/537.36"
_BROWSERS = (
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_CHROME}",
    f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME}",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0",
)
_VERSIONS = (140, 141, 142, 143)


def browser_name(number: int) -> str:
    """One of the names that common browsers give. The same number gives the same name, so the same URL is always
    asked for in the same way."""
    version = _VERSIONS[number // len(_BROWSERS) % len(_VERSIONS)]
    return _BROWSERS[number % len(_BROWSERS)].format(n=version)
