"""three parameters packed into one table at each call; Horner's rule rounds otherwise than the reference.

problem: honest_polynomial
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

extern "C" void polynomial(const float* x, const float* c, float* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    float* __restrict__ to = out + r * columns;
    #pragma omp simd
    for (int64_t j = 0; j < columns; ++j) to[j] = c[j] + row[j] * (c[columns + j] + row[j] * c[2 * columns + j]);
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


library = build("cpu_stacked_parameters", {"polynomial": "pppnn"})


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        for name in ("c0", "c1", "c2"):
            setattr(self, name, nn.Parameter(torch.randn(columns)))
        self.table = torch.empty(3, columns)

    def forward(self, x):
        x = x.contiguous()
        torch.stack((self.c0, self.c1, self.c2), out=self.table)
        out = torch.empty_like(x)
        library.polynomial(x.data_ptr(), self.table.data_ptr(), out.data_ptr(), *x.shape)
        return out
