"""Who works on a crawl: an operating-system lock that dies with its process, and a mark of what is being read.

A free lock is taken at once. A held one is left alone until its owner's heartbeat has stood still for the stale
time; then the lock file is replaced, so that an owner that was only asleep finds itself locked out, and its
token too old to commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inchworm.errors import Broken, Owned

_TRIES = 20
_PAUSE_SECONDS = 0.005
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs", "fuse.glusterfs", "afs"}


def boot_ms() -> int:
    """Milliseconds since the machine started, sleep included: the same for all its processes, and never set back."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


@dataclass(frozen=True, slots=True)
class Life:
    """A process and its last sign of life."""

    pid: int | None
    machine: str | None
    boot: str | None
    beat_ms: int

    @classmethod
    def of_this_process(cls) -> Life:
        return cls(os.getpid(), socket.gethostname(), _boot_id(), boot_ms())

    def stood_still(self, seconds: float) -> bool:
        """Whether nothing was heard of it for so long."""
        return self.boot != _boot_id() or boot_ms() - self.beat_ms > seconds * 1000


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class OwnerLock:
    """The lock file of one crawl."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "owner.lock"
        self._descriptor = -1

    def acquire(self) -> bool:
        """Take the lock when nobody holds it. Those who only look hold it for a moment, so we ask a few times."""
        for _ in range(_TRIES):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    self._hold(descriptor)
                    return True
            os.close(descriptor)
            time.sleep(_PAUSE_SECONDS)
        return False

    def is_held(self) -> bool:
        """Whether a living process holds the lock."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextlib.contextmanager
    def taking_over(self) -> Iterator[None]:
        """One at a time may take a run from an owner that stood still."""
        descriptor = os.open(self._path.with_name("owner.lock.next"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Owned("Another process is just taking this crawl over.", "`inchworm status` shows it.") from None
        finally:
            os.close(descriptor)

    def replace(self) -> None:
        """Take the lock away from an owner that stood still: a new file under the old name."""
        fresh = self._path.with_name(f"owner.lock.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        fresh.replace(self._path)
        self._hold(descriptor)

    def _hold(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(boot_ms()).encode(), 0)

    def held_since_ms(self) -> int | None:
        """When the lock was taken last, on the clock since boot: an owner that is only starting has no heartbeat yet."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._path.read_text())
        return None

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_current(self, descriptor: int) -> bool:
        """Somebody may have replaced the file between our opening and our locking it."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        return False


class ReadingMark:
    """Which URL is being read, in a shared memory page that outlives the process.

    It needs no fsync: it tells of the death of a process, not of the machine.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder / "reading", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Room for certain: writing to a mapped hole of a full disk would kill the process.
            os.posix_fallocate(descriptor, 0, 8)
            self._page = mmap.mmap(descriptor, 8)
        except OSError as error:
            hint = "Free some disk space and run the same command again; nothing committed is lost."
            raise Broken(f"{folder / 'reading'} cannot be written: {error.strerror}.", hint) from error
        finally:
            os.close(descriptor)

    def get(self) -> int:
        """The URL that was being read when the last process died; 0 for none."""
        return int.from_bytes(self._page[:8], "little")

    def set(self, url_id: int) -> None:
        self._page[:8] = url_id.to_bytes(8, "little")

    def clear(self) -> None:
        self._page[:8] = bytes(8)

    def close(self) -> None:
        self._page.close()


def network_file_system(folder: Path) -> str | None:
    """The name of the network file system that a folder lies on, if it does: locks are not to be trusted there."""
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return None
    best, kind = "", ""
    for fields in (line.split() for line in mounts):
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        if len(point) >= len(best) and folder.resolve().is_relative_to(point):
            best, kind = point, fields[2]
    return kind if kind in _NETWORK else None
