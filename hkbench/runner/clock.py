"""Timing of one call: the same code for candidate and baseline, each in a runner of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


class Flusher:
    """Evicts the last-level cache by writing and reading a buffer of `size` bytes on the device."""

    def __init__(self, device: torch.device, size: int) -> None:
        self.size = size
        self._buffer = torch.empty(max(1, size // 4), dtype=torch.int32, device=device)
        self._turn = 0

    def __call__(self) -> None:
        self._turn += 1
        self._buffer.fill_(self._turn)
        # Reading back leaves clean lines behind and keeps a write-back cache from holding the last part.
        self._buffer.max()


def timed_call(
    forward: Callable[[], object], device: torch.device, flush: Flusher | None
) -> tuple[object, float, float]:
    """Runs `forward` once; returns its result, its seconds, and its seconds until the whole device is idle.

    On a GPU the first figure is between two events on the current stream. Nothing waits between flush and first
    event, so that the host queues the forward pass while the flush still runs: how fast a process wakes up is not in
    the figure (without this, equals differed by 10 us). The second figure ends after a device-wide synchronise, so it
    also holds work that was put on other streams. On a CPU both are the same `perf_counter` interval.
    """
    if device.type != "cuda":
        if flush is not None:
            flush()
        start = time.perf_counter()
        result = forward()
        seconds = time.perf_counter() - start
        return result, seconds, seconds
    begin, end, idle = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    torch.cuda.synchronize(device)
    if flush is not None:
        flush()
    begin.record()
    result = forward()
    end.record()
    torch.cuda.synchronize(device)
    idle.record()
    idle.synchronize()
    return result, begin.elapsed_time(end) / 1000.0, begin.elapsed_time(idle) / 1000.0
