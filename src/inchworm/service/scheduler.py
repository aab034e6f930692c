"""The loop that runs jobs: claims what is due, starts a process for each execution, and notices when one is gone.

It keeps nothing that matters in memory. Killed at any moment, its children go on by themselves, and the next service of
this home takes them over.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from inchworm.app.act.deliver import SECRET_VARIABLE
from inchworm.app.act.jobs.dispatch import Pulse
from inchworm.app.act.jobs.execute import STOPPED, TOKEN_VARIABLE
from inchworm.app.machine import is_gone, this_machine
from inchworm.app.root import App
from inchworm.errors import InchwormError, Unknown
from inchworm.job import Execution, ExecutionState, JobState
from inchworm.ports import Clock
from inchworm.service.access import auth
from inchworm.settings import Settings

_LOOK_SECONDS = 0.2
_PRUNE_SECONDS = 600.0
_SPARE_SECONDS = 10.0
"""Beyond the grace time, before a process that was asked to end is killed."""

_OUR_SECRETS = (auth.VARIABLE, SECRET_VARIABLE)
"""What the service signs with. Executions do not sign."""

log = logging.getLogger("inchworm.scheduler")


@dataclass(slots=True)
class _Child:
    execution: Execution
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    asked_to_end: float | None = None


class _Stopping(Exception):
    """Who is to stop does not wait for somebody that stands still."""


class Scheduler:
    """One of the schedulers of a home, in a thread of its own."""

    def __init__(self, folder: Path, values: Settings, clock: Clock | None = None) -> None:
        self.service_id = uuid.uuid4().hex[:12]
        self._folder = folder
        self._values = values
        self._app = App(folder, clock)
        self._app.home.while_waiting = self._while_waiting
        self._children: dict[int, _Child] = {}
        gap = max(3 * values.stale_check, values.stale_lock / 2)
        self._locks: Pulse[str] = Pulse(gap)
        self._services: Pulse[str] = Pulse(gap)
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._due: dict[str, float] = {}
        self._still: dict[str, float] = {}
        """Tokens of holders that stood still, and for how long; they are ended, but their jobs not taken back yet."""

    # From other threads

    def start(self) -> None:
        self.enrol()
        self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to do: look now instead of at the next poll."""
        self._wanted.set()

    def stop(self) -> None:
        """Claim nothing more, let the executions pause their runs and hand their jobs back, and leave."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        self.leave()

    # The loop

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.tick()
            except _Stopping:
                return
            except InchwormError as error:
                log.error("%s %s", error.message, error.hint)
            except Exception:
                log.exception("The scheduler had an unexpected error and goes on")
            self._wanted.wait(_LOOK_SECONDS)

    def _while_waiting(self) -> None:
        self.watch()
        if self._stopping.is_set() and threading.current_thread() is self._thread:
            raise _Stopping

    def enrol(self) -> None:
        """Tell others that this service is there."""
        self._app.dispatch.enrol(self.service_id, self._values)

    def tick(self) -> None:
        """Whatever is to be done now."""
        self.watch()
        self.take_back()
        self.reap()
        woken = self._wanted.is_set()
        self._wanted.clear()
        if self._is_time("poll", self._values.poll) or woken:
            if not self._app.executions.services.beat(self.service_id, self._app.clock.now_ms()):
                self.enrol()  # others took us for dead
            self.poll()
        if self._is_time("adopt", self._values.stale_check):
            self.adopt()
        if self._is_time("prune", _PRUNE_SECONDS):
            self._app.dispatch.prune()

    def _is_time(self, what: str, every: float) -> bool:
        now = self._app.clock.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every
        return True

    def poll(self) -> int:
        """Start what is due; how many."""
        claimed = self._app.dispatch.claim(self.service_id, self._values.executions)
        for execution in claimed:
            self._spawn(execution)
        return len(claimed)

    def _spawn(self, execution: Execution) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _OUR_SECRETS},
            "INCHWORM_HOME": str(self._folder),
            TOKEN_VARIABLE: execution.token,
            "INCHWORM_STALE_LOCK": str(self._values.stale_lock),
        }
        if self._values.allow_private:
            environment["INCHWORM_ALLOW_PRIVATE"] = "1"
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        try:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "inchworm", "execute", str(execution.execution_id)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            log.error("No process for execution %s: %s", execution.execution_id, error.strerror)
            self._app.dispatch.give_up(execution, f"no process could be started: {error.strerror}")
            return
        log.info("Execution %s of job %s started", execution.execution_id, execution.job_id)
        self._children[execution.execution_id] = _Child(execution, process, errors)

    def watch(self) -> None:
        """End who stands still, and who does not end. Who was stopped in the middle of a write holds up all others that
        want to write; so nothing is written here, and it is done before every write and while one waits."""
        if self._is_time("watch", min(_LOOK_SECONDS, self._values.stale_check)):
            self._hurry()
        if not self._is_time("stale", self._values.stale_check):
            return
        claims = self._app.dispatch.claims
        beats = ((lock.token, lock.beats) for lock in claims.locks())
        for token, seconds in self._locks.look(beats, self._app.clock.monotonic()).items():
            if seconds > self._values.stale_lock and (execution := claims.held_by(token)) is not None:
                self._still[token] = seconds
                self._end(execution)

    def take_back(self) -> None:
        """Take jobs from holders that stood still."""
        while self._still:
            token, seconds = next(iter(self._still.items()))
            if (execution := self._app.dispatch.take_back(token)) is not None:
                log.warning("Execution %s stood still for %.0f s", execution.execution_id, seconds)
            del self._still[token]

    def reap(self) -> None:
        """Look after our children: those that have ended, and those that should have."""
        for number, child in list(self._children.items()):
            code = child.process.poll()
            if code is not None and child.execution.token not in self._still:
                del self._children[number]
                self._bury(child, code)
        self._hurry()

    def _hurry(self) -> None:
        """Kill children whose job was cancelled, when they have had time enough to end by themselves."""
        for child in self._children.values():
            if child.asked_to_end is None:
                with contextlib.suppress(Unknown):
                    if self._app.jobs.store.state_of(child.execution.job_id) is JobState.CANCELLED:
                        child.asked_to_end = self._app.clock.monotonic()
            elif self._app.clock.monotonic() - child.asked_to_end > self._values.grace + _SPARE_SECONDS:
                child.process.kill()

    def _bury(self, child: _Child, code: int) -> None:
        with contextlib.closing(child.errors) as errors:
            errors.seek(0, os.SEEK_END)
            errors.seek(max(0, errors.tell() - 4000))
            said = errors.read().decode("utf-8", "replace").strip()
        why = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        if self._app.dispatch.give_up(child.execution, f"its process ended {why}"):
            log.warning("Execution %s ended %s. %s", child.execution.execution_id, why, said[-500:])
        else:
            log.info("Execution %s ended", child.execution.execution_id)

    # Others

    def adopt(self) -> None:
        """Take over what services left behind that are gone."""
        limit = max(self._values.stale_lock, 3 * self._values.poll)
        for dead in self._app.dispatch.dead_services(self._services, limit):
            if dead != self.service_id:
                count = self._app.dispatch.inherit(dead, self.service_id)
                log.warning("Service %s is gone; %d of its executions are ours now", dead, count)
        for execution in self._app.executions.store.running():
            is_ours = execution.service_id == self.service_id and execution.execution_id not in self._children
            if is_ours and _is_over(execution):
                self._app.dispatch.give_up(execution, "its process is gone")

    def _end(self, execution: Execution) -> None:
        """End a process that was given up: ours by its handle, because it may not have told its number yet."""
        if (child := self._children.get(execution.execution_id)) is not None:
            child.process.kill()
        else:
            _signal(execution, signal.SIGKILL)

    # The end

    def leave(self) -> None:
        """End our executions within the grace time: their runs are paused, their jobs handed back."""
        mine = [one for one in self._app.executions.store.running() if one.service_id == self.service_id]
        for child in self._children.values():
            child.process.terminate()
        for execution in mine:
            if execution.execution_id not in self._children:
                _signal(execution, signal.SIGTERM)
        self._wait(lambda: any(self._still_runs(one) for one in mine), self._values.grace + _SPARE_SECONDS)
        # All of them before the first word is written: one may stand still in the middle of a write.
        for execution in mine:
            if self._still_runs(execution):
                self._end(execution)
        for child in self._children.values():
            child.process.kill()
        for execution in mine:
            self._app.dispatch.give_up(execution, STOPPED, is_crash=False)
        for child in self._children.values():
            self._bury(child, child.process.wait())
        self._children.clear()
        self._app.executions.services.remove(self.service_id)
        self._app.close()

    def _still_runs(self, execution: Execution) -> bool:
        child = self._children.get(execution.execution_id)
        if child is not None and child.process.poll() is not None:
            return False
        now = self._app.executions.store.get(execution.execution_id)
        return now.state is ExecutionState.RUNNING and not _is_over(now)

    def _wait(self, is_needed: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and is_needed():
            time.sleep(0.05)


def _signal(execution: Execution, number: int) -> None:
    """Signal the process of an execution, if it is here and still that process."""
    if execution.machine != this_machine():
        return
    with contextlib.suppress(OSError):
        # While we hold its descriptor the number cannot become another process's, between the look and the signal.
        process = os.pidfd_open(execution.pid)
        try:
            if _has_token(execution):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


def _is_over(execution: Execution) -> bool:
    """Whether the process of an execution is known to be dead, though its number may be another's by now."""
    if is_gone(execution.machine, execution.pid):
        return True
    try:
        return execution.machine == this_machine() and not _has_token(execution)
    except PermissionError:
        return False  # nobody can say
    except OSError:
        return True


def _has_token(execution: Execution) -> bool:
    """Whether the process of this number was started for this execution: no other was ever given its token."""
    environment = Path(f"/proc/{execution.pid}/environ").read_bytes().split(b"\0")
    return f"{TOKEN_VARIABLE}={execution.token}".encode() in environment
