"""Fault points: named places where a test can make the process die.

`INCHWORM_FAULT=name:n` kills the process with SIGKILL the n-th time it passes `name`. Unset, a fault
point costs one comparison. The names are part of the crash suite, so they are listed here.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "before_fetch",
    "after_fetch",
    "while_reading",
    "before_archive",
    "before_commit",
    "in_commit",
    "after_commit",
    "in_recovery",
    "after_recovery",
    "going_back",
    "gone_back",
)
TELLING_POINTS = ("before_telling", "before_recording")
"""Where others are told of a run: a crawl by itself does not pass there."""

JOB_POINTS = ("before_finishing",)
"""Between the end of a session and what its execution says of it."""


def _armed() -> tuple[str, int]:
    name, _, count = os.environ.get("INCHWORM_FAULT", "").partition(":")
    return name, int(count or 1)


_NAME, _left = _armed()


def point(name: str) -> None:
    """Die here if a test asked for it."""
    global _left  # noqa: PLW0603 - one counter per process is the meaning of a fault point
    if name != _NAME:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
