"""What a run and its session have come to as of the last commit, and how much a session may come to."""

from __future__ import annotations

from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.session.ending import SessionEnding
from inchworm.engine.session.flight import Flight
from inchworm.engine.session.wakeup import WakeUp
from inchworm.model import EndedBy, RunInfo
from inchworm.ports import Clock, PendingRows
from inchworm.rules.order import order
from inchworm.settings import Settings


class SessionTotals:
    """The counters of the run; requests, bytes and time of this session."""

    def __init__(self, run: RunInfo, queue: PendingRows, clock: Clock) -> None:
        self._run_id = run.run_id
        self._queue = queue
        self._clock = clock
        self._disturbed = run.disturbed
        self._several_lanes = queue.has_several_lanes(run.run_id)
        self.counters = run.counters
        self.requests = 0
        self.size = 0
        self.started = clock.monotonic()

    def learn(self, committed: Committed) -> None:
        """Take in what a commit came to."""
        self.counters, self._disturbed = committed.counters, committed.disturbed
        self.requests, self.size = committed.requests, committed.size
        self._several_lanes = self._several_lanes or self._queue.has_several_lanes(self._run_id)

    def seconds(self) -> float:
        """How long the session has lasted."""
        return self._clock.monotonic() - self.started

    def order(self) -> str:
        """How far the record's order can be relied on."""
        return order.word(self._disturbed, self._several_lanes)


class SessionLimits:
    """How long a session may last and how many bytes it may take."""

    def __init__(
        self, settings: Settings, totals: SessionTotals, flight: Flight, ending: SessionEnding, wake_up: WakeUp
    ) -> None:
        self._most_seconds, self._most_bytes = settings.max_time, settings.max_bytes
        self._totals = totals
        self._flight = flight
        self._ending = ending
        self._wake_up = wake_up

    def end_if_reached(self) -> None:
        """Begin the end of the session where a limit is reached."""
        if self._most_seconds and self._totals.seconds() >= self._most_seconds:
            self._ending.begin(EndedBy.TIME)
        elif self._most_bytes and self._totals.size + self._flight.uncommitted_bytes >= self._most_bytes:
            self._ending.begin(EndedBy.BYTES)
        elif self._most_seconds:
            self._wake_up.by(self._totals.started + self._most_seconds)
