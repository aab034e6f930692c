"""Times between requests, as a server saw them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def gaps(times: Sequence[float]) -> list[float]:
    return [later - sooner for sooner, later in pairwise(times)]


def gap_but_one(times: Sequence[float]) -> float:
    """The second shortest time between two requests.

    On a busy machine one may arrive so late that the next one seems to follow at once; a burst makes many short ones.
    """
    return sorted(gaps(times))[1]
