"""int8 in and out.

problem: honest_saturate
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

extern "C" void saturate(const int8_t* a, const int8_t* b, int8_t* out, int64_t count) {
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const int16_t sum = int16_t(a[i]) + int16_t(b[i]);
    out[i] = int8_t(sum < -128 ? -128 : sum > 127 ? 127 : sum);
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


library = build("cpu_saturating_int8", {"saturate": "pppn"})


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        library.saturate(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel())
        return out
