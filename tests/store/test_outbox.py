"""home.db: messages to others, who sends them, what came of it, and what is never lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inchworm.rules.schedule import redelivery
from inchworm.rules.schedule.redelivery import GIVEN_UP_MS, LONGEST_MS, DeliveryTry
from inchworm.store.home.home import Home
from inchworm.store.home.outbox import (
    KEPT_MS,
    STALE_MS,
    DeliveryShare,
    DeliveryState,
    Outbox,
    OutgoingMessage,
    RunPromise,
    RunPromises,
    TryOutcome,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000
HOOK = "https://jo:XXXX@example.org/hook?key=XXXX"
OTHER = "https://example.com/"
ARRIVED, DOWN, REFUSED = DeliveryTry(200), DeliveryTry(0, "no connection"), DeliveryTry(404, "it answered 404")
WAITING, DELIVERED, FAILED = DeliveryState.WAITING, DeliveryState.DELIVERED, DeliveryState.FAILED


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with closing(Home(tmp_path)) as made:
        yield made


@pytest.fixture
def outbox(home: Home) -> Outbox:
    return Outbox(home)


@pytest.fixture
def promises(home: Home) -> RunPromises:
    return RunPromises(home)


def letter(event_id: str = "e1", **values: Any) -> OutgoingMessage:
    usual = {"crawl_id": "c1", "address": HOOK, "body": b"{}", "title": "title", "text": "text", "created_ms": NOW}
    return OutgoingMessage(event_id=event_id, **{**usual, **values})


def enqueue(home: Home, *letters: OutgoingMessage) -> None:
    with home.writing() as db:
        Outbox(home).enqueue(db, letters)


def only(outbox: Outbox) -> Any:
    (found,) = outbox.deliveries()
    return found


def send(outbox: Outbox, result: DeliveryTry, now_ms: int, who: str = "me") -> TryOutcome | None:
    """Claim the one delivery that is due, and record this."""
    (claimed,) = outbox.claim(who, now_ms, 10)
    return outbox.record(claimed.delivery_id, who, result, now_ms)


# Putting in


def test_what_was_put_in_comes_out_as_it_was(home: Home, outbox: Outbox) -> None:
    sent = letter(body=b'{"name": "\xc3\xa4"}\x00', job_id="j1")
    enqueue(home, sent)
    (claimed,) = outbox.claim("me", NOW, 10)
    assert claimed.outgoing == sent
    assert outbox.body(claimed.delivery_id) == sent.body
    found = only(outbox)
    assert (found.event_id, found.crawl_id, found.job_id, found.address) == ("e1", "c1", "j1", HOOK)
    assert (found.state, found.tries, found.due_ms, found.created_ms) == (WAITING, 0, NOW, NOW)
    assert (found.settled_ms, found.status, found.trouble) == (None, 0, "")
    assert "XXXX" not in repr(found) + repr(claimed)


@pytest.mark.parametrize(("allow_private", "guarded"), [(True, 0), (False, 1)])
def test_whether_it_may_go_to_a_private_address_is_stored_as_its_opposite(
    home: Home, outbox: Outbox, allow_private: bool, guarded: int
) -> None:
    enqueue(home, letter(allow_private=allow_private))
    with home.reading() as db:
        assert db.execute("SELECT guarded FROM delivery").fetchone() == (guarded,)
    (claimed,) = outbox.claim("me", NOW, 10)
    assert claimed.outgoing.allow_private is allow_private


def test_the_same_event_is_put_in_once_for_each_address(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter(), letter(address=OTHER), letter())
    enqueue(home, letter(body=b"other"), letter("e2"))
    assert [(one.event_id, one.address) for one in outbox.deliveries()] == [
        ("e2", HOOK),
        ("e1", OTHER),
        ("e1", HOOK),
    ]
    assert outbox.body(1) == b"{}"


def test_it_is_part_of_somebody_elses_transaction(home: Home, outbox: Outbox) -> None:
    with pytest.raises(ZeroDivisionError), home.writing() as db:
        outbox.enqueue(db, [letter()])
        raise ZeroDivisionError
    assert outbox.deliveries() == []


# Claiming


def test_only_what_is_due_and_not_claimed_is_handed_out(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter("e1"), letter("e2", created_ms=NOW - 5), letter("e3"), letter("later", created_ms=NOW + 1))
    assert [one.outgoing.event_id for one in outbox.claim("me", NOW, 2)] == ["e2", "e1"]
    assert [one.outgoing.event_id for one in outbox.claim("you", NOW, 10)] == ["e3"]
    assert outbox.claim("you", NOW, 10) == []
    assert [one.outgoing.event_id for one in outbox.claim("you", NOW + 1, 10)] == ["later"]


def test_a_claim_that_is_old_can_be_taken_over(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    (claimed,) = outbox.claim("me", NOW, 1)
    assert outbox.claim("you", NOW + STALE_MS - 1, 1) == []
    assert outbox.claim("you", NOW + STALE_MS, 1) == [claimed]
    assert outbox.record(claimed.delivery_id, "me", ARRIVED, NOW + STALE_MS) is None
    assert (only(outbox).state, outbox.tries(claimed.delivery_id)) == (WAITING, [])
    assert outbox.record(claimed.delivery_id, "you", ARRIVED, NOW + STALE_MS) == TryOutcome(DELIVERED)
    assert outbox.record(claimed.delivery_id, "you", DOWN, NOW + STALE_MS) is None
    assert only(outbox).tries == 1


def test_how_old_can_be_set(home: Home) -> None:
    enqueue(home, letter())
    hasty = Outbox(home, stale_ms=10)
    assert len(hasty.claim("me", NOW, 1)) == 1
    assert len(hasty.claim("you", NOW + 10, 1)) == 1


def test_a_claim_that_is_released_is_free_at_once(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter("e1"), letter("e2"))
    outbox.claim("me", NOW, 1)
    outbox.claim("you", NOW, 1)
    outbox.release("me")
    outbox.release("nobody")
    assert [one.outgoing.event_id for one in outbox.claim("third", NOW, 10)] == ["e1"]


def test_a_clock_that_was_set_back_puts_nothing_off(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter("e1"), letter("e2"))
    outbox.claim("dead", NOW, 1)
    send(outbox, DOWN, NOW)
    long_ago = NOW - 1000 * 86_400_000
    assert [one.outgoing.event_id for one in outbox.claim("me", long_ago, 10)] == ["e1", "e2"]


def test_a_share(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter("e1"), letter("e2", crawl_id="c2"), letter("e3", address=OTHER), letter("e4"))
    assert [one.outgoing.event_id for one in outbox.claim("me", NOW, 1, DeliveryShare("c1", [HOOK]))] == ["e1"]
    assert outbox.claim("me", NOW, 9, DeliveryShare("c1", [])) == []
    assert outbox.claim("me", NOW, 9, DeliveryShare("c1", until_ms=NOW - 1)) == []
    assert [one.outgoing.event_id for one in outbox.claim("me", NOW, 9, DeliveryShare("c1"))] == ["e3", "e4"]
    assert [one.outgoing.event_id for one in outbox.claim("me", NOW, 9)] == ["e2"]


def test_when_there_is_something_to_do(home: Home, outbox: Outbox) -> None:
    assert outbox.next_due() is None
    enqueue(home, letter("e1"), letter("e2", created_ms=NOW + 7, crawl_id="c2"))
    assert (outbox.next_due(), outbox.next_due(DeliveryShare("c2")), outbox.next_due(DeliveryShare("c3"))) == (
        NOW,
        NOW + 7,
        None,
    )
    outbox.claim("me", NOW, 1)
    assert outbox.next_due(DeliveryShare("c1")) == NOW + STALE_MS


def test_everybody_claims_at_once_and_each_delivery_goes_to_one(home: Home) -> None:
    enqueue(home, *(letter(f"e{number}") for number in range(60)))
    got: list[str] = []

    def work(who: str) -> None:
        with closing(Home(home.folder)) as own:
            outbox = Outbox(own)
            while claimed := outbox.claim(who, NOW, 3):
                for one in claimed:
                    got.append(one.outgoing.event_id)
                    assert outbox.record(one.delivery_id, who, ARRIVED, NOW) == TryOutcome(DELIVERED)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(f"e{number}" for number in range(60))
    assert {one.tries for one in Outbox(home).deliveries()} == {1}


# What came of it


def test_it_arrives(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    assert send(outbox, ARRIVED, NOW + 5) == TryOutcome(DELIVERED)
    found = only(outbox)
    assert (found.state, found.tries, found.settled_ms, found.status) == (DELIVERED, 1, NOW + 5, 200)
    assert outbox.claim("me", NOW + HOUR, 10) == []
    assert outbox.next_due() is None


def test_it_is_tried_again_until_it_arrives(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    now_ms, waits = NOW, []
    for _ in range(12):
        outcome = send(outbox, DOWN, now_ms)
        assert outcome is not None and outcome.state is WAITING and outcome.due_ms is not None
        assert outbox.claim("you", outcome.due_ms - 1, 1) == []
        assert (only(outbox).due_ms, outbox.next_due()) == (outcome.due_ms, outcome.due_ms)
        waits.append(outcome.due_ms - now_ms)
        now_ms = outcome.due_ms
    assert waits == [redelivery.wait_ms(1, number) for number in range(1, 13)]
    assert send(outbox, ARRIVED, now_ms) == TryOutcome(DELIVERED)
    tries = outbox.tries(1)
    assert [one.number for one in tries] == list(range(1, 14))
    assert [(one.status, one.trouble) for one in tries[-2:]] == [(0, "no connection"), (200, "")]
    assert (tries[0].at_ms, tries[-1].at_ms) == (NOW, now_ms)


def test_it_is_given_up(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    now_ms, outcome = NOW, None
    while outcome is None or outcome.due_ms is not None:
        outcome = send(outbox, DOWN, now_ms)
        assert outcome is not None
        now_ms = outcome.due_ms or now_ms
    assert outcome == TryOutcome(FAILED)
    assert GIVEN_UP_MS <= now_ms - NOW < GIVEN_UP_MS + LONGEST_MS
    assert (only(outbox).state, only(outbox).settled_ms, only(outbox).trouble) == (FAILED, now_ms, "no connection")
    assert outbox.claim("me", now_ms + HOUR, 1) == []


# Looking


def test_the_log_newest_first_and_page_by_page(home: Home, outbox: Outbox) -> None:
    enqueue(home, *(letter(f"e{number}", crawl_id=f"c{number % 2}") for number in range(1, 8)))
    send_all = outbox.claim("me", NOW, 3)
    for one, result in zip(send_all, (ARRIVED, DeliveryTry(410, "it answered 410"), DOWN), strict=True):
        outbox.record(one.delivery_id, "me", result, NOW)
    assert [one.delivery_id for one in outbox.deliveries(limit=3)] == [7, 6, 5]
    assert [one.delivery_id for one in outbox.deliveries(after=5, limit=3)] == [4, 3, 2]
    assert [one.delivery_id for one in outbox.deliveries("c1")] == [7, 5, 3, 1]
    assert [one.delivery_id for one in outbox.deliveries(state="failed")] == [2]
    assert [one.delivery_id for one in outbox.deliveries("c1", "waiting", 7)] == [5, 3]
    assert outbox.deliveries("c9") == []
    found = outbox.delivery(2)
    assert found is not None and (found.state, found.trouble) == (FAILED, "it answered 410")
    assert (outbox.delivery(99), outbox.tries(99), outbox.body(99)) == (None, [], b"")


# Again


@pytest.mark.parametrize("result", [ARRIVED, DeliveryTry(410, "it answered 410")], ids=["delivered", "failed"])
def test_what_is_settled_can_be_sent_again(home: Home, outbox: Outbox, result: DeliveryTry) -> None:
    enqueue(home, letter(body=b"as it was"))
    send(outbox, result, NOW)
    later = NOW + 10 * GIVEN_UP_MS
    assert outbox.replay(1, later)
    found = only(outbox)
    assert (found.state, found.due_ms, found.tries, found.settled_ms) == (WAITING, later, 1, None)
    (claimed,) = outbox.claim("me", later, 1)
    assert (claimed.outgoing.event_id, claimed.outgoing.body) == ("e1", b"as it was")
    assert outbox.record(1, "me", ARRIVED, later + 1) == TryOutcome(DELIVERED)
    assert (only(outbox).tries, only(outbox).settled_ms) == (2, later + 1)
    assert [one.number for one in outbox.tries(1)] == [1, 2]


def test_what_is_sent_again_has_the_whole_patience_again(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    now_ms = NOW
    for _ in range(5):
        send(outbox, REFUSED, now_ms)
        now_ms = max(only(outbox).due_ms, now_ms + 1)
    assert only(outbox).state is FAILED
    now_ms += GIVEN_UP_MS
    outbox.replay(1, now_ms)
    outcome = send(outbox, REFUSED, now_ms)
    assert outcome is not None
    assert (outcome.state, outcome.due_ms) == (WAITING, now_ms + redelivery.wait_ms(1, 1))


def test_what_waits_can_be_had_sooner(home: Home, outbox: Outbox) -> None:
    enqueue(home, letter())
    send(outbox, DOWN, NOW)
    assert outbox.replay(1, NOW + 1)
    assert send(outbox, ARRIVED, NOW + 1) == TryOutcome(DELIVERED)
    assert not outbox.replay(99, NOW)


# No more


def test_what_has_long_been_settled_is_forgotten(home: Home, outbox: Outbox, promises: RunPromises) -> None:
    enqueue(home, letter("old"), letter("waits"), letter("new", created_ms=NOW + 1))
    old, waits = outbox.claim("me", NOW, 2)
    outbox.record(old.delivery_id, "me", ARRIVED, NOW)
    outbox.record(waits.delivery_id, "me", DOWN, NOW)
    (new,) = outbox.claim("me", NOW + 1, 1)
    outbox.record(new.delivery_id, "me", ARRIVED, NOW + 1)
    promises.add("c1", 1, [HOOK], NOW)
    assert outbox.prune(NOW + KEPT_MS - 1) == 0
    assert outbox.prune(NOW + KEPT_MS) == 1
    assert [one.event_id for one in outbox.deliveries()] == ["new", "waits"]
    assert (outbox.tries(old.delivery_id), len(outbox.tries(waits.delivery_id))) == ([], 1)
    assert outbox.prune(NOW + KEPT_MS, kept_ms=0) == 1
    assert promises.of_crawl("c1") == [RunPromise(1, HOOK)]


# Promises


def test_a_promise_is_no_message(home: Home, outbox: Outbox, promises: RunPromises) -> None:
    promises.add("c1", 3, [HOOK, OTHER], NOW)
    promises.add("c1", 3, [HOOK], NOW + 1)
    promises.add("c2", 3, [HOOK], NOW)
    assert promises.of_crawl("c1") == [RunPromise(3, HOOK), RunPromise(3, OTHER)]
    assert (outbox.deliveries(), outbox.delivery(1), outbox.next_due()) == ([], None, None)
    assert outbox.claim("me", NOW + HOUR, 10) == []
    assert not outbox.replay(1, NOW)


def test_a_promise_is_kept_together_with_its_message(home: Home, outbox: Outbox, promises: RunPromises) -> None:
    promises.add("c1", 3, [HOOK, OTHER], NOW)
    promises.add("c2", 3, [HOOK], NOW)
    with pytest.raises(ZeroDivisionError), home.writing() as db:
        outbox.enqueue(db, [letter()])
        promises.keep(db, "c1", [RunPromise(3, HOOK)])
        raise ZeroDivisionError
    assert (len(promises.of_crawl("c1")), outbox.deliveries()) == (2, [])
    with home.writing() as db:
        outbox.enqueue(db, [letter()])
        promises.keep(db, "c1", [RunPromise(3, HOOK), RunPromise(4, OTHER)])
    assert (promises.of_crawl("c1"), len(outbox.deliveries())) == ([RunPromise(3, OTHER)], 1)
    assert promises.of_crawl("c2") == [RunPromise(3, HOOK)]
