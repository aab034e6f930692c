"""Beside the session of an execution: that it lives, its log, and what others want of it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from inchworm import settings
from inchworm.app.workspace import Workspace
from inchworm.engine.caller import Hooks
from inchworm.job import Execution, JobState
from inchworm.model import CrawlInfo, JsonObject, LiveProgress, RunInfo
from inchworm.store.crawl.read.failures import FailureReader
from inchworm.store.home.claims import Claims
from inchworm.store.home.events import Events
from inchworm.store.home.home import Home
from inchworm.store.home.inbox import OwnerRequests
from inchworm.store.home.jobs import Jobs
from inchworm.store.home.logs import MOST_LINES, ExecutionLogs, LogLine

CONTROL = dict.fromkeys((*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�")
_BEATS_PER_STALE = 5
_LOOK_SECONDS = 0.2
_REPORT_SECONDS = 1.0
_LOG_SECONDS = 10.0


class Keeper:
    """Beside the session, in a thread with a connection of its own: shows that the execution lives, writes its log, and
    passes on what others want of it."""

    def __init__(self, workspace: Workspace, execution: Execution, crawl: CrawlInfo | None, stale_lock: float) -> None:
        self._workspace = workspace
        self._claims, self._events = Claims(workspace.home), Events(workspace.home)
        self._execution = execution
        self._crawl = crawl
        self._beat_seconds = max(0.1, stale_lock / _BEATS_PER_STALE)
        self._lines: list[LogLine] = []
        self._count = 0
        self.pages_before = 0
        self._run: RunInfo | None = None
        self._progress: LiveProgress | None = None
        self._seen = 0
        self._over = threading.Event()
        self._trouble: Exception | None = None
        self._mutex = threading.Lock()
        self._looking = threading.Lock()

    # Called by the session

    def hooks(self) -> Hooks:
        return Hooks(self._started, self._moved, None, signals=True)

    def say(self, level: str, text: str, is_end: bool = False) -> None:
        """Add a line to the log: one event, one line, whatever a server put into it. Its end is said in any case."""
        with self._mutex:
            if self._count > MOST_LINES and not is_end:
                return
            if self._count == MOST_LINES and not is_end:
                level, text = "warning", "There is more, which is left out here."
            self._count += 1
            line = LogLine(self._count, self._workspace.clock.now_ms(), level, text[:2000].translate(CONTROL))
            self._lines.append(line)

    def catch_up(self) -> None:
        """The session is over: say what has not been said of it yet."""
        with self._looking:
            self._say_failures()

    def report_end(self) -> None:
        """How far it came in the end; what was reported last may be a second old."""
        if self._run is None or self._crawl is None:
            return
        with self._workspace.reading(self._crawl) as store:
            current = self._workspace.run_of(self._crawl, store, self._run.number)
            session = store.sessions.last(current.run_id)
        if session is None or session.ended_ms is None:
            return
        seconds = (session.ended_ms - session.started_ms) / 1000
        told = _as_json(LiveProgress(current.counters, session.requests, session.size, seconds, (), ""))
        self._claims.report(self._execution.execution_id, self._execution.token, progress=told)

    def _started(self, _: CrawlInfo, current: RunInfo, session: int) -> None:
        self._run, self._seen = current, current.seq
        self.pages_before = current.counters.pages + current.counters.duplicates
        execution = self._execution
        self._claims.report(execution.execution_id, execution.token, run=current.number, session=session)
        what = {**self._names(), "run": current.number, "session": session, "mode": current.mode}
        self._events.add("session_started", what, self._workspace.clock.now_ms())
        self.say("info", f"Run {current.number} ({current.mode}), session {session}")
        for text in settings.cautions(current.settings):
            self.say("warning", text)

    def _moved(self, progress: LiveProgress) -> None:
        self._progress = progress

    # The thread

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, name="keeper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        if self._trouble is not None:
            raise self._trouble

    def _watch(self) -> None:
        home = Home(self._workspace.folder)
        claims, logs, jobs = Claims(home), ExecutionLogs(home), Jobs(home)
        beat = report = said = time.monotonic()
        try:
            while not self._over.wait(_LOOK_SECONDS):
                now = time.monotonic()
                if now - beat >= self._beat_seconds:
                    beat = now
                    claims.beat(self._execution.execution_id, self._execution.token)
                if jobs.state_of(self._execution.job_id) is JobState.CANCELLED:
                    self._cancel(home)
                if now - report >= _REPORT_SECONDS:
                    report = now
                    self._report(claims, Events(home))
                if now - said >= _LOG_SECONDS:
                    said = now
                    self._say_progress()
                self._flush(logs)
            self._flush(logs)
        except Exception as error:
            # Either another process goes on with the job, or nobody would know that we live: the session has to end.
            self._trouble = error
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            home.close()

    def _cancel(self, home: Home) -> None:
        """What was asked before the session began is not meant for it, so it is asked here, until it is done."""
        requests, crawl_id = OwnerRequests(home), self._execution.crawl_id
        if self._run is not None and not requests.unanswered(crawl_id):
            requests.ask(crawl_id, "cancel", {}, self._workspace.clock.now_ms())

    def _report(self, claims: Claims, events: Events) -> None:
        progress, self._progress = self._progress, None
        if progress is None or self._run is None:
            return
        told = _as_json(progress)
        pages = progress.counters.pages + progress.counters.duplicates - self.pages_before
        claims.report(self._execution.execution_id, self._execution.token, progress=told, pages=pages)
        events.add("progress", {**self._names(), "run": self._run.number, **told}, self._workspace.clock.now_ms())
        with self._looking:
            self._say_failures()

    def _names(self) -> JsonObject:
        """Whose events these are."""
        one = self._execution
        return {"crawl_id": one.crawl_id, "job_id": one.job_id, "execution_id": one.execution_id}

    def _say_progress(self) -> None:
        if self._run is None or self._crawl is None:
            return
        with self._workspace.reading(self._crawl) as store:
            current = store.runs.get(self._run.number)
        if current is not None:
            counters = current.counters
            self.say("info", f"{counters.pages:,} pages, {counters.failed:,} failed, {counters.pending:,} pending")

    def _say_failures(self) -> None:
        if self._run is None or self._crawl is None:
            return
        with self._workspace.reading(self._crawl) as store:
            current = self._workspace.run_of(self._crawl, store, self._run.number)
            for url, failure, message in FailureReader(store).between(current.run_id, self._seen, current.seq):
                self.say("warning", f"{failure}: {url} {message}".rstrip())
        self._seen = current.seq

    def _flush(self, logs: ExecutionLogs) -> None:
        with self._mutex:
            lines, self._lines = self._lines, []
        if lines:
            logs.add(self._execution.execution_id, self._execution.token, lines)


def _as_json(progress: LiveProgress) -> JsonObject:
    counters = progress.counters
    return {
        "known": counters.known,
        "pages": counters.pages,
        "duplicates": counters.duplicates,
        "failed": counters.failed,
        "refused": counters.refused,
        "pending": counters.pending,
        "requests": progress.requests,
        "bytes": progress.size,
        "seconds": round(progress.seconds, 1),
        "in_flight": len(progress.in_flight),
    }
