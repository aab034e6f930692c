"""How a run goes, for people who watch: cheap enough to be asked every second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inchworm.app.memory import Memory
from inchworm.app.read.checkpoints import CheckpointLine, checkpoint_line
from inchworm.app.read.comparisons import stamp
from inchworm.app.read.runs import SessionLine, session_line
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.model import Counters, CrawlInfo, RunInfo, RunState, SessionInfo, SessionState
from inchworm.rules.words import failures
from inchworm.rules.words.times import iso
from inchworm.store.crawl.history import History
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.progress import ProgressReader
from inchworm.store.crawl.store import CrawlStore

SAMPLES = 120
FEW = 20
_FEW_HOSTS = 10
_LATELY_MS = 30_000
_MANY_FAILURES = 5_000
_MOST_KEPT = 64
_FAILURES: Memory[dict[str, int]] = Memory(_MOST_KEPT)
_DOWNLOADED: Memory[Mapping[str, int]] = Memory(_MOST_KEPT)


class SessionProgress(NamedTuple):
    """A session of a run, with the steps of the record that are its own, from behind one to another, and how long it
    worked."""

    line: SessionLine
    first: int
    last: int
    started_ms: int
    seconds: float


class RunPace(NamedTuple):
    """How fast a run goes: steps over time worked, from behind the first, of a sample; requests a second; and, if it
    goes on, steps a second lately, and how long it will take at that."""

    points: Sequence[tuple[float, int]]
    first: int
    average: float | None
    lately: float | None
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many URLs failed in one way, and what that means."""

    kind: str
    count: int
    meaning: str


class HostLine(NamedTuple):
    """A host on which something is pending, and until when it asked us to stay away."""

    host: str
    pending: int
    waits_until: str | None


@dataclass(frozen=True, slots=True)
class RunHosts:
    """How many hosts a run has met, on how many of them something is pending, and those with the most."""

    count: int
    busy: int
    rows: Sequence[HostLine]


@dataclass(frozen=True, slots=True)
class RunDetail:
    """All that changes while a run goes on. `marks`: number and step of every checkpoint; `checkpoints`: the last few,
    the newest first."""

    run: int
    mode: str
    parent: int | None
    branch_of: int | None
    branch_seq: int | None
    on_line: bool
    state: RunState
    seq: int
    alarm: str
    is_concluded: bool
    started_at: str
    ended_at: str | None
    counters: Counters
    is_last: bool
    is_running: bool
    newest_run: int
    line_end: int | None
    sessions: Sequence[SessionProgress]
    pace: RunPace
    failures: Sequence[FailureCount]
    hosts: RunHosts
    marks: Sequence[tuple[int, int]]
    checkpoints: Sequence[CheckpointLine]

    @property
    def done(self) -> int:
        """How many URLs something has become of."""
        return self.counters.known - self.counters.pending - self.counters.refused

    @property
    def seconds(self) -> float:
        """How long it was worked on."""
        return sum(one.seconds for one in self.sessions)


class RunProgress:
    """How a run goes."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def of(self, crawl: CrawlInfo, number: int) -> RunDetail:
        """All that changes while a run goes on."""
        with self._workspace.reading(crawl) as store:
            current, last, end = (
                self._workspace.run_of(crawl, store, number),
                self._workspace.run_of(crawl, store),
                store.runs.line_end(),
            )
            is_last = current.number == last.number
            running = is_last and self._workspace.is_running(crawl)
            progress, now_ms = ProgressReader(store, current.run_id), self._workspace.clock.now_ms()
            sessions = _sessions(progress, store.sessions.of(current.run_id), current, running, now_ms)
            marks = progress.marks()
            return RunDetail(
                run=current.number,
                mode=current.mode,
                parent=current.parent,
                branch_of=current.origin,
                branch_seq=current.origin_seq,
                on_line=not current.beside,
                state=run.state_of(current, running),
                seq=current.seq,
                alarm=current.alarm,
                is_concluded=bool(current.concluded),
                started_at=iso(current.created_ms),
                ended_at=iso(current.ended_ms) if current.ended_ms else None,
                counters=current.counters,
                is_last=is_last,
                is_running=running,
                newest_run=store.runs.newest_number(),
                line_end=end.number if end else None,
                sessions=sessions,
                pace=_pace(progress, current, sessions, now_ms if running else None),
                failures=_failures(progress, store, current),
                hosts=_hosts(progress, now_ms),
                marks=marks,
                checkpoints=_newest(marks, crawl, History(store), current),
            )

    def downloaded(self, crawl: CrawlInfo, number: int) -> Mapping[str, int]:
        """Why pages were downloaded that turned out to be unchanged, once a run is complete."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            if current.parent is None or current.state is not RunState.COMPLETED:
                return {}
            key = (str(store.path), stamp(current))
            return _DOWNLOADED.get(key, lambda: CountReader(store).why_downloaded(current.run_id))


def _sessions(
    progress: ProgressReader, sessions: Iterable[SessionInfo], current: RunInfo, running: bool, now_ms: int
) -> Sequence[SessionProgress]:
    starts = progress.starts()
    found: list[SessionProgress] = []
    end = current.seq
    for one in reversed(list(sessions)):
        start = min(starts[one.number], end)
        ended_ms = _end_of(progress, one, (start, end), now_ms if running else None)
        seconds = max(0, ended_ms - one.started_ms) / 1000
        found.append(SessionProgress(session_line(one, running), start, end, one.started_ms, seconds))
        end = start
    return found[::-1]


def _end_of(progress: ProgressReader, one: SessionInfo, steps: tuple[int, int], now_ms: int | None) -> int:
    """When a session ended. Of one that crashed nobody wrote that down, so its last visit tells."""
    is_open = one.state is SessionState.IN_PROGRESS
    if is_open and now_ms is not None:
        return now_ms
    if one.ended_ms is not None and one.ended_by != "crashed":
        return one.ended_ms
    start, end = steps
    found = progress.last_before(end) if end > start else None
    return found.at_ms if found and found.session == one.number else one.started_ms


def _pace(
    progress: ProgressReader, current: RunInfo, sessions: Sequence[SessionProgress], now_ms: int | None
) -> RunPace:
    before = {}
    worked = 0.0
    for one in sessions:
        before[one.line.session] = (worked, one.started_ms)
        worked += one.seconds
    points = []
    for moment in progress.moments(_sample(current.seq)):
        if moment.session in before and moment.seq <= current.seq:
            offset, started_ms = before[moment.session]
            points.append((offset + max(0, moment.at_ms - started_ms) / 1000, moment.seq))
    lately = _lately(progress, current, sessions[-1], now_ms) if sessions and now_ms is not None else None
    left = current.counters.pending / lately if lately and current.counters.pending else None
    first = current.origin_seq or 0
    requests = sum(one.line.requests for one in sessions)
    average = requests / worked if worked > 0 else None
    return RunPace(points, first, average, lately, left)


def _sample(seq: int) -> list[int]:
    """Steps of a run, evenly spread; the same ones again while it grows, until they are too many."""
    stride = 1
    while seq > SAMPLES * stride:
        stride *= 2
    return [*range(stride, seq, stride), seq] if seq else []


def _lately(progress: ProgressReader, current: RunInfo, session: SessionProgress, now_ms: int) -> float:
    """Steps a second, in the last half minute."""
    since_ms = max(now_ms - _LATELY_MS, session.started_ms)
    count = progress.since(since_ms, session.first + 1, current.seq)
    return count / max(1.0, (now_ms - since_ms) / 1000)


def _failures(progress: ProgressReader, store: CrawlStore, current: RunInfo) -> Sequence[FailureCount]:
    """What failed, by kind, the most frequent first."""
    counts = progress.failures()
    if (total := sum(counts.values())) != current.counters.failed:
        # Some were tried again. Which ones still stand is dearer to know, so with many it is not asked at every step.
        seq = current.seq // (1000 if total > _MANY_FAILURES else 1)
        key = (str(store.path), current.run_id, seq, current.counters.failed)
        counts = _FAILURES.get(key, progress.lasting_failures)
    return [
        FailureCount(kind, count, _meaning(kind))
        for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _meaning(kind: str) -> str:
    known = failures.KINDS.get(kind)
    return f"{known.sentence} {known.advice}" if known else ""


def _hosts(progress: ProgressReader, now_ms: int) -> RunHosts:
    count, busy = progress.hosts()
    rows = [
        HostLine(
            one.host or "all hosts, in one order",
            one.pending,
            iso(one.wait_until_ms) if one.wait_until_ms > now_ms else None,
        )
        for one in progress.waiting(_FEW_HOSTS)
    ]
    return RunHosts(count, busy, rows)


def _newest(
    marks: Sequence[tuple[int, int]], crawl: CrawlInfo, history: History, current: RunInfo
) -> Sequence[CheckpointLine]:
    """The last few checkpoints of a run, the newest first."""
    points = [point for number, _ in reversed(marks[-FEW:]) if (point := history.checkpoint(number))]
    return [checkpoint_line(crawl, point, history, current.seq) for point in points]
