"""What an entry may use up: granted in order, kept through an outage, and given back where nothing comes of it."""

from __future__ import annotations

from typing import Any

from tests.engine.earlier import OLD, Before

from inchworm.engine.session.grants import Grants
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import Outages
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.engine.session.window.lane import Slot
from inchworm.engine.visit import Tools
from inchworm.model import (
    DownHost,
    EndedBy,
    FinishedVisit,
    FrontierEntry,
    Kind,
    Outcome,
    Reason,
    RefusedEntry,
    Seed,
    Source,
)
from inchworm.rules.web.outage import SESSIONS
from inchworm.settings import make
from inchworm.testing import ManualClock

HOST = "http://h.test"


class Desk:
    """The grants of a session on one host. Nothing is fetched or read here."""

    def __init__(self, *down: DownHost, known: dict[str, Any] | None = None, **given: Any) -> None:
        values: Any = make(given)
        nobody: Any = None
        self.hosts = Hosts(values, RobotsVerdicts(values, [(HOST, "allow", None)]))
        self.outages = Outages([HOST], down, 0.0)
        clock = ManualClock()
        before = Before(OLD._replace(**{"at_ms": clock.now_ms(), **known})) if known is not None else None
        tools = Tools(values, nobody, nobody, clock, nobody, lambda: 0.0, {}, earlier=before)
        self.grants = Grants(tools, self.hosts, self.outages, [Seed(0, f"{HOST}/", "h.test", "/")])
        self.slots = [Slot(entry(number)) for number in range(5)]

    def answered(self) -> list[int]:
        """Which entries need no request."""
        return [number for number, slot in enumerate(self.slots) if self.grants.answer(slot)]

    def granted(self) -> list[int]:
        """Which entries are granted, each asked for in its turn."""
        return [number for number, slot in enumerate(self.slots) if self.grants.grant(slot)]


def entry(number: int) -> FrontierEntry:
    url = f"{HOST}/{number}"
    return FrontierEntry(number + 1, url, url, Kind.PAGE, Source.SPIDER, 0, 1, 0, 0, (1, number))


def test_what_nobody_answered_keeps_its_page_of_the_limit_and_sends_again() -> None:
    """All of a limit may be under way when a host goes down: who has a page of it needs no other."""
    desk = Desk(page_limit=3)
    assert desk.granted() == [0, 1, 2]
    for slot in desk.slots[:3]:
        desk.grants.use_up(slot)
    assert desk.granted() == [0, 1, 2]


def test_what_nobody_answered_is_spent() -> None:
    desk = Desk(budget=3)
    assert desk.granted() == [0, 1, 2]
    desk.grants.use_up(desk.slots[0])
    assert desk.granted() == [1, 2]
    assert desk.grants.limit_hit is EndedBy.BUDGET


def test_what_is_forbidden_after_an_outage_gives_its_page_of_the_limit_back() -> None:
    desk = Desk(page_limit=3)
    assert desk.granted() == [0, 1, 2]
    desk.grants.use_up(desk.slots[1])
    desk.hosts.robots.learn([(HOST, "rules", b"User-agent: *\nDisallow: /1")])
    assert desk.grants.answer(desk.slots[1])
    assert desk.slots.pop(1).turn == RefusedEntry(entry(1), Reason.ROBOTS)
    assert [desk.slots[number].entry.url[-1] for number in desk.granted()] == ["0", "2", "3"]


def test_what_fails_with_its_host_takes_no_page_from_others() -> None:
    """It has a page of the limit until it is committed, and gives back no more than that."""
    desk = Desk(DownHost(HOST, "connect", "connection refused", 0, SESSIONS), page_limit=2)
    desk.outages.still_down(HOST, 0.0, 0)
    for slot in (desk.slots.pop(), desk.slots.pop()):
        assert desk.grants.answer(slot)
        assert isinstance(slot.turn, FinishedVisit)
        assert slot.turn.outcome is Outcome.FAILED
        desk.grants.give_back(slot.turn)
    desk.outages.answered(HOST)
    assert desk.granted() == [0, 1]


def test_what_is_reused_takes_its_page_of_the_limit_at_once() -> None:
    """Nobody waits for an answer, so all of them may be asked about before the first is committed."""
    assert Desk(known={}, max_age=3600).answered() == [0, 1, 2, 3, 4]
    assert Desk(known={}, max_age=3600, page_limit=3).answered() == [0, 1, 2]


def test_only_what_is_there_and_young_enough_is_reused() -> None:
    assert Desk(known={}).answered() == []
    assert Desk(known={"missing": 1}, max_age=3600).answered() == []
    assert Desk(known={"at_ms": 0}, max_age=3600).answered() == []
    assert Desk(known={"reader": "another"}, max_age=3600).answered() == []
    assert Desk(known={}, max_age=3600, skip_cache=True).answered() == []


def test_what_fails_by_its_robots_txt_after_all_takes_no_page_from_others() -> None:
    """Its page of the limit is given back when its grant is revoked; the failure has one of its own till its commit."""
    desk = Desk(page_limit=2)
    assert desk.granted() == [0, 1]
    desk.hosts.robots.learn([(HOST, "unreadable", b"http_5xx: the server answered 500")])
    for slot in (desk.slots.pop(0), desk.slots.pop(0)):
        assert desk.grants.answer(slot)
        assert isinstance(slot.turn, FinishedVisit)
        desk.grants.give_back(slot.turn)
    desk.hosts.robots.learn([(HOST, "allow", None)])
    assert desk.granted() == [0, 1]


def test_no_more_are_sent_than_could_come_before_it_is_time_to_stop() -> None:
    """What was sent and came to nothing is one of them, and is sent again."""
    desk = Desk(stop_below=0.5, stop_window=3)
    assert desk.granted() == [0, 1, 2]
    for slot in desk.slots[:3]:
        desk.grants.use_up(slot)
    assert desk.granted() == [0, 1, 2]


def test_it_is_time_to_stop_when_too_many_pages_of_a_window_brought_nothing() -> None:
    desk, seeds = Desk(stop_below=0.5, stop_window=3), [Seed(0, f"{HOST}/", "h.test", "/")]
    assert desk.granted() == [0, 1, 2]

    def came(number: int, outcome: Outcome | Reason) -> bool:
        return desk.grants.learn(seeds, [(FinishedVisit(entry(number), 0, Outcome.PAGE), outcome)])

    assert not came(0, Outcome.PAGE)
    assert not came(1, Outcome.DUPLICATE)
    assert desk.granted() == [0, 1, 2], "the next one may be the last"
    assert not came(2, Outcome.FAILED), "that is no page, and says nothing"
    assert desk.granted() == [0, 1, 2, 3]
    assert came(3, Outcome.DUPLICATE)


def test_pages_that_bring_nothing_are_no_reason_to_stop_unless_somebody_says_so() -> None:
    desk, seeds = Desk(), [Seed(0, f"{HOST}/", "h.test", "/")]
    made = [(FinishedVisit(entry(number), 0, Outcome.PAGE), Outcome.DUPLICATE) for number in range(5)]
    assert desk.granted() == [0, 1, 2, 3, 4]
    assert not any(desk.grants.learn(seeds, [one]) for one in made * 50)
