"""Whose bytes they are: what kernels wrote in a call, and what they read in it that the host had written.

The host's part is kept as numbers of chunks of 16 bytes, by a key that only this process has: two calls can be compared
by them, and no candidate can make two chunks of the same number.
"""

from __future__ import annotations

import ctypes
import mmap
import secrets
from array import array
from collections.abc import Iterator
from contextlib import suppress

from hkbench.emulator import arena, records
from hkbench.emulator.arena import Range
from hkbench.emulator.build import core

CHUNK = 16
MAX_CHUNKS = 1 << 24  #: different ones that are kept of a call: of 256 MiB, and as much again for their numbers
_USUAL = 1 << 20  #: beyond which those that come again are dropped
_NORESERVE = 0x4000  # of mmap(2): what is not touched takes no memory
_SHADOW = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
_BLOCK = 14  #: as in core/abi.h


def shadow_memory(size: int) -> mmap.mmap:
    """Return zeros of which only what is written takes memory, in large pages: the usual ones cost a fault each."""
    made = mmap.mmap(-1, size, _SHADOW)
    with suppress(OSError):  # a kernel without them
        made.madvise(mmap.MADV_HUGEPAGE)
    return made


class Trace:
    """What is known of the bytes of one call."""

    def __init__(self) -> None:
        """Draw a key."""
        self._key = (ctypes.c_uint64 * 2)(secrets.randbits(64), secrets.randbits(64))
        self.begin()

    def begin(self) -> None:
        """Forget: a call begins."""
        self._shadows: dict[int, mmap.mmap] = {}
        self._sizes: dict[int, int] = {}
        self._chunks = array("Q")  # (number, bytes) in turn
        self._distinct = 0  # pairs at the beginning of which no two have one number
        self._spoken: set[bytes] = set()

    def shadow(self, begin: int, size: int) -> int:
        """Return the address of what is kept of a range: see core/trace.h."""
        if self._sizes.get(begin) != size:
            self._sizes[begin] = size
            self._shadows[begin] = shadow_memory(4 * size + (size >> _BLOCK) + 1)
        return ctypes.addressof(ctypes.c_char.from_buffer(self._shadows[begin]))

    def forget(self, begin: int) -> None:
        """Drop a range that is withdrawn."""
        self._sizes.pop(begin, None)
        self._shadows.pop(begin, None)

    def collect(self) -> None:
        """Keep what a launch read: the host may write something else there before the next one."""
        for begin in self._sizes:
            if not _is_input(begin):
                self._take(begin, settled=False)

    def spoken(self, said: bytes) -> None:
        """Keep what the host handed over otherwise: arguments, sizes of grids, code."""
        if said not in self._spoken:
            self._spoken.add(said)
            padded = said + bytes(-len(said) % CHUNK)
            memory = ctypes.create_string_buffer(padded, len(padded))
            self._keep(self._numbers(ctypes.addressof(memory), len(padded)))

    def changed(self, count: int) -> None:
        """Keep that the host changed so many bytes while kernels read them: nobody knows to what."""
        if count:
            self._chunks.extend((secrets.randbits(64), count))

    def host_bytes(self) -> int:
        """Return how many bytes kernels read of the host's; inputs count where they were others than lie there now."""
        self._take_inputs()
        count = core().hkbench_emulator_bytes
        count.restype = ctypes.c_uint64
        address, length = self._chunks.buffer_info()
        return int(count(ctypes.c_void_p(address), ctypes.c_uint64(length // 2)))

    def host_made(self) -> array[int]:
        """Return pairs (number, bytes) of all that `host_bytes` counts, each number once, in ascending order."""
        self._take_inputs()
        self._drop_known()
        return self._chunks

    def _take_inputs(self) -> None:
        for begin in self._sizes:
            if _is_input(begin):
                self._take(begin, settled=True)

    def numbers(self, place: Range) -> array[int]:
        """Return pairs (number, bytes) of what lies at a place."""
        return self._numbers(place.begin, place.size)

    def left(self, place: Range) -> array[int]:
        """Return such pairs of what lies at a place and is no kernel's of this call."""
        left = core().hkbench_emulator_left
        left.restype = ctypes.c_uint64
        found = array("Q")
        for record, part in self._parts(place):
            pairs = (ctypes.c_uint64 * (2 * (part.size // CHUNK + 2)))()
            at, size = ctypes.c_uint64(part.begin), ctypes.c_uint64(part.size)
            found += _first(pairs, left(ctypes.byref(record), at, size, self._key, pairs))
        return found

    def kept(self, place: Range) -> int:
        """Return how many bytes at a place a kernel wrote in this call and nobody changed after it."""
        count = core().hkbench_emulator_kept
        count.restype = ctypes.c_uint64
        parts = self._parts(place)
        return sum(count(ctypes.byref(one), ctypes.c_uint64(at.begin), ctypes.c_uint64(at.size)) for one, at in parts)

    def _parts(self, place: Range) -> Iterator[tuple[records.RangeRecord, Range]]:
        """Yield the known memory at a place: the record of each, and the part of the place that lies in it."""
        for begin, size in self._sizes.items():
            first, end = max(begin, place.begin), min(begin + size, place.end)
            if first < end:
                yield self._record(begin), Range(first, end - first)

    def _record(self, begin: int) -> records.RangeRecord:
        size = self._sizes[begin]
        return records.RangeRecord(begin=begin, end=begin + size, trace=self.shadow(begin, size))

    def _take(self, begin: int, settled: bool) -> None:
        record = self._record(begin)
        touched = core().hkbench_emulator_touched
        touched.restype = ctypes.c_uint64
        room = touched(ctypes.byref(record))
        if not room:
            return
        pairs = (ctypes.c_uint64 * (2 * room))()
        take = core().hkbench_emulator_host_made
        take.restype = ctypes.c_uint64
        count = take(ctypes.byref(record), self._key, ctypes.c_uint32(settled), pairs)
        self._keep(_first(pairs, count))

    def _numbers(self, begin: int, size: int) -> array[int]:
        pairs = (ctypes.c_uint64 * (2 * (size // CHUNK + 2)))()
        chunks = core().hkbench_emulator_chunks
        chunks.restype = ctypes.c_uint64
        count = chunks(ctypes.c_uint64(begin), ctypes.c_uint64(size), self._key, pairs)
        return _first(pairs, count)

    def _keep(self, pairs: array[int]) -> None:
        self._chunks += pairs
        if len(self._chunks) // 2 > 2 * self._distinct + _USUAL:
            self._drop_known()

    def _drop_known(self) -> None:
        """Leave each number once, in ascending order."""
        if not self._chunks:
            return
        memory = (ctypes.c_uint64 * len(self._chunks)).from_buffer(self._chunks)
        distinct = core().hkbench_emulator_distinct
        distinct.restype = ctypes.c_uint64
        self._distinct = distinct(memory, ctypes.c_uint64(len(self._chunks) // 2))
        del memory  # while it is there the array cannot shrink
        del self._chunks[2 * self._distinct :]
        if self._distinct > MAX_CHUNKS:  # nobody can say what the rest was: it counts as new in each call
            more = sum(self._chunks[2 * MAX_CHUNKS + 1 :: 2])
            del self._chunks[2 * MAX_CHUNKS :]
            self._distinct = MAX_CHUNKS
            self.changed(more)


def _is_input(address: int) -> bool:
    return arena.INBOX <= address < arena.OUTBOX


def _first(pairs: ctypes.Array[ctypes.c_uint64], count: int) -> array[int]:
    found = array("Q")
    found.frombytes(memoryview(pairs).cast("B")[: 16 * count])
    return found
