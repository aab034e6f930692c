"""Schedulers as processes of their own, and what becomes of a home when they and their children are killed at random.

    python tests/service/chaos.py HOME        runs a scheduler there until SIGTERM, set up by INCHWORM_… variables

How much there is to do, for how long, and by which chance, can be set:

    INCHWORM_CHAOS_JOBS=200 INCHWORM_CHAOS_SECONDS=60 INCHWORM_SEED=7 pytest tests/service/test_chaos.py
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inchworm import settings
from inchworm.service.scheduler import Scheduler

JOBS = int(os.environ.get("INCHWORM_CHAOS_JOBS") or 20)
SECONDS = float(os.environ.get("INCHWORM_CHAOS_SECONDS") or 3)
SEED = os.environ.get("INCHWORM_SEED") or "20261115"
SCHEDULERS = 3
PATIENCE = 60.0
"""Nothing here takes this many seconds unless it hangs."""


def wait_until(is_true: Callable[[], object], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


# Processes


def processes_of(home: Path) -> list[int]:
    """The processes that carry out executions in this home, whoever started them."""
    wanted = f"INCHWORM_HOME={home}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                is_ours = b"execute\0" in (folder / "cmdline").read_bytes()
                if is_ours and wanted in (folder / "environ").read_bytes() + b"\0":
                    found.append(int(folder.name))
    return found


def end_processes(home: Path) -> None:
    """Leave none behind, whatever state it is in."""
    for _ in range(200):
        if not (left := processes_of(home)):
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    raise AssertionError(f"processes {left} do not end")


@contextlib.contextmanager
def scheduling(home: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler in a process of its own, which does not outlive the block."""
    process = start(home, **environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start(home: Path, **environment: str) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("INCHWORM_")}
    return subprocess.Popen(
        [sys.executable, __file__, str(home)],
        env={**inherited, "INCHWORM_POLL": "0.1", "INCHWORM_STALE_CHECK": "0.2", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


# Chaos


class Chaos:
    """Some schedulers of one home, killed and started again by chance, and their children with them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._chance = random.Random(SEED)
        self._schedulers: list[subprocess.Popen[bytes]] = []
        self.story: list[str] = []

    def __enter__(self) -> Chaos:
        self._schedulers = [self._start() for _ in range(SCHEDULERS)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._schedulers:
            process.kill()
            process.wait()
        end_processes(self._home)

    def _start(self) -> subprocess.Popen[bytes]:
        # Whoever is stopped for good must be noticed soon, and whoever is only slow must not be taken for dead.
        return start(self._home, INCHWORM_STALE_LOCK="5", INCHWORM_EXECUTIONS="4", INCHWORM_GRACE="2")

    def rage(self, is_over: Callable[[], bool]) -> None:
        """Kill one thing after the other, until time is up or nothing is left to do."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and not is_over():
            time.sleep(self._chance.uniform(0.02, 0.3))
            if self._chance.random() < 0.25:
                self._kill_scheduler(self._chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            else:
                self._kill_child()

    def _kill_scheduler(self, number: int) -> None:
        which = self._chance.randrange(len(self._schedulers))
        self._schedulers[which].send_signal(number)
        self._schedulers[which].wait(PATIENCE)
        self._schedulers[which] = self._start()
        self.story.append(f"scheduler {signal.Signals(number).name}")

    def _kill_child(self) -> None:
        if children := processes_of(self._home):
            with contextlib.suppress(OSError):
                os.kill(self._chance.choice(sorted(children)), signal.SIGKILL)
                self.story.append("child SIGKILL")


def main(home: Path) -> None:
    """Run a scheduler until SIGTERM, or until whoever wanted it is gone."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    parent = os.getppid()
    scheduler = Scheduler(home, settings.make(settings.from_environment(os.environ)))
    scheduler.start()
    while not stop.wait(0.1) and os.getppid() == parent:
        pass
    scheduler.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
