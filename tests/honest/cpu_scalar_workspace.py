"""a scalar output from partial sums in a workspace that is kept; the scalar itself is new memory.

problem: honest_mse
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

extern "C" void squared_difference(const float* x, const float* y, double* partial, float* out, int64_t rows,
                                   int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0.0;
    #pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < columns; ++c) {
      const double d = double(x[r * columns + c]) - double(y[r * columns + c]);
      sum += d * d;
    }
    partial[r] = sum;
  }
  double total = 0.0;
  for (int64_t r = 0; r < rows; ++r) total += partial[r];
  *out = float(total / (double(rows) * double(columns)));
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


library = build("cpu_scalar_workspace", {"squared_difference": "ppppnn"})


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.partial = None

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        if self.partial is None or self.partial.numel() < x.shape[0]:
            self.partial = torch.empty(x.shape[0], dtype=torch.float64)
        out = torch.empty(())
        library.squared_difference(x.data_ptr(), y.data_ptr(), self.partial.data_ptr(), out.data_ptr(), *x.shape)
        return out
