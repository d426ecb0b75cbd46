"""Whose code a process tree executes, seen from outside: a sampling profiler by ptrace(2).

Each tick every thread that is on a CPU or waits for one is held for some tens of microseconds, its instruction
pointer and the code there are read, and it is let go. Nothing stays attached between ticks, so that signals, forks and
ends of the tree take their usual way. The pointer belongs to the file that is mapped there (proc_pid_maps(5)).
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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hkbench.sandbox.proc import thread_state, threads

TICK_SECONDS = 0.0004  #: on average; each gap is drawn anew, so that no loop can step in time with it
MAPS_SECONDS = 0.25  #: how old the list of a process's mappings may be
HOLD_SECONDS = 0.001  #: how long a tick waits for one thread to stop
SETTLE_SECONDS = 1.0

ANONYMOUS = "[anonymous]"
KERNEL = "[kernel]"
HIDDEN = "[hidden]"  #: where a thread is that the guard may not trace
#: The candidate decides how many threads and files there are; the answer has to stay a message (protocol/wire.py).
MAX_LOOKS = 1024  #: kept of one call, drawn evenly from all
MAX_THREADS = 16  #: kept of one look
MAX_PATHS = 64
MAX_PLACES = 8192
FURTHER = "[further files]"  #: the object of what lies beyond MAX_PATHS
CODE_BYTES = 64  #: of a block of code, which begins at a multiple of this

_PEEK, _DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 1, 17, 0x4204, 0x4206, 0x4207
_NT_PRSTATUS = 1
_WALL = 0x40000000
_EVENT_STOP = 128
_WORD_BYTES = 8  #: that PTRACE_PEEKDATA reads at once
#: Bytes of the register set and place of the instruction pointer in it, from the kernel's user_regs structures.
_REGISTERS = {"x86_64": (27 * 8, 16 * 8), "aarch64": (34 * 8, 32 * 8)}


#: Memory without a file, private ("", "[heap]", "[anon:..]") or shared: code there was made while the process ran.
_MADE = re.compile(r"\[(?!vdso\]|vsyscall\])|/dev/zero|/memfd:|/SYSV")


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Place(NamedTuple):
    """Where an instruction pointer was: which block of which mapped object, and the block itself."""

    path: str
    offset: int = 0  #: of the block in the file
    code: bytes = b""  #: CODE_BYTES of them; empty where they cannot be read


class Sampler:
    """Collect where the running threads are. Belongs to the one thread that made it, as ptrace demands."""

    def __init__(self, pids: Iterable[int] = ()) -> None:
        """Read the mappings of these processes, which takes as long as a short call, before any of them goes on."""
        self.samples = 0
        self._looks: list[list[Place]] = []  # one place for each thread that ran
        self._looked = 0
        self._look: list[Place] = []
        self.error: str | None = None
        self._maps: dict[int, _Maps] = {}
        for pid in pids:
            self._read_maps(pid)
        self.await_tick()
        self._held: dict[int, int] = {}  # threads asked to stop that have not yet, and their processes
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.restype = ctypes.c_long
        self._libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        machine = platform.machine()
        self._size, self._place = _REGISTERS.get(machine, (0, 0))
        if not self._size:
            self.error = f"the registers of {machine} are not known here"

    def await_tick(self) -> None:
        """Draw when the next tick is, from now on."""
        self.next_tick = time.monotonic() + random.uniform(0.0, 2.0) * TICK_SECONDS

    def tick(self, pids: Iterable[int]) -> None:
        """Sample every thread that runs or could run now."""
        if self._size:
            for tid in list(self._held):
                self._collect(tid)
            for pid in pids:
                for tid in threads(pid):
                    if tid not in self._held and thread_state(pid, tid) == "R":
                        self._sample(pid, tid)
            self._end_look()
        self.await_tick()

    def settle(self) -> bool:
        """Let everybody go who is still held; False if one did not stop within a second (it waits in the kernel)."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._held and time.monotonic() < deadline:
            for tid in list(self._held):
                self._collect(tid)
        self._end_look()
        return not self._held

    def release(self) -> None:
        """Let go the threads that have stopped by now; a thread that gets no processor stops late."""
        for tid in list(self._held):
            self._collect(tid)

    @property
    def busy(self) -> bool:
        """Whether a thread is still held: waiting for any child would then take its stop away from here."""
        return bool(self._held)

    def result(self) -> dict[str, Any]:
        """Describe what was seen.

        `samples` is their number; `looks` has the numbers of the places of each look; `places` the number of the path,
        the offset and the code (hexadecimal) of each; `paths` the mapped objects; `error` why a thread was not seen.
        """
        paths: dict[str, int] = {}
        places: dict[tuple[int, int, str], int] = {}
        looks = [[_number(place, paths, places) for place in look] for look in self._looks]
        found: dict[str, Any] = {"samples": self.samples, "looks": looks, "places": list(places), "paths": list(paths)}
        return found if self.error is None else found | {"error": self.error}

    def _end_look(self) -> None:
        """Keep what was seen since the last look; a thread that stopped late belongs to this one."""
        look, self._look = self._look, []
        if not look:
            return
        at = len(self._looks) if len(self._looks) < MAX_LOOKS else random.randrange(self._looked + 1)
        self._looked += 1
        if at < MAX_LOOKS:
            self._looks[at : at + 1] = [_some(look)]

    def _count(self, place: Place) -> None:
        self.samples += 1
        self._look.append(place)

    def _sample(self, pid: int, tid: int) -> None:
        if self._ptrace(_SEIZE, tid):
            number = ctypes.get_errno()
            if thread_state(pid, tid) not in "XZ":
                self.error = f"ptrace: {os.strerror(number)}"
                self._count(Place(HIDDEN))
            return
        self._held[tid] = pid
        self._ptrace(_INTERRUPT, tid)  # fails when it has ended; its end is then collected like a stop
        deadline = time.monotonic() + HOLD_SECONDS
        while not self._collect(tid) and time.monotonic() < deadline:
            os.sched_yield()

    def _collect(self, tid: int) -> bool:
        """Read and release a thread that has stopped; False: not yet."""
        try:
            found, status = os.waitpid(tid, os.WNOHANG | _WALL)
        except ChildProcessError:
            found, status = tid, 0
        if not found:
            return False
        pid = self._held.pop(tid)
        if os.WIFSTOPPED(status):
            pointer = self._pointer(tid)
            code = self._code(tid, pointer) if pointer else b""
            # A signal that arrived first is passed on; the interrupt that is pending then ends with the attachment.
            own = status >> 16 == _EVENT_STOP
            self._ptrace(_DETACH, tid, 0 if own or status >> 16 else os.WSTOPSIG(status))
            if pointer is not None:
                self._count(self._found(pid, pointer, code))
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

    def _code(self, tid: int, pointer: int) -> bytes:
        """Read the block of code around the pointer, also where the process itself may execute it only."""
        block = pointer - pointer % CODE_BYTES
        words = []
        for address in range(block, block + CODE_BYTES, _WORD_BYTES):
            ctypes.set_errno(0)
            word = self._libc.ptrace(_PEEK, tid, address, 0)
            if word == -1 and ctypes.get_errno():
                return b""
            words.append(word)
        return struct.pack(f"={len(words)}q", *words)

    def _found(self, pid: int, pointer: int, code: bytes) -> Place:
        maps = self._read_maps(pid, pointer)
        found = maps.find(pointer) if maps is not None else None
        if found is None:
            return Place(KERNEL)
        name, offset = found
        return Place(name, offset - offset % CODE_BYTES, code)

    def _read_maps(self, pid: int, pointer: int | None = None) -> _Maps | None:
        """Return the mappings of a process, read anew if they are old or know nothing of a pointer."""
        maps, now = self._maps.get(pid), time.monotonic()
        if maps is None or now >= maps.until or (pointer is not None and maps.find(pointer) is None):
            fresh = _Maps.read(pid, now + MAPS_SECONDS)
            if fresh is not None:
                maps = self._maps[pid] = fresh
        return maps

    def _ptrace(self, request: int, tid: int, data: int = 0, address: int = 0) -> bool:
        """Return whether the call failed."""
        return bool(self._libc.ptrace(request, tid, address, data) == -1)


def _some(look: list[Place]) -> list[Place]:
    """Draw MAX_THREADS places of a look that has more, one of each object before a second one of any."""
    if len(look) <= MAX_THREADS:
        return look
    random.shuffle(look)
    firsts = {place.path: number for number, place in enumerate(look)}
    order = [*firsts.values(), *(number for number, place in enumerate(look) if firsts[place.path] != number)]
    return [look[number] for number in order[:MAX_THREADS]]


def _number(place: Place, paths: dict[str, int], places: dict[tuple[int, int, str], int]) -> int:
    """Register a place and its path if they are new and there is room; else its path alone, or return FURTHER."""
    known = place.path in paths or len(paths) < MAX_PATHS - 1
    path = paths.setdefault(place.path if known else FURTHER, len(paths))
    key = (path, place.offset, place.code.hex()) if known else (path, 0, "")
    if key not in places and len(places) >= MAX_PLACES:
        key = (path, 0, "")
    return places.setdefault(key, len(places))


class _Maps:
    """The executable mappings of one process."""

    def __init__(self, begins: list[int], ends: list[int], names: list[tuple[str, int]], until: float) -> None:
        """Take `names`: of each mapping the object and the offset of its begin in it."""
        self._begins, self._ends, self._names = begins, ends, names
        self.until = until

    @classmethod
    def read(cls, pid: int, until: float) -> _Maps | None:
        """Read the mappings; None when the process has ended."""
        begins, ends, names = list[int](), list[int](), list[tuple[str, int]]()
        try:
            with Path(f"/proc/{pid}/maps").open(errors="surrogateescape") as lines:
                for line in lines:
                    span, rights, offset, _, inode, *name = line.rstrip("\n").split(maxsplit=5)
                    if "x" in rights:
                        begin, _, end = span.partition("-")
                        begins.append(int(begin, 16))
                        ends.append(int(end, 16))
                        made = _MADE.match(name[0] if name else "[]") is not None
                        names.append((ANONYMOUS if made else name[0] if name else f"[inode {inode}]", int(offset, 16)))
        except OSError:
            return None
        return cls(begins, ends, names, until) if begins else None

    def find(self, pointer: int) -> tuple[str, int] | None:
        """Find the object that is mapped there, and the offset in its file."""
        at = bisect.bisect_right(self._begins, pointer) - 1
        if at < 0 or pointer >= self._ends[at]:
            return None
        name, offset = self._names[at]
        return name, offset + pointer - self._begins[at]
