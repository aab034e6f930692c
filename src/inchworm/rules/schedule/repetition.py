"""When a crawl that is repeated is due again, and when it has been repeated enough.

An interval counts from start to start: a run that took one hour of a day is followed by the next one after 23 more. A
run that takes longer than the interval is followed at once, and the next interval counts from there, so nothing piles
up.

Within a process only the monotonic clock decides. What the store says, in times of the wall clock, is asked only when
the process has no memory of its own, and is believed for one interval at most: a clock that was set back or forward can
put a run off by an interval or bring it forward to now, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from inchworm.model import Counters, EndedBy, SessionInfo

OWN_ENDINGS = frozenset((EndedBy.BUDGET, EndedBy.TIME, EndedBy.BYTES, EndedBy.WAITING, EndedBy.QUALITY, EndedBy.ERROR))
"""How a session ends by itself although its run is not complete. All other endings come from outside."""

_BROKEN_OFF = (None, EndedBy.PAUSED, EndedBy.CRASHED)


class Stop(StrEnum):
    """Why a repetition ends."""

    ONCE = "once"
    ENOUGH = "max_iterations"
    NO_CHANGES = "no_changes"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    SIGNAL = "signal"


class Occasion(StrEnum):
    """What a notification is wanted for."""

    CHANGES = "changes"
    COMPLETION = "completion"


class RepeatState(NamedTuple):
    """What the store says of a crawl. `began_ms`: when its last run, or the last try at it, was begun, None before the
    first; `ended_by`: how the last session of that run ended, None when it did not."""

    began_ms: int | None = None
    is_baseline: bool = True
    is_open: bool = False
    ended_by: EndedBy | None = None
    iterations: int = 0


class Due(NamedTuple):
    """When to start, and from when on the next interval counts, both on the monotonic clock."""

    at: float
    counts_from: float


class Clocks(NamedTuple):
    """One moment on both clocks."""

    now: float
    now_ms: int


def began_ms(sessions: Sequence[SessionInfo], created_ms: int) -> int:
    """When the last try at a run was begun. A session that was broken off and the one that went on are one try."""
    for earlier, session in zip(sessions[-2::-1], sessions[:0:-1], strict=True):
        if earlier.ended_by not in _BROKEN_OFF:
            return session.started_ms
    return sessions[0].started_ms if sessions else created_ms


def from_store(standing: RepeatState, clocks: Clocks, every: float) -> Due:
    """When a crawl is due for a process that has just started.

    A run that was broken off goes on at once and counts from its beginning. After the first run of all, the baseline,
    nobody waits. Otherwise what is left of the interval has to pass.
    """
    if standing.began_ms is None:
        return Due(clocks.now, clocks.now)
    began = clocks.now - min(max(0.0, (clocks.now_ms - standing.began_ms) / 1000), every)
    if standing.is_open and standing.ended_by not in OWN_ENDINGS:
        return Due(clocks.now, began)
    at = clocks.now if standing.is_baseline else max(began + every, clocks.now)
    return Due(at, at)


def after(counted_from: float, every: float, now: float) -> Due:
    """When a crawl is due again whose last start, as it was planned, this process remembers."""
    at = max(counted_from + every, now)
    return Due(at, at)


def has_changes(counters: Counters) -> bool:
    return counters.new + counters.modified + counters.deleted > 0


def is_unchanged(counters: Counters) -> bool:
    """Whether a complete run found that nothing changed. One that could not see most of the pages, because the server
    was down, found nothing of the kind."""
    return not has_changes(counters) and 0 < counters.unchanged >= counters.unknown


def is_enough(iterations: int, most: int | None) -> bool:
    """Whether a crawl has made its runs. The baseline is not one of them."""
    return most is not None and iterations >= most


def is_told(occasion: Occasion, is_complete: bool, changed: bool) -> bool:
    """Whether people are to be told of a run. One that is not complete yet will be told of when it is."""
    return is_complete and (changed or occasion is Occasion.COMPLETION)
