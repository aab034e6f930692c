"""The window in memory over the durable frontier.

Lanes retire in order: a lane's entries may be fetched ahead and answered in any order, but they leave the
window only from the front. What waits (for its host, a backoff, a limit) keeps its place and holds back what
is behind it, so the order of the record is the order of the places, whatever the network does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from inchworm.engine.session.window.lane import Lane, Retired
from inchworm.engine.session.window.places import PlaceLoader
from inchworm.engine.session.window.ranks import RankLoader
from inchworm.model import FrontierEntry, Turn
from inchworm.ports import PendingRows
from inchworm.rules.order.order import BREADTH
from inchworm.rules.web import control

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking


class Window:
    """The lanes of a run that have something to do. `ranking`: there in a run with a query."""

    def __init__(
        self, queue: PendingRows, run_id: int, seq: int = 0, order: str = BREADTH, ranking: Ranking | None = None
    ) -> None:
        self._queue = queue
        self._run_id = run_id
        self._retired = Retired(seq)
        self._loader: PlaceLoader | RankLoader = (
            PlaceLoader(queue, run_id, self._retired)
            if order == BREADTH
            else RankLoader(queue, run_id, order, ranking, self._retired)
        )
        self._lanes: dict[int, Lane] = {}
        self._ready: deque[Lane] = deque()
        self.refresh()

    def refresh(self) -> bool:
        """Read every lane from its start again, leaving alone what is in the window. Is there anything?"""
        for lane in self._ready:
            lane.has_more = False
        self.read_again(self._queue.lanes(self._run_id))
        return self.is_waiting()

    def read_again(self, lanes: Iterable[int]) -> None:
        """Rows may have been put ahead of what was read of these lanes."""
        for number in lanes:
            lane = self._lane(number)
            lane.has_more, lane.asleep_until = True, 0.0
            self._loader.reload(lane)

    def committed(self, entries: Iterable[FrontierEntry], lanes: frozenset[int], seq: int) -> None:
        """These entries left the window for good, these lanes may have new rows, and the record goes up to this seq."""
        self._retired.seq = seq
        for entry in entries:
            self._retired.leaving.discard(entry.url_id)
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
        """Load the next entries of a lane, as far as one may look ahead."""
        self._loader.fill(lane)

    def retire(self) -> Iterator[Turn]:
        """What may be committed now: the finished entries at the front of each lane."""
        for lane in list(self._ready):
            while lane.slots and lane.slots[0].turn is not None:
                slot = lane.slots.popleft()
                self._retired.leaving.add(slot.entry.url_id)
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
