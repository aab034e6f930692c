"""Hosts that cannot be reached: when one is down, when somebody looks again, and how its sessions are counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inchworm.engine.session.ending import SessionEnding
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import HostWatch, Outages
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.visit import Tools
from inchworm.model import DownHost, Failure, FinishedVisit, FrontierEntry, Kind, Outcome, Reply, Request, Source
from inchworm.rules.web.outage import DOWN_AFTER, SESSIONS
from inchworm.settings import make
from inchworm.testing import ManualClock

HOST, OTHER = "http://a.test", "http://b.test"


def outages(*, patience: float = 0.0) -> Outages:
    return Outages([HOST], [], patience)


def in_vain(known: Outages, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        known.unanswered(HOST, "connect", "connection refused", now, round(1000 * now))


def test_only_requests_in_a_row_make_a_host_down() -> None:
    """One that is answered now and then is there, however many others were in vain."""
    known = outages()
    for _ in range(3):
        in_vain(known, DOWN_AFTER - 1)
        assert not known.is_down(HOST)
        known.answered(HOST)
    in_vain(known, DOWN_AFTER)
    assert known.is_down(HOST)


def test_an_outage_counts_once_in_a_session_however_often_somebody_looks() -> None:
    known = outages()
    in_vain(known, DOWN_AFTER)
    for session in range(1, SESSIONS + 1):
        for look in range(5):
            known.still_down(HOST, 10.0 * look, 1000)
            (down,) = known.all()
            assert down.sessions == session
        assert known.is_down(HOST) is (session < SESSIONS), "given up in the last of them, and not before"
        known = Outages([HOST], known.all(), 0.0)


@pytest.mark.parametrize(("late_ms", "is_given_up"), [(-1, False), (0, True)])
def test_a_host_is_waited_for_as_long_as_was_said_and_no_longer(late_ms: int, is_given_up: bool) -> None:
    since_ms, patience = 1_000_000, 3_600.0
    known = Outages([HOST], [DownHost(HOST, "connect", "refused", since_ms, SESSIONS - 1)], patience)
    known.still_down(HOST, 0.0, since_ms + 3_600_000 + late_ms)
    assert (known.given_up(HOST) is not None) is is_given_up


def test_looks_at_a_host_that_is_down_come_after_growing_pauses() -> None:
    known, now, pauses = outages(patience=86_400.0), 0.0, []
    in_vain(known, DOWN_AFTER, now)
    for _ in range(11):
        assert known.due(known.next_check() - 0.001) == []
        pauses.append(known.next_check() - now)
        now = known.next_check()
        assert known.due(now) == [HOST]
        assert known.due(now) == [], "it is being looked at"
        known.still_down(HOST, now, round(1000 * now))
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_host_that_was_given_up_and_answers_may_be_down_again() -> None:
    known = outages()
    in_vain(known, DOWN_AFTER)
    for _ in range(SESSIONS - 1):
        known = Outages([HOST], known.all(), 0.0)
        known.still_down(HOST, 1.0, 1000)
    assert known.given_up(HOST) is not None
    assert known.answered(HOST)
    in_vain(known, DOWN_AFTER, 2.0)
    assert (known.is_down(HOST), known.given_up(HOST)) == (True, None)


class Nobody:
    """A `ports.Fetcher` that finds nobody there."""

    async def fetch(self, request: Request) -> Reply:
        return Failure("connect", "connection refused", unreachable=True)

    async def close(self) -> None: ...


class Watched:
    """A host, what is known of it, and who watches it."""

    def __init__(self, *, fetcher: Any = None, delay: float = 0.0) -> None:
        nothing: Any = None
        self.clock, self.known, self.changes = ManualClock(), outages(), 0
        values = make({"delay": delay})
        self.hosts = Hosts(values, RobotsVerdicts(values, [(HOST, "allow", None)]))
        tools = Tools(values, fetcher or Nobody(), nothing, self.clock, nothing, lambda: 0.0, {})
        self.ending = SessionEnding(self.clock, WakeUp(self.clock))
        self.watch = HostWatch(self.known, self.hosts, tools, self.ending, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def check(self) -> None:
        async def check() -> None:
            self.watch.check_due()
            await asyncio.gather(*self.watch.tasks, return_exceptions=True)
            await asyncio.sleep(0)

        asyncio.run(check())

    def turn(self) -> float:
        return self.hosts.turn(f"{HOST}/page")


def test_to_look_at_a_host_takes_a_polite_turn() -> None:
    """It may be there again, and was asked for something."""
    one = Watched(delay=5)
    in_vain(one.known, DOWN_AFTER)
    one.clock.advance(10.0)
    one.check()
    assert one.known.is_down(HOST)
    assert one.turn() == 15.0
    assert one.changes == 1, "it may be given up"


class Cut:
    """A fetcher that is broken."""

    async def fetch(self, request: Request) -> Reply:
        raise RuntimeError("the wire is cut")


def test_an_unexpected_error_while_somebody_looks_ends_the_session() -> None:
    one = Watched(fetcher=Cut())
    in_vain(one.known, DOWN_AFTER)
    one.clock.advance(10.0)
    one.check()
    assert one.ending.has_failed()
    assert one.ending.end is not None and one.ending.end.message == "RuntimeError('the wire is cut')"


def answered(status: int, millis: int = 10, **more: Any) -> FinishedVisit:
    url = f"{HOST}/page"
    entry = FrontierEntry(1, url, url, Kind.PAGE, Source.SPIDER, 0, 1, 0, 0, (1, 0))
    return FinishedVisit(entry, 0, Outcome.PAGE, status=status, millis=millis, **more)


@pytest.mark.parametrize(
    ("made", "is_up"),
    [
        (answered(200), True),
        (answered(503), True),
        (answered(0, failure="timeout"), False),
        (answered(0, requested=False), False),
    ],
)
def test_any_answer_says_that_a_host_is_there(made: FinishedVisit, is_up: bool) -> None:
    one = Watched()
    in_vain(one.known, DOWN_AFTER)
    one.watch.note_answer(made)
    assert (one.known.is_down(HOST), one.changes) == (not is_up, int(is_up))


@pytest.mark.parametrize(("status", "failure"), [(429, "http_429"), (503, "http_5xx"), (403, "blocked")])
def test_who_pushes_back_is_asked_less_and_left_alone_for_as_long_as_it_wants(status: int, failure: str) -> None:
    one = Watched()
    one.clock.advance(100.0)
    one.watch.note_answer(answered(status, failure=failure, quiet_ms=7000))
    assert one.turn() == 107.0
    one.hosts.started(f"{HOST}/page", 110.0)
    assert one.turn() == 110.5


@pytest.mark.parametrize("status", [200, 404, 500])
def test_other_answers_are_no_push_back(status: int) -> None:
    one = Watched()
    one.clock.advance(100.0)
    one.watch.note_answer(answered(status, quiet_ms=7000))
    one.hosts.started(f"{HOST}/page", 100.0)
    assert one.turn() == 100.0


@pytest.mark.parametrize(("millis", "extra"), [(5000, 0.75), (5001, 0.5)])
def test_a_push_back_to_what_was_sent_before_we_slowed_down_says_nothing_new(millis: int, extra: float) -> None:
    one = Watched()
    one.clock.advance(100.0)
    one.watch.note_answer(answered(429))
    one.clock.advance(5.0)
    one.watch.note_answer(answered(429, millis))
    one.hosts.started(f"{HOST}/page", 200.0)
    assert one.turn() == 200.0 + extra


def test_how_long_a_host_takes_is_seen_from_what_was_asked_and_from_nothing_else() -> None:
    one = Watched()
    for _ in range(9):
        one.watch.note_answer(answered(200, 100))
    for _ in range(4):
        one.watch.note_answer(answered(200, 3000))
        one.watch.note_answer(answered(0, 3000, requested=False))
    one.hosts.started(f"{HOST}/page", 100.0)
    assert one.turn() == 100.0
    one.watch.note_answer(answered(200, 3000))
    one.hosts.started(f"{HOST}/page", 100.0)
    assert one.turn() == 103.0


# What is remembered


def test_who_is_up_again_is_not_looked_at_any_more() -> None:
    """Though somebody else is down."""
    known = Outages([HOST, OTHER], [], 0.0)
    in_vain(known, DOWN_AFTER)
    for _ in range(DOWN_AFTER):
        known.unanswered(OTHER, "connect", "connection refused", 50.0, 50_000)
    assert known.next_check() == 1.0
    assert known.answered(HOST)
    assert known.next_check() == 51.0
    assert known.due(100.0) == [OTHER]
    assert known.next_check() == float("inf"), "somebody looks"


def test_what_changed_is_told_once() -> None:
    known = outages()
    assert not known.has_news()
    in_vain(known, DOWN_AFTER - 1)
    assert not known.has_news()
    in_vain(known, 1, 7.0)
    assert known.has_news()
    assert known.take_news() == ([DownHost(HOST, "connect", "connection refused", 7000, 1)], [])
    assert not known.has_news()
    in_vain(known, 5)
    assert not known.has_news(), "down is down"
    known.answered(HOST)
    assert known.take_news() == ([], [HOST])
    known.answered(HOST)
    assert not known.has_news()


def test_a_host_that_was_down_before_is_looked_at_at_once_and_is_not_given_up_before_that() -> None:
    down = DownHost(HOST, "connect", "connection refused", 0, SESSIONS)
    known = Outages([HOST], [down], 0.0)
    assert bool(known) and known.all() == (down,)
    assert (known.is_down(HOST), known.given_up(HOST)) == (True, None)
    assert known.due(0.0) == [HOST]
    known.still_down(HOST, 0.0, 1000)
    assert (known.is_down(HOST), known.given_up(HOST)) == (False, down._replace(sessions=SESSIONS + 1))
    assert known.next_check() == 1.0, "it may come back all the same"
