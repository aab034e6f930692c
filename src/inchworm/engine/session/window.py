"""The window in memory over the durable frontier.

Lanes retire in order: a lane's entries may be fetched ahead and answered in any order, but they leave the
window only from the front. What waits (for its host, a backoff, a limit) keeps its place and holds back what
is behind it, so the order of the record is the order of the places, whatever the network does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inchworm.model import FrontierEntry, Kind, Turn
from inchworm.ports import Store
from inchworm.rules.order.order import BREADTH, LAG, choice
from inchworm.rules.web import control

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking

LOOK_AHEAD = 4096
HELD_BYTES = 16_000_000
_CHUNK = 512


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


class Window:
    """The lanes of a run that have something to do. `ranking`: there in a run with a query."""

    def __init__(
        self, store: Store, run_id: int, seq: int = 0, order: str = BREADTH, ranking: Ranking | None = None
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._seq = seq
        self._order = order
        self._lanes: dict[int, Lane] = {}
        self._ready: deque[Lane] = deque()
        self._leaving: set[int] = set()
        self._ranking = ranking
        self.refresh()

    def refresh(self) -> bool:
        """Read every lane from its start again, leaving alone what is in the window. Is there anything?"""
        for lane in self._ready:
            lane.has_more = False
        for number in self._store.lanes(self._run_id):
            self._read_again(self._lane(number))
        return self.is_waiting()

    def read_again(self, lanes: Iterable[int]) -> None:
        """Rows may have been put ahead of what was read of these lanes."""
        for number in lanes:
            self._read_again(self._lane(number))

    def _read_again(self, lane: Lane) -> None:
        lane.last, lane.has_more, lane.asleep_until = None, True, 0.0
        if self._order != BREADTH:
            self._put_robots_first(lane)
            self._choose(lane)
            return
        lane.loaded = {slot.entry.url_id for slot in lane.slots}
        self._load(lane)
        lane.slots = deque(sorted(lane.slots, key=_place))
        lane.todo = deque(sorted(lane.todo, key=_place))

    def committed(self, entries: Iterable[FrontierEntry], lanes: frozenset[int], seq: int) -> None:
        """These entries left the window for good, these lanes may have new rows, and the record goes up to this seq."""
        self._seq = seq
        for entry in entries:
            self._leaving.discard(entry.url_id)
            lane = self._lanes[entry.lane]
            lane.leaving -= 1
            lane.barrier = lane.barrier and entry.kind not in control.KINDS
        for number in lanes:
            self._lane(number).has_more = True

    def lanes(self) -> Iterator[Lane]:
        """Lanes in turn, each time starting with the next one."""
        for _ in range(len(self._ready)):
            self._ready.rotate(-1)
            yield self._ready[-1]

    def fill(self, lane: Lane) -> None:
        """Load the next rows of a lane, as far as the look-ahead reaches."""
        if self._order != BREADTH:
            self._choose(lane)
            return
        while lane.has_more and len(lane.todo) < _CHUNK // 2 and len(lane.slots) < LOOK_AHEAD:
            if not self._load(lane):
                return

    def _put_robots_first(self, lane: Lane) -> None:
        """What was chosen may wait for a robots.txt that is to be read again, and then nothing else can be chosen."""
        if not lane.slots:
            return
        skip = {slot.entry.url_id for slot in lane.slots} | self._leaving
        entry = self._store.choose(self._run_id, lane.number, choice(self._order, self._seq + LAG), skip)
        if entry is not None and entry.kind is Kind.ROBOTS:
            slot = Slot(entry)
            lane.slots.appendleft(slot)
            lane.todo.appendleft(slot)
            lane.barrier = True

    def _choose(self, lane: Lane) -> None:
        """Choose the next turns of a lane by rank. Nothing is chosen behind a file that may rank things anew."""
        skip = {slot.entry.url_id for slot in lane.slots} | self._leaving
        while lane.has_more and not lane.barrier and len(lane.slots) + lane.leaving < LAG:
            turn = self._seq + lane.leaving + len(lane.slots) + 1
            if self._ranking is not None and not self._ranking.is_ready(turn):
                return
            entry = self._store.choose(self._run_id, lane.number, choice(self._order, turn), skip)
            if entry is None:
                lane.has_more = False
                return
            skip.add(entry.url_id)
            slot = Slot(entry)
            lane.slots.append(slot)
            lane.todo.append(slot)
            lane.barrier = entry.kind in control.KINDS

    def _load(self, lane: Lane) -> bool:
        """One chunk of rows; false where a row is met whose commit is under way."""
        rows = self._store.pending(self._run_id, lane.number, lane.last, _CHUNK)
        lane.has_more = len(rows) == _CHUNK
        for entry in rows:
            if entry.url_id in self._leaving:
                # The commit may put it elsewhere: what follows is read after that.
                lane.has_more = True
                return False
            lane.last = entry
            if entry.url_id not in lane.loaded:
                slot = Slot(entry)
                lane.slots.append(slot)
                lane.todo.append(slot)
        return True

    def retire(self) -> Iterator[Turn]:
        """What may be committed now: the finished entries at the front of each lane."""
        for lane in list(self._ready):
            while lane.slots and lane.slots[0].turn is not None:
                slot = lane.slots.popleft()
                self._leaving.add(slot.entry.url_id)
                lane.loaded.discard(slot.entry.url_id)
                lane.leaving += 1
                assert slot.turn is not None
                yield slot.turn
            if not lane.slots and not lane.has_more and not lane.leaving:
                self._ready.remove(lane)
                del self._lanes[lane.number]

    def is_starving(self) -> bool:
        """Whether a lane has nothing to do until what left it is committed."""
        return any(lane.leaving and not lane.slots for lane in self._ready)

    def wake(self) -> None:
        """A host is up again, or given up: lanes that slept for one of them are looked at."""
        for lane in self._ready:
            if lane.is_down:
                lane.is_down, lane.asleep_until = False, 0.0

    def has_down(self) -> bool:
        """Whether a lane waits for a host that is down."""
        return any(lane.is_down for lane in self._ready)

    def open_lanes(self) -> int:
        """How many lanes have, or may soon have, something to do."""
        return len(self._ready)

    def is_waiting(self) -> bool:
        """Whether any lane has something left."""
        return any(lane.slots or lane.has_more or lane.leaving for lane in self._ready)

    def _lane(self, number: int) -> Lane:
        lane = self._lanes.get(number)
        if lane is None:
            lane = self._lanes[number] = Lane(number)
            self._ready.append(lane)
        return lane


def _place(slot: Slot) -> tuple[int, int, int]:
    return *slot.entry.place, slot.entry.url_id
