"""Hosts that cannot be reached: when one is down, when somebody looks again, and how its sessions are counted."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from inchworm.engine.session.ending import SessionEnding
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import HostWatch, Outages
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.visit import Tools
from inchworm.model import Failure, Reply, Request
from inchworm.rules.web.outage import DOWN_AFTER, SESSIONS
from inchworm.settings import make
from inchworm.testing import ManualClock

HOST = "http://a.test"


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


def test_to_look_at_a_host_takes_a_polite_turn() -> None:
    """It may be there again, and was asked for something."""
    clock, nothing, known = ManualClock(), cast(Any, None), outages()
    in_vain(known, DOWN_AFTER)
    values = make({"delay": 5})
    hosts = Hosts(values, RobotsVerdicts(values, [(HOST, "allow", None)]))
    tools = Tools(values, Nobody(), nothing, clock, nothing, lambda: 0.0, {})
    watch = HostWatch(known, hosts, tools, SessionEnding(clock, WakeUp(clock)), lambda: None)

    async def look() -> None:
        watch.check_due()
        await asyncio.gather(*watch.tasks)

    clock.advance(10.0)
    asyncio.run(look())
    assert known.is_down(HOST)
    assert hosts.turn(f"{HOST}/page") == 15.0
