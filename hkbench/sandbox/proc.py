"""What /proc says of threads and of who made whom, for who asks again and again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator, Sequence

_PAGE = 1 << 12  #: that /proc hands out at a time
_READ = os.O_RDONLY | os.O_CLOEXEC


def read_small(path: str) -> bytes:
    """Return a file of /proc, whole.

    Raises:
        OSError: most often the process ended meanwhile.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        data = part = os.read(fd, 1 << 16)
        while len(part) > _PAGE // 2:
            part = os.read(fd, 1 << 16)
            data += part
        return data
    finally:
        os.close(fd)


def newest_task() -> bytes:
    """Return the number of the last process or thread that was made on this machine, as proc(5) has it; or b""."""
    try:
        return read_small("/proc/loadavg").split()[-1]
    except (OSError, IndexError):
        return b""


def threads(pid: int) -> tuple[int, ...]:
    """Return the threads of a process; none when it is gone."""
    try:
        return tuple(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return ()


def thread_state(pid: int, tid: int) -> str:
    """Return the letter that proc(5) gives to a thread's state; "X" when it is gone."""
    try:
        return state_of(read_small(_path(pid, tid, "stat")))
    except OSError:
        return "X"


def state_of(stat: bytes) -> str:
    """Return the state's letter in a thread's `stat`."""
    return chr(stat[stat.rindex(b")") + 2])


def parent_of(stat: bytes) -> int:
    """Return the number of the process that is the parent, in a `stat`."""
    return int(stat[stat.rindex(b")") + 4 :].split(b" ", 1)[0])


def parts_of(stat: bytes) -> tuple[str, list[bytes]]:
    """Return the name, and the fields of a `stat` from the state on."""
    end = stat.rindex(b")")
    return stat[stat.index(b"(") + 1 : end].decode(errors="replace"), stat[end + 2 :].split()


class ThreadFiles:
    """Files of /proc about threads. The first `kept` threads' stay open: to read one again is one system call."""

    def __init__(self, kept: int, names: tuple[str, ...] = ("stat",)) -> None:
        """Take the `names` of the files, of which the first one is always read before others."""
        self._most, self._names = kept, names
        self._open: dict[tuple[int, int], list[int]] = {}  # by process and thread, in the order of the names
        self._seen: set[tuple[int, int]] = set()

    @contextlib.contextmanager
    def all_read(self) -> Iterator[None]:
        """Close the files of threads whose first one is not read within."""
        self._seen.clear()
        yield
        for gone in self._open.keys() - self._seen:
            self._close(gone)

    def first(self, pid: int, tid: int) -> bytes | None:
        """Return what the first file holds; None when the thread is gone.

        An open file is of one thread for good: where another one has its number now, it cannot be read any more.
        """
        thread = pid, tid
        if thread in self._open:
            self._seen.add(thread)
            with contextlib.suppress(OSError):
                return os.pread(self._open[thread][0], _PAGE, 0)
            self._close(thread)
        try:
            if len(self._open) >= self._most:
                return read_small(_path(pid, tid, self._names[0]))
            self._keep(thread)
            return os.pread(self._open[thread][0], _PAGE, 0)
        except OSError:
            return None

    def second(self, pid: int, tid: int) -> bytes:
        """Return what the second file holds; nothing when the thread is gone."""
        try:
            if (pid, tid) in self._open:
                data = os.pread(self._open[pid, tid][1], _PAGE, 0)
                if len(data) < _PAGE // 2:  # all of it
                    return data
            return read_small(_path(pid, tid, self._names[1]))
        except OSError:
            return b""

    def _keep(self, thread: tuple[int, int]) -> None:
        """Open the files, the first one first: while that can be read, the others are of the same thread."""
        files: list[int] = []
        try:
            for name in self._names:
                files.append(os.open(_path(*thread, name), _READ))  # noqa: PERF401 - what was opened is to be closed
        except OSError:
            for file in files:
                os.close(file)
            raise
        self._open[thread] = files
        self._seen.add(thread)

    def _close(self, thread: tuple[int, int]) -> None:
        for file in self._open.pop(thread):
            os.close(file)


class ListedChildren:
    """Who made whom, by the lists that the kernel keeps for each thread (CONFIG_PROC_CHILDREN)."""

    def __init__(self, kept: int) -> None:
        self.files = ThreadFiles(kept, ("stat", "children"))

    def look(self) -> None:
        """Do nothing: the lists are read one by one."""

    def still(self, _pid: int, _known: Container[int]) -> bool:
        """Return whether a process that is listed is one of the tree's: it is."""
        return True

    def of(self, pid: int, tids: Sequence[int]) -> list[int]:
        """Return the children of a process, by its threads."""
        return [int(child) for tid in tids for child in self.files.second(pid, tid).split()]


class ScannedChildren:
    """Who made whom, by a look at every process of the machine, where the kernel keeps no lists."""

    def __init__(self, kept: int) -> None:
        self.files = ThreadFiles(kept)
        self._everybodys = ThreadFiles(2 * kept)
        self._children: dict[int, list[int]] = {}

    def look(self) -> None:
        """Look at every process."""
        self._children = {}
        with self._everybodys.all_read():
            for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
                stat = self._everybodys.first(pid, pid)
                if stat is not None:
                    self._children.setdefault(parent_of(stat), []).append(pid)

    def still(self, pid: int, known: Container[int]) -> bool:
        """Return whether a process of the last look is a child of one that is `known`; another may have its number."""
        stat = self.files.first(pid, pid)
        return stat is not None and parent_of(stat) in known

    def of(self, pid: int, _tids: Sequence[int] = ()) -> list[int]:
        """Return the children that a process had at the last look."""
        return self._children.get(pid, [])


def _path(pid: int, tid: int, name: str) -> str:
    return f"/proc/{pid}/task/{tid}/{name}"
