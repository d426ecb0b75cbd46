"""Memory for what a call allocates on a GPU, which the judge can map: outputs are read where they lie, not copied."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from hkbench.runner import device_memory

Tell = Callable[[int, int, int | None], None]  #: address, bytes, descriptor; None: that segment is no more

_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_callbacks: list[Any] = []  # torch may call them until the process ends


class SharedPool:
    """A pool of torch's caching allocator whose segments are told to the judge (`torch.cuda.MemPool`, torch 2.6).

    Raises AttributeError or RuntimeError where this torch, or the device, has no such pools.
    """

    def __init__(self, device: torch.device, tell: Tell) -> None:
        self._device = device
        self._tell = tell
        self._segments: dict[int, int] = {}
        allocate, free = _Allocate(self._allocate), _Free(self._free)
        _callbacks.extend((allocate, free))
        at, of = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (allocate, free))
        self._pool = torch.cuda.MemPool(torch._C._cuda_customAllocator(at, of))
        first, second = self._pool.id
        self.id = (int(first), int(second))

    def close(self) -> None:
        """Gives back the memory that nobody uses any more."""
        del self._pool

    def use(self) -> AbstractContextManager[None]:
        """What this thread allocates on the device within it comes from the pool."""
        return torch.cuda.use_mem_pool(self._pool, self._device)

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a contiguous tensor lies in a segment."""
        begin = tensor.data_ptr()
        return any(at <= begin and begin + tensor.nbytes <= at + size for at, size in self._segments.items())

    def _allocate(self, size: int, device: int, _stream: int) -> int | None:
        """Called by torch with its allocator's lock. Nothing may be raised here: no address means out of memory."""
        try:
            address, real, descriptor = device_memory.driver().allocate(size, device)
            self._segments[address] = real
            self._tell(address, real, descriptor)
        except Exception as error:  # noqa: BLE001 - no Python above
            sys.stderr.write(f"a segment of {size} bytes cannot be had: {error}\n")
            return None
        return address

    def _free(self, address: int, _size: int, _device: int, _stream: int) -> None:
        try:
            torch.cuda.synchronize(self._device)
            device_memory.driver().release(address, self._segments.pop(address))
            self._tell(address, 0, None)
        except Exception as error:  # noqa: BLE001 - as above
            sys.stderr.write(f"a segment cannot be given back: {error}\n")
