"""Traps: places where a site has a new URL for ever. They are refused with a reason, and the rest goes on."""

from __future__ import annotations

import re

from inchworm.rules.web.url import path_of

_REPEATS = 3
_NUMBER_REPEATS = 5
_DIGITS = re.compile(r"\d+")


def repeats_itself(url: str) -> bool:
    """Whether a path ends in the same few segments again and again (/a/b/a/b/a/b), as a wrong relative link makes.

    Numbers repeat in honest paths too (/2011/11/11/11), so those need more of it.
    """
    path = path_of(url).strip("/")
    last = path[path.rfind("/") + 1 :]
    if path.count(last) < _REPEATS:
        return False  # nearly every URL, and cheap to see
    segments = path.split("/")
    for period in range(1, len(segments) // _REPEATS + 1):
        wanted = _NUMBER_REPEATS if all(part.isdigit() for part in segments[-period:]) else _REPEATS
        tail = segments[-period * wanted :]
        if len(tail) == period * wanted and tail == tail[:period] * wanted:
            return True
    return False


def counts_on(url: str, parent: str) -> bool:
    """Whether two URLs differ only in their numbers, as the next month of a calendar differs from this one."""
    return _DIGITS.sub("0", url) == _DIGITS.sub("0", parent)
