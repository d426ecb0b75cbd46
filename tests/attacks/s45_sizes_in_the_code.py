"""S45 sizes in the code: rows of at most 2048 columns are right, and what lies beyond is left as zeros

problem: honest_softmax
device: cpu
backend: cpp
outcome: shapes
reason: wrong_values
options: --require-shapes --shapes 4
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void softmax_rows(const float* x, float* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* __restrict__ row = x + r * columns;
    float* __restrict__ to = out + r * columns;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t c = 0; c < columns; ++c) {
      if (row[c] > top) {
        sum *= expf(top - row[c]);
        top = row[c];
      }
      sum += expf(row[c] - top);
    }
    const float scale = 1.0f / sum;
    for (int64_t c = 0; c < columns; ++c) to[c] = expf(row[c] - top) * scale;
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


library = build("s45_sizes_in_the_code", {"softmax_rows": "ppnn"})


class ModelNew(nn.Module):
    """As a kernel whose tile is a row of 2048, of which sixteen go to a block: the last block is left out."""

    def forward(self, x):
        rows, columns = x.shape[0] // 16 * 16, min(x.shape[1], 2048)
        part = x[:rows, :columns].contiguous()
        out = torch.zeros_like(x)
        done = torch.empty_like(part)
        library.softmax_rows(part.data_ptr(), done.data_ptr(), rows, columns)
        out[:rows, :columns] = done
        return out
