"""Which known pages most likely changed since they were last seen, for a run that cannot ask for all of them.

Pages change at their own rates, mostly never and a few all the time, and a change does not wait for the last one: a
Poisson process. We do not see the changes, only whether there was any between two visits. Of n visits that found x
changed, log((n + ½) / (n - x + ½)) is the number of changes per interval that explains this best: the estimator of Cho
and Garcia-Molina, "Estimating Frequency of Change" (2003). It counts in the changes that were missed, and its halves
keep it finite for a page that had changed every time. Intervals are taken to be of equal length; that costs little,
and spares us all but the first and the last moment.

A page with next to no history would have no rate at all, or that of one lucky visit. So what is seen is added to what
is usual: `USUAL_CHANGES` in `USUAL_DAYS`, the mean of a gamma distribution with a long tail, because a page nobody
looked at twice may well be one that changes all the time. With X changes in T days the rate is gamma distributed with
mean (usual + X) / (usual days + T), and the probability of no change in the next t days is

    ((usual days + T) / (usual days + T + t)) ^ (usual + X)

This falls for ever, and so what was never seen to change comes up again later and later, but it does come up.

Where more pages change all the time than a run may ask for, likelihood alone would ask for those and nothing else.
Every fifth place therefore goes to the page that was not seen for longest: with a budget of b of n pages, none waits
for more than 5 n / b runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from math import expm1, log, log1p
from typing import NamedTuple, TypeVar

USUAL_CHANGES = 0.1
USUAL_DAYS = 10.0
ANNOUNCED = 0.95
"""How likely a page changed that a sitemap says has. Whatever we only guess is less likely than that."""

_EVERY = 5
_DAY_MS = 86_400_000

Name = TypeVar("Name", str, int)


class VisitHistory(NamedTuple):
    """What is known of a page: how often it was visited again, how often it had changed then, when it was first and
    last visited, and when a sitemap says that it changed (0: it does not say). A visit that failed moves `last_ms` too,
    or a dead page would stay the longest unseen."""

    visits: int
    changes: int
    first_ms: int
    last_ms: int
    lastmod_ms: int = 0


def rate(history: VisitHistory) -> float:
    """Changes per day."""
    return (USUAL_CHANGES + _changes(history)) / (USUAL_DAYS + _days(history.first_ms, history.last_ms))


def likelihood(history: VisitHistory, now_ms: int) -> float:
    """The probability, from 0 to 1, that a page changed since it was last seen."""
    known = USUAL_DAYS + _days(history.first_ms, history.last_ms)
    unseen = _days(history.last_ms, now_ms)
    guess = -expm1(-(USUAL_CHANGES + _changes(history)) * log1p(unseen / known))
    if _is_announced(history, now_ms):
        # Some sitemaps say of every page that it changed today. Then the guess still tells them apart.
        return ANNOUNCED + (1 - ANNOUNCED) * guess
    return ANNOUNCED * guess


def order(pages: Iterable[tuple[Name, VisitHistory]], now_ms: int) -> list[Name]:
    """The pages to ask for, first things first: the likeliest changed, and in every fifth place the longest unseen.
    Of equals the longest unseen comes first, then the smaller name."""
    keys = [(-likelihood(history, now_ms), history.last_ms, name) for name, history in pages]
    likely = [name for _, _, name in sorted(keys)]
    oldest = [name for _, _, name in sorted(keys, key=lambda key: key[1:])]
    mixed: list[Name] = []
    for start in range(0, len(likely), _EVERY - 1):
        mixed += likely[start : start + _EVERY - 1]
        mixed.append(oldest[start // (_EVERY - 1)])
    return list(dict.fromkeys(mixed))


def is_later(lastmod: str, seen_ms: int) -> bool:
    """Whether a sitemap says that a page changed after it was seen. Of a bare day, any hour may be meant."""
    try:
        moment = datetime.fromisoformat(lastmod)
    except ValueError:
        return False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole_day = _DAY_MS if len(lastmod) <= len("2026-01-01") else 0
    return moment.timestamp() * 1000 + whole_day > seen_ms


def _changes(history: VisitHistory) -> float:
    """How many changes there were, those included that later ones hid from us."""
    visits = max(0, history.visits)
    unchanged = visits - min(max(0, history.changes), visits)
    return visits * log((visits + 0.5) / (unchanged + 0.5))


def _days(start_ms: int, end_ms: int) -> float:
    """None at all where somebody set the clock back."""
    return max(0, end_ms - start_ms) / _DAY_MS


def _is_announced(history: VisitHistory, now_ms: int) -> bool:
    """A day ahead of us may be a matter of time zones; more is a mistake."""
    return history.last_ms < history.lastmod_ms <= now_ms + _DAY_MS
