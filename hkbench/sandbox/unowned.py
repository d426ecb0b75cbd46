"""Memory that shows in no process: shared memory whose files nobody has open, or that lies in a socket's queue.

Linux counts the shared memory of the whole machine, but not whose it is. So what was added since the beginning, and
shows nowhere, counts against a process tree only where it has a way to hold it: a socket with open files in its queue
(`scm_fds` of proc_pid_fdinfo(5), Linux 5.8), or a memory file that is mapped and no longer open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FREE_BYTES = 64 << 20  #: below, nobody is asked: other programs come and go


class UnownedMemory:
    """The shared memory of the machine, from the moment on that this is made."""

    def __init__(self) -> None:
        self._before = shared_bytes()

    def look(self, pids: Iterable[int], shown: int, open_inodes: frozenset[int]) -> int:
        """Return the bytes that count against these processes, of whose memory files `shown` bytes are known."""
        added = shared_bytes() - self._before - shown
        if added < FREE_BYTES:
            return 0
        return added if any(_holds(pid, open_inodes) for pid in pids) else 0


def shared_bytes() -> int:
    """Return the machine's memory in memory files, tmpfs and shared mappings; 0 where the kernel does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Shmem:")), 0)


def _holds(pid: int, open_inodes: frozenset[int]) -> bool:
    try:
        return _has_files_in_flight(pid) or _maps_a_closed_file(pid, open_inodes)
    except OSError:
        return False  # it ended meanwhile


def _has_files_in_flight(pid: int) -> bool:
    for name in os.listdir(f"/proc/{pid}/fd"):
        if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):  # noqa: PTH115 - of thousands
            continue
        for line in Path(f"/proc/{pid}/fdinfo/{name}").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "scm_fds" and int(value):
                return True
    return False


def _maps_a_closed_file(pid: int, open_inodes: frozenset[int]) -> bool:
    with Path(f"/proc/{pid}/maps").open("rb") as lines:
        for line in lines:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith(b"/memfd:") and int(fields[4]) not in open_inodes:
                return True
    return False
