"""When the loop goes on: as soon as something happened, or at the earliest moment for which something waits."""

from __future__ import annotations

import asyncio

from inchworm.ports import Clock


class WakeUp:
    """Lets the loop sleep between two rounds. `at`: the earliest monotonic time that this round is to wait for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._something_happened = asyncio.Event()
        self.at = float("inf")

    def begin_round(self) -> None:
        """What happens from here on ends the next sleep."""
        self._something_happened.clear()
        self.at = float("inf")

    def now(self) -> None:
        """Something happened: do not sleep, or sleep no longer."""
        self._something_happened.set()

    def by(self, moment: float) -> None:
        """Something is to be done at this monotonic time."""
        self.at = min(self.at, moment)

    async def sleep(self, until: float, most_seconds: float) -> None:
        """Sleep until something happens, until this or an earlier time that was named, and never for longer than so."""
        seconds = max(0.0, min(until, self.at) - self._clock.monotonic())
        timer = asyncio.get_running_loop().call_later(min(seconds, most_seconds), self._something_happened.set)
        try:
            await self._something_happened.wait()
        finally:
            timer.cancel()
