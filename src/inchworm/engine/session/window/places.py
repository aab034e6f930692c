"""Loading entries in the order of their places."""

from __future__ import annotations

from collections import deque

from inchworm.engine.session.window.lane import Lane, Retired, Slot
from inchworm.ports import PendingRows

LOOK_AHEAD = 4096
_CHUNK = 512


class PlaceLoader:
    """Loads the rows of a lane one after the other, so that nothing overtakes what was found before it."""

    def __init__(self, queue: PendingRows, run_id: int, retired: Retired) -> None:
        self._queue = queue
        self._run_id = run_id
        self._retired = retired

    def fill(self, lane: Lane) -> None:
        """Load the next rows of a lane, as far as the look-ahead reaches."""
        while lane.has_more and len(lane.todo) < _CHUNK // 2 and len(lane.slots) < LOOK_AHEAD:
            if not self._load(lane):
                return

    def reload(self, lane: Lane) -> None:
        """Load a lane from its start again: rows may have been put ahead of what was read. What is in it stays."""
        lane.last = None
        lane.loaded = {slot.entry.url_id for slot in lane.slots}
        self._load(lane)
        lane.slots = deque(sorted(lane.slots, key=_place))
        lane.todo = deque(sorted(lane.todo, key=_place))

    def _load(self, lane: Lane) -> bool:
        """One chunk of rows; false where a row is met whose commit is under way."""
        rows = self._queue.pending(self._run_id, lane.number, lane.last, _CHUNK)
        lane.has_more = len(rows) == _CHUNK
        for entry in rows:
            if entry.url_id in self._retired.leaving:
                # The commit may put it elsewhere: what follows is read after that.
                lane.has_more = True
                return False
            lane.last = entry
            if entry.url_id not in lane.loaded:
                slot = Slot(entry)
                lane.slots.append(slot)
                lane.todo.append(slot)
        return True


def _place(slot: Slot) -> tuple[int, int, int]:
    return *slot.entry.place, slot.entry.url_id
