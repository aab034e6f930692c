"""Notifications: the log of what was sent to others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm.app.workspace import Workspace
from inchworm.errors import Unknown, WrongUse
from inchworm.model import Json
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.sink.servers import notify
from inchworm.store.home.outbox import Delivery, DeliveryState, Outbox

LIMIT = 100


@dataclass(frozen=True, slots=True)
class NotificationLine:
    """A message to one address. `status` and `trouble` are those of its last try."""

    id: int
    event_id: str
    crawl_id: str
    crawl: str | None
    job_id: str | None
    address: str
    state: DeliveryState
    tries: int
    status: int
    trouble: str
    created_at: str
    next_try_at: str | None
    settled_at: str | None


class NotificationTry(NamedTuple):
    """One try to deliver a message."""

    number: int
    at: str
    status: int
    trouble: str


@dataclass(frozen=True, slots=True)
class NotificationDetail:
    """A message with its body and every try."""

    line: NotificationLine = field(metadata=FLAT)
    body: Json
    log: tuple[NotificationTry, ...]


class Notifications:
    """What was sent to others. Addresses are only ever shown masked."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.outbox = Outbox(workspace.home)

    def listed(
        self, word: str | None = None, state: str | None = None, after: int | None = None, limit: int = LIMIT
    ) -> list[NotificationLine]:
        """The delivery log, newest first: of one crawl or all, in one state or any, after the id that was seen last."""
        if state is not None and state not in list(DeliveryState):
            raise WrongUse(f"No notification is ever {state!r}.", f"Known states: {', '.join(DeliveryState)}.")
        crawl_id = self._workspace.find(word).crawl_id if word is not None else None
        names = self._names()
        return [_line(one, names) for one in self.outbox.deliveries(crawl_id, state, after, limit)]

    def one(self, delivery_id: int) -> NotificationDetail:
        """One delivery with its body and every try."""
        outbox = self.outbox
        if (found := outbox.delivery(delivery_id)) is None:
            raise unknown(delivery_id)
        log = tuple(
            NotificationTry(one.number, iso(one.at_ms), one.status, one.trouble) for one in outbox.tries(delivery_id)
        )
        return NotificationDetail(_line(found, self._names()), json.loads(outbox.body(delivery_id)), log)

    def _names(self) -> dict[str, str]:
        return {crawl.crawl_id: crawl.name for crawl in self._workspace.crawls.all()}


def _line(one: Delivery, names: Mapping[str, str]) -> NotificationLine:
    is_waiting = one.state is DeliveryState.WAITING
    return NotificationLine(
        id=one.delivery_id,
        event_id=one.event_id,
        crawl_id=one.crawl_id,
        crawl=names.get(one.crawl_id),
        job_id=one.job_id,
        address=notify.masked(one.address),
        state=one.state,
        tries=one.tries,
        status=one.status,
        trouble=one.trouble,
        created_at=iso(one.created_ms),
        next_try_at=iso(one.due_ms) if is_waiting else None,
        settled_at=iso(one.settled_ms) if one.settled_ms is not None else None,
    )


def unknown(delivery_id: int) -> Unknown:
    return Unknown(f"There is no notification {delivery_id}.", "`inchworm notifications` lists them.")
