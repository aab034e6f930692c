"""What is under way: requests that were sent, and answers that lie in memory until they are committed."""

from __future__ import annotations

import asyncio
import functools

from inchworm.engine.session.ending import SessionEnding
from inchworm.engine.session.grants import Grants
from inchworm.engine.session.outages import HostWatch
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.session.window.lane import Lane, Slot
from inchworm.engine.visit import Tools, visit
from inchworm.model import FinishedVisit, Turn, Unanswered
from inchworm.rules.web import control

HELD_BYTES = 16_000_000
"""How much memory answers may take that wait for their turn."""


class Flight:
    """The requests of a session, from sending to committing. `new_first`: what is new may come ahead of anything that
    was sent before it. `uncommitted_bytes`: how much came that no commit has counted yet."""

    def __init__(
        self, tools: Tools, grants: Grants, watch: HostWatch, ending: SessionEnding, wake_up: WakeUp, new_first: bool
    ) -> None:
        self._tools = tools
        self._workers = tools.settings.workers
        self._grants = grants
        self._watch = watch
        self._ending = ending
        self._wake_up = wake_up
        self._new_first = new_first
        self._held_bytes = 0
        self.tasks: dict[asyncio.Task[None], Slot] = {}
        self.uncommitted_bytes = 0
        self.unanswered = 0

    def has_worker(self) -> bool:
        """Whether another request may be sent."""
        return len(self.tasks) < self._workers

    def has_room(self, lane: Lane) -> bool:
        """Whether the answer to the next request of this lane may lie in memory until its turn.

        The front of a lane may always go. Where new comes first, one request goes after the other.
        """
        if self._new_first:
            return lane.slots[0] is lane.todo[0] and not lane.leaving
        return self._held_bytes < HELD_BYTES or lane.slots[0] is lane.todo[0]

    def send(self, lane: Lane, slot: Slot) -> None:
        """Ask for an entry. Its slot gets the turn, or goes back into its lane."""
        task = asyncio.get_running_loop().create_task(self._visit(slot))
        self.tasks[task] = slot
        lane.in_flight += 1
        task.add_done_callback(functools.partial(self._done, lane))

    async def _visit(self, slot: Slot) -> None:
        turn = await visit(slot.entry, self._tools)
        if isinstance(turn, Unanswered):
            # Its URL is as if it had never been asked for; the request counts in the budget all the same.
            self.unanswered += slot.entry.kind not in control.KINDS
            self._grants.use_up(slot)
            self._watch.note_unanswered(turn)
        else:
            slot.turn = turn

    def _done(self, lane: Lane, task: asyncio.Task[None]) -> None:
        slot = self.tasks.pop(task)
        lane.in_flight -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ending.fail(error, f"{slot.entry.request_url}: {error!r}")
        elif slot.turn is None:
            lane.put_back(slot)
        if isinstance(slot.turn, FinishedVisit):
            self._held_bytes += _memory_bytes(slot.turn)
            self.uncommitted_bytes += _payload_bytes(slot.turn)
            self._watch.note_answer(slot.turn)
        self._wake_up.now()

    def release(self, turn: Turn) -> None:
        """A turn is committed, and its answer needs no memory any more."""
        if isinstance(turn, FinishedVisit):
            self._held_bytes -= _memory_bytes(turn)
            self.uncommitted_bytes -= _payload_bytes(turn)

    def cancel(self) -> None:
        """Break off what is under way."""
        for task in self.tasks:
            task.cancel()


def _payload_bytes(visit: FinishedVisit) -> int:
    """What an answer counts for the limit of bytes."""
    return len(visit.record.payload) if visit.record else 0


def _memory_bytes(visit: FinishedVisit) -> int:
    """The memory that an answer takes while it waits for its turn."""
    return _payload_bytes(visit) + len(visit.reading.text)
