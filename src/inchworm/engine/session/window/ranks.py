"""Choosing entries by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inchworm.engine.session.window.lane import Lane, Retired, Slot
from inchworm.model import FrontierEntry, Kind
from inchworm.ports import PendingRows
from inchworm.rules.order.order import LAG, choice
from inchworm.rules.web import control

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking


class RankLoader:
    """Chooses the next turns of a lane. Each may go by what was on record a number of turns before it, so no more than
    so many are chosen ahead. `ranking`: there in a run with a query."""

    def __init__(self, queue: PendingRows, run_id: int, order: str, ranking: Ranking | None, retired: Retired) -> None:
        self._queue = queue
        self._run_id = run_id
        self._order = order
        self._ranking = ranking
        self._retired = retired

    def fill(self, lane: Lane) -> None:
        """Choose the next turns of a lane. Nothing is chosen behind a file that may rank things anew."""
        skip = self._skip(lane)
        while lane.has_more and not lane.barrier and len(lane.slots) + lane.leaving < LAG:
            turn = self._retired.seq + lane.leaving + len(lane.slots) + 1
            if self._ranking is not None and not self._ranking.is_ready(turn):
                return
            entry = self._choose(lane, turn, skip)
            if entry is None:
                lane.has_more = False
                return
            skip.add(entry.url_id)
            slot = Slot(entry)
            lane.slots.append(slot)
            lane.todo.append(slot)
            lane.barrier = entry.kind in control.KINDS

    def reload(self, lane: Lane) -> None:
        """What was chosen stays. Only, it may wait for a robots.txt that is to be read again, and then nothing else can
        be chosen: that goes first."""
        if lane.slots:
            entry = self._choose(lane, self._retired.seq + LAG, self._skip(lane))
            if entry is not None and entry.kind is Kind.ROBOTS:
                slot = Slot(entry)
                lane.slots.appendleft(slot)
                lane.todo.appendleft(slot)
                lane.barrier = True

    def _choose(self, lane: Lane, turn: int, skip: set[int]) -> FrontierEntry | None:
        return self._queue.choose(self._run_id, lane.number, choice(self._order, turn), skip)

    def _skip(self, lane: Lane) -> set[int]:
        return {slot.entry.url_id for slot in lane.slots} | self._retired.leaving
