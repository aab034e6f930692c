"""Runs: one by one, all of a crawl, and what one of them came to."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from typing import Any

from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, Unknown
from inchworm.model import CrawlInfo, EndedBy, RunInfo, SessionInfo, SessionState
from inchworm.rules.schedule import repetition
from inchworm.rules.words.times import iso
from inchworm.store.crawl.browse import Browse
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

_RUN_ID = re.compile(r"([0-9A-Za-z]{1,64})_iter_([0-9]{1,18})")
MOST_RUNS = 100
_MOST_RUNS = 30


class Runs:
    """What is known of runs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def all(self, word: str) -> list[dict[str, Any]]:
        """One line per run."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            return [self.line(crawl, one, store) for one in store.runs()]

    def line(self, crawl: CrawlInfo, one: RunInfo, store: CrawlStore) -> dict[str, Any]:
        last = store.run()
        is_worked_on = last is not None and last.number == one.number and self._workspace.is_running(crawl)
        counters = dataclasses.asdict(one.counters)
        return {
            "run": one.number,
            "iteration_id": iteration_id(crawl, one.number),
            "mode": one.mode,
            "parent": one.parent,
            "branch_of": one.origin,
            "on_line": not one.beside,
            "state": run.state_of(one, is_worked_on).value,
            "started_at": iso(one.created_ms),
            "ended_at": iso(one.ended_ms) if one.ended_ms else None,
            **{name: counters[name] for name in ("pages", "duplicates", "failed", "pending")},
            **{name: counters[name] for name in ("new", "modified", "unchanged", "deleted", "unknown")},
            "requests": counters["requests"],
            "bytes": counters["size"],
            "saved_bytes": max(0, counters["saved"]),
            "alarm": one.alarm,
        }

    def of(self, crawl: CrawlInfo) -> list[RunInfo]:
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            return store.runs()
        return []

    def last(self, crawl: CrawlInfo) -> RunInfo | None:
        """The run that is meant when none is named, if there is one."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            return store.run()
        return None

    def newest(self, crawl: CrawlInfo) -> list[dict[str, Any]]:
        """The newest runs, as many as fit into a list to choose from."""
        with self._workspace.reading(crawl) as store:
            return Browse(store).runs(MOST_RUNS)

    # Two runs

    def choices(self, crawl: CrawlInfo, most: int) -> list[dict[str, Any]]:
        """The last runs of a crawl, the newest first: number, mode, beginning."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            newest = reversed(store.runs()[-most:])
            return [{"run": one.number, "mode": one.mode, "started_at": iso(one.created_ms)} for one in newest]
        return []

    def counts(self, crawl: CrawlInfo, number: int | None = None) -> dict[str, Any]:
        """The counters of a run."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            last = store.run()
        counters = {name: getattr(current.counters, name) for name in _COUNTED}
        return {"run": current.number, "is_last": last is not None and last.number == current.number, **counters}

    def history(self, crawl: CrawlInfo, before: int | None = None, limit: int = _MOST_RUNS) -> dict[str, Any]:
        """The runs of a crawl before the one of this number, newest first; and number, beginning and size of all."""
        if self.last(crawl) is None:
            return {"runs": [], "sizes": []}
        with self._workspace.reading(crawl) as store:
            sizes = View(store).sizes()
            numbers = [number for number, *_ in reversed(sizes) if before is None or number < before]
            runs = [self._line_of(crawl, store, number) for number in numbers[:limit]]
        return {"runs": runs, "sizes": sizes}

    def _line_of(self, crawl: CrawlInfo, store: CrawlStore, number: int) -> dict[str, Any]:
        return self.line(crawl, self._workspace.run_of(crawl, store, number), store)

    def by_id(self, run_id: str) -> dict[str, Any]:
        """One run with its sessions, by the id that says of which crawl it is."""
        parts = _RUN_ID.fullmatch(run_id)
        crawl = self._workspace.home.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1] or self.last(crawl) is None:
            raise Unknown(f"There is no run {run_id!r}.", "A run's id is CRAWL_iter_NUMBER.")
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, int(parts[2]))
            last = self._workspace.run_of(crawl, store)
            sessions = store.sessions(current.run_id)
            pages = current.counters.pages + current.counters.duplicates
            counts = {one.number: pages for one in sessions}
            if len(sessions) > 1:
                counts = View(store).pages_by_session(current.run_id)
        running = last.number == current.number and self._workspace.is_running(crawl)
        return {
            "id": run_id,
            "crawl_id": crawl.crawl_id,
            "run": current.number,
            "mode": current.mode,
            "state": run.state_of(current, running).value,
            "sessions": [
                {**told, "id": told["session"], "pages_crawled": counts.get(told["session"], 0)}
                for told in (session_json(one, running) for one in sessions)
            ],
            "total_pages_crawled": pages,
            **dataclasses.asdict(current.counters),
            "created_at": iso(current.created_ms),
            "ended_at": iso(current.ended_ms) if current.ended_ms else None,
        }

    # What is told

    def outcome(self, crawl: CrawlInfo, current: RunInfo) -> dict[str, Any]:
        """What there is to say of a run and its last session."""
        with self._workspace.reading(crawl) as store:
            listed = self.line(crawl, current, store)
            sessions = store.sessions(current.run_id)
        last = sessions[-1] if sessions else None
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            **listed,
            "word": run.word_for(current),
            "ended_by": str(last.ended_by) if last and last.ended_by else "",
            "seconds": max(0, (last.ended_ms or last.started_ms) - last.started_ms) / 1000 if last else 0.0,
            "has_changes": has_changes(current),
            "summary": _summary(crawl.name, current),
        }


def iteration_id(crawl: CrawlInfo, number: int) -> str:
    return f"{crawl.crawl_id}_iter_{number}"


_COUNTED = (
    *("known", "pending", "pages", "duplicates", "resources", "redirects", "failed", "refused"),
    *("new", "modified", "unchanged", "deleted", "unknown"),
)


def has_changes(current: RunInfo) -> bool:
    return current.parent is not None and repetition.has_changes(current.counters)


def _summary(name: str, current: RunInfo) -> str:
    """What a run found, in one sentence."""
    counters = current.counters
    if current.parent is None:
        return f"Run {current.number} of {name}: {counters.pages} pages, and nothing to compare them with"
    found = ", ".join(f"{getattr(counters, kind)} {kind}" for kind in ("new", "modified", "deleted", "unchanged"))
    return f"Run {current.number} of {name}: {found}, {counters.unknown} unknown"


def session_json(one: SessionInfo, running: bool) -> dict[str, Any]:
    """A session as it is shown. One that nobody ended, and nobody works on, has crashed."""
    crashed = one.state is SessionState.IN_PROGRESS and not running
    return {
        "session": one.number,
        "state": str(SessionState.FAILED if crashed else one.state),
        "ended_by": str(EndedBy.CRASHED) if crashed else (str(one.ended_by) if one.ended_by else None),
        "requests": one.requests,
        "unanswered": one.unanswered,
        "bytes": one.size,
        "started_at": iso(one.started_ms),
        "ended_at": iso(one.ended_ms) if one.ended_ms else None,
        "message": one.message,
    }
