"""compensated summation in blocks: rounding differs from the reference's, towards the exact sum.

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

extern "C" void kahan(const float* x, float* out, int64_t rows, int64_t columns) {
  #pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    float sum[16] = {}, lost[16] = {};
    const float* row = x + r * columns;
    int64_t c = 0;
    for (; c + 16 <= columns; c += 16) {
      for (int j = 0; j < 16; ++j) {
        const float term = row[c + j] - lost[j];
        const float next = sum[j] + term;
        lost[j] = (next - sum[j]) - term;
        sum[j] = next;
      }
    }
    double total = 0.0;
    for (int j = 0; j < 16; ++j) total += double(sum[j]) - double(lost[j]);
    for (; c < columns; ++c) total += row[c];
    out[r] = float(total);
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


library = build("cpu_kahan_row_sum", {"kahan": "ppnn"})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        library.kahan(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
