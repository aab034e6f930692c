"""Notifications: the log of what was sent to others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inchworm.app.workspace import Workspace
from inchworm.errors import Unknown, WrongUse
from inchworm.rules.words.times import iso
from inchworm.sink.servers import notify
from inchworm.store.home.outbox import Delivery, DeliveryState, Outbox

LIMIT = 100


class Notifications:
    """What was sent to others. Addresses are only ever shown masked."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.outbox = Outbox(workspace.home)

    def listed(
        self, word: str | None = None, state: str | None = None, after: int | None = None, limit: int = LIMIT
    ) -> list[dict[str, Any]]:
        """The delivery log, newest first: of one crawl or all, in one state or any, after the id that was seen last."""
        if state is not None and state not in list(DeliveryState):
            raise WrongUse(f"No notification is ever {state!r}.", f"Known states: {', '.join(DeliveryState)}.")
        crawl_id = self._workspace.find(word).crawl_id if word is not None else None
        names = self._names()
        return [_shown(one, names) for one in self.outbox.deliveries(crawl_id, state, after, limit)]

    def one(self, delivery_id: int) -> dict[str, Any]:
        """One delivery with its body and every try."""
        outbox = self.outbox
        if (found := outbox.delivery(delivery_id)) is None:
            raise unknown(delivery_id)
        log = [
            {"number": one.number, "at": iso(one.at_ms), "status": one.status, "trouble": one.trouble}
            for one in outbox.tries(delivery_id)
        ]
        return {**_shown(found, self._names()), "body": json.loads(outbox.body(delivery_id)), "log": log}

    def _names(self) -> dict[str, str]:
        return {crawl.crawl_id: crawl.name for crawl in self._workspace.home.crawls()}


def _shown(one: Delivery, names: Mapping[str, str]) -> dict[str, Any]:
    is_waiting = one.state is DeliveryState.WAITING
    return {
        "id": one.delivery_id,
        "event_id": one.event_id,
        "crawl_id": one.crawl_id,
        "crawl": names.get(one.crawl_id),
        "job_id": one.job_id,
        "address": notify.masked(one.address),
        "state": one.state.value,
        "tries": one.tries,
        "status": one.status,
        "trouble": one.trouble,
        "created_at": iso(one.created_ms),
        "next_try_at": iso(one.due_ms) if is_waiting else None,
        "settled_at": iso(one.settled_ms) if one.settled_ms is not None else None,
    }


def unknown(delivery_id: int) -> Unknown:
    return Unknown(f"There is no notification {delivery_id}.", "`inchworm notifications` lists them.")
