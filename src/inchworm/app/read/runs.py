"""Runs: all of a crawl or some, one with its sessions, and what one of them came to."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown
from inchworm.model import Counters, CrawlInfo, EndedBy, RunInfo, RunState, SessionInfo, SessionState
from inchworm.rules.schedule import repetition
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.store import CrawlStore

_RUN_ID = re.compile(r"([0-9A-Za-z]{1,64})_iter_([0-9]{1,18})")
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in lists: what it found and what it saved."""

    run: int
    iteration_id: str
    mode: str
    parent: int | None
    branch_of: int | None
    on_line: bool
    state: RunState
    started_at: str
    ended_at: str | None
    pages: int
    duplicates: int
    failed: int
    pending: int
    new: int
    modified: int
    unchanged: int
    deleted: int
    unknown: int
    requests: int
    bytes: int
    saved_bytes: int
    alarm: str


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session in lists. One that nobody ended, and nobody works on, has crashed."""

    session: int
    state: SessionState
    ended_by: EndedBy | None
    requests: int
    unanswered: int
    bytes: int
    started_at: str
    ended_at: str | None
    message: str


@dataclass(frozen=True, slots=True)
class SessionOfRun:
    """A session of a run, and how many pages it crawled."""

    line: SessionLine = field(metadata=FLAT)
    id: int
    pages_crawled: int


@dataclass(frozen=True, slots=True)
class RunWithSessions:
    """A run, by the id that says of which crawl it is, with its sessions."""

    id: str
    crawl_id: str
    run: int
    mode: str
    state: RunState
    sessions: tuple[SessionOfRun, ...]
    total_pages_crawled: int
    counters: Counters = field(metadata=FLAT)
    created_at: str
    ended_at: str | None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What there is to say of a run and its last session."""

    crawl_id: str
    name: str
    line: RunLine = field(metadata=FLAT)
    word: str
    ended_by: str
    seconds: float
    has_changes: bool
    summary: str


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The counters of a run."""

    run: int
    is_last: bool
    counters: Counters = field(metadata=FLAT)


class RunChoice(NamedTuple):
    """A run in a list to choose from."""

    run: int
    mode: str
    started_at: str


class RunSize(NamedTuple):
    """How many pages a run has, and whether it is complete."""

    run: int
    started_at: str
    pages: int
    is_complete: bool


class Runs:
    """What is known of runs. A crawl that has not started has none."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self, crawl: CrawlInfo, before: int | None = None, limit: int | None = None) -> Sequence[RunLine]:
        """The runs of a crawl in their order: all, or the last so many before the one of this number."""
        with self._workspace.reading(crawl) as store:
            at_work = self._number_at_work(crawl, store)
            return [_line(crawl, one, one.number == at_work) for one in store.runs.list(before, limit)]

    def get(self, run_id: str) -> RunWithSessions:
        """One run with its sessions."""
        parts = _RUN_ID.fullmatch(run_id)
        crawl = self._workspace.crawls.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1] or self.last(crawl) is None:
            raise Unknown(f"There is no run {run_id!r}.", "A run's id is CRAWL_iter_NUMBER.")
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, int(parts[2]))
            is_running = current.number == self._number_at_work(crawl, store)
            sessions = store.sessions.of(current.run_id)
            pages = current.counters.pages + current.counters.duplicates
            counts: Mapping[int, int] = {one.number: pages for one in sessions}
            if len(sessions) > 1:
                counts = CountReader(store).pages_by_session(current.run_id)
        return RunWithSessions(
            id=run_id,
            crawl_id=crawl.crawl_id,
            run=current.number,
            mode=current.mode,
            state=run.state_of(current, is_running),
            sessions=tuple(
                SessionOfRun(session_line(one, is_running), one.number, counts.get(one.number, 0)) for one in sessions
            ),
            total_pages_crawled=pages,
            counters=current.counters,
            created_at=iso(current.created_ms),
            ended_at=_moment(current.ended_ms),
        )

    def last(self, crawl: CrawlInfo) -> RunInfo | None:
        """The run that is meant when none is named, if there is one."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            return store.runs.get()
        return None

    def all(self, crawl: CrawlInfo) -> Sequence[RunInfo]:
        """Every run as it is on record, for whoever has to know how they build on each other."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            return store.runs.list()
        return []

    def choices(self, crawl: CrawlInfo, limit: int = MOST_RUNS) -> Sequence[RunChoice]:
        """The last runs of a crawl, the newest first, to choose from."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            newest = reversed(store.runs.list(limit=limit))
            return [RunChoice(one.number, one.mode, iso(one.created_ms)) for one in newest]
        return []

    def sizes(self, crawl: CrawlInfo) -> Sequence[RunSize]:
        """How large every run is, in their order."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            found = CountReader(store).runs()
            return [RunSize(one.number, iso(one.created_ms), one.pages, bool(one.is_complete)) for one in found]
        return []

    def counts(self, crawl: CrawlInfo, number: int | None = None) -> RunCounts:
        """The counters of a run."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            last = store.runs.get()
        return RunCounts(current.number, last is not None and last.number == current.number, current.counters)

    def outcome(self, crawl: CrawlInfo, current: RunInfo) -> RunOutcome:
        """What a run came to."""
        with self._workspace.reading(crawl) as store:
            listed = _line(crawl, current, current.number == self._number_at_work(crawl, store))
            last = store.sessions.last(current.run_id)
        return RunOutcome(
            crawl_id=crawl.crawl_id,
            name=crawl.name,
            line=listed,
            word=run.word_for(current),
            ended_by=str(last.ended_by) if last and last.ended_by else "",
            seconds=max(0, (last.ended_ms or last.started_ms) - last.started_ms) / 1000 if last else 0.0,
            has_changes=has_changes(current),
            summary=_summary(crawl.name, current),
        )

    def _number_at_work(self, crawl: CrawlInfo, store: CrawlStore) -> int | None:
        """The run that a session works on now."""
        last = store.runs.get()
        return last.number if last is not None and self._workspace.is_running(crawl) else None


def iteration_id(crawl: CrawlInfo, number: int) -> str:
    return f"{crawl.crawl_id}_iter_{number}"


def has_changes(current: RunInfo) -> bool:
    return current.parent is not None and repetition.has_changes(current.counters)


def _line(crawl: CrawlInfo, one: RunInfo, is_running: bool) -> RunLine:
    counters = one.counters
    return RunLine(
        run=one.number,
        iteration_id=iteration_id(crawl, one.number),
        mode=one.mode,
        parent=one.parent,
        branch_of=one.origin,
        on_line=not one.beside,
        state=run.state_of(one, is_running),
        started_at=iso(one.created_ms),
        ended_at=_moment(one.ended_ms),
        pages=counters.pages,
        duplicates=counters.duplicates,
        failed=counters.failed,
        pending=counters.pending,
        new=counters.new,
        modified=counters.modified,
        unchanged=counters.unchanged,
        deleted=counters.deleted,
        unknown=counters.unknown,
        requests=counters.requests,
        bytes=counters.size,
        saved_bytes=max(0, counters.saved),
        alarm=one.alarm,
    )


def _summary(name: str, current: RunInfo) -> str:
    """What a run found, in one sentence."""
    counters = current.counters
    if current.parent is None:
        return f"Run {current.number} of {name}: {counters.pages} pages, and nothing to compare them with"
    found = ", ".join(f"{getattr(counters, kind)} {kind}" for kind in ("new", "modified", "deleted", "unchanged"))
    return f"Run {current.number} of {name}: {found}, {counters.unknown} unknown"


def session_line(one: SessionInfo, is_running: bool) -> SessionLine:
    """`is_running`: whether a session works on the crawl now."""
    is_crashed = one.state is SessionState.IN_PROGRESS and not is_running
    return SessionLine(
        session=one.number,
        state=SessionState.FAILED if is_crashed else one.state,
        ended_by=EndedBy.CRASHED if is_crashed else one.ended_by,
        requests=one.requests,
        unanswered=one.unanswered,
        bytes=one.size,
        started_at=iso(one.started_ms),
        ended_at=_moment(one.ended_ms),
        message=one.message,
    )


def _moment(at_ms: int | None) -> str | None:
    return iso(at_ms) if at_ms else None
