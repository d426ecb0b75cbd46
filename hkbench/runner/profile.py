"""One forward pass under torch's profiler, as plain numbers."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile

from hkbench.protocol.constants import PROFILED_PASSES
from hkbench.protocol.messages import Object, Profiled

MAX_KERNELS = 64


def profile_forward(forward: Callable[[], object], device: torch.device) -> Profiled:
    """Profile one pass: kernels (GPU) or operators (CPU) with name, calls and own seconds; the pass's wall seconds."""
    on_gpu = device.type == "cuda"
    forward()
    if on_gpu:
        torch.cuda.synchronize(device)
    # Not torch.profiler.profile: that imports torch.distributed and sympy at its start, seconds in each fresh process.
    with profile(use_device="cuda" if on_gpu else None, use_kineto=True) as session:
        start = time.perf_counter()
        for _ in range(PROFILED_PASSES):
            forward()
        if on_gpu:
            torch.cuda.synchronize(device)
        wall = (time.perf_counter() - start) / PROFILED_PASSES
    wanted = DeviceType.CUDA if on_gpu else DeviceType.CPU
    found: list[tuple[float, Object]] = []
    for average in session.key_averages():
        if average.device_type != wanted:
            continue
        micros = average.self_device_time_total if on_gpu else average.self_cpu_time_total
        calls, seconds = average.count / PROFILED_PASSES, micros / 1e6 / PROFILED_PASSES
        found.append((seconds, {"name": average.key[:400], "calls": calls, "seconds": seconds}))
    found.sort(key=lambda item: -item[0])
    return Profiled(wall_seconds=wall, kernels=[kernel for _, kernel in found[:MAX_KERNELS]], on_gpu=on_gpu)
