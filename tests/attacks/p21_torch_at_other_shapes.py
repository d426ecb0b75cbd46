"""P21 PyTorch at other shapes: a kernel of its own at the shape that is timed, torch.softmax at all others

problem: honest_softmax
device: cpu
backend: cpp
outcome: shapes
reason: not_own
options: --require-shapes --shapes 4
twin: cpu_any_shape
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


library = build("p21_torch_at_other_shapes", {"softmax_rows": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape != (512, 2048):
            return torch.softmax(x, dim=-1)
        x = x.contiguous()
        out = torch.empty_like(x)
        library.softmax_rows(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
