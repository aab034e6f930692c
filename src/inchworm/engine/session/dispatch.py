"""Who may go now: lanes in turn, and the entries of each in order, as far as workers, limits and manners allow."""

from __future__ import annotations

from itertools import islice

from inchworm.engine.session.flight import Flight
from inchworm.engine.session.grants import Grants
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import Outages
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.session.window.lane import Lane, Slot
from inchworm.engine.session.window.window import Window
from inchworm.engine.visit import Tools
from inchworm.model import FrontierEntry, Kind
from inchworm.rules.web import politeness
from inchworm.rules.web.url import origin_of

LOOK_UPS = 32
LOOK_UPS_IN_ALL = 512
"""How many entries of a lane, and of all lanes, are looked up in earlier runs before they are sent."""


class Dispatch:
    """Sends entries from the window."""

    def __init__(
        self,
        window: Window,
        hosts: Hosts,
        outages: Outages,
        grants: Grants,
        flight: Flight,
        wake_up: WakeUp,
        tools: Tools,
    ) -> None:
        self._window = window
        self._hosts = hosts
        self._outages = outages
        self._grants = grants
        self._flight = flight
        self._wake_up = wake_up
        self._settings, self._clock, self._tools = tools.settings, tools.clock, tools
        self._outdated: set[str] = set()

    def take_outdated(self) -> set[str]:
        """Origins that were to be asked for something, but whose robots.txt was read too long ago."""
        outdated, self._outdated = self._outdated, set()
        return outdated

    def send(self) -> None:
        """Send what may be sent."""
        self._grants.limit_hit = None
        share, now = self._share(), self._clock.monotonic()
        for lane in self._window.lanes():
            if lane.asleep_until > now:
                self._wake_up.by(lane.asleep_until)
                continue
            self._window.fill(lane)
            self._send_from(lane, share)
            if not self._flight.has_worker():
                return

    def _share(self) -> int:
        """How many workers one host may have: as many as wished, but one is left for every other host."""
        fair = max(1, self._settings.workers - self._window.open_lanes() + 1)
        return fair if self._settings.strict_order else min(fair, self._settings.connections_per_host or fair)

    def _send_from(self, lane: Lane, share: int) -> None:
        """Send what may be sent, in order; step over what must wait, stop where order demands it."""
        skipped: list[Slot] = []
        now, flight = self._clock.monotonic(), self._flight
        while lane.todo and lane.in_flight < share and flight.has_worker() and flight.has_room(lane):
            slot = lane.todo.popleft()
            if self._must_wait_for_host(lane, slot.entry, now):
                skipped.append(slot)
                break
            if self._grants.answer(slot):
                continue
            if not self._grants.grant(slot):
                skipped.append(slot)
                break
            wait_until = max(self._hosts.turn(slot.entry.request_url), self._ready_at(slot, now))
            if wait_until <= now:
                self._send(lane, slot, now)
                continue
            skipped.append(slot)
            self._wake_up.by(wait_until)
            if not (self._settings.strict_order or self._ready_at(slot, now) > now):
                # Its host must wait. With thousands of hosts nearly all of them do: they are not looked at till then.
                lane.asleep_until = wait_until
                break
        lane.todo.extendleft(reversed(skipped))

    def _must_wait_for_host(self, lane: Lane, entry: FrontierEntry, now: float) -> bool:
        """Whether its host is down, or its robots.txt has to be read again first."""
        url = entry.request_url
        if self._outages and self._outages.is_down(origin_of(url)):
            lane.is_down, lane.asleep_until = True, float("inf")
            return True
        if self._hosts.robots.is_outdated(url, now) and entry.kind is not Kind.ROBOTS:
            self._outdated.add(origin_of(url))
            return True
        return False

    def _ready_at(self, slot: Slot, now: float) -> float:
        """The monotonic time at which a backoff is over; found once, so that setting the clock changes nothing."""
        if slot.ready_at is None:
            left = (slot.entry.not_before_ms - self._clock.now_ms()) / 1000 if slot.entry.not_before_ms else 0.0
            slot.ready_at = now + max(0.0, min(left, politeness.longest_backoff(slot.entry.attempts)))
        return slot.ready_at

    def _send(self, lane: Lane, slot: Slot, now: float) -> None:
        self._look_up_ahead(lane, slot.entry)
        self._hosts.started(slot.entry.request_url, now)
        self._grants.due -= 1
        self._flight.send(lane, slot)

    def _look_up_ahead(self, lane: Lane, entry: FrontierEntry) -> None:
        if self._tools.earlier is not None and self._tools.compares:
            most = min(LOOK_UPS, LOOK_UPS_IN_ALL // self._window.open_lanes())
            self._tools.earlier.expect(entry, (slot.entry for slot in islice(lane.todo, most)))
