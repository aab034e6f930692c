"""Iterations: the runs of a crawl after each other, what they cost, and what they saved."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inchworm.app.read.runs import Runs, iteration_id
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown
from inchworm.model import CrawlInfo, EndedBy, Mode, RunInfo
from inchworm.rules.words.times import iso
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

_CHANGES = ("new", "modified", "unchanged", "deleted", "unknown")
_CHANGED = ("new", "modified", "deleted", "unknown")


class Iterations:
    """The runs of a crawl as iterations."""

    def __init__(self, workspace: Workspace, runs: Runs) -> None:
        self._workspace = workspace
        self._runs = runs

    def all(self, word: str, after: int = -1, limit: int | None = None) -> list[dict[str, Any]]:
        """The runs of a crawl after the one of this number, in their order."""
        crawl = self._workspace.find(word)
        runs = self._runs.of(crawl)
        origins = baselines(runs)
        shown = [one for one in runs if one.number > after][:limit]
        running = self._workspace.is_running(crawl)
        return [_iteration_json(crawl, one, origins[one.number], running) for one in shown]

    def one(self, word: str, number: int) -> dict[str, Any]:
        """One run."""
        found = self.all(word, number - 1, 1)
        if not found or found[0]["iteration_number"] != number:
            raise Unknown(f"The crawl {self._workspace.find(word).name!r} has no run {number}.", "Its runs are listed.")
        return found[0]

    def stats(self, word: str) -> dict[str, Any]:
        """What the runs of a crawl cost, what they saved against full crawls, and how much changes. Of a crawl that has
        not started: nothing."""
        crawl = self._workspace.find(word)
        costs: list[_Cost] = []
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            costs = [_Cost.of(one, store) for one in store.runs()]
        running = self._workspace.is_running(crawl)
        lines = [_line(costs[: number + 1], running) for number in range(len(costs))]
        again = [line for line in lines if line["mode"] != Mode.BASELINE]
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "runs": len(lines),
            "iterations": len(again),
            "per_run": lines,
            "totals": _totals(lines, again),
        }

    def made(self, crawl: CrawlInfo) -> int:
        """How often a crawl has been repeated already."""
        if self._runs.last(crawl) is None:
            return 0
        with self._workspace.reading(crawl) as store:
            return View(store).iterations()


# Iterations as they are shown
def baselines(runs: Sequence[RunInfo]) -> dict[int, int]:
    """For each run, the baseline that it goes back to, which may be itself."""
    found: dict[int, int] = {}
    for one in runs:
        found[one.number] = one.number if one.parent is None else found[one.parent]
    return found


def _iteration_json(crawl: CrawlInfo, one: RunInfo, baseline: int, running: bool) -> dict[str, Any]:
    counters, is_again = one.counters, one.parent is not None
    stats = {
        "total_documents": counters.pages + counters.duplicates,
        "urls_crawled": counters.known - counters.pending - counters.refused,
        "urls_failed": counters.failed,
    }
    return {
        "iteration_id": iteration_id(crawl, one.number),
        "crawl_id": crawl.crawl_id,
        "iteration_number": one.number,
        "parent_iteration_id": iteration_id(crawl, one.parent) if one.parent is not None else None,
        "baseline_iteration_id": iteration_id(crawl, baseline) if is_again else None,
        "mode": one.mode,
        "state": run.state_of(one, running).value,
        "started_at": iso(one.created_ms),
        "completed_at": iso(one.ended_ms) if one.ended_ms is not None else None,
        "duration_seconds": (one.ended_ms - one.created_ms) / 1000 if one.ended_ms is not None else None,
        "stats": stats | ({f"{kind}_documents": getattr(counters, kind) for kind in _CHANGES} if is_again else {}),
        "branch_of": iteration_id(crawl, one.origin) if one.origin is not None else None,
        "on_line": not one.beside,
        "alarm": one.alarm or None,
    }


class _Cost(NamedTuple):
    """What a run took. Of a session that crashed nobody knows how long it worked, so its time is left out, and its
    requests wherever they are set against time."""

    run: RunInfo
    seconds: float
    requests: int
    reused: int

    @classmethod
    def of(cls, one: RunInfo, store: CrawlStore) -> _Cost:
        timed = [session for session in store.sessions(one.run_id) if session.ended_by not in (None, EndedBy.CRASHED)]
        seconds = sum(max(0, (session.ended_ms or session.started_ms) - session.started_ms) for session in timed) / 1000
        reused = View(store).reused(one.run_id) if one.mode != Mode.BASELINE else 0
        return cls(one, seconds, sum(session.requests for session in timed), reused)

    @property
    def pace(self) -> float | None:
        """Seconds per request."""
        return self.seconds / self.requests if self.requests else None

    def saved_at(self, pace: float) -> float:
        """How much longer as many requests, and those that were spared, would have taken at this pace; none when a run
        was slower than that, for it has saved nothing."""
        return max(0.0, (self.requests + self.reused) * pace - self.seconds)


def _line(costs: Sequence[_Cost], running: bool) -> dict[str, Any]:
    """The last of these runs, measured by the pace of the last one before it that downloaded everything."""
    *before, cost = costs
    counters, is_again = cost.run.counters, cost.run.mode != Mode.BASELINE
    paces = [one.pace for one in before if one.run.mode != Mode.INCREMENTAL and one.pace is not None]
    seen = counters.unchanged + counters.modified + counters.deleted
    return {
        "run": cost.run.number,
        "mode": cost.run.mode,
        "state": run.state_of(cost.run, running).value,
        "requests": counters.requests,
        "bytes": counters.size,
        "seconds": round(cost.seconds, 3),
        "requests_saved": cost.reused if is_again else 0,
        "bytes_saved": max(0, counters.saved) if is_again else 0,
        "seconds_saved_estimate": round(cost.saved_at(paces[-1]), 3) if is_again and paces else None,
        **{kind: getattr(counters, kind) if is_again else 0 for kind in (*_CHANGED, "unchanged")},
        "share_changed": round((counters.modified + counters.deleted) / seen, 4) if is_again and seen else None,
    }


def _totals(lines: Sequence[Mapping[str, Any]], again: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("requests", "bytes", "requests_saved", "bytes_saved", *_CHANGED, "unchanged")
    totals: dict[str, Any] = {name: sum(line[name] for line in lines) for name in names}
    estimates = [line["seconds_saved_estimate"] for line in again if line["seconds_saved_estimate"] is not None]
    seen = totals["unchanged"] + totals["modified"] + totals["deleted"]
    return totals | {
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "seconds_saved_estimate": round(sum(estimates), 3) if estimates else None,
        "share_changed": round((totals["modified"] + totals["deleted"]) / seen, 4) if seen else None,
    }
