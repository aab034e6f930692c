"""Keeping a crawl: how it stands, its runs over time, and the one job that repeats it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from inchworm.app.changes import Changes
from inchworm.app.iterating import Iterations
from inchworm.app.jobs import Repeated, Task, Wanted
from inchworm.app.looking import down_json, session_json
from inchworm.app.steering import Beginning, Steering
from inchworm.engine import run
from inchworm.errors import InchwormError
from inchworm.job import Job, JobState
from inchworm.model import CrawlInfo, RunInfo
from inchworm.rules.schedule import occurrence, states
from inchworm.rules.words.times import iso
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

_FEW_JOBS = 6
_MOST_RUNS = 30
_LIVE = tuple(state for state in JobState if state not in states.FINAL)


class Keeping(Steering, Changes):
    """Verbs about one crawl over time."""

    def latest_crawls(self, before: tuple[str, str] | None, limit: int, text: str = "") -> list[dict[str, Any]]:
        """Crawls, the one that was made last first, with how they stand. `before`: when the last one that was seen was
        made, and its id; `text`: a part of the name, or of a seed."""
        made = sorted(((iso(one.created_ms), one.crawl_id, one) for one in self.home.crawls()), reverse=True)
        earlier = [crawl for at, crawl_id, crawl in made if before is None or (at, crawl_id) < before]
        return [self._line(one) for one in [one for one in earlier if _fits(one, text.lower())][:limit]]

    def standing(self, crawl: CrawlInfo) -> dict[str, Any]:
        """How a crawl stands: its last run, its last session, its newest jobs, and who is about to work on it. `note`
        says why it cannot be read."""
        at_work = self._job_at_work(crawl)
        jobs = [self.job_json(job) for job in self.jobs.newest(crawl.crawl_id, _FEW_JOBS)]
        about = {
            **{name: getattr(crawl, name) for name in ("crawl_id", "name", "seeds", "enabled")},
            "job_at_work": at_work.job_id if at_work else None,
            "jobs": jobs,
            "note": "",
        }
        try:
            return {**about, **self._last_standing(crawl)}
        except InchwormError as error:
            return {**about, "state": "", "run": None, "session": None, "note": error.message}

    def _last_standing(self, crawl: CrawlInfo) -> dict[str, Any]:
        if self._last_run(crawl) is None:
            return {"state": "", "run": None, "session": None}
        with self.reading(crawl) as store:
            last = self.run_of(crawl, store)
            session = store.last_session(last.run_id)
            why_nothing = _why_nothing(View(store), last)
            blocked = View(store).count_failed(last.run_id, "blocked") if last.counters.failed else 0
            down = [down_json(one) for one in store.down()]
        running = self.is_running(crawl)
        return {
            "state": run.state_of(last, running).value,
            "run": {**dataclasses.asdict(last.counters), **_about(last)},
            "session": session_json(session, running) if session else None,
            "why_nothing": why_nothing,
            "blocked": blocked,
            "down": down,
        }

    def run_history(self, crawl: CrawlInfo, before: int | None = None, limit: int = _MOST_RUNS) -> dict[str, Any]:
        """The runs of a crawl before the one of this number, newest first; and number, beginning and size of all."""
        if self._last_run(crawl) is None:
            return {"runs": [], "sizes": []}
        with self.reading(crawl) as store:
            sizes = View(store).sizes()
            numbers = [number for number, *_ in reversed(sizes) if before is None or number < before]
            runs = [self._told(crawl, store, number) for number in numbers[:limit]]
        return {"runs": runs, "sizes": sizes}

    def _told(self, crawl: CrawlInfo, store: CrawlStore, number: int) -> dict[str, Any]:
        return self._run_json(crawl, self.run_of(crawl, store, number), store)

    def start_over(self, crawl: CrawlInfo, guarded: bool) -> str:
        """Make a job that starts a crawl over with a new baseline; its id."""
        wanted = Beginning(crawl.seeds, crawl.name, fresh=True, guarded=guarded)
        return self.start_crawl(wanted)[1]

    # The job that repeats it

    def repeating_jobs(self, crawl: CrawlInfo) -> list[dict[str, Any]]:
        """The jobs that crawl it again by themselves; the first is the one that `repeat_crawl` changes."""
        return [self.job_json(job) for job in self._repeating(crawl)]

    def _repeating(self, crawl: CrawlInfo) -> list[Job]:
        first = self._repetition_job(crawl)
        found = [job for job in self._jobs_of(crawl, _LIVE) if occurrence.recurs(job) and job != first]
        # One that runs after another job has no rhythm of its own to be changed.
        found.sort(key=lambda job: (job.after_job_id is not None, job.created_ms))
        return [first, *found] if first else found

    def iterations_made(self, crawl: CrawlInfo) -> int:
        """How often a crawl has been repeated already."""
        if self._last_run(crawl) is None:
            return 0
        with self.reading(crawl) as store:
            return View(store).iterations()

    def repeat_crawl(self, crawl: CrawlInfo, wanted: Iterations, adaptive: bool, keep_hooks: bool) -> dict[str, Any]:
        """Have a crawl repeated by the job that does so already, whoever made it, or by a new one. `keep_hooks`: those
        who are told now are told from now on, too."""
        before = next((job for job in self._repeating(crawl) if job.after_job_id is None), None)
        if before is not None and before.repetition is not None and keep_hooks:
            wanted = dataclasses.replace(wanted, notify=tuple(before.repetition["notify"]))
        if before is not None and before.repetition is None:
            self.change_job(before.job_id, Wanted(repeated=Repeated()))
        told = self.set_iterations(crawl.crawl_id, wanted)
        given = {**_further_settings(before), **({"budget": wanted.budget} if wanted.budget else {})}
        task = Task(mode=wanted.mode, settings=given)
        return told | {"job": self.change_job(told["job_id"], Wanted(adaptive_scheduling=adaptive, task=task))}


def _fits(crawl: CrawlInfo, text: str) -> bool:
    return any(text in one.lower() for one in (crawl.name, *crawl.seeds))


def _why_nothing(view: View, last: RunInfo) -> str:
    """What happened to the first page of a run that brought none."""
    if last.counters.pages or last.counters.duplicates or not last.counters.failed:
        return ""
    url, failure, message = next(iter(view.failed_since(last.run_id, 0, last.seq)), ("", "", ""))
    return f"{url}: {message or failure}" if url else ""


def _about(last: RunInfo) -> dict[str, Any]:
    return {
        "number": last.number,
        "mode": last.mode,
        "alarm": last.alarm,
        "started_at": iso(last.created_ms),
        "ended_at": iso(last.ended_ms) if last.ended_ms is not None else None,
    }


def _further_settings(job: Job | None) -> Mapping[str, Any]:
    """What a job was told beside what a schedule tells."""
    return {name: value for name, value in job.task["settings"].items() if name != "budget"} if job else {}
