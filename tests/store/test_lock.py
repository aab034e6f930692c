"""Who works on a crawl: the lock across processes, signs of life, the mark of what is being read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from inchworm.store import lock
from inchworm.store.lock import Life, OwnerLock, ReadingMark, boot_ms, network_file_system

HOLD = """
import sys, time
from pathlib import Path
from inchworm.store.lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]))
print("held" if lock.acquire() else "refused", flush=True)
for line in sys.stdin:
    print("current" if lock._is_current(lock._descriptor) else "replaced", flush=True)
"""

READ = """
import sys, time
from pathlib import Path
from inchworm.store.lock import ReadingMark
mark = ReadingMark(Path(sys.argv[1]))
mark.set(int(sys.argv[2]))
print("reading", flush=True)
time.sleep(60)
"""


@contextmanager
def process(code: str, *arguments: object):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def owner(tmp_path):
    made = OwnerLock(tmp_path)
    yield made
    made.release()


# The lock


def test_a_free_lock_is_taken_and_a_held_one_is_not(owner, tmp_path):
    other = OwnerLock(tmp_path)
    assert not other.is_held()
    assert owner.acquire()
    assert other.is_held()
    assert not other.acquire()
    owner.release()
    assert not other.is_held()
    assert other.acquire()
    other.release()


def test_asking_makes_no_file(owner, tmp_path):
    assert not owner.is_held()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_another_process_dies_with_it(owner, tmp_path):
    with process(HOLD, tmp_path) as child:
        assert child.stdout.readline() == "held\n"
        assert owner.is_held()
        assert not owner.acquire()
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not owner.is_held()
        assert owner.acquire()


def test_a_stopped_owner_still_holds_its_lock(owner, tmp_path):
    with process(HOLD, tmp_path) as child:
        assert child.stdout.readline() == "held\n"
        child.send_signal(signal.SIGSTOP)
        assert owner.is_held()
        assert not owner.acquire()


def test_a_replaced_lock_belongs_to_the_new_owner_and_the_old_one_finds_out(owner, tmp_path):
    with process(HOLD, tmp_path) as child:
        assert child.stdout.readline() == "held\n"
        owner.replace()
        child.stdin.write("still yours?\n")
        child.stdin.flush()
        assert child.stdout.readline() == "replaced\n"
        assert OwnerLock(tmp_path).is_held()
    # The old owner's death frees nothing.
    assert OwnerLock(tmp_path).is_held()
    assert not OwnerLock(tmp_path).acquire()
    owner.release()
    assert not OwnerLock(tmp_path).is_held()
    assert [file.name for file in tmp_path.iterdir()] == ["owner.lock"]


def test_a_lock_can_be_replaced_where_an_earlier_try_was_killed(owner, tmp_path):
    """Process numbers come again, in containers all the time."""
    with process(HOLD, tmp_path) as child:
        assert child.stdout.readline() == "held\n"
        (tmp_path / f"owner.lock.{os.getpid()}").touch()
        owner.replace()
        assert OwnerLock(tmp_path).is_held()


def test_a_file_that_was_replaced_while_we_waited_is_not_taken(owner, tmp_path, monkeypatch):
    """Between opening and locking, somebody else puts a new file in its place and dies."""
    flock, done = lock.fcntl.flock, []

    def replaced_meanwhile(descriptor: int, operation: int) -> None:
        if not done:
            done.append(True)
            (tmp_path / "new").touch()
            (tmp_path / "new").replace(tmp_path / "owner.lock")
        flock(descriptor, operation)

    monkeypatch.setattr(lock.fcntl, "flock", replaced_meanwhile)
    assert owner.acquire()
    monkeypatch.undo()
    assert OwnerLock(tmp_path).is_held()


def test_looking_does_not_keep_anybody_out(owner, tmp_path):
    """`status` may look at the very moment at which a crawl starts."""
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            OwnerLock(tmp_path).is_held()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        taken = []
        for _ in range(500):
            taken.append(owner.acquire())
            owner.release()
    finally:
        stop.set()
        watcher.join()
    assert taken.count(False) == 0


# Signs of life


def test_this_process_is_alive():
    life = Life.of_this_process()
    assert life.pid == os.getpid()
    assert not life.stood_still(5)
    assert boot_ms() - life.beat_ms < 5000


@pytest.mark.parametrize(
    ("seconds_ago", "stale", "still"), [(0, 60, False), (59, 60, False), (61, 60, True), (1, 0.5, True)]
)
def test_an_owner_stood_still_when_nothing_was_heard_for_so_long(monkeypatch, seconds_ago, stale, still):
    me = Life.of_this_process()
    monkeypatch.setattr(lock, "boot_ms", lambda: me.beat_ms + seconds_ago * 1000)
    assert me.stood_still(stale) is still


def test_an_owner_from_before_the_machine_was_started_anew_stood_still():
    assert Life(1, "here", "another boot", boot_ms()).stood_still(3600)
    assert Life(None, None, None, 0).stood_still(3600)


def test_the_clock_of_a_machine_without_a_boot_id_counts(monkeypatch):
    monkeypatch.setattr(lock, "_boot_id", lambda: "")
    me = Life.of_this_process()
    assert not me.stood_still(5)
    assert Life(1, "here", "", me.beat_ms - 10_000).stood_still(5)


# What is being read


def test_the_mark_survives_the_death_of_the_process(tmp_path):
    with process(READ, tmp_path, 4_294_967_299) as child:
        assert child.stdout.readline() == "reading\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
    mark = ReadingMark(tmp_path)
    assert mark.get() == 4_294_967_299
    mark.clear()
    mark.close()
    again = ReadingMark(tmp_path)
    assert again.get() == 0
    again.close()


def test_a_new_mark_names_nothing(tmp_path):
    mark = ReadingMark(tmp_path)
    assert mark.get() == 0
    mark.set(7)
    assert mark.get() == 7
    mark.close()


@pytest.mark.parametrize("content", [b"", b"\x05", b"\x05" + bytes(20)])
def test_a_mark_of_another_length_is_no_trouble(tmp_path, content):
    (tmp_path / "reading").write_bytes(content)
    mark = ReadingMark(tmp_path)
    assert mark.get() in (0, 5)
    mark.close()


# Where locks cannot be trusted


@pytest.fixture
def mounts(monkeypatch):
    """Says what is mounted."""

    def set_mounts(text: str) -> None:
        real = Path.read_text

        def read_text(self: Path, *arguments: object, **named: object) -> str:
            return text if str(self) == "/proc/mounts" else real(self, *arguments, **named)

        monkeypatch.setattr(Path, "read_text", read_text)

    return set_mounts


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "fuse.glusterfs", "afs"])
def test_network_file_systems_are_told_by_name(mounts, kind):
    mounts(f"/dev/vda / ext4 rw 0 0\nserver:/home /far {kind} rw 0 0\n")
    assert network_file_system(Path("/far/crawls/c1")) == kind
    assert network_file_system(Path("/near/crawls/c1")) is None
    assert network_file_system(Path("/farther")) is None


@pytest.mark.parametrize(
    ("folder", "point"),
    [("/far away/home", "/far\\040away"), ("/fär/home", "/fär"), ("/fär away/home", "/fär\\040away")],
)
def test_names_of_mounts_are_read_as_the_kernel_writes_them(mounts, folder, point):
    mounts(f"/dev/vda / ext4 rw 0 0\nserver:/home {point} nfs4 rw 0 0\n")
    assert network_file_system(Path(folder)) == "nfs4"


def test_the_innermost_and_the_latest_mount_count(mounts):
    mounts(
        "/dev/vda / ext4 rw 0 0\ns:/ /far nfs rw 0 0\n/dev/vdb /far/disk ext4 rw 0 0\n"
        "/dev/vdc /over ext4 rw 0 0\ns:/ /over cifs rw 0 0\n"
    )
    assert network_file_system(Path("/far/disk/home")) is None
    assert network_file_system(Path("/far/home")) == "nfs"
    assert network_file_system(Path("/over/home")) == "cifs"


def test_a_local_folder_is_none(tmp_path):
    assert network_file_system(tmp_path) is None


def test_a_machine_that_tells_no_mounts_is_trusted(monkeypatch, tmp_path):
    def refuse(self: Path, *_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert network_file_system(tmp_path) is None
