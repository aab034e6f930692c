"""The clock that tells the real time; tests have one of their own."""

from __future__ import annotations

import time


class SystemClock:
    """The real time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
