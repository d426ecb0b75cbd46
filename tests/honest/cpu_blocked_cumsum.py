"""a running sum in blocks: totals first, then each block from its offset.

problem: honest_cumsum
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

extern "C" void running_sum(const float* x, float* out, int64_t rows, int64_t columns) {
  constexpr int64_t block = 128;
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    double before = 0.0;
    for (int64_t b = 0; b < columns; b += block) {
      const int64_t end = b + block < columns ? b + block : columns;
      double sum = before;
      for (int64_t c = b; c < end; ++c) {
        sum += x[r * columns + c];
        out[r * columns + c] = float(sum);
      }
      before = sum;
    }
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


library = build("cpu_blocked_cumsum", {"running_sum": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.running_sum(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
