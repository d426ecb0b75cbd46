"""in-place work on a temporary of its own: scaled, then shifted, never the input.

problem: honest_scaled_sum
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

extern "C" void scale_in_place(float* x, int64_t count, float scale) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) x[i] *= scale;
}

extern "C" void shift_in_place(float* x, int64_t count, float shift) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) x[i] += shift;
}

extern "C" void copy_of(const float* x, float* out, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = x[i];
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


library = build("cpu_in_place_temporary", {"scale_in_place": "pnf", "shift_in_place": "pnf", "copy_of": "ppn"})


class ModelNew(nn.Module):
    def forward(self, x, scale=1.5, shift=-0.5):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.copy_of(x.data_ptr(), out.data_ptr(), x.numel())
        library.scale_in_place(out.data_ptr(), out.numel(), scale)
        library.shift_in_place(out.data_ptr(), out.numel(), shift)
        return out
