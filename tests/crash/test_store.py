"""F5, F6, F19: a database that is locked, torn, empty, deleted, half migrated or from the future."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from tests.crash import checker
from tests.crash.kills import SEED
from tests.crash.reference import Reference, assert_same_record
from tests.crash.test_owner import write_lock
from tests.crash.trial import Running, Trial, Twist
from tests.crash.website import Web

# F5


def test_a_locked_store_is_waited_for(web: Web, trial: Trial, reference: Reference) -> None:
    def during(running: Running) -> None:
        running.wait_for(40)
        with write_lock(trial.crawl_folder / "crawl.db"):
            time.sleep(1.5)

    with web.slowly(0.005, 0.01):
        ended = trial.sit(during=during)
    assert ended.code == 0 and ended.has_completed, ended
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("name", ["home.db", "crawl.db"])
def test_a_lock_at_the_start_is_waited_for(name: str, trial: Trial) -> None:
    trial.sit("--budget", "20")
    path = trial.home / name if name == "home.db" else trial.crawl_folder / name
    with write_lock(path):
        running = trial.start()
        time.sleep(1)
        assert running.process.poll() is None
    assert trial.note(running).has_completed
    trial.check()


@pytest.mark.parametrize("transaction", [1, 2, 3, 4, 5, 6])
def test_a_lock_that_is_held_for_too_long_is_named(transaction: int, trial: Trial, reference: Reference) -> None:
    """When waiting did not help: one clear sentence, and nothing dropped."""
    trial.sit("--budget", "20")
    ended = trial.sit(twist=Twist(sabotage=f"lock-sql:{transaction}"))
    assert ended.code == 1, ended
    ended.assert_plain("locked", "Another process")
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


# F6: the archive


def _torn(trial: Trial) -> Path:
    """Stop a crawl half way; one of its archive files."""
    trial.sit("--budget", "60")
    return next((trial.crawl_folder / "archive").glob("*.warc.gz"))


@pytest.mark.parametrize("tail", [b"\x1f\x8b", b"\0" * 5000, "a whole record"])
def test_a_torn_tail_is_cut(tail: bytes | str, trial: Trial, reference: Reference) -> None:
    path = _torn(trial)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole if isinstance(tail, str) else tail)
    trial.complete()
    assert path.read_bytes() == whole
    trial.check()
    assert_same_record(trial, reference.of())


def test_an_unknown_archive_file_is_removed(trial: Trial, reference: Reference) -> None:
    """A crash before the first commit of a file leaves it behind; nobody knows it."""
    path = _torn(trial)
    shutil.copyfile(path, path.with_name("run0000-t000099-00001.warc.gz"))
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_damaged_archive_is_found_out(damage: str, trial: Trial) -> None:
    """No crash of ours does this, but somebody may: the doctor names the file."""
    path = _torn(trial)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-10])
    told = trial.say("doctor")
    assert told.code == 1 and path.name in told.out, told


# F6: the database


def test_an_empty_database_of_a_crawl_that_never_began(trial: Trial, reference: Reference) -> None:
    """A kill before the first page of the file was written leaves this; it is simply a new crawl."""
    trial.sit(twist=Twist(fault="in_recovery:1"))
    for path in trial.crawl_folder.glob("crawl.db*"):
        path.unlink()
    (trial.crawl_folder / "crawl.db").touch()
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("damage", ["emptied", "deleted"])
def test_a_database_that_vanished_does_not_take_the_archive_along(damage: str, trial: Trial) -> None:
    """There is an archive and no record of it: that is damage, to be named, and nothing may be removed for it."""
    path = _torn(trial)
    whole = path.read_bytes()
    for one in trial.crawl_folder.glob("crawl.db*"):
        one.unlink()
    if damage == "emptied":
        (trial.crawl_folder / "crawl.db").touch()
    ended = trial.start().wait()
    assert path.exists() and path.read_bytes() == whole, f"the archive is gone\n{ended}"
    assert ended.code == 1, ended
    ended.assert_plain("crawl.db")


@pytest.mark.parametrize("name", ["home.db", "crawl.db"])
def test_a_database_from_the_future_is_refused(name: str, trial: Trial) -> None:
    """F19: an old inchworm on a new schema."""
    trial.sit("--budget", "20")
    path = trial.home / name if name == "home.db" else trial.crawl_folder / name
    with contextlib.closing(sqlite3.connect(path)) as db:
        mine = checker.value(db, "PRAGMA user_version")
        db.execute("PRAGMA user_version = 99")
    before = _dump(path)
    commands = (["crawl"], ["status"], ["export", "--format", "urls"])
    for ended in (trial.say(*words, trial.seeds[0]) for words in commands):
        assert ended.code == 1, ended
        ended.assert_plain("newer", name, "99")
    assert _dump(path) == before
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {mine}")
    trial.complete()
    trial.check()


def _dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


@pytest.mark.parametrize("name", ["home.db", "crawl.db"])
def test_a_damaged_database_is_named(name: str, trial: Trial) -> None:
    trial.sit("--budget", "20")
    path = trial.home / name if name == "home.db" else trial.crawl_folder / name
    path.write_bytes(b"this is no database at all " * 400)
    ended = trial.start().wait()
    assert ended.code == 1, ended
    ended.assert_plain(name)


def test_a_database_deleted_while_running(web: Web, trial: Trial) -> None:
    """What is written to a deleted file is lost, so the session must end and say so, and never claim success."""

    def during(running: Running) -> None:
        running.wait_for(40)
        for path in trial.crawl_folder.glob("crawl.db*"):
            path.unlink()

    with web.slowly(0.02, 0.03):
        running = trial.start()
        during(running)
        ended = running.wait()
    assert ended.code == 1, ended
    ended.assert_plain("crawl.db")


@pytest.mark.parametrize("turn", range(4))
def test_a_torn_write_ahead_log(turn: int, trial: Trial, reference: Reference) -> None:
    """A power cut may lose its end or scramble it: the commits in it are made again, the archive follows."""
    chance = random.Random(f"{SEED} torn log {turn}")
    assert trial.sit(twist=Twist(fault=f"after_commit:{3 + turn}")).was_killed
    path = trial.crawl_folder / "crawl.db-wal"
    data = bytearray(path.read_bytes())
    place = chance.randrange(len(data) // 3, len(data))
    if turn % 2:
        data[place] ^= 0xFF
    else:
        del data[place:]
    path.write_bytes(data)
    trial.committed.clear()
    lost = trial.asked.pop()
    with trial.store() as db:
        session = checker.newest_session(db)
        done = checker.value(db, "SELECT COUNT(*) FROM visit WHERE kind = 'page' AND requested = 1") if session else 0
    trial.complete()
    trial.assert_sound(ended=True)
    assert_same_record(trial, reference.of())
    assert len(trial.asked[-1].urls) + done == len(set(lost.urls) | set(trial.asked[-1].urls))


# F19


@pytest.mark.parametrize("statement", [2, 6, 9, 17, 24, 33])
def test_a_migration_killed_half_way(statement: int, trial: Trial) -> None:
    """All of a step or nothing of it, for the home's file and the crawl's."""
    ended = trial.sit(twist=Twist(sabotage=f"die-sql:{statement}"))
    assert ended.was_killed
    trial.complete()
    trial.check()


def test_two_processes_migrate_at_once(trial: Trial) -> None:
    started = [trial.call("list") for _ in range(4)]
    assert [running.wait().code for running in started] == [0, 0, 0, 0]


def test_a_kill_while_the_log_is_folded_into_the_database(trial: Trial, reference: Reference) -> None:
    """The last session's end checkpoints the write-ahead log; a kill there is like any other."""

    def during(running: Running) -> None:
        running.wait_for(50)
        time.sleep(0.03)
        running.send(signal.SIGKILL)

    for _ in range(3):
        trial.sit("--budget", "50", during=during)
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())
