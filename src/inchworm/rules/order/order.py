"""The order in which a run takes its frontier, and how far the order of its record can be relied on.

`breadth`: first found, first taken. `best`: what promises most for a query comes first. `freshness`: what most likely
changed since the last run comes first, and every fifth turn is kept for URLs that nobody has visited yet.

Whatever is chosen by rank must not depend on which answers happen to be there already. So turn k chooses only among
what got its place by turns before k - LAG, and no more than LAG turns may be under way: then everything that it chooses
from is on record, at any number of workers. When there is nothing that old, it takes from the oldest there is.

The ranks of `best` change while URLs wait, because every page that links to one has a say. These votes are counted a
block of turns at a time, right before the first turn that may know of them, for the same reason.
"""

from __future__ import annotations

from inchworm.model import Choice, Kind, Source

BREADTH = "breadth"
BEST = "best"
FRESHNESS = "freshness"

EXACT = "exact"
"""The word for an order that would be the same again."""

LAG = 32
BLOCK = 32
NEWS = 5
"""Every so many turns one is kept for a URL that nobody has visited."""

CONTROL = 1 << 62
SEED = 1 << 61
ANNOUNCED = 1 << 60
"""Ranks: robots.txt and sitemaps come first, then the seeds, then what a sitemap says has changed."""

NEW = 0
LAST = -1
"""The rank of a new URL where others are ranked by how likely they changed, and of one that has to be tried again."""


def choice(order: str, turn: int) -> Choice:
    return Choice(turn - LAG, order == FRESHNESS and turn % NEWS == 0)


def counted(turn: int) -> int:
    """Up to which seq votes count for this turn."""
    return max(0, (turn - LAG - 1) // BLOCK * BLOCK)


def fixed_rank(kind: Kind, source: Source) -> int | None:
    """The rank of what is ranked by what it is; None where that has to be found out."""
    if kind in (Kind.ROBOTS, Kind.SITEMAP):
        return CONTROL
    return SEED if source is Source.INITIAL else None


def word(disturbed: str, several_lanes: bool) -> str:
    """`exact`: the same whenever it is crawled again. `per host`: each host in its own order, hosts interleaved by
    time. `disturbed at n by kind`: a passing failure gave a URL a new place."""
    return disturbed or ("per host" if several_lanes else EXACT)
