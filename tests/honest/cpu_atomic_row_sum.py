"""column strips added with atomics: the order of the additions, and so the last bits, differ from call to call.

problem: honest_row_sum
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

extern "C" void row_sums(const float* x, float* out, int64_t rows, int64_t columns) {
  constexpr int64_t strip = 256;
  const int64_t strips = (columns + strip - 1) / strip;
  #pragma omp parallel for collapse(2) schedule(dynamic, 32)
  for (int64_t s = 0; s < strips; ++s) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t end = (s + 1) * strip < columns ? (s + 1) * strip : columns;
      float sum = 0.0f;
      for (int64_t c = s * strip; c < end; ++c) sum += x[r * columns + c];
      #pragma omp atomic
      out[r] += sum;
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


library = build("cpu_atomic_row_sum", {"row_sums": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.zeros(x.shape[0])
        library.row_sums(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
