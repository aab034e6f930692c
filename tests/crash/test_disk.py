"""F3 and F4: a disk that is full, broken or read-only, and too few descriptors.

Whatever fails, the session ends with one clear sentence and exit code 1, nothing is corrupt, and the same command
goes on when the cause is gone. A failed sync is never taken for a success.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.reference import Reference, assert_same_record
from tests.crash.trial import Ended, Trial, Twist
from tests.crash.website import Website, article


def _assert_failed_well(trial: Trial, ended: Ended) -> None:
    assert ended.code == 1, trial.report([str(ended)])
    ended.assert_plain()
    trial.assert_sound()


# The n-th call fails


@pytest.mark.parametrize(
    "failure",
    ["write:ENOSPC", "write:EDQUOT", "fdatasync:EIO", "fsync:EIO", "open:EMFILE"],
)
def test_the_nth_file_call_fails(failure: str, trial: Trial, reference: Reference) -> None:
    """The first, the second, the third, … until a session meets no failure any more."""
    call, _, error = failure.partition(":")
    for number in (1, 2, 4, 8, 16, 32):
        ended = trial.sit("--workers", "32", twist=Twist(sabotage=f"fail-{call}:{number}:{error}"))
        if ended.code == 0:
            break
        ended.assert_plain(os.strerror(getattr(errno, error)))
        _assert_failed_well(trial, ended)
    assert number > 1, "nothing failed"
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("failure", ["unlink:EIO", "truncate:EIO", "unlink:EROFS"])
def test_the_recovery_fails(failure: str, trial: Trial, reference: Reference) -> None:
    """The archive cannot be brought to what was committed: the session must not begin."""
    call, _, error = failure.partition(":")
    leave = "torn-write:1" if call == "unlink" else "torn-write:3"
    assert trial.sit(twist=Twist(sabotage=leave)).was_killed
    ended = trial.sit(twist=Twist(sabotage=f"fail-{call}:1:{error}"))
    _assert_failed_well(trial, ended)
    assert not trial.asked[-1].urls
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("first", [1, 4])
def test_the_nth_statement_fails(first: int, trial: Trial, reference: Reference) -> None:
    """A disk error in any SQL statement, reading or writing, at the start or in the middle."""
    for number in range(first, 160, 20 + first):
        ended = trial.sit(twist=Twist(sabotage=f"fail-sql:{number}"))
        if ended.code == 0:
            break
        _assert_failed_well(trial, ended)
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("first", [1, 2, 3])
def test_the_nth_row_cannot_be_read(first: int, trial: Trial, reference: Reference) -> None:
    """The statement began well, and then the disk fails: while the home is read, the crawl, or its frontier."""
    for number in (first, first + 4, first + 10, first * 20):
        ended = trial.sit("--budget", "60", twist=Twist(sabotage=f"fail-row:{number}"))
        if ended.code != 0:
            _assert_failed_well(trial, ended)
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize("every", [1, 2])
def test_short_writes(every: int, trial: Trial, reference: Reference) -> None:
    ended = trial.sit(twist=Twist(sabotage=f"short-write:{every}"))
    assert ended.code == 0 and ended.has_completed, ended
    trial.check()
    assert_same_record(trial, reference.of())


# Failures under SQLite and Python alike, at random


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("call", ["rw/pwrite", "sync/fdatasync", "rw/pread"])
def test_a_disk_that_fails_now_and_then(call: str, error: str, trial: Trial, reference: Reference) -> None:
    failures = 0
    for _ in range(8):
        rule = f"enable_random name=posix/io/{call},probability=0.03,failinfo={getattr(errno, error)}"
        ended = trial.sit("--budget", "60", twist=Twist(prefix=("fiu-run", "-x", "-f", "", "-c", rule)))
        failures += ended.code == 1
        if ended.code == 1:
            _assert_failed_well(trial, ended)
        if trial.has_completed or failures == 3:
            break
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


# No more space


@pytest.mark.parametrize("kilobytes", [16, 90, 130, 200])
def test_files_may_not_grow(kilobytes: int, trial: Trial, reference: Reference) -> None:
    """A limit on the size of files, as a quota sets it: EFBIG in the database, its log or the archive."""
    limited = Twist(limits={resource.RLIMIT_FSIZE: kilobytes * 1024})
    ended = trial.sit(twist=limited)
    _assert_failed_well(trial, ended)
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, 300 kB large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", folder]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def _remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


@pytest.mark.parametrize("kilobytes", [40, 100, 180, 260, 340])
def test_the_disk_is_full(kilobytes: int, small_disk: Path, trial: Trial, reference: Reference) -> None:
    """ENOSPC wherever it strikes; space returns, and the same command goes on."""
    _remount(small_disk, f"size={kilobytes}k")
    trial.home = small_disk
    ended = trial.sit()
    assert ended.code == 1, ended
    ended.assert_plain()
    assert "space" in ended.err, ended
    _remount(small_disk, "size=8m")
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


def test_the_disk_is_almost_full(small_disk: Path, trial: Trial, reference: Reference) -> None:
    """One free page more with every try, so that space runs out in every place once; SIGBUS would be a crash."""
    _remount(small_disk, "size=2m")
    trial.home = small_disk
    trial.sit("--budget", "10")
    for pages in range(6, 22):
        (trial.crawl_folder / "reading").unlink(missing_ok=True)
        _fill(small_disk / "filler", pages)
        ended = trial.sit("--budget", "1")
        (small_disk / "filler").unlink()
        if ended.code != 0:
            _assert_failed_well(trial, ended)
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


def _fill(path: Path, spared: int) -> None:
    """Take all the space there is but for so many pages of memory."""
    with path.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(max(0, path.stat().st_size - spared * 4096))


def test_the_disk_is_read_only(small_disk: Path, trial: Trial, reference: Reference) -> None:
    _remount(small_disk, "size=8m")
    trial.home = small_disk
    trial.sit("--budget", "60")
    _remount(small_disk, "ro")
    ended = trial.start().wait()
    assert ended.code == 1, ended
    ended.assert_plain()
    _remount(small_disk, "rw")
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


def test_the_log_is_full(trial: Trial, reference: Reference) -> None:
    """Nobody can read what it says; whether it goes on or stops, nothing is lost."""
    ended = trial.sit(twist=Twist(stderr="/dev/full"))
    assert ended.code in (0, 1), ended
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


# Descriptors


@pytest.mark.parametrize("workers", [5, 100])
def test_few_descriptors(workers: int, trials: Trials) -> None:
    """With 64 of them the crawl goes on or ends with a word; it never takes our shortage for the site's failure."""
    leaves = [f"/{number}" for number in range(80)]
    pages = {"/": article("home", tuple(leaves)), **{path: article(f"page {path}") for path in leaves}}
    with website.serving(Website(pages, dict.fromkeys(pages, "page"))) as web:
        trial = trials(web=web)
        with web.slowly(0.03, 0.03) if workers == 5 else web.slowly(0.25, 0.25):
            ended = trial.sit("--workers", str(workers), twist=Twist(limits={resource.RLIMIT_NOFILE: 64}))
        if ended.code != 0:
            _assert_failed_well(trial, ended)
            trial.complete()
        trial.check()
