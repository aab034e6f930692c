"""home.db: jobs, who runs them, and their executions."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.root import App
from inchworm.errors import Lost, NotNow, Unknown
from inchworm.job import Execution, ExecutionState, Job, JobFilter, JobRepetition, JobState, Task
from inchworm.model import CrawlInfo
from inchworm.rules.schedule import occurrence, states
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.states import Action
from inchworm.rules.schedule.timetable import DAY_MS, SLOTS, Shift, WaitingJob
from inchworm.store.home.claims import Claims
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.executions import KEEP_EXECUTIONS, KEEP_MS, Executions, ExecutionTotals
from inchworm.store.home.home import Home
from inchworm.store.home.jobs import Jobs, place_of
from inchworm.store.home.logs import ExecutionLogs, LogLine
from inchworm.store.home.slots import Slots
from inchworm.testing import ManualClock

MINUTE = 60_000
HOUR = 60 * MINUTE
NOON = 20_000 * DAY_MS + 12 * HOUR
WELL = Ended("finished", 3, cpu_ms=40, memory_kb=2048)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with closing(Home(tmp_path / "home")) as made:
        yield made


class JobTables:
    """What a home knows of jobs."""

    def __init__(self, home: Home) -> None:
        self.jobs, self.claims = Jobs(home), Claims(home)
        self.executions, self.slots = Executions(home), Slots(home)


@pytest.fixture
def tables(home: Home) -> JobTables:
    return JobTables(home)


def job(job_id: str, crawl_id: str = "", **values: Any) -> Job:
    return Job(
        job_id, crawl_id or f"crawl of {job_id}", JobState.PENDING, **{"task": Task(), "created_ms": NOON, **values}
    )


def daily(job_id: str, crawl_id: str = "", **values: Any) -> Job:
    return job(job_id, crawl_id, interval_count=1, interval_unit="days", **values)


def claimed(tables: JobTables, now_ms: int = NOON, service: str = "s") -> Execution:
    """The one execution that is due."""
    (found,) = tables.claims.claim(service, now_ms, 10)
    return found


def succeeding(now_ms: int, ended: Ended = WELL) -> Callable[[Job], Job]:
    return lambda one: occurrence.after_success(one, ended, now_ms)


def finish(tables: JobTables, execution: Execution, now_ms: int, ended: Ended = WELL) -> Job:
    decide: Callable[[Job], Job] = succeeding(now_ms, ended)
    if ended.error:
        decide = lambda one: occurrence.after_failure(one, ended.error, now_ms)  # noqa: E731
    return tables.claims.finish(execution.execution_id, execution.token, ended, decide, now_ms)


def acted(tables: JobTables, job_id: str, action: Action, now_ms: int) -> Job:
    def decide(one: Job) -> Job:
        return dataclasses.replace(one, state=states.after_action(action, one.state), due_ms=None)

    return tables.jobs.change(job_id, decide, now_ms)


def assert_slots_are_counted(tables: JobTables) -> None:
    """The counts per slot are those that a recount finds."""
    counted = Counter(one.slot for one in tables.jobs.find(JobFilter(), None, 10_000) if one.slot is not None)
    assert tables.slots.loads() == [counted.get(slot, 0) for slot in range(SLOTS)]
    for one in tables.jobs.find(JobFilter(), None, 10_000):
        assert one.slot == occurrence.slot_of(one)


# Adding and finding


def test_a_job_comes_back_as_it_was_put_in(tables: JobTables) -> None:
    wanted = daily(
        "a",
        task=Task(settings={"budget": 5}),
        schedule_enabled=True,
        adaptive=False,
        max_retries=7,
        backoff_s=5,
        metadata={"owner": "Zoë", "tags": ["x", None, 1.5]},
        repetition=JobRepetition(max_iterations=3),
        reason="why not",
    )
    added = tables.jobs.add(wanted)
    assert tables.jobs.get("a") == added
    assert added == dataclasses.replace(
        wanted, state=JobState.SCHEDULED, due_ms=NOON, occurrence_ms=NOON, slot=48, updated_ms=added.updated_ms
    )


def test_the_second_of_two_jobs_gets_another_slot(tables: JobTables) -> None:
    slots = [tables.jobs.add(daily(name)).slot for name in "abcd"]
    assert slots == [48, 49, 50, 51]
    assert_slots_are_counted(tables)


def test_a_job_that_runs_still_takes_its_slot(tables: JobTables) -> None:
    """Or else all jobs that are made while the one before them runs would run at once, and ever after too."""
    slots = []
    for name in "abc":
        slots.append(tables.jobs.add(daily(name)).slot)
        tables.claims.claim("s", NOON, 1)
    assert slots == [48, 49, 50]
    assert_slots_are_counted(tables)


def test_a_job_that_has_run_is_met_by_no_new_one_when_it_runs_again(tables: JobTables) -> None:
    every_6_hours = {"interval_count": 6, "interval_unit": "hours"}
    for name in "abcde":
        if tables.jobs.add(job(name, **every_6_hours)).due_ms == NOON:
            finish(tables, claimed(tables), NOON)
    assert [tables.jobs.get(name).slot for name in "abcde"] == [48 + 24, 49, 50, 51, 52]
    assert_slots_are_counted(tables)


def test_a_one_time_job_takes_no_slot(tables: JobTables) -> None:
    added = tables.jobs.add(job("a"))
    assert (added.state, added.due_ms, added.slot) == (JobState.PENDING, NOON, None)
    assert tables.slots.loads() == [0] * SLOTS


def test_what_is_not_there_is_unknown(tables: JobTables) -> None:
    for asking in (
        tables.jobs.get,
        tables.jobs.delete,
        tables.jobs.state_of,
        lambda name: tables.executions.of_job(name, None, 5),
    ):
        with pytest.raises(Unknown) as raised:
            asking("nobody")
        assert "nobody" in raised.value.message and raised.value.hint
    with pytest.raises(Unknown, match="no execution 7"):
        tables.executions.get(7)


def test_jobs_are_found_in_pages_each_once(tables: JobTables) -> None:
    names = [f"{number:02}" for number in (5, 3, 9, 1, 7, 2, 8)]
    for number, name in enumerate(names):
        tables.jobs.add(job(name, created_ms=NOON + number // 3))
    expected = sorted(names, key=lambda name: (names.index(name) // 3, name))
    for size in (1, 2, 3, 100):
        found: list[str] = []
        after = None
        while page := tables.jobs.find(JobFilter(), after, size):
            found += [one.job_id for one in page]
            after = (page[-1].created_ms, page[-1].job_id)
        assert found == expected


def test_jobs_are_found_in_the_order_of_their_next_runs(tables: JobTables) -> None:
    """Those that have none come last, the newest of them first."""
    due = {"a": NOON + 9, "b": None, "c": NOON, "d": NOON + 9, "e": None}
    for name, moment in due.items():
        tables.jobs.add(job(name, created_ms=NOON + ord(name)))
        tables.jobs.change(name, lambda one, due_ms=moment: dataclasses.replace(one, due_ms=due_ms), NOON)
    for size in (1, 2, 100):
        found: list[str] = []
        after = None
        while page := tables.jobs.find(JobFilter(), after, size, by_next=True):
            found += [one.job_id for one in page]
            after = place_of(page[-1], by_next=True)
        assert found == ["c", "a", "d", "e", "b"]


def test_jobs_are_found_by_state_and_by_crawl(tables: JobTables) -> None:
    for name, crawl in (("a", "x"), ("b", "x"), ("c", "y")):
        tables.jobs.add(daily(name, crawl))
    tables.jobs.add(job("d", "x"))
    assert [one.job_id for one in tables.jobs.find(JobFilter(crawl_id="x"), None, 9)] == ["a", "b", "d"]
    assert [one.job_id for one in tables.jobs.find(JobFilter(JobState.SCHEDULED), None, 9)] == ["a", "b", "c"]
    assert [one.job_id for one in tables.jobs.find(JobFilter(JobState.PENDING, "x"), None, 9)] == ["d"]
    assert tables.jobs.find(JobFilter(JobState.FAILED), None, 9) == []
    assert tables.jobs.counts() == {state: {"scheduled": 3, "pending": 1}.get(state, 0) for state in map(str, JobState)}


@pytest.mark.parametrize(
    ("beginning", "found"),
    [("ab", ["abc", "abd"]), ("abc", ["abc"]), ("b", ["b1"]), ("x", []), ("abcd", []), ("a%", []), ("_", [])],
)
def test_ids_are_completed(tables: JobTables, beginning: str, found: list[str]) -> None:
    for name in ("abc", "abd", "abe", "b1"):
        tables.jobs.add(job(name))
    assert tables.jobs.beginning_with(beginning) == found


def test_overdue_jobs_are_counted_and_the_longest_waiting_named(tables: JobTables) -> None:
    for number in range(5):
        tables.jobs.add(job(str(number), created_ms=NOON + number))
    tables.claims.claim("s", NOON, 1)
    assert tables.jobs.overdue(NOON + 3) == (2, ["1", "2"])
    assert tables.jobs.overdue(NOON + 100, limit=1) == (4, ["1"])
    assert tables.jobs.overdue(NOON) == (0, [])


# Changing


def test_a_change_is_decided_by_how_the_job_is_now(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    changed = tables.jobs.change("a", lambda one: dataclasses.replace(one, retries=one.retries + 1), NOON + 5)
    assert (changed.retries, changed.updated_ms) == (1, NOON + 5)
    assert tables.jobs.get("a") == changed


def test_a_change_that_is_refused_changes_nothing(tables: JobTables) -> None:
    before = tables.jobs.add(daily("a"))

    def refuse(_: Job) -> Job:
        raise NotNow("no", "never")

    for change in (tables.jobs.change, tables.jobs.place):
        with pytest.raises(NotNow):
            change("a", refuse, NOON + 5)
    assert tables.jobs.get("a") == before
    assert_slots_are_counted(tables)


def test_a_job_that_is_placed_anew_does_not_count_itself(tables: JobTables) -> None:
    """Its own slot is the emptiest when it alone is in it."""
    for name in "ab":
        tables.jobs.add(daily(name))
    placed = tables.jobs.place("b", lambda one: one, NOON + MINUTE)
    assert placed.slot == 49
    assert tables.jobs.place("a", lambda one: one, NOON + MINUTE).slot == 48
    assert_slots_are_counted(tables)


def test_a_paused_job_gives_its_slot_up_and_a_resumed_one_finds_another(tables: JobTables) -> None:
    for name in "abc":
        tables.jobs.add(daily(name))
    paused = acted(tables, "a", Action.PAUSE, NOON + 1)
    assert (paused.slot, paused.due_ms) == (None, None)
    tables.jobs.add(daily("d", created_ms=NOON + 2))
    assert tables.jobs.get("d").slot == 48
    resumed = tables.jobs.place("a", lambda one: dataclasses.replace(one, state=JobState.SCHEDULED), NOON + 3)
    assert resumed.slot == 51
    assert_slots_are_counted(tables)


@pytest.mark.parametrize("stopped", [Action.PAUSE, Action.CANCEL])
def test_what_is_paused_or_cancelled_is_not_claimed(tables: JobTables, stopped: Action) -> None:
    tables.jobs.add(daily("a"))
    acted(tables, "a", stopped, NOON)
    assert tables.claims.claim("s", NOON + 365 * DAY_MS, 10) == []


# Deleting


def test_a_deleted_job_takes_its_executions_and_their_logs_along(home: Home, tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    logs = ExecutionLogs(home)
    logs.add(execution.execution_id, execution.token, [LogLine(1, NOON, "info", "hello")])
    finish(tables, execution, NOON + 5)
    tables.jobs.delete("a")
    assert tables.jobs.find(JobFilter(), None, 9) == [] and tables.slots.loads() == [0] * SLOTS
    assert logs.after(execution.execution_id) == []
    with pytest.raises(Unknown):
        tables.executions.get(execution.execution_id)


def test_a_running_job_cannot_be_deleted(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    with pytest.raises(NotNow, match="running"):
        tables.jobs.delete("a")
    acted(tables, "a", Action.CANCEL, NOON + 1)
    with pytest.raises(NotNow):
        tables.jobs.delete("a")
    finish(tables, execution, NOON + 5)
    tables.jobs.delete("a")


def test_a_job_that_others_wait_for_cannot_be_deleted(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    with pytest.raises(NotNow, match="job b"):
        tables.jobs.delete("a")
    tables.jobs.delete("b")
    tables.jobs.delete("a")


def test_the_jobs_of_a_crawl_go_with_it(home: Home, tables: JobTables) -> None:
    tables.jobs.add(daily("a", "x"))
    tables.jobs.add(job("b", "y", after_job_id="a"))
    tables.jobs.add(job("c", "x"))
    running = claimed(tables)
    assert running.crawl_id == "x"
    with pytest.raises(NotNow):
        KnownCrawls(home).remove("x")
    finish(tables, running, NOON)
    KnownCrawls(home).remove("x")
    (left,) = tables.jobs.find(JobFilter(), None, 9)
    assert (left.job_id, left.after_job_id) == ("b", None)
    assert_slots_are_counted(tables)


# Claiming


def test_a_claim_takes_what_is_due_the_longest_waiting_first(tables: JobTables) -> None:
    for number in (3, 1, 2):
        tables.jobs.add(job(f"j{number}", created_ms=NOON + number))
    tables.jobs.add(job("later", created_ms=NOON + HOUR))
    first = tables.claims.claim("s", NOON + 5, 2)
    assert [one.job_id for one in first] == ["j1", "j2"]
    assert [one.job_id for one in tables.claims.claim("s", NOON + 5, 2)] == ["j3"]
    assert tables.claims.claim("s", NOON + 5, 2) == []


@pytest.mark.parametrize("limit", [0, -1, -100])
def test_who_has_no_room_claims_nothing(tables: JobTables, limit: int) -> None:
    tables.jobs.add(job("a"))
    assert tables.claims.claim("s", NOON, limit) == []


def test_what_a_claim_gives(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables, NOON + 7)
    assert dataclasses.asdict(execution) == {
        "execution_id": execution.execution_id,
        "job_id": "a",
        "crawl_id": "crawl of a",
        "number": 1,
        "occurrence_ms": NOON,
        "attempt": 1,
        "state": ExecutionState.RUNNING,
        "token": execution.token,
        "service_id": "s",
        "machine": "",
        "pid": 0,
        "started_ms": NOON + 7,
        "ended_ms": None,
        "run": None,
        "session": None,
        "ended_by": "",
        "pages": 0,
        "indexed": 0,
        "progress": {},
        "error": "",
        "trace": "",
        "cpu_ms": 0,
        "memory_kb": 0,
    }
    locked = tables.jobs.get("a")
    assert (locked.state, locked.lock_token, locked.executions) == (JobState.RUNNING, execution.token, 1)
    assert (locked.slot, locked.last_ms) == (48, NOON + 7)
    assert [(lock.job_id, lock.token, lock.beats) for lock in tables.claims.locks()] == [("a", execution.token, 0)]
    assert tables.claims.held_by(execution.token) == execution and tables.claims.held_by("nobody") is None
    assert tables.executions.running() == [execution]
    assert_slots_are_counted(tables)


def test_a_crawl_has_one_execution_at_a_time(tables: JobTables) -> None:
    for number in range(30):
        tables.jobs.add(job(f"x{number}", "x", created_ms=NOON + number))
    tables.jobs.add(job("y", "y", created_ms=NOON + 50))
    first = tables.claims.claim("s", NOON + HOUR, 4)
    assert [one.job_id for one in first] == ["x0"]
    assert [one.job_id for one in tables.claims.claim("s", NOON + HOUR, 4)] == ["y"], (
        "many of one crawl do not starve others"
    )
    assert tables.claims.claim("s", NOON + HOUR, 4) == []
    finish(tables, first[0], NOON + HOUR)
    assert [one.job_id for one in tables.claims.claim("s", NOON + HOUR, 4)] == ["x1"]


def test_every_try_of_an_occurrence_has_its_number(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    now, seen = NOON, []
    for ended in (Ended(error="gone"), Ended(error="gone"), WELL, WELL):
        execution = claimed(tables, now)
        seen.append((execution.number, execution.occurrence_ms - NOON, execution.attempt))
        after = finish(tables, execution, now, ended)
        now = after.due_ms or 0
    assert seen == [(1, 0, 1), (2, 0, 2), (3, 0, 3), (4, DAY_MS, 1)]


CLAIMING = """
    import sys, time
    from pathlib import Path
    from inchworm.store.home.home import Home
    from inchworm.store.home.claims import Claims

    folder, name, now_ms = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    claims = Claims(Home(folder))
    (folder / f"ready {name}").touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    while found := claims.claim(name, now_ms, 3):
        print(*(one.job_id for one in found))
"""


def test_four_processes_never_claim_the_same_job(home: Home, tables: JobTables) -> None:
    for number in range(60):
        tables.jobs.add(job(f"j{number}", f"crawl {number % 45}"))
    command = [sys.executable, "-c", textwrap.dedent(CLAIMING), str(home.folder)]
    started = {
        name: subprocess.Popen([*command, name, str(NOON)], stdout=subprocess.PIPE, text=True) for name in "abcd"
    }
    deadline = time.monotonic() + 30
    while len(list(home.folder.glob("ready *"))) < len(started) and time.monotonic() < deadline:
        time.sleep(0.01)
    (home.folder / "go").touch()
    claims = {name: process.communicate(timeout=30)[0].split() for name, process in started.items()}
    assert_each_crawl_is_claimed_once(tables, claims, 45)


def test_four_threads_never_claim_the_same_job(home: Home, tables: JobTables) -> None:
    for number in range(120):
        tables.jobs.add(job(f"j{number}", f"crawl {number % 90}"))
    claims: dict[str, list[str]] = {}
    barrier = threading.Barrier(4)

    def work(name: str) -> None:
        mine: list[str] = []
        with closing(Home(home.folder)) as own:
            barrier.wait()
            while found := Claims(own).claim(name, NOON, 2):
                mine += [one.job_id for one in found]
        claims[name] = mine

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_each_crawl_is_claimed_once(tables, claims, 90)


def assert_each_crawl_is_claimed_once(tables: JobTables, claims: dict[str, list[str]], crawls: int) -> None:
    taken = [name for names in claims.values() for name in names]
    assert len(taken) == len(set(taken)) == crawls
    running = tables.executions.running()
    assert len({one.crawl_id for one in running}) == len(running) == crawls
    assert {one.job_id: one.service_id for one in running} == {name: who for who in claims for name in claims[who]}


# Carrying out


def test_the_holder_of_a_job_says_how_it_goes(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    number, token = execution.execution_id, execution.token
    _, of = tables.claims.begin(number, token, "machine", 77)
    assert of.job_id == "a"
    assert tables.claims.beat(number, token) is JobState.RUNNING
    assert tables.claims.beat(number, token) is JobState.RUNNING
    tables.claims.report(number, token, run=0, session=2)
    tables.claims.report(number, token, pages=5, progress={"pages": 5, "pending": 9})
    (lock,) = tables.claims.locks()
    assert lock.beats == 2
    now = tables.executions.get(number)
    assert (now.machine, now.pid, now.run, now.session, now.pages) == ("machine", 77, 0, 2, 5)
    assert now.progress == {"pages": 5, "pending": 9}


def test_the_end_of_an_execution(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    ended = Ended("finished", 4, 2, True, cpu_ms=120, memory_kb=4096)
    after = finish(tables, execution, NOON + 9, ended)
    assert (after.state, after.lock_token, after.due_ms) == (JobState.SCHEDULED, None, NOON + DAY_MS)
    assert tables.jobs.get("a") == after
    done = tables.executions.get(execution.execution_id)
    assert (done.state, done.ended_ms, done.ended_by) == (ExecutionState.COMPLETED, NOON + 9, "finished")
    assert (done.pages, done.indexed, done.cpu_ms, done.memory_kb, done.error) == (4, 2, 120, 4096, "")
    assert tables.executions.running() == [] and tables.claims.locks() == []
    assert_slots_are_counted(tables)


def test_an_execution_that_failed(tables: JobTables) -> None:
    tables.jobs.add(job("a"))
    execution = claimed(tables)
    after = finish(tables, execution, NOON + 9, Ended("error", error="gone", trace="Traceback …"))
    assert (after.state, after.due_ms, after.retries) == (JobState.SCHEDULED, NOON + 9 + 60_000, 1)
    done = tables.executions.get(execution.execution_id)
    assert (done.state, done.error, done.trace) == (ExecutionState.FAILED, "gone", "Traceback …")


def test_an_execution_whose_job_was_cancelled(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    acted(tables, "a", Action.CANCEL, NOON + 1)
    assert tables.claims.beat(execution.execution_id, execution.token) is JobState.CANCELLED
    after = finish(tables, execution, NOON + 9)
    assert (after.state, after.lock_token, after.due_ms) == (JobState.CANCELLED, None, None)
    assert tables.executions.get(execution.execution_id).state is ExecutionState.CANCELLED
    assert tables.claims.claim("s", NOON + 9 * DAY_MS, 9) == []


def test_a_job_that_was_changed_while_it_ran_goes_on_as_changed(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    execution = claimed(tables)
    tables.jobs.change("a", lambda one: dataclasses.replace(one, interval_count=2), NOON + 1)
    assert finish(tables, execution, NOON + 9).due_ms == NOON + 2 * DAY_MS


def every_word(home: Home, execution: Execution) -> dict[str, Callable[[], object]]:
    """All that the holder of a job can say."""
    tables, logs = JobTables(home), ExecutionLogs(home)
    number, token = execution.execution_id, execution.token
    return {
        "begin": lambda: tables.claims.begin(number, token, "machine", 1),
        "beat": lambda: tables.claims.beat(number, token),
        "report": lambda: tables.claims.report(number, token, pages=1000),
        "finish": lambda: finish(tables, execution, NOON + HOUR),
        "log": lambda: logs.add(number, token, [LogLine(1, NOON, "info", "still here")]),
    }


@pytest.mark.parametrize("word", ["begin", "beat", "report", "finish", "log"])
@pytest.mark.parametrize("how", ["handed back", "taken by another", "finished", "deleted"])
def test_who_lost_its_job_is_refused(home: Home, tables: JobTables, word: str, how: str) -> None:
    tables.jobs.add(job("a"))
    execution = claimed(tables)
    if how == "finished":
        finish(tables, execution, NOON)
    else:
        assert hand_back(tables, execution, NOON)
    if how == "taken by another":
        claimed(tables, NOON, "another")
    if how == "deleted":
        tables.jobs.delete("a")
    before = list(home.db._connection.iterdump())
    with pytest.raises(Lost) as raised:
        every_word(home, execution)[word]()
    assert raised.value.hint
    assert list(home.db._connection.iterdump()) == before, "nothing that was refused is half done"


def hand_back(tables: JobTables, execution: Execution, now_ms: int) -> bool:
    decide: Callable[[Job], Job] = lambda one: occurrence.after_crash(one, "killed", now_ms)  # noqa: E731
    return tables.claims.hand_back(execution.execution_id, execution.token, "killed", decide, now_ms)


def test_an_execution_is_taken_away_once(tables: JobTables) -> None:
    tables.jobs.add(job("a"))
    execution = claimed(tables)
    assert hand_back(tables, execution, NOON + 5)
    assert not hand_back(tables, execution, NOON + 5)
    ended = tables.executions.get(execution.execution_id)
    assert (ended.state, ended.error, ended.ended_by) == (ExecutionState.FAILED, "killed", "crashed")
    again = claimed(tables, NOON + 5)
    assert (again.occurrence_ms, again.attempt, again.number) == (NOON, 2, 2)
    assert again.token != execution.token


def test_what_was_reported_before_a_crash_is_kept(tables: JobTables) -> None:
    tables.jobs.add(job("a"))
    execution = claimed(tables)
    tables.claims.report(execution.execution_id, execution.token, run=0, session=1, pages=12)
    hand_back(tables, execution, NOON + 5)
    ended = tables.executions.get(execution.execution_id)
    assert (ended.run, ended.session, ended.pages) == (0, 1, 12)


def test_executions_of_a_service_that_is_gone_are_adopted(tables: JobTables) -> None:
    for name in "abc":
        tables.jobs.add(job(name))
    first, second = tables.claims.claim("dead", NOON, 2)
    third = claimed(tables, NOON, "alive")
    finish(tables, second, NOON)
    assert tables.claims.adopt("dead", "alive") == 1
    assert tables.claims.adopt("dead", "alive") == 0
    owners = {one.execution_id: one.service_id for one in tables.executions.running()}
    assert owners == {first.execution_id: "alive", third.execution_id: "alive"}
    assert tables.executions.get(second.execution_id).service_id == "dead"


# Chains


def test_a_job_runs_after_the_one_it_waits_for(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    for name in "bc":
        tables.jobs.add(job(name, after_job_id="a"))
    assert [one.due_ms for one in tables.jobs.find(JobFilter(), None, 9)] == [NOON, None, None]
    finish(tables, claimed(tables), NOON + 50)
    due = {one.job_id: (one.due_ms, one.occurrence_ms) for one in tables.jobs.find(JobFilter(), None, 9)}
    assert due["b"] == due["c"] == (NOON + 50, NOON + 50)
    for execution in tables.claims.claim("s", NOON + 60, 9):
        assert finish(tables, execution, NOON + 60).due_ms is None
    finish(tables, claimed(tables, NOON + DAY_MS), NOON + DAY_MS)
    assert {one.occurrence_ms for one in tables.claims.claim("s", NOON + DAY_MS, 9)} == {NOON + DAY_MS}


@pytest.mark.parametrize("ended", [Ended(error="gone"), None], ids=["failed", "crashed"])
def test_a_job_does_not_run_after_one_that_failed(tables: JobTables, ended: Ended | None) -> None:
    tables.jobs.add(job("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    execution = claimed(tables)
    if ended:
        finish(tables, execution, NOON, ended)
    else:
        hand_back(tables, execution, NOON)
    assert tables.jobs.get("b").due_ms is None


def test_a_job_does_not_run_after_one_that_was_cancelled(tables: JobTables) -> None:
    tables.jobs.add(job("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    execution = claimed(tables)
    acted(tables, "a", Action.CANCEL, NOON)
    finish(tables, execution, NOON)
    assert tables.jobs.get("b").due_ms is None


def test_a_paused_follower_is_not_started(tables: JobTables) -> None:
    tables.jobs.add(job("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    acted(tables, "b", Action.PAUSE, NOON)
    finish(tables, claimed(tables), NOON)
    assert (tables.jobs.get("b").state, tables.jobs.get("b").due_ms) == (JobState.PAUSED, None)


def test_a_follower_that_waits_for_its_next_try_is_not_started_twice(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    finish(tables, claimed(tables), NOON)
    due = finish(tables, claimed(tables, NOON + 1), NOON + 1, Ended(error="gone")).due_ms
    tables.jobs.change("a", lambda one: occurrence.forced(one, NOON + 2), NOON + 2)
    finish(tables, claimed(tables, NOON + 2), NOON + 2)
    follower = tables.jobs.get("b")
    assert (follower.due_ms, follower.occurrence_ms, follower.retries) == (due, NOON, 1)


def test_a_follower_that_is_running_runs_once_more(tables: JobTables) -> None:
    """What it started from is older than what it is to follow."""
    tables.jobs.add(daily("a"))
    tables.jobs.add(job("b", after_job_id="a"))
    finish(tables, claimed(tables), NOON)
    following = claimed(tables, NOON + 1)
    finish(tables, claimed(tables, NOON + DAY_MS), NOON + DAY_MS)
    assert finish(tables, following, NOON + DAY_MS + 5).due_ms is not None


@pytest.mark.parametrize(
    ("is_enabled", "ended", "expected"),
    [(False, WELL, (JobState.PAUSED, None)), (True, Ended(enough="no_changes"), (JobState.COMPLETED, None))],
    ids=["crawl disabled", "enough"],
)
def test_a_follower_that_runs_no_more_is_not_started_by_what_it_missed(
    home: Home, tables: JobTables, is_enabled: bool, ended: Ended, expected: tuple[JobState, int | None]
) -> None:
    crawls = KnownCrawls(home)
    crawls.find_or_add(CrawlInfo("y", "b", ("https://b.test/",), {}, NOON), "https://b.test/", is_named=False)
    tables.jobs.add(daily("a"))
    tables.jobs.add(job("b", "y", after_job_id="a"))
    finish(tables, claimed(tables), NOON)
    following = claimed(tables, NOON + 1)
    finish(tables, claimed(tables, NOON + DAY_MS), NOON + DAY_MS)
    crawls.change("y", enabled=is_enabled)
    after = finish(tables, following, NOON + DAY_MS + 5, ended)
    assert (after.state, after.due_ms) == expected


# Slots


def test_the_jobs_of_a_slot_those_that_run_last_first(tables: JobTables) -> None:
    for number in range(3):
        tables.jobs.add(daily(f"j{number}"))
        assert moved(tables, f"j{number}", tables.jobs.get(f"j{number}").due_ms or 0, NOON + 5 * HOUR + number, NOON)
    tables.jobs.add(daily("other"))
    found = list(tables.slots.waiting([68]))
    assert found == [WaitingJob(f"j{n}", NOON + 5 * HOUR + n, DAY_MS, NOON) for n in (2, 1, 0)]
    assert list(tables.slots.waiting([1, 2])) == []
    assert [one.job_id for one in tables.slots.waiting([48, 68])] == ["other", "j2", "j1", "j0"]
    assert_slots_are_counted(tables)


def moved(tables: JobTables, name: str, from_ms: int, to_ms: int, now_ms: int) -> bool:
    return bool(tables.slots.shift([Shift(name, from_ms, to_ms)], now_ms))


def test_a_job_is_moved_unless_it_changed_meanwhile(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    assert moved(tables, "a", NOON, NOON + 2 * HOUR, NOON + 1)
    after = tables.jobs.get("a")
    assert (after.due_ms, after.occurrence_ms, after.moved_ms, after.slot) == (
        NOON + 2 * HOUR,
        NOON + 2 * HOUR,
        NOON + 1,
        56,
    )
    assert not moved(tables, "a", NOON, NOON + 3 * HOUR, NOON + 2), "it is not there any more"
    execution = claimed(tables, NOON + 2 * HOUR)
    assert not moved(tables, "a", NOON + 2 * HOUR, NOON + 3 * HOUR, NOON + 2), "it runs"
    due = finish(tables, execution, NOON + 2 * HOUR, Ended(error="gone")).due_ms or 0
    assert not moved(tables, "a", due, NOON + 3 * HOUR, NOON + 2), "it is to be tried again soon"
    assert tables.jobs.get("a").occurrence_ms == NOON + 2 * HOUR
    assert_slots_are_counted(tables)


def test_a_job_that_is_gone_is_not_moved_and_the_others_are(tables: JobTables) -> None:
    for name in ("a", "b"):
        tables.jobs.add(daily(name))
    gone, *there = [Shift(name, tables.jobs.get(name).due_ms or 0, NOON + HOUR) for name in ("a", "b")]
    tables.jobs.delete("a")
    assert tables.slots.shift([gone, *there], NOON) == there
    assert tables.jobs.get("b").due_ms == NOON + HOUR
    assert tables.slots.shift([], NOON) == []
    assert_slots_are_counted(tables)


def test_jobs_are_moved_all_at_once(tables: JobTables) -> None:
    """As long as it takes, nobody sees half of it: here, because the disk is full after the first."""
    for name in ("a", "b"):
        tables.jobs.add(daily(name))
    before = [tables.jobs.get(name) for name in ("a", "b")]
    wanted = [Shift(one.job_id, one.due_ms or 0, NOON + HOUR) for one in before]

    def broken_after_first() -> Iterator[Shift]:
        yield wanted[0]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        tables.slots.shift(broken_after_first(), NOON)
    assert [tables.jobs.get(name) for name in ("a", "b")] == before
    assert_slots_are_counted(tables)


# Looking back


def test_executions_are_listed_newest_first_in_pages(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    for number in range(5):
        finish(tables, claimed(tables, NOON + number * DAY_MS), NOON + number * DAY_MS)
    assert [one.number for one in tables.executions.of_job("a", None, 3)] == [5, 4, 3]
    assert [one.number for one in tables.executions.of_job("a", 3, 3)] == [2, 1]
    assert tables.executions.of_job("a", 1, 3) == []


def test_figures(tables: JobTables) -> None:
    empty = tables.executions.totals()
    assert (empty.total, empty.success_rate, empty.average_ms, empty.last_success_ms) == (
        0,
        None,
        None,
        None,
    )
    for name in ("a", "b", "c"):
        tables.jobs.add(job(name))
    first, second, third = tables.claims.claim("s", NOON, 9)
    finish(tables, first, NOON + 100, Ended("finished", 7, cpu_ms=10, memory_kb=100))
    finish(tables, second, NOON + 300, Ended("finished", 5, cpu_ms=20, memory_kb=300))
    finish(tables, third, NOON + 900, Ended("error", error="gone", cpu_ms=5, memory_kb=50))
    again = claimed(tables, NOON + HOUR)
    assert tables.executions.totals() == ExecutionTotals(
        total=4,
        completed=2,
        failed=1,
        cancelled=0,
        running=1,
        average_ms=200,
        pages=12,
        last_success_ms=NOON + 300,
        last_failure_ms=NOON + 900,
        cpu_ms=35,
        memory_peak_kb=300,
    )
    assert tables.executions.totals().success_rate == 0.6667
    assert again.job_id == third.job_id
    of_one = tables.executions.totals(third.job_id)
    assert (of_one.total, of_one.success_rate) == (2, 0.0)
    assert tables.executions.totals(since_ms=NOON + 1).total == 1
    acted(tables, again.job_id, Action.CANCEL, NOON + HOUR)
    finish(tables, again, NOON + HOUR)
    assert tables.executions.totals().cancelled == 1 and tables.executions.totals().success_rate == 0.6667


def test_pruning_keeps_a_hundred_executions_of_each_job(home: Home, tables: JobTables) -> None:
    tables.jobs.add(job("few"))
    finish(tables, claimed(tables), NOON)
    tables.jobs.add(job("many", interval_count=1, created_ms=NOON))
    logs, kept = ExecutionLogs(home), []
    for _ in range(KEEP_EXECUTIONS + 5):
        now = tables.jobs.get("many").due_ms or 0
        execution = claimed(tables, now)
        kept.append(execution.execution_id)
        logs.add(execution.execution_id, execution.token, [LogLine(1, now, "info", "hello")])
        finish(tables, execution, now)
    assert tables.executions.prune(NOON + HOUR) == 5
    assert tables.executions.prune(NOON + HOUR) == 0
    assert [one.execution_id for one in tables.executions.of_job("many", None, 1000)] == kept[:4:-1]
    assert [bool(logs.after(one)) for one in kept] == [False] * 5 + [True] * KEEP_EXECUTIONS
    assert len(tables.executions.of_job("few", None, 9)) == 1
    assert tables.jobs.get("many").executions == KEEP_EXECUTIONS + 5


def test_pruning_forgets_what_is_older_than_a_month_but_never_what_runs(tables: JobTables) -> None:
    for name in ("a", "b"):
        tables.jobs.add(job(name))
    ended, running = tables.claims.claim("s", NOON, 9)
    finish(tables, ended, NOON + 7)
    assert tables.executions.prune(NOON + 7 + KEEP_MS) == 0
    assert tables.executions.prune(NOON + 8 + KEEP_MS) == 1
    assert tables.executions.of_job(ended.job_id, None, 9) == []
    assert tables.executions.running() == [running]
    assert tables.jobs.get(ended.job_id).executions == 1


def test_numbers_go_on_after_pruning(tables: JobTables) -> None:
    tables.jobs.add(daily("a"))
    finish(tables, claimed(tables), NOON)
    tables.executions.prune(NOON + KEEP_MS + HOUR)
    execution = claimed(tables, NOON + KEEP_MS + HOUR)
    assert (execution.number, execution.attempt) == (2, 1)


# Anything, in any order


class JobsMachine(RuleBasedStateMachine):
    """Whatever people, schedulers and executions do, in any order, with a model of what must hold beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="inchworm-jobs-")
        self.clock = ManualClock(NOON)
        self.app = App(Path(self._folder.name), self.clock)
        self.tables = JobTables(self.app.home)
        self.names: list[str] = []
        self.alive: dict[str, Execution] = {}
        """Tokens that hold a job."""

        self.lost: dict[str, Execution] = {}
        self.tried: dict[str, list[Execution]] = defaultdict(list)
        self.count = 0

    def teardown(self) -> None:
        self.app.close()
        self._folder.cleanup()

    def now(self) -> int:
        self.clock.advance(0.001)
        return self.clock.now_ms()

    # People

    @rule(
        crawl=st.sampled_from("xyz"),
        kind=st.sampled_from(["once", "15 minutes", "daily", "off", "chained", "by hand"]),
        retries=st.integers(0, 2),
    )
    def add(self, crawl: str, kind: str, retries: int) -> None:
        self.count += 1
        values: dict[str, Any] = {"max_retries": retries, "created_ms": self.now()}
        if kind in ("15 minutes", "daily", "off"):
            values |= {"interval_count": 1, "interval_unit": "days"}
        if kind == "15 minutes":
            values |= {"interval_count": 15, "interval_unit": "minutes"}
        if kind == "chained" and self.names:
            values["after_job_id"] = self.names[0]
        if kind == "by hand":
            values["repetition"] = JobRepetition()
        name = f"j{self.count}"
        self.tables.jobs.add(job(name, crawl, **values, schedule_enabled=kind != "off"))
        self.names.append(name)

    @precondition(lambda self: self.names)
    @rule(which=st.integers(0, 20), verb=st.sampled_from(["pause", "resume", "cancel", "retry", "run"]))
    def act(self, which: int, verb: str) -> None:
        self.now()
        name = self.names[which % len(self.names)]
        before = self.tables.jobs.get(name)
        try:
            getattr(self.app.schedule, verb)(name)
        except NotNow:
            assert self.tables.jobs.get(name) == before

    @precondition(lambda self: self.names)
    @rule(which=st.integers(0, 20), hours=st.integers(1, 30), enabled=st.booleans())
    def change(self, which: int, hours: int, enabled: bool) -> None:
        self.now()
        name = self.names[which % len(self.names)]
        if self.tables.jobs.get(name).after_job_id is None:
            self.app.schedule.change(
                name, WantedJob(interval_minutes=hours, interval_type="hours", schedule_enabled=enabled)
            )

    @precondition(lambda self: self.names)
    @rule(which=st.integers(0, 20))
    def delete(self, which: int) -> None:
        name = self.names[which % len(self.names)]
        try:
            self.tables.jobs.delete(name)
        except NotNow:
            assert self.tables.jobs.get(name)
        else:
            self.names.remove(name)
            self.tried.pop(name, None)

    @rule(is_preview=st.booleans())
    def rebalance(self, is_preview: bool) -> None:
        self.now()
        done = self.app.dispatch.rebalance(is_preview)
        assert done.score_after >= done.score_before

    # Time and schedulers

    @rule(minutes=st.sampled_from([1, 16, 61, 24 * 60]))
    def wait(self, minutes: int) -> None:
        self.clock.advance(minutes * 60)

    @rule(service=st.sampled_from("st"), most=st.integers(0, 4))
    def claim(self, service: str, most: int) -> None:
        now = self.now()
        for execution in self.tables.claims.claim(service, now, most):
            assert execution.token not in self.alive and execution.token not in self.lost
            earlier = self.tried[execution.job_id]
            same = [one for one in earlier if one.occurrence_ms == execution.occurrence_ms]
            assert execution.attempt == len(same) + 1, "attempts have no gaps"
            assert execution.number == len(earlier) + 1, "nor have executions"
            assert all(one.token in self.lost for one in earlier), "nobody else holds it"
            assert execution.crawl_id not in {one.crawl_id for one in self.alive.values()}
            earlier.append(execution)
            self.alive[execution.token] = execution

    # Executions

    def _holder(self, which: int) -> Execution:
        return list(self.alive.values())[which % len(self.alive)]

    @precondition(lambda self: self.alive)
    @rule(which=st.integers(0, 20), verb=st.sampled_from(["begin", "beat", "report"]))
    def speak(self, which: int, verb: str) -> None:
        every_word(self.app.home, self._holder(which))[verb]()

    @precondition(lambda self: self.alive)
    @rule(which=st.integers(0, 20), how=st.sampled_from(["well", "unchanged", "last", "failed", "crashed", "stopped"]))
    def end(self, which: int, how: str) -> None:
        execution, now = self._holder(which), self.now()
        if how in ("crashed", "stopped"):
            assert self.app.dispatch.give_up(execution, "its process is gone", is_crash=how == "crashed")
        else:
            ended = Ended("finished", changed=how != "unchanged", enough="no_changes" if how == "last" else "")
            finish(self.tables, execution, now, Ended(error="gone") if how == "failed" else ended)
        self.lost[execution.token] = self.alive.pop(execution.token)

    @precondition(lambda self: self.lost)
    @rule(which=st.integers(0, 50), verb=st.sampled_from(["begin", "beat", "report", "finish", "log", "give up"]))
    def speak_too_late(self, which: int, verb: str) -> None:
        execution = list(self.lost.values())[which % len(self.lost)]
        if verb == "give up":
            assert not self.app.dispatch.give_up(execution, "its process is gone")
            return
        with pytest.raises(Lost):
            every_word(self.app.home, execution)[verb]()

    # What must hold

    @invariant()
    def slots_are_counted(self) -> None:
        assert_slots_are_counted(self.tables)

    @invariant()
    def locks_and_running_executions_are_the_same(self) -> None:
        held = {lock.token for lock in self.tables.claims.locks()}
        assert held == set(self.alive) == {one.token for one in self.tables.executions.running()}
        crawls = [one.crawl_id for one in self.tables.executions.running()]
        assert len(crawls) == len(set(crawls)), "a crawl has one execution at a time"

    @invariant()
    def states_tell_the_truth(self) -> None:
        for one in self.tables.jobs.find(JobFilter(), None, 1000):
            if one.lock_token is not None:
                assert one.state in (JobState.RUNNING, JobState.CANCELLED)
            else:
                assert one.state is not JobState.RUNNING
            if one.state in (JobState.PAUSED, *states.FINAL):
                assert one.due_ms is None or one.lock_token is not None
            if one.state is JobState.PENDING:
                assert one.due_ms is not None, "a pending job is never forgotten"

    @invariant()
    def executions_are_all_there(self) -> None:
        for name in self.names:
            kept = self.tables.executions.of_job(name, None, 1000)[::-1]
            assert [one.number for one in kept] == list(range(1, len(kept) + 1))
            assert [one.token for one in kept] == [one.token for one in self.tried[name]]
            assert self.tables.jobs.get(name).executions == len(kept)


TestAnythingInAnyOrder = JobsMachine.TestCase
TestAnythingInAnyOrder.settings = effort(
    max_examples=30, stateful_step_count=40, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_no_job_is_made_for_a_crawl_that_is_gone(home: Home) -> None:
    with pytest.raises(Unknown, match="deleted meanwhile"):
        Jobs(home).add(job("a"), has_crawl=True)
