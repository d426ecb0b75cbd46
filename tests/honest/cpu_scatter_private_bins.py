"""index_add with bins of its own for each thread; the merge rounds otherwise than one loop would.

problem: honest_scatter
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import os
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void scatter(const int64_t* index, const float* x, float* scratch, float* out, int64_t rows, int64_t columns,
                        int64_t bins, int64_t parts) {
  #pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < parts; ++p) {
    float* mine = scratch + p * bins * columns;
    for (int64_t i = 0; i < bins * columns; ++i) mine[i] = 0.0f;
    for (int64_t r = rows * p / parts; r < rows * (p + 1) / parts; ++r) {
      float* to = mine + index[r] * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] += x[r * columns + c];
    }
  }
  for (int64_t i = 0; i < bins * columns; ++i) {
    float sum = 0.0f;
    for (int64_t p = 0; p < parts; ++p) sum += scratch[p * bins * columns + i];
    out[i] = sum;
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


library = build("cpu_scatter_private_bins", {"scatter": "ppppnnnn"})


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins
        self.parts = min(4, len(os.sched_getaffinity(0)))

    def forward(self, index, x):
        index, x = index.contiguous(), x.contiguous()
        scratch = torch.empty(self.parts, self.bins, x.shape[1])
        out = torch.empty(self.bins, x.shape[1])
        library.scatter(
            index.data_ptr(), x.data_ptr(), scratch.data_ptr(), out.data_ptr(), *x.shape, self.bins, self.parts
        )
        return out
