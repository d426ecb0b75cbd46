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

from hkbench.sandbox.proc import ListedChildren, ScannedChildren, parts_of, read_small, state_of, threads

FREEZE_SECONDS = 2.0
#: A thread may wait in the kernel (for a vfork's child, for a disk) without ever reporting that it is stopped.
BLOCKED_SECONDS = 0.02

_TICKS = os.sysconf("SC_CLK_TCK")
_DEAD = "ZXx"
_STOPPED = "Tt" + _DEAD


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


class Tree:
    """The descendants of `root`. `own` are processes of the sandbox itself: walked through, counted nowhere."""

    def __init__(self, root: int, own: Iterable[int] = (), kept_threads: int = 0) -> None:
        """Keep open the files of /proc about `kept_threads` threads at most, for who walks again and again."""
        self._root = root
        self._own = frozenset(own)
        listed = Path(f"/proc/{root}/task/{root}/children").exists()
        self._children: ListedChildren | ScannedChildren
        self._children = ListedChildren(kept_threads) if listed else ScannedChildren(kept_threads)
        self._ledger = _CpuLedger()

    def walk(self, visit: Callable[[int], None] | None = None, anew: bool = True) -> dict[int, Process]:
        """Return the processes by id, those included that ended and were not waited for.

        `visit` is called with each id before that process's children are looked up, where the kernel lists them: what
        it stops there cannot start another unseen. A walk can miss a process whose parent ends meanwhile, or that is
        made meanwhile; the next one finds it. Unless `anew`, only those may be found who were there at the last walk.
        """
        found: dict[int, Process] = {}
        front, visited, known = [self._root], {self._root}, {self._root, *self._own}
        if anew:
            self._children.look()
        with self._children.files.all_read():
            while front:
                pid = front.pop()
                tids = found[pid].threads if pid in found else threads(pid)
                for child in self._children.of(pid, tids):
                    if child in visited:
                        continue
                    visited.add(child)
                    front.append(child)  # also one that has ended meanwhile: its children may be known
                    if child in self._own:
                        continue
                    if not anew and not self._children.still(child, known):
                        continue
                    if visit is not None:
                        visit(child)
                    process = self._look(child)
                    if process is not None:
                        found[child] = process
                        known.add(child)
        return found

    def _look(self, pid: int) -> Process | None:
        tids = threads(pid)
        stats = [self._children.files.first(pid, tid) for tid in tids]
        # A process whose first thread left looks dead by its state, yet its other threads run on.
        first = stats[tids.index(pid)] if pid in tids else None
        if first is None:
            return None
        states = "".join("X" if stat is None else state_of(stat) for stat in stats)
        alive = state_of(first) not in _DEAD or len(tids) > 1
        name, fields = parts_of(first)
        return Process(pid, name, tids, states, alive, _seconds_of_ended(fields))

    def living(self) -> dict[int, Process]:
        """Return the processes that have not ended."""
        return {pid: process for pid, process in self.walk().items() if process.alive}

    def signal(self, number: int) -> dict[int, Process]:
        """Send a signal to each living process, parents first."""
        return {pid: process for pid, process in self.walk(_sender(number)).items() if process.alive}

    def anyone(self) -> bool:
        """Return whether somebody lives, the sandbox's own included, by a look at the whole machine: slow and sure."""
        everybody = ScannedChildren(0)
        everybody.look()
        front = [self._root]
        while front:
            for child in everybody.of(front.pop()):
                process = self._look(child)
                if process is not None and process.alive:
                    return True
                front.append(child)
        return False

    def freeze(self) -> Frozen:
        """Stop everybody; at most `FREEZE_SECONDS`, after which `running` says how many threads went on.

        A process may fork while it is looked for, so the walk is repeated until two agree and all are stopped. Whom a
        process has made can be seen as soon as it is stopped: so those who are known are stopped first, and the walk
        that looks for others begins afterwards.
        """
        began = time.monotonic()
        before: dict[int, tuple[int, ...]] = {}
        running = 1
        while True:
            anew = not running
            everybody = self.walk(_sender(signal.SIGSTOP), anew)
            now = {pid: process.threads for pid, process in everybody.items() if process.alive}
            running, blocked = _moving(everybody)
            passed = time.monotonic() - began
            still = anew and now == before and not running and (not blocked or passed > BLOCKED_SECONDS)
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


def _ended_children_seconds(pid: int) -> float:
    try:
        return _seconds_of_ended(parts_of(read_small(f"/proc/{pid}/stat"))[1])
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
