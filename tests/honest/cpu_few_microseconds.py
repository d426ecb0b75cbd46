"""a kernel of a few microseconds, one thread, no parallel region.

problem: honest_tiny
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

extern "C" void affine(const float* x, float* out, int64_t count) {
  #pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = 2.0f * x[i] + 1.0f;
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


library = build("cpu_few_microseconds", {"affine": "ppn"})


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        library.affine(x.data_ptr(), out.data_ptr(), x.numel())
        return out
