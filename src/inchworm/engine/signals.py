"""Which signals end a session in peace."""

from __future__ import annotations

import signal


def stop_signals() -> list[signal.Signals]:
    """Ctrl-C, SIGTERM and the end of a terminal. One that was ignored when the process started stays ignored: whoever
    used nohup, or put the process into the background of a script, did not mean it by that signal."""
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
