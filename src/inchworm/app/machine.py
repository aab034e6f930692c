"""This machine and its processes, as those of others name them."""

from __future__ import annotations

import contextlib
import platform
from pathlib import Path


def this_machine() -> str:
    """Names the machine as far as process numbers are the same: two containers may share a name, but not these."""
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{platform.node()}/{boot}/{space}"


def is_gone(machine: str, pid: int) -> bool:
    """Whether a process is known to be dead. Of another machine's nobody knows."""
    return machine == this_machine() and pid > 0 and not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
