"""How a run goes, for people who watch: cheap enough to be asked every second."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from inchworm.app.memory import Memory
from inchworm.app.read.checkpoints import point_json
from inchworm.app.read.comparisons import stamp
from inchworm.app.read.runs import session_json
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.model import CrawlInfo, RunInfo, RunState, SessionInfo, SessionState
from inchworm.rules.words import failures
from inchworm.rules.words.times import iso
from inchworm.store.crawl.history import History
from inchworm.store.crawl.progress import Progress
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

SAMPLES = 120
FEW = 20
_FEW_HOSTS = 10
_LATELY_MS = 30_000
_MANY_FAILURES = 5_000
_MOST_KEPT = 64
_FAILURES: Memory[dict[str, int]] = Memory(_MOST_KEPT)
_DOWNLOADED: Memory[dict[str, int]] = Memory(_MOST_KEPT)


class RunProgress:
    """How a run goes."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def of(self, crawl: CrawlInfo, number: int) -> dict[str, Any]:
        """All that changes while a run goes on."""
        with self._workspace.reading(crawl) as store:
            current, last, end = (
                self._workspace.run_of(crawl, store, number),
                self._workspace.run_of(crawl, store),
                store.line_end(),
            )
            is_last = current.number == last.number
            running = is_last and self._workspace.is_running(crawl)
            progress, now_ms = Progress(store, current.run_id), self._workspace.clock.now_ms()
            sessions = _sessions(progress, store.sessions(current.run_id), current, running, now_ms)
            return {
                **_about(current, running),
                "is_last": is_last,
                "is_running": running,
                "newest_run": store.newest_number(),
                "line_end": end.number if end else None,
                "sessions": sessions,
                "seconds": sum(one["seconds"] for one in sessions),
                "pace": _pace(progress, current, sessions, now_ms if running else None),
                "failures": _failures(progress, store, current),
                "hosts": _hosts(progress, now_ms),
                **_marked(progress, crawl, store, current),
            }

    def downloaded(self, crawl: CrawlInfo, number: int) -> dict[str, int]:
        """Why pages were downloaded that turned out to be unchanged, once a run is complete."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            if current.parent is None or current.state is not RunState.COMPLETED:
                return {}
            key = (str(store.path), stamp(current))
            return _DOWNLOADED.get(key, lambda: View(store).why_downloaded(current.run_id))


# One run
def _about(one: RunInfo, running: bool) -> dict[str, Any]:
    counters = dataclasses.asdict(one.counters)
    return {
        "run": one.number,
        "mode": one.mode,
        "parent": one.parent,
        "branch_of": one.origin,
        "on_line": not one.beside,
        "branch_seq": one.origin_seq,
        "state": run.state_of(one, running).value,
        "seq": one.seq,
        "alarm": one.alarm,
        "is_concluded": bool(one.concluded),
        "started_at": iso(one.created_ms),
        "ended_at": iso(one.ended_ms) if one.ended_ms else None,
        **counters,
        "done": one.counters.known - one.counters.pending - one.counters.refused,
    }


def _sessions(
    progress: Progress, sessions: Iterable[SessionInfo], current: RunInfo, running: bool, now_ms: int
) -> list[dict[str, Any]]:
    """The sessions of a run, each with the steps of the record that are its own, and how long it worked."""
    starts = progress.starts()
    told: list[dict[str, Any]] = []
    end = current.seq
    for one in reversed(list(sessions)):
        start = min(starts[one.number], end)
        shown = session_json(one, running)
        ended_ms = _end_of(progress, one, (start, end), now_ms if running else None)
        told.append({**shown, "from": start, "to": end, "seconds": max(0, ended_ms - one.started_ms) / 1000})
        told[-1]["started_ms"] = one.started_ms
        end = start
    return told[::-1]


def _end_of(progress: Progress, one: SessionInfo, steps: tuple[int, int], now_ms: int | None) -> int:
    """When a session ended. Of one that crashed nobody wrote that down, so its last visit tells."""
    is_open = one.state is SessionState.IN_PROGRESS
    if is_open and now_ms is not None:
        return now_ms
    if one.ended_ms is not None and one.ended_by != "crashed":
        return one.ended_ms
    start, end = steps
    found = progress.last_before(end) if end > start else None
    return found.at_ms if found and found.session == one.number else one.started_ms


def _pace(progress: Progress, current: RunInfo, sessions: list[dict[str, Any]], now_ms: int | None) -> dict[str, Any]:
    """How fast a run goes: steps over time worked, of a sample; and lately, if it goes on."""
    before = {}
    worked = 0.0
    for one in sessions:
        before[one["session"]] = (worked, one["started_ms"])
        worked += one["seconds"]
    points = []
    for moment in progress.moments(_sample(current.seq)):
        if moment.session in before and moment.seq <= current.seq:
            offset, started_ms = before[moment.session]
            points.append((offset + max(0, moment.at_ms - started_ms) / 1000, moment.seq))
    lately = _lately(progress, current, sessions[-1], now_ms) if sessions and now_ms is not None else None
    left = current.counters.pending / lately if lately and current.counters.pending else None
    first = current.origin_seq or 0
    requests = sum(one["requests"] for one in sessions)
    average = requests / worked if worked > 0 else None
    return {"points": points, "first": first, "average": average, "lately": lately, "seconds_left": left}


def _sample(seq: int) -> list[int]:
    """Steps of a run, evenly spread; the same ones again while it grows, until they are too many."""
    stride = 1
    while seq > SAMPLES * stride:
        stride *= 2
    return [*range(stride, seq, stride), seq] if seq else []


def _lately(progress: Progress, current: RunInfo, session: Mapping[str, Any], now_ms: int) -> float:
    """Steps a second, in the last half minute."""
    since_ms = max(now_ms - _LATELY_MS, int(session["started_ms"]))
    count = progress.since(since_ms, session["from"] + 1, current.seq)
    return count / max(1.0, (now_ms - since_ms) / 1000)


def _failures(progress: Progress, store: CrawlStore, current: RunInfo) -> list[dict[str, Any]]:
    """What failed, by kind, the most frequent first."""
    counts = progress.failures()
    if (total := sum(counts.values())) != current.counters.failed:
        # Some were tried again. Which ones still stand is dearer to know, so with many it is not asked at every step.
        seq = current.seq // (1000 if total > _MANY_FAILURES else 1)
        key = (str(store.path), current.run_id, seq, current.counters.failed)
        counts = _FAILURES.get(key, progress.lasting_failures)
    return [
        {"kind": kind, "count": count, "meaning": _meaning(kind)}
        for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _meaning(kind: str) -> str:
    known = failures.KINDS.get(kind)
    return f"{known.sentence} {known.advice}" if known else ""


def _hosts(progress: Progress, now_ms: int) -> dict[str, Any]:
    count, busy = progress.hosts()
    rows = [
        {
            "host": one.host or "all hosts, in one order",
            "pending": one.pending,
            "waits_until": iso(one.wait_until_ms) if one.wait_until_ms > now_ms else None,
        }
        for one in progress.waiting(_FEW_HOSTS)
    ]
    return {"count": count, "busy": busy, "rows": rows}


def _marked(progress: Progress, crawl: CrawlInfo, store: CrawlStore, current: RunInfo) -> dict[str, Any]:
    """The checkpoints of a run: where all of them are, and the last few in full."""
    marks, history = progress.marks(), History(store)
    newest = [point for number, _ in reversed(marks[-FEW:]) if (point := history.checkpoint(number))]
    return {"marks": marks, "checkpoints": [point_json(crawl, point, history, current.seq) for point in newest]}
