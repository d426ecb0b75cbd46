"""one pass over each row: sums of x - s and its square, with the row's first element as the shift.

problem: honest_moments
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

extern "C" void moments(const float* x, float* means, float* variances, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    const float shift = row[0];
    double sum = 0.0, squares = 0.0;
    #pragma omp simd reduction(+ : sum, squares)
    for (int64_t c = 0; c < columns; ++c) {
      const double d = double(row[c]) - double(shift);
      sum += d;
      squares += d * d;
    }
    const double mean = sum / double(columns);
    means[r] = float(mean + shift);
    variances[r] = float(squares / double(columns) - mean * mean);
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


library = build("cpu_shifted_variance", {"moments": "pppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        mean = torch.empty(x.shape[0])
        variance = torch.empty_like(mean)
        library.moments(x.data_ptr(), mean.data_ptr(), variance.data_ptr(), *x.shape)
        return mean, variance
