"""The memory of the emulated device: memory files, each mapped at one fixed address in the runner and in the device.

An address means the same in both, so that a pointer in a kernel's arguments needs no translation. The heap is one
sparse file, sealed at its size; inputs and outputs lie in files of the evaluator's.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from dataclasses import dataclass

HEAP = 0x2000_0000_0000  #: where the heap lies; far from what loaders and allocators take
INBOX = HEAP + (1 << 40)
OUTBOX = HEAP + (2 << 40)
HEAP_BYTES = 1 << 36  #: sparse: pages count when they are touched
_MAP_FIXED_NOREPLACE = 0x100000
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)


@dataclass(frozen=True)
class Range:
    """A stretch of the device's memory."""

    begin: int
    size: int

    @property
    def end(self) -> int:
        return self.begin + self.size

    def holds(self, other: Range) -> bool:
        return self.begin <= other.begin and other.end <= self.end


def make_heap(size: int = HEAP_BYTES) -> int:
    """Return the descriptor of a new heap, whose size nobody can change."""
    heap = os.memfd_create("emulated_gpu", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(heap, size)
    fcntl.fcntl(heap, fcntl.F_ADD_SEALS, _SEALS)
    return heap


def unmap(mapped: Range) -> None:
    """Take a mapping away that `map_at` made."""
    if _libc.munmap(mapped.begin, mapped.size):
        number = ctypes.get_errno()
        raise OSError(number, f"memory at {mapped.begin:#x} cannot be unmapped: {os.strerror(number)}")


def map_at(descriptor: int, address: int, size: int) -> Range:
    """Map a memory file at its address, until it is unmapped.

    Raises:
        OSError: something else lies there, or the file is shorter.
    """
    if os.fstat(descriptor).st_size < size:
        raise OSError(f"a memory file of {os.fstat(descriptor).st_size} bytes is to be mapped as {size}")
    flags = mmap.MAP_SHARED | _MAP_FIXED_NOREPLACE
    found = _libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    if found != address:
        number = ctypes.get_errno()
        raise OSError(number, f"memory of the emulated device cannot be mapped at {address:#x}: {os.strerror(number)}")
    return Range(address, size)
