"""One forward pass under torch's profiler, as plain numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile

PASSES = 3
FORWARDS = 1 + PASSES  #: the first one warms up
MOST_KERNELS = 64


def profile_forward(forward: Callable[[], object], device: torch.device) -> dict[str, Any]:
    """Kernels (GPU) or operators (CPU) of one pass: name, calls, seconds of its own; and the pass's wall seconds."""
    on_gpu = device.type == "cuda"
    forward()
    if on_gpu:
        torch.cuda.synchronize(device)
    # Not torch.profiler.profile: that imports torch.distributed and sympy at its start, seconds in each fresh process.
    with profile(use_device="cuda" if on_gpu else None, use_kineto=True) as session:
        start = time.perf_counter()
        for _ in range(PASSES):
            forward()
        if on_gpu:
            torch.cuda.synchronize(device)
        wall = (time.perf_counter() - start) / PASSES
    wanted = DeviceType.CUDA if on_gpu else DeviceType.CPU
    kernels = []
    for average in session.key_averages():
        if average.device_type != wanted:
            continue
        micros = average.self_device_time_total if on_gpu else average.self_cpu_time_total
        calls, seconds = average.count / PASSES, micros / 1e6 / PASSES
        kernels.append({"name": average.key[:400], "calls": calls, "seconds": seconds})
    kernels.sort(key=lambda kernel: -float(kernel["seconds"]))
    return {"wall_seconds": wall, "kernels": kernels[:MOST_KERNELS], "on_gpu": on_gpu}
