"""The sequence of a run, and the places that its steps give to what they find."""

from __future__ import annotations

from inchworm.model import Place

_BEHIND = 1 << 20
"""Index of what is put in its place by a decision rather than by a link: behind every link of that visit."""


def link_index(place: Place) -> int:
    """Which one of its page's links was put in this place, be it ahead of others or behind them."""
    return place[1] % _BEHIND


class Steps:
    """Where the sequence stands."""

    def __init__(self, seq: int) -> None:
        self._seq = seq
        self._behind = _BEHIND
        self._lanes_ahead: set[int] = set()

    @property
    def seq(self) -> int:
        return self._seq

    def begin(self) -> None:
        """A new commit."""
        self._behind = _BEHIND
        self._lanes_ahead.clear()

    def next(self) -> None:
        """Whatever is written from here on belongs to the next number of the sequence."""
        self._seq += 1
        self._behind = _BEHIND

    def forget(self) -> None:
        """Nothing came of it, and its number is the next one's."""
        self._seq -= 1

    def place_behind(self) -> Place:
        """A place behind everything that the present visit's links have got."""
        self._behind += 1
        return self._seq, self._behind

    def place_ahead(self, index: int, lane: int) -> Place:
        """A place ahead of everything but what was put ahead before."""
        self._lanes_ahead.add(lane)
        return -1, self._seq * 2 * _BEHIND + index

    def lanes_ahead(self) -> frozenset[int]:
        """Lanes in which the present commit put something ahead."""
        return frozenset(self._lanes_ahead)
