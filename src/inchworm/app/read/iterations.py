"""Iterations: the runs of a crawl after each other, what they cost, and what they saved."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm.app.read.runs import Runs, iteration_id
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown
from inchworm.model import Counters, CrawlInfo, EndedBy, Mode, RunInfo, RunState
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.store import CrawlStore


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """How many documents a run found new, modified and so on, compared with the one that it builds on."""

    new_documents: int
    modified_documents: int
    unchanged_documents: int
    deleted_documents: int
    unknown_documents: int


@dataclass(frozen=True, slots=True)
class IterationStats:
    """What a run came to, in numbers. One that builds on no other has no changes."""

    total_documents: int
    urls_crawled: int
    urls_failed: int
    changes: DocumentChanges | None = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class IterationLine:
    """A run as an iteration of its crawl."""

    iteration_id: str
    crawl_id: str
    iteration_number: int
    parent_iteration_id: str | None
    baseline_iteration_id: str | None
    mode: str
    state: RunState
    started_at: str
    completed_at: str | None
    duration_seconds: float | None
    stats: IterationStats
    branch_of: str | None
    on_line: bool
    alarm: str | None


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run cost, and what it saved against a full crawl."""

    run: int
    mode: str
    state: RunState
    requests: int
    bytes: int
    seconds: float
    requests_saved: int
    bytes_saved: int
    seconds_saved_estimate: float | None
    new: int
    modified: int
    deleted: int
    unknown: int
    unchanged: int
    share_changed: float | None


@dataclass(frozen=True, slots=True)
class CostTotals:
    """The same of all runs together."""

    requests: int
    bytes: int
    requests_saved: int
    bytes_saved: int
    new: int
    modified: int
    deleted: int
    unknown: int
    unchanged: int
    seconds: float
    seconds_saved_estimate: float | None
    share_changed: float | None


@dataclass(frozen=True, slots=True)
class CrawlCosts:
    """What the runs of a crawl cost. `iterations`: how many of them are no baseline."""

    crawl_id: str
    name: str
    runs: int
    iterations: int
    per_run: tuple[RunCost, ...]
    totals: CostTotals


class Iterations:
    """The runs of a crawl as iterations."""

    def __init__(self, workspace: Workspace, runs: Runs) -> None:
        self._workspace = workspace
        self._runs = runs

    def list(self, crawl: CrawlInfo, after: int = -1, limit: int | None = None) -> Sequence[IterationLine]:
        """The runs of a crawl after the one of this number, in their order."""
        runs = self._runs.all(crawl)
        origins = baselines(runs)
        shown = [one for one in runs if one.number > after][:limit]
        running = self._workspace.is_running(crawl)
        return [_iteration(crawl, one, origins[one.number], running) for one in shown]

    def get(self, crawl: CrawlInfo, number: int) -> IterationLine:
        """One run."""
        found = self.list(crawl, number - 1, 1)
        if not found or found[0].iteration_number != number:
            raise Unknown(f"The crawl {crawl.name!r} has no run {number}.", "Its runs are listed.")
        return found[0]

    def costs(self, crawl: CrawlInfo) -> CrawlCosts:
        """What the runs of a crawl cost, what they saved against full crawls, and how much changes. Of a crawl that has
        not started: nothing."""
        costs: Sequence[_Cost] = []
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            costs = [_Cost.of(one, store) for one in store.runs.list()]
        running = self._workspace.is_running(crawl)
        lines = tuple(_line(costs[: number + 1], running) for number in range(len(costs)))
        again = sum(1 for line in lines if line.mode != Mode.BASELINE)
        return CrawlCosts(crawl.crawl_id, crawl.name, len(lines), again, lines, _totals(lines))

    def made(self, crawl: CrawlInfo) -> int:
        """How often a crawl has been repeated already."""
        if self._runs.last(crawl) is None:
            return 0
        with self._workspace.reading(crawl) as store:
            return CountReader(store).iterations()


# Iterations as they are shown
def baselines(runs: Sequence[RunInfo]) -> dict[int, int]:
    """For each run, the baseline that it goes back to, which may be itself."""
    found: dict[int, int] = {}
    for one in runs:
        found[one.number] = one.number if one.parent is None else found[one.parent]
    return found


def _iteration(crawl: CrawlInfo, one: RunInfo, baseline: int, running: bool) -> IterationLine:
    is_again = one.parent is not None
    return IterationLine(
        iteration_id=iteration_id(crawl, one.number),
        crawl_id=crawl.crawl_id,
        iteration_number=one.number,
        parent_iteration_id=iteration_id(crawl, one.parent) if one.parent is not None else None,
        baseline_iteration_id=iteration_id(crawl, baseline) if is_again else None,
        mode=one.mode,
        state=run.state_of(one, running),
        started_at=iso(one.created_ms),
        completed_at=iso(one.ended_ms) if one.ended_ms is not None else None,
        duration_seconds=(one.ended_ms - one.created_ms) / 1000 if one.ended_ms is not None else None,
        stats=_stats(one.counters, is_again),
        branch_of=iteration_id(crawl, one.origin) if one.origin is not None else None,
        on_line=not one.beside,
        alarm=one.alarm or None,
    )


def _stats(counters: Counters, is_again: bool) -> IterationStats:
    changes = DocumentChanges(counters.new, counters.modified, counters.unchanged, counters.deleted, counters.unknown)
    return IterationStats(
        total_documents=counters.pages + counters.duplicates,
        urls_crawled=counters.known - counters.pending - counters.refused,
        urls_failed=counters.failed,
        changes=changes if is_again else None,
    )


class _Cost(NamedTuple):
    """What a run took. Of a session that crashed nobody knows how long it worked, so its time is left out, and its
    requests wherever they are set against time."""

    run: RunInfo
    seconds: float
    requests: int
    reused: int

    @classmethod
    def of(cls, one: RunInfo, store: CrawlStore) -> _Cost:
        timed = [
            session for session in store.sessions.of(one.run_id) if session.ended_by not in (None, EndedBy.CRASHED)
        ]
        seconds = sum(max(0, (session.ended_ms or session.started_ms) - session.started_ms) for session in timed) / 1000
        reused = CountReader(store).reused(one.run_id) if one.mode != Mode.BASELINE else 0
        return cls(one, seconds, sum(session.requests for session in timed), reused)

    @property
    def pace(self) -> float | None:
        """Seconds per request."""
        return self.seconds / self.requests if self.requests else None

    def saved_at(self, pace: float) -> float:
        """How much longer as many requests, and those that were spared, would have taken at this pace; none when a run
        was slower than that, for it has saved nothing."""
        return max(0.0, (self.requests + self.reused) * pace - self.seconds)


def _line(costs: Sequence[_Cost], running: bool) -> RunCost:
    """The last of these runs, measured by the pace of the last one before it that downloaded everything."""
    *before, cost = costs
    is_again = cost.run.mode != Mode.BASELINE
    counters = cost.run.counters
    changes = counters if is_again else Counters()
    paces = [one.pace for one in before if one.run.mode != Mode.INCREMENTAL and one.pace is not None]
    return RunCost(
        run=cost.run.number,
        mode=cost.run.mode,
        state=run.state_of(cost.run, running),
        requests=counters.requests,
        bytes=counters.size,
        seconds=round(cost.seconds, 3),
        requests_saved=cost.reused if is_again else 0,
        bytes_saved=max(0, counters.saved) if is_again else 0,
        seconds_saved_estimate=round(cost.saved_at(paces[-1]), 3) if is_again and paces else None,
        new=changes.new,
        modified=changes.modified,
        deleted=changes.deleted,
        unknown=changes.unknown,
        unchanged=changes.unchanged,
        share_changed=_share_changed(changes.unchanged, changes.modified + changes.deleted),
    )


def _totals(lines: Sequence[RunCost]) -> CostTotals:
    estimates = [line.seconds_saved_estimate for line in lines if line.seconds_saved_estimate is not None]
    unchanged, modified = sum(line.unchanged for line in lines), sum(line.modified for line in lines)
    deleted = sum(line.deleted for line in lines)
    return CostTotals(
        requests=sum(line.requests for line in lines),
        bytes=sum(line.bytes for line in lines),
        requests_saved=sum(line.requests_saved for line in lines),
        bytes_saved=sum(line.bytes_saved for line in lines),
        new=sum(line.new for line in lines),
        modified=modified,
        deleted=deleted,
        unknown=sum(line.unknown for line in lines),
        unchanged=unchanged,
        seconds=round(sum(line.seconds for line in lines), 3),
        seconds_saved_estimate=round(sum(estimates), 3) if estimates else None,
        share_changed=_share_changed(unchanged, modified + deleted),
    )


def _share_changed(unchanged: int, changed: int) -> float | None:
    """Of the pages that were there before."""
    return round(changed / (unchanged + changed), 4) if unchanged + changed else None
