"""Memory for what a call allocates on a GPU, which the evaluator can map: outputs are read where they lie."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from typing import ParamSpec

import torch

from hkbench.protocol import device_memory, memory

Arguments = ParamSpec("Arguments")
Tell = Callable[[int, int, int | None], None]  #: address, bytes, descriptor; None: that segment is no more

_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_callbacks: list[object] = []  # torch may call them until the process ends
_entered: list[SharedPool] = []


class SharedPool:
    """A pool of torch's caching allocator whose segments are told to the evaluator (`torch.cuda.MemPool`, torch 2.6).

    Raises AttributeError or RuntimeError where this torch, or the device, has no such pools.
    """

    def __init__(self, device: torch.device, tell: Tell) -> None:
        self._device = device
        self._tell = tell
        self._segments: dict[int, int] = {}
        self._used = ExitStack()
        allocate, free = _Allocate(self._allocate), _Free(self._free)
        _callbacks.extend((allocate, free))
        at, of = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (allocate, free))
        allocator = torch._C._cuda_customAllocator(at, of)
        _callbacks.append(allocator)  # a block that outlives the pool is given back through it
        self._pool = torch.cuda.MemPool(allocator)
        first, second = self._pool.id
        self.id = (int(first), int(second))

    def close(self) -> None:
        """Give back the memory that nobody uses any more."""
        del self._pool

    @contextmanager
    def use(self) -> Iterator[None]:
        """Allocate from the pool what this thread allocates on the device within the context."""
        self._enter()
        _entered.append(self)
        try:
            yield
        finally:
            _entered.remove(self)
            self._used.close()

    def _enter(self) -> None:
        self._used.enter_context(torch.cuda.use_mem_pool(self._pool, self._device))

    def step_out(self) -> None:
        """Leave the allocator's other pools their part, until `step_in`."""
        self._used.close()

    def step_in(self) -> None:
        self._used.close()
        self._enter()

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a strided tensor with elements lies in a segment."""
        begin, end = memory.stretch(tensor)
        return any(at <= begin and end <= at + size for at, size in self._segments.items())

    def _allocate(self, size: int, device: int, _stream: int) -> int | None:
        """Allocate for torch, which calls with its allocator's lock.

        Nothing may be raised here: no address means out of memory.
        """
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


@cache
def leave_graphs_their_pools() -> None:
    """Have a capture of a CUDA graph allocate from the graph's own pool, also while a call uses a `SharedPool`.

    Of several pools in use torch's allocator takes the one that was entered first (`captures_underway` of
    c10/cuda/CUDACachingAllocator.cpp), so that a graph's memory would be handed to others while it is replayed. The
    functions of `torch._C` are those that torch.compile warms its graphs up with.
    """
    for owner, begin, end in (
        (torch.cuda.CUDAGraph, "capture_begin", "capture_end"),
        (torch._C, "_cuda_beginAllocateCurrentThreadToPool", "_cuda_endAllocateToPool"),
    ):
        if hasattr(owner, begin):
            setattr(owner, begin, _stepping_out(getattr(owner, begin)))
            setattr(owner, end, _stepping_in(getattr(owner, end)))


def _stepping_out(begin: Callable[Arguments, None]) -> Callable[Arguments, None]:
    @wraps(begin)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        for pool in _entered:
            pool.step_out()
        begin(*args, **kwargs)

    return run


def _stepping_in(end: Callable[Arguments, None]) -> Callable[Arguments, None]:
    @wraps(end)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            end(*args, **kwargs)
        finally:
            for pool in _entered:
                pool.step_in()

    return run
