"""a clamped bias, of which the problem draws another one until the term before it shows.

problem: clamped
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
#include <cmath>
#include <cstdint>

extern "C" void clamped(const float* x, const float* bias, float* out, int64_t count) {
  const float b = *bias;
  #pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float value = 0.3f * x[i] / (1.0f + std::fabs(x[i])) + b;
    out[i] = value < -1.0f ? -1.0f : value > 1.0f ? 1.0f : value;
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


library = build("cpu_clamped", {"clamped": "pppn"})


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(1.5 * torch.randn(1))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.clamped(x.data_ptr(), self.bias.data_ptr(), out.data_ptr(), x.numel())
        return out
