"""Whether it is worth to wait for what is left."""

from __future__ import annotations

from inchworm.engine.session.ending import SessionEnd
from inchworm.engine.session.grants import Grants
from inchworm.engine.session.outages import HostWatch, Outages
from inchworm.engine.session.wakeup import WakeUp
from inchworm.engine.session.window.window import Window
from inchworm.model import EndedBy
from inchworm.ports import Clock
from inchworm.rules.web import outage


class WaitLimit:
    """For how long a session waits for what is left of its run, while nothing is under way."""

    def __init__(self, most_seconds: float, clock: Clock, wake_up: WakeUp, outages: Outages) -> None:
        self._most_seconds = most_seconds
        self._clock = clock
        self._wake_up = wake_up
        self._outages = outages
        self._since: float | None = None

    def reset(self) -> None:
        """Something is under way: the wait begins anew after that."""
        self._since = None

    def end(self, window: Window, grants: Grants, watch: HostWatch) -> SessionEnd | None:
        """How the session ends, if all that is left must wait for too long."""
        now = self._clock.monotonic()
        if self._wake_up.at - now <= self._most_seconds:
            return None
        if not window.has_down():
            is_timed = self._wake_up.at != float("inf")
            return SessionEnd(EndedBy.WAITING, "all that is left must wait longer than max_wait") if is_timed else None
        if grants.is_budget_spent:
            return SessionEnd(EndedBy.BUDGET)
        self._since = self._since or now
        if now - self._since < self._most_seconds or watch.tasks:
            return None
        return SessionEnd(EndedBy.WAITING, "; ".join(map(outage.sentence, self._outages.all())))
