"""Whose code a process tree executes, seen from outside: a sampling profiler by ptrace(2).

Each tick every thread that is on a CPU or waits for one is held for some tens of microseconds, its instruction
pointer is read, and it is let go. Nothing stays attached between ticks, so that signals, forks and ends of the
tree take their usual way. The pointer belongs to the file that is mapped there (proc_pid_maps(5)).
"""

from __future__ import annotations

import bisect
import ctypes
import os
import platform
import random
import re
import struct
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hkbench.sandbox.tree import thread_state, threads

TICK_SECONDS = 0.0004  #: on average; each gap is drawn anew, so that no loop can step in time with it
MAPS_SECONDS = 0.25  #: how old the list of a process's mappings may be
HOLD_SECONDS = 0.001  #: how long a tick waits for one thread to stop
SETTLE_SECONDS = 1.0

ANONYMOUS = "[anonymous]"
KERNEL = "[kernel]"
HIDDEN = "[hidden]"  #: where a thread is that the guard may not trace
MAX_TICK_KINDS = 512  #: a further combination of objects is not counted

_DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_NT_PRSTATUS = 1
_WALL = 0x40000000
_EVENT_STOP = 128
#: Bytes of the register set and place of the instruction pointer in it, from the kernel's user_regs structures.
_REGISTERS = {"x86_64": (27 * 8, 16 * 8), "aarch64": (34 * 8, 32 * 8)}


#: Memory without a file, private ("", "[heap]", "[anon:..]") or shared: code there was made while the process ran.
_MADE = re.compile(r"\[(?!vdso\]|vsyscall\])|/dev/zero|/memfd:|/SYSV")


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Sampler:
    """Counts of samples by mapped object. Belongs to the one thread that made it, as ptrace demands."""

    def __init__(self) -> None:
        self.samples = 0
        self.objects: Counter[str] = Counter()
        self.ticks: Counter[frozenset[str]] = Counter()  #: ticks by the objects that were seen in them
        self._tick: set[str] = set()
        self.error: str | None = None
        self.next_tick = time.monotonic() + random.uniform(0.0, 2.0) * TICK_SECONDS
        self._maps: dict[int, _Maps] = {}
        self._held: dict[int, int] = {}  # threads asked to stop that have not yet, and their processes
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.restype = ctypes.c_long
        self._libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        machine = platform.machine()
        self._size, self._place = _REGISTERS.get(machine, (0, 0))
        if not self._size:
            self.error = f"the registers of {machine} are not known here"

    def tick(self, pids: Iterable[int]) -> None:
        """Samples every thread that runs or could run now."""
        if self._size:
            for tid in list(self._held):
                self._collect(tid)
            for pid in pids:
                for tid in threads(pid):
                    if tid not in self._held and thread_state(pid, tid) == "R":
                        self._sample(pid, tid)
            self._end_tick()
        self.next_tick = time.monotonic() + random.uniform(0.0, 2.0) * TICK_SECONDS

    def settle(self) -> bool:
        """Lets everybody go who is still held; False if one did not stop within a second (it waits in the kernel)."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._held and time.monotonic() < deadline:
            for tid in list(self._held):
                self._collect(tid)
        self._end_tick()
        return not self._held

    def release(self) -> None:
        """Lets go whoever has stopped by now; a thread that gets no processor stops late."""
        for tid in list(self._held):
            self._collect(tid)

    @property
    def busy(self) -> bool:
        """Whether a thread is still held: waiting for any child would then take its stop away from here."""
        return bool(self._held)

    def result(self) -> dict[str, Any]:
        ticks = [[sorted(seen), count] for seen, count in self.ticks.items()]
        found: dict[str, Any] = {"samples": self.samples, "objects": dict(self.objects), "ticks": ticks}
        return found if self.error is None else found | {"error": self.error}

    def _end_tick(self) -> None:
        """Counts the objects that were seen since the last tick; a thread that stopped late belongs to this one."""
        seen = frozenset(self._tick)
        if seen and (seen in self.ticks or len(self.ticks) < MAX_TICK_KINDS):
            self.ticks[seen] += 1
        self._tick.clear()

    def _count(self, name: str) -> None:
        self.samples += 1
        self.objects[name] += 1
        self._tick.add(name)

    def _sample(self, pid: int, tid: int) -> None:
        if self._ptrace(_SEIZE, tid):
            number = ctypes.get_errno()
            if thread_state(pid, tid) not in "XZ":
                self.error = f"ptrace: {os.strerror(number)}"
                self._count(HIDDEN)
            return
        self._held[tid] = pid
        self._ptrace(_INTERRUPT, tid)  # fails when it has ended; its end is then collected like a stop
        deadline = time.monotonic() + HOLD_SECONDS
        while not self._collect(tid) and time.monotonic() < deadline:
            os.sched_yield()

    def _collect(self, tid: int) -> bool:
        """Reads and releases a thread that has stopped; False: not yet."""
        try:
            found, status = os.waitpid(tid, os.WNOHANG | _WALL)
        except ChildProcessError:
            found, status = tid, 0
        if not found:
            return False
        pid = self._held.pop(tid)
        if os.WIFSTOPPED(status):
            pointer = self._pointer(tid)
            # A signal that arrived first is passed on; the interrupt that is pending then ends with the attachment.
            own = status >> 16 == _EVENT_STOP
            self._ptrace(_DETACH, tid, 0 if own or status >> 16 else os.WSTOPSIG(status))
            if pointer is not None:
                self._count(self._object(pid, pointer))
        return True

    def _pointer(self, tid: int) -> int | None:
        registers = ctypes.create_string_buffer(self._size)
        vector = _Vector(ctypes.addressof(registers), self._size)
        if self._ptrace(_GETREGSET, tid, ctypes.addressof(vector), _NT_PRSTATUS):
            return None
        if vector.length < self._size:
            return 0  # a 32-bit program: its pointer is not looked up
        pointer: int = struct.unpack_from("=Q", registers, self._place)[0]
        return pointer

    def _object(self, pid: int, pointer: int) -> str:
        maps = self._maps.get(pid)
        now = time.monotonic()
        if maps is not None and now < maps.until and (name := maps.find(pointer)) is not None:
            return name
        fresh = _Maps.read(pid, now + MAPS_SECONDS)
        if fresh is not None:
            maps = self._maps[pid] = fresh
        return (maps.find(pointer) if maps is not None else None) or KERNEL

    def _ptrace(self, request: int, tid: int, data: int = 0, address: int = 0) -> bool:
        """Whether the call failed."""
        return bool(self._libc.ptrace(request, tid, address, data) == -1)


class _Maps:
    """The executable mappings of one process."""

    def __init__(self, begins: list[int], ends: list[int], names: list[str], until: float) -> None:
        self._begins, self._ends, self._names = begins, ends, names
        self.until = until

    @classmethod
    def read(cls, pid: int, until: float) -> _Maps | None:
        """None when the process has ended."""
        begins, ends, names = [], [], []
        try:
            with Path(f"/proc/{pid}/maps").open(errors="surrogateescape") as lines:
                for line in lines:
                    span, rights, _, _, inode, *name = line.rstrip("\n").split(maxsplit=5)
                    if "x" in rights:
                        begin, _, end = span.partition("-")
                        begins.append(int(begin, 16))
                        ends.append(int(end, 16))
                        made = _MADE.match(name[0] if name else "[]") is not None
                        names.append(ANONYMOUS if made else name[0] if name else f"[inode {inode}]")
        except OSError:
            return None
        return cls(begins, ends, names, until) if begins else None

    def find(self, pointer: int) -> str | None:
        at = bisect.bisect_right(self._begins, pointer) - 1
        return self._names[at] if at >= 0 and pointer < self._ends[at] else None
