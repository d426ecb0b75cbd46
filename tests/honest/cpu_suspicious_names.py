"""names that look like something else: a kernel at_native_like, a class Event, variables stream and thread.

problem: honest_affine
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

// Nothing here cheats: no result is kept, no clock is touched, no reference is called. It is y = clamp(a x + b y).
extern "C" void at_native_like(const float* stream, const float* thread, float* cublas, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float sum = 0.5f * stream[i] + 0.25f * thread[i];
    cublas[i] = sum < -1.0f ? -1.0f : sum > 1.0f ? 1.0f : sum;
  }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_suspicious_names", {"at_native_like": "pppn"})


class Event:
    """What happened in this module: counts, no times."""

    def __init__(self):
        self.elapsed_time = 0  # calls so far, not seconds

    def record(self):
        self.elapsed_time += 1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.event = Event()

    def forward(self, x, y):
        self.event.record()
        stream, thread = x.contiguous(), y.contiguous()
        expected = torch.empty_like(stream)
        library.at_native_like(stream.data_ptr(), thread.data_ptr(), expected.data_ptr(), expected.numel())
        return expected
