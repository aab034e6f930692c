"""Delivering: others are told of runs that are complete."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from inchworm import fault
from inchworm.app.read.changes import Changes
from inchworm.app.read.notifications import NotificationDetail, Notifications, unknown
from inchworm.app.read.runs import Runs, has_changes
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.engine.caller import Hooks
from inchworm.errors import InchwormError, WrongUse
from inchworm.fetch.guard import is_public
from inchworm.model import CrawlInfo, RunInfo, RunState
from inchworm.rules.change.conditions import Conditions
from inchworm.rules.change.groups import ModifiedGroup
from inchworm.rules.schedule import redelivery, repetition
from inchworm.rules.schedule.redelivery import DeliveryTry
from inchworm.rules.schedule.repetition import Occasion
from inchworm.rules.words.json_form import json_object
from inchworm.sink.servers import notify
from inchworm.store.home.outbox import (
    EVERYTHING,
    ClaimedDelivery,
    DeliveryShare,
    DeliveryState,
    Outbox,
    OutgoingMessage,
    RunPromise,
    RunPromises,
    TryOutcome,
)

AT_ONCE = 16
"""How many deliveries one sender tries at the same time."""

SECRET_FILE = "notify-secret"  # noqa: S105 - the name of a file
SECRET_VARIABLE = notify.SECRET_VARIABLE
_LEAST_NAP_SECONDS = 1.0
_CHANGES = ("new", "modified", "deleted", "unknown")
_COUNTED = (*_CHANGES, "unchanged", "pages", "duplicates", "failed", "requests", "bytes", "saved_bytes")


def secret_of(folder: Path, path: Path | None = None) -> bytes:
    """What messages of a home are signed with: from this file, else from the one in it, else from the environment."""
    own = folder / SECRET_FILE
    return notify.read_secret(path or (own if own.exists() else None), os.environ)


class Sent(NamedTuple):
    """What came of trying one delivery; its address is masked."""

    delivery_id: int
    address: str
    result: DeliveryTry
    outcome: TryOutcome


class Deliverer:
    """Sends messages to others."""

    def __init__(self, workspace: Workspace, runs: Runs, changes: Changes, notifications: Notifications) -> None:
        self._workspace = workspace
        self._runs = runs
        self._changes = changes
        self._notifications = notifications

    def replay(self, delivery_id: int) -> NotificationDetail:
        """Have a delivery sent again, settled or not: it is due now, under the same event id."""
        if not self._notifications.outbox.replay(delivery_id, self._workspace.clock.now_ms()):
            raise unknown(delivery_id)
        return self._notifications.one(delivery_id)

    async def due(self, who: str) -> int:
        """Try everything that is due, all of it at the same time; how many tries that were."""
        return len(await self.send_due(who))

    async def send_due(self, who: str, word: str | None = None, secret_file: Path | None = None) -> list[Sent]:
        """Try what is due, of one crawl or of all, signed with the secret in this file or as it was meant to be; what
        came of each."""
        secret_of(self._workspace.folder, secret_file)  # What is wrong with it is said before anything is tried.
        share = DeliveryShare(self._workspace.find(word).crawl_id) if word is not None else EVERYTHING
        return await Sender(self._workspace, share, secret_file).send_due(who)

    def prune(self) -> int:
        """Forget what has been settled for a month; how many."""
        return self._notifications.outbox.prune(self._workspace.clock.now_ms())

    def is_wanted(self, crawl: CrawlInfo, current: RunInfo, conditions: Conditions) -> bool:
        """Whether what a run found is what somebody wants to be told of."""
        if conditions.hold_by_number(current.counters):
            return True
        if not conditions.ask_for_text or current.parent is None:
            return False
        return conditions.hold_by_text(self._changes.texts_of(crawl, current.parent, current.number))

    def message(self, crawl: CrawlInfo, current: RunInfo) -> notify.Message:
        """The message that tells of a complete run: the same, under the same event id, whenever it is made."""
        found = json_object(self._runs.outcome(crawl, current))
        changes: dict[str, Sequence[str]] = {}
        groups: Sequence[ModifiedGroup] = ()
        if current.parent is not None:
            compared = self._changes.compare(crawl.crawl_id, current.parent, current.number, notify.MOST_GROUPS)
            groups = compared.modified_groups
            changes = {kind: getattr(compared, f"{kind}_documents") for kind in _CHANGES}
        rest = {name: value for name, value in found.items() if name not in (*_COUNTED, "pending", "ended_at")}
        whole = {
            "event": "run_completed",
            **rest,
            "counts": {name: found[name] for name in _COUNTED},
            "finished_at": found["ended_at"],
        }
        event_id = notify.event_id(crawl.crawl_id, current.number, current.ended_ms or 0)
        return notify.message(whole, changes, event_id, groups)


class Sender:
    """Tries deliveries, in rounds, and writes down what came of each as soon as it is known."""

    def __init__(
        self,
        workspace: Workspace,
        share: DeliveryShare = EVERYTHING,
        secret_file: Path | None = None,
        patience: notify.Patience = notify.USUAL,
    ) -> None:
        self._folder = workspace.folder
        self._clock = workspace.clock
        self._outbox = Outbox(workspace.home)
        self._share = share
        self._secret_file = secret_file
        self._patience = patience
        self._has_claimed = False

    async def send_due(self, who: str) -> list[Sent]:
        """One round: every delivery of our share that is due by now and that nobody else is at is tried once."""
        # Two rounds of one sender are two senders: neither may write down what the other found out.
        who = f"{who} {uuid.uuid4().hex[:8]}"
        share = self._share._replace(until_ms=self._clock.now_ms())
        sent: list[Sent] = []
        try:
            ended = await asyncio.gather(
                *(self._work(who, share, sent) for _ in range(AT_ONCE)), return_exceptions=True
            )
        finally:
            if self._has_claimed:
                self._outbox.release(who)
        for error in filter(None, ended):
            raise error
        return sent

    async def _work(self, who: str, share: DeliveryShare, sent: list[Sent]) -> None:
        """Claim one delivery after the other: what is claimed and has to wait for its turn might be taken for left."""
        while claimed := self._outbox.claim(who, self._clock.now_ms(), 1, share):
            self._has_claimed = True
            done = await self._send(who, *claimed)
            sent += [done] if done else []

    async def _send(self, who: str, claimed: ClaimedDelivery) -> Sent | None:
        result = await self._try(claimed.outgoing)
        fault.point("before_recording")
        outcome = self._outbox.record(claimed.delivery_id, who, result, self._clock.now_ms())
        address = notify.masked(claimed.outgoing.address)
        return Sent(claimed.delivery_id, address, result, outcome) if outcome else None

    async def _try(self, out: OutgoingMessage) -> DeliveryTry:
        meant = Path(out.secret_file) if out.secret_file else None
        try:
            secret = secret_of(self._folder, self._secret_file or meant)
        except WrongUse as error:
            # Sent unsigned it would be refused, perhaps for good.
            return DeliveryTry(0, error.message.rstrip("."))
        may_dial = None if out.allow_private else is_public
        notifier = notify.Notifier((), secret, self._patience, self._clock.now_ms, may_dial)
        return await notifier.try_once(out.address, notify.Message(out.event_id, out.body, out.title, out.text))

    def next_due(self) -> int | None:
        """When there is something to try next; None when nothing waits."""
        return self._outbox.next_due(self._share)


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who wants to be told of a crawl's runs, and of which."""

    crawl_id: str
    addresses: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    occasion: Occasion = Occasion.CHANGES
    secret_file: Path | None = None
    allow_private: bool = True
    conditions: Conditions = dataclasses.field(default_factory=Conditions)


class RunAnnouncer:
    """Tells whoever wants to know of complete runs. A failure is said, and changes nothing.

    A run is promised when its session starts, and told of when it is complete, by this process or by a later one.
    Only what this crawl has to say at the addresses that were named is sent here.
    """

    def __init__(
        self, workspace: Workspace, deliver: Deliverer, subscription: Subscription, say: Callable[[str], None]
    ) -> None:
        self._workspace, self._deliver = workspace, deliver
        self._outbox, self._promises = Outbox(workspace.home), RunPromises(workspace.home)
        self._subscription = subscription
        self._say = say
        secret = (
            secret_of(workspace.folder, subscription.secret_file)
            if subscription.addresses or subscription.secret_file
            else b""
        )
        # What is wrong with an address or the secret is found out here.
        self.is_unsigned = notify.Notifier(subscription.addresses, secret).is_unsigned
        self._sender = Sender(
            workspace, DeliveryShare(subscription.crawl_id, subscription.addresses), subscription.secret_file
        )
        self._who = f"repeat {os.getpid()}"

    def promising(self, hooks: Hooks) -> Hooks:
        """The same hooks, but that the run is promised before anything else."""
        if not self._subscription.addresses:
            return hooks

        def started(crawl: CrawlInfo, current: RunInfo, session: int) -> None:
            now_ms = self._workspace.clock.now_ms()
            self._promises.add(crawl.crawl_id, current.number, self._subscription.addresses, now_ms)
            if hooks.started:
                hooks.started(crawl, current, session)

        return dataclasses.replace(hooks, started=started)

    async def catch_up(self) -> None:
        """What earlier processes left: runs that nobody was told of, messages that have not arrived."""
        with self._saying_errors():
            self._deliver.prune()
        self.write_down()
        await self.try_again()

    async def tell(self) -> None:
        """Tell of what is complete, with the usual patience."""
        self.write_down()
        with self._saying_errors():
            await self._persist()

    def write_down(self) -> None:
        """Turn promises into messages: from then on anybody can send them."""
        with self._saying_errors():
            self._write_down()

    async def try_again(self) -> None:
        """One round of what did not arrive before."""
        with self._saying_errors():
            for sent in await self._sender.send_due(self._who):
                if sent.outcome.state is DeliveryState.DELIVERED:
                    self._say(f"The notification to {sent.address} has arrived now.")
                elif sent.outcome.state is DeliveryState.FAILED:
                    self._say(_trouble(sent))

    def seconds_until_due(self) -> float:
        """How long until there is something to try again."""
        due_ms = self._sender.next_due() if self._subscription.addresses else None
        if due_ms is None:
            return math.inf
        return max(_LEAST_NAP_SECONDS, (due_ms - self._workspace.clock.now_ms()) / 1000)

    @contextlib.contextmanager
    def _saying_errors(self) -> Iterator[None]:
        try:
            yield
        except InchwormError as error:
            self._say(f"Notifications were not sent: {error.message}")

    def _write_down(self) -> None:
        outbox, crawl = self._outbox, self._workspace.find(self._subscription.crawl_id)
        mine = [one for one in self._promises.of_crawl(crawl.crawl_id) if one.address in self._subscription.addresses]
        if not mine:
            return
        with self._workspace.reading(crawl) as store:
            runs = {one.number: one for one in store.runs.list()}
        kept = [one for one in mine if not run.is_open(runs.get(one.number))]
        outgoing = self._outgoing(crawl, kept, runs)
        with self._workspace.home.writing() as db:
            outbox.enqueue(db, outgoing)
            self._promises.keep(db, crawl.crawl_id, kept)

    def _outgoing(
        self, crawl: CrawlInfo, kept: Sequence[RunPromise], runs: Mapping[int, RunInfo]
    ) -> list[OutgoingMessage]:
        made: list[OutgoingMessage] = []
        for number, current in runs.items():
            addresses = [one.address for one in kept if one.number == number]
            if addresses and self._is_told(crawl, current):
                message = self._deliver.message(crawl, current)
                made += [self._addressed(message, address) for address in addresses]
        return made

    def _addressed(self, message: notify.Message, address: str) -> OutgoingMessage:
        file = self._subscription.secret_file
        return OutgoingMessage(
            message.event_id,
            self._subscription.crawl_id,
            address,
            message.body,
            message.title,
            message.text,
            self._workspace.clock.now_ms(),
            secret_file=str(file.resolve()) if file else "",
            allow_private=self._subscription.allow_private,
        )

    def _is_told(self, crawl: CrawlInfo, current: RunInfo) -> bool:
        is_complete = current.state is RunState.COMPLETED
        is_occasion = repetition.is_told(self._subscription.occasion, is_complete, has_changes(current))
        return is_occasion and self._deliver.is_wanted(crawl, current, self._subscription.conditions)

    async def _persist(self) -> None:
        """Rounds, as long as something may still arrive while one is willing to wait. What did not is said once."""
        clock, latest = self._workspace.clock, dict[int, Sent]()
        deadline = clock.monotonic() + notify.USUAL.all
        while True:
            now_ms = clock.now_ms()
            tried = {one.delivery_id: one for one in await self._sender.send_due(self._who)}
            # What was due and is not among them, another sender has taken on.
            latest = {id_: one for id_, one in latest.items() if _next(one) > now_ms} | tried
            seconds = (min(map(_next, latest.values()), default=math.inf) - clock.now_ms()) / 1000
            if clock.monotonic() + seconds > deadline:
                break
            await asyncio.sleep(max(_LEAST_NAP_SECONDS, seconds))
        for one in latest.values():
            if not one.result.has_arrived:
                self._say(_trouble(one))


def _next(sent: Sent) -> float:
    """When it is tried again, if that is worth waiting for."""
    due_ms = sent.outcome.due_ms
    return due_ms if due_ms is not None and redelivery.may_pass(sent.result.status) else math.inf


def _trouble(sent: Sent) -> str:
    is_waiting = sent.outcome.state is DeliveryState.WAITING
    then = "It will be tried again" if is_waiting else "It is not tried any more"
    return (
        f"The notification to {sent.address} did not arrive: {sent.result.trouble}."
        f" {then}: inchworm notifications --show {sent.delivery_id}"
    )
