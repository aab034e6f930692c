"""Entries of one host in memory, in the order of their places."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from inchworm.model import FrontierEntry, Turn


@dataclass(slots=True, eq=False)
class Slot:
    """An entry in the window, from loading to retiring."""

    entry: FrontierEntry
    granted: bool = False
    reserved: bool = False
    ready_at: float | None = None
    turn: Turn | None = None


@dataclass(slots=True, eq=False)
class Lane:
    """One host's entries, or everybody's in strict order."""

    number: int
    slots: deque[Slot] = field(default_factory=deque)
    todo: deque[Slot] = field(default_factory=deque)
    last: FrontierEntry | None = None
    has_more: bool = True
    leaving: int = 0
    in_flight: int = 0
    asleep_until: float = 0.0
    is_down: bool = False
    barrier: bool = False
    loaded: set[int] = field(default_factory=set)

    def put_back(self, slot: Slot) -> None:
        """Nothing came of this one: it is to be sent again, in its old place."""
        waiting = {slot, *self.todo}
        self.todo = deque(one for one in self.slots if one in waiting)


@dataclass(slots=True)
class Retired:
    """What left the window: up to which seq it is on record, and whose commit is under way still."""

    seq: int
    leaving: set[int] = field(default_factory=set)
