"""Jobs at work: real executions in child processes, against a real local site, through every kind of trouble."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.service.chaos import end_processes, processes_of, scheduling, wait_until

from inchworm import fault
from inchworm.app import App
from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.act.jobs.dispatch import Pulse
from inchworm.app.act.jobs.execute import TOKEN_VARIABLE
from inchworm.app.machine import is_gone, this_machine
from inchworm.app.read.checkpoints import Back
from inchworm.app.read.runs import RunLine
from inchworm.job import Execution, JobRepetition, Task
from inchworm.model import EndedBy
from inchworm.rules.words.json_form import json_object
from inchworm.service.scheduler import Scheduler
from inchworm.settings import Settings
from inchworm.testing import ManualClock, Page, Served, Site, linked_site

HOUR = 3600.0
QUICK = Settings(poll=0.1, stale_check=0.1, stale_lock=2.0, grace=5.0)
AT_ONCE = {"delay": 0.0, "max_retries": 0}
DONE = ("completed", "failed", "cancelled")


class Works:
    """A home with jobs, and schedulers that are moved by hand: the clock stands still until it is advanced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(time.time_ns() // 1_000_000)
        self.app = App(folder, self.clock)
        self._schedulers: list[Scheduler] = []

    def scheduler(self, values: Settings = QUICK) -> Scheduler:
        made = Scheduler(self.folder, values, self.clock)
        made.enrol()
        self._schedulers.append(made)
        return made

    def stop(self, scheduler: Scheduler) -> None:
        self._schedulers.remove(scheduler)
        scheduler.leave()

    def close(self) -> None:
        end_processes(self.folder)
        for execution in self.app.executions.store.running():
            self.app.dispatch.give_up(execution, "the test is over")
        for scheduler in self._schedulers:
            scheduler.leave()
        self.app.close()

    # Jobs

    def add(self, url: str, every: float = 0.0, settings: dict[str, Any] | None = None, **wanted: Any) -> str:
        """A job of the crawl of this URL, that waits for nothing between two requests."""
        if every:
            wanted |= {"interval_minutes": round(every / 60), "interval_type": "minutes"}
        task = Task(settings={**AT_ONCE, **(settings or {})})
        return str(self.app.schedule.add(WantedJob(url=url, task=task, **wanted)).id)

    def job(self, job_id: str) -> dict[str, Any]:
        return json_object(self.app.jobs.one(job_id).line)

    def tries(self, job_id: str) -> list[dict[str, Any]]:
        """Its executions, in order."""
        return [json_object(one) for one in self.app.executions.listed(job_id, None, 1000)[::-1]]

    def due_in(self, job_id: str) -> float | None:
        """Seconds until its next run, by the clock of this home."""
        due_ms = self.app.jobs.store.get(job_id).due_ms
        return None if due_ms is None else (due_ms - self.clock.now_ms()) / 1000

    # Moving

    def look(self, scheduler: Scheduler, seconds: float = 1.0) -> None:
        """Let time pass, and the scheduler look."""
        self.clock.advance(seconds)
        scheduler.wake()
        scheduler.tick()

    def watch(self, scheduler: Scheduler, seconds: float) -> None:
        """Let time pass, and the scheduler look all the while."""
        for _ in range(round(seconds / QUICK.stale_check)):
            self.look(scheduler, QUICK.stale_check)

    def run(self, scheduler: Scheduler, job_id: str, seconds: float = 1.0) -> dict[str, Any]:
        """Let time pass, and the one execution that is due then come to its end."""
        before = len(self.tries(job_id))
        self.look(scheduler, seconds)
        assert len(self.tries(job_id)) == before + 1, "nothing was started"
        return self.finish(scheduler, job_id)

    def finish(self, scheduler: Scheduler, job_id: str) -> dict[str, Any]:
        """Wait for the end of the execution under way."""
        wait_until(lambda: self.tries(job_id)[-1]["status"] != "running" or scheduler.reap())
        wait_until(lambda: not processes_of(self.folder) or scheduler.reap())
        scheduler.reap()
        return self.tries(job_id)[-1]

    def child(self, job_id: str) -> int:
        """The process that carries the execution under way out."""
        wait_until(lambda: self.tries(job_id)[-1]["pid"])
        return int(self.tries(job_id)[-1]["pid"])

    def stop_child(self, job_id: str) -> int:
        """SIGSTOP it at a moment when it holds up nobody but itself."""
        pid = self.child(job_id)
        crawl = self.folder / "crawls" / self.job(job_id)["crawl_id"] / "crawl.db"
        for _ in range(200):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.02)
            with contextlib.suppress(sqlite3.OperationalError):
                if is_free(crawl) and is_free(self.folder / "home.db"):
                    return pid
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)
        raise AssertionError("it is always in the middle of a commit")

    def faults(self) -> list[str]:
        found: list[str] = []
        for crawl in self.app.workspace.crawls.all():
            with self.app.workspace.reading(crawl) as store:
                found += self.app.check.record(crawl, store)
        return found


def is_free(path: Path) -> bool:
    """Whether nobody is in the middle of writing this database."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    return True


@pytest.fixture
def works(tmp_path: Path) -> Iterator[Works]:
    made = Works(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(linked_site(12)).serve() as made:
        yield made


def slowly(pages: int, seconds: float) -> Site:
    """A site on which every page but the seed takes its time, until `latency` is taken away."""
    site = Site(linked_site(pages, fan=pages))
    site.latency = (seconds, seconds)
    return site


def pages_of(served: Served) -> list[str]:
    """The pages that the server was asked for."""
    return [hit.path for hit in served.log if "robots" not in hit.path and "sitemap" not in hit.path]


def wait_for(served: Served, requests: int) -> None:
    wait_until(lambda: len(pages_of(served)) >= requests)


# On time


def test_a_one_time_job_runs_at_once_and_is_completed(works: Works, served: Served) -> None:
    name = works.add(served.url("/"))
    assert works.job(name)["status"] == "pending"
    done = works.run(works.scheduler(), name)
    assert sorted(pages_of(served)) == sorted(linked_site(12))
    assert (done["status"], done["attempt"], done["run"], done["session"]) == ("completed", 1, 0, 1)
    assert (done["items_crawled"], done["ended_by"], done["error_message"]) == (12, "finished", None)
    told = done["progress"]
    assert (told["pages"], told["pending"], told["in_flight"]) == (12, 0, 0), "as it was in the end"
    assert told["requests"] == 12
    after = works.job(name)
    assert (after["status"], after["next_run_at"], after["is_locked"]) == ("completed", None, False)
    assert works.faults() == []
    assert 50 < done["cpu_time_ms"] < 60_000 and 10 < done["memory_peak_mb"] < 2000, "what the process really took"
    stats = works.app.jobs.stats(name)
    assert stats.total_cpu_time_ms == done["cpu_time_ms"] and stats.memory_peak_mb == done["memory_peak_mb"]
    assert (stats.success_rate, stats.total_items_crawled) == (1.0, 12)


def test_what_lies_where_the_service_was_started_is_not_run(
    works: Works, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert works.run(works.scheduler(), works.add(served.url("/")))["status"] == "completed"


def test_a_recurring_job_runs_when_it_is_due_and_keeps_its_rhythm(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"), every=HOUR)
    planned = works.app.jobs.store.get(name).due_ms or 0
    works.run(scheduler, name)
    assert works.due_in(name) == HOUR - 1
    works.look(scheduler, HOUR - 2)
    assert len(works.tries(name)) == 1, "not a second too early"
    works.run(scheduler, name, 30)
    first, second = works.app.executions.store.of_job(name, None, 2)[::-1]
    assert (first.occurrence_ms, second.occurrence_ms) == (planned, planned + 3_600_000)
    assert works.app.jobs.store.get(name).due_ms == planned + 2 * 3_600_000, "29 seconds late, and still in rhythm"
    assert (second.run, second.attempt) == (1, 1)


def test_jobs_that_are_made_in_a_row_run_one_after_the_other_and_never_together(works: Works, served: Served) -> None:
    scheduler, names = works.scheduler(), []
    works.clock.advance(900 - works.clock.now_ms() / 1000 % 900)  # a slot begins
    for number in range(5):
        names.append(works.add(served.url(f"/p{number}"), every=6 * HOUR))
        works.look(scheduler, 0.1)
    works.finish(scheduler, names[0])
    assert [len(works.tries(name)) for name in names] == [1, 0, 0, 0, 0]
    assert len({works.job(name)["slot"] for name in names}) == 5
    assert len({(works.job(name)["slot"] or 0) % 24 for name in names}) == 5, "nor six hours later"


def test_a_job_that_is_switched_off_does_not_run(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    works.add(served.url("/"), every=HOUR, schedule_enabled=False)
    works.look(scheduler, 100 * HOUR)
    assert works.app.executions.store.running() == [] and served.log == []


def test_the_interval_adapts_to_what_changes(works: Works) -> None:
    site = Site(pages := dict(linked_site(3)))
    scheduler = works.scheduler()
    intervals = []
    with site.serve() as served:
        name = works.add(served.url("/"), every=6 * HOUR)
        # Pages are judged by the real clock: none may be older than the execution that fetched it.
        works.run(scheduler, name, 0.0)
        for text in ("", "", "Something happened today."):
            pages["/"] = pages["/"].replace("</main>", f"<p>{text}</p></main>") if text else pages["/"]
            works.app.schedule.run(name)
            works.run(scheduler, name, 0.0)
            intervals.append((works.job(name)["current_interval_seconds"] / HOUR, works.job(name)["unchanged_count"]))
    assert intervals == [(12, 1), (24, 2), (6, 0)]


def test_a_job_that_has_just_run_does_not_run_again_because_it_is_changed_or_resumed(
    works: Works, served: Served
) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"), every=HOUR, adaptive_scheduling=False)
    works.run(scheduler, name)
    crawl, dues = works.job(name)["crawl_id"], []
    for act in (
        lambda: works.app.schedule.change(name, WantedJob(interval_minutes=2, interval_type="hours")),
        lambda: works.app.schedule.pause(name) and works.app.schedule.resume(name),
        lambda: works.app.schedule.set_enabled(crawl, False) and works.app.schedule.set_enabled(crawl, True),
        lambda: (
            works.app.schedule.change(name, WantedJob(schedule_enabled=False))
            and works.app.schedule.change(name, WantedJob(schedule_enabled=True))
        ),
    ):
        act()
        works.look(scheduler, 60)
        dues.append(round((works.due_in(name) or 0) / 60))
    assert len(works.tries(name)) == 1
    assert all(105 <= due <= 121 for due in dues), "two hours after it began, not from now"


def test_a_chain_of_jobs(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    with Site(linked_site(2)).serve() as other:
        first = works.add(served.url("/"))
        second = works.add(other.url("/"), after_job_id=first)
        works.run(scheduler, first)
        assert works.tries(second) == []
        works.run(scheduler, second, 120)
    ended, began = works.tries(first)[0]["completed_at"], works.tries(second)[0]["started_at"]
    assert began >= ended
    assert [works.job(name)["status"] for name in (first, second)] == ["completed", "scheduled"]
    assert works.due_in(second) is None


def test_no_more_at_once_than_allowed_and_one_per_crawl(works: Works) -> None:
    scheduler = works.scheduler(Settings(poll=0.1, executions=2))
    with slowly(3, 0.5).serve() as served:
        names = []
        for number in (1, 1, 2):
            works.clock.advance(1)
            names.append(works.add(served.url(f"/p{number}")))
        works.look(scheduler)
        works.look(scheduler)
        running = {one.job_id for one in works.app.executions.store.running()}
    assert running == {names[0], names[2]}, "the second is of the same crawl as the first"


def test_what_runs_already_counts_for_how_many_may_run(works: Works) -> None:
    scheduler = works.scheduler(Settings(poll=0.1, executions=1))
    with slowly(3, 60.0).serve() as served:
        names = [works.add(served.url(f"/p{number}")) for number in (1, 2)]
        for _ in range(3):
            works.look(scheduler)
        assert [len(works.tries(name)) for name in names] == [1, 0]


def test_who_is_woken_looks_now_and_not_at_the_next_poll(works: Works, served: Served) -> None:
    scheduler = works.scheduler(dataclasses.replace(QUICK, poll=3600.0))
    scheduler.tick()
    name = works.add(served.url("/"))
    works.clock.advance(3599)
    scheduler.tick()
    assert works.tries(name) == []
    scheduler.wake()
    scheduler.tick()
    assert works.finish(scheduler, name)["status"] == "completed"
    other = works.add(served.url("/p1"))
    works.clock.advance(3600)
    scheduler.tick()
    assert works.finish(scheduler, other)["status"] == "completed", "nor is it woken for ever, or never again"


def test_a_service_that_had_an_unexpected_error_goes_on(works: Works, served: Served) -> None:
    name = works.add(served.url("/"))
    with contextlib.closing(sqlite3.connect(works.folder / "home.db", isolation_level=None)) as db:
        (task,) = db.execute("SELECT task FROM job").fetchone()
        db.execute("UPDATE job SET task = '{'")
        with scheduling(works.folder) as process:
            wait_until(lambda: works.app.executions.services.all() and works.app.executions.services.all()[0].beats > 3)
            db.execute("UPDATE job SET task = ?", (task,))
            wait_until(lambda: works.tries(name) and works.tries(name)[-1]["status"] == "completed")
            assert process.poll() is None


def test_a_job_for_which_no_process_can_be_started_is_tried_again(
    works: Works, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        works.look(scheduler)
    (failed,) = works.tries(name)
    assert failed["error_message"] == "no process could be started: No such file or directory"
    assert works.run(scheduler, name)["status"] == "completed"


def test_executions_have_a_terminal_of_their_own(works: Works) -> None:
    """Ctrl-C at the terminal of the service is for the service, which lets its executions pause."""
    with slowly(3, 60.0).serve() as served:
        name = works.add(served.url("/"))
        works.look(works.scheduler())
        pid = works.child(name)
        assert os.getsid(pid) == pid


def test_what_is_too_old_is_forgotten_by_and_by(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.run(scheduler, name)
    works.look(scheduler, 29 * 24 * HOUR)
    assert len(works.tries(name)) == 1
    works.look(scheduler, 2 * 24 * HOUR)
    assert works.tries(name) == []


def test_runs_beside_the_line_are_no_iterations_of_its_job(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    every = {"checkpoint_every": 1}
    name = works.add(served.url("/"), every=HOUR, settings=every, repeated=JobRepetition(max_iterations=3))
    works.run(scheduler, name)
    works.run(scheduler, name, works.due_in(name) or 0)
    crawl_id = works.app.workspace.crawls.all()[0].crawl_id
    points = works.app.checkpoints.list(works.app.workspace.find(crawl_id))
    back = Back(max(one.checkpoint_number for one in points), as_new_run=True)
    branch = asyncio.run(works.app.sessions.work(works.app.plan.continue_from(crawl_id, back, {"delay": 0})))
    assert (branch.run, branch.run_state, branch.on_line) == (2, "completed", False)
    works.run(scheduler, name, works.due_in(name) or 0)
    assert works.job(name)["status"] == "scheduled", "there is one more to come"
    works.run(scheduler, name, works.due_in(name) or 0)
    assert (works.job(name)["status"], works.job(name)["reason"]) == ("completed", "max_iterations")


def test_a_job_whose_crawl_somebody_works_on_comes_a_minute_later(works: Works) -> None:
    """That is nobody's failure, unless somebody wanted one try, now."""
    scheduler = works.scheduler()
    with slowly(2, 60.0).serve() as served:
        names = [works.add(served.url("/"), max_retries=retries) for retries in (1, 0)]
        crawl = works.app.workspace.crawls.all()[0]
        with works.app.workspace.owning(crawl, 60.0):
            for _ in names:
                works.clock.advance(1)
                scheduler.wake()
                scheduler.tick()
                wait_until(lambda: not works.app.executions.store.running() or scheduler.reap())
                scheduler.reap()
    patient, hasty = map(works.job, names)
    assert (patient["status"], patient["current_retry_count"]) == ("scheduled", 0)
    assert 50 < (works.due_in(names[0]) or 0) < 120
    assert hasty["status"] == "failed"
    assert served.log == []


def test_a_seed_that_leads_elsewhere_is_judged_by_where_it_leads(works: Works) -> None:
    pages: dict[str, Any] = {"/": Page("", 302, {"Location": "/en/"}), "/en/": "<main><p>The same as ever.</p></main>"}
    scheduler, seen = works.scheduler(), []
    with Site(pages).serve() as served:
        name = works.add(served.url("/"), every=6 * HOUR)
        works.run(scheduler, name, 0.0)
        for text in ("The same as ever.", "Something new."):
            pages["/en/"] = f"<main><p>{text}</p></main>"
            works.app.schedule.run(name)
            works.run(scheduler, name, 0.0)
            seen.append(works.job(name)["unchanged_count"])
    assert seen == [1, 0]


# A site that is down


def down() -> str:
    """An address where nobody answers."""
    with Site({}).serve() as served:
        return served.url("/")


def test_a_site_that_is_down_is_tried_again_after_a_minute(works: Works) -> None:
    name = works.add(down())
    failed = works.run(works.scheduler(), name)
    assert (failed["status"], failed["attempt"], failed["items_crawled"]) == ("failed", 1, 0)
    after = works.job(name)
    assert (after["status"], after["current_retry_count"]) == ("scheduled", 1)
    assert 50 < (works.due_in(name) or 0) < 120


def test_a_job_has_failed_after_all_its_retries(works: Works) -> None:
    scheduler, waits = works.scheduler(), []
    name = works.add(down(), max_retries=3)
    works.run(scheduler, name)
    while (due_in := works.due_in(name)) is not None:
        waits.append(due_in)
        works.run(scheduler, name, due_in)
    after = works.job(name)
    assert (after["status"], after["next_run_at"]) == ("failed", None)
    assert [one["status"] for one in works.tries(name)] == ["failed"] * 4
    assert [one["attempt"] for one in works.tries(name)] == [1, 2, 3, 4]
    assert len({one["planned_at"] for one in works.tries(name)}) == 1
    assert after["reason"] == works.tries(name)[-1]["error_message"]


CAUSES = {
    "out of order": (Page("out of order", 500), "answered 500"),
    "not there": (Page("no such page", 404), "answered 404"),
    "no HTTP at all": (Page("", raw=b"\x1b[31m" + b"?" * 5000), "a web server listens"),
}


@pytest.mark.parametrize(("page", "kind"), CAUSES.values(), ids=CAUSES)
def test_the_error_of_a_try_names_the_cause(works: Works, page: Page, kind: str) -> None:
    with Site({"/robots.txt": "", "*": page}).serve() as served:
        failed = works.run(works.scheduler(), works.add(served.url("/")))
        said = failed["error_message"]
        assert kind in said and f"127.0.0.1:{served.port}" in said
    assert said.isprintable() and len(said) < 1000


def test_the_error_of_a_try_names_the_host_that_does_not_answer(works: Works) -> None:
    url = down()
    said = works.run(works.scheduler(), works.add(url))["error_message"]
    assert url.split("/")[2] in said and "connect" in said


def runs_of(works: Works) -> Sequence[RunLine]:
    (crawl,) = works.app.workspace.crawls.all()
    return works.app.runs.list(crawl)


def test_tries_that_got_nothing_leave_no_run_behind_but_the_one_that_they_go_on_with(works: Works) -> None:
    scheduler = works.scheduler()
    name = works.add(down(), max_retries=2)
    works.run(scheduler, name)
    while (due_in := works.due_in(name)) is not None:
        works.run(scheduler, name, due_in)
    assert [(one["run"], one["session"]) for one in works.tries(name)] == [(0, 1), (0, 2), (0, 3)]
    (run,) = runs_of(works)
    assert (run.state, run.pending, run.failed) == ("paused", 1, 0)
    assert works.faults() == []


def test_a_run_that_got_nothing_is_gone_on_with_at_the_next_planned_time_too(works: Works) -> None:
    """All tries of one failed; what a person then starts is the same run."""
    scheduler = works.scheduler()
    with Site(linked_site(5)).serve() as served:
        name = works.add(served.url("/"), every=HOUR, max_retries=0, settings={"max_wait": 0.1})
        works.run(scheduler, name)
        port = served.port
    failed = works.run(scheduler, name, HOUR)
    assert (failed["status"], failed["run"]) == ("failed", 1)
    assert "has not answered since" in failed["error_message"]
    with Site(linked_site(5)).serve(port) as served:
        works.app.schedule.retry(name)
        done = works.run(scheduler, name)
    assert (done["status"], done["run"], done["session"]) == ("completed", 1, 2)
    first, second = runs_of(works)
    assert (second.state, second.failed, second.unknown) == ("completed", 0, 0)
    assert second.unchanged == first.pages == 5
    assert works.faults() == []


def test_what_failed_stays_failed_while_there_is_more_to_ask_for(works: Works) -> None:
    """A run that ended at its budget is open anyway; the next session asks for the rest, and not for the same again."""
    links = "".join(f"<url><loc>{{0}}/p{number}</loc></url>" for number in range(3))
    pages: dict[str, Any] = {"*": Page("out of order", 500), "/robots.txt": ""}
    with Site(pages).serve() as served:
        pages["/sitemap.xml"] = f"<urlset>{links.format(served.url(''))}</urlset>"
        failed = works.run(works.scheduler(), works.add(served.url("/"), settings={"budget": 1}))
    assert failed["status"] == "failed"
    (run,) = runs_of(works)
    assert (run.state, run.failed, run.pending) == ("paused", 1, 3)


def test_nobody_is_told_that_a_run_is_complete_that_got_nothing(works: Works) -> None:
    repeated = JobRepetition(notify=("http://127.0.0.1:9/hook",), notify_on="completion")
    works.run(works.scheduler(), works.add(down(), every=HOUR, repeated=repeated))
    assert [one for one in works.app.notifications.listed() if one.state != "promised"] == []


def test_a_site_that_is_up_again_is_crawled_by_the_next_try(works: Works) -> None:
    scheduler, pages = works.scheduler(), dict(linked_site(5))
    with Site({"*": Page("out of order", 500)}).serve() as served:
        name = works.add(served.url("/"), max_retries=1)
        works.run(scheduler, name)
        port = served.port
    with Site(pages).serve(port) as served:
        done = works.run(scheduler, name, works.due_in(name) or 0)
        assert (done["status"], done["items_crawled"]) == ("completed", 5)
        assert sorted(pages_of(served)) == sorted(pages)
    assert [(run.run, run.state) for run in runs_of(works)] == [(0, "completed")]


def test_a_failed_job_that_is_retried_by_hand_crawls(works: Works) -> None:
    scheduler = works.scheduler()
    with Site({"*": Page("out of order", 500)}).serve() as served:
        name = works.add(served.url("/"), max_retries=0)
        works.run(scheduler, name)
        port = served.port
    assert works.job(name)["status"] == "failed"
    works.app.schedule.retry(name)
    with Site(linked_site(5)).serve(port) as served:
        done = works.run(scheduler, name, 1)
        assert (done["status"], done["items_crawled"]) == ("completed", 5)
        assert len(pages_of(served)) == 5


def test_a_time_that_was_brought_forward_and_comes_again_is_crawled(works: Works, served: Served) -> None:
    """A job that ran early, and was then put into the very slot that it had left."""
    scheduler = works.scheduler()
    with Site(linked_site(2)).serve() as other:
        works.add(other.url("/"), every=24 * HOUR)
        name = works.add(served.url("/"), every=24 * HOUR)
        works.app.schedule.run(name)
        works.run(scheduler, name)
        works.app.schedule.pause(name)
        works.app.schedule.resume(name)
        asked = len(pages_of(served))
        due_in = works.due_in(name)
        assert due_in is not None and due_in > 0
        works.look(scheduler, due_in)
        works.finish(scheduler, name)
    assert len(pages_of(served)) > asked


def test_a_planned_time_is_crawled_though_the_one_before_it_had_no_last_word(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    """What an earlier time came to says nothing about this one."""
    sabotage("die-before UPDATE execution SET state")
    scheduler = works.scheduler()
    name = works.add(served.url("/"), every=HOUR)
    works.run(scheduler, name)
    asked = len(pages_of(served))
    works.app.schedule.pause(name)
    works.clock.advance(1)
    works.app.schedule.resume(name)
    done = works.run(scheduler, name, works.due_in(name) or 0)
    assert (done["status"], done["attempt"], done["run"]) == ("completed", 1, 1)
    assert len(pages_of(served)) > asked == 12


# Cancelling, and going on


def test_cancelling_stops_a_running_crawl_which_can_be_continued(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(30, 0.1)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2}, every=HOUR)
        works.look(scheduler)
        wait_for(served, 6)
        assert works.app.schedule.cancel(name).status == "cancelled"
        done = works.finish(scheduler, name)
        asked = len(pages_of(served))
        assert (done["status"], done["ended_by"]) == ("cancelled", "cancelled")
        assert 0 < done["items_crawled"] < 30 and asked < 30
        assert (works.job(name)["status"], works.due_in(name)) == ("cancelled", None)
        works.look(scheduler, 100 * HOUR)
        assert len(works.tries(name)) == 1, "cancelled is for good"

        site.latency = (0.0, 0.0)
        crawl = works.app.workspace.crawls.all()[0]
        (point,) = works.app.checkpoints.list(crawl)
        summary = asyncio.run(
            works.app.sessions.work(
                works.app.plan.continue_from(crawl.crawl_id, Back(point.checkpoint_id), {"delay": 0})
            )
        )
    assert (summary.run_state, summary.run, summary.pages) == ("completed", 0, 30)
    assert max(Counter(pages_of(served)).values()) == 1, "what was there is not fetched again"
    assert works.faults() == []


def test_a_job_that_is_cancelled_before_its_process_begins_asks_for_nothing(works: Works, served: Served) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.look(scheduler)
    works.app.schedule.cancel(name)
    done = works.finish(scheduler, name)
    assert done["status"] == "cancelled"
    assert served.log == []


def test_a_crawl_that_does_not_answer_is_cancelled_within_the_grace_time(works: Works) -> None:
    """The page that is under way would take a minute more."""
    pages = {"/": "<a href=/slow>slow</a>", "/slow": Page("slow", delay=60.0)}
    with Site(pages).serve() as served:
        name = works.add(served.url("/"), settings={"grace": 0.2})
        scheduler = works.scheduler()
        works.look(scheduler)
        wait_for(served, 2)
        works.app.schedule.cancel(name)
        done = works.finish(scheduler, name)
    assert (done["status"], done["ended_by"]) == ("cancelled", "cancelled")


def test_a_crawl_that_takes_its_time_to_end_is_not_asked_to_again_and_again(works: Works) -> None:
    pages = {"/": "<a href=/slow>slow</a>", "/slow": Page("slow", delay=60.0)}
    with Site(pages).serve() as served:
        name = works.add(served.url("/"), settings={"grace": 2.0})
        scheduler = works.scheduler()
        works.look(scheduler)
        wait_for(served, 2)
        works.app.schedule.cancel(name)
        assert works.finish(scheduler, name)["status"] == "cancelled"
    open_requests = works.app.workspace.requests.unanswered(works.job(name)["crawl_id"])
    assert len(open_requests) <= 1, "one may have been asked when it was about to end"


def test_a_process_that_ignores_a_cancellation_is_killed(works: Works) -> None:
    scheduler = works.scheduler(Settings(poll=0.1, grace=5.0))
    with slowly(5, 60.0).serve() as served:
        name = works.add(served.url("/"))
        works.look(scheduler)
        wait_until(lambda: served.log)
        works.stop_child(name)
        works.app.schedule.cancel(name)
        works.look(scheduler)
        works.look(scheduler, 14)
        assert processes_of(works.folder), "it has some more time"
        works.look(scheduler, 2)
        done = works.finish(scheduler, name)
    assert (done["status"], works.job(name)["is_locked"]) == ("cancelled", False)


SLOW = {"/": "<main>One link.</main><a href=/slow>slow</a>", "/slow": Page("slow but good", delay=1.5)}
"""A page that is worth waiting for, within the grace time."""


def test_a_cancelled_crawl_may_finish_what_is_under_way(works: Works) -> None:
    with Site(SLOW).serve() as served:
        name = works.add(served.url("/"), settings={"grace": 30})
        scheduler = works.scheduler()
        works.look(scheduler)
        wait_for(served, 2)
        works.app.schedule.cancel(name)
        done = works.finish(scheduler, name)
    assert (done["status"], done["items_crawled"]) == ("cancelled", 2)


def test_the_next_execution_of_a_job_with_a_budget_goes_on_with_its_run(works: Works) -> None:
    scheduler = works.scheduler()
    with Site(linked_site(12)).serve() as served:
        name = works.add(served.url("/"), every=HOUR, settings={"budget": 5})
        works.run(scheduler, name)
        done = [works.run(scheduler, name, HOUR) for _ in range(2)]
    assert [(one["run"], one["session"], one["ended_by"]) for one in works.tries(name)] == [
        (0, 1, "budget"),
        (0, 2, "budget"),
        (0, 3, "finished"),
    ]
    assert [one["status"] for one in done] == ["completed", "completed"]
    assert sorted(pages_of(served)) == sorted(linked_site(12)), "every page once"


def test_an_execution_counts_the_pages_that_it_fetched_itself(works: Works) -> None:
    scheduler = works.scheduler()
    with Site(linked_site(12)).serve() as served:
        name = works.add(served.url("/"), every=HOUR, settings={"budget": 5})
        works.run(scheduler, name)
        for _ in range(2):
            works.run(scheduler, name, HOUR)
    assert works.app.jobs.stats(name).total_items_crawled == len(pages_of(served)) == 12


# Killed


def test_a_child_that_is_killed_is_followed_by_one_that_goes_on(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(40, 0.05)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 3})
        works.look(scheduler)
        wait_for(served, 15)
        os.kill(works.child(name), signal.SIGKILL)
        works.finish(scheduler, name)
        site.latency = (0.0, 0.0)
        works.run(scheduler, name)
        asked = Counter(pages_of(served))
    first, second = works.tries(name)
    assert (first["status"], first["error_message"]) == ("failed", "its process ended by SIGKILL")
    assert (second["status"], second["attempt"], second["planned_at"]) == ("completed", 2, first["planned_at"])
    assert (second["run"], second["session"]) == (0, 2)
    assert set(asked) == set(linked_site(40)) and max(asked.values()) <= 2
    # In flight: one for each worker, and what was fetched and not committed yet.
    assert sum(count == 2 for count in asked.values()) <= 3 + 64
    assert works.job(name)["status"] == "completed" and works.faults() == []


@pytest.mark.parametrize("verb", ["fresh", "recrawl"])
def test_what_a_killed_try_has_begun_is_not_begun_again(works: Works, verb: str) -> None:
    scheduler, site = works.scheduler(), Site(linked_site(30, fan=30))
    with site.serve() as served:
        works.run(scheduler, works.add(served.url("/")))
        (crawl,) = works.app.workspace.crawls.all()
        site.latency = (0.1, 0.1)
        task = Task(verb=verb, mode="full" if verb == "recrawl" else "", settings={**AT_ONCE, "workers": 2})
        name = str(works.app.schedule.add(WantedJob(crawl=crawl, task=task)).id)
        works.look(scheduler, 60)
        wait_for(served, 36)
        os.kill(works.child(name), signal.SIGKILL)
        works.finish(scheduler, name)
        site.latency = (0.0, 0.0)
        done = works.run(scheduler, name)
    assert (done["status"], done["run"], done["session"]) == ("completed", 1, 2)
    assert [run.state for run in runs_of(works)] == ["completed", "completed"]


def test_the_next_try_goes_on_with_the_line_and_not_with_a_branch_that_was_made_meanwhile(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(30, 0.1)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        works.look(scheduler)
        wait_for(served, 6)
        os.kill(works.child(name), signal.SIGKILL)
        works.finish(scheduler, name)
        site.latency = (0.0, 0.0)
        crawl_id = works.app.workspace.crawls.all()[0].crawl_id
        back = Back(as_new_run=True)
        branch = asyncio.run(
            works.app.sessions.work(
                works.app.plan.continue_from(crawl_id, back, {"delay": 0, "budget": 1, "allow_private": True})
            )
        )
        assert (branch.run, branch.run_state) == (1, "paused")
        done = works.run(scheduler, name)
    assert (done["status"], done["run"]) == ("completed", 0)
    assert [run.state for run in runs_of(works)] == ["completed", "paused"]


def test_an_execution_counts_copies_of_pages_too(works: Works) -> None:
    pages = {"/": "<p>home<a href=/a>a</a><a href=/b>b</a>", "/a": "<p>the same text", "/b": "<p>the same text"}
    with Site(pages).serve() as served:
        done = works.run(works.scheduler(), works.add(served.url("/")))
    assert done["items_crawled"] == 3


SABOTAGE = """
    import os, signal, sqlite3, sys, time

    plan, _, what = os.environ.get("SABOTAGE", "").partition(" ")

    def once():
        try:
            os.close(os.open(os.environ["INCHWORM_HOME"] + "/sabotaged", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    if plan and "execute" in sys.orig_argv:
        if plan == "sleep" and once():
            time.sleep(600)
        if plan == "lines":
            import inchworm.store.home.logs

            inchworm.store.home.logs.MOST_LINES = int(what)
        if plan in ("die-before", "stop-after"):
            def watched(kind):
                class Watched(kind):
                    def execute(self, sql, *arguments):
                        if plan == "die-before" and sql.startswith(what) and once():
                            os.kill(os.getpid(), signal.SIGKILL)
                        found = super().execute(sql, *arguments)
                        if plan == "stop-after" and sql.startswith(what) and once():
                            os.kill(os.getpid(), signal.SIGSTOP)
                        return found

                return Watched

            sqlite3.Connection, sqlite3.Cursor = watched(sqlite3.Connection), watched(sqlite3.Cursor)
"""


@pytest.fixture
def sabotage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Break the first execution on purpose: `sleep` before it begins, `die-before` a statement of SQL, or `stop-after`
    one, within its transaction. Or let logs have so many `lines`."""
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(SABOTAGE))

    def arm(plan: str) -> None:
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setenv("SABOTAGE", plan)

    return arm


MOMENTS = {
    "before it begins": ("UPDATE execution SET machine", 1),
    "before its session is known": ("UPDATE execution SET run", 1),
    "between its session and its end": ("UPDATE execution SET state", 0),
    "within the transaction of its end": ("UPDATE job SET state", 0),
}


@pytest.mark.parametrize(("statement", "sessions"), MOMENTS.values(), ids=MOMENTS)
def test_whenever_it_is_killed_nothing_is_crawled_twice(
    works: Works, served: Served, sabotage: Callable[[str], None], statement: str, sessions: int
) -> None:
    sabotage(f"die-before {statement}")
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.run(scheduler, name)
    assert works.tries(name)[0]["error_message"] == "its process ended by SIGKILL"
    asked = len(pages_of(served))
    assert asked == (0 if sessions else 12)
    done = works.run(scheduler, name)
    assert (done["status"], done["attempt"]) == ("completed", 2)
    assert Counter(pages_of(served)) == Counter(linked_site(12).keys()), "every page once"
    crawl = works.app.workspace.crawls.all()[0]
    (run,) = works.app.runs.list(crawl)
    assert run.state == "completed"
    assert works.faults() == []


@pytest.mark.parametrize("point", fault.JOB_POINTS)
def test_who_dies_after_its_session_leaves_nothing_to_crawl(
    works: Works, served: Served, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    scheduler = works.scheduler()
    name = works.add(served.url("/"), every=HOUR)
    monkeypatch.setenv("INCHWORM_FAULT", f"{point}:1")
    assert works.run(scheduler, name)["error_message"] == "its process ended by SIGKILL"
    monkeypatch.delenv("INCHWORM_FAULT")
    done = works.run(scheduler, name)
    assert (done["status"], done["attempt"], done["ended_by"]) == ("completed", 2, "finished")
    assert Counter(pages_of(served)) == Counter(linked_site(12).keys()), "every page once"
    assert works.job(name)["status"] == "scheduled"


def test_who_dies_after_a_session_that_got_nothing_has_failed_all_the_same(
    works: Works, sabotage: Callable[[str], None]
) -> None:
    sabotage("die-before UPDATE execution SET state")
    scheduler = works.scheduler()
    name = works.add(down())
    works.run(scheduler, name)
    assert works.run(scheduler, name)["status"] == "failed"


# Standing still


def beats_of(works: Works) -> int:
    (lock,) = works.app.dispatch.claims.locks()
    return lock.beats


def test_a_healthy_execution_is_not_taken_away_however_long_it_takes(works: Works) -> None:
    """It beats while it waits for its server; the scheduler's clock runs ten times the stale time meanwhile."""
    values = Settings(poll=0.1, stale_check=0.1, stale_lock=1.0)
    scheduler, site = works.scheduler(values), slowly(3, 60.0)
    with site.serve() as served:
        name = works.add(served.url("/"))
        works.look(scheduler)
        wait_until(lambda: beats_of(works) > 0)
        for _ in range(11):
            before = beats_of(works)
            wait_until(lambda before=before: beats_of(works) > before)
            works.watch(scheduler, 0.9)
        assert served.log
        assert [one["status"] for one in works.tries(name)] == ["running"]
    assert works.app.health.scheduler().stale_locks_cleared == 0


def test_an_execution_that_stands_still_is_taken_away_and_ended(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(20, 0.1)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        works.look(scheduler)
        wait_for(served, 4)
        pid = works.stop_child(name)
        works.watch(scheduler, QUICK.stale_lock)
        assert len(works.tries(name)) == 1, "not before its time"
        works.watch(scheduler, 0.2)
        assert works.tries(name)[0]["error_message"] == "its process stood still for too long"
        wait_until(lambda: pid not in processes_of(works.folder) or scheduler.reap())
        site.latency = (0.0, 0.0)
        if len(works.tries(name)) == 1:
            works.look(scheduler)
        done = works.finish(scheduler, name)
    assert (done["status"], done["attempt"]) == ("completed", 2)
    assert works.app.health.scheduler().stale_locks_cleared == 1
    assert set(pages_of(served)) == set(linked_site(20)) and works.faults() == []


def has_ended(pid: int) -> bool:
    """Whether a child of ours can be waited for, or was: whoever ends a process looks first whether it has ended."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def test_who_stood_still_and_was_ended_for_it_is_not_said_to_have_died(works: Works) -> None:
    """Also when its end is noticed before its job is taken back."""
    scheduler = works.scheduler()
    with slowly(20, 0.1).serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        works.look(scheduler)
        wait_for(served, 4)
        pid = works.stop_child(name)
        for _ in range(25):
            works.clock.advance(QUICK.stale_check)
            scheduler.watch()
        wait_until(lambda: has_ended(pid))
        scheduler.reap()
        scheduler.take_back()
        scheduler.reap()
        assert works.tries(name)[0]["error_message"] == "its process stood still for too long"
        assert works.app.health.scheduler().stale_locks_cleared == 1


def is_stopped(works: Works) -> bool:
    """Whether there is one process, and it stands still."""
    return [state_of(pid) for pid in processes_of(works.folder)] == ["T"]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_who_stands_still_in_the_middle_of_a_write_is_ended_before_anything_is_written(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    sabotage("stop-after UPDATE execution SET machine")
    scheduler = works.scheduler(Settings(poll=3600, stale_check=0.1, stale_lock=2.0))
    name = works.add(served.url("/"))
    works.look(scheduler)
    wait_until(lambda: is_stopped(works))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        is_free(works.folder / "home.db")
    for _ in range(22):
        works.clock.advance(0.1)
        scheduler.watch()
    wait_until(lambda: not is_stopped(works))
    scheduler.tick()
    assert works.tries(name)[0]["error_message"] == "its process stood still for too long"
    assert works.app.health.scheduler().stale_locks_cleared == 1
    done = works.run(scheduler, name)
    assert (done["status"], done["attempt"]) == ("completed", 2)


def test_who_stands_still_in_the_middle_of_a_write_does_not_hold_the_service(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    """A service that has to write all the time: it looks after its children while it waits for its turn."""
    sabotage("stop-after UPDATE execution SET machine")
    name = works.add(served.url("/"))
    with scheduling(works.folder, INCHWORM_STALE_LOCK="3"):
        wait_until(lambda: is_stopped(works))
        wait_until(lambda: works.tries(name)[-1]["status"] == "completed")
    first, second = works.tries(name)
    assert (first["error_message"], second["attempt"]) == ("its process stood still for too long", 2)


def test_a_service_that_stops_ends_who_stands_still_before_it_writes(
    works: Works, sabotage: Callable[[str], None]
) -> None:
    """The second of its executions holds up the last word of the first, and would hold up ours."""
    sabotage("stop-after UPDATE execution SET machine")
    trap = works.folder / "sabotaged"
    trap.touch()
    with slowly(3, 60.0).serve() as served, scheduling(works.folder, INCHWORM_GRACE="0.1") as process:
        names = [works.add(served.url("/p1"))]
        wait_until(lambda: works.tries(names[0]))
        works.child(names[0])
        trap.unlink()
        names.append(works.add(served.url("/p2")))
        wait_until(trap.exists)
        time.sleep(1.0)  # by now the service waits for its turn
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [works.job(name)["is_locked"] for name in names] == [False, False]
    assert processes_of(works.folder) == [] and works.app.executions.services.all() == []


def test_a_cancelled_execution_that_stands_still_in_the_middle_of_a_write_is_ended(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    sabotage("stop-after UPDATE execution SET machine")
    scheduler = works.scheduler(Settings(poll=3600, stale_check=3600, grace=5.0))
    name = works.add(served.url("/"))
    works.look(scheduler)
    wait_until((works.folder / "sabotaged").exists)
    wait_until(lambda: is_stopped(works))
    (child,) = scheduler._children.values()
    child.asked_to_end = works.clock.monotonic()
    works.clock.advance(16)
    scheduler.watch()
    wait_until(lambda: not is_stopped(works))
    scheduler.tick()
    assert works.finish(scheduler, name)["error_message"] == "its process ended by SIGKILL"


# Whose process it is


@contextlib.contextmanager
def somebody(execution: Execution, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like that of this execution from outside."""
    command = [sys.executable, "-c", "import time; time.sleep(600)", "execute", str(execution.execution_id)]
    process = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def claimed_by(works: Works, scheduler: Scheduler) -> Execution:
    """An execution of this service that another one has started."""
    works.add("http://127.0.0.1:9/")
    works.clock.advance(1)
    (execution,) = works.app.dispatch.claim(scheduler.service_id, 1)
    return execution


ENDS = {
    "taken back": lambda works, scheduler: works.watch(scheduler, QUICK.stale_lock + 0.3),
    "service stops": lambda works, scheduler: (scheduler.leave(), works._schedulers.remove(scheduler)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("whose", ["another's", "nobody's", "its own"])
def test_a_process_is_signalled_only_when_it_is_that_of_the_execution(
    works: Works, end: Callable[[Works, Scheduler], object], whose: str
) -> None:
    """Numbers of processes are used again, also by executions of other homes that have the same number as ours."""
    scheduler = works.scheduler(dataclasses.replace(QUICK, grace=0.1))
    execution = claimed_by(works, scheduler)
    token = {"another's": "0" * 32, "nobody's": "", "its own": execution.token}[whose]
    with somebody(execution, **({TOKEN_VARIABLE: token} if token else {})) as process:
        works.app.dispatch.claims.begin(execution.execution_id, execution.token, this_machine(), process.pid)
        end(works, scheduler)
        if whose == "its own":
            assert process.wait(60) < 0
        else:
            assert process.poll() is None
    assert execution.token not in [lock.token for lock in works.app.dispatch.claims.locks()], (
        "its job goes on, either way"
    )


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_process_that_stands_still_is_ended_whoever_has_started_it(
    works: Works, end: Callable[[Works, Scheduler], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To be asked to end is of no use to one that does not run: its crawl would be worked on by nobody."""
    monkeypatch.setattr("inchworm.service.scheduler._SPARE_SECONDS", 0.1)
    scheduler = works.scheduler(dataclasses.replace(QUICK, grace=0.1))
    execution = claimed_by(works, scheduler)
    with somebody(execution, **{TOKEN_VARIABLE: execution.token}) as process:
        works.app.dispatch.claims.begin(execution.execution_id, execution.token, this_machine(), process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(process.pid) == "T")
        end(works, scheduler)
        assert process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_process_of_another_machine_is_not_looked_for_on_this_one(
    works: Works, end: Callable[[Works, Scheduler], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inchworm.service.scheduler._SPARE_SECONDS", 0.1)  # nobody can say whether it has ended
    scheduler = works.scheduler(dataclasses.replace(QUICK, grace=0.1))
    execution = claimed_by(works, scheduler)
    with somebody(execution, **{TOKEN_VARIABLE: execution.token}) as process:
        works.app.dispatch.claims.begin(execution.execution_id, execution.token, "another/machine/1", process.pid)
        end(works, scheduler)
        assert process.poll() is None


def test_an_execution_is_over_when_its_number_is_that_of_another_process(works: Works) -> None:
    """At once, not when it has stood still for long enough."""
    scheduler = works.scheduler()
    execution = claimed_by(works, scheduler)
    with somebody(execution) as process:
        works.app.dispatch.claims.begin(execution.execution_id, execution.token, this_machine(), process.pid)
        works.look(scheduler)
    assert works.app.executions.store.get(execution.execution_id).error == "its process is gone"


def test_an_execution_whose_process_lives_is_not_over(works: Works) -> None:
    scheduler = works.scheduler()
    execution = claimed_by(works, scheduler)
    with somebody(execution, **{TOKEN_VARIABLE: execution.token}) as process:
        for machine in (this_machine(), "another/machine/1"):
            works.app.dispatch.claims.begin(execution.execution_id, execution.token, machine, process.pid)
            works.look(scheduler)
            assert [one.execution_id for one in works.app.executions.store.running()] == [execution.execution_id]


def test_an_execution_whose_process_has_not_begun_yet_is_not_over(works: Works) -> None:
    scheduler = works.scheduler()
    execution = claimed_by(works, scheduler)
    works.look(scheduler)
    assert works.app.executions.store.running() == [execution]


SECRETS = {"AUTH_JWT_SECRET": "s3cr3t-of-the-service", "INCHWORM_NOTIFY_SECRET": "s3cr3t-of-the-messages"}


def test_a_process_that_nobody_has_waited_for_is_gone() -> None:
    """As in a container without an init, where what services leave behind becomes nobody's children."""
    with subprocess.Popen([sys.executable, "-c", ""]) as zombie:
        wait_until(lambda: Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert is_gone(this_machine(), zombie.pid)
    with subprocess.Popen(["sleep", "60"]) as living:
        assert not is_gone(this_machine(), living.pid)
        living.kill()


def test_how_a_child_died_is_said_though_others_are_looked_after_first(works: Works) -> None:
    scheduler = works.scheduler()
    with slowly(20, 0.1).serve() as served:
        name = works.add(served.url("/"))
        works.look(scheduler)
        wait_for(served, 2)
        pid = works.child(name)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: has_ended(pid))
        scheduler.adopt()
        scheduler.reap()
        assert works.tries(name)[0]["error_message"] == "its process ended by SIGKILL"


def test_executions_know_no_secret_that_they_do_not_need(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, secret in SECRETS.items():
        monkeypatch.setenv(variable, secret)
    monkeypatch.setenv("INCHWORM_PROXIES", "")
    with slowly(3, 60.0).serve() as served:
        name = works.add(served.url("/"))
        works.look(works.scheduler())
        environment = Path(f"/proc/{works.child(name)}/environ").read_bytes().decode().split("\0")
    names = {line.partition("=")[0] for line in environment}
    assert not names & set(SECRETS) and not any(secret in line for secret in SECRETS.values() for line in environment)
    assert {"INCHWORM_HOME", "INCHWORM_PROXIES", TOKEN_VARIABLE, "PATH"} <= names, "the rest is as it was"


def test_executions_know_when_they_would_be_taken_for_dead(works: Works) -> None:
    """By what their scheduler goes by, and not by what is set for others."""
    with slowly(3, 60.0).serve() as served:
        name = works.add(served.url("/"))
        works.look(works.scheduler(dataclasses.replace(QUICK, stale_lock=7.5)))
        environment = Path(f"/proc/{works.child(name)}/environ").read_bytes().decode().split("\0")
    assert "INCHWORM_STALE_LOCK=7.5" in environment


def test_who_stood_still_and_wakes_up_writes_nothing(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job was taken away by a scheduler that cannot end it, as one on another machine could not."""
    monkeypatch.setenv("INCHWORM_STALE", "0.5")
    scheduler, site = works.scheduler(Settings(poll=0.1, stale_check=3600, stale_lock=2.0)), slowly(20, 0.1)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        works.look(scheduler)
        wait_for(served, 4)
        pid = works.stop_child(name)
        time.sleep(0.6)
        (lock,) = works.app.dispatch.claims.locks()
        assert works.app.dispatch.take_back(lock.token) is not None
        site.latency = (0.0, 0.0)
        works.look(scheduler)
        wait_until(lambda: works.tries(name)[-1]["status"] == "completed")
        assert works.tries(name)[-1]["attempt"] == 2
        before, asked = written(works), len(served.log)
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: pid not in processes_of(works.folder) or scheduler.reap())
    assert written(works) == before
    assert len(served.log) <= asked + 8, "it notices at its next commit, long before it has asked for the rest"
    assert works.faults() == []


def written(works: Works) -> list[str]:
    """All that is written about jobs, executions and pages, but not who owns what."""
    crawl = works.folder / "crawls" / works.app.workspace.crawls.all()[0].crawl_id / "crawl.db"
    lines: list[str] = []
    for path in (works.folder / "home.db", crawl):
        with contextlib.closing(sqlite3.connect(path)) as db:
            tables = ("job ", "execution", "log_line", "event", "visit", "frontier", "session", "run")
            lines += [
                line for line in db.iterdump() if line.startswith(tuple(f'INSERT INTO "{t.strip()}"' for t in tables))
            ]
    return lines


def test_a_watcher_that_stood_still_itself_takes_nobody_for_dead() -> None:
    """Beats that it slept through: it has not watched for so long, so it cannot say for how long they stood still."""
    pulse: Pulse[str] = Pulse()
    pulse.look([("job", 7)], 0.0)
    assert pulse.look([("job", 8)], 1000.0) == {"job": 0.0}
    assert pulse.look([("job", 8)], 1001.0) == {"job": 1.0}
    assert pulse.look([("job", 8), ("new", 1)], 1003.0) == {"job": 3.0, "new": 0.0}
    assert pulse.look([("new", 1)], 1004.0) == {"new": 1.0}


def test_executions_that_were_frozen_together_with_their_scheduler_are_left_alone(works: Works) -> None:
    """As when a container is paused: the scheduler wakes up first, before anybody could have beaten."""
    scheduler = works.scheduler()
    with slowly(3, 60.0).serve() as served:
        name = works.add(served.url("/"))
        works.look(scheduler)
        wait_until(lambda: served.log)
        pid = works.stop_child(name)
        works.look(scheduler)
        works.clock.advance(HOUR)
        scheduler.tick()
        os.kill(pid, signal.SIGCONT)
        assert [one["status"] for one in works.tries(name)] == ["running"]


def test_who_lost_its_job_ends_though_nobody_ends_it(works: Works) -> None:
    """Nobody else has taken the crawl, so nothing keeps it from going on but itself."""
    with slowly(300, 0.2).serve() as served:
        name = works.add(served.url("/"), settings={"workers": 1})
        works.look(works.scheduler())
        wait_for(served, 2)
        (lock,) = works.app.dispatch.claims.locks()
        assert works.app.dispatch.take_back(lock.token)
        wait_until(lambda: not is_at_work(works.child(name)))
        assert len(pages_of(served)) < 300


def is_at_work(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


# Hanging before the beginning


def test_a_process_that_hangs_before_it_begins_is_given_up(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    sabotage("sleep")
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.look(scheduler)
    wait_until((works.folder / "sabotaged").exists)
    works.watch(scheduler, QUICK.stale_lock + 0.3)
    wait_until(lambda: works.tries(name)[-1]["status"] == "completed")
    assert [(one["status"], one["attempt"]) for one in works.tries(name)] == [("failed", 1), ("completed", 2)]


def test_a_process_that_hangs_before_it_begins_is_ended(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    sabotage("sleep")
    scheduler = works.scheduler()
    works.add(served.url("/"))
    works.look(scheduler)
    wait_until((works.folder / "sabotaged").exists)
    (pid,) = processes_of(works.folder)
    works.watch(scheduler, QUICK.stale_lock + 0.2)
    for _ in range(100):
        time.sleep(0.01)
        scheduler.reap()
    assert pid not in processes_of(works.folder)


def test_a_deleted_job_whose_first_process_still_hangs_stops_nobody(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    sabotage("sleep")
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.look(scheduler)
    wait_until((works.folder / "sabotaged").exists)
    works.app.schedule.cancel(name)
    (lock,) = works.app.dispatch.claims.locks()
    assert works.app.dispatch.take_back(lock.token)
    works.app.schedule.delete(name)
    other = works.add(served.url("/"))
    works.look(scheduler)
    wait_until(lambda: works.tries(other)[-1]["status"] == "completed")


def test_stopping_does_not_wait_for_processes_that_are_gone(
    works: Works, served: Served, sabotage: Callable[[str], None]
) -> None:
    """A child that has not begun yet dies of SIGTERM at once, and says nothing."""
    sabotage("sleep")
    scheduler = works.scheduler(Settings(poll=0.1, grace=3600.0))
    name = works.add(served.url("/"))
    works.look(scheduler)
    wait_until((works.folder / "sabotaged").exists)
    execution = works.app.executions.store.running()[0]
    leaving = threading.Thread(target=scheduler.leave)
    leaving.start()
    wait_until(lambda: not processes_of(works.folder))
    leaving.join(2.0)
    hangs = leaving.is_alive()
    works.app.dispatch.give_up(execution, "so that the test comes to its end")
    leaving.join()
    works._schedulers.remove(scheduler)
    assert not hangs
    assert works.job(name)["status"] == "scheduled"


# Services


def test_a_service_that_is_told_to_stop_pauses_what_runs(works: Works) -> None:
    site = slowly(30, 0.1)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        with scheduling(works.folder) as process:
            wait_for(served, 6)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        stopped = works.tries(name)[0]
        assert (stopped["status"], stopped["error_message"]) == ("failed", "the service stopped")
        after = works.job(name)
        assert (after["status"], after["is_locked"], after["current_retry_count"]) == ("scheduled", False, 0)
        assert after["planned_at"] == stopped["planned_at"]
        assert processes_of(works.folder) == [] and works.app.executions.services.all() == []
        crawl = works.app.workspace.crawls.all()[0]
        assert works.app.crawls.status(crawl).run_state == "paused"

        site.latency = (0.0, 0.0)
        works.clock.advance(120)
        done = works.run(works.scheduler(), name)
    assert (done["status"], done["attempt"], done["run"], done["session"]) == ("completed", 2, 0, 2)
    assert set(pages_of(served)) == set(linked_site(30))
    assert works.faults() == []


def test_pages_are_counted_once_however_often_the_service_stops(works: Works) -> None:
    with slowly(40, 0.1).serve() as served:
        name = works.add(served.url("/"), settings={"workers": 2})
        for asked in (6, 14):
            with scheduling(works.folder) as process:
                wait_for(served, asked)
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
        counters = works.app.crawls.status(works.app.workspace.crawls.all()[0]).counters
    tries = works.tries(name)
    assert len(tries) == 2
    assert sum(one["items_crawled"] for one in tries) == counters.pages + counters.duplicates


def test_a_crawl_whose_service_stops_may_finish_what_is_under_way(works: Works) -> None:
    with Site(SLOW).serve() as served:
        name = works.add(served.url("/"), settings={"grace": 30})
        with scheduling(works.folder, INCHWORM_GRACE="30") as process:
            wait_for(served, 2)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert works.tries(name)[0]["items_crawled"] == 2


def test_a_run_that_came_to_its_end_as_the_service_stopped_is_not_crawled_again(works: Works) -> None:
    with Site(SLOW).serve() as served:
        name = works.add(served.url("/"), settings={"grace": 30}, max_retries=3)
        with scheduling(works.folder, INCHWORM_GRACE="30") as process:
            wait_for(served, 2)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        assert works.tries(name)[0]["error_message"] == "the service stopped"
        works.clock.advance(120)
        done = works.run(works.scheduler(), name)
    assert (done["status"], done["attempt"], works.job(name)["status"]) == ("completed", 2, "completed")
    assert (pages_of(served), len(runs_of(works))) == (
        ["/", "/slow"],
        1,
    )


def test_children_of_a_service_that_was_killed_go_on_and_are_adopted(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(12, 0.2)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 1})
        with scheduling(works.folder) as process:
            wait_for(served, 2)
            process.kill()
            process.wait()
        works.look(scheduler, 120)
        (running,) = works.app.executions.store.running()
        assert running.service_id == scheduler.service_id
        assert [one.service_id for one in works.app.executions.services.all()] == [scheduler.service_id]
        site.latency = (0.0, 0.0)
        done = works.finish(scheduler, name)
    assert (done["status"], done["attempt"]) == ("completed", 1)
    assert Counter(pages_of(served)) == Counter(linked_site(12).keys())


def test_an_adopted_child_that_dies_is_noticed(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(12, 0.2)
    with site.serve() as served:
        name = works.add(served.url("/"), settings={"workers": 1})
        with scheduling(works.folder) as process:
            wait_for(served, 2)
            process.kill()
            process.wait()
        works.look(scheduler, 120)
        end_processes(works.folder)
        works.look(scheduler)
        assert works.tries(name)[0]["error_message"] == "its process is gone"
        site.latency = (0.0, 0.0)
        if len(works.tries(name)) == 1:
            works.look(scheduler)
        done = works.finish(scheduler, name)
    assert (done["status"], done["attempt"]) == ("completed", 2)


def test_an_adopted_child_pauses_its_run_when_the_service_stops(works: Works) -> None:
    """It is asked to end as those are that the service has started itself."""
    scheduler = works.scheduler()
    with slowly(200, 0.2).serve() as served:
        works.add(served.url("/"), settings={"workers": 1})
        with scheduling(works.folder) as process:
            wait_for(served, 2)
            process.kill()
            process.wait()
        works.look(scheduler, 120)
        works.stop(scheduler)
    with works.app.workspace.reading(works.app.workspace.crawls.all()[0]) as store:
        assert [one.ended_by for one in store.sessions.all()] == [EndedBy.PAUSED]


def test_a_service_that_was_taken_for_dead_comes_back(works: Works) -> None:
    sleeper, other = works.scheduler(), works.scheduler()
    works.watch(other, QUICK.stale_lock + 0.3)
    assert [one.service_id for one in works.app.executions.services.all()] == [other.service_id]
    sleeper.tick()
    assert {one.service_id for one in works.app.executions.services.all()} == {sleeper.service_id, other.service_id}


def test_a_service_that_lives_is_not_taken_for_dead(works: Works) -> None:
    schedulers = [works.scheduler() for _ in range(3)]
    for _ in range(10):
        for scheduler in schedulers:
            works.look(scheduler, 0.6)
    assert len(works.app.executions.services.all()) == 3


def test_a_service_that_polls_seldom_is_not_taken_for_dead(works: Works) -> None:
    seldom = dataclasses.replace(QUICK, poll=5.0)
    _, other = works.scheduler(seldom), works.scheduler(seldom)
    for seconds, left in ((14.0, 2), (2.0, 1)):
        for _ in range(round(seconds / 0.1)):
            works.clock.advance(0.1)
            other.tick()
        assert len(works.app.executions.services.all()) == left


def test_what_another_service_runs_is_that_ones_business(works: Works) -> None:
    scheduler, other = works.scheduler(), works.scheduler()
    execution = claimed_by(works, other)
    with somebody(execution) as process:
        pass
    works.app.dispatch.claims.begin(execution.execution_id, execution.token, this_machine(), process.pid)
    works.look(scheduler)
    assert [one.service_id for one in works.app.executions.store.running()] == [other.service_id]
    works.look(other)
    assert works.app.executions.store.get(execution.execution_id).error == "its process is gone"


# Jobs that are changed while they run


def test_a_job_that_is_claimed_while_it_is_being_changed_stays_locked(works: Works, served: Served) -> None:
    name = works.add(served.url("/"), every=HOUR)

    class Claiming(dict[str, Any]):
        """Metadata that takes so long to be looked at that a scheduler is quicker."""

        def __iter__(self) -> Iterator[str]:
            return super().__iter__()

        def keys(self) -> Any:
            if not works.app.executions.store.running():
                assert works.app.dispatch.claim("another", 1)
            return super().keys()

    works.app.schedule.change(name, WantedJob(interval_minutes=2, interval_type="hours", metadata=Claiming(a=1)))
    job = works.app.jobs.store.get(name)
    assert job.lock_token is not None and job.state.value == "running"


def test_a_crawl_that_is_disabled_while_its_job_runs_is_not_run_again(works: Works) -> None:
    scheduler, site = works.scheduler(), slowly(3, 0.3)
    with site.serve() as served:
        name = works.add(served.url("/"), every=HOUR, settings={"workers": 1})
        works.look(scheduler)
        wait_until(lambda: served.log)
        works.app.schedule.set_enabled(works.job(name)["crawl_id"], False)
        assert works.tries(name)[0]["status"] == "running"
        site.latency = (0.0, 0.0)
        works.finish(scheduler, name)
        works.look(scheduler, 2 * HOUR)
    assert len(works.tries(name)) == 1


# Logs


HOSTILE = (
    "/new%0Aline",
    "/\x1b[31mred",
    "/\u202egnp.exe",
    "/nul%00",
    "/\x07bell",
    "/\u2028line",
    "/tab\there",
    "/a\rb",
)


def test_a_log_is_complete_and_in_order_with_one_line_per_event(works: Works) -> None:
    links = "".join(f'<a href="{path}">x</a>' for path in (*HOSTILE, "/good"))
    with Site({"/": f"<main><p>Nothing but links.</p>{links}</main>", "/good": "good"}).serve() as served:
        name = works.add(served.url("/"))
        done = works.run(works.scheduler(), name)
        failed = {hit.path for hit in served.log if hit.status == 404 and hit.path != "/robots.txt"}
    lines = list(works.app.executions.log(done["id"]))
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert [line.at_ms for line in lines] == sorted(line.at_ms for line in lines)
    assert lines[0].text == f"Execution 1, attempt 1, of job {name}"
    assert lines[1].text == "Run 0 (baseline), session 1"
    assert lines[-1].text == "Ended by finished: 2 pages"
    told = [line for line in lines if line.level == "warning"]
    assert len(told) == len(failed) >= 6, "each failure once"
    for line in lines:
        assert len(line.text.splitlines()) == 1
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in line.text)
        assert not set(line.text) & {"\u202e", "\u2066", "\u2028", "\u2029"}


@pytest.mark.parametrize(("lines", "is_cut"), [(6, True), (11, True), (12, False), (13, False)])
def test_a_log_is_cut_and_says_so_and_has_its_last_word_all_the_same(
    works: Works, sabotage: Callable[[str], None], lines: int, is_cut: bool
) -> None:
    """Two lines at its beginning, one for each of ten failures, and its end."""
    sabotage(f"lines {lines}")
    links = "".join(f'<a href="/{number}">x</a>' for number in range(10))
    pages = {"/": f"<main><p>Nothing but links.</p>{links}</main>", "/sitemap.xml": "<urlset></urlset>"}
    with Site(pages).serve() as served:
        done = works.run(works.scheduler(), works.add(served.url("/")))
    found = list(works.app.executions.log(done["id"]))
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert found[-1].text == "Ended by finished: 1 pages"
    assert len(found) == (lines + 2 if is_cut else 13)
    assert [line.number for line in found if line.text.startswith("There is more")] == ([lines + 1] if is_cut else [])


def test_the_error_of_a_try_is_the_last_line_of_its_log(works: Works) -> None:
    name = works.add(down())
    done = works.run(works.scheduler(), name)
    *_, last = works.app.executions.log(done["id"])
    assert (last.level, last.text) == ("error", done["error_message"])


def test_every_try_has_a_log_of_its_own(works: Works, served: Served, sabotage: Callable[[str], None]) -> None:
    sabotage("die-before UPDATE execution SET state")
    scheduler = works.scheduler()
    name = works.add(served.url("/"))
    works.run(scheduler, name)
    works.run(scheduler, name)
    first, second = ([line.text for line in works.app.executions.log(one["id"])] for one in works.tries(name))
    assert first[-1] == "Ended by finished: 12 pages", "what was said before it was killed is kept"
    assert second[0].startswith("Execution 2, attempt 2")
    assert second[1] == "The session of attempt 1 had come to its end"
