"""What a runner may use, and the looks that tell when it used more."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

from hkbench.sandbox import folders, linux
from hkbench.sandbox.tree import Tree
from hkbench.sandbox.unowned import UnownedMemory

POLL_SECONDS = 0.1
HURRY_SECONDS = 0.005  #: between looks at a tree that grows fast
DISK_SECONDS = 1.0  #: between the end of one look at the private folder and the begin of the next
DISK_SLICE_SECONDS = 0.005  #: a large folder is looked at piece by piece
HELPER_NICENESS = 10
FOLDER_BYTES = 1 << 20  #: what a folder counts: ext4 takes some milliseconds to remove one
ENTRY_BYTES = 1 << 16  #: what a file counts at least: empty ones take time to look through and to remove


@dataclass(frozen=True)
class Limits:
    """What a runner may use. Bytes and counts for its whole process tree, except `file_bytes` (each file)."""

    memory_bytes: int
    processes: int = 512
    threads: int = 8192
    file_bytes: int = 4 << 30
    open_files: int = 4096
    disk_bytes: int = 32 << 30  #: in its private folder, files included that are open and have no name any more
    cpu_seconds: float = 3600.0  #: user and system time
    output_bytes: int = 1 << 30  #: printed


class Meter:
    """Look at a tree and a folder. `peak_bytes`: the most memory seen."""

    def __init__(self, limits: Limits, tree: Tree, folder: str, given: frozenset[int] = frozenset()) -> None:
        """Take `given`: inode numbers of memory files that the evaluator made."""
        self.peak_bytes = 0
        self._given = given
        self._unowned = UnownedMemory()
        self._behind: set[int] = set()
        self._limits = limits
        self._tree = tree
        self._disk = DiskMeter(folder)
        self._used = 0
        self._count = 0

    def passed(self) -> tuple[str | None, float]:
        """Return the name of a limit that is passed, and the seconds until the next look."""
        everybody = self._tree.walk()
        living = {pid: process for pid, process in everybody.items() if process.alive}
        files = _memory_files(list(living))
        own = sum(size for inode, size in files.items() if inode not in self._given)
        hidden = self._unowned.look(living, sum(files.values()), self._given | files.keys())
        used = linux.resident_bytes(list(living)) + own + hidden
        self._put_behind(list(living)[1:])
        grown, self._used = used - self._used, used
        more, self._count = len(everybody) - self._count, len(everybody)
        self.peak_bytes = max(self.peak_bytes, used)
        if used > self._limits.memory_bytes:
            return "memory", 0.0
        # Those nobody waited for hold a process id each, and the machine has only so many.
        if len(everybody) > self._limits.processes:
            return "processes", 0.0
        if sum(len(process.threads) for process in living.values()) > self._limits.threads:
            return "processes", 0.0
        if self._tree.cpu_seconds(everybody) > self._limits.cpu_seconds:
            return "cpu", 0.0
        try:
            if self._disk.look(list(living)) > self._limits.disk_bytes:
                return "disk", 0.0
        except folders.TooDeep:
            return "depth", 0.0
        hurry = used + 2 * grown > self._limits.memory_bytes or more > 16
        return None, HURRY_SECONDS if hurry else POLL_SECONDS

    def _put_behind(self, helpers: list[int]) -> None:
        """Let the processes that a runner starts, compilers above all, wait for those that are being measured."""
        for pid in helpers:
            if pid not in self._behind:
                self._behind.add(pid)
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, pid, HELPER_NICENESS)


class DiskMeter:
    """The bytes that lie in a folder, counted in slices so that nobody waits for a large one."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sizes: Iterator[int] | None = None
        self._sum = 0
        self._last = 0
        self._next = 0.0

    def look(self, pids: list[int]) -> int:
        """Count on for a few milliseconds. Return the last complete sum, or the begun one if larger.

        Raises:
            TooDeep: it holds folders nested deeper than anybody reads.
        """
        now = time.monotonic()
        if self._sizes is None:
            if now < self._next:
                return self._last
            self._sizes, self._sum = self._entries(pids), 0
        for size in self._sizes:
            self._sum += size
            if time.monotonic() > now + DISK_SLICE_SECONDS:
                return max(self._sum, self._last)
        self._sizes, self._last, self._next = None, self._sum, time.monotonic() + DISK_SECONDS
        return self._last

    def _entries(self, pids: list[int]) -> Iterator[int]:
        seen: set[int] = set()
        try:
            device = os.lstat(self._folder).st_dev
        except OSError:
            return
        for entry in folders.walk(self._folder):
            yield self._size(entry.name, entry.parent, seen)
        for path in _open_files(pids):
            yield self._size(path, None, seen, device)

    def _size(self, path: str, parent: int | None, seen: set[int], device: int | None = None) -> int:
        """Return a file's bytes, 0 if `seen`; with `device`, those of an open file that has no name and lies there."""
        try:
            found = os.stat(path, dir_fd=parent, follow_symlinks=device is not None)
        except OSError:
            return 0  # removed or closed meanwhile
        # Without a name and on another device: pipes, sockets, memory files. Those are not the disk's.
        foreign = device is not None and (found.st_nlink > 0 or found.st_dev != device)
        if foreign or found.st_ino in seen:
            return 0
        seen.add(found.st_ino)
        if stat.S_ISDIR(found.st_mode):
            return FOLDER_BYTES
        return max(ENTRY_BYTES, found.st_blocks * 512 if stat.S_ISREG(found.st_mode) else 0)


def _memory_files(pids: list[int]) -> dict[int, int]:
    """Return the bytes of open memory files by inode: no resident set shows them while they are not mapped."""
    files: dict[int, int] = {}
    for path in _open_files(pids):
        try:
            if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115 - dozens, ten times a second
                found = os.stat(path)  # noqa: PTH116
                files[found.st_ino] = found.st_blocks * 512
        except OSError:
            continue  # closed meanwhile
    return files


def _open_files(pids: list[int]) -> Iterator[str]:
    for pid in pids:
        try:
            yield from (f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
