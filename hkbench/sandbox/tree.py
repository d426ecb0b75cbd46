"""A process tree seen from its root: who is in it, what CPU time it used, and how all of it is stopped."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

FREEZE_SECONDS = 2.0
#: A thread may wait in the kernel (for a vfork's child, for a disk) without ever reporting that it is stopped.
BLOCKED_SECONDS = 0.02

_TICKS = os.sysconf("SC_CLK_TCK")
_DEAD = "ZXx"
_STOPPED = "Tt" + _DEAD
_PAGE = 1 << 12  #: that /proc hands out at a time
_READ = os.O_RDONLY | os.O_CLOEXEC


@dataclass(frozen=True)
class Process:
    """One process at the time of a walk. `ended_children_seconds`: CPU time of children it has waited for."""

    pid: int
    name: str
    threads: tuple[int, ...]
    states: str  #: of its threads, a letter each, as proc(5) says; "X" of one that is gone
    alive: bool  #: False: only its exit status is left
    ended_children_seconds: float


@dataclass(frozen=True)
class Frozen:
    """A tree at rest. `running`: threads that were not stopped; `cpu_seconds`: see `Tree.cpu_seconds`.

    `at`: time.perf_counter when it was found so, just before a tree goes on. `alone`: of one process, without children.
    """

    processes: int
    threads: int
    running: int
    cpu_seconds: float
    at: float
    alone: bool


def read_small(path: str) -> bytes:
    """Return a file of /proc, whole.

    Raises:
        OSError: most often the process ended meanwhile.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        data = part = os.read(fd, 1 << 16)
        while len(part) > 2048:  # /proc hands out a page at a time
            part = os.read(fd, 1 << 16)
            data += part
        return data
    finally:
        os.close(fd)


class ThreadFiles:
    """The files of /proc about threads, of which the first `kept` stay open: to read one again is one system call."""

    def __init__(self, kept: int) -> None:
        self._most = kept
        self._open: dict[tuple[int, int], tuple[int, int]] = {}  # its state and its children, by process and thread
        self._seen: set[tuple[int, int]] = set()

    def stat(self, pid: int, tid: int) -> bytes | None:
        """Return what proc(5) calls stat; None when the thread is gone.

        An open file is of one thread for good: where another one has its number now, it cannot be read any more.
        """
        if (pid, tid) in self._open:
            try:
                self._seen.add((pid, tid))
                return os.pread(self._open[pid, tid][0], _PAGE, 0)
            except OSError:
                self._close((pid, tid))
        try:
            return self._opened(pid, tid) if len(self._open) < self._most else read_small(_of_thread(pid, tid, "stat"))
        except OSError:
            return None

    def children(self, pid: int, tid: int) -> list[int]:
        """Return the children that a thread has made, by the list that the kernel keeps of them."""
        try:
            if (pid, tid) in self._open:
                data = os.pread(self._open[pid, tid][1], _PAGE, 0)
                if len(data) < _PAGE // 2:  # all of them
                    return [*map(int, data.split())]
            return [*map(int, read_small(_of_thread(pid, tid, "children")).split())]
        except OSError:
            return []

    def begin(self) -> None:
        self._seen.clear()

    def end(self) -> None:
        """Close the files of threads whose state was not read since the beginning."""
        for gone in self._open.keys() - self._seen:
            self._close(gone)

    def _opened(self, pid: int, tid: int) -> bytes:
        """Open both files, the state's first: while that can be read, the other one is of the same thread."""
        stat = os.open(_of_thread(pid, tid, "stat"), _READ)
        try:
            children = os.open(_of_thread(pid, tid, "children"), _READ)
        except OSError:
            os.close(stat)
            raise
        self._open[pid, tid] = stat, children
        self._seen.add((pid, tid))
        return os.pread(stat, _PAGE, 0)

    def _close(self, thread: tuple[int, int]) -> None:
        for file in self._open.pop(thread):
            os.close(file)


class Tree:
    """The descendants of `root`. `own` are processes of the sandbox itself: walked through, counted nowhere."""

    def __init__(self, root: int, own: Iterable[int] = (), kept_threads: int = 0) -> None:
        """Keep open the files about `kept_threads` threads at most, two of each, for who walks again and again."""
        self._root = root
        self._own = frozenset(own)
        self._files = ThreadFiles(kept_threads)
        self._listed = Path(f"/proc/{root}/task/{root}/children").exists()
        self._ledger = _CpuLedger()

    def walk(self, visit: Callable[[int], None] | None = None) -> dict[int, Process]:
        """Return the processes by id, those included that ended and were not waited for.

        `visit` is called with each id before that process's children are looked up: what it stops there cannot
        start another unseen. A walk can miss a process whose parent ends meanwhile; the next one finds it.
        """
        found: dict[int, Process] = {}
        parents = None if self._listed else _children_by_parent()
        front = [self._root]
        self._files.begin()
        while front:
            pid = front.pop()
            if parents is None:
                tids = found[pid].threads if pid in found else threads(pid)
                children = [child for tid in tids for child in self._files.children(pid, tid)]
            else:
                children = parents.get(pid, [])
            for child in children:
                if child in found:
                    continue
                if child not in self._own:
                    if visit is not None:
                        visit(child)
                    process = self._look(child)
                    if process is None:
                        continue
                    found[child] = process
                front.append(child)
        self._files.end()
        return found

    def _look(self, pid: int) -> Process | None:
        tids = threads(pid)
        stats = [self._files.stat(pid, tid) for tid in tids]
        # A process whose first thread left looks dead by its state, yet its other threads run on.
        first = stats[tids.index(pid)] if pid in tids else None
        if first is None:
            return None
        states = "".join("X" if stat is None else _state(stat) for stat in stats)
        alive = _state(first) not in _DEAD or len(tids) > 1
        name, fields = _parts(first)
        return Process(pid, name, tids, states, alive, _seconds_of_ended(fields))

    def living(self) -> dict[int, Process]:
        """Return the processes that have not ended."""
        return {pid: process for pid, process in self.walk().items() if process.alive}

    def signal(self, number: int) -> dict[int, Process]:
        """Send a signal to each living process, parents first."""
        return {pid: process for pid, process in self.walk(_sender(number)).items() if process.alive}

    def anyone(self) -> bool:
        """Return whether somebody lives, the sandbox's own included, by a look at the whole machine: slow and sure."""
        parents = _children_by_parent()
        front = [self._root]
        while front:
            for child in parents.get(front.pop(), []):
                process = self._look(child)
                if process is not None and process.alive:
                    return True
                front.append(child)
        return False

    def freeze(self) -> Frozen:
        """Stop everybody; at most `FREEZE_SECONDS`, after which `running` says how many threads went on.

        A process may fork while it is looked for, so the walk is repeated until two agree and all are stopped.
        """
        began = time.monotonic()
        before: dict[int, tuple[int, ...]] = {}
        while True:
            everybody = self.walk(_sender(signal.SIGSTOP))
            now = {pid: process.threads for pid, process in everybody.items() if process.alive}
            running, blocked = _moving(everybody)
            passed = time.monotonic() - began
            still = now == before and not running and (not blocked or passed > BLOCKED_SECONDS)
            if still or passed > FREEZE_SECONDS:
                return self._state(everybody, running, time.perf_counter())
            before = now
            if running:  # those that are to stop need a processor for it
                os.sched_yield() if passed < 0.001 else time.sleep(0.0002)

    def resume(self) -> Frozen:
        """Continue everybody; count and CPU time are those of just before."""
        everybody = self.walk()
        state = self._state(everybody, _moving(everybody)[0])
        for pid in everybody:
            _sender(signal.SIGCONT)(pid)
        if state.running:  # somebody may have forked behind the walk
            self.signal(signal.SIGCONT)
        return state

    def _state(self, everybody: dict[int, Process], running: int, at: float | None = None) -> Frozen:
        threads = [len(process.threads) for process in everybody.values() if process.alive]
        used = self.cpu_seconds(everybody)
        at = time.perf_counter() if at is None else at
        return Frozen(len(threads), sum(threads), running, used, at, alone=len(everybody) == 1)

    def cpu_seconds(self, processes: dict[int, Process] | None = None) -> float:
        """Return user and system time of the whole tree so far, ended processes included; never falls.

        Threads count from the moment on, in nanoseconds; a process that was waited for counts in clock ticks. Of one
        that nobody waits for (SIGCHLD ignored) only what a look has seen is known, so this is a lower bound.
        """
        if processes is None:
            processes = self.walk()
        return self._ledger.total(processes.values(), sum(map(_ended_children_seconds, self._own)))

    def queued(self) -> dict[int, tuple[int, int]] | None:
        """Return, by thread of the living, the nanoseconds it had a processor and those it waited for one.

        `None` where the kernel does not count them (sched-stats.txt).
        """
        found: dict[int, tuple[int, int]] = {}
        for pid, process in self.living().items():
            for tid in process.threads:
                try:
                    ran, waited, _ = map(int, read_small(f"/proc/{pid}/task/{tid}/schedstat").split())
                except FileNotFoundError:
                    if Path(f"/proc/{pid}/task/{tid}").exists():
                        return None
                    continue  # it ended meanwhile
                except (OSError, ValueError):
                    continue
                found[tid] = ran, waited
        return found


class _CpuLedger:
    """Two lower bounds of a tree's CPU time, of which the larger counts.

    One adds what parents know of children they waited for. The other adds what was last seen of processes that are
    gone, whose parents may not know anything.
    """

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}  # the last clock of each process id, living or not
        self._before = 0.0  # of processes whose id another one has taken
        self._highest = 0.0

    def total(self, processes: Iterable[Process], inherited: float) -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        waited = inherited + usage.ru_utime + usage.ru_stime
        living = 0.0
        pids = set()
        for process in processes:
            seconds = cpu_clock(process.pid)
            if seconds is None:
                continue  # it ended meanwhile
            if seconds < self._seen.get(process.pid, 0.0):  # a process id used again begins at 0
                self._before += self._seen[process.pid]
            self._seen[process.pid] = seconds
            pids.add(process.pid)
            living += seconds
            waited += process.ended_children_seconds
        gone = self._before + sum(seconds for pid, seconds in self._seen.items() if pid not in pids)
        self._highest = max(self._highest, living + max(waited, gone))
        return self._highest


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
        return _state(read_small(_of_thread(pid, tid, "stat")))
    except OSError:
        return "X"


def _moving(everybody: dict[int, Process]) -> tuple[int, int]:
    """Return how many threads run, sleep or will, and how many wait in the kernel and cannot be stopped yet."""
    states = "".join(process.states for process in everybody.values())
    blocked = states.count("D")
    return len(states) - blocked - sum(map(states.count, _STOPPED)), blocked


def _sender(number: int) -> Callable[[int], None]:
    def send(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    return send


def _of_thread(pid: int, tid: int, name: str) -> str:
    return f"/proc/{pid}/task/{tid}/{name}"


def _state(stat: bytes) -> str:
    return chr(stat[stat.rindex(b")") + 2])


def _parts(stat: bytes) -> tuple[str, list[bytes]]:
    """Name, and the fields of a `stat` from the state on."""
    end = stat.rindex(b")")
    return stat[stat.index(b"(") + 1 : end].decode(errors="replace"), stat[end + 2 :].split()


def _ended_children_seconds(pid: int) -> float:
    try:
        return _seconds_of_ended(_parts(read_small(f"/proc/{pid}/stat"))[1])
    except OSError:
        return 0.0


def _seconds_of_ended(fields: list[bytes]) -> float:
    return (int(fields[13]) + int(fields[14])) / _TICKS


def cpu_clock(pid: int) -> float | None:
    """Return the CPU seconds of all threads a process ever had: its CPU-time clock, see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # 2: CPUCLOCK_SCHED, nanoseconds as the scheduler counts them
    except OSError:
        return None


def _children_by_parent() -> dict[int, list[int]]:
    """Return the children by a look at every process of the machine."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                children.setdefault(int(_parts(read_small(f"/proc/{entry}/stat"))[1][1]), []).append(int(entry))
    return children
