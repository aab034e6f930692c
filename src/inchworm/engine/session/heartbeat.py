"""The heartbeat: it shows that a crawl's owner lives."""

from __future__ import annotations

from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.session.commits import Commits
from inchworm.ports import Clock

BEAT_SECONDS = 1.0


class Heartbeat:
    """Beats every second, or oftener where others would take the owner for dead so soon."""

    def __init__(self, ledger: Ledger, commits: Commits, clock: Clock, stale_seconds: float) -> None:
        self._ledger = ledger
        self._commits = commits
        self._clock = clock
        self._pause = min(BEAT_SECONDS, stale_seconds / 4)
        self._last = clock.monotonic()

    async def beat_if_due(self) -> None:
        """Raises `Lost` when somebody else owns the crawl by now."""
        now = self._clock.monotonic()
        if now - self._last > self._pause:
            self._last = now
            await self._commits.in_between(self._ledger.beat)
