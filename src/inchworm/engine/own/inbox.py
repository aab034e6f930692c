"""The inbox of a crawl's owner: what other processes ask of the session that works on it."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.own.orders import add_order, retry_order
from inchworm.engine.own.owner import CrawlOwner
from inchworm.engine.session.loop import Edit
from inchworm.model import CheckpointType, EndedBy, FoundUrl, Json, Kind, Source
from inchworm.ports import Clock
from inchworm.store.home.inbox import OwnerRequests

_ENDING = {"pause": EndedBy.PAUSED, "cancel": EndedBy.CANCELLED}


class Inbox:
    """Orders to one session: to stop, to retry what failed, to add a URL, to make a checkpoint."""

    def __init__(self, requests: OwnerRequests, crawl_id: str, owner: CrawlOwner, ledger: Ledger, clock: Clock) -> None:
        self._requests = requests
        self._crawl_id = crawl_id
        self._owner = owner
        self._ledger = ledger
        self._clock = clock

    def drop_old_orders(self, carried_out: int) -> None:
        """Whoever asked an earlier session to stop did not mean this one; and what was committed is done.
        `carried_out`: up to which request."""
        for asked in self._requests.unanswered(self._crawl_id):
            if asked.verb in _ENDING or asked.inbox_id <= carried_out:
                self._answer(asked.inbox_id, "nothing is left to do")

    def poll(self) -> EndedBy | Edit | None:
        """The next order: how the session is to end, or something to be done between two commits."""
        for asked in self._requests.unanswered(self._crawl_id):
            if asked.verb in _ENDING:
                self._answer(asked.inbox_id, "stopping")
                return _ENDING[asked.verb]
            orders = {"retry": self._retry, "add": self._add, "checkpoint": self._checkpoint}
            return functools.partial(orders[asked.verb], asked.inbox_id, asked.argument)
        return None

    def _retry(self, inbox_id: int, argument: Mapping[str, Json]) -> Committed:
        order = retry_order(argument)
        committed = self._ledger.edits.reopen(order.kind, order.url, inbox_id)
        self._answer(inbox_id, "reopened")
        return committed

    def _add(self, inbox_id: int, argument: Mapping[str, Json]) -> Committed:
        order = add_order(argument)
        found = FoundUrl(order.url, order.request_url, Kind.PAGE, Source.MANUAL)
        committed = self._ledger.edits.add(found, order.depth, inbox_id)
        self._answer(inbox_id, "added")
        return committed

    def _checkpoint(self, inbox_id: int, _: Mapping[str, Json]) -> None:
        made = self._owner.checkpoint(CheckpointType.MANUAL, self._clock.now_ms())
        self._answer(inbox_id, str(made.number))

    def _answer(self, inbox_id: int, answer: str) -> None:
        self._requests.answer(inbox_id, answer, self._clock.now_ms())
