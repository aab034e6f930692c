"""Why a session ends: somebody wants it to, a limit of its own was reached, or something failed."""

from __future__ import annotations

from typing import NamedTuple

from inchworm.engine.session.wakeup import WakeUp
from inchworm.errors import InchwormError
from inchworm.model import EndedBy
from inchworm.ports import Clock


class SessionEnd(NamedTuple):
    """How a session ended."""

    by: EndedBy
    message: str = ""
    error: InchwormError | None = None


class SessionEnding:
    """What a session is to end by, as soon as there is something. From then on nothing new is sent."""

    def __init__(self, clock: Clock, wake_up: WakeUp) -> None:
        self._clock = clock
        self._wake_up = wake_up
        self._since = 0.0
        self.end: SessionEnd | None = None

    def begin(self, by: EndedBy) -> None:
        """What is under way may finish within the grace time, which starts now."""
        self.end = SessionEnd(by)
        self._since = self._clock.monotonic()
        self._wake_up.now()

    def fail(self, error: BaseException, message: str = "") -> None:
        """Something that must not happen: the session ends at once, whatever else it was to end by."""
        ours = _as_ours(error)
        self.end = SessionEnd(EndedBy.ERROR, message or ours.message, ours)
        self._wake_up.now()

    def has_failed(self) -> bool:
        return self.end is not None and self.end.by is EndedBy.ERROR

    def is_cancelled(self) -> bool:
        return self.end is not None and self.end.by is EndedBy.CANCELLED

    def deadline(self, grace_seconds: float) -> float:
        """The monotonic time at which the grace time is over; there is none before the end has begun."""
        return self._since + grace_seconds if self.end is not None else float("inf")


def _as_ours(error: BaseException) -> InchwormError:
    if isinstance(error, InchwormError):
        return error
    ours = InchwormError(
        f"An unexpected error ended the session: {error!r}.", "This is a bug in inchworm; please report it."
    )
    ours.__cause__ = error
    return ours
