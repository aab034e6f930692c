"""home.db: messages to others, each until it has arrived at one address or nobody tries any more.

A message is written down before it is sent, and what came of a try right after it: whoever dies in between leaves a
delivery that waits, and the next sender goes on with it. A sender claims a delivery before it tries; a claim that is
minutes old belongs to somebody who is gone. So a message arrives at least once, and twice only when an answer was lost;
its event id is the same every time.

A run that is to be told of is promised when its session starts, because its end is written to another file: whoever
dies after that end and before the message leaves the promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from inchworm.rules.schedule import redelivery
from inchworm.rules.schedule.redelivery import DeliveryTry, TriedDelivery
from inchworm.store.database import Database, Row
from inchworm.store.home.home import Home

STALE_MS = 120_000
"""How old a claim is when nobody can be at it any more; a try takes a minute at most."""

KEPT_MS = 30 * 86_400_000
"""How long what is settled is kept."""

_PROMISED = "promised"


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to one address. The address may hold secrets, so it does not show up where this is printed.
    `secret_file`: whose content it is signed with, whoever sends it; empty: the usual secret. Unless `allow_private`,
    it never goes to a private address, because whoever named it may not reach one."""

    event_id: str
    crawl_id: str
    address: str = field(repr=False)
    body: bytes = field(repr=False)
    title: str
    text: str = field(repr=False)
    created_ms: int
    job_id: str | None = None
    secret_file: str = ""
    allow_private: bool = True


class ClaimedDelivery(NamedTuple):
    """A delivery that one sender may try."""

    delivery_id: int
    outgoing: OutgoingMessage


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a delivery stands. `status` and `trouble` are those of its last try."""

    delivery_id: int
    event_id: str
    crawl_id: str
    job_id: str | None
    address: str = field(repr=False)
    state: DeliveryState
    tries: int
    due_ms: int
    created_ms: int
    settled_ms: int | None
    status: int
    trouble: str


class RecordedTry(NamedTuple):
    """One try as the log has it."""

    number: int
    at_ms: int
    status: int
    trouble: str


class TryOutcome(NamedTuple):
    """What a try made of a delivery; `due_ms`: when it is tried again."""

    state: DeliveryState
    due_ms: int | None = None


class RunPromise(NamedTuple):
    """A run of this number, once it is complete, is to be told of at this address."""

    number: int
    address: str


class DeliveryShare(NamedTuple):
    """Which deliveries a sender takes on: those of one crawl, those to some addresses, or all. `until_ms`: only those
    that were due by then, so that a round of sending ends."""

    crawl_id: str | None = None
    addresses: Sequence[str] | None = None
    until_ms: int | None = None


EVERYTHING = DeliveryShare()


class Outbox:
    """The deliveries of one home. Every process of the home may put some in and send some."""

    def __init__(self, home: Home, stale_ms: int = STALE_MS) -> None:
        self._home = home
        self._stale_ms = stale_ms

    def enqueue(self, db: Database, deliveries: Iterable[OutgoingMessage]) -> None:
        """Put deliveries into the open transaction of `home.writing()`. One that is there already stays as it is."""
        db.executemany(
            f"INSERT INTO delivery ({_OUTGOING}, state, due_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (event_id, address) DO NOTHING",
            [(*astuple(_turned(one)), DeliveryState.WAITING, one.created_ms) for one in deliveries],
        )

    # Sending

    def claim(self, who: str, now_ms: int, limit: int, share: DeliveryShare = EVERYTHING) -> list[ClaimedDelivery]:
        """Deliveries that are due and nobody is at, from now on claimed by this sender; the longest due first."""
        where, values = self._claimable(now_ms, share)
        with self._home.reading() as db:
            # Senders look often and mostly in vain, which need not keep anybody from writing.
            if not db.execute(f"SELECT 1 FROM delivery WHERE {where} LIMIT 1", values).fetchone():
                return []
        with self._home.writing() as db:
            rows = db.execute(
                f"SELECT delivery_id, {_OUTGOING} FROM delivery WHERE {where} ORDER BY due_ms, delivery_id LIMIT ?",
                (*values, limit),
            ).fetchall()
            db.executemany(
                "UPDATE delivery SET claimed = ?, claimed_ms = ? WHERE delivery_id = ?",
                [(who, now_ms, row[0]) for row in rows],
            )
        return [ClaimedDelivery(delivery_id, _turned(OutgoingMessage(*rest))) for delivery_id, *rest in rows]

    def _claimable(self, now_ms: int, share: DeliveryShare) -> tuple[str, list[object]]:
        """A claim or a wait that reaches further than any can was made before the clock was set back."""
        due_ms = now_ms if share.until_ms is None else min(now_ms, share.until_ms)
        where, values = _of_share(share)
        where += " AND (due_ms <= ? OR due_ms > ?) AND (claimed = '' OR claimed_ms <= ? OR claimed_ms > ?)"
        stale = (now_ms - self._stale_ms, now_ms + self._stale_ms)
        return where, [*values, due_ms, now_ms + redelivery.LONGEST_MS, *stale]

    def record(self, delivery_id: int, who: str, result: DeliveryTry, now_ms: int) -> TryOutcome | None:
        """Write down what came of a try; None, and nothing is written, when another sender has taken over."""
        with self._home.writing() as db:
            row = db.execute(
                "SELECT tries, COALESCE(settled_ms, created_ms) FROM delivery"
                " WHERE delivery_id = ? AND claimed = ? AND state = 'waiting'",
                (delivery_id, who),
            ).fetchone()
            if row is None:
                return None
            tries, since_ms = row
            outcome = _outcome(
                TriedDelivery(delivery_id, since_ms, _statuses(db, delivery_id, since_ms)), result, now_ms
            )
            db.execute(
                "INSERT INTO delivery_try (delivery_id, number, at_ms, status, trouble) VALUES (?, ?, ?, ?, ?)",
                (delivery_id, tries + 1, now_ms, result.status, result.trouble),
            )
            settled_ms = None if outcome.state is DeliveryState.WAITING else now_ms
            db.execute(
                "UPDATE delivery SET state = ?, tries = tries + 1, due_ms = COALESCE(?, due_ms), settled_ms = COALESCE(?, settled_ms),"
                " claimed = '', claimed_ms = NULL WHERE delivery_id = ?",
                (outcome.state, outcome.due_ms, settled_ms, delivery_id),
            )
        return outcome

    def release(self, who: str) -> None:
        """Give up what this sender has claimed and not recorded: others may try it at once."""
        with self._home.writing() as db:
            db.execute(
                "UPDATE delivery SET claimed = '', claimed_ms = NULL WHERE state = 'waiting' AND claimed = ?", (who,)
            )

    def next_due(self, share: DeliveryShare = EVERYTHING) -> int | None:
        """When there is something to send next; None when nothing waits. What is claimed may be left over by then."""
        where, values = _of_share(share)
        query = (
            "SELECT MIN(CASE WHEN claimed = '' THEN due_ms ELSE GREATEST(due_ms, claimed_ms + ?) END)"
            f" FROM delivery WHERE {where}"
        )
        with self._home.reading() as db:
            found: int | None = db.execute(query, (self._stale_ms, *values)).fetchone()[0]
        return found

    # Looking

    def deliveries(
        self, crawl_id: str | None = None, state: str | None = None, after: int | None = None, limit: int = 100
    ) -> list[Delivery]:
        """The delivery log, newest first: of one crawl or all, in one state or any, after the id that was seen last."""
        given = {"crawl_id = :crawl": crawl_id, "state = :state": state, "d.delivery_id < :after": after}
        where = " AND ".join(["state <> :promised", *(part for part, value in given.items() if value is not None)])
        values = {"promised": _PROMISED, "crawl": crawl_id, "state": state, "after": after, "limit": limit}
        return self._select(f"WHERE {where} ORDER BY d.delivery_id DESC LIMIT :limit", values)

    def delivery(self, delivery_id: int) -> Delivery | None:
        values = {"id": delivery_id, "promised": _PROMISED}
        found = self._select("WHERE d.delivery_id = :id AND state <> :promised", values)
        return found[0] if found else None

    def _select(self, rest: str, values: Mapping[str, object]) -> list[Delivery]:
        with self._home.reading() as db:
            return [_delivery(row) for row in db.execute(f"{_SELECT} {rest}", values)]

    def body(self, delivery_id: int) -> bytes:
        with self._home.reading() as db:
            row = db.execute("SELECT body FROM delivery WHERE delivery_id = ?", (delivery_id,)).fetchone()
        return bytes(row[0]) if row else b""

    def tries(self, delivery_id: int) -> list[RecordedTry]:
        query = "SELECT number, at_ms, status, trouble FROM delivery_try WHERE delivery_id = ? ORDER BY number"
        with self._home.reading() as db:
            return [RecordedTry(*row) for row in db.execute(query, (delivery_id,))]

    # Again, and no more

    def replay(self, delivery_id: int, now_ms: int) -> bool:
        """A settled delivery waits again, with the whole patience; one that waits is due now. False: there is none.
        The event id and the body stay as they are, and the tries are counted on."""
        with self._home.writing() as db:
            # For one that waits again, `settled_ms` is when it began to.
            changed = db.execute(
                "UPDATE delivery SET due_ms = :now, settled_ms = CASE WHEN state = 'waiting' THEN settled_ms ELSE :now END,"
                " state = 'waiting' WHERE delivery_id = :id AND state <> :promised",
                {"now": now_ms, "id": delivery_id, "promised": _PROMISED},
            ).rowcount
        return changed == 1

    def prune(self, now_ms: int, kept_ms: int = KEPT_MS) -> int:
        """Forget deliveries that have been settled for so long, with their tries; how many."""
        with self._home.writing() as db:
            old = db.execute(
                "SELECT delivery_id FROM delivery WHERE state IN ('delivered', 'failed') AND settled_ms <= ?",
                (now_ms - kept_ms,),
            ).fetchall()
            db.executemany("DELETE FROM delivery_try WHERE delivery_id = ?", old)
            db.executemany("DELETE FROM delivery WHERE delivery_id = ?", old)
        return len(old)


class RunPromises:
    """Runs that are to be told of, each until it is complete and its messages are in the outbox."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def add(self, crawl_id: str, number: int, addresses: Iterable[str], now_ms: int) -> None:
        """Remember that a run is to be told of, when it will be complete."""
        named = f"{crawl_id} {number}"
        with self._home.writing() as db:
            db.executemany(
                f"INSERT INTO delivery ({_OUTGOING}, state, due_ms) VALUES (?, ?, ?, '', '', '', ?, NULL, '', 0, ?, 0)"
                " ON CONFLICT (event_id, address) DO NOTHING",
                [(named, crawl_id, address, now_ms, _PROMISED) for address in addresses],
            )

    def of_crawl(self, crawl_id: str) -> list[RunPromise]:
        query = "SELECT event_id, address FROM delivery WHERE crawl_id = ? AND state = ? ORDER BY delivery_id"
        with self._home.reading() as db:
            rows = db.execute(query, (crawl_id, _PROMISED)).fetchall()
        return [RunPromise(int(named.rpartition(" ")[2]), address) for named, address in rows]

    def keep(self, db: Database, crawl_id: str, promises: Iterable[RunPromise]) -> None:
        """Strike promises off in the open transaction that puts in what was promised."""
        db.executemany(
            "DELETE FROM delivery WHERE event_id = ? AND address = ? AND state = ?",
            [(f"{crawl_id} {one.number}", one.address, _PROMISED) for one in promises],
        )


# In the order of the fields of `OutgoingMessage`.
_OUTGOING = "event_id, crawl_id, address, body, title, text, created_ms, job_id, secret_file, guarded"
_SELECT = (
    "SELECT d.delivery_id, event_id, crawl_id, job_id, address, state, tries, due_ms, created_ms, settled_ms,"
    " COALESCE(t.status, 0), COALESCE(t.trouble, '') FROM delivery d"
    " LEFT JOIN delivery_try t ON t.delivery_id = d.delivery_id AND t.number = d.tries"
)


def _turned(one: OutgoingMessage) -> OutgoingMessage:
    """For the way in and out: the column `guarded` holds the opposite of `allow_private`, and always has."""
    return replace(one, allow_private=not one.allow_private)


def _delivery(row: Row) -> Delivery:
    found = Delivery(*row)
    state = DeliveryState(found.state)
    # What waits once more was settled before, which is over.
    return replace(found, state=state, settled_ms=None if state is DeliveryState.WAITING else found.settled_ms)


def _of_share(share: DeliveryShare) -> tuple[str, list[object]]:
    where = "state = 'waiting'"
    values: list[object] = []
    if share.crawl_id is not None:
        where += " AND crawl_id = ?"
        values.append(share.crawl_id)
    if share.addresses is not None:
        where += " AND address = ANY (?)"
        values.append(list(share.addresses))
    return where, values


def _statuses(db: Database, delivery_id: int, since_ms: int) -> tuple[int, ...]:
    query = "SELECT status FROM delivery_try WHERE delivery_id = ? AND at_ms >= ? ORDER BY number"
    return tuple(status for (status,) in db.execute(query, (delivery_id, since_ms)))


def _outcome(tried: TriedDelivery, result: DeliveryTry, now_ms: int) -> TryOutcome:
    if result.has_arrived:
        return TryOutcome(DeliveryState.DELIVERED)
    due_ms = redelivery.next_ms(tried, result, now_ms)
    return TryOutcome(DeliveryState.FAILED) if due_ms is None else TryOutcome(DeliveryState.WAITING, due_ms)
