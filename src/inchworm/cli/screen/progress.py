"""One line that says how far something is that takes long: on a terminal, or now and then in a log."""

from __future__ import annotations

import sys
import time

from inchworm.cli.screen.door import say, say_over

_FEW = 300
"""So many pages are read in about a second: nobody needs to be told."""

_PAUSE_SECONDS = 5.0
_BLINK_SECONDS = 0.1
"""How long nothing is said after something was: in a log, and on a terminal."""


class ProgressLine:
    """Says how reading goes on, when it is worth it: on one line of a terminal, in a log now and then."""

    def __init__(self, doing: str, is_patient: bool = False) -> None:
        """`is_patient`: nothing is said of what does not take long."""
        self._doing = doing
        self._said = time.monotonic() if is_patient else -_PAUSE_SECONDS
        self._may_say_the_end = not is_patient
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        if total < _FEW:
            return
        now, is_over = time.monotonic(), done == total
        if not is_over and now - self._said < (_BLINK_SECONDS if self._is_terminal else _PAUSE_SECONDS):
            return
        if is_over and not self._may_say_the_end:
            return
        self._said, self._may_say_the_end = now, True
        said = f"{self._doing}: {done:,} of {total:,}"
        say_over(said, is_over) if self._is_terminal else say(said, err=True)
