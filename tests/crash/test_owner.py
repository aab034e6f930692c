"""F8 and F9: one owner at a time; one that slept through its loss wakes up locked out (D6, I3)."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.reference import Reference, assert_same_record
from tests.crash.trial import Running, Trial, Twist, wait_until
from tests.crash.website import Web

IMPATIENT = Twist(env={"INCHWORM_STALE": "0.5"})
STALE_SECONDS = 0.7
"""After so long, whoever is impatient takes an owner for asleep."""
BUSY = Twist(env={"INCHWORM_STALE": "3"})
PATIENT = Twist(env={"INCHWORM_STALE": "30"})


@contextlib.contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Hold a database the way another process would."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=20)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def test_the_second_process_is_told_who_is_first(web: Web, trial: Trial, reference: Reference) -> None:
    with web.slowly(0.02, 0.03):
        first = trial.start("--workers", "2")
        first.wait_for(20)
        others = [
            trial.start(),
            trial.call("resume", trial.seeds[0]),
            trial.call("queue", trial.seeds[0], "--clear"),
            trial.call("delete", trial.seeds[0], "--yes"),
        ]
        ends = [running.wait() for running in others]
    for refused in ends:
        assert refused.code == 3, refused
        assert f"process {first.pid} " in refused.err and "Traceback" not in refused.err
    assert trial.note(first).has_completed
    trial.check()
    assert_same_record(trial, reference.of())


def test_many_start_at_once(web: Web, trial: Trial, reference: Reference) -> None:
    """The crawl exists, nobody works on it, and five begin in the same moment."""
    trial.sit("--budget", "20")
    with web.slowly(0.03, 0.04):
        started = [trial.start() for _ in range(5)]
        codes = sorted(running.wait().code for running in started)
    assert codes == [0, 3, 3, 3, 3], [running.wait() for running in started]
    winner = next(running for running in started if running.wait().code == 0)
    trial.note(replace(winner, hits=started[0].hits))
    trial.check()
    assert_same_record(trial, reference.of())


def test_many_start_in_an_empty_home(web: Web, trial: Trial, reference: Reference) -> None:
    with web.slowly(0.03, 0.04):
        started = [trial.start() for _ in range(4)]
        ends = [running.wait() for running in started]
    assert sorted(ended.code for ended in ends) == [0, 3, 3, 3], "\n".join(map(str, ends))
    trial.note(replace(started[[ended.code for ended in ends].index(0)], hits=started[0].hits))
    trial.check()
    assert_same_record(trial, reference.of())


def test_two_make_the_same_crawl_in_the_same_moment(web: Web, trial: Trial) -> None:
    """Both have looked and found no such crawl before either of them could write it down."""
    assert trial.say("list").code == 0
    with web.slowly(0.02, 0.03):
        with write_lock(trial.home / "home.db"):
            started = [trial.start() for _ in range(2)]
            wait_until(lambda: all(_has_open(running, "home.db") for running in started))
            time.sleep(0.5)
        ends = [running.wait() for running in started]
    assert sorted(ended.code for ended in ends) == [0, 3], "\n".join(map(str, ends))
    assert len(list((trial.home / "crawls").iterdir())) == 1


def test_an_owner_that_is_just_starting_is_not_taken_for_a_sleeping_one(web: Web, trial: Trial) -> None:
    """Its lock is held, but the last sign of life in the store is that of an owner of long ago."""
    trial.sit("--budget", "20")
    _make_old(trial)
    with web.slowly(0.01, 0.01):
        with write_lock(trial.crawl_folder / "crawl.db"):
            first = trial.start(twist=PATIENT)
            wait_until(lambda: _is_locked(trial))
            second = trial.start(twist=PATIENT)
            wait_until(lambda: second.process.poll() is not None or _has_open(second, "crawl.db"))
            time.sleep(0.5)
        ends = [first.wait(), second.wait()]
    assert [ended.code for ended in ends] == [0, 3], "\n".join(map(str, ends))


def _has_open(running: Running, name: str) -> bool:
    """Whether a process has come as far as to open this file. Before that, nothing is tested."""
    try:
        return any(link.readlink().name == name for link in Path(f"/proc/{running.pid}/fd").iterdir())
    except OSError:
        return False


def _make_old(trial: Trial) -> None:
    with contextlib.closing(sqlite3.connect(trial.crawl_folder / "crawl.db")) as db, db:
        db.execute("UPDATE owner SET beat_ms = beat_ms - 100000")


def _is_locked(trial: Trial) -> bool:
    held = Path("/proc/locks").read_text()
    return f":{(trial.crawl_folder / 'owner.lock').stat().st_ino} " in held


def sleep_between_commits(trial: Trial, running: Running) -> None:
    """SIGSTOP at a moment when the process is not inside a transaction: only then can another one go on."""
    for _ in range(100):
        running.send(signal.SIGSTOP)
        time.sleep(0.02)
        with contextlib.suppress(sqlite3.OperationalError), write_lock_now(trial.crawl_folder / "crawl.db"):
            return
        running.send(signal.SIGCONT)
        time.sleep(0.02)
    raise AssertionError("it is always in the middle of a commit")


@contextlib.contextmanager
def write_lock_now(path: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _files(trial: Trial) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (trial.crawl_folder / "archive").iterdir()}


def _rows(trial: Trial) -> list[str]:
    with trial.store() as db:
        return list(db.iterdump())


@pytest.mark.parametrize(("asleep_at", "workers"), [(2, 1), (2, 32), (90, 5)])
def test_an_owner_that_slept_cannot_write_any_more(
    asleep_at: int, workers: int, web: Web, trial: Trial, reference: Reference
) -> None:
    """SIGSTOP, another process takes over and completes the run, SIGCONT: exit 3, and not a byte that counts."""
    with web.slowly(0.004, 0.008):
        first = trial.start("--workers", str(workers), twist=IMPATIENT)
        first.wait_for(asleep_at)
        sleep_between_commits(trial, first)
        web.settle()
        asked = web.asked(first.hits)
        time.sleep(STALE_SECONDS)
        ended = trial.sit("--workers", str(workers), twist=IMPATIENT)
        assert ended.code == 0 and ended.has_completed, ended
        rows, files = _rows(trial), _files(trial)
        first.send(signal.SIGCONT)
        lost = first.wait()
    assert lost.code == 3, lost
    assert "taken over" in lost.err and "Traceback" not in lost.err
    assert (_rows(trial), _files(trial)) == (rows, files)
    trial.asked.insert(0, replace(trial.asked[0], session=1, urls=tuple(asked), killed=True))
    trial.check()
    assert_same_record(trial, reference.of())


def test_an_owner_that_wakes_up_while_the_other_works(web: Web, trial: Trial, reference: Reference) -> None:
    with web.slowly(0.01, 0.02):
        first = trial.start(twist=IMPATIENT)
        first.wait_for(60)
        sleep_between_commits(trial, first)
        time.sleep(STALE_SECONDS)
        second = trial.start(twist=IMPATIENT)
        second.wait_for(30)
        first.send(signal.SIGCONT)
        lost, ended = first.wait(), second.wait()
    assert (lost.code, ended.code) == (3, 0), f"{lost}\n{ended}"
    assert ended.has_completed
    trial.assert_sound(ended=True)
    assert_same_record(trial, reference.of())


def test_a_chain_of_sleepers(web: Web, trial: Trial, reference: Reference) -> None:
    """Two owners fall asleep one after the other, then all wake up, and the third completes."""
    sleepers = []
    with web.slowly(0.004, 0.008):
        for _ in range(2):
            sleepers.append(trial.start(twist=IMPATIENT))
            sleepers[-1].wait_for(40)
            sleep_between_commits(trial, sleepers[-1])
            time.sleep(STALE_SECONDS)
        last = trial.start(twist=IMPATIENT)
        last.wait_for(20)
        for sleeper in reversed(sleepers):
            sleeper.send(signal.SIGCONT)
        assert [sleeper.wait().code for sleeper in sleepers] == [3, 3]
        assert last.wait().has_completed
    trial.assert_sound(ended=True)
    assert_same_record(trial, reference.of())


def test_a_take_over_that_failed_changes_nothing(web: Web, trial: Trial) -> None:
    """The contender could not write (the sleeper holds the file), so the first stays the owner, also for a third."""
    with web.slowly(0.02, 0.03):
        first = trial.start("--workers", "2", twist=IMPATIENT)
        first.wait_for(20)
        sleep_between_commits(trial, first)
        time.sleep(STALE_SECONDS)
        second = trial.start(twist=replace(IMPATIENT, sabotage="lock-file:crawl.db")).wait()
        first.send(signal.SIGCONT)
        first.wait_for(first.asked() + 20)
        third = trial.start().wait()
        status = trial.say("status", trial.seeds[0], "--json").summary
        ended = trial.note(first)
    assert second.code in (1, 3), second
    assert third.code == 3 and f"process {first.pid} " in third.err, third
    assert status["owner"] and status["owner"]["pid"] == first.pid, status
    assert ended.code == 0 and ended.has_completed, ended
    trial.check()


def test_a_dead_owner_is_replaced_at_once(web: Web, trial: Trial) -> None:
    """However fresh its last sign of life: a lock dies with its process."""
    trial.sit(during=lambda running: (running.wait_for(40), running.send(signal.SIGKILL)))
    trial.complete()
    trial.check()


def test_a_living_owner_is_left_alone_for_ever(web: Web, trial: Trial) -> None:
    """It beats while it waits for a slow server and has nothing to commit, so nobody takes it for asleep."""
    first = trial.start("--workers", "2", "--grace", "1", twist=BUSY)
    first.wait_for(10)
    with web.slowly(18.0, 18.0):
        first.wait_for(first.asked() + 2)
        for _ in range(2):
            time.sleep(4.0)
            assert trial.start(twist=BUSY).wait().code == 3
        first.send(signal.SIGTERM)
        assert first.wait().code == 143
    trial.assert_sound(ended=True)
